"""`python -m bench.from_lists`: `tensor(data)` against numpy's own conversion of the same data.

Both run in turns in one process; the ratio is the median over rounds.
"""

from __future__ import annotations

import statistics
import timeit

import numpy as np

import rushlight

DATA = {
    "1000 arrays of 100 float32": [np.arange(100, dtype=np.float32) for _ in range(1000)],
    "1000 arrays of 100 float64": [np.arange(100.0) for _ in range(1000)],
    "100 arrays (32, 32, 3) uint8": [np.zeros((32, 32, 3), np.uint8) for _ in range(100)],
    "10,000 floats": [float(i) for i in range(10000)],
    "10,000 ints": list(range(10000)),
    "100 lists of 100 floats": [[float(i) for i in range(100)] for _ in range(100)],
    "10,000 numpy float32 scalars": list(np.arange(10000, dtype=np.float32)),
}


def main():
    """Print microseconds and ratios."""
    print(f"{'data':32} {'numpy':>10} {'rushlight':>10} {'ratio':>7}")
    for name, data in DATA.items():
        kind = {"10,000 floats": np.float32, "100 lists of 100 floats": np.float32}.get(name)
        number = 20
        pairs = []
        for _ in range(15):
            a = timeit.timeit(lambda d=data, k=kind: np.array(d, dtype=k), number=number) / number
            b = timeit.timeit(lambda d=data: rushlight.tensor(d), number=number) / number
            pairs.append((a, b))
        ratio = statistics.median(b / a for a, b in pairs)
        a, b = (1e6 * min(p[i] for p in pairs) for i in (0, 1))
        print(f"{name:32} {a:10.0f} {b:10.0f} {ratio:7.2f}")


if __name__ == "__main__":
    main()
