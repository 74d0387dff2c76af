// Contracts of the matrix products, and what is written over them: matmul's cases, einsum is in
// einsum.cpp. A product: an entry in ops/linalg.py, its shape function here, its kernel in
// cpu/matmul.cpp.
#include "generated/contracts.h"
#include "ops/derivatives.h"
#include "ops/geometry.h"

namespace rushlight {

namespace {

std::string size_text(const Tensor& t) { return str(t.size(0), "x", t.size(1)); }

void check_multipliable(const Tensor& a, const Tensor& b) {
  RL_CHECK(a.size(1) == b.size(0), "mat1 and mat2 shapes cannot be multiplied (", size_text(a),
           " and ", size_text(b), "): the first has ", a.size(1), " columns, the second ",
           b.size(0), " rows, which must be the same number");
}

void check_not_bool(const char* op, const Tensor& t) {
  if (t.dtype() == kBool) {
    dtype_not_implemented(op, kBool);
  }
}

void check_batches(const Tensor& a, const Tensor& b) {
  RL_CHECK(a.dim() == 3, "batch1 must be a 3D tensor");
  RL_CHECK(b.dim() == 3, "batch2 must be a 3D tensor");
  RL_CHECK(a.size(0) == b.size(0) && a.size(2) == b.size(1), "batches of ", a.size(0),
           " matrices with ", a.size(2), " columns and of ", b.size(0), " with ", b.size(1),
           " rows cannot be multiplied: Expected size for first two dimensions [", a.size(0), ", ",
           a.size(2), "]; bmm takes as many of both, columns of one for rows of the other");
}

void check_not_numbers(const char* op, const Tensor& a, const Tensor& b) {
  RL_CHECK(a.dim() >= 1 && b.dim() >= 1, op, ": both arguments need to be at least 1D, not ",
           a.dim(), "D and ", b.dim(), "D: mul() multiplies by a number");
}

void check_factors(const Tensor& self, const Scalar& beta, const Scalar& alpha) {
  beta.check_fits(self.dtype());
  alpha.check_fits(self.dtype());
}

}  // namespace

namespace shape {

OutSpec mm(Tensor& self, Tensor& mat2) {
  RL_CHECK(self.dim() == 2, "self must be a matrix");
  RL_CHECK(mat2.dim() == 2, "mat2 must be a matrix");
  check_multipliable(self, mat2);
  RL_CHECK(self.dtype() == mat2.dtype(),
           "expected m1 and m2 to have the same dtype, but got: ", dtype_info(self.dtype()).alias,
           " != ", dtype_info(mat2.dtype()).alias, ": convert one of them with to()");
  check_not_bool("addmm_impl_cpu_", self);
  return {{self.size(0), mat2.size(1)}, self.dtype()};
}

OutSpec _int_mm(Tensor& self, Tensor& mat2) {
  RL_CHECK(self.dim() == 2, "_int_mm: Expected self to be a matrix, not of ", self.dim(),
           " dimensions");
  RL_CHECK(mat2.dim() == 2, "_int_mm: Expected mat2 to be a matrix, not of ", mat2.dim(),
           " dimensions");
  RL_CHECK(self.dtype() == kInt8 || self.dtype() == kUInt8,
           "_int_mm: self must be of int8 or uint8, not of ", self.dtype());
  RL_CHECK(mat2.dtype() == kInt8, "_int_mm: mat2 must be of int8, not of ", mat2.dtype());
  RL_CHECK(self.size(1) == mat2.size(0),
           "_int_mm: columns of self and rows of mat2 must be as many, not ", self.size(1), " and ",
           mat2.size(0));
  return {{self.size(0), mat2.size(1)}, kInt32};
}

OutSpec bmm(Tensor& self, Tensor& mat2) {
  check_batches(self, mat2);
  RL_CHECK(self.dtype() == mat2.dtype(), "expected scalar type ", enum_name(self.dtype()),
           " but found ", enum_name(mat2.dtype()));
  check_not_bool("bmm", self);
  return {{self.size(0), self.size(1), mat2.size(2)}, self.dtype()};
}

OutSpec _matmul(Tensor& self, Tensor& mat2) {
  const int64_t dims = self.dim();
  RL_CHECK(dims >= 3 && mat2.dim() == dims, "_matmul expects tensors of as many dimensions");
  const auto leading = static_cast<size_t>(dims - 2);
  const IntArrayRef batch = self.sizes().slice(0, leading);
  int64_t matrices = 1;
  for (const int64_t n : batch) {
    matrices *= n;
  }
  RL_CHECK(batch == mat2.sizes().slice(0, leading) && self.size(-1) == mat2.size(-2),
           "matmul: ", matrices,
           " pairs of matrices need factors of which one has as many columns, ", self.size(-1),
           ", as the other rows, ", mat2.size(-2), ": Expected size for first two dimensions [",
           matrices, ", ", self.size(-1), "]");
  RL_CHECK(self.dtype() == mat2.dtype(), "expected scalar type ", enum_name(self.dtype()),
           " but found ", enum_name(mat2.dtype()));
  check_not_bool("bmm", self);
  DimVector sizes(self.sizes());
  sizes[leading + 1] = mat2.size(-1);
  return {sizes, self.dtype()};
}

OutSpec mv(Tensor& self, Tensor& vec) {
  RL_CHECK(self.dim() == 2 && vec.dim() == 1, "vector + matrix @ vector expected, got 1, ",
           self.dim(), ", ", vec.dim());
  RL_CHECK(self.size(1) == vec.size(0), "size mismatch, got input (", self.size(0), "), mat (",
           size_text(self), "), vec (", vec.size(0), ")");
  RL_CHECK(self.dtype() == vec.dtype(), "mv: addmv input tensors must have the same dtype, not ",
           enum_name(self.dtype()), " and ", enum_name(vec.dtype()));
  check_not_bool("addmv_impl_cpu", self);
  return {{self.size(0)}, self.dtype()};
}

OutSpec dot(Tensor& self, Tensor& tensor) {
  RL_CHECK(self.dim() == 1 && tensor.dim() == 1, "1D tensors expected, but got ", self.dim(),
           "D and ", tensor.dim(), "D tensors");
  RL_CHECK(self.dtype() == tensor.dtype(),
           "dot: expected both vectors to have same dtype, but found ", enum_name(self.dtype()),
           " and ", enum_name(tensor.dtype()));
  RL_CHECK(self.numel() == tensor.numel(), "dot: inconsistent tensor size: the vectors have ",
           self.numel(), " and ", tensor.numel(), " elements");
  check_not_bool("dot", self);
  return {{}, self.dtype()};
}

void addmm(Tensor& self, Tensor& mat1, Tensor& mat2, Scalar& beta, Scalar& alpha) {
  RL_CHECK(mat1.dim() == 2, "mat1 must be a matrix, got ", mat1.dim(), "-D tensor");
  RL_CHECK(mat2.dim() == 2, "mat2 must be a matrix, got ", mat2.dim(), "-D tensor");
  check_multipliable(mat1, mat2);
  RL_CHECK(self.dtype() == mat2.dtype(), "what is added must have the same dtype, but got ",
           enum_name(self.dtype()), " and ", enum_name(mat2.dtype()));
  RL_CHECK(mat1.dtype() == mat2.dtype(), "mat1 and mat2 must have the same dtype, but got ",
           enum_name(mat1.dtype()), " and ", enum_name(mat2.dtype()));
  check_not_bool("addmm_impl_cpu_", self);
  check_factors(self, beta, alpha);
  self = expand_raw(self, {mat1.size(0), mat2.size(1)});
}

void baddbmm(Tensor& self, Tensor& batch1, Tensor& batch2, Scalar& beta, Scalar& alpha) {
  check_batches(batch1, batch2);
  RL_CHECK(self.dtype() == batch1.dtype() && self.dtype() == batch2.dtype(),
           "baddbmm: Input dtypes must be the same, but are ", dtype_info(self.dtype()).alias, ", ",
           dtype_info(batch1.dtype()).alias, " and ", dtype_info(batch2.dtype()).alias);
  check_not_bool("baddbmm", self);
  check_factors(self, beta, alpha);
  self = expand_raw(self, {batch1.size(0), batch1.size(1), batch2.size(2)});
}

void addmv(Tensor& self, Tensor& mat, Tensor& vec, Scalar& beta, Scalar& alpha) {
  RL_CHECK(mat.dim() == 2 && vec.dim() == 1 && self.dim() <= 1,
           "vector + matrix @ vector expected, got ", self.dim(), ", ", mat.dim(), ", ", vec.dim());
  RL_CHECK(mat.size(1) == vec.size(0) && (self.numel() == mat.size(0) || self.numel() == 1),
           "size mismatch, got input (", self.numel(), "), mat (", size_text(mat), "), vec (",
           vec.size(0), ")");
  RL_CHECK(self.dtype() == mat.dtype() && self.dtype() == vec.dtype(),
           "addmv: all must have the same dtype, but got ", enum_name(self.dtype()), ", ",
           enum_name(mat.dtype()), " and ", enum_name(vec.dtype()));
  check_not_bool("addmv_impl_cpu", self);
  check_factors(self, beta, alpha);
  self = expand_raw(self, {mat.size(0)});
}

OutSpec linear(Tensor& input, Tensor& weight, Tensor& bias) {
  check_not_numbers("linear", input, weight);
  RL_CHECK(weight.dim() <= 2, "linear expects a weight with <= 2 dimensions, but it is ",
           weight.dim(), "D");
  RL_CHECK(weight.dim() == 2 || !bias.defined(), "mat2 must be a matrix, got 1-D tensor");
  const int64_t features = input.sizes()[input.dim() - 1];
  const int64_t wanted = weight.sizes()[weight.dim() - 1];
  const int64_t rows = product({input.sizes().data(), static_cast<size_t>(input.dim() - 1)});
  RL_CHECK(features == wanted, "mat1 and mat2 shapes cannot be multiplied (", rows, "x", features,
           " and ", wanted, "x", weight.dim() == 2 ? weight.size(0) : 1,
           "): the input's last dimension is ", features, ", the layer takes ", wanted);
  if (bias.defined()) {
    RL_CHECK(input.dtype() == weight.dtype(), "mat1 and mat2 must have the same dtype, but got ",
             enum_name(input.dtype()), " and ", enum_name(weight.dtype()));
    RL_CHECK(bias.dtype() == weight.dtype(), "what is added must have the same dtype, but got ",
             enum_name(bias.dtype()), " and ", enum_name(weight.dtype()));
  }
  RL_CHECK(input.dtype() == weight.dtype(),
           "expected m1 and m2 to have the same dtype, but got: ", dtype_info(input.dtype()).alias,
           " != ", dtype_info(weight.dtype()).alias, ": convert one of them with to()");
  check_not_bool("addmm_impl_cpu_", input);
  OutSpec out{input.sizes(), input.dtype()};
  out.sizes.erase(out.sizes.size() - 1);
  if (weight.dim() == 2) {
    out.sizes.push_back(weight.size(0));
  }
  if (bias.defined() && bias.dim() != 1) {
    bias = expand_raw(bias, out.sizes);
  } else if (bias.defined()) {
    bias = expand_raw(bias, {weight.size(0)});
  }
  return out;
}

}  // namespace shape

// ---- derivatives ----

Tensor linear_input_backward(const Tensor& grad, const Tensor& weight) {
  return weight.dim() == 1 ? grad.unsqueeze(-1) * weight.conj() : grad.matmul(weight.conj());
}

Tensor linear_weight_backward(const Tensor& grad, const Tensor& input, int64_t weight_dim) {
  const Tensor rows = as_rows(input);
  if (weight_dim == 1) {
    return rows.adjoint().mv(grad.reshape({-1}));
  }
  return as_rows(grad).t().mm(rows.conj());
}

// ---- composites ----

namespace {

// Leading dimensions and the two of a matrix.
DimVector matrix_sizes(IntArrayRef batch, int64_t rows, int64_t cols) {
  DimVector out(batch);
  out.push_back(rows);
  out.push_back(cols);
  return out;
}

IntArrayRef batch_of(const Tensor& t) {
  return {t.sizes().data(), static_cast<size_t>(t.dim() - 2)};
}

}  // namespace

namespace composite {

Tensor matmul(const Tensor& self, const Tensor& other) {
  const int64_t a = self.dim();
  const int64_t b = other.dim();
  if (a == 2 && b == 2) {
    return self.mm(other);
  }
  check_not_numbers("matmul", self, other);
  if (a == 1 && b == 1) {
    return self.dot(other);
  }
  if (a == 2 && b == 1) {
    return self.mv(other);
  }
  if (a == 1) {
    return self.unsqueeze(0).matmul(other).squeeze(-2);
  }
  if (b <= 2) {  // the rows of all matrices are the rows of one
    const Tensor rows = self.flatten(0, -2);
    DimVector sizes(self.sizes());
    sizes.erase(sizes.size() - 1);
    if (b == 1) {
      return rows.mv(other).reshape(sizes);
    }
    sizes.push_back(other.size(1));
    return rows.mm(other).reshape(sizes);
  }
  const DimVector batch =
      a == 2 ? DimVector(batch_of(other)) : broadcast_sizes(batch_of(self), batch_of(other));
  const Tensor left = self.expand(matrix_sizes(batch, self.size(-2), self.size(-1)));
  const Tensor right = other.expand(matrix_sizes(batch, other.size(-2), other.size(-1)));
  return batch.size() == 1 ? left.bmm(right) : _matmul(left, right);
}

Tensor vdot(const Tensor& self, const Tensor& other) { return self.conj().dot(other); }

Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) {
    return self * other;
  }
  RL_CHECK(self.size(-1) == other.size(-1),
           "inner(): the last dimension must match, but the shapes are ", self.sizes(), " and ",
           other.sizes());
  if (self.dim() == 1 && other.dim() == 1) {
    return self.dot(other);
  }
  DimVector sizes(self.sizes());
  sizes.erase(sizes.size() - 1);
  for (int64_t d = 0; d + 1 < other.dim(); d++) {
    sizes.push_back(other.size(d));
  }
  const auto rows = [](const Tensor& t) {
    return t.dim() == 1 ? t.unsqueeze(0) : t.flatten(0, -2);
  };
  return rows(self).mm(rows(other).t()).reshape(sizes);
}

Tensor outer(const Tensor& self, const Tensor& vec2) {
  RL_CHECK(self.dim() == 1, "outer: Expected 1-D argument self, but got ", self.dim(), "-D");
  RL_CHECK(vec2.dim() == 1, "outer: Expected 1-D argument vec2, but got ", vec2.dim(), "-D");
  return self.unsqueeze(1) * vec2;
}

Tensor ger(const Tensor& self, const Tensor& vec2) { return self.outer(vec2); }

Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
            const Scalar& alpha) {
  RL_CHECK(vec1.dim() == 1, "addr: Expected 1-D argument vec1, but got ", vec1.dim(), "-D");
  RL_CHECK(vec2.dim() == 1, "addr: Expected 1-D argument vec2, but got ", vec2.dim(), "-D");
  const bool integers = !is_differentiable(self.dtype()) && !is_differentiable(vec1.dtype()) &&
                        !is_differentiable(vec2.dtype());
  for (const auto& [name, factor] : {std::pair("beta", &beta), std::pair("alpha", &alpha)}) {
    RL_CHECK(!integers || factor->is_integral(true), name,
             " must be an integer for integral input tensors, not ", *factor);
  }
  const Tensor outer = vec1.outer(vec2);
  const Tensor base = self.expand(outer.sizes());
  for (const auto& [name, factor] : {std::pair("beta", &beta), std::pair("alpha", &alpha)}) {
    RL_CHECK(
        factor->kind() != Scalar::Kind::Bool || (base.dtype() == kBool && outer.dtype() == kBool),
        "Boolean ", name, " only supported for Boolean results.");
  }
  if (base.dtype() == kBool && outer.dtype() == kBool) {  // factors say whether a term counts
    const Tensor product = alpha.equal(0) ? rushlight::zeros_like(outer) : outer;
    return beta.equal(0) ? product : base.logical_or(product);
  }
  const Tensor product = scale_gradient(outer, alpha);
  return beta.equal(0) ? product : scale_gradient(base, beta) + product;
}

Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
              const Scalar& alpha) {
  RL_CHECK(batch1.dim() == 3, "batch1 must be a 3D tensor");
  RL_CHECK(batch2.dim() == 3, "batch2 must be a 3D tensor");
  RL_CHECK(batch1.size(0) == batch2.size(0),
           "batch1 and batch2 must have same number of batches, got ", batch1.size(0), " and ",
           batch2.size(0));
  RL_CHECK(batch1.size(2) == batch2.size(1), "Incompatible matrix sizes for bmm (", batch1.size(1),
           "x", batch1.size(2), " and ", batch2.size(1), "x", batch2.size(2), ")");
  // The sum over the batch is part of the sum of one product.
  const int64_t depth = batch1.size(0) * batch1.size(2);
  return self.addmm(batch1.transpose(0, 1).reshape({batch1.size(1), depth}),
                    batch2.reshape({depth, batch2.size(2)}), beta, alpha);
}

Tensor chain_matmul(TensorList matrices) {
  const size_t n = matrices.size();
  RL_CHECK(n > 0, "chain_matmul(): Expected one or more matrices");
  for (const Tensor& m : matrices) {
    RL_CHECK(m.dim() == 2, "Tensor dimension is ", m.dim(), ", expected 2 instead.");
  }
  // cost[i][j]: multiplications for the product of matrices i to j, cut after split[i][j].
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0.0));
  std::vector<std::vector<size_t>> split(n, std::vector<size_t>(n, 0));
  for (size_t length = 1; length < n; length++) {
    for (size_t i = 0; i + length < n; i++) {
      const size_t j = i + length;
      cost[i][j] = -1;
      for (size_t k = i; k < j; k++) {
        const double sides =
            static_cast<double>(matrices[i].size(0)) * static_cast<double>(matrices[j].size(1));
        const double total =
            cost[i][k] + cost[k + 1][j] + sides * static_cast<double>(matrices[k].size(1));
        if (cost[i][j] < 0 || total < cost[i][j]) {
          cost[i][j] = total;
          split[i][j] = k;
        }
      }
    }
  }
  const auto multiply = [&](const auto& again, size_t i, size_t j) -> Tensor {
    return i == j ? matrices[i] : again(again, i, split[i][j]).mm(again(again, split[i][j] + 1, j));
  };
  return multiply(multiply, 0, n - 1);
}

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                const Tensor& bias) {
  RL_CHECK(weight.dim() == 3 && input1.dim() >= 1 && input1.dim() == input2.dim(),
           "bilinear(): input dimensions do not match: got ", input1.dim(), " and ", input2.dim(),
           " with a weight of ", weight.dim());
  for (int64_t d = 0; d + 1 < input1.dim(); d++) {
    RL_CHECK(input1.size(d) == input2.size(d),
             "bilinear(): input batch dimensions do not match at dim ", d, ": got ", input1.size(d),
             " and ", input2.size(d));
  }
  RL_CHECK(input1.size(-1) == weight.size(1), "bilinear(): input1 has ", input1.size(-1),
           " features, which does not match weight size ", weight.size(1));
  RL_CHECK(input2.size(-1) == weight.size(2), "bilinear(): input2 has ", input2.size(-1),
           " features, which does not match weight size ", weight.size(2));
  RL_CHECK(!bias.defined() || bias.size(0) == weight.size(0), "bilinear(): bias has ",
           bias.defined() ? bias.size(0) : 0, " elements, which does not match weight size ",
           weight.size(0));
  const Tensor operands[] = {input1, weight, input2};
  const Tensor out = composite::einsum("...a,oab,...b->...o", TensorList(operands, 3), {});
  return bias.defined() ? out + bias : out;
}

// ---- products in a wider dtype ----

namespace {
// Converts `matrices` for a product that is summed and given as `out_dtype`.
Tensor widen(const char* op, const Tensor& matrices, ScalarType out_dtype) {
  const ScalarType t = matrices.dtype();
  RL_CHECK(t == out_dtype || (out_dtype == kFloat32 && (t == kFloat16 || t == kBFloat16)), op,
           ": out_dtype must be that of the inputs, or float32 for float16 and bfloat16, but got ",
           out_dtype, " for inputs of ", t);
  return matrices.to(out_dtype);
}
}  // namespace

Tensor mm_dtype(const Tensor& self, const Tensor& mat2, ScalarType out_dtype) {
  return widen("mm", self, out_dtype).mm(widen("mm", mat2, out_dtype));
}
Tensor bmm_dtype(const Tensor& self, const Tensor& mat2, ScalarType out_dtype) {
  return widen("bmm", self, out_dtype).bmm(widen("bmm", mat2, out_dtype));
}
Tensor addmm_dtype(const Tensor& self, const Tensor& mat1, const Tensor& mat2, ScalarType out_dtype,
                   const Scalar& beta, const Scalar& alpha) {
  return self.to(out_dtype).addmm(widen("addmm", mat1, out_dtype), widen("addmm", mat2, out_dtype),
                                  beta, alpha);
}
Tensor baddbmm_dtype(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                     ScalarType out_dtype, const Scalar& beta, const Scalar& alpha) {
  return self.to(out_dtype).baddbmm(widen("baddbmm", batch1, out_dtype),
                                    widen("baddbmm", batch2, out_dtype), beta, alpha);
}

}  // namespace composite
}  // namespace rushlight
