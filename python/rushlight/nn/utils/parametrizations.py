"""Ready-made parametrizations: orthogonal matrices, weight and spectral normalisation."""

from enum import Enum, auto

import rushlight

from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from . import parametrize
from .weight_norm import norm_except, normalized

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

_TRANSPOSED = (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)


# ---- orthogonal --------------------------------------------------------------------------------


def _is_orthogonal(q, eps=None):
    n, k = q.size(-2), q.size(-1)
    identity = rushlight.eye(k, dtype=q.dtype, device=q.device)
    eps = 10.0 * n * rushlight.finfo(q.dtype).eps if eps is None else eps
    return rushlight.allclose(q.mH @ q, identity, atol=eps)


def _make_orthogonal(a):
    """The factor Q of the decomposition in which R has a positive diagonal."""
    q, r = rushlight.linalg.qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


class _Orthogonal(Module):
    """A matrix with orthonormal columns (rows, where it is wide), from any matrix."""

    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x):
        n, k = x.size(-2), x.size(-1)
        wide = n < k
        if wide:
            x = x.mT
            n, k = k, n
        if self.orthogonal_map == _OrthMaps.householder:
            tau = 2.0 / (1.0 + (x * x).sum(-2))
            q = rushlight.linalg.householder_product(x, tau)
            # The diagonal's signs are held by the trained matrix.
            q = q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            a = x.tril()
            if n != k:
                # Zeros on the right make it square.
                fill = a.new_zeros((n, n - k)).expand((*a.shape[:-2], n, n - k))
                a = rushlight.cat([a, fill], dim=-1)
            a = a - a.mH
            if self.orthogonal_map == _OrthMaps.matrix_exp:
                q = rushlight.matrix_exp(a)
            else:
                identity = rushlight.eye(n, dtype=a.dtype, device=a.device)
                q = rushlight.linalg.solve(
                    rushlight.add(identity, a, alpha=-0.5), rushlight.add(identity, a, alpha=0.5)
                )
            if n != k:
                q = q[..., :k]
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    @rushlight.no_grad()
    def right_inverse(self, q):
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of "
                f"shape {q.shape}."
            )
        start = q
        n, k = q.size(-2), q.size(-1)
        wide = n < k
        if wide:
            q = q.mT
            n, k = k, n
        if not hasattr(self, "base"):
            if self.orthogonal_map in (_OrthMaps.cayley, _OrthMaps.matrix_exp):
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley "
                    "parametrizations when use_trivialization=False."
                )
            a, tau = rushlight.geqrf(q)
            # Signs of the diagonal, which an orthogonal matrix leaves open.
            a.diagonal(dim1=-2, dim2=-1).sign_()
            a.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1
            return a.mT if wide else a
        if n == k:
            q = q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
        else:
            more = rushlight.randn(*q.size()[:-2], n, n - k, dtype=q.dtype, device=q.device)
            q = _make_orthogonal(rushlight.cat([q, more], dim=-1))
        self.base = q
        negative = rushlight.zeros_like(start)
        negative.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return negative


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keep a matrix of a module orthogonal (unitary, where it is complex).

    Args:
        orthogonal_map: "matrix_exp", "cayley" or "householder"; by default the first for square
            and complex matrices, the last for others.
        use_trivialization: multiply by a fixed matrix, so that any start is possible.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, rushlight.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _OrthMaps.__members__:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    made = _Orthogonal(weight, _OrthMaps[orthogonal_map], use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, made, unsafe=True)
    return module


# ---- weight normalisation ----------------------------------------------------------------------


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = None if dim is None or dim == -1 else dim

    def forward(self, weight_g, weight_v):
        return normalized(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return norm_except(weight, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Train a parameter's length (`original0`) and direction (`original1`) apart.

    Args:
        dim: each slice along it has a length of its own; None for one length.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def from_old_names(state_dict, prefix, *rest):
        g, v = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if g in state_dict and v in state_dict:
            state_dict[f"{prefix}parametrizations.{name}.original0"] = state_dict.pop(g)
            state_dict[f"{prefix}parametrizations.{name}.original1"] = state_dict.pop(v)

    module._register_load_state_dict_pre_hook(from_old_names)
    return module


# ---- spectral normalisation --------------------------------------------------------------------


class _SpectralNorm(Module):
    """A weight over its largest singular value, by power iteration in training."""

    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got "
                f"{dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            rows, columns = matrix.size()
            u = matrix.new_empty(rows).normal_(0, 1)
            v = matrix.new_empty(columns).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _matrix(self, weight):
        return weight.transpose(0, self.dim).flatten(1)

    _u: rushlight.Tensor
    _v: rushlight.Tensor

    @rushlight.no_grad()
    def _power_method(self, matrix, n):
        for _ in range(n):
            self._u = F.normalize(matrix.mv(self._v), dim=0, eps=self.eps, out=self._u)
            self._v = F.normalize(matrix.mH.mv(self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies, so that a backward pass sees the vectors of its own forward pass.
        u, v = self._u.clone(), self._v.clone()
        sigma = u.conj().dot(matrix.mv(v)) if weight.is_complex() else u.dot(matrix.mv(v))
        return weight / sigma

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide a parameter by its largest singular value.

    Args:
        n_power_iterations: steps towards the singular vectors at each use in training.
        eps: a lower limit on norms.
        dim: the dimension of outputs; 1 for transposed convolutions and 0 else, if None.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, rushlight.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if isinstance(module, _TRANSPOSED) else 0
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    parametrize.register_parametrization(module, name, made)
    return module
