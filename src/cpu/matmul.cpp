// The matrix ops of ops/linalg.py on the CPU: each says which matrices it means and goes through
// cpu/gemm.h.
#include <algorithm>
#include <vector>

#include "cpu/gemm.h"
#include "cpu/int8_product.h"
#include "generated/kernels.h"

namespace rushlight::cpu {

namespace {

// A 2-d tensor, or a 3-d one as a batch.
Matrices matrices(const Tensor& t) {
  const IntArrayRef s = t.strides();
  return t.dim() == 2 ? Matrices{t.data_ptr(), s[0], s[1]}
                      : Matrices{t.data_ptr(), s[1], s[2], s[0]};
}

Matrices column(const Tensor& vector) { return {vector.data_ptr(), vector.strides()[0], 1}; }

Gemm product(const Tensor& out, const Tensor& a, const Tensor& b) {
  Gemm g{.dtype = out.dtype(),
         .m = a.size(-2),
         .n = b.size(-1),
         .k = a.size(-1),
         .a = matrices(a),
         .b = matrices(b),
         .c = matrices(out)};
  g.batch = a.dim() == 3 ? a.size(0) : 1;
  return g;
}

Gemm product_with_vector(const Tensor& out, const Tensor& matrix, const Tensor& vector) {
  return {.dtype = out.dtype(),
          .m = matrix.size(0),
          .n = 1,
          .k = matrix.size(1),
          .a = matrices(matrix),
          .b = column(vector),
          .c = column(out)};
}

void add(Gemm g, const Scalar& beta, const Scalar& alpha) {
  g.alpha = alpha;
  g.beta = beta;
  gemm(g);
}

}  // namespace

void mm(const Tensor& out, const Tensor& self, const Tensor& mat2) {
  gemm(product(out, self, mat2));
}

void _int_mm(const Tensor& out, const Tensor& self, const Tensor& mat2) {
  if (out.numel() == 0) {
    return;
  }
  // Strides that the library takes: rows or columns that lie side by side.
  const auto with_unit_stride = [](const Tensor& t) {
    return t.strides()[0] == 1 || t.strides()[1] == 1 ? t : contiguous_raw(t);
  };
  if (!bytes_gemm(product(out, with_unit_stride(self), with_unit_stride(mat2)), self.dtype())) {
    multiply_bytes(out, self, mat2);
  }
}

void bmm(const Tensor& out, const Tensor& self, const Tensor& mat2) {
  gemm(product(out, self, mat2));
}

void _matmul(const Tensor& out, const Tensor& self, const Tensor& mat2) {
  if (out.numel() == 0) {
    return;
  }
  // Leading dimensions from the last to the first, those together that lie at one stride in all.
  struct Leading {
    int64_t size;
    int64_t a;
    int64_t b;
    int64_t c;
  };
  std::vector<Leading> dims;
  for (int64_t d = out.dim() - 3; d >= 0; d--) {
    const auto at = static_cast<size_t>(d);
    const Leading next = {out.size(d), self.strides()[at], mat2.strides()[at], out.strides()[at]};
    if (!dims.empty() && next.a == dims.back().a * dims.back().size &&
        next.b == dims.back().b * dims.back().size && next.c == dims.back().c * dims.back().size) {
      dims.back().size *= next.size;
    } else if (next.size > 1) {
      dims.push_back(next);
    }
  }
  dims.resize(std::max<size_t>(dims.size(), 2), {1, 0, 0, 0});
  const auto last = [](const Tensor& t, const Leading& inner, const Leading& outer,
                       int64_t Leading::* stride) {
    const IntArrayRef s = t.strides();
    return Matrices{t.data_ptr(), s[s.size() - 2], s[s.size() - 1], inner.*stride, outer.*stride};
  };
  Gemm g{.dtype = out.dtype(),
         .batch = dims[0].size * dims[1].size,
         .m = out.size(-2),
         .n = out.size(-1),
         .k = self.size(-1),
         .a = last(self, dims[0], dims[1], &Leading::a),
         .b = last(mat2, dims[0], dims[1], &Leading::b),
         .c = last(out, dims[0], dims[1], &Leading::c)};
  if (dims[1].size > 1) {
    g.inner = dims[0].size;
  }
  int64_t rest = 1;
  for (size_t d = 2; d < dims.size(); d++) {
    rest *= dims[d].size;
  }
  const int64_t size = itemsize(out.dtype());
  for (int64_t i = 0; i < rest; i++) {
    Gemm one = g;
    int64_t left = i;
    for (size_t d = 2; d < dims.size(); d++) {
      const int64_t at = left % dims[d].size * size;
      left /= dims[d].size;
      one.a.data = static_cast<char*>(one.a.data) + at * dims[d].a;
      one.b.data = static_cast<char*>(one.b.data) + at * dims[d].b;
      one.c.data = static_cast<char*>(one.c.data) + at * dims[d].c;
    }
    gemm(one);
  }
}

void mv(const Tensor& out, const Tensor& self, const Tensor& vec) {
  gemm(product_with_vector(out, self, vec));
}

void dot(const Tensor& out, const Tensor& self, const Tensor& tensor) {
  gemm({.dtype = out.dtype(),
        .m = 1,
        .n = 1,
        .k = self.numel(),
        .a = {self.data_ptr(), 1, self.strides()[0]},
        .b = column(tensor),
        .c = {out.data_ptr(), 1, 1}});
}

void addmm(const Tensor& out, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
           const Scalar& alpha) {
  add(product(out, mat1, mat2), beta, alpha);
}

void baddbmm(const Tensor& out, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
             const Scalar& alpha) {
  add(product(out, batch1, batch2), beta, alpha);
}

void addmv(const Tensor& out, const Tensor& mat, const Tensor& vec, const Scalar& beta,
           const Scalar& alpha) {
  add(product_with_vector(out, mat, vec), beta, alpha);
}

void linear(const Tensor& out, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const int64_t features = input.sizes()[input.dim() - 1];
  const int64_t width = weight.dim() == 2 ? weight.size(0) : 1;
  const Tensor dense = input.dim() <= 2 ? input : contiguous_raw(input);
  const bool one_row = dense.dim() == 1;
  const Matrices a = dense.dim() == 2
                         ? matrices(dense)
                         : Matrices{dense.data_ptr(), features, one_row ? dense.strides()[0] : 1};
  const IntArrayRef w = weight.strides();
  const Matrices b = weight.dim() == 2 ? Matrices{weight.data_ptr(), w[1], w[0]}
                                       : Matrices{weight.data_ptr(), w[0], 1};
  const bool whole = out.is_contiguous();
  const Tensor result = whole ? out : make_empty(out.sizes(), out.dtype(), out.device());
  int64_t rows = 1;
  for (int64_t d = 0; d + 1 < input.dim(); d++) {
    rows *= input.size(d);
  }
  Gemm g{.dtype = out.dtype(),
         .m = rows,
         .n = width,
         .k = features,
         .a = a,
         .b = b,
         .c = {result.data_ptr(), width, 1}};
  if (bias.defined() && bias.dim() == 1 && bias.is_contiguous()) {
    g.bias.data = bias.data_ptr();
  } else if (bias.defined()) {
    copy_raw(result, bias);
    g.beta = 1;
  }
  gemm(g);
  if (!whole) {
    copy_raw(out, result);
  }
}

}  // namespace rushlight::cpu
