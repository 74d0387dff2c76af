"""Products of matrices and vectors. All of them multiply through one door, src/cpu/gemm.h."""

from gen.table import composite, custom, op, update

# ---- kernels ----

op("mm(Tensor self, Tensor mat2) -> Tensor", kernel=custom(place="once"),
   grad={"self": "grad.mm(mat2.adjoint())", "mat2": "self.adjoint().mm(grad)"}, ref="numpy.matmul",
   sparse="mm", doc="The product of two matrices.",
   jvp="multilinear", batch="batched_mm(self, mat2, batch)",
   autocast="lower", tags=("core",))
op("_int_mm(Tensor self, Tensor mat2) -> Tensor", kernel=custom(place="once"),
   variants="function out", grad="none",
   batch="batched_int_mm(self, mat2, batch)",
   doc="The product of a matrix of int8 or uint8 and one of int8, in int32.")
op("bmm(Tensor self, Tensor mat2) -> Tensor", kernel=custom(place="once"),
   grad={"self": "grad.bmm(mat2.adjoint())", "mat2": "self.adjoint().bmm(grad)"},
   ref="numpy.matmul",
   sparse="bmm", doc="The products of two batches of matrices.",
   jvp="multilinear", batch="batched_bmm(self, mat2, batch)",
   autocast="lower", tags=("core",))
op("_matmul(Tensor self, Tensor mat2) -> Tensor", kernel=custom(place="once"), variants="",
   grad={"self": "_matmul(grad, mat2.adjoint())", "mat2": "_matmul(self.adjoint(), grad)"},
   doc="The products of matrices with equal leading dimensions, of any strides.", own=True,
   jvp="multilinear", batch="fold",
   autocast="lower")
op("mv(Tensor self, Tensor vec) -> Tensor", kernel=custom(place="once"),
   grad={"self": "outer(grad, vec.conj())", "vec": "self.adjoint().mv(grad)"}, ref="numpy.matmul",
   sparse="mv", doc="A matrix times a vector.",
   jvp="multilinear", batch="batched_mv(self, vec)",
   autocast={"accelerator": "lower"})
op("dot(Tensor self, Tensor tensor) -> Tensor", kernel=custom(place="once"),
   grad={"self": "grad * tensor.conj()", "tensor": "grad * self.conj()"}, ref="numpy.dot",
   doc="The inner product of two vectors; nothing is conjugated.",
   jvp="multilinear", batch="batched_dot(self, tensor)",
   autocast={"accelerator": "promote"})
op("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
   kernel=update(place="once"),
   grad={"self": "scale_gradient(grad, beta.conj())",
         "mat1": "scale_gradient(grad.mm(mat2.adjoint()), alpha.conj())",
         "mat2": "scale_gradient(mat1.adjoint().mm(grad), alpha.conj())"},
   sparse="addmm",
   doc="beta * self + alpha * mat1 @ mat2; self is broadcast, and not read where beta is 0.",
   jvp={"self": "self_t * beta",
        "mat1": "mat1_t.mm(mat2) * alpha",
        "mat2": "mat1.mm(mat2_t) * alpha"},
   batch="batched_addmm(self, mat1, mat2, beta, alpha, batch)",
   autocast="lower", tags=("core",))
op("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
   kernel=update(place="once"),
   grad={"self": "scale_gradient(grad, beta.conj())",
         "batch1": "scale_gradient(grad.bmm(batch2.adjoint()), alpha.conj())",
         "batch2": "scale_gradient(batch1.adjoint().bmm(grad), alpha.conj())"},
   doc="beta * self + alpha * batch1 @ batch2 for batches of matrices.",
   jvp={"self": "self_t * beta",
        "batch1": "batch1_t.bmm(batch2) * alpha",
        "batch2": "batch1.bmm(batch2_t) * alpha"},
   batch="batched_baddbmm(self, batch1, batch2, beta, alpha, batch)",
   autocast="lower")
op("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
   kernel=update(place="once"), python="inplace",
   grad={"self": "scale_gradient(grad, beta.conj())",
         "mat": "scale_gradient(outer(grad, vec.conj()), alpha.conj())",
         "vec": "scale_gradient(mat.adjoint().mv(grad), alpha.conj())"},
   doc="beta * self + alpha * mat @ vec.",
   jvp={"self": "self_t * beta", "mat": "mat_t.mv(vec) * alpha", "vec": "mat.mv(vec_t) * alpha"},
   batch="baddbmm(with_dims(self, 1).unsqueeze(-1), expand_batch(mat, batch), expand_batch(vec, "
         "batch).unsqueeze(-1), beta, alpha).squeeze(-1)",
   autocast={"accelerator": "lower"})
op("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", kernel=custom(place="once"),
   python="nn functional", sparse="linear",
   variants="function out",
   node={"input.dim() == 2 and weight.dim() == 2": "MmBackward0",
         "input.dim() == 2 and weight.dim() == 2 and bias.defined()": "AddmmBackward0"},
   grad={"input": "linear_input_backward(grad, weight)",
         "weight": "linear_weight_backward(grad, input, grad.dim() - input.dim() + 2)",
         "bias": "grad"},
   doc="input @ weight.T + bias over the last dimension of input.",
   jvp={"input": "linear(input_t, weight)", "weight": "linear(input, weight_t)", "bias": "bias_t"},
   batch={"input": "leading", "": "batched_linear(input, weight, bias)"},
   shown="parts", autocast="lower")

# ---- written over the others ----

composite("matmul(Tensor self, Tensor other) -> Tensor", variants="function method out",
          ref="numpy.matmul",
          doc="The matrix product; vectors count as a row or a column, leading dimensions are "
              "broadcast.",
          autocast="lower")
composite("vdot(Tensor self, Tensor other) -> Tensor", variants="function method out",
          ref="numpy.vdot",
          doc="The inner product of two vectors, the first one conjugated.")
composite("inner(Tensor self, Tensor other) -> Tensor", variants="function method out",
          ref="numpy.inner",
          doc="The inner products over the last dimension of both.")
composite("outer(Tensor self, Tensor vec2) -> Tensor", variants="function method out",
          ref="numpy.outer",
          doc="The outer product: every element of one vector times every element of the other.")
composite("ger(Tensor self, Tensor vec2) -> Tensor", variants="function method out",
          doc="Alias of `outer`.")
composite("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
          variants="function method inplace out", doc="beta * self + alpha * outer(vec1, vec2).",
          autocast={"accelerator": "lower"})
composite("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
          "Tensor",
          variants="function method inplace out",
          doc="beta * self + alpha * the sum of all products batch1 @ batch2.",
          autocast="lower")
composite("chain_matmul(Tensor[] matrices) -> Tensor", variants="function out",
          python="listed varargs", doc="The product of several matrices, in the cheapest order.",
          autocast="lower")
composite("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
          variants="function out", python="wrapped",
          doc="Sums of products over pairs of dimensions.")
composite("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
          variants="function", python="wrapped varargs",
          ref="numpy.einsum",
          doc="Sums of products in Einstein's notation: `einsum('ij,jk->ik', a, b)`.")
composite("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
          variants="function", python="functional",
          doc="input1 @ weight[o] @ input2 + bias[o] over the last dimensions, for each output o.",
          autocast="promote")

# ---- products in a wider dtype ----

for _name, _arguments, _factors in (
    ("mm", "Tensor self, Tensor mat2", ""),
    ("bmm", "Tensor self, Tensor mat2", ""),
    ("addmm", "Tensor self, Tensor mat1, Tensor mat2", ", *, Scalar beta=1, Scalar alpha=1"),
    ("baddbmm", "Tensor self, Tensor batch1, Tensor batch2", ", *, Scalar beta=1, Scalar alpha=1"),
):
    composite(f"{_name}.dtype({_arguments}, ScalarType out_dtype{_factors}) -> Tensor",
              variants="function out",
              doc=f"`{_name}` of 16-bit matrices, summed and given as out_dtype: float32, or "
                  f"theirs.")
