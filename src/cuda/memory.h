// Memory of the GPUs and memory of the host that they read by themselves, both cached.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <utility>
#include <vector>

#include <rushlight/storage.h>
#include <rushlight/tensor.h>

namespace rushlight::cuda {

// Of the device's caching allocator, on the current stream. OutOfMemoryError: "CUDA out of memory.
// Tried to allocate …". Null for 0 bytes.
void* allocate(size_t bytes, Device device);
void deallocate(void* p, size_t bytes, void* context);  // context: the device's number

// The memory was handed to work on another stream than the one it was taken on: it is not reused
// before that is done.
void record_use(void* p, Device device, cudaStream_t stream);

void empty_cache();
std::vector<std::pair<std::string, int64_t>> memory_stats(int device);
void reset_memory_stats(int device, bool peaks);

// Host memory that the GPU reads and writes by itself; kept for reuse when it is freed, once copies
// that `record_pinned_use` told of are done.
Storage allocate_pinned(size_t bytes);
bool is_pinned(const void* p);
void record_pinned_use(const void* p, int device, cudaStream_t stream);

// Memory for the time of a launch, on the current device and stream.
class Scratch {
 public:
  Scratch(size_t bytes, Device device)
      : data_(allocate(bytes, device)), bytes_(bytes), device_(device.index()) {}
  ~Scratch() { deallocate(data_, bytes_, reinterpret_cast<void*>(device_)); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_;
  size_t bytes_;
  intptr_t device_;
};

}  // namespace rushlight::cuda
