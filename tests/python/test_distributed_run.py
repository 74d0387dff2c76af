"""The launcher, with real processes."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from rushlight import distributed as dist
from rushlight.distributed import run
from rushlight.distributed.elastic.multiprocessing.errors import record

from .signals import with_own_signals

pytestmark = pytest.mark.timeout(100)

LAUNCHER = [sys.executable, "-m", "rushlight.distributed.run"]


def launch(folder, program, *options, script_args=(), wait=True):
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    process = subprocess.Popen(
        [*LAUNCHER, *options, str(path), *script_args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        preexec_fn=with_own_signals,
    )
    if not wait:
        return process
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


WRITE = """
import json, os, sys
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK")
facts = {name: int(os.environ[name]) for name in names}
attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
with open(f"rank{facts['RANK']}_{attempt}.json", "w") as file:
    json.dump({**facts, "args": sys.argv[1:]}, file)
"""


def test_ranks(tmp_path):
    code, _, err = launch(
        tmp_path, WRITE, "--standalone", "--nproc-per-node=2", script_args=["--x", "1"]
    )
    assert code == 0, err
    for rank in range(2):
        facts = json.loads((tmp_path / f"rank{rank}_0.json").read_text())
        assert facts == {
            "RANK": rank,
            "LOCAL_RANK": rank,
            "WORLD_SIZE": 2,
            "LOCAL_WORLD_SIZE": 2,
            "GROUP_RANK": 0,
            "args": ["--x", "1"],
        }


@pytest.mark.skipif(not dist.is_gloo_available(), reason="built without Gloo")
def test_restart_and_groups(tmp_path):
    program = """
    import os, sys
    import rushlight as torch
    from rushlight import distributed as dist
    dist.init_process_group("gloo")
    t = torch.ones(1)
    dist.all_reduce(t)
    assert t.item() == 2
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and dist.get_rank() == 1:
        sys.exit(3)
    dist.barrier()
    open(f"end{dist.get_rank()}", "w")
    dist.destroy_process_group()
    """
    options = ("--standalone", "--nproc_per_node", "2", "--max-restarts", "1")
    code, _, err = launch(tmp_path, program, *options)
    assert code == 0, err
    assert (tmp_path / "end0").exists() and (tmp_path / "end1").exists()


def test_an_error_is_shown_and_ends_the_others(tmp_path):
    program = """
    import os, time
    from rushlight.distributed.elastic.multiprocessing.errors import record

    @record
    def main():
        if os.environ["RANK"] == "1":
            raise KeyError("what went wrong")
        time.sleep(60)

    main()
    """
    begin = time.monotonic()
    code, _, err = launch(tmp_path, program, "--standalone", "--nproc-per-node=2")
    assert code == 1 and time.monotonic() - begin < 30
    assert "FAILED" in err and "rank      : 1 (local_rank: 1)" in err
    assert "KeyError: 'what went wrong'" in err.partition("Root Cause")[2]


@pytest.mark.skipif(not dist.is_gloo_available(), reason="built without Gloo")
@pytest.mark.parametrize("how", ["raises", "raises late", "wrapped", "killed", "exits"])
def test_the_cause_is_who_failed_by_itself(tmp_path, how):
    """The others have lost that rank; lines of tracebacks say whose they are."""
    program = f"""
    import os, signal, sys, time
    import rushlight as torch
    from rushlight import distributed as dist
    from rushlight.distributed.elastic.multiprocessing.errors import record
    dist.init_process_group("gloo")
    how = {how!r}
    dist.barrier()
    try:
        if dist.get_rank() == 1:
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "exits":
                sys.exit(3)
            if how == "raises late":
                dist.destroy_process_group()
                time.sleep(1)
            raise KeyError("what went wrong")
        dist.all_reduce(torch.ones(1))
    except RuntimeError as error:
        if how == "wrapped":
            raise ValueError("no training") from error
        raise
    finally:
        if how == "wrapped":
            dist.barrier()  # fails, too
    """
    code, _, err = launch(tmp_path, program, "--standalone", "--nproc-per-node=3")
    cause = err.partition("Root Cause")[2]
    assert code == 1 and "rank      : 1 (local_rank: 1)" in cause, err
    if how in ("killed", "exits"):
        assert ("Signal 9 (SIGKILL)" if how == "killed" else "exitcode  : 3") in cause
    else:
        assert "KeyError: 'what went wrong'" in cause
        assert "[rank1]: Traceback (most recent call last):" in err
        assert "[rank1]: KeyError: 'what went wrong'" in err


def test_logs(tmp_path):
    program = """
    import os, sys
    print("out", os.environ["RANK"])
    print("err", os.environ["RANK"], file=sys.stderr)
    """
    options = ("--standalone", "--nproc-per-node=2", "--log-dir=logs", "-r", "2", "-t", "1")
    code, out, err = launch(tmp_path, program, *options)
    assert code == 0 and sorted(out.split("\n")) == ["", "[default0]:out 0", "[default1]:out 1"]
    assert "err" not in err
    (attempt,) = (tmp_path / "logs").glob("*/attempt_0")
    assert (attempt / "1/stdout.log").read_text() == "out 1\n"
    assert (attempt / "0/stderr.log").read_text() == "err 0\n"


def test_two_machines(tmp_path):
    port = str(dist.TCPStore("localhost", 0, 1, True).port)
    processes = []
    for node in range(2):
        folder = tmp_path / str(node)
        folder.mkdir()
        options = ("--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-id=x")
        endpoint = f"--rdzv-endpoint=localhost:{port}"
        processes.append(launch(folder, WRITE, *options, endpoint, wait=False))
    assert [p.wait(60) for p in processes] == [0, 0], [p.stderr.read() for p in processes]
    facts = [json.loads(path.read_text()) for path in tmp_path.glob("*/rank*_0.json")]
    assert sorted(f["RANK"] for f in facts) == [0, 1]
    assert {f["WORLD_SIZE"] for f in facts} == {2} and {f["LOCAL_RANK"] for f in facts} == {0}


def test_no_process_is_left(tmp_path):
    program = """
    import os, time
    os.write(1, b"%d\\n" % os.getpid())  # in one piece, as two write to one pipe
    time.sleep(100)
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        process = launch(tmp_path, program, "--standalone", "--nproc-per-node=2", wait=False)
        children = [int(process.stdout.readline()) for _ in range(2)]
        process.send_signal(number)
        process.wait(30)
        end = time.monotonic() + 5
        while any(os.path.exists(f"/proc/{child}") for child in children):
            assert time.monotonic() < end
            time.sleep(0.02)


def test_record(tmp_path, monkeypatch):
    path = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))

    @record
    def fails():
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        fails()
    message = json.loads(path.read_text())["message"]
    assert message["message"] == "ValueError: x"
    assert "in fails" in message["extraInfo"]["py_callstack"]
    assert record(lambda: 3)() == 3


def test_options():
    args = run.parse_args(["--nnodes=1:4", "--nproc_per_node=3", "-m", "some.module", "-x", "1"])
    settings, command = run.config_from_args(args)
    assert (settings.min_nodes, settings.max_nodes, settings.processes) == (1, 4, 3)
    assert command[1:] == ["-u", "-m", "some.module", "-x", "1"]
    assert (settings.redirects, settings.tee) == (dict.fromkeys(range(3), 0),) * 2
    args = run.parse_args(["--nnodes=2", "x"])  # others make them without the parser
    vars(args).update(master_port="29511", node_rank="1", max_restarts="2", monitor_interval="1")
    settings, _ = run.config_from_args(args)
    assert (settings.port, settings.node_rank, settings.max_restarts) == (29511, 1, 2)
    for wrong, why in (
        (["--nnodes=3:2", "x"], "nnodes"),
        (["--nproc-per-node=many", "x"], "Unsupported nproc_per_node value: many"),
        (["--no-python", "-m", "x"], "at the same time"),
        (["--nnodes=2", "--rdzv-backend=etcd", "x"], "rdzv_backend etcd"),
    ):
        with pytest.raises(ValueError, match=re.escape(why)):
            run.config_from_args(run.parse_args(wrong))


def test_signals_and_virtual_ranks(tmp_path):
    program = """
    import os, signal, sys, time
    rank = os.environ["RANK"]
    seen = os.environ["LOCAL_RANK"], os.environ["CUDA_VISIBLE_DEVICES"]
    def handler(number, frame):
        with open(f"signal{rank}", "w") as file:
            print(number, *seen, file=file)
    signal.signal(signal.SIGUSR1, handler)  # and go on: the launcher makes an end of it
    open(f"ready{rank}", "w").close()
    time.sleep(60)
    time.sleep(60)
    """
    options = ("--standalone", "--nproc-per-node=2", "--virtual-local-rank")
    options += ("--signals-to-handle=SIGUSR1,SIGTERM", "--shutdown-timeout=1")
    process = launch(tmp_path, program, *options, wait=False)
    while not all((tmp_path / f"ready{rank}").exists() for rank in range(2)):
        time.sleep(0.05)
        assert process.poll() is None
    process.send_signal(signal.SIGUSR1)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGUSR1
    for rank in range(2):
        number, local, visible = (tmp_path / f"signal{rank}").read_text().split()
        assert (int(number), local, int(visible)) == (signal.SIGUSR1, "0", rank)
