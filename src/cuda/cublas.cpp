#include "cuda/cublas.h"

#include <dlfcn.h>

#include <mutex>

#include "cuda/runtime.h"

namespace rushlight::cuda {

namespace {

CublasLt load() {
  // Found through this library's search path, which leads to the nvidia-cublas wheel, or
  // LD_LIBRARY_PATH.
  const char* const file = "libcublasLt.so.13";
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  RL_CHECK(library != nullptr,
           "multiplying matrices on a GPU needs cuBLASLt (pip install "
           "'nvidia-cublas>=13,<14'): ",
           dlerror());
  CublasLt functions{};
#define RL_FIND(name)                                                                 \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, #name)); \
  RL_CHECK(functions.name != nullptr, file, " lacks ", #name);
  RL_CUBLAS_FUNCTIONS(RL_FIND)
#undef RL_FIND
  return functions;
}

}  // namespace

const CublasLt& cublas() {
  static const CublasLt functions = load();
  return functions;
}

cublasLtHandle_t cublas_handle(int device) {
  static std::mutex mutex;
  static cublasLtHandle_t handles[128];
  const std::lock_guard<std::mutex> lock(mutex);
  cublasLtHandle_t& handle = handles[device];
  if (handle == nullptr) {
    const DeviceGuard guard(Device(kCUDA, static_cast<int8_t>(device)));
    check(cublas().cublasLtCreate(&handle));
  }
  return handle;
}

void check(cublasStatus_t status) {
  RL_CHECK(status == CUBLAS_STATUS_SUCCESS,
           "CUDA error: cuBLAS: ", cublas().cublasLtGetStatusString(status));
}

}  // namespace rushlight::cuda
