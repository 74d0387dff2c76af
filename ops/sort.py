"""Sorting, selecting by rank, unique values, searching in sorted sequences, histograms."""

from gen.table import composite, custom, dynamic, op, rows, wide_unsigned

_placed = {"gives": ("self.dtype()", "kInt64")}

op("sort.stable(Tensor self, *, bool? stable, Dim dim=-1, bool descending=False) -> (Tensor "
   "values, Tensor indices)",
   node={"stable.has_value()": 1},
   kernel=rows(**_placed, stored=(wide_unsigned,), check=["check_not_complex(name, self)"]),
   nondiff=("indices",),
   grad={"self": "gather_along_backward(grad_values, self.sizes(), dim, indices)"},
   ref="numpy.sort",
   doc="The sorted elements along a dimension and their indices; equal elements keep their "
       "order. NaN counts as the largest.",
   overloads=["sort.values_stable(self, stable, dim, descending, values!, indices!)"],
   jvp="self_t.gather(dim, indices)")
composite("sort(Tensor self, Dim dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
          variants="function method out",
          doc="The sorted elements along a dimension and their indices. NaN counts as the largest.",
          overloads=["sort.values(self, dim, descending, values!, indices!)"], tags=("core",))
composite("argsort.stable(Tensor self, *, bool stable, Dim dim=-1, bool descending=False) -> "
          "Tensor",
          doc="The indices that sort the elements along a dimension; equal elements keep their "
              "order.",
          variants="function method out")
composite("argsort(Tensor self, Dim dim=-1, bool descending=False) -> Tensor", ref="numpy.argsort",
          doc="The indices that sort the elements along a dimension.")
composite("msort(Tensor self) -> Tensor", variants="function method out",
          doc="The elements sorted along the first dimension.")
op("topk(Tensor self, int k, Dim dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, "
   "Tensor indices)",
   kernel=custom(), nondiff=("indices",),
   grad={"self": "gather_along_backward(grad_values, self.sizes(), dim, indices)"},
   doc="The k largest or smallest elements along a dimension, in order, and their indices.",
   overloads=["topk.values(self, k, dim, largest, sorted, values!, indices!)"],
   jvp="self_t.gather(dim, indices)", batch="dims", tags=("core",))
op("kthvalue(Tensor self, int k, Dim dim=-1, bool keepdim=False) -> (Tensor values, Tensor "
   "indices)",
   kernel=rows(**_placed, reduces="some",
               check=["check_comparable(name, self)", "check_rank(self, k, dim)"]),
   nondiff=("indices",),
   grad={"self": "scatter_along(grad_values, self.sizes(), dim, indices, keepdim)"},
   doc="The k-th smallest element along a dimension and its index; k counts from 1.",
   overloads=["kthvalue.values(self, k, dim, keepdim, values!, indices!)"],
   jvp="gather_along(self_t, dim, indices, keepdim)")
op("median.dim(Tensor self, Dim dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
   node=1,
   kernel=rows(**_placed, reduces="some", check=["check_comparable(name, self)"]),
   nondiff=("indices",),
   grad={"self": "scatter_along(grad_values, self.sizes(), dim, indices, keepdim)"},
   doc="The median along a dimension (the lower of two) and its index; NaN if there is one.",
   overloads=["median.dim_values(self, dim, keepdim, values!, indices!)"],
   jvp="gather_along(self_t, dim, indices, keepdim)")
composite("median(Tensor self) -> Tensor",
          doc="The median (the lower of two), or NaN if there is one.", out="cpp")
op("nanmedian.dim(Tensor self, Dim dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
   node=1,
   kernel=rows(**_placed, reduces="some", check=["check_comparable(name, self)"]),
   nondiff=("indices",),
   grad={"self": "scatter_along(grad_values, self.sizes(), dim, indices, keepdim)"},
   doc="`median` of the elements that are not NaN.",
   overloads=["nanmedian.dim_values(self, dim, keepdim, values!, indices!)"],
   jvp="gather_along(self_t, dim, indices, keepdim)")
composite("nanmedian(Tensor self) -> Tensor", doc="`median` of the elements that are not NaN.",
          out="cpp")
op("mode(Tensor self, Dim dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
   kernel=rows(**_placed, reduces="some", check=["check_comparable(name, self)"]),
   nondiff=("indices",),
   grad={"self": "scatter_along(grad_values, self.sizes(), dim, indices, keepdim)"},
   doc="The most frequent element along a dimension (the smallest of several) and its last index.",
   overloads=["mode.values(self, dim, keepdim, values!, indices!)"],
   jvp="gather_along(self_t, dim, indices, keepdim)")

op("_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) "
   "-> (Tensor, Tensor, Tensor)",
   kernel=dynamic(place="isa", stored=(wide_unsigned,)), variants="function", grad="missing",
   nondiff=("result1", "result2"),
   doc="Distinct elements in order; for each element which of them it is; how often each occurs.")
op("unique_dim(Tensor self, Dim dim, bool sorted=True, bool return_inverse=False, bool "
   "return_counts=False) "
   "-> (Tensor, Tensor, Tensor)",
   kernel=dynamic(place="isa", stored=(wide_unsigned,)), variants="function", grad="missing",
   nondiff=("result1", "result2"),
   doc="Distinct slices along a dimension, in order; for each slice which of them it is; how often "
       "each occurs.")
op("unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? "
   "dim=None) "
   "-> (Tensor, Tensor, Tensor)", kernel=dynamic(place="isa", stored=(wide_unsigned,)),
   grad="missing", nondiff=("result1", "result2"),
   python="wrapped",
   doc="The first of each run of equal elements (or slices); for each element its run; the runs' "
       "lengths.")

op("searchsorted(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, "
   "str? side=None, "
   "Tensor? sorter=None) -> Tensor",
   kernel=custom(stored=(wide_unsigned,)), variants="function out", grad="none",
   ref="numpy.searchsorted",
   doc="The indices at which values can be inserted so that the last dimension stays sorted: "
       "before equal elements, or after them.",
   overloads=["searchsorted.Tensor(sorted_sequence, self, out_int32, right, side, sorter)",
              "searchsorted.Tensor_out(sorted_sequence, self, out_int32, right, side, sorter, "
              "out!)"],
   batch="batched_searchsorted(sorted_sequence, self, out_int32, right, side, sorter, batch)")
composite("searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool "
          "right=False, "
          "str? side=None, Tensor? sorter=None) -> Tensor", variants="function out",
          doc="`searchsorted` of one number.")
composite("bucketize(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> "
          "Tensor",
          variants="function out", ref="numpy.digitize",
          doc="`searchsorted` in one sequence of boundaries.",
          overloads=["bucketize.Tensor(self, boundaries, out_int32, right)",
                     "bucketize.Tensor_out(self, boundaries, out_int32, right, out!)"])
composite("bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool "
          "right=False) -> Tensor",
          variants="function out", doc="`bucketize` of one number.")
op("bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor",
   kernel=dynamic(place="isa", stored=(wide_unsigned,)), grad="missing",
   ref="numpy.bincount", doc="How often each number from 0 on occurs, or the sum of its weights.")
op("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", kernel=custom(),
   grad="none",
   ref="numpy.histogram", doc="How many elements fall into each of equal bins from min to max.",
   batch="slices: bins without given ends lie between the extremes of a slice")
