"""`Future`: a result that is set later, on any thread."""

from __future__ import annotations

import threading
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]


_T = TypeVar("_T")


class Future(Generic[_T]):
    """A result or an error that is set once.

    Args:
        devices: the devices of results; without effect.

    Example:
        >>> future = torch.futures.Future()
        >>> later = future.then(lambda f: f.wait() * 2)
        >>> future.set_result(21)
        >>> later.wait()
        42
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._condition = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error = None
        self._callbacks = []

    def done(self):
        """Whether the result or the error is set."""
        return self._done

    def wait(self):
        """Wait for the result and return it; an error is raised."""
        with self._condition:
            self._condition.wait_for(lambda: self._done)
        if self._error is not None:
            raise self._error
        return self._value

    def value(self):
        """The result; RuntimeError if it is not set yet."""
        if not self._done:
            raise RuntimeError("the future is not completed: wait() for it")
        return self.wait()

    def _complete(self, value, error):
        with self._condition:
            if self._done:
                raise RuntimeError(
                    "Future can only be marked completed once, but it already has a result"
                )
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in callbacks:
            callback(self)

    def set_result(self, result):
        """Set the result; RuntimeError the second time."""
        self._complete(result, None)

    def set_exception(self, result):
        """Set an error instead of a result."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def add_done_callback(self, callback):
        """Call `callback(self)` when the future is done, or at once if it is."""
        with self._condition:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback):
        """A future of the result of `callback(self)`, which is called when this future is done."""
        after: Future[Any] = Future()

        def run(future):
            try:
                after.set_result(callback(future))
            except Exception as error:
                after.set_exception(error)

        self.add_done_callback(run)
        return after


def collect_all(futures: Any) -> Future[list[Future[Any]]]:
    """A future of the list of futures, which is done when all of them are.

    Args:
        futures: a list of futures.

    Example:
        >>> first, second = torch.futures.Future(), torch.futures.Future()
        >>> both = torch.futures.collect_all([first, second])
        >>> first.set_result(4)
        >>> second.set_result(5)
        >>> [future.value() for future in both.wait()]
        [4, 5]
    """
    futures = list(futures)
    all_done: Future[Any] = Future()
    lock = threading.Lock()
    left = len(futures)

    def count(_future):
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            all_done.set_result(futures)

    if not futures:
        all_done.set_result(futures)
    for future in futures:
        future.add_done_callback(count)
    return all_done


def wait_all(futures: Any) -> list[Any]:
    """Wait for all futures and return their results.

    Args:
        futures: a list of futures.

    Example:
        >>> future = torch.futures.Future()
        >>> future.set_result("done")
        >>> torch.futures.wait_all([future])
        ['done']
    """
    return [f.wait() for f in collect_all(futures).wait()]
