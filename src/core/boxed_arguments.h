// From the arguments of an overload to those of the C++ function behind it.
#pragma once

#include <rushlight/schema.h>

namespace rushlight {

// Joins dtype, layout, device and pin_memory where the function takes them as one, and fills in
// what the overload does not say. NotImplementedError where an argument that the function lacks
// says something else than its default.
RL_API std::vector<Value> function_arguments(const OpInfo& op, const std::vector<Value>& arguments);

// A list that programs share as the kind of list that an op takes, which is copied.
RL_API Value list_of_ops(const TypeInfo& type, const Value& list);

}  // namespace rushlight
