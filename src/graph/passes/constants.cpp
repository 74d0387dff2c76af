// Constants: what can be known before a graph runs.
#include <rushlight/thread_state.h>

#include "graph/code.h"
#include "graph/passes/passes.h"

namespace rushlight::graph {

namespace {

bool all_constant(const Node& node) {
  return std::all_of(node.inputs().begin(), node.inputs().end(),
                     [](const Value* input) { return input->constant() != nullptr; });
}

std::vector<IValue> values_of(const Node& node) {
  std::vector<IValue> out;
  for (const Value* const input : node.inputs()) {
    out.push_back(shared_list(*input->constant()));
  }
  return out;
}

// What a node makes of constants; nothing where it fails, which it then does when it runs.
std::optional<IValue> result_of(const Node& node) {
  std::vector<IValue> arguments = values_of(node);
  try {
    if (node.kind == Kind::Builtin) {
      IValue out;
      node.builtin->call(arguments.data(), arguments.size(), &out);
      return out;
    }
    if (node.kind == Kind::TupleConstruct) {
      return IValue::tuple(std::move(arguments));
    }
    std::vector<rushlight::Value> values;
    for (size_t i = 0; i < arguments.size(); i++) {
      values.push_back(to_op(arguments[i], node.op->arguments[i].type));
    }
    const NoGradGuard off;
    return from_op(call(*node.op, values).at(0), node.op->results[0].type);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// Long strings and the like are not worth keeping for ever.
bool is_small(const IValue& value) {
  constexpr size_t most = 1024;
  return !value.isString() || value.toStringRef().size() <= most;
}

bool may_run(const Node& node, bool tensors) {
  const bool is_function =
      node.kind == Kind::Builtin || node.kind == Kind::Op || node.kind == Kind::TupleConstruct;
  if (!is_function || node.outputs().size() != 1 || !node.is_pure() || !all_constant(node)) {
    return false;
  }
  const Type& type = node.output()->type;
  return is_immutable(type) ||
         (tensors && type.is(Type::Kind::Tensor) && only_ops_read(*node.output()));
}

// A branch in the place of its If.
void choose(Node* node, bool holds) {
  const Block& branch = node->block(holds ? 0 : 1);
  while (branch.first() != branch.return_node()) {
    branch.first()->move_before(node);
  }
  const std::vector<Value*> made = branch.returns();
  for (size_t i = 0; i < made.size(); i++) {
    node->output(i)->replace_all_uses(made[i]);
  }
  node->erase();
}

bool propagate(const Block& block, bool tensors) {
  bool changed = false;
  for (Node* node = block.first(); node != block.return_node();) {
    Node* next = node->next();
    const IValue* const condition = node->kind == Kind::If ? node->input()->constant() : nullptr;
    if (condition != nullptr && condition->isBool()) {
      Node* const before = node->previous();
      choose(node, condition->toBool());
      next = before->next();  // the nodes of the branch are looked at too
      changed = true;
    } else if (may_run(*node, tensors)) {
      std::optional<IValue> value = result_of(*node);
      if (value && is_small(*value)) {
        replace_with_constant(node, std::move(*value));
        changed = true;
      }
    } else {
      for (const Block* const inner : node->blocks()) {
        changed = propagate(*inner, tensors) || changed;
      }
    }
    node = next;
  }
  return changed;
}

}  // namespace

bool propagate_constants(Graph& graph, bool tensors) {
  // Tensors that somebody writes to are no constants.
  return propagate(graph.block(), tensors && !Writes(graph.block()).memory);
}

bool pool_constants(Graph& graph) {
  bool changed = false;
  std::unordered_map<std::string, std::vector<Value*>> pool;
  Node* const first = graph.block().first();
  for_each_node(graph.block(), [&](Node* node) {
    if (node->kind != Kind::Constant) {
      return;
    }
    std::vector<Value*>& same_type = pool[node->output()->type.str()];
    const auto found = std::find_if(same_type.begin(), same_type.end(), [&](const Value* other) {
      return same_constants(*node->output(), *other);
    });
    if (found != same_type.end()) {
      replace_with_values(node, {*found});
      changed = true;
      return;
    }
    if (node->block() != &graph.block()) {
      node->move_before(first);
      changed = true;
    }
    same_type.push_back(node->output());
  });
  return changed;
}

}  // namespace rushlight::graph
