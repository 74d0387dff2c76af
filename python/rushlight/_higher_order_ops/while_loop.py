"""A function again and again, as long as another one says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight import Tensor
from rushlight._higher_order_ops import utils
from rushlight.utils import _pytree

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["while_loop"]


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> Any:
    """What `body_fn` makes of its own results while `cond_fn` of them is true.

    Args:
        cond_fn: gives a bool or a tensor of one bool.
        body_fn: gives as many values as it takes, of the same forms and dtypes.
        carried_inputs: the values to begin with, a tuple or list.

    Example:
        >>> torch.while_loop(lambda n: n < 100, lambda n: (n * 3,), (torch.tensor(2),))
        (tensor(162),)
    """
    if not (callable(cond_fn) and callable(body_fn)):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError(f"Expect carried_inputs to be a tuple or list, got {carried_inputs}.")
    carried = tuple(carried_inputs)
    if utils.tracer is not None:
        return utils.tracer.while_loop(cond_fn, body_fn, carried)
    form = _pytree.tree_structure(carried)

    def goes_on() -> bool:
        answer = cond_fn(*carried)
        if not isinstance(answer, bool) and not (
            isinstance(answer, Tensor) and answer.numel() == 1
        ):
            raise RuntimeError(
                f"cond_fn must return a boolean, or a tensor of one, but got {answer}"
            )
        return bool(answer)

    while goes_on():
        out = body_fn(*carried)
        carried = tuple(out) if isinstance(out, tuple | list) else (out,)
        if _pytree.tree_structure(carried) != form:
            raise RuntimeError("body_fn should return as many values of the same forms as it takes")
    return carried
