// Nodes that nobody needs.
#include "graph/passes/passes.h"

namespace rushlight::graph {

namespace {

bool is_unused(const Node& node) {
  return std::none_of(node.outputs().begin(), node.outputs().end(),
                      [](const Value* output) { return output->is_used(); });
}

// Outputs of an If that nobody uses, with what its branches make for them.
bool drop_outputs_of_if(Node* node) {
  bool changed = false;
  for (size_t i = node->outputs().size(); i-- > 0;) {
    if (!node->output(i)->is_used()) {
      node->remove_output(i);
      for (const Block* const branch : node->blocks()) {
        branch->return_node()->remove_input(i);
      }
      changed = true;
    }
  }
  return changed;
}

// What a Loop carries that nobody uses, within it or behind it.
bool drop_unused_loop_values(Node* node) {
  bool changed = false;
  const Block& body = node->block(0);
  for (size_t i = node->outputs().size(); i-- > 0;) {
    const Value* const param = body.params()[i + 1];
    const auto& uses = param->uses();
    const bool feeds_itself_alone = std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
      return use == Use{body.return_node(), i + 1};
    });
    if (!node->output(i)->is_used() && feeds_itself_alone) {
      body.return_node()->remove_input(i + 1);
      body.param_node()->remove_output(i + 1);
      node->remove_output(i);
      node->remove_input(i + 2);
      changed = true;
    }
  }
  return changed;
}

bool sweep(const Block& block, bool (*may_go)(const Node&)) {
  bool changed = false;
  for (Node* node = block.return_node()->previous(); node != block.param_node();) {
    Node* const before = node->previous();
    if (is_unused(*node) && may_go(*node) && node->kind != Kind::Loop) {
      node->erase();
      changed = true;
    } else {
      changed = (node->kind == Kind::If && drop_outputs_of_if(node)) || changed;
      changed = (node->kind == Kind::Loop && drop_unused_loop_values(node)) || changed;
      for (const Block* const inner : node->blocks()) {
        changed = sweep(*inner, may_go) || changed;
      }
    }
    node = before;
  }
  return changed;
}

// A loop stays even where nobody uses what it makes: it may not end.
bool remove_unused(const Graph& graph, bool (*may_go)(const Node&)) {
  bool changed = false;
  while (sweep(graph.block(), may_go)) {
    changed = true;
  }
  return changed;
}

}  // namespace

bool remove_dead_code(Graph& graph) {
  return remove_unused(graph, [](const Node& node) { return !node.has_side_effects(); });
}
bool remove_dead_code_but_draws(Graph& graph) {
  return remove_unused(graph, [](const Node& node) { return node.is_pure(); });
}

}  // namespace rushlight::graph
