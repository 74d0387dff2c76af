// What a fill with random numbers takes from a generator.
#pragma once

#include <mutex>

#include "core/generator.h"

namespace rushlight::cuda {

struct Draw {
  uint64_t seed;
  uint64_t offset;
};
inline Draw draw_from(const Generator& generator, Device device) {
  const Generator& g = generator.defined() ? generator : default_generator(device);
  RL_CHECK(g.device().type() == device.type(), "Expected a '", Device(device.type()),
           "' device type for generator but found '", Device(g.device().type()), "'");
  const std::lock_guard<std::mutex> lock(g->mutex);
  const uint64_t seed = g->seed;
  return {seed, random::take_offset(*g, 4)};
}

}  // namespace rushlight::cuda
