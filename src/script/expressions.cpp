// Expressions to values.
#include <algorithm>

#include "script/bound_classes.h"
#include "script/lower.h"

namespace rushlight::script {

using Kind = Expr::Kind;
using NodeKind = graph::Kind;
using TypeKind = Type::Kind;

graph::Value* Lowering::constant(IValue v, Type type) {
  return graph_->constant(std::move(v), std::move(type));
}

graph::Value* Lowering::value(const Expr& e, const Type* hint) {
  return as_value(meaning(e, hint), e.span);
}

// What is known of a meaning when it is compiled; null where nothing is.
const IValue* Lowering::constant_of(const Meaning& m) {
  return m.is(Meaning::Kind::Constant) ? &m.constant
         : m.is(Meaning::Kind::Value)  ? m.value->constant()
                                       : nullptr;
}

graph::Value* Lowering::as_value(const Meaning& m, Span span) {
  switch (m.kind) {
    case Meaning::Kind::Value:
      return m.value;
    case Meaning::Kind::Constant:
      return constant(m.constant, m.type);
    case Meaning::Kind::Tuple: {
      std::vector<Value*> values;
      std::vector<Type> types;
      for (const Meaning& part : m.of) {
        values.push_back(as_value(part, span));
        types.push_back(values.back()->type);
      }
      Node* const node = graph_->append(NodeKind::TupleConstruct, values);
      return node->output()->set_type(Type::tuple(std::move(types)));
    }
    case Meaning::Kind::Iterable:
      fail(span, str("'", m.name, "' can only be gone over by a loop here"));
    case Meaning::Kind::Space:
      fail(span, str(m.space->describe(), " cannot be used as a value"));
    default:
      fail(span, "a function or a type cannot be used as a value here: call it");
  }
}

namespace {
size_t parts_within(const Meaning& meaning) {
  size_t out = parts_of(meaning.value != nullptr ? meaning.value->type : meaning.type);
  for (const Meaning& part : meaning.of) {
    out += parts_within(part);
  }
  return out;
}
}  // namespace

Meaning Lowering::meaning(const Expr& e, const Type* hint) {
  Meaning out = meaning_of(e, hint);
  resolver_.spend(parts_within(out));
  return out;
}

Meaning Lowering::meaning_of(const Expr& e, const Type* hint) {
  const At at(*this, e.span);
  switch (e.kind) {
    case Kind::Name:
      return name(e);
    case Kind::Int:
      return Meaning::of_constant(e.integer, Type{TypeKind::Int});
    case Kind::Float:
      return Meaning::of_constant(e.number, Type{TypeKind::Float});
    case Kind::Imaginary:
      return Meaning::of_constant(Scalar(rushlight::complex<double>(0, e.number)),
                                  Type{TypeKind::Complex});
    case Kind::String:
      return Meaning::of_constant(e.text, Type{TypeKind::String});
    case Kind::True:
    case Kind::False:
      return Meaning::of_constant(e.is(Kind::True), Type{TypeKind::Bool});
    case Kind::None:
      return Meaning::of_constant(IValue(), Type{TypeKind::None});
    case Kind::Attribute:
      return attribute(meaning(*e.of[0]), e.text, e.span);
    case Kind::Call:
      return call(e, hint);
    case Kind::Subscript:
      return subscript(e, hint);
    case Kind::Tuple:
      return tuple(e, hint);
    case Kind::List:
      return Meaning::of_value(list(e, hint));
    case Kind::Dict:
      return Meaning::of_value(dict(e, hint));
    case Kind::ListComp:
    case Kind::DictComp:
      return Meaning::of_value(comprehension(e, hint));
    case Kind::Unary:
      return Meaning::of_value(unary(e));
    case Kind::Binary:
      return Meaning::of_value(binary(e));
    case Kind::Compare:
      return Meaning::of_value(compare(e));
    case Kind::And:
    case Kind::Or:
      return Meaning::of_value(truth_of(condition(e)));
    case Kind::IfElse: {
      const auto yes = [&] { return value(*e.of[1], hint); };
      const auto no = [&] { return value(*e.of[2], hint); };
      return Meaning::of_value(
          select_value(condition(*e.of[0]), yes, no, e.span, "if-expression", hint));
    }
    case Kind::FormatText:
      return format_text(e);
    default:
      fail(e.span, "this expression means nothing here");
  }
}

// ---- names ----

Meaning Lowering::name(const Expr& e) {
  if (const Variable* const variable = find_variable(e.text)) {
    return variable->meaning;
  }
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->outer) {
    const auto missing = scope->missing.find(e.text);
    if (missing != scope->missing.end()) {
      fail(e.span, str(e.text, " has no value here: ", missing->second, "\nand it is used here"));
    }
  }
  if (std::optional<Meaning> found = resolver_.find(e.text)) {
    return *found;
  }
  if (std::optional<Meaning> found = language_name(e.text)) {
    return *found;
  }
  fail(e.span, str("undefined value ", e.text));
}

Meaning Lowering::attribute(const Meaning& of, const std::string& name, Span span) {
  switch (of.kind) {
    case Meaning::Kind::Space:
      if (std::optional<Meaning> found = of.space->find(name)) {
        if (found->is(Meaning::Kind::Method) && found->value == nullptr) {  // super().name
          found->value = graph_->inputs().at(0);
        }
        return *found;
      }
      fail(span, str(of.space->describe(), " has no '", name, "' that compiled code can use"));
    case Meaning::Kind::Class: {
      const ClassType* const type = of.type.definition;
      if (const IValue* member = type != nullptr ? type->find_constant(name) : nullptr) {
        return Meaning::of_constant(*member, of.type);
      }
      if (name == "__new__") {
        Meaning out = Meaning::named(Meaning::Kind::Special, "__new__");
        out.type = of.type;
        return out;
      }
      if (graph::Function* const method = type != nullptr ? type->find_method(name) : nullptr) {
        return Meaning::of_function(*method);
      }
      if (type != nullptr) {
        if (std::optional<Meaning> found = resolver_.member(of.type, nullptr, name)) {
          return found->is(Meaning::Kind::Method) ? Meaning::of_function(*type->find_method(name))
                                                  : *found;
        }
      }
      fail(span, str("the class ", of.type.annotation(), " has no '", name, "'"));
    }
    case Meaning::Kind::Value:
    case Meaning::Kind::Constant:
    case Meaning::Kind::Tuple:
      return attribute_of_value(as_value(of, span), name, span);
    default:
      fail(span, str("this has no attribute '", name, "' that compiled code can use"));
  }
}

graph::Value* Lowering::get_attribute(Value* object, const std::string& name) {
  const ClassType& type = *object->type.definition;
  const size_t place = type.find_attribute(name);
  Node* const node = graph_->append(NodeKind::GetAttr, {object});
  node->set_attribute("name", name);
  return node->output()->set_type(type.attributes.at(place).type)->set_name(name);
}

namespace {
// Properties, and the functions that they are; methods have their own names.
std::string property_function(TypeKind kind, const std::string& name) {
  if (kind == TypeKind::Tensor) {
    constexpr std::pair<std::string_view, std::string_view> functions[] = {
        {"shape", "aten::size"},
        {"ndim", "aten::dim"},
        {"T", "aten::numpy_T"},
        {"H", "aten::matrix_H"},
        {"mT", "aten::mT"},
        {"mH", "aten::mH"},
        {"real", "aten::real"},
        {"imag", "aten::imag"},
        {"is_leaf", "aten::is_leaf"},
        {"data", "prim::data"},
        {"dtype", "prim::dtype"},
        {"device", "prim::device"},
        {"grad", "prim::grad"},
        {"layout", "prim::layout"},
        {"is_cuda", "prim::is_cuda"},
        {"is_cpu", "prim::is_cpu"},
        {"is_sparse", "prim::is_sparse"},
        {"is_sparse_csr", "prim::is_sparse_csr"},
        {"is_quantized", "prim::is_quantized"},
        {"is_mkldnn", "prim::is_mkldnn"},
        {"is_meta", "prim::is_meta"},
        {"is_mps", "prim::is_mps"},
        {"is_xpu", "prim::is_xpu"},
        {"is_xla", "prim::is_xla"},
        {"is_nested", "prim::is_nested"},
        {"is_vulkan", "prim::is_vulkan"},
        {"is_ipu", "prim::is_ipu"},
        {"requires_grad", "prim::requires_grad"},
        {"name", "prim::name"},
        {"itemsize", "prim::itemsize"},
        {"nbytes", "prim::nbytes"},
        {"output_nr", "aten::output_nr"}};
    for (const auto& [property, function] : functions) {
      if (property == name) {
        return std::string(function);
      }
    }
  }
  if (kind == TypeKind::Device && (name == "type" || name == "index")) {
    return "prim::" + name;
  }
  if (kind == TypeKind::Enum && (name == "name" || name == "value")) {
    return name == "name" ? "prim::EnumName" : "prim::EnumValue";
  }
  return "";
}
}  // namespace

namespace {
std::optional<ScalarType> dtype_of_cast(std::string_view name) {
  constexpr std::pair<std::string_view, ScalarType> casts[] = {
      {"float", kFloat}, {"double", kDouble}, {"half", kHalf},   {"bfloat16", kBFloat16},
      {"int", kInt},     {"long", kLong},     {"short", kShort}, {"char", kChar},
      {"byte", kByte},   {"bool", kBool}};
  for (const auto& [method, dtype] : casts) {
    if (method == name) {
      return dtype;
    }
  }
  return {};
}
}  // namespace

Meaning Lowering::attribute_of_value(Value* object, const std::string& name, Span span) {
  const Type& type = object->type;
  const std::string property = property_function(type.kind, name);
  if (!property.empty()) {
    return Meaning::of_value(op(property, {object}, span));
  }
  if (type.is(TypeKind::Class) || type.is(TypeKind::Interface)) {
    const ClassType& definition = *type.definition;
    if (definition.find_attribute(name) != ClassType::npos) {
      return Meaning::of_value(get_attribute(object, name));
    }
    if (graph::Function* const method = definition.find_method(name)) {
      const std::vector<graph::Argument>& takes = method->schema.arguments;
      if (takes.empty() || takes[0].type != Type::of_class(*type.definition)) {
        return Meaning::of_function(*method);  // it is static
      }
      Meaning out = Meaning::named(Meaning::Kind::Method, name);
      out.value = object;
      return out;
    }
    if ((name == "items" || name == "keys" || name == "values") && resolver_.submodules(type)) {
      Meaning out = Meaning::named(Meaning::Kind::Special, name);
      out.value = object;
      return out;
    }
    if (definition.form == ClassType::Form::Module && is_part_of_module(name)) {
      Meaning out = Meaning::named(Meaning::Kind::Special, name);
      out.value = object;
      return out;
    }
    if (const IValue* member = definition.find_constant(name)) {
      return Meaning::of_constant(*member, rushlight::type_of(*member));
    }
    if (std::optional<Meaning> found = resolver_.member(type, object, name)) {
      if (found->is(Meaning::Kind::Property)) {
        return Meaning::of_value(
            call_function(*definition.find_method(found->name), {}, span, object));
      }
      return *found;
    }
    fail(span, str("Module or object of class '", definition.base_name(),
                   "' has no attribute or method '", name, "'"));
  }
  if (type.is(TypeKind::Object)) {
    if (graph::Function* const method = bound_method(unit_, type.name, name)) {
      Meaning out = Meaning::named(Meaning::Kind::Method, name);
      out.function = method;
      out.value = object;
      return out;
    }
  }
  if (type.is(TypeKind::NamedTuple)) {
    const size_t place = type.definition->find_attribute(name);
    if (place != ClassType::npos) {
      return parts_of(Meaning::of_value(object), span)[place];
    }
  }
  if (type.is_tuple()) {
    const auto fields = fields_.find(object);
    if (fields != fields_.end()) {
      for (size_t i = 0; i < fields->second->results.size(); i++) {
        if (fields->second->results[i].name == name) {
          return parts_of(Meaning::of_value(object), span)[i];
        }
      }
    }
  }
  if (type.is(TypeKind::Future) && name == "wait") {
    Meaning out = Meaning::named(Meaning::Kind::Special, "wait method");
    out.value = object;
    return out;
  }
  if (type.is(TypeKind::Tensor)) {
    if (const std::optional<ScalarType> dtype = dtype_of_cast(name)) {  // x.float()
      Meaning out = Meaning::named(Meaning::Kind::Special, "tensor cast");
      out.value = object;
      out.constant = static_cast<int64_t>(*dtype);
      return out;
    }
  }
  Meaning out = Meaning::named(Meaning::Kind::OpMethod, "aten::" + name);
  out.value = object;
  const bool is_number = type.is(TypeKind::Int) || type.is(TypeKind::Float) ||
                         type.is(TypeKind::Bool) || type.is(TypeKind::Complex);
  const bool known =
      (!is_number && is_op(out.name)) || (type.is(TypeKind::Tensor) && name == "tolist");
  if (!known) {
    fail(span, str("'", type.annotation(), "' object has no attribute or method '", name, "'"));
  }
  return out;
}

// ---- literals ----

Meaning Lowering::tuple(const Expr& e, const Type* hint) {
  std::vector<Meaning> parts;
  const bool hinted = hint != nullptr && hint->is_tuple() && hint->of.size() == e.of.size();
  const auto is_starred = [](const ExprPtr& part) { return part->is(Kind::Starred); };
  if (std::any_of(e.of.begin(), e.of.end(), is_starred)) {
    bool joined = false;
    for (Value* const one : values_of(e.of, 0, nullptr, joined)) {
      parts.push_back(Meaning::of_value(one));
    }
    // A tuple of a length that is not known is a list.
    return joined ? parts[0] : Meaning::list(Meaning::Kind::Tuple, "", std::move(parts));
  }
  for (size_t i = 0; i < e.of.size(); i++) {
    parts.push_back(meaning(*e.of[i], hinted ? &hint->of[i] : nullptr));
  }
  return Meaning::list(Meaning::Kind::Tuple, "", std::move(parts));
}

namespace {
// The list or dict that a hint asks for, also as an Optional or one of a Union.
const Type* hint_of_kind(const Type* hint, TypeKind kind) {
  if (hint == nullptr || hint->is(kind)) {
    return hint;
  }
  if (hint->is(TypeKind::Optional) || hint->is(TypeKind::Union)) {
    for (const Type& member : hint->of) {
      if (member.is(kind)) {
        return &member;
      }
    }
  }
  return nullptr;
}

// What all have in common: a Union where there is nothing simpler.
Type common(const std::vector<Type>& types, const Type& of_none) {
  std::optional<Type> out;
  for (const Type& type : types) {
    const std::optional<Type> both = out ? unify(*out, type) : type;
    out = both ? *both : Type::union_of({*out, type});
  }
  return out.value_or(of_none);
}

std::vector<Type> types_of(const std::vector<graph::Value*>& values) {
  std::vector<Type> out;
  for (const graph::Value* value : values) {
    out.push_back(value->type);
  }
  return out;
}

bool all_are(const std::vector<graph::Value*>& values, const Type& type) {
  return std::all_of(values.begin(), values.end(),
                     [&](const graph::Value* value) { return value->type.is_subtype_of(type); });
}
}  // namespace

namespace {
// The list that a hint asks for: of several the first that the items fit into.
const Type* hinted_list(const Type* hint, const std::vector<graph::Value*>& items) {
  if (hint != nullptr && hint->is(TypeKind::Union)) {
    for (const Type& member : hint->of) {
      if (member.is(TypeKind::List) && all_are(items, member.of[0])) {
        return &member;
      }
    }
  }
  return hint_of_kind(hint, TypeKind::List);
}
}  // namespace

graph::Value* Lowering::list_of(const std::vector<Value*>& items, const Type* hint, Span span) {
  Node* const node = graph_->append(NodeKind::ListConstruct, items);
  const Type* const wanted = hinted_list(hint, items);
  if (wanted != nullptr) {
    if (!all_are(items, wanted->of[0])) {
      fail(span, str("List type annotation '", wanted->annotation(),
                     "' did not match the items, which are of ",
                     common(types_of(items), Type{TypeKind::Tensor}).annotation()));
    }
    return node->output()->set_type(*wanted);
  }
  return node->output()->set_type(Type::list(common(types_of(items), Type{TypeKind::Tensor})));
}

graph::Value* Lowering::list(const Expr& e, const Type* hint) {
  const Type* const wanted = hint_of_kind(hint, TypeKind::List);
  bool joined = false;
  const std::vector<Value*> items =
      values_of(e.of, 0, wanted != nullptr ? &wanted->of[0] : nullptr, joined);
  return joined ? items[0] : list_of(items, hint, e.span);
}

graph::Value* Lowering::dict(const Expr& e, const Type* hint) {
  const Type* const wanted = hint_of_kind(hint, TypeKind::Dict);
  std::vector<Value*> all;
  for (size_t i = 0; i < e.of.size(); i++) {
    all.push_back(value(*e.of[i], wanted != nullptr ? &wanted->of[i % 2] : nullptr));
  }
  return dict_of(all, hint, e.span);
}

// A dict of keys and values by turns.
graph::Value* Lowering::dict_of(const std::vector<Value*>& all, const Type* hint, Span span) {
  const Type* const wanted = hint_of_kind(hint, TypeKind::Dict);
  std::vector<Value*> keys;
  std::vector<Value*> items;
  for (size_t i = 0; i < all.size(); i++) {
    (i % 2 == 0 ? keys : items).push_back(all[i]);
  }
  Node* const node = graph_->append(NodeKind::DictConstruct, all);
  if (wanted == nullptr) {
    return node->output()->set_type(Type::dict(common(types_of(keys), Type{TypeKind::String}),
                                               common(types_of(items), Type{TypeKind::Tensor})));
  }
  if (!all_are(keys, wanted->of[0]) || !all_are(items, wanted->of[1])) {
    fail(span, str("Dict type annotation '", wanted->annotation(),
                   "' did not match the keys and values that are given"));
  }
  return node->output()->set_type(*wanted);
}

// dict(), dict(a=1), dict(pairs) of a dict, a list of pairs, or what a loop sees pairs in.
graph::Value* Lowering::dict_call(const Expr& e, const Type* hint) {
  if (e.of.size() > 2 || (e.of.size() == 2 && !e.keywords.empty())) {
    fail(e.span, "dict() takes one value, or names with values");
  }
  if (e.of.size() == 2) {
    const Meaning pairs = meaning(*e.of[1]);
    const bool iterable = pairs.is(Meaning::Kind::Iterable) || pairs.is(Meaning::Kind::Tuple);
    Value* const given = iterable ? collect_list(pairs, e.span) : as_value(pairs, e.span);
    return op("aten::dict", {given}, e.span);
  }
  std::vector<Value*> all;
  for (const Keyword& keyword : e.keywords) {
    all.push_back(constant(keyword.name, Type{TypeKind::String}));
    all.push_back(value(*keyword.value));
  }
  return dict_of(all, hint, e.span);
}

// "a {} b {}" with values for the braces; texts and integers that are known become part of it.
Meaning Lowering::format_text(const Expr& e) {
  std::string text;
  std::vector<Value*> values = {nullptr};
  for (const ExprPtr& piece : e.of) {
    const Meaning part = meaning(*piece);
    const IValue* const known = constant_of(part);
    const std::string words = known != nullptr && known->isString() ? known->toStringRef()
                              : known != nullptr && known->isInt()  ? std::to_string(known->toInt())
                                                                    : "{}";
    if (words.find("{}") == std::string::npos) {
      text += words;
    } else {
      text += "{}";
      values.push_back(as_value(part, piece->span));
    }
  }
  if (values.size() == 1) {
    return Meaning::of_constant(text, Type{TypeKind::String});
  }
  values[0] = constant(text, Type{TypeKind::String});
  return Meaning::of_value(op("aten::format", values, e.span));
}

}  // namespace rushlight::script
