"""Scans: running sums, products and extremes along a dimension."""

from gen.table import custom, op, wide_unsigned

op("cumsum(Tensor self, Dim dim, *, ScalarType? dtype=None) -> Tensor",
   out="dtype", kernel=custom(stored=(wide_unsigned,)),
   variants="function method inplace out", grad={"self": "reverse_cumsum(grad, dim)"},
   ref="numpy.cumsum",
   doc="The cumulative sum. Integers and bool are added up in int64.",
   jvp="linear", batch="dims",
   autocast={"accelerator": "float32"}, tags=("core",))
op("cumprod(Tensor self, Dim dim, *, ScalarType? dtype=None) -> Tensor",
   out="dtype", kernel=custom(stored=(wide_unsigned,)),
   variants="function method inplace out",
   grad={"self": "cumprod_backward(grad, self, result, dim)"},
   ref="numpy.cumprod", doc="The cumulative product. Integers and bool are multiplied in int64.",
   jvp="twice: zeros of self want care", batch="dims",
   autocast={"accelerator": "float32"})
op("logcumsumexp(Tensor self, Dim dim) -> Tensor", kernel=custom(),
   grad={"self": "logcumsumexp_backward(grad, self, result, dim)"},
   doc="log(cumsum(exp(self))) without overflow.",
   jvp="twice: sums of tangents of either sign have no logarithm", batch="dims")
op("cummax(Tensor self, Dim dim) -> (Tensor values, Tensor indices)", kernel=custom(),
   nondiff=("indices",),
   grad={"self": "scatter_add_along(grad_values, indices, dim)"},
   doc="The cumulative maximum and its index, which is that of the last of equal elements.",
   jvp="self_t.gather(dim, indices)", batch="dims")
op("cummin(Tensor self, Dim dim) -> (Tensor values, Tensor indices)", kernel=custom(),
   nondiff=("indices",),
   grad={"self": "scatter_add_along(grad_values, indices, dim)"},
   doc="The cumulative minimum and its index, which is that of the last of equal elements.",
   jvp="self_t.gather(dim, indices)", batch="dims")
