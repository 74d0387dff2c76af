"""Views and what rearranges without computing: the geometry of each view is in
src/ops/views.cpp."""

from gen.table import composite, custom, op, update, view

# ---- views ----

view("view(Tensor(a) self, Size[] size) -> Tensor(a)",
     grad={"self": "grad.reshape(self.sizes())"}, variants="method",
     doc="The same elements in another shape; RuntimeError where strides do not allow it.",
     tags=("core",))
view("transpose(Tensor(a) self, Dim dim0, Dim dim1) -> Tensor(a)",
     grad={"self": "grad.transpose(dim0, dim1)"}, ref="numpy.swapaxes",
     sparse="transpose", doc="Swaps two dimensions.",
     overloads=["transpose.int(self, dim0, dim1)"])
view("t(Tensor(a) self) -> Tensor(a)",
     grad={"self": "grad.t()"},
     sparse="t",
     doc="The transpose of a matrix; tensors of fewer dimensions are returned as they are.")
view("permute(Tensor(a) self, Dim[] dims) -> Tensor(a)",
     grad={"self": "permute_backward(grad, dims)"}, ref="numpy.transpose",
     sparse="permute", doc="Reorders all dimensions.", tags=("core",))
view("expand(Tensor(a) self, Size[] size, *, bool implicit=False) -> Tensor(a)",
     grad={"self": "grad.sum_to_size(self.sizes())"}, variants="method",
     doc="Repeats dimensions of size 1 without copying; -1 keeps a size.", tags=("core",))
view("squeeze(Tensor(a) self) -> Tensor(a)",
     grad={"self": "grad.reshape(self.sizes())"}, ref="numpy.squeeze",
     sparse="squeeze", doc="Removes all dimensions of size 1.")
view("squeeze.dim(Tensor(a) self, Dim dim) -> Tensor(a)",
     grad={"self": "grad.reshape(self.sizes())"},
     sparse="squeeze_dim", doc="Removes one dimension if it has size 1.", tags=("core",))
view("squeeze.dims(Tensor(a) self, Dim[] dim) -> Tensor(a)",
     grad={"self": "grad.reshape(self.sizes())"},
     doc="Removes those of the dimensions that have size 1.", tags=("core",))
view("unsqueeze(Tensor(a) self, Dim dim) -> Tensor(a)",
     grad={"self": "grad.squeeze(dim)"}, ref="numpy.expand_dims",
     sparse="unsqueeze", doc="Inserts a dimension of size 1.", tags=("core",))
view("select(Tensor(a) self, Dim dim, int index) -> Tensor(a)",
     grad={"self": "select_backward(grad, self.sizes(), dim, index)"},
     sparse="select", doc="The slice at an index along a dimension, which is removed.",
     overloads=["select.int(self, dim, index)"], tags=("core",))
view("slice(Tensor(a) self, Dim dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)",
     grad={"self": "slice_backward(grad, self.sizes(), dim, start.value_or(0), "
                   "end.value_or(INT64_MAX), step)"},
     variants="method",
     sparse="slice", doc="The slice start:end:step along a dimension, clamped as Python does.",
     overloads=["slice.Tensor(self, dim, start, end, step)"], tags=("core",))
view("unfold(Tensor(a) self, Dim dimension, int size, int step) -> Tensor(a)",
     grad={"self": "unfold_backward(grad, self.sizes(), dimension, size, step)"}, variants="method",
     doc="All windows of `size` along a dimension, `step` apart, as a new last dimension.")
view("as_strided(Tensor(a) self, Size[] size, int[] stride, int? storage_offset=None) -> Tensor(a)",
     grad={"self": "as_strided_backward(grad, self.sizes(), self.strides(), self.storage_offset(), "
                   "size, stride, storage_offset)"},
     doc="A window with given sizes, strides and offset on the storage; bounds are checked.",
     jvp="as_strided_tangent(self_t, self, size, stride, storage_offset)", tags=("core",))
view("diagonal(Tensor(a) self, int offset=0, Dim dim1=0, Dim dim2=1) -> Tensor(a)",
     grad={"self": "diagonal_backward(grad, self.sizes(), offset, dim1, dim2)"},
     ref="numpy.diagonal",
     doc="The diagonal of two dimensions, as the last one.", tags=("core",))
view("alias(Tensor(a) self) -> Tensor(a)",
     grad={"self": "grad"}, variants="",
     doc="The same tensor as a new view.", tags=("core",))
view("view_dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
     variants="",
     doc="The same bytes read as another dtype.", own=True,
     batch="leading")
view("unbind(Tensor(a) self, Dim dim=0) -> Tensor(a)[]",
     grad={"self": "unbind_backward(grad_list, self.sizes(), self.options(), dim)"},
     sparse="unbind", doc="All slices along a dimension.",
     overloads=["unbind.int(self, dim)"])

# ---- scattering a view's gradient back ----

op("select_backward(Tensor grad_output, Size[] input_sizes, Dim dim, int index) -> Tensor",
   kernel=custom(place="anywhere"),
   grad={"grad_output": "grad.select(dim, index)"}, variants="",
   doc="The gradient of `select`: zeros, with the gradient in one slice.",
   jvp="linear", batch="dims")
op("slice_backward(Tensor grad_output, Size[] input_sizes, Dim dim, int start, int end, int step) "
   "-> Tensor",
   kernel=custom(place="anywhere"), grad={"grad_output": "grad.slice(dim, start, end, step)"},
   variants="",
   doc="The gradient of `slice`: zeros, with the gradient in a slice.",
   jvp="linear", batch="dims")
op("diagonal_backward(Tensor grad_output, Size[] input_sizes, int offset, Dim dim1, Dim dim2) -> "
   "Tensor",
   kernel=custom(place="anywhere"), grad={"grad_output": "grad.diagonal(offset, dim1, dim2)"},
   variants="",
   doc="The gradient of `diagonal`: zeros, with the gradient on a diagonal.",
   jvp="linear", batch="dims")
op("unfold_backward(Tensor grad_in, Size[] input_sizes, Dim dim, int size, int step) -> Tensor",
   kernel=custom(place="anywhere"), grad={"grad_in": "grad.unfold(dim, size, step)"}, variants="",
   doc="Adds up the windows of `unfold`.",
   jvp="linear", batch="dims")

# ---- copies ----

op("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
   kernel=custom(place="anywhere"),
   grad={"self": "grad"}, variants="function method", ref="numpy.copy",
   sparse="clone", doc="A copy that shares no memory.",
   jvp="linear", batch="leading", tags=("core", "pointwise.default"))
op("_to_copy(Tensor self, *, ScalarType? dtype=None, Device? device=None, bool non_blocking=False, "
   "MemoryFormat? memory_format=None) -> Tensor", kernel=custom(place="anywhere"),
   overloads=["_to_copy(self, dtype, *, Layout? layout=None, device, bool? pin_memory=None, "
              "non_blocking, memory_format)",
              "_to_copy.out(self, non_blocking, memory_format, out!)"],
   grad={"self": "grad.to(self.device())"}, variants="",
   sparse="to_copy", doc="A copy with another dtype, device or memory format.",
   jvp="linear", batch="leading", tags=("core",))
op("copy_(Tensor(a!) self, Tensor|Scalar src, bool non_blocking=False) -> Tensor(a!)",
   kernel=update(place="anywhere", shares="input"),
   grad={"self": "zeros_like(grad)", "src": "grad"}, variants="method inplace",
   sparse="copy_", doc="Writes the elements of src, converted and broadcast.",
   overloads=["copy_(self, Tensor src, non_blocking)"],
   jvp={"self": "zeros_like(self_t)", "src": "src_t"}, batch="aligned")

# ---- written over the others ----

composite("reshape(Tensor(a) self, int[] shape) -> Tensor(a)", ref="numpy.reshape",
          doc="The same elements in another shape: a view where possible, else a copy.")
composite("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", variants="method",
          doc="`reshape` to the shape of other.")
composite("view_as(Tensor(a) self, Tensor other) -> Tensor(a)", variants="method",
          doc="`view` in the shape of other.")
composite("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", variants="method",
          doc="The same bytes read as another dtype; the last dimension scales with its size.",
          overloads=["view.dtype(self, dtype)"])
composite("flatten(Tensor(a) self, Dim start_dim=0, Dim end_dim=-1) -> Tensor(a)",
          doc="Merges a run of dimensions.",
          overloads=["flatten.using_ints(self, start_dim, end_dim)"])
composite("unflatten(Tensor(a) self, Dim dim, int[] sizes) -> Tensor(a)",
          doc="Splits one dimension into several.",
          overloads=["unflatten.int(self, dim, sizes)"])
composite("ravel(Tensor(a) self) -> Tensor(a)", ref="numpy.ravel",
          doc="All elements in one dimension: a view where possible, else a copy.")
composite("contiguous(Tensor(a) self, *, MemoryFormat memory_format=Contiguous) -> Tensor(a)",
          variants="method",
          doc="Returns self if it is contiguous in the memory format, else a copy that is.")
composite("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", variants="method",
          doc="`expand` to the shape of other.")
composite("broadcast_to(Tensor(a) self, Size[] size) -> Tensor(a)", ref="numpy.broadcast_to",
          doc="`expand` as a function.")
composite("broadcast_tensors(Tensor[] tensors) -> Tensor[]", ref="numpy.broadcast_arrays",
          variants="function", python="listed varargs",
          doc="Expands tensors to their common shape.")
composite("sum_to_size(Tensor self, Size[] size) -> Tensor", variants="method",
          doc="Sums the dimensions that `expand` to self's shape would repeat.")
composite("swapaxes(Tensor(a) self, Dim axis0, Dim axis1) -> Tensor(a)", ref="numpy.swapaxes",
          doc="Alias of `transpose`.")
composite("swapdims(Tensor(a) self, Dim dim0, Dim dim1) -> Tensor(a)", doc="Alias of `transpose`.")
composite("movedim(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
          ref="numpy.moveaxis",
          doc="Moves dimensions to new places; the others keep their order.",
          overloads=["movedim.int(self, int source, int destination)",
                     "movedim.intlist(self, source, destination)"])
composite("moveaxis(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
          ref="numpy.moveaxis", doc="Alias of `movedim`.",
          overloads=["moveaxis.int(self, int source, int destination)",
                     "moveaxis.intlist(self, source, destination)"])
composite("adjoint(Tensor(a) self) -> Tensor(a)",
          doc="The conjugate of the last two dimensions' transpose.")
composite("narrow(Tensor(a) self, Dim dim, int start, int length) -> Tensor(a)",
          doc="The slice start:start+length along a dimension.")
composite("narrow.Tensor(Tensor(a) self, Dim dim, Tensor start, int length) -> Tensor(a)",
          doc="`narrow` with a start in a 0-d tensor.")
composite("split(Tensor(a) self, int split_size, Dim dim=0) -> Tensor(a)[]",
          python="listed", doc="Pieces of one length; the last may be shorter.",
          overloads=["split.Tensor(self, split_size, dim)"])
view("split.sizes(Tensor(a) self, int[] split_size, Dim dim=0) -> Tensor(a)[]",
     grad={"self": "split_backward(grad_list, self.sizes(), self.options(), split_size, dim)"},
     node=0, doc="Consecutive pieces of the given lengths.")
composite("split_with_sizes(Tensor(a) self, int[] split_sizes, Dim dim=0) -> Tensor(a)[]",
          doc="Pieces of given lengths.", tags=("core",))
composite("chunk(Tensor(a) self, int chunks, Dim dim=0) -> Tensor(a)[]",
          doc="At most `chunks` pieces of equal length.")
composite("tensor_split(Tensor(a) self, int sections, Dim dim=0) -> Tensor(a)[]",
          doc="Exactly `sections` pieces.",
          overloads=["tensor_split.sections(self, sections, dim)"])
composite("tensor_split.indices(Tensor(a) self, int[] indices, Dim dim=0) -> Tensor(a)[]",
          doc="Pieces that end at the indices.")
composite("to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, *, "
          "MemoryFormat? memory_format=None) -> Tensor(a)", variants="method",
          doc="Returns self if it has the dtype, else a converted copy.",
          overloads=["to.dtype(self, dtype, non_blocking, copy, MemoryFormat? memory_format=None)"])
composite("to.device(Tensor(a) self, Device? device=None, ScalarType? dtype=None, bool "
          "non_blocking=False, "
          "bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor(a)", variants="method",
          overloads=["to.device(self, Device device, ScalarType dtype, non_blocking, copy, "
                     "MemoryFormat? memory_format=None)",
                     "to.dtype_layout(self, *, ScalarType? dtype=None, Layout? layout=None, "
                     "Device? device=None, "
                     "bool? pin_memory=None, non_blocking, copy, memory_format)"],
          doc="Returns self if it is on the device and has the dtype, else a copy that is.")
composite("to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, *, "
          "MemoryFormat? memory_format=None) -> Tensor(a)", variants="method",
          doc="Returns self if it has the dtype and device of other, else a copy that has.",
          overloads=["to.other(self, other, non_blocking, copy, MemoryFormat? memory_format=None)"])
composite("type_as(Tensor self, Tensor other) -> Tensor", variants="method",
          doc="Converts to the dtype of other.")
composite("detach(Tensor(a) self) -> Tensor(a)", shown="whole", batch="leading",
          sparse="detach", doc="A view of the same memory without a history in the graph.")
composite("detach_(Tensor(a!) self) -> Tensor(a!)", variants="function method inplace",
          doc="Removes the tensor's history, in place.", tags=("inplace_view",))
composite("lift_fresh(Tensor(a) self) -> Tensor(a)", variants="", shown="whole", batch="leading",
          doc="Returns the tensor: it marks one that was made from Python's numbers inside of a "
              "transform.")
composite("_local_scalar_dense(Tensor self) -> Scalar", variants="", grad="none", shown="whole",
          batch="refused: calling .item() on a Tensor with a batch gives no one number. Compute "
                "with the tensor itself, or take its numbers outside of vmap.",
          sparse="number", doc="The number that a tensor of one element holds.",
          tags=("core", "data_dependent_output"))
composite("atleast_1d(Tensor self) -> Tensor", ref="numpy.atleast_1d", variants="function",
          python="listed", doc="The tensor with at least one dimension.")
composite("atleast_2d(Tensor self) -> Tensor", ref="numpy.atleast_2d", variants="function",
          python="listed", doc="The tensor with at least two dimensions.")
composite("atleast_3d(Tensor self) -> Tensor", ref="numpy.atleast_3d", variants="function",
          python="listed", doc="The tensor with at least three dimensions.")
for _n in (1, 2, 3):
    composite(f"atleast_{_n}d.Sequence(Tensor[] tensors) -> Tensor[]", variants="function",
              python="varargs", doc=f"`atleast_{_n}d` of each.")

# ---- questions ----

for _name, _other, _doc in (
    ("is_nonzero", "", "Whether its only element is not zero."),
    ("is_same_size", ", Tensor other", "Whether two tensors have the same sizes."),
):
    composite(f"{_name}(Tensor self{_other}) -> bool", grad="none", doc=_doc)
# Methods by hand, which do not look at arguments.
for _name, _result, _doc in (
    ("is_signed", "bool", "Whether its dtype has negative numbers."),
    ("is_inference", "bool", "Whether it was made in inference mode."),
    ("get_device", "int", "The number of its GPU; -1 on the CPU."),
):
    composite(f"{_name}(Tensor self) -> {_result}", variants="function", grad="none", doc=_doc)

# ---- geometry changed in place ----

composite("transpose_(Tensor(a!) self, Dim dim0, Dim dim1) -> Tensor(a!)",
          variants="method inplace", doc="`transpose` in place.")
composite("t_(Tensor(a!) self) -> Tensor(a!)", variants="method inplace", doc="`t` in place.")
composite("swapaxes_(Tensor(a!) self, Dim axis0, Dim axis1) -> Tensor(a!)",
          variants="method inplace", doc="`swapaxes` in place.", tags=("inplace_view",))
composite("swapdims_(Tensor(a!) self, Dim dim0, Dim dim1) -> Tensor(a!)", variants="method inplace",
          doc="`swapdims` in place.", tags=("inplace_view",))
composite("squeeze_(Tensor(a!) self) -> Tensor(a!)", variants="method inplace",
          doc="`squeeze` in place.")
composite("squeeze_.dims(Tensor(a!) self, Dim[] dim) -> Tensor(a!)", variants="method inplace",
          doc="`squeeze` in place.")
composite("squeeze_.dim(Tensor(a!) self, Dim dim) -> Tensor(a!)", variants="method inplace",
          doc="`squeeze` in place.")
composite("unsqueeze_(Tensor(a!) self, Dim dim) -> Tensor(a!)", variants="method inplace",
          doc="`unsqueeze` in place.")
composite("as_strided_(Tensor(a!) self, Size[] size, int[] stride, int? storage_offset=None) -> "
          "Tensor(a!)",
          variants="function method inplace", doc="`as_strided` in place.")
composite("resize_(Tensor(a!) self, Size[] size, *, MemoryFormat? memory_format=None) -> "
          "Tensor(a!)",
          variants="method inplace",
          doc="Sets new sizes in place. The storage grows when needed and keeps its contents.",
          batch="leading",
          tags=("core", "inplace_view"))
composite("resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) "
          "-> Tensor(a!)",
          variants="function method inplace", doc="`resize_` to the shape of the template.",
          tags=("inplace_view",))
