"""Applies tensor parallelism to the modules of a model."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import TYPE_CHECKING

from rushlight import nn
from rushlight._warnings import warn
from rushlight.distributed.tensor._spec import mesh_or_current
from rushlight.distributed.tensor.parallel.style import ParallelStyle

if TYPE_CHECKING:
    from rushlight.distributed import DeviceMesh


__all__ = ["parallelize_module"]


def parallelize_module(
    module: nn.Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> nn.Module:
    """Shard the submodules that a plan names, in place; returns the module.

    Args:
        module: the model.
        device_mesh: a mesh of one dimension, by default the one of `with mesh:`.
        parallelize_plan: a style for the module itself, or styles by the names of its modules,
            whose parts may be patterns: `{"layers.*.up": ColwiseParallel()}`.
        src_data_rank: the process whose parameters the others get; None if they have them.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> from rushlight.distributed.tensor.parallel import (
        ...     ColwiseParallel,
        ...     RowwiseParallel,
        ...     parallelize_module,
        ... )
        >>> mesh = torch.distributed.init_device_mesh("cpu", (1,))
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
        >>> _ = parallelize_module(net, mesh, {"0": ColwiseParallel(), "1": RowwiseParallel()})
        >>> net(torch.ones(1, 4)).shape
        torch.Size([1, 2])
        >>> torch.distributed.destroy_process_group()
    """
    mesh = mesh_or_current(device_mesh)
    if mesh.ndim != 1:
        raise ValueError(f"parallelize_module takes a mesh of one dimension, got {mesh.ndim}")
    if parallelize_plan is None:
        warn(
            "parallelize_module without a parallelize_plan does nothing: no plan is made of itself",
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        if path == "":
            module = parallelize_module(module, mesh, style, src_data_rank=src_data_rank)
            continue
        found = _matching(module, path.split("."))
        if not found:
            warn(f"Parallelize plan key {path!r} could not be resolved: no module of that name")
        for part in found:
            parallelize_module(part, mesh, style, src_data_rank=src_data_rank)
    return module


def _matching(module, atoms):
    """The modules below whose names match a pattern for each step."""
    if not atoms:
        return [module]
    return [
        found
        for name, child in module.named_children()
        if fnmatch(name, atoms[0])
        for found in _matching(child, atoms[1:])
    ]
