"""Timers and what compares them."""

import pytest

import rushlight as torch
from rushlight.utils import benchmark


def test_helpers_of_measuring(tmp_path):
    assert benchmark.trim_sigfig(123456.0, 3) == 123000
    torch.testing.assert_allclose(torch.ones(2), torch.ones(2))
    with pytest.raises(AssertionError):
        torch.testing.assert_allclose(torch.ones(2), torch.zeros(2))
    numbers = []
    timed = benchmark.Timer("sum(range(10))").blocked_autorange(
        callback=lambda number, seconds: numbers.append(number), min_run_time=0.01
    )
    assert timed.number_per_run == numbers[0] and str(numbers[0]).strip("0") == "1"
    assert len(numbers) == len(timed.raw_times) and sum(timed.raw_times) >= 0.01
    assert timed.number_per_run * timed.median >= 1e-5
    slow = benchmark.Timer("time.sleep(0.02)", "import time").blocked_autorange(min_run_time=0.01)
    assert slow.number_per_run == 1
    handler = torch.profiler.tensorboard_trace_handler(str(tmp_path))
    with torch.profiler.profile(on_trace_ready=handler):
        torch.ones(2) + 1
    assert list(tmp_path.glob("*.json"))
    assert torch.multiprocessing.get_sharing_strategy() in (
        torch.multiprocessing.get_all_sharing_strategies()
    )


def test_timer():
    x = torch.ones(8)
    m = benchmark.Timer("x + 1", globals={"x": x}, label="add", description="one").timeit(20)
    assert m.median > 0 and m.number_per_run == 20 and "add" in repr(m)
    blocks = benchmark.Timer("x + 1", globals={"x": x}, label="add", description="two")
    table = str(benchmark.Compare([m, blocks.blocked_autorange(min_run_time=0.01)]))
    assert "one" in table and "two" in table and "threads" in table
    with pytest.raises(NotImplementedError):
        benchmark.Timer("x", language="c++")
