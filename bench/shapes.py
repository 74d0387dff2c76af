"""`python -m bench.shapes`: ops on odd shapes against PyTorch's, where it is installed.

Many short rows, few columns, small matrices by the hundred, tiny pictures, one sample: what usual
benchmarks leave out, on one thread. Both run in turns in one process on the same inputs; the ratio
is that of the least times. `python -m bench.shapes NAME` measures the cases whose names contain it,
`--worst N` shows the N cases that compare worst.
"""

from __future__ import annotations

import argparse
import math
import timeit
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import torch

import rushlight

Case = tuple[str, Callable[[], Any]]


def rows(module: ModuleType, dtype: str) -> Iterator[Case]:
    """Many short rows."""
    functional = module.nn.functional
    for count, length in ((10000, 3), (3000, 10), (1900, 17), (1000, 33), (300, 100)):
        rng = np.random.default_rng(length)
        plain = module.from_numpy(rng.standard_normal((count, length)))
        x = plain.to(getattr(module, dtype))
        column, row = x[:, :1].contiguous(), x[0].contiguous()
        target = module.from_numpy(rng.integers(0, length, count))
        places = module.from_numpy(rng.integers(0, length, (count, 2)))
        picked = module.from_numpy(rng.integers(0, count, count))
        leaf = x.clone().requires_grad_()
        soft = functional.softmax(leaf, 1)
        loss = functional.cross_entropy(leaf, target)

        def backward(y: Any, leaf: Any = leaf, x: Any = x) -> Callable[[], Any]:
            return lambda: module.autograd.grad(y, leaf, x if y.dim() else None, retain_graph=True)

        cases = {
            "sum": lambda x=x: x.sum(1),
            "sum along columns": lambda x=x: x.sum(0),
            "amax": lambda x=x: x.amax(1),
            "max": lambda x=x: x.max(1),
            "norm": lambda x=x: x.norm(dim=1),
            "var": lambda x=x: x.var(1),
            "logsumexp": lambda x=x: x.logsumexp(1),
            "cumsum": lambda x=x: x.cumsum(1),
            "softmax": lambda x=x: functional.softmax(x, 1),
            "softmax along columns": lambda x=x: functional.softmax(x, 0),
            "softmax backward": backward(soft),
            "log_softmax": lambda x=x: functional.log_softmax(x, 1),
            "cross_entropy": lambda x=x, t=target: functional.cross_entropy(x, t),
            "cross_entropy backward": backward(loss),
            "layer_norm": lambda x=x, n=length: functional.layer_norm(x, (n,)),
            "sort": lambda x=x: x.sort(1),
            "topk": lambda x=x: x.topk(2, 1),
            "median": lambda x=x: x.median(1),
            "gather": lambda x=x, p=places: x.gather(1, p),
            "index_select": lambda x=x, p=picked: x.index_select(0, p),
            "times a column": lambda x=x, c=column: x * c,
            "plus a row": lambda x=x, r=row: x + r,
            "cat": lambda x=x, c=column: module.cat((x, c), 1),
            "flip": lambda x=x: x.flip(1),
            "transposed": lambda x=x: x.t().contiguous(),
            "einsum": lambda x=x: module.einsum("nc,nc->n", x, x),
        }
        for name, call in cases.items():
            yield f"{name} {dtype} {count} x {length}", call


def matrices(module: ModuleType) -> Iterator[Case]:
    """Small matrices, many at once."""
    for count, n in ((1000, 3), (1000, 4), (300, 6), (50, 16)):
        rng = np.random.default_rng(n)
        a = module.from_numpy(rng.standard_normal((count, n, n)).astype(np.float32))
        b = module.from_numpy(rng.standard_normal((count, n, 1)).astype(np.float32))
        both = a @ a.mT + module.eye(n)
        cases = {
            "products": lambda a=a: a @ a,
            "times vectors": lambda a=a, b=b: a @ b,
            "inverses": lambda a=both: module.linalg.inv(a),
            "determinants": lambda a=a: module.linalg.det(a),
            "solutions": lambda a=both, b=b: module.linalg.solve(a, b),
            "cholesky": lambda a=both: module.linalg.cholesky(a),
            "eigenvalues": lambda a=both: module.linalg.eigvalsh(a),
            "diagonals": lambda a=a: a.diagonal(dim1=1, dim2=2).sum(1),
            "transposed": lambda a=a: a.mT.contiguous(),
        }
        for name, call in cases.items():
            yield f"{name} {count} x {n} x {n}", call


def pictures(module: ModuleType) -> Iterator[Case]:
    """Tiny pictures."""
    functional = module.nn.functional
    for count, channels, size in ((1, 3, 17), (2, 5, 33), (8, 16, 7), (1, 64, 14), (32, 1, 9)):
        rng = np.random.default_rng(size)

        def made(*shape: int, rng: Any = rng) -> Any:
            return module.from_numpy(rng.standard_normal(shape).astype(np.float32))

        x = made(count, channels, size, size)
        dense, single = made(8, channels, 3, 3), made(channels, 1, 3, 3)
        cases = {
            "conv2d": lambda x=x, w=dense: functional.conv2d(x, w, padding=1),
            "conv2d by two": lambda x=x, w=dense: functional.conv2d(x, w, stride=2),
            "depthwise": lambda x=x, w=single, c=channels: functional.conv2d(x, w, groups=c),
            "max_pool2d": lambda x=x: functional.max_pool2d(x, 2),
            "avg_pool2d": lambda x=x: functional.avg_pool2d(x, 3, 1, 1),
            "adaptive_avg_pool2d": lambda x=x: functional.adaptive_avg_pool2d(x, 3),
            "interpolate": lambda x=x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
            "batch_norm": lambda x=x: functional.batch_norm(x, None, None, training=True),
            "group_norm": lambda x=x: functional.group_norm(x, 1),
            "unfold": lambda x=x: functional.unfold(x, 3),
            "reflected": lambda x=x: functional.pad(x, (1, 1, 1, 1), mode="reflect"),
            "channels last": lambda x=x: x.contiguous(memory_format=module.channels_last),
        }
        for name, call in cases.items():
            yield f"{name} {count} x {channels} x {size} x {size}", call


def cases_of(module: ModuleType) -> Iterator[Case]:
    """All cases, in the same order for either module."""
    for dtype in ("float32", "float64", "bfloat16"):
        yield from rows(module, dtype)
    yield from matrices(module)
    yield from pictures(module)


def least(call: Callable[[], Any], number: int) -> float:
    """Seconds of one call, of a few at once."""
    return timeit.timeit(call, number=number) / number


def main() -> None:
    """Print microseconds and ratios, the worst last, and their geometric mean."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of names of cases")
    parser.add_argument("--worst", type=int, default=1 << 30, help="cases to show")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rushlight.set_num_threads(1)
    found = []
    for (name, theirs), (_, ours) in zip(cases_of(torch), cases_of(rushlight), strict=True):
        if options.names and not any(part in name for part in options.names):
            continue
        least(theirs, 2)
        least(ours, 2)
        number = max(1, int(3e-4 / least(theirs, 1)))
        times = [(least(theirs, number), least(ours, number)) for _ in range(15)]
        found.append((min(t for t, _ in times), min(t for _, t in times), name))
    found.sort(key=lambda case: case[1] / case[0])
    print(f"{'case':46} {'PyTorch':>9} {'rushlight':>9} {'ratio':>6}  (microseconds)")
    for theirs_s, ours_s, name in found[-options.worst :]:
        print(f"{name:46} {theirs_s * 1e6:9.1f} {ours_s * 1e6:9.1f} {ours_s / theirs_s:6.2f}")
    if found:
        mean = math.exp(sum(math.log(ours / theirs) for theirs, ours, _ in found) / len(found))
        print(f"geometric mean of {len(found)} cases: {mean:.2f}")


if __name__ == "__main__":
    main()
