// The CUDA runtime as kernels use it: errors, the current device and stream, launching.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include <rushlight/device.h>
#include <rushlight/error.h>

namespace rushlight::cuda {

// RuntimeError "CUDA error: …" unless it is cudaSuccess; the runtime's sticky last error is
// cleared.
void check(cudaError_t status);

// How many GPUs there are; 0 without a driver.
int device_count();
// Raises what PyTorch raises where there is no driver or no GPU.
void require_device();
Device resolve(Device device);

int current_device();
void set_device(int index);

// Makes a device current for a scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device) : before_(current_device()), now_(device.index()) {
    if (now_ != before_) {
      set_device(now_);
    }
  }
  ~DeviceGuard() {
    if (now_ != before_) {
      (void)cudaSetDevice(before_);
    }
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_;
  int now_;
};

// The stream that this thread queues work on, for each device; null is the default stream.
cudaStream_t current_stream(int device);
void set_current_stream(int device, cudaStream_t stream);

// Streaming multiprocessors of a device, and bytes of shared memory that a block may have at most.
int processors(int device);

inline constexpr int block_size = 256;

// Blocks for n items of work, one a thread, at most 2^31 - 1.
inline unsigned blocks_for(int64_t n, int64_t per_block = block_size) {
  const int64_t blocks = (n + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < 2147483647 ? blocks : 2147483647);
}

// Makes the device of a kernel's output current and says on which stream to launch; `done` checks
// that the launches were accepted.
class Launch {
 public:
  explicit Launch(Device device) : guard_(device), stream_(current_stream(device.index())) {}
  cudaStream_t stream() const { return stream_; }
  void done() const { check(cudaGetLastError()); }

 private:
  DeviceGuard guard_;
  cudaStream_t stream_;
};

}  // namespace rushlight::cuda
