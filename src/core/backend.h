// What a device beside the CPU brings: memory, copies, streams and a column of kernels. Each such
// device is a library of its own, librushlight_NAME.so beside librushlight.so, which is loaded when
// the device is first asked for and exports `extern "C" const Backend* rushlight_backend()`. To add
// a device: an enumerator of DeviceType, its name in Device, and that library.
#pragma once

#include <string>

#include <rushlight/tensor.h>

namespace rushlight {

struct KernelTable;

struct Backend {
  const char* interface_hash;  // of the headers that it was built with
  const KernelTable* kernels;
  // How many devices there are; 0 where the driver is missing. Never raises.
  int (*device_count)();
  // The device with its number ("the current one" where it has none); raises where there is none.
  Device (*resolve)(Device device);
  int (*current_device)();  // of this thread
  void (*set_device)(Device device);
  void (*synchronize)(Device device);              // waits for all its work
  void* (*allocate)(size_t bytes, Device device);  // null for 0 bytes; OutOfMemoryError
  StorageImpl::Deleter deallocate;                 // its context is the device's number
  // Between two tensors of which one lies on this device or both do: any dtypes and layouts, `from`
  // expanding to the sizes of `to`, and memory that does not overlap. With non_blocking the host
  // does not wait where it need not.
  void (*copy)(const Tensor& to, const Tensor& from, bool non_blocking);
  void (*fill)(const Tensor& to, const Scalar& value);
  // Memory of the host that the device reads and writes by itself.
  Storage (*allocate_pinned)(size_t bytes);
  bool (*is_pinned)(const void* p);
  // Queues of work, each known by a number of the device's own, and marks in them; what they mean
  // stands in rushlight/stream.h. Devices have numbers here.
  struct Streams {
    uint64_t (*make)(Device device, int priority);
    uint64_t (*current)(Device device);
    void (*set_current)(Device device, uint64_t stream);
    bool (*query)(Device device, uint64_t stream);
    void (*synchronize)(Device device, uint64_t stream);
    void (*wait)(Device device, uint64_t stream, void* event);
    void (*record_use)(Device device, uint64_t stream, void* memory);
  } streams;
  struct Events {
    void* (*make)(Device device, bool timing, bool blocking);
    void (*destroy)(void* event);  // never raises
    void (*record)(Device device, void* event, uint64_t stream);
    bool (*query)(void* event);
    void (*synchronize)(void* event);
    double (*elapsed)(void* start, void* end);  // milliseconds
  } events;
};

// Where the library of a device lies, "" where this installation has none.
RL_API std::string backend_path(DeviceType type);
// Loads the library on the first call. AssertionError: "Torch not compiled with CUDA
// enabled: …" (what programs look for) where there is none.
RL_API const Backend& backend_of(DeviceType type);
// Makes a device known that needs no library to be found; it must outlive all use. RuntimeError
// where there is one of its kind already.
RL_API void add_backend(DeviceType type, const Backend& backend);
// The kind of device beside the CPU that this installation has, or kCPU.
RL_API DeviceType accelerator_type();
// The CPU's kernels, for a device whose memory the host reads and writes as its own.
RL_API const KernelTable* cpu_kernels();
// The one that is loaded, or null.
RL_API const Backend* loaded_backend(DeviceType type) noexcept;

// A copy of a CPU tensor in memory that the first device there is reads by itself (the tensor where
// it lies there); RuntimeError where there is no device.
RL_API Tensor pin_memory(const Tensor& t);
RL_API bool is_pinned(const Tensor& t);

// A device as tensors have it: with a number, where there are several of its kind.
RL_API Device number_device(Device device);
inline Device resolve_device(Device device) {
  if (RL_LIKELY(device.is_cpu() || device.is_meta())) {
    return device.type();  // "cpu:0" is the one there is
  }
  return device.has_index() ? device : number_device(device);
}

}  // namespace rushlight
