// The cache of a device's allocator, which the device's library keeps and empties.
#include <dlfcn.h>

#include <rushlight/device_cache.h>

#include "core/backend.h"

namespace rushlight {

void empty_device_cache(DeviceType type) {
  if (loaded_backend(type) == nullptr) {
    return;
  }
  void* const library = dlopen(backend_path(type).c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) {
    return;  // a device that needs no library keeps nothing
  }
  using Empty = int (*)();
  const std::string name = str("rushlight_", Device(type), "_empty_cache");
  const auto empty = reinterpret_cast<Empty>(dlsym(library, name.c_str()));
  const int failed = empty == nullptr ? 0 : empty();
  dlclose(library);
  RL_CHECK(failed == 0, "the memory that ", Device(type),
           " keeps for reuse could not be given back");
}

}  // namespace rushlight
