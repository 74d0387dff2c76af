"""Experimental functions for distributed tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight._lazy import lazy
from rushlight.distributed.tensor._dispatch import implicit_replication
from rushlight.distributed.tensor._dtensor import DTensor
from rushlight.distributed.tensor._rules import REGISTERED

if TYPE_CHECKING:
    from rushlight.distributed import DeviceMesh


__all__ = [
    "context_parallel",  # noqa: F822  # refused
    "implicit_replication",
    "local_map",
    "register_sharding",
]

lazy(__name__)


def local_map(
    func: Callable[..., Any] | None = None,
    out_placements: Any = None,
    in_placements: Any = None,
    in_grad_placements: Any = None,
    device_mesh: DeviceMesh | None = None,
    *,
    redistribute_inputs: bool = False,
):
    """Convert a function of local pieces to one of distributed tensors.

    Args:
        func: takes and gives plain tensors, this process's pieces; left out, a decorator is given.
        out_placements: the placements of the results, or a tuple of placements for each; None for
            results that are no tensors.
        in_placements: the placements that arguments must have, in the same form; None for any.
        in_grad_placements: the placements of the arguments' gradients; those of the arguments by
            default.
        device_mesh: the mesh, by default that of the first distributed argument.
        redistribute_inputs: whether arguments with other placements are redistributed; otherwise
            they raise ValueError.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> from rushlight.distributed import tensor
        >>> from rushlight.distributed.tensor.experimental import local_map
        >>> mesh = torch.distributed.init_device_mesh("cpu", (1,))
        >>> x = tensor.ones(4, device_mesh=mesh, placements=[tensor.Shard(0)])
        >>> twice = local_map(lambda part: part * 2, out_placements=[tensor.Shard(0)])
        >>> twice(x).to_local()
        tensor([2., 2., 2., 2.])
        >>> torch.distributed.destroy_process_group()
    """
    if func is None:
        return lambda function: local_map(
            function,
            out_placements,
            in_placements,
            in_grad_placements,
            device_mesh,
            redistribute_inputs=redistribute_inputs,
        )

    def wrapper(*args, **kwargs):
        mesh = device_mesh
        locals_ = []
        for k, value in enumerate(args):
            if not isinstance(value, DTensor):
                if in_placements is not None and in_placements[k] is not None:
                    raise ValueError(
                        f"local_map: argument {k} has to be a DTensor with placements "
                        f"{in_placements[k]}, got {type(value).__name__}"
                    )
                locals_.append(value)
                continue
            mesh = value.device_mesh if mesh is None else mesh
            wanted = None if in_placements is None else in_placements[k]
            if in_placements is not None and wanted is None:
                raise ValueError(f"local_map: argument {k} is a DTensor and has no placements")
            if wanted is not None and value.placements != tuple(wanted):
                if not redistribute_inputs:
                    raise ValueError(
                        f"local_map: argument {k} lies as {value.placements}, not as "
                        f"{tuple(wanted)}; redistribute_inputs=True moves it"
                    )
                value = value.redistribute(mesh, wanted)
            grads = None if in_grad_placements is None else in_grad_placements[k]
            locals_.append(value.to_local(grad_placements=grads))
        results = func(*locals_, **kwargs)
        if mesh is None:
            return results
        single = not isinstance(results, (tuple, list))
        listed = [results] if single else list(results)
        ways = [out_placements] * len(listed)
        if isinstance(out_placements, tuple):
            ways = list(out_placements)
        if len(ways) != len(listed):
            raise ValueError(
                f"local_map: {len(listed)} results, but placements for {len(ways)} of them"
            )
        made = []
        for value, way in zip(listed, ways, strict=True):
            if isinstance(value, rushlight.Tensor) and way is not None:
                value = DTensor.from_local(value, mesh, way, run_check=False)
            made.append(value)
        return made[0] if single else type(results)(made)

    return wrapper


def register_sharding(op: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that registers a function as the sharding strategy of an op, or of several.

    The function gets the op's arguments, distributed tensors in their places, and gives a list of
    pairs for one dimension of a mesh: (a placement for each result, a placement for each argument,
    None for what is no tensor).

    Args:
        op: of `torch.ops.aten`, or several.

    For an example see `distributed.tensor.experimental.local_map`.
    """
    ops = op if isinstance(op, (list, tuple)) else [op]

    def enter(function):
        def rule(call):
            options = []
            for outputs, inputs in function(*call.args, **call.kwargs):
                placed = tuple(p for p in inputs if p is not None)
                options.append((placed, tuple(outputs)))
            return options

        for one in ops:
            overload = getattr(one, "default", one)
            REGISTERED[overload] = rule
        return function

    return enter
