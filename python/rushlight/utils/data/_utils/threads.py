"""Batches from threads of this process, for datasets whose work releases the interpreter's lock."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait

import rushlight

from .epoch import _BaseDataLoaderIter
from .fetch import create_fetcher
from .pin_memory import pin_memory

__all__ = ["_ThreadsDataLoaderIter"]

# Batches that are made in advance, for each thread.
_AHEAD = 2


class _ThreadsDataLoaderIter(_BaseDataLoaderIter):
    """Each batch is made by one thread; they come in the order of the sampler."""

    _has_order = True

    def __init__(self, loader, saved=None) -> None:
        super().__init__(loader, saved)
        self._fetcher = create_fetcher(
            False, self._dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
        )
        self._timeout = loader.timeout or None
        self._threads = ThreadPoolExecutor(
            loader.num_threads, "rushlight-data", _take_over, (rushlight.is_grad_enabled(),)
        )
        self._coming: deque[Future] = deque()
        for _ in range(_AHEAD * loader.num_threads):
            self._ask()

    def _ask(self) -> None:
        try:
            index = self._next_index()
        except StopIteration:
            return
        self._coming.append(self._threads.submit(self._make, index))

    def _make(self, index):
        batch = self._fetcher.fetch(index)
        return pin_memory(batch) if self._pins else batch

    def _next_data(self):
        if not self._coming:
            self._threads.shutdown()
            raise StopIteration
        batch = self._coming[0]
        if not wait([batch], self._timeout).done:
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        self._coming.popleft()
        self._reached += 1
        self._ask()
        return batch.result()

    def __del__(self) -> None:
        threads = getattr(self, "_threads", None)
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)


def _take_over(grad: bool) -> None:
    rushlight.set_grad_enabled(grad)
