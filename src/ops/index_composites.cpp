// Indexing written over other ops, and the derivatives of the kernels (index.cpp has their
// contracts).
#include <algorithm>
#include <limits>

#include <rushlight/batching.h>

#include "generated/contracts.h"
#include "ops/contracts.h"
#include "ops/derivatives.h"

namespace rushlight {

namespace {

using Indices = std::vector<std::optional<Tensor>>;

}  // namespace

// ---- written over other ops ----

namespace composite {

Tensor segment_reduce(const Tensor& data, std::string_view reduce, const Tensor& lengths,
                      const Tensor& indices, const Tensor& offsets, int64_t axis, bool unsafe,
                      const std::optional<Scalar>& initial) {
  const bool is_mean = reduce == "mean";
  const bool is_max = reduce == "max" || reduce == "amax";
  const bool is_min = reduce == "min" || reduce == "amin";
  const bool is_prod = reduce == "prod";
  RL_CHECK(is_mean || is_max || is_min || is_prod || reduce == "sum",
           "segment_reduce: reduce argument must be either 'sum', 'prod', 'mean', 'amax' or "
           "'amin', but is '",
           reduce, "'");
  RL_CHECK(!indices.defined(),
           "Currently only lengths and offsets are supported for segment_reduce");
  RL_CHECK(lengths.defined() != offsets.defined(),
           "segment_reduce: expected one of lengths and offsets");
  const Tensor& said = lengths.defined() ? lengths : offsets;
  axis = wrap_dim(axis, data.dim());
  check_floating("segment_reduce", data);
  RL_CHECK_TYPE(said.dtype() == kInt32 || said.dtype() == kInt64,
                "segment_reduce: lengths and offsets must be int32 or int64");
  RL_CHECK(said.dim() == axis + 1, "Expected axis to be the last dimension of lengths but got ",
           axis, ".");
  RL_CHECK(data.dim() > 0 && said.sizes().slice(0, static_cast<size_t>(axis)) ==
                                 data.sizes().slice(0, static_cast<size_t>(axis)),
           "segment_reduce: the batches of data, ", data.sizes(), ", and of the segments, ",
           said.sizes(), ", differ");
  const int64_t points = said.size(axis);
  RL_CHECK(lengths.defined() || points > 0, "segment_reduce: offsets must not be empty");
  const int64_t count = lengths.defined() ? points : points - 1;
  const int64_t n = data.size(axis);
  const DimVector batch(said.sizes().slice(0, static_cast<size_t>(axis)));
  const DimVector rest(data.sizes().slice(static_cast<size_t>(axis) + 1,
                                          static_cast<size_t>(data.dim() - axis - 1)));
  const int64_t rows = product(batch);
  const Tensor marks = said.to(kInt64).reshape({rows, points});
  const Tensor ends = lengths.defined() ? marks.cumsum(1) : marks.slice(1, 1);
  const Tensor starts = lengths.defined() ? ends - marks : marks.slice(1, 0, count);
  const Tensor widths = ends - starts;
  if (!unsafe && widths.numel() > 0 && !data.is_meta()) {
    RL_CHECK(widths.min().item<int64_t>() >= 0, "lengths contains negative value!");
    RL_CHECK(offsets.defined() || ends.select(1, -1).eq(Scalar(n)).all().item<bool>(),
             "segment_reduce: the lengths of each row must sum to ", n,
             ", the size of the axis, unless unsafe=True");
  }
  // The segment of each place; what belongs to none goes to one behind the last.
  const Tensor places =
      rushlight::arange(Scalar(n), marks.options()).expand({rows, n}).contiguous();
  Tensor owner = places.new_full({rows, n}, Scalar(count));
  if (count > 0) {
    owner = rushlight::searchsorted(ends.contiguous(), places, false, true);
    owner = rushlight::where(places < starts.slice(1, 0, 1), Scalar(count), owner);
  }
  const double infinity = std::numeric_limits<double>::infinity();
  const Scalar identity(is_max ? -infinity : is_min ? infinity : is_prod ? 1.0 : 0.0);
  const int64_t width = product(rest);
  // A mean is rounded once, after its division.
  const Tensor given = is_mean ? data.to(compute_dtype(data.dtype())) : data;
  const Tensor flat = given.reshape({rows, n, width});
  const Tensor index = owner.unsqueeze(2).expand({rows, n, width});
  const std::string_view name = is_max ? "amax" : is_min ? "amin" : is_prod ? "prod" : "sum";
  const bool chooses = is_max || is_min;
  Tensor result =
      flat.new_full({rows, count + 1, width}, chooses ? identity : initial.value_or(identity))
          .scatter_reduce(1, index, flat, name)
          .slice(1, 0, count);
  if (chooses && initial.has_value()) {  // equal elements keep their gradient
    const bool nan = std::isnan(initial->as<double>());
    const Tensor beaten = nan      ? rushlight::ones_like(result, TensorOptions(kBool))
                          : is_max ? result < *initial
                                   : result > *initial;
    result = rushlight::where(beaten, *initial, result);
  }
  if (is_mean) {
    const Tensor of = widths.unsqueeze(2).to(given.dtype());
    const Scalar empty = initial.value_or(Scalar(std::numeric_limits<double>::quiet_NaN()));
    result = rushlight::where(of > Scalar(0), result / of.clamp_min(Scalar(1)), empty);
    result = result.to(data.dtype());
  }
  DimVector sizes = batch;
  sizes.insert(sizes.size(), count);
  for (const int64_t size : rest) {
    sizes.insert(sizes.size(), size);
  }
  return result.reshape(sizes);
}

namespace {
void check_number(const char* op, const Tensor& value) {
  RL_CHECK(value.dim() == 0, op, " only supports a 0-dimensional value tensor, but it has ",
           value.dim(), " dimensions");
}
}  // namespace

Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  check_number("index_fill_", value);
  if (!is_special(value) && !forward::is_differentiated(value)) {
    return self.index_fill(dim, index, value.item());
  }
  // Not by index_copy, which would count the gradient of the value twice for an index that occurs
  // twice.
  DimVector line(self.dim(), 1);
  if (!line.empty()) {
    const int64_t d = wrap_dim(dim, self.dim());
    line[d] = self.size(d);
  }
  const Tensor chosen = rushlight::zeros({product(line)}, self.options().dtype(kBool));
  return rushlight::where(chosen.index_fill(0, index, Scalar(true)).reshape(line),
                          value.to(self.dtype()), self);
}

Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value) {
  check_number("masked_fill_", value);
  if (!is_special(value) && !forward::is_differentiated(value)) {
    return self.masked_fill(mask, value.item());
  }
  return rushlight::where(mask, value.to(self.dtype()), self);
}

Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  if (!dim.has_value()) {
    return self.reshape({-1}).gather(0, indices.reshape({-1}));
  }
  RL_CHECK(
      self.dim() == indices.dim(),
      "take_along_dim(): input and indices must have the same number of dimensions, but they have ",
      self.dim(), " and ", indices.dim());
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
             " at entry 0 and ", tensors[i].sizes(), " at entry ", i,
             ": torch.cat takes different lengths, and nn.utils.rnn.pad_sequence makes them equal");
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

std::vector<Tensor> meshgrid(TensorList tensors, std::optional<std::string_view> given) {
  if (!given.has_value()) {
    static bool warned = false;
    warn_once(warned,
              "meshgrid: it will be required to pass the indexing argument; without it "
              "indexing='ij' is meant");
  }
  const std::string_view indexing = given.value_or("ij");
  RL_CHECK(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  RL_CHECK(indexing == "ij" || indexing == "xy",
           "meshgrid: indexing must be one of \"xy\" and \"ij\", but is: ", indexing);
  const size_t n = tensors.size();
  DimVector sizes;
  for (const Tensor& t : tensors) {
    RL_CHECK(t.dim() <= 1, "meshgrid: Expected 0D or 1D tensors, but got one of shape ", t.sizes());
    RL_CHECK(t.dtype() == tensors[0].dtype(),
             "meshgrid: all tensors must have the same dtype, not ", t.dtype(), " and ",
             tensors[0].dtype());
    RL_CHECK(t.device() == tensors[0].device(),
             "meshgrid: all tensors must be on the same device, not ", t.device(), " and ",
             tensors[0].device());
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
    const int64_t d = existing_dim(dims[i], self.dim());
    const int64_t n = self.size(d);
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
  const Tensor result = self.new_zeros(sizes);
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
  RL_CHECK(n >= self.dim(), "repeat: Number of dimensions of repeat dims is ", n,
           ", but the tensor has ", self.dim(), ": give a 1 for each that stays");
  const int64_t added = n - self.dim();
  // Each dimension becomes [repeat, size], the first of them expanded.
  DimVector split;
  DimVector wide;
  DimVector sizes;
  for (int64_t d = 0; d < n; d++) {
    const int64_t size = d < added ? 1 : self.sizes()[d - added];
    int64_t total = 0;
    RL_CHECK(!__builtin_mul_overflow(repeats[d], size, &total), "repeat(): repeats of ", repeats,
             " would be too large a result");
    RL_CHECK(repeats[d] >= 0, "Trying to create tensor with negative dimension ", total, ": ",
             repeats);
    split.push_back(1);
    split.push_back(size);
    wide.push_back(repeats[d]);
    wide.push_back(size);
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
  int64_t length = 0;
  RL_CHECK(!__builtin_mul_overflow(source.size(d), repeats, &length),
           "repeat_interleave: ", source.size(d), " elements cannot be repeated ", repeats,
           " times");
  RL_CHECK(!output_size.has_value() || *output_size == length,
           "repeat_interleave: Invalid output_size, expected ", length, " but got ",
           output_size.value_or(0));
  DimVector wide = source.sizes();
  wide.insert(d + 1, repeats);
  DimVector sizes = source.sizes();
  sizes[d] = length;
  return source.unsqueeze(d + 1).expand(wide).clone(MemoryFormat::Contiguous).reshape(sizes);
}

namespace {

// Not those of a shape that stands for any values: on the meta device, or a special tensor's.
bool has_known_values(const Tensor& t) {
  const Tensor all = batching::all_of(t);
  return !all.is_meta() && !is_special(all);
}

void check_counts(const Tensor& repeats) {
  RL_CHECK_NOT_IMPLEMENTED(repeats.dtype() == kInt64 || repeats.dtype() == kInt32,
                           "repeat_interleave: repeats has to be Long or Int tensor, but is ",
                           enum_name(repeats.dtype()));
}

}  // namespace

Tensor repeat_interleave_Tensor(const Tensor& repeats, std::optional<int64_t> output_size) {
  check_counts(repeats);
  RL_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  if (output_size.has_value() && !has_known_values(repeats)) {
    RL_CHECK(*output_size >= 0, "repeat_interleave: output_size cannot be negative");
    return repeats.new_empty({*output_size});
  }
  RL_CHECK(repeats.numel() == 0 || repeats.min().item<int64_t>() >= 0,
           "repeats can not be negative");
  const Tensor ends = repeats.cumsum(0);
  RL_CHECK(ends.numel() == 0 || ends.min().item<int64_t>() >= 0,
           "repeat_interleave: integer overflow: the sum of repeats is more than a size can be");
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
  if (repeats.dim() == 0 || (repeats.dim() == 1 && repeats.numel() == 1)) {
    check_counts(repeats);
    if (!output_size.has_value() || has_known_values(repeats)) {
      return rushlight::repeat_interleave(self, repeats.item<int64_t>(), dim, output_size);
    }
    const Tensor t = dim.has_value() ? self : self.reshape({-1});
    return t.index_select(dim.value_or(0),
                          rushlight::repeat_interleave(repeats.reshape({1}), output_size));
  }
  const Tensor t = dim.has_value() ? self : self.reshape({-1});
  const int64_t d = wrap_dim(dim.value_or(0), t.dim());
  const Tensor source = t.dim() == 0 ? t.reshape({1}) : t;
  RL_CHECK(repeats.dim() == 1, "repeats must be 0-dim or 1-dim tensor");
  RL_CHECK(repeats.size(0) == source.size(d),
           "repeat_interleave: repeats must have the same size as dimension ", d, " of the input, ",
           source.size(d), ", not ", repeats.size(0));
  return source.index_select(d, rushlight::repeat_interleave(repeats, output_size));
}

Tensor one_hot(const Tensor& self, int64_t num_classes) {
  RL_CHECK(self.dtype() == kInt64, "one_hot takes class numbers of int64, not of ", self.dtype());
  if (self.numel() == 0) {
    RL_CHECK(num_classes > 0,
             "one_hot: num_classes must be given where there are no class numbers");
  } else if (num_classes != -1 && !has_known_values(self)) {
    RL_CHECK(num_classes > 0, "num_classes should be positive");
  } else {
    RL_CHECK(batching::all_of(self).min().item<int64_t>() >= 0,
             "Class values must be non-negative.");
    const int64_t most = batching::all_of(self).max().item<int64_t>();
    RL_CHECK(most < std::numeric_limits<int64_t>::max(), "one_hot: a class of value ", most,
             " leaves no number for the classes");
    if (num_classes == -1) {
      num_classes = most + 1;
    } else {
      RL_CHECK(num_classes > 0, "num_classes should be positive");
      RL_CHECK(num_classes > most, "Class values must be smaller than num_classes.");
    }
  }
  DimVector sizes = self.sizes();
  sizes.push_back(num_classes);
  return self.new_zeros(sizes).scatter_(-1, self.unsqueeze(-1), Scalar(1));
}

}  // namespace composite

// ---- derivatives ----

Tensor index_backward(const Tensor& grad, IntArrayRef sizes, const Indices& indices) {
  const Tensor zeros = rushlight::zeros(sizes, grad.options());
  return is_special(grad) || is_special(indices) ? zeros.index_put(indices, grad, true)
                                                 : zeros.index_put_(indices, grad, true);
}

Tensor index_select_like(const Tensor& grad, int64_t dim, const Tensor& index, IntArrayRef sizes) {
  return grad.index_select(dim, index).reshape(sizes);
}

Tensor masked_select_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& mask) {
  const DimVector common = broadcast_sizes(sizes, mask.sizes());
  return rushlight::zeros(common, grad.options()).masked_scatter(mask, grad);
}

Tensor masked_scatter_backward(const Tensor& grad, const Tensor& mask, IntArrayRef sizes) {
  if (batching::level_of(grad) != 0 || batching::level_of(mask) != 0) {
    // How many are used differs from slice to slice: the n-th of the mask goes to place n, what is
    // not used behind the end.
    const auto [chosen, all] =
        std::pair(mask.expand(grad.sizes()).reshape({-1}), grad.reshape({-1}));
    const int64_t size = product(sizes);
    const Tensor place =
        chosen.cumsum(0, kInt64).sub(Scalar(1)).masked_fill(chosen.logical_not(), Scalar(size));
    return rushlight::zeros({size + 1}, grad.options())
        .scatter(0, place, all)
        .narrow(0, 0, size)
        .reshape(sizes);
  }
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
