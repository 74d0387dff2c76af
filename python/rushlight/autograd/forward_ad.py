"""Forward-mode differentiation: tensors that carry a direction along, a tangent.

Within `dual_level`, `make_dual(x, v)` gives x with the tangent v, and `unpack_dual(f(x))` the value
and its derivative in that direction. It is computed when it is unpacked, by differentiating twice:
wᵀ J is linear in w, and its derivative with respect to w, applied to v, is J v. So ops need no
rules of their own, what is computed from duals requires grad meanwhile, and custom functions are
differentiated by their `backward`, which must itself be differentiable.
"""

from __future__ import annotations

from typing import NamedTuple

import rushlight

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, None where it does not depend on a dual."""

    primal: rushlight.Tensor
    tangent: rushlight.Tensor | None


# The duals of the level: (dual, tangent, whether the primal requires grad itself); None outside.
_pairs: list[tuple[rushlight.Tensor, rushlight.Tensor, bool]] | None = None


def enter_dual_level():
    """Begin a level; returns its number. RuntimeError within one: they do not nest."""
    global _pairs
    if _pairs is not None:
        raise RuntimeError("Nested forward mode AD is not supported: there is a dual level already")
    _pairs = []
    return 0


def exit_dual_level(*, level=None):
    """End the level: what is dual keeps its value and loses its tangent."""
    global _pairs
    if _pairs is None:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created"
        )
    _pairs = None


class dual_level:
    """Within it tensors can be dual."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, kind, value, trace):
        exit_dual_level()


def make_dual(tensor, tangent, *, level=None):
    """The tensor with a tangent of its size.

    Raises:
        RuntimeError: outside of a level; for tangents of another size or dtype.
        ValueError: for integers.
    """
    if _pairs is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {t.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            f"Expected tangent to have the same shape as the tensor: {tuple(tensor.shape)}, but "
            f"got {tuple(tangent.shape)}"
        )
    if tensor.dtype != tangent.dtype:
        raise RuntimeError(
            f"Expected tangent to have the dtype of the tensor: {tensor.dtype}, but got "
            f"{tangent.dtype}"
        )
    own = tensor.requires_grad
    with rushlight.enable_grad():
        dual = tensor.view_as(tensor) if own else tensor.detach().requires_grad_()
    _pairs.append((dual, tangent, own))
    return dual


def unpack_dual(tensor, *, level=None):
    """The value and the tangent of a tensor that was computed from duals."""
    if not _pairs or not isinstance(tensor, rushlight.Tensor) or not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    own = any(pair[2] for pair in _pairs)
    for dual, tangent, _ in _pairs:
        if tensor is dual:
            return UnpackedDualTensor(tensor if own else tensor.detach(), tangent)
    with rushlight.enable_grad():
        w = rushlight.zeros_like(tensor).requires_grad_()
        products = rushlight.autograd.grad(
            tensor,
            [dual for dual, _, _ in _pairs],
            w,
            create_graph=True,
            allow_unused=True,
        )
        used = [(g, v) for g, (_, v, _) in zip(products, _pairs, strict=True) if g is not None]
        if not used:
            return UnpackedDualTensor(tensor, None)
        differentiable = [(g, v) for g, v in used if g.requires_grad]
        result = None
        if differentiable:
            (result,) = rushlight.autograd.grad(
                [g for g, _ in differentiable],
                w,
                [v for _, v in differentiable],
                create_graph=own or any(v.requires_grad for _, v in differentiable),
                retain_graph=True,
                allow_unused=True,
            )
        if result is None:
            result = rushlight.zeros_like(tensor)
    return UnpackedDualTensor(tensor if own else tensor.detach(), result)
