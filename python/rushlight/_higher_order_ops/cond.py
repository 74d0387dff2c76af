"""One of two functions, as a number says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight import Tensor
from rushlight._higher_order_ops import utils
from rushlight.utils import _pytree

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["cond"]


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()
) -> Any:
    """`true_fn(*operands)` where `pred` is true, else `false_fn(*operands)`.

    Args:
        pred: a bool, a number, or a tensor of one element.
        true_fn: a function.
        false_fn: a function whose results have the same form.
        operands: tensors, numbers, or containers of them.

    Example:
        >>> x = torch.tensor([1.0, -2.0])
        >>> torch.cond(x.sum() > 0, lambda x: x, lambda x: -x, (x,))
        tensor([-1.,  2.])
    """
    if not isinstance(pred, bool | int | float | Tensor):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not (callable(true_fn) and callable(false_fn)):
        raise RuntimeError("Expect both branches to be callable.")
    leaves = _pytree.tree_leaves(operands) if isinstance(operands, tuple | list) else [object()]
    if not all(isinstance(leaf, Tensor | bool | int | float) for leaf in leaves):
        raise RuntimeError(
            "Expect operands to be a tuple of tensors and numbers, or of containers of them, "
            f"but got {operands}."
        )
    if utils.tracer is not None and isinstance(pred, Tensor):
        return utils.tracer.cond(pred, true_fn, false_fn, operands)
    return true_fn(*operands) if pred else false_fn(*operands)
