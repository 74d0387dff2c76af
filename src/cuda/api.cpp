// The C functions that python/rushlight/cuda calls through ctypes, so that this library depends on
// no version of Python. Each returns 0, or -1 after an error that rushlight_cuda_error() tells.
#include <algorithm>
#include <cstring>
#include <iterator>
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
int status_of(const F& f) {
  try {
    require_device();
    f();
    return 0;
  } catch (const std::exception& e) {
    last_error = e.what();
    return -1;
  }
}

Device device_of(int device) {
  RL_CHECK(device >= 0 && device < 128, "CUDA error: invalid device ordinal: ", device);
  return resolve(Device(kCUDA, static_cast<int8_t>(device)));
}

}  // namespace
}  // namespace rushlight::cuda

using namespace rushlight;        // NOLINT
using namespace rushlight::cuda;  // NOLINT

#define RL_CUDA_API extern "C" RL_API

RL_CUDA_API const char* rushlight_cuda_error() { return last_error.c_str(); }
RL_CUDA_API int rushlight_cuda_device_count() { return device_count(); }
RL_CUDA_API int rushlight_cuda_require() {
  return status_of([] {});
}
RL_CUDA_API int rushlight_cuda_runtime_version() { return CUDART_VERSION; }

// ---- devices ----

RL_CUDA_API int rushlight_cuda_name(int device, char* name, int room) {
  return status_of([&] {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device_of(device).index()));
    std::strncpy(name, properties.name, static_cast<size_t>(room) - 1);
    name[room - 1] = 0;
  });
}
// Major, minor, multiprocessors, bytes of memory, threads of a warp, bytes of L2 cache, threads and
// registers of a multiprocessor, bytes of shared memory of a block and of a multiprocessor, whether
// it is integrated, whether it is one of several on a board.
RL_CUDA_API int rushlight_cuda_properties(int device, int64_t* values) {
  return status_of([&] {
    cudaDeviceProp p{};
    check(cudaGetDeviceProperties(&p, device_of(device).index()));
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
  return status_of([&] {
    check(cudaDeviceCanAccessPeer(can, device_of(device).index(), device_of(other).index()));
  });
}

// ---- memory ----

RL_CUDA_API int rushlight_cuda_empty_cache() {
  return status_of([] { empty_cache(); });
}
RL_CUDA_API int rushlight_cuda_memory_info(int device, size_t* free, size_t* total) {
  return status_of([&] {
    const DeviceGuard guard(device_of(device));
    check(cudaMemGetInfo(free, total));
  });
}
// Lines of "name value".
RL_CUDA_API const char* rushlight_cuda_memory_stats(int device) {
  text.clear();
  const int failed = status_of([&] {
    for (const auto& [name, value] : memory_stats(device_of(device).index())) {
      text += str(name, " ", value, "\n");
    }
  });
  return failed != 0 ? nullptr : text.c_str();
}
RL_CUDA_API int rushlight_cuda_reset_memory_stats(int device, int peaks) {
  return status_of([&] { reset_memory_stats(device_of(device).index(), peaks != 0); });
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
