"""Factorisations beyond the table's samples: what they are made of, derivatives through them, what refuses to work."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import gradcheck, gradgradcheck

from .signals import ends_by_ctrl_c

LINALG = torch.linalg
DTYPES = [torch.float64, torch.complex128]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def matrix(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype)


def hermitian(*shape, dtype=torch.float64):
    a = matrix(*shape, dtype=dtype)
    return a @ a.mH + torch.eye(shape[-1], dtype=dtype)


def check(function, *inputs, second=True):
    inputs = tuple(t.detach().requires_grad_() for t in inputs)
    assert gradcheck(function, inputs)
    if second:
        assert gradgradcheck(function, inputs)


def close(a, b, tolerance=1e-10):
    np.testing.assert_allclose(
        a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3), (60, 40)])
def test_factors_multiply_to_the_matrix(shape, dtype):
    a = matrix(*shape, dtype=dtype)
    q, r = LINALG.qr(a)
    close(q @ r, a)
    close(
        q.mH @ q,
        torch.eye(q.size(-1), dtype=dtype).expand(q.size(-1), q.size(-1)).expand_as(q.mH @ q),
    )
    u, s, vh = LINALG.svd(a, full_matrices=False)
    close(u * s.unsqueeze(-2) @ vh, a)
    assert bool((s[..., 1:] <= s[..., :-1]).all()) and s.dtype == torch.float64
    p, low, up = LINALG.lu(a)
    close(p @ low @ up, a)
    full_u, _, full_vh = LINALG.svd(a)
    close(full_u @ full_u.mH, torch.eye(shape[-2], dtype=dtype).expand_as(full_u))
    close(full_vh @ full_vh.mH, torch.eye(shape[-1], dtype=dtype).expand_as(full_vh))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (50, 50)])
def test_square_factors(shape, dtype):
    a = matrix(*shape, dtype=dtype)
    values, vectors = LINALG.eig(a)
    close(a.to(torch.complex128) @ vectors, vectors * values.unsqueeze(-2), 1e-8)
    h = hermitian(*shape, dtype=dtype)
    w, v = LINALG.eigh(h)
    close(v * w.unsqueeze(-2) @ v.mH, h, 1e-8)
    close(LINALG.eigvalsh(h), w, 1e-8)
    factor = LINALG.cholesky(h)
    close(factor @ factor.mH, h, 1e-8)
    close(LINALG.cholesky(h, upper=True), factor.mH)
    close(torch.cholesky_inverse(factor), LINALG.inv(h), 1e-8)
    ld, pivots = LINALG.ldl_factor(h, hermitian=True)
    b = matrix(shape[-1], 2, dtype=dtype)
    close(
        h @ LINALG.ldl_solve(ld, pivots, b, hermitian=True), b.expand(*shape[:-2], *b.shape), 1e-8
    )


def test_only_one_triangle_is_read():
    h = hermitian(4, 4)
    junk = h + matrix(4, 4).triu(1)
    close(LINALG.cholesky(junk), LINALG.cholesky(h))
    close(LINALG.eigvalsh(junk), LINALG.eigvalsh(h))
    close(LINALG.eigvalsh(junk.mT, "U"), LINALG.eigvalsh(h))


def test_lstsq_residuals_and_rank():
    a, b = matrix(5, 3), matrix(5, 2)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        solution, residuals, rank, values = LINALG.lstsq(a, b, driver=driver)
        close(a.mT @ (a @ solution - b), torch.zeros(3, 2, dtype=torch.float64), 1e-10)
        assert rank.numel() == 0 if driver == "gels" else rank.item() == 3
        assert values.shape == ((3,) if driver in ("gelsd", "gelss") else (0,))
        if driver != "gelsy":
            close(residuals, ((a @ solution - b) ** 2).sum(0))
    flat = LINALG.lstsq(torch.ones(4, 2), torch.randn(4, 1), driver="gelsd")
    assert flat.rank.item() == 1 and flat.residuals.shape == (0,)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_hermitian_inputs(dtype):
    a = matrix(3, 3, dtype=dtype)
    unit = 3 * torch.eye(3, dtype=dtype)

    def made(x):
        return x @ x.mH + unit

    check(lambda x: LINALG.cholesky(made(x)), a)
    check(lambda x: LINALG.cholesky(made(x), upper=True), a)
    check(lambda x: LINALG.eigvalsh(made(x)), a)
    check(lambda x: LINALG.eigh(made(x))[1].abs(), a)
    check(lambda x: torch.cholesky_inverse(LINALG.cholesky(made(x))), a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2)])
def test_gradients_of_orthogonal_factors(shape, dtype):
    a = matrix(*shape, dtype=dtype)
    check(lambda x: LINALG.svdvals(x), a)
    check(lambda x: LINALG.svd(x, full_matrices=False)[0].abs(), a)
    check(lambda x: LINALG.svd(x, full_matrices=False)[2].abs(), a)
    # A product of both sides does not depend on their phases.
    check(
        lambda x: LINALG.svd(x, full_matrices=False)[0] @ LINALG.svd(x, full_matrices=False)[2], a
    )
    if dtype == torch.float64:
        check(lambda x: LINALG.qr(x), a)
    else:
        check(lambda x: [t.abs() for t in LINALG.qr(x)], a)
        check(lambda x: LINALG.qr(x)[0] @ LINALG.qr(x)[0].mH, a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_eig(dtype):
    a = matrix(3, 3, dtype=dtype)
    check(lambda x: LINALG.eigvals(x).abs(), a)
    check(lambda x: LINALG.eig(x)[1].abs(), a)


def of_rank(n, rank, dtype=torch.float64):
    return matrix(n, rank, dtype=dtype) @ matrix(rank, n, dtype=dtype)


def cofactors(a):
    """From the determinants of minors."""
    n = a.size(-1)
    found = torch.ones_like(a)
    for i in range(n):
        for j in range(n if n > 1 else 0):
            rows, columns = [k for k in range(n) if k != i], [k for k in range(n) if k != j]
            found[i, j] = (-1) ** (i + j) * LINALG.det(a[rows][:, columns])
    return found


SINGULAR = [
    torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64),
    torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]], dtype=torch.float64),
    torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 0.0, 0.0]], dtype=torch.float64),
    torch.zeros(1, 1, dtype=torch.float64),
    torch.zeros(2, 2, dtype=torch.float64),
    torch.zeros(4, 4, dtype=torch.float64),
    torch.diag(torch.tensor([1.0, 2.0, 0.0, 3.0, 0.0], dtype=torch.float64)),
    torch.ones(6, 6, dtype=torch.float64),
]


@pytest.mark.parametrize("a", [*SINGULAR, *(a * (0.6 + 0.8j) for a in SINGULAR)])
def test_gradients_of_a_singular_determinant(a):
    """The cofactors, which are finite, and what they change by."""
    a = a.clone().requires_grad_()
    (first,) = torch.autograd.grad(LINALG.det(a).real, a)
    close(first, cofactors(a.detach()).conj(), 1e-12)
    assert gradcheck(LINALG.det, a, atol=1e-7)
    assert gradgradcheck(LINALG.det, a, atol=1e-7)
    assert gradcheck(LINALG.det, a, atol=1e-7, check_forward_ad=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "rank"), [(3, 2), (5, 4), (5, 3), (6, 2), (7, 7)])
def test_second_gradients_of_nearly_singular_determinants(n, rank, dtype):
    a = (of_rank(n, rank, dtype=dtype) / rank).requires_grad_()
    assert gradcheck(LINALG.det, a, atol=1e-6)
    assert gradgradcheck(LINALG.det, a, atol=1e-5)


def test_a_singular_matrix_leaves_its_batch_alone():
    a = torch.stack([matrix(3, 3), torch.zeros(3, 3, dtype=torch.float64), matrix(3, 3)[[1, 0, 2]]])
    regular = [0, 2]
    for function in (LINALG.det, torch.logdet, lambda t: LINALG.slogdet(t)[1]):
        batch, alone = a.clone().requires_grad_(), a[regular].requires_grad_()
        (of_batch,) = torch.autograd.grad(function(batch).sum(), batch)
        (of_alone,) = torch.autograd.grad(function(alone).sum(), alone)
        close(of_batch[regular], of_alone, 1e-12)
        (kept,) = torch.autograd.grad(function(batch)[regular].sum(), batch)
        close(kept[regular], of_alone, 1e-12)
        assert kept[1].eq(0).all()


def test_the_slope_of_the_logarithm_of_a_singular_determinant():
    a = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(LINALG.slogdet(a)[1], a)
    assert slope.isinf().all()


def test_what_has_no_derivative_says_so():
    a = matrix(3, 3).requires_grad_()
    with pytest.raises(NotImplementedError, match="derivative for geqrf is not implemented"):
        torch.geqrf(a)[0].sum().backward()
    with pytest.raises(
        RuntimeError, match="not differentiable when mode='complete' and nrows > ncols"
    ):
        LINALG.qr(matrix(4, 2).requires_grad_(), mode="complete")[0].sum().backward()
    with pytest.raises(RuntimeError, match="depends on Q, which is not computed when mode='r'"):
        LINALG.qr(a, mode="r")[1].sum().backward()


def test_linalg_error_is_a_runtime_error():
    with pytest.raises(LINALG.LinAlgError):
        LINALG.inv(torch.zeros(2, 2))
    assert issubclass(LINALG.LinAlgError, RuntimeError)


def test_matrix_exp_of_a_batch_of_different_sizes():
    a = torch.stack(
        [1e-3 * matrix(3, 3), 20 * torch.diag(matrix(3)), torch.zeros(3, 3, dtype=torch.float64)]
    )
    result = LINALG.matrix_exp(a)
    for one, of in zip(result, a, strict=True):
        close(one, LINALG.matrix_exp(of), 1e-12)
    close(result[1].diagonal(), a[1].diagonal().exp(), 1e-12)
    nan = LINALG.matrix_exp(torch.full((2, 2), float("nan")))
    assert bool(nan.isnan().all())


def test_lowrank():
    a = matrix(20, 4) @ matrix(4, 15)
    u, s, v = torch.svd_lowrank(a, q=4)
    close(u * s @ v.mT, a, 1e-8)
    u, s, v = torch.pca_lowrank(a, q=4)
    close(u * s @ v.mT, a - a.mean(0), 1e-8)


def test_named_results_and_out():
    result = LINALG.slogdet(hermitian(3, 3))
    assert result.sign is result[0] and result.logabsdet is result[1]
    q, r = torch.empty(0, dtype=torch.float64), torch.empty(0, dtype=torch.float64)
    LINALG.qr(matrix(3, 3), out=(q, r))
    assert q.shape == r.shape == (3, 3)
    wrong = torch.empty(3, 3, dtype=torch.int64)
    with pytest.raises(RuntimeError):
        LINALG.inv(hermitian(3, 3), out=wrong)


def test_removed_functions_name_their_successors():
    for name in ("eig", "symeig", "lstsq", "solve", "matrix_rank"):
        with pytest.raises(RuntimeError, match="is now removed"):
            getattr(torch, name)(torch.eye(2))


def test_tensordot_names_what_is_no_tensor():
    with pytest.raises(TypeError, match=r"tensordot\(\): argument 'b' must be Tensor, not list"):
        torch.tensordot(torch.ones(2, 2), [1.0])


@pytest.mark.parametrize("pivot", [-(2**31), 0, 4, 2**31 - 1])
def test_pivots_out_of_range(pivot):
    with pytest.raises(RuntimeError, match="between 1 and"):
        torch.lu_unpack(torch.eye(3), torch.tensor([1, 2, pivot], dtype=torch.int32))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_matrix_exp_of_16_bits(dtype):
    a = torch.tensor([[0.5, 1.0], [-1.0, 0.25]])
    assert torch.equal(a.to(dtype).matrix_exp(), a.matrix_exp().to(dtype))
    _, lower, upper = torch.lu_unpack(a.to(dtype), torch.tensor([1, 2], dtype=torch.int32))
    assert lower.tolist() == [[1, 0], [-1, 1]] and upper.tolist() == [[0.5, 1], [0, 0.25]]


@pytest.mark.parametrize("op", [torch.svd_lowrank, torch.pca_lowrank])
def test_ctrl_c_ends_rounds_without_end(op):
    with ends_by_ctrl_c():
        op(torch.eye(4), q=2, niter=2**63 - 1)
    assert op(torch.eye(4), q=2, niter=1)[1].shape == (2,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
@pytest.mark.parametrize("n", [1, 3, 17, 100])
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_says_where_numbers_end(dtype, n, upper):
    nan = float("nan")
    assert torch.linalg.cholesky_ex(torch.eye(n, dtype=dtype), upper=upper).info == 0
    assert torch.linalg.cholesky_ex(torch.full((n, n), nan, dtype=dtype), upper=upper).info == 1
    one = torch.eye(n, dtype=dtype).repeat(2, 1, 1)
    one[1, n // 2, n // 2] = nan
    assert torch.linalg.cholesky_ex(one, upper=upper).info.tolist() == [0, n // 2 + 1]
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.cholesky(one)
