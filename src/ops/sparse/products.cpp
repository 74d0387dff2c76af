// Products with sparse matrices, sums and softmax.
#include <rushlight/function.h>
#include <rushlight/functions.h>

#include "cpu/csr.h"
#include "ops/derivatives.h"
#include "ops/geometry.h"
#include "ops/sparse/sparse.h"

namespace rushlight {

namespace sparse {

namespace {

Tensor rows_of_entries(const Tensor& starts, int64_t entries) {
  return rushlight::searchsorted(starts.to(kInt64).slice(0, 1).contiguous(),
                                 count_up(entries, starts), false, /*right=*/true);
}

// A sparse tensor's indices share memory with what its maker and `crow_indices()` hold, so they may
// have been written since they were checked. Whoever follows them in memory looks again.
void check_rows(const Tensor& starts, const Tensor& columns, const Tensor& values,
                const Tensor& dense) {
  const int64_t entries = columns.numel();
  RL_CHECK(starts.dim() == 1 && starts.numel() != 0 && columns.dim() == 1 &&
               values.sizes() == columns.sizes(),
           "mm: the parts of a sparse matrix were changed behind it: expected starts of rows, "
           "columns and as many values, but got sizes ",
           starts.sizes(), ", ", columns.sizes(), " and ", values.sizes());
  const auto* const s = starts.data<int64_t>();
  RL_CHECK(s[0] == 0 && s[starts.numel() - 1] == entries && std::is_sorted(s, s + starts.numel()),
           "mm: the parts of a sparse matrix were changed behind it: expected starts of rows that "
           "rise from 0 to ",
           entries, ", its number of values");
  if (entries != 0) {
    const auto [least, most] = aminmax(columns, std::nullopt, false);
    const auto low = least.item<int64_t>();
    const auto high = most.item<int64_t>();
    RL_CHECK_INDEX(low >= 0 && high < dense.size(0),
                   "mm: the parts of a sparse matrix were changed behind it: index ",
                   low < 0 ? low : high, " is out of range for ", dense.size(0), " columns");
  }
}

Tensor raw_csr_mm(const Tensor& starts, const Tensor& columns, const Tensor& values,
                  const Tensor& dense) {
  const int64_t rows = starts.size(0) - 1;
  if (!values.is_cpu() || is_special(values) || is_special(dense)) {
    const Tensor parts = values.unsqueeze(1) * dense.index_select(0, columns);
    return parts.new_zeros({rows, dense.size(1)})
        .index_add(0, rows_of_entries(starts, values.size(0)), parts);
  }
  const Tensor from = contiguous_raw(starts.to(kInt64));
  const Tensor at = contiguous_raw(columns.to(kInt64));
  const Tensor factors = contiguous_raw(values);
  const Tensor matrix = contiguous_raw(dense);
  check_rows(from, at, factors, matrix);
  const int64_t width = matrix.size(1);
  const Tensor out = make_empty({rows, width}, values.dtype(), values.device());
  cpu::csr_kernels().multiply(out, from, at, factors, matrix);
  return out;
}

struct CsrMm : autograd::Function<CsrMm> {
  static Tensor forward(autograd::AutogradContext* context, const Tensor& values,
                        const Tensor& dense, const Tensor& starts, const Tensor& columns) {
    context->save_for_backward({values, dense});
    context->saved_data["starts"] = starts;
    context->saved_data["columns"] = columns;
    return raw_csr_mm(starts, columns, values, dense);
  }
  static autograd::variable_list backward(autograd::AutogradContext* context,
                                          autograd::variable_list grads) {
    const autograd::variable_list saved = context->get_saved_variables();
    const Tensor& values = saved[0];
    const Tensor& dense = saved[1];
    const Tensor starts = context->saved_data.at("starts").toTensor();
    const Tensor columns = context->saved_data.at("columns").toTensor().to(kInt64);
    const Tensor rows = rows_of_entries(starts, columns.size(0));
    Tensor of_values;
    Tensor of_dense;
    if (context->needs_input_grad(0)) {
      of_values = (grads[0].index_select(0, rows) * dense.index_select(0, columns).conj()).sum(1);
    }
    if (context->needs_input_grad(1)) {
      const Tensor order = rushlight::argsort(columns, /*stable=*/true, 0, false);
      of_dense = csr_mm(row_starts(columns, dense.size(0)), rows.index_select(0, order),
                        values.conj().index_select(0, order), grads[0]);
    }
    return {of_values, of_dense, Tensor(), Tensor()};
  }
};

// ---- triangles ----

struct Csr {
  Tensor starts;
  Tensor columns;
  Tensor values;
  Csr transposed() const {
    const Tensor rows = rows_of_entries(starts, columns.size(0));
    const Tensor order = rushlight::argsort(columns, /*stable=*/true, 0, false);
    return {row_starts(columns, starts.size(0) - 1), rows.index_select(0, order),
            values.index_select(0, order)};
  }
};

Tensor solve_triangle(const Csr& a, const Tensor& b, bool upper, bool unit);

struct SolveTriangle : autograd::Function<SolveTriangle> {
  static Tensor forward(autograd::AutogradContext* context, const Tensor& values, const Tensor& b,
                        const Tensor& starts, const Tensor& columns, bool upper, bool unit) {
    RL_CHECK_NOT_IMPLEMENTED(values.is_cpu() && !is_special(values) && !is_special(b),
                             "triangular_solve: sparse matrices are solved on the CPU, outside of "
                             "vmap and fake mode");
    const Tensor from = contiguous_raw(starts);
    const Tensor at = contiguous_raw(columns);
    const Tensor factors = contiguous_raw(values);
    Tensor x = make_empty(b.sizes(), b.dtype(), b.device());
    copy_raw(x, b);
    check_rows(from, at, factors, x);
    cpu::csr_kernels().solve(x, from, at, factors, upper, unit);
    context->save_for_backward({values, x});
    context->saved_data["starts"] = starts;
    context->saved_data["columns"] = columns;
    context->saved_data["upper"] = upper;
    context->saved_data["unit"] = unit;
    return x;
  }
  // Of b it is g = A^-H grad, of A it is -g x^H where A has entries within the triangle.
  static autograd::variable_list backward(autograd::AutogradContext* context,
                                          autograd::variable_list grads) {
    const autograd::variable_list saved = context->get_saved_variables();
    const Csr a = {context->saved_data.at("starts").toTensor(),
                   context->saved_data.at("columns").toTensor(), saved[0].conj()};
    const bool upper = context->saved_data.at("upper").toBool();
    const bool unit = context->saved_data.at("unit").toBool();
    const Tensor of_b = solve_triangle(a.transposed(), grads[0], !upper, unit);
    Tensor of_values;
    if (context->needs_input_grad(0)) {
      const Tensor rows = rows_of_entries(a.starts, a.columns.size(0));
      const Tensor beyond = upper ? rows > a.columns : rows < a.columns;
      const Tensor unread = unit ? beyond.logical_or(rows == a.columns) : beyond;
      of_values = -(of_b.index_select(0, rows) * saved[1].index_select(0, a.columns).conj()).sum(1);
      of_values = of_values.masked_fill(unread, 0);
    }
    return {of_values, of_b, Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

Tensor solve_triangle(const Csr& a, const Tensor& b, bool upper, bool unit) {
  return SolveTriangle::apply(a.values, b, a.starts, a.columns, upper, unit);
}

void check_matrices(const char* op, const Tensor& a, const Tensor& b) {
  RL_CHECK(a.dim() == 2 && b.dim() == 2, op, ": Expected 2D tensors, but got ", a.dim(), "D and ",
           b.dim(), "D tensors");
  RL_CHECK(a.size(1) == b.size(0), op, ": mat1 and mat2 shapes cannot be multiplied (", a.size(0),
           "x", a.size(1), " and ", b.size(0), "x", b.size(1), ")");
  RL_CHECK(a.dtype() == b.dtype(), op,
           ": expected mat1 and mat2 to have the same dtype, but got: ", a.dtype(),
           " != ", b.dtype());
  RL_CHECK(a.is_cpu() && b.is_cpu(), op, ": expected both matrices on the CPU, but got ",
           a.device(), " and ", b.device());
}

Tensor sparse_times_dense(const Tensor& a, const Tensor& b) {
  if (layout_of(a) == kSparseCsr && dense_dims(a) == 0) {
    return csr_mm(sparse_impl(a).first(), sparse_impl(a).second(), values_of(a), b);
  }
  const Tensor coo = as_coo(a);
  RL_CHECK(sparse_dims(coo) == 2, "mm: expected a matrix of two sparse dimensions, got ",
           sparse_dims(coo));
  const Tensor& indices = sparse_impl(coo).first();
  return csr_mm(row_starts(indices.select(0, 0), a.size(0)), indices.select(0, 1).contiguous(),
                values_of(coo), b);
}

// Each entry of `a` meets the row of `b` that its column names.
Tensor sparse_times_sparse(const Tensor& a, const Tensor& b) {
  const Tensor x = as_coo(a);
  const Tensor y = as_coo(b);
  for (const Tensor& each : {x, y}) {
    RL_CHECK(values_of(each).dim() == 1, "mm of two sparse matrices: scalar values expected, got ",
             values_of(each).dim(), "D values; to_dense().to_sparse() makes them");
  }
  const Tensor& ix = sparse_impl(x).first();
  const Tensor& iy = sparse_impl(y).first();
  const Tensor starts = row_starts(iy.select(0, 0), b.size(0));
  const Tensor met = ix.select(0, 1);
  const Tensor begin = starts.index_select(0, met);
  const Tensor counts = starts.index_select(0, met + 1) - begin;
  const Tensor from = rushlight::repeat_interleave(counts);
  const Tensor first = (counts.cumsum(0) - counts).index_select(0, from);
  const Tensor at = count_up(from.size(0), from) - first + begin.index_select(0, from);
  const Tensor products = values_of(x).index_select(0, from) * values_of(y).index_select(0, at);
  const Tensor indices = rushlight::stack(
      {ix.select(0, 0).index_select(0, from), iy.select(0, 1).index_select(0, at)});
  return rushlight::coalesce(make_coo(indices, products, {a.size(0), b.size(1)}, false));
}

}  // namespace

Tensor csr_mm(const Tensor& starts, const Tensor& columns, const Tensor& values,
              const Tensor& dense) {
  return CsrMm::apply(values, dense, starts, columns);
}

Tensor mm(const Tensor& self, const Tensor& mat2) {
  check_matrices("mm", self, mat2);
  if (is_sparse(self) && is_sparse(mat2)) {
    const Tensor product = sparse_times_sparse(self, mat2);
    return as_layout(product, layout_of(self), self);
  }
  if (is_sparse(self)) {
    return sparse_times_dense(self, mat2);
  }
  return sparse_times_dense(rushlight::t(mat2), self.t()).t();
}
Tensor mv(const Tensor& self, const Tensor& vec) {
  RL_CHECK(self.dim() == 2 && vec.dim() == 1, "mv: expected a matrix and a vector, got ",
           self.dim(), "D and ", vec.dim(), "D");
  RL_CHECK(self.size(1) == vec.size(0), "mv: expected self.size(-1) == vec.size(-1), but got ",
           self.size(1), " and ", vec.size(0));
  const Tensor product = sparse::mm(self, as_dense(vec).unsqueeze(1));
  return product.select(1, 0);
}
Tensor bmm(const Tensor& self, const Tensor& mat2) {
  RL_CHECK(self.dim() == 3 && mat2.dim() == 3, "bmm: Tensor 'self' and 'mat2' must be 3D");
  RL_CHECK(self.size(0) == mat2.size(0) && self.size(2) == mat2.size(1), "bmm: shapes ",
           self.sizes(), " and ", mat2.sizes(), " cannot be multiplied");
  std::vector<Tensor> products;
  products.reserve(static_cast<size_t>(self.size(0)));
  for (int64_t i = 0; i < self.size(0); i++) {
    products.push_back(rushlight::mm(self.select(0, i), mat2.select(0, i)));
  }
  return products.empty() ? rushlight::zeros({0, self.size(1), mat2.size(2)},
                                             TensorOptions(self.dtype()).device(self.device()))
                          : rushlight::stack(products);
}
Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
             const Scalar& alpha) {
  const Tensor product = rushlight::mm(mat1, mat2);
  const Tensor scaled = product.mul(make_number(alpha));
  if (is_sparse(self) && !is_sparse(product)) {
    throw Error("addmm: a sparse 'input' and a dense product cannot be added");
  }
  if (beta.to<complex<double>>() == complex<double>(0.0)) {
    return is_sparse(scaled) && !is_sparse(self) ? as_dense(scaled) : scaled;
  }
  const Tensor start = self.mul(make_number(beta));
  if (is_sparse(product) || is_sparse(self)) {
    return start.add(scaled);
  }
  return start.expand(scaled.sizes()).add(scaled);
}

std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& A, bool upper,
                                            bool transpose, bool unitriangular) {
  RL_CHECK_NOT_IMPLEMENTED(
      !is_sparse(self) && is_sparse(A),
      "triangular_solve: the matrix A may be sparse, the right sides are dense");
  check_matrices("triangular_solve", A, self);
  RL_CHECK(A.size(0) == A.size(1), "triangular_solve: A must be square, not ", A.sizes());
  const Tensor by_row = layout_of(A) == kSparseCsr ? A : as_layout(A, kSparseCsr, A);
  RL_CHECK(dense_dims(by_row) == 0,
           "triangular_solve: expected values that are numbers, but A has ", dense_dims(by_row),
           " dense dimensions");
  const Csr a = {sparse_impl(by_row).first().to(kInt64), sparse_impl(by_row).second().to(kInt64),
                 values_of(by_row)};
  return {solve_triangle(transpose ? a.transposed() : a, self, upper != transpose, unitriangular),
          self.new_empty({0})};
}

// ---- reductions ----

namespace {
bool sums_to_integer(ScalarType t) { return !is_floating(t) && !is_complex(t); }
}  // namespace

Tensor vector_norm(const Tensor& self, const Scalar& ord, OptionalIntArrayRef dim, bool keepdim,
                   std::optional<ScalarType> dtype) {
  const bool all = !dim.has_value() || IntArrayRef(*dim).empty() ||
                   wrap_dims(*dim, self.dim()).size() == static_cast<size_t>(self.dim());
  RL_CHECK(all && !keepdim,
           "linalg_vector_norm: sparse tensors only support full reductions: 'dim' must be empty "
           "or contain all dimensions, without keepdim");
  const Tensor values = values_of(is_coo(self) ? rushlight::coalesce(self) : self);
  return rushlight::linalg_vector_norm(values, ord, OptionalIntArrayRef(), false, dtype);
}

Tensor sum(const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
           std::optional<ScalarType> dtype) {
  const ScalarType wanted = dtype.value_or(sums_to_integer(self.dtype()) ? kInt64 : self.dtype());
  const bool all = !dim.has_value() || IntArrayRef(*dim).empty();
  if (all && !keepdim) {
    const Tensor t = is_coo(self) && self.requires_grad() ? as_coo(self) : self;
    return values_of(t).sum(OptionalIntArrayRef(), false, wanted);
  }
  const Tensor coo = as_coo(self);
  const int64_t n = sparse_dims(coo);
  DimVector dims;
  if (all) {
    for (int64_t d = 0; d < self.dim(); d++) {
      dims.push_back(d);
    }
  } else {
    dims = wrap_dims(*dim, self.dim());
  }
  std::vector<bool> gone(static_cast<size_t>(self.dim()));
  for (const int64_t d : dims) {
    gone[static_cast<size_t>(d)] = true;
  }
  DimVector sizes;
  DimVector of_values;
  std::vector<Tensor> rows;
  for (int64_t d = 0; d < self.dim(); d++) {
    const bool out = gone[static_cast<size_t>(d)];
    if (out && d >= n) {
      of_values.push_back(d - n + 1);
    }
    if (!out || keepdim) {
      sizes.push_back(out ? 1 : self.size(d));
      if (d < n) {
        const Tensor row = sparse_impl(coo).first().select(0, d);
        rows.push_back(out ? rushlight::zeros_like(row) : row);
      }
    }
  }
  Tensor values = values_of(coo).to(wanted);
  if (!of_values.empty()) {
    values = values.sum(IntArrayRef(of_values), keepdim, wanted);
  }
  if (rows.empty()) {
    return values.sum(IntArrayRef{0}, false, wanted);
  }
  const Tensor made = rushlight::coalesce(make_coo(rushlight::stack(rows), values, sizes, false));
  return is_coo(self) || sizes.size() != static_cast<size_t>(self.dim())
             ? made
             : as_layout(made, layout_of(self), self);
}

namespace {

Tensor softmax_of_entries(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype,
                          bool log) {
  const int64_t d = wrap_dim(dim, self.dim());
  const Tensor coo = as_coo(self);
  const int64_t n = sparse_dims(coo);
  Tensor values = values_of(coo);
  if (dtype.has_value()) {
    values = values.to(*dtype);
  }
  if (!is_floating(values.dtype()) && !is_complex(values.dtype())) {
    dtype_not_implemented(log ? "sparse.log_softmax" : "sparse.softmax", values.dtype());
  }
  if (d >= n) {
    const Tensor made = log ? rushlight::log_softmax(values, d - n + 1, {})
                            : rushlight::softmax(values, d - n + 1, {});
    return with_values(coo, made);
  }
  if (nnz(coo) == 0) {
    return with_values(coo, values);
  }
  const Tensor& indices = sparse_impl(coo).first();
  const Tensor others =
      rushlight::cat({indices.narrow(0, 0, d), indices.narrow(0, d + 1, n - d - 1)});
  DimVector sizes(self.sizes().slice(0, static_cast<size_t>(n)));
  sizes.erase(static_cast<size_t>(d));
  const Unique groups = unique_columns(others, sizes);
  const int64_t count = groups.indices.size(1);
  DimVector reduced = values.sizes();
  reduced[0] = count;
  const Tensor flat = values.detach();
  Tensor at = groups.inverse;
  for (int64_t i = 1; i < flat.dim(); i++) {
    at = at.unsqueeze(-1);
  }
  const Tensor most = rushlight::zeros(reduced, flat.options())
                          .scatter_reduce(0, at.expand(flat.sizes()), flat, "amax", false)
                          .index_select(0, groups.inverse);
  const Tensor shifted = values - most;
  const Tensor powers = shifted.exp();
  const Tensor sums = rushlight::zeros(reduced, flat.options())
                          .index_add(0, groups.inverse, powers)
                          .index_select(0, groups.inverse);
  return with_values(coo, log ? shifted - sums.log() : powers / sums);
}

}  // namespace
Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  RL_CHECK_NOT_IMPLEMENTED(!is_sparse(input) && !is_sparse(bias),
                           "linear: only the weight may be sparse");
  RL_CHECK(weight.dim() == 2 && input.dim() > 0,
           "linear: expected a weight of 2 dimensions and an "
           "input of at least one, got ",
           weight.sizes(), " and ", input.sizes());
  const Tensor rows = as_rows(input);
  DimVector sizes = input.sizes();
  sizes[sizes.size() - 1] = weight.size(0);
  const Tensor made = rushlight::mm(weight, rows.t()).t().reshape(sizes);
  return bias.defined() ? made + bias : made;
}

}  // namespace sparse

namespace composite {

Tensor _sparse_mm(const Tensor& sparse, const Tensor& dense) {
  return rushlight::mm(sparse, dense);
}
Tensor _sum_of_sparse(const Tensor& self, OptionalIntArrayRef dim,
                      std::optional<ScalarType> dtype) {
  return rushlight::sum(self, dim, false, dtype);
}
Tensor _softmax_of_sparse(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return sparse::softmax_of_entries(self, dim, dtype, false);
}
Tensor _log_softmax_of_sparse(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return sparse::softmax_of_entries(self, dim, dtype, true);
}
Tensor smm(const Tensor& self, const Tensor& mat2) {
  return composite::sspaddmm(
      rushlight::sparse::make_coo(
          rushlight::empty({2, 0}, TensorOptions(kInt64).device(self.device())),
          rushlight::empty({0}, TensorOptions(self.dtype()).device(self.device())),
          {self.size(0), mat2.size(1)}, true),
      self, mat2, 0, 1);
}
// The rows of the product that have an entry of mat1, as one dense dimension.
Tensor hspmm(const Tensor& mat1, const Tensor& mat2) {
  sparse::check_matrices("hspmm", mat1, mat2);
  const Tensor coo = sparse::as_coo(mat1);
  RL_CHECK(sparse::sparse_dims(coo) == 2,
           "hspmm: mat1 has to be sparse in both dimensions, but is "
           "in ",
           sparse::sparse_dims(coo));
  const Tensor& indices = sparse::sparse_impl(coo).first();
  const sparse::Unique rows = sparse::unique_columns(indices.narrow(0, 0, 1), {mat1.size(0)});
  const Tensor product =
      sparse::csr_mm(sparse::row_starts(rows.inverse, rows.indices.size(1)),
                     indices.select(0, 1).contiguous(), sparse::values_of(coo), mat2);
  return sparse::make_coo(rows.indices, product, {mat1.size(0), mat2.size(1)}, true);
}
Tensor sspaddmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                const Scalar& alpha) {
  RL_CHECK(is_sparse(self) && is_sparse(mat1), "sspaddmm: expected 'self' and 'mat1' to be sparse");
  const Tensor rows = composite::hspmm(mat1, sparse::as_dense(mat2));
  // Each row that has an entry is whole.
  const Tensor values = sparse::values_of(rows);
  const int64_t width = values.size(1);
  const Tensor row =
      sparse::sparse_impl(rows).first().select(0, 0).unsqueeze(1).expand({values.size(0), width});
  const Tensor column = sparse::count_up(width, values).expand({values.size(0), width});
  const Tensor product =
      sparse::make_coo(rushlight::stack({row.reshape({-1}), column.reshape({-1})}),
                       values.reshape({-1}), {mat1.size(0), width}, true);
  return rushlight::add(self.mul(make_number(beta)), product, alpha);
}
Tensor sparse_sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                            const Scalar& beta, const Scalar& alpha) {
  RL_CHECK(is_sparse(self), "sampled_addmm: Expected input to be sparse");
  RL_CHECK(!is_sparse(mat1) && !is_sparse(mat2),
           "sampled_addmm: Expected mat1 and mat2 to have strided layout");
  RL_CHECK(self.dim() == 2 && mat1.dim() == 2 && mat2.dim() == 2 && mat1.size(1) == mat2.size(0) &&
               self.size(0) == mat1.size(0) && self.size(1) == mat2.size(1),
           "sampled_addmm: mat1 and mat2 shapes cannot be multiplied (", mat1.sizes(), " and ",
           mat2.sizes(), ")");
  const Tensor coo = sparse::as_coo(self);
  const Tensor& indices = sparse::sparse_impl(coo).first();
  const Tensor dots =
      (mat1.index_select(0, indices.select(0, 0)) * mat2.t().index_select(0, indices.select(0, 1)))
          .sum(1);
  const Tensor made = sparse::with_values(
      coo, rushlight::add(sparse::values_of(coo).mul(make_number(beta)), dots, alpha));
  return sparse::as_layout(made, layout_of(self), self);
}

}  // namespace composite

// ---- gradients of embeddings ----

Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights,
                          int64_t padding_idx, bool scale_grad_by_freq, bool sparse) {
  if (!sparse) {
    return embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq);
  }
  RL_CHECK(!scale_grad_by_freq,
           "embedding_backward: scale_grad_by_freq not supported with sparse gradients");
  const int64_t width = grad.size(-1);
  Tensor rows = indices.reshape({-1}).to(kInt64);
  Tensor values = as_rows(grad);
  if (padding_idx >= 0) {
    const Tensor kept = nonzero(rows.ne(Scalar(padding_idx))).select(1, 0);
    rows = rows.index_select(0, kept);
    values = values.index_select(0, kept);
  }
  return sparse::make_coo(rows.unsqueeze(0), values, {num_weights, width}, false);
}

}  // namespace rushlight
