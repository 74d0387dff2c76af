"""Factors that are unique up to signs, gradients through them, and functions that take Python's containers, against PyTorch."""

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(3)
MATRICES = {
    "square": RNG.normal(size=(4, 4)),
    "tall": RNG.normal(size=(5, 3)),
    "wide": RNG.normal(size=(3, 5)),
    "batch": RNG.normal(size=(2, 3, 3)),
}


def both(function, array):
    """The result and the gradient of its sum, for both modules."""
    results = []
    for module in (rushlight, torch):
        x = module.from_numpy(array.copy()).requires_grad_()
        out = function(module, x)
        (out.abs() if out.is_complex() else out).sum().backward()
        results.append((out.detach().abs().numpy(), x.grad.numpy()))
    return results


def gram(m, x):
    """A positive-definite matrix with different eigenvalues."""
    small = x @ x.mT if x.size(-2) <= x.size(-1) else x.mT @ x
    return small + m.eye(small.size(-1), dtype=m.float64)


PIPELINES = {
    "svd": lambda m, x: (
        (m.linalg.svd(x, full_matrices=False)[0] * 2).abs()
        @ m.linalg.svd(x, full_matrices=False)[2].abs()
    ),
    "svdvals": lambda m, x: m.linalg.svdvals(x),
    "eigh": lambda m, x: m.linalg.eigh(gram(m, x))[1].abs(),
    "eig": lambda m, x: m.linalg.eig(gram(m, x))[1].abs(),
    "qr": lambda m, x: m.linalg.qr(x)[1].abs(),
    "lu": lambda m, x: m.linalg.lu(x)[1] @ m.linalg.lu(x)[2].cos(),
    "pinv": lambda m, x: m.linalg.pinv(x),
    "nuclear": lambda m, x: m.linalg.matrix_norm(x, "nuc"),
    "cond": lambda m, x: m.linalg.cond(x),
    "slogdet": lambda m, x: m.linalg.slogdet(gram(m, x))[1],
    "matrix_exp": lambda m, x: m.linalg.matrix_exp(x @ x.mT),
    "lstsq": lambda m, x: m.linalg.lstsq(x, x * 2 + 1).solution,
    "householder": lambda m, x: m.linalg.householder_product(x[..., :3, :3], x[..., 0, :3]),
}


# Of the wide matrix, "householder" takes the same slice as of the square one.
CASES = [(n, s) for n in PIPELINES for s in MATRICES if (n, s) != ("householder", "wide")]


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_values_and_gradients(name, shape):
    (ours, our_grad), (theirs, their_grad) = both(PIPELINES[name], MATRICES[shape])
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(our_grad, their_grad, rtol=1e-6, atol=1e-7)


CALLS = [
    lambda m, x: m.gradient(x),
    lambda m, x: m.gradient(x, spacing=2.0, dim=0, edge_order=2),
    lambda m, x: m.gradient(x, spacing=(0.5, 2.0)),
    lambda m, x: m.gradient(
        x, spacing=[m.arange(x.size(d), dtype=x.dtype) ** 2 for d in range(2)], edge_order=2
    ),
    lambda m, x: m.histogramdd(x, [3, 4, 2, 2]).hist,
    lambda m, x: m.histogramdd(x[:, :2], 3, range=[-1.0, 1.0, -2.0, 2.0], density=True).hist,
    lambda m, x: m.histogramdd(x[:, :2], [2, 2]).bin_edges,
    lambda m, x: m.unravel_index(m.tensor([5, 7, 11]), (3, 4)),
    lambda m, x: m.unravel_index(m.tensor([[5], [2]]), 12),
    lambda m, x: m.lu(x),
    lambda m, x: m.lu(x, get_infos=True),
    lambda m, x: x.lu(),
    lambda m, x: m.norm(x, p="nuc"),
    lambda m, x: x.norm("nuc", dim=(0, 1), keepdim=True),
    lambda m, x: m.empty_permuted((2, 3, 4), (1, 0, 2)).stride(),
    lambda m, x: m.fill(x, 3),
    lambda m, x: x.clone().fill_diagonal_(7.0),
    lambda m, x: m.zeros(9, 3).fill_diagonal_(1.0, wrap=True),
    lambda m, x: m.addmv_(m.ones(4, dtype=x.dtype), x, x[0]),
    lambda m, x: m.linspace(m.tensor(1.0), 3, 5),
    lambda m, x: m.linspace(0, m.tensor(2), 4),
    lambda m, x: m.logspace(m.tensor(0.0), m.tensor(2.0), 3),
    lambda m, x: m.special.expit(x),
    lambda m, x: m.special.polygamma(1, x.abs() + 1),
    lambda m, x: m.special.logsumexp(x, 1),
    lambda m, x: m.tensordot(x, x, dims=([0], [1])),
    lambda m, x: x.mvlgamma_(1) if x.min() > 0 else x,
    lambda m, x: x.clone().apply_(lambda v: v * v + 1),
    lambda m, x: x.clone().map_(x[0], lambda a, b: a - b),
    lambda m, x: m.quantile(
        m.where(x > 1, float("nan"), x), m.tensor([0.2, 0.9], dtype=x.dtype), dim=1
    ),
    lambda m, x: m.nanquantile(m.where(x > 0.3, float("nan"), x), 0.4, dim=1, keepdim=True),
    lambda m, x: m.frexp(m.tensor([0.0, 1.0, -8.0, 1e-7])),
    lambda m, x: x.T.dim_order(),
    lambda m, x: m.zeros(2, 3, 4).permute(2, 0, 1).dim_order(),
    lambda m, x: m.get_device(x),
    lambda m, x: m.threshold(x, 0.5, 2.0),
    lambda m, x: m.embedding(x, m.tensor([1, 3])),
    lambda m, x: m.is_nonzero(x[0, 0]),
    lambda m, x: m.is_same_size(x, x.T),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("index", range(len(CALLS)))
def test_calls_from_python(index):
    results = []
    for module in (rushlight, torch):
        value = CALLS[index](module, module.from_numpy(MATRICES["square"].copy()))
        parts = value if isinstance(value, (tuple, list)) else [value]
        results.append([p.numpy() if hasattr(p, "numpy") else p for p in parts])
    assert len(results[0]) == len(results[1])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)
        if isinstance(theirs, np.ndarray):
            assert ours.shape == theirs.shape and ours.dtype == theirs.dtype


@pytest.mark.parametrize("arguments", [("a", 2, 3), (1, 2, "x"), (1, 2), ()])
def test_linspace_names_the_combination(arguments):
    for module in (rushlight, torch):
        with pytest.raises(
            TypeError, match=r"linspace\(\) received an invalid combination of arguments"
        ):
            module.linspace(*arguments)


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 8])
def test_signal_windows(n, sym):
    for name in rushlight.signal.windows.__all__:
        extra = {
            "general_cosine": {"a": [0.5, 0.3, 0.2]},
            "gaussian": {"std": 2.0},
            "exponential": {"tau": 3.0},
        }.get(name, {})
        ours, theirs = (
            getattr(m.signal.windows, name)(n, sym=sym, **extra).numpy() for m in (rushlight, torch)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=name)
