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
    "_unique2": ["distinct(6)", "ints(3, 50, high=9)", "ints(3, 50, high=9), True, True, True", "x(0)"],
    "unique_dim": ["distinct(3, 2), 0", "ints(6, 2, high=2), 0", "ints(2, 6, high=2), 1, True, True, True"],
    "unique_consecutive": ["distinct(4)", "m.tensor([1, 1, 2, 2, 1])", "m.tensor([1, 1, 2, 2, 1]), True, True", "m.tensor([[1, 1], [1, 1], [0, 1]]), dim=0"],
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
_SORTED = "in_order(self, dim, descending)"
REFERENCES = {
    "sort": _SORTED,
    "sort.stable": _SORTED,
    "argsort": f"{_SORTED}[1]",
    "argsort.stable": f"{_SORTED}[1]",
    "msort": "np.sort(self, 0)",
    "topk": "tuple(v[along(dim, slice(k))] for v in in_order(self, dim, largest))",
    "kthvalue": "ranked(self, k - 1, dim, keepdim)",
    "median": "np.sort(self, None)[(self.size - 1) // 2]",
    "nanmedian": "np.sort(self, None)[(np.isfinite(self).sum() - 1) // 2]",
    "median.dim": "ranked(self, (self.shape[dim] - 1) // 2, dim, keepdim)",
    "nanmedian.dim": "ranked(self, (self.shape[dim] - 1) // 2, dim, keepdim)",
    "mode": "most_frequent(self, dim, keepdim)",
    "_unique2": "unasked(np.unique(self, return_inverse=True, return_counts=True), return_inverse, return_counts)",
    "unique_dim": "unasked(np.unique(self, return_inverse=True, return_counts=True, axis=dim), return_inverse, return_counts)",
    "unique_consecutive": "runs(self, dim, return_inverse, return_counts)",
    "searchsorted": "searched(sorted_sequence, self, side or ('right' if right else 'left'))",
    "searchsorted.Scalar": "np.searchsorted(sorted_sequence, self)",
    "bucketize": "np.searchsorted(boundaries, self, 'right' if right else 'left')",
    "bucketize.Scalar": "np.searchsorted(boundaries, self, 'right' if right else 'left')",
    "histc": "np.histogram(self, bins, (min, max) if min != max else None)[0]",
}
ERRORS = {
    "topk": [("x(3), 4", RuntimeError, "selected index k out of range"), ("x(3), -1", RuntimeError, "out of range")],
    "kthvalue": [("x(3), 4", RuntimeError, "selected number k out of range"), ("x(3), 0", RuntimeError, "out of range")],
    "median.dim": [("x(0, 3), 0", IndexError, "Expected reduction dim 0 to have elements")],
    "mode": [("x(0)", IndexError, "Expected reduction dim 0 to have elements")],
    "bincount": [("m.tensor([-1])", RuntimeError, "non-negative integral inputs"), ("x(3)", RuntimeError, "not implemented for")],
    "searchsorted": [("x(2, 2), x(3)", RuntimeError, "boundaries tensor should be 1 dimension")],
}
NO_GRADIENT = {"argsort", "argsort.stable", "searchsorted.Scalar", "bucketize", "bucketize.Scalar"}
SKIPS = {
    ("histc", "special"): "refuses ranges that are not finite",
    ("unique_consecutive", "boxed"): "Python leaves out what was not asked for",
    ("mode", "grad"): "neighbouring inputs have another mode",
    ("_unique2", "parity"): "results that were not asked for differ",
    ("unique_dim", "parity"): "results that were not asked for differ",
    ("mode", "parity"): "PyTorch may point at any of equal elements",
}
SKIPS |= {(op, "parity"): "equal elements, as 16-bit numbers have, come in any order" for op in ("sort", "topk", "kthvalue")}
