"""Tensors from sizes, ranges and fill values."""

from gen.table import composite

_function = "function"
_both = "function out"

composite("empty(Size[] size, *, options, MemoryFormat? memory_format=None) -> Tensor",
          variants=_both,
          doc="Uninitialised memory.", sparse="empty",
          overloads=["empty.memory_format(size, options, memory_format)"], tags=("core",))
composite("empty_strided(Size[] size, int[] stride, *, options) -> Tensor", variants=_function,
          doc="Uninitialised memory with given strides.", out="cpp", tags=("core",))
composite("empty_permuted(Size[] size, int[] physical_layout, *, options) -> Tensor",
          variants="function", out="cpp",
          doc="Uninitialised memory whose dimensions lie in it in the order `physical_layout`.")
composite("zeros(Size[] size, *, options) -> Tensor", variants=_both, ref="numpy.zeros",
          sparse="zeros",
          doc="All zeros.")
composite("ones(Size[] size, *, options) -> Tensor", variants=_both, ref="numpy.ones",
          doc="All ones.")
composite("full(Size[] size, Scalar fill_value, *, options) -> Tensor", variants=_both,
          ref="numpy.full",
          doc="A tensor filled with fill_value, whose dtype is used unless one is given.",
          tags=("core",))
composite("scalar_tensor(Scalar s, *, options) -> Tensor", variants=_function, doc="A 0-d tensor.",
          out="cpp", tags=("core",))
for _name, _extra, _doc in (("empty", "", "Uninitialised"), ("zeros", "", "Zeros"),
                            ("ones", "", "Ones"),
                            ("full", "Scalar fill_value, ", "fill_value")):
    composite(f"{_name}_like(Tensor self, {_extra}*, options, MemoryFormat? memory_format=None) -> "
              f"Tensor",
              variants=_function, out="cpp", batch="leading",
              sparse=f"{_name}_like",
              doc=f"{_doc} in the shape, dtype and device of self.",
              tags=("core",) if _name == "full" else ())
    _size = "Size[] size, " + _extra
    composite(f"new_{_name}(Tensor self, {_size}*, options) -> Tensor", variants="method",
              out="cpp", batch="leading",
              sparse="new_zeros" if _name in ("empty", "zeros") else None,
              doc=f"{_doc} with the dtype and device of self.")
composite("new_empty_strided(Tensor self, Size[] size, int[] stride, *, options) -> Tensor",
          variants="method",
          doc="Uninitialised memory with given strides and the dtype and device of self.",
          out="cpp",
          batch="batched_new_empty_strided(self, size, stride, options, batch)")
composite("arange(Scalar end, *, options) -> Tensor", variants=_both, ref="numpy.arange",
          out="any_shape", doc="The numbers 0, 1, … up to end, which is excluded.")
composite("arange.start(Scalar start, Scalar end, Scalar step=1, *, options) -> Tensor",
          variants=_both, ref="numpy.arange",
          out="any_shape", doc="The values start, start + step, … up to end, which is excluded.",
          overloads=["arange.start(start, end, options)",
                     "arange.start_step(start, end, step, options)"], tags=("core.start_step",))
composite("range(Scalar start, Scalar end, Scalar step=1, *, options) -> Tensor", variants=_both,
          out="any_shape", doc="Deprecated: like `arange`, with the end included.",
          overloads=["range(start, end, options)",
                     "range.step(start, end, step, options)",
                     "range.out_(start, end, out!)", "range.out(start, end, step, out!)"])
# Before those of numbers, for a 0-d tensor is taken as a number, too.
for _kinds in ("Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor"):
    _first, _last = _kinds.split("_")
    _range = f"{_first} start, {_last} end, int steps"
    composite(f"linspace.{_kinds}({_range}, *, options) -> Tensor", variants=_both,
              out="any_shape", doc="`linspace` between 0-d tensors.",
              batch="batched_space(start, end, steps, options)")
    composite(f"logspace.{_kinds}({_range}, float base=10.0, *, options) -> Tensor", variants=_both,
              out="any_shape", doc="`logspace` between 0-d tensors.",
              batch="pow(base, batched_space(start, end, steps, options))")
composite("linspace(Scalar start, Scalar end, int steps, *, options) -> Tensor", variants=_both,
          ref="numpy.linspace",
          out="any_shape", doc="`steps` evenly spaced values from start to end, both included.")
composite("logspace(Scalar start, Scalar end, int steps, float base=10.0, *, options) -> Tensor",
          variants=_both,
          ref="numpy.logspace", out="any_shape",
          doc="base to the power of each value of `linspace(start, end, steps)`.")
composite("eye(int n, int? m=None, *, options) -> Tensor", variants=_both, ref="numpy.eye",
          doc="The identity matrix.",
          overloads=["eye.m(n, int m, options)",
                     "eye(n, options)", "eye.m_out(n, int m, out!)",
                     "eye.out(n, out!)"])
composite("tril_indices(int row, int col, int offset=0, *, options) -> Tensor", variants=_function,
          doc="Row and column numbers of a lower triangle, as 2 rows.", out="cpp",
          overloads=["tril_indices(row, col, offset, dtype=Int64, layout, device, pin_memory)"])
composite("triu_indices(int row, int col, int offset=0, *, options) -> Tensor", variants=_function,
          doc="Row and column numbers of an upper triangle, as 2 rows.", out="cpp",
          overloads=["triu_indices(row, col, offset, dtype=Int64, layout, device, pin_memory)"])
