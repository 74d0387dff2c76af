// Small rewritings of single nodes.
#include "graph/passes/passes.h"
#include "graph/values.h"

namespace rushlight::graph {

namespace {

// The tuple that a value is made as, in sight.
const Node* tuple_construct_of(const Value& value) {
  return value.node()->kind == Kind::TupleConstruct ? value.node() : nullptr;
}

bool simplify_tuple(Node* node) {
  const Node* const made = tuple_construct_of(*node->input());
  if (made == nullptr) {
    return false;
  }
  if (node->kind == Kind::TupleUnpack && made->inputs().size() == node->outputs().size()) {
    replace_with_values(node, made->inputs());
    return true;
  }
  if (node->kind == Kind::TupleIndex && node->input(1)->constant() != nullptr) {
    const int64_t i = node->input(1)->constant()->toInt();
    const auto n = static_cast<int64_t>(made->inputs().size());
    if (i >= -n && i < n) {
      replace_with_values(node, {made->input(static_cast<size_t>(i < 0 ? i + n : i))});
      return true;
    }
  }
  return false;
}

// A list that is made and taken apart, and seen by nobody else.
bool simplify_list(Node* node) {
  const Node* const made = node->input()->node();
  if (made->kind != Kind::ListConstruct || node->input()->uses().size() != 1 ||
      made->inputs().size() != node->outputs().size()) {
    return false;
  }
  replace_with_values(node, made->inputs());
  return true;
}

// is None, is not None, where the type says it.
bool simplify_none_check(Node* node) {
  const std::string name = node->kind_name();
  if (name != "aten::__is__" && name != "aten::__isnot__") {
    return false;
  }
  const bool left_is_none = node->input(0)->type.is(Type::Kind::None);
  const bool right_is_none = node->input(1)->type.is(Type::Kind::None);
  if (!left_is_none && !right_is_none) {
    return false;
  }
  const Type& other = node->input(left_is_none ? 1 : 0)->type;
  const bool is_none = other.is(Type::Kind::None);
  if (!is_none && other.may_be_none()) {
    return false;
  }
  if (other.is(Type::Kind::Variable)) {
    return false;
  }
  replace_with_constant(node, IValue(is_none == (name == "aten::__is__")));
  return true;
}

bool simplify_isinstance(Node* node) {
  const Type& type = node->input()->type;
  const bool is_surely = std::any_of(node->types.begin(), node->types.end(),
                                     [&](const Type& t) { return type.is_subtype_of(t); });
  // Lists hold exactly what they say, but an empty one may be of any type where it is read.
  if (!is_surely || type.is(Type::Kind::Any)) {
    return false;
  }
  replace_with_constant(node, IValue(true));
  return true;
}

bool simplify_cast(Node* node) {
  const bool is_unwrap = node->kind == Kind::Builtin && node->inputs().size() == 1 &&
                         node->kind_name() == "aten::_unwrap_optional";
  if (node->kind != Kind::UncheckedCast && !is_unwrap) {
    return false;
  }
  if (node->input()->type != node->output()->type ||
      (is_unwrap && node->input()->type.may_be_none())) {
    return false;
  }
  replace_with_values(node, {node->input()});
  return true;
}

// A list of constants that only ops take is made once. (Ops never write to lists of numbers.)
bool simplify_constant_list(Node* node) {
  const bool is_constant =
      std::all_of(node->inputs().begin(), node->inputs().end(),
                  [](const Value* v) { return v->constant() != nullptr && is_immutable(v->type); });
  if (!is_constant || !node->output()->is_used()) {
    return false;
  }
  for (const Use& use : node->output()->uses()) {
    if (use.node->kind != Kind::Op) {
      return false;
    }
  }
  IValue::Items items;
  for (const Value* const input : node->inputs()) {
    items.push_back(*input->constant());
  }
  replace_with_constant(node, list_value(std::move(items)));
  return true;
}

// Outputs of an If that are the same value whichever branch runs.
bool simplify_if(Node* node) {
  bool changed = false;
  for (size_t i = node->outputs().size(); i-- > 0;) {
    Value* const first = node->block(0).returns()[i];
    const Value* const second = node->block(1).returns()[i];
    const bool is_outer = first->node()->block() != &node->block(0);
    if (first == second && is_outer && node->output(i)->is_used()) {
      node->output(i)->replace_all_uses(first);
      changed = true;
    }
  }
  return changed;
}

bool simplify_node(Node* node) {
  switch (node->kind) {
    case Kind::TupleUnpack:
    case Kind::TupleIndex:
      return simplify_tuple(node);
    case Kind::ListUnpack:
      return simplify_list(node);
    case Kind::ListConstruct:
      return simplify_constant_list(node);
    case Kind::IsInstance:
      return simplify_isinstance(node);
    case Kind::If:
      return simplify_if(node);
    case Kind::UncheckedCast:
      return simplify_cast(node);
    case Kind::Builtin:
      return node->inputs().size() == 2 ? simplify_none_check(node) : simplify_cast(node);
    default:
      return false;
  }
}

}  // namespace

bool simplify(Graph& graph) {
  bool changed = false;
  for_each_node(graph.block(), [&](Node* node) { changed = simplify_node(node) || changed; });
  return changed;
}

}  // namespace rushlight::graph
