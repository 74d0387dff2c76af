"""Events, schedules and ends of profiles."""

import json
import threading

import pytest

import rushlight as torch


def test_a_profiler_is_ended_from_outside():
    from rushlight import autograd

    profile = torch.profiler.profile()
    assert not autograd._profiler_enabled()
    profile.start()
    assert autograd._profiler_enabled()
    torch.ones(2).add(1)
    assert autograd._disable_profiler().count("aten::add") == 1
    assert not autograd._profiler_enabled()
    profile.stop()
    with pytest.warns(UserWarning, match="no active profiling session"):
        assert len(autograd._disable_profiler()) == 0


def test_profile_events_nest(tmp_path):
    x = torch.ones(64, 64, requires_grad=True)
    with torch.profiler.profile(record_shapes=True, profile_memory=True) as p:
        with torch.profiler.record_function("forward"):
            y = (x @ x).relu().sum()
        y.backward()
    events = p.events()
    forward = next(e for e in events if e.name == "forward")
    mm = next(e for e in events if e.name == "aten::mm")
    assert mm.cpu_parent is forward and mm.input_shapes == [[64, 64], [64, 64]]
    assert mm.cpu_memory_usage == 64 * 64 * 4 and 0 < mm.cpu_time_total < forward.cpu_time_total
    assert forward.self_cpu_time_total < forward.cpu_time_total
    assert p.count("mm") == 3  # two of them in backward
    averages = p.key_averages(group_by_input_shape=True)
    table = averages.table(sort_by="cpu_time_total", row_limit=-1)
    assert "aten::mm" in table and "[[64, 64], [64, 64]]" in table and "# of Calls" in table
    assert (
        len(averages.table(row_limit=3).splitlines()) == len(table.splitlines()) - len(averages) + 3
    )
    p.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    import gzip

    with gzip.open(tmp_path / "trace.json.gz") as file:
        names = {e["name"] for e in json.load(file)["traceEvents"]}
    assert {"forward", "aten::mm"} <= names


def test_profile_schedule():
    done = []
    plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
    with torch.profiler.profile(schedule=plan, on_trace_ready=lambda p: done.append(p)) as p:
        for _ in range(10):
            torch.ones(2).exp()
            p.step()
    assert len(done) == 2 and p.count("exp") == 2 and p.step_num == 10
    names = [e.trace_name for e in p.events() if e.is_range]
    assert names == ["ProfilerStep#6", "ProfilerStep#7"]
    action = torch.profiler.ProfilerAction
    assert [plan(i) for i in range(4)] == [
        action.NONE,
        action.WARMUP,
        action.RECORD,
        action.RECORD_AND_SAVE,
    ]


def test_old_profiler():
    with torch.autograd.profiler.profile() as p:
        torch.ones(2).exp()
        thread = threading.Thread(target=torch.ones(2).sin)
        thread.start()
        thread.join()
    assert p.key_averages().count("aten::exp") == 1 and p.key_averages().count("sin") == 0
    assert "aten::exp" in p.table() and p.total_average().count == len(p.function_events)
    with pytest.raises(RuntimeError):
        torch.autograd.profiler.profile().table()
