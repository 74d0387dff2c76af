"""Indexing, gathering and scattering, masks, joining, rearranging."""

from gen.table import complex_half, composite, custom, dynamic, float8, op, stored, update

# ---- tensors as indices ----

op("index(Tensor self, Tensor?[] indices) -> Tensor",
   kernel=custom(stored=(stored,)), variants="function method",
   grad={"self": "index_backward(grad, self.sizes(), indices)"},
   doc="Elements at positions given by index tensors, one per dimension; bool and uint8 ones are "
       "masks.",
   overloads=["index.Tensor(self, indices)", "index.Tensor_out(self, indices, out!)"],
   jvp="linear", batch="batched_index(self, indices, batch)",
   tags=("core", "dynamic_output_shape.Tensor"))
op("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
   kernel=update(shares="warned", stored=(complex_half, float8)),
   variants="function method inplace", python="inplace",
   grad={"self": "grad if accumulate else "
                 "grad.index_put(indices, zeros({}, grad.options()), false)",
         "values": "grad.index(indices)"},
   doc="Writes values at positions given by index tensors; `accumulate` adds instead.",
   jvp="linear", batch="batched_index_put(self, indices, values, accumulate, batch)",
   autocast={"accelerator": "promote"}, tags=("core",))
op("index_select(Tensor self, Dim dim, Tensor index) -> Tensor", kernel=custom(stored=(stored,)),
   grad={"self": "index_select_backward(grad, self.sizes(), dim, index)"}, ref="numpy.take",
   sparse="index_select", doc="The slices along a dimension whose indices `index` lists.",
   jvp="linear",
   batch={"self": "dims",
          "": "expand_batch(self, batch).gather(dim, expand_index(index, dim, self, batch))"},
   tags=("core",))
op("index_add(Tensor self, Dim dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
   kernel=update(packed=True, stored=(complex_half,)),
   grad={"self": "grad",
         "source": "scale_gradient(index_select_like(grad, dim, index, source.sizes()), "
                   "alpha.conj())"},
   doc="Adds alpha * source to the slices that `index` lists.",
   jvp="linear",
   batch={"self, source": "dims",
          "": "expand_batch(self, batch).scatter_add(dim, expand_index(index, dim, self, batch), "
              "expand_batch(source, batch) * alpha)"})
op("index_copy(Tensor self, Dim dim, Tensor index, Tensor source) -> Tensor",
   kernel=update(packed=True, stored=(complex_half,)),
   grad={"self": "grad.index_fill(dim, index, Scalar(0))",
         "source": "index_select_like(grad, dim, index, source.sizes())"},
   doc="Writes the slices of source to those that `index` lists.",
   jvp="linear",
   batch={"self, source": "dims",
          "": "expand_batch(self, batch).scatter(dim, expand_index(index, dim, self, batch), "
              "expand_batch(source, batch))"},
   autocast={"cpu": "promote"})
composite("index_fill(Tensor self, Dim dim, Tensor index, Tensor value) -> Tensor",
          variants="function method inplace", doc="`index_fill` with the value of a 0-d tensor.",
          out="cpp",
          overloads=["index_fill.int_Tensor(self, dim, index, value)",
                     "index_fill_.int_Tensor(self, dim, index, value)",
                     "index_fill.int_Tensor_out(self, dim, index, value, out!)"])
op("index_fill.value(Tensor self, Dim dim, Tensor index, Scalar value) -> Tensor",
   kernel=update(shares="warned", stored=(complex_half,)),
   variants="function method inplace",
   grad={"self": "grad.index_fill(dim, index, Scalar(0))"},
   doc="Fills the slices that `index` lists.",
   overloads=["index_fill.int_Scalar(self, dim, index, value)",
              "index_fill_.int_Scalar(self, dim, index, value)",
              "index_fill.int_Scalar_out(self, dim, index, value, out!)"],
   jvp="self_t.index_fill(dim, index, 0)",
   batch={"self": "dims",
          "": "expand_batch(self, batch).scatter(dim, expand_index(index, dim, self, batch), "
              "value)"})
op("gather(Tensor self, Dim dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
   kernel=custom(),
   grad={"self": "zeros(self.sizes(), grad.options()).scatter_add(dim, index, grad)"},
   ref="numpy.take_along_axis",
   doc="out[i][j] = self[index[i][j]][j] for dim 0, and likewise for others.",
   jvp="linear", batch="dims", tags=("core",))
op("scatter.src(Tensor self, Dim dim, Tensor index, Tensor src) -> Tensor",
   kernel=update(packed=True),
   grad={"self": "grad.scatter(dim, index, Scalar(0))",
         "src": "scatter_source_backward(grad, dim, index, src.sizes())"},
   doc="Writes self[index[i][j]][j] = src[i][j] for dim 0, and likewise for others.",
   jvp="linear", batch="dims", tags=("core",))
op("scatter.value(Tensor self, Dim dim, Tensor index, Scalar value) -> Tensor",
   kernel=update(packed=True),
   grad={"self": "grad.scatter(dim, index, Scalar(0))"}, doc="`scatter` of one value.",
   jvp="self_t.scatter(dim, index, 0)", batch="dims", tags=("core",))
op("scatter.src_reduce(Tensor self, Dim dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
   kernel=update(packed=True),
   grad="missing", doc="`scatter` that adds or multiplies.",
   overloads=["scatter.reduce(self, dim, index, src, reduce)",
              "scatter_.reduce(self, dim, index, src, reduce)",
              "scatter.reduce_out(self, dim, index, src, reduce, out!)"],
   batch="dims")
op("scatter.value_reduce(Tensor self, Dim dim, Tensor index, Scalar value, *, str reduce) -> "
   "Tensor", kernel=update(packed=True),
   grad="missing", doc="`scatter` of one value that is added or multiplied.",
   batch="dims")
op("scatter_add(Tensor self, Dim dim, Tensor index, Tensor src) -> Tensor",
   kernel=update(packed=True),
   grad={"self": "grad", "src": "scatter_source_backward(grad, dim, index, src.sizes())"},
   doc="Adds self[index[i][j]][j] += src[i][j] for dim 0, and likewise for others.",
   jvp="linear", batch="dims",
   autocast={"accelerator": "promote"}, tags=("core",))
op("scatter_reduce(Tensor self, Dim dim, Tensor index, Tensor src, str reduce, *, bool "
   "include_self=True) -> Tensor",
   kernel=update(packed=True),
   grad={"self, src": "scatter_reduce_backward(grad, self, dim, index, src, reduce, include_self, "
                      "result)"},
   doc="`scatter` that combines elements of equal index by sum, prod, mean, amax or amin.",
   overloads=["scatter_reduce.two(self, dim, index, src, reduce, include_self)",
              "scatter_reduce_.two(self, dim, index, src, reduce, include_self)",
              "scatter_reduce.two_out(self, dim, index, src, reduce, include_self, out!)"],
   jvp="twice: products, means and extremes have a tangent each", batch="dims", tags=("core",))
op("take(Tensor self, Tensor index) -> Tensor", kernel=custom(),
   grad={"self": "zeros(self.sizes(), grad.options()).put(index, grad, true)"}, ref="numpy.take",
   doc="Elements at positions in the flattened tensor.",
   jvp="linear",
   batch={"index": "leading",
          "": "flatten_slices(self, batch).gather(1, wrap_index(flatten_slices(index, batch), "
              "first_of(self).numel())).reshape_as(expand_batch(index, batch))"})
op("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
   kernel=update(),
   variants="function method inplace",
   grad={"self": "grad if accumulate else grad.put(index, zeros(source.sizes(), grad.options()), "
                 "false)",
         "source": "grad.take(index).reshape(source.sizes())"},
   doc="Writes, or adds, elements at positions in the flattened tensor.",
   jvp="linear", batch="batched_put(self, index, source, accumulate, batch)")
composite("take_along_dim(Tensor self, Tensor indices, Dim? dim=None) -> Tensor",
          variants="function method out", ref="numpy.take_along_axis",
          doc="`gather` with broadcasting; flattened without a dimension.")

# ---- masks ----

composite("masked_fill(Tensor self, Tensor mask, Tensor value) -> Tensor",
          variants="function method inplace",
          doc="`masked_fill` with the value of a 0-d tensor.", out="cpp",
          overloads=["masked_fill.Tensor(self, mask, value)",
                     "masked_fill_.Tensor(self, mask, value)",
                     "masked_fill.Tensor_out(self, mask, value, out!)"])
op("masked_fill.value(Tensor self, Tensor mask, Scalar value) -> Tensor",
   kernel=update(packed=True, shares="warned", stored=(complex_half,)), node=0,
   variants="function method inplace",
   grad={"self": "grad.masked_fill(mask, Scalar(0))"},
   doc="self with `value` where the mask is true.",
   overloads=["masked_fill.Scalar(self, mask, value)", "masked_fill_.Scalar(self, mask, value)",
              "masked_fill.Scalar_out(self, mask, value, out!)"],
   jvp="self_t.masked_fill(mask, 0)", batch="aligned", tags=("pointwise.Scalar",))
op("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", kernel=update(packed=True),
   variants="function method inplace",
   grad={"self": "grad.masked_fill(mask, Scalar(0))",
         "source": "masked_scatter_backward(grad, mask, source.sizes())"},
   doc="self with the elements of source, one after another, where the mask is true.",
   jvp="linear", batch="slices: how many elements of source a slice takes depends on values",
   tags=("core",))
op("masked_select(Tensor self, Tensor mask) -> Tensor",
   kernel=dynamic(place="isa", stored=(complex_half, float8)),
   grad={"self": "masked_select_backward(grad, self.sizes(), mask)"},
   doc="The elements where the mask is true.",
   jvp="linear", variants="function method out")
op("nonzero(Tensor self) -> Tensor",
   kernel=dynamic(place="isa", stored=(complex_half,)), grad="none", ref="numpy.argwhere",
   variants="function method out", python="wrapped",
   doc="The indices of the elements that are not zero, a row each.", tags=("core",))
composite("nonzero_numpy(Tensor self) -> Tensor[]", variants="method",
          doc="The indices of the elements that are not zero, one tensor per dimension.")
composite("argwhere(Tensor self) -> Tensor", ref="numpy.argwhere", doc="Alias of `nonzero`.",
          tags=("dynamic_output_shape",))
composite("where.single(Tensor condition) -> Tensor[]", variants="function", ref="numpy.nonzero",
          doc="The indices of the elements that are not zero, one tensor per dimension.",
          overloads=["where(condition)"])

# ---- joining ----

op("cat(Tensor[] tensors, Dim dim=0) -> Tensor", kernel=custom(place="once", stored=(stored,)),
   grad={"tensors": "cat_backward(grad, tensors, dim)"}, ref="numpy.concatenate",
   sparse="cat", doc="Concatenates tensors along a dimension that exists.",
   jvp="linear", batch="cat(expand_tensors(tensors, batch), dim)",
   autocast="promote", tags=("core",))
composite("concat(Tensor[] tensors, Dim dim=0) -> Tensor", variants="function out",
          ref="numpy.concatenate", doc="Alias of `cat`.")
composite("concatenate(Tensor[] tensors, Dim dim=0) -> Tensor", variants="function out",
          ref="numpy.concatenate", doc="Alias of `cat`.")
composite("stack(Tensor[] tensors, Dim dim=0) -> Tensor", ref="numpy.stack",
          variants="function out",
          doc="Concatenates tensors of equal shape along a new dimension.",
          autocast="promote")
composite("hstack(Tensor[] tensors) -> Tensor", variants="function out", ref="numpy.hstack",
          doc="Concatenates tensors along dimension 1 (vectors: 0).")
composite("vstack(Tensor[] tensors) -> Tensor", variants="function out", ref="numpy.vstack",
          doc="Concatenates tensors along dimension 0; vectors are rows.")
composite("row_stack(Tensor[] tensors) -> Tensor", variants="function out", ref="numpy.vstack",
          doc="Alias of `vstack`.")
composite("column_stack(Tensor[] tensors) -> Tensor", variants="function out",
          ref="numpy.column_stack",
          doc="Concatenates tensors along dimension 1; vectors are columns.")
composite("dstack(Tensor[] tensors) -> Tensor", variants="function out", ref="numpy.dstack",
          doc="Concatenates tensors along dimension 2.")
composite("meshgrid(Tensor[] tensors, *, str? indexing=None) -> Tensor[]", ref="numpy.meshgrid",
          variants="function", python="wrapped varargs",
          doc="Grids of coordinates from vectors, one for each; dimensions in 'ij' or 'xy' order.",
          overloads=["meshgrid(tensors)", "meshgrid.indexing(tensors, *, str indexing)"])

# ---- rearranging ----

op("flip(Tensor self, Dim[] dims) -> Tensor", kernel=custom(),
   variants="function method", grad={"self": "grad.flip(dims)"},
   ref="numpy.flip",
   doc="Reverses the order of the elements along dimensions.",
   jvp="linear", batch="dims", tags=("core",))
composite("fliplr(Tensor self) -> Tensor", ref="numpy.fliplr",
          doc="Reverses the order along dimension 1.")
composite("flipud(Tensor self) -> Tensor", ref="numpy.flipud",
          doc="Reverses the order along dimension 0.")
composite("rot90(Tensor self, int k=1, Dim[] dims=[0, 1]) -> Tensor", ref="numpy.rot90",
          doc="Rotates the plane of two dimensions by k times 90 degrees.", out="cpp")
composite("roll(Tensor self, int[1] shifts, Dim[1] dims=[]) -> Tensor", ref="numpy.roll",
          doc="Shifts elements along dimensions, round the end; without dimensions, of the "
              "flattened tensor.", out="cpp")
op("tril(Tensor self, int diagonal=0) -> Tensor",
   kernel=custom(place="once", stored=(complex_half,)), variants="function method inplace out",
   grad={"self": "grad.tril(diagonal)"}, ref="numpy.tril",
   doc="The lower triangle of matrices; zero above.",
   jvp="linear", batch="leading")
op("triu(Tensor self, int diagonal=0) -> Tensor",
   kernel=custom(place="once", stored=(complex_half,)), variants="function method inplace out",
   grad={"self": "grad.triu(diagonal)"}, ref="numpy.triu",
   doc="The upper triangle of matrices; zero below.",
   jvp="linear", batch="leading")
composite("diag(Tensor self, int diagonal=0) -> Tensor", variants="function method out",
          ref="numpy.diag",
          doc="A matrix with the vector on a diagonal, or a copy of a matrix's diagonal.")
composite("diag_embed(Tensor self, int offset=0, Dim dim1=-2, Dim dim2=-1) -> Tensor",
          doc="Matrices whose diagonals are the last dimension.", out="cpp")
composite("diagflat(Tensor self, int offset=0) -> Tensor", ref="numpy.diagflat",
          doc="`diag` of the flattened tensor.")
composite("repeat(Tensor self, int[] repeats) -> Tensor", variants="method", ref="numpy.tile",
          doc="Repeats the tensor along each dimension, as often as `repeats` says.",
          out="cpp", tags=("core",))
composite("tile(Tensor self, int[] dims) -> Tensor", ref="numpy.tile",
          doc="Like `repeat`; missing numbers of repetitions are 1.")
composite("segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, "
          "Tensor? offsets=None, Dim axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
          variants="function",
          doc="The sum, mean, max, min or prod of segments that follow each other along `axis`, of "
              "given lengths or from offset to offset; dimensions before it are batches of both.")
composite("repeat_interleave.self_int(Tensor self, int repeats, Dim? dim=None, *, int? "
          "output_size=None) -> Tensor",
          ref="numpy.repeat", doc="Repeats each slice along a dimension several times.")
composite("repeat_interleave.self_Tensor(Tensor self, Tensor repeats, Dim? dim=None, *, int? "
          "output_size=None) -> Tensor",
          ref="numpy.repeat",
          doc="Repeats each slice along a dimension as often as `repeats` says.")
composite("repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor",
          variants="function",
          doc="Lists each number i repeats[i] times.", out="cpp",
          tags=("dynamic_output_shape.Tensor",))
composite("one_hot(Tensor self, int num_classes=-1) -> Tensor", python="nn functional",
          doc="Rows of zeros with a 1 at the index of the class.",
          tags=("dynamic_output_shape",))
