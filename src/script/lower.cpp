// Statements to nodes.
#include "script/lower.h"

#include <algorithm>

namespace rushlight::script {

using Kind = Expr::Kind;
using NodeKind = graph::Kind;
using TypeKind = Type::Kind;

namespace {
constexpr int max_blocks = 500;
}

Lowering::Inside::Inside(Lowering& of, Scope& scope) : of(of) {
  RL_CHECK(of.depth_ < max_blocks, "blocks of a program are nested too deep");
  scope.outer = of.scope_;
  of.scope_ = &scope;
  of.depth_++;
}

std::unique_ptr<graph::Graph> Lowering::lower(const Function& function, const graph::Schema& schema,
                                              std::optional<Type>& returns) {
  graph_ = std::make_unique<graph::Graph>();
  returns_ = returns;
  Scope top;
  const Inside inside(*this, top);
  for (const graph::Argument& argument : schema.arguments) {
    graph::Value* const input = graph_->add_input(argument.type, argument.name);
    top.own[argument.name] = {Meaning::of_value(input), {}};
  }
  const Exit exit = statements(function.body);
  finish(exit, function, returns);
  return std::move(graph_);
}

// ---- names ----

const Variable* Lowering::find_variable(std::string_view name) const {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->outer) {
    const auto found = scope->own.find(name);
    if (found != scope->own.end()) {
      return &found->second;
    }
    if (scope->missing.find(name) != scope->missing.end()) {
      return nullptr;
    }
  }
  return nullptr;
}

namespace {
// Whether it is a value, or could be made one: no function, type or module of names.
bool is_data(const Meaning& m) {
  return m.is(Meaning::Kind::Value) || m.is(Meaning::Kind::Constant) ||
         (m.is(Meaning::Kind::Tuple) && std::all_of(m.of.begin(), m.of.end(), is_data));
}
}  // namespace

void Lowering::assign(const std::string& name, Meaning meaning, Span span,
                      std::optional<Type> declared) {
  if (is_data(meaning)) {
    meaning = Meaning::of_value(as_value(meaning, span));
  }
  const Variable* const before = find_variable(name);
  const auto here = scope_->own.find(name);
  const bool rebinds = here != scope_->own.end() && !here->second.declared;
  if (!declared && before != nullptr && !rebinds && before->meaning.is(Meaning::Kind::Value)) {
    const Type& wanted = before->declared ? *before->declared : before->meaning.value->type;
    if (!meaning.is(Meaning::Kind::Value)) {
      fail(span, str("Variable '", name, "' previously had type ", wanted.annotation(),
                     ", and may not become a function or a type here"));
    }
    if (!meaning.value->type.is_subtype_of(wanted)) {
      fail(span, str("Variable '", name, "' previously had type ", wanted.annotation(),
                     " but gets a value of type ", meaning.value->type.annotation(),
                     ". Inside of a branch or a loop a name keeps its type"));
    }
    declared = wanted;
  }
  if (meaning.is(Meaning::Kind::Value) && !meaning.value->has_name() && name[0] != '$') {
    meaning.value->set_name(name);
  }
  scope_->missing.erase(name);
  scope_->own[name] = {std::move(meaning), std::move(declared)};
}

// The parts of a tuple or a list, for several targets.
std::vector<Meaning> Lowering::parts_of(const Meaning& meaning, Span span) {
  if (meaning.is(Meaning::Kind::Tuple)) {
    return meaning.of;
  }
  if (meaning.is(Meaning::Kind::Constant)) {
    return parts_of(Meaning::of_value(as_value(meaning, span)), span);
  }
  if (meaning.is(Meaning::Kind::Value) && meaning.value->type.is_tuple()) {
    graph::Value* const tuple = meaning.value;
    std::vector<graph::Value*> values;
    if (tuple->node()->kind == NodeKind::TupleConstruct) {
      values = tuple->node()->inputs();
    } else {
      Node* const node = graph_->append(NodeKind::TupleUnpack, {tuple}, tuple->type.of.size());
      for (size_t i = 0; i < tuple->type.of.size(); i++) {
        node->output(i)->set_type(tuple->type.of[i]);
      }
      values = node->outputs();
    }
    std::vector<Meaning> out;
    for (graph::Value* value : values) {
      out.push_back(Meaning::of_value(value));
    }
    return out;
  }
  const Rounds over = iterations(meaning, span);
  if (!over.fixed) {
    fail(span, "cannot tell how many values there are here, which must be known");
  }
  std::vector<Meaning> out;
  for (size_t i = 0; i < *over.fixed; i++) {
    out.push_back(over.fixed_item(i));
  }
  return out;
}

void Lowering::unpack_to(const Expr& targets, const Meaning& meaning) {
  const std::vector<ExprPtr>& to = targets.of;
  const auto is_starred = [](const ExprPtr& e) { return e->is(Kind::Starred); };
  const auto star = std::find_if(to.begin(), to.end(), is_starred);
  if (star != to.end() && std::find_if(star + 1, to.end(), is_starred) != to.end()) {
    fail(targets.span, "only one target may have a star");
  }
  std::vector<Meaning> parts;
  const bool one = meaning.is(Meaning::Kind::Value);
  const bool list = one && meaning.value->type.is(TypeKind::List);
  if (one && unknown_.erase(meaning.value->node()) > 0) {
    for (size_t i = 0; i < to.size(); i++) {
      parts.push_back(Meaning::of_value(uninitialized(Type{TypeKind::Tensor})));
    }
  } else if (list && star == to.end()) {  // a list of so many items, which is checked when it runs
    Node* const node = graph_->append(NodeKind::ListUnpack, {meaning.value}, to.size());
    for (graph::Value* out : node->outputs()) {
      parts.push_back(Meaning::of_value(out->set_type(meaning.value->type.of[0])));
    }
  } else {
    parts = parts_of(meaning, targets.span);
  }
  const size_t fixed = to.size() - (star != to.end() ? 1 : 0);
  if (parts.size() < fixed || (star == to.end() && parts.size() != fixed)) {
    fail(targets.span,
         str("need ", parts.size() < fixed ? "more" : "fewer", " values to unpack: there are ",
             to.size(), " targets and ", parts.size(), " values"));
  }
  size_t next = 0;
  for (const ExprPtr& target : to) {
    if (!target->is(Kind::Starred)) {
      assign_to(*target, parts[next++]);
      continue;
    }
    const size_t rest = parts.size() - fixed;
    std::vector<Meaning> taken(parts.begin() + static_cast<int64_t>(next),
                               parts.begin() + static_cast<int64_t>(next + rest));
    next += rest;
    assign_to(*target->of[0], Meaning::list(Meaning::Kind::Tuple, "", std::move(taken)));
  }
}

void Lowering::assign_attribute(const Expr& target, const Meaning& meaning, const Type* declared) {
  graph::Value* const object = value(*target.of[0]);
  if (!object->type.is(TypeKind::Class)) {
    fail(target.span, str("an attribute of a ", object->type.annotation(),
                          " cannot be assigned to: only objects of classes have such"));
  }
  ClassType& type = *object->type.definition;
  size_t place = type.find_attribute(target.text);
  if (place == ClassType::npos && defined_ == &type) {
    const Type of = declared != nullptr ? *declared : as_value(meaning, target.span)->type;
    place = type.add_attribute({target.text, of});
  }
  if (place == ClassType::npos) {
    const std::string setter = str("__", target.text, "_setter");
    if (type.find_method(setter) != nullptr || resolver_.member(object->type, object, setter)) {
      call_function(*type.find_method(setter), {{as_value(meaning, target.span)}, {}}, target.span,
                    object);
      return;
    }
    fail(target.span,
         str("Tried to set nonexistent attribute: ", target.text, ". Define it in __init__"));
  }
  graph::Value* const given = as_value(meaning, target.span);
  const Type& wanted = type.attributes[place].type;
  graph::Value* const fitting = convert_value(*graph_, given, wanted);
  if (fitting == nullptr) {
    fail(target.span, str("the attribute '", target.text, "' is of type ", wanted.annotation(),
                          ", and a ", given->type.annotation(), " does not fit"));
  }
  Node* const node = graph_->append(NodeKind::SetAttr, {object, fitting}, 0);
  node->set_attribute("name", target.text);
}

void Lowering::assign_to(const Expr& target, Meaning meaning) {
  const At at(*this, target.span);
  switch (target.kind) {
    case Kind::Name:
      assign(target.text, std::move(meaning), target.span);
      return;
    case Kind::Tuple:
    case Kind::List:
      unpack_to(target, meaning);
      return;
    case Kind::Attribute:
      assign_attribute(target, meaning);
      return;
    case Kind::Subscript:
      assign_subscript(target, as_value(meaning, target.span));
      return;
    default:
      fail(target.span, "this cannot be assigned to");
  }
}

// ---- statements ----

// What follows a statement, by how it ended.
Exit Lowering::continue_after(Exit exit, const Rest& rest) {
  if (exit == Exit::Falls) {
    return rest();
  }
  if (exit != Exit::Sometimes) {
    return exit;
  }
  Condition left;
  left.value = flag("done");
  Exit last = Exit::Falls;
  const auto run_rest = [&] { return last = rest(); };
  branch(left, {}, [] { return Exit::Always; }, run_rest, [] { return Exit::Falls; });
  return last == Exit::Always || last == Exit::Raises ? Exit::Always : Exit::Sometimes;
}

Exit Lowering::statements(const Body& body, size_t from) {
  for (size_t i = from; i < body.size(); i++) {
    const Stmt& s = body[i];
    const At at(*this, s.span);
    const bool may_leave = s.kind == Stmt::Kind::If || s.kind == Stmt::Kind::For ||
                           s.kind == Stmt::Kind::While || s.kind == Stmt::Kind::With;
    if (may_leave) {
      bool taken = false;
      const Exit exit = statement(s, [&] {
        taken = true;
        return statements(body, i + 1);
      });
      if (taken || exit != Exit::Falls) {
        return exit;
      }
      continue;
    }
    const Exit exit = statement(s, [] { return Exit::Falls; });
    if (exit != Exit::Falls) {
      return exit;
    }
  }
  return Exit::Falls;
}

Exit Lowering::statement(const Stmt& s, const Rest& rest) {
  switch (s.kind) {
    case Stmt::Kind::Expression:
      if (!s.value->is(Kind::Ellipsis)) {
        meaning(*s.value);
      }
      return Exit::Falls;
    case Stmt::Kind::Assign:
      assignment(s);
      return Exit::Falls;
    case Stmt::Kind::Augmented:
      augmented_assignment(s);
      return Exit::Falls;
    case Stmt::Kind::If: {
      const Condition decided = condition(*s.value);
      const auto yes = [&] { return statements(s.body); };
      const auto no = [&] { return statements(s.otherwise); };
      return branch(decided, s.span, yes, no, rest);
    }
    case Stmt::Kind::While:
      return while_loop(s, rest);
    case Stmt::Kind::For:
      return for_loop(s, rest);
    case Stmt::Kind::Return:
      return return_statement(s);
    case Stmt::Kind::Break:
    case Stmt::Kind::Continue:
      return leave_loop(s);
    case Stmt::Kind::Raise:
      raise(s);
      return Exit::Raises;
    case Stmt::Kind::Assert:
      return assertion(s);
    case Stmt::Kind::Pass:
      return Exit::Falls;
    case Stmt::Kind::Delete:
      remove(*s.targets[0]);
      return Exit::Falls;
    case Stmt::Kind::With:
      return with(s, rest);
    case Stmt::Kind::Def: {
      Meaning inner = Meaning::named(Meaning::Kind::Closure, s.function->name);
      inner.closure = std::make_shared<Closure>(Closure{s.function.get(), scope_});
      scope_->own[s.function->name] = {std::move(inner), {}};
      return Exit::Falls;
    }
    case Stmt::Kind::ClassDef:
      fail(s.span, "a class inside of a function cannot be compiled");
  }
  return Exit::Falls;
}

void Lowering::assignment(const Stmt& s) {
  if (!s.annotation) {
    Meaning given = meaning(*s.value);
    // What comes apart is made apart once, in case a target is also read.
    for (const ExprPtr& target : s.targets) {
      assign_to(*target, given);
    }
    return;
  }
  const Type declared = type_of(*s.annotation, text_, resolver_);
  if (!s.value) {
    fail(s.span, "a name that is declared must get a value at once");
  }
  graph::Value* const given = value(*s.value, &declared);
  graph::Value* const fitting = convert_value(*graph_, given, declared);
  if (fitting == nullptr) {
    fail(s.span, str("Variable is annotated with type ", declared.annotation(),
                     " but gets a value of type ", given->type.annotation()));
  }
  const Expr& target = *s.targets[0];
  if (target.is(Kind::Name)) {
    assign(target.text, Meaning::of_value(fitting), target.span, declared);
  } else if (target.is(Kind::Attribute)) {
    assign_attribute(target, Meaning::of_value(fitting), &declared);
  } else {
    assign_to(target, Meaning::of_value(fitting));
  }
}

void Lowering::raise_error(const std::string& kind, const std::string& message) {
  graph::Value* const text = constant(message, Type{TypeKind::String});
  graph_->append(NodeKind::RaiseException, {text, constant(kind, Type{TypeKind::String})}, 0);
}

void Lowering::raise(const Stmt& s) {
  graph::Value* message = nullptr;
  std::string kind = "builtins.Exception";
  if (s.value) {
    const Expr& e = *s.value;
    const Expr& what = e.is(Kind::Call) ? *e.of[0] : e;
    const std::optional<Meaning> known = what.is(Kind::Name)        ? resolver_.find(what.text)
                                         : what.is(Kind::Attribute) ? std::optional(meaning(what))
                                                                    : std::nullopt;
    kind = known && known->is(Meaning::Kind::Special) && known->name.starts_with("exception ")
               ? known->name.substr(10)
               : str("builtins.", what.text);
    if (e.is(Kind::Call) && e.of.size() == 2) {
      graph::Value* const text = value(*e.of[1]);
      message = text->type.is(TypeKind::String) ? text : op("aten::str", {text}, e.span);
    } else if (e.is(Kind::Call) && e.of.size() > 2) {
      std::vector<graph::Value*> parts;
      std::vector<Type> types;
      for (size_t i = 1; i < e.of.size(); i++) {
        parts.push_back(value(*e.of[i]));
        types.push_back(parts.back()->type);
      }
      graph::Value* const all = graph_->append(NodeKind::TupleConstruct, parts)->output();
      message = op("aten::str", {all->set_type(Type::tuple(types))}, e.span);
    }
  }
  if (message == nullptr) {
    message = constant("", Type{TypeKind::String});
  }
  graph::Value* const name = constant(kind, Type{TypeKind::String});
  graph_->append(NodeKind::RaiseException, {message, name}, 0);
}

Exit Lowering::assertion(const Stmt& s) {
  const Condition holds = condition(*s.value);
  const auto fails = [&] {
    graph::Value* message = constant("AssertionError: ", Type{TypeKind::String});
    if (s.targets[0]) {
      graph::Value* text = value(*s.targets[0]);
      text = text->type.is(TypeKind::String) ? text : op("aten::str", {text}, s.span);
      message = op("aten::add", {message, text}, s.span);
    }
    graph_->append(NodeKind::RaiseException, {message, none()}, 0);
    return Exit::Raises;
  };
  const auto goes_on = [] { return Exit::Falls; };
  const Exit exit = branch(holds, s.span, goes_on, fails, goes_on);
  refine(holds.if_true);
  return exit;
}

void Lowering::remove(const Expr& target) {
  if (target.is(Kind::Tuple)) {
    for (const ExprPtr& one : target.of) {
      remove(*one);
    }
  } else if (target.is(Kind::Subscript) && target.of.size() == 2 &&
             !target.of[1]->is(Kind::Slice)) {
    op("aten::Delete", {value(*target.of[0]), value(*target.of[1])}, target.span);
  } else if (target.is(Kind::Name)) {
    value(target);  // it has one
    scope_->own.erase(target.text);
    scope_->missing[target.text] = "it was deleted";
  } else {
    fail(target.span, "only names and items of lists and dicts can be deleted");
  }
}

Exit Lowering::with(const Stmt& s, const Rest& rest) {
  std::vector<graph::Value*> contexts;
  for (size_t i = 0; i < s.targets.size(); i += 2) {
    graph::Value* const context = value(*s.targets[i]);
    if (!context->type.is(TypeKind::Class)) {
      fail(s.targets[i]->span, "a with statement takes objects of classes");
    }
    Node* const enter = graph_->append(NodeKind::Enter, {context});
    graph::Function* const method = context->type.definition->find_method("__enter__");
    if (method == nullptr || context->type.definition->find_method("__exit__") == nullptr) {
      fail(s.targets[i]->span, "a with statement takes objects with __enter__ and __exit__");
    }
    const std::vector<graph::Argument>& results = method->schema.results;
    enter->output()->set_type(results.empty() ? Type{TypeKind::None} : results[0].type);
    if (s.targets[i + 1]) {
      assign_to(*s.targets[i + 1], Meaning::of_value(enter->output()));
    }
    contexts.push_back(context);
  }
  const Exit exit = statements(s.body);
  for (size_t i = contexts.size(); i-- > 0;) {
    graph_->append(NodeKind::Exit, {contexts[i]})->output()->set_type(Type{TypeKind::None});
  }
  return continue_after(exit, rest);
}

}  // namespace rushlight::script
