"""Samples of combinations, splits and reductions into slices."""

SAMPLES = {
    "combinations": ["x(4)", "x(4), 3", "x(3), 2, True", "x(2), 3", "x(3), 0"],
    "cartesian_prod": ["[x(2), x(3)]", "[x(3)]", "[x(2), x(1), x(2)]", "[x(0), x(2)]"],
    "block_diag": ["[x(2, 3), x(1, 2)]", "[x(2), x(), x(2, 2)]", "[x(0), x(1, 1)]", "[x(3, 4)]"],
    "unravel_index": ["ints(3, 4, high=12), [3, 4]", "ints(5, high=7), 7", "ints(high=24), [2, 3, 4]", "ints(0, high=4), [2, 2]"],
    "nonzero_static": ["mask(3, 4), size=4", "mask(3), size=7, fill_value=-5", "mask(3), size=0"],
    "index_reduce": [f"x(4, 3), 0, m.tensor([0, 2, 0]), x(3, 3), {mode!r}" for mode in ("mean", "amax", "amin")]
    + ["pos(4, 3), 0, m.tensor([0, 2, 0]), pos(3, 3), 'prod'", "x(3, 4), 1, m.tensor([1]), x(3, 1), 'amax', include_self=False"],
    "hsplit.int": ["x(4, 6, 2), 2", "x(6), 3"],
    "hsplit.array": ["x(4, 6), (1, 3)", "x(6), (2,)"],
    "vsplit.int": ["x(4, 6), 2"],
    "vsplit.array": ["x(4, 6), (1, 3)"],
    "dsplit.int": ["x(4, 6, 2), 2"],
    "dsplit.array": ["x(2, 2, 4), (1, 3)", "x(4, 6, 4), (1, 3)"],
    "tensor_split.tensor_indices_or_sections": ["x(5, 2), m.tensor(2, device='cpu')", "x(3, 6), m.tensor([1, 4], device='cpu'), 1"],
    "unsafe_chunk": ["x(5, 2), 2"],
    "unsafe_split": ["x(5, 2), 2"],
    "unsafe_split_with_sizes": ["x(5, 2), (2, 3)"],
    "_chunk_cat": ["[x(3, 2), x(5, 1)], 0, 2", "[x(2, 3, 2), x(2, 4)], 1, 2", "[x(4)], -1, 3"],
    "fill": ["x(3, 4), 2", "x(3), x()"],
}
DTYPES = {"fill": "all", "combinations": "all", "cartesian_prod": "all", "block_diag": "numbers", "unsafe_chunk": "all", "hsplit.int": "all"}
_SPLITS = {"hsplit": "np.hsplit", "vsplit": "np.vsplit", "dsplit": "np.dsplit"}
REFERENCES = {f"{name}.{kind}": f"{function}(self, {pieces})" for name, function in _SPLITS.items() for kind, pieces in (("int", "sections"), ("array", "indices"))}
REFERENCES |= {
    "cartesian_prod": "tensors[0] if len(tensors) == 1 else np.array(list(itertools.product(*tensors)), tensors[0].dtype).reshape(-1, len(tensors))",
    "block_diag": "scipy.linalg.block_diag(*tensors)",
    "unravel_index": "np.unravel_index(indices, shape)",
    "combinations": "np.zeros(0) if r == 0 else self[np.array(list((itertools.combinations_with_replacement if with_replacement else itertools.combinations)(range(len(self)), r)), int).reshape(-1, r)]",
    "nonzero_static": "np.concatenate((np.argwhere(self), np.full((size, self.ndim), fill_value)))[:size]",
    "index_reduce": "combined(self, along(dim, index), source, reduce, include_self)",
    "tensor_split.tensor_indices_or_sections": "np.array_split(self, tensor_indices_or_sections, dim)",
    "_chunk_cat": "chunked_cat(tensors, dim % tensors[0].ndim, num_chunks)",
    "unsafe_chunk": "np.split(self, range(-(-self.shape[dim] // chunks), self.shape[dim], -(-self.shape[dim] // chunks)), dim)",
    "unsafe_split": "np.split(self, range(split_size, self.shape[dim], split_size), dim)",
    "unsafe_split_with_sizes": "np.split(self, np.cumsum(split_sizes)[:-1], dim)",
    "fill": "np.full(self.shape, value)",
}
ERRORS = {
    "_chunk_cat": [
        ("[], 0, 2", RuntimeError, "at least one tensor"),
        ("[x(3)], 0, 0", RuntimeError, "num_chunks has to be positive"),
        ("[x(3), ints(3, high=2)], 0, 2", RuntimeError, "one dtype"),
        ("[x(2, 0)], 0, 2", RuntimeError, "tensors with elements"),
        ("[x(2, 3), x(3, 3)], 1, 2", RuntimeError, "equal sizes before dimension 1"),
    ],
    "cartesian_prod": [("[x(2, 2)]", RuntimeError, r"Expect a 1D vector, but got shape \[2, 2\]")],
    "block_diag": [("[x(2, 2, 2)]", RuntimeError, "tensor 0 has 3 dimensions")],
    "unravel_index": [("x(2), [3]", TypeError, "expected 'indices' to be integer dtype"), ("mask(2), [3]", TypeError, "expected 'indices' to be integer dtype"),
                      ("ints(2, high=3), [-1]", ValueError, "'shape' cannot have negative values")],
    "combinations": [("x(2, 2)", RuntimeError, r"Expect a 1D vector, but got shape \[2, 2\]")],
    "hsplit.int": [("x(3, 4), 3", RuntimeError, "dimension 1 of size 4 is not divisible by 3")],
    "vsplit.int": [("x(3), 2", RuntimeError, "vsplit requires a tensor with at least 2 dimension")],
    "index_reduce": [("x(3, 4), 0, m.tensor([0]), x(1, 4), 'foo'", RuntimeError, "Expected reduce to be one of 'prod', 'mean', 'amax' and 'amin', but got 'foo'"),
                     ("x(3, 4), 0, m.tensor([7]), x(1, 4), 'prod'", IndexError, "index out of range in self")],
}
SKIPS = {("tensor_split.tensor_indices_or_sections", "meta"): "where to cut must be on the CPU"}
