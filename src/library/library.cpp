// TORCH_LIBRARY: what its blocks define and implement, dispatch keys, handles of ops.
#include <rushlight/library.h>

#include <rushlight/graph_function.h>
#include <rushlight/mode.h>
#include <rushlight/script_types.h>

#include "core/functions.h"

namespace rushlight {

namespace library {

namespace {
// A row a device; those that have none here are somebody's own.
struct DeviceKeys {
  DeviceType device;
  DispatchKey backend;
  DispatchKey autograd;
  DispatchKey autocast;
};
constexpr DeviceKeys device_keys[] = {
    {DeviceType::CPU, DispatchKey::CPU, DispatchKey::AutogradCPU, DispatchKey::AutocastCPU},
    {DeviceType::CUDA, DispatchKey::CUDA, DispatchKey::AutogradCUDA, DispatchKey::AutocastCUDA},
    {DeviceType::Meta, DispatchKey::Meta, DispatchKey::AutogradMeta, DispatchKey::Autocast},
};
DeviceKeys keys_of(DeviceType device) {
  for (const DeviceKeys& row : device_keys) {
    if (row.device == device) {
      return row;
    }
  }
  return {device, DispatchKey::PrivateUse1, DispatchKey::AutogradPrivateUse1,
          DispatchKey::AutocastPrivateUse1};
}
}  // namespace

DispatchKey backend_key(DeviceType device) { return keys_of(device).backend; }
DispatchKey autograd_key(DeviceType device) { return keys_of(device).autograd; }
DispatchKey autocast_key(DeviceType device) { return keys_of(device).autocast; }

namespace {
constexpr const char* key_names[] = {
#define RL_KEY(name) #name,
    RL_FOR_EACH_DISPATCH_KEY(RL_KEY)
#undef RL_KEY
};
static_assert(std::size(key_names) <= 64, "a DispatchKeySet has 64 bits");
}  // namespace
const char* name_of(DispatchKey key) { return key_names[static_cast<size_t>(key)]; }
std::optional<DispatchKey> key_named(std::string_view name) {
  for (size_t i = 0; i < std::size(key_names); i++) {
    if (name == key_names[i]) {
      return static_cast<DispatchKey>(i);
    }
  }
  return std::nullopt;
}

std::string schema_of(const Kernel& kernel) {
  std::string out = "(";
  for (size_t i = 0; i < kernel.arguments.size(); i++) {
    out += str(i == 0 ? "" : ", ", kernel.arguments[i].str(), " _", i);
  }
  out += ") -> ";
  const bool one = kernel.results.size() == 1;
  out += one ? "" : "(";
  for (size_t i = 0; i < kernel.results.size(); i++) {
    out += str(i == 0 ? "" : ", ", kernel.results[i].str());
  }
  return out + (one ? "" : ")");
}

}  // namespace library

// ---- handles ----

FunctionSchema::FunctionSchema(const OpInfo& op)
    : FunctionSchema(graph::schema_of(op), {str(op.space, "::", op.name), op.overload},
                     schema_text(op)) {}
FunctionSchema::FunctionSchema(const graph::Schema& schema)
    : FunctionSchema(schema, {schema.qualified_name(), schema.overload}, schema.str()) {}
FunctionSchema::FunctionSchema(const graph::Schema& schema, OperatorName name, std::string text)
    : name_(std::move(name)), text_(std::move(text)) {
  for (const graph::Argument& a : schema.arguments) {
    arguments_.push_back({a.name, a.type.str(), a.default_text()});
  }
  for (const graph::Argument& r : schema.results) {
    returns_.push_back({r.name, r.type.str(), ""});
  }
}

std::shared_ptr<script_types::Type> FunctionArgument::type() const {
  return script_types::type_object(parse_type(type_));
}
const FunctionSchema graph::Function::getSchema() const { return FunctionSchema(schema); }

OperatorHandle::OperatorHandle(const std::string& name, const std::string& overload)
    : op_(find_op_named(overload.empty() ? name : name + "." + overload)) {
  RL_CHECK(op_ != nullptr, "Could not find schema for ", name, '.', overload);
}
OperatorName OperatorHandle::operator_name() const {
  return {str(op_->space, "::", op_->name), op_->overload};
}

void OperatorHandle::callBoxed(Stack& stack) const {
  const size_t n = op_->arguments.size();
  RL_CHECK(stack.size() >= n, operator_name().name, "() takes ", n,
           " arguments, but the stack holds ", stack.size());
  const auto first = stack.end() - static_cast<ptrdiff_t>(n);
  const std::vector<Value> results =
      rushlight::call(*op_, {std::make_move_iterator(first), std::make_move_iterator(stack.end())});
  stack.erase(first, stack.end());
  stack.insert(stack.end(), results.begin(), results.end());
}

// ---- libraries ----

namespace {
std::string without_namespace(const std::string& space, const std::string& name) {
  const std::string prefix = space + "::";
  return name.compare(0, prefix.size(), prefix) == 0 ? name.substr(prefix.size()) : name;
}
}  // namespace

Library::Library(Kind kind, std::string space, std::optional<DispatchKey> key)
    : kind_(kind), space_(std::move(space)), key_(key) {
  RL_CHECK(kind == IMPL || space_ != "rushlight", "the namespace 'rushlight' is taken");
  RL_CHECK(kind != DEF || space_ != "aten",
           "Only a single TORCH_LIBRARY can be used to register the namespace aten; please put all "
           "of your definitions into a TORCH_LIBRARY_FRAGMENT.");
  RL_CHECK(kind == IMPL || space_ != "_", "the namespace '_' only takes fallbacks");
}

Library& Library::define(const std::string& schema, const CppFunction* function,
                         const std::vector<Tag>& tags) {
  RL_CHECK(kind_ != IMPL, "def(\"", schema, "\"): a TORCH_LIBRARY_IMPL only implements");
  const bool is_name = schema.find('(') == std::string::npos;
  RL_CHECK(!is_name || function != nullptr, "def(\"", schema,
           "\"): a name alone needs a function that tells the schema");
  uint32_t bits = 0;
  for (const Tag tag : tags) {
    bits |= bit_of(tag);
  }
  const std::string text =
      without_namespace(space_, schema) + (is_name ? library::schema_of(function->kernel()) : "");
  const OpInfo& op = library::define(space_, text, bits, python_module_);
  if (function != nullptr) {
    library::implement(str(op.space, "::", op.name, *op.overload != 0 ? "." : "", op.overload),
                       function->key.value_or(DispatchKey::CompositeImplicitAutograd),
                       function->kernel());
  }
  return *this;
}

Library& Library::impl(const std::string& name, const CppFunction& function) & {
  const std::optional<DispatchKey> key = function.key ? function.key : key_;
  library::implement(space_ + "::" + without_namespace(space_, name),
                     key.value_or(DispatchKey::CompositeImplicitAutograd), function.kernel());
  return *this;
}

RegisterOperators& RegisterOperators::op(const std::string& schema, const CppFunction& function) {
  const size_t colons = schema.find("::");
  RL_CHECK(colons != std::string::npos, "the schema '", schema, "' names no namespace");
  Library library(Library::FRAGMENT, schema.substr(0, colons), std::nullopt);
  library.def(schema, function);
  return *this;
}

Library& Library::fallback(const CppFunction& function) & {
  RL_CHECK(kind_ == IMPL && space_ == "_", "fallback() belongs into TORCH_LIBRARY_IMPL(_, KEY, m)");
  RL_CHECK(!function.kernel().typed, "a fallback is a boxed function or falls through");
  library::implement("_", function.key ? *function.key : key_.value(), function.kernel());
  return *this;
}

void OperatorHandle::redispatchBoxed(DispatchKeySet keys, Stack* stack) const {
  std::optional<AutoDispatchBelowAutograd> below;
  if (!keys.has_any(autograd_dispatch_keyset)) {
    below.emplace();
  }
  callBoxed(stack);
}

Dispatcher& Dispatcher::singleton() {
  static Dispatcher made;
  return made;
}

namespace impl {

ExcludeDispatchKeyGuard::ExcludeDispatchKeyGuard(DispatchKeySet keys) : autocast_(tls.autocast()) {
  if (keys.has_any(autograd_dispatch_keyset)) {
    below_.emplace();
  }
  const auto turn_off = [&](DispatchKeySet of, DeviceType device) {
    if (keys.has_any(of)) {
      const auto bit = static_cast<uint8_t>(1u << static_cast<int>(device));
      tls.exchange_autocast(tls.autocast() & static_cast<uint8_t>(~bit));
    }
  };
  turn_off(DispatchKeySet(DispatchKey::AutocastCPU), kCPU);
  turn_off({DispatchKey::Autocast, DispatchKey::AutocastCUDA}, kCUDA);
}
ExcludeDispatchKeyGuard::~ExcludeDispatchKeyGuard() { tls.exchange_autocast(autocast_); }

namespace {
// What the ops of the thread go to.
struct GenericMode final : Mode {
  explicit GenericMode(std::shared_ptr<const library::Kernel> fallback)
      : fallback(std::move(fallback)) {}
  std::vector<Value> handle(const OpInfo& op, const std::vector<Value>& arguments) override {
    return functions::run(*fallback, op, arguments, library::current_keys());
  }
  std::shared_ptr<const library::Kernel> fallback;
};
}  // namespace

struct IncludeDispatchKeyGuard::State {
  explicit State(std::shared_ptr<const library::Kernel> fallback)
      : mode(std::move(fallback)), scope(mode, ModeScope::Level::Upper) {}
  GenericMode mode;
  ModeScope scope;
};
IncludeDispatchKeyGuard::IncludeDispatchKeyGuard(DispatchKey key) {
  RL_CHECK_NOT_IMPLEMENTED(key == DispatchKey::TESTING_ONLY_GenericMode,
                           "only TESTING_ONLY_GenericMode can be included");
  auto fallback = functions::find(nullptr, {key});
  RL_CHECK(fallback != nullptr, "there is no fallback for TESTING_ONLY_GenericMode");
  state_ = std::make_unique<State>(std::move(fallback));
}
IncludeDispatchKeyGuard::~IncludeDispatchKeyGuard() = default;
}  // namespace impl

}  // namespace rushlight
