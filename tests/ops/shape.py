"""Samples of views and copies."""

SAMPLES = {
    "transpose": ["x(3, 4), 0, 1", "x(2, 3, 4), -1, 0", "x(), 0, 0"],
    "t": ["x(3, 4)", "x(3)", "x()"],
    "permute": ["x(2, 3, 4), (2, 0, 1)", "x(2, 3), (-1, 0)", "x(), ()"],
    "view": ["x(3, 4), (2, 6)", "x(3, 4), (-1,)", "x(0, 4), (4, 0)"],
    "expand": ["x(3, 1), (3, 4)", "x(3, 1), (2, -1, 4)", "x(), (2, 2)", "x(1), (0,)"],
    "squeeze": ["x(1, 3, 1)", "x(2, 3)", "x(1)"],
    "squeeze.dim": ["x(1, 3, 1), 0", "x(1, 3, 1), 1", "x(), 0"],
    "squeeze.dims": ["x(1, 3, 1), (0, 2)", "x(1, 3), (1,)"],
    "unsqueeze": ["x(3, 4), 0", "x(3, 4), -1", "x(), 0"],
    "select": ["x(3, 4), 0, 1", "x(3, 4), -1, -2"],
    "unfold": ["x(7), 0, 3, 2", "x(2, 6), 1, 2, 1"],
    "as_strided": ["x(3, 4), (2, 2), (4, 1)", "x(3, 4), (3,), (1,), 2", "x(3, 4), (2, 3), (1, 1)"],
    "diagonal": ["x(3, 4)", "x(3, 4), 1", "x(2, 3, 4), -1, 0, 2", "x(3, 4), 9"],
    "unbind": ["x(3, 4)", "x(3, 4), -1"],
    "clone": ["x(3, 4)", "x()", "x(0, 3)"],
    "reshape": ["x(3, 4), (4, 3)", "x(3, 4), (-1, 2)", "x(0, 3), (3, 0)"],
    "flatten": ["x(2, 3, 4)", "x(2, 3, 4), 1", "x()", "x(2, 3, 4), 0, 1"],
    "unflatten": ["x(2, 6), 1, (2, 3)", "x(2, 6), -1, (-1, 2)"],
    "ravel": ["x(2, 3)", "x()"],
    "expand_as": ["x(3, 1), x(3, 4)"],
    "broadcast_to": ["x(3), (2, 3)"],
    "broadcast_tensors": [],
    "swapaxes": ["x(2, 3, 4), 0, 2"],
    "swapdims": ["x(2, 3, 4), 0, 2"],
    "movedim": ["x(2, 3, 4), 0, 2", "x(2, 3, 4), (0, 1), (1, 2)"],
    "moveaxis": ["x(2, 3, 4), 0, 2"],
    "adjoint": ["x(2, 3)", "x(2, 3, 4)"],
    "narrow": ["x(5, 2), 0, 1, 3", "x(5), 0, -3, 2"],
    "split": ["x(7, 2), 3", "x(2, 7), 2, 1", "x(6), 6"],
    "chunk": ["x(7, 2), 3", "x(2, 7), 9, 1"],
    "tensor_split": ["x(7, 2), 3"],
    "tensor_split.indices": ["x(7, 2), (1, 4)", "x(7), (9,)"],
    "type_as": ["x(3), x(2)"],
    "atleast_1d": ["x()", "x(2)"],
    "atleast_2d": ["x()", "x(2)"],
    "atleast_3d": ["x()", "x(2)", "x(2, 3)"],
}
ALL = "transpose t permute view expand squeeze unsqueeze select unfold diagonal clone reshape flatten narrow split chunk"
DTYPES = dict.fromkeys(ALL.split(), "all")
ERRORS = {
    "transpose": [("x(2, 3), 0, 2", IndexError, "Dimension out of range")],
    "t": [("x(2, 3, 4)", RuntimeError, "expects a tensor with <= 2 dimensions")],
    "permute": [
        ("x(2, 3), (0, 0)", RuntimeError, "duplicate dims"),
        ("x(2, 3), (0,)", RuntimeError, "number of dimensions"),
    ],
    "view": [
        ("x(3, 4), (5, 2)", RuntimeError, "is invalid for input of size 12"),
        ("x(3, 4).t(), (12,)", RuntimeError, "view size is not compatible"),
        ("x(3, 4), (-1, -1)", RuntimeError, "only one dimension can be inferred"),
    ],
    "expand": [
        ("x(3, 2), (3, 4)", RuntimeError, "must match the existing size"),
        ("x(3), (-1, 3)", RuntimeError, "isn't allowed in a leading, non-existing dimension"),
    ],
    "select": [("x(3), 0, 3", IndexError, "out of range")],
    "as_strided": [
        ("x(4), (3, 3), (2, 1)", RuntimeError, "out of bounds for storage"),
        ("x(4), (2,), (-1,)", RuntimeError, "Negative strides"),
        ("x(4), (2,), (1,), -1", RuntimeError, "offset"),
        ("x(4), (2**62, 2**62), (1, 1)", RuntimeError, "overflow|out of bounds"),
    ],
    "narrow": [("x(5), 0, 4, 3", RuntimeError, "exceeds dimension size")],
    "split": [("x(5), -1", RuntimeError, "non-negative")],
    "unfold": [("x(5), 0, 6, 1", RuntimeError, "maximum size")],
    "unflatten": [("x(2, 6), 1, (2, 2)", RuntimeError, "don't multiply up")],
}
SKIPS = {
    ("as_strided", "layout"): "what it shows depends on how its input lies in memory",
    ("view", "layout"): "refuses inputs whose strides do not allow the shape",
}
