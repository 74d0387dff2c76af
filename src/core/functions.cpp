// The functions that programs register, and the calls of the table's ops that go to them.
//
// A wrapper asks once, above autograd. What is there for autograd runs at once. What is there for a
// device becomes the lowest level below autograd and the wrapper is called again, so that the call
// is recorded as always.
#include "core/functions.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include <rushlight/library.h>
#include <rushlight/mode.h>

#include "core/op_support.h"
#include "core/scoped_value.h"

namespace rushlight {

namespace functions {

namespace {

struct Row {
  uint64_t number;
  const OpInfo* op;
  DispatchKey key;
  Kernel kernel;
};
using Rows = std::vector<Row>;  // the latest last
struct Registry {
  std::shared_mutex mutex;
  uint64_t next = 1;
  std::unordered_map<const OpFunction*, Rows> of_ops;  // null: fallbacks
  std::unordered_map<std::string, Rows> waiting;       // of ops that are not defined yet
  size_t of_table = 0;
};
// Made when the first function is registered: programs do so before main, and end after it is used.
Registry& registry() {
  static auto* const made = new Registry();
  return *made;
}

thread_local const OpFunction* passed = nullptr;  // whose next call is not handed over
thread_local DispatchKeySet current;
thread_local int below_autograd = 0;

// The lowest level of one call: runs what is there for the device when its function is reached.
class Behind final : public Mode {
 public:
  Behind(const OpFunction& function, const library::Kernel& kernel, DispatchKeySet keys)
      : function_(function), kernel_(kernel), keys_(keys) {}
  std::vector<Value> take(const OpFunction& function, std::vector<Value> arguments) override {
    if (&function != &function_) {  // of the tangent, or of what is done before the kernel
      return function.call(arguments);
    }
    return Mode::take(function, std::move(arguments));
  }
  std::vector<Value> handle(const OpInfo& op, const std::vector<Value>& arguments) override {
    const AutoDispatchBelowAutograd below;
    return run(kernel_, op, arguments, keys_);
  }

 private:
  const OpFunction& function_;
  const library::Kernel& kernel_;
  DispatchKeySet keys_;
};

// The overload that can say a call, and its arguments.
std::pair<const OpInfo*, std::vector<Value>> overload_of_call(const OpFunction& function,
                                                              std::vector<Value> arguments) {
  for (Value& v : arguments) {
    if (v.is<TensorOptions>()) {  // no argument of an overload
      v = Value(v.get<TensorOptions>().requires_grad(false));
    }
  }
  const OpInfo& op = overload_of(function, arguments);
  return {&op, arguments_of(op, std::move(arguments))};
}

std::vector<Value> call_past_registry(const OpFunction& function,
                                      const std::vector<Value>& arguments) {
  const ScopedValue<const OpFunction*> set(passed, &function);
  return function.call(arguments);
}

std::string full_name(const OpInfo& op) {
  return str(op.space, "::", op.name, *op.overload != '\0' ? "." : "", op.overload);
}

}  // namespace

Kernel find(const OpInfo* op, std::initializer_list<DispatchKey> keys) {
  Registry& all = registry();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  const auto of_op = all.of_ops.find(op == nullptr ? nullptr : op->function);
  if (of_op == all.of_ops.end()) {
    return nullptr;
  }
  const Rows& rows = of_op->second;
  for (const DispatchKey key : keys) {
    const auto row = std::find_if(rows.rbegin(), rows.rend(),
                                  [&](const Row& r) { return r.op == op && r.key == key; });
    if (row != rows.rend()) {
      return row->kernel;
    }
  }
  return nullptr;
}

Kernel find_or_fallback(const OpInfo& op, std::initializer_list<DispatchKey> keys) {
  const Kernel found = find(&op, keys);
  return found != nullptr ? found : find(nullptr, keys);
}

void attach_waiting_rows(const OpInfo& op) {
  Registry& all = registry();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  const auto found = all.waiting.find(full_name(op));
  if (found == all.waiting.end()) {
    return;
  }
  Rows& rows = all.of_ops[op.function];
  for (Row& row : found->second) {
    row.op = &op;
    rows.push_back(std::move(row));
  }
  all.waiting.erase(found);
}

std::vector<Value> run(const library::Kernel& kernel, const OpInfo& op,
                       const std::vector<Value>& arguments, DispatchKeySet keys) {
  const ScopedValue set(current, keys);
  Stack stack = arguments;
  const OperatorHandle handle(op);
  (*kernel.function)(&handle, stack);
  return stack;
}

Place::Place(const std::vector<Value>& arguments) {
  for (const Value& v : arguments) {
    v.for_each_tensor([&](const Tensor& t) { add_tensor(t); });
  }
  for (const Value& v : arguments) {
    if (!has_tensor && v.is<Device>()) {  // of a factory
      device = v.get<Device>().type();
    }
  }
}
bool Place::is_recorded() const {
  return has_tensor && !tls.inference_mode && !library::is_below_autograd();
}
void Place::add_tensor(const Tensor& t) {
  if (!t.defined()) {
    return;
  }
  // A number in a tensor on the host goes where the others are.
  device = !has_tensor || !t.device().is_cpu() ? t.device().type() : device;
  has_tensor = true;
  if (tls.see_special && is_special(t)) {
    special = true;
    batched = batched || t.impl()->special()->level() > 0;
  }
}

bool wants_call(const OpFunction& function) {
  if (passed == &function) {
    passed = nullptr;
    return false;
  }
  Registry& all = registry();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  return all.of_ops.count(&function) != 0;
}

std::vector<Value> dispatch(const OpFunction& function, std::vector<Value> arguments) {
  const auto [op, values] = overload_of_call(function, arguments);
  const Place place(values);
  const DispatchKeySet behind(library::backend_key(place.device));
  const DispatchKey autograd = library::autograd_key(place.device);
  if (place.is_recorded() && !place.batched) {
    if (const Kernel kernel = find(op, {autograd, DispatchKey::Autograd})) {
      return run(*kernel, *op, values, behind.add(autograd));
    }
  }
  // What handles the call first calls the op again.
  if (!place.special && (tls.lower() == nullptr || function.composed)) {
    Kernel kernel = find(op, {library::backend_key(place.device)});
    if (kernel == nullptr && function.composed) {
      kernel = find(
          op, {DispatchKey::CompositeExplicitAutograd, DispatchKey::CompositeImplicitAutograd});
    }
    if (kernel != nullptr && function.composed) {
      return run(*kernel, *op, values, behind);
    }
    if (kernel != nullptr) {
      Behind mode(function, *kernel, behind);
      const ModeScope scope(mode, ModeScope::Level::Lower);
      return call_past_registry(function, arguments);
    }
  }
  return call_past_registry(function, arguments);
}

}  // namespace functions

namespace library {

using functions::registry;

Boxed::~Boxed() = default;

DispatchKeySet current_keys() { return functions::current; }
bool is_defined_by_library(const OpInfo& op) { return op.text != nullptr; }
bool is_below_autograd() { return functions::below_autograd > 0; }
void enter_below_autograd(int by) { functions::below_autograd += by; }

namespace {
// What autocast and sparse layouts do with an op of the table is said in the table.
void check_may_register(const OpInfo& op, DispatchKey key) {
  constexpr DispatchKeySet of_the_table = {DispatchKey::SparseCPU,
                                           DispatchKey::SparseCUDA,
                                           DispatchKey::SparseMeta,
                                           DispatchKey::SparseCsrCPU,
                                           DispatchKey::SparseCsrCUDA,
                                           DispatchKey::NestedTensorCPU,
                                           DispatchKey::TESTING_ONLY_GenericMode};
  RL_CHECK_NOT_IMPLEMENTED(!(of_the_table | autocast_dispatch_keyset).has(key), "impl(\"", op.name,
                           "\"): an op of the table has no function of its own for ", name_of(key));
}
}  // namespace

uint64_t implement(const std::string& full_name, DispatchKey key, Kernel kernel) {
  const OpInfo* const op = full_name == "_" ? nullptr : find_op_named(full_name);
  RL_CHECK(op == nullptr || !kernel.typed || kernel.function == nullptr ||
               kernel.arguments.size() == op->arguments.size(),
           "the function for ", op == nullptr ? full_name : schema_text(*op), " takes ",
           kernel.arguments.size(), " arguments");
  const bool of_table = op != nullptr && !is_defined_by_library(*op);
  if (of_table) {
    check_may_register(*op, key);
  }
  functions::Registry& all = registry();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  const uint64_t number = all.next++;
  if (of_table && kernel.function == nullptr) {  // as if there were none
    return number;
  }
  functions::Rows& rows = op == nullptr && full_name != "_"
                              ? all.waiting[full_name]
                              : all.of_ops[op == nullptr ? nullptr : op->function];
  rows.push_back({number, op, key, std::make_shared<const Kernel>(std::move(kernel))});
  if (of_table) {
    all.of_table++;
    process_asks.fetch_or(ask::overrides);
  }
  return number;
}

namespace {
// Takes the row of a number out of a map of rows; what it was.
template <class Map>
std::optional<functions::Row> take_out(Map& map, uint64_t number) {
  for (auto at = map.begin(); at != map.end(); ++at) {
    functions::Rows& rows = at->second;
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const functions::Row& r) { return r.number == number; });
    if (row != rows.end()) {
      functions::Row out = std::move(*row);
      rows.erase(row);
      if (rows.empty()) {
        map.erase(at);
      }
      return out;
    }
  }
  return std::nullopt;
}
}  // namespace

void take_back(uint64_t number) {
  functions::Registry& all = registry();
  std::optional<functions::Row> last;  // goes when the lock is gone
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  last = take_out(all.of_ops, number);
  if (!last) {
    last = take_out(all.waiting, number);
  }
  if (last && last->op != nullptr && !is_defined_by_library(*last->op) && --all.of_table == 0) {
    process_asks.fetch_and(~ask::overrides);
  }
}

std::shared_ptr<const Kernel> function_of(const OpInfo& op, DispatchKey key) {
  return functions::find(&op, {key});
}

std::vector<Value> call_original(const OpInfo& op, const std::vector<Value>& arguments) {
  using functions::passed;
  const bool overridden = (process_asks.load() & ask::overrides) != 0;
  const ScopedValue<const OpFunction*> set(passed, overridden ? op.function : passed);
  return call(op, arguments);
}

}  // namespace library

AutoDispatchBelowADInplaceOrView::AutoDispatchBelowADInplaceOrView() {
  functions::below_autograd++;
}
AutoDispatchBelowADInplaceOrView::~AutoDispatchBelowADInplaceOrView() {
  functions::below_autograd--;
}

}  // namespace rushlight
