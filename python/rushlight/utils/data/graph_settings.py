"""Settings for all pipes of a graph: shuffling, seeds, and sharding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rushlight
from rushlight._warnings import warn

from .datapipes.iter.sharding import SHARDING_PRIORITIES
from .graph import traverse_dps

if TYPE_CHECKING:
    from rushlight.utils.data.datapipes.iter.sharding import ShardingFilterIterDataPipe

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
]


def get_all_graph_pipes(graph: Any) -> list[Any]:
    """All pipes of a graph, each once.

    Args:
        graph: what `traverse_dps` gave.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> from rushlight.utils.data.graph import traverse_dps
        >>> from rushlight.utils.data.graph_settings import get_all_graph_pipes
        >>> len(get_all_graph_pipes(traverse_dps(IterableWrapper(range(3)).map(abs))))
        2
    """
    found = {}

    def visit(graph: dict[int, Any]) -> None:
        for number, (pipe, below) in graph.items():
            if number not in found:
                found[number] = pipe
                visit(below)

    visit(graph)
    return list(found.values())


def apply_sharding(
    datapipe: Any,
    num_of_instances: int,
    instance_id: int,
    sharding_group=SHARDING_PRIORITIES.DEFAULT,
) -> Any:
    """Set the share of the sharding filters of a graph; each path may have one at most.

    Args:
        datapipe: the last pipe.
        num_of_instances: how many shares there are.
        instance_id: the number of this one.
        sharding_group: the group that filters may mind.

    For an example see `utils.data.datapipes.iter.ShardingFilter`.
    """

    def visit(graph: dict[int, Any], above: ShardingFilterIterDataPipe | None) -> None:
        for pipe, below in graph.values():
            here = None
            if hasattr(pipe, "is_shardable") and pipe.is_shardable():
                if above is not None:
                    raise RuntimeError(
                        f"Sharding twice: {pipe} would give a share of the share that {above} gives"
                    )
                pipe.apply_sharding(num_of_instances, instance_id, sharding_group)
                here = pipe
            visit(below, above if here is None else here)

    visit(traverse_dps(datapipe), None)
    return datapipe


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None):
    """Turn the shuffling of a graph on or off; a shuffler is added if it is wanted and missing.

    Args:
        datapipe: the last pipe.
        shuffle: on or off; None changes nothing.

    Returns:
        the last pipe, or the shuffler that was added.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> from rushlight.utils.data.graph_settings import apply_shuffle_settings
        >>> pipe = apply_shuffle_settings(IterableWrapper(range(3)).shuffle(), shuffle=False)
        >>> list(pipe)
        [0, 1, 2]
    """
    if shuffle is None:
        return datapipe
    shufflers = [
        pipe
        for pipe in get_all_graph_pipes(traverse_dps(datapipe))
        if hasattr(pipe, "set_shuffle") and hasattr(pipe, "set_seed")
    ]
    if not shufflers and shuffle:
        warn(
            "shuffle=True, but the datapipe does not contain a `Shuffler`: one is put at its end, "
            "which draws from a buffer of its default size",
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe: Any, rng: rushlight.Generator):
    """Give all random pipes of a graph a seed from a generator.

    Args:
        datapipe: the last pipe.
        rng: the generator.

    For an example see `utils.data.graph_settings.apply_shuffle_settings`.
    """
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if hasattr(pipe, "set_seed") and callable(pipe.set_seed):
            drawn = rushlight.empty((), dtype=rushlight.int64).random_(generator=rng)
            pipe.set_seed(int(drawn.item()))
    return datapipe


apply_shuffle_seed = apply_random_seed
