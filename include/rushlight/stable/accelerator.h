// torch::stable::accelerator: the device beside the CPU, its streams and guards, by the stable ABI.
// Where there is none, all of it throws.
#pragma once

#include <rushlight/stable/tensor.h>

#pragma GCC visibility push(hidden)  // each binary has its own
namespace torch {
namespace stable {
namespace accelerator {

using StreamId = int64_t;

// The device is the current one for a scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(DeviceIndex index) {
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_create_device_guard(index, &handle_));
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard() { aoti_torch_delete_device_guard(handle_); }
  void set_index(DeviceIndex index) {
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_device_guard_set_index(handle_, index));
  }

 private:
  DeviceGuardHandle handle_ = nullptr;
};

class Stream {
 public:
  // Takes the handle.
  explicit Stream(StreamHandle handle)
      : handle_(handle, [](StreamHandle h) { aoti_torch_delete_stream(h); }) {}
  StreamId id() const {
    StreamId out = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_stream_id(handle_.get(), &out));
    return out;
  }

 private:
  std::shared_ptr<StreamOpaque> handle_;
};

inline Stream getCurrentStream(DeviceIndex index) {
  StreamHandle out = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_stream(index, &out));
  return Stream(out);
}
inline DeviceIndex getCurrentDeviceIndex() {
  DeviceIndex out = 0;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_device_index(&out));
  return out;
}

}  // namespace accelerator
}  // namespace stable
}  // namespace torch
#pragma GCC visibility pop
