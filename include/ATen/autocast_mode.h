// Autocast by libtorch's names.
#pragma once

#include <rushlight/autocast.h>
#include <torch/library.h>

namespace rushlight::autocast {

// Of CUDA, where no device is named.
inline bool is_enabled() { return is_enabled(kCUDA); }
inline void set_enabled(bool enabled) { set_enabled(kCUDA, enabled); }
inline bool is_cpu_enabled() { return is_enabled(kCPU); }
inline void set_cpu_enabled(bool enabled) { set_enabled(kCPU, enabled); }
inline bool is_autocast_enabled(DeviceType device) { return is_enabled(device); }
inline void set_autocast_enabled(DeviceType device, bool enabled) { set_enabled(device, enabled); }
inline Tensor cached_cast(ScalarType to, const Tensor& t) { return cached_cast(to, t, kCUDA); }
inline std::optional<Tensor> cached_cast(ScalarType to, const std::optional<Tensor>& t,
                                         DeviceType device = kCUDA) {
  return t ? std::optional(cached_cast(to, *t, device)) : std::nullopt;
}
inline std::vector<Tensor> cached_cast(ScalarType to, TensorList list, DeviceType device = kCUDA) {
  std::vector<Tensor> out;
  for (const Tensor& t : list) {
    out.push_back(cached_cast(to, t, device));
  }
  return out;
}
inline ScalarType get_autocast_dtype(DeviceType device) { return get_dtype(device); }
inline void set_autocast_dtype(DeviceType device, ScalarType dtype) { set_dtype(device, dtype); }
inline bool is_autocast_cache_enabled() { return is_cache_enabled(); }
inline void set_autocast_cache_enabled(bool enabled) { set_cache_enabled(enabled); }
inline ScalarType get_lower_precision_fp_from_device_type(DeviceType device) {
  return get_dtype(device);
}

}  // namespace rushlight::autocast
