// The forms of the language that look like calls: annotate, isinstance, range, int, …
#include <algorithm>

#include "script/lower.h"

namespace rushlight::script {

using Kind = Expr::Kind;
using NodeKind = graph::Kind;
using TypeKind = Type::Kind;

std::optional<Meaning> language_name(std::string_view name) {
  constexpr std::string_view specials[] = {
      "annotate", "isinstance", "hasattr", "getattr", "range",          "enumerate",
      "zip",      "reversed",   "int",     "float",   "bool",           "str",
      "complex",  "list",       "dict",    "tuple",   "unchecked_cast", "uninitialized",
      "fork",     "super",      "slice",   "sorted"};
  for (const std::string_view special : specials) {
    if (special == name) {
      return Meaning::named(Meaning::Kind::Special, std::string(name));
    }
  }
  constexpr std::pair<std::string_view, std::string_view> functions[] = {
      {"len", "aten::len"}, {"print", "prim::Print"}, {"min", "prim::min"},
      {"max", "prim::max"}, {"abs", "prim::abs"},     {"round", "aten::round"},
      {"sum", "aten::sum"}, {"pow", "aten::pow"},     {"divmod", "aten::divmod"},
      {"hex", "aten::hex"}, {"oct", "aten::oct"},     {"bin", "aten::bin"},
      {"ord", "aten::ord"}, {"chr", "aten::chr"},     {"hash", "aten::hash"},
      {"id", "prim::id"},   {"all", "aten::all"},     {"any", "aten::any"}};
  for (const auto& [text, function] : functions) {
    if (text == name) {
      return Meaning::named(Meaning::Kind::Op, std::string(function));
    }
  }
  return {};
}

namespace {
void check_arguments(const Text& text, const Expr& e, size_t least, size_t most) {
  const size_t given = e.of.size() - 1;
  if (given < least || given > most || !e.keywords.empty()) {
    fail_at(text, e.span,
            str("this takes ", least, least == most ? "" : str(" to ", most), " arguments, not ",
                given + e.keywords.size()));
  }
}
}  // namespace

// int(x), float(x), bool(x), str(x), complex(…).
Meaning Lowering::cast(const std::string& name, const Expr& e) {
  check_arguments(text_, e, 0, 2);
  const std::string function = name == "str"     ? "aten::str"
                               : name == "int"   ? "aten::Int"
                               : name == "float" ? "aten::Float"
                               : name == "bool"  ? "aten::Bool"
                                                 : "aten::Complex";
  if (e.of.size() == 1) {
    const Type type{name == "str"     ? TypeKind::String
                    : name == "int"   ? TypeKind::Int
                    : name == "float" ? TypeKind::Float
                    : name == "bool"  ? TypeKind::Bool
                                      : TypeKind::Complex};
    return name == "str"     ? Meaning::of_constant("", type)
           : name == "int"   ? Meaning::of_constant(0, type)
           : name == "float" ? Meaning::of_constant(0.0, type)
                             : Meaning::of_constant(false, type);
  }
  const Arguments given = arguments(e);
  if (given.positional.empty()) {
    fail(e.span, str(name, "() takes its value by position"));
  }
  Value* const value = given.positional[0];
  if (value->type.is(TypeKind::Class)) {
    return call(attribute_of_value(value, "__" + name + "__", e.span), {}, e.span);
  }
  if (given.positional.size() == 1) {
    const TypeKind kind = value->type.kind;
    const bool same =
        (name == "str" && kind == TypeKind::String) || (name == "int" && kind == TypeKind::Int) ||
        (name == "float" && kind == TypeKind::Float) || (name == "bool" && kind == TypeKind::Bool);
    if (same) {
      return Meaning::of_value(value);
    }
    if (name == "bool") {
      return Meaning::of_value(truth(value, e.span));
    }
  }
  return call_op_at(function, given, e.span);
}

// x.tolist(), whose result has the type that it is assigned to.
graph::Value* Lowering::to_list(Value* value, const Type* hint, Span span) {
  if (hint == nullptr) {
    fail(span, "Expected type hint for result of tolist(): assign it to an annotated name");
  }
  int64_t dims = 0;
  const Type* item = hint;
  for (; item->is(TypeKind::List); item = &item->of[0]) {
    dims++;
  }
  const int64_t kind = item->is(TypeKind::Int)       ? 0
                       : item->is(TypeKind::Float)   ? 1
                       : item->is(TypeKind::Complex) ? 2
                       : item->is(TypeKind::Bool)    ? 3
                                                     : -1;
  if (kind < 0) {
    fail(span, str("tolist() gives lists of numbers, no ", hint->annotation()));
  }
  Value* const out = op("prim::tolist", {value, integer(dims), integer(kind)}, span);
  return out->set_type(*hint);
}

// All that a loop over it would see, as a list.
graph::Value* Lowering::collect_list(const Meaning& over, Span span) {
  const Rounds all = iterations(over, span);
  if (all.fixed) {
    std::vector<Value*> items;
    for (size_t i = 0; i < *all.fixed; i++) {
      items.push_back(as_value(all.fixed_item(i), span));
    }
    return list_of(items, nullptr, span);
  }
  Node* const made = graph_->append(NodeKind::ListConstruct, {});
  Node* const node =
      graph_->append(NodeKind::Loop, {all.count, constant(true, Type{TypeKind::Bool})}, 0);
  Block& block = *node->add_block();
  Value* const round = block.add_param(Type{TypeKind::Int});
  const graph::InsertPoint there(*graph_, block);
  Value* const item = as_value(all.item(round), span);
  made->output()->set_type(Type::list(item->type));
  op("aten::append", {made->output(), item}, span);
  block.add_return(constant(true, Type{TypeKind::Bool}));
  return made->output();
}

// sorted(list), sorted(what a loop goes over, reverse=…).
graph::Value* Lowering::sorted(const Expr& e) {
  const Keyword* const reverse = e.keywords.empty() ? nullptr : &e.keywords[0];
  if (e.of.size() != 2 || e.keywords.size() > 1 ||
      (reverse != nullptr && reverse->name != "reverse")) {
    fail(e.span, "sorted takes one argument, and 'reverse' by its name");
  }
  const Meaning of = meaning(*e.of[1]);
  const bool is_list = of.is(Meaning::Kind::Value) && of.value->type.is(TypeKind::List);
  Value* const list = is_list ? of.value : collect_list(of, e.span);
  if (reverse == nullptr) {
    return op("aten::sorted", {list}, e.span);
  }
  Value* const made = is_list ? op("aten::list", {list}, e.span) : list;
  op("aten::sort", {made, value(*reverse->value)}, e.span);
  return made;
}

// fork(function, arguments…), fork(closure): a task with its own graph.
Meaning Lowering::fork(const Expr& e) {
  if (e.of.size() < 2) {
    fail(e.span, "fork takes a function");
  }
  const Meaning what = meaning(*e.of[1]);
  Node* const node = graph_->create(NodeKind::Fork, {}, 1);
  Arguments given;
  for (size_t i = 2; i < e.of.size(); i++) {
    given.positional.push_back(value(*e.of[i]));
  }
  for (const Keyword& keyword : e.keywords) {
    given.named.emplace_back(keyword.name, value(*keyword.value));
  }
  graph_->insert(node);
  Block& block = *node->add_block();
  const graph::InsertPoint there(*graph_, block);
  Value* result;
  if (what.is(Meaning::Kind::Closure)) {
    if (!given.positional.empty() || !given.named.empty()) {
      fail(e.span, "a function inside of a function is forked without arguments");
    }
    Scope scope;
    const Inside inside(*this, scope);
    const int loops = std::exchange(loops_, 0);
    const std::optional<Type> returns = std::exchange(returns_, std::nullopt);
    const std::optional<Type> returned = std::exchange(returned_, std::nullopt);
    const Exit exit = statements(what.closure->function->body);
    const Variable* const found = find_variable("$result");
    if (exit == Exit::Sometimes) {
      fail(e.span, "a function inside of a function returns at its end alone");
    }
    result = found != nullptr ? found->meaning.value : none();
    loops_ = loops;
    returns_ = returns;
    returned_ = returned;
  } else {
    result = as_value(this->call(what, given, e.span), e.span);
  }
  block.add_return(result);
  node->output()->set_type(Type::future(result->type));
  lift(*node);
  return Meaning::of_value(node->output());
}

namespace {
// The values from outside that the nodes of a block use, each once, in their order.
void add_outer(const graph::Block& block, const graph::Block& within,
               std::vector<graph::Value*>& outer) {
  const auto is_inside = [&](const graph::Value* value) {
    const graph::Block* at = value->node()->block();
    while (at != nullptr && at != &within) {
      at = at->owner() != nullptr ? at->owner()->block() : nullptr;
    }
    return at == &within;
  };
  const auto add = [&](const std::vector<graph::Value*>& values) {
    for (graph::Value* const value : values) {
      if (!is_inside(value) && std::find(outer.begin(), outer.end(), value) == outer.end()) {
        outer.push_back(value);
      }
    }
  };
  for (const graph::Node* const node : block) {
    add(node->inputs());
    for (const graph::Block* const inner : node->blocks()) {
      add_outer(*inner, within, outer);
    }
  }
  add(block.returns());
}
}  // namespace

// The block of a fork becomes a function of what it used from around it.
void Lowering::lift(Node& node) {
  std::vector<Value*> outer;
  add_outer(node.block(0), node.block(0), outer);
  auto made = std::make_unique<graph::Graph>();
  graph::Schema schema;
  schema.name = "__forked_function";
  graph::Graph::ValueMap values;
  for (Value* const value : outer) {
    const std::string name = str("argument", schema.arguments.size());
    values[value] = made->add_input(value->type, name);
    schema.arguments.push_back({name, value->type});
    node.add_input(value);
  }
  for (Value* const result : made->insert_copy(node.block(0), values)) {
    made->add_output(result);
    schema.results.push_back({"", result->type});
  }
  node.remove_block(0);
  std::string name;
  for (int i = 0; name.empty() || unit_.find_function(name) != nullptr; i++) {
    name = str("__torch__.__forked_function_", i);
  }
  node.function = &unit_.add_function(name, std::move(schema), std::move(made));
}

Meaning Lowering::special(const Meaning& what, const Expr& e, const Type* hint) {
  const std::string& name = what.name;
  if (name == "int" || name == "float" || name == "bool" || name == "str" || name == "complex") {
    return cast(name, e);
  }
  if (name == "isinstance") {
    return Meaning::of_value(truth_of(is_instance(e)));
  }
  if (name == "range" || name == "enumerate" || name == "zip" || name == "reversed") {
    std::vector<Meaning> of;
    for (size_t i = 1; i < e.of.size(); i++) {
      if (!e.of[i]->is(Kind::Starred)) {
        of.push_back(meaning(*e.of[i]));
        continue;
      }
      for (Meaning& part : parts_of(meaning(*e.of[i]->of[0]), e.of[i]->span)) {
        of.push_back(std::move(part));
      }
    }
    bool strict = false;
    for (const Keyword& keyword : e.keywords) {
      const bool literal = keyword.value->is(Kind::True) || keyword.value->is(Kind::False);
      if (name == "zip" && keyword.name == "strict" && literal) {
        strict = keyword.value->is(Kind::True);
        continue;
      }
      if (name != "enumerate" || keyword.name != "start") {
        fail(keyword.value->span, str(name, " has no argument '", keyword.name, "'"));
      }
      of.push_back(meaning(*keyword.value));
    }
    if (of.empty()) {
      fail(e.span, str(name, " takes an argument"));
    }
    return Meaning::list(Meaning::Kind::Iterable, strict ? "strict zip" : name, std::move(of));
  }
  if (name == "annotate" || name == "unchecked_cast") {
    check_arguments(text_, e, 2, 2);
    const Type type = type_of(*e.of[1], text_, resolver_);
    Value* const given = value(*e.of[2], &type);
    if (name == "unchecked_cast") {
      return Meaning::of_value(
          graph_->append(NodeKind::UncheckedCast, {given})->output()->set_type(type));
    }
    Value* const fitting = convert_value(*graph_, given, type);
    if (fitting == nullptr) {
      fail(e.span, str("expected an expression of type ", type.annotation(), " but found one of ",
                       given->type.annotation()));
    }
    // An empty optional, or a value that counts as one, keeps the type that was asked for.
    if (fitting->type != type && fitting->node()->kind == NodeKind::Constant) {
      return Meaning::of_value(constant(*fitting->constant(), type));
    }
    return Meaning::of_value(fitting);
  }
  if (name == "slice") {
    return slice_call(e);
  }
  if (name == "uninitialized") {
    check_arguments(text_, e, 1, 1);
    return Meaning::of_value(uninitialized(type_of(*e.of[1], text_, resolver_)));
  }
  if (name == "__new__") {
    return Meaning::of_value(
        graph_->append(NodeKind::CreateObject, {})->output()->set_type(what.type));
  }
  if (name == "raise") {
    check_arguments(text_, e, 1, 2);
    std::vector<Value*> inputs = {value(*e.of[1])};
    inputs.push_back(e.of.size() > 2 ? value(*e.of[2]) : none());
    graph_->append(NodeKind::RaiseException, inputs, 0);
    return Meaning::of_constant(IValue(), Type{TypeKind::None});
  }
  if (name == "wait" || name == "wait method") {
    if (what.value == nullptr) {
      check_arguments(text_, e, 1, 1);
    }
    Value* const future = what.value != nullptr ? what.value : value(*e.of[1]);
    if (!future->type.is(TypeKind::Future)) {
      fail(e.span, "wait takes a Future");
    }
    Node* const node = graph_->append(NodeKind::Wait, {future});
    return Meaning::of_value(node->output()->set_type(future->type.of[0]));
  }
  return special_of_objects(what, e, hint);
}

bool is_part_of_module(std::string_view name) {
  constexpr std::string_view names[] = {"parameters",    "named_parameters", "buffers",
                                        "named_buffers", "children",         "named_children",
                                        "modules",       "named_modules"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// keys(), values() and items() of a dict of modules.
Meaning Lowering::submodule_list(const Meaning& what) {
  std::vector<Meaning> out;
  const std::vector<std::string> names = resolver_.submodules(what.value->type).value();
  for (const std::string& name : names) {
    const Meaning key = Meaning::of_constant(name, Type{TypeKind::String});
    if (what.name == "keys") {
      out.push_back(key);
      continue;
    }
    const Meaning module = Meaning::of_value(get_attribute(what.value, name));
    out.push_back(what.name == "values" ? module
                                        : Meaning::list(Meaning::Kind::Tuple, "", {key, module}));
  }
  return Meaning::list(Meaning::Kind::Tuple, "", std::move(out));
}

// named_parameters(), buffers(), children(), named_modules() … of a module.
Meaning Lowering::parts_of_module(const Meaning& what) {
  const bool named = what.name.starts_with("named_");
  const std::string kind = named ? what.name.substr(6) : what.name;
  std::vector<Meaning> out;
  const auto add = [&](const std::string& name, Value* value) {
    const Meaning one = Meaning::of_value(value);
    const Meaning text = Meaning::of_constant(name, Type{TypeKind::String});
    out.push_back(named ? Meaning::list(Meaning::Kind::Tuple, "", {text, one}) : one);
  };
  const std::function<void(Value*, const std::string&)> visit = [&](Value* object,
                                                                    const std::string& prefix) {
    if (kind == "modules") {
      add(prefix, object);
    }
    for (const ClassType::Attribute& attribute : object->type.definition->attributes) {
      const bool module = attribute.type.is(TypeKind::Class) &&
                          attribute.type.definition->form == ClassType::Form::Module;
      const std::string full = prefix.empty() ? attribute.name : prefix + "." + attribute.name;
      const bool wanted = (kind == "children" && module) ||
                          (kind == "parameters" && attribute.is_parameter) ||
                          (kind == "buffers" && attribute.is_buffer);
      const bool absent = attribute.type.is(TypeKind::None);
      if (wanted && !absent) {
        add(full, get_attribute(object, attribute.name));
      }
      if (module && kind != "children") {
        visit(get_attribute(object, attribute.name), full);
      }
    }
  };
  visit(what.value, "");
  return Meaning::list(Meaning::Kind::Tuple, "", std::move(out));
}

Meaning Lowering::special_of_objects(const Meaning& what, const Expr& e, const Type* hint) {
  const std::string& name = what.name;
  if (name == "getattr" || name == "hasattr") {
    check_arguments(text_, e, 2, 3);
    const Meaning asked = meaning(*e.of[2]);
    const IValue* const known = constant_of(asked);
    if (known == nullptr || !known->isString()) {
      fail(e.of[2]->span, str(name, " takes a name that is known when it is compiled"));
    }
    const std::string attribute_name = known->toStringRef();
    const Meaning object = meaning(*e.of[1]);
    if (name == "getattr" && e.of.size() == 3) {
      return attribute(object, attribute_name, e.span);
    }
    Value* const of = as_value(object, e.of[1]->span);
    const ClassType* const type = of->type.definition;
    const bool has = type != nullptr && (type->find_attribute(attribute_name) != ClassType::npos ||
                                         type->find_method(attribute_name) != nullptr ||
                                         type->find_constant(attribute_name) != nullptr ||
                                         resolver_.member(of->type, of, attribute_name));
    if (name == "hasattr") {
      return Meaning::of_constant(has, Type{TypeKind::Bool});
    }
    return has ? attribute(object, attribute_name, e.span) : meaning(*e.of[3]);
  }
  if (name == "super") {  // the classes behind the one that the method is written in
    const std::optional<Meaning> behind = resolver_.find("super()");
    if (!behind) {
      fail(e.span, "super() means something in the methods of a class alone");
    }
    return *behind;
  }
  if (name == "fork") {
    return fork(e);
  }
  if (name == "tensor cast") {
    Value* const dtype = constant(what.constant, Type{TypeKind::Int});
    return Meaning::of_value(op("aten::to", {what.value, dtype}, e.span));
  }
  if (name == "is_scripting" || name == "is_tracing") {
    return Meaning::of_constant(name == "is_scripting", Type{TypeKind::Bool});
  }
  if (name == "items" || name == "keys" || name == "values") {
    return submodule_list(what);
  }
  if (is_part_of_module(name)) {
    check_arguments(text_, e, 0, 0);
    return parts_of_module(what);
  }
  if (name == "list") {
    check_arguments(text_, e, 0, 1);
    if (e.of.size() == 1) {
      return Meaning::of_value(list_of({}, hint, e.span));
    }
    const Meaning of = meaning(*e.of[1]);
    const bool copies = of.is(Meaning::Kind::Value) && of.value->type.is(TypeKind::List);
    return Meaning::of_value(copies ? op("aten::list", {of.value}, e.span)
                                    : collect_list(of, e.span));
  }
  if (name == "tuple") {
    check_arguments(text_, e, 1, 1);
    const Meaning of = meaning(*e.of[1]);
    if (is_open(of, e.span)) {  // a tuple of a length that is not known is a list
      return Meaning::of_value(of.is(Meaning::Kind::Value) ? op("aten::list", {of.value}, e.span)
                                                           : collect_list(of, e.span));
    }
    return Meaning::list(Meaning::Kind::Tuple, "", parts_of(of, e.span));
  }
  if (name == "sorted") {
    return Meaning::of_value(sorted(e));
  }
  if (name == "dict") {
    return Meaning::of_value(dict_call(e, hint));
  }
  fail(e.span, str("'", name, "' cannot be compiled here"));
}

}  // namespace rushlight::script
