// Conditions: what the compiler knows of them, and what they tell of the types of names.
#include "script/lower.h"

#include <algorithm>

namespace rushlight::script {

using Kind = Expr::Kind;
using NodeKind = graph::Kind;
using TypeKind = Type::Kind;

graph::Value* Lowering::truth(Value* value, Span span) {
  switch (value->type.kind) {
    case TypeKind::Bool:
      return value;
    case TypeKind::None:
      return constant(false, Type{TypeKind::Bool});
    case TypeKind::Tensor:
    case TypeKind::Int:
    case TypeKind::Float:
    case TypeKind::Complex:
    case TypeKind::Scalar:
      return op("aten::Bool", {value}, span);
    case TypeKind::String:
    case TypeKind::List:
    case TypeKind::Dict:
      return op("aten::gt", {op("aten::len", {value}, span), integer(0)}, span);
    default:
      break;
  }
  fail(span, str("Could not cast value of type ", value->type.annotation(), " to bool"));
}

graph::Value* Lowering::truth_of(const Condition& condition) {
  return condition.value != nullptr ? condition.value
                                    : constant(condition.known, Type{TypeKind::Bool});
}

// The value of one of two, each of which is computed only where it is wanted.
graph::Value* Lowering::select_value(const Condition& condition, const std::function<Value*()>& yes,
                                     const std::function<Value*()>& no, Span span, const char* what,
                                     const Type* hint) {
  if (condition.value == nullptr) {
    Scope scope;
    const Inside inside(*this, scope);
    refine(condition.known ? condition.if_true : condition.if_false);
    return condition.known ? yes() : no();
  }
  Node* const node = graph_->append(NodeKind::If, {condition.value}, 0);
  for (const bool side : {true, false}) {
    const graph::InsertPoint there(*graph_, *node->add_block());
    Scope scope;
    const Inside inside(*this, scope);
    refine(side ? condition.if_true : condition.if_false);
    graph::Value* const made = side ? yes() : no();
    node->block(side ? 0 : 1).add_return(made);
  }
  const Type& a = node->block(0).returns()[0]->type;
  const Type& b = node->block(1).returns()[0]->type;
  std::optional<Type> type = unify(a, b);
  if (!type && hint != nullptr && a.is_subtype_of(*hint) && b.is_subtype_of(*hint)) {
    type = *hint;
  }
  if (!type) {
    fail(span, str(what, "'s true branch has type ", a.annotation(), " but false branch has type ",
                   b.annotation()));
  }
  return node->add_output(*type);
}

namespace {
// What holds where one of two refinements does: of names that both narrow, either type.
Refinements intersect_refinements(const Refinements& a, const Refinements& b) {
  Refinements out;
  for (const auto& [name, type] : a) {
    for (const auto& [other, narrow] : b) {
      if (name == other) {
        out.emplace_back(name, Type::union_of({type, narrow}));
      }
    }
  }
  return out;
}
Refinements join_refinements(Refinements a, const Refinements& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
}  // namespace

Condition Lowering::logical(const Expr& e) {
  const bool is_and = e.is(Kind::And);
  const Condition left = condition(*e.of[0]);
  Condition right;
  const auto second_condition = [&] {
    Scope scope;
    const Inside inside(*this, scope);
    refine(is_and ? left.if_true : left.if_false);
    right = condition(*e.of[1]);
    return right.value == nullptr && left.value == nullptr ? nullptr : truth_of(right);
  };
  Condition out;
  if (left.value == nullptr) {
    if (left.known != is_and) {
      return left;
    }
    out.value = second_condition();
    if (right.value == nullptr) {
      out.value = nullptr;
      out.known = right.known;
    }
  } else {
    Condition first;
    first.value = left.value;
    const auto constant_result = [&] { return constant(!is_and, Type{TypeKind::Bool}); };
    out.value =
        is_and ? select_value(first, second_condition, constant_result, e.span, "the condition")
               : select_value(first, constant_result, second_condition, e.span, "the condition");
  }
  if (is_and) {
    out.if_true = join_refinements(left.if_true, right.if_true);
    out.if_false = intersect_refinements(left.if_false, right.if_false);
  } else {
    out.if_true = intersect_refinements(left.if_true, right.if_true);
    out.if_false = join_refinements(left.if_false, right.if_false);
  }
  return out;
}

// x is None, x is not None.
Condition Lowering::is_none(const Expr& e) {
  const bool first = e.of[0]->is(Kind::None);
  const Expr& asked = first ? *e.of[1] : *e.of[0];
  const bool negated = e.text == "is not";
  const Meaning what = meaning(asked);
  Condition out;
  if (!what.is(Meaning::Kind::Value)) {
    const bool none = what.is(Meaning::Kind::Constant) && what.type.is(TypeKind::None);
    out.known = none != negated;
    return out;
  }
  const Type& type = what.value->type;
  if (type.is(TypeKind::None) || !type.may_be_none()) {
    out.known = type.is(TypeKind::None) != negated;
    return out;
  }
  out.value = op(negated ? "aten::__isnot__" : "aten::__is__", {what.value, none()}, e.span);
  if (asked.is(Kind::Name)) {
    std::vector<Type> others;
    for (const Type& member : type.members()) {
      if (!member.is(TypeKind::None)) {
        others.push_back(member);
      }
    }
    Refinements present;
    if (!others.empty() && !type.is(TypeKind::Any)) {
      present = {{asked.text, Type::union_of(others)}};
    }
    const Refinements absent = {{asked.text, Type{TypeKind::None}}};
    out.if_true = negated ? present : absent;
    out.if_false = negated ? absent : present;
  }
  return out;
}

namespace {
// `list`, `tuple` or `dict` alone, asked of what may be anything.
Type of_any_contents(const std::string& name) {
  const Type any{TypeKind::Any};
  return name == "list"    ? Type{TypeKind::List, {any}, name}
         : name == "tuple" ? Type{TypeKind::Tuple, {}, name}
                           : Type::dict(any, any);
}
bool is_any_tuple(const Type& type) { return type.is(TypeKind::Tuple) && !type.name.empty(); }
}  // namespace

// isinstance(x, T), isinstance(x, (T, U)).
Condition Lowering::is_instance(const Expr& e) {
  if (e.of.size() != 3) {
    fail(e.span, "isinstance takes a value and a type, or a tuple of types");
  }
  const Meaning asked = meaning(*e.of[1]);
  std::vector<const Expr*> given;
  if (e.of[2]->is(Kind::Tuple)) {
    for (const ExprPtr& one : e.of[2]->of) {
      given.push_back(one.get());
    }
  } else {
    given.push_back(e.of[2].get());
  }
  graph::Value* const value = as_value(asked, e.of[1]->span);
  const Type& type = value->type;
  std::vector<Type> types;
  Condition out;
  for (const Expr* one : given) {
    const std::string& name = one->text;
    const bool bare = one->is(Kind::Name) && (name == "list" || name == "tuple" || name == "dict");
    if (bare) {  // of whatever contents
      const auto is_bare = [&](const Type& t) {
        return name == "list"    ? t.is(TypeKind::List)
               : name == "tuple" ? t.is_tuple()
                                 : t.is(TypeKind::Dict);
      };
      out.known = out.known || is_bare(type);
      if (type.is(TypeKind::Any)) {
        types.push_back(of_any_contents(name));
      }
      for (const Type& member : type.members()) {
        if (is_bare(member)) {
          types.push_back(member);
        }
      }
    } else {
      types.push_back(type_of(*one, text_, resolver_));
      out.known = out.known || type.is_subtype_of(types.back());
    }
  }
  if (out.known) {
    return out;
  }
  std::vector<Type> inside;
  std::vector<Type> outside;
  for (const Type& member : type.members()) {
    const bool one_of = std::any_of(types.begin(), types.end(),
                                    [&](const Type& t) { return member.is_subtype_of(t); });
    (one_of ? inside : outside).push_back(member);
  }
  for (const Type& t : types) {
    if (t.is_subtype_of(type) && !t.is_subtype_of(Type::union_of(type.members()))) {
      inside.push_back(t);
    }
  }
  if (type.is(TypeKind::Any)) {
    inside = types;
    outside.clear();
  }
  if (inside.empty()) {
    return out;  // never
  }
  Node* const node = graph_->append(NodeKind::IsInstance, {value});
  node->types = types;
  out.value = node->output()->set_type(Type{TypeKind::Bool});
  const bool is_open = std::any_of(inside.begin(), inside.end(), is_any_tuple);
  if (e.of[1]->is(Kind::Name) && !is_open) {
    out.if_true = {{e.of[1]->text, Type::union_of(inside)}};
    if (!outside.empty()) {
      out.if_false = {{e.of[1]->text, Type::union_of(outside)}};
    }
  }
  return out;
}

Condition Lowering::condition(const Expr& e) {
  const At at(*this, e.span);
  if (e.is(Kind::And) || e.is(Kind::Or)) {
    return logical(e);
  }
  if (e.is(Kind::Unary) && e.text == "not") {
    Condition inner = condition(*e.of[0]);
    std::swap(inner.if_true, inner.if_false);
    if (inner.value == nullptr) {
      inner.known = !inner.known;
    } else {
      inner.value = op("aten::__not__", {inner.value}, e.span);
    }
    return inner;
  }
  const bool identity = e.is(Kind::Compare) && (e.text == "is" || e.text == "is not");
  if (identity && (e.of[0]->is(Kind::None) || e.of[1]->is(Kind::None))) {
    return is_none(e);
  }
  if (e.is(Kind::Call) && (e.of[0]->is(Kind::Name) || e.of[0]->is(Kind::Attribute))) {
    const Meaning function = meaning(*e.of[0]);
    if (function.is(Meaning::Kind::Special) && function.name == "isinstance") {
      return is_instance(e);
    }
  }
  Condition out;
  const Meaning what = meaning(e);
  graph::Value* const value = truth(as_value(what, e.span), e.span);
  if (const IValue* known = value->constant()) {
    out.known = known->toBool();
    return out;
  }
  out.value = value;
  return out;
}

}  // namespace rushlight::script
