// Calls: of ops, functions, methods and classes. The forms of the language are in specials.cpp.
#include <algorithm>

#include "script/lower.h"
#include "script/prelude.h"

namespace rushlight::script {

using Kind = Expr::Kind;
using NodeKind = graph::Kind;
using TypeKind = Type::Kind;

// Whether it is a list, or goes over as many items as are known when it runs.
bool Lowering::is_open(const Meaning& many, Span span) {
  return many.is(Meaning::Kind::Value)      ? many.value->type.is(TypeKind::List)
         : many.is(Meaning::Kind::Iterable) ? !iterations(many, span).fixed
                                            : false;
}

// What expressions stand for, one after the other. Where one with a star is a list whose length is
// not known, `joined` says so, and one list of all of them comes out.
std::vector<graph::Value*> Lowering::values_of(const std::vector<ExprPtr>& of, size_t from,
                                               const Type* item, bool& joined) {
  std::vector<Value*> out;
  Value* list = nullptr;
  const auto join = [&](Value* more, Span span) {
    list = list == nullptr ? more : op("aten::add", {list, more}, span);
  };
  for (size_t i = from; i < of.size(); i++) {
    const Span span = of[i]->span;
    if (!of[i]->is(Kind::Starred)) {
      out.push_back(value(*of[i], item));
      continue;
    }
    const Meaning many = meaning(*of[i]->of[0]);
    if (!is_open(many, span)) {
      for (const Meaning& part : parts_of(many, span)) {
        out.push_back(as_value(part, span));
      }
      continue;
    }
    if (!out.empty()) {
      join(list_of(std::exchange(out, {}), nullptr, span), span);
    }
    join(many.is(Meaning::Kind::Value) ? op("aten::list", {many.value}, span)
                                       : collect_list(many, span),
         span);
  }
  joined = list != nullptr;
  if (joined && !out.empty()) {
    join(list_of(out, nullptr, of.back()->span), of.back()->span);
  }
  return joined ? std::vector<Value*>{list} : out;
}

Arguments Lowering::arguments(const Expr& e) {
  Arguments out;
  bool joined = false;
  out.positional = values_of(e.of, 1, nullptr, joined);
  for (const Keyword& keyword : e.keywords) {
    if (keyword.name.empty()) {
      fail(keyword.value->span, "keyword-arg expansion is not supported: name the arguments");
    }
    out.named.emplace_back(keyword.name, value(*keyword.value));
  }
  return out;
}

// ---- ops ----

namespace {
// The overload without `center` takes what has been padded: the one that has it is told so.
graph::Node* stft_of_padded(graph::Graph& graph, graph::Node* node) {
  const graph::InsertPoint here(graph, node);
  std::vector<graph::Value*> inputs = node->inputs();
  inputs.insert(inputs.begin() + 5,
                {graph.constant(false), graph.constant(std::string("reflect"))});
  graph.append("aten::stft.center", inputs);
  graph::Node* const made = node->previous();
  node->erase();
  return made;
}
}  // namespace

// An op that is neither in the registry nor a function of the language. Where it is unknown the
// program raises there: it may hold what never comes to that place. Its results count as one
// tensor, or as many as they are unpacked into.
Meaning Lowering::unknown_call(const std::string& name, const Arguments& arguments, Span span) {
  Value* const message = constant(
      str("Unknown builtin op: ", name, ": no op and no function of the language has this name"),
      Type{TypeKind::String});
  graph_->append(NodeKind::RaiseException, {message, none()}, 0);
  Value* const out = uninitialized(Type{TypeKind::Tensor});
  unknown_.insert(out->node());
  return Meaning::of_value(out);
}

Meaning Lowering::call_op_at(const std::string& name, const Arguments& arguments, Span span) {
  const bool formats = name == "aten::percentFormat" && arguments.positional.size() == 2;
  if (formats && arguments.positional[1]->type.is_tuple()) {
    return Meaning::of_value(
        operation("%", arguments.positional[0], arguments.positional[1], span));
  }
  if (version_ < newest_version) {
    const auto is_tensor = [](const Value* value) { return value->type.is(TypeKind::Tensor); };
    const auto first = arguments.positional.begin();
    const size_t seen = std::min<size_t>(arguments.positional.size(), 2);
    const auto tensors = std::count_if(first, first + static_cast<int64_t>(seen), is_tensor);
    const bool has_mode = arguments.positional.size() > 2 || !arguments.named.empty();
    const auto form = name_in_version(name, version_, static_cast<int>(tensors), has_mode);
    if (form) {
      return Meaning::of_value(call_function(*prelude_function(unit_, *form), arguments, span));
    }
  }
  if (!is_op(name)) {
    const bool aten = name.starts_with("aten::");
    graph::Function* const own = aten ? prelude_function(unit_, name.substr(6)) : nullptr;
    return own != nullptr ? Meaning::of_value(call_function(*own, arguments, span))
                          : unknown_call(name, arguments, span);
  }
  Node* node;
  try {
    node = call_op(*graph_, name, arguments);
  } catch (const Error& error) {
    fail(span, error.what());
  }
  if (node->op != nullptr && std::string_view(node->op->name) == "stft" &&
      std::string_view(node->op->overload).empty()) {
    node = stft_of_padded(*graph_, node);
  }
  Value* const out = result_of(*graph_, node);
  if (name == "prim::EnumValue") {
    out->set_type(node->input()->type.definition->attributes.at(1).type);
  }
  if (node->outputs().size() > 1) {
    fields_[out] = node->op != nullptr ? &graph::schema_of(*node->op) : &node->builtin->schema;
  }
  return Meaning::of_value(out);
}

graph::Value* Lowering::op(const std::string& name, const std::vector<Value*>& arguments,
                           Span span) {
  return call_op_at(name, {arguments, {}}, span).value;
}

// ---- functions, methods, classes ----

graph::Value* Lowering::call_function(graph::Function& function, const Arguments& arguments,
                                      Span span, Value* self) {
  Arguments all = arguments;
  if (self != nullptr) {
    all.positional.insert(all.positional.begin(), self);
  }
  std::string why;
  TypeVariables variables;
  const auto inputs = match_arguments(*graph_, function.schema, all, true, variables, &why);
  if (!inputs) {
    fail(span, str(function.base_name(), ": ", why, "; its arguments are ", function.schema.str()));
  }
  return call_with(function, *inputs, self != nullptr);
}

graph::Value* Lowering::call_with(graph::Function& function, const std::vector<Value*>& inputs,
                                  bool method) {
  const std::vector<graph::Argument>& results = function.schema.results;
  Node* const node = graph_->append(method ? NodeKind::CallMethod : NodeKind::CallFunction, inputs);
  if (method) {
    node->set_attribute("name", function.base_name());
  } else {
    node->function = &function;
  }
  return node->output()->set_type(results.empty() ? Type{TypeKind::None} : results[0].type);
}

// The first that takes the arguments as they are, or else with conversions.
graph::Value* Lowering::call_overload(const std::vector<Meaning>& overloads,
                                      const Arguments& arguments, Span span) {
  std::string reasons;
  for (const bool convert : {false, true}) {
    for (const Meaning& one : overloads) {
      graph::Function& function = one.is(Meaning::Kind::Method)
                                      ? *one.value->type.definition->find_method(one.name)
                                      : *one.function;
      Arguments all = arguments;
      if (one.value != nullptr) {
        all.positional.insert(all.positional.begin(), one.value);
      }
      std::string why;
      TypeVariables variables;
      if (const auto inputs =
              match_arguments(*graph_, function.schema, all, convert, variables, &why)) {
        return call_with(function, *inputs, one.value != nullptr);
      }
      reasons += convert ? str("\n  ", function.schema.str(), ": ", why) : "";
    }
  }
  fail(span, str("Arguments for call are not valid: no overload takes them", reasons));
}

// Class(…): an object whose __init__ is called, or a tuple with named parts.
graph::Value* Lowering::construct(const Type& type, const Arguments& arguments, Span span) {
  if (type.is(TypeKind::NamedTuple)) {
    graph::Schema schema;
    schema.name = type.definition->base_name();
    for (const ClassType::Attribute& field : type.definition->attributes) {
      schema.arguments.push_back({field.name, field.type, field.fallback});
    }
    std::string why;
    TypeVariables variables;
    const auto inputs = match_arguments(*graph_, schema, arguments, true, variables, &why);
    if (!inputs) {
      fail(span, str(schema.str(), ": ", why));
    }
    return graph_->append(NodeKind::TupleConstruct, *inputs)->output()->set_type(type);
  }
  if (!type.is(TypeKind::Class)) {
    fail(span, str("an object of ", type.annotation(), " cannot be made by a call"));
  }
  Value* const object = graph_->append(NodeKind::CreateObject, {})->output()->set_type(type);
  graph::Function* const init = type.definition->find_method("__init__");
  if (init == nullptr) {
    fail(span, str("the class ", type.definition->name, " has no __init__ that can be called"));
  }
  call_function(*init, arguments, span, object);
  return object;
}

Meaning Lowering::call(const Meaning& what, const Arguments& arguments, Span span) {
  switch (what.kind) {
    case Meaning::Kind::Op:
      return call_op_at(what.name, arguments, span);
    case Meaning::Kind::OpMethod: {
      Arguments all = arguments;
      // x.where(condition, other): the only method whose object comes second.
      const bool second = what.name == "aten::where" && !all.positional.empty();
      all.positional.insert(all.positional.begin() + (second ? 1 : 0), what.value);
      return call_op_at(what.name, all, span);
    }
    case Meaning::Kind::Function:
      return Meaning::of_value(call_function(*what.function, arguments, span));
    case Meaning::Kind::Method: {
      graph::Function* const method = what.function != nullptr
                                          ? what.function
                                          : what.value->type.definition->find_method(what.name);
      return Meaning::of_value(call_function(*method, arguments, span, what.value));
    }
    case Meaning::Kind::Overloads:
      return Meaning::of_value(call_overload(what.of, arguments, span));
    case Meaning::Kind::Class:
    case Meaning::Kind::TypeName:
      return Meaning::of_value(construct(what.type, arguments, span));
    case Meaning::Kind::Value:
      if (what.value->type.is(TypeKind::Class) || what.value->type.is(TypeKind::Interface)) {
        const ClassType& type = *what.value->type.definition;
        const bool hooked = type.find_method("_call_with_hooks") != nullptr;
        const char* const name = type.form == ClassType::Form::Class ? "__call__"
                                 : hooked                            ? "_call_with_hooks"
                                                                     : "forward";
        return call(attribute_of_value(what.value, name, span), arguments, span);
      }
      fail(span, str("a ", what.value->type.annotation(), " cannot be called"));
    default:
      fail(span, "this cannot be called");
  }
}

// modules[index](…) of an index that is known when it runs; nothing of other calls.
std::optional<Meaning> Lowering::call_of_chosen_module(const Expr& e) {
  const Expr& called = *e.of[0];
  const bool plain = called.is(Kind::Subscript) && called.of.size() == 2 &&
                     (called.of[0]->is(Kind::Name) || called.of[0]->is(Kind::Attribute));
  if (!plain || called.of[1]->is(Kind::Slice) || called.of[1]->is(Kind::Tuple)) {
    return {};
  }
  const Meaning modules = meaning(*called.of[0]);
  if (!modules.is(Meaning::Kind::Value)) {
    return {};
  }
  const std::optional<std::vector<std::string>> names = submodule_names(modules.value);
  if (!names) {
    return {};
  }
  const Meaning index = meaning(*called.of[1]);
  if (constant_of(index) != nullptr || index.is(Meaning::Kind::Slice)) {
    return {};
  }
  Value* const number = as_value(index, called.span);
  const Arguments given = arguments(e);
  const auto call_it = [&](Value* module) {
    return as_value(call(Meaning::of_value(module), given, e.span), e.span);
  };
  return Meaning::of_value(choose_module(modules.value, *names, number, call_it, e.span));
}

Meaning Lowering::call(const Expr& e, const Type* hint) {
  if (std::optional<Meaning> chosen = call_of_chosen_module(e)) {
    return *std::move(chosen);
  }
  const Meaning what = meaning(*e.of[0]);
  if (what.is(Meaning::Kind::Special)) {
    return special(what, e, hint);
  }
  if (what.is(Meaning::Kind::OpMethod) && what.name == "aten::tolist") {
    return Meaning::of_value(to_list(what.value, hint, e.span));
  }
  const Arguments given = arguments(e);
  const bool counts =
      what.is(Meaning::Kind::Op) && what.name == "aten::len" && given.positional.size() == 1;
  if (counts && given.positional[0]->type.is_tuple()) {
    const auto size = static_cast<int64_t>(given.positional[0]->type.of.size());
    return Meaning::of_constant(size, Type{TypeKind::Int});
  }
  if (counts && given.positional[0]->type.is(TypeKind::Class)) {
    if (const auto names = resolver_.submodules(given.positional[0]->type)) {
      return Meaning::of_constant(static_cast<int64_t>(names->size()), Type{TypeKind::Int});
    }
    return call(attribute_of_value(given.positional[0], "__len__", e.span), {}, e.span);
  }
  return call(what, given, e.span);
}

}  // namespace rushlight::script
