// Borrowed memory as tensors.
#include <rushlight/factories.h>

#include <cstring>

#include "autograd/refusals.h"
#include "core/op_support.h"

namespace rushlight {

TensorData::TensorData(const std::vector<bool>& values)
    : dtype_(kBool), values_(empty({static_cast<int64_t>(values.size())}, kBool)) {
  bool* to = values_.data<bool>();
  for (const bool value : values) {
    *to++ = value;
  }
}

Tensor TensorData::copy_of(const void* values, int64_t n, ScalarType dtype) {
  Tensor t = empty({n}, dtype);
  std::memcpy(t.data_ptr(), values, static_cast<size_t>(t.nbytes()));
  return t;
}

DimVector TensorData::sizes() const {
  if (values_.defined()) {
    return {values_.numel()};
  }
  DimVector sizes;
  for (const TensorData* at = this; !at->is_scalar_; at = &at->list_.front()) {
    if (at->values_.defined()) {
      sizes.push_back(at->values_.numel());
      break;
    }
    sizes.push_back(static_cast<int64_t>(at->list_.size()));
    if (at->list_.empty()) {
      break;
    }
  }
  return sizes;
}

const TensorData& TensorData::first() const {
  return is_scalar_ || values_.defined() || list_.empty() ? *this : list_.front().first();
}

void TensorData::fill(char*& to, ScalarType dtype, const DimVector& sizes, size_t depth) const {
  const bool fits =
      is_scalar_ ? depth == sizes.size()
                 : depth < sizes.size() &&
                       (values_.defined() ? values_.numel() : static_cast<int64_t>(list_.size())) ==
                           sizes[depth];
  RL_CHECK_VALUE(fits, "tensor(): rows of different sizes, expected ", sizes, " throughout");
  if (is_scalar_) {
    store_scalar(to, dtype, scalar_);
    to += itemsize(dtype);
  } else if (values_.defined()) {
    const Tensor as = values_.to(dtype);
    std::memcpy(to, as.data_ptr(), static_cast<size_t>(as.nbytes()));
    to += as.nbytes();
  } else {
    for (const TensorData& part : list_) {
      part.fill(to, dtype, sizes, depth + 1);
    }
  }
}

Tensor tensor(const TensorData& data, const TensorOptions& options) {
  const ScalarType own = data.first().dtype_;
  const ScalarType dtype =
      options.dtype_opt().value_or(own == ScalarType::Undefined ? get_default_dtype() : own);
  const DimVector sizes = data.sizes();
  const Tensor made = empty(sizes, dtype);
  char* to = static_cast<char*>(made.data_ptr());
  data.fill(to, dtype, sizes, 0);
  return in_format(made.to(options.device_opt(), std::optional<ScalarType>()), options);
}

Tensor detail::from_owned_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                               StorageImpl::Deleter deleter, void* context,
                               const TensorOptions& options) {
  RL_CHECK(sizes.size() == strides.size(), "from_blob: ", sizes.size(), " sizes but ",
           strides.size(), " strides");
  int64_t last = 0;
  bool empty = false;
  bool overflow = false;
  for (size_t i = 0; i < sizes.size(); i++) {
    RL_CHECK(sizes[i] >= 0 && strides[i] >= 0, "from_blob: negative sizes or strides: ", sizes,
             ", ", strides);
    empty |= sizes[i] == 0;
    int64_t reach = 0;
    overflow |= __builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) ||
                __builtin_add_overflow(last, reach, &last);
  }
  overflow |= __builtin_mul_overflow(last + 1, itemsize(options.dtype()), &last);
  RL_CHECK(empty || !overflow, "from_blob: sizes ", sizes, " overflow");
  auto storage = StorageImpl::borrow(data, empty ? 0 : static_cast<size_t>(last), options.device(),
                                     deleter, context);
  auto impl = TensorImpl::make(std::move(storage), options.dtype(), options.device());
  impl->set_sizes_and_strides(sizes, strides);
  const Tensor t(std::move(impl));
  return options.requires_grad() ? t.requires_grad_() : t;
}

DimVector detail::contiguous_strides_of(IntArrayRef sizes) { return contiguous_strides(sizes); }

Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
  return detail::from_owned_blob(data, sizes, strides, nullptr, nullptr, options);
}

Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options) {
  return from_blob(data, sizes, contiguous_strides(sizes), options);
}

Tensor from_file(std::string_view filename, std::optional<bool> shared, std::optional<int64_t> size,
                 const TensorOptions& options) {
  RL_CHECK(options.layout() == kStrided && options.device().is_cpu(),
           "from_file(): a file can be mapped to plain tensors on the CPU only");
  const int64_t count = size.value_or(0);
  RL_CHECK(count >= 0, "from_file(): expected a size that is not negative, but got ", count);
  int64_t bytes = 0;
  RL_CHECK(!__builtin_mul_overflow(count, itemsize(options.dtype()), &bytes),
           "from_file(): ", count, " elements overflow");
  auto impl = TensorImpl::make(map_file(std::string(filename), shared.value_or(false), bytes),
                               options.dtype(), kCPU);
  impl->set_sizes_contiguous({count});
  const Tensor t(std::move(impl));
  return options.requires_grad() ? t.requires_grad_() : t;
}

// ---- other windows ----

Tensor& Tensor::set_(const Storage& source, int64_t storage_offset, IntArrayRef size,
                     IntArrayRef stride) const {
  check_inplace("set_", *this, requires_grad() && grad_enabled());
  RL_CHECK(source->device() == device(), "Attempted to set the storage of a tensor on device \"",
           device(), "\" to a storage on different device \"", source->device(),
           "\".  This is no longer allowed; the devices must match.");
  RL_CHECK(storage_offset >= 0, "Tensor: invalid storage offset ", storage_offset);
  const DimVector strides = stride.empty() ? contiguous_strides(size) : DimVector(stride);
  const Tensor like = make_empty_strided(size, strides, dtype(), kMeta);
  size_t bytes = 0;
  const bool overflow = __builtin_mul_overflow(storage_offset, element_size(), &bytes) ||
                        __builtin_add_overflow(bytes, like.storage()->nbytes(), &bytes);
  if (like.numel() > 0 && !overflow && bytes > source->nbytes()) {
    source->resize(bytes);
  }
  auto impl = TensorImpl::make(source, dtype(), device());
  impl->set_sizes_contiguous({0});
  set_data(make_view(Tensor(std::move(impl)), {size, strides, storage_offset, dtype()}));
  checked_impl().bump_version();
  return const_cast<Tensor&>(*this);
}

Tensor& Tensor::set_(const Storage& source) const {
  return set_(source, 0, {static_cast<int64_t>(source->nbytes()) / element_size()});
}

Tensor& Tensor::set_(const Tensor& source) const {
  RL_CHECK(source.dtype() == dtype(), "Could not set tensor of type ", source.dtype(),
           " to a tensor of ", dtype());
  return set_(source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

Tensor& Tensor::set_() const { return set_(StorageImpl::allocate(0, device()), 0, {0}); }

Tensor TensorMaker::make_tensor() {
  char* const from = static_cast<char*>(data_) + offset_ * itemsize(options_.dtype());
  const DimVector strides =
      strides_.has_value() ? DimVector(*strides_) : detail::contiguous_strides_of(sizes_);
  return deleter_ != nullptr
             ? detail::from_owned_blob(from, sizes_, strides, deleter_, context_, options_)
             : from_blob(from, sizes_, strides, options_);
}

}  // namespace rushlight
