// Constructors, accessors, and conversions between layouts.
#include <rushlight/batching.h>
#include <rushlight/factories.h>

#include "ops/sparse/sparse.h"

namespace rushlight {

namespace sparse {

int64_t index_rows(const Tensor& indices) {
  const int64_t rows = indices.size(0);
  RL_CHECK(rows <= 64, "sparse indices have a row per dimension, of at most 64, not ", rows);
  return rows;
}

std::vector<std::optional<Tensor>> index_list(const Tensor& indices) {
  std::vector<std::optional<Tensor>> list;
  const int64_t rows = index_rows(indices);
  for (int64_t d = 0; d < rows; d++) {
    list.emplace_back(indices.select(0, d));
  }
  return list;
}

Tensor gather_values(const Tensor& dense, const Tensor& indices) {
  if (indices.size(0) == 0) {
    DimVector sizes = dense.sizes();
    sizes.insert(0, indices.size(1));
    return dense.unsqueeze(0).expand(sizes);
  }
  return rushlight::index(dense, index_list(indices));
}

Tensor linear(const Tensor& indices, IntArrayRef sizes) {
  const int64_t n = indices.size(0);
  if (n == 0) {
    return rushlight::zeros({indices.size(1)}, indices.options());
  }
  (void)product(sizes);  // overflow raises
  Tensor flat = indices.select(0, 0);
  for (int64_t d = 1; d < n; d++) {
    flat = flat * sizes[static_cast<size_t>(d)] + indices.select(0, d);
  }
  return flat;
}

Unique unique_columns(const Tensor& indices, IntArrayRef sizes) {
  const auto [flat, inverse, counts] =
      rushlight::_unique2(linear(indices, sizes), /*sorted=*/true, /*return_inverse=*/true);
  const int64_t n = indices.size(0);
  Tensor rest = flat;
  std::vector<Tensor> rows(static_cast<size_t>(n));
  for (int64_t d = n - 1; d >= 0; d--) {
    const int64_t size = std::max<int64_t>(sizes[static_cast<size_t>(d)], 1);
    rows[static_cast<size_t>(d)] = d == 0 ? rest : rest.remainder(Scalar(size));
    rest = d == 0 ? rest : rest.floor_divide(make_number(size));
  }
  return {n == 0 ? rushlight::empty({0, flat.size(0)}, indices.options()) : rushlight::stack(rows),
          inverse};
}

namespace {
// How often each number below n is there. Not by bincount, which has room for larger ones.
Tensor counts_of(const Tensor& numbers, int64_t n) {
  return rushlight::zeros({n}, numbers.options())
      .index_add(0, numbers, rushlight::ones_like(numbers));
}
}  // namespace

Tensor row_starts(const Tensor& rows, int64_t n) {
  const Tensor counts = counts_of(rows, n);
  return rushlight::cat({rushlight::zeros({1}, counts.options()), counts.cumsum(0)});
}

// ---- conversions ----

namespace {

Tensor coo_of_compressed(const Tensor& t) {
  const SparseTensor& p = sparse_impl(t);
  const Layout layout = p.layout();
  const int64_t batch = batch_dims(t);
  const int64_t entries = nnz(t);
  Tensor values = values_of(t);
  Tensor across = expand_starts(p.first(), entries).reshape({-1});
  Tensor along = p.second().to(kInt64).reshape({-1});
  const int64_t total = across.size(0);
  std::vector<Tensor> rows;
  int64_t before = total;
  const Tensor order = count_up(total, across);
  for (int64_t d = 0; d < batch; d++) {
    before /= std::max<int64_t>(t.size(d), 1);
    before = std::max<int64_t>(before, 1);
    rows.push_back(
        order.floor_divide(make_number(before)).remainder(Scalar(std::max<int64_t>(t.size(d), 1))));
  }
  if (batch > 0) {
    values = values.flatten(0, batch);
  }
  Tensor row = is_by_column(layout) ? along : across;
  Tensor column = is_by_column(layout) ? across : along;
  if (is_blocked(layout)) {
    const int64_t bh = values.size(1);
    const int64_t bw = values.size(2);
    const DimVector grid{total, bh, bw};
    row =
        (row.view({-1, 1, 1}) * bh + count_up(bh, row).view({1, -1, 1})).expand(grid).reshape({-1});
    column = (column.view({-1, 1, 1}) * bw + count_up(bw, column)).expand(grid).reshape({-1});
    for (Tensor& r : rows) {
      r = r.view({-1, 1, 1}).expand(grid).reshape({-1});
    }
    values = values.flatten(0, 2);
  }
  rows.push_back(row);
  rows.push_back(column);
  const bool sorted = layout == kSparseCsr;
  const Tensor made = make_coo(rushlight::stack(rows), values, t.sizes(), sorted);
  return rushlight::coalesce(made);
}

// The sparse dimensions come first; a dense tensor keeps what is not zero.
Tensor coo_of_dense(const Tensor& t, int64_t dims) {
  Tensor mask = t.ne(0);
  if (dims < t.dim()) {
    mask = mask.flatten(dims).any(-1);
  }
  const Tensor indices = rushlight::nonzero(mask).t().contiguous();
  return make_coo(indices, gather_values(t, indices), t.sizes(), true);
}

Tensor coo_to_dense(const Tensor& t) {
  const Tensor coo = rushlight::coalesce(t);
  const Tensor values = values_of(coo);
  const Tensor none = rushlight::zeros(t.sizes(), values.options());
  if (sparse_dims(coo) == 0) {
    return nnz(coo) == 0 ? none : values.select(0, 0);
  }
  return nnz(coo) == 0 ? none + values.sum().to(values.dtype())  // recorded
                       : none.index_put(index_list(sparse_impl(coo).first()), values);
}

// Entries of a mask of blocks, by rows or by columns, with equally many in each batch.
Tensor compress_dense(const Tensor& t, Layout layout, IntArrayRef block, int64_t dense) {
  const int64_t batch = t.dim() - 2 - dense;
  RL_CHECK(batch >= 0, "to_sparse: dense_dim leaves fewer than two dimensions for the layout ",
           layout_text(layout));
  const int64_t bh = block.empty() ? 1 : block[0];
  const int64_t bw = block.empty() ? 1 : block[1];
  const int64_t height = t.size(batch);
  const int64_t width = t.size(batch + 1);
  RL_CHECK(bh > 0 && bw > 0 && height % bh == 0 && width % bw == 0,
           "to_sparse: tensor sparse size (", height, ",", width,
           ") must be divisible by given blocksize (", bh, ",", bw, ")");
  // (batches, rows, bh, columns, bw, dense…) → (batches, rows, columns, bh, bw, dense…)
  DimVector split{-1, height / bh, bh, width / bw, bw};
  int64_t batches = 1;
  for (int64_t d = 0; d < batch; d++) {
    batches *= t.size(d);
  }
  split[0] = batches;
  for (int64_t d = batch + 2; d < t.dim(); d++) {
    split.push_back(t.size(d));
  }
  Tensor blocks = t.reshape(split).transpose(2, 3);
  if (is_by_column(layout)) {
    blocks = blocks.transpose(1, 2);
  }
  const Tensor found = rushlight::nonzero(blocks.detach().ne(0).flatten(3).any(-1)).t();
  const Tensor per_batch = counts_of(found.select(0, 0), batches);
  const int64_t entries = batches == 0 ? 0 : found.size(1) / batches;
  RL_CHECK(rushlight::all(per_batch.eq(entries)).item<bool>(),
           "Expect the same number of specified elements per batch.");
  const int64_t across = blocks.size(1);
  const Tensor line = found.select(0, 0) * across + found.select(0, 1);
  const Tensor counts = counts_of(line, batches * across).view({batches, across});
  Tensor starts =
      rushlight::cat({rushlight::zeros({batches, 1}, counts.options()), counts.cumsum(1)}, 1);
  Tensor plain = found.select(0, 2).contiguous();
  Tensor values = gather_values(blocks, found);
  if (block.empty()) {
    values = values.squeeze(2).squeeze(1);
  }
  DimVector lead(t.sizes().slice(0, static_cast<size_t>(batch)));
  const auto with_lead = [&](const Tensor& x, int64_t n, int64_t skip) {
    DimVector sizes = lead;
    sizes.push_back(n);
    for (int64_t d = skip; d < x.dim(); d++) {
      sizes.push_back(x.size(d));
    }
    return x.reshape(sizes);
  };
  starts = with_lead(starts, across + 1, 2);
  return make(layout, starts, with_lead(plain, entries, 1), with_lead(values, entries, 1),
              t.sizes(), true);
}

Tensor compress_coo(const Tensor& coo, Layout layout) {
  const Tensor& indices = sparse_impl(coo).first();
  const bool columns = is_by_column(layout);
  Tensor row = indices.select(0, columns ? 1 : 0);
  Tensor plain = indices.select(0, columns ? 0 : 1);
  Tensor values = values_of(coo);
  if (columns) {
    const Tensor order = rushlight::argsort(row, /*stable=*/true, 0, false);
    plain = plain.index_select(0, order);
    values = values.index_select(0, order);
  }
  const Tensor starts = row_starts(row, coo.size(columns ? 1 : 0));
  return make(layout, starts, plain.contiguous(), values, coo.sizes(), true);
}

}  // namespace

Tensor as_dense(const Tensor& t) {
  return !is_sparse(t) ? t : coo_to_dense(is_coo(t) ? t : coo_of_compressed(t));
}
Tensor as_coo(const Tensor& t) {
  return !is_sparse(t) ? coo_of_dense(t, t.dim())
         : is_coo(t)   ? rushlight::coalesce(t)
                       : coo_of_compressed(t);
}

// Of the layout, with the block size of the model where it has blocks.
Tensor as_layout(const Tensor& t, Layout layout, const Tensor& model) {
  if (layout_of(t) == layout) {
    return t;
  }
  if (layout == kStrided) {
    return as_dense(t);
  }
  if (layout == kSparse) {
    return as_coo(t);
  }
  if (!is_blocked(layout) && is_sparse(t) && t.dim() - dense_dims(t) == 2) {
    return compress_coo(as_coo(t), layout);
  }
  DimVector block;
  if (is_blocked(layout)) {
    RL_CHECK(model.defined() && is_sparse(model) && is_blocked(layout_of(model)),
             "to_sparse: a block size is needed");
    const Tensor& values = sparse_impl(model).values();
    const int64_t at = batch_dims(model) + 1;
    block = {values.size(at), values.size(at + 1)};
  }
  return compress_dense(as_dense(t), layout, block, dense_dims(is_sparse(t) ? t : model));
}

namespace {

// Between compressed layouts indices keep their dtype.
Tensor with_indices_as(const Tensor& t, const Tensor& model) {
  const SparseTensor& p = sparse_impl(t);
  const ScalarType wanted = sparse_impl(model).first().dtype();
  return p.first().dtype() == wanted ? t
                                     : make(p.layout(), p.first().to(wanted), p.second().to(wanted),
                                            values_of(t), t.sizes(), true);
}

}  // namespace

Tensor mask_like(const Tensor& dense, const Tensor& mask) {
  const Tensor& old = sparse_impl(mask).values();
  const int64_t inner = dense_dims(mask);
  int64_t entries = 1;
  DimVector sizes(old.sizes());
  for (int64_t d = 0; d < old.dim(); d++) {
    const auto at = static_cast<size_t>(d);
    entries *= d < old.dim() - inner ? sizes[at] : 1;
    sizes[at] = d < old.dim() - inner ? sizes[at] : 1;
  }
  const Tensor places = count_up(entries, old).view(sizes).expand(old.sizes());
  const Tensor coo = as_coo(with_values(mask, places.contiguous()));
  Tensor order = values_of(coo);
  for (int64_t more = order.dim() - 1; more > 0; more--) {
    order = order.select(1, 0);
  }
  const Tensor found = gather_values(dense, sparse_impl(coo).first());
  return with_values(mask,
                     found.index_select(0, rushlight::argsort(order, /*stable=*/true, 0, false))
                         .reshape(old.sizes()));
}

}  // namespace sparse

// ---- ops ----

namespace composite {

using sparse::sparse_impl;

Tensor _check_sparse_coo(const Tensor& indices, const Tensor& values, IntArrayRef size,
                         bool is_coalesced) {
  sparse::check_coo(indices, values, size, is_coalesced);
  return values;
}
Tensor _check_sparse_compressed(const Tensor& compressed_indices, const Tensor& plain_indices,
                                const Tensor& values, IntArrayRef size, Layout layout) {
  sparse::check_compressed(layout, compressed_indices, plain_indices, values, size);
  return values;
}

Tensor _sparse_coo_tensor(const Tensor& indices, const Tensor& values, OptionalIntArrayRef size,
                          bool is_coalesced) {
  DimVector sizes;
  if (size.has_value()) {
    sizes = DimVector(*size);
  } else {
    RL_CHECK(indices.dim() == 2, "indices must be sparse_dim x nnz, but got: ", indices.sizes());
    if (indices.numel() > 0) {
      RL_CHECK(rushlight::amin(indices).item<int64_t>() >= 0, "found negative index ",
               rushlight::amin(indices).item<int64_t>());
      const Tensor most = rushlight::amax(indices, {1});
      const int64_t rows = sparse::index_rows(indices);
      for (int64_t d = 0; d < rows; d++) {
        sizes.push_back(most.select(0, d).item<int64_t>() + 1);
      }
    } else {
      sizes = DimVector(static_cast<size_t>(indices.size(0)));
    }
    for (int64_t d = 1; d < values.dim(); d++) {
      sizes.push_back(values.size(d));
    }
  }
  for (const int64_t s : sizes) {
    RL_CHECK(s >= 0, "Trying to create tensor with negative dimension ", s, ": ",
             IntArrayRef(sizes));
  }
  // Always: what comes after relies on it.
  sparse::check_coo(indices, values, sizes, is_coalesced);
  return sparse::make_coo(indices, values, sizes, is_coalesced);
}

Tensor _sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices,
                                 const Tensor& values, OptionalIntArrayRef size, Layout layout) {
  RL_CHECK(sparse::is_compressed(layout), "expected compressed sparse tensor layout but got ",
           layout_text(layout));
  DimVector sizes;
  if (size.has_value()) {
    sizes = DimVector(*size);
  } else {
    RL_CHECK(compressed_indices.dim() >= 1 && plain_indices.dim() == compressed_indices.dim(),
             "compressed and plain indices must have equal dimensionalities of at least 1");
    const int64_t batch = compressed_indices.dim() - 1;
    const bool blocks = sparse::is_blocked(layout);
    RL_CHECK(values.dim() > batch + (blocks ? 2 : 0), "values have too few dimensions");
    const int64_t across = compressed_indices.size(-1) - 1;
    const int64_t along =
        plain_indices.numel() == 0 ? 0 : rushlight::amax(plain_indices).item<int64_t>() + 1;
    sizes = DimVector(compressed_indices.sizes().slice(0, static_cast<size_t>(batch)));
    const int64_t bh = blocks ? values.size(batch + 1) : 1;
    const int64_t bw = blocks ? values.size(batch + 2) : 1;
    const bool columns = sparse::is_by_column(layout);
    sizes.push_back((columns ? along : across) * bh);
    sizes.push_back((columns ? across : along) * bw);
    for (int64_t d = batch + (blocks ? 3 : 1); d < values.dim(); d++) {
      sizes.push_back(values.size(d));
    }
  }
  sparse::check_compressed(layout, compressed_indices, plain_indices, values, sizes);
  return sparse::make(layout, compressed_indices, plain_indices, values, sizes, true);
}

}  // namespace composite

namespace {
Tensor with_options(const Tensor& made, const TensorOptions& options) {
  const bool leaf = options.requires_grad() && !made.requires_grad();
  return leaf ? made.detach().requires_grad_() : made;
}
void expect_layout(const char* name, const TensorOptions& options, Layout layout) {
  RL_CHECK(options.layout_opt().value_or(layout) == layout, name, ": expected the layout ",
           layout_text(layout), ", but got ", layout_text(options.layout()));
}
}  // namespace

Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, IntArrayRef size,
                         const TensorOptions& options, std::optional<bool> is_coalesced) {
  expect_layout("sparse_coo_tensor", options, kSparse);
  const Tensor held = values.to(options.device_opt(), options.dtype_opt());
  return with_options(_sparse_coo_tensor(indices.to(held.device()), held, OptionalIntArrayRef(size),
                                         is_coalesced.value_or(false)),
                      options);
}
Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, const TensorOptions& options,
                         std::optional<bool> is_coalesced) {
  expect_layout("sparse_coo_tensor", options, kSparse);
  const Tensor held = values.to(options.device_opt(), options.dtype_opt());
  return with_options(
      _sparse_coo_tensor(indices.to(held.device()), held, {}, is_coalesced.value_or(false)),
      options);
}
Tensor sparse_coo_tensor(IntArrayRef size, const TensorOptions& options) {
  expect_layout("sparse_coo_tensor", options, kSparse);
  const auto dims = static_cast<int64_t>(size.size());
  const TensorOptions plain = TensorOptions(options.dtype()).device(options.device());
  return with_options(_sparse_coo_tensor(empty({dims, 0}, plain.dtype(kInt64)), empty({0}, plain),
                                         OptionalIntArrayRef(size), true),
                      options);
}
Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices,
                                const Tensor& values, OptionalIntArrayRef size,
                                const TensorOptions& options) {
  const Tensor held = values.to(options.device_opt(), options.dtype_opt());
  return with_options(
      _sparse_compressed_tensor(compressed_indices.to(held.device()),
                                plain_indices.to(held.device()), held, size, options.layout()),
      options);
}

namespace composite {

Tensor values(const Tensor& self) {
  RL_CHECK(is_sparse(self), "values expected sparse tensor layout but got Strided");
  RL_CHECK(!sparse::is_coo(self) || sparse_impl(self).coalesced(),
           "Cannot get values on an uncoalesced tensor, please call .coalesce() first");
  return sparse::values_of(self);
}
Tensor _values(const Tensor& self) {
  RL_CHECK(is_sparse(self), "_values expected sparse tensor layout but got Strided");
  return sparse_impl(self).values().detach();
}
Tensor indices(const Tensor& self) {
  sparse::expect_coo("indices", self);
  RL_CHECK(sparse_impl(self).coalesced(),
           "Cannot get indices on an uncoalesced tensor, please call .coalesce() first");
  return sparse_impl(self).first().detach();
}
Tensor _indices(const Tensor& self) {
  sparse::expect_coo("_indices", self);
  return sparse_impl(self).first().detach();
}

#define RL_INDICES(name, by_column, part)                                                  \
  Tensor name(const Tensor& self) {                                                        \
    const Layout layout = layout_of(self);                                                 \
    RL_CHECK(sparse::is_compressed(layout) && sparse::is_by_column(layout) == (by_column), \
             #name " expected sparse ", (by_column) ? "column" : "row",                    \
             " compressed tensor layout but got ", layout_text(layout));                   \
    return sparse_impl(self).part().detach();                                              \
  }
RL_INDICES(crow_indices, false, first)
RL_INDICES(col_indices, false, second)
RL_INDICES(ccol_indices, true, first)
RL_INDICES(row_indices, true, second)
#undef RL_INDICES

int64_t _nnz(const Tensor& self) {
  RL_CHECK(is_sparse(self), "_nnz expected sparse tensor layout but got Strided");
  return sparse::nnz(self);
}
int64_t sparse_dim(const Tensor& self) { return sparse::sparse_dims(self); }
int64_t dense_dim(const Tensor& self) { return sparse::dense_dims(self); }
int64_t _dimI(const Tensor& self) { return sparse::sparse_dims(self); }
int64_t _dimV(const Tensor& self) { return sparse::dense_dims(self); }
bool is_coalesced(const Tensor& self) {
  sparse::expect_coo("is_coalesced", self);
  return sparse_impl(self).coalesced();
}
Tensor& _coalesced_(const Tensor& self, bool coalesced) {
  sparse::expect_coo("_coalesced_", self);
  sparse_impl(self).set_coalesced(coalesced);
  return const_cast<Tensor&>(self);
}

Tensor to_dense(const Tensor& self, std::optional<ScalarType> dtype, std::optional<bool> masked) {
  if (const int64_t level = batching::level_of(self); level != 0) {  // slices of a sparse tensor
    const int64_t batch = batching::value_of(self).size(0);
    const Tensor all = batching::remove_batch(self, level, batch, 0);
    return batching::add_batch(all.to_dense(dtype, masked), 0, level);
  }
  const Tensor dense = sparse::as_dense(self);
  return dtype.has_value() ? dense.to(*dtype) : dense;
}

Tensor to_sparse(const Tensor& self, std::optional<Layout> layout, OptionalIntArrayRef blocksize,
                 std::optional<int64_t> dense_dim) {
  const Layout wanted = layout.value_or(kSparse);
  RL_CHECK(wanted != kStrided || !is_sparse(self),
           "to_sparse: conversion to Strided is not one to a sparse layout");
  if (wanted == kStrided) {
    return self;
  }
  const bool blocks = sparse::is_blocked(wanted);
  RL_CHECK(blocks == blocksize.has_value() ||
               (is_sparse(self) && !blocksize.has_value() && layout_of(self) == wanted),
           "to_sparse: conversion from ", layout_text(layout_of(self)), " to ", layout_text(wanted),
           blocks ? " requires blocksize" : " does not take blocksize");
  DimVector block(blocksize.value_or(IntArrayRef()));
  if (block.size() == 1) {  // one number stands for both
    block.push_back(block[0]);
  }
  RL_CHECK(!blocksize.has_value() || block.size() == 2,
           "to_sparse: blocksize is two numbers, but got ", *blocksize);
  const int64_t dense = dense_dim.value_or(is_sparse(self) ? sparse::dense_dims(self) : 0);
  RL_CHECK(dense >= 0 && dense <= self.dim(), "to_sparse: dense_dim out of range");
  if (wanted == kSparse) {
    return !is_sparse(self)       ? sparse::coo_of_dense(self, self.dim() - dense)
           : sparse::is_coo(self) ? self
                                  : sparse::as_coo(self);
  }
  RL_CHECK(!is_sparse(self) || !sparse::is_coo(self) || sparse::sparse_dims(self) == 2,
           "to_sparse: conversion from Sparse to ", layout_text(wanted),
           " for input tensors with sparse_dim()!=2 is not supported");
  RL_CHECK(self.dim() - dense >= 2, "to_sparse: ", layout_text(wanted),
           " needs at least two dimensions that are not dense, got a tensor of ", self.dim());
  if (!blocks) {
    if (layout_of(self) == wanted) {
      return self;
    }
    if (is_sparse(self) && self.dim() - dense == 2) {
      const Tensor made = sparse::compress_coo(sparse::as_coo(self), wanted);
      return sparse::is_coo(self) ? made : sparse::with_indices_as(made, self);
    }
  }
  const Tensor made =
      sparse::compress_dense(sparse::as_dense(self), wanted, IntArrayRef(block), dense);
  return is_sparse(self) && !sparse::is_coo(self) ? sparse::with_indices_as(made, self) : made;
}
Tensor to_sparse_sparse_dim(const Tensor& self, int64_t sparse_dim) {
  RL_CHECK(sparse_dim > 0 || self.dim() == 0, "sparse_dim must be greater than 0");
  RL_CHECK(sparse_dim <= self.dim(), "sparse_dim must be less than or equal to ", self.dim(),
           ", got ", sparse_dim);
  RL_CHECK(!is_sparse(self) || sparse_dim == sparse::sparse_dims(self),
           "to_sparse: conversion from ", layout_text(layout_of(self)),
           " to Sparse with sparse_dim argument !=self.sparse_dim() is ", "not supported");
  return is_sparse(self) ? composite::to_sparse(self, kSparse, {}, {})
                         : sparse::coo_of_dense(self, sparse_dim);
}
Tensor to_sparse_csr(const Tensor& self, std::optional<int64_t> dense_dim) {
  return composite::to_sparse(self, kSparseCsr, {}, dense_dim);
}
Tensor to_sparse_csc(const Tensor& self, std::optional<int64_t> dense_dim) {
  return composite::to_sparse(self, kSparseCsc, {}, dense_dim);
}
Tensor to_sparse_bsr(const Tensor& self, IntArrayRef blocksize, std::optional<int64_t> dense_dim) {
  return composite::to_sparse(self, kSparseBsr, OptionalIntArrayRef(blocksize), dense_dim);
}
Tensor to_sparse_bsc(const Tensor& self, IntArrayRef blocksize, std::optional<int64_t> dense_dim) {
  return composite::to_sparse(self, kSparseBsc, OptionalIntArrayRef(blocksize), dense_dim);
}

Tensor& sparse_resize_(const Tensor& self, IntArrayRef size, int64_t sparse_dim,
                       int64_t dense_dim) {
  sparse::expect_coo("sparse_resize_", self);
  const SparseTensor p = sparse_impl(self);
  RL_CHECK(sparse_dim + dense_dim == static_cast<int64_t>(size.size()),
           "number of dimensions must be sparse_dim (", sparse_dim, ") + dense_dim (", dense_dim,
           "), but got ", size.size());
  if (sparse::nnz(self) == 0) {
    return composite::sparse_resize_and_clear_(self, size, sparse_dim, dense_dim);
  }
  RL_CHECK(sparse_dim == sparse::sparse_dims(self) && dense_dim == sparse::dense_dims(self),
           "changing the number of sparse or dense dimensions on a non-empty sparse tensor is not "
           "supported");
  for (size_t d = 0; d < size.size(); d++) {
    RL_CHECK(size[d] >= self.sizes()[d], "shrinking the size of ",
             static_cast<int64_t>(d) < sparse_dim ? "sparse" : "dense", " dimensions (from ",
             self.sizes(), " to ", size, ") on a non-empty sparse tensor is not supported");
  }
  DimVector wanted{sparse::nnz(self)};
  for (size_t d = static_cast<size_t>(sparse_dim); d < size.size(); d++) {
    wanted.push_back(size[d]);
  }
  const NoGradGuard no_grad;
  const Tensor values = p.values().new_zeros(wanted);
  Tensor part = values;
  for (int64_t d = 1; d < part.dim(); d++) {
    part = part.narrow(d, 0, p.values().size(d));
  }
  part.copy_(p.values());
  self.impl()->set_sizes_contiguous(size);
  self.impl()->set_special(
      std::make_unique<SparseTensor>(kSparse, p.first(), Tensor(), values, p.coalesced()));
  return const_cast<Tensor&>(self);
}
Tensor& sparse_resize_and_clear_(const Tensor& self, IntArrayRef size, int64_t sparse_dim,
                                 int64_t dense_dim) {
  sparse::expect_coo("sparse_resize_and_clear_", self);
  RL_CHECK(sparse_dim >= 0 && dense_dim >= 0 &&
               sparse_dim + dense_dim == static_cast<int64_t>(size.size()),
           "number of dimensions must be sparse_dim (", sparse_dim, ") + dense_dim (", dense_dim,
           "), but got ", size.size());
  DimVector wanted{0};
  for (size_t d = static_cast<size_t>(sparse_dim); d < size.size(); d++) {
    wanted.push_back(size[d]);
  }
  const SparseTensor p = sparse_impl(self);
  self.impl()->set_sizes_contiguous(size);
  self.impl()->set_special(std::make_unique<SparseTensor>(
      kSparse, rushlight::empty({sparse_dim, 0}, p.first().options()), Tensor(),
      rushlight::empty(wanted, p.values().options()), true));
  return const_cast<Tensor&>(self);
}
Tensor& resize_as_sparse_(const Tensor& self, const Tensor& the_template) {
  return composite::sparse_resize_(self, the_template.sizes(), sparse::sparse_dims(the_template),
                                   sparse::dense_dims(the_template));
}

Tensor sparse_mask(const Tensor& self, const Tensor& mask) {
  RL_CHECK(is_sparse(mask), "sparse_mask(): expected mask to be sparse");
  RL_CHECK(self.sizes() == mask.sizes(),
           "sparse_mask(): operands have incompatible sizes; self has size ", self.sizes(),
           " but mask has size ", mask.sizes());
  if (!sparse::is_coo(mask)) {
    if (!is_sparse(self)) {
      return sparse::mask_like(self, mask);
    }
    const Tensor ones = sparse::with_values(
        mask, rushlight::ones_like(sparse_impl(mask).values()).to(self.dtype()));
    return sparse::as_layout(composite::sparse_mask(self, sparse::as_coo(ones)), layout_of(mask),
                             mask);
  }
  const SparseTensor& p = sparse_impl(mask);
  if (!is_sparse(self)) {
    return sparse::make_coo(p.first(), sparse::gather_values(self, p.first()), self.sizes(),
                            p.coalesced());
  }
  const Tensor pattern =
      sparse::with_values(mask, rushlight::ones(p.values().sizes(), TensorOptions(self.dtype())));
  const Tensor masked = pattern.mul(sparse::as_coo(self));
  sparse_impl(masked).set_coalesced(p.coalesced());
  return masked;
}

}  // namespace composite

}  // namespace rushlight
