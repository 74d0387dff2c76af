"""Layers, losses and images over NumPy, plain and slow: what expressions of REFERENCES need beside reference_arrays.py."""

import itertools

import numpy as np
import scipy

from tests.ops.reference_arrays import reduced, vector_norm

# ---- losses ----


def class_losses(scores, target, weight, ignore_index):
    """-weight[t] * scores[t] for classes t of scores (N, C, …), and weight[t]; 0 for the class that is ignored."""
    scores = np.moveaxis(scores, min(scores.ndim - 1, 1), -1)
    kept = target != ignore_index
    target = np.where(kept, target, 0)
    factor = kept * (1.0 if weight is None else weight[target])
    return -factor * np.take_along_axis(scores, target[..., None], -1)[..., 0], factor


def nll(scores, target, weight, reduction, ignore_index):
    losses, factor = class_losses(scores, target, weight, ignore_index)
    return losses.sum() / factor.sum() if reduction == 1 else reduced(losses, reduction)


def cross_entropy(logits, target, weight, reduction, ignore_index, smoothing):
    axis = min(logits.ndim - 1, 1)
    scores = scipy.special.log_softmax(logits, axis)
    classes = logits.shape[axis]
    by_class = 1.0 if weight is None else weight.reshape([-1] + [1] * (logits.ndim - 1 - axis))
    if target.shape == logits.shape:  # probabilities
        losses = -np.sum(by_class * scores * (target * (1 - smoothing) + smoothing / classes), axis)
        return reduced(losses, reduction)
    losses, factor = class_losses(scores, target, weight, ignore_index)
    smooth = -np.sum(by_class * scores, axis) * (target != ignore_index)
    losses = (1 - smoothing) * losses + smoothing / classes * smooth
    return losses.sum() / factor.sum() if reduction == 1 else reduced(losses, reduction)


def poisson_nll(x, target, log_input, full, eps):
    losses = np.exp(x) - target * x if log_input else x - target * np.log(x + eps)
    return losses + full * (target > 1) * (target * np.log(target) - target + 0.5 * np.log(2 * np.pi * target))


def triplet(anchor, positive, negative, margin, p, eps, swap):
    distance = lambda a, b: vector_norm(a - b + eps, p, -1)
    far = distance(anchor, negative)
    return np.maximum(0, distance(anchor, positive) - (np.minimum(far, distance(positive, negative)) if swap else far) + margin)


def multi_margin(x, target, p, margin, weight):
    rows, targets = np.atleast_2d(x), np.atleast_1d(target)
    own = np.take_along_axis(rows, targets[:, None], 1)
    found = np.maximum(0, margin - own + rows) ** p
    np.put_along_axis(found, targets[:, None], 0, 1)
    found = found.mean(1) * (1.0 if weight is None else weight[targets])
    return found if x.ndim > 1 else found[0]


def multilabel_margin(x, target):
    found = []
    for row, labels in zip(x, target, strict=True):
        labels = labels[: np.argmax(labels < 0) if np.any(labels < 0) else None]
        others = np.delete(row, labels)
        found.append(np.maximum(0, 1 - row[labels][:, None] + others).sum() / len(row))
    return np.array(found)


def ctc(scores, targets, input_lengths, target_lengths, blank):
    """-log of the probability of all alignments of each target, by the forward recursion."""
    found, begin = [], 0
    for n, (frames, length) in enumerate(zip(np.atleast_1d(input_lengths), np.atleast_1d(target_lengths), strict=True)):
        labels = targets[n, :length] if targets.ndim == 2 else targets[begin : begin + length]
        begin += length
        states = [blank, *itertools.chain(*((v, blank) for v in labels))]
        alpha = np.full(len(states), -np.inf)
        alpha[:2] = scores[0, n, states[:2]]
        for t in range(1, frames):
            before, alpha = alpha, np.empty_like(alpha)
            for s, label in enumerate(states):
                ways = [before[s], *before[s - 1 : s]] if s else [before[s]]
                if s > 1 and label not in (blank, states[s - 2]):
                    ways.append(before[s - 2])
                alpha[s] = np.logaddexp.reduce(ways) + scores[t, n, label]
        found.append(-np.logaddexp.reduce(alpha[-2:]))
    return np.array(found)


def ctc_reduced(losses, target_lengths, reduction, zero_infinity):
    losses = np.where(np.isinf(losses), 0, losses) if zero_infinity else losses
    lengths = np.maximum(np.asarray(target_lengths), 1)
    return (losses, (losses / lengths).mean(), losses.sum())[reduction]


def bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx):
    """Sums, means or maxima (mode 0, 1, 2) of the rows of bags of indices."""
    ends = [*offsets[1:], *([] if include_last_offset else [len(indices)])]
    found = []
    for begin, end in zip(offsets, ends, strict=False):
        places = [i for i in range(begin, end) if indices[i] != padding_idx]
        rows = weight[indices[places]]
        if per_sample_weights is not None:
            rows = rows * per_sample_weights[places][:, None]
        if len(rows):
            found.append((rows.sum, rows.mean, rows.max)[mode](0))
        else:
            found.append(np.zeros(weight.shape[1]))
    return np.stack(found)


# ---- normalisation ----


def normalized(x, over, eps):
    """(x - mean) / sqrt(variance + eps), the mean, and the factor."""
    mean = x.mean(over, keepdims=True)
    factor = 1 / np.sqrt(x.var(over, keepdims=True) + eps)
    return (x - mean) * factor, mean, factor


def affine(x, weight, bias, channels=True):
    """x * weight + bias, one for each channel of (N, C, …), or over the last dimensions."""
    shaped = lambda v: v.reshape([-1] + [1] * (x.ndim - 2)) if channels else v
    return x * (1 if weight is None else shaped(weight)) + (0 if bias is None else shaped(bias))


def channel_norm(x, weight, bias, mean, var, training, eps):
    """Batch normalisation, with the statistics of the batch or those given."""
    if training:
        return affine(normalized(x, (0, *range(2, x.ndim)), eps)[0], weight, bias)
    shaped = lambda v: v.reshape([-1] + [1] * (x.ndim - 2))
    return affine((x - shaped(mean)) / np.sqrt(shaped(var) + eps), weight, bias)


def grouped_norm(x, groups, eps):
    found = normalized(x.reshape(len(x), groups, -1), -1, eps)
    return found[0].reshape(x.shape), found[1][..., 0], found[2][..., 0]


def last(sizes):
    """The last dimensions, as many as sizes."""
    return tuple(range(-len(sizes), 0))


# ---- windows of images ----


def _each(value, n):
    """A number for each of n dimensions."""
    value = [value] if isinstance(value, int) else list(value)
    return value * n if len(value) == 1 else value


def _windows(sizes, kernel, stride, padding, dilation, ceil_mode):
    """For each dimension the windows' (first place, places in the image, end with padding)."""
    found = []
    for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        reach = d * (k - 1) + 1
        count = -(-(n + 2 * p - reach) // s) + 1 if ceil_mode else (n + 2 * p - reach) // s + 1
        if ceil_mode and (count - 1) * s >= n + p:  # the last window would begin in the padding
            count -= 1
        starts = [i * s - p for i in range(count)]
        found.append([(b, [t for t in range(b, b + reach, d) if 0 <= t < n], min(b + reach, n + p)) for b in starts])
    return found


def avg_pool(x, n, kernel, stride, padding, ceil_mode, count_include_pad=True, divisor=None):
    kernel = _each(kernel, n)
    places = _windows(x.shape[-n:], kernel, _each(stride, n) or kernel, _each(padding, n), [1] * n, ceil_mode)
    out = np.empty((*x.shape[:-n], *map(len, places)))
    for at in np.ndindex(*map(len, places)):
        window = [axis[i] for axis, i in zip(places, at, strict=True)]
        values = x[(..., *np.ix_(*(w[1] for w in window)))]
        all_of_it = np.prod([end - begin for begin, _, end in window]) if count_include_pad else np.prod(values.shape[-n:])
        out[(..., *at)] = values.sum(last(window)) / (divisor or all_of_it)
    return out


def _largest(x, places, n):
    """The largest elements of windows, and where they stand in the flattened image."""
    out = np.empty((*x.shape[:-n], *map(len, places)))
    where = np.empty(out.shape, int)
    flat = np.arange(np.prod(x.shape[-n:])).reshape(x.shape[-n:])
    for at in np.ndindex(*map(len, places)):
        window = np.ix_(*(axis[i] for axis, i in zip(places, at, strict=True)))
        values = x[(..., *window)].reshape(*x.shape[:-n], flat[window].size)
        out[(..., *at)] = values.max(-1)
        where[(..., *at)] = flat[window].reshape(-1)[values.argmax(-1)]
    return out, where


def max_pool(x, n, kernel, stride, padding, dilation, ceil_mode):
    kernel = _each(kernel, n)
    found = _windows(x.shape[-n:], kernel, _each(stride, n) or kernel, _each(padding, n), _each(dilation, n), ceil_mode)
    return _largest(x, [[inside for _, inside, _ in axis] for axis in found], n)


def _adaptive(sizes, output):
    """The places of nearly equal windows."""
    return [[list(range(i * n // o, -(-(i + 1) * n // o))) for i in range(o)] for n, o in zip(sizes, output, strict=True)]


def adaptive_max_pool(x, n, output):
    return _largest(x, _adaptive(x.shape[-n:], _each(output, n)), n)


def adaptive_avg_pool(x, n, output):
    places = _adaptive(x.shape[-n:], _each(output, n))
    out = np.empty((*x.shape[:-n], *map(len, places)))
    for at in np.ndindex(*map(len, places)):
        window = np.ix_(*(axis[i] for axis, i in zip(places, at, strict=True)))
        out[(..., *at)] = x[(..., *window)].mean(tuple(range(-n, 0)))
    return out


def unfolded(x, kernel, dilation, padding, stride, outside=0):
    """im2col of (N, C, H, W), or without N."""
    kernel, dilation, padding, stride = (_each(v, 2) for v in (kernel, dilation, padding, stride))
    batch = x if x.ndim == 4 else x[None]
    padded = np.pad(batch, [(0, 0), (0, 0), *((p, p) for p in padding)], constant_values=outside)
    count = [(n - d * (k - 1) - 1) // s + 1 for n, k, d, s in zip(padded.shape[2:], kernel, dilation, stride, strict=True)]
    taps = [
        padded[:, :, a * dilation[0] :, b * dilation[1] :][:, :, :: stride[0], :: stride[1]][:, :, : count[0], : count[1]]
        for a in range(kernel[0])
        for b in range(kernel[1])
    ]
    found = np.stack(taps, 2).reshape(len(batch), batch.shape[1] * len(taps), count[0] * count[1])
    return found if x.ndim == 4 else found[0]


# ---- convolution ----


def convolved(x, weight, bias, stride=1, padding=0, dilation=1, groups=1):
    n = weight.ndim - 2
    batch = x if x.ndim == n + 2 else x[None]
    stride, dilation = _each(stride, n), _each(dilation, n)
    if isinstance(padding, str):
        all_of_it = [d * (k - 1) if padding == "same" else 0 for d, k in zip(dilation, weight.shape[2:], strict=True)]
        sides = [(p // 2, p - p // 2) for p in all_of_it]
    else:
        sides = [(p, p) for p in _each(padding, n)]
    padded = np.pad(batch, [(0, 0), (0, 0), *sides])
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, weight.shape[2:], strict=True)]
    sizes = [(m - r) // s + 1 for m, r, s in zip(padded.shape[2:], reach, stride, strict=True)]
    out = 0
    for tap in np.ndindex(*weight.shape[2:]):
        seen = padded[(..., *(slice(t * d, t * d + (m - 1) * s + 1, s) for t, d, m, s in zip(tap, dilation, sizes, stride, strict=True)))]
        seen = seen.reshape(len(batch), groups, weight.shape[1], *sizes)
        taps = weight[(..., *tap)].reshape(groups, len(weight) // groups, weight.shape[1])
        out = out + np.einsum("ngc...,goc->ngo...", seen, taps).reshape(len(batch), len(weight), *sizes)
    out = affine(out, None, bias)
    return out if x.ndim == n + 2 else out[0]


def conv_transposed(x, weight, bias, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Adds each element's copy of the weight to the output, then cuts the padding off."""
    n = weight.ndim - 2
    batch = x if x.ndim == n + 2 else x[None]
    stride, padding, extra, dilation = (_each(v, n) for v in (stride, padding, output_padding, dilation))
    sizes = [(m - 1) * s + d * (k - 1) + 1 + e for m, s, d, k, e in zip(batch.shape[2:], stride, dilation, weight.shape[2:], extra, strict=True)]
    out = np.zeros((len(batch), groups * weight.shape[1], *sizes), np.result_type(x, weight))
    grouped = batch.reshape(len(batch), groups, -1, *batch.shape[2:])
    for tap in np.ndindex(*weight.shape[2:]):
        taps = weight[(..., *tap)].reshape(groups, -1, weight.shape[1])
        place = (slice(t * d, t * d + (m - 1) * s + 1, s) for t, d, m, s in zip(tap, dilation, batch.shape[2:], stride, strict=True))
        out[(..., *place)] += np.einsum("ngc...,gco->ngo...", grouped, taps).reshape(len(batch), -1, *batch.shape[2:])
    out = affine(out[(..., *(slice(p, m - p) for p, m in zip(padding, sizes, strict=True)))], None, bias)
    return out if x.ndim == n + 2 else out[0]


def padded(x, pad, mode="constant", value=None):
    """Crops by negative sizes, then pads; sizes are those of the last dimension first."""
    sides = [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    cropped = x[tuple(slice(-min(a, 0), n + min(b, 0)) for n, (a, b) in zip(x.shape, sides, strict=True))]
    sides = [(max(a, 0), max(b, 0)) for a, b in sides]
    if mode == "constant":
        return np.pad(cropped, sides, constant_values=value or 0)
    return np.pad(cropped, sides, {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])


def places_of_pixels(theta, sizes, align_corners):
    """Where affine maps send the pixels of images of a size, in coordinates from -1 to 1, the last dimension first."""
    axes = [np.linspace(-1, 1, n) if align_corners else (2 * np.arange(n) + 1) / n - 1 for n in sizes]
    if align_corners:
        axes = [a if len(a) > 1 else np.zeros(1) for a in axes]
    at = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(sizes)], -1)
    return np.einsum("...k,nck->n...c", at, theta)


# ---- attention, recurrence ----


def attention(query, key, value, mask, is_causal, scale, enable_gqa=False):
    if enable_gqa:
        key, value = (np.repeat(v, query.shape[-3] // v.shape[-3], -3) for v in (key, value))
    scores = query @ np.swapaxes(key, -1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        mask = np.tri(*scores.shape[-2:], dtype=bool)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    hidden = np.all(np.isinf(scores), -1, keepdims=True) if scores.shape[-1] else np.zeros(1, bool)
    return np.where(hidden, 0, scipy.special.softmax(np.where(hidden, 0, scores), -1)) @ value


def cell(mode, x, state, w_ih, w_hh, b_ih=None, b_hh=None, w_hr=None):
    """One step of a recurrent layer; `state` is hidden, or (hidden, cell)."""
    sigmoid = scipy.special.expit
    hidden = state[0] if mode == "lstm" else state
    own, past = x @ w_ih.T + (0 if b_ih is None else b_ih), hidden @ w_hh.T + (0 if b_hh is None else b_hh)
    if mode == "lstm":
        i, f, g, o = np.split(own + past, 4, -1)
        memory = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        out = sigmoid(o) * np.tanh(memory)
        return (out if w_hr is None else out @ w_hr.T), memory
    if mode == "gru":
        (r, z, n), (past_r, past_z, past_n) = np.split(own, 3, -1), np.split(past, 3, -1)
        z = sigmoid(z + past_z)
        return (1 - z) * np.tanh(n + sigmoid(r + past_r) * past_n) + z * hidden
    return np.tanh(own + past) if mode == "tanh" else np.maximum(own + past, 0)


def _steps(mode, steps, states, weights, reverse):
    """The outputs of all steps, of which later ones may have fewer rows, and the last state of each row."""
    lstm = mode == "lstm"
    states = [s.copy() for s in states]
    outputs = [None] * len(steps)
    for t in range(len(steps))[:: -1 if reverse else 1]:
        rows = len(steps[t])
        before = tuple(s[:rows] for s in states)
        after = cell(mode, steps[t], before if lstm else before[0], *weights)
        for s, new in zip(states, after if lstm else (after,), strict=True):
            s[:rows] = new
        outputs[t] = states[0][:rows].copy()
    return outputs, states


def recurrent(mode, steps, hx, params, has_biases, num_layers, bidirectional):
    """Outputs of the last layer for each step, and the last states of all layers."""
    given = hx if mode == "lstm" else [hx]
    directions = 1 + bidirectional
    each = len(params) // (num_layers * directions)
    ends = [[] for _ in given]
    for layer in range(num_layers):
        found = []
        for direction in range(directions):
            at = layer * directions + direction
            weights = params[at * each : (at + 1) * each]
            if not has_biases:  # a projection stands behind the biases
                weights = [*weights[:2], None, None, *weights[2:]]
            outputs, states = _steps(mode, steps, [s[at] for s in given], weights, direction == 1)
            found.append(outputs)
            for end, s in zip(ends, states, strict=True):
                end.append(s)
        steps = [np.concatenate(both, -1) for both in zip(*found, strict=True)]
    return steps, [np.stack(end) for end in ends]


def recurrent_input(mode, x, hx, params, has_biases, num_layers, bidirectional, batch_first):
    steps = list(np.moveaxis(x, 1, 0) if batch_first else x)
    outputs, ends = recurrent(mode, steps, hx, params, has_biases, num_layers, bidirectional)
    return np.stack(outputs, 1 if batch_first else 0), *ends


def recurrent_data(mode, data, batch_sizes, hx, params, has_biases, num_layers, bidirectional):
    steps = np.split(data, np.cumsum(batch_sizes)[:-1])
    outputs, ends = recurrent(mode, steps, hx, params, has_biases, num_layers, bidirectional)
    return np.concatenate(outputs), *ends
