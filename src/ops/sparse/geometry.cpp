// Sparse tensors transposed, cut and joined: what happens to their indices.
#include "ops/geometry.h"
#include "ops/sparse/sparse.h"

namespace rushlight::sparse {

namespace {

// The rule for COO, given to and taken back from other layouts.
template <class F>
Tensor call_as_coo(const Tensor& self, const F& f) {
  if (is_coo(self)) {
    return f(rushlight::coalesce(self));
  }
  const Tensor made = f(as_coo(self));
  return is_sparse(made) && made.dim() - dense_dims(made) == 2
             ? as_layout(rushlight::coalesce(made), layout_of(self), self)
             : made;
}

DimVector without_dim(IntArrayRef sizes, int64_t dim) {
  DimVector out(sizes);
  out.erase(static_cast<size_t>(dim));
  return out;
}

Tensor indices_without_dim(const Tensor& indices, int64_t dim) {
  return rushlight::cat(
      {indices.narrow(0, 0, dim), indices.narrow(0, dim + 1, indices.size(0) - dim - 1)});
}

// The entries whose index in a sparse dimension fits, with new ones in its place.
Tensor select_entries(const Tensor& coo, int64_t dim, const Tensor& which, const Tensor& index,
                      IntArrayRef sizes) {
  const Tensor indices = sparse_impl(coo).first().index_select(1, which);
  const int64_t n = index_rows(indices);
  std::vector<Tensor> rows;
  for (int64_t d = 0; d < n; d++) {
    rows.push_back(d == dim ? index : indices.select(0, d));
  }
  return make_coo(rushlight::stack(rows), values_of(coo).index_select(0, which), sizes, false);
}

}  // namespace

Tensor permute(const Tensor& self, IntArrayRef dims) {
  const int64_t n = self.dim();
  check_order(dims, n);
  const DimVector order = wrap_dims(dims, n, false);
  const Tensor coo = is_coo(self) && !self.requires_grad() ? self : as_coo(self);
  const int64_t sparse = sparse_dims(coo);
  DimVector sizes;
  std::vector<Tensor> rows;
  DimVector value_dims{0};
  for (int64_t d = 0; d < n; d++) {
    const int64_t from = order[static_cast<size_t>(d)];
    sizes.push_back(self.size(from));
    RL_CHECK((from < sparse) == (d < sparse),
             "permute(sparse_coo): transpositions between sparse "
             "and dense dimensions are not allowed. Got transposition to permute ",
             dims);
    if (d < sparse) {
      rows.push_back(sparse_impl(coo).first().select(0, from));
    } else {
      value_dims.push_back(from - sparse + 1);
    }
  }
  const Tensor indices = rows.empty() ? sparse_impl(coo).first() : rushlight::stack(rows);
  Tensor made = make_coo(indices, values_of(coo).permute(value_dims), sizes, false);
  if (is_coo(self)) {
    return made;
  }
  static constexpr int other[] = {0, 1, 3, 2, 5, 4};  // the transpose of rows is by columns
  const int64_t b = batch_dims(self);
  const bool swapped = n >= 2 && order[static_cast<size_t>(b)] == b + 1;
  const Layout layout =
      swapped ? static_cast<Layout>(other[static_cast<int>(layout_of(self))]) : layout_of(self);
  if (swapped) {
    const SparseTensor& p = sparse_impl(self);
    Tensor values = values_of(self);
    if (is_blocked(p.layout())) {
      values = values.transpose(b + 1, b + 2);
    }
    return make(layout, p.first(), p.second(), values, sizes, true);
  }
  return as_layout(rushlight::coalesce(made), layout, self);
}
Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  DimVector order;
  for (int64_t d = 0; d < self.dim(); d++) {
    order.push_back(d);
  }
  if (self.dim() > 0) {
    std::swap(order[static_cast<size_t>(wrap_dim(dim0, self.dim()))],
              order[static_cast<size_t>(wrap_dim(dim1, self.dim()))]);
  }
  return sparse::permute(self, order);
}
Tensor t(const Tensor& self) {
  RL_CHECK(self.dim() <= 2, "t() expects at most 2 sparse and no dense dimensions, but got ",
           sparse_dims(self), " sparse and ", dense_dims(self), " dense dimensions");
  return self.dim() < 2 ? self : sparse::transpose(self, 0, 1);
}

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  const Tensor coo = as_coo(self);
  const int64_t d = wrap_dim(dim, self.dim() + 1);
  const int64_t n = sparse_dims(coo);
  DimVector sizes = self.sizes();
  sizes.insert(static_cast<size_t>(d), 1);
  const Tensor& indices = sparse_impl(coo).first();
  if (d > n) {
    return make_coo(indices, values_of(coo).unsqueeze(d - n + 1), sizes, true);
  }
  const Tensor more = rushlight::zeros({1, indices.size(1)}, indices.options());
  return make_coo(rushlight::cat({indices.narrow(0, 0, d), more, indices.narrow(0, d, n - d)}),
                  values_of(coo), sizes, true);
}
Tensor squeeze_dim(const Tensor& self, int64_t dim) {
  const int64_t d = wrap_dim(dim, self.dim());
  return self.dim() == 0 || self.size(d) != 1 ? self : sparse::select(self, d, 0);
}
Tensor squeeze(const Tensor& self) {
  Tensor out = self;
  for (int64_t d = self.dim() - 1; d >= 0; d--) {
    out = sparse::squeeze_dim(out, d);
  }
  return out;
}

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  RL_CHECK_INDEX(self.dim() != 0, "select() cannot be applied to a 0-dim tensor.");
  const int64_t d = wrap_dim(dim, self.dim());
  const int64_t size = self.size(d);
  RL_CHECK_INDEX(index >= -size && index < size, "select(): index ", index,
                 " out of range for tensor of size ", self.sizes(), " at dimension ", d);
  const int64_t at = index < 0 ? index + size : index;
  const Tensor coo = as_coo(self);
  const int64_t n = sparse_dims(coo);
  const DimVector sizes = without_dim(self.sizes(), d);
  const Tensor& indices = sparse_impl(coo).first();
  if (d >= n) {
    return make_coo(indices, values_of(coo).select(d - n + 1, at), sizes, true);
  }
  const Tensor which = rushlight::nonzero(indices.select(0, d).eq(at)).select(1, 0);
  const Tensor values = values_of(coo).index_select(0, which);
  if (n == 1) {  // nothing sparse is left
    return values.sum(IntArrayRef{0}, false, values.dtype());
  }
  return make_coo(indices_without_dim(indices, d).index_select(1, which), values, sizes, true);
}
std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  const int64_t slices = self.size(dim);
  std::vector<Tensor> out;
  for (int64_t i = 0; i < slices; i++) {
    out.push_back(sparse::select(self, dim, i));
  }
  return out;
}
Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step) {
  RL_CHECK(step > 0, "slice step must be positive");
  const int64_t d = wrap_dim(dim, self.dim());
  const int64_t size = self.size(d);
  const auto clamp_index = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size);
  };
  const int64_t from = clamp_index(start.value_or(0));
  const int64_t to = std::max(from, clamp_index(end.value_or(size)));
  DimVector sizes = self.sizes();
  sizes[static_cast<size_t>(d)] = (to - from + step - 1) / step;
  return call_as_coo(self, [&](const Tensor& coo) {
    const int64_t n = sparse_dims(coo);
    const Tensor& indices = sparse_impl(coo).first();
    if (d >= n) {
      return make_coo(indices, values_of(coo).slice(d - n + 1, from, to, step), sizes, true);
    }
    const Tensor row = indices.select(0, d);
    Tensor fits = row.ge(from).logical_and(row.lt(to));
    if (step > 1) {
      fits = fits.logical_and((row - from).remainder(Scalar(step)).eq(0));
    }
    const Tensor which = rushlight::nonzero(fits).select(1, 0);
    const Tensor index = (row.index_select(0, which) - from).floor_divide(make_number(step));
    Tensor made = select_entries(coo, d, which, index, sizes);
    sparse_impl(made).set_coalesced(true);
    return made;
  });
}
Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  RL_CHECK_INDEX(self.dim() != 0, "index_select() cannot be applied to a 0-dim tensor.");
  RL_CHECK_INDEX(index.dim() == 1 && (index.dtype() == kInt64 || index.dtype() == kInt32),
                 "index_select() argument index must be 1-D long-tensor.");
  const int64_t d = wrap_dim(dim, self.dim());
  const int64_t size = self.size(d);
  DimVector sizes = self.sizes();
  sizes[static_cast<size_t>(d)] = index.size(0);
  return call_as_coo(self, [&](const Tensor& coo) {
    const int64_t n = sparse_dims(coo);
    const Tensor& indices = sparse_impl(coo).first();
    if (d >= n) {
      return make_coo(indices, values_of(coo).index_select(d - n + 1, index), sizes, true);
    }
    Tensor wanted = index.to(kInt64);
    if (wanted.numel() > 0) {
      const auto low = rushlight::amin(wanted).item<int64_t>();
      const auto high = rushlight::amax(wanted).item<int64_t>();
      RL_CHECK_INDEX(low >= -size && high < size, "index_select(): index contains ",
                     low < -size ? low : high, " that is out of range for tensor of size ",
                     self.sizes(), " at dimension ", d);
      wanted = rushlight::where(wanted.lt(0), wanted + size, wanted);
    }
    // For each wanted index, the entries that have it: they stand together once sorted by it.
    const Tensor row = indices.select(0, d);
    const Tensor order = rushlight::argsort(row, true, 0, false);
    const Tensor sorted = row.index_select(0, order);
    const Tensor begin = rushlight::searchsorted(sorted, wanted);
    const Tensor counts = rushlight::searchsorted(sorted, wanted, false, true) - begin;
    const Tensor result = rushlight::repeat_interleave(counts);  // place in `wanted`
    const Tensor first = (counts.cumsum(0) - counts).index_select(0, result);
    const Tensor place = count_up(result.size(0), result) - first + begin.index_select(0, result);
    return select_entries(coo, d, order.index_select(0, place), result, sizes);
  });
}

Tensor cat(TensorList tensors, int64_t dim) {
  RL_CHECK(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  const Tensor& like = tensors[0];
  const int64_t d = wrap_dim(dim, like.dim());
  std::vector<Tensor> indices;
  std::vector<Tensor> values;
  DimVector sizes = like.sizes();
  int64_t total = 0;
  ScalarType dtype = like.dtype();
  for (const Tensor& t : tensors) {
    RL_CHECK(is_sparse(t), "Concatenating sparse tensors, but a dense tensor was found");
    dtype = promote_types(dtype, t.dtype());
  }
  const int64_t n = sparse_dims(like);
  for (const Tensor& t : tensors) {
    RL_CHECK(t.dim() == like.dim() && sparse_dims(t) == n && dense_dims(t) == dense_dims(like),
             "All tensors must have the same shape and the same number of sparse and dense "
             "dimensions, except in the concatenating dimension");
    for (int64_t i = 0; i < t.dim(); i++) {
      RL_CHECK(i == d || t.size(i) == like.size(i),
               "All tensors must have the same shape: ", like.sizes(),
               " (except in the concatenating dimension), but found shape: ", t.sizes());
    }
    const Tensor coo = is_coo(t) && !t.requires_grad() ? t : as_coo(t);
    const int64_t s = sparse_dims(coo);
    Tensor index = sparse_impl(coo).first();
    Tensor value = values_of(coo).to(dtype);
    if (d < s) {
      const Tensor shift = rushlight::zeros({s, 1}, index.options());
      shift.select(0, d).fill_(Scalar(total));
      index = index + shift;
    } else {
      // Zeros before and after, in the dense dimension.
      DimVector before = value.sizes();
      DimVector after = value.sizes();
      const auto at = static_cast<size_t>(d - s + 1);
      before[at] = total;
      int64_t rest = 0;
      for (const Tensor& other : tensors) {
        rest += other.size(d);
      }
      after[at] = rest - total - t.size(d);
      value = rushlight::cat({rushlight::zeros(before, value.options()), value,
                              rushlight::zeros(after, value.options())},
                             d - s + 1);
    }
    indices.push_back(index);
    values.push_back(value);
    total += t.size(d);
  }
  sizes[static_cast<size_t>(d)] = total;
  const Tensor made = make_coo(rushlight::cat(indices, 1), rushlight::cat(values), sizes, false);
  return is_coo(like) ? made : as_layout(rushlight::coalesce(made), layout_of(like), like);
}

}  // namespace rushlight::sparse
