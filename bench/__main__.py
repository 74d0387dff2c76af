"""What a call costs: `python -m bench [--module M] [--against torch] [--only TEXT]`.

Each row is an expression on tensors so small that the arithmetic is free, or on large ones where
only the kernel counts. The time is the least of several repeats, since other programs only ever add
to it. With `--against`, both modules run in turns in processes of their own, and the last column is
the ratio: below 1 the first one is faster.
"""

import argparse
import importlib
import json
import math
import subprocess
import sys
import timeit

SETUP = """
F = torch.nn.functional
a, b, v, m = torch.rand(1), torch.rand(1), torch.rand(4), torch.rand(4, 4)
ga, gm = torch.rand(1).requires_grad_(), torch.rand(4, 4).requires_grad_()
i = torch.tensor([0, 1, 2])
net, x = torch.nn.Linear(4, 4), torch.rand(1, 4)
big, wide = torch.rand(1_000_000), torch.rand(512, 512)
image, kernel = torch.rand(8, 64, 56, 56), torch.rand(64, 64, 3, 3)
"""
TINY = [
    *(
        "a + b",
        "a + 1.0",
        "a * b",
        "torch.add(a, b)",
        "a == b",
        "torch.relu(v)",
        "v.exp()",
        "m - v",
        "m @ m",
    ),
    *("ga + b", "ga * ga", "gm @ m", "((ga + b) * ga - b) / ga + b", "F.linear(m, m, v)", "net(x)"),
    *(
        "m.view(16)",
        "gm.view(16)",
        "m.reshape(2, 8)",
        "m.t()",
        "m[1]",
        "m[1, 2]",
        "m[:, 1:3]",
        "v[None]",
        "m[i]",
    ),
    *(
        "m.sum()",
        "gm.sum()",
        "m.mean(0)",
        "v.argmax()",
        "v.softmax(0)",
        "torch.cat((v, v))",
        "torch.stack((v, v))",
    ),
    *("a.item()", "m.shape", "m.clone()", "ga.detach()", "m.to(torch.int64)", "m.tolist()"),
    *("torch.empty(4)", "torch.zeros(4)", "torch.arange(4)", "torch.tensor([1.0, 2.0])"),
]
LARGE = [
    *(
        "big + big",
        "big.exp()",
        "big.tanh()",
        "big.sum()",
        "big.var()",
        "big.sort()",
        "wide @ wide",
        "wide.softmax(0)",
    ),
    *(
        "wide.t().contiguous()",
        "wide.cumsum(0)",
        "F.conv2d(image, kernel, padding=1)",
        "torch.rand(1_000_000)",
    ),
]


def measure(module, only):
    """Seconds per expression of one module."""
    names = {"torch": importlib.import_module(module)}
    exec(SETUP, names)
    times = {}
    for expression in TINY + LARGE:
        if only not in expression:
            continue
        timer = timeit.Timer(expression, globals=names)
        timer.timeit(1)
        count = max(1, int(2e-3 / max(timer.timeit(3) / 3, 1e-7)))
        times[expression] = min(timer.repeat(9, count)) / count
    return times


def in_process(module, only):
    command = [sys.executable, "-m", "bench", "--module", module, "--only", only, "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main():
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--module", default="rushlight")
    parser.add_argument("--against", help="another module with the same API, as torch")
    parser.add_argument("--only", default="", help="rows that contain this text")
    parser.add_argument("--json", action="store_true", help="print the times in seconds as JSON")
    options = parser.parse_args()
    if options.json:
        print(json.dumps(measure(options.module, options.only)))
        return
    modules = [options.module, *([options.against] if options.against else [])]
    best = [{} for _ in modules]
    for _ in range(3 if options.against else 1):
        for times, module in zip(best, modules, strict=True):
            for row, seconds in in_process(module, options.only).items():
                times[row] = min(seconds, times.get(row, seconds))
    for row in best[0]:
        line = f"{row:36}" + "".join(f"{times[row] * 1e6:12.3f} us" for times in best)
        print(line + (f"{best[0][row] / best[1][row]:10.2f}" if options.against else ""))
    if options.against:
        ratios = [math.log(best[0][row] / best[1][row]) for row in best[0]]
        print(f"geometric mean of the ratios: {math.exp(sum(ratios) / len(ratios)):.2f}")


if __name__ == "__main__":
    main()
