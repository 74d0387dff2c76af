"""Functions and programs started in several processes by `elastic_launch`."""

import os

import pytest

import rushlight as torch
from rushlight import distributed as dist
from rushlight.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std, to_map
from rushlight.distributed.elastic.multiprocessing.errors import ChildFailedError
from rushlight.distributed.launcher.api import LaunchConfig, elastic_launch

pytestmark = [
    pytest.mark.skipif(not dist.is_gloo_available(), reason="built without Gloo"),
    pytest.mark.timeout(60),
]


def total(base):
    dist.init_process_group("gloo")
    t = torch.tensor([base + dist.get_rank()])
    dist.all_reduce(t)
    dist.destroy_process_group()
    print("summed", flush=True)
    return t, os.environ["LOCAL_RANK"]


def fails_once(folder):
    mark = os.path.join(folder, os.environ["RANK"])
    if not os.path.exists(mark):
        with open(mark, "w"):
            raise RuntimeError("the first time")
    return os.environ["TORCHELASTIC_RESTART_COUNT"]


def fails():
    if os.environ["RANK"] == "1":
        raise KeyError("who")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_results(method):
    config = LaunchConfig(1, 1, 2, start_method=method, max_restarts=0)
    results = elastic_launch(config, total)(10)
    assert {rank: (int(t), local) for rank, (t, local) in results.items()} == {
        0: (21, "0"),
        1: (21, "1"),
    }


def test_failures(tmp_path):
    config = LaunchConfig(1, 1, 2, start_method="fork", max_restarts=0)
    with pytest.raises(ChildFailedError, match="KeyError: 'who'") as raised:
        elastic_launch(config, fails)()
    assert list(raised.value.failures) == [1] and raised.value.name == "fails"
    config.max_restarts = 2
    assert set(elastic_launch(config, fails_once)(str(tmp_path)).values()) <= {"1", "2"}


def test_output(tmp_path, capfd):
    logs = DefaultLogsSpecs(str(tmp_path), redirects={0: Std.OUT}, tee={1: Std.OUT})
    prefix = "<${role_name} ${rank}> "
    config = LaunchConfig(
        1, 1, 2, logs, role="r", start_method="fork", log_line_prefix_template=prefix
    )
    elastic_launch(config, total)(1)
    assert capfd.readouterr().out == "<r 1> summed\n"
    kept = sorted(path.read_text() for path in tmp_path.rglob("stdout.log"))
    assert kept == ["summed\n", "summed\n"]


def test_output_of_ranks_that_are_not_shown_is_kept(tmp_path, capfd):
    logs = DefaultLogsSpecs(str(tmp_path), tee=Std.OUT, local_ranks_filter={1})
    config = LaunchConfig(1, 1, 2, logs, role="r", start_method="fork")
    elastic_launch(config, total)(1)
    assert capfd.readouterr().out == "[r1]:summed\n"
    assert [path.read_text() for path in tmp_path.rglob("stdout.log")] == ["summed\n"] * 2


def test_programs(tmp_path, capfd):
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "$1 $RANK $WORLD_SIZE"\n')
    program.chmod(0o755)
    config = LaunchConfig(1, 1, 2, logs_specs=DefaultLogsSpecs(local_ranks_filter={1}))
    assert elastic_launch(config, str(program))("arg") is None
    assert capfd.readouterr().out == "arg 1 2\n"


def test_streams():
    assert Std.from_str("3") is Std.ALL
    assert to_map(Std.from_str("0:1,1:2"), 3) == {0: Std.OUT, 1: Std.ERR, 2: Std.NONE}
    with pytest.raises(ValueError, match="does not match"):
        Std.from_str("x")
    with pytest.raises(ValueError, match="not one of"):
        elastic_launch(LaunchConfig(1, 2, 1, rdzv_backend="etcd"), total)(1)
