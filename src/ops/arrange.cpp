// Combinations, splits, reductions into slices and fills, over other ops.
#include <algorithm>
#include <cmath>

#include <rushlight/batching.h>

#include "generated/contracts.h"
#include "ops/derivatives.h"
#include "ops/integers_in.h"

namespace rushlight::composite {

// ---- selections and splits ----

namespace {

constexpr int64_t max_chosen = 1 << 20;

// How many ways there are to choose r of n.
int64_t binomial(int64_t n, int64_t r) {
  int64_t ways = 1;
  for (int64_t i = 1; i <= std::min(r, n - r); i++) {
    RL_CHECK(!__builtin_mul_overflow(ways, n - i + 1, &ways),
             "combinations: there are too many of ", r, " out of ", n);
    ways /= i;
  }
  return ways;
}

}  // namespace

Tensor combinations(const Tensor& self, int64_t r, bool with_replacement) {
  RL_CHECK(self.dim() == 1, "Expect a 1D vector, but got shape ", self.sizes());
  RL_CHECK(r >= 0, "Expect a non-negative number, but got ", r);
  if (r == 0) {
    return rushlight::empty({0}, self.options());
  }
  const int64_t n = self.numel();
  if (with_replacement ? n == 0 : r > n) {
    return self.narrow(0, 0, 0).unsqueeze(1).repeat({1, r});
  }
  RL_CHECK(r <= max_chosen, "combinations: expected r of at most ", max_chosen, ", got ", r);
  const int64_t rows = binomial(with_replacement ? n + r - 1 : n, r);
  const Tensor places = make_empty({rows, r}, kInt64, kCPU);
  int64_t* to = places.data<int64_t>();
  std::vector<int64_t> chosen(static_cast<size_t>(r));
  const int64_t step = with_replacement ? 0 : 1;
  // chosen[i] rises like the digits of a number, from the last place.
  for (int64_t i = 0; i < r; i++) {
    chosen[static_cast<size_t>(i)] = i * step;
  }
  for (int64_t row = 0; row < rows; row++) {
    to = std::copy(chosen.begin(), chosen.end(), to);
    int64_t place = r - 1;
    while (place >= 0 && chosen[static_cast<size_t>(place)] == n - 1 - (r - 1 - place) * step) {
      place--;
    }
    if (place >= 0) {
      const int64_t next = chosen[static_cast<size_t>(place)] + 1;
      for (int64_t i = place; i < r; i++) {
        chosen[static_cast<size_t>(i)] = next + (i - place) * step;
      }
    }
  }
  return self.index_select(0, places.flatten().to(self.device())).reshape({rows, r});
}

Tensor cartesian_prod(TensorList tensors) {
  for (const Tensor& t : tensors) {
    RL_CHECK(t.dim() == 1, "Expect a 1D vector, but got shape ", t.sizes());
  }
  if (tensors.size() == 1) {
    return tensors[0];
  }
  std::vector<Tensor> columns;
  for (const Tensor& grid : rushlight::meshgrid(tensors, "ij")) {
    columns.push_back(grid.flatten());
  }
  return rushlight::stack(columns, 1);
}

Tensor block_diag(TensorList tensors) {
  int64_t width = 0;
  std::vector<Tensor> blocks = rushlight::atleast_2d(tensors);
  for (size_t i = 0; i < blocks.size(); i++) {
    RL_CHECK(blocks[i].dim() == 2,
             "block_diag: matrices, vectors and numbers are expected, but tensor ", i, " has ",
             blocks[i].dim(), " dimensions");
    width += blocks[i].size(1);
  }
  int64_t before = 0;
  for (Tensor& block : blocks) {
    const int64_t after = width - before - block.size(1);
    const int64_t next = before + block.size(1);
    block = rushlight::constant_pad_nd(block, {before, after});
    before = next;
  }
  return blocks.empty() ? rushlight::empty({1, 0}) : cat(blocks);
}

std::vector<Tensor> unravel_index(const Tensor& indices, IntArrayRef shape) {
  RL_CHECK_TYPE(is_integral(indices.dtype()) && indices.dtype() != kBool,
                "expected 'indices' to be integer dtype, but got ", enum_name(indices.dtype()));
  RL_CHECK_VALUE(std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size >= 0; }),
                 "'shape' cannot have negative values, but got ", shape);
  std::vector<Tensor> places(shape.size());
  Tensor rest = indices;
  for (size_t i = shape.size(); i-- > 0;) {
    places[i] = rest.remainder(shape[i]);
    rest = rest.div(shape[i], "floor");
  }
  return places;
}

Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  RL_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  const TensorOptions options = TensorOptions(kInt64).device(self.device());
  if (self.is_meta()) {
    return rushlight::empty({size, self.dim()}, options);
  }
  const Tensor found = self.nonzero();
  if (found.size(0) >= size) {
    return found.narrow(0, 0, size).clone();
  }
  return cat({found, rushlight::full({size - found.size(0), self.dim()}, fill_value, options)});
}

namespace {

// The index of index_reduce as scatter_reduce takes it: for every element of source.
Tensor expand_index(const Tensor& self, int64_t d, const Tensor& index, const Tensor& source,
                    std::string_view reduce) {
  RL_CHECK(
      reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
      "index_reduce(): Expected reduce to be one of 'prod', 'mean', 'amax' and 'amin', but got '",
      reduce, "'");
  RL_CHECK(
      index.dtype() == kInt32 || index.dtype() == kInt64,
      "index_reduce_(): Expected dtype int32/int64 for index but got: ", enum_name(index.dtype()));
  RL_CHECK_INDEX(index.dim() <= 1, "index_reduce_(): Index is supposed to be a vector, not of ",
                 index.dim(), " dimensions");
  RL_CHECK(self.dtype() == source.dtype(), "index_reduce_(): self (", enum_name(self.dtype()),
           ") and source (", enum_name(source.dtype()), ") must have one dtype");
  RL_CHECK(source.dim() == self.dim() || source.dim() == 0, "index_reduce_(): source has ",
           source.dim(), " dimensions, self ", self.dim());
  if (self.is_complex() || self.dtype() == kBool) {
    dtype_not_implemented("index_func_", self.dtype());
  }
  RL_CHECK(index.numel() == (source.dim() == 0 ? 1 : source.size(d)),
           "index_reduce_(): Number of indices (", index.numel(),
           ") and of slices of source along dimension ", d, " (",
           source.dim() == 0 ? 1 : source.size(d), ") should be equal");
  for (int64_t i = 0; i < source.dim(); i++) {
    RL_CHECK(i == d || source.size(i) == self.size(i), "index_reduce_(): sizes of source ",
             source.sizes(), " and self ", self.sizes(), " must match except in dim ", d);
  }
  if (!index.is_meta() && index.numel() > 0) {
    const int64_t n = self.dim() == 0 ? 1 : self.size(d);
    RL_CHECK_INDEX(batching::all_of(index).min().item<int64_t>() >= 0 &&
                       batching::all_of(index).max().item<int64_t>() < n,
                   "index out of range in self");
  }
  if (source.dim() == 0) {
    return index.reshape({}).to(kInt64);
  }
  DimVector sizes(static_cast<size_t>(source.dim()), 1);
  sizes[static_cast<size_t>(d)] = index.numel();
  return index.to(kInt64).reshape(sizes).expand(source.sizes());
}

}  // namespace

Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                    std::string_view reduce, bool include_self) {
  const int64_t d = wrap_dim(dim, self.dim());
  const Tensor places = expand_index(self, d, index, source, reduce);
  return self.scatter_reduce(d, places, source, reduce, include_self);
}

Tensor& index_reduce_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                      std::string_view reduce, bool include_self) {
  const int64_t d = wrap_dim(dim, self.dim());
  const Tensor places = expand_index(self, d, index, source, reduce);
  return self.scatter_reduce_(d, places, source, reduce, include_self);
}

namespace {

int64_t split_dim(const char* name, const Tensor& self, int64_t least, int64_t dim) {
  RL_CHECK(self.dim() >= least, name, " requires a tensor with at least ", least,
           " dimensions, but this one has ", self.dim());
  return dim;
}

std::vector<Tensor> equal_split(const char* name, const Tensor& self, int64_t dim,
                                int64_t sections) {
  RL_CHECK(sections > 0 && self.size(dim) % sections == 0, name, ": dimension ", dim, " of size ",
           self.size(dim), " is not divisible by ", sections,
           ": pass the indices to cut at for unequal pieces");
  return self.tensor_split(sections, dim);
}

}  // namespace

std::vector<Tensor> hsplit_int(const Tensor& self, int64_t sections) {
  split_dim("hsplit", self, 1, 0);
  return equal_split("hsplit", self, self.dim() == 1 ? 0 : 1, sections);
}
std::vector<Tensor> hsplit_array(const Tensor& self, IntArrayRef indices) {
  split_dim("hsplit", self, 1, 0);
  return self.tensor_split(indices, self.dim() == 1 ? 0 : 1);
}
std::vector<Tensor> vsplit_int(const Tensor& self, int64_t sections) {
  return equal_split("vsplit", self, split_dim("vsplit", self, 2, 0), sections);
}
std::vector<Tensor> vsplit_array(const Tensor& self, IntArrayRef indices) {
  return self.tensor_split(indices, split_dim("vsplit", self, 2, 0));
}
std::vector<Tensor> dsplit_int(const Tensor& self, int64_t sections) {
  return equal_split("dsplit", self, split_dim("dsplit", self, 3, 2), sections);
}
std::vector<Tensor> dsplit_array(const Tensor& self, IntArrayRef indices) {
  return self.tensor_split(indices, split_dim("dsplit", self, 3, 2));
}

std::vector<Tensor> tensor_split_tensor_indices_or_sections(
    const Tensor& self, const Tensor& tensor_indices_or_sections, int64_t dim) {
  const Tensor& where_to = tensor_indices_or_sections;
  RL_CHECK(where_to.is_cpu(),
           "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on ",
           where_to.device());
  RL_CHECK(where_to.dtype() == kInt64,
           "tensor_split expected tensor_indices_or_sections to have dtype of long, but got ",
           enum_name(where_to.dtype()));
  RL_CHECK(where_to.dim() <= 1,
           "tensor_split expected tensor_indices_or_sections of 0 or 1 dimensions, but got ",
           where_to.dim());
  if (where_to.dim() == 0) {
    return self.tensor_split(where_to.item<int64_t>(), dim);
  }
  return self.tensor_split(integers_in(where_to), dim);
}

Tensor _chunk_cat(TensorList tensors, int64_t dim, int64_t num_chunks) {
  RL_CHECK(!tensors.empty(), "_chunk_cat: expected at least one tensor");
  RL_CHECK(num_chunks > 0, "_chunk_cat: num_chunks has to be positive, got ", num_chunks);
  dim = wrap_dim(dim, tensors[0].dim());
  const auto before = [&](const Tensor& t) {
    return IntArrayRef(t.sizes().data(), static_cast<size_t>(dim));
  };
  std::vector<Tensor> pieces;
  for (const Tensor& t : tensors) {
    RL_CHECK(t.dtype() == tensors[0].dtype(), "_chunk_cat: expected tensors of one dtype, got ",
             t.dtype(), " and ", tensors[0].dtype());
    RL_CHECK(t.numel() > 0, "_chunk_cat: expected tensors with elements, got one of sizes ",
             t.sizes());
    RL_CHECK(t.dim() > dim && before(t) == before(tensors[0]),
             "_chunk_cat: expected tensors of equal sizes before dimension ", dim, ", got ",
             t.sizes(), " and ", tensors[0].sizes());
    const int64_t missing = (num_chunks - t.size(dim) % num_chunks) % num_chunks;
    DimVector pad(static_cast<size_t>(2 * (t.dim() - dim)), 0);
    pad.back() = missing;
    DimVector sizes(before(t));
    sizes.push_back(num_chunks);
    sizes.push_back(-1);
    pieces.push_back((missing == 0 ? t : rushlight::constant_pad_nd(t, pad)).reshape(sizes));
  }
  return rushlight::cat(pieces, dim + 1);
}

namespace {
// Parts on the same memory and in the graph that are no views: writing one touches neither the
// history nor the version of the others.
std::vector<Tensor> detach_versions(std::vector<Tensor> views) {
  for (Tensor& view : views) {
    if (is_special(view) || (forward::active() && forward::has_tangent(view))) {
      continue;
    }
    Tensor part = view.variable_data();
    if (view.requires_grad()) {
      Edge edge = gradient_edge(view);
      AutogradMeta& meta = part.impl()->autograd_or_make();
      meta.grad_fn = std::move(edge.node);
      meta.output_nr = edge.input_nr;
      part.impl()->set_requires_grad_flag(true);
    }
    view = std::move(part);
  }
  return views;
}
}  // namespace

std::vector<Tensor> unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  return detach_versions(self.chunk(chunks, dim));
}
std::vector<Tensor> unsafe_split(const Tensor& self, int64_t split_size, int64_t dim) {
  return detach_versions(self.split(split_size, dim));
}
std::vector<Tensor> unsafe_split_with_sizes(const Tensor& self, IntArrayRef split_sizes,
                                            int64_t dim) {
  return detach_versions(self.split_with_sizes(split_sizes, dim));
}

Tensor fill(const Tensor& self, const Tensor& value) {
  return self.clone().fill_(value);  // a gradient of zeros goes back to self
}

Tensor& fill_diagonal_(const Tensor& self, const Scalar& fill_value, bool wrap) {
  RL_CHECK(self.dim() >= 2, "dimensions must larger than 1");
  const int64_t rows = self.size(0);
  const int64_t cols = self.size(1);
  int64_t step = 0;
  int64_t least = rows;
  for (int64_t d = 0; d < self.dim(); d++) {
    RL_CHECK(
        self.dim() == 2 || self.size(d) == rows,
        "fill_diagonal_: with more than two dimensions all must be equal in length, but they are ",
        self.sizes());
    step += self.stride(d);
    least = std::min(least, self.size(d));
  }
  const int64_t first = self.storage_offset();
  self.as_strided(least, step, first).fill_(fill_value);
  if (wrap && self.dim() == 2 && cols > 0 && rows > cols + 1) {
    // Below the square, after one free row, the diagonal starts again: whole ones, then a part.
    const int64_t period = (cols + 1) * self.stride(0);
    const int64_t whole = (rows - cols) / (cols + 1);
    self.as_strided({whole, cols}, {period, step}, first + period).fill_(fill_value);
    const int64_t row = (whole + 1) * (cols + 1);
    if (row < rows) {
      self.as_strided(rows - row, step, first + row * self.stride(0)).fill_(fill_value);
    }
  }
  return const_cast<Tensor&>(self);
}

// ---- in place ----

Tensor& deg2rad_(const Tensor& self) { return self.mul_(M_PI / 180); }
Tensor& rad2deg_(const Tensor& self) { return self.mul_(180 / M_PI); }
Tensor& logit_(const Tensor& self, std::optional<double> eps) {
  return self.copy_(before_write(self).logit(eps));
}
Tensor& arctan2_(const Tensor& self, const Tensor& other) { return self.atan2_(other); }
Tensor& float_power_(const Tensor& self, const Tensor& exponent) {
  const Tensor value = before_write(self, exponent).float_power(exponent);
  RL_CHECK(self.dtype() == value.dtype(), "float_power_: the result of dtype ",
           enum_name(value.dtype()), " does not fit into a base of dtype ", enum_name(self.dtype()),
           ": use float_power");
  return self.copy_(value);
}

}  // namespace rushlight::composite
