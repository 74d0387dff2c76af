// Tensors from C++ values and from memory that somebody else owns.
#pragma once

#include <initializer_list>
#include <iosfwd>

#include <rushlight/ops.h>

namespace rushlight {

// The numbers of a tensor and how they are nested: {1.5, 2.5}, {{1, 2}, {3, 4}}, 3, a vector.
class RL_API TensorData {
 public:
  TensorData() = default;  // no numbers
  template <
      class T,
      std::enable_if_t<std::is_arithmetic_v<T> || is_small_float_v<T> || is_complex_v<T>, int> = 0>
  TensorData(T value) : scalar_(value), dtype_(dtype_of_number<T>()), is_scalar_(true) {}
  TensorData(std::initializer_list<TensorData> list) : list_(list) {}
  template <class T>
  TensorData(ArrayRef<T> values)
      : dtype_(dtype_of_number<T>()),
        values_(copy_of(values.data(), static_cast<int64_t>(values.size()), dtype_of_v<T>)) {}
  template <class T>
  TensorData(const std::vector<T>& values) : TensorData(ArrayRef<T>(values)) {}
  TensorData(const std::vector<bool>& values);

 private:
  friend RL_API Tensor tensor(const TensorData& data, const TensorOptions& options);
  template <class T>
  static constexpr ScalarType dtype_of_number() {
    if constexpr (std::is_same_v<T, bool>) {
      return kBool;
    } else if constexpr (std::is_integral_v<T>) {
      return kInt64;
    } else if constexpr (std::is_floating_point_v<T>) {
      return ScalarType::Undefined;  // the default dtype
    } else {
      return dtype_of_v<T>;
    }
  }
  static Tensor copy_of(const void* values, int64_t n, ScalarType dtype);
  DimVector sizes() const;
  const TensorData& first() const;
  void fill(char*& to, ScalarType dtype, const DimVector& sizes, size_t depth) const;

  Scalar scalar_;
  ScalarType dtype_ = ScalarType::Undefined;
  bool is_scalar_ = false;
  Tensor values_;
  std::vector<TensorData> list_;
};

// Floats become the default dtype, integers int64, unless the options say otherwise.
RL_API Tensor tensor(const TensorData& data, const TensorOptions& options = {});

// A copy of values in row-major order, seen in `sizes`; the dtype is T's unless options say
// otherwise.
template <class T>
Tensor tensor_of(const T* values, IntArrayRef sizes, const TensorOptions& options = {}) {
  const Tensor t = empty(sizes, TensorOptions(dtype_of_v<T>));
  T* const to = t.template data<T>();
  for (int64_t i = 0; i < t.numel(); i++) {
    to[i] = values[i];
  }
  const Tensor out = t.to(options.device_opt(), options.dtype_opt());
  return options.requires_grad() ? out.requires_grad_() : out;
}

// A tensor on memory of the caller, which must outlive it; `deleter` (may be empty) runs with the
// last tensor. `nbytes` bounds are those of sizes and strides.
RL_API Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                        const TensorOptions& options = {});
RL_API Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {});
// A tensor on the first `size` elements of a file, which is mapped. Shared, writes go to the file,
// which is made or made longer where it is too short. RuntimeError where it cannot be.
RL_API Tensor from_file(std::string_view filename, std::optional<bool> shared = {},
                        std::optional<int64_t> size = 0, const TensorOptions& options = {});
namespace detail {
RL_API Tensor from_owned_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                              StorageImpl::Deleter deleter, void* context,
                              const TensorOptions& options);
RL_API DimVector contiguous_strides_of(IntArrayRef sizes);
}  // namespace detail
// `deleter(data)` runs when the last tensor on it is gone.
template <class F, std::enable_if_t<std::is_invocable_v<F&, void*>, int> = 0>
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, F deleter,
                 const TensorOptions& options = {}) {
  const auto run = [](void* memory, size_t, void* context) {
    F* const f = static_cast<F*>(context);
    (*f)(memory);
    delete f;
  };
  return detail::from_owned_blob(data, sizes, strides, run, new F(std::move(deleter)), options);
}
template <class F, std::enable_if_t<std::is_invocable_v<F&, void*>, int> = 0>
Tensor from_blob(void* data, IntArrayRef sizes, F deleter, const TensorOptions& options = {}) {
  return from_blob(data, sizes, detail::contiguous_strides_of(sizes), std::move(deleter), options);
}
// from_blob step by step: for_blob(data, sizes).strides(…).options(…).make_tensor().
class TensorMaker {
 public:
  TensorMaker(void* data, IntArrayRef sizes) : data_(data), sizes_(sizes) {}
  TensorMaker& strides(OptionalIntArrayRef strides) {
    strides_ = strides;
    return *this;
  }
  TensorMaker& storage_offset(std::optional<int64_t> offset) {
    offset_ = offset.value_or(0);
    return *this;
  }
  TensorMaker& options(TensorOptions options) {
    options_ = options;
    return *this;
  }
  TensorMaker& target_device(std::optional<Device> device) {
    options_ = device.has_value() ? options_.device(*device) : options_;
    return *this;
  }
  template <class F>
  TensorMaker& deleter(F deleter) {
    deleter_ = [](void* data, size_t, void* with) {
      F* const f = static_cast<F*>(with);
      (*f)(data);
      delete f;
    };
    context_ = new F(std::move(deleter));
    return *this;
  }
  RL_API Tensor make_tensor();

 private:
  void* data_;
  IntArrayRef sizes_;  // and strides: the caller's, as for from_blob
  OptionalIntArrayRef strides_;
  int64_t offset_ = 0;
  TensorOptions options_;
  StorageImpl::Deleter deleter_ = nullptr;
  void* context_ = nullptr;
};
inline TensorMaker for_blob(void* data, IntArrayRef sizes) { return {data, sizes}; }

// torch::complex(real, imag). The class of complex numbers has the name, so the op is what it makes
// of tensors.
template <>
struct complex<Tensor> : Tensor {
  complex(const Tensor& real, const Tensor& imag) : Tensor(_complex(real, imag)) {}
};

// Sparse tensors. COO: a column of `indices` for each of `values`, equal places are added up. CSR
// and BSR: where each row begins, and the columns; CSC and BSC the other way round. Without sizes
// those that hold the indices. RuntimeError where they do not belong together.
RL_API Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, IntArrayRef size,
                                const TensorOptions& options = {},
                                std::optional<bool> is_coalesced = {});
RL_API Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values,
                                const TensorOptions& options = {},
                                std::optional<bool> is_coalesced = {});
RL_API Tensor sparse_coo_tensor(IntArrayRef size, const TensorOptions& options);
// The layout is that of the options.
RL_API Tensor sparse_compressed_tensor(const Tensor& compressed_indices,
                                       const Tensor& plain_indices, const Tensor& values,
                                       OptionalIntArrayRef size, const TensorOptions& options);
#define RL_COMPRESSED_TENSOR(name, layout_of_it)                                                  \
  inline Tensor name(const Tensor& compressed_indices, const Tensor& plain_indices,               \
                     const Tensor& values, IntArrayRef size, const TensorOptions& options = {}) { \
    return sparse_compressed_tensor(compressed_indices, plain_indices, values, size,              \
                                    options.layout(layout_of_it));                                \
  }                                                                                               \
  inline Tensor name(const Tensor& compressed_indices, const Tensor& plain_indices,               \
                     const Tensor& values, const TensorOptions& options = {}) {                   \
    return sparse_compressed_tensor(compressed_indices, plain_indices, values, {},                \
                                    options.layout(layout_of_it));                                \
  }
RL_COMPRESSED_TENSOR(sparse_csr_tensor, kSparseCsr)
RL_COMPRESSED_TENSOR(sparse_csc_tensor, kSparseCsc)
RL_COMPRESSED_TENSOR(sparse_bsr_tensor, kSparseBsr)
RL_COMPRESSED_TENSOR(sparse_bsc_tensor, kSparseBsc)
#undef RL_COMPRESSED_TENSOR

// As Python prints it, in short.
RL_API std::ostream& operator<<(std::ostream& out, const Tensor& t);

}  // namespace rushlight
