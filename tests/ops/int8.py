"""Samples of codes and of layers of them: whole and part panels and groups, groups, taps, padding, both kinds of codes, no rows and no inputs."""

_INT8 = "high=128, low=-128).to(m.int8)"


def _weight(results, inputs, groups=1, bias="x"):
    """Any packed weight, sums that need not be its own, steps and a bias."""
    shape = f"{groups}, {-(-results // groups // 16)}, {-(-inputs // 4)}, 64"
    vectors = f"ints({results}, high=900, low=-900).to(m.int32), pos({results})"
    return f"ints({shape}, {_INT8}, {vectors}, {f'x({results})' if bias else None}"


def _by_channels(taps, channels):
    return f"ints({taps}, {channels}, {_INT8}, ints({channels}, high=9).to(m.int32), pos({channels}), x({channels})"


def _blocks(results, inputs, group, bits, zeros=False, bias=False):
    """Any weight in blocks."""
    shape = f"{-(-results // 16)}, {inputs // 4 * bits // 8}, 64"
    size = f"{inputs // group}, {results}"
    between = f"ints({size}, high={2**bits}).to(m.uint8)" if zeros else None
    return f"ints({shape}, {_UINT8}, pos({size}), {between}, {f'x({results})' if bias else None}, {group}, {bits}"


_UINT8 = "high=256).to(m.uint8)"
_LINEAR = "[], [], [], [], 1"

SAMPLES = {
    "_int8_pack": [f"ints(5, 3, {_INT8}", f"ints(40, 33, {_INT8}, 2", f"ints(0, 5, {_INT8}", f"ints(3, 0, {_INT8}", f"ints(20, 16, {_INT8}.t(), 4"],
    "_int8_linear_dynamic": [
        *(f"x(3, 9), {_weight(20, 9)}, {flags}" for flags in ("True, False, False", "False, False, True", "False, True, False")),
        *(f"x(17, 70), {_weight(33, 70, bias=None)}, True, False, True", f"x(2, 3, 64), {_weight(16, 64)}, False, True, True"),
        *(f"x(0, 9), {_weight(20, 9)}, True, False, False", f"x(2, 0), {_weight(3, 0)}, True, False, False", f"x(40), {_weight(7, 40)}, True, False, False"),
        f"x(29, 128), {_weight(50, 128)}, False, False, False",
    ],
    "_int8_convolution": [
        f"ints(5, 9, {_UINT8}, 0.1, 7, {_weight(20, 9)}, False, 90.0, 3, {_LINEAR}",
        f"ints(5, 9, {_INT8}, 0.1, -7, {_weight(20, 9)}, True, 90.0, 3, {_LINEAR}",
        f"ints(30, 16, high=100).to(m.uint8), 0.1, 90, {_weight(40, 16, bias=None)}, False, 90.0, 128, {_LINEAR}",
        f"ints(2, 6, 5, {_UINT8}, 0.1, 100, {_weight(7, 15)}, False, 90.0, 100, [3], [2], [1], [1], 1",
        f"ints(2, 6, 7, 4, {_UINT8}, 0.1, 100, {_weight(20, 24)}, True, 90.0, 100, [3, 2], [1, 2], [2, 0], [1, 2], 1",
        f"ints(2, 6, 7, 8, {_INT8}, 0.1, 100, {_weight(36, 36, 2)}, False, 90.0, 100, [3, 3], [1, 1], [1, 1], [1, 1], 2",
        f"ints(1, 3, 4, 5, 2, {_UINT8}, 0.1, 0, {_weight(3, 16)}, False, 90.0, 255, [2, 2, 2], [1, 2, 1], [1, 0, 1], [1, 1, 2], 1",
        f"ints(2, 5, 6, 12, {_UINT8}, 0.1, 30, {_weight(17, 12)}, False, 90.0, 100, [1, 1], [1, 1], [0, 0], [1, 1], 1",
        f"ints(2, 7, 6, 40, {_UINT8}, 0.1, 30, {_by_channels(9, 40)}, True, 20.0, 100, [3, 3], [2, 1], [1, 1], [1, 1], 40",
        f"ints(2, 7, 5, {_INT8}, 0.1, 30, {_by_channels(3, 5)}, False, 20.0, 100, [3], [1], [1], [2], 5",
        # Rows of results that are long enough for windows to be read where they lie.
        f"ints(2, 5, 40, 64, {_UINT8}, 0.1, 100, {_weight(35, 384)}, True, 90.0, 100, [2, 3], [1, 2], [1, 1], [2, 1], 1",
        f"ints(1, 4, 37, 12, {_INT8}, 0.1, -30, {_weight(20, 108)}, False, 90.0, 3, [3, 3], [1, 1], [1, 1], [1, 1], 1",
        f"ints(2, 33, 64, {_UINT8}, 0.1, 7, {_weight(17, 192)}, False, 90.0, 3, [3], [1], [0], [2], 1",
        f"ints(1, 4, 40, 0, {_UINT8}, 0.1, 3, {_weight(20, 0)}, False, 90.0, 5, [3, 3], [1, 1], [1, 1], [1, 1], 1",
        f"ints(1, 2, 3, 64, {_UINT8}, 0.1, 3, {_weight(5, 128)}, False, 90.0, 5, [1, 2], [1, 2], [0, 20], [1, 1], 1",
        f"ints(0, 6, 5, {_UINT8}, 0.1, 100, {_weight(7, 15)}, False, 90.0, 100, [3], [2], [1], [1], 1",
    ],
    "_codes_of": [
        *("x(3, 700) * 9, 0.1, 100, m.uint8", "x(5) * 30, 0.25, -3, m.int8", "x(), 0.5, 0, m.int8", "x(0, 3), 0.5, 0, m.uint8"),
        *("x(4, 6).t(), 0.03, 128, m.uint8", "x(4, 6)[:, ::2], 0.03, 128, m.uint8"),
    ],
    "_numbers_of_codes": [
        *(f"ints(3, 700, {_UINT8}, 0.1, 100", f"ints(5, {_INT8}, 0.25, -3", f"ints(0, 3, {_INT8}, 0.5, 0"),
        *(f"ints(4, 6, {_UINT8}.t(), 0.03, 128", f"ints(4, 6, {_UINT8}[:, ::2], 0.03, 128"),
    ],
    "_combine_codes": [
        *(f"ints(3, 300, {_UINT8}, 0.1, 100, ints(3, 300, {_UINT8}, 0.2, 30, '{how}', {relu}, {scale}, 40"
          for how, scale in (("add", 0.3), ("mul", 4.0)) for relu in (True, False)),
        f"ints(4, 6, {_INT8}.t(), 0.1, -3, ints(6, 4, {_INT8}, 0.2, 30, 'add', False, 0.3, -128",
        f"ints(4, 6, {_INT8}[:, ::2], 0.1, -3, ints(4, 3, {_INT8}, 0.2, 30, 'mul', False, 0.3, 5",
        f"ints(4, 1, 6, {_INT8}, 0.1, -3, ints(3, 1, {_INT8}, 0.2, 30, 'mul', False, 0.3, 5",
        f"ints(0, 6, {_INT8}, 0.1, -3, ints(0, 6, {_INT8}, 0.2, 30, 'add', True, 0.3, 5",
    ],
    "_block_linear": [
        *(f"x(3, 64), {_blocks(20, 64, 32, bits, zeros, bias)}" for bits in (4, 8) for zeros in (True, False) for bias in (True, False)),
        *(f"x(9, 2, 24), {_blocks(35, 24, 8, 4, True)}", f"x(256), {_blocks(16, 256, 128, 4)}", f"x(19, 96), {_blocks(7, 96, 96, 8)}"),
        *(f"x(0, 16), {_blocks(3, 16, 8, 4)}", f"x(2, 0), {_blocks(3, 0, 8, 4)}"),
    ],
}
DTYPES = dict.fromkeys(SAMPLES, "float32")
REFERENCES = {
    "_int8_pack": "int8_packed(weight, groups)",
    "_int8_linear_dynamic": "int8_linear(input, weight, sums, steps, bias, reduce_range, by_rows, relu)",
    "_int8_convolution": "int8_convolution(input, scale, zero_point, weight, sums, steps, bias, relu, result_scale, result_zero_point,"
    " (kernel, stride, padding, dilation), groups)",
    "_codes_of": "codes_of(self, scale, zero_point, dtype)",
    "_numbers_of_codes": "numbers_of_codes(codes, scale, zero_point)",
    "_combine_codes": "combined_codes(self, self_scale, self_zero_point, other, other_scale, other_zero_point, how, relu, scale, zero_point)",
    "_block_linear": "block_linear(input, weight, scales, zeros, bias, group, bits)",
}
_CODES = f"ints(2, 6, 7, 4, {_UINT8}, 0.1, 100"
_WINDOW = "[3, 2], [1, 2], [2, 0], [1, 2]"
ERRORS = {
    "_int8_pack": [("x(3, 4)", RuntimeError, "must be a matrix of int8"), (f"ints(5, 3, {_INT8}, 2", RuntimeError, "do not go into 2 groups")],
    "_int8_linear_dynamic": [
        (f"x(3, 8), {_weight(20, 12)}, True, False, False", RuntimeError, r"20 results and 8 inputs in 1 groups is packed into \[1, 2, 2, 64\]"),
        (f"x(3, 9).double(), {_weight(20, 9)}, True, False, False", RuntimeError, "input must be of float32"),
        (f"x(3, 9), ints(1, 2, 3, 64, {_INT8}, ints(20, high=9), pos(20), None, True, False, False", RuntimeError, "sums must be a vector of 20 numbers of"),
        (f"x(3, 9) * nan, {_weight(20, 9)}, True, False, False", RuntimeError, "min should be less than or equal to max"),
    ],
    "_int8_convolution": [
        (f"x(5, 9), 0.1, 7, {_weight(20, 9)}, False, 90.0, 3, {_LINEAR}", RuntimeError, "input must be of int8 or uint8"),
        (f"ints(5, 9, {_UINT8}, 0.1, 256, {_weight(20, 9)}, False, 90.0, 3, {_LINEAR}", RuntimeError, "zero_point must be a code of"),
        (f"{_CODES}, {_weight(20, 24)}, True, 90.0, 100, {_WINDOW}, 3", RuntimeError, "do not go into 3 groups"),
        (f"{_CODES}, {_weight(20, 25)}, True, 90.0, 100, {_WINDOW}, 1", RuntimeError, "20 results and 24 inputs"),
        (f"{_CODES}, {_weight(20, 24)}, True, 90.0, 100, [3, 2], [1, 0], [2, 0], [1, 2], 1", RuntimeError, "must be positive"),
        (f"{_CODES}, {_weight(20, 24)}, True, 90.0, 100, [3, 2], [1, 1], [2], [1, 2], 1", RuntimeError, "a number for each of up to three"),
        (f"{_CODES}, {_weight(20, 24)}, True, 90.0, 100, [12, 2], [1, 1], [2, 0], [1, 2], 1", RuntimeError, "Kernel size can't be greater"),
        (f"{_CODES}, {_by_channels(5, 4)}, True, 90.0, 100, {_WINDOW}, 4", RuntimeError, "a weight for each channel alone is"),
    ],
    "_codes_of": [
        ("x(3).double(), 0.1, 3, m.uint8", RuntimeError, "self must be of float32"),
        ("x(3), 0.1, 3, m.int32", RuntimeError, "dtype must be int8 or uint8"),
        ("x(3), 0.1, -3, m.uint8", RuntimeError, "zero_point must be a code of"),
    ],
    "_numbers_of_codes": [("x(3), 0.1, 3", RuntimeError, "codes must be of int8 or uint8"), (f"ints(3, {_INT8}, 0.1, 130", RuntimeError, "zero_point must be")],
    "_combine_codes": [
        (f"ints(3, {_INT8}, 0.1, 3, ints(4, {_INT8}, 0.1, 3, 'add', True, 0.1, 3", RuntimeError, "do not broadcast"),
        (f"ints(3, {_INT8}, 0.1, 3, ints(3, {_UINT8}, 0.1, 3, 'add', True, 0.1, 3", RuntimeError, "other must be of int8"),
        (f"ints(3, {_INT8}, 0.1, 3, ints(3, {_INT8}, 0.1, 3, 'sub', True, 0.1, 3", RuntimeError, "how must be add or mul"),
        (f"ints(3, {_INT8}, 0.1, 3, ints(3, {_INT8}, 0.1, 300, 'add', True, 0.1, 3", RuntimeError, "other_zero_point must be"),
    ],
    "_block_linear": [
        (f"x(3, 60), {_blocks(20, 64, 32, 4)}", RuntimeError, "do not go into groups of 32"),
        (f"x(3, 64), {_blocks(20, 64, 12, 4)}", RuntimeError, "do not go into groups of 12"),
        (f"x(3, 64), {_blocks(20, 64, 32, 4)[:-1]}8", RuntimeError, "weight must be of uint8 and of size"),
        (f"x(3, 64), {_blocks(20, 64, 32, 4)[:-1]}5", RuntimeError, "bits must be 4 or 8, not 5"),
        (f"x(3, 64).double(), {_blocks(20, 64, 32, 4)}", RuntimeError, "input must be of float32"),
        (f"x(3, 64), ints(2, 8, 64, {_UINT8}, pos(2, 20), pos(2, 20), None, 32, 4", RuntimeError, "zeros must be of uint8"),
    ],
}
