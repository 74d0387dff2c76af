// Types of values: how they are spelt, and which are parts of which.
#include <rushlight/type.h>

#include <algorithm>

#include <rushlight/graph_function.h>

namespace rushlight {

// ---- making ----

Type Type::optional(Type item) {
  if (item.may_be_none()) {
    return item;
  }
  return {Kind::Optional, {std::move(item)}};
}

Type Type::of_class(ClassType& definition) {
  constexpr Kind kinds[] = {Kind::Class, Kind::Class, Kind::NamedTuple, Kind::Enum,
                            Kind::Interface};
  Type out{kinds[static_cast<size_t>(definition.form)], {}, definition.name, &definition};
  if (out.kind == Kind::NamedTuple) {
    for (const ClassType::Attribute& field : definition.attributes) {
      out.of.push_back(field.type);
    }
  }
  return out;
}

Type Type::union_of(const std::vector<Type>& members) {
  std::vector<Type> kept;
  for (const Type& group : members) {
    for (Type& one : group.members()) {
      if (std::any_of(kept.begin(), kept.end(),
                      [&](const Type& k) { return one.is_subtype_of(k); })) {
        continue;
      }
      kept.erase(std::remove_if(kept.begin(), kept.end(),
                                [&](const Type& k) { return k.is_subtype_of(one); }),
                 kept.end());
      kept.push_back(std::move(one));
    }
  }
  if (kept.size() == 1) {
    return kept[0];
  }
  if (kept.size() == 2 && kept[0].is(Kind::None) != kept[1].is(Kind::None)) {
    return optional(kept[0].is(Kind::None) ? kept[1] : kept[0]);
  }
  return {Kind::Union, std::move(kept)};
}

// ---- asking ----

std::vector<Type> Type::members() const {
  if (kind == Kind::Union) {
    return of;
  }
  if (kind == Kind::Optional) {
    std::vector<Type> out = of.at(0).members();
    out.push_back({Kind::None});
    return out;
  }
  return {*this};
}

bool Type::may_be_none() const {
  return kind == Kind::None || kind == Kind::Optional || kind == Kind::Any ||
         (kind == Kind::Union &&
          std::any_of(of.begin(), of.end(), [](const Type& t) { return t.is(Kind::None); }));
}

bool Type::has_variables() const {
  return kind == Kind::Variable ||
         std::any_of(of.begin(), of.end(), [](const Type& t) { return t.has_variables(); });
}

bool Type::operator==(const Type& other) const {
  if (kind != other.kind || definition != other.definition || of.size() != other.of.size()) {
    return false;
  }
  const bool is_named = kind == Kind::Object || kind == Kind::Variable || kind == Kind::Tuple;
  if (is_named && name != other.name) {
    return false;
  }
  if (kind == Kind::Union) {  // in any order
    return std::all_of(of.begin(), of.end(), [&](const Type& t) {
      return std::find(other.of.begin(), other.of.end(), t) != other.of.end();
    });
  }
  return of == other.of;
}

namespace {
bool all_subtypes(const std::vector<Type>& a, const std::vector<Type>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Type& x, const Type& y) { return x.is_subtype_of(y); });
}
bool has_methods_of(const ClassType& type, const ClassType& interface) {
  return std::all_of(
      interface.methods.begin(), interface.methods.end(),
      [&](graph::Function* method) { return type.find_method(method->base_name()) != nullptr; });
}
bool is_number_name(Type::Kind kind) {
  return kind == Type::Kind::ScalarType || kind == Type::Kind::Layout ||
         kind == Type::Kind::MemoryFormat;
}
}  // namespace

bool Type::is_subtype_of(const Type& other) const {
  if (other.kind == Kind::Any || *this == other) {
    return true;
  }
  if (kind == Kind::Union || kind == Kind::Optional) {
    const std::vector<Type> all = members();
    return std::all_of(all.begin(), all.end(),
                       [&](const Type& t) { return t.is_subtype_of(other); });
  }
  switch (other.kind) {
    case Kind::Optional:
      return kind == Kind::None || is_subtype_of(other.of.at(0));
    case Kind::Union:
      return std::any_of(other.of.begin(), other.of.end(),
                         [&](const Type& t) { return is_subtype_of(t); });
    case Kind::Scalar:
      return kind == Kind::Int || kind == Kind::Float || kind == Kind::Complex ||
             kind == Kind::Bool;
    case Kind::Int:
      return is_number_name(kind);
    case Kind::Tuple:  // by a name: of any contents
      return is_tuple() && (!other.name.empty() || all_subtypes(of, other.of));
    case Kind::NamedTuple:
      return kind == Kind::NamedTuple && name == other.name && all_subtypes(of, other.of);
    case Kind::Interface:
      return (kind == Kind::Class || kind == Kind::Interface) &&
             has_methods_of(*definition, *other.definition);
    case Kind::Future:
    case Kind::Await:
      return kind == other.kind && all_subtypes(of, other.of);
    case Kind::Enum:  // of no definition: of any enum
      return kind == Kind::Enum && other.definition == nullptr;
    default:
      return is_number_name(other.kind) && kind == Kind::Int;
  }
}

std::optional<Type> unify(const Type& a, const Type& b) {
  if (a.is_subtype_of(b)) {
    return b;
  }
  if (b.is_subtype_of(a)) {
    return a;
  }
  if (a.is(Type::Kind::None) || b.is(Type::Kind::None)) {
    return Type::optional(a.is(Type::Kind::None) ? b : a);
  }
  if (a.is(Type::Kind::Optional) || b.is(Type::Kind::Optional)) {
    const auto inner = [](const Type& t) { return t.is(Type::Kind::Optional) ? t.of[0] : t; };
    const std::optional<Type> both = unify(inner(a), inner(b));
    return both ? std::optional<Type>(Type::optional(*both)) : std::nullopt;
  }
  if (a.is_tuple() && b.is_tuple() && a.of.size() == b.of.size()) {
    std::vector<Type> parts;
    for (size_t i = 0; i < a.of.size(); i++) {
      const std::optional<Type> part = unify(a.of[i], b.of[i]);
      if (!part) {
        return std::nullopt;
      }
      parts.push_back(*part);
    }
    return Type::tuple(std::move(parts));
  }
  return std::nullopt;
}

// ---- variables ----

bool match(const Type& formal, const Type& actual, TypeVariables& variables) {
  using Kind = Type::Kind;
  if (!formal.has_variables()) {
    return actual.is_subtype_of(formal);
  }
  if (formal.is(Kind::Variable)) {
    const auto [bound, is_new] = variables.emplace(formal.name, actual);
    if (is_new || actual.is_subtype_of(bound->second)) {
      return true;
    }
    const std::optional<Type> both = unify(bound->second, actual);
    if (both) {
      bound->second = *both;
    }
    return both.has_value();
  }
  if (formal.is(Kind::Optional)) {
    return actual.is(Kind::None) ||
           match(formal.of[0], actual.is(Kind::Optional) ? actual.of[0] : actual, variables);
  }
  if (formal.is(Kind::List) && actual.is_tuple()) {
    return false;
  }
  if (formal.kind != actual.kind && !(formal.is(Kind::Tuple) && actual.is_tuple())) {
    return false;
  }
  return std::equal(formal.of.begin(), formal.of.end(), actual.of.begin(), actual.of.end(),
                    [&](const Type& f, const Type& a) { return match(f, a, variables); });
}

Type substitute(const Type& type, const TypeVariables& variables) {
  if (type.is(Type::Kind::Variable)) {
    const auto bound = variables.find(type.name);
    return bound == variables.end() ? type : bound->second;
  }
  Type out = type;
  for (Type& part : out.of) {
    part = substitute(part, variables);
  }
  return out.is(Type::Kind::Optional) ? Type::optional(std::move(out.of[0])) : out;
}

// ---- spelling ----

namespace {
// Of kinds whose two spellings are one word.
const char* name_of_kind(Type::Kind kind) {
  constexpr const char* words[] = {
      "Any",        "Tensor", "int",      "float",        "bool",      "Scalar", "str",
      "ScalarType", "Device", "Layout",   "MemoryFormat", "Generator", "",       "",
      "",           "",       "",         "NoneType",     "complex",   "",       "",
      "",           "",       "Function", "Stream",       "Storage"};
  return static_cast<size_t>(kind) < std::size(words) ? words[static_cast<size_t>(kind)] : "";
}
std::string join_types(const std::vector<Type>& of, std::string (Type::*spelt)() const) {
  std::string out;
  for (const Type& part : of) {
    out += (out.empty() ? "" : ", ") + (part.*spelt)();
  }
  return out;
}
const char* generic_name(Type::Kind kind) {
  switch (kind) {
    case Type::Kind::List:
      return "List";
    case Type::Kind::Tuple:
      return "Tuple";
    case Type::Kind::Dict:
      return "Dict";
    case Type::Kind::Optional:
      return "Optional";
    case Type::Kind::Union:
      return "Union";
    case Type::Kind::Future:
      return "Future";
    case Type::Kind::Await:
      return "Await";
    case Type::Kind::RRef:
      return "RRef";
    default:
      return nullptr;
  }
}
}  // namespace

std::string Type::str() const {
  switch (kind) {
    case Kind::List:
      return of.at(0).str() + "[]";
    case Kind::Optional:
      return of.at(0).str() + "?";
    case Kind::Tuple:
      return "(" + join_types(of, &Type::str) + ")";
    case Kind::NamedTuple: {
      std::string out;
      for (size_t i = 0; i < of.size(); i++) {
        out += (i == 0 ? "" : ", ") + definition->attributes.at(i).name + " : " + of[i].str();
      }
      return "NamedTuple(" + out + ")";
    }
    case Kind::Enum:
      return definition == nullptr && name.empty() ? "AnyEnumType" : "Enum<" + name + ">";
    case Kind::Object:
    case Kind::Class:
    case Kind::Interface:
    case Kind::Variable:
      return name;
    default:
      if (const char* generic = generic_name(kind)) {
        return std::string(generic) + "(" + join_types(of, &Type::str) + ")";
      }
      return name_of_kind(kind);
  }
}

std::string Type::annotation() const {
  if ((kind == Kind::List || kind == Kind::Tuple) && !name.empty()) {  // isinstance(x, list)
    return name;
  }
  if (kind == Kind::Tuple && of.empty()) {
    return "Tuple[()]";
  }
  if (const char* generic = generic_name(kind)) {
    return std::string(generic) + "[" + join_types(of, &Type::annotation) + "]";
  }
  switch (kind) {
    case Kind::Object:
    case Kind::Class:
    case Kind::NamedTuple:
    case Kind::Interface:
    case Kind::Enum:
    case Kind::Variable:
      return name;
    case Kind::Scalar:
      return "number";
    default:
      return name_of_kind(kind);
  }
}

}  // namespace rushlight
