// A value dies in the block that it is made in, at the last node there that uses it or has blocks
// that do. Where that is an If, it dies in each of the branches.
#include "graph/lifetimes.h"

namespace rushlight::graph {

Lifetimes::Lifetimes(const Graph& graph) {
  number(graph.block());
  find_in(graph.block());
}

void Lifetimes::number(const Block& block) {
  size_t next = 0;
  for (const Node* const node : block) {
    order_[node] = next++;
    for (const Block* const inner : node->blocks()) {
      number(*inner);
    }
  }
  order_[block.return_node()] = next;
}

void Lifetimes::find_in(const Block& block) {
  for (const Value* const param : block.params()) {
    end_life(*param, block);
  }
  for (const Node* const node : block) {
    for (const Value* const output : node->outputs()) {
      if (output->is_used()) {
        end_life(*output, block);
      }
    }
    for (const Block* const inner : node->blocks()) {
      find_in(*inner);
    }
  }
}

namespace {
// The node of the block that a node is, or is within; null where it is elsewhere, or in no block.
const Node* enclosing_node(const Block& block, const Node* node) {
  while (node != nullptr && node->block() != &block) {
    node = node->block() != nullptr ? node->block()->owner() : nullptr;
  }
  return node;
}
}  // namespace

void Lifetimes::end_life(const Value& value, const Block& block) {
  const Node* last = nullptr;
  bool is_inside = false;  // used in a block of the last node
  size_t place = 0;        // else: the last of its inputs that it is
  for (const Use& use : value.uses()) {
    const Node* const node = enclosing_node(block, use.node);
    if (node == nullptr || (last != nullptr && order_.at(node) < order_.at(last))) {
      continue;
    }
    if (node != last) {
      last = node;
      is_inside = false;
      place = 0;
    }
    is_inside = is_inside || use.node != node;
    place = use.node == node ? std::max(place, use.place) : place;
  }
  if (last == nullptr) {
    before_[&block].push_back(&value);
  } else if (!is_inside) {
    last_.insert({const_cast<Node*>(last), place});
  } else if (last->kind == Kind::If) {
    for (const Block* const branch : last->blocks()) {
      end_life(value, *branch);
    }
  } else {
    behind_[last].push_back(&value);
  }
}

}  // namespace rushlight::graph
