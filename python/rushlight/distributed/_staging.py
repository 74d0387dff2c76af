"""Collectives on copies of what GPUs hold, for engines that read memory; profilers see them."""

from __future__ import annotations

import functools
import sys

import rushlight
from rushlight.distributed._process_group import (
    Work,
    _tensors,
)


def _collective(name, inputs=0):
    """`_staging_method`, and profilers show its works; `inputs`: which argument is read."""

    def decorate(method):
        @_staging_method
        @functools.wraps(method)
        def call(self, *args, **kwargs):
            profiler = sys.modules.get("rushlight.profiler.profiler")
            if profiler is None or not profiler._recording():
                return method(self, *args, **kwargs)
            read = list(_tensors(args[inputs])) if inputs < len(args) else []
            sparse = "sparse_" if any(t.is_sparse for t in read) else ""
            ended = profiler.note_work(
                f"{self._name_of_engine}:{sparse}{name}", [list(t.shape) for t in read]
            )
            work = method(self, *args, **kwargs)
            if work._handle is not None and ended is not None:
                work._handle.then(ended)
            return work

        return call

    return decorate


class _CopyBackWork(Work):
    """Something under way on copies in memory, which go back to a GPU when it has ended."""

    def __init__(self, work, outputs, copies):
        super().__init__(work._handle, outputs, work)
        self._copies = copies

    def wait(self, timeout=None):
        super().wait(timeout)
        while self._copies:
            to, copy = self._copies.pop()
            to.detach().copy_(copy)
        return True

    def _fill(self, future):
        Work(self._handle).get_future().add_done_callback(lambda _: self._give(future))

    def _give(self, future):
        error = self.exception()
        if error is not None:
            future.set_exception(error)
        else:
            self.wait()
            future.set_result(self._outputs)


def _through_memory(collective, args, kwargs):
    """A collective on copies in memory, which go back to where the first argument lies."""
    copies = {}

    def copy_of(value):
        if isinstance(value, rushlight.Tensor):
            if id(value) not in copies:
                copies[id(value)] = value, value.detach().cpu()
            return copies[id(value)][1]
        return [copy_of(v) for v in value] if isinstance(value, (list, tuple)) else value

    work = collective(*map(copy_of, args), **kwargs)
    written = [copies[id(t)] for t in _tensors(args[0]) if t.is_cuda]
    outputs = args[0] if isinstance(args[0], list) else [args[0]]
    return _CopyBackWork(work, outputs, written)


def _staging_method(method):
    """A method that takes tensors of GPUs through memory where the engine is one of the CPU."""

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        if self._device == "cpu" and any(t.is_cuda for t in _tensors(args)):
            return _through_memory(functools.partial(method, self), args, kwargs)
        return method(self, *args, **kwargs)

    return call
