"""Means of parameters over processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rushlight
from rushlight._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from rushlight.distributed import _world

__all__ = [
    "average_parameters",
    "average_parameters_or_parameter_groups",
    "get_params_to_average",
]


@rushlight.no_grad()
def average_parameters(params: Iterable[rushlight.nn.Parameter], process_group: Any) -> None:
    """Set parameters to their mean over the processes of a group; a no-op in other processes.

    Args:
        params: the parameters.
        process_group: the processes.

    For an example see `distributed.algorithms.model_averaging.averagers.PeriodicModelAverager`.
    """
    group = _world._group(process_group)
    if _world._rank_not_in_group(group):
        return
    by_dtype: dict[Any, list] = {}
    for p in params:
        by_dtype.setdefault(p.dtype, []).append(p)
    for some in by_dtype.values():
        flat = _flatten_dense_tensors([p.detach() for p in some]).div_(group.size())
        group.allreduce([flat]).wait()
        for p, mean in zip(some, _unflatten_dense_tensors(flat, some), strict=True):
            p.copy_(mean)


def get_params_to_average(params: Iterable[Any]) -> list[rushlight.nn.Parameter]:
    """The parameters that have gradients, of parameters or of an optimiser's groups.

    Args:
        params: parameters, or the groups of an optimiser.

    Example:
        >>> from rushlight.distributed.algorithms.model_averaging.utils import get_params_to_average
        >>> layer = torch.nn.Linear(2, 1)
        >>> layer(torch.ones(1, 2)).sum().backward()
        >>> len(get_params_to_average(layer.parameters()))
        2
    """
    found = []
    for one in params:
        if isinstance(one, rushlight.nn.Parameter):
            found.append(one)
        elif isinstance(one, dict):
            found += one["params"]
        else:
            raise NotImplementedError(f"Parameter input of type {type(one)} is not supported")
    return [p for p in found if p.grad is not None]


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: Any) -> None:
    """`average_parameters` for parameters that have gradients.

    Args:
        params: parameters, or the groups of an optimiser.
        process_group: the processes.

    For an example see `distributed.algorithms.model_averaging.averagers.PeriodicModelAverager`.
    """
    average_parameters(get_params_to_average(params), process_group)
