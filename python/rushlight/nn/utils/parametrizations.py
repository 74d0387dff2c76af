"""Parametrisations: orthogonal matrices, weight normalisation and spectral normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rushlight

from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from . import parametrize
from .weight_norm import norm_except, normalize

if TYPE_CHECKING:
    from typing import Any

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

_TRANSPOSED = (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)


def _tensor_of(module, name):
    value = getattr(module, name, None)
    if not isinstance(value, rushlight.Tensor):
        raise ValueError(f"{type(module).__name__} has no parameter or buffer {name!r}")
    return value


# ---- orthogonal --------------------------------------------------------------------------------
#
# Each map takes a tall matrix (n rows, k columns) of free numbers to n x k orthonormal columns.
# Only numbers on and under the diagonal count, nk - k(k-1)/2 of them, which is the dimension of
# the set of such columns. With a base B, the columns are B times those of the map.


def _skew(x: rushlight.Tensor) -> rushlight.Tensor:
    """The skew-Hermitian n x n matrix whose first k columns have x's lower triangle."""
    n, k = x.shape[-2:]
    lower = F.pad(x.tril(), (0, n - k))
    return lower - lower.mH


def _by_exponential(x: rushlight.Tensor) -> rushlight.Tensor:
    return rushlight.matrix_exp(_skew(x))[..., : x.size(-1)]


def _by_cayley(x: rushlight.Tensor) -> rushlight.Tensor:
    half = _skew(x) / 2
    identity = rushlight.eye(half.size(-1), dtype=x.dtype, device=x.device)
    return rushlight.linalg.solve(identity - half, identity + half)[..., : x.size(-1)]


def _by_reflections(x: rushlight.Tensor) -> rushlight.Tensor:
    """The product of k Householder reflections, and signs.

    Reflection j turns over the direction (0, ..., 0, 1, x[j+1, j], ..., x[n-1, j]). The diagonal
    has the signs of the columns, which are no subject of training.
    """
    below = x.tril(-1)
    lengths = 1 + below.square().sum(-2)
    signs = x.detach().diagonal(dim1=-2, dim2=-1).trunc()
    return rushlight.linalg.householder_product(below, 2 / lengths) * signs.unsqueeze(-2)


def _reflections_of(q: rushlight.Tensor) -> rushlight.Tensor:
    """What `_by_reflections` makes orthonormal columns q of."""
    packed, scales = rushlight.geqrf(q)
    diagonal = packed.diagonal(dim1=-2, dim2=-1)
    signs = diagonal.sign()
    # LAPACK's scale 0 is no reflection; the map has one there, which turns the column over.
    diagonal.copy_(signs.where(scales != 0, -signs))
    return packed


def _orthonormal(matrix: rushlight.Tensor) -> rushlight.Tensor:
    """The columns of a tall matrix made orthonormal: Q of the QR in which R's diagonal is > 0."""
    q, r = rushlight.linalg.qr(matrix)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _is_orthonormal(q: rushlight.Tensor) -> bool:
    n, k = q.shape[-2:]
    identity = rushlight.eye(k, dtype=q.dtype, device=q.device)
    return rushlight.allclose(q.mH @ q, identity, atol=10 * n * rushlight.finfo(q.dtype).eps)


_ORTHOGONAL_MAPS = {
    "matrix_exp": _by_exponential,
    "cayley": _by_cayley,
    "householder": _by_reflections,
}


class _Orthogonal(Module):
    """A matrix with orthonormal columns (rows, where it is wide), from any matrix."""

    def __init__(self, weight, orthogonal_map, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def _make_tall(self, matrix: rushlight.Tensor) -> rushlight.Tensor:
        """The matrix, transposed if it is wide; and back."""
        return matrix.mT if self.shape[-2] < self.shape[-1] else matrix

    def forward(self, x: rushlight.Tensor) -> rushlight.Tensor:
        q = _ORTHOGONAL_MAPS[self.orthogonal_map](self._make_tall(x))
        if hasattr(self, "base"):
            q = self.base @ q
        return self._make_tall(q)

    @rushlight.no_grad()
    def right_inverse(self, q: rushlight.Tensor) -> rushlight.Tensor:
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}, not {q.shape}."
            )
        columns = self._make_tall(q)
        if hasattr(self, "base"):
            self.base = self._base_with(columns)
            # Every map takes this to the first columns of the identity, so that they are B's.
            start = rushlight.zeros_like(q)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1)
            return start
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                f"One cannot assign to a matrix made by {self.orthogonal_map!r} with "
                "use_trivialization=False: the map has no known inverse."
            )
        return self._make_tall(_reflections_of(columns))

    def _base_with(self, columns: rushlight.Tensor) -> rushlight.Tensor:
        """An orthogonal square matrix that begins with the columns, made orthonormal."""
        *batch, n, k = columns.shape
        if n == k and _is_orthonormal(columns):
            return columns.clone()
        rest = rushlight.randn(*batch, n, n - k, dtype=columns.dtype, device=columns.device)
        return _orthonormal(rushlight.cat([columns, rest], dim=-1))


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: Any = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keep a matrix of a module orthogonal, or unitary if it is complex.

    A tall matrix has orthonormal columns, a wide one orthonormal rows; so has each of a batch.

    Args:
        orthogonal_map: "matrix_exp", "cayley" or "householder"; by default the first for square
            and complex matrices, the last for others.
        use_trivialization: multiply by a fixed matrix, so that any start is possible.
        module: the module.
        name: the name of the parameter.

    Example:
        >>> layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(3, 3))
        >>> torch.allclose(layer.weight @ layer.weight.T, torch.eye(3), atol=1e-4)
        True
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices, not the shape {weight.shape}")
    tall_or_wide = weight.size(-2) != weight.size(-1)
    default = "householder" if tall_or_wide and not weight.is_complex() else "matrix_exp"
    way = default if orthogonal_map is None else orthogonal_map
    if way not in _ORTHOGONAL_MAPS:
        raise ValueError(f"orthogonal_map has to be one of {[*_ORTHOGONAL_MAPS]}, not {way!r}")
    made = _Orthogonal(weight, way, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


# ---- weight normalisation ----------------------------------------------------------------------


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = None if dim is None or dim == -1 else dim

    def forward(self, weight_g, weight_v):
        return normalize(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0):
    """Train the norm (`original0`) and the direction (`original1`) of a parameter separately.

    Args:
        dim: each slice along it has a length of its own; None for one length.
        module: the module.
        name: the name of the parameter.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 4))
        >>> layer.parametrizations.weight.original0.shape
        torch.Size([4, 1])
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

    def __init__(
        self, weight, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        if dim not in range(-weight.ndim, weight.ndim):
            raise IndexError(f"Dimension out of range: {dim}, for a weight of {weight.ndim}")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but it is {n_power_iterations}"
            )
        self.dim, self.eps = dim % weight.ndim, eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            for name, size in zip(("_u", "_v"), matrix.shape, strict=True):
                start = matrix.new_empty(size).normal_()
                self.register_buffer(name, F.normalize(start, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _matrix(self, weight):
        return weight.transpose(0, self.dim).flatten(1)

    _u: rushlight.Tensor
    _v: rushlight.Tensor

    @rushlight.no_grad()
    def _power_method(self, matrix, n):
        there, back = (matrix, self._v, self._u), (matrix.mH, self._u, self._v)
        for factor, vector, result in (there, back) * n:
            F.normalize(factor.mv(vector), dim=0, eps=self.eps, out=result)

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


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a parameter by its largest singular value.

    Args:
        n_power_iterations: steps towards the singular vectors at each use in training.
        eps: a lower limit on norms.
        dim: the dimension of outputs; 1 for transposed convolutions and 0 else, if None.
        module: the module.
        name: the name of the parameter.

    Example:
        >>> layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(3, 4))
        >>> layer.weight.shape
        torch.Size([4, 3])
    """
    weight = _tensor_of(module, name)
    if dim is None:
        dim = 1 if isinstance(module, _TRANSPOSED) else 0
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    parametrize.register_parametrization(module, name, made)
    return module
