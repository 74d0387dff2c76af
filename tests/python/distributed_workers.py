"""What the processes of the tests of `distributed` do."""

import faulthandler
import os
from datetime import timedelta

import pytest

import rushlight as torch
from rushlight import distributed as dist


def run(function, ranks, folder, *args, backend="gloo"):
    """Call `function(rank, *args)` in processes that are one group; errors are raised here."""
    torch.multiprocessing.spawn(
        _start, (function, ranks, str(folder), backend, *args), ranks, daemon=True
    )


def _start(rank, function, ranks, folder, backend, *args):
    faulthandler.dump_traceback_later(50, exit=True)
    torch.set_num_threads(1)
    store = f"file://{folder}/{function.__name__}"
    dist.init_process_group(
        backend, init_method=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=30)
    )
    if backend == "nccl":
        torch.cuda.set_device(rank)
        torch.set_default_device("cuda")
    function(rank, *args)
    if dist.is_initialized():
        dist.destroy_process_group()


def expect(what, kind, function, *args, **kwargs):
    """`function` raises `kind` with `what` in its message."""
    try:
        function(*args, **kwargs)
    except kind as error:
        assert what in str(error), str(error)
    else:
        raise AssertionError(f"{kind.__name__} was not raised: {what}")


DTYPES = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
]


def numbers(rank, count, dtype):
    """What a rank has."""
    g = torch.Generator().manual_seed(rank)
    return here(torch.randint(0, 5, (count,), generator=g, device="cpu").to(dtype))


def device_type():
    """The type of device of this process's tensors."""
    return torch.get_default_device().type


def here(t):
    """A tensor where this process's tensors lie."""
    return t.to(torch.get_default_device())


def reductions(rank, dtypes=DTYPES, bits=True, sparse=True):
    """Every reduction of every dtype, small and in several pieces."""
    size = dist.get_world_size()
    ops = {
        "SUM": lambda a, b: a + b,
        "PRODUCT": lambda a, b: a * b,
        "MIN": torch.minimum,
        "MAX": torch.maximum,
        "BAND": lambda a, b: a & b,
        "BOR": lambda a, b: a | b,
        "BXOR": lambda a, b: a ^ b,
    }
    for dtype in dtypes:
        for count in (0, 1, 257, 700_000):
            parts = [numbers(r, count, dtype) for r in range(size)]
            for name, op in ops.items():
                if name.startswith("B") and (dtype.is_floating_point or not bits):
                    continue
                if count > 1000 and name not in ("SUM", "MAX"):
                    continue
                want = parts[0]
                for part in parts[1:]:
                    want = op(want, part)
                got = parts[rank].clone()
                dist.all_reduce(got, getattr(dist.ReduceOp, name))
                assert torch.equal(got, want), (dtype, count, name)
                got = parts[rank].clone()
                dist.reduce(got, size - 1, getattr(dist.ReduceOp, name))
                assert torch.equal(got, want if rank == size - 1 else parts[rank])
            own = torch.empty(count, dtype=dtype)
            many = torch.cat([parts[rank]] * size)
            dist.reduce_scatter_tensor(own, many)
            assert torch.equal(own, sum(parts[1:], parts[0]))
    pairs = [torch.tensor([rank + 1j * i]) for i in range(size)]
    for scatter, given in (
        (dist.reduce_scatter, pairs),
        (dist.reduce_scatter_tensor, torch.cat(pairs)),
    ):
        own = torch.empty(1, dtype=torch.complex64)
        scatter(own, given)
        assert own.item() == sum(range(size)) + 1j * rank * size
        with pytest.raises(ValueError, match="complex"):
            scatter(own, given, dist.ReduceOp.PRODUCT)
    truth = torch.tensor([rank == 0, True, False])
    dist.all_reduce(truth)
    assert truth.tolist() == [True, True, False]
    mean = torch.tensor([float(rank), 2.0])
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    assert mean.tolist() == [(size - 1) / 2, 2.0]
    scaled = torch.tensor([1.0 + rank])
    dist.all_reduce(scaled, dist._make_nccl_premul_sum(0.5))
    assert scaled.item() == 0.5 * size * (size + 1) / 2
    z = torch.tensor([complex(rank, 1)])
    dist.all_reduce(z)
    assert z.item() == complex(size * (size - 1) / 2, size)
    expect("complex", ValueError, dist.all_reduce, z, dist.ReduceOp.MAX)
    expect("BAND", Exception, dist.all_reduce, mean, dist.ReduceOp.BAND)
    # Sixteen-bit floats are summed in float32 and rounded once.
    half = torch.tensor([2048.0 if rank == 0 else 1.0], dtype=torch.float16)
    dist.all_reduce(half)
    assert half.item() == torch.tensor(2048.0 + size - 1).half().item()
    # In the order of ranks, however a tensor is cut.
    g = torch.Generator().manual_seed(rank)
    noise = here(torch.randn(300_000, generator=g, device="cpu")) * 10.0**rank
    whole, head = noise.clone(), noise[:100].clone()
    dist.all_reduce(whole)
    dist.all_reduce(head)
    assert torch.equal(whole[:100], head)
    strided = torch.zeros(4, 6)[:, ::2]
    strided += rank
    dist.all_reduce(strided)
    assert torch.equal(strided, torch.full((4, 3), size * (size - 1) / 2))
    if not sparse:
        return
    coo = torch.sparse_coo_tensor([[rank, 3]], [1.0, 2.0], (5,))
    dist.all_reduce(coo)
    assert coo.to_dense().tolist() == [float(r < size) for r in range(3)] + [2.0 * size, 0.0]


def movements(rank):
    """What moves and is not computed with."""
    size = dist.get_world_size()
    for dtype in (torch.float32, torch.bool, torch.bfloat16, torch.complex64):
        for count in (0, 3, 600_000):
            parts = [numbers(r, count, torch.int64).to(dtype) for r in range(size)]
            mine = parts[rank]
            for root in range(size):
                t = mine.clone()
                dist.broadcast(t, root)
                assert torch.equal(t, parts[root])
            out = [torch.empty_like(mine) for _ in range(size)]
            dist.all_gather(out, mine)
            assert all(map(torch.equal, out, parts))
            flat = torch.empty(count * size, dtype=dtype)
            dist.all_gather_into_tensor(flat, mine)
            assert torch.equal(flat, torch.cat(parts))
            here = rank == 1
            out = [torch.empty_like(mine) for _ in range(size)]
            dist.gather(mine, out if here else None, 1)
            assert not here or all(map(torch.equal, out, parts))
            t = torch.empty_like(mine)
            dist.scatter(t, parts if here else None, 1)
            assert torch.equal(t, mine)
            out = [torch.empty_like(mine) for _ in range(size)]
            dist.all_to_all(out, [mine] * size)
            assert all(map(torch.equal, out, parts))
    rows = torch.arange(size * (size + 1) // 2) + 100 * rank  # r + 1 rows for rank r
    out = torch.empty((rank + 1) * size, dtype=torch.int64)
    dist.all_to_all_single(out, rows, [rank + 1] * size, [r + 1 for r in range(size)])
    first = rank * (rank + 1) // 2
    want = [100 * r + first + i for r in range(size) for i in range(rank + 1)]
    assert out.tolist() == want
    columns = torch.arange(6).reshape(2, 3).t()
    t = columns.clone() if rank == 0 else torch.zeros(2, 3, dtype=torch.int64).t()
    dist.broadcast(t, 0)
    assert torch.equal(t, columns)


def messages(rank, from_anybody=True):
    """From one to one."""
    size = dist.get_world_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    got = torch.zeros(5)
    ops = [
        dist.P2POp(dist.isend, torch.full((5,), float(rank)), right, tag=7),
        dist.P2POp(dist.irecv, got, left, tag=7),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert got.tolist() == [float(left)] * 5
    if not from_anybody:
        expect("recvAnysource", RuntimeError, dist.recv, got)
    elif rank == 0:
        sources = {dist.recv(torch.zeros(2)) for _ in range(size - 1)}
        assert sources == set(range(1, size))
    else:
        dist.send(torch.ones(2), 0)
    expect("should not be the same as the rank", ValueError, dist.send, got, rank)
    everybody = [None] * size
    dist.all_gather_object(everybody, {"rank": rank, "text": "x" * rank})
    assert everybody == [{"rank": r, "text": "x" * r} for r in range(size)]
    objects = [rank, "x" * rank]
    dist.broadcast_object_list(objects, 1)
    assert objects == [1, "x"]
    mine = [None]
    dist.scatter_object_list(mine, list("abcdef"[:size]) if rank == 0 else None, 0)
    assert mine == ["abcdef"[rank]]
    dist.gather_object(rank, everybody if rank == 1 else None, 1)
    assert rank != 1 or everybody == list(range(size))
    if rank == 0:
        dist.send_object_list(["a", 1], 1)
    elif rank == 1:
        objects = [None, None]
        assert dist.recv_object_list(objects, 0) == 0 and objects == ["a", 1]


def groups(rank):
    """Groups, works, and a new beginning."""
    size = dist.get_world_size()
    assert dist.get_rank() == rank and dist.is_initialized()
    assert dist.get_backend() == "gloo" and dist.get_process_group_ranks() == list(range(size))
    some = dist.new_group([0, size - 1])
    if rank in (0, size - 1):
        t = torch.ones(3)
        dist.all_reduce(t, group=some)
        assert t.tolist() == [2.0] * 3 and dist.get_world_size(some) == 2
        assert dist.get_group_rank(some, size - 1) == 1 and dist.get_global_rank(some, 0) == 0
        dist.broadcast(t, size - 1, group=some)
    else:
        assert some == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(some) == -1
    mine, every = dist.new_subgroups(1)
    assert len(every) == size and dist.get_process_group_ranks(mine) == [rank]
    works = [dist.all_reduce(torch.full((4,), 1.0), async_op=True) for _ in range(50)]
    for work in works:
        assert work.wait() and work.is_completed() and work.is_success()
        assert work.result()[0].tolist() == [float(size)] * 4
    later = (
        dist.all_reduce(torch.ones(2), async_op=True)
        .get_future()
        .then(lambda f: f.value()[0] / size)
    )
    assert later.wait().tolist() == [1.0, 1.0]
    with dist._coalescing_manager():
        ts = [torch.ones(2) for _ in range(3)]
        for t in ts:
            dist.all_reduce(t)
    assert all(t.tolist() == [float(size)] * 2 for t in ts)
    dist.all_reduce_coalesced(ts)
    assert ts[2].tolist() == [float(size) ** 2] * 2
    expect("twice", ValueError, dist.init_process_group, "gloo")
    dist.monitored_barrier()
    path = dist.distributed_c10d._get_default_store()
    while hasattr(path, "underlying_store"):
        path = path.underlying_store
    path = path.path
    dist.destroy_process_group()
    assert not dist.is_initialized()
    dist.init_process_group(
        "cpu:gloo,cuda:nccl", init_method=f"file://{path}2", rank=rank, world_size=size
    )
    t = torch.ones(1)
    dist.all_reduce(t)
    assert t.item() == size
    assert dist.get_backend_config() == "cpu:gloo,cuda:nccl"


def wrong(rank):
    """What is refused before anything is sent, with PyTorch's kinds of errors."""
    t = torch.ones(4)
    expect("ReduceOp", TypeError, dist.all_reduce, t, "sum")
    expect("contiguous", ValueError, dist.all_to_all_single, t, torch.ones(4, 2)[:, 0])
    expect("Unknown backend type foo", AssertionError, dist.new_group, [0, 1], backend="foo")
    expect("group rank", ValueError, dist.broadcast, t)
    expect("same as the rank", ValueError, dist.send, t, rank)
    expect("different dtypes", ValueError, dist.all_gather, [t, t.double()], t)
    expect("output tensor size", RuntimeError, dist.all_gather_into_tensor, t[:3], t)
    parts = torch.empty(8)
    dist.all_gather_single(parts, t + rank)
    assert parts.tolist() == [1.0] * 4 + [2.0] * 4
    dist.reduce_scatter_single(t, parts)
    assert t.tolist() == [2.0 + 2 * rank] * 4
    group = dist.new_group()
    dist.barrier(group, timeout=timedelta(seconds=60))
    if rank == 0:
        soon = timedelta(milliseconds=200)
        expect("rank 1", RuntimeError, dist.barrier, group, timeout=soon)
    dist.barrier()


def missing(rank):
    """The barrier names who did not come."""
    if rank == 0:
        expect(
            "Ranks 1, 2 failed to pass monitoredBarrier in 200 ms",
            RuntimeError,
            dist.monitored_barrier,
            timeout=timedelta(milliseconds=200),
            wait_all_ranks=True,
        )
    dist.barrier()


def death(rank, folder):
    """A rank that ends is named on the others."""
    dist.barrier()
    if rank == 1:
        os._exit(0)
    if rank == 0:
        expect("lost rank 1", dist.DistBackendError, dist.recv, torch.ones(3), src=1)
    try:
        dist.all_reduce(torch.ones(100_000))
    except dist.DistBackendError as error:
        assert "lost rank 1" in str(error), str(error)
    else:
        raise AssertionError("nobody noticed")
    expect("failed", RuntimeError, dist.barrier)
    with open(f"{folder}/seen{rank}", "w"):
        pass


def late(rank):
    """Whoever waits longer than a group's timeout says for whom."""
    slow = dist.new_group(timeout=timedelta(milliseconds=300))
    if rank == 0:
        expect("rank 1", RuntimeError, dist.all_reduce, torch.ones(2), group=slow)
    dist.barrier()


def mismatch(rank):
    """Different shapes never meet: the time runs out, nothing is overwritten."""
    slow = dist.new_group(timeout=timedelta(milliseconds=300))
    expect("failed", RuntimeError, dist.all_reduce, torch.ones(2 + rank), group=slow)


def other_collective(rank):
    """Small messages of another collective are noticed at once."""
    group = dist.new_group()  # with a long timeout
    t = torch.ones(3)
    if rank == 0:
        expect("failed", RuntimeError, dist.all_reduce, t, group=group)
    else:
        expect("failed", RuntimeError, dist.reduce_scatter, t[:1], [t[:1], t[:1]], group=group)
    dist.barrier()


def in_turns(rank):
    """Collectives that wait and those that do not keep their order, whatever their lengths."""
    size = dist.get_world_size()
    g = torch.Generator().manual_seed(0)
    works = []
    for step in range(300):
        n = int(2 ** (15 * torch.rand(1, generator=g)).item())
        kind = int(torch.randint(0, 4, (1,), generator=g))
        waits = bool(torch.randint(0, 3, (1,), generator=g))
        t = torch.full((n,), float(rank + step), dtype=torch.float64)
        if kind == 0:
            got, want = t, sum(r + step for r in range(size))
            work = dist.all_reduce(t, async_op=not waits)
        elif kind == 1:
            got, want = t, step + step % size
            work = dist.broadcast(t, step % size, async_op=not waits)
        elif kind == 2:
            got = torch.empty(size * n, dtype=torch.float64)
            want = torch.arange(size).double().add(step).repeat_interleave(n)
            work = dist.all_gather_into_tensor(got, t, async_op=not waits)
        else:
            got, want = t[:0], 0
            work = dist.barrier(async_op=not waits)
        works.append((work, got, want))
        if waits or len(works) > 5:
            for work, got, want in works:
                if work is not None:
                    work.wait()
                assert bool((got == want).all()), (step, kind, n)
            works.clear()


def in_callbacks(rank):
    """What a callback of a collective asks of its group, and waits for, is done."""
    size = dist.get_world_size()

    def again(future):
        (value,) = future.value()
        dist.all_reduce(value)
        dist.all_reduce(value, async_op=True).wait()
        return value

    for n in (1, 5000):
        for _ in range(20):
            work = dist.all_reduce(torch.ones(n), async_op=True)
            assert work.get_future().then(again).wait()[0].item() == size**3


def ended_in_callbacks(rank):
    """A callback ends the group that calls it, which is over for all others then."""
    for asynchronous in (True, False):
        group = dist.new_group()
        work = dist.all_reduce(torch.ones(3), group=group, async_op=True)
        ended = work.get_future().then(lambda future, g=group: dist.destroy_process_group(g))
        if not asynchronous:
            dist.all_reduce(torch.ones(1))
        assert ended.wait() is None
        expect("destroyed", (RuntimeError, ValueError), dist.destroy_process_group, group)
    work = dist.barrier(async_op=True)
    assert work.get_future().then(lambda future: dist.destroy_process_group()).wait() is None
    assert not dist.is_initialized()


def pending(rank):
    """A process ends while something is under way."""
    if rank == 0:
        dist.barrier(async_op=True)
    dist.distributed_c10d._state.default_pg.abort()


def checked(rank):
    """With TORCH_DISTRIBUTED_DEBUG=DETAIL calls that differ are named on all ranks."""
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    group = dist.new_group(timeout=timedelta(seconds=5))
    for _ in range(3):
        t = torch.ones(2)
        dist.all_reduce(t, group=group)
        assert t.tolist() == [2.0, 2.0]
    tensor = torch.ones(3 if rank == 0 else 4)
    other = f"Rank {1 - rank} is running collective: CollectiveFingerPrint(SequenceNumber=3, OpType"
    expect(other, RuntimeError, dist.all_reduce, tensor, group=group)
    expect("[3]", RuntimeError, dist.all_reduce, tensor, group=group)
    if rank == 0:
        expect("=BROADCAST", RuntimeError, dist.all_reduce, t, group=group)
    else:
        expect("=ALLREDUCE", RuntimeError, dist.broadcast, t, 0, group=group)
    dist.barrier(group)
    assert dist.collective_utils.all_gather(lambda: rank, pg=group) == [0, 1]
    assert dist.collective_utils.broadcast(lambda: rank, rank=1, pg=group) == 1
    enforced, found = dist.collective_utils.all_gather_object_enforce_type, [None, None]
    enforced(group, found, rank)
    assert found == [0, 1]
    expect("index 1", TypeError, enforced, group, found, "a" if rank else 1)
    expect(
        "Rank 1 failed",
        RuntimeError,
        dist.collective_utils.all_gather,
        lambda: 1 // (1 - rank),
        pg=group,
    )
