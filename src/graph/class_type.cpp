// Classes of programs, their objects, and what type a value is of.
#include <algorithm>

#include <rushlight/graph_function.h>

#include "core/nesting.h"
#include "graph/values.h"

namespace rushlight {

ClassType::ClassType(Form form, std::string name) : form(form), name(std::move(name)) {}

size_t ClassType::find_attribute(std::string_view attribute) const {
  constexpr size_t few = 8;
  if (attributes.size() > few) {
    const auto found = places_.find(std::string(attribute));
    return found == places_.end() ? npos : found->second;
  }
  for (size_t i = 0; i < attributes.size(); i++) {
    if (attributes[i].name == attribute) {
      return i;
    }
  }
  return npos;
}

size_t ClassType::add_attribute(Attribute attribute) {
  RL_CHECK(find_attribute(attribute.name) == npos, name, " has an attribute '", attribute.name,
           "' already");
  places_[attribute.name] = attributes.size();
  attributes.push_back(std::move(attribute));
  return attributes.size() - 1;
}

const IValue* ClassType::find_constant(std::string_view constant) const {
  for (const Named& one : constants) {
    if (one.first == constant) {
      return &one.second;
    }
  }
  return nullptr;
}

graph::Function* ClassType::find_method(std::string_view method) const {
  const auto found = method_of_.find(std::string(method));
  return found == method_of_.end() ? nullptr : found->second;
}

void ClassType::add_method(graph::Function& method) {
  methods.push_back(&method);
  method_of_.emplace(method.base_name(), &method);
}

// ---- objects ----

namespace {
[[maybe_unused]] const bool is_named = [] {
  name_class(typeid(Object), "__torch__.Object");
  return true;
}();
}  // namespace

Object::Object(ClassType& type, std::shared_ptr<const void> owner)
    : type(&type), slots(type.attributes.size()), owner(std::move(owner)) {}

IValue& Object::at(std::string_view attribute) {
  const size_t place = type->find_attribute(attribute);
  RL_CHECK(place < slots.size(), type->name, " has no attribute '", attribute, "'");
  return slots[place];
}

Object* object_of(const IValue& value) {
  return value.isObject() ? dynamic_cast<Object*>(value.object().get()) : nullptr;
}

// ---- types of values ----

namespace {
using Kind = Type::Kind;

std::optional<Type> common_type(const std::vector<const IValue*>& items) {
  std::optional<Type> out;
  for (const IValue* const item : items) {
    const Type type = type_of(*item);
    out = out ? unify(*out, type) : type;
    if (!out) {
      return Type{Kind::Any};
    }
  }
  return out;
}

Kind kind_of_plain(const IValue& value) {
  if (value.isTensor()) {
    return Kind::Tensor;
  }
  if (value.isScalar()) {
    const Scalar number = value.toScalar();
    constexpr Kind kinds[] = {Kind::Bool, Kind::Int, Kind::Int, Kind::Float, Kind::Complex};
    return kinds[static_cast<size_t>(number.kind())];
  }
  if (value.isString()) {
    return Kind::String;
  }
  if (value.isDevice()) {
    return Kind::Device;
  }
  return Kind::Any;
}

Type type_of_list(const IValue& value) {
  if (!graph::is_shared_list(value)) {  // a vector of an op, which may be empty
    return Type::list({value.isIntList()      ? Kind::Int
                       : value.isDoubleList() ? Kind::Float
                       : value.isTensorList() ? Kind::Tensor
                                              : Kind::Any});
  }
  std::vector<const IValue*> items;
  for (const IValue& item : graph::items_of(value)) {
    items.push_back(&item);
  }
  return Type::list(common_type(items).value_or(Type{Kind::None}));
}

Type type_of_dict(const IValue& value) {
  std::vector<const IValue*> keys;
  std::vector<const IValue*> values;
  for (const auto& pair : graph::dict_of(value).pairs) {
    keys.push_back(&pair.first);
    values.push_back(&pair.second);
  }
  return Type::dict(common_type(keys).value_or(Type{Kind::None}),
                    common_type(values).value_or(Type{Kind::None}));
}
}  // namespace

Type type_of(const IValue& value) {
  if (value.isNone()) {
    return {Kind::None};
  }
  const Nesting deeper;
  if (value.isList()) {
    return type_of_list(value);
  }
  if (value.isTuple()) {
    std::vector<Type> parts;
    for (const IValue& part : graph::items_of(value)) {
      parts.push_back(type_of(part));
    }
    return Type::tuple(std::move(parts));
  }
  if (value.isGenericDict()) {
    return type_of_dict(value);
  }
  if (value.isObject()) {
    Object* const object = object_of(value);
    return object != nullptr ? Type::of_class(*object->type)
                             : Type{Kind::Object, {}, value.class_name()};
  }
  return {kind_of_plain(value)};
}

bool is_of(const IValue& value, const Type& type) {
  switch (type.kind) {
    case Kind::Any:
    case Kind::Variable:
      return true;
    case Kind::Optional:
    case Kind::Union: {
      for (const Type& member : type.members()) {
        if (is_of(value, member)) {
          return true;
        }
      }
      return false;
    }
    case Kind::List: {
      if (!value.isList()) {
        return false;
      }
      const IValue::Items items = value.toListRef();
      return std::all_of(items.begin(), items.end(),
                         [&](const IValue& item) { return is_of(item, type.of[0]); });
    }
    case Kind::Dict: {
      if (!value.isGenericDict()) {
        return false;
      }
      const auto& pairs = graph::dict_of(value).pairs;
      return std::all_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
        return is_of(pair.first, type.of[0]) && is_of(pair.second, type.of[1]);
      });
    }
    case Kind::Tuple:
      if (!type.name.empty()) {  // of any contents
        return value.isTuple();
      }
      [[fallthrough]];
    case Kind::NamedTuple:
      return value.isTuple() &&
             std::equal(graph::items_of(value).begin(), graph::items_of(value).end(),
                        type.of.begin(), type.of.end(),
                        [](const IValue& v, const Type& t) { return is_of(v, t); });
    case Kind::ScalarType:
    case Kind::Layout:
    case Kind::MemoryFormat:
      return value.isInt();  // as programs see them
    default:
      return type_of(value).is_subtype_of(type);
  }
}

}  // namespace rushlight
