// Functions that stand in the place of ops of the table: a program's, for a dispatch key.
//
// A wrapper asks once, above autograd. What is there for autograd runs at once. What is there for a
// device becomes the lowest level below autograd and the wrapper is called again, so that the call
// is recorded as always.
#include "core/overrides.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include <rushlight/library.h>
#include <rushlight/mode.h>

#include "core/op_support.h"

namespace rushlight {

namespace overrides {

namespace {

using library::Override;

struct Row {
  uint64_t number;
  const OpInfo* op;
  DispatchKey key;
  std::shared_ptr<const Override> by;
};
struct Registry {
  std::shared_mutex mutex;
  uint64_t next = 1;
  std::unordered_map<const OpFunction*, std::vector<Row>> rows;  // the latest last
};
// Made when the first override is: programs do so before main, and end after it is used.
Registry& registry() {
  static auto* const made = new Registry();
  return *made;
}

thread_local const OpFunction* passed = nullptr;  // whose next call is not handed over
thread_local DispatchKeySet current;

// Sets something of the thread for a scope.
template <class T>
class Set {
 public:
  Set(T& place, T value) : place_(place), before_(std::exchange(place, value)) {}
  ~Set() { place_ = before_; }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;

 private:
  T& place_;
  T before_;
};

std::shared_ptr<const Override> find(const OpInfo& op, std::initializer_list<DispatchKey> keys) {
  Registry& all = registry();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  const auto of_function = all.rows.find(op.function);
  if (of_function == all.rows.end()) {
    return nullptr;
  }
  const std::vector<Row>& rows = of_function->second;
  for (const DispatchKey key : keys) {
    const auto row = std::find_if(rows.rbegin(), rows.rend(),
                                  [&](const Row& r) { return r.op == &op && r.key == key; });
    if (row != rows.rend()) {
      return row->by;
    }
  }
  return nullptr;
}

// What the arguments of a call say of where it goes.
struct Place {
  DeviceType device = kCPU;
  bool has_tensor = false;
  bool special = false;
  bool batched = false;

  explicit Place(const std::vector<Value>& arguments) {
    for (const Value& v : arguments) {
      v.for_each_tensor([&](const Tensor& t) { look_at(t); });
    }
    for (const Value& v : arguments) {
      if (!has_tensor && v.is<Device>()) {  // of a factory
        device = v.get<Device>().type();
      }
    }
  }
  bool recorded() const {
    return has_tensor && !batched && !tls.inference_mode && !library::is_below_autograd();
  }

 private:
  void look_at(const Tensor& t) {
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
};

std::vector<Value> run(const Override& by, const OpInfo& op, const std::vector<Value>& arguments,
                       DispatchKeySet keys) {
  const Set set(current, keys);
  return by.run(op, arguments, keys);
}

// The lowest level of one call: runs what is there for the device when its function is reached.
class Behind final : public Mode {
 public:
  Behind(const OpFunction& function, const Override& by, DispatchKeySet keys)
      : function_(function), by_(by), keys_(keys) {}
  std::vector<Value> take(const OpFunction& function, std::vector<Value> arguments) override {
    if (&function != &function_) {  // of the tangent, or of what is done before the kernel
      return function.call(arguments);
    }
    return Mode::take(function, std::move(arguments));
  }
  std::vector<Value> handle(const OpInfo& op, const std::vector<Value>& arguments) override {
    const AutoDispatchBelowAutograd below;
    return run(by_, op, arguments, keys_);
  }

 private:
  const OpFunction& function_;
  const Override& by_;
  DispatchKeySet keys_;
};

// The overload that can say a call, and its arguments.
std::pair<const OpInfo*, std::vector<Value>> said(const OpFunction& function,
                                                  std::vector<Value> arguments) {
  for (Value& v : arguments) {
    if (v.is<TensorOptions>()) {  // no argument of an overload
      v = Value(v.get<TensorOptions>().requires_grad(false));
    }
  }
  const OpInfo& op = overload_of(function, arguments);
  return {&op, arguments_of(op, std::move(arguments))};
}

std::vector<Value> call_passed(const OpFunction& function, const std::vector<Value>& arguments) {
  const Set<const OpFunction*> set(passed, &function);
  return function.call(arguments);
}

}  // namespace

bool takes(const OpFunction& function) {
  if (passed == &function) {
    passed = nullptr;
    return false;
  }
  Registry& all = registry();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  return all.rows.count(&function) != 0;
}

std::vector<Value> dispatch(const OpFunction& function, std::vector<Value> arguments) {
  const auto [op, values] = said(function, arguments);
  const Place place(values);
  const DispatchKeySet behind(library::backend_key(place.device));
  if (place.recorded()) {
    if (const auto by = find(*op, {library::autograd_key(place.device), DispatchKey::Autograd})) {
      return run(*by, *op, values, behind.add(library::autograd_key(place.device)));
    }
  }
  // What handles the call first calls the op again.
  if (!place.special && (tls.lower() == nullptr || function.composed)) {
    auto by = find(*op, {library::backend_key(place.device)});
    if (by == nullptr && function.composed) {
      by = find(*op,
                {DispatchKey::CompositeExplicitAutograd, DispatchKey::CompositeImplicitAutograd});
    }
    if (by != nullptr && function.composed) {
      return run(*by, *op, values, behind);
    }
    if (by != nullptr) {
      Behind mode(function, *by, behind);
      const ModeScope scope(mode, ModeScope::Level::Lower);
      return call_passed(function, arguments);
    }
  }
  return call_passed(function, arguments);
}

}  // namespace overrides

namespace library {

Override::~Override() = default;

bool may_override(DispatchKey key) {
  constexpr DispatchKeySet of_the_table = {DispatchKey::SparseCPU,
                                           DispatchKey::SparseCUDA,
                                           DispatchKey::SparseMeta,
                                           DispatchKey::SparseCsrCPU,
                                           DispatchKey::SparseCsrCUDA,
                                           DispatchKey::NestedTensorCPU,
                                           DispatchKey::TESTING_ONLY_GenericMode};
  return !(of_the_table | autocast_dispatch_keyset).has(key);
}

DispatchKeySet current_keys() { return overrides::current; }

uint64_t override_op(const OpInfo& op, DispatchKey key, std::shared_ptr<const Override> by) {
  overrides::Registry& all = overrides::registry();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  all.rows[op.function].push_back({all.next, &op, key, std::move(by)});
  process_asks.fetch_or(ask::overrides);
  return all.next++;
}

void take_back(uint64_t number) {
  overrides::Registry& all = overrides::registry();
  std::shared_ptr<const Override> last;  // goes when the lock is gone
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  for (auto& [function, rows] : all.rows) {
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const overrides::Row& r) { return r.number == number; });
    if (row == rows.end()) {
      continue;
    }
    last = std::move(row->by);
    rows.erase(row);
    if (rows.empty()) {
      all.rows.erase(function);
    }
    break;
  }
  if (all.rows.empty()) {
    process_asks.fetch_and(~ask::overrides);
  }
}

std::vector<Value> call_original(const OpInfo& op, const std::vector<Value>& arguments) {
  using overrides::passed;
  const bool overridden = (process_asks.load() & ask::overrides) != 0;
  const overrides::Set<const OpFunction*> set(passed, overridden ? op.function : passed);
  return call(op, arguments);
}

}  // namespace library

}  // namespace rushlight
