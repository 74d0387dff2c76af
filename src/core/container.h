// What a container leaves a process of its machine.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include <rushlight/export.h>

namespace rushlight {

struct ContainerLimits {
  double processors = std::numeric_limits<double>::infinity();  // seconds of work in a second
  uint64_t bytes = std::numeric_limits<uint64_t>::max();
};

// The least of the limits of this process's control groups and those around them, of version 1 and
// 2 (cgroups(7)). `root`: where /proc and /sys are found, for tests.
RL_API ContainerLimits container_limits(const std::string& root = "");

}  // namespace rushlight
