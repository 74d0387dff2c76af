// Branches and loops.
#include "script/lower.h"

#include <algorithm>
#include <set>

namespace rushlight::script {

using Kind = Expr::Kind;
using NodeKind = graph::Kind;
using TypeKind = Type::Kind;

void Lowering::refine(const Refinements& refinements) {
  for (const auto& [name, type] : refinements) {
    const Variable* const found = find_variable(name);
    if (found == nullptr || !found->meaning.is(Meaning::Kind::Value) ||
        found->meaning.value->type == type || !type.is_subtype_of(found->meaning.value->type)) {
      continue;
    }
    const Type declared = found->declared ? *found->declared : found->meaning.value->type;
    graph::Value* const narrow =
        graph_->append(NodeKind::UncheckedCast, {found->meaning.value})->output();
    narrow->set_type(type)->set_name(name);
    scope_->own[name] = {Meaning::of_value(narrow), declared};
  }
}

// ---- branches ----

// `rest` is what follows the branch. Where one side has left for good and the other has not, it
// goes into the other side: no flag is needed. The exit is that of all together.
Exit Lowering::branch(const Condition& condition, Span span, const Rest& yes, const Rest& no,
                      const Rest& rest) {
  if (condition.value == nullptr) {
    refine(condition.known ? condition.if_true : condition.if_false);
    return continue_after(condition.known ? yes() : no(), rest);
  }
  Node* const node = graph_->append(NodeKind::If, {condition.value}, 0);
  Scope scopes[2];
  Exit exits[2];
  const Rest* const sides[2] = {&yes, &no};
  for (int i = 0; i < 2; i++) {
    const graph::InsertPoint there(*graph_, *node->add_block());
    const Inside inside(*this, scopes[i]);
    refine(i == 0 ? condition.if_true : condition.if_false);
    exits[i] = (*sides[i])();
  }
  bool consumed = false;
  for (int i = 0; i < 2 && !consumed; i++) {
    if (exits[i] == Exit::Falls && exits[1 - i] == Exit::Always) {
      consumed = true;
      const graph::InsertPoint there(*graph_, node->block(static_cast<size_t>(i)));
      const Inside inside(*this, scopes[i]);
      exits[i] = rest();
    }
  }
  merge(node, scopes[0], scopes[1], exits[0], exits[1], span);
  const auto are_exits = [&](Exit a, Exit b) {
    return (exits[0] == a && exits[1] == b) || (exits[0] == b && exits[1] == a);
  };
  if (are_exits(Exit::Raises, Exit::Raises)) {
    return Exit::Raises;
  }
  if (are_exits(Exit::Always, Exit::Always) || are_exits(Exit::Always, Exit::Raises)) {
    return Exit::Always;
  }
  const Exit exit = are_exits(Exit::Falls, Exit::Falls) || are_exits(Exit::Falls, Exit::Raises)
                        ? Exit::Falls
                        : Exit::Sometimes;
  return consumed ? exit : continue_after(exit, rest);
}

// The value of a name at the end of a block; null where it has none that fits.
graph::Value* Lowering::value_at_end(Scope& scope, Block& block, const std::string& name, Exit exit,
                                     const Type& type) {
  const Scope* const before = scope_;
  scope_ = &scope;
  const Variable* const found = find_variable(name);
  scope_ = const_cast<Scope*>(before);
  if (found != nullptr && found->meaning.is(Meaning::Kind::Value) &&
      found->meaning.value->type.is_subtype_of(type)) {
    return found->meaning.value;
  }
  const graph::InsertPoint there(*graph_, block);
  if (name[0] == '$' && name != "$result") {
    return constant(false, Type{TypeKind::Bool});
  }
  return name[0] == '$' || exit != Exit::Falls ? uninitialized(type) : nullptr;
}

void Lowering::merge(Node* node, Scope& yes, Scope& no, Exit yes_exit, Exit no_exit, Span span) {
  std::set<std::string> names;
  for (const Scope* scope : {&yes, &no}) {
    for (const auto& [name, variable] : scope->own) {
      names.insert(name);
    }
    for (const auto& [name, reason] : scope->missing) {
      names.insert(name);
    }
  }
  Scope* const scopes[2] = {&yes, &no};
  const Exit exits[2] = {yes_exit, no_exit};
  for (const std::string& name : names) {
    const Variable* found[2];
    for (int i = 0; i < 2; i++) {
      Scope* const before = scope_;
      scope_ = scopes[i];
      found[i] = find_variable(name);
      scope_ = before;
    }
    const Variable* const outer = find_variable(name);
    // A side that never comes out here has no say.
    const auto leaves = [&](int i) { return exits[i] == Exit::Always || exits[i] == Exit::Raises; };
    // Nor does its type, where it leaves the function: what it leaves a loop with is seen behind
    // it.
    const auto is_gone = [&](int i) {
      return exits[i] == Exit::Raises || (exits[i] == Exit::Always && loops_ == 0);
    };
    std::optional<Type> type;
    std::string why;
    if (found[0] != nullptr && found[1] != nullptr) {
      if (!found[0]->meaning.is(Meaning::Kind::Value) ||
          !found[1]->meaning.is(Meaning::Kind::Value)) {
        why = "it is no value in one of two branches";
      } else if (found[0]->meaning.value == found[1]->meaning.value) {
        scope_->own[name] = *found[0];
        continue;
      } else {
        const Type& a = found[0]->meaning.value->type;
        const Type& b = found[1]->meaning.value->type;
        const std::optional<Type>& declared =
            found[0]->declared ? found[0]->declared : found[1]->declared;
        type = unify(a, b);
        if (name[0] != '$' && is_gone(0) != is_gone(1)) {
          type = is_gone(0) ? b : a;
        } else if (!type && declared && a.is_subtype_of(*declared) && b.is_subtype_of(*declared)) {
          type = declared;
        } else if (!type && name[0] != '$' && (leaves(0) || leaves(1))) {
          type = leaves(0) ? b : a;
        } else if (!type) {
          why = str("Type mismatch: it is set to ", a.annotation(), " in one branch and to ",
                    b.annotation(), " in the other");
        }
      }
    } else {
      const int has = found[0] != nullptr ? 0 : 1;
      if (found[has] == nullptr) {
        why = "it was deleted";
      } else if (!found[has]->meaning.is(Meaning::Kind::Value)) {
        why = "it is no value";
      } else if (name[0] == '$' || leaves(1 - has)) {
        type = found[has]->meaning.value->type;
      } else {
        why = str("it is not defined in the ", has == 0 ? "false" : "true", " branch");
      }
    }
    if (!type) {
      scope_->own.erase(name);
      scope_->missing[name] = str(why, ":\n", range_of(text_, span).excerpt());
      continue;
    }
    for (size_t i = 0; i < 2; i++) {
      const Exit exit = leaves(static_cast<int>(i)) ? exits[i] : Exit::Falls;
      graph::Value* const value = value_at_end(*scopes[i], node->block(i), name, exit, *type);
      RL_CHECK(value != nullptr, "the value of '", name, "' has no type that both branches share");
      node->block(i).add_return(value);
    }
    graph::Value* const out = node->add_output(*type);
    if (name[0] != '$') {
      out->set_name(name);
    }
    std::optional<Type> declared;
    const auto here = scope_->own.find(name);
    if (here == scope_->own.end() && outer != nullptr) {
      declared = outer->declared                   ? outer->declared
                 : outer->meaning.value != nullptr ? std::optional<Type>(outer->meaning.value->type)
                                                   : std::nullopt;
    } else if (here != scope_->own.end()) {
      declared = here->second.declared;
    } else {
      declared = found[0] != nullptr && found[0]->declared ? found[0]->declared
                 : found[1] != nullptr                     ? found[1]->declared
                                                           : std::nullopt;
    }
    scope_->missing.erase(name);
    scope_->own[name] = {Meaning::of_value(out), declared};
  }
}

// ---- loops ----

namespace {
// The names that statements assign.
void add_targets(const Expr& e, std::set<std::string>& names) {
  if (e.is(Kind::Name)) {
    names.insert(e.text);
  } else if (e.is(Kind::Tuple) || e.is(Kind::List) || e.is(Kind::Starred)) {
    for (const ExprPtr& part : e.of) {
      add_targets(*part, names);
    }
  }
}
void add_assigned_names(const Body& body, std::set<std::string>& names) {
  for (const Stmt& s : body) {
    if (s.kind == Stmt::Kind::Assign || s.kind == Stmt::Kind::Augmented ||
        s.kind == Stmt::Kind::For || s.kind == Stmt::Kind::With || s.kind == Stmt::Kind::Delete) {
      for (const ExprPtr& target : s.targets) {
        if (target) {
          add_targets(*target, names);
        }
      }
    }
    add_assigned_names(s.body, names);
    add_assigned_names(s.otherwise, names);
  }
}
bool returns(const Body& body) {
  return std::any_of(body.begin(), body.end(), [](const Stmt& s) {
    return s.kind == Stmt::Kind::Return || returns(s.body) || returns(s.otherwise);
  });
}
// Whether a break or a continue is of the loop itself, not of one within.
bool leaves_loop(const Body& body) {
  return std::any_of(body.begin(), body.end(), [](const Stmt& s) {
    const bool loop = s.kind == Stmt::Kind::For || s.kind == Stmt::Kind::While;
    return s.kind == Stmt::Kind::Break || s.kind == Stmt::Kind::Continue ||
           (!loop && (leaves_loop(s.body) || leaves_loop(s.otherwise)));
  });
}
}  // namespace

std::vector<std::string> Lowering::loop_variables(const Body& body, const Expr* target) const {
  std::set<std::string> names;
  add_assigned_names(body, names);
  if (target != nullptr) {
    add_targets(*target, names);
  }
  std::vector<std::string> out;
  for (const std::string& name : names) {
    const Variable* const found = find_variable(name);
    if (found != nullptr && found->meaning.is(Meaning::Kind::Value)) {
      out.push_back(name);
    }
  }
  return out;
}

// What differs between loops: how many rounds, on what condition, what a round does.
struct Lowering::Loop {
  Span span;
  std::vector<std::string> carried;
  bool returns = false;
  Value* most = nullptr;
  Value* first = nullptr;  // the condition of the first round
  std::function<Exit(Value* round)> body;
  std::function<Value*()> again;  // the condition of the next round
};

void Lowering::loop(Loop& l) {
  Node* const node = graph_->append(NodeKind::Loop, {l.most, l.first}, 0);
  Block& block = *node->add_block();
  graph::Value* const round = block.add_param(Type{TypeKind::Int});
  Scope scope;
  std::vector<Type> types;
  for (const std::string& name : l.carried) {
    const Variable& outer = *find_variable(name);
    const Type type = outer.declared ? *outer.declared : outer.meaning.value->type;
    node->add_input(outer.meaning.value);
    graph::Value* const param = block.add_param(type)->set_name(name);
    scope.own[name] = {Meaning::of_value(param), type};
    types.push_back(type);
  }
  std::vector<graph::Value*> results;
  graph::Value* returned = nullptr;
  graph::Value* result = nullptr;
  {
    const graph::InsertPoint there(*graph_, block);
    const Inside inside(*this, scope);
    loops_++;
    l.body(round);
    const Variable* const stop = find_variable(flag_name("stop"));
    Condition stopped;
    stopped.value = stop != nullptr ? stop->meaning.value : nullptr;
    const auto ends = [&] { return constant(false, Type{TypeKind::Bool}); };
    block.add_return(select_value(stopped, ends, l.again, l.span, "the condition"));
    for (const std::string& name : l.carried) {
      const Variable* const last = find_variable(name);
      if (last == nullptr) {
        fail(l.span, str("'", name, "' has no value at the end of a round of this loop"));
      }
      block.add_return(last->meaning.value);
    }
    if (l.returns) {
      const Variable* const value = find_variable("$returned");
      const auto own = scope.own.find("$result");
      if (own != scope.own.end()) {
        returned = value != nullptr && scope.own.count("$returned") > 0
                       ? value->meaning.value
                       : constant(false, Type{TypeKind::Bool});
        result = own->second.meaning.value;
      }
    }
    loops_--;
  }
  for (size_t i = 0; i < l.carried.size(); i++) {
    graph::Value* const out = node->add_output(types[i])->set_name(l.carried[i]);
    const auto here = scope_->own.find(l.carried[i]);
    std::optional<Type> declared =
        here != scope_->own.end() ? here->second.declared : std::optional<Type>(types[i]);
    scope_->own[l.carried[i]] = {Meaning::of_value(out), declared};
  }
  if (result != nullptr) {
    const graph::InsertPoint before(*graph_, node);
    node->add_input(constant(false, Type{TypeKind::Bool}));
    node->add_input(uninitialized(result->type));
    block.add_param(Type{TypeKind::Bool});
    block.add_param(result->type);
    block.add_return(returned);
    block.add_return(result);
    graph::Value* const did = node->add_output(Type{TypeKind::Bool});
    graph::Value* const what = node->add_output(result->type);
    scope_->own["$result"] = {Meaning::of_value(what), {}};
    scope_->own[flag_name("done")] = {Meaning::of_value(did), {}};
    if (loops_ > 0) {
      scope_->own[flag_name("stop")] = {Meaning::of_value(did), {}};
      scope_->own["$returned"] = {Meaning::of_value(did), {}};
    }
  }
}

Exit Lowering::while_loop(const Stmt& s, const Rest& rest) {
  Loop l;
  l.span = s.span;
  l.carried = loop_variables(s.body, nullptr);
  l.returns = returns(s.body);
  l.most = integer(INT64_MAX);
  // The condition is known of names as the loop carries them, not as they are refined before it.
  const Condition first = condition(*s.value);
  if (first.value == nullptr && !first.known) {
    return rest();
  }
  l.first = truth_of(first);
  l.body = [&](Value*) {
    refine(first.if_true);
    return statements(s.body);
  };
  l.again = [&] { return truth_of(condition(*s.value)); };
  loop(l);
  return continue_after(
      find_variable(flag_name("done")) != nullptr && l.returns ? Exit::Sometimes : Exit::Falls,
      rest);
}

// A loop over what the compiler knows: its rounds one after the other.
Exit Lowering::unroll(const Stmt& s, const Rounds& over, size_t from, const Rest& rest) {
  for (size_t i = from; i < *over.fixed; i++) {
    assign_to(*s.targets[0], over.fixed_item(i));
    const Exit exit = statements(s.body);
    if (exit != Exit::Falls) {
      return continue_after(exit, [&] { return unroll(s, over, i + 1, rest); });
    }
  }
  return rest();
}

// The same where a round may end by break or continue: flags say so, as those of a loop do.
Exit Lowering::unroll_with_exits(const Stmt& s, const Rounds& over, const Rest& rest) {
  const auto is_known = [](const Value* flag, bool value) {
    return flag->constant() != nullptr && flag->constant()->toBool() == value;
  };
  const std::function<Exit(size_t)> from = [&](size_t i) {
    if (i == *over.fixed) {
      return Exit::Falls;
    }
    for (const char* const what : {"done", "stop"}) {
      scope_->own[flag_name(what)] = {Meaning::of_value(constant(false, Type{TypeKind::Bool})), {}};
    }
    assign_to(*s.targets[0], over.fixed_item(i));
    const Exit exit = statements(s.body);
    Condition stopped;
    stopped.value = flag("stop");
    if (exit == Exit::Raises || is_known(stopped.value, true)) {
      return exit;
    }
    if (exit == Exit::Falls || is_known(stopped.value, false)) {
      return from(i + 1);
    }
    const auto leaves = [] { return Exit::Always; };
    return branch(stopped, s.span, leaves, [&] { return from(i + 1); }, [] { return Exit::Falls; });
  };
  loops_++;
  const Exit exit = from(0);
  for (const char* const what : {"done", "stop"}) {  // a later loop has flags of its own
    scope_->own.erase(flag_name(what));
  }
  loops_--;
  const Variable* const returned = find_variable("$returned");
  if (exit == Exit::Raises) {
    return exit;
  }
  if (!returns(s.body) || returned == nullptr || is_known(returned->meaning.value, false)) {
    return rest();
  }
  Value* const did = returned->meaning.value;
  scope_->own[flag_name("done")] = {Meaning::of_value(did), {}};
  if (loops_ > 0) {
    scope_->own[flag_name("stop")] = {Meaning::of_value(did), {}};
  }
  return is_known(did, true) ? Exit::Always : continue_after(Exit::Sometimes, rest);
}

Exit Lowering::for_loop(const Stmt& s, const Rest& rest) {
  const Rounds over = iterations(meaning(*s.value), s.value->span);
  const Expr& target = *s.targets[0];
  if (over.fixed) {
    return leaves_loop(s.body) ? unroll_with_exits(s, over, rest) : unroll(s, over, 0, rest);
  }
  Loop l;
  l.span = s.span;
  l.carried = loop_variables(s.body, &target);
  l.returns = returns(s.body);
  l.most = over.count;
  l.first = constant(true, Type{TypeKind::Bool});
  l.body = [&](Value* round) {
    assign_to(target, over.item(round));
    return statements(s.body);
  };
  l.again = [&] { return constant(true, Type{TypeKind::Bool}); };
  loop(l);
  return continue_after(
      find_variable(flag_name("done")) != nullptr && l.returns ? Exit::Sometimes : Exit::Falls,
      rest);
}

}  // namespace rushlight::script
