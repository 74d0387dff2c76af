// Memory that a device's allocator keeps for reuse.
#pragma once

#include <rushlight/device.h>

namespace rushlight {

// Gives back what no tensor uses; where the device was not used yet there is none.
RL_API void empty_device_cache(DeviceType type);

}  // namespace rushlight
