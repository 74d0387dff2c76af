// Calls become what they call.
#include "graph/passes/passes.h"

namespace rushlight::graph {

namespace {

Function* callee_of(const Node& node) {
  if (node.kind == Kind::CallFunction) {
    return node.function;
  }
  if (node.kind == Kind::CallMethod && node.input()->type.is(Type::Kind::Class)) {
    return node.input()->type.definition->find_method(node.text_attribute("name"));
  }
  return nullptr;
}

class Inliner {
 public:
  bool block(const Block& block) {
    bool changed = false;
    for (Node* node = block.first(); node != block.return_node();) {
      Node* const next = node->next();
      for (const Block* const inner : node->blocks()) {
        changed = this->block(*inner) || changed;
      }
      Function* const function = callee_of(*node);
      const bool calls_itself =
          std::find(callers_.begin(), callers_.end(), function) != callers_.end();
      if (function != nullptr && function->native() == nullptr && !calls_itself) {
        changed = call(node, *function) || changed;
      }
      node = next;
    }
    return changed;
  }

 private:
  bool call(Node* node, Function& function) {
    // A copy, whose own calls are inlined first.
    const std::unique_ptr<Graph> body = function.graph().clone();
    if (body->inputs().size() != node->inputs().size() ||
        body->outputs().size() != node->outputs().size()) {
      return false;  // it fails when it runs
    }
    callers_.push_back(&function);
    block(body->block());
    callers_.pop_back();
    Graph& graph = node->graph();
    Graph::ValueMap values;
    for (size_t i = 0; i < node->inputs().size(); i++) {
      values[body->inputs()[i]] = node->input(i);
    }
    Node* const before = node->previous();
    std::vector<Value*> made;
    {
      const InsertPoint here(graph, node);
      made = graph.insert_copy(body->block(), values);
    }
    for (Node* each = before->next(); each != node; each = each->next()) {
      remember(*each, *node, function);
    }
    replace_with_values(node, made);
    return true;
  }

  static std::shared_ptr<const CallSite> below(const std::shared_ptr<const CallSite>& site,
                                               const Node& call, const std::string& name) {
    if (site == nullptr) {
      return std::make_shared<const CallSite>(CallSite{name, call.range, call.inlined});
    }
    return std::make_shared<const CallSite>(
        CallSite{site->function, site->range, below(site->outer, call, name)});
  }
  static void remember(Node& node, const Node& call, const Function& function) {
    node.inlined = below(node.inlined, call, function.base_name());
    if (node.scope.empty()) {
      node.scope = call.scope;
    }
    for (const Block* const block : node.blocks()) {
      for (Node* const inner : *block) {
        remember(*inner, call, function);
      }
    }
  }

  std::vector<Function*> callers_;
};

}  // namespace

bool inline_calls(Graph& graph) { return Inliner().block(graph.block()); }

}  // namespace rushlight::graph
