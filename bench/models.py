"""Whole networks beside PyTorch: `python -m bench.models [--only TEXT] [--threads N] [--quick]`.

Each network of `bench/networks` runs on one input, on eight, and trains on eight, with weights and
inputs that are the same for both modules. Two processes, one for each module, run in turns; a row
gives the least time of a call in each and their ratio: below 1 rushlight is faster. Results are
compared. On one thread the time is that of the processor, which other programs disturb least.

`--only tv_` runs networks of `rushlight.vision` beside torchvision's, where it is installed.
`--profile NETWORK` shows, by op, where the time of its rows goes in both modules.
"""

from __future__ import annotations

import argparse
import importlib
import math
import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.networks import images, sequences


def pictures(size):
    """Images of normal noise."""
    return lambda rng, batch: (rng.standard_normal((batch, 3, size, size), np.float32),)


def labels(*shape, high=1000):
    """Random integers below `high`."""
    return lambda rng, batch: (rng.integers(0, high, (batch, *shape)),)


def together(*makers):
    """What all of them make."""
    return lambda rng, batch: tuple(x for make in makers for x in make(rng, batch))


def lengths(low, high):
    """Lengths of sequences, the first one the longest."""

    def make(rng, batch):
        found = rng.integers(low, high, batch)
        found[0] = high
        return (found,)

    return make


def noise(*shape):
    """Normal noise."""
    return lambda rng, batch: (rng.standard_normal((batch, *shape), np.float32),)


def cross_entropy(torch, output, target):
    """Over the last dimension of sequences, over the second one of images."""
    if output.dim() == 3:
        output, target = output.flatten(0, 1), target.flatten()
    return torch.nn.functional.cross_entropy(output, target)


def squares(torch, output, target):
    return torch.nn.functional.mse_loss(output, target)


def focal_and_boxes(torch, output, target):
    """Every place against one class or none, and the sides of those with one."""
    scores, sides = output
    known = torch.nn.functional.one_hot(target % 20, 20).float() * (target < 20)[..., None]
    probability = scores.sigmoid()
    entropy = torch.nn.functional.binary_cross_entropy_with_logits(scores, known, reduction="none")
    focus = (known - probability).abs() ** 2
    found = sides[target < 20]
    return (focus * entropy).mean() + torch.nn.functional.smooth_l1_loss(
        found, torch.ones_like(found)
    )


def ctc(torch, output, target):
    batch, steps, _ = output.shape
    return torch.nn.functional.ctc_loss(
        output.transpose(0, 1),
        target,
        torch.full((batch,), steps),
        torch.full((batch,), target.shape[1]),
    )


def of_package(name):
    """A network of torchvision, or of the package that does its job."""

    def make(torch):
        if torch.__name__ == "torch":
            from tests.parity import torchvision as oracle

            return oracle.load().models.get_model(name)
        return importlib.import_module(f"{torch.__name__}.vision").models.get_model(name)

    return make


@dataclass(frozen=True)
class Network:
    """How to make a network, what it takes, and how it learns."""

    make: Callable
    inputs: Callable
    targets: Callable
    loss: Callable = cross_entropy


NETWORKS = {
    "resnet50": Network(images.resnet50, pictures(128), labels()),
    "regnet": Network(images.regnet, pictures(160), labels()),
    "mobilenet_v3": Network(images.mobilenet_v3, pictures(160), labels()),
    "efficientnet": Network(images.efficientnet, pictures(160), labels()),
    "convnext": Network(images.convnext, pictures(160), labels()),
    "densenet121": Network(images.densenet121, pictures(96), labels()),
    "vit": Network(images.vit, pictures(160), labels()),
    "swin": Network(images.swin, pictures(224), labels()),
    "unet": Network(images.unet, pictures(96), labels(96, 96, high=4)),
    "diffusion": Network(
        images.diffusion, together(noise(4, 32, 32), noise()), noise(4, 32, 32), squares
    ),
    "detector": Network(images.detector, pictures(128), labels(1344, high=25), focal_and_boxes),
    "bert": Network(sequences.bert, together(labels(96), lengths(48, 96)), labels(96, high=8000)),
    "llama": Network(sequences.llama, labels(48), labels(48, high=4000)),
    "t5": Network(sequences.t5, together(labels(48), labels(32)), labels(32, high=4000)),
    "speech": Network(sequences.speech, noise(8000), labels(8, high=31), ctc),
    "tagger": Network(sequences.tagger, together(labels(40), lengths(10, 40)), labels(40, high=20)),
}
PACKAGED = ("resnet50", "mobilenet_v3_large", "vit_b_16")
NETWORKS |= {f"tv_{name}": Network(of_package(name), pictures(224), labels()) for name in PACKAGED}
KINDS = ("1", "8", "train")
ROWS = [f"{name}/{kind}" for name in NETWORKS for kind in KINDS]


def fill(torch, net, rng):
    """Weights that keep sums of squares about as they are, norms near 1."""
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            shape = tuple(parameter.shape)
            values = rng.standard_normal(shape, np.float32)
            if len(shape) > 1:
                values *= math.sqrt(1.5 / math.prod(shape[1:]))
            else:
                values = values * 0.1 + (0 if "bias" in name else 1)
            parameter.copy_(torch.from_numpy(values.astype(np.float32)))


def work_of(torch, row):
    """A row's call that is to be timed, and one that gives what is to be compared, as arrays."""
    name, kind = row.split("/")
    network = NETWORKS[name]
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    net = network.make(torch)
    fill(torch, net, rng)
    batch = 1 if kind == "1" else 8
    inputs = [torch.from_numpy(x) for x in network.inputs(rng, batch)]
    if kind != "train":
        net.eval()
        answer = getattr(net, "answer", net)

        def infer():
            with torch.inference_mode():
                found = answer(*inputs)
            return found if isinstance(found, tuple) else (found,)

        return infer, lambda: [x.numpy() for x in infer()]
    targets = [torch.from_numpy(x) for x in network.targets(rng, batch)]
    parameters = list(net.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-5)

    def train():
        optimizer.zero_grad()
        loss = network.loss(torch, net(*inputs), *targets)
        loss.backward()
        optimizer.step()
        return loss.item()

    def learned():
        loss = train()
        norms = [p.grad.norm().item() for p in parameters if p.grad is not None]
        return [np.array(loss), np.array(norms)]

    return train, learned


def seconds(work, least, clock):
    """The least time of a call, of as many as fit into a time."""
    best = math.inf
    end = time.perf_counter() + least
    while True:
        start = clock()
        work()
        best = min(best, clock() - start)
        if time.perf_counter() >= end:
            return best


def table_by_op(torch, work, calls):
    """Milliseconds in each op without those inside of it, of the best of some calls; how many."""
    times, counts = {}, {}
    for _ in range(calls):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:
            work()
        for e in p.key_averages():
            counts[e.key] = e.count
            times[e.key] = min(times.get(e.key, math.inf), e.self_cpu_time_total / 1e3)
    return [(key, times[key], counts[key]) for key in sorted(times, key=times.get, reverse=True)]


def serve(connection, module, threads):
    """A process that builds, times and profiles rows of one module."""
    torch = importlib.import_module(module)
    torch.set_num_threads(threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    work = None
    while True:
        order, *arguments = connection.recv()
        if order == "stop":
            return
        try:
            if order == "build":
                work, compared = work_of(torch, *arguments)
                reply = compared()
            elif order == "time":
                reply = seconds(work, *arguments, clock)
            else:
                reply = table_by_op(torch, work, *arguments)
        except Exception as error:
            reply = error
        connection.send(reply)


class Worker:
    """One module in a process of its own."""

    def __init__(self, module, threads):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, module, threads), daemon=True)
        self.process.start()

    def ask(self, *order):
        self.connection.send(order)
        reply = self.connection.recv()
        if isinstance(reply, Exception):
            raise reply
        return reply

    def stop(self):
        self.connection.send(("stop",))
        self.process.join()


def disagreement(mine, theirs, tolerance=5e-3):
    """What is wrong where results differ by more than rounding explains, or nothing."""
    for a, b in zip(mine, theirs, strict=True):
        if a.shape != b.shape:
            return f"shapes {a.shape} and {b.shape}"
        scale = np.abs(b).max()
        error = np.abs(a - b).max() / scale if scale > 0 else np.abs(a).max()
        if not error <= tolerance:
            return f"results differ by {error:.1e} of the largest"
    return ""


def compare(row, workers, rounds, least):
    """Prints a line; gives the ratio, or None where results differ."""
    results = [w.ask("build", row) for w in workers]
    wrong = disagreement(*results)
    best = [math.inf, math.inf]
    for i in range(rounds):
        for k in (0, 1) if i % 2 == 0 else (1, 0):
            best[k] = min(best[k], workers[k].ask("time", least))
    ratio = best[0] / best[1]
    print(
        f"{row:22}{best[0] * 1e3:10.2f} ms{best[1] * 1e3:10.2f} ms{ratio:8.2f}  {wrong}", flush=True
    )
    return None if wrong else ratio


def profile(row, workers, modules, lines):
    """Prints both modules' ops side by side."""
    columns = []
    for worker in workers:
        worker.ask("build", row)
        columns.append(worker.ask("profile", 8))
    print(f"\n{row}: milliseconds, calls, op; {modules[0]} and {modules[1]}")
    totals = [sum(r[1] for r in c) for c in columns]
    print(f"{totals[0]:9.3f} in all{'':48}{totals[1]:9.3f} in all")
    for i in range(lines):
        cells = [
            f"{c[i][1]:9.3f} {c[i][2]:6.0f} {c[i][0][:44]}" if i < len(c) else "" for c in columns
        ]
        print(f"{cells[0]:64}{cells[1]}")


def main():
    """Reads the options and goes through the rows."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.models",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--module", default="rushlight")
    parser.add_argument("--against", default="torch", help="another module with the same API")
    parser.add_argument(
        "--only", default="", help="rows that begin with one of these texts, by comma"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few short rounds")
    parser.add_argument("--profile", metavar="NETWORK", help="time by op instead of the whole")
    parser.add_argument("--lines", type=int, default=20, help="of a profile")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    texts = (options.profile or options.only).split(",")
    rows = [row for row in ROWS if row.startswith(tuple(texts))]
    if texts == [""]:
        rows = [row for row in rows if not row.startswith("tv_")]
    modules = (options.module, options.against)
    workers = [Worker(module, options.threads) for module in modules]
    if options.profile:
        for row in rows:
            profile(row, workers, modules, options.lines)
    else:
        print(f"{'':22}{modules[0]:>13}{modules[1]:>13}   ratio")
        rounds, least = (3, 0.1) if options.quick else (8, 0.5)
        ratios = [r for row in rows if (r := compare(row, workers, rounds, least)) is not None]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{len(ratios)} of {len(rows)} rows agree; geometric mean {mean:.2f}, ", end="")
            print(f"worst {max(ratios):.2f}")
    for worker in workers:
        worker.stop()


if __name__ == "__main__":
    main()
