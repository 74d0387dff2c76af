"""A few eigenvectors of a large symmetric matrix, from products with it alone (`lobpcg`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rushlight

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rushlight import Tensor

__all__ = ["lobpcg"]


def _orthonormal(s, b):
    """A basis of the columns' span with sᵀ b s = 1; directions that are noise are left out."""
    norms = s.norm(dim=-2, keepdim=True)
    s = s / norms.where(norms > 0, 1)
    for _ in range(2):  # once more, for what rounding left
        gram = s.mT @ (s if b is None else b @ s)
        values, vectors = rushlight.linalg.eigh((gram + gram.mT) / 2)
        keep = values > values[-1] * s.shape[-1] * rushlight.finfo(s.dtype).eps * 10
        s = s @ (vectors[:, keep] / values[keep].sqrt())
    return s


def _ritz(a, b, s, k, largest):
    """The best k eigenpairs that lie in the span of s."""
    q = _orthonormal(s, b)
    small = q.mT @ (a @ q)
    values, vectors = rushlight.linalg.eigh((small + small.mT) / 2)
    if largest:
        values, vectors = values.flip(0), vectors.flip(1)
    return values[:k], q @ vectors[:, :k]


def _one(a, b, x, k, preconditioner, niter, tol, largest, tracker):
    values, x = _ritz(a, b, x, k, largest)
    before = None
    size = a.norm() if not a.is_sparse else a.to_dense().norm()
    step = 0
    while niter < 0 or step < niter:
        bx = x if b is None else b @ x
        residual = a @ x - bx * values
        wanted = tol * (size + values.abs()) * x.norm(dim=0)
        open_ones = residual.norm(dim=0) > wanted
        if tracker is not None:
            tracker(step, values, x, residual)
        if not open_ones.any():
            break
        search = residual if preconditioner is None else preconditioner @ residual
        parts = [x, search[:, open_ones]]
        if before is not None:
            parts.append(before)
        new_values, new_x = _ritz(a, b, rushlight.cat(parts, 1), k, largest)
        overlap = x.mT @ (new_x if b is None else b @ new_x)
        before = new_x - x @ overlap
        values, x = new_values, new_x
        step += 1
    return values, x


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[..., Any] | None = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:
    """The k largest or smallest eigenvalues of a symmetric matrix, and their vectors.

    Args:
        A: (…, m, m), symmetric; a sparse matrix too.
        k: how many; as many as X has columns by default, else 1.
        B: positive definite: the eigenvalues are those of A x = λ B x.
        X: (…, m, n), where to begin; random without it.
        n: how many columns a random beginning has.
        iK: a preconditioner, an approximate inverse of A.
        niter: the most steps; -1 for as many as it takes.
        tol: the residual, relative to the size of A, at which a vector is good enough.
        largest: the largest eigenvalues, which is the default.
        method: "ortho" or "basic", which are one here.
        tracker: called with the step, the values, the vectors and the residuals.
        ortho_iparams: refused, as the two after it: bases are made orthonormal by one method.
        ortho_fparams: refused.
        ortho_bparams: refused.

    Example:
        >>> values, vectors = torch.lobpcg(torch.diag(torch.arange(1.0, 10.0)), k=2)
        >>> values
        tensor([9.0000, 8.0000])
    """
    if any(p is not None for p in (ortho_iparams, ortho_fparams, ortho_bparams)):
        raise NotImplementedError("lobpcg(): bases are made orthonormal by one method")
    if method not in (None, "ortho", "basic"):
        raise ValueError(f"lobpcg(): method is 'ortho' or 'basic', not {method!r}")
    if A.dim() < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"lobpcg(): expected square matrices, got {tuple(A.shape)}")
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if not 1 <= k <= n or m < 3 * n:
        raise ValueError(
            f"lobpcg() finds k={k} of n={n} pairs, where 1 <= k <= n and A has at least 3 n rows; "
            f"it has {m}"
        )
    dtype = A.dtype if A.is_floating_point() else rushlight.get_default_dtype()
    if A.requires_grad or (B is not None and B.requires_grad):
        raise NotImplementedError("lobpcg(): gradients are those of linalg.eigh; it has none here")
    A = A.to(dtype)
    eps = rushlight.finfo(dtype).eps
    tol = eps**0.5 if tol is None else tol
    niter = 1000 if niter is None else niter
    largest = True if largest is None else largest
    if X is None:
        X = rushlight.randn(*A.shape[:-1], n, dtype=dtype, device=A.device)

    def run(a, b, x, inverse):
        return _one(a, b, x, k, inverse, niter, tol, largest, tracker)

    if A.dim() == 2:
        return run(A, B, X, iK)
    batch = rushlight.Size(A.shape[:-2])

    count = batch.numel()

    def parts_of(t):
        if t is None:
            return [None] * count
        return list(t.expand(*batch, *t.shape[-2:]).flatten(0, -3))

    each = [run(*four) for four in zip(*map(parts_of, (A, B, X, iK)), strict=True)]
    values, vectors = (rushlight.stack(part) for part in zip(*each, strict=True))
    return values.reshape(*batch, k), vectors.reshape(*batch, m, k)
