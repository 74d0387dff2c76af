// The C functions that python/rushlight/cuda calls through ctypes, so that this library depends on
// no version of Python. Each returns 0, or -1 after an error that rushlight_cuda_error() tells.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>
#include <string>

#include "core/backend.h"
#include "cuda/column.h"
#include "cuda/memory.h"
#include "cuda/runtime.h"

namespace rushlight::cuda {
namespace {

thread_local std::string last_error;
thread_local std::string text;  // what the last function that returns text gave

template <class F>
int guarded(const F& f) {
  try {
    require_device();
    f();
    return 0;
  } catch (const std::exception& e) {
    last_error = e.what();
    return -1;
  }
}

Device numbered(int device) {
  RL_CHECK(device >= 0 && device < 128, "CUDA error: invalid device ordinal: ", device);
  return resolve(Device(kCUDA, static_cast<int8_t>(device)));
}

// Pools of streams: each call takes the next of 32.
cudaStream_t next_stream(int device, int priority) {
  constexpr int count = 32;
  static std::mutex mutex;
  static cudaStream_t streams[128][2][count];
  static unsigned next[128][2];
  const std::lock_guard<std::mutex> lock(mutex);
  const int high = priority < 0 ? 1 : 0;
  cudaStream_t& stream = streams[device][high][next[device][high]++ % count];
  if (stream == nullptr) {
    const DeviceGuard guard(numbered(device));
    int least = 0;
    int greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    check(
        cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, high != 0 ? greatest : least));
  }
  return stream;
}

}  // namespace
}  // namespace rushlight::cuda

using namespace rushlight;        // NOLINT
using namespace rushlight::cuda;  // NOLINT

#define RL_CUDA_API extern "C" RL_API

RL_CUDA_API const char* rushlight_cuda_error() { return last_error.c_str(); }
RL_CUDA_API int rushlight_cuda_device_count() { return device_count(); }
RL_CUDA_API int rushlight_cuda_require() {
  return guarded([] {});
}
RL_CUDA_API int rushlight_cuda_runtime_version() { return CUDART_VERSION; }

// ---- devices ----

RL_CUDA_API int rushlight_cuda_current_device(int* device) {
  return guarded([&] { *device = current_device(); });
}
RL_CUDA_API int rushlight_cuda_set_device(int device) {
  return guarded([&] { set_device(numbered(device).index()); });
}
RL_CUDA_API int rushlight_cuda_synchronize(int device) {
  return guarded([&] {
    const DeviceGuard guard(numbered(device));
    check(cudaDeviceSynchronize());
  });
}
RL_CUDA_API int rushlight_cuda_name(int device, char* name, int room) {
  return guarded([&] {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, numbered(device).index()));
    std::strncpy(name, properties.name, static_cast<size_t>(room) - 1);
    name[room - 1] = 0;
  });
}
// Major, minor, multiprocessors, bytes of memory, threads of a warp, bytes of L2 cache, threads and
// registers of a multiprocessor, bytes of shared memory of a block and of a multiprocessor, whether
// it is integrated, whether it is one of several on a board.
RL_CUDA_API int rushlight_cuda_properties(int device, int64_t* values) {
  return guarded([&] {
    cudaDeviceProp p{};
    check(cudaGetDeviceProperties(&p, numbered(device).index()));
    const int64_t all[] = {p.major,
                           p.minor,
                           p.multiProcessorCount,
                           static_cast<int64_t>(p.totalGlobalMem),
                           p.warpSize,
                           p.l2CacheSize,
                           p.maxThreadsPerMultiProcessor,
                           p.regsPerMultiprocessor,
                           static_cast<int64_t>(p.sharedMemPerBlock),
                           static_cast<int64_t>(p.sharedMemPerMultiprocessor),
                           p.integrated,
                           p.isMultiGpuBoard};
    std::copy(std::begin(all), std::end(all), values);
  });
}
RL_CUDA_API int rushlight_cuda_can_access_peer(int device, int other, int* can) {
  return guarded([&] {
    check(cudaDeviceCanAccessPeer(can, numbered(device).index(), numbered(other).index()));
  });
}

// ---- streams and events ----

RL_CUDA_API int rushlight_cuda_stream_new(int device, int priority, void** stream) {
  return guarded([&] { *stream = next_stream(numbered(device).index(), priority); });
}
RL_CUDA_API int rushlight_cuda_stream_current(int device, void** stream) {
  return guarded([&] { *stream = current_stream(numbered(device).index()); });
}
RL_CUDA_API int rushlight_cuda_stream_set(int device, void* stream) {
  return guarded(
      [&] { set_current_stream(numbered(device).index(), static_cast<cudaStream_t>(stream)); });
}
RL_CUDA_API int rushlight_cuda_stream_synchronize(int device, void* stream) {
  return guarded([&] {
    const DeviceGuard guard(numbered(device));
    check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
  });
}
RL_CUDA_API int rushlight_cuda_stream_query(int device, void* stream, int* done) {
  return guarded([&] {
    const DeviceGuard guard(numbered(device));
    const cudaError_t status = cudaStreamQuery(static_cast<cudaStream_t>(stream));
    *done = status == cudaSuccess;
    if (status == cudaErrorNotReady) {
      (void)cudaGetLastError();
    } else {
      check(status);
    }
  });
}
RL_CUDA_API int rushlight_cuda_stream_wait(int device, void* stream, void* event) {
  return guarded([&] {
    const DeviceGuard guard(numbered(device));
    check(
        cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), static_cast<cudaEvent_t>(event), 0));
  });
}
RL_CUDA_API int rushlight_cuda_event_new(int device, int timing, int blocking, void** event) {
  return guarded([&] {
    const DeviceGuard guard(numbered(device));
    const unsigned flags = (timing != 0 ? 0u : unsigned{cudaEventDisableTiming}) |
                           (blocking != 0 ? unsigned{cudaEventBlockingSync} : 0u);
    cudaEvent_t made = nullptr;
    check(cudaEventCreateWithFlags(&made, flags));
    *event = made;
  });
}
RL_CUDA_API int rushlight_cuda_event_delete(void* event) {
  return guarded([&] { check(cudaEventDestroy(static_cast<cudaEvent_t>(event))); });
}
RL_CUDA_API int rushlight_cuda_event_record(int device, void* event, void* stream) {
  return guarded([&] {
    const DeviceGuard guard(numbered(device));
    check(cudaEventRecord(static_cast<cudaEvent_t>(event), static_cast<cudaStream_t>(stream)));
  });
}
RL_CUDA_API int rushlight_cuda_event_query(void* event, int* done) {
  return guarded([&] {
    const cudaError_t status = cudaEventQuery(static_cast<cudaEvent_t>(event));
    *done = status == cudaSuccess;
    if (status == cudaErrorNotReady) {
      (void)cudaGetLastError();
    } else {
      check(status);
    }
  });
}
RL_CUDA_API int rushlight_cuda_event_synchronize(void* event) {
  return guarded([&] { check(cudaEventSynchronize(static_cast<cudaEvent_t>(event))); });
}
RL_CUDA_API int rushlight_cuda_event_elapsed(void* start, void* end, float* milliseconds) {
  return guarded([&] {
    check(cudaEventElapsedTime(milliseconds, static_cast<cudaEvent_t>(start),
                               static_cast<cudaEvent_t>(end)));
  });
}

// ---- memory ----

RL_CUDA_API int rushlight_cuda_empty_cache() {
  return guarded([] { empty_cache(); });
}
RL_CUDA_API int rushlight_cuda_memory_info(int device, size_t* free, size_t* total) {
  return guarded([&] {
    const DeviceGuard guard(numbered(device));
    check(cudaMemGetInfo(free, total));
  });
}
// Lines of "name value".
RL_CUDA_API const char* rushlight_cuda_memory_stats(int device) {
  text.clear();
  const int failed = guarded([&] {
    for (const auto& [name, value] : memory_stats(numbered(device).index())) {
      text += str(name, " ", value, "\n");
    }
  });
  return failed != 0 ? nullptr : text.c_str();
}
RL_CUDA_API int rushlight_cuda_reset_memory_stats(int device, int peaks) {
  return guarded([&] { reset_memory_stats(numbered(device).index(), peaks != 0); });
}
RL_CUDA_API int rushlight_cuda_record_use(void* p, int device, void* stream) {
  return guarded([&] { record_use(p, numbered(device), static_cast<cudaStream_t>(stream)); });
}

// ---- the column ----

// The toolkit's version as CUDA writes it: 13000 for 13.0.
RL_CUDA_API int rushlight_cuda_toolkit_version() { return CUDART_VERSION; }
// What there are kernels for, as CUDA_ARCHITECTURES has it, with spaces: "80-virtual 90-real".
RL_CUDA_API const char* rushlight_cuda_arch_list() { return RL_CUDA_ARCH; }

// Lines of "name 1" for the kernels there are and "name 0" for those missing; needs no GPU.
RL_CUDA_API const char* rushlight_cuda_column() {
  text.clear();
  const auto* const entries = reinterpret_cast<void* const*>(&rushlight::cuda::table);
  for (int i = 0; kernel_names[i] != nullptr; i++) {
    text += str(kernel_names[i], entries[i] != nullptr ? " 1\n" : " 0\n");
  }
  return text.c_str();
}
