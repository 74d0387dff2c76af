// Autocast: its state, the cache of cast weights, and calls of ops by their rules.
#include <rushlight/autocast.h>

#include <unordered_map>

#include <rushlight/ops.h>

namespace rushlight::autocast {

namespace {

struct Cast {
  Tensor source;  // kept, so that no other tensor gets its address
  uint32_t version;
  Tensor result;
};

struct State {
  ScalarType dtypes[num_device_types] = {kBFloat16, kFloat16, ScalarType::Undefined};  // by device
  bool cache_enabled = true;
  int nesting = 0;
  std::unordered_map<const TensorImpl*, Cast> cache;
};
State& state() {
  static thread_local State state;
  return state;
}

void check_available(DeviceType device) {
  RL_CHECK(is_available(device), "autocast: unsupported autocast device_type '",
           Device(device).str(), "'");
}

bool is_on(const Tensor& t) { return t.defined() && is_enabled(t.device().type()); }
// What rules concern.
bool is_cast(const Tensor& t, DeviceType device) {
  return t.defined() && t.device().type() == device && is_floating(t.dtype()) &&
         t.dtype() != kFloat64;
}

// Casts of weights are kept. One that was made without a graph does not serve where one is wanted.
Tensor cast(const Tensor& t, ScalarType to) {
  State& s = state();
  const bool keep = s.cache_enabled && s.nesting > 0 && to != kFloat32 && t.dtype() == kFloat32 &&
                    t.requires_grad() && t.is_leaf() && !t.is_view() && !tls.inference_mode;
  if (!keep) {
    return t.to(to);
  }
  const auto found = s.cache.find(t.impl());
  if (found != s.cache.end() && found->second.version == t._version() &&
      found->second.result.dtype() == to &&
      (found->second.result.requires_grad() || !tls.grad_mode)) {
    return found->second.result;
  }
  const Tensor result = t.to(to);
  s.cache.insert_or_assign(t.impl(), Cast{t, t._version(), result});
  return result;
}

ScalarType widest_dtype(const std::vector<Value>& arguments, DeviceType device) {
  ScalarType widest = ScalarType::Undefined;
  for (const Value& v : arguments) {
    v.for_each_tensor([&](const Tensor& t) {
      if (is_cast(t, device)) {
        widest = widest == ScalarType::Undefined ? t.dtype() : promote_types(widest, t.dtype());
      }
    });
  }
  return widest;
}

// The autocasts that are on, for a scope.
class Only {
 public:
  explicit Only(uint8_t devices) : before_(tls.exchange_autocast(devices)) {}
  ~Only() { tls.exchange_autocast(before_); }
  Only(const Only&) = delete;
  Only& operator=(const Only&) = delete;

 private:
  uint8_t before_;
};

}  // namespace

Tensor cached_cast(ScalarType to, const Tensor& t, DeviceType device) {
  return is_cast(t, device) && t.dtype() != to ? cast(t, to) : t;
}

bool is_available(DeviceType device) {
  return device != kMeta && static_cast<int>(device) < num_device_types;
}

void set_enabled(DeviceType device, bool enabled) {
  check_available(device);
  const auto bit = static_cast<uint8_t>(1 << static_cast<int>(device));
  const uint8_t before = tls.autocast();
  tls.exchange_autocast(static_cast<uint8_t>(enabled ? before | bit : before & ~bit));
}

ScalarType get_dtype(DeviceType device) {
  check_available(device);
  return state().dtypes[static_cast<int>(device)];
}
void set_dtype(DeviceType device, ScalarType dtype) {
  check_available(device);
  RL_CHECK(is_floating(dtype), "autocast: expected a floating-point dtype, got ",
           dtype_info(dtype).name);
  state().dtypes[static_cast<int>(device)] = dtype;
}

bool is_cache_enabled() { return state().cache_enabled; }
void set_cache_enabled(bool enabled) { state().cache_enabled = enabled; }
void clear_cache() { state().cache.clear(); }
int increment_nesting() { return ++state().nesting; }
int decrement_nesting() { return --state().nesting; }

std::vector<Value> dispatch(const OpFunction& function, std::vector<Value> arguments) {
  std::optional<DeviceType> device;
  for (const Value& v : arguments) {
    v.for_each_tensor(
        [&](const Tensor& t) { device = !device && is_on(t) ? t.device().type() : device; });
  }
  if (!device) {
    const Only nothing(0);
    return function.call(arguments);
  }
  const Rule rule = *device == kCPU ? function.autocast.cpu : function.autocast.accelerator;
  if (rule == Rule::None) {  // what the function is made of may have rules
    const Only its(static_cast<uint8_t>(1 << static_cast<int>(*device)));
    return function.call(arguments);
  }
  RL_CHECK(rule != Rule::Refused, function.overloads[0].name,
           " is unsafe to autocast: its gradient leaves the range of 16-bit floating-point numbers."
           " Compute the loss from logits, or with autocast disabled on float32 inputs.");
  const ScalarType to = rule == Rule::Lower     ? state().dtypes[static_cast<int>(*device)]
                        : rule == Rule::Float32 ? kFloat32
                                                : widest_dtype(arguments, *device);
  const Only nothing(0);
  for (Value& v : arguments) {
    v.change_tensors(
        [&](const Tensor& t) { return is_cast(t, *device) && t.dtype() != to ? cast(t, to) : t; });
  }
  return function.call(arguments);
}

}  // namespace rushlight::autocast
