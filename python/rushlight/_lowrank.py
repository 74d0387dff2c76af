"""Approximations of low rank by random projections (Halko, Martinsson and Tropp 2009)."""

from __future__ import annotations

from rushlight import _C

_ops = _C.ops


def get_approximate_basis(A, q, niter: int = 2, M=None):
    """A matrix Q of q orthonormal columns such that Q Q^H A is nearly A (or A - M)."""
    niter = 2 if niter is None else niter
    dtype = A.dtype if A.is_floating_point() or A.is_complex() else _ops.get_default_dtype()
    A = A.to(dtype)
    if M is not None:
        A = A - M
    start = _ops.randn(A.shape[-1], q, dtype=dtype, device=A.device)
    Q = _ops.linalg_qr(A.matmul(start))[0]
    for _ in range(niter):
        Q = _ops.linalg_qr(A.mH.matmul(Q))[0]
        Q = _ops.linalg_qr(A.matmul(Q))[0]
    return Q


def svd_lowrank(A, q=6, niter: int = 2, M=None):
    """U, S, V of the best approximation of rank q to A (or A - M), about: A = U diag(S) V^H."""
    q = 6 if q is None else q
    m, n = A.shape[-2:]
    if m < n:  # the shorter side is projected
        U, S, V = svd_lowrank(A.mH, q, niter, None if M is None else M.mH)
        return V, S, U
    Q = get_approximate_basis(A, q, niter, M)
    target = A if M is None else A - M
    U, S, Vh = _ops.linalg_svd(Q.mH.matmul(target), full_matrices=False)
    return Q.matmul(U), S, Vh.mH


def pca_lowrank(A, q=None, center: bool = True, niter: int = 2):
    """Principal components: `svd_lowrank` of the rows of A, their mean taken away if `center`.

    Raises:
        ValueError: q is not between 0 and the smaller side, niter is negative.
    """
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not (0 <= q <= min(m, n)):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not A.is_floating_point():
        raise ValueError(f"input must be a floating point tensor, but got {A.dtype}")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
