"""Samples of ops of language models: all formats, part panels, no rows, heads that share keys, full and empty caches."""


def _bytes(*shape):
    """Any bytes in which numbers of 16 bits are finite."""
    return f"ints({', '.join(map(str, shape))}, high=112).to(m.uint8)"


_FORMATS = {"Q8_0": (34, 32), "Q4_0": (18, 32), "Q4_K": (144, 256), "Q6_K": (210, 256)}


def _linear(rows, results, blocks, format, bias=False):
    size, numbers = _FORMATS[format]
    panels = _bytes(-(-results // 16), 16 * blocks * size)
    return f"x({rows}{blocks * numbers}), {panels}, {f'x({results})' if bias else None}, '{format}', {results}"


def _attention(heads, shared, rows, most, width, value_width, before, slots=2):
    caches = ", ".join(f"x({slots}, {heads}, {most}, {w})" for w in (width, value_width))
    new = f"x(2, {heads}, {rows}, {width}), x(2, {heads}, {rows}, {value_width})"
    return f"x(2, {heads * shared}, {rows}, {width}), {new}, {caches}, m.tensor({before}), 0.3"


def _codes(*shape):
    """Rows of codes, and behind each the bytes of a scale between 0.007 and 0.03."""
    leading, width = ", ".join(map(str, shape[:-1])), shape[-1]
    scales = f"(ints({leading}, 1, high=1 << 24).to(m.int32) + (60 << 24)).view(m.int8)"
    return f"m.cat([ints({leading}, {width}, high=255).sub(127).to(m.int8), {scales}], -1)"


def _attention_of_codes(*sizes):
    heads, shared, rows, most, width, value_width, before, slots = sizes
    caches = f"{_codes(slots, heads, most, width)}, {_codes(slots, heads, most, value_width)}"
    new = f"x(2, {heads}, {rows}, {width}), x(2, {heads}, {rows}, {value_width})"
    return f"x(2, {heads * shared}, {rows}, {width}), {new}, {caches}, m.tensor({before}), 0.3"


SAMPLES = {
    "_gguf_dequantize": [
        f"{_bytes(*shape, 2 * size)}, '{f}'"
        for f, (size, _) in _FORMATS.items()
        for shape in ((5,), (0,), (2, 3), ())
    ],
    "_gguf_pack": [
        f"{_bytes(rows, 2 * size)}, '{f}'"
        for f, (size, _) in _FORMATS.items()
        for rows in (0, 5, 16, 35)
    ],
    "_gguf_unpack": [
        f"{_bytes(-(-rows // 16), 32 * size)}, '{f}', {rows}"
        for f, (size, _) in _FORMATS.items()
        for rows in (0, 5, 16, 35)
    ],
    "_gguf_linear": [
        *(
            _linear(rows, 35, 2, f, bias)
            for f in _FORMATS
            for rows, bias in (("", False), ("3, ", True), ("2, 9, ", False))
        ),
        *(
            _linear("0, ", 16, 1, "Q4_0"),
            _linear("2, ", 0, 1, "Q8_0"),
            _linear("2, ", 3, 0, "Q4_K"),
            _linear("37, ", 20, 1, "Q6_K", True),
        ),
    ],
    "_rotary": [
        *(
            f"x(2, 3, {rows}, 8), const(9, 4).float(), const(9, 4).float(), m.tensor([{at}]), {adjacent}"
            for rows, at in ((1, 8), (5, 2))
            for adjacent in (True, False)
        ),
        *(
            "x(3, 7), const(5, 2).float(), const(5, 2).float(), m.tensor(1), True",
            "x(3, 7), const(5, 3).float(), const(5, 3).float(), m.tensor(2), False",
        ),
        *(
            "x(3, 2, 2, 5), const(9, 2).float(), const(9, 2).float(), m.tensor([7, 0, 3]), True",
            "x(0, 4), const(5, 2).float(), const(5, 2).float(), m.tensor(5), True",
            "x(2, 0), const(5, 0).float(), const(5, 0).float(), m.tensor(0), True",
        ),
    ],
    "_cached_attention": [
        *(
            _attention(2, 1, 1, 40, 16, 16, [35]),
            _attention(2, 3, 1, 8, 20, 33, 0),
            _attention(3, 2, 5, 70, 37, 8, [64]),
            _attention(1, 4, 8, 8, 16, 16, [0, 0]),
            _attention(2, 2, 3, 70, 16, 16, [40, 3]),
            _attention(2, 2, 3, 70, 16, 16, [[40, 3], [0, 1]], slots=5),
            _attention_of_codes(2, 3, 1, 40, 20, 33, [35], 2),
            _attention_of_codes(2, 2, 3, 70, 16, 16, [[40, 3], [0, 1]], 5),
        ),
        *(_attention(2, 2, 0, 8, 16, 16, [3]), _attention(0, 1, 2, 8, 16, 16, [3])),
    ],
}
DTYPES = dict.fromkeys(SAMPLES, "float32") | {"_rotary": "floating"}
REFERENCES = {
    "_gguf_dequantize": "gguf_numbers(blocks, format)",
    "_gguf_pack": "gguf_packed(blocks, format)",
    "_gguf_unpack": "gguf_unpacked(panels, format, results)",
    "_gguf_linear": "gguf_linear(input, panels, bias, format, results)",
    "_rotary": "rotary(input, cos, sin, position, adjacent)",
    "_cached_attention": "cached_attention(query, key, value, keys, values, length, scale)",
}
_QUERY = "x(1, 2, 1, 8), x(1, 2, 1, 8), x(1, 2, 1, 8)"
ERRORS = {
    "_gguf_dequantize": [
        (f"{_bytes(3, 34)}, 'Q5_0'", RuntimeError, "format must be Q8_0"),
        (
            f"{_bytes(3, 33)}, 'Q8_0'",
            RuntimeError,
            "rows of 33 bytes are no blocks of Q8_0, which have 34",
        ),
        ("x(3, 34), 'Q8_0'", RuntimeError, "blocks must be of uint8"),
    ],
    "_gguf_pack": [
        (f"{_bytes(2, 3, 34)}, 'Q8_0'", RuntimeError, "must be a matrix"),
        (f"{_bytes(34)}, 'Q8_0'", RuntimeError, "at least 2 dimensions"),
    ],
    "_gguf_unpack": [
        (f"{_bytes(1, 16 * 34)}, 'Q8_0', 17", RuntimeError, "17 results in blocks of Q8_0"),
        (f"{_bytes(1, 16 * 34)}, 'Q8_0', -1", RuntimeError, "there cannot be -1 results"),
    ],
    "_gguf_linear": [
        (
            _linear("2, ", 20, 2, "Q4_0")[:-2] + "40",
            RuntimeError,
            "40 results in blocks of Q4_0 are panels",
        ),
        (
            f"x(3, 32), {_bytes(1, 16 * 36)}, None, 'Q4_0', 3",
            RuntimeError,
            "the weight has 64 inputs, not 32",
        ),
        (
            f"x(3, 32).double(), {_bytes(1, 16 * 18)}, None, 'Q4_0', 3",
            RuntimeError,
            "input must be of float32",
        ),
        (
            f"x(3, 32), {_bytes(1, 16 * 18)}, x(4), 'Q4_0', 3",
            RuntimeError,
            "bias must be a vector of 3",
        ),
    ],
    "_rotary": [
        (
            "x(3, 8), const(9, 4).float(), const(9, 4).float(), m.tensor([7]), True",
            IndexError,
            "positions 7 to 10 are not all among the 9",
        ),
        (
            "x(3, 8), const(9, 4).float(), const(9, 4).float(), m.tensor([-1]), True",
            IndexError,
            "positions -1 to 2",
        ),
        (
            "x(3, 8), const(9, 5).float(), const(9, 5).float(), m.tensor([0]), True",
            RuntimeError,
            "at most 4 angles",
        ),
        (
            "x(3, 8), const(9, 4).float(), const(9, 4).float(), m.tensor([0, 1]), True",
            RuntimeError,
            "position must be a number of int64, or one for each sequence",
        ),
    ],
    "_cached_attention": [
        (
            f"{_QUERY}, x(1, 2, 4, 8), x(1, 2, 4, 8), m.tensor([4]), 1.0",
            IndexError,
            "a cache of 4 positions, of which 4 are filled, has no room for 1",
        ),
        (f"{_QUERY}, x(1, 2, 4, 8), x(1, 2, 4, 8), m.tensor([-1]), 1.0", IndexError, "has no room"),
        (
            f"{_QUERY}, x(1, 2, 4, 7), x(1, 2, 4, 8), m.tensor([0]), 1.0",
            RuntimeError,
            "rows of keys are of size",
        ),
        (
            f"{_QUERY}, {', '.join(['ints(1, 2, 4, 8, high=9).to(m.int8)'] * 2)}, m.tensor([0]), 1.0",
            RuntimeError,
            "rows of keys are of size",
        ),
        (
            f"{_QUERY}, x(3, 2, 4, 8), x(3, 2, 4, 8), m.tensor([0]), 1.0",
            RuntimeError,
            "a cache is of size",
        ),
        (
            f"{_QUERY}, x(3, 2, 4, 8), x(3, 2, 4, 8), m.tensor([[0, 3]]), 1.0",
            IndexError,
            "there is no sequence 3 in a cache of 3",
        ),
        (
            f"{_QUERY}, x(1, 2, 4, 8), x(1, 2, 4, 8), m.tensor([0, 0]), 1.0",
            RuntimeError,
            "length must be of int64",
        ),
        (
            _attention(2, 2, 3, 70, 16, 16, [[40, 3], [0, 3]], slots=5),
            RuntimeError,
            "the sequence 3 is given twice",
        ),
        (
            f"{_QUERY}, x(1, 2, 4, 8), x(1, 2, 4, 8).half(), m.tensor([0]), 1.0",
            RuntimeError,
            "caches must be of one dtype",
        ),
        (
            f"{_QUERY}, x(1, 4, 2, 8).transpose(1, 2), x(1, 2, 4, 8), m.tensor([0]), 1.0",
            RuntimeError,
            "caches must be contiguous",
        ),
        (
            "x(1, 3, 1, 8), x(1, 2, 1, 8), x(1, 2, 1, 8), x(1, 2, 4, 8), x(1, 2, 4, 8), m.tensor([0]), 1.0",
            RuntimeError,
            "3 heads of query do not go into 2",
        ),
    ],
}
