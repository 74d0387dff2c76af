"""Samples of sorting, ranks, unique values and searching."""

_ROWS = ["distinct(3, 4)", "distinct(3, 4), 0", "distinct(5, 300), -1, True", "distinct(), 0", "distinct(2, 3, 4), 1", "x(0, 3), 1"]
_RANK = ["distinct(3, 5), 1", "distinct(3, 5), 0, True", "distinct(4), 0", "x(), 0", "distinct(2, 900), 1"]

SAMPLES = {
    "sort": _ROWS,
    "sort.stable": ["distinct(3, 4), stable=True", "distinct(3, 4), stable=True, dim=0, descending=True"],
    "argsort": _ROWS,
    "argsort.stable": ["same(1, 0, 1, 0), stable=True, descending=True"],
    "msort": ["distinct(3, 4)"],
    "topk": ["distinct(3, 4), 2", "distinct(3, 4), 2, 0", "distinct(3, 4), 1, 1, False", "distinct(3, 4), 0", "distinct(2, 900), 5", "x(), 1"],
    "kthvalue": [*(s.replace("), ", "), 1, ") for s in _RANK), "distinct(2, 900), 450, 1"],
    "median": ["distinct(3, 5)", "distinct(4)", "x()"],
    "median.dim": _RANK,
    "nanmedian": ["distinct(3, 5)"],
    "nanmedian.dim": _RANK,
    "mode": ["same(1, 2, 2, 3)", "x(3, 5)", "ints(3, 50, high=4)"],
    "_unique2": ["ints(3, 50, high=9)", "ints(3, 50, high=9), True, True, True", "x(0)"],
    "unique_dim": ["ints(6, 2, high=2), 0", "ints(2, 6, high=2), 1, True, True, True"],
    "unique_consecutive": ["m.tensor([1, 1, 2, 2, 1])", "m.tensor([1, 1, 2, 2, 1]), True, True", "m.tensor([[1, 1], [1, 1], [0, 1]]), dim=0"],
    "searchsorted": [
        "m.tensor([1.0, 2.0, 4.0]), x(3, 4)",
        "m.tensor([1, 3, 3, 5]), m.tensor([3, 6]), right=True",
        "m.tensor([1, 3, 3, 5]), m.tensor([3, 6]), side='left', out_int32=True",
        "m.tensor([[1, 3], [2, 4]]), m.tensor([[3], [3]])",
    ],
    "searchsorted.Scalar": ["m.tensor([1, 3, 5]), 3"],
    "bucketize": ["x(3, 4), m.tensor([-1.0, 0.0, 1.0])"],
    "bucketize.Scalar": ["3, m.tensor([1, 3, 5])"],
    "bincount": ["ints(30, high=5)", "ints(30, high=5), minlength=9", "ints(30, high=5), x(30)", "ints(0, high=1)"],
    "histc": ["x(50), 5", "x(50), 4, -1, 1"],
}
DTYPES = dict.fromkeys(("sort", "sort.stable", "topk", "kthvalue", "median.dim", "msort"), "real")
ERRORS = {
    "topk": [("x(3), 4", RuntimeError, "selected index k out of range"), ("x(3), -1", RuntimeError, "out of range")],
    "kthvalue": [("x(3), 4", RuntimeError, "selected number k out of range"), ("x(3), 0", RuntimeError, "out of range")],
    "median.dim": [("x(0, 3), 0", IndexError, "non-zero size")],
    "mode": [("x(0)", IndexError, "non-zero size")],
    "bincount": [("m.tensor([-1])", RuntimeError, "non-negative integral inputs"), ("x(3)", RuntimeError, "not implemented for")],
    "searchsorted": [("x(2, 2), x(3)", RuntimeError, "boundaries tensor should be 1 dimension")],
}
SKIPS = {
    ("mode", "grad"): "neighbouring inputs have another mode",
    ("searchsorted", "reference"): "numpy takes one sequence alone",
    ("_unique2", "parity"): "results that were not asked for differ",
    ("unique_dim", "parity"): "results that were not asked for differ",
    ("mode", "parity"): "PyTorch may point at any of equal elements",
}
SKIPS |= {(op, "parity"): "equal elements, as 16-bit numbers have, come in any order" for op in ("sort", "topk", "kthvalue")}
