// Arguments of nodes of a .pt2 file: values that were computed, and constants.
#include <algorithm>

#include "exported/graph_reader.h"
#include "graph/values.h"

namespace rushlight::exported {

using graph::Node;
using graph::Value;
using serialize::Json;
using Kind = Type::Kind;

namespace {
const Type& without_none(const Type& type) { return type.is(Kind::Optional) ? type.of[0] : type; }
}  // namespace

Value* GraphReader::constant(IValue value, Type type) {
  return graph_.constant(graph::shared_list(std::move(value)), std::move(type));
}

// What is computed has a name; an int may stand for a float.
Value* GraphReader::number(const Json& record, const Type& type) {
  if (record.is_boolean()) {
    return constant(record.boolean(), {Kind::Bool});
  }
  if (!record.is_object()) {
    const bool is_float = type.is(Kind::Float) || record.is_string() ||
                          record.text().find_first_of(".eE") != std::string_view::npos;
    return is_float ? constant(number_of(record), {Kind::Float})
                    : constant(record.integer(), {Kind::Int});
  }
  if (const std::optional<Json> name = record.find("as_name")) {
    return value_named(name->string());
  }
  return number(record.only().second, type);
}

Value* GraphReader::list(const Json& records, const Type& item) {
  Values values;
  records.items([&](const Json& record) {
    if (without_none(item).is(Kind::Tensor)) {
      const std::optional<Json> name = record.find("name");
      values.push_back(name ? value_named(name->string()) : argument(record, item));
    } else {
      values.push_back(number(record, item));
    }
  });
  const auto is_constant = [](const Value* v) { return v->constant() != nullptr; };
  if (!item.is(Kind::Tensor) && std::all_of(values.begin(), values.end(), is_constant)) {
    IValue::Items items;
    for (const Value* const value : values) {
      items.push_back(*value->constant());
    }
    return constant(IValue::list(std::move(items)), Type::list(item));
  }
  return list_of(values, item);
}

Value* GraphReader::list_of(const Values& values, const Type& item) {
  Node* const node = graph_.append(graph::Kind::ListConstruct, values);
  return node->output()->set_type(Type::list(item));
}

GraphReader::Values GraphReader::values_of(const Json& argument_record) {
  const auto [kind, value] = argument_record.only();
  if (!value.is_array()) {
    return {argument(argument_record)};
  }
  Values values;
  value.items([&](const Json& record) {
    const std::optional<Json> name = record.is_object() ? record.find("name") : std::nullopt;
    values.push_back(name ? value_named(name->string()) : number(record, {}));
  });
  return values;
}

Value* GraphReader::argument(const Json& record, const Type& wanted) {
  const auto [kind, value] = record.only();
  const Type& type = without_none(wanted);
  const Type item = type.is(Kind::List) ? type.of[0] : Type();
  if (kind == "as_none") {
    return constant({}, {Kind::None});
  }
  if (kind == "as_tensor") {
    return value_named(value.at("name").string());
  }
  if (kind == "as_int" || kind == "as_float" || kind == "as_bool" || kind == "as_sym_int" ||
      kind == "as_sym_float" || kind == "as_sym_bool") {
    return number(value, kind == "as_float" ? Type{Kind::Float} : type);
  }
  if (kind == "as_tensors" || kind == "as_optional_tensors") {
    return list(value, kind == "as_tensors" && !item.is(Kind::Optional)
                           ? Type{Kind::Tensor}
                           : Type::optional({Kind::Tensor}));
  }
  if (kind == "as_ints" || kind == "as_sym_ints") {
    return list(value, item.is(Kind::Float) || item.is(Kind::Scalar) ? item : Type{Kind::Int});
  }
  if (kind == "as_floats" || kind == "as_sym_floats") {
    return list(value, {Kind::Float});
  }
  if (kind == "as_bools" || kind == "as_sym_bools") {
    return list(value, {Kind::Bool});
  }
  if (kind == "as_string") {
    return constant(value.string(), {Kind::String});
  }
  if (kind == "as_strings") {
    IValue::Items items;
    value.items([&](const Json& text) { items.push_back(text.string()); });
    return constant(IValue::list(std::move(items)), Type::list({Kind::String}));
  }
  if (kind == "as_complex") {
    const complex<double> number(number_of(value.at("real")), number_of(value.at("imag")));
    return constant(Scalar(number), {Kind::Complex});
  }
  // These are ints in programs.
  if (kind == "as_scalar_type") {
    return constant(graph::number_of(dtype_numbered(value.integer())), {Kind::Int});
  }
  if (kind == "as_layout") {
    return constant(graph::number_of(layout_numbered(value.integer())), {Kind::Int});
  }
  if (kind == "as_memory_format") {
    return constant(static_cast<int64_t>(memory_format_numbered(value.integer())), {Kind::Int});
  }
  if (kind == "as_device") {
    return constant(device_.value_or(device_of(value)), {Kind::Device});
  }
  throw NotImplementedError(
      str("the program passes a value of kind ", kind, ", which is not read"));
}

}  // namespace rushlight::exported
