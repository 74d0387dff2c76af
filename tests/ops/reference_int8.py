"""Layers of codes of 8 bits over NumPy: sums of whole numbers, then the formula in float64."""

import itertools

import numpy as np


def int8_packed(weight, groups):
    """(results, inputs) as panels of 16 results and groups of 4 inputs."""
    results, inputs = weight.shape[0] // groups, weight.shape[1]
    panels, quads = -(-results // 16), -(-inputs // 4)
    whole = np.zeros((groups, 16 * panels, 4 * quads))
    whole[:, :results, :inputs] = weight.reshape(groups, results, inputs)
    parts = whole.reshape(groups, panels, 16, quads, 4).transpose(0, 1, 3, 2, 4)
    return parts.reshape(groups, panels, quads, 64)


def int8_unpacked(packed, results, inputs):
    """(groups, results, inputs) of a packed weight."""
    groups, panels, quads, _ = packed.shape
    parts = packed.reshape(groups, panels, quads, 16, 4).transpose(0, 1, 3, 2, 4)
    return parts.reshape(groups, 16 * panels, 4 * quads)[:, :results, :inputs]


def int8_codes(x, reduce_range):
    """Codes of one scale for all numbers, the scale and the zero point."""
    low, high, last = min(x.min(initial=0), 0), max(x.max(initial=0), 0), 127 if reduce_range else 255
    scale = (high - low) / last or 0.1
    from_low = -abs(low / scale) < last - abs(high / scale)
    zero = np.rint(np.clip(-low / scale if from_low else last - high / scale, 0, last))
    return np.clip(np.rint(x / scale + zero), 0, 255), scale, zero


def int8_linear(x, weight, sums, steps, bias, reduce_range, by_rows, relu):
    if by_rows:
        scale = np.maximum(abs(x).max(-1, keepdims=True, initial=0) / 127, 1e-5)
        codes, zero = np.rint(x / scale) + 128, 128
    else:
        codes, scale, zero = int8_codes(x, reduce_range)
    matrix = int8_unpacked(weight, len(sums), x.shape[-1])[0]
    out = (codes @ matrix.T - zero * sums) * scale * steps + (0 if bias is None else bias)
    return np.maximum(out, 0) if relu else out


def int8_convolution(x, scale, zero, weight, sums, steps, bias, relu, result_scale, result_zero, window, groups):
    kernel, stride, padding, dilation = (list(part) for part in window)
    dims, signed = len(kernel), x.min(initial=0) < 0  # samples of int8 have negative codes
    first = -128 if signed else 0
    taps, channels = int(np.prod(kernel)), x.shape[-1] // groups
    if weight.ndim == 2:
        matrix = weight.T[:, None, :]
    else:
        matrix = int8_unpacked(weight, len(sums) // groups, taps * channels)
    centred = np.pad(x.astype(float) - zero, [(0, 0), *((p, p) for p in padding), (0, 0)] if dims else [(0, 0)] * x.ndim)
    sizes = [(centred.shape[d + 1] - dilation[d] * (kernel[d] - 1) - 1) // stride[d] + 1 for d in range(dims)]
    windows = []
    for tap in itertools.product(*map(range, kernel)):
        places = [slice(t * d, t * d + s * (n - 1) + 1, s) for t, d, s, n in zip(tap, dilation, stride, sizes, strict=True)]
        windows.append(centred[(slice(None), *places)] if dims else centred)
    parts = np.stack(windows, -2).reshape(*windows[0].shape[:-1], taps, groups, channels)
    rows = np.moveaxis(parts, -2, -3).reshape(*parts.shape[:-3], groups, taps * channels)
    found = np.einsum("...gk,grk->...gr", rows, matrix).reshape(*rows.shape[:-2], len(sums))
    # The zero point has been subtracted from codes, which is what it and the sums of a packed weight do.
    if weight.ndim != 2:
        found += zero_shift(zero, signed) * (matrix.sum(-1).reshape(-1) - sums)
    factor = steps * scale
    codes = np.rint((found + (0 if bias is None else bias / factor)) * (factor / result_scale)) + result_zero
    return np.clip(codes, max(first, result_zero) if relu else first, first + 255)


def zero_shift(zero, signed):
    """The zero point of codes without a sign."""
    return zero + 128 if signed else zero


def block_linear(x, weight, scales, zeros, bias, group, bits):
    """Rows rounded to 127 codes on either side of 0 in groups, sums of groups, then scales."""
    blocks, results = scales.shape
    panels = weight.astype(int)
    if bits == 4:
        panels = np.stack([panels & 15, panels >> 4], 2).reshape(len(panels), -1, 64)
    codes = int8_unpacked(panels[None], results, blocks * group)[0].reshape(results, blocks, group)
    parts = x.reshape(*x.shape[:-1], blocks, group)
    steps = abs(parts).max(-1, initial=0) / 127
    rows = np.rint(parts / np.where(steps, steps, 1)[..., None])
    middle = 2 ** (bits - 1) if zeros is None else zeros.T[..., None]
    sums = np.einsum("...bg,rbg->...rb", rows, codes - middle)
    return (sums * scales.T * steps[..., None, :]).sum(-1) + (0 if bias is None else bias)


# ---- codes, in float32 as the kernels compute ----


def codes_of(x, scale, zero_point, dtype):
    return nearest_codes(np.float32(x), scale, zero_point, -128 if "uint8" not in str(dtype) else 0)


def nearest_codes(numbers, scale, zero_point, first):
    places = np.rint(numbers * (np.float32(1) / np.float32(scale)) + np.float32(zero_point))
    return np.clip(places, first, first + 255)


def numbers_of_codes(codes, scale, zero_point):
    return (np.float32(codes) - np.float32(zero_point)) * np.float32(scale)


def combined_codes(a, a_scale, a_zero, b, b_scale, b_zero, how, relu, scale, zero_point):
    x, y = numbers_of_codes(a, a_scale, a_zero), numbers_of_codes(b, b_scale, b_zero)
    both = x + y if how == "add" else x * y
    first = -128 if a.min(initial=0) < 0 else 0  # samples of int8 have negative codes
    return nearest_codes(np.maximum(both, 0) if relu else both, scale, zero_point, first)
