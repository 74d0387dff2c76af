// What the core asks for when it has loaded this library.
#include "core/backend.h"

#include "core/interface_hash.h"
#include "cuda/column.h"
#include "cuda/copy.h"
#include "cuda/memory.h"
#include "cuda/runtime.h"
#include "cuda/streams.h"

extern "C" RL_API const rushlight::Backend* rushlight_backend() {
  namespace cuda = rushlight::cuda;
  static const rushlight::Backend backend = {
      .interface_hash = rushlight::interface_hash,
      .kernels = &cuda::table,
      .device_count = cuda::device_count,
      .resolve = cuda::resolve,
      .current_device = cuda::current_device,
      .set_device = cuda::set_current_device,
      .synchronize = cuda::synchronize,
      .allocate = cuda::allocate,
      .deallocate = cuda::deallocate,
      .copy = cuda::copy,
      .fill = cuda::fill,
      .allocate_pinned = cuda::allocate_pinned,
      .is_pinned = cuda::is_pinned,
      .streams = cuda::stream_functions,
      .events = cuda::event_functions,
  };
  return &backend;
}
