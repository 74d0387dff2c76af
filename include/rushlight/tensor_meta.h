// Geometry, dtype and device of a tensor that need not be kept itself.
#pragma once

#include <vector>

#include <rushlight/tensor.h>

namespace rushlight {

class TensorMeta {
 public:
  TensorMeta() = default;
  explicit TensorMeta(const Tensor& t)
      : dims_(t.sizes()), offset_(t.storage_offset()), dtype_(t.dtype()), device_(t.device()) {
    for (const int64_t s : t.strides()) {
      dims_.push_back(s);
    }
  }
  IntArrayRef sizes() const { return {dims_.data(), dims_.size() / 2}; }
  IntArrayRef strides() const { return {dims_.data() + dims_.size() / 2, dims_.size() / 2}; }
  int64_t storage_offset() const { return offset_; }
  int64_t dim() const { return static_cast<int64_t>(dims_.size() / 2); }
  int64_t size(int64_t d) const { return sizes()[static_cast<size_t>(d < 0 ? d + dim() : d)]; }
  int64_t numel() const {
    int64_t n = 1;
    for (const int64_t s : sizes()) {
      n *= s;
    }
    return n;
  }
  ScalarType dtype() const { return dtype_; }
  ScalarType scalar_type() const { return dtype_; }
  bool is_complex() const { return rushlight::is_complex(dtype_); }
  Device device() const { return device_; }
  TensorOptions options() const { return TensorOptions(dtype_).device(device_); }

 private:
  DimVector dims_;  // sizes, then strides
  int64_t offset_ = 0;
  ScalarType dtype_ = ScalarType::Undefined;
  Device device_;
};
RL_API std::vector<TensorMeta> metas_of(TensorList list);

}  // namespace rushlight
