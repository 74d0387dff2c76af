"""Samples of indexing, gathering, masks, joining and rearranging."""

_ALONG = ["x(3, 4), 0, ints(5, high=3)", "x(3, 4), 1, ints(5, high=4)", "x(2, 3, 4), -2, ints(0, high=3)", "x(), 0, ints(1, high=1)"]
_JOIN = ["[x(2, 3), x(2, 3)]", "[x(3), x(3), x(3)]"]
_MASKED = ["x(3, 4), mask(3, 4)", "x(3, 4), mask(4)", "x(4), mask(3, 4)", "x(300, 200), mask(300, 200)", "x(), mask()"]
_SCATTER = [
    "x(3, 4), 0, ints(2, 4, high=3), x(2, 4)",
    "x(3, 4), 1, ints(2, 3, high=4), x(3, 4)",
    "x(40, 30), 1, ints(40, 30, high=30), x(40, 30)",
    "x(40, 30), 0, ints(40, 30, high=40), x(40, 30)",
    "x(3), 0, ints(0, high=1), x(0)",
]
_UNIQUE = ["x(3, 4), 0, m.tensor([[2, 1, 0, 1]]), x(1, 4)", "x(2, 3), 1, m.tensor([[2, 0], [1, 0]]), x(2, 2)"]

SAMPLES = {
    "index": [
        "x(3, 4), [ints(5, high=3)]",
        "x(3, 4), [None, ints(5, high=4, low=-4)]",
        "x(3, 4, 5), [ints(2, 1, high=3), None, ints(4, high=5)]",
        "x(3, 4, 5), [None, ints(6, high=4), ints(6, high=5)]",
        "x(3, 4), [mask(3, 4)]",
        "x(3, 4), [mask(3)]",
        "x(50, 60), [ints(70, high=50)]",
    ],
    "index_put": [
        "x(3, 4), [m.tensor([2, 0])], x(2, 4)",
        "x(3, 4), [m.tensor([2, 0, 2])], x(3, 4), True",
        "x(3, 4), [None, m.tensor([1, 3])], x(2)",
        "x(3, 4), [mask(3, 4)], x()",
        "x(50, 100), [ints(70, high=50)], x(70, 100), True",
    ],
    "index_select": [*_ALONG, "x(50, 60), 0, ints(70, high=50)"],
    "index_add": [
        "x(3, 4), 0, ints(5, high=3), x(5, 4)",
        "x(3, 4), 1, ints(2, high=4), x(3, 2), alpha=2",
        "x(), 0, ints(1, high=1), x()",
        "x(20, 300), 0, ints(60, high=20), x(60, 300)",
    ],
    "index_copy": ["x(3, 4), 0, m.tensor([2, 0]), x(2, 4)", "x(3, 4), 1, m.tensor([1]), x(3, 1)"],
    "index_fill.value": ["x(3, 4), 0, ints(2, high=3), 1", "x(3, 4), 1, m.tensor([-1]), 2", "x(), 0, ints(1, high=1), 1"],
    "index_fill": ["x(3, 4), 0, ints(2, high=3), x()"],
    "gather": ["x(3, 4), 0, ints(2, 4, high=3)", "x(3, 4), 1, ints(2, 7, high=4)", "x(), 0, ints(high=1)", "x(40, 30), 1, ints(40, 30, high=30)"],
    "scatter.src": _UNIQUE,
    "scatter.value": ["x(3, 4), 0, ints(2, 4, high=3), 2", "x(3, 4), 1, ints(2, 3, high=4), 1"],
    "scatter.src_reduce": [s + ", reduce='add'" for s in _SCATTER] + [_SCATTER[0] + ", reduce='multiply'"],
    "scatter.value_reduce": ["x(3, 4), 0, ints(2, 4, high=3), 2, reduce='multiply'"],
    "scatter_add": _SCATTER,
    "scatter_reduce": [f"pos(3, 4), 0, ints(2, 4, high=3), pos(2, 4), '{how}'" for how in ("sum", "prod", "mean", "amax", "amin")]
    + ["pos(3, 4), 0, ints(2, 4, high=3), pos(2, 4), 'mean', include_self=False"],
    "take": ["x(3, 4), ints(2, 5, high=12, low=-12)", "x(), ints(1, high=1)"],
    "put": ["x(3, 4), m.tensor([0, 5, -1]), x(3)", "x(3, 4), m.tensor([[0, 5, 0]]), x(1, 3), True"],
    "take_along_dim": ["x(3, 4), ints(3, 2, high=4), 1", "x(3, 4), ints(5, high=12)", "x(3, 4), ints(1, 4, high=3), 0"],
    "masked_fill": ["x(3, 4), mask(4), x()"],
    "masked_fill.value": [s + ", 1" for s in _MASKED],
    "masked_scatter": ["x(3, 4), mask(3, 4), x(12)", "x(3, 4), mask(4), x(12)"],
    "masked_select": _MASKED,
    "nonzero": ["x(3, 4)", "same(0, 1, 0, 1)", "x()", "x(0, 3)", "mask(3, 200, 300)"],
    "argwhere": ["same(0, 1, 0, 1)"],
    "nonzero_numpy": ["mask(3, 4)", "x()"],
    "where.single": ["mask(3, 4)"],
    "cat": [*_JOIN, "[x(2, 3), x(2, 1)], 1", "[x(2, 3), x(0, 3)]", "[x(0), x(2, 3)]", "[x(2, 3, 4), x(2, 5, 4)], -2", "[x(300, 100), x(300, 70)], 1"],
    "concat": _JOIN,
    "concatenate": _JOIN,
    "stack": [*_JOIN, "[x(2, 3), x(2, 3)], 1", "[x(2, 3), x(2, 3)], -1", "[x(), x()]"],
    "hstack": [*_JOIN, "[x(), x()]"],
    "vstack": [*_JOIN, "[x(), x()]"],
    "row_stack": _JOIN,
    "column_stack": [*_JOIN, "[x(), x()]"],
    "dstack": [*_JOIN, "[x(), x()]"],
    "meshgrid": ["[x(2), x(3)], indexing='ij'", "[x(2), x(3), x(4)], indexing='xy'"],
    "flip": ["x(3, 4), [0]", "x(3, 4), [1]", "x(2, 3, 4), [0, -1]", "x(), []", "x(300, 200), [1]"],
    "fliplr": ["x(3, 4)"],
    "flipud": ["x(3, 4)"],
    "rot90": ["x(3, 4)", "x(3, 4), 2", "x(3, 4), -1", "x(2, 3, 4), 1, [1, 2]"],
    "roll": ["x(3, 4), 1", "x(3, 4), 1, 1", "x(3, 4), [1, -2], [0, 1]", "x(0, 4), 1, 0"],
    "tril": ["x(3, 4)", "x(4, 3), 1", "x(2, 3, 3), -1", "x(2, 0, 3)"],
    "triu": ["x(3, 4)", "x(4, 3), 1", "x(2, 3, 3), -1"],
    "diag": ["x(3)", "x(3), 1", "x(3, 4)", "x(3, 4), -1"],
    "diag_embed": ["x(2, 3)", "x(2, 3), 1, 0, 2"],
    "diagflat": ["x(2, 2)"],
    "repeat": ["x(2, 3), [2, 2]", "x(3), [2, 1, 2]", "x(2, 3), [0, 1]", "x(), [3]"],
    "tile": ["x(2, 3), [2]", "x(2, 3), [2, 1, 3]"],
    "segment_reduce": [
        *(f"x(6), '{name}', lengths=m.tensor([2, 1, 3])" for name in ("sum", "mean", "max", "min", "prod")),
        "x(5, 2), 'max', offsets=m.tensor([0, 2, 2, 5]), initial=1",
        "x(4), 'amax', lengths=m.tensor([2, 2])",
        "x(4), 'amin', lengths=m.tensor([1, 3])",
        "x(2, 3, 2), 'mean', lengths=m.tensor([[2, 1], [3, 0]]), axis=1, initial=2",
        "x(6), 'sum', lengths=m.tensor([2, 1]), unsafe=True",
    ],
    "repeat_interleave.self_int": ["x(2, 3), 2", "x(2, 3), 2, 1", "x(), 3"],
    "repeat_interleave.self_Tensor": ["x(2, 3), m.tensor([1, 2]), 0", "x(2, 3), m.tensor([2]), 1"],
    "repeat_interleave.Tensor": ["ints(4, high=3)"],
    "one_hot": ["ints(4, high=3)", "ints(2, 3, high=5), 7"],
}
DTYPES = dict.fromkeys(
    ("index", "index_select", "gather", "cat", "stack", "flip", "tril", "triu", "masked_select", "nonzero", "take", "masked_fill.value", "roll", "repeat"),
    "all",
)
DTYPES |= dict.fromkeys(("index_add", "scatter_add", "index_copy", "index_fill.value", "scatter.src", "scatter.value", "put"), "numbers")
_OUT = "IndexError"
_PLACE = "places(index, dim)"
_CROPPED = "src[tuple(map(slice, index.shape))]"
REFERENCES = {
    "index": "self[tuple(slice(None) if i is None else i for i in indices)]",
    "index_put": "written(self, tuple(slice(None) if i is None else i for i in indices), values, np.add if accumulate else None)",
    "index_select": "np.take(self, index, dim)",
    "index_add": "written(self, along(dim, index), scaled(source, alpha), np.add)",
    "index_copy": "written(self, along(dim, index), source)",
    "index_fill.value": "written(self, along(dim, index), value)",
    "index_fill": "written(self, along(dim, index), value)",
    "gather": f"self[{_PLACE}]",
    "scatter.src": f"written(self, {_PLACE}, {_CROPPED})",
    "scatter.value": f"written(self, {_PLACE}, value)",
    "scatter.src_reduce": f"written(self, {_PLACE}, {_CROPPED}, getattr(np, reduce))",
    "scatter.value_reduce": f"written(self, {_PLACE}, value, getattr(np, reduce))",
    "scatter_add": f"written(self, {_PLACE}, {_CROPPED}, np.add)",
    "scatter_reduce": f"combined(self, {_PLACE}, {_CROPPED}, reduce, include_self)",
    "put": "written(self.reshape(-1), index, source, np.add if accumulate else None).reshape(self.shape)",
    "take_along_dim": "np.take_along_axis(self, indices, dim) if dim is not None else self.reshape(-1)[indices.reshape(-1)]",
    "masked_fill": "np.where(mask, value, self)",
    "masked_fill.value": "np.where(mask, value, self)",
    "masked_scatter": "written(self, np.broadcast_to(mask, self.shape), source[: np.broadcast_to(mask, self.shape).sum()])",
    "masked_select": "np.broadcast_arrays(self, mask)[0][np.broadcast_arrays(self, mask)[1]]",
    "nonzero_numpy": "np.nonzero(np.atleast_1d(self))",
    "where.single": "np.nonzero(condition)",
    "cat": "np.concatenate([t for t in tensors if t.shape != (0,)], dim)",
    "meshgrid": "np.meshgrid(*tensors, indexing=indexing)",
    "diag_embed": "adjoint_of(lambda i: np.diagonal(i, offset, dim1, dim2), self, diagonals(self.shape, offset, dim1, dim2))",
    "repeat_interleave.Tensor": "np.repeat(np.arange(len(repeats)), repeats)",
    "one_hot": "np.eye(self.max() + 1 if num_classes < 0 else num_classes)[self]",
}
ERRORS = {
    "index": [
        ("x(3, 4), [m.tensor([3])]", IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
        ("x(3, 4), [None, m.tensor([-5])]", IndexError, "index -5 is out of bounds for dimension 1 with size 4"),
        ("x(3, 4), [x(2)]", IndexError, "must be long, int, byte or bool"),
        ("x(3, 4), [mask(4)]", IndexError, "shape of the mask"),
        ("x(3, 4), [ints(2, high=3), ints(3, high=4)]", IndexError, "could not be broadcast"),
        ("x(3), [ints(2, high=3), ints(2, high=3)]", IndexError, "too many indices"),
    ],
    "index_put": [
        ("x(3, 4), [m.tensor([2**62])], x(4)", IndexError, "out of bounds"),
        ("x(3, 4), [m.tensor([0, 1])], x(3)", RuntimeError, r"cannot be broadcast to \[2, 4\], which the indices select"),
    ],
    "index_select": [
        ("x(3, 4), 0, m.tensor([3])", IndexError, "index out of range in self"),
        ("x(3, 4), 0, m.tensor([-1])", IndexError, "index out of range in self"),
        ("x(3, 4), 0, x(2)", RuntimeError, "Expected dtype int32 or int64"),
        ("x(3, 4), 0, ints(2, 2, high=3)", IndexError, "supposed to be a vector"),
    ],
    "index_add": [
        ("x(3, 4), 0, m.tensor([3]), x(1, 4)", IndexError, "index 3 is out of bounds"),
        ("x(3, 4), 0, m.tensor([0]), x(2, 4)", RuntimeError, "Number of indices"),
        ("x(3, 4), 0, m.tensor([0]), x(1, 5)", RuntimeError, "must match self tensor shape"),
    ],
    "index_copy": [("x(3, 4), 0, m.tensor([3]), x(1, 4)", IndexError, "out of bounds")],
    "index_fill.value": [("x(3, 4), 0, m.tensor([3]), 1", IndexError, "out of bounds")],
    "gather": [
        ("x(3, 4), 0, m.tensor([[3]])", RuntimeError, "index 3 is out of bounds for dimension 0 with size 3"),
        ("x(3, 4), 0, m.tensor([[-1]])", RuntimeError, "index -1 is out of bounds"),
        ("x(3, 4), 0, ints(4, 5, high=2)", RuntimeError, "Size does not match at dimension 1"),
        ("x(3, 4), 0, ints(3, high=2)", RuntimeError, "same number of dimensions"),
    ],
    "scatter_add": [
        ("x(3, 4), 0, m.tensor([[3]]), x(1, 1)", RuntimeError, "index 3 is out of bounds"),
        ("x(3, 4), 0, ints(2, 2, high=2), x(1, 2)", RuntimeError, "to be no larger than src"),
        ("x(3, 4), 0, ints(2, 5, high=2), x(2, 5)", RuntimeError, "to be no larger than src"),
    ],
    "scatter.value": [("x(3), 0, m.tensor([-1]), 1", RuntimeError, "index -1 is out of bounds")],
    "take": [("x(3), m.tensor([3])", IndexError, "index 3 is out of range: a tensor of 3 elements takes -3 to 2")],
    "put": [("x(3), m.tensor([3]), x(1)", IndexError, "out of range")],
    "masked_fill.value": [("x(3), ints(3, high=2), 1", RuntimeError, "only supports boolean masks")],
    "masked_scatter": [("x(3), m.tensor([True, True, True]), x(2)", RuntimeError, "the mask has 3 true elements, but source only 2")],
    "masked_select": [("x(3), ints(3, high=2)", RuntimeError, "expected BoolTensor for mask")],
    "cat": [
        ("[]", ValueError, "expected a non-empty list of Tensors"),
        ("[x(2, 3), x(3)]", RuntimeError, "same number of dimensions"),
        ("[x(2, 3), x(2, 4)]", RuntimeError, "Sizes of tensors must match except in dimension 0"),
        ("[x(), x()]", RuntimeError, "zero-dimensional tensors cannot be concatenated"),
        ("[x(2, 3)], 2", IndexError, "Dimension out of range"),
    ],
    "stack": [("[x(2), x(3)]", RuntimeError, "stack expects each tensor to be equal size"), ("[]", RuntimeError, "non-empty TensorList")],
    "flip": [("x(2, 3), [2]", IndexError, "Dimension out of range"), ("x(2, 3), [0, 0]", RuntimeError, "appears multiple times")],
    "roll": [("x(2, 3), [1, 2], [0]", RuntimeError, "shifts and dimensions must align"), ("x(), 1, 0", IndexError, "tensor has no dimensions")],
    "tril": [("x(3)", RuntimeError, "at least 2 dimensions")],
    "repeat": [("x(2, 3), [2]", RuntimeError, "Number of dimensions of repeat dims is 1, but the tensor has 2")],
    "repeat_interleave.self_Tensor": [("x(2, 3), m.tensor([1, -2]), 0", RuntimeError, "repeats can not be negative")],
    "one_hot": [("m.tensor([-1])", RuntimeError, "must be non-negative"), ("m.tensor([3]), 2", RuntimeError, "smaller than num_classes")],
}
NO_GRADIENT = {"nonzero_numpy", "argwhere", "where.single", "repeat_interleave.Tensor", "one_hot"}
_VALUES = "the shape depends on values"
SKIPS = {(op, "meta"): _VALUES for op in ("nonzero_numpy", "argwhere", "where.single", "repeat_interleave.self_Tensor", "repeat_interleave.Tensor", "one_hot")}
SKIPS |= {("segment_reduce", "batch"): "reads the lengths, unless unsafe"}
SKIPS |= {("index", "parity"): "Tensor.index is another function in PyTorch"}
SKIPS |= {("index", "meta"): "masks select by value", ("index_put", "meta"): "masks select by value"}
SKIPS |= {("index_fill", "meta"): "reads the value", ("masked_fill", "meta"): "reads the value"}
