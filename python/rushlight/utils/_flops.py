"""How many operations ops take, by the sizes of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import _C
from rushlight.utils._pytree import tree_map_only

if TYPE_CHECKING:
    from rushlight._ops import OpOverloadPacket

__all__ = ["flop_registry", "formula_of_sizes", "register_flop_formula"]

aten = rushlight.ops.aten
flop_registry: dict[Any, Any] = {}
_of_sizes: dict[str, Any] = {}


def _shape(value):
    return tree_map_only(_C.TensorBase, lambda t: tuple(t.shape), value)


def register_flop_formula(
    targets: OpOverloadPacket | list[OpOverloadPacket], get_raw: bool = False
) -> Callable[..., Any]:
    """Decorates a formula for one or several ops (`rushlight.ops.aten.mm`).

    It is called with the op's arguments, tensors as their sizes, and `out_shape`; with `get_raw`
    with the tensors themselves and `out_val`.

    Args:
        targets: an op or a list of ops.
        get_raw: whether the formula gets tensors, not their sizes.

    Example:
        >>> from rushlight.utils.flop_counter import register_flop_formula
        >>> @register_flop_formula(torch.ops.aten.erfinv)
        ... def erfinv_flops(size, *args, out_shape=None, **kwargs):
        ...     return 20 * torch.Size(size).numel()
    """

    def register(formula: Callable[..., Any]) -> Callable[..., Any]:
        def count_flops(*args, out_val=None, **kwargs):
            if get_raw:
                return formula(*args, out_val=out_val, **kwargs)
            return formula(*_shape(args), out_shape=_shape(out_val), **_shape(kwargs))

        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            flop_registry[target] = count_flops
            if not get_raw:
                _of_sizes[str(target).replace(".", "::")] = formula
        return formula

    return register


def formula_of_sizes(name):
    """The formula of an op ("aten::mm") that needs no more than sizes, or None."""
    return _of_sizes.get(name)


@register_flop_formula(aten.mm)
def mm_flop(a_shape, b_shape, *args, out_shape=None, **kwargs):
    """2 m k n."""
    return 2 * a_shape[0] * a_shape[1] * b_shape[1]


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape, a_shape, b_shape, *args, out_shape=None, **kwargs):
    """As the product."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape, b_shape, *args, out_shape=None, **kwargs):
    """As many products."""
    return a_shape[0] * mm_flop(a_shape[1:], b_shape[1:])


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape, a_shape, b_shape, *args, out_shape=None, **kwargs):
    """As the products."""
    return bmm_flop(a_shape, b_shape)


@register_flop_formula([aten.mv, aten.dot])
def mv_flop(a_shape, b_shape, *args, out_shape=None, **kwargs):
    """Two for each element of the first."""
    return 2 * _count(a_shape)


@register_flop_formula(aten.addmv)
def addmv_flop(self_shape, a_shape, b_shape, *args, out_shape=None, **kwargs):
    """Two for each element of the matrix."""
    return 2 * _count(a_shape)


@register_flop_formula(aten.linear)
def linear_flop(x_shape, w_shape, *args, out_shape=None, **kwargs):
    """As the product."""
    return 2 * _count(x_shape) * (w_shape[0] if len(w_shape) == 2 else 1)


def _count(shape):
    n = 1
    for size in shape:
        n *= size
    return n


def conv_flop_count(x_shape, w_shape, out_shape, transposed: bool = False):
    """Two for each product of an element and a weight."""
    places = x_shape[2:] if transposed else out_shape[2:]
    return 2 * x_shape[0] * _count(places) * _count(w_shape)


@register_flop_formula(aten.convolution)
def conv_flop(
    x_shape, w_shape, bias, stride, padding, dilation, transposed, *args, out_shape=None, **kwargs
):
    """Two for each product of an element and a weight."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


@register_flop_formula(rushlight.ops.rushlight.convolution_weight_backward)
def conv_weight_flop(grad_shape, x_shape, w_shape, *args, out_shape=None, **kwargs):
    """As the convolution."""
    return conv_flop_count(x_shape, w_shape, grad_shape)
