"""Memory formats: which one a tensor has, and what conversions to one give, strides and aliasing as PyTorch's."""

import pytest

import rushlight

torch = pytest.importorskip("torch")

SHAPES = [
    (2, 3, 4, 5),
    (1, 3, 4, 4),
    (2, 1, 4, 4),
    (2, 3, 1, 1),
    (2, 3, 1, 4),
    (2, 1, 4, 1),
    (1, 1, 1, 1),
    (0, 3, 4, 4),
    (2, 0, 4, 4),
    (2, 3, 4, 5, 2),
    (2, 1, 2, 3, 4),
    (2, 3, 1, 1, 1),
    (3, 4),
]
FORMATS = ["contiguous_format", "channels_last", "channels_last_3d"]


def tensors(m, shape):
    yield m.empty(shape)
    yield m.empty(shape).transpose(0, 1)
    yield m.empty((*shape[:-1], 2 * shape[-1]))[..., ::2]
    if len(shape) > 3:
        yield m.empty(
            shape, memory_format=m.channels_last if len(shape) == 4 else m.channels_last_3d
        )


def facts(m, shape):
    for t in tensors(m, shape):
        yield t.stride(), m.empty_like(t).stride(), t.clone().stride()
        for name in FORMATS:
            format = getattr(m, name)
            yield t.is_contiguous(memory_format=format)
            for call in (t.contiguous, t.to, t.clone):
                try:
                    result = call(memory_format=format)
                except RuntimeError as error:
                    assert "required rank" in str(error)
                    yield name, call.__name__, "refused"
                else:
                    yield name, call.__name__, result.stride(), result is t


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_formats(shape):
    assert list(facts(rushlight, shape)) == list(facts(torch, shape))


# ---- strides of results; a contiguous tensor beside a number gives a contiguous one here ----

POINTWISE = {
    "gap": lambda m: m.empty_strided((3, 1), (1, 7)).exp(),
    "steps": lambda m: m.empty_strided((3, 1), (2, 1)) * 2,
    "column of a matrix": lambda m: m.empty(4, 3)[:, :1] + 1,
    "one image": lambda m: m.empty(1, 3, 4, 4).to(memory_format=m.channels_last) + 1,
    "turned": lambda m: m.empty(3, 1, 4).transpose(0, 2) + 1,
    "expanded": lambda m: m.empty(3, 1).expand(3, 4) + 1,
    "three gaps": lambda m: m.empty_strided((1, 3, 1), (9, 2, 5)).exp(),
    "far apart": lambda m: m.empty_strided((4, 1, 3), (1, 100, 4)).exp(),
    "far apart and a row": lambda m: m.empty_strided((4, 1, 3), (1, 100, 4)) + m.empty(1, 3),
    "two that lie alike": lambda m: (
        m.empty(4, 1, 3).permute(2, 1, 0) + m.empty(4, 1, 3).permute(2, 1, 0)
    ),
    "scalars": lambda m: m.empty_strided((1, 1), (9, 2)).exp(),
}


@pytest.mark.parametrize("run", POINTWISE.values(), ids=POINTWISE)
def test_strides_of_elementwise_results(run):
    assert run(rushlight).stride() == run(torch).stride()


# Where the input is square; tall or wide.
SQUARE = {
    "inv": lambda m, a: m.linalg.inv(a),
    "inv_ex": lambda m, a: m.linalg.inv_ex(a),
    "cholesky": lambda m, a: m.linalg.cholesky(a),
    "cholesky, upper": lambda m, a: m.linalg.cholesky_ex(a, upper=True),
    "eigh": lambda m, a: m.linalg.eigh(a),
    "eig": lambda m, a: m.linalg.eig(a),
    "solve": lambda m, a: m.linalg.solve(a, a[..., :2]),
    "solve from the right": lambda m, a: m.linalg.solve(a, a[..., :2, :], left=False),
    "lu_factor": lambda m, a: m.linalg.lu_factor(a),
    "ldl_factor": lambda m, a: m.linalg.ldl_factor(a),
    "triangular": lambda m, a: m.linalg.solve_triangular(a.triu(), a[..., :2], upper=True),
    "cholesky_solve": lambda m, a: m.cholesky_solve(a[..., :2], a),
    "cholesky_inverse": lambda m, a: m.cholesky_inverse(a),
    "pinv": lambda m, a: m.linalg.pinv(a, hermitian=True),
    "matrix_exp": lambda m, a: m.linalg.matrix_exp(a),
}
TALL = {
    "qr": lambda m, a: m.linalg.qr(a),
    "qr, complete": lambda m, a: m.linalg.qr(a, "complete"),
    "qr, R": lambda m, a: m.linalg.qr(a, "r"),
    "svd": lambda m, a: m.linalg.svd(a),
    "svd, thin": lambda m, a: m.linalg.svd(a, full_matrices=False),
    "older svd": lambda m, a: m.svd(a),
    "geqrf": lambda m, a: m.geqrf(a),
    "lu_factor": lambda m, a: m.linalg.lu_factor_ex(a),
    "lstsq": lambda m, a: m.linalg.lstsq(a, a[..., :2]).solution,
    "pinv": lambda m, a: m.linalg.pinv(a),
}


def strides(result):
    results = result if isinstance(result, tuple) else (result,)
    return [t.stride() for t in results if t.numel() > 0]


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)], ids=str)
@pytest.mark.parametrize("run", SQUARE.values(), ids=SQUARE)
def test_strides_of_square_matrices(run, batch):
    a = torch.randn(*batch, 4, 4, dtype=torch.float64)
    a = a @ a.mT + 4 * torch.eye(4, dtype=torch.float64)
    assert strides(run(rushlight, rushlight.tensor(a.numpy()))) == strides(run(torch, a))


@pytest.mark.parametrize("sizes", [(5, 3), (3, 5), (2, 5, 3), (2, 2, 3, 5)], ids=str)
@pytest.mark.parametrize("run", TALL.values(), ids=TALL)
def test_strides_of_matrices(run, sizes):
    a = torch.randn(*sizes, dtype=torch.float64)
    assert strides(run(rushlight, rushlight.tensor(a.numpy()))) == strides(run(torch, a))
