"""`parallel_apply`: runs modules on their own inputs, in parallel."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._utils import ExceptionWrapper
from rushlight.nn.modules.module import Module
from rushlight.nn.parallel.scatter_gather import _device

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Tensor | None:
    """The first tensor among arguments, or None.

    Args:
        obj: a tensor, or a list, tuple or dict with one somewhere.

    Example:
        >>> from rushlight.nn.parallel.parallel_apply import get_a_var
        >>> get_a_var([None, {"x": torch.ones(1)}])
        tensor([1.])
    """
    if isinstance(obj, Tensor):
        return obj
    items = obj.items() if isinstance(obj, dict) else obj
    if isinstance(obj, list | tuple | dict):
        return next((t for t in map(get_a_var, items) if t is not None), None)
    return None


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Run each module on its own inputs, in a thread with the caller's modes, and return the
    results.

    Args:
        modules: the modules.
        inputs: for each its positional arguments, or a single one.
        kwargs_tup: for each its keyword arguments.
        devices: for each the device that is current meanwhile; by default its inputs'.

    Raises:
        AssertionError: if the lists are not equally long.
        the exception of a module, with its traceback.

    Example:
        >>> nets = [torch.nn.ReLU(), torch.nn.Tanh()]
        >>> torch.nn.parallel.parallel_apply(nets, [torch.tensor([-4.0]), torch.tensor([0.0])])
        [tensor([0.]), tensor([0.])]
    """
    named = kwargs_tup if kwargs_tup is not None else [{}] * len(modules)
    places = devices if devices is not None else [None] * len(modules)
    for what, given in (("inputs", inputs), ("keyword arguments", named), ("devices", places)):
        if len(modules) != len(given):
            raise AssertionError(
                f"The number of modules {len(modules)} is not equal to the number of {what} "
                f"{len(given)}"
            )
    results: list[Any] = [None] * len(modules)
    grad = rushlight.is_grad_enabled()
    casts = [
        (kind, rushlight.is_autocast_enabled(kind), rushlight.get_autocast_dtype(kind))
        for kind in ("cpu", "cuda")
    ]

    def run(i: int) -> None:
        try:
            given = inputs[i] if isinstance(inputs[i], list | tuple) else (inputs[i],)
            with rushlight.set_grad_enabled(grad), _current(places[i], given), _casting(casts):
                results[i] = modules[i](*given, **named[i])
        except Exception:
            results[i] = ExceptionWrapper(where=f"in replica {i} on device {places[i]}")

    if len(modules) == 1:
        run(0)
    else:
        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(modules))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for result in results:
        if isinstance(result, ExceptionWrapper):
            result.reraise()
    return results


def _current(place: Any, given: Any) -> Any:
    """The device of a call made the current one, where it is a GPU."""
    if place is None:
        tensor = get_a_var(given)
        place = "cpu" if tensor is None else tensor.device
    device = _device(place)
    return rushlight.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()


def _casting(casts: Any) -> contextlib.ExitStack:
    """Autocast as the caller has it."""
    stack = contextlib.ExitStack()
    for kind, enabled, dtype in casts:
        if enabled:
            stack.enter_context(rushlight.autocast(kind, dtype=dtype))
    return stack
