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


# ---- batches ----


def first_of(t):
    return t.select(0, 0)


def moved(dim, rank):
    """A dimension of a slice of that rank, counted behind the batch."""
    return dim + 1 if dim >= 0 else max(dim, -rank)


def whole(t, batch):
    return None if t is None else t.expand(batch, *t.shape[1:])


def joined(t, dim, batch):
    """The batch joins a dimension of the slice."""
    return None if t is None else whole(t, batch).movedim(0, dim).flatten(dim, dim + 1)


def split(t, dim, batch):
    """The batch leaves a dimension that it had joined."""
    return t.reshape(*t.shape[:dim], batch, t.shape[dim] // batch, *t.shape[dim + 1 :]).movedim(
        dim, 0
    )


def times(sizes, dim, batch):
    """Sizes of which one is larger."""
    return [*sizes[:dim], sizes[dim] * batch, *sizes[dim + 1 :]]


def filled(tensors, batch):
    """Tensors of a list, each with the batch; vectors without elements are no part of it, as `cat` has it."""
    rank = max(t.dim() for t in tensors)
    return [whole(t, batch) for t in tensors if t.dim() == rank or t.dim() != 2 or t.numel() > 0]


def flattened(t, batch):
    return whole(t, batch).reshape(batch, -1)


def with_dims(t, rank):
    """At least so many dimensions in a slice, by ones in front of it."""
    return t.reshape(t.shape[0], *[1] * (rank - t.dim() + 1), *t.shape[1:])


def wrapped(index, size):
    """Indices of which negative ones count from the end."""
    return index.where(index >= 0, index + size)


def along(index, dim, like, batch):
    """Indices of slices (batch, n) as indices of elements, in the shape of `like` with n along `dim`."""
    n = index.shape[1] if index.dim() > 1 else 1
    dim = dim % like.dim()
    index = wrapped(whole(index, batch), like.shape[dim]).reshape(
        batch, *[1] * (dim - 1), n, *[1] * (like.dim() - dim - 1)
    )
    return index.expand(batch, *like.shape[1:dim], n, *like.shape[dim + 1 :])


def batched_baddbmm(self, batch1, batch2, beta, alpha, batch):
    one, two = joined(batch1, 0, batch), joined(batch2, 0, batch)
    shape = (batch, batch1.shape[1], batch1.shape[2], batch2.shape[3])
    added = with_dims(self, 3).expand(shape).flatten(0, 1)
    return split(rushlight.baddbmm(added, one, two, beta=beta, alpha=alpha), 0, batch)


def batched_linear(input, weight, bias):
    if weight.dim() == 2:  # one row, whose dimension the result does not have
        out = (input * with_dims(weight, input.dim() - 1)).sum(-1)
    else:
        out = with_dims(input, 2).matmul(with_dims(weight.mT, max(input.dim() - 1, 2)))
        out = out.squeeze(-2) if input.dim() == 2 else out
    return out if bias is None else out + with_dims(bias, out.dim() - 1)


def shifted(indices, batch, rows):
    """Indices of rows of a table that follows those of the slices before."""
    start = rushlight.arange(batch) * rows
    return whole(indices, batch) + start.reshape(batch, *[1] * (indices.dim() - 1))


def batched_embedding_backward(
    grad_output, indices, num_weights, padding_idx, scale_grad_by_freq, batch
):
    """One table of all slices; the rows of padding are set to 0 behind."""
    rows = shifted(indices, batch, num_weights)
    out = op("embedding_dense_backward")(
        whole(grad_output, batch), rows, num_weights * batch, -1, scale_grad_by_freq
    )
    out = split(out, 0, batch)
    if padding_idx >= 0:
        out.select(1, padding_idx).zero_()
    return out


def batched_batch_norm(
    input, weight, bias, running_mean, running_var, training, momentum, eps, batch
):
    """Channels of all slices side by side; statistics that keep running belong to every slice or to none."""
    per_slice = [joined(t, 0, batch) for t in (weight, bias, running_mean, running_var)]
    out, *kept = op("native_batch_norm")(
        joined(input, 1, batch), *per_slice, training, momentum, eps
    )
    return split(out, 1, batch), *(split(t, 0, batch) for t in kept)


def batched_batch_norm_backward(
    grad_output,
    input,
    weight,
    running_mean,
    running_var,
    save_mean,
    save_invstd,
    training,
    eps,
    batch,
):
    per_slice = [
        joined(t, 0, batch) for t in (weight, running_mean, running_var, save_mean, save_invstd)
    ]
    out, *rest = op("native_batch_norm_backward")(
        joined(grad_output, 1, batch), joined(input, 1, batch), *per_slice, training, eps
    )
    return split(out, 1, batch), *(split(t, 0, batch) for t in rest)


def batched_layer_norm(input, normalized_shape, weight, bias, eps, batch):
    out, mean, rstd = op("native_layer_norm")(
        whole(input, batch), normalized_shape, None, None, eps
    )
    out = out if weight is None else out * with_dims(weight, input.dim() - 1)
    return out if bias is None else out + with_dims(bias, input.dim() - 1), mean, rstd


def batched_rms_norm(input, normalized_shape, weight, eps, batch):
    out, rstd = op("_fused_rms_norm")(whole(input, batch), normalized_shape, None, eps)
    return out if weight is None else out * with_dims(weight, input.dim() - 1), rstd


def batched_layer_norm_backward(grad_output, input, normalized_shape, mean, rstd, weight, batch):
    """Rows of all slices at once; the gradients of weight and bias are sums over a slice."""
    scaled = (input - mean) * rstd
    given = grad_output if weight is None else grad_output * with_dims(weight, input.dim() - 1)
    rows = list(range(1, input.dim() - len(normalized_shape)))
    sums = [
        whole(t, batch).sum(rows) if rows else whole(t, batch)
        for t in (grad_output * scaled, grad_output)
    ]
    return whole(_normalized(given, scaled, rstd, last(normalized_shape)), batch), *sums


def batched_rms_norm_backward(grad_output, input, normalized_shape, rstd, weight, batch):
    scaled = input * rstd
    given = grad_output if weight is None else grad_output * with_dims(weight, input.dim() - 1)
    rows = list(range(1, input.dim() - len(normalized_shape)))
    total = whole(grad_output * scaled, batch)
    found = rstd * (given - scaled * (scaled * given).mean(last(normalized_shape), True))
    return whole(found, batch), total.sum(rows) if rows else total


def batched_group_norm(input, weight, bias, num_groups, eps, batch):
    out, *kept = op("_group_norm")(joined(input, 0, batch), None, None, num_groups, eps)
    out = split(out, 0, batch)
    wide = lambda t: t.reshape(-1, 1, t.shape[1], *[1] * (input.dim() - 3))
    out = out if weight is None else out * wide(weight)
    return out if bias is None else out + wide(bias), *(split(t, 0, batch) for t in kept)


def batched_group_norm_backward(grad_output, input, mean, rstd, weight, num_groups, batch):
    images, given = joined(input, 0, batch), joined(grad_output, 0, batch)
    mean, rstd = joined(mean, 0, batch), joined(rstd, 0, batch)
    scaled = group_norm_scaled(images, mean, rstd, num_groups)
    sums = [split(t, 0, batch).flatten(3).sum((1, 3)) for t in (given * scaled, given)]
    if weight is not None:
        per_image = whole(weight, batch).repeat_interleave(input.shape[1], 0)
        given = given * per_image.reshape(*per_image.shape, *[1] * (given.dim() - 2))
    return split(group_norm_tangent(given, images, mean, rstd, num_groups), 0, batch), *sums


def _class_weights(target, weight, ignore_index):
    """The weight of each target, 0 for those that do not count."""
    counts = target.ne(ignore_index)
    if weight is None:
        return counts.to(rushlight.get_default_dtype())
    return weight.reshape(-1)[target.where(counts, 0)] * counts


def _class_loss(name, self, target, weight, reduction, ignore_index, more, batch):
    """A loss of single samples, reduced slice by slice; what else the op gives."""
    labels = whole(target, batch)
    weight = None if weight is None else weight[0]
    loss, *kept = op(name)(
        joined(self, 0, batch), joined(target, 0, batch), weight, NONE, ignore_index, *more
    )
    loss, kept = split(loss, 0, batch), [split(t, 0, batch) for t in kept[:-1]]
    total = _class_weights(labels, weight, ignore_index).to(loss.dtype).reshape(batch, -1).sum(1)
    if reduction != NONE:
        loss = loss.reshape(batch, -1).sum(1)
        loss = loss / total if reduction == MEAN else loss
    return loss, *kept, total


def batched_nll_loss(self, target, weight, reduction, ignore_index, batch):
    return _class_loss("_nll_loss", self, target, weight, reduction, ignore_index, (), batch)


def batched_cross_entropy(self, target, weight, reduction, ignore_index, label_smoothing, batch):
    return _class_loss(
        "_cross_entropy", self, target, weight, reduction, ignore_index, (label_smoothing,), batch
    )


def _of_samples(grad_output, target, total_weight, reduction, batch):
    """The gradient of a reduced loss as one of each sample's."""
    if reduction == NONE:
        return joined(grad_output, 0, batch)
    given = grad_output / total_weight if reduction == MEAN else grad_output
    return with_dims(given, target.dim() - 1).expand(batch, *target.shape[1:]).flatten(0, 1)


def batched_nll_loss_backward(
    grad_output, target, weight, total_weight, sizes, reduction, ignore_index, batch
):
    given = _of_samples(grad_output, target, total_weight, reduction, batch)
    out = op("_nll_loss_backward")(
        given,
        joined(target, 0, batch),
        None if weight is None else weight[0],
        first_of(whole(total_weight, batch)),
        times(sizes, 0, batch),
        NONE,
        ignore_index,
    )
    return split(out, 0, batch)


def batched_cross_entropy_backward(
    grad_output,
    self,
    target,
    weight,
    log_sum,
    total_weight,
    reduction,
    ignore_index,
    label_smoothing,
    batch,
):
    given = _of_samples(grad_output, target, total_weight, reduction, batch)
    out = op("_cross_entropy_backward")(
        given,
        joined(self, 0, batch),
        joined(target, 0, batch),
        None if weight is None else weight[0],
        joined(log_sum, 0, batch),
        first_of(whole(total_weight, batch)),
        NONE,
        ignore_index,
        label_smoothing,
    )
    return split(out, 0, batch)


def _places(indices):
    """Dimensions of a slice that are indexed, with their indices; a mask is those of its true elements."""
    found, dim = {}, 0
    for index in indices:
        if index is None:
            dim += 1
        elif index.dtype in (rushlight.bool, rushlight.uint8):
            if index.shape[0] != 1:
                raise NotImplementedError("masks differ in size from slice to slice")
            found |= {
                dim + k: i.unsqueeze(0) for k, i in enumerate(index.squeeze(0).nonzero().unbind(1))
            }
            dim += index.dim() - 1
        else:
            found[dim] = index
            dim += 1
    return found


def _fronted(self, indices, batch):
    """`self` with indexed dimensions behind the batch, all indices, and where their block belongs."""
    places = _places(indices)
    order = [*places, *(d for d in range(self.dim() - 1) if d not in places)]
    rank = max(i.dim() for i in places.values())
    slots = rushlight.arange(batch).reshape(batch, *[1] * (rank - 1))
    dims = list(places)
    adjacent = dims == list(range(dims[0], dims[0] + len(dims)))
    indexed = [slots, *(with_dims(i, rank - 1) for i in places.values())]
    return (
        whole(self, batch).permute(0, *(d + 1 for d in order)),
        order,
        indexed,
        dims[0] if adjacent else 0,
        rank - 1,
    )


def batched_index(self, indices, batch):
    fronted, _, indexed, start, block = _fronted(self, indices, batch)
    out = fronted[tuple(indexed)]
    return out.movedim(tuple(range(1, block + 1)), tuple(range(start + 1, start + block + 1)))


def batched_index_put(self, indices, values, accumulate, batch):
    fronted, order, indexed, start, block = _fronted(self, indices, batch)
    shape = rushlight.broadcast_shapes(*(i.shape for i in indexed))
    rest = fronted.shape[len(indexed) :]
    target = (*rest[:start], *shape[1:], *rest[start:])
    given = with_dims(values, len(target)).expand(batch, *target)
    given = given.movedim(tuple(range(start + 1, start + block + 1)), tuple(range(1, block + 1)))
    out = fronted.index_put(tuple(indexed), given, accumulate)
    back = [order.index(d) + 1 for d in range(len(order))]
    return out.permute(0, *back)


def batched_put(self, index, source, accumulate, batch):
    size = first_of(self).numel()
    places = shifted(wrapped(index, size), batch, size)
    return whole(self, batch).contiguous().put(places, whole(source, batch), accumulate)


def batched_searchsorted(sorted_sequence, self, out_int32, right, side, sorter, batch):
    if sorted_sequence.dim() == 2:  # one sequence a slice, for values of any shape
        out = rushlight.searchsorted(
            whole(sorted_sequence, batch).contiguous(),
            flattened(self, batch),
            out_int32=out_int32,
            right=right,
            side=side,
            sorter=None if sorter is None else whole(sorter, batch).contiguous(),
        )
        return out.reshape(batch, *self.shape[1:])
    return rushlight.searchsorted(
        whole(sorted_sequence, batch).contiguous(),
        whole(self, batch).contiguous(),
        out_int32=out_int32,
        right=right,
        side=side,
        sorter=None if sorter is None else whole(sorter, batch).contiguous(),
    )


FUNCTIONS = {
    name: value
    for name, value in list(globals().items())
    if callable(value) and not name.startswith("_")
}
