// Autocast: within it ops that have a rule get their floating-point arguments in the dtype that
// suits them. The rules are keys of the op table (OpFunction::autocast); the state is the thread's.
#pragma once

#include <rushlight/schema.h>
#include <rushlight/tensor.h>
#include <rushlight/thread_state.h>

namespace rushlight::autocast {

RL_API bool is_available(DeviceType device);
inline bool is_enabled(DeviceType device) {
  return (tls.autocast() >> static_cast<int>(device) & 1) != 0;
}
RL_API void set_enabled(DeviceType device, bool enabled);

// What rules of the kind Lower cast to: bfloat16 on the CPU and float16 on accelerators until it is
// set.
RL_API ScalarType get_dtype(DeviceType device);
RL_API void set_dtype(DeviceType device, ScalarType dtype);

// Leaves that want a gradient, usually weights, are cast once until the outermost autocast ends.
RL_API bool is_cache_enabled();
RL_API void set_cache_enabled(bool enabled);
RL_API void clear_cache();
// How many autocasts are entered on this thread.
RL_API int increment_nesting();
RL_API int decrement_nesting();

// Whether the function has a rule for a device that autocast is on for.
inline bool applies(const OpFunction& function) {
  constexpr int cpu = 1 << static_cast<int>(kCPU);
  return (function.autocast.cpu != Rule::None && (tls.autocast() & cpu) != 0) ||
         (function.autocast.accelerator != Rule::None && (tls.autocast() & ~cpu) != 0);
}
// Calls the function on arguments as its rule wants them, without autocast inside.
RL_API std::vector<Value> dispatch(const OpFunction& function, std::vector<Value> arguments);

// What rules do with an argument: floats of up to 32 bits of this kind of device in another dtype,
// weights from the cache; anything else as it is.
RL_API Tensor cached_cast(ScalarType to, const Tensor& t, DeviceType device);

}  // namespace rushlight::autocast
