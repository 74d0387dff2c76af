"""Clipping of gradients, in place."""

from __future__ import annotations

import math
from collections.abc import Iterable

import rushlight
from rushlight import _C, Tensor
from rushlight._warnings import warn

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def _as_list(parameters):
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _gradients(parameters):
    return [p.grad for p in _as_list(parameters) if p.grad is not None]


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors, as if they were one vector: a 0-d tensor.

    Args:
        tensors: the tensors, such as gradients.
        norm_type: the order of the norm.
        error_if_nonfinite: whether to raise RuntimeError for a norm that is infinite or NaN.
        foreach: accepted; all parameters of a group are updated at once anyway.

    Example:
        >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
        tensor(5.)
    """
    tensors = _as_list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return rushlight.tensor(0.0)
    with rushlight.no_grad():
        # Tensors without elements have no largest one, and add nothing to a sum.
        filled = [t for t in tensors if t.numel() > 0]
        if not filled:
            return tensors[0].abs().sum()
        norms = rushlight.stack([rushlight.norm(t, norm_type) for t in filled])
        total = rushlight.norm(norms, norm_type)
        if error_if_nonfinite and not math.isfinite(total.item()):
            raise RuntimeError(
                f"The total norm of order {norm_type} of these gradients is non-finite, and they "
                "cannot be scaled by it; error_if_nonfinite=False scales them all the same"
            )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scale gradients so that a total norm of `total_norm` becomes at most `max_norm`.

    Args:
        parameters: a tensor, or an iterable of them.
        max_norm: the norm that the gradients may have.
        total_norm: the norm that they have.
        foreach: accepted; all parameters of a group are updated at once anyway.

    Example:
        >>> w = torch.nn.Parameter(torch.zeros(2))
        >>> w.grad = torch.tensor([3.0, 4.0])
        >>> torch.nn.utils.clip_grads_with_norm_([w], 1.0, torch.tensor(5.0))
        >>> w.grad
        tensor([0.6000, 0.8000])
    """
    with rushlight.no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        may_look = factor.device.type == "cpu" and not _C._is_recording()
        if may_look and factor.item() == 1.0:
            return  # nothing changes, and looking costs nothing there
        for grad in _gradients(parameters):
            grad.mul_(factor.to(grad.device))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of parameters so that their total norm is at most `max_norm`.

    Returns:
        the norm before clipping, a 0-d tensor.

    Args:
        parameters: the parameters whose gradients are scaled.
        max_norm: the norm that the gradients may have.
        norm_type: the order of the norm.
        error_if_nonfinite: whether to raise RuntimeError for a norm that is infinite or NaN.
        foreach: accepted; all parameters of a group are updated at once anyway.

    Example:
        >>> w = torch.nn.Parameter(torch.zeros(2))
        >>> w.grad = torch.tensor([3.0, 4.0])
        >>> torch.nn.utils.clip_grad_norm_([w], max_norm=1.0)
        tensor(5.)
        >>> w.grad
        tensor([0.6000, 0.8000])
    """
    parameters = _as_list(parameters)
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Deprecated name of `clip_grad_norm_`.

    For an example see `nn.utils.clip_grad_norm_`.

    Args:
        parameters: a tensor or several.
        max_norm: the largest norm that gradients keep.
        norm_type: the power, 2 for lengths.
        error_if_nonfinite: whether a norm that is NaN or infinite is an error.
        foreach: without effect on results.
    """
    warn(
        "`nn.utils.clip_grad_norm` is now deprecated in favor of `nn.utils.clip_grad_norm_`.",
        FutureWarning,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clip the elements of all gradients to [-clip_value, clip_value].

    Args:
        parameters: the parameters whose gradients are clipped.
        clip_value: the largest absolute value.
        foreach: accepted; all parameters of a group are updated at once anyway.

    Example:
        >>> w = torch.nn.Parameter(torch.zeros(2))
        >>> w.grad = torch.tensor([3.0, -0.5])
        >>> torch.nn.utils.clip_grad_value_([w], 1.0)
        >>> w.grad
        tensor([ 1.0000, -0.5000])
    """
    clip_value = float(clip_value)
    with rushlight.no_grad():
        for grad in _gradients(parameters):
            grad.clamp_(min=-clip_value, max=clip_value)
