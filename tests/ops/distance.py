"""Samples of distances and shuffles: every norm, equal rows, batches that broadcast, odd sizes."""

_P = ("0.0", "1.0", "2.0", "3.0", "1.5", "inf")

SAMPLES = {
    "cosine_similarity": ["x(3, 4), x(3, 4)", "x(3, 4), x(3, 4), -1", "x(2, 3, 4), x(4), 2, 1e-3", "x(4), x(4), 0", "x(0, 4), x(0, 4)"],
    "pairwise_distance": ["x(3, 4), x(3, 4)", "x(3, 4), x(4), 1.0", "x(2, 3, 4), x(2, 3, 4), 3.0, 1e-3, True", "x(4), x(4)"],
    "cdist": [
        *(f"x(3, 4), x(2, 4), {p}" for p in _P),
        *("x(2, 3, 4), x(5, 4)", "x(40, 3), x(30, 3)", "x(3, 2), x(4, 2), 2.0, compute_mode='use_mm_for_euclid_dist'", "x(30, 2), x(3, 2), 2.0, compute_mode='donot_use_mm_for_euclid_dist'", "x(3, 20), x(2, 20), 1.0"),
        *("x(0, 3), x(2, 3)", "x(2, 3, 0), x(2, 2, 0)", "x(2, 1, 3, 4), x(3, 2, 4), 3.0"),
    ],
    "pdist": ["x(4, 3)", "x(5, 2), 1.0", "x(3, 3), 3.0", "x(1, 3)", "x(4, 2), inf"],
    "pixel_shuffle": ["x(8, 3, 2), 2", "x(2, 9, 2, 2), 3", "x(4, 2, 2), 1", "x(1, 2, 4, 2, 3), 2"],
    "pixel_unshuffle": ["x(2, 4, 6), 2", "x(2, 1, 6, 3), 3", "x(1, 2, 2, 2, 4), 2"],
    "channel_shuffle": ["x(2, 6, 3), 3", "x(1, 4, 2, 2), 2", "x(1, 4, 2, 2, 1), 1"],
    "native_channel_shuffle": ["x(2, 6, 3), 2"],
}
DTYPES = dict.fromkeys(("cosine_similarity", "pairwise_distance", "cdist", "pdist"), "floating")
DTYPES |= dict.fromkeys(("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle"), "all")
DTYPES["cosine_similarity"] = DTYPES["pairwise_distance"] = "floats"
_COSINE = "np.sum(x1 * x2, dim) / (np.maximum(vector_norm(x1, 2, dim), eps) * np.maximum(vector_norm(x2, 2, dim), eps))"
_PAIRS = "np.triu_indices(len(self), 1)"
REFERENCES = {
    "cosine_similarity": f"(lambda x1, x2: {_COSINE})(*np.broadcast_arrays(x1, x2))",
    "pairwise_distance": "vector_norm(x1 - x2 + eps, p, -1, keepdim)",
    **dict.fromkeys(("cdist", "_cdist"), "vector_norm(x1[..., :, None, :] - x2[..., None, :, :], p, -1)"),
    "pdist": f"vector_norm(self[{_PAIRS}[0]] - self[{_PAIRS}[1]], p, -1)",
    "pixel_shuffle": "(lambda x, r: np.moveaxis(x.reshape(*x.shape[:-3], -1, r, r, *x.shape[-2:]), (-4, -3), (-3, -1))"
    ".reshape(*x.shape[:-3], -1, x.shape[-2] * r, x.shape[-1] * r))(self, upscale_factor)",
    "pixel_unshuffle": "(lambda x, r: np.moveaxis(x.reshape(*x.shape[:-2], x.shape[-2] // r, r, x.shape[-1] // r, r), (-3, -1), (-4, -3))"
    ".reshape(*x.shape[:-3], -1, x.shape[-2] // r, x.shape[-1] // r))(self, downscale_factor)",
    **dict.fromkeys(("channel_shuffle", "native_channel_shuffle"),
                    "np.swapaxes(self.reshape(len(self), groups, -1, *self.shape[2:]), 1, 2).reshape(self.shape)"),
}
ERRORS = {
    "cosine_similarity": [("ints(3, 4, high=3), ints(3, 4, high=3)", RuntimeError, "expected common dtype to be floating point")],
    "cdist": [
        ("x(3), x(3, 3)", RuntimeError, "cdist only supports at least 2D tensors, X1 got: 1D"),
        ("x(3, 4), x(3, 3)", RuntimeError, "must have the same number of columns, but have 4 and 3"),
        ("x(3, 4), x(3, 4), -1.0", RuntimeError, "cdist only supports non-negative p values"),
        ("ints(3, 4, high=3), x(3, 4)", RuntimeError, "cdist only supports floating-point dtypes, X1 got"),
        ("x(3, 4), x(3, 4), 2.0, compute_mode='fast'", ValueError, "fast is not a valid value for compute_mode"),
    ],
    "pdist": [("x(3)", RuntimeError, "pdist only supports 2D tensors, got: 1D")],
    "pixel_shuffle": [
        ("x(3, 3), 2", RuntimeError, "pixel_shuffle takes pictures .*: input must have at least 3 dimensions, not 2"),
        ("x(3, 2, 2), 2", RuntimeError, "divisible by the square of upscale_factor"),
        ("x(4, 2, 2), 0", RuntimeError, "pixel_shuffle expects a positive upscale_factor, but got 0"),
    ],
    "pixel_unshuffle": [
        ("x(1, 3, 2), 2", RuntimeError, "pixel_unshuffle expects height to be divisible by downscale_factor"),
        ("x(1, 2, 3), 2", RuntimeError, "pixel_unshuffle expects width to be divisible by downscale_factor"),
    ],
    "channel_shuffle": [
        ("x(2, 6), 3", RuntimeError, "expects input with > 2 dims"),
        ("x(2, 6, 2), 4", RuntimeError, "must be divisible by groups"),
        ("x(2, 6, 2), 0", RuntimeError, "must be positive"),
    ],
}
SKIPS = {("cdist", "boxed"): "a number stands for the name of a mode in the schema"}
