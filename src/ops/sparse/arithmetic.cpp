// Sums, products and copies of sparse tensors.
#include "ops/sparse/sparse.h"

#include "core/refusals.h"

namespace rushlight::sparse {

namespace {

// A gradient has one value for each place, so what is recorded does, too.
Tensor coalesce_if_recorded(const Tensor& t) {
  const bool recorded = grad_enabled() && t.requires_grad();
  return recorded && is_coo(t) ? rushlight::coalesce(t) : t;
}

bool is_number(const Tensor& t) { return !is_sparse(t) && t.dim() == 0; }

void check_sizes(const char* op, const Tensor& self, const Tensor& other) {
  RL_CHECK(self.sizes() == other.sizes(), op,
           ": expected sizes of 'self' and 'other' to match, but ", self.sizes(),
           " != ", other.sizes());
}

// Compressed tensors with entries at the same places.
bool same_places(const Tensor& a, const Tensor& b) {
  const SparseTensor& p = sparse_impl(a);
  const SparseTensor& q = sparse_impl(b);
  return p.layout() == q.layout() && p.values().sizes() == q.values().sizes() &&
         p.first().equal(q.first().to(p.first().dtype())) &&
         p.second().equal(q.second().to(p.second().dtype()));
}

// Sum of two of one layout; entries stand beside each other, uncoalesced.
Tensor add_sparse(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_sizes("add", self, other);
  RL_CHECK(layout_of(self) == layout_of(other), "add(sparse, sparse): layouts ",
           layout_text(layout_of(self)), " and ", layout_text(layout_of(other)),
           " are not the same");
  if (!is_coo(self)) {
    if (same_places(self, other)) {
      return with_values(self, rushlight::add(values_of(self), values_of(other), alpha));
    }
    const Tensor sum = rushlight::coalesce(add_sparse(as_coo(self), as_coo(other), alpha));
    return as_layout(sum, layout_of(self), self);
  }
  if (sparse_dims(self) != sparse_dims(other) && (nnz(self) == 0 || nnz(other) == 0)) {
    const Tensor& entries = nnz(other) == 0 ? self : other;  // the other one is zero
    const ScalarType dtype = promote_types(self.dtype(), other.dtype());
    return with_values(entries, nnz(other) == 0
                                    ? values_of(entries).to(dtype)
                                    : values_of(entries).to(dtype).mul(make_number(alpha)));
  }
  RL_CHECK(sparse_dims(self) == sparse_dims(other),
           "cannot add tensors with different sparse dimensions: ", sparse_dims(self), " and ",
           sparse_dims(other));
  const bool graph = grad_enabled() && (self.requires_grad() || other.requires_grad());
  const Tensor a = graph ? rushlight::coalesce(self) : self;
  const Tensor b = graph ? rushlight::coalesce(other) : other;
  const ScalarType dtype = promote_types(self.dtype(), other.dtype());
  const Tensor& ia = sparse_impl(a).first();
  const Tensor& ib = sparse_impl(b).first();
  if (ia.sizes() == ib.sizes() && sparse_impl(a).coalesced() && sparse_impl(b).coalesced() &&
      ia.equal(ib)) {
    return make_coo(ia, rushlight::add(values_of(a).to(dtype), values_of(b).to(dtype), alpha),
                    self.sizes(), true);
  }
  Tensor addend = values_of(b).to(dtype);
  if (!(alpha.kind() == Scalar::Kind::Int && alpha.as<int64_t>() == 1)) {
    addend = addend.mul(make_number(alpha));
  }
  return make_coo(rushlight::cat({ia, ib}, 1), rushlight::cat({values_of(a).to(dtype), addend}),
                  self.sizes(), false);
}

Tensor add_to_dense(const Tensor& dense, const Tensor& sparse, const Scalar& alpha) {
  RL_CHECK(is_expandable_to(sparse.sizes(), dense.sizes()) && dense.dim() == sparse.dim(),
           "add: expected 'self' and 'other' to have same size, but they have ", dense.sizes(),
           " and ", sparse.sizes());
  check_sizes("add", dense, sparse);
  const Tensor coo = is_coo(sparse) && !sparse.requires_grad() ? sparse : as_coo(sparse);
  const ScalarType dtype = promote_types(dense.dtype(), sparse.dtype());
  const Tensor values = values_of(coo).to(dtype).mul(make_number(alpha));
  if (sparse_dims(coo) == 0) {
    return dense + values.sum(0);
  }
  const bool here = may_write(dense) && dtype == dense.dtype() && !values.requires_grad();
  if (here) {
    return sparse_dims(coo) == 1
               ? dense.index_add_(0, sparse_impl(coo).first().select(0, 0), values)
               : dense.index_put_(index_list(sparse_impl(coo).first()), values,
                                  /*accumulate=*/true);
  }
  if (sparse_dims(coo) == 1) {
    return dense.to(dtype).index_add(0, sparse_impl(coo).first().select(0, 0), values);
  }
  return dense.to(dtype).index_put(index_list(sparse_impl(coo).first()), values,
                                   /*accumulate=*/true);
}

// A COO tensor as often as other sizes want it: entries are repeated along sparse dimensions, among
// them new ones in front, and values along dense ones.
Tensor broadcast(const Tensor& coo, IntArrayRef sizes) {
  if (coo.sizes() == sizes) {
    return coo;
  }
  const int64_t fresh = static_cast<int64_t>(sizes.size()) - coo.dim();
  const int64_t n = fresh + sparse_dims(coo);
  const Tensor& indices = sparse_impl(coo).first();
  Tensor which = count_up(indices.size(1), indices);
  std::vector<Tensor> rows;
  for (int64_t d = 0; d < n; d++) {
    rows.push_back(d < fresh ? rushlight::zeros_like(which) : indices.select(0, d - fresh));
  }
  for (int64_t d = 0; d < n; d++) {
    const int64_t times = sizes[static_cast<size_t>(d)];
    if (times == (d < fresh ? 1 : coo.size(d - fresh))) {
      continue;
    }
    const Tensor along = count_up(times, which).repeat_interleave(which.size(0));
    for (Tensor& row : rows) {
      row = row.repeat({times});
    }
    rows[static_cast<size_t>(d)] = along;
    which = which.repeat({times});
  }
  const Tensor values = values_of(coo).index_select(0, which);
  DimVector wanted{which.size(0)};
  for (size_t d = static_cast<size_t>(n); d < sizes.size(); d++) {
    wanted.push_back(sizes[d]);
  }
  const Tensor places =
      rows.empty() ? rushlight::zeros({0, which.size(0)}, which.options()) : rushlight::stack(rows);
  return rushlight::coalesce(make_coo(places, values.expand(wanted), sizes, false));
}

// The products of the entries that both have.
Tensor mul_sparse(const Tensor& self, const Tensor& other) {
  if (is_coo(self) && is_coo(other) && self.sizes() != other.sizes()) {
    const DimVector sizes = broadcast_sizes(self.sizes(), other.sizes());
    return mul_sparse(broadcast(as_coo(self), sizes), broadcast(as_coo(other), sizes));
  }
  check_sizes("mul", self, other);
  if (!is_coo(self)) {
    if (same_places(self, other)) {
      return with_values(self, values_of(self) * values_of(other));
    }
    return as_layout(mul_sparse(as_coo(self), as_coo(other)), layout_of(self), self);
  }
  const Tensor a = as_coo(self);
  const Tensor b = as_coo(other);
  const ScalarType dtype = promote_types(self.dtype(), other.dtype());
  RL_CHECK(sparse_dims(a) == sparse_dims(b),
           "mul(sparse, sparse): the numbers of sparse dimensions, ", sparse_dims(a), " and ",
           sparse_dims(b), ", are not the same");
  const IntArrayRef sizes = self.sizes().slice(0, static_cast<size_t>(sparse_dims(a)));
  const Tensor& ia = sparse_impl(a).first();
  const Tensor& ib = sparse_impl(b).first();
  if (nnz(a) == 0 || nnz(b) == 0) {
    const Tensor none = nnz(a) == 0 ? a : b;
    return with_values(none, values_of(none).to(dtype)).detach();
  }
  const Tensor la = linear(ia, sizes);
  const Tensor lb = linear(ib, sizes);
  const Tensor at = rushlight::searchsorted(lb, la).clamp_max(nnz(b) - 1);
  const Tensor both = rushlight::nonzero(lb.index_select(0, at).eq(la)).select(1, 0);
  const Tensor products = values_of(a).to(dtype).index_select(0, both) *
                          values_of(b).to(dtype).index_select(0, at.index_select(0, both));
  return make_coo(ia.index_select(1, both), products, self.sizes(), true);
}

// A sparse one times (or divided by) what is broadcast to it.
template <class F>
Tensor combine_with_dense(const Tensor& sparse, const Tensor& dense, const F& f) {
  if (is_number(dense)) {
    const Tensor pattern = coalesce_if_recorded(sparse);
    Tensor values = values_of(pattern);
    if (sparse.dim() == 0 && !dense.impl()->is_wrapped_number()) {
      values = values.to(promote_types(values.dtype(), dense.dtype()));  // neither has dimensions
    }
    return with_values(pattern, f(values, dense));
  }
  if (is_coo(sparse) && !is_expandable_to(dense.sizes(), sparse.sizes())) {
    return combine_with_dense(
        broadcast(as_coo(sparse), broadcast_sizes(sparse.sizes(), dense.sizes())), dense, f);
  }
  RL_CHECK(is_expandable_to(dense.sizes(), sparse.sizes()), "mul(sparse, dense): sizes ",
           sparse.sizes(), " and ", dense.sizes(), " do not match");
  if (!is_coo(sparse)) {
    const Tensor at = mask_like(dense.expand(sparse.sizes()), sparse);
    return with_values(sparse, f(values_of(sparse), values_of(at)));
  }
  const Tensor coo = sparse.requires_grad() ? as_coo(sparse) : sparse;
  const Tensor at = gather_values(dense.expand(sparse.sizes()), sparse_impl(coo).first());
  return with_values(coo, f(values_of(coo), at));
}

}  // namespace

Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  if (is_sparse(self) && is_sparse(other)) {
    return add_sparse(self, other, alpha);
  }
  RL_CHECK(is_sparse(other) || is_number(other) || !is_coo(self),
           "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
  RL_CHECK_NOT_IMPLEMENTED(is_sparse(other) || !is_number(other),
                           "add: a number cannot be added to a sparse tensor");
  if (!is_sparse(other)) {
    return add_to_dense(other.mul(make_number(alpha)), self, 1);
  }
  return add_to_dense(self, other, alpha);
}
Tensor sub(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return sparse::add(self, other, -alpha);
}
Tensor mul(const Tensor& self, const Tensor& other) {
  const auto times = [](const Tensor& a, const Tensor& b) { return a * b; };
  if (is_sparse(self) && is_sparse(other)) {
    return other.dim() == 0  ? sparse::mul(self, as_dense(other))
           : self.dim() == 0 ? sparse::mul(as_dense(self), other)
                             : mul_sparse(self, other);
  }
  return is_sparse(self) ? combine_with_dense(self, other, times)
                         : combine_with_dense(other, self, times);
}
namespace {
// The quotients of values by a number, whatever is made of them.
template <class Quotient>
Tensor divide(const Tensor& self, const Tensor& other, const Quotient& quotient) {
  RL_CHECK(!is_sparse(other),
           "Sparse division requires a scalar or zero-dim dense tensor divisor "
           "(got a sparse divisor)");
  RL_CHECK(is_number(other),
           "Sparse division requires a scalar or zero-dim dense tensor divisor "
           "(got shape ",
           other.sizes(), " for divisor)");
  const Tensor pattern = is_coo(self) ? as_coo(self) : self;
  return with_values(pattern, quotient(values_of(pattern), other));
}
}  // namespace

Tensor div(const Tensor& self, const Tensor& other) {
  return divide(self, other, [](const Tensor& a, const Tensor& b) { return a / b; });
}
Tensor floor_divide(const Tensor& self, const Tensor& other) {
  return divide(self, other, [](const Tensor& a, const Tensor& b) { return a.floor_divide(b); });
}
Tensor _div_trunc(const Tensor& self, const Tensor& other) {
  return divide(self, other,
                [](const Tensor& a, const Tensor& b) { return rushlight::_div_trunc(a, b); });
}
Tensor pow(const Tensor& self, const Tensor& exponent) {
  RL_CHECK(is_sparse(self) && is_number(exponent),
           "pow: only a sparse tensor to the power of a number is supported");
  RL_CHECK(exponent.item().to<double>() > 0,
           "Negative and zero exponents are not supported on sparse tensors: they give values "
           "where there are none");
  const Tensor pattern = is_coo(self) ? as_coo(self) : self;
  return with_values(pattern, values_of(pattern).pow(exponent));
}

// ---- copies ----

Tensor zero_(const Tensor& self) {
  if (!is_coo(self)) {
    return with_values(self, rushlight::zeros_like(sparse_impl(self).values()));
  }
  DimVector wanted(sparse_impl(self).values().sizes());
  wanted[0] = 0;
  const Tensor& indices = sparse_impl(self).first();
  return make_coo(rushlight::empty({indices.size(0), 0}, indices.options()),
                  rushlight::empty(wanted, sparse_impl(self).values().options()), self.sizes(),
                  true);
}
Tensor fill_(const Tensor& self, const Tensor& value) {
  RL_CHECK_NOT_IMPLEMENTED(is_compressed(layout_of(self)),
                           "Could not run 'aten::fill_' with arguments from the 'SparseCPU' "
                           "backend: only the specified elements of compressed tensors are filled");
  return with_values(self, rushlight::empty_like(sparse_impl(self).values()).fill_(value));
}
Tensor copy_(const Tensor& self, const Tensor& src, bool) {
  if (!is_sparse(self)) {
    return as_dense(src).to(self.dtype()).expand(self.sizes());
  }
  RL_CHECK(is_sparse(src),
           "copy_() between dense and sparse Tensors is not implemented: to_dense() or to_sparse() "
           "makes them alike. self is ",
           self.toString(), " and src ", src.toString());
  RL_CHECK(layout_of(self) == layout_of(src), "copy of ", layout_text(layout_of(src)),
           " tensors to ", layout_text(layout_of(self)), " is not supported");
  if (!is_coo(self)) {
    check_sizes("copy_", self, src);
  }
  const Tensor from = coalesce_if_recorded(src);
  const SparseTensor& p = sparse_impl(from);
  const Tensor values = values_of(from).to(self.dtype());
  return make(p.layout(), p.first().clone(), p.second().defined() ? p.second().clone() : p.second(),
              values.is_same(sparse_impl(src).values()) ? values : values.clone(), src.sizes(),
              p.coalesced());
}
namespace {
// The name of a format that says how elements lie in memory, null for one that says nothing.
const char* format_in_memory(std::optional<MemoryFormat> format) {
  return format == MemoryFormat::Contiguous       ? "Contiguous"
         : format == MemoryFormat::ChannelsLast   ? "ChannelsLast"
         : format == MemoryFormat::ChannelsLast3d ? "ChannelsLast3d"
                                                  : nullptr;
}
}  // namespace

Tensor clone(const Tensor& self, std::optional<MemoryFormat> format) {
  RL_CHECK(format_in_memory(format) == nullptr, "clone: unsupported memory format option ",
           format_in_memory(format), " of a sparse tensor");
  const Tensor from = coalesce_if_recorded(self);
  const SparseTensor& p = sparse_impl(from);
  return make(p.layout(), p.first().clone(), p.second().defined() ? p.second().clone() : p.second(),
              values_of(from).clone(), self.sizes(), p.coalesced());
}
namespace {

// Of a sparse tensor's sizes, with as many dense dimensions and with blocks of its size.
Tensor without_entries(const Tensor& self, Layout layout, const TensorOptions& options) {
  const SparseTensor& p = sparse_impl(self);
  const int64_t dense = dense_dims(self);
  const int64_t leading = self.dim() - dense;  // batch and sparse dimensions
  const auto number_of = [](int64_t n) { return static_cast<size_t>(n); };
  const IntArrayRef dense_sizes = self.sizes().slice(number_of(leading), number_of(dense));
  const auto with = [](DimVector sizes, IntArrayRef more) {
    for (const int64_t n : more) {
      sizes.push_back(n);
    }
    return sizes;
  };
  if (layout == kSparse) {
    const TensorOptions indices = TensorOptions(kInt64).device(options.device());
    return make_coo(rushlight::empty({leading, 0}, indices),
                    rushlight::empty(with({0}, dense_sizes), options), self.sizes(), true);
  }
  RL_CHECK(leading >= 2, "a tensor of layout ", layout_text(layout),
           " has two sparse dimensions, but the size is ", self.sizes());
  RL_CHECK(!is_blocked(layout) || is_blocked(p.layout()), "a tensor of layout ",
           layout_text(layout), " needs a block size, which one of layout ",
           layout_text(p.layout()), " does not have");
  const int64_t b = leading - 2;
  const IntArrayRef block = is_blocked(layout)
                                ? p.values().sizes().slice(number_of(batch_dims(self) + 1), 2)
                                : IntArrayRef();
  const DimVector batch(self.sizes().slice(0, number_of(b)));
  const int64_t across = is_by_column(layout) ? 1 : 0;
  const int64_t lines = self.size(b + across) / (block.empty() ? 1 : block[number_of(across)]);
  const DimVector starts = with(batch, {lines + 1});
  const DimVector entries = with(batch, {0});
  const ScalarType kind = is_coo(self) ? kInt64 : p.first().dtype();
  const TensorOptions indices = TensorOptions(kind).device(options.device());
  return make(layout, rushlight::zeros(starts, indices), rushlight::empty(entries, indices),
              rushlight::empty(with(with(entries, block), dense_sizes), options), self.sizes(),
              true);
}

}  // namespace

Tensor to_copy(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Device> device,
               bool, std::optional<MemoryFormat> format) {
  RL_CHECK(format_in_memory(format) == nullptr, "to(options): ", layout_text(layout_of(self)),
           " only supports memory format Preserve, but got ", format_in_memory(format),
           " instead.");
  if (device.has_value() && device->is_meta() && !self.is_meta()) {
    return without_entries(self, layout_of(self),
                           TensorOptions(dtype.value_or(self.dtype())).device(*device));
  }
  RL_CHECK_NOT_IMPLEMENTED(!device.has_value() || *device == self.device(),
                           "to: sparse tensors lie on the CPU alone");
  const Tensor from = coalesce_if_recorded(self);
  return with_values(from, values_of(from).to(dtype.value_or(self.dtype()), false, true));
}

// ---- without entries ----

namespace {
Tensor none(const char* op, Layout layout, IntArrayRef size, const TensorOptions& values) {
  const NoGradGuard no_grad;
  const auto n = static_cast<int64_t>(size.size());
  if (layout == kStrided) {
    return rushlight::zeros(size, values);
  }
  if (layout == kSparse) {
    return make_coo(rushlight::empty({n, 0}, TensorOptions(kInt64).device(values.device())),
                    rushlight::empty({0}, values), size, true);
  }
  RL_CHECK(n >= 2, "torch.", op, ": Only batched sparse compressed (non-block) tensors are ",
           "supported, but got size ", size);
  RL_CHECK(!is_blocked(layout), op,
           "_sparse_compressed expected sparse compressed (non-block) tensor layout but got ",
           layout_text(layout));
  DimVector starts = size.slice(0, size.size() - 2);
  DimVector entries = starts;
  starts.push_back(size[size.size() - (is_by_column(layout) ? 1 : 2)] + 1);
  entries.push_back(0);
  const TensorOptions indices = TensorOptions(kInt64).device(values.device());
  return make(layout, rushlight::zeros(starts, indices), rushlight::empty(entries, indices),
              rushlight::empty(entries, values), size, true);
}
TensorOptions strided_options(const TensorOptions& options) {
  return TensorOptions(options.dtype()).device(options.device());
}
TensorOptions strided_options_like(const Tensor& self, const TensorOptions& options) {
  return TensorOptions(options.dtype_opt().value_or(self.dtype()))
      .device(options.device_opt().value_or(self.device()));
}
}  // namespace

Tensor empty(IntArrayRef size, const TensorOptions& options, std::optional<MemoryFormat>) {
  return none("empty", options.layout(), size, strided_options(options));
}
Tensor zeros(IntArrayRef size, const TensorOptions& options) {
  return none("zeros", options.layout(), size, strided_options(options));
}
Tensor new_zeros(const Tensor& self, IntArrayRef size, const TensorOptions& options) {
  const Layout layout = options.layout_opt().value_or(layout_of(self));
  return none("new_zeros", layout, size, strided_options_like(self, options));
}
namespace {

void check_no_format(std::optional<MemoryFormat> format) {
  RL_CHECK(!format.has_value(), "memory format option is only supported by strided tensors");
}

// A compressed tensor with other values at the same places, made from those that are there.
template <class F>
Tensor make_at_indices(const char* op, const Tensor& self, const TensorOptions& options,
                       std::optional<MemoryFormat> format, F make_values) {
  check_no_format(format);
  const NoGradGuard no_grad;
  const Layout layout = options.layout_opt().value_or(layout_of(self));
  RL_CHECK_NOT_IMPLEMENTED(is_sparse(self) && !is_coo(self) && layout == layout_of(self), op,
                           ": not implemented from the layout ", layout_text(layout_of(self)),
                           " to ", layout_text(layout));
  return with_values(self,
                     make_values(sparse_impl(self).values(), strided_options_like(self, options)));
}

}  // namespace

Tensor ones_like(const Tensor& self, const TensorOptions& options,
                 std::optional<MemoryFormat> format) {
  return make_at_indices(
      "ones_like", self, options, format,
      [](const Tensor& v, const TensorOptions& o) { return rushlight::ones_like(v, o); });
}
Tensor full_like(const Tensor& self, const Scalar& value, const TensorOptions& options,
                 std::optional<MemoryFormat> format) {
  return make_at_indices(
      "full_like", self, options, format,
      [&](const Tensor& v, const TensorOptions& o) { return rushlight::full_like(v, value, o); });
}
Tensor randn_like(const Tensor& self, const Generator& generator, const TensorOptions& options,
                  std::optional<MemoryFormat> format) {
  return make_at_indices("randn_like", self, options, format,
                         [&](const Tensor& v, const TensorOptions& o) {
                           return rushlight::randn_like(v, generator, o);
                         });
}
Tensor rand_like(const Tensor& self, const Generator& generator, const TensorOptions& options,
                 std::optional<MemoryFormat> format) {
  return make_at_indices("rand_like", self, options, format,
                         [&](const Tensor& v, const TensorOptions& o) {
                           return rushlight::rand_like(v, generator, o);
                         });
}
Tensor empty_like(const Tensor& self, const TensorOptions& options,
                  std::optional<MemoryFormat> format) {
  const bool same = options.layout_opt().value_or(layout_of(self)) == layout_of(self);
  if (!is_sparse(self) || is_coo(self) || !same) {
    return sparse::zeros_like(self, options, format);
  }
  return make_at_indices(
      "empty_like", self, options, format,
      [](const Tensor& v, const TensorOptions& o) { return rushlight::empty_like(v, o); });
}
Tensor zeros_like(const Tensor& self, const TensorOptions& options,
                  std::optional<MemoryFormat> format) {
  if (is_sparse(self)) {
    check_no_format(format);
  }
  const NoGradGuard no_grad;
  const Layout layout = options.layout_opt().value_or(layout_of(self));
  if (!is_sparse(self) || layout == kStrided) {
    return sparse::new_zeros(self, self.sizes(), options);
  }
  return without_entries(self, layout, strided_options_like(self, options));
}
Tensor any(const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  return !dim.has_value() && !keepdim ? values_of(self).any() : as_dense(self).any(dim, keepdim);
}
Scalar number(const Tensor& self) {
  check_one_element(self);
  return as_dense(self).item();
}

}  // namespace rushlight::sparse
