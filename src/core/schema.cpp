// The registry of overloads: finding, printing, defaults, and the way between an overload's
// arguments and those of the C++ function behind it.
#include <rushlight/schema.h>

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include <rushlight/type.h>

#include "core/boxed_arguments.h"
#include "core/op_support.h"

namespace rushlight {

// ---- finding ----

ArrayRef<const OpInfo*> find_overloads(std::string_view name) {
  const ArrayRef<const OpInfo*> ops = all_ops();
  const auto* const first =
      std::lower_bound(ops.begin(), ops.end(), name,
                       [](const OpInfo* op, std::string_view n) { return op->name < n; });
  const auto* last = first;
  while (last != ops.end() && (*last)->name == name) {
    ++last;
  }
  return {first, last};
}

const OpInfo* find_op(std::string_view name, std::optional<std::string_view> overload) {
  for (const OpInfo* op : find_overloads(name)) {
    if (!overload || op->overload == *overload) {
      return op;
    }
  }
  return nullptr;
}

// ---- ops of libraries ----

namespace {
struct Defined {
  std::shared_mutex mutex;
  std::vector<const OpInfo*> by_number;
  std::unordered_map<std::string, std::vector<const OpInfo*>> by_name;  // "space::name"
};
// Made when the first library is: programs define ops before main.
Defined& library_ops() {
  static auto* const made = new Defined();
  return *made;
}
std::string qualified_name(const OpInfo& op) { return str(op.space, "::", op.name); }

// Those of the table in a namespace.
std::vector<const OpInfo*> of_table(std::string_view space, std::string_view name) {
  std::vector<const OpInfo*> out;
  for (const OpInfo* op : find_overloads(name)) {
    if (op->space == space) {
      out.push_back(op);
    }
  }
  return out;
}
}  // namespace

std::vector<const OpInfo*> overloads_named(std::string_view qualified) {
  const size_t colons = qualified.find("::");
  if (colons == std::string_view::npos) {
    return {};
  }
  std::vector<const OpInfo*> out =
      of_table(qualified.substr(0, colons), qualified.substr(colons + 2));
  Defined& all = library_ops();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  const auto found = all.by_name.find(std::string(qualified));
  if (found != all.by_name.end()) {
    out.insert(out.end(), found->second.begin(), found->second.end());
  }
  return out;
}

const OpInfo* find_op_named(std::string_view full_name) {
  const size_t dot = full_name.find('.');
  const std::string_view overload =
      dot == std::string_view::npos ? std::string_view() : full_name.substr(dot + 1);
  for (const OpInfo* op : overloads_named(full_name.substr(0, dot))) {
    if (op->overload == overload) {
      return op;
    }
  }
  return nullptr;
}

void add_op(const OpInfo& op) {
  Defined& all = library_ops();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  all.by_number.push_back(&op);
  all.by_name[qualified_name(op)].push_back(&op);
}
void remove_op(const OpInfo& op) {
  Defined& all = library_ops();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  const auto found = all.by_name.find(qualified_name(op));
  if (found != all.by_name.end() && std::erase(found->second, &op) != 0 && found->second.empty()) {
    all.by_name.erase(found);
  }
}

std::vector<std::string> names_of_library_ops() {
  Defined& all = library_ops();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  std::vector<std::string> out;
  for (const auto& [name, ops] : all.by_name) {
    out.push_back(name);
  }
  return out;
}

size_t number_of_op(const OpInfo& op) {
  const ArrayRef<const OpInfo*> table = all_ops();
  for (const OpInfo* const& row : find_overloads(op.name)) {
    if (row == &op) {
      return static_cast<size_t>(&row - table.begin());
    }
  }
  Defined& all = library_ops();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  const auto at = std::find(all.by_number.begin(), all.by_number.end(), &op);
  return table.size() + static_cast<size_t>(at - all.by_number.begin());
}
const OpInfo* op_of_number(size_t number) {
  const ArrayRef<const OpInfo*> table = all_ops();
  if (number < table.size()) {
    return table[number];
  }
  Defined& all = library_ops();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  number -= table.size();
  return number < all.by_number.size() ? all.by_number[number] : nullptr;
}

bool OpInfo::is_mutable() const {
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const ArgInfo& a) { return a.type.written; });
}

bool OpInfo::is_view() const {
  return !is_mutable() && std::any_of(results.begin(), results.end(),
                                      [](const ResultInfo& r) { return r.type.alias != 0; });
}

// ---- printing ----

namespace {
constexpr const char* base_names[] = {"Tensor",    "Scalar",     "int",    "float",  "bool",
                                      "str",       "ScalarType", "Device", "Layout", "MemoryFormat",
                                      "Generator", "options",    "other"};

void append(std::string& out, const DefaultInfo& value) {
  switch (value.kind) {
    case DefaultInfo::Required:
      break;
    case DefaultInfo::None:
      out += "None";
      break;
    case DefaultInfo::Bool:
      out += value.ints[0] != 0 ? "True" : "False";
      break;
    case DefaultInfo::Int:
      out += std::to_string(value.ints[0]);
      break;
    case DefaultInfo::Float:
      rushlight::append(out, value.number);
      break;
    case DefaultInfo::String:
      out += '"';
      out += value.text;
      out += '"';
      break;
    case DefaultInfo::List:
      rushlight::append(out, IntArrayRef(value.ints, value.count));
      break;
    case DefaultInfo::Boxed:  // of ops that have their text
      break;
  }
}
}  // namespace

std::string type_text(const TypeInfo& type) {
  if (type.of != nullptr) {
    return type.of->str();
  }
  std::string out = base_names[static_cast<int>(type.base)];
  if (type.alias != 0) {
    out += '(';
    out += type.alias;
    out += type.written ? "!)" : ")";
  }
  out += type.element_optional ? "?" : "";
  if (type.is_list) {
    out += '[';
    out += type.size != 0 ? std::to_string(type.size) : "";
    out += ']';
  }
  out += type.optional ? "?" : "";
  return out;
}

std::string schema_text(const OpInfo& op) {
  if (op.text != nullptr) {
    return op.text;
  }
  std::string out = str(op.space, "::", op.name, *op.overload != '\0' ? "." : "", op.overload, "(");
  bool keyword_only = false;
  const char* separator = "";
  for (const ArgInfo& a : op.arguments) {
    out += separator;
    separator = ", ";
    if (a.keyword_only && !keyword_only) {
      out += "*, ";
      keyword_only = true;
    }
    out += str(type_text(a.type), " ", a.name);
    if (a.fallback.kind != DefaultInfo::Required) {
      out += '=';
      append(out, a.fallback);
    }
  }
  out += ") -> ";
  out += op.results.size() == 1 ? "" : "(";
  separator = "";
  for (const ResultInfo& r : op.results) {
    out += str(separator, type_text(r.type), *r.name != '\0' ? " " : "", r.name);
    separator = ", ";
  }
  out += op.results.size() == 1 ? "" : ")";
  return out;
}

// ---- defaults ----

Value default_value(const ArgInfo& argument) {
  const DefaultInfo& d = argument.fallback;
  switch (d.kind) {
    case DefaultInfo::Required:
      RL_CHECK(false, "the argument '", argument.name, "' has no default");
      return {};
    case DefaultInfo::None:
      return argument.type.base == BaseType::Options ? Value(TensorOptions()) : Value();
    case DefaultInfo::Bool:
      return Value(d.ints[0] != 0);
    case DefaultInfo::Int:
      if (argument.type.base == BaseType::ScalarType) {
        return Value(static_cast<ScalarType>(d.ints[0]));
      }
      if (argument.type.base == BaseType::MemoryFormat) {
        return Value(static_cast<MemoryFormat>(d.ints[0]));
      }
      if (argument.type.is_list) {
        return Value(DimVector(std::max<size_t>(argument.type.size, 1), d.ints[0]));
      }
      return Value(d.ints[0]);
    case DefaultInfo::Float:
      return Value(d.number);
    case DefaultInfo::String:
      return Value(d.text);
    case DefaultInfo::Boxed:
      return *d.value;
    default:
      return Value(DimVector(IntArrayRef(d.ints, d.count)));
  }
}

namespace {
bool same_numbers(const Scalar& a, const Scalar& b) {
  return a.kind() == b.kind() && a.as<complex<double>>() == b.as<complex<double>>();
}

// Of values that schemas have as defaults; an int[2] may have been given as one int.
bool same_values(const Value& a, const Value& b) {
  if (a.is<Scalar>() && b.is<Scalar>()) {
    return same_numbers(a.get<Scalar>(), b.get<Scalar>());
  }
  if (a.is<DimVector>() && b.is<DimVector>()) {
    const auto x = a.get<DimVector>();
    const auto y = b.get<DimVector>();
    const bool one = x.size() == 1 && !y.empty();
    return one ? std::all_of(y.begin(), y.end(), [&](int64_t n) { return n == x[0]; })
               : IntArrayRef(x) == IntArrayRef(y);
  }
  if (a.is<std::string>() && b.is<std::string>()) {
    return a.get<std::string>() == b.get<std::string>();
  }
  if (a.is<ScalarType>() && b.is<ScalarType>()) {
    return a.get<ScalarType>() == b.get<ScalarType>();
  }
  if (a.is<MemoryFormat>() && b.is<MemoryFormat>()) {
    return a.get<MemoryFormat>() == b.get<MemoryFormat>();
  }
  return false;
}

// None, or a tensor or generator that is not there.
bool is_absent(const Value& v) {
  return v.is_none() || (v.is<Tensor>() && !v.get<Tensor>().defined()) ||
         (v.is<Generator>() && !v.get<Generator>().defined());
}

bool is_number(const Value& v) {
  if (v.is<Scalar>()) {
    return true;
  }
  if (!v.is<Tensor>()) {
    return false;
  }
  const auto t = v.get<Tensor>();
  return t.defined() && t.impl()->is_wrapped_number();
}
}  // namespace

bool is_default(const ArgInfo& argument, const Value& value) {
  if (argument.fallback.kind == DefaultInfo::Required) {
    return false;
  }
  if (argument.type.base == BaseType::Options) {
    const auto o = value.get<TensorOptions>();
    return !o.dtype_opt() && !o.device_opt() && !o.layout_opt();
  }
  if (argument.fallback.kind == DefaultInfo::None || is_absent(value)) {
    return argument.fallback.kind == DefaultInfo::None && is_absent(value);
  }
  return same_values(value, default_value(argument));
}

// ---- calling ----

namespace {
// What an argument that the function lacks may say.
void check_is_default(const OpInfo& op, const ArgInfo& a, const Value& v) {
  const bool nothing = v.is_none() || (v.is<Layout>() && v.get<Layout>() == kStrided) ||
                       (a.type.base == BaseType::Bool && !v.get<bool>());
  RL_CHECK_NOT_IMPLEMENTED(nothing, op.name,
                           "(): no other value than the default is supported for '", a.name, "'");
}

TensorOptions with_option(const OpInfo& op, TensorOptions options, const ArgInfo& a,
                          const Value& v) {
  if (v.is_none()) {
    return options;
  }
  if (a.type.base == BaseType::ScalarType) {
    return options.dtype(v.get<ScalarType>());
  }
  if (a.type.base == BaseType::Device) {
    return options.device(v.get<Device>());
  }
  if (a.type.base == BaseType::Layout) {
    return options.layout(v.get<Layout>());
  }
  check_is_default(op, a, v);  // pin_memory
  return options;
}
}  // namespace

Value list_of_ops(const TypeInfo& type, const Value& list) {
  switch (type.base) {
    case BaseType::Tensor:
      return type.element_optional ? Value(list.get<std::vector<std::optional<Tensor>>>())
                                   : Value(list.get<std::vector<Tensor>>());
    case BaseType::Float:
      return Value(list.get<std::vector<double>>());
    case BaseType::Scalar:
      return Value(list.get<std::vector<Scalar>>());
    default:
      return Value(list.get<DimVector>());
  }
}

std::vector<Value> function_arguments(const OpInfo& op, const std::vector<Value>& arguments) {
  if (op.places == nullptr) {
    return arguments;
  }
  const ArrayRef<ArgInfo> wanted = op.function->arguments();
  std::vector<Value> values(wanted.size());
  std::vector<bool> given(wanted.size());
  for (size_t i = 0; i < arguments.size(); i++) {
    if (op.places[i] < 0) {
      check_is_default(op, op.arguments[i], arguments[i]);
      continue;
    }
    const auto place = static_cast<size_t>(op.places[i]);
    if (wanted[place].type.base == BaseType::Options) {
      const TensorOptions before =
          given[place] ? values[place].get<TensorOptions>() : TensorOptions();
      values[place] = Value(with_option(op, before, op.arguments[i], arguments[i]));
    } else {
      values[place] = arguments[i];
    }
    given[place] = true;
  }
  for (size_t i = 0; i < wanted.size(); i++) {
    if (!given[i]) {
      values[i] = default_value(wanted[i]);
    }
  }
  return values;
}

std::vector<Value> call(const OpInfo& op, const std::vector<Value>& arguments) {
  RL_CHECK_TYPE(arguments.size() == op.arguments.size(), op.name, "(): expected ",
                op.arguments.size(), " arguments in boxed form, but got ", arguments.size());
  const auto is_shared = [](const Value& v) { return v.kind() == Value::Kind::List; };
  if (op.text == nullptr && std::any_of(arguments.begin(), arguments.end(), is_shared)) {
    std::vector<Value> values = arguments;
    for (size_t i = 0; i < values.size(); i++) {
      if (is_shared(values[i])) {
        values[i] = list_of_ops(op.arguments[i].type, values[i]);
      }
    }
    return call(op, values);
  }
  if (op.places == nullptr) {
    return op.function->call(arguments);
  }
  return op.function->call(function_arguments(op, arguments));
}

namespace {
// Whether an argument of an overload can have the value that the function has there.
bool accepts_value(const ArgInfo& a, const ArgInfo& of_function, const Value& v) {
  if (of_function.type.base == BaseType::Options) {
    return true;
  }
  if (is_absent(v)) {
    return a.type.optional;
  }
  if (of_function.type.number && !a.type.number) {
    return (a.type.base == BaseType::Scalar) == is_number(v);
  }
  if (of_function.type.is_list && !a.type.is_list) {
    return v.is<DimVector>() && v.get<DimVector>().size() == 1;
  }
  return true;
}

bool accepts_value(const OpInfo& op, const std::vector<Value>& values) {
  if (op.places == nullptr) {
    return true;
  }
  const ArrayRef<ArgInfo> of_function = op.function->arguments();
  std::vector<bool> said(values.size());
  for (size_t i = 0; i < op.arguments.size(); i++) {
    if (op.places[i] >= 0) {
      const auto place = static_cast<size_t>(op.places[i]);
      said[place] = true;
      if (!accepts_value(op.arguments[i], of_function[place], values[place])) {
        return false;
      }
    }
  }
  for (size_t i = 0; i < values.size(); i++) {
    if (!said[i] && !is_default(of_function[i], values[i])) {
      return false;
    }
  }
  return true;
}

Value option_of(const TensorOptions& options, const ArgInfo& a) {
  if (a.type.base == BaseType::ScalarType) {
    return Value(options.dtype_opt());
  }
  if (a.type.base == BaseType::Device) {
    return Value(options.device_opt());
  }
  if (a.type.base == BaseType::Layout) {
    return Value(options.layout_opt());
  }
  return Value();
}
}  // namespace

const OpInfo& overload_of(const OpFunction& function, const std::vector<Value>& arguments) {
  for (const OpInfo& op : function.overloads) {
    if (accepts_value(op, arguments)) {
      return op;
    }
  }
  return function.overloads.back();
}

std::vector<Value> arguments_of(const OpInfo& op, std::vector<Value> of_function) {
  if (op.places == nullptr) {
    return of_function;
  }
  std::vector<Value> out;
  out.reserve(op.arguments.size());
  for (size_t i = 0; i < op.arguments.size(); i++) {
    if (op.places[i] < 0) {
      out.emplace_back();
      continue;
    }
    const Value& v = of_function[static_cast<size_t>(op.places[i])];
    const ArgInfo& a = op.arguments[i];
    if (v.is<TensorOptions>()) {
      out.push_back(option_of(v.get<TensorOptions>(), a));
    } else if (a.type.base == BaseType::Scalar && v.is<Tensor>() && is_number(v)) {
      out.emplace_back(v.get<Tensor>().item());
    } else if (!a.type.is_list && v.is<DimVector>() && v.get<DimVector>().size() == 1) {
      out.emplace_back(v.get<DimVector>()[0]);
    } else {
      out.push_back(v);
    }
  }
  return out;
}

}  // namespace rushlight
