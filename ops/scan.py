"""Scans: running sums, products and extremes along a dimension."""

from gen.table import complex_, floating, numbers, op, rows, wide_unsigned

_running = {"dtypes": (numbers,), "gives": "running_dtype(self, dtype)", "stored": (wide_unsigned,)}
_placed = {"gives": ("self.dtype()", "kInt64")}

op("cumsum(Tensor self, Dim dim, *, ScalarType? dtype=None) -> Tensor",
   out="dtype", kernel=rows("Sum", **_running),
   variants="function method inplace out", grad={"self": "reverse_cumsum(grad, dim)"},
   ref="numpy.cumsum",
   doc="The cumulative sum. Integers and bool are added up in int64.",
   jvp="linear",
   autocast={"accelerator": "float32"}, tags=("core",))
op("cumprod(Tensor self, Dim dim, *, ScalarType? dtype=None) -> Tensor",
   out="dtype", kernel=rows("Prod", **_running),
   variants="function method inplace out",
   grad={"self": "cumprod_backward(grad, self, result, dim)"},
   ref="numpy.cumprod", doc="The cumulative product. Integers and bool are multiplied in int64.",
   jvp="twice: zeros of self want care",
   autocast={"accelerator": "float32"})
op("logcumsumexp(Tensor self, Dim dim) -> Tensor",
   kernel=rows("LogAddExp", dtypes=(floating, complex_),
               check=["check_floating(name, self, true)"]),
   grad={"self": "logcumsumexp_backward(grad, self, result, dim)"},
   doc="log(cumsum(exp(self))) without overflow.",
   jvp="twice: sums of tangents of either sign have no logarithm")
op("cummax(Tensor self, Dim dim) -> (Tensor values, Tensor indices)",
   kernel=rows(**_placed, check=["check_ordered(name, self)"]),
   nondiff=("indices",),
   grad={"self": "scatter_add_along(grad_values, indices, dim)"},
   doc="The cumulative maximum and its index, which is that of the last of equal elements.",
   jvp="self_t.gather(dim, indices)")
op("cummin(Tensor self, Dim dim) -> (Tensor values, Tensor indices)",
   kernel=rows(**_placed, check=["check_ordered(name, self)"]),
   nondiff=("indices",),
   grad={"self": "scatter_add_along(grad_values, indices, dim)"},
   doc="The cumulative minimum and its index, which is that of the last of equal elements.",
   jvp="self_t.gather(dim, indices)")
