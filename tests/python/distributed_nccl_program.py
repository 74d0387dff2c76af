"""What the tests of the engine nccl run: `python -m tests.python.distributed_nccl_program CASE RANKS`.

A case is a function here, or MODULE.FUNCTION of other tests' workers and its arguments. `rushlight` is the package with the device of tests/fake_gpu there.
"""

import importlib
import os
import sys
import tempfile
import time
from datetime import timedelta

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn

from . import distributed_workers as workers


def reductions(rank):
    """What the tests of gloo do, in NCCL's dtypes."""
    dtypes = [t for t in workers.DTYPES if t != torch.int16]
    workers.reductions(rank, dtypes, bits=False, sparse=False)
    expect = workers.expect
    t = torch.ones(3, dtype=torch.int16)
    expect("Unconvertible NCCL type", ValueError, dist.all_reduce, t)
    dist.broadcast(t, 0)  # what is only moved is of any dtype
    expect("AVG", TypeError, dist.all_reduce, torch.ones(2) > 0, dist.ReduceOp.AVG)
    expect("No backend type", RuntimeError, dist.all_reduce, torch.ones(2, device="cpu"))
    half = torch.full((3,), 2.0 + rank, dtype=torch.bfloat16)
    dist.all_reduce(half, dist._make_nccl_premul_sum(0.25))
    assert half[0].item() == 0.25 * sum(2.0 + r for r in range(dist.get_world_size()))


def movements(rank):
    """What the tests of gloo do, and lengths that differ."""
    workers.movements(rank)
    size = dist.get_world_size()
    parts = [torch.empty(r + 1) for r in range(size)]
    dist.all_gather(parts, torch.full((rank + 1,), float(rank)))
    assert [p.tolist() for p in parts] == [[float(r)] * (r + 1) for r in range(size)]
    own = torch.empty(rank + 1)
    dist.reduce_scatter(own, [torch.full((r + 1,), float(r)) for r in range(size)])
    assert own.tolist() == [float(rank * size)] * (rank + 1)
    strided = torch.arange(24.0).reshape(4, 6)[:, ::2] + rank
    outs = [torch.zeros(4, 6)[:, ::2] for _ in range(size)]
    dist.all_gather(outs, strided)
    assert all(torch.equal(o, strided - rank + r) for r, o in enumerate(outs))


def messages(rank):
    """From one to one, and objects."""
    workers.messages(rank, from_anybody=False)
    other = 1 - rank
    if rank < 2:  # both send before they receive
        ops = [
            dist.P2POp(dist.isend, torch.full((300_000,), float(rank)), other),
            dist.P2POp(dist.irecv, got := torch.empty(300_000), other),
        ]
        pair = dist.new_group([0, 1])
        with dist._coalescing_manager(group=pair) as works:
            for op in ops:
                op.op(op.tensor, op.peer, pair)
        assert len(works.works) == 1 and (got == other).all()
        if rank == 0:
            dist.send_object_list([{"a": 1}], 1, use_batch=True)
        else:
            dist.recv_object_list(got := [None], 0, use_batch=True)
            assert got == [{"a": 1}]
    else:
        dist.new_group([0, 1])


def streams(rank):
    """Who waits for a work sees its end; the host does not wait, but for barriers."""
    size = dist.get_world_size()
    if rank == 0:
        time.sleep(0.3)
    t = torch.full((100_000,), float(rank + 1))
    start = time.monotonic()
    work = dist.all_reduce(t, async_op=True)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        work.wait()
        copy = torch.empty(100_000)
        copy.copy_(t)  # queued behind the work
    if rank != 0 and time.monotonic() - start < 0.1:
        assert not work.is_completed()
    side.synchronize()
    assert (copy == size * (size + 1) / 2).all()
    later = work.get_future().then(lambda f: f.value()[0] / size)
    assert torch.equal(later.wait(), t / size)
    with dist._coalescing_manager(async_ops=True) as manager:
        ts = [torch.ones(3) * i for i in range(4)]
        for t in ts:
            dist.all_reduce(t)
    assert len(manager.works) == 1
    manager.wait()
    assert [t[0].item() for t in ts] == [float(size * i) for i in range(4)]
    if dist.is_gloo_available():  # tensors of GPUs through memory
        slow = dist.new_group(backend="gloo")
        t = torch.ones(3) * rank
        dist.all_reduce(t, group=slow)
        parts = [torch.empty(3) for _ in range(size)]
        dist.all_gather(parts, t + rank, group=slow)
        assert [p[0].item() for p in parts] == [1.0 + r for r in range(size)]
        assert parts[0].is_cuda and t.tolist() == [1.0] * 3
    dist.barrier(device_ids=[rank])
    assert dist.get_backend() == "nccl" and dist.is_nccl_available()
    both = dist.new_group(backend="cpu:gloo,cuda:nccl") if dist.is_gloo_available() else None
    if both is not None:
        for device in ("cpu", "cuda"):
            t = torch.ones(2, device=device)
            dist.all_reduce(t, group=both)
            assert t.tolist() == [float(size)] * 2 and t.device.type == device
    eager = dist.new_group(device_id=torch.device("cuda", rank))
    dist.barrier(eager)
    dist.destroy_process_group(eager)
    workers.expect("shut down", RuntimeError, eager.barrier)


def training(rank):
    """DistributedDataParallel and fully_shard give what one process gives."""
    size = dist.get_world_size()

    def train(model, part):
        step = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        g = torch.Generator().manual_seed(3)
        for _ in range(4):
            x = torch.randn(4 * size, 20, generator=g, device="cpu").cuda()[part]
            step.zero_grad()
            model(x).square().mean().backward()
            step.step()
        return [p.detach() for p in model.parameters()]

    def make():
        torch.manual_seed(1)
        with torch.device("cpu"):
            layers = nn.Linear(20, 300), nn.Tanh(), nn.Linear(300, 64), nn.Linear(64, 8)
        return nn.Sequential(*layers).cuda()

    alone = train(make(), slice(None))
    mine = slice(4 * rank, 4 * (rank + 1))
    for options in ({}, {"find_unused_parameters": True}, {"static_graph": True}):
        wrapped = nn.parallel.DistributedDataParallel(make(), device_ids=[rank], **options)
        for a, b in zip(alone, train(wrapped, mine), strict=True):
            torch.testing.assert_close(a, b)
    compressed = nn.parallel.DistributedDataParallel(make())
    from rushlight.distributed.algorithms.ddp_comm_hooks import default_hooks as hooks

    compressed.register_comm_hook(None, hooks.bf16_compress_hook)
    for a, b in zip(alone, train(compressed, mine), strict=True):
        torch.testing.assert_close(a, b, atol=0.02, rtol=0.02)
    sharded = make()
    for layer in (sharded[0], sharded[2]):
        dist.fsdp.fully_shard(layer)
    dist.fsdp.fully_shard(sharded)
    for a, b in zip(alone, train(sharded, mine), strict=True):
        assert b.device_mesh.device_type == "cuda"
        torch.testing.assert_close(a, b.full_tensor())


def late(rank):
    """Whoever does not come is named, and whoever waits is told."""
    slow = dist.new_group(timeout=timedelta(milliseconds=500))
    t = torch.ones(3)
    dist.all_reduce(t, group=slow)
    dist.barrier(slow)
    if rank == 0:
        work = dist.all_reduce(t, group=slow, async_op=True)
        expected = "all_reduce did not end within 500 ms on rank 0: rank 1 has not come to it"
        workers.expect(expected, dist.DistBackendError, work.wait, timedelta(seconds=20))
        assert "call 3 of the group; it is at 2 all_reduce" in str(work.exception())
        workers.expect(expected, dist.DistBackendError, dist.all_reduce, t, group=slow)
    else:
        time.sleep(4)
    dist.barrier()
    pair = dist.new_group(timeout=timedelta(milliseconds=300))
    if rank == 0:
        workers.expect("NCCL error", RuntimeError, _receive, t, pair)
    else:
        dist.isend(torch.ones(5), 0, group=pair)  # too long for the one that awaits it


def _receive(t, group):
    dist.irecv(t, 1, group=group).wait(timedelta(seconds=20))


def mismatch(rank):
    """Lengths that differ are an error of NCCL's."""
    group = dist.new_group(timeout=timedelta(seconds=5))

    def call():
        work = dist.all_reduce(torch.ones(2 + rank), group=group, async_op=True)
        work.wait(timedelta(seconds=20))

    workers.expect("NCCL error: invalid usage", RuntimeError, call)


def ends(rank):
    """Without a word of the environment a process ends where a collective fails."""
    slow = dist.new_group(timeout=timedelta(milliseconds=300))
    dist.all_reduce(torch.ones(3), group=slow)
    if rank == 0:
        dist.all_reduce(torch.ones(3), group=slow)
        time.sleep(20)
        print("it went on", flush=True)
    else:
        time.sleep(3)
        os._exit(0)


if __name__ == "__main__":
    case, ranks = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        # By its module's name, so that the processes find it.
        name, _, case = case.rpartition(".")
        module = importlib.import_module(f"tests.python.{name or 'distributed_nccl_program'}")
        arguments = [eval(text) for text in sys.argv[3:]]
        workers.run(getattr(module, case), ranks, folder, *arguments, backend="nccl")
    print("all is done", flush=True)
