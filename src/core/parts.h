// What Python code that looks at ops is shown in the place of some: entries with `shown=`.
#pragma once

#include <rushlight/schema.h>

namespace rushlight {

using PartsFunction = std::vector<Value> (*)(const std::vector<Value>& arguments);
// The same as calls of other ops, below autograd (modes, classes with __torch_dispatch__) and above
// it (a trace); null where the op is shown itself.
RL_API PartsFunction parts_of(const OpFunction& function);
RL_API PartsFunction traced_as(const OpFunction& function);

}  // namespace rushlight
