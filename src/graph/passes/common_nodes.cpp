// Nodes that compute what another has computed.
#include "graph/passes/passes.h"

namespace rushlight::graph {

namespace {

class Merger {
 public:
  explicit Merger(const Graph& graph) : writes_(graph.block()) {}

  bool block(const Block& block) {
    bool changed = false;
    std::vector<std::pair<size_t, const Node*>> added;
    for (Node* const node : block) {
      for (const Block* const inner : node->blocks()) {
        changed = this->block(*inner) || changed;
      }
      if (!may_merge(*node)) {
        continue;
      }
      const size_t key = hash(*node);
      const std::vector<Node*>& found = seen_[key];
      const auto same = std::find_if(found.begin(), found.end(),
                                     [&](const Node* other) { return are_equal(*node, *other); });
      if (same != found.end()) {
        replace_with_values(node, (*same)->outputs());
        changed = true;
      } else {
        seen_[key].push_back(node);
        added.emplace_back(key, node);
      }
    }
    for (const auto& [key, node] : added) {  // out of sight from here on
      std::vector<Node*>& found = seen_[key];
      found.erase(std::find(found.begin(), found.end(), node));
    }
    return changed;
  }

 private:
  bool may_merge(const Node& node) const {
    if (node.kind == Kind::GetAttr) {
      return !writes_.attributes;
    }
    const bool is_function = node.kind == Kind::Op || node.kind == Kind::Builtin ||
                             node.kind == Kind::TupleConstruct || node.kind == Kind::TupleIndex;
    if (!is_function || !node.is_pure()) {
      return false;
    }
    return std::all_of(node.inputs().begin(), node.inputs().end(),
                       [&](const Value* v) { return !writes_.memory || is_immutable(v->type); }) &&
           std::all_of(node.outputs().begin(), node.outputs().end(), [&](const Value* v) {
             // Two lists may be told apart even where nobody writes here: both may go out.
             return is_immutable(v->type) ||
                    (!writes_.memory && v->type.is(Type::Kind::Tensor) && only_ops_read(*v));
           });
  }

  static size_t hash(const Node& node) {
    size_t out = static_cast<size_t>(node.kind) * 31 + std::hash<const void*>()(node.op) +
                 std::hash<const void*>()(node.builtin);
    for (const Value* const input : node.inputs()) {
      out = out * 31 + (input->constant() != nullptr ? 7 : std::hash<const void*>()(input));
    }
    return out;
  }

  static bool are_equal(const Node& a, const Node& b) {
    if (a.kind != b.kind || a.op != b.op || a.builtin != b.builtin ||
        a.outputs().size() != b.outputs().size()) {
      return false;
    }
    if (a.kind == Kind::GetAttr && a.text_attribute("name") != b.text_attribute("name")) {
      return false;
    }
    for (size_t i = 0; i < a.outputs().size(); i++) {
      if (a.output(i)->type != b.output(i)->type) {
        return false;
      }
    }
    return std::equal(
        a.inputs().begin(), a.inputs().end(), b.inputs().begin(), b.inputs().end(),
        [](const Value* x, const Value* y) { return x == y || same_constants(*x, *y); });
  }

  Writes writes_;
  std::unordered_map<size_t, std::vector<Node*>> seen_;  // in sight
};

}  // namespace

bool merge_common_nodes(Graph& graph) { return Merger(graph).block(graph.block()); }

}  // namespace rushlight::graph
