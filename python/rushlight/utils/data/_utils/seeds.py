"""Random numbers of workers: their seeds, a seed for each sample, and states to go on from."""

from __future__ import annotations

import array
import contextlib
import importlib.abc
import importlib.machinery
import random
import sys
from collections.abc import Iterator
from typing import Any

import rushlight
from rushlight import _C

__all__ = [
    "Changes",
    "kept_random_states",
    "numpy_state",
    "random_states",
    "sample_seed",
    "seed_sample",
    "seed_worker",
    "set_random_states",
    "states_of",
]

_MASK = (1 << 64) - 1


def seed_worker(base_seed, worker_id):
    """Seeds everything as PyTorch's workers are seeded."""
    seed = base_seed + worker_id
    random.seed(seed)
    rushlight.manual_seed(seed)
    _seed_numpy(_numpy_words(base_seed, worker_id))


def _numpy_words(base_seed, worker_id):
    return [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]


def numpy_state(base_seed, worker_id):
    """What `numpy.random.seed` is given in a worker: four numbers of 32 bits."""
    import numpy

    words = _numpy_words(base_seed, worker_id)
    return numpy.random.SeedSequence(words).generate_state(4).tolist()


def _seed_numpy(words):
    """numpy's generator, now or, where it is not loaded, when it is."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(numpy.random.SeedSequence(words).generate_state(4))
    else:
        sys.meta_path.insert(0, _SeedsNumpy(words))


class _SeedsNumpy(importlib.abc.MetaPathFinder):
    """Seeds `numpy.random` as soon as it is imported: a worker that needs no numpy loads none."""

    def __init__(self, words) -> None:
        self._words = words

    def find_spec(self, name, path=None, target=None):
        if name != "numpy.random":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            run, words = spec.loader.exec_module, self._words

            def exec_module(module):
                run(module)
                module.seed(module.SeedSequence(words).generate_state(4))

            setattr(spec.loader, "exec_module", exec_module)  # noqa: B010
        return spec


def sample_seed(epoch_seed: int, position: int) -> int:
    """The seed of the sample at a place of the epoch: splitmix64 of the two."""
    z = (epoch_seed + (position + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def seed_sample(epoch_seed: int, position: int) -> None:
    """Seeds everything for one sample."""
    seed = sample_seed(epoch_seed, position)
    random.seed(seed)
    rushlight.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        # A word more: Python's generator is of the same kind, and would draw the same numbers.
        numpy.random.seed([seed & 0xFFFFFFFF, seed >> 32, 1])


def random_states() -> dict[str, Any]:
    """The states of all default generators, as data that `save` takes."""
    states: dict[str, Any] = {"torch": rushlight.get_rng_state(), "python": random.getstate()}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        name, keys, *rest = numpy.random.get_state()
        states["numpy"] = (name, rushlight.from_numpy(keys.astype("int64")), *rest)
    return states


class Changes:
    """What has changed of the default generators since it was asked last, as plain bytes.

    A worker says this with each batch, so it costs little where nothing was drawn.
    """

    def __init__(self) -> None:
        self._torch = b""
        self._python: Any = None
        self._numpy: Any = None

    def take_changes(self) -> dict[str, Any]:
        """The states that are not what they were, for `states_of`."""
        changes: dict[str, Any] = {}
        if (state := _C._storage_bytes(rushlight.get_rng_state().untyped_storage())) != self._torch:
            changes["torch"] = self._torch = state
        version, numbers, gauss = random.getstate()
        # The place in the block of numbers is the last; with a new block the first are others.
        if (told := (version, numbers[-1], numbers[:3], gauss)) != self._python:
            self._python = told
            changes["python"] = version, array.array("I", numbers).tobytes(), gauss
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            name, keys, *rest = numpy.random.get_state()
            if (told := (name, keys.tobytes(), *rest)) != self._numpy:
                changes["numpy"] = self._numpy = told
        return changes


def states_of(changes) -> dict[str, Any]:
    """`random_states` out of the bytes of `Changes`."""
    states = {}
    if "torch" in changes:
        states["torch"] = rushlight.frombuffer(bytearray(changes["torch"]), dtype=rushlight.uint8)
    if "python" in changes:
        version, numbers, gauss = changes["python"]
        states["python"] = version, tuple(array.array("I", numbers)), gauss
    if "numpy" in changes:
        name, keys, *rest = changes["numpy"]
        keys = rushlight.tensor(array.array("I", keys).tolist())
        states["numpy"] = (name, keys, *rest)
    return states


def set_random_states(states: dict[str, Any]) -> None:
    """Go on from states that `random_states` gave, or from some of them."""
    if "torch" in states:
        rushlight.set_rng_state(states["torch"])
    if "python" in states:
        version, numbers, gauss = states["python"]
        random.setstate((version, tuple(numbers), gauss))
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in states:
        name, keys, *rest = states["numpy"]
        numpy.random.set_state((name, keys.numpy().astype("uint32"), *rest))


@contextlib.contextmanager
def kept_random_states() -> Iterator[None]:
    """Leaves all generators as they were."""
    before = random_states()
    try:
        yield
    finally:
        set_random_states(before)
