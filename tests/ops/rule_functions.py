"""Functions that expressions of `batch=` may call beside ops: moves of a batch dimension.

In such an expression tensors that have no batch dimension have one of size 1, and dimensions are counted behind it.
"""

import rushlight
from gen import table
from tests.ops.harness import function_of

NONE, MEAN = 0, 1  # reductions of losses


def op(name):
    """An op of the table that need not be public."""
    return function_of(rushlight, next(op for op in table.load() if op.name == name))


# ---- normalisations ----


def _normalized(t, scaled, rstd, dims):
    """The tangent of what is brought to mean 0 and variance 1."""
    return rstd * (t - t.mean(dims, True) - scaled * (scaled * t).mean(dims, True))


def last(shape):
    return list(range(-len(shape), 0))


def group_norm_scaled(input, mean, rstd, num_groups):
    grouped = input.reshape(input.shape[0], num_groups, -1)
    return ((grouped - mean.unsqueeze(-1)) * rstd.unsqueeze(-1)).reshape(input.shape)


def group_norm_tangent(input_t, input, mean, rstd, num_groups):
    grouped = lambda t: t.reshape(input.shape[0], num_groups, -1)
    scaled = grouped(group_norm_scaled(input, mean, rstd, num_groups))
    return _normalized(grouped(input_t), scaled, rstd.unsqueeze(-1), [-1]).reshape(input.shape)


FUNCTIONS = {
    name: value
    for name, value in list(globals().items())
    if callable(value) and not name.startswith("_")
}
