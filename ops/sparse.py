"""Sparse tensors: making them, what they hold, conversions and products.

What other ops do with sparse tensors stands in their entries (`sparse=`).
"""

from gen.table import composite

_both = "function method"
_hidden = dict(variants="function", own=True)

# ---- what looks inside ----

composite("_sparse_values(Tensor self) -> Tensor", **_hidden, doc="The values of a sparse tensor.")
composite("coalesce(Tensor(a) self) -> Tensor(a)", variants="method",
          doc="The COO tensor with sorted, unique indices; values of equal indices are added up.")

# ---- making them ----

composite("_sparse_coo_tensor(Tensor indices, Tensor values, int[]? size=None, "
          "bool is_coalesced=False) -> Tensor", **_hidden,
          doc="A COO tensor; without a size the smallest one that holds the indices.")
composite("_sparse_compressed_tensor(Tensor compressed_indices, Tensor plain_indices, Tensor "
          "values, int[]? size, Layout layout) -> Tensor", **_hidden,
          doc="A compressed tensor; without a size the smallest one that holds the indices.")
composite("_check_sparse_coo(Tensor indices, Tensor values, Size[] size, bool is_coalesced=False) "
          "-> Tensor", **_hidden, doc="Raises where these are no COO tensor.")
composite("_check_sparse_compressed(Tensor compressed_indices, Tensor plain_indices, Tensor "
          "values, Size[] size, Layout layout) -> Tensor", **_hidden,
          doc="Raises where these are no compressed tensor.")

# ---- what they hold ----

composite("values(Tensor(a) self) -> Tensor(a)", variants="method",
          doc="The values of the specified elements.")
composite("_values(Tensor(a) self) -> Tensor(a)", variants="method",
          doc="The values as they are, of tensors that are not coalesced, too.")
composite("indices(Tensor(a) self) -> Tensor(a)", variants="method",
          doc="The indices of a coalesced COO tensor: a row for each sparse dimension.")
composite("_indices(Tensor(a) self) -> Tensor(a)", variants="method",
          doc="The indices as they are.")
for _name, _doc in (("crow_indices", "Where each row begins (CSR, BSR)."),
                    ("col_indices", "The columns (CSR, BSR)."),
                    ("ccol_indices", "Where each column begins (CSC, BSC)."),
                    ("row_indices", "The rows (CSC, BSC).")):
    composite(f"{_name}(Tensor(a) self) -> Tensor(a)", variants="method", doc=_doc)
for _name, _doc in (("_nnz", "The number of specified elements."),
                    ("sparse_dim", "The number of sparse dimensions."),
                    ("dense_dim", "The number of dense dimensions."),
                    ("_dimI", "`sparse_dim`."), ("_dimV", "`dense_dim`.")):
    composite(f"{_name}(Tensor self) -> int", variants="method", grad="none", doc=_doc)
composite("is_coalesced(Tensor self) -> bool", variants="method", grad="none",
          doc="Whether the indices of a COO tensor are sorted and unique.")
composite("_coalesced_(Tensor(a!) self, bool coalesced) -> Tensor(a!)", variants="method inplace",
          doc="Marks a COO tensor as coalesced, or not, without a check.")

# ---- conversions ----

composite("to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
          variants="method", doc="The tensor in strided layout.")
composite("to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? "
          "dense_dim=None) -> Tensor", variants="method",
          doc="The tensor in a sparse layout, with the elements that are not zero.")
composite("to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor", variants="method",
          doc="A COO tensor with `sparse_dim` sparse dimensions.")
for _name in ("csr", "csc"):
    composite(f"to_sparse_{_name}(Tensor self, int? dense_dim=None) -> Tensor", variants="method",
              doc=f"`to_sparse` with the layout {_name.upper()}.")
for _name in ("bsr", "bsc"):
    composite(f"to_sparse_{_name}(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor",
              variants="method", doc=f"`to_sparse` with the layout {_name.upper()}.")
composite("sparse_mask(Tensor self, Tensor mask) -> Tensor", variants="method",
          doc="The elements of self at the indices of a sparse mask.")
composite("sparse_resize_(Tensor(a!) self, Size[] size, int sparse_dim, int dense_dim) -> "
          "Tensor(a!)", variants="method inplace", doc="Sets new sizes of a COO tensor in place.")
composite("sparse_resize_and_clear_(Tensor(a!) self, Size[] size, int sparse_dim, int dense_dim) "
          "-> Tensor(a!)", variants="method inplace",
          doc="Sets new sizes of a COO tensor in place and removes its elements.")
composite("resize_as_sparse_(Tensor(a!) self, Tensor the_template) -> Tensor(a!)",
          variants="function method inplace",
          doc="Sets the sizes and the numbers of sparse and dense dimensions of the template.")

# ---- products and reductions ----

composite("_sparse_mm(Tensor sparse, Tensor dense) -> Tensor", variants="function",
          doc="Alias of `sparse.mm`.")
composite("_sum_of_sparse(Tensor self, Dim[]? dim=None, *, ScalarType? dtype=None) -> Tensor",
          variants="function", own=True, doc="Alias of `sparse.sum`.")
for _name in ("softmax", "log_softmax"):
    composite(f"_{_name}_of_sparse(Tensor self, Dim dim, ScalarType? dtype=None) -> Tensor",
              variants="function", own=True, doc=f"`sparse.{_name}`: of the specified elements.")
composite("hspmm(Tensor mat1, Tensor mat2) -> Tensor", variants="function",
          doc="A sparse matrix times a dense one, with a sparse result of dense rows.")
composite("smm(Tensor self, Tensor mat2) -> Tensor", variants=_both,
          doc="A sparse matrix times a dense one, with a sparse result.")
composite("sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> "
          "Tensor", variants=_both, doc="beta * self + alpha * mat1 @ mat2, sparse.")
# Old names that programs of graph networks use.
for _alias, _name in {"spmm": "mm", "dsmm": "mm", "hsmm": "hspmm"}.items():
    composite(f"{_alias}(Tensor self, Tensor mat2) -> Tensor", variants="function", own=True,
              body=f"{_name}(self, mat2)", doc=f"Alias of `{_name}`.")
composite("saddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> "
          "Tensor", variants="function", own=True,
          body="sspaddmm(self, mat1, mat2, beta, alpha)",
          doc="Alias of `sspaddmm`.")
composite("sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar "
          "alpha=1) -> Tensor", variants="function",
          doc="beta * self + alpha * mat1 @ mat2 at the indices of self.")
