// Ops of the table that a program has overridden (rushlight/library.h).
#pragma once

#include <rushlight/schema.h>

namespace rushlight::overrides {

// Whether a call of this function is handed to `dispatch`: asked where some op is overridden.
bool takes(const OpFunction& function);
std::vector<Value> dispatch(const OpFunction& function, std::vector<Value> arguments);

}  // namespace rushlight::overrides
