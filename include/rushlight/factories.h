// Tensors from C++ values and from memory that somebody else owns.
#pragma once

#include <initializer_list>
#include <iosfwd>

#include <rushlight/ops.h>

namespace rushlight {

// A copy of values in row-major order, then seen in `sizes`; the dtype is T's unless the options
// say otherwise.
template <class T>
Tensor tensor_of(const T* values, IntArrayRef sizes, const TensorOptions& options = {}) {
  const Tensor t = empty(sizes, TensorOptions(dtype_of_v<T>));
  T* const to = t.data<T>();
  for (int64_t i = 0; i < t.numel(); i++) {
    to[i] = values[i];
  }
  const Tensor out = t.to(options.device_opt(), options.dtype_opt());
  return options.requires_grad() ? out.requires_grad_() : out;
}

// tensor({1.5, 2.5}), tensor({{1, 2}, {3, 4}}), tensor(3): floats become the default dtype, ints
// int64.
template <class T>
class NestedList {
 public:
  NestedList(std::initializer_list<T> row)
      : sizes_({static_cast<int64_t>(row.size())}), values_(row) {}
  NestedList(std::initializer_list<NestedList> rows) : sizes_({static_cast<int64_t>(rows.size())}) {
    for (const NestedList& row : rows) {
      RL_CHECK_VALUE(row.sizes_ == rows.begin()->sizes_, "tensor(): rows of different sizes, ",
                     row.sizes_, " and ", rows.begin()->sizes_);
      values_.insert(values_.end(), row.values_.begin(), row.values_.end());
    }
    if (rows.size() != 0) {
      sizes_.insert(sizes_.end(), rows.begin()->sizes_.begin(), rows.begin()->sizes_.end());
    }
  }
  IntArrayRef sizes() const { return sizes_; }
  const std::vector<T>& values() const { return values_; }

 private:
  std::vector<int64_t> sizes_;
  std::vector<T> values_;
};

namespace detail {
template <class T>
TensorOptions value_options(const TensorOptions& options) {
  if (options.dtype_opt().has_value()) {
    return options;
  }
  return options.dtype(std::is_floating_point_v<T> ? get_default_dtype()
                       : std::is_same_v<T, bool>   ? kBool
                                                   : kInt64);
}
template <class T>
Tensor from_values(const std::vector<T>& values, IntArrayRef sizes, const TensorOptions& options) {
  if constexpr (std::is_same_v<T, bool>) {  // std::vector<bool> has no array
    const std::vector<uint8_t> bytes(values.begin(), values.end());
    return tensor_of(bytes.data(), sizes, value_options<T>(options));
  } else {
    return tensor_of(values.data(), sizes, value_options<T>(options));
  }
}
}  // namespace detail

#define RL_TENSOR_OF(T)                                                                   \
  inline Tensor tensor(const NestedList<T>& list, const TensorOptions& options = {}) {    \
    return detail::from_values(list.values(), list.sizes(), options);                     \
  }                                                                                       \
  inline Tensor tensor(T value, const TensorOptions& options = {}) {                      \
    return full({}, Scalar(value), detail::value_options<T>(options));                    \
  }                                                                                       \
  inline Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) { \
    return detail::from_values(values, static_cast<int64_t>(values.size()), options);     \
  }
RL_TENSOR_OF(bool)
RL_TENSOR_OF(int)
RL_TENSOR_OF(int64_t)
RL_TENSOR_OF(float)
RL_TENSOR_OF(double)
#undef RL_TENSOR_OF

// A tensor on memory of the caller, which must outlive it; `deleter` (may be empty) runs with the
// last tensor. `nbytes` bounds are those of sizes and strides.
RL_API Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                        const TensorOptions& options = {});
RL_API Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {});

// As Python prints it, in short.
RL_API std::ostream& operator<<(std::ostream& out, const Tensor& t);

}  // namespace rushlight
