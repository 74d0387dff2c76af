// Ops of one's own in C++: what programs said, and how such an op is called.
#include <rushlight/library.h>

#include <deque>
#include <mutex>
#include <unordered_map>

#include <rushlight/mode.h>

namespace rushlight {

namespace library {

namespace {

struct Registry {
  std::mutex mutex;
  std::deque<Record> records;  // those that are there stay in place
  std::unordered_map<std::string, std::vector<const Record*>> by_name;
};
// Made when the first library is: programs do so before main.
Registry& registry() {
  static auto* const made = new Registry();
  return *made;
}

thread_local int below_autograd = 0;
Elsewhere* elsewhere = nullptr;

// The function that was said last for the first of the keys that has one.
const Record* find(const std::string& name, std::initializer_list<DispatchKey> keys) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto of_name = all.by_name.find(name);
  if (of_name == all.by_name.end()) {
    return nullptr;
  }
  for (const DispatchKey key : keys) {
    const auto& records = of_name->second;
    for (auto r = records.rbegin(); r != records.rend(); ++r) {
      if ((*r)->key == key) {
        return *r;
      }
    }
  }
  return nullptr;
}
const Record* function_for(const std::string& name, std::initializer_list<DispatchKey> keys) {
  const Record* found = find(name, keys);
  found = found != nullptr ? found : find("_::", keys);
  return found == nullptr || found->kernel.falls_through ? nullptr : found;
}

const Record* definition(const std::string& name) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto of_name = all.by_name.find(name);
  if (of_name != all.by_name.end()) {
    for (const Record* r : of_name->second) {
      if (!r->schema.empty()) {
        return r;
      }
    }
  }
  return nullptr;
}

void visit_devices(const IValue& value, DeviceType& device) {
  if (value.kind() == IValue::Kind::Plain) {
    value.value().for_each_tensor([&](const Tensor& t) {
      if (t.defined() && t.device().type() != kCPU) {
        device = t.device().type();
      }
    });
  } else if (value.isList() || value.isTuple()) {
    for (const IValue& item : *value.items()) {
      visit_devices(item, device);
    }
  }
}

// The mode of IncludeDispatchKeyGuard: what it sees goes to the fallback.
struct GenericMode final : Mode {
  explicit GenericMode(const Record& fallback) : fallback(fallback) {}
  std::vector<Value> handle(const OpInfo& op, const std::vector<Value>& arguments) override {
    Stack stack(arguments.begin(), arguments.end());
    const OperatorHandle handle(op);
    (*fallback.kernel.function)(&handle, stack);
    std::vector<Value> out;
    for (const IValue& value : stack) {
      out.push_back(value.flattened());
    }
    return out;
  }
  const Record& fallback;
};

// A generic mode that stands on top sees ops of libraries, too.
bool offer_to_mode(const std::string& name, Stack& stack) {
  auto* const mode = dynamic_cast<GenericMode*>(tls.upper());
  if (mode == nullptr) {
    return false;
  }
  tls.exchange_upper(mode->below);
  struct Back {
    Mode* mode;
    ~Back() { tls.exchange_upper(mode); }
  } const back{mode};
  const size_t dot = name.find('.');
  const OperatorHandle handle(name.substr(0, dot),
                              dot == std::string::npos ? "" : name.substr(dot + 1));
  (*mode->fallback.kernel.function)(&handle, stack);
  return true;
}

void run_kernel(const Record& record, const std::string& name, Stack& stack) {
  const size_t dot = name.find('.');
  const OperatorHandle handle(name.substr(0, dot),
                              dot == std::string::npos ? "" : name.substr(dot + 1));
  (*record.kernel.function)(&handle, stack);
}

void call(const std::string& name, Stack& stack) {
  if (tls.upper() != nullptr && offer_to_mode(name, stack)) {
    return;
  }
  DeviceType device = kCPU;
  for (const IValue& value : stack) {
    visit_devices(value, device);
  }
  if (below_autograd == 0) {
    if (const Record* r = function_for(name, {autograd_key(device), DispatchKey::Autograd})) {
      run_kernel(*r, name, stack);
      return;
    }
  }
  const DispatchKey own = backend_key(device);
  if (const Record* r = find(name, {own, DispatchKey::CompositeExplicitAutograd})) {
    const NoGradGuard no_grad;
    run_kernel(*r, name, stack);
    return;
  }
  if (const Record* r = find(name, {DispatchKey::CompositeImplicitAutograd})) {
    run_kernel(*r, name, stack);
    return;
  }
  if (elsewhere != nullptr && elsewhere(name, stack, below_autograd > 0)) {
    return;
  }
  const Record* const fallback = find("_::", {own});
  if (fallback == nullptr || fallback->kernel.falls_through) {
    throw NotImplementedError(str("Could not run '", name, "' with arguments on ",
                                  Device(device).str(), ": there is no implementation for it"));
  }
  const NoGradGuard no_grad;
  run_kernel(*fallback, name, stack);
}

// A row a device; those that have none here are somebody's own.
struct DeviceKeys {
  DeviceType device;
  DispatchKey backend;
  DispatchKey autograd;
};
constexpr DeviceKeys device_keys[] = {
    {DeviceType::CPU, DispatchKey::CPU, DispatchKey::AutogradCPU},
    {DeviceType::CUDA, DispatchKey::CUDA, DispatchKey::AutogradCUDA},
    {DeviceType::Meta, DispatchKey::Meta, DispatchKey::AutogradMeta},
};
DeviceKeys keys_of(DeviceType device) {
  for (const DeviceKeys& row : device_keys) {
    if (row.device == device) {
      return row;
    }
  }
  return {device, DispatchKey::PrivateUse1, DispatchKey::AutogradPrivateUse1};
}

std::string full_name(const Record& r) { return r.space + "::" + r.name; }

}  // namespace

Boxed::~Boxed() = default;

DispatchKey backend_key(DeviceType device) { return keys_of(device).backend; }
DispatchKey autograd_key(DeviceType device) { return keys_of(device).autograd; }

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

bool is_below_autograd() { return below_autograd > 0; }
void enter_below_autograd(int by) { below_autograd += by; }

void set_elsewhere(Elsewhere* function) { elsewhere = function; }

void add(Record record) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.records.push_back(std::move(record));
  all.by_name[full_name(all.records.back())].push_back(&all.records.back());
}
size_t count() {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.records.size();
}
const Record& at(size_t place) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.records.at(place);
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

void run(const Record& record, const std::string& name, Stack& stack) {
  if (tls.upper() == nullptr || !offer_to_mode(name, stack)) {
    run_kernel(record, name, stack);
  }
}

}  // namespace library

// ---- schemas ----

namespace {

std::string trim(std::string text) {
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

// The parts between the commas of "(…)" that stand in no further bracket, and what follows it.
std::pair<std::vector<std::string>, std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  int depth = 0;
  size_t start = 1;
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if ((c == ',' && depth == 1) || (c == ')' && depth == 0)) {
      std::string part = trim(text.substr(start, i - start));
      if (!part.empty()) {
        parts.push_back(std::move(part));
      }
      start = i + 1;
      if (depth == 0) {
        return {parts, trim(text.substr(start))};
      }
    }
  }
  RL_CHECK(false, "the schema '", text, "' has a bracket that is not closed");
}

FunctionArgument argument_of(std::string text, bool named) {
  FunctionArgument out;
  if (const size_t equals = text.find('='); named && equals != std::string::npos) {
    out.default_ = trim(text.substr(equals + 1));
    text = trim(text.substr(0, equals));
  }
  const size_t space = text.rfind(' ');
  const bool has_name = space != std::string::npos && text.find(')', space) == std::string::npos;
  out.type_ = has_name ? trim(text.substr(0, space)) : text;
  out.name_ = has_name ? text.substr(space + 1) : "";
  return out;
}

}  // namespace

FunctionSchema::FunctionSchema(OperatorName name, const std::string& text)
    : name_(std::move(name)) {
  text_ = name_.name + (name_.overload_name.empty() ? "" : "." + name_.overload_name) + text;
  const auto [arguments, rest] = parts_of(text);
  for (const std::string& part : arguments) {
    if (part != "*") {
      arguments_.push_back(argument_of(part, true));
    }
  }
  RL_CHECK(rest.compare(0, 2, "->") == 0, "the schema '", text_, "' says no results");
  const std::string results = trim(rest.substr(2));
  const std::vector<std::string> all =
      results[0] == '(' ? parts_of(results).first : std::vector<std::string>{results};
  for (const std::string& part : all) {
    returns_.push_back(argument_of(part, false));
  }
}

// ---- handles ----

OperatorHandle::OperatorHandle(const OpInfo& op)
    : name_{str(op.space, "::", op.name), op.overload}, op_(&op) {}
OperatorHandle::OperatorHandle(const std::string& name, const std::string& overload)
    : name_{name, overload}, full_name_(name + (overload.empty() ? "" : "." + overload)) {
  if (library::definition(full_name_) != nullptr) {
    return;
  }
  const size_t colons = name.find("::");
  const std::string space = name.substr(0, colons);
  if (colons != std::string::npos) {
    for (const OpInfo* op : find_overloads(name.substr(colons + 2))) {
      if (op->space == space && op->overload == overload) {
        op_ = op;
      }
    }
  }
  RL_CHECK(op_ != nullptr, "Could not find schema for ", name, '.', overload);
}

FunctionSchema OperatorHandle::schema() const {
  const std::string text =
      op_ != nullptr ? schema_text(*op_) : library::definition(full_name_)->schema;
  return {name_, text.substr(text.find('('))};
}

uint32_t OperatorHandle::tags() const {
  return op_ != nullptr ? op_->tags : library::definition(full_name_)->tags;
}

void OperatorHandle::callBoxed(Stack& stack) const {
  if (op_ == nullptr) {
    library::call(full_name_, stack);
    return;
  }
  const size_t n = op_->arguments.size();
  RL_CHECK(stack.size() >= n, name_.name, "() takes ", n, " arguments, but the stack holds ",
           stack.size());
  std::vector<Value> values;
  for (size_t i = stack.size() - n; i < stack.size(); i++) {
    values.push_back(stack[i].flattened());
  }
  stack.resize(stack.size() - n);
  for (Value& value : rushlight::call(*op_, values)) {
    stack.emplace_back(std::move(value));
  }
}

// ---- libraries ----

namespace {

// A program's function in the place of an op of the table.
class FunctionOverride final : public library::Override {
 public:
  explicit FunctionOverride(library::Kernel kernel) : kernel_(std::move(kernel)) {}
  std::vector<Value> run(const OpInfo& op, const std::vector<Value>& arguments,
                         DispatchKeySet) const override {
    Stack stack(arguments.begin(), arguments.end());
    const OperatorHandle handle(op);
    (*kernel_.function)(&handle, stack);
    std::vector<Value> out;
    for (const IValue& value : stack) {
      out.push_back(value.flattened());
    }
    return out;
  }

 private:
  library::Kernel kernel_;
};

// Where the table has no such op the record waits for nothing, as in PyTorch.
void override_table(const library::Record& record) {
  const size_t dot = record.name.find('.');
  const std::string overload = dot == std::string::npos ? "" : record.name.substr(dot + 1);
  const OpInfo* const op = find_op(record.name.substr(0, dot), std::string_view(overload));
  if (op == nullptr || op->space != record.space || record.kernel.function == nullptr) {
    return;
  }
  const library::Kernel& kernel = record.kernel;
  RL_CHECK(!kernel.typed || kernel.arguments.size() == op->arguments.size(), "the function for ",
           schema_text(*op), " takes ", kernel.arguments.size(), " arguments");
  RL_CHECK_NOT_IMPLEMENTED(library::may_override(*record.key), "impl(\"", record.name,
                           "\"): an op of the table has no function of its own for ",
                           library::name_of(*record.key));
  library::override_op(*op, *record.key, std::make_shared<FunctionOverride>(kernel));
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
  const size_t start = schema.find('(');
  std::string name = trim(schema.substr(0, start));
  const std::string prefix = space_ + "::";
  if (name.compare(0, prefix.size(), prefix) == 0) {
    name.erase(0, prefix.size());
  }
  RL_CHECK(library::definition(prefix + name) == nullptr, "Tried to register an operator (", prefix,
           name, ") with the same name and overload name multiple times.");
  RL_CHECK(start != std::string::npos || function != nullptr, "def(\"", schema,
           "\"): a name alone needs a function that tells the schema");
  library::Record record;
  record.space = space_;
  record.name = name;
  record.python_module = python_module_;
  for (const Tag tag : tags) {
    record.tags |= bit_of(tag);
  }
  record.schema =
      start == std::string::npos ? library::schema_of(function->kernel()) : schema.substr(start);
  const size_t taken = FunctionSchema({prefix + name, ""}, record.schema).arguments().size();
  if (function != nullptr) {
    const library::Kernel& kernel = function->kernel();
    RL_CHECK(!kernel.typed || kernel.arguments.size() == taken, "the function for ", prefix, name,
             record.schema, " takes ", kernel.arguments.size(), " arguments");
    record.key = function->key.value_or(DispatchKey::CompositeImplicitAutograd);
    record.kernel = kernel;
  }
  library::add(std::move(record));
  return *this;
}

Library& Library::impl(const std::string& name, const CppFunction& function) & {
  library::Record record;
  record.space = space_;
  const std::string prefix = space_ + "::";
  record.name = name.compare(0, prefix.size(), prefix) == 0 ? name.substr(prefix.size()) : name;
  const std::optional<DispatchKey> key = function.key ? function.key : key_;
  record.key = key.value_or(DispatchKey::CompositeImplicitAutograd);
  record.kernel = function.kernel();
  if (space_ == "aten" || space_ == "rushlight") {
    override_table(record);
  }
  library::add(std::move(record));
  return *this;
}

Library& Library::fallback(const CppFunction& function) & {
  RL_CHECK(kind_ == IMPL && space_ == "_", "fallback() belongs into TORCH_LIBRARY_IMPL(_, KEY, m)");
  RL_CHECK(!function.kernel().typed, "a fallback is a boxed function or falls through");
  return impl("", function);
}

void OperatorHandle::redispatchBoxed(DispatchKeySet keys, Stack* stack) const {
  std::optional<AutoDispatchBelowAutograd> below;
  if (!keys.has_any(autograd_dispatch_keyset)) {
    below.emplace();
  }
  callBoxed(stack);
}

AutoDispatchBelowADInplaceOrView::AutoDispatchBelowADInplaceOrView() { library::below_autograd++; }
AutoDispatchBelowADInplaceOrView::~AutoDispatchBelowADInplaceOrView() { library::below_autograd--; }

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

struct IncludeDispatchKeyGuard::State {
  explicit State(const library::Record& fallback)
      : mode(fallback), scope(mode, ModeScope::Level::Upper) {}
  library::GenericMode mode;
  ModeScope scope;
};
IncludeDispatchKeyGuard::IncludeDispatchKeyGuard(DispatchKey key) {
  RL_CHECK_NOT_IMPLEMENTED(key == DispatchKey::TESTING_ONLY_GenericMode,
                           "only TESTING_ONLY_GenericMode can be included");
  const library::Record* const fallback = library::function_for("_::", {key});
  RL_CHECK(fallback != nullptr, "there is no fallback for TESTING_ONLY_GenericMode");
  state_ = std::make_unique<State>(*fallback);
}
IncludeDispatchKeyGuard::~IncludeDispatchKeyGuard() = default;
}  // namespace impl

}  // namespace rushlight
