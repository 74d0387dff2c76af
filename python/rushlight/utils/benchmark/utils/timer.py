"""`Timer`: like Python's timeit, with a fixed number of threads and a warm start."""

from __future__ import annotations

import enum
import math
import statistics
import textwrap
import timeit
from typing import TYPE_CHECKING

from rushlight.utils.benchmark.utils import common

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rushlight.utils.benchmark.utils.common import Measurement

__all__ = ["Language", "Timer", "timer"]

timer = timeit.default_timer


class Language(enum.Enum):
    """The language of statements; only Python can be timed.

    Example:
        >>> torch.utils.benchmark.Language.PYTHON
        <Language.PYTHON: 0>
    """

    PYTHON = 0
    CPP = 1


class Timer:
    """Times a statement.

    Args:
        stmt, setup, timer, globals: as for Python's timeit.Timer.
        label, sub_label, description, env: texts that identify the measurement in a table.
        num_threads: how many threads ops may use meanwhile.
        global_setup: accepted for statements in C++.
        language: the language of the statement, Python.

    Raises:
        NotImplementedError: for statements in C++.

    Example:
        >>> timer = torch.utils.benchmark.Timer("x + x", globals={"x": torch.ones(64)})
        >>> timer.timeit(10).mean > 0
        True
    """

    _timer_cls = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[..., Any] = timer,
        globals: Mapping[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = Language.PYTHON,
    ) -> None:
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError("Timer times statements of Python only")
        if not isinstance(stmt, str):
            raise ValueError(f"a statement is a `str`, not {type(stmt).__name__}")
        if global_setup:
            raise ValueError("global_setup is C++ only, got a Timer of Python with it")
        stmt = textwrap.dedent(stmt).strip("\n").rstrip()
        setup = textwrap.dedent(setup).strip("\n").rstrip()
        self._globals = dict(globals or {})
        if "torch" not in self._globals:
            import rushlight

            self._globals["torch"] = rushlight
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=self._globals)
        self._task_spec = common.TaskSpec(
            stmt=stmt,
            setup=setup,
            label=label,
            sub_label=sub_label,
            description=description,
            env=env,
            num_threads=num_threads,
        )

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000):
        """Run the statement `number` times, after a hundredth of that for warming up."""
        with common.set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return common.Measurement(
                number_per_run=number,
                raw_times=[self._timeit(number)],
                task_spec=self._task_spec,
            )

    def repeat(self, repeat: int = -1, number: int = -1):
        """Refused: `blocked_autorange` measures."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback=None):
        """Refused: `blocked_autorange` measures."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        """The power of ten of calls in whose time the clock's own is lost: a part of 10,000.

        Such a block takes a thousandth of `min_run_time` at least, and no more calls than
        `min_run_time` has room for.
        """
        clock = statistics.median(self._timeit(0) for _ in range(5))
        enough = min(max(1e4 * clock, min_run_time / 1000), min_run_time)
        digits = 0
        while digits < 9 and (taken := self._timeit(10**digits)) < enough:
            digits += max(1, math.ceil(math.log10(enough / taken)))
        return 10 ** min(digits, 9)

    def _run_blocks(
        self, number: int, finished: Callable[..., Any], callback: Callable[..., Any] | None
    ) -> Measurement:
        times: list[float] = []
        total = 0.0
        while not times or not finished(times, total):
            times.append(self._timeit(number))
            total += times[-1]
            if callback is not None:
                callback(number, times[-1])
        return common.Measurement(number_per_run=number, raw_times=times, task_spec=self._task_spec)

    def blocked_autorange(self, callback=None, min_run_time: float = 0.2):
        """Run the statement in blocks for `min_run_time` seconds, to measure the spread.

        Args:
            callback: a function that is called with each block's number of calls and seconds.
        """
        with common.set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            return self._run_blocks(number, lambda times, total: total >= min_run_time, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback=None,
    ):
        """Run the statement in blocks until the quartiles agree within `threshold`, or time is
        up.
        """

        def is_finished(times, total):
            if total < min_run_time:
                return False
            spec = self._task_spec
            agreed = common.Measurement(number, times, spec).meets_confidence(threshold)
            return total > max_run_time or (len(times) > 3 and agreed)

        with common.set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(0.05)
            return self._run_blocks(number, is_finished, callback)

    def collect_callgrind(self, *args, **kwargs):
        """Refused: valgrind counts instructions of a whole program."""
        raise NotImplementedError("run the program under valgrind --tool=callgrind instead")
