"""Samples of views with memory of their own, and of what puts tensors into copies by views."""

from tests.ops import complex as parts
from tests.ops import more, shape

_VIEWS = {
    **{
        name: name
        for name in (
            "alias",
            "as_strided",
            "diagonal",
            "expand",
            "narrow",
            "permute",
            "squeeze",
            "t",
        )
    },
    **{
        name: name
        for name in (
            "split_with_sizes",
            "unfold",
            "unsqueeze",
            "view",
            "view_as_complex",
            "view_as_real",
        )
    },
    "select.int": "select",
    "slice.Tensor": "slice",
    "split.Tensor": "split",
    "transpose.int": "transpose",
    "unbind.int": "unbind",
    "squeeze.dim": "squeeze.dim",
    "squeeze.dims": "squeeze.dims",
    "view.dtype": "view.dtype",
}
_FOUND = {**more.SAMPLES, **parts.SAMPLES, **shape.SAMPLES}
_TOLD = {
    "diagonal": "np.diagonal(self, offset, dim1, dim2)",
    "permute": "np.transpose(self, dims)",
    "squeeze": "np.squeeze(self)",
    "unsqueeze": "np.expand_dims(self, dim)",
    **parts.REFERENCES,
    **shape.REFERENCES,
}


def _copy(name):
    base, _, overload = name.partition(".")
    return f"{base}_copy" + (f".{overload}" if overload else "")


SAMPLES = {_copy(name): _FOUND[view] for name, view in _VIEWS.items()} | {
    "detach_copy": ["x(3, 4)"],
    "unsqueeze_copy": [
        "x(3, 4), 0",
        "x(3, 4), -1",
    ],  # references count 0-d as 1-d where a dimension is named
    "as_strided_scatter": ["x(3, 4), x(2, 2), (2, 2), (4, 1)", "x(3, 4), x(3), (3,), (1,), 2"],
    "diagonal_scatter": ["x(3, 4), x(3)", "x(3, 4), x(3), 1", "x(2, 3, 4), x(3, 2), -1, 2, 0"],
    "select_scatter": ["x(3, 4), x(4), 0, 1", "x(3, 4), x(3), -1, -2"],
    "slice_scatter": ["x(5, 2), x(2, 2), 0, 1, 4, 2", "x(5), x(5)", "x(2, 3), x(2, 1), 1, -1"],
}
REFERENCES = {_copy(name): _TOLD[view] for name, view in _VIEWS.items() if view in _TOLD} | {
    "detach_copy": "self",
    "diagonal_scatter": "self + adjoint_of(lambda i: np.diagonal(i, offset, dim1, dim2), src - np.diagonal(self, offset, dim1, dim2), self.shape)",
    "select_scatter": "self + adjoint_of(lambda i: np.take(i, index, dim), src - np.take(self, index, dim), self.shape)",
}
ERRORS = {
    "diagonal_scatter": [
        ("x(3, 4), x(2)", RuntimeError, "src must have the shape of the slice")
    ],
    "select_scatter": [
        ("x(3, 4), x(1, 4), 0, 1", RuntimeError, "src must have the shape of the slice")
    ],
}
DTYPES = {"view_as_real_copy": parts.DTYPES["view_as_real"]}
NO_GRADIENT = {"detach_copy", "view_copy.dtype"}
SKIPS = {
    (_copy(name), mode): why
    for name, view in _VIEWS.items()
    for (op, mode), why in {**shape.SKIPS, **parts.SKIPS}.items()
    if op == view
} | {
    (
        "as_strided_scatter",
        "batch",
    ): "its offset counts from the start of memory, a batch's from the slice",
    ("as_strided_scatter", "layout"): "what it changes depends on how its input lies in memory",
}
