"""Tensors between processes, `spawn`, and futures."""

import os
import signal
import threading
import time

import pytest

import rushlight as torch


def test_futures():
    from rushlight.futures import Future, collect_all, wait_all

    a, b = Future(), Future()
    both = collect_all([a, b]).then(lambda f: [x.value() for x in f.value()])
    thread = threading.Thread(target=a.set_result, args=(1,))
    thread.start()
    b.set_result(2)
    assert both.wait() == [1, 2] == wait_all([a, b])
    with pytest.raises(RuntimeError, match="once"):
        a.set_result(3)
    c = Future()
    c.set_exception(KeyError("x"))
    with pytest.raises(KeyError):
        c.wait()


def _double(queue, answers):
    t = queue.get()
    t.mul_(2)  # seen by the sender
    answers.put((t.sum().item(), t.requires_grad, t.shape))
    queue.get()


def test_tensors_are_shared_between_processes():
    mp = torch.multiprocessing.get_context("spawn")
    queue, answers = mp.Queue(), mp.Queue()
    process = mp.Process(target=_double, args=(queue, answers))
    process.start()
    whole = torch.arange(6.0)
    t = whole.view(2, 3)[:, 1:]
    queue.put(t)
    total, requires_grad, shape = answers.get(timeout=60)
    assert t.is_shared() and not requires_grad and shape == (2, 2)
    assert total == t.sum().item() == 2 * (1 + 2 + 4 + 5)
    queue.put(None)
    process.join(60)
    assert process.exitcode == 0
    with pytest.raises(RuntimeError, match="Cowardly"):
        torch.multiprocessing.reductions.reduce_tensor(torch.ones(2, requires_grad=True) * 2)


def _work(i, kind):
    if i == 1 and kind == "raise":
        raise ValueError("from the worker")
    if i == 1 and kind == "exit":
        os._exit(7)
    if i == 1 and kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("kind", ["none", "raise", "exit", "kill"])
def test_spawn(kind):
    mp = torch.multiprocessing
    if kind == "none":
        mp.spawn(_work, args=(kind,), nprocs=2)
        return
    error = {
        "raise": (mp.ProcessRaisedException, "from the worker"),
        "exit": (mp.ProcessExitedException, "process 1 terminated with exit code 7"),
        "kill": (mp.ProcessExitedException, "terminated with signal SIGKILL"),
    }[kind]
    with pytest.raises(error[0], match=error[1]):
        mp.spawn(_work, args=(kind,), nprocs=2)


def _train(rank, folder, how):
    from rushlight import distributed as dist

    dist.init_process_group("gloo", f"file://{folder}/{how}", rank=rank, world_size=3)
    dist.barrier()
    if rank == 1:
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "late":
            dist.destroy_process_group()
            time.sleep(1)
        raise ValueError("what went wrong")
    try:
        dist.all_reduce(torch.ones(1))
    except RuntimeError as error:
        raise KeyError("no training") from error


@pytest.mark.skipif(
    not torch.distributed.is_gloo_available(),
    reason="built without Gloo",
)
@pytest.mark.parametrize("how", ["raise", "late", "kill"])
def test_spawn_raises_what_went_wrong(how, tmp_path):
    """Not that the others have lost the rank that failed, which they may notice first."""
    mp = torch.multiprocessing
    with pytest.raises((mp.ProcessRaisedException, mp.ProcessExitedException)) as caught:
        mp.spawn(_train, args=(str(tmp_path), how), nprocs=3)
    assert caught.value.error_index == 1
    said = "signal SIGKILL" if how == "kill" else "ValueError: what went wrong"
    assert said in str(caught.value)
