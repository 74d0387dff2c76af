// The words in which generated code writes the registry (gen/registry.py).
#pragma once

#include <rushlight/schema.h>

namespace rushlight {

// The overloads of a function, which are defined with all others, and the function itself, which is
// defined beside what it runs; each needs the other's address.
#define RL_OVERLOADS(name)                 \
  extern const OpFunction function_##name; \
  extern const OpInfo overloads_##name[];  \
  constexpr OpInfo overloads_##name[]
#define RL_OP_FUNCTION(name, overloads)            \
  extern const OpInfo overloads_##name[overloads]; \
  extern const OpFunction function_##name;         \
  const OpFunction function_##name

// A rule of vmap that says all of a function.
template <batching::Kind kind, uint64_t covers>
inline constexpr batching::Rule only_rule[] = {{kind, covers}};

namespace rows {
using enum BaseType;

constexpr DefaultInfo none = {.kind = DefaultInfo::None};
constexpr DefaultInfo boolean(bool b) { return {.kind = DefaultInfo::Bool, .ints = {b}}; }
constexpr DefaultInfo integer(int64_t i) { return {.kind = DefaultInfo::Int, .ints = {i}}; }
constexpr DefaultInfo real(double d) { return {.kind = DefaultInfo::Float, .number = d}; }
constexpr DefaultInfo string(const char* s) { return {.kind = DefaultInfo::String, .text = s}; }
template <class... T>
constexpr DefaultInfo list(T... items) {
  return {.kind = DefaultInfo::List, .count = sizeof...(T), .ints = {items...}};
}
}  // namespace rows

}  // namespace rushlight
