// Functions that programs register for ops, by dispatch key: of the table's ops, of those that
// libraries define, and of all ops (fallbacks).
#pragma once

#include <rushlight/boxed_function.h>
#include <rushlight/schema.h>

namespace rushlight::functions {

using Kernel = std::shared_ptr<const library::Kernel>;

// The function that was registered last for the first of the keys that has one; null where there is
// none. Without an op the fallback.
Kernel find(const OpInfo* op, std::initializer_list<DispatchKey> keys);
// The same; where the op has none, the fallback.
Kernel find_or_fallback(const OpInfo& op, std::initializer_list<DispatchKey> keys);
// Calls it, which finds the keys in library::current_keys.
std::vector<Value> run(const library::Kernel& kernel, const OpInfo& op,
                       const std::vector<Value>& arguments, DispatchKeySet keys);

// Gives an op that was defined now the functions that were registered before.
void attach_waiting_rows(const OpInfo& op);

// What the arguments of a call say of where it goes.
struct Place {
  DeviceType device = kCPU;
  bool has_tensor = false;
  bool special = false;
  bool batched = false;
  explicit Place(const std::vector<Value>& arguments);
  // Whether functions for autograd are called.
  bool is_recorded() const;

 private:
  void add_tensor(const Tensor& t);
};

// Ops of the table: whether a call of a function is handed to `dispatch`, which is asked where some
// op has a function of a program.
bool wants_call(const OpFunction& function);
std::vector<Value> dispatch(const OpFunction& function, std::vector<Value> arguments);

}  // namespace rushlight::functions
