"""What mpirun starts in the tests of the engine mpi: `python -m tests.python.distributed_mpi_program CASE`."""

import os
import sys
import warnings
from datetime import timedelta

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn

from . import distributed_workers as workers


def collectives(rank):
    """What the tests of gloo do, through MPI."""
    workers.reductions(rank)
    workers.movements(rank)
    workers.messages(rank)


def groups(rank):
    """Groups of some ranks, one by one and at once; objects; a beginning anew."""
    size = dist.get_world_size()
    assert dist.get_backend() == "mpi" and dist.is_backend_available("mpi")
    works = []
    for r in range(size):
        pair = dist.new_group(sorted({r, (r + 1) % size}))
        if pair is not dist.GroupMember.NON_GROUP_MEMBER:
            t = torch.full((50_000,), float(rank))
            works.append((dist.all_reduce(t, group=pair, async_op=True), t, r))
    for work, t, r in works:
        work.wait()
        assert (t == r + (r + 1) % size).all()
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank})
    assert [g["rank"] for g in gathered] == list(range(size))
    dist.destroy_process_group()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dist.init_process_group("mpi", rank=5, world_size=9)
    assert "assigned by the MPI runtime" in str(caught[0].message)
    assert dist.get_rank() == rank and dist.get_world_size() == size
    for _ in range(300):  # no communicator is left behind
        g = dist.new_group()
        dist.destroy_process_group(g)


def training(rank):
    """DistributedDataParallel gives what one process gives."""
    size = dist.get_world_size()

    def train(model, part):
        step = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        g = torch.Generator().manual_seed(3)
        for _ in range(5):
            x = torch.randn(4 * size, 20, generator=g)[part]
            step.zero_grad()
            model(x).square().mean().backward()
            step.step()
        return [p.detach() for p in model.parameters()]

    def make():
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(20, 300), nn.Tanh(), nn.Linear(300, 7))

    alone = train(make(), slice(None))
    together = train(nn.parallel.DistributedDataParallel(make()), slice(4 * rank, 4 * (rank + 1)))
    for a, b in zip(alone, together, strict=True):
        torch.testing.assert_close(a, b)


def faults(rank):
    """What goes wrong is said, and nothing hangs."""
    t = torch.zeros(3)
    if rank == 0:
        workers.expect("too large", ValueError, dist.send, t, 1, tag=2**31 - 1)
        dist.send(torch.zeros(2), 1, tag=4)
        dist.send(torch.zeros(5), 1, tag=5)
    elif rank == 1:
        workers.expect("8 bytes came where 12", RuntimeError, dist.recv, t, 0, tag=4)
        workers.expect("more than the 12 bytes", RuntimeError, dist.recv, t, 0, tag=5)
    dist.barrier()
    dropped = dist.irecv(torch.zeros(4), 1 - rank, tag=9) if rank < 2 else None
    del dropped  # its receive is taken back
    dist.barrier()
    if rank != 0:
        workers.expect(
            "lost rank 0", RuntimeError, dist.all_reduce, t, group=dist.new_group(), async_op=False
        )
    else:
        dist.new_group()
    print(f"rank {rank} has ended", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    case = sys.argv[1]
    seconds = 3 if case == "faults" else 60
    dist.init_process_group("mpi", timeout=timedelta(seconds=seconds))
    globals()[case](dist.get_rank())
    if case != "faults":
        dist.destroy_process_group()
        print(f"rank {os.environ.get('PMI_RANK', '')} is done", flush=True)
