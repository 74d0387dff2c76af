#include "cuda/runtime.h"

#include <atomic>

namespace rushlight::cuda {

namespace {
constexpr int max_devices = 128;                 // what the number of a Device can say
thread_local cudaStream_t streams[max_devices];  // null: the default stream
}  // namespace

void check(cudaError_t status) {
  if (RL_LIKELY(status == cudaSuccess)) {
    return;
  }
  (void)cudaGetLastError();
  if (status == cudaErrorMemoryAllocation) {
    throw OutOfMemoryError("CUDA out of memory.");
  }
  throw Error(
      str("CUDA error: ", cudaGetErrorString(status),
          "\nKernels run apart from the host, so the call that failed may be an earlier one. "
          "CUDA_LAUNCH_BLOCKING=1 makes each wait for its work."));
}

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    (void)cudaGetLastError();
    return 0;
  }
  return count < max_devices ? count : max_devices;
}

void require_device() {
  static std::atomic<bool> found{false};
  if (RL_LIKELY(found.load(std::memory_order_relaxed))) {
    return;
  }
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) {
    found.store(true, std::memory_order_relaxed);
    return;
  }
  (void)cudaGetLastError();
  int version = 0;
  (void)cudaDriverGetVersion(&version);
  if (version == 0) {
    throw Error(
        "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and "
        "installed a driver from http://www.nvidia.com/Download/index.aspx");
  }
  RL_CHECK(status != cudaErrorInsufficientDriver,
           "The NVIDIA driver on your system is too old (found version ", version,
           "). Please update your GPU driver from http://www.nvidia.com/Download/index.aspx");
  RL_CHECK(status == cudaSuccess || status == cudaErrorNoDevice,
           "CUDA error: ", cudaGetErrorString(status));
  throw Error("No CUDA GPUs are available");
}

Device resolve(Device device) {
  require_device();
  if (!device.has_index()) {
    return Device(kCUDA, static_cast<int8_t>(current_device()));
  }
  const int count = device_count();
  RL_CHECK(device.index() < count, "CUDA error: invalid device ordinal: ", device.str(),
           " was asked for, there ", count == 1 ? "is 1 GPU" : str("are ", count, " GPUs"));
  return device;
}

int current_device() {
  int device = 0;
  check(cudaGetDevice(&device));
  return device;
}

void set_device(int index) { check(cudaSetDevice(index)); }

cudaStream_t current_stream(int device) { return streams[device]; }
void set_current_stream(int device, cudaStream_t stream) { streams[device] = stream; }

int processors(int device) {
  static std::atomic<int> known[max_devices];
  int count = known[device].load(std::memory_order_relaxed);
  if (count == 0) {
    check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    known[device].store(count, std::memory_order_relaxed);
  }
  return count;
}

}  // namespace rushlight::cuda
