"""Collectives beside PyTorch's over links of a known rate: a network namespace for each process.

    sudo python -m bench.distributed --torch FOLDER         # PyTorch's package lies in FOLDER
    sudo python -m bench.distributed --what ddp --ranks 2

Each process has a link of its own to a bridge, and `tc tbf` limits what it sends. Both packages run
in turns over the same links; a row has the medians of `--rounds` runs and, for all_reduce, what the
links allow: 2 (n - 1) / n of the bytes at their rate. With `--mpi` rushlight runs on MPI, too
(MPICH by UCX, all of it over the links).

what        allreduce: 4 B to 64 MB; ddp: a step of ResNet-18 on 8 pictures; fsdp: one of an encoder
            whose layers `fully_shard` spreads; start: from the first process's start to the end of
            all, after a barrier
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

SIZES = [4 << (2 * i) for i in range(13)]  # 4 B to 64 MB
NET = "10.77.0"


def sh(text, check=True):
    return subprocess.run(text.split(), check=check, capture_output=True)


@contextlib.contextmanager
def namespaces(count, gigabits):
    """`count` namespaces rlN whose eth0 sends at most so much; without a rate, none at all."""
    if not gigabits:
        yield [[] for _ in range(count)]
        return
    clear(count)
    try:
        sh("ip link add rlbridge type bridge")
        sh("ip link set rlbridge up")
        for i in range(count):
            sh(f"ip netns add rl{i}")
            sh(f"ip link add rlv{i} type veth peer name eth0 netns rl{i}")
            sh(f"ip link set rlv{i} master rlbridge up")
            inside = f"ip netns exec rl{i} "
            sh(inside + "ip link set lo up")
            sh(inside + f"ip addr add {NET}.{i + 1}/24 dev eth0")
            sh(inside + "ip link set eth0 up")
            rate = f"rate {gigabits}gbit burst 512kb latency 10ms"
            sh(inside + f"tc qdisc add dev eth0 root tbf {rate}")
        yield [f"ip netns exec rl{i}".split() for i in range(count)]
    finally:
        clear(count)


def clear(count):
    for i in range(count):
        sh(f"ip netns del rl{i}", check=False)
        sh(f"ip link del rlv{i}", check=False)
    sh("ip link del rlbridge", check=False)


def run(module, backend, what, ranks, inside, paths, port, pixels):
    """What rank 0 of so many processes prints, and the seconds from the first start to the end."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
    if inside[0]:
        environment["GLOO_SOCKET_IFNAME"] = environment["UCX_NET_DEVICES"] = "eth0"
        environment.update(MPIR_CVAR_NOLOCAL="1", UCX_TLS="tcp,self", UCX_RNDV_THRESH="inf")
    address = environment["MASTER_ADDR"] = f"{NET}.1" if inside[0] else "127.0.0.1"

    def worker(rank):
        words = json.dumps([module, backend, what, rank, ranks, address, port, pixels])
        return [*inside[rank], sys.executable, __file__, "--worker", words]

    commands = [worker(r) for r in range(ranks)]
    if backend == "mpi":  # each process becomes the worker of its rank
        choose = f"import os; c = {commands}[int(os.environ['PMI_RANK'])]; os.execvp(c[0], c)"
        mpirun = str(Path(sys.executable).parent / "mpirun")
        commands = [[mpirun, "-n", str(ranks), sys.executable, "-c", choose]]
    begin = time.perf_counter()
    processes = [
        subprocess.Popen(c, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for c in commands
    ]
    outputs = [p.communicate(timeout=300) for p in processes]
    spent = time.perf_counter() - begin
    for p, (_, error) in zip(processes, outputs, strict=True):
        if p.returncode:
            raise SystemExit(f"{module}, {backend}: a process failed: {error.decode()[-2000:]}")
    return json.loads(outputs[0][0]), spent


# ---- in the processes ----


def work(module, backend, what, rank, ranks, address, port, pixels):
    """One process; rank 0 prints seconds by row."""
    torch = __import__(module)
    dist = __import__(f"{module}.distributed").distributed
    torch.set_num_threads(1)
    dist.init_process_group(
        backend, init_method=f"tcp://{address}:{port}", rank=rank, world_size=ranks
    )
    rows = {
        "allreduce": lambda: all_reduces(torch, dist),
        "ddp": lambda: steps(torch, dist, pixels),
        "fsdp": lambda: sharded_steps(torch, dist),
        "start": lambda: met(dist),
    }[what]()
    dist.barrier()
    if rank == 0:
        print(json.dumps(rows))
    dist.destroy_process_group()


def met(dist):
    dist.barrier()
    return {}


def timed(dist, function, count):
    times = []
    for _ in range(count):
        dist.barrier()
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def all_reduces(torch, dist):
    rows = {}
    for size in SIZES:
        t = torch.ones(size // 4)
        dist.all_reduce(t)
        rows[str(size)] = timed(dist, lambda t=t: dist.all_reduce(t), 21 if size < 1 << 20 else 5)
    return rows


def resnet18(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, a, b, stride):
            super().__init__()
            self.main = nn.Sequential(
                nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(),
                nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b),
            )  # fmt: skip
            short = nn.Conv2d(a, b, 1, stride, bias=False)
            self.short = nn.Identity() if a == b else nn.Sequential(short, nn.BatchNorm2d(b))

        def forward(self, x):
            return torch.relu(self.main(x) + self.short(x))

    layers = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    for a, b in ((64, 64), (64, 128), (128, 256), (256, 512)):
        layers += [Block(a, b, 1 if a == b else 2), Block(b, b, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def sharded_steps(torch, dist):
    fully_shard = __import__(f"{torch.__name__}.distributed.fsdp").distributed.fsdp.fully_shard
    torch.manual_seed(0)
    layers = [
        torch.nn.TransformerEncoderLayer(256, 8, 1024, 0.0, batch_first=True) for _ in range(6)
    ]
    model = torch.nn.Sequential(*layers)
    for layer in layers:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    x = torch.randn(8, 128, 256)

    def step():
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(3):
        step()
    return {"step": timed(dist, step, 9)}


def steps(torch, dist, pixels):
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(resnet18(torch))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    x, y = torch.randn(8, 3, pixels, pixels), torch.randint(0, 1000, (8,))

    def step(sync=True):
        with contextlib.nullcontext() if sync else model.no_sync():
            torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(3):
        step()
    return {
        "step": timed(dist, step, 9),
        "step without gradients sent": timed(dist, lambda: step(False), 9),
    }


# ---- the table ----


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--what", choices=["allreduce", "ddp", "fsdp", "start"], default="allreduce"
    )
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument(
        "--gigabits",
        type=float,
        default=1,
        help="of each link; 0: the loopback interface, no namespaces",
    )
    parser.add_argument("--pixels", type=int, default=64, help="of a side of ddp's pictures")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mpi", action="store_true", help="with rushlight on MPI as well")
    parser.add_argument("--torch", default="build/parity", help="the folder that PyTorch lies in")
    arguments = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    folders = {"rushlight": root / "python", "torch": Path(arguments.torch).resolve()}
    sides = {"rushlight": ("rushlight", "gloo"), "PyTorch": ("torch", "gloo")}
    if arguments.mpi:
        sides["rushlight on MPI"] = ("rushlight", "mpi")
    found = {side: [] for side in sides}
    port = 29700
    with namespaces(arguments.ranks, arguments.gigabits) as inside:
        for _ in range(arguments.rounds):
            for side, (module, backend) in sides.items():
                port += 1
                rows, spent = run(
                    module,
                    backend,
                    arguments.what,
                    arguments.ranks,
                    inside,
                    [str(folders[module])],
                    port,
                    arguments.pixels,
                )
                found[side].append(rows if arguments.what != "start" else {"start": spent})
    print(f"{arguments.ranks} processes, {arguments.gigabits:g} Gbit/s, milliseconds")
    for row in found["rushlight"][0]:
        times = {side: statistics.median(r[row] for r in found[side]) * 1e3 for side in sides}
        line = f"{row:>28}" + "".join(f"  {side} {ms:9.2f}" for side, ms in times.items())
        line += f"  ratio {times['rushlight'] / times['PyTorch']:.2f}"
        if arguments.what == "allreduce" and arguments.gigabits:
            n = arguments.ranks
            line += f"  limit {2 * (n - 1) / n * int(row) * 8 / arguments.gigabits / 1e6:9.2f}"
        print(line)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(*json.loads(sys.argv[2]))
    else:
        main()
