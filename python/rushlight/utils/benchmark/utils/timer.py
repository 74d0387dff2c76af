"""`Timer`: like Python's timeit, with a fixed number of threads and a warm start."""

from __future__ import annotations

import enum
import textwrap
import timeit

from rushlight.utils.benchmark.utils import common

__all__ = ["Language", "Timer", "timer"]

timer = timeit.default_timer


class Language(enum.Enum):
    """What statements are written in; only Python can be timed."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Times a statement.

    >>> x = rushlight.ones(64, 64)
    >>> Timer("x @ x", globals={"x": x}).blocked_autorange()

    Args:
        stmt, setup, timer, globals: as for Python's timeit.Timer.
        label, sub_label, description, env: what tells the measurement from others in a table.
        num_threads: how many threads ops may use meanwhile.

    Raises:
        NotImplementedError: for statements in C++.
    """

    _timer_cls = timeit.Timer

    def __init__(
        self,
        stmt="pass",
        setup="pass",
        global_setup="",
        timer=timer,
        globals=None,
        label=None,
        sub_label=None,
        description=None,
        env=None,
        num_threads=1,
        language=Language.PYTHON,
    ):
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError("Timer times statements of Python only")
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
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

    def _timeit(self, number):
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number=1000000):
        """Run `number` times, after a hundredth of that to warm up."""
        with common.set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return common.Measurement(
                number_per_run=number,
                raw_times=[self._timeit(number)],
                task_spec=self._task_spec,
            )

    def repeat(self, repeat=-1, number=-1):
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback=None):
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time):
        """So many calls that the clock's own cost is no part of a run's time."""
        overhead = sorted(self._timer_cls("pass").timeit(1) for _ in range(5))[2]
        number = 1
        while True:
            taken = self._timeit(number)
            relative = overhead / taken
            if relative <= 1e-4 and taken >= min_run_time / 1000:
                return number
            if taken > min_run_time:
                return number
            number *= 10

    def _run_blocks(self, number, finished):
        times: list[float] = []
        total = 0.0
        while not times or not finished(times, total):
            times.append(self._timeit(number))
            total += times[-1]
        return common.Measurement(number_per_run=number, raw_times=times, task_spec=self._task_spec)

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Run in blocks until `min_run_time` seconds are over, so that the spread is seen."""
        with common.set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            found = self._run_blocks(number, lambda times, total: total >= min_run_time)
        for taken in found.raw_times if callback is not None else ():
            callback(number, taken)
        return found

    def adaptive_autorange(
        self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None
    ):
        """Run in blocks until the quartiles agree within `threshold`, or time is up."""

        def finished(times, total):
            if total < min_run_time:
                return False
            spec = self._task_spec
            agreed = common.Measurement(number, times, spec).meets_confidence(threshold)
            return total > max_run_time or (len(times) > 3 and agreed)

        with common.set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(0.05)
            found = self._run_blocks(number, finished)
        for taken in found.raw_times if callback is not None else ():
            callback(number, taken)
        return found

    def collect_callgrind(self, *args, **kwargs):
        raise NotImplementedError("run the program under valgrind --tool=callgrind instead")
