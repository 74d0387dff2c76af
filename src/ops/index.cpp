// Indexing above the kernels: contracts, and what index tensors mean. What is written over other
// ops, and derivatives: index_composites.cpp.
#include <algorithm>

#include "core/refusals.h"
#include "generated/contracts.h"
#include "ops/derivatives.h"

namespace rushlight {

namespace {

using Indices = std::vector<std::optional<Tensor>>;

void check_index_tensor(const char* op, const Tensor& index) {
  RL_CHECK(index.dtype() == kInt32 || index.dtype() == kInt64 || index.numel() == 0, op,
           "(): Expected dtype int32/int64 for index");
}

bool is_mask(const Tensor& t) { return t.dtype() == kBool || t.dtype() == kUInt8; }

// A mask without dimensions takes none of what it indexes, and selects all of it or nothing.
bool is_scalar_mask(const std::optional<Tensor>& t) {
  return t.has_value() && t->defined() && is_mask(*t) && t->dim() == 0;
}

// Turns what a caller may pass as indices into what kernels take: one entry per dimension of
// `self`, each nothing or an int64 tensor, all of one shape. Returns that shape.
DimVector normalize_indices(const Tensor& self, Indices& indices) {
  Indices plain;
  for (const std::optional<Tensor>& t : indices) {
    if (!t.has_value() || !t->defined()) {
      plain.emplace_back();
      continue;
    }
    if (!is_mask(*t) && t->dtype() != kInt32 && t->dtype() != kInt64) {
      refuse_index(*t);
    }
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
                     " does not match dimension ", first + d,
                     " of the indexed tensor, whose shape is ", self.sizes(),
                     ": a mask takes one bool for each place");
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

// Masks without dimensions index dimensions of size 1 that `self` gets for them.
void give_scalar_masks_dimensions(Tensor& self, Indices& indices) {
  int64_t place = 0;
  for (std::optional<Tensor>& t : indices) {
    if (is_scalar_mask(t)) {
      RL_CHECK_INDEX(place <= self.dim(), "too many indices for tensor of dimension ", self.dim());
      DimVector sizes(self.sizes());
      DimVector strides(self.strides());
      sizes.insert(place, 1);
      strides.insert(place, 1);
      self = make_view(self, {sizes, strides, self.storage_offset()});
      t = make_view(*t, {{1}, {1}, t->storage_offset()});
    }
    place += t.has_value() && t->defined() && is_mask(*t) ? t->dim() : 1;
  }
}

// Leaves out such masks; whether one of them is false.
bool drop_scalar_masks(const Tensor& self, Indices& indices) {
  bool none = false;
  Indices others;
  for (const std::optional<Tensor>& t : indices) {
    if (is_scalar_mask(t)) {
      none |= !self.is_meta() && t->item().equal(0);
    } else {
      others.push_back(t);
    }
  }
  indices = std::move(others);
  return none;
}

void check_vector(const char* op, const Tensor& index) {
  RL_CHECK_INDEX(index.dim() <= 1, op, "(): Index is supposed to be a vector");
  RL_CHECK(index.dtype() == kInt32 || index.dtype() == kInt64, op,
           "(): Expected dtype int32 or int64 for index");
}

// index_add and index_copy: `source` has the sizes of self but for `dim`, where it has one slice
// per index. What does not fit in number is a `Mismatch`.
template <class Mismatch>
void check_slices(const char* op, const Tensor& self, int64_t& dim, const Tensor& index,
                  const Tensor& source) {
  dim = wrap_dim(dim, self.dim());
  check_vector(op, index);
  RL_CHECK(self.dtype() == source.dtype(), op, "(): self (", enum_name(self.dtype()),
           ") and source (", enum_name(source.dtype()), ") must have one dtype");
  if (source.dim() != self.dim() && (source.dim() > 1 || self.dim() > 1)) {
    throw Mismatch(str(op,
                       "(): source and self must have the same number of dimensions, unless both "
                       "are numbers, but they have ",
                       source.dim(), " and ", self.dim()));
  }
  const int64_t slices = source.dim() == 0 ? 1 : source.sizes()[dim];
  if (index.numel() != slices) {
    throw Mismatch(str(op, "(): Number of indices (", index.numel(),
                       ") and of slices of source along dimension ", dim, " (", slices,
                       ") should be equal"));
  }
  for (int64_t d = 0; d < source.dim() && source.dim() == self.dim(); d++) {
    RL_CHECK(d == dim || source.sizes()[d] == self.sizes()[d], op,
             "(): source must match self tensor shape except in dimension ", dim,
             ", but they have shapes ", source.sizes(), " and ", self.sizes());
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
  RL_CHECK(dims_at_least_1(index) == dims_at_least_1(self), op, ": index and ",
           op[0] == 'g' ? "input" : "self", " must have the same number of dimensions, not ",
           index.dim(), " and ", self.dim());
  for (int64_t d = 0; d < dims_at_least_1(index); d++) {
    RL_CHECK(d == dim || size_at(index, d) <= size_at(self, d), op,
             ": Size does not match at dimension ", d, ": index ", index.sizes(), " may exceed ",
             self.sizes(), " along dimension ", dim, " only");
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
  for (const auto& [name, t] : {std::pair("self", &self), std::pair("src", &src)}) {
    RL_CHECK(dims_at_least_1(index) == dims_at_least_1(*t), op, "(): index and ", name,
             " must have the same number of dimensions, not ", index.dim(), " and ", t->dim());
  }
  for (int64_t d = 0; d < dims_at_least_1(index); d++) {
    RL_CHECK(
        (d == dim || size_at(index, d) <= size_at(self, d)) && size_at(index, d) <= size_at(src, d),
        op, "(): Expected index ", index.sizes(), " to be no larger than src, ", src.sizes(),
        ", nor than ", self.sizes(), " but along dimension ", dim);
  }
}

void check_reduce(std::string_view reduce) {
  RL_CHECK(reduce == "add" || reduce == "multiply",
           "reduce argument must be 'add' or 'multiply', not '", reduce,
           "': scatter_reduce knows more");
}

}  // namespace

namespace shape {

OutSpec index(Tensor& self, Indices& indices) {
  give_scalar_masks_dimensions(self, indices);
  const DimVector common = normalize_indices(self, indices);
  return {indexed_sizes(self, indices, common), self.dtype()};
}

void index_put(Tensor& self, Indices& indices, Tensor& values, bool& accumulate) {
  RL_CHECK(
      self.dtype() == values.dtype(),
      "index_put_: source and destination dtypes match only if the values are converted first: ",
      enum_name(self.dtype()), " is written with ", enum_name(values.dtype()));
  if (drop_scalar_masks(self, indices)) {  // nothing is selected: everything stays what it is
    indices.assign(static_cast<size_t>(self.dim()), std::nullopt);
    values = self;
    accumulate = false;
    return;
  }
  const DimVector common = normalize_indices(self, indices);
  const DimVector sizes = indexed_sizes(self, indices, common);
  // Leading dimensions of size 1 may be more than there are.
  Tensor v = values;
  while (v.dim() > static_cast<int64_t>(sizes.size()) && v.sizes()[0] == 1) {
    v = make_view(v, {v.sizes().slice(1, v.dim() - 1), v.strides().slice(1, v.dim() - 1),
                      v.storage_offset()});
  }
  RL_CHECK(is_expandable_to(v.sizes(), sizes), "shape mismatch: values of shape ", values.sizes(),
           " cannot be broadcast to ", sizes, ", which the indices select");
  values = expand_raw(v, sizes);
}

OutSpec index_select(Tensor& self, int64_t& dim, Tensor& index) {
  dim = wrap_dim(dim, self.dim());
  check_vector("index_select", index);
  DimVector sizes = self.sizes();
  if (self.dim() > 0) {
    RL_CHECK(sizes[dim] > 0 || index.numel() == 0,
             "index_select(): self indexing axis dim should be positive");
    sizes[dim] = index.numel();
  } else {
    RL_CHECK(index.numel() == 1, "index_select(): Index to scalar can have only 1 value, got ",
             index.numel(), " value(s)");
  }
  return {sizes, self.dtype()};
}

void index_add(Tensor& self, int64_t& dim, Tensor& index, Tensor& source, Scalar& alpha) {
  alpha.check_fits(self.dtype());
  check_slices<Error>("index_add_", self, dim, index, source);
}
void index_copy(Tensor& self, int64_t& dim, Tensor& index, Tensor& source) {
  check_slices<IndexError>("index_copy_", self, dim, index, source);
}
void index_fill_value(Tensor& self, int64_t& dim, Tensor& index, Scalar& value) {
  dim = wrap_dim(dim, self.dim());
  RL_CHECK(index.dim() <= 1, "index_fill_(): Index has to be a vector or a number, not of ",
           index.dim(), " dimensions");
  RL_CHECK_INDEX(index.dtype() == kInt32 || index.dtype() == kInt64,
                 "index_fill_(): Expected dtype int64 for index, or int32, but got ",
                 dtype_info(index.dtype()).name);
  RL_CHECK(!value.is_complex() || self.is_complex(),
           "index_fill_(): a complex value does not fit into ", enum_name(self.dtype()));
  value.check_fits(self.dtype());
}

OutSpec gather(Tensor& self, int64_t& dim, Tensor& index, bool&) {
  check_gather("gather", self, dim, index);
  return {index.sizes(), self.dtype()};
}
void scatter_src(Tensor& self, int64_t& dim, Tensor& index, Tensor& src) {
  check_scatter("scatter", self, dim, index, src);
}
void scatter_value(Tensor& self, int64_t& dim, Tensor& index, Scalar& value) {
  value.check_fits(self.dtype());
  check_gather("scatter", self, dim, index);
}
void scatter_src_reduce(Tensor& self, int64_t& dim, Tensor& index, Tensor& src,
                        std::string& reduce) {
  check_reduce(reduce);
  check_scatter("scatter", self, dim, index, src);
}
void scatter_value_reduce(Tensor& self, int64_t& dim, Tensor& index, Scalar& value,
                          std::string& reduce) {
  value.check_fits(self.dtype());
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
           "scatter_reduce: reduce argument must be either 'sum', 'prod', 'mean', 'amax' or "
           "'amin', but is '",
           reduce, "'");
  if (self.is_complex() && reduce[0] == 'a') {
    dtype_not_implemented(str("scatter_gather_tensor_cpu_reduce_", reduce).c_str(), self.dtype());
  }
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
  RL_CHECK(self.dtype() == source.dtype(), "put_(): source must have the dtype of self, ",
           enum_name(self.dtype()), ", but it has ", enum_name(source.dtype()));
  RL_CHECK_INDEX(
      index.numel() == source.numel(),
      "put_(): source and index must have as many elements as each other, but they have ",
      source.numel(), " and ", index.numel());
}

void masked_fill_value(Tensor& self, Tensor& mask, Scalar& value) {
  RL_CHECK(mask.dtype() == kBool, "masked_fill_ only supports boolean masks, not those of ",
           dtype_info(mask.dtype()).name);
  value.check_fits(self.dtype());
  self = expand_raw(self, broadcast_sizes(self.sizes(), mask.sizes()));
}
void masked_scatter(Tensor& self, Tensor& mask, Tensor& source) {
  RL_CHECK(mask.dtype() == kBool, "masked_scatter_ only supports boolean masks, not those of ",
           dtype_info(mask.dtype()).name);
  RL_CHECK(self.dtype() == source.dtype(),
           "masked_scatter: self and source must have same dtypes, not ", enum_name(self.dtype()),
           " and ", enum_name(source.dtype()));
  self = expand_raw(self, broadcast_sizes(self.sizes(), mask.sizes()));
}

OutSpec cat(std::vector<Tensor>& tensors, int64_t& dim) {
  RL_CHECK_VALUE(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  for (size_t i = 0; i < tensors.size(); i++) {
    RL_CHECK(
        tensors[i].dim() > 0, "cat: tensor ", i,
        " is a number, and zero-dimensional tensors cannot be concatenated: stack() takes them");
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
    dim = 0;  // that of what they would join is not known
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
    RL_CHECK(t.dim() == first.dim(), "cat: Tensors must have same number of dimensions, not ",
             first.dim(), " and ", t.dim());
    for (int64_t d = 0; d < t.dim(); d++) {
      RL_CHECK(d == dim || t.sizes()[d] == sizes[d],
               "cat: Sizes of tensors must match except in dimension ", dim, ": dimension ", d,
               " of tensor ", i, " is ", t.sizes()[d], ", but ", sizes[d], " in the first");
    }
    channels_last &= format_of(t) == MemoryFormat::ChannelsLast;
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

}  // namespace rushlight
