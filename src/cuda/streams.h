// Streams and events as the core asks for them (core/backend.h).
#pragma once

#include "core/backend.h"

namespace rushlight::cuda {

extern const Backend::Streams stream_functions;
extern const Backend::Events event_functions;
void synchronize(Device device);
void set_current_device(Device device);

}  // namespace rushlight::cuda
