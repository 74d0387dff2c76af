"""Choosing, cutting and filling: combinations, splits by name, reductions into slices,
diagonals, forms in place.

All are composites of other ops, in src/ops/arrange.cpp.
"""

from gen.table import composite

_both = "function method out"

# ---- selections and splits ----

composite("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
          variants="function",
          doc="All ways to choose r elements, a row for each.")
composite("cartesian_prod(Tensor[] tensors) -> Tensor", variants="function",
          python="listed varargs",
          doc="All combinations of the elements of vectors, a row for each.")
composite("block_diag(Tensor[] tensors) -> Tensor", variants="function",
          python="listed varargs", out="cpp",
          doc="Matrices along the diagonal of a larger one, zeros elsewhere.")
composite("unravel_index(Tensor indices, int[] shape) -> Tensor[]", variants="function", own=True,
          grad="none",
          python="listed",
          doc="Positions in a flattened tensor of this shape as one index for each dimension.")
composite("nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor", variants=_both,
          grad="none",
          doc="The first `size` indices of elements that are not zero, filled up with fill_value.")
composite("index_reduce(Tensor self, Dim dim, Tensor index, Tensor source, str reduce, *, bool "
          "include_self=True) -> Tensor",
          variants=_both,
          doc="Slices of source reduced into those of self: 'prod', 'mean', 'amax' or 'amin'.")
composite("index_reduce_(Tensor(a!) self, Dim dim, Tensor index, Tensor source, str reduce, *, "
          "bool include_self=True) -> Tensor(a!)",
          variants="method inplace", doc="`index_reduce` in place.")
for _name, _which in (("hsplit", "second (of one, the first)"), ("vsplit", "first"),
                      ("dsplit", "third")):
    composite(f"{_name}.int(Tensor(a) self, int sections) -> Tensor(a)[]",
              doc=f"Equal pieces along the {_which} dimension.")
    composite(f"{_name}.array(Tensor(a) self, int[] indices) -> Tensor(a)[]",
              doc=f"Pieces along the {_which} dimension, cut before the indices.")
composite("tensor_split.tensor_indices_or_sections(Tensor(a) self, Tensor "
          "tensor_indices_or_sections, Dim dim=0) -> Tensor(a)[]",
          doc="`tensor_split` by a 0-d tensor (how many pieces) or a vector (where to cut).")
composite("unsafe_chunk(Tensor self, int chunks, Dim dim=0) -> Tensor[]", doc="Alias of `chunk`.")
composite("unsafe_split(Tensor self, int split_size, Dim dim=0) -> Tensor[]",
          doc="Alias of `split`.",
          overloads=["unsafe_split.Tensor(self, split_size, dim)"])
composite("unsafe_split_with_sizes(Tensor self, int[] split_sizes, Dim dim=0) -> Tensor[]",
          doc="Alias of `split_with_sizes`.")
composite("_chunk_cat(Tensor[] tensors, Dim dim, int num_chunks) -> Tensor",
          variants="function out",
          doc="Each tensor cut along `dim` into `num_chunks` flat pieces, the last ones filled up "
              "with zeros; the first pieces of all beside each other, then the second ones.")
composite("fill(Tensor self, Tensor|Scalar value) -> Tensor", variants="function",
          doc="value in the shape of self.", out="cpp", tags=("core.Scalar",))
composite("fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
          variants="method inplace",
          doc="The main diagonal becomes fill_value; wrap starts again below the square of a tall "
              "matrix.")

# ---- in place, where the op is composed ----

for _name in ("deg2rad", "rad2deg"):
    composite(f"{_name}_(Tensor(a!) self) -> Tensor(a!)", variants="function method inplace",
              doc=f"`{_name}` in place.", tags=("pointwise",))
composite("logit_(Tensor(a!) self, float? eps=None) -> Tensor(a!)",
          variants="function method inplace", doc="`logit` in place.", tags=("pointwise",))
composite("arctan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)", variants="method inplace",
          doc="Alias of `atan2_`.")
composite("float_power_(Tensor(a!) self, Tensor|Scalar exponent) -> Tensor(a!)",
          variants="method inplace", doc="`float_power` in place.", tags=("pointwise",))
