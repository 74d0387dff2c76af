// What indices and values must hold before they are a sparse tensor: RuntimeError otherwise.
#include "ops/sparse/sparse.h"

namespace rushlight::sparse {

namespace {

bool is_all_true(const Tensor& condition) {
  return condition.numel() == 0 || rushlight::all(condition).item<bool>();
}

}  // namespace

Tensor expand_starts(const Tensor& starts, int64_t entries) {
  const Tensor places = count_up(entries, starts);
  const Tensor inner = starts.to(kInt64).slice(-1, 1).contiguous();
  DimVector sizes = inner.sizes();
  sizes[sizes.size() - 1] = entries;
  return rushlight::searchsorted(inner, places.expand(sizes).contiguous(), false, /*right=*/true);
}

void check_coo(const Tensor& indices, const Tensor& values, IntArrayRef sizes, bool coalesced) {
  RL_CHECK(!is_sparse(indices) && !is_sparse(values),
           "expected indices and values to be dense tensors");
  RL_CHECK(indices.dim() == 2, "indices must be sparse_dim x nnz, but got: ", indices.sizes());
  RL_CHECK(indices.dtype() == kInt64, "indices must be an int64 tensor");
  RL_CHECK(values.dim() > 0, "values must have at least one dimension");
  const int64_t n = indices.size(0);
  const auto dims = static_cast<int64_t>(sizes.size());
  RL_CHECK(n + values.dim() - 1 == dims, "number of dimensions must be sparse_dim (", n,
           ") + dense_dim (", values.dim() - 1, "), but got ", dims);
  DimVector wanted{indices.size(1)};
  for (int64_t d = n; d < dims; d++) {
    wanted.push_back(sizes[static_cast<size_t>(d)]);
  }
  RL_CHECK(values.size(0) == indices.size(1),
           "indices and values must have same nnz, but indices have ", indices.size(1),
           " and values ", values.size(0));
  RL_CHECK(values.sizes() == wanted, "values has incorrect size, expected ", wanted, ", got ",
           values.sizes());
  if (indices.numel() == 0 || indices.is_meta()) {
    return;
  }
  const Tensor low = rushlight::amin(indices, {1});
  const Tensor high = rushlight::amax(indices, {1});
  for (int64_t d = 0; d < n; d++) {
    const auto least = low.select(0, d).item<int64_t>();
    const auto most = high.select(0, d).item<int64_t>();
    const int64_t size = sizes[static_cast<size_t>(d)];
    RL_CHECK(least >= 0, "found negative index ", least, " for dim ", d);
    RL_CHECK(most < size, "size is inconsistent with indices: for dim ", d, ", size is ", size,
             " but found index ", most);
  }
  if (coalesced) {
    const Tensor flat = linear(indices, sizes.slice(0, static_cast<size_t>(n)));
    RL_CHECK(flat.size(0) < 2 || rushlight::all(rushlight::diff(flat).gt(0)).item<bool>(),
             "cannot set is_coalesced to true: indices are not in order, or occur twice. "
             "coalesce() makes them so");
  }
}

void check_compressed(Layout layout, const Tensor& compressed, const Tensor& plain,
                      const Tensor& values, IntArrayRef sizes) {
  const char* const first = is_by_column(layout) ? "ccol_indices" : "crow_indices";
  const char* const second = is_by_column(layout) ? "row_indices" : "col_indices";
  const int64_t block = is_blocked(layout) ? 2 : 0;
  const auto dims = static_cast<int64_t>(sizes.size());
  RL_CHECK(compressed.dtype() == plain.dtype() &&
               (compressed.dtype() == kInt64 || compressed.dtype() == kInt32),
           first, " and ", second, " must be an int32 or int64 type, but got: ", compressed.dtype(),
           " and ", plain.dtype());
  RL_CHECK(compressed.dim() >= 1, first, " must have dimensionality >= 1 but got ",
           compressed.dim());
  RL_CHECK(compressed.dim() == plain.dim(), first, " and ", second,
           " dimensionalities must be equal but got ", compressed.dim(), " and ", plain.dim(),
           ", respectively");
  const int64_t batch = compressed.dim() - 1;
  const int64_t dense = values.dim() - batch - 1 - block;
  RL_CHECK(dense >= 0,
           "values must have dimensionality > sum of batch and block dimensionalities (=", batch,
           " + ", block, ") but got ", values.dim());
  RL_CHECK(dims == batch + 2 + dense,
           "tensor dimensionality must be sum of batch, base, and dense dimensionalities (=", batch,
           " + 2 + ", dense, ") but got ", dims);
  for (int64_t d = 0; d < batch; d++) {
    const int64_t n = sizes[static_cast<size_t>(d)];
    RL_CHECK(compressed.size(d) == n && plain.size(d) == n && values.size(d) == n,
             "all batch dimensions of ", first, " (=", compressed.sizes(), "), ", second,
             " (=", plain.sizes(), "), and values (=", values.sizes(),
             ") must be equal to those of the tensor ", sizes);
  }
  const auto b = static_cast<size_t>(batch);
  const int64_t bh = block != 0 ? values.size(batch + 1) : 1;
  const int64_t bw = block != 0 ? values.size(batch + 2) : 1;
  RL_CHECK(bh > 0 && bw > 0 && sizes[b] % bh == 0 && sizes[b + 1] % bw == 0, "tensor shape[", batch,
           "] (=", sizes[b], ") and shape[", batch + 1, "] (=", sizes[b + 1],
           ") must be divisible with blocksize (=", bh, ", ", bw, ") as defined by values shape");
  const int64_t across = is_by_column(layout) ? sizes[b + 1] / bw : sizes[b] / bh;
  const int64_t along = is_by_column(layout) ? sizes[b] / bh : sizes[b + 1] / bw;
  RL_CHECK(compressed.size(-1) == across + 1, first, ".shape[-1] must be equal to the number of ",
           is_by_column(layout) ? "columns" : "rows", " + 1 (=", across + 1, "), but got ",
           compressed.size(-1));
  const int64_t entries = plain.size(-1);
  RL_CHECK(values.size(batch) == entries, "plain_indices (", second,
           ") and values must have equal number of entries, but got ", entries, " and ",
           values.size(batch));
  for (int64_t d = 0; d < dense; d++) {
    RL_CHECK(values.size(batch + 1 + block + d) == sizes[b + 2 + static_cast<size_t>(d)],
             "dense dimensions of values (", values.sizes(), ") and of the tensor (", sizes,
             ") must be equal");
  }
  if (compressed.numel() == 0 || compressed.is_meta()) {
    return;
  }
  const Tensor starts = compressed.to(kInt64);
  RL_CHECK(is_all_true(starts.select(-1, 0).eq(0)), "`", first, "[..., 0] == 0` is not satisfied.");
  RL_CHECK(is_all_true(starts.select(-1, -1).eq(entries)), "`", first,
           "[..., -1] == nnz` is not satisfied.");
  const Tensor steps = rushlight::diff(starts);
  RL_CHECK(is_all_true(steps.ge(0).logical_and(steps.le(along))), "`0 <= ", first, "[..., 1:] - ",
           first, "[..., :-1] <= plain_dim` is not satisfied.");
  RL_CHECK(is_all_true(plain.ge(0).logical_and(plain.lt(along))), "`0 <= ", second,
           " < plain_dim` is not satisfied.");
  if (entries > 1) {
    const Tensor rows = expand_starts(starts, entries);
    const Tensor whole = rows * along + plain.to(kInt64);
    RL_CHECK(is_all_true(rushlight::diff(whole).gt(0)), "`", second, "[..., ", first,
             "[..., i - 1]:", first, "[..., i]] grows for each i` is not satisfied.");
  }
}

}  // namespace rushlight::sparse
