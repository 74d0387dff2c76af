"""Draws of distributed tensors: other ones for each piece, the same for all copies of one."""

from __future__ import annotations

import contextlib
import weakref

import rushlight
from rushlight.distributed import _collectives
from rushlight.distributed.tensor.placement_types import Shard

__all__ = ["drawing", "manual_seed", "nothing"]

_synchronized: weakref.WeakSet = weakref.WeakSet()


def _generator_of(mesh):
    """The default generator of the device of this process's pieces."""
    if mesh.device_type == "cuda":
        return rushlight.cuda.default_generators[rushlight.cuda.current_device()]
    return rushlight.default_generator


def _synchronize(mesh):
    """All processes of the mesh take the state of the first one's generator, once a mesh."""
    if mesh in _synchronized:
        return
    _synchronized.add(mesh)
    generator = _generator_of(mesh)
    state = generator.get_state().to(mesh.device_type)
    for i in range(mesh.ndim):
        if mesh.size(i) > 1:
            group = mesh.get_group(i)
            first = rushlight.distributed.get_global_rank(group, 0)
            _collectives.broadcast(state, first, group=group)
    generator.set_state(state.cpu())


@contextlib.contextmanager
def drawing(mesh, placements):
    """Within it the default generator draws for this process's piece.

    All processes draw one number, from which and from the place of a piece its seed is made; after
    it their generators go on alike.
    """
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        yield
        return
    _synchronize(mesh)
    piece = 0
    for i, placement in enumerate(placements):
        if isinstance(placement, Shard):
            piece = piece * mesh.size(i) + coordinate[i]
    generator = _generator_of(mesh)
    seed = int(rushlight.randint(0, 2**62, (), generator=generator, device=mesh.device_type))
    state = generator.get_state()
    generator.manual_seed(seed + piece)
    try:
        yield
    finally:
        generator.set_state(state)


def nothing():
    """In the place of `drawing` where nothing is drawn."""
    return contextlib.nullcontext()


def manual_seed(seed: int, device_mesh) -> None:
    """Seed the random numbers of distributed tensors on a mesh; every process passes the same
    seed.
    """
    if device_mesh.get_coordinate() is None:
        raise RuntimeError(
            "manual_seed seeds the ranks of a device mesh, and the current rank is none of "
            f"{device_mesh}"
        )
    _synchronized.add(device_mesh)
    rushlight.manual_seed(seed)
