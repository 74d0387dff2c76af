"""Reductions: sums, means, extremes, positions, spreads, norms, counts."""

from gen.table import (
    boolean,
    complex_,
    complex_half,
    composite,
    floating,
    formula,
    numbers,
    op,
    real,
    reduction,
    stored,
    wide_unsigned,
)

_sums = {"dtypes": (numbers,), "gives": "sum_dtype(self, dtype)", "stored": (wide_unsigned,)}
_ordered = {"dtypes": (real, boolean), "reduces": "some"}
_placed = {**_ordered, "gives": ("self.dtype()", "kInt64")}
_spread = {"gives": "to_real(self.dtype())", "stored": (complex_half,)}
_spread_mean = {**_spread, "gives": ("to_real(self.dtype())", "self.dtype()")}

# ---- sums and products ----

op("sum(Tensor self, Dim[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   out="dtype",
   kernel=reduction(formula("Any", when="out.dtype() == kBool"), "Sum", **_sums),
   node={"dim.has_value()": 1},
   grad={"self": "expand_reduced(grad, self.sizes(), dim, keepdim)"}, ref="numpy.sum",
   sparse="sum",
   doc="The sum over the given dimensions, or all. Integers and bool are added up in int64.",
   overloads=["sum(self, dtype)", "sum.dim_IntList(self, Dim[1]? dim, keepdim, dtype)",
              "sum.out(self, dtype, out!)",
              "sum.IntList_out(self, Dim[1]? dim, keepdim, dtype, out!)"],
   jvp="linear",
   autocast={"accelerator": "float32"}, tags=("core.dim_IntList",))
op("nansum(Tensor self, Dim[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   kernel=reduction(formula("Any", when="out.dtype() == kBool"), "NanSum", **_sums,
                    check=["check_not_complex(name, self)"]),
   grad={"self": "expand_reduced(grad, self.sizes(), dim, keepdim) * self.isnan().logical_not()"},
   ref="numpy.nansum",
   doc="The sum in which NaN counts as zero.")
op("mean(Tensor self, Dim[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   kernel=reduction("Mean", dtypes=(floating, complex_), gives="mean_dtype(self, dtype)"),
   node={"dim.has_value()": 1},
   grad={"self": "mean_backward(grad, self.sizes(), dim, keepdim)"}, ref="numpy.mean",
   doc="The mean over the given dimensions, or all.",
   overloads=["mean(self, dtype)", "mean.dim(self, Dim[1]? dim, keepdim, dtype)",
              "mean.dtype_out(self, dtype, out!)",
              "mean.out(self, Dim[1]? dim, keepdim, dtype, out!)"],
   jvp="linear", tags=("core",))
op("prod(Tensor self, Dim[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   out="dtype",
   kernel=reduction(formula("All", when="out.dtype() == kBool"), "Prod", **_sums),
   node={"dim.has_value()": 1},
   grad={"self": "prod_backward(grad, self, result, dim, keepdim)"}, ref="numpy.prod",
   doc="The product over a dimension, or of all elements. Integers and bool are multiplied in "
       "int64.",
   overloads=["prod.dim_int(self, Dim dim, keepdim, dtype)", "prod(self, dtype)",
              "prod.int_out(self, Dim dim, keepdim, dtype, out!)", "prod.out(self, dtype, out!)"],
   autocast="float32", tags=("core",))
composite("nanmean(Tensor self, Dim[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
          "-> Tensor",
          ref="numpy.nanmean", doc="The mean of the elements that are not NaN.",
          variants="function method out")

# ---- extremes ----

op("max(Tensor self) -> Tensor", kernel=reduction("Max", **_ordered), node=1,
   grad={"self": "extreme_backward(grad, self, result, {}, false)"},
   ref="numpy.max", doc="The largest element, or NaN if there is one.",
   overloads=["max.unary_out(self, out!)"],
   batch="flatten_slices(self, batch).amax(1)")
composite("max.other(Tensor self, Tensor other) -> Tensor", ref="numpy.maximum",
          doc="Alias of `maximum`.",
          overloads=["max.out(self, other, out!)"], variants="function method out",
          tags=("pointwise",))
op("max.dim(Tensor self, Dim dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
   kernel=reduction("Largest", **_placed), node=0,
   grad={"self": "scatter_along(grad_values, self.sizes(), dim, indices, keepdim)"},
   nondiff=("indices",),
   doc="The largest elements along a dimension and the index where each occurs first.",
   overloads=["max.dim_max(self, dim, keepdim, max!, max_values!)"],
   jvp="gather_along(self_t, dim, indices, keepdim)", tags=("core",))
op("min(Tensor self) -> Tensor", kernel=reduction("Min", **_ordered), node=1,
   grad={"self": "extreme_backward(grad, self, result, {}, false)"},
   ref="numpy.min", doc="The smallest element, or NaN if there is one.",
   overloads=["min.unary_out(self, out!)"],
   batch="flatten_slices(self, batch).amin(1)")
composite("min.other(Tensor self, Tensor other) -> Tensor", ref="numpy.minimum",
          doc="Alias of `minimum`.",
          overloads=["min.out(self, other, out!)"], variants="function method out",
          tags=("pointwise",))
op("min.dim(Tensor self, Dim dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
   kernel=reduction("Smallest", **_placed), node=0,
   grad={"self": "scatter_along(grad_values, self.sizes(), dim, indices, keepdim)"},
   nondiff=("indices",),
   doc="The smallest elements along a dimension and the index where each occurs first.",
   overloads=["min.dim_min(self, dim, keepdim, min!, min_indices!)"],
   jvp="gather_along(self_t, dim, indices, keepdim)", tags=("core",))
op("amax(Tensor self, Dim[1] dim=[], bool keepdim=False) -> Tensor",
   kernel=reduction("Max", **_ordered, check=["check_ordered(name, self)"]),
   grad={"self": "extreme_backward(grad, self, result, dim, keepdim)"}, ref="numpy.max",
   doc="The largest elements over dimensions; equal ones share the gradient.",
   tags=("core",))
op("amin(Tensor self, Dim[1] dim=[], bool keepdim=False) -> Tensor",
   kernel=reduction("Min", **_ordered, check=["check_ordered(name, self)"]),
   grad={"self": "extreme_backward(grad, self, result, dim, keepdim)"}, ref="numpy.min",
   doc="The smallest elements over dimensions; equal ones share the gradient.",
   tags=("core",))
op("aminmax(Tensor self, *, Dim? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
   kernel=reduction("MinMax", **_ordered, gives=("self.dtype()", "self.dtype()"),
                    check=["check_extremes(self, dim)"]),
   grad={"self": "aminmax_backward(grad_min, grad_max, self, min, max, dim, keepdim)"},
   doc="The smallest and the largest elements at once.")
op("argmax(Tensor self, Dim? dim=None, bool keepdim=False) -> Tensor",
   kernel=reduction("ArgMax", **_ordered, gives="kInt64",
                    check=["check_position(name, self, dim)"]), grad="none",
   ref="numpy.argmax",
   doc="The index of the first largest element, along a dimension or in the flattened tensor.",
   tags=("core",))
op("argmin(Tensor self, Dim? dim=None, bool keepdim=False) -> Tensor",
   kernel=reduction("ArgMin", **_ordered, gives="kInt64",
                    check=["check_position(name, self, dim)"]), grad="none",
   ref="numpy.argmin",
   doc="The index of the first smallest element, along a dimension or in the flattened tensor.",
   tags=("core",))

# ---- truth and counts ----

op("any(Tensor self, Dim[1]? dim=None, bool keepdim=False) -> Tensor",
   kernel=reduction("Any", gives="truth_dtype(self)", reduces="listed", stored=(stored,)),
   grad="none", ref="numpy.any", sparse="any",
   doc="Whether any element is not zero.",
   overloads=["any.dim(self, Dim dim, keepdim)", "any(self)",
              "any.dims(self, Dim[]? dim=None, keepdim)", "any.out(self, Dim dim, keepdim, out!)",
              "any.all_out(self, out!)", "any.dims_out(self, Dim[]? dim=None, keepdim, out!)"],
   tags=("core",))
op("all(Tensor self, Dim[1]? dim=None, bool keepdim=False) -> Tensor",
   kernel=reduction("All", gives="truth_dtype(self)", reduces="listed", stored=(stored,)),
   grad="none", ref="numpy.all",
   doc="Whether no element is zero.",
   overloads=["all.dim(self, Dim dim, keepdim)", "all(self)",
              "all.dims(self, Dim[]? dim=None, keepdim)", "all.out(self, Dim dim, keepdim, out!)",
              "all.all_out(self, out!)", "all.dims_out(self, Dim[]? dim=None, keepdim, out!)"])
op("count_nonzero(Tensor self, Dim[1]? dim=None) -> Tensor", variants="function method",
   kernel=reduction("Count", gives="kInt64", stored=(complex_half,)), grad="none",
   ref="numpy.count_nonzero",
   doc="How many elements are not zero.",
   overloads=["count_nonzero(self, Dim? dim=None)", "count_nonzero.dim_IntList(self, Dim[] dim)",
              "count_nonzero.out(self, Dim? dim=None, out!)",
              "count_nonzero.dim_IntList_out(self, Dim[] dim, out!)"],
   tags=("reduction.default", "reduction.dim_IntList"))

# ---- spreads ----

composite("var.unbiased(Tensor self, bool unbiased) -> Tensor", doc="Variance of all elements.",
          overloads=["var(self, unbiased=True)"], tags=("reduction",))
composite("var.dim(Tensor self, Dim[1]? dim, bool unbiased, bool keepdim=False) -> Tensor",
          doc="Variance over dimensions.",
          overloads=["var.dim(self, dim, unbiased=True, keepdim)",
                     "var.out(self, dim, unbiased=True, keepdim, out!)"],
          variants="function method out", tags=("core", "reduction"))
op("var(Tensor self, Dim[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
   kernel=reduction(**_spread, check=["check_variance(name, self, dim, correction)"]), node=0,
   grad={"self": "var_backward(grad, self, dim, correction, keepdim)"}, ref="numpy.var",
   doc="Variance over dimensions: squared distances from the mean, divided by n - correction "
       "(default 1).",
   overloads=["var.correction(self, dim, correction, keepdim)",
              "var.correction_out(self, dim, correction, keepdim, out!)"],
   tags=("core",))
composite("std.unbiased(Tensor self, bool unbiased) -> Tensor",
          doc="Standard deviation of all elements.",
          overloads=["std(self, unbiased=True)"], tags=("reduction",))
composite("std.dim(Tensor self, Dim[1]? dim, bool unbiased, bool keepdim=False) -> Tensor",
          doc="Standard deviation over dimensions.",
          overloads=["std.dim(self, dim, unbiased=True, keepdim)",
                     "std.out(self, dim, unbiased=True, keepdim, out!)"],
          variants="function method out", tags=("reduction",))
op("std(Tensor self, Dim[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
   kernel=reduction(**_spread, check=["check_variance(name, self, dim, correction)"]), node=0,
   grad={"self": "std_backward(grad, self, result, dim, correction, keepdim)"}, ref="numpy.std",
   doc="Standard deviation over dimensions: the root of `var`.",
   overloads=["std.correction(self, dim, correction, keepdim)",
              "std.correction_out(self, dim, correction, keepdim, out!)"])
composite("var_mean.unbiased(Tensor self, bool unbiased) -> (Tensor, Tensor)", variants="function",
          doc="Variance and mean of all elements.",
          overloads=["var_mean(self, unbiased=True)"], tags=("reduction",))
composite("var_mean.dim(Tensor self, Dim[1]? dim, bool unbiased, bool keepdim=False) -> (Tensor, "
          "Tensor)",
          variants="function", doc="Variance and mean over dimensions.",
          overloads=["var_mean.dim(self, dim, unbiased=True, keepdim)"], tags=("reduction",))
op("var_mean(Tensor self, Dim[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
   "(Tensor, Tensor)",
   kernel=reduction(**_spread_mean, check=["check_variance(name, self, dim, correction)"]),
   node=0, variants="function",
   grad={"self": "var_backward(grad_result0, self, dim, correction, keepdim) + "
                 "mean_backward(grad_result1, self.sizes(), dim, keepdim)"},
   doc="Variance and mean over dimensions, in one pass.",
   overloads=["var_mean.correction(self, dim, correction, keepdim)",
              "var_mean.correction_out(self, dim, correction, keepdim, out0!, out1!)"],
   tags=("reduction.correction",))
composite("std_mean.unbiased(Tensor self, bool unbiased) -> (Tensor, Tensor)", variants="function",
          doc="Standard deviation and mean of all elements.",
          overloads=["std_mean(self, unbiased=True)"], tags=("reduction",))
composite("std_mean.dim(Tensor self, Dim[1]? dim, bool unbiased, bool keepdim=False) -> (Tensor, "
          "Tensor)",
          variants="function", doc="Standard deviation and mean over dimensions.",
          overloads=["std_mean.dim(self, dim, unbiased=True, keepdim)"], tags=("reduction",))
op("std_mean(Tensor self, Dim[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
   "(Tensor, Tensor)",
   kernel=reduction(**_spread_mean, check=["check_variance(name, self, dim, correction)"]),
   node=0, variants="function",
   grad={"self": "std_backward(grad_result0, self, result0, dim, correction, keepdim) + "
                 "mean_backward(grad_result1, self.sizes(), dim, keepdim)"},
   doc="Standard deviation and mean over dimensions, in one pass.",
   overloads=["std_mean.correction(self, dim, correction, keepdim)",
              "std_mean.correction_out(self, dim, correction, keepdim, out0!, out1!)"],
   tags=("reduction.correction",))

# ---- norms and logsumexp ----

op("linalg_vector_norm(Tensor self, Scalar ord=2, Dim[1]? dim=None, bool keepdim=False, *, "
   "ScalarType? dtype=None) "
   "-> Tensor",
   kernel=reduction(gives="to_real(dtype.value_or(self.dtype()))", stored=(complex_half,),
                    check=["check_vector_norm(self, ord, dim, dtype)"]), variants="function out",
   grad={"self": "vector_norm_backward(grad, self, ord, dim, keepdim, result)"},
   doc="The ord-norm of vectors: the root of the sum of powers, the largest |x| for inf, the count "
       "for 0.",
   sparse="vector_norm",
   autocast={"accelerator": "float32"})
composite("norm(Tensor self, Scalar? p=2, Dim[1]? dim=None, bool keepdim=False, *, ScalarType? "
          "dtype=None) -> Tensor",
          variants="function method out",
          doc="`linalg.vector_norm`; p = None means 2.", python="wrapped",
          overloads=["norm.ScalarOpt_dim_dtype(self, Scalar? p, Dim[1] dim, bool keepdim, *, "
                     "ScalarType dtype)",
                     "norm.ScalarOpt_dtype(self, Scalar? p, *, ScalarType dtype)",
                     "norm.Scalar(self, Scalar p=2)",
                     "norm.ScalarOpt_dim(self, Scalar? p, Dim[1] dim, keepdim)",
                     "norm.ScalarOpt_dtype_out(self, Scalar? p, *, ScalarType dtype, out!)",
                     "norm.dtype_out(self, Scalar? p, Dim[1] dim, bool keepdim, *, ScalarType "
                     "dtype, out!)",
                     "norm.Scalar_out(self, Scalar p=2, out!)",
                     "norm.out(self, Scalar? p, Dim[1] dim, keepdim, out!)"],
          autocast={"accelerator": "float32"}, tags=("reduction",))
composite("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
          doc="The p-norm of self - other.", out="cpp",
          autocast={"accelerator": "float32"})
op("_logsumexp(Tensor self, Dim[1] dim, bool keepdim=False) -> Tensor",
   kernel=reduction("LogSumExp", dtypes=(floating,), gives="to_floating(self.dtype())",
                    check=["check_ordered(name, self)"]),
   variants="", node="LogsumexpBackward0",
   grad={"self": "logsumexp_backward(grad, self, result, dim, keepdim)"},
   doc="`logsumexp` of real numbers.", own=True)
composite("logsumexp(Tensor self, Dim[1] dim, bool keepdim=False) -> Tensor",
          variants="function method out",
          doc="log(sum(exp(self))) over dimensions, without overflow.", tags=("reduction",))
