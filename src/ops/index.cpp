// Indexing above the kernels: contracts, what index tensors mean, composites and derivatives.
#include <algorithm>
#include <limits>

#include "generated/kernels.h"
#include "ops/derivatives.h"

namespace rushlight {

namespace {

using Indices = std::vector<std::optional<Tensor>>;

Tensor expand_raw(const Tensor& t, IntArrayRef sizes) {
  return t.sizes() == sizes ? t : make_view(t, views::expand(t, sizes, false));
}

void check_index_tensor(const char* op, const Tensor& index) {
  RL_CHECK(index.dtype() == kInt32 || index.dtype() == kInt64, op,
           "(): Expected dtype int32/int64 for index");
}

bool is_mask(const Tensor& t) { return t.dtype() == kBool || t.dtype() == kUInt8; }

// Turns what a caller may pass as indices into what kernels take: one entry per dimension of
// `self`, each nothing or an int64 tensor, all of one shape. Returns that shape.
DimVector normalize_indices(const Tensor& self, Indices& indices) {
  Indices plain;
  for (const std::optional<Tensor>& t : indices) {
    if (!t.has_value() || !t->defined()) {
      plain.emplace_back();
      continue;
    }
    RL_CHECK_INDEX(is_mask(*t) || t->dtype() == kInt32 || t->dtype() == kInt64,
                   "tensors used as indices must be long, int, byte or bool tensors");
    if (!is_mask(*t)) {
      plain.emplace_back(cast_raw(*t, kInt64));
      continue;
    }
    // A mask stands for the indices of its true elements, one tensor per dimension.
    const auto first = static_cast<int64_t>(plain.size());
    RL_CHECK_INDEX(first + t->dim() <= self.dim(), "too many indices for tensor of dimension ",
                   self.dim());
    for (int64_t d = 0; d < t->dim(); d++) {
      RL_CHECK_INDEX(t->sizes()[d] == self.sizes()[first + d], "The shape of the mask ", t->sizes(),
                     " at index ", d, " does not match the shape of the indexed tensor ",
                     self.sizes(), " at index ", first + d);
    }
    const NoGradGuard no_grad;
    const Tensor places = rushlight::nonzero(*t);
    for (int64_t d = 0; d < t->dim(); d++) {
      plain.emplace_back(make_view(places, {{places.sizes()[0]},
                                            {places.strides()[0]},
                                            places.storage_offset() + d * places.strides()[1]}));
    }
  }
  RL_CHECK_INDEX(static_cast<int64_t>(plain.size()) <= self.dim(),
                 "too many indices for tensor of dimension ", self.dim());
  plain.resize(self.dim());
  DimVector common;
  for (const std::optional<Tensor>& t : plain) {
    if (t.has_value()) {
      try {
        common = broadcast_sizes(common, t->sizes());
      } catch (const Error&) {
        std::string shapes;
        for (const std::optional<Tensor>& u : plain) {
          if (u.has_value()) {
            shapes += str(shapes.empty() ? "" : ", ", u->sizes());
          }
        }
        throw IndexError(
            str("shape mismatch: indexing tensors could not be broadcast together with shapes ",
                shapes));
      }
    }
  }
  for (std::optional<Tensor>& t : plain) {
    if (t.has_value()) {
      t = expand_raw(*t, common);
    }
  }
  indices = std::move(plain);
  return common;
}

// The indexed dimensions give way to the indices' shape: where they stand if they are neighbours,
// else in front.
DimVector indexed_sizes(const Tensor& self, const Indices& indices, IntArrayRef common) {
  int64_t first = -1;
  int64_t last = -1;
  bool together = true;
  for (int64_t d = 0; d < self.dim(); d++) {
    if (indices[d].has_value()) {
      together &= last < 0 || last == d - 1;
      first = first < 0 ? d : first;
      last = d;
    }
  }
  const int64_t place = together && first > 0 ? first : 0;
  DimVector sizes;
  for (int64_t d = 0; d < self.dim(); d++) {
    if (d == place) {
      for (int64_t s : common) {
        sizes.push_back(s);
      }
    }
    if (!indices[d].has_value()) {
      sizes.push_back(self.sizes()[d]);
    }
  }
  return sizes;
}

void check_vector(const char* op, const Tensor& index) {
  RL_CHECK_INDEX(index.dim() <= 1, op, "(): Index is supposed to be a vector");
  RL_CHECK(index.dtype() == kInt32 || index.dtype() == kInt64, op,
           "(): Expected dtype int32 or int64 for index");
}

// index_add and index_copy: `source` has the sizes of self but for `dim`, where it has one slice
// per index.
void check_slices(const char* op, const Tensor& self, int64_t& dim, const Tensor& index,
                  const Tensor& source) {
  dim = wrap_dim(dim, self.dim());
  check_vector(op, index);
  RL_CHECK(self.dtype() == source.dtype(), op, "(): self (", enum_name(self.dtype()),
           ") and source (", enum_name(source.dtype()), ") must have the same scalar type");
  RL_CHECK(source.dim() == self.dim() || (source.dim() <= 1 && self.dim() <= 1), op,
           "(): When source and destination are not scalars, their dimensionality must match. "
           "Source dimensionality (",
           source.dim(), "), destination dimensionality (", self.dim(), ")");
  const int64_t slices = source.dim() == 0 ? 1 : source.sizes()[dim];
  RL_CHECK(index.numel() == slices, op, "(): Number of indices (", index.numel(),
           ") should be equal to source.size(dim): (", slices, "), for dim: ", dim);
  for (int64_t d = 0; d < source.dim() && source.dim() == self.dim(); d++) {
    RL_CHECK(d == dim || source.sizes()[d] == self.sizes()[d],
             "source tensor shape must match self tensor shape, excluding the specified dimension. "
             "Got self.shape = ",
             self.sizes(), " source.shape = ", source.sizes());
  }
}

int64_t dims_at_least_1(const Tensor& t) { return std::max<int64_t>(t.dim(), 1); }
int64_t size_at(const Tensor& t, int64_t d) { return t.dim() == 0 ? 1 : t.sizes()[d]; }

void check_gather(const char* op, const Tensor& self, int64_t& dim, const Tensor& index) {
  dim = wrap_dim(dim, self.dim());
  check_index_tensor(op, index);
  if (index.numel() == 0) {
    return;
  }
  RL_CHECK(dims_at_least_1(index) == dims_at_least_1(self),
           "Index tensor must have the same number of dimensions as ",
           op[0] == 'g' ? "input" : "self", " tensor");
  for (int64_t d = 0; d < dims_at_least_1(index); d++) {
    RL_CHECK(d == dim || size_at(index, d) <= size_at(self, d), "Size does not match at dimension ",
             d, " expected index ", index.sizes(), " to be no larger than self ", self.sizes(),
             " apart from dimension ", dim);
  }
}

void check_scatter(const char* op, const Tensor& self, int64_t& dim, const Tensor& index,
                   const Tensor& src) {
  dim = wrap_dim(dim, self.dim());
  check_index_tensor("scatter", index);
  RL_CHECK(self.dtype() == src.dtype(), op, "(): Expected self.dtype to be equal to src.dtype");
  if (index.numel() == 0) {
    return;
  }
  RL_CHECK(dims_at_least_1(index) == dims_at_least_1(self),
           "Index tensor must have the same number of dimensions as self tensor");
  RL_CHECK(dims_at_least_1(index) == dims_at_least_1(src),
           "Index tensor must have the same number of dimensions as src tensor");
  for (int64_t d = 0; d < dims_at_least_1(index); d++) {
    RL_CHECK(
        (d == dim || size_at(index, d) <= size_at(self, d)) && size_at(index, d) <= size_at(src, d),
        "Expected index ", index.sizes(), " to be no larger than self ", self.sizes(),
        " apart from dimension ", dim, " and to be no larger size than src ", src.sizes());
  }
}

void check_reduce(std::string_view reduce) {
  RL_CHECK(reduce == "add" || reduce == "multiply",
           "reduce argument must be either add or multiply.");
}

}  // namespace

// ---- contracts ----

namespace shape {

OutSpec index(Tensor& self, Indices& indices) {
  const DimVector common = normalize_indices(self, indices);
  return {indexed_sizes(self, indices, common), self.dtype()};
}

void index_put(Tensor& self, Indices& indices, Tensor& values, bool&) {
  RL_CHECK(self.dtype() == values.dtype(),
           "Index put requires the source and destination dtypes match, got ",
           enum_name(self.dtype()), " for the destination and ", enum_name(values.dtype()),
           " for the source.");
  const DimVector common = normalize_indices(self, indices);
  const DimVector sizes = indexed_sizes(self, indices, common);
  // Leading dimensions of size 1 may be more than there are.
  Tensor v = values;
  while (v.dim() > static_cast<int64_t>(sizes.size()) && v.sizes()[0] == 1) {
    v = make_view(v, {v.sizes().slice(1, v.dim() - 1), v.strides().slice(1, v.dim() - 1),
                      v.storage_offset()});
  }
  RL_CHECK(is_expandable_to(v.sizes(), sizes), "shape mismatch: value tensor of shape ",
           values.sizes(), " cannot be broadcast to indexing result of shape ", sizes);
  values = expand_raw(v, sizes);
}

OutSpec index_select(Tensor& self, int64_t& dim, Tensor& index) {
  dim = wrap_dim(dim, self.dim());
  check_vector("index_select", index);
  DimVector sizes = self.sizes();
  if (self.dim() > 0) {
    sizes[dim] = index.numel();
  } else {
    RL_CHECK(index.numel() == 1, "index_select(): Index to scalar can have only 1 value, got ",
             index.numel(), " value(s)");
  }
  return {sizes, self.dtype()};
}

void index_add(Tensor& self, int64_t& dim, Tensor& index, Tensor& source, Scalar&) {
  check_slices("index_add_", self, dim, index, source);
}
void index_copy(Tensor& self, int64_t& dim, Tensor& index, Tensor& source) {
  check_slices("index_copy_", self, dim, index, source);
}
void index_fill_value(Tensor& self, int64_t& dim, Tensor& index, Scalar& value) {
  dim = wrap_dim(dim, self.dim());
  check_vector("index_fill_", index);
  RL_CHECK(!value.is_complex() || self.is_complex(),
           "index_fill_(): Converting complex Scalar to non-complex type is not supported");
}

OutSpec gather(Tensor& self, int64_t& dim, Tensor& index, bool&) {
  check_gather("gather", self, dim, index);
  return {index.sizes(), self.dtype()};
}
void scatter_src(Tensor& self, int64_t& dim, Tensor& index, Tensor& src) {
  check_scatter("scatter", self, dim, index, src);
}
void scatter_value(Tensor& self, int64_t& dim, Tensor& index, Scalar&) {
  check_gather("scatter", self, dim, index);
}
void scatter_src_reduce(Tensor& self, int64_t& dim, Tensor& index, Tensor& src,
                        std::string& reduce) {
  check_reduce(reduce);
  check_scatter("scatter", self, dim, index, src);
}
void scatter_value_reduce(Tensor& self, int64_t& dim, Tensor& index, Scalar&, std::string& reduce) {
  check_reduce(reduce);
  check_gather("scatter", self, dim, index);
}
void scatter_add(Tensor& self, int64_t& dim, Tensor& index, Tensor& src) {
  check_scatter("scatter", self, dim, index, src);
}
void scatter_reduce(Tensor& self, int64_t& dim, Tensor& index, Tensor& src, std::string& reduce,
                    bool&) {
  RL_CHECK(reduce == "sum" || reduce == "prod" || reduce == "mean" || reduce == "amax" ||
               reduce == "amin",
           "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce, ".");
  RL_CHECK(!self.is_complex() || reduce[0] != 'a',
           "scatter_reduce(): amax and amin do not take complex numbers");
  check_scatter("scatter", self, dim, index, src);
}

OutSpec take(Tensor& self, Tensor& index) {
  RL_CHECK(index.dtype() == kInt64, "take(): Expected a long tensor for index, but got ",
           enum_name(index.dtype()));
  RL_CHECK_INDEX(self.numel() != 0 || index.numel() == 0,
                 "take(): tried to take from an empty tensor");
  return {index.sizes(), self.dtype()};
}
void put(Tensor& self, Tensor& index, Tensor& source, bool&) {
  RL_CHECK(index.dtype() == kInt64, "put_(): Expected a long tensor for index, but got ",
           enum_name(index.dtype()));
  RL_CHECK(self.dtype() == source.dtype(),
           "put_(): self and source expected to have the same dtype, but got self.dtype = ",
           enum_name(self.dtype()), " and source.dtype = ", enum_name(source.dtype()));
  RL_CHECK(index.numel() == source.numel(),
           "put_(): Expected source and index to have the same number of elements, but got "
           "source.numel() = ",
           source.numel(), ", index.numel() = ", index.numel());
}

void masked_fill_value(Tensor& self, Tensor& mask, Scalar& value) {
  RL_CHECK(mask.dtype() == kBool,
           "masked_fill_ only supports boolean masks, but got mask with dtype ",
           dtype_info(mask.dtype()).name);
  RL_CHECK(!value.is_complex() || self.is_complex(), "value cannot be converted to type ",
           enum_name(self.dtype()), " without overflow");
  self = expand_raw(self, broadcast_sizes(self.sizes(), mask.sizes()));
}
void masked_scatter(Tensor& self, Tensor& mask, Tensor& source) {
  RL_CHECK(mask.dtype() == kBool,
           "masked_scatter_ only supports boolean masks, but got mask with dtype ",
           dtype_info(mask.dtype()).name);
  RL_CHECK(self.dtype() == source.dtype(),
           "masked_scatter: expected self and source to have same dtypes but got ",
           enum_name(self.dtype()), " and ", enum_name(source.dtype()));
  self = expand_raw(self, broadcast_sizes(self.sizes(), mask.sizes()));
}

OutSpec cat(std::vector<Tensor>& tensors, int64_t& dim) {
  RL_CHECK_VALUE(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  for (size_t i = 0; i < tensors.size(); i++) {
    RL_CHECK(tensors[i].dim() > 0, "zero-dimensional tensor (at position ", i,
             ") cannot be concatenated");
  }
  const ScalarType dtype = result_type(tensors);
  // Empty vectors join anything, as they always did.
  const Tensor model = tensors[0];
  std::vector<Tensor> parts;
  for (Tensor& t : tensors) {
    if (t.dim() != 1 || t.sizes()[0] != 0) {
      parts.push_back(t);
    }
  }
  if (parts.empty()) {
    dim = wrap_dim(dim, model.dim());
    tensors = std::move(parts);
    return {{0}, dtype};
  }
  const Tensor& first = parts[0];
  dim = wrap_dim(dim, first.dim());
  DimVector sizes = first.sizes();
  bool channels_last = true;
  int64_t total = 0;
  for (size_t i = 0; i < parts.size(); i++) {
    const Tensor& t = parts[i];
    RL_CHECK(t.dim() == first.dim(), "Tensors must have same number of dimensions: got ",
             first.dim(), " and ", t.dim());
    for (int64_t d = 0; d < t.dim(); d++) {
      RL_CHECK(d == dim || t.sizes()[d] == sizes[d],
               "Sizes of tensors must match except in dimension ", dim, ". Expected size ",
               sizes[d], " but got size ", t.sizes()[d], " for tensor number ", i, " in the list.");
    }
    channels_last &= t.is_contiguous(MemoryFormat::ChannelsLast) && !t.is_contiguous();
    RL_CHECK(!__builtin_add_overflow(total, t.sizes()[dim], &total),
             "cat(): the result would be too large");
  }
  sizes[dim] = total;
  tensors = std::move(parts);
  OutSpec spec{sizes, dtype};
  spec.format = channels_last ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous;
  return spec;
}

OutSpec flip(Tensor& self, DimVector& dims) {
  dims = wrap_dims(dims, self.dim(), false);
  return {self.sizes(), self.dtype()};
}
OutSpec tril(Tensor& self, int64_t&) {
  RL_CHECK(self.dim() >= 2, "tril: input tensor must have at least 2 dimensions");
  return {self.sizes(), self.dtype()};
}
OutSpec triu(Tensor& self, int64_t&) {
  RL_CHECK(self.dim() >= 2, "triu: input tensor must have at least 2 dimensions");
  return {self.sizes(), self.dtype()};
}

}  // namespace shape

// ---- written over other ops ----

namespace composite {

Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  RL_CHECK(value.dim() == 0,
           "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
           value.dim(), " dimension(s).");
  if (!grad_enabled() || !value.requires_grad()) {
    return self.index_fill(dim, index, value.item());
  }
  DimVector sizes = self.sizes();
  if (!sizes.empty()) {
    sizes[wrap_dim(dim, self.dim())] = index.numel();
  }
  return self.index_copy(dim, index, value.to(self.dtype()).expand(sizes));
}

Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value) {
  RL_CHECK(value.dim() == 0,
           "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
           value.dim(), " dimension(s).");
  if (!grad_enabled() || !value.requires_grad()) {
    return self.masked_fill(mask, value.item());
  }
  return rushlight::where(mask, value.to(self.dtype()), self);
}

Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  if (!dim.has_value()) {
    return self.reshape({-1}).gather(0, indices.reshape({-1}));
  }
  RL_CHECK(self.dim() == indices.dim(),
           "torch.take_along_dim(): input and indices should have the same number of "
           "dimensions, but got ",
           self.dim(), " dimensions for input, and ", indices.dim(), " dimensions for indices");
  const int64_t d = wrap_dim(*dim, self.dim());
  DimVector self_sizes = self.sizes();
  DimVector index_sizes = indices.sizes();
  if (self.dim() > 0) {
    self_sizes[d] = 1;
    index_sizes[d] = 1;
  }
  const DimVector common = broadcast_sizes(self_sizes, index_sizes);
  DimVector wide_self = common;
  DimVector wide_index = common;
  if (self.dim() > 0) {
    wide_self[d] = self.size(d);
    wide_index[d] = indices.size(d);
  }
  return self.expand(wide_self).gather(d, indices.expand(wide_index));
}

std::vector<Tensor> nonzero_numpy(const Tensor& self) {
  return rushlight::nonzero(self.dim() == 0 ? self.unsqueeze(0) : self).unbind(1);
}
Tensor argwhere(const Tensor& self) { return rushlight::nonzero(self); }
std::vector<Tensor> where_single(const Tensor& condition) {
  return composite::nonzero_numpy(condition);
}

Tensor concat(TensorList tensors, int64_t dim) { return rushlight::cat(tensors, dim); }
Tensor concatenate(TensorList tensors, int64_t dim) { return rushlight::cat(tensors, dim); }

Tensor stack(TensorList tensors, int64_t dim) {
  RL_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  const int64_t at = wrap_dim(dim, tensors[0].dim() + 1);
  std::vector<Tensor> parts;
  parts.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); i++) {
    RL_CHECK(tensors[i].sizes() == tensors[0].sizes(),
             "stack expects each tensor to be equal size, but got ", tensors[0].sizes(),
             " at entry 0 and ", tensors[i].sizes(), " at entry ", i);
    parts.push_back(tensors[i].unsqueeze(at));
  }
  return rushlight::cat(parts, at);
}

Tensor hstack(TensorList tensors) {
  RL_CHECK(!tensors.empty(), "hstack expects a non-empty TensorList");
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) {
    parts.push_back(rushlight::atleast_1d(t));
  }
  return rushlight::cat(parts, parts[0].dim() == 1 ? 0 : 1);
}

Tensor vstack(TensorList tensors) {
  RL_CHECK(!tensors.empty(), "vstack expects a non-empty TensorList");
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) {
    parts.push_back(rushlight::atleast_2d(t));
  }
  return rushlight::cat(parts, 0);
}
Tensor row_stack(TensorList tensors) { return composite::vstack(tensors); }

Tensor column_stack(TensorList tensors) {
  RL_CHECK(!tensors.empty(), "column_stack expects a non-empty TensorList");
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) {
    parts.push_back(t.dim() <= 1 ? t.reshape({t.numel(), 1}) : t);
  }
  return rushlight::cat(parts, 1);
}

Tensor dstack(TensorList tensors) {
  RL_CHECK(!tensors.empty(), "dstack expects a non-empty TensorList");
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) {
    parts.push_back(rushlight::atleast_3d(t));
  }
  return rushlight::cat(parts, 2);
}

std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing) {
  RL_CHECK(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  RL_CHECK(indexing == "ij" || indexing == "xy",
           "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ", indexing);
  const size_t n = tensors.size();
  DimVector sizes;
  for (const Tensor& t : tensors) {
    RL_CHECK(t.dim() <= 1,
             "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: ", t.toString());
    RL_CHECK(t.dtype() == tensors[0].dtype(),
             "torch.meshgrid expects all tensors to have the same dtype");
    RL_CHECK(t.device() == tensors[0].device(),
             "torch.meshgrid expects all tensors to have the same device");
    sizes.push_back(t.numel());
  }
  const bool swap = indexing == "xy" && n >= 2;
  if (swap) {
    std::swap(sizes[0], sizes[1]);
  }
  std::vector<Tensor> grids;
  for (size_t i = 0; i < n; i++) {
    DimVector view(n, 1);
    const size_t axis = swap && i < 2 ? 1 - i : i;
    view[axis] = tensors[i].numel();
    grids.push_back(tensors[i].reshape(view).expand(sizes));
  }
  return grids;
}

Tensor fliplr(const Tensor& self) {
  RL_CHECK(self.dim() >= 2, "Input must be >= 2-d.");
  return self.flip({1});
}
Tensor flipud(const Tensor& self) {
  RL_CHECK(self.dim() >= 1, "Input must be >= 1-d.");
  return self.flip({0});
}

Tensor rot90(const Tensor& self, int64_t k, IntArrayRef dims) {
  RL_CHECK(dims.size() == 2, "expected total rotation dims == 2, but got dims = ", dims.size());
  RL_CHECK(self.dim() >= 2, "expected total dims >= 2, but got total dims = ", self.dim());
  const int64_t a = wrap_dim(dims[0], self.dim());
  const int64_t b = wrap_dim(dims[1], self.dim());
  RL_CHECK(a != b, "expected rotation dims to be different, but got dim0 = ", dims[0],
           " and dim1 = ", dims[1]);
  switch ((k % 4 + 4) % 4) {
    case 1:
      return self.flip({b}).transpose(a, b);
    case 2:
      return self.flip({a, b});
    case 3:
      return self.flip({a}).transpose(a, b);
    default:
      return self.clone();
  }
}

Tensor roll(const Tensor& self, IntArrayRef shifts, IntArrayRef dims) {
  if (dims.empty() && shifts.size() == 1) {
    return self.reshape({-1}).roll(shifts, {0}).reshape(self.sizes());
  }
  RL_CHECK(!shifts.empty(), "`shifts` required");
  RL_CHECK(shifts.size() == dims.size(),
           "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  Tensor result = self;
  bool moved = false;
  for (size_t i = 0; i < dims.size(); i++) {
    const int64_t d = wrap_dim(dims[i], self.dim());
    const int64_t n = self.dim() == 0 ? 1 : self.size(d);
    const int64_t shift = n == 0 ? 0 : (shifts[i] % n + n) % n;
    if (shift != 0) {
      result =
          rushlight::cat({result.narrow(d, n - shift, shift), result.narrow(d, 0, n - shift)}, d);
      moved = true;
    }
  }
  return moved ? result : self.clone();
}

Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  RL_CHECK(self.dim() >= 1, "diag_embed(): expected a tensor with at least 1 dimension");
  const int64_t ndim = self.dim() + 1;
  const int64_t a = wrap_dim(dim1, ndim);
  const int64_t b = wrap_dim(dim2, ndim);
  RL_CHECK(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  DimVector sizes = self.sizes().slice(0, self.dim() - 1);
  int64_t length = 0;
  RL_CHECK(offset != std::numeric_limits<int64_t>::min() &&
               !__builtin_add_overflow(self.size(-1), std::abs(offset), &length),
           "diag_embed(): a diagonal of ", self.size(-1), " elements at offset ", offset,
           " overflows the size of a dimension");
  sizes.insert(std::min(a, b), length);
  sizes.insert(std::max(a, b), length);
  const Tensor result = rushlight::zeros(sizes, self.options());
  result.diagonal(offset, a, b).copy_(self);
  return result;
}

Tensor diag(const Tensor& self, int64_t diagonal) {
  RL_CHECK(self.dim() == 1 || self.dim() == 2, "diag(): Supports 1D or 2D tensors. Got ",
           self.dim(), "D");
  return self.dim() == 1 ? rushlight::diag_embed(self, diagonal) : self.diagonal(diagonal).clone();
}

Tensor diagflat(const Tensor& self, int64_t offset) {
  return rushlight::diag_embed(self.reshape({-1}), offset);
}

Tensor repeat(const Tensor& self, IntArrayRef repeats) {
  const auto n = static_cast<int64_t>(repeats.size());
  RL_CHECK(
      n >= self.dim(),
      "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  const int64_t added = n - self.dim();
  // Each dimension becomes [repeat, size], the first of them expanded.
  DimVector split;
  DimVector wide;
  DimVector sizes;
  for (int64_t d = 0; d < n; d++) {
    const int64_t size = d < added ? 1 : self.sizes()[d - added];
    RL_CHECK(repeats[d] >= 0, "Trying to create tensor with negative dimension ", repeats[d] * size,
             ": ", repeats);
    split.push_back(1);
    split.push_back(size);
    wide.push_back(repeats[d]);
    wide.push_back(size);
    int64_t total = 0;
    RL_CHECK(!__builtin_mul_overflow(repeats[d], size, &total),
             "repeat(): the result would be too large");
    sizes.push_back(total);
  }
  return self.reshape(split).expand(wide).clone(MemoryFormat::Contiguous).reshape(sizes);
}

Tensor tile(const Tensor& self, IntArrayRef dims) {
  DimVector repeats = dims;
  while (static_cast<int64_t>(repeats.size()) < self.dim()) {
    repeats.insert(0, 1);
  }
  return self.repeat(repeats);
}

Tensor repeat_interleave_self_int(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                                  std::optional<int64_t> output_size) {
  RL_CHECK(repeats >= 0, "repeats can not be negative");
  const Tensor t = dim.has_value() ? self : self.reshape({-1});
  const int64_t d = wrap_dim(dim.value_or(0), t.dim());
  const Tensor source = t.dim() == 0 ? t.reshape({1}) : t;
  RL_CHECK(!output_size.has_value() || *output_size == source.size(d) * repeats,
           "repeat_interleave: Invalid output_size, expected ", source.size(d) * repeats,
           " but got ", output_size.value_or(0));
  DimVector wide = source.sizes();
  wide.insert(d + 1, repeats);
  DimVector sizes = source.sizes();
  RL_CHECK(!__builtin_mul_overflow(sizes[d], repeats, &sizes[d]),
           "repeat_interleave(): the result would be too large");
  return source.unsqueeze(d + 1).expand(wide).clone(MemoryFormat::Contiguous).reshape(sizes);
}

Tensor repeat_interleave_Tensor(const Tensor& repeats, std::optional<int64_t> output_size) {
  RL_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  RL_CHECK(repeats.dtype() == kInt64 || repeats.dtype() == kInt32,
           "repeats has to be Long or Int tensor");
  RL_CHECK(repeats.numel() == 0 || repeats.min().item<int64_t>() >= 0,
           "repeats can not be negative");
  const Tensor ends = repeats.cumsum(0);
  const int64_t total = repeats.numel() == 0 ? 0 : ends.select(0, -1).item<int64_t>();
  RL_CHECK(!output_size.has_value() || *output_size == total,
           "allocated size does not match required size");
  // Position p belongs to the first entry whose end lies beyond it.
  return rushlight::searchsorted(ends, rushlight::arange(Scalar(total), ends.options()), false,
                                 true)
      .to(repeats.dtype());
}

Tensor repeat_interleave_self_Tensor(const Tensor& self, const Tensor& repeats,
                                     std::optional<int64_t> dim,
                                     std::optional<int64_t> output_size) {
  const Tensor t = dim.has_value() ? self : self.reshape({-1});
  const int64_t d = wrap_dim(dim.value_or(0), t.dim());
  const Tensor source = t.dim() == 0 ? t.reshape({1}) : t;
  Tensor counts = repeats;
  if (repeats.dim() == 0 || (repeats.dim() == 1 && repeats.numel() == 1)) {
    counts = repeats.reshape({1}).expand({source.size(d)});
  }
  RL_CHECK(counts.dim() == 1, "repeats must be 0-dim or 1-dim tensor");
  RL_CHECK(counts.size(0) == source.size(d),
           "repeats must have the same size as input along dim, but got "
           "repeats.size(0) = ",
           counts.size(0), " and input.size(", d, ") = ", source.size(d));
  return source.index_select(d, rushlight::repeat_interleave(counts, output_size));
}

Tensor one_hot(const Tensor& self, int64_t num_classes) {
  RL_CHECK(self.dtype() == kInt64,
           "one_hot is only applicable to index tensor of type LongTensor.");
  if (self.numel() == 0) {
    RL_CHECK(num_classes > 0, "Can not infer total number of classes from empty tensor.");
  } else {
    RL_CHECK(self.min().item<int64_t>() >= 0, "Class values must be non-negative.");
    const int64_t most = self.max().item<int64_t>();
    if (num_classes == -1) {
      num_classes = most + 1;
    } else {
      RL_CHECK(num_classes > 0, "num_classes should be positive");
      RL_CHECK(num_classes > most, "Class values must be smaller than num_classes.");
    }
  }
  DimVector sizes = self.sizes();
  sizes.push_back(num_classes);
  return rushlight::zeros(sizes, self.options()).scatter_(-1, self.unsqueeze(-1), Scalar(1));
}

}  // namespace composite

// ---- derivatives ----

Tensor index_backward(const Tensor& grad, IntArrayRef sizes, const Indices& indices) {
  return rushlight::zeros(sizes, grad.options()).index_put_(indices, grad, true);
}

Tensor index_select_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim,
                             const Tensor& index) {
  return rushlight::zeros(sizes, grad.options()).index_add(dim, index, grad);
}

Tensor index_select_like(const Tensor& grad, int64_t dim, const Tensor& index, IntArrayRef sizes) {
  return grad.index_select(dim, index).reshape(sizes);
}

namespace {

// Zeros of a size with `t` in the corner: an index may reach only a part of a source.
Tensor pad_to(const Tensor& t, IntArrayRef sizes) {
  if (t.sizes() == sizes) {
    return t;
  }
  const Tensor full = rushlight::zeros(sizes, t.options());
  Tensor part = full;
  for (int64_t d = 0; d < t.dim() && t.dim() == full.dim(); d++) {
    part = part.narrow(d, 0, t.size(d));
  }
  part.copy_(t.reshape(part.sizes()));
  return full;
}

}  // namespace

Tensor scatter_source_backward(const Tensor& grad, int64_t dim, const Tensor& index,
                               IntArrayRef sizes) {
  return pad_to(grad.gather(dim, index), sizes);
}

std::tuple<Tensor, Tensor> scatter_reduce_backward(const Tensor& grad, const Tensor& self,
                                                   int64_t dim, const Tensor& index,
                                                   const Tensor& src, std::string_view reduce,
                                                   bool include_self, const Tensor& result) {
  // The part of src that the index reaches.
  Tensor reached = src;
  for (int64_t d = 0; d < index.dim() && src.dim() == index.dim(); d++) {
    reached = reached.narrow(d, 0, index.size(d));
  }
  Tensor for_self;
  Tensor for_src;
  if (reduce == "sum") {
    for_self = grad;
    for_src = grad.gather(dim, index);
  } else if (reduce == "mean") {
    Tensor count = include_self ? rushlight::ones_like(grad) : rushlight::zeros_like(grad);
    count = count.scatter_add(dim, index, rushlight::ones(index.sizes(), grad.options()))
                .clamp_min(Scalar(1));
    for_self = grad.div(count);
    for_src = for_self.gather(dim, index);
  } else if (reduce == "prod") {
    RL_CHECK(!self.eq(Scalar(0)).any().item<bool>() && !reached.eq(Scalar(0)).any().item<bool>(),
             "scatter_reduce(): the derivative of prod is not defined here for zeros");
    for_self = grad.mul(result).div(self);
    for_src = grad.mul(result).gather(dim, index).div(reached);
  } else {
    const Tensor self_is = self.eq(result).to(grad.dtype());
    const Tensor src_is = reached.eq(result.gather(dim, index)).to(grad.dtype());
    Tensor count = include_self ? self_is : rushlight::zeros_like(self_is);
    count = count.scatter_add(dim, index, src_is).clamp_min(Scalar(1));
    const Tensor share = grad.div(count);
    for_self = share.mul(self_is);
    for_src = share.gather(dim, index).mul(src_is);
  }
  if (!include_self) {
    for_self = for_self.scatter(dim, index, Scalar(0));
  }
  return {for_self, pad_to(for_src, src.sizes())};
}

Tensor masked_select_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& mask) {
  const DimVector common = broadcast_sizes(sizes, mask.sizes());
  return rushlight::zeros(common, grad.options()).masked_scatter(mask, grad);
}

Tensor masked_scatter_backward(const Tensor& grad, const Tensor& mask, IntArrayRef sizes) {
  const Tensor used = grad.masked_select(mask);
  const Tensor rest = rushlight::zeros({product(sizes) - used.numel()}, grad.options());
  return rushlight::cat({used, rest}, 0).reshape(sizes);
}

std::vector<Tensor> cat_backward(const Tensor& grad, const std::vector<TensorMeta>& tensors,
                                 int64_t dim) {
  std::vector<Tensor> parts;
  int64_t at = 0;
  for (const TensorMeta& t : tensors) {
    if (t.dim() == 1 && t.size(0) == 0) {
      parts.push_back(rushlight::zeros({0}, grad.options()));
      continue;
    }
    const int64_t length = t.size(wrap_dim(dim, t.dim()));
    parts.push_back(grad.narrow(dim, at, length));
    at += length;
  }
  return parts;
}

}  // namespace rushlight
