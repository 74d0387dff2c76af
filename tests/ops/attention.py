"""Samples of attention: lengths around the blocks, masks, causality, shared heads, fewer and more dimensions."""

_LOWER = "m.ones(9, 7, dtype=m.bool).tril()"

SAMPLES = {
    "scaled_dot_product_attention": [
        *("x(2, 3, 9, 4), x(2, 3, 7, 4), x(2, 3, 7, 5)", "x(2, 2, 40, 8), x(2, 2, 130, 8), x(2, 2, 130, 8)"),
        *("x(1, 2, 37, 3), x(1, 2, 37, 3), x(1, 2, 37, 3), is_causal=True", "x(1, 1, 9, 4), x(1, 1, 5, 4), x(1, 1, 5, 4), is_causal=True"),
        *("x(1, 1, 5, 4), x(1, 1, 9, 4), x(1, 1, 9, 4), None, 0.0, True", "x(4, 6), x(5, 6), x(5, 6)", "x(3, 4, 6), x(3, 5, 6), x(3, 5, 2)"),
        *(f"x(2, 3, 9, 4), x(2, 3, 7, 4), x(2, 3, 7, 4), {_LOWER}", "x(2, 3, 9, 4), x(2, 3, 7, 4), x(2, 3, 7, 4), x(9, 7)"),
        *("x(2, 3, 9, 4), x(2, 3, 7, 4), x(2, 3, 7, 4), const(2, 1, 1, 7)", "x(2, 3, 9, 4), x(2, 3, 7, 4), x(2, 3, 7, 4), const(9, 1)"),
        *("x(2, 4, 9, 4), x(2, 2, 7, 4), x(2, 2, 7, 4), enable_gqa=True", "x(2, 4, 2, 4), x(2, 2, 7, 4), x(2, 2, 7, 4), enable_gqa=True"),
        *("x(2, 3, 9, 4), x(2, 3, 7, 4), x(2, 3, 7, 4), scale=0.3", "x(2, 2, 2, 3, 5, 4), x(2, 2, 2, 3, 6, 4), x(2, 2, 2, 3, 6, 4)"),
        *("x(1, 1, 1, 4), x(1, 1, 7, 4), x(1, 1, 7, 4)", "x(2, 0, 5, 4), x(2, 0, 6, 4), x(2, 0, 6, 4)", "x(2, 1, 0, 4), x(2, 1, 6, 4), x(2, 1, 6, 4)"),
        *("x(1, 1, 5, 2), x(1, 1, 4, 2), x(1, 1, 4, 3)", "x(1, 1, 4, 2), x(1, 1, 5, 2), x(1, 1, 5, 2), is_causal=True"),
        *("x(1, 2, 4, 2), x(1, 1, 3, 2), x(1, 1, 3, 2), enable_gqa=True", "x(4, 2), x(3, 2), x(3, 2), x(4, 3)"),
        *("x(1, 1, 4, 2), x(1, 1, 3, 2), x(1, 1, 3, 2), m.ones(4, 3, dtype=m.bool).tril(-1)",),
        *("x(1, 1, 4, 2), x(1, 1, 3, 2), x(1, 1, 3, 2), const(4, 3)", "x(3, 2), x(3, 2), x(3, 2), is_causal=True"),
        *("x(1, 1, 150, 3), x(1, 1, 150, 3), x(1, 1, 150, 20), is_causal=True", "x(2, 3, 5, 4), x(1, 3, 6, 4), x(1, 3, 6, 4)"),
    ],
}
DTYPES = dict.fromkeys(SAMPLES, "floating")
REFERENCES = {
    "scaled_dot_product_attention": "attention(query, key, value, attn_mask, is_causal, scale, enable_gqa)",
    "_attention": "(attention(query, key, value, attn_mask, is_causal, scale), None)",
}
ERRORS = {
    "scaled_dot_product_attention": [
        ("x(4), x(4), x(4)", RuntimeError, "to be at least 2 dimensional, but they have 1, 1 and 1 dimensions"),
        ("x(2, 4, 4), x(2, 4, 4).double(), x(2, 4, 4)", RuntimeError, "query, key and value must have the same dtype"),
        ("x(4, 4), x(4, 4), x(4, 4), x(4, 4), 0.0, True", RuntimeError, "Explicit attn_mask should not be set when is_causal=True"),
        ("x(4, 4), x(4, 4), x(4, 4), ints(4, 4, high=2)", RuntimeError, "Expected attn_mask dtype to be bool or float"),
        ("x(1, 1, 4, 4), x(1, 1, 4, 3), x(1, 1, 4, 4)", RuntimeError, "mat1 and mat2|size|shape"),
        ("x(1, 1, 4, 4), x(1, 1, 4, 4), x(1, 1, 5, 4)", RuntimeError, "mat1 and mat2|size|shape"),
        ("x(2, 1, 4, 4), x(3, 1, 4, 4), x(3, 1, 4, 4)", RuntimeError, "size"),
        ("x(1, 3, 4, 4), x(1, 2, 4, 4), x(1, 2, 4, 4), enable_gqa=True", RuntimeError, "key has 2 heads, value 2 and query 3"),
        ("x(1, 3, 4, 4), x(1, 3, 4, 4), x(1, 3, 4, 4), x(1, 2, 4, 4)", RuntimeError, "size"),
    ],
}
