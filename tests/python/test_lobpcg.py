"""A few eigenvectors from products with a matrix (`lobpcg`)."""

import pytest

import rushlight as torch


def matrix(size=60, seed=0):
    torch.manual_seed(seed)
    a = torch.randn(size, size, dtype=torch.double)
    return a @ a.mT


@pytest.mark.parametrize("largest", [True, False])
def test_eigenpairs_are_those_of_eigh(largest):
    a = matrix()
    values, vectors = torch.lobpcg(a, k=3, largest=largest, tol=1e-10)
    all_of_them = torch.linalg.eigvalsh(a)
    wanted = all_of_them.flip(0)[:3] if largest else all_of_them[:3]
    assert torch.allclose(values, wanted, atol=1e-6)
    assert torch.allclose(a @ vectors, vectors * values, atol=1e-5)
    assert torch.allclose(vectors.mT @ vectors, torch.eye(3, dtype=torch.double), atol=1e-8)


def test_a_metric_a_preconditioner_batches_and_sparse_matrices():
    a, b = matrix(), torch.eye(60, dtype=torch.double) * 2 + 0.1
    values, vectors = torch.lobpcg(a, B=b, k=2, tol=1e-10)
    assert torch.allclose(a @ vectors, b @ vectors * values, atol=1e-5)
    seen = []
    d = torch.diag(torch.arange(1.0, 101, dtype=torch.double))
    values, _ = torch.lobpcg(
        d, k=2, largest=False, iK=d.inverse(), tol=1e-9, tracker=lambda *state: seen.append(state)
    )
    assert torch.allclose(values, torch.tensor([1.0, 2.0], dtype=torch.double)) and len(seen) > 1
    values, _ = torch.lobpcg(d.to_sparse(), k=2, tol=1e-9)
    assert torch.allclose(values, torch.tensor([100.0, 99.0], dtype=torch.double))
    both = torch.stack([d, 2 * d])
    values, vectors = torch.lobpcg(both, k=2, X=torch.randn(100, 4, dtype=torch.double), tol=1e-9)
    wanted = torch.tensor([[100.0, 99.0], [200.0, 198.0]], dtype=torch.double)
    assert torch.allclose(values, wanted) and vectors.shape == (2, 100, 2)


def test_what_lobpcg_refuses():
    a = matrix()
    for wrong in (
        lambda: torch.lobpcg(a[:, :5]),
        lambda: torch.lobpcg(a, k=30),
        lambda: torch.lobpcg(a, method="fast"),
    ):
        with pytest.raises(ValueError, match=r"lobpcg|LPBPCG"):
            wrong()
    for wrong in (
        lambda: torch.lobpcg(a.requires_grad_()),
        lambda: torch.lobpcg(matrix(), ortho_iparams={}),
    ):
        with pytest.raises(NotImplementedError):
            wrong()


def test_softmax_is_there_by_its_kernels_names():
    x = torch.randn(2, 3)
    assert torch.equal(torch.ops.aten._softmax(x, 1, False), x.softmax(1))
    assert torch.equal(torch.ops.aten._log_softmax(x, 1, False), x.log_softmax(1))
    assert torch.ops.aten._softmax(x.half(), 1, True).dtype == torch.float32
    with pytest.raises(RuntimeError, match="Half"):
        torch.ops.aten._softmax(x, 1, True)
