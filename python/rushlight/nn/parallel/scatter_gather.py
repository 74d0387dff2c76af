"""Splitting of batches over several devices, and merging of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import Tensor

if TYPE_CHECKING:
    from rushlight.types import Device

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _device(target) -> rushlight.device:
    return rushlight.device("cuda", target) if isinstance(target, int) else rushlight.device(target)


def _rebuild(like: Any, items: list) -> Any:
    """A container of the type of `like`."""
    return type(like)(*items) if hasattr(like, "_fields") else type(like)(items)


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> Any:
    """One share of `inputs` for each device: tensors are split along `dim`, other values are
    copied.

    Args:
        inputs: a tensor, or tuples, lists and dicts of such.
        target_gpus: the devices; a number is a GPU.
        dim: the dimension of the batch.

    Example:
        >>> torch.nn.parallel.scatter(torch.tensor([4, 5, 6, 7]), ["cpu", "cpu"])
        (tensor([4, 5]), tensor([6, 7]))
    """
    count = len(target_gpus)
    if isinstance(inputs, Tensor):
        shares = inputs.chunk(count, dim)
        return tuple(
            share.to(_device(gpu)) for share, gpu in zip(shares, target_gpus, strict=False)
        )
    if isinstance(inputs, dict):
        shares = [scatter(item, target_gpus, dim) for item in inputs.items()]
        return (
            [type(inputs)(items) for items in zip(*shares, strict=False)]
            if shares
            else [inputs] * count
        )
    if isinstance(inputs, tuple | list) and inputs:
        shares = zip(*(scatter(item, target_gpus, dim) for item in inputs), strict=False)
        return [_rebuild(inputs, list(items)) for items in shares]
    return [inputs] * count


def scatter_kwargs(
    inputs: Any, kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> Any:
    """`scatter` for positional and keyword arguments: equally long tuples of tuples and of
    dicts.

    Args:
        inputs: the positional arguments.
        kwargs: those by name, or None.
        target_gpus: the devices; a number is a GPU.
        dim: the dimension along which tensors are split.

    Example:
        >>> from rushlight.nn.parallel.scatter_gather import scatter_kwargs
        >>> args, kwargs = scatter_kwargs((torch.arange(2),), {"scale": 2}, ["cpu", "cpu"])
        >>> args, kwargs
        (((tensor([0]),), (tensor([1]),)), ({'scale': 2}, {'scale': 2}))
    """
    shares = [scatter(given, target_gpus, dim) if given else [] for given in (inputs, kwargs)]
    calls = max(map(len, shares))
    without = ([kind() for _ in range(calls)] for kind in (tuple, dict))
    return tuple((*own, *rest[len(own) :]) for own, rest in zip(shares, without, strict=True))


def gather(outputs: Any, target_device: Device, dim: int = 0) -> Any:
    """Merge the results of several devices on one of them: tensors are concatenated along `dim`.

    Args:
        outputs: for each device a tensor, or tuples, lists and dicts of such.
        target_device: the device of the result; a number is a GPU.
        dim: the dimension of the batch.

    Example:
        >>> torch.nn.parallel.gather([torch.tensor([4]), torch.tensor([5])], "cpu")
        tensor([4, 5])
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        parts = [part.unsqueeze(0) if part.dim() == 0 else part for part in outputs]
        return rushlight.cat([part.to(_device(target_device)) for part in parts], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(output) != len(first) for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        joined = {key: gather([o[key] for o in outputs], target_device, dim) for key in first}
        return type(first)(joined)
    return _rebuild(
        first, [gather(list(items), target_device, dim) for items in zip(*outputs, strict=False)]
    )
