"""Functions that expressions of rules may call beside ops: parts of tangents, and moves of a batch dimension.

In an expression of `batch=` tensors that have no batch dimension have one of size 1, and dimensions are counted behind it.
"""

import rushlight
from gen import table
from tests.ops.harness import function_of

NONE, MEAN = 0, 1  # reductions of losses


def op(name):
    """An op of the table that need not be public."""
    return function_of(rushlight, next(op for op in table.load() if op.name == name))


# ---- tangents ----


zeros_like = rushlight.zeros_like
ones_like = rushlight.ones_like


def real(t):
    return t.real if t.dtype.is_complex else t


def imag_of(t):
    """The imaginary part; 0 for real numbers."""
    return t.imag if t.dtype.is_complex else rushlight.zeros_like(t)


def i_times_imag_of(t):
    return t - real(t)


def sgn_backward(t, self, result):
    """The derivative of sgn is symmetric, so that tangents and gradients take the same way."""
    if not self.dtype.is_complex:
        return rushlight.zeros_like(self)
    size = self.abs()
    return rushlight.where(size.eq(0), 0, (t - result * real(result.conj() * t)) / size)


def selected(t, dim, indices, keepdim):
    """The elements of t that a reduction took."""
    if t.dim() == 0 or keepdim:
        return t.gather(dim, indices)
    return t.gather(dim, indices.unsqueeze(dim)).squeeze(dim)


def pooled_at(t, indices, window):
    """The elements of images at flat places."""
    dims = len(window)
    flat = indices.flatten(indices.dim() - dims)
    return t.flatten(t.dim() - dims).gather(-1, flat).reshape(indices.shape)


def product(a, b, left):
    return a.matmul(b) if left else b.matmul(a)


def solve_triangle(self, self_t, result, upper, left, unitriangular):
    """The solution for the tangent of the triangle NONE."""
    part = self_t.triu(int(unitriangular)) if upper else self_t.tril(-int(unitriangular))
    right = product(part, result, left)
    return rushlight.linalg.solve_triangular(
        self, right, upper=upper, left=left, unitriangular=unitriangular
    )


def cholesky_tangent(self_t, L, upper):
    """L times the lower triangle, half of its diagonal, of L^-1 dA L^-H."""
    if upper:
        return cholesky_tangent(self_t, L.mH, False).mH
    half = rushlight.linalg.solve_triangular(L, (self_t + self_t.mH) / 2, upper=False)
    both = rushlight.linalg.solve_triangular(L.mH, half, upper=True, left=False).tril()
    return L.matmul(both - rushlight.diag_embed(both.diagonal(0, -2, -1)) / 2)


def pinv_tangent(self_t, self, result):
    """Of a matrix of constant rank: along its range, and out of its row and column spaces."""
    turned, back = self_t.mH, result.mH
    rows = turned - turned.matmul(self).matmul(result)
    columns = turned - result.matmul(self).matmul(turned)
    return (
        result.matmul(back).matmul(rows)
        + columns.matmul(back).matmul(result)
        - result.matmul(self_t).matmul(result)
    )


def eigh_turn(A_t, eigenvalues, eigenvectors):
    """How eigenvectors turn into each other, none into itself."""
    gaps = eigenvalues.unsqueeze(-2) - eigenvalues.unsqueeze(-1)
    gaps.diagonal(0, -2, -1).fill_(float("inf"))
    return eigenvectors.matmul(eigenvectors.mH.matmul(A_t).matmul(eigenvectors) / gaps)


def sampled_slopes(grid_t, input, grid, *how):
    """What `grid_sampler` changes by when its places move: channels as images of their own have a gradient each."""
    channels = input.shape[1]
    images = input.flatten(0, 1).unsqueeze(1)
    places = grid.repeat_interleave(channels, 0)
    ones = rushlight.ones_like(rushlight.grid_sampler(images, places, *how))
    slopes = op("_grid_sampler_backward")(ones, images, places, *how)[1]
    found = (slopes * grid_t.repeat_interleave(channels, 0)).sum(-1)
    return found.unflatten(0, (input.shape[0], channels))


def boxes_at(images, rois, indices):
    """The pixels of boxes' images at places in their planes; 0 at place -1."""
    planes = images[rois[:, 0].long()].flatten(2)
    values = planes.gather(2, indices.flatten(2).clamp(min=0)).reshape(indices.shape)
    return values.masked_fill(indices < 0, 0)


def deformed_slopes(offset_t, input, offset, factor, kernel_size, *how):
    """What columns change by when taps move: channels as images of their own have a gradient each."""
    taps = kernel_size[0] * kernel_size[1]
    batch, channels = input.shape[:2]

    def of_channels(t, each):
        groups = t.shape[1] // each
        return t.unflatten(1, (groups, each)).repeat_interleave(channels // groups, 1).flatten(0, 1)

    moved = of_channels(offset, 2 * taps)
    kept = None if factor is None else of_channels(factor, taps)
    images = input.flatten(0, 1).unsqueeze(1)
    ones = rushlight.ones_like(op("_deform_columns")(images, moved, kept, kernel_size, *how))
    slopes = op("_deform_columns_backward")(ones, images, moved, kept, kernel_size, *how)[1]
    change = (slopes * of_channels(offset_t, 2 * taps)).unflatten(1, (taps, 2)).sum(2)
    return change.flatten(2).reshape(batch, channels * taps, offset.shape[2] * offset.shape[3])


def summed_as(loss, t):
    """A sum over classes, or over everything, as a loss is one."""
    return t.sum(1) if loss.dim() else t.sum()


def weighted(t, weight):
    return t if weight is None else t * weight


def _normalized(t, scaled, rstd, dims):
    """The tangent of what is brought to mean 0 and variance 1."""
    return rstd * (t - t.mean(dims, True) - scaled * (scaled * t).mean(dims, True))


def last(shape):
    return list(range(-len(shape), 0))


def layer_norm_tangent(input_t, input, normalized_shape, mean, rstd):
    return _normalized(input_t, (input - mean) * rstd, rstd, last(normalized_shape))


def rms_norm_tangent(input_t, input, normalized_shape, rstd):
    scaled = input * rstd
    return rstd * (input_t - scaled * (scaled * input_t).mean(last(normalized_shape), True))


def per_channel(t, like):
    """A vector of channels in the shape of images."""
    return None if t is None else t.reshape(-1, *[1] * (like.dim() - 2))


def batch_statistics(input, mean, invstd, running_mean, running_var, training, eps):
    """What batch_norm normalises with, in the shape of its input."""
    if not training:
        mean, invstd = running_mean, (running_var + eps).rsqrt()
    return per_channel(mean, input), per_channel(invstd, input)


def batch_norm_scaled(input, *statistics):
    mean, invstd = batch_statistics(input, *statistics)
    return (input - mean) * invstd


def batch_norm_tangent(input_t, input, *statistics):
    _, invstd = batch_statistics(input, *statistics)
    if not statistics[4]:
        return input_t * invstd
    return _normalized(
        input_t, batch_norm_scaled(input, *statistics), invstd, [0, *range(2, input.dim())]
    )


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
