// What the levels of vmap (batch_levels.cpp) and its rules (batching.cpp) know of each other.
#pragma once

#include <rushlight/batching.h>
#include <rushlight/mode.h>

namespace rushlight::batching {

inline bool is_dim(const OpFunction& function, size_t argument) {
  return function.arguments()[argument].type.meaning == Meaning::Dim;
}
inline bool is_size(const OpFunction& function, size_t argument) {
  return function.arguments()[argument].type.meaning == Meaning::Size;
}

// The tensor of a level that is made of a value with the batch in front, whose own levels are
// lower.
Tensor of_level(const Tensor& value, int64_t level);

// Calls a function on arguments of which the innermost level's batches are taken out; results have
// them again.
std::vector<Value> call_by_rules(const OpFunction& function, std::vector<Value> arguments);

}  // namespace rushlight::batching
