// The cache of the GPUs' allocator, which the device's library keeps.
#include <dlfcn.h>

#include <rushlight/cuda_guard.h>

#include "core/backend.h"

namespace rushlight::cuda::CUDACachingAllocator {

void emptyCache() {
  if (loaded_backend(kCUDA) == nullptr) {
    return;  // nothing was taken yet
  }
  void* const library = dlopen(backend_path(kCUDA).c_str(), RTLD_NOW | RTLD_NOLOAD);
  using Empty = int (*)();
  const auto empty = library == nullptr
                         ? nullptr
                         : reinterpret_cast<Empty>(dlsym(library, "rushlight_cuda_empty_cache"));
  const int failed = empty == nullptr ? 0 : empty();  // a device without a cache keeps none
  if (library != nullptr) {
    dlclose(library);
  }
  RL_CHECK(failed == 0, "the cached memory of the GPUs could not be given back");
}

}  // namespace rushlight::cuda::CUDACachingAllocator
