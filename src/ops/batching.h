// What the levels of vmap (batch_levels.cpp) and its rules (batching.cpp) know of each other.
#pragma once

#include <rushlight/batching.h>
#include <rushlight/mode.h>

namespace rushlight::batching {

// What the integers among a function's arguments are, where rules have to know it (the types Dim
// and Size of its schema): a bit for each that counts dimensions, for each list of a tensor's
// sizes.
struct Meanings {
  uint32_t dims = 0;
  uint32_t sizes = 0;

  bool is_dim(size_t argument) const { return (dims >> argument & 1) != 0; }
  bool is_size(size_t argument) const { return (sizes >> argument & 1) != 0; }
};
Meanings meanings_of(const OpFunction& function);  // generated

// The tensor of a level that is made of a value with the batch in front, whose own levels are
// lower.
Tensor of_level(const Tensor& value, int64_t level);

// Calls a function on arguments of which the innermost level's batches are taken out; results have
// them again.
std::vector<Value> call_by_rules(const OpFunction& function, std::vector<Value> arguments);

}  // namespace rushlight::batching
