// The kind of device beside the CPU that this installation has, by libtorch's names. Where there is
// none, devices are counted as 0, and what needs one raises.
#pragma once

#include <optional>

#include <rushlight/device_cache.h>
#include <rushlight/stream.h>

namespace rushlight {

// None where the machine has no device beside the CPU; with `checked` that raises.
inline std::optional<DeviceType> getAccelerator(bool checked = false) {
  const bool found = device_count(kCUDA) > 0;
  RL_CHECK(found || !checked, "Cannot access accelerator device when none is available.");
  return found ? std::optional(kCUDA) : std::nullopt;
}
inline bool isAccelerator(DeviceType type) { return type == kCUDA; }

namespace accelerator {
using rushlight::getAccelerator;
using rushlight::isAccelerator;
inline int8_t deviceCount() { return static_cast<int8_t>(device_count(kCUDA)); }
inline void setDeviceIndex(int8_t index) {
  set_current_device(Device(*getAccelerator(true), index));
}
inline int8_t getDeviceIndex() {
  return static_cast<int8_t>(current_device(*getAccelerator(true)));
}
// Makes the device current and returns the one that was.
inline int8_t exchangeDevice(int8_t index) {
  const int8_t before = getDeviceIndex();
  setDeviceIndex(index);
  return before;
}
inline void setCurrentStream(const Stream& stream) { set_current_stream(stream); }
inline Stream getCurrentStream(int8_t index) {
  return Stream::current(Device(*getAccelerator(true), index));
}
inline void synchronizeDevice(int8_t index) { synchronize(Device(*getAccelerator(true), index)); }
inline void emptyCache() { empty_device_cache(*getAccelerator(true)); }
}  // namespace accelerator

}  // namespace rushlight
