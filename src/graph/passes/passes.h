// What passes ask of graphs.
#pragma once

#include <algorithm>

#include <rushlight/graph_passes.h>

namespace rushlight::graph {

// Whether values of a type cannot be changed: numbers, strings, None, devices, and what is made of
// them; not tensors, lists, dicts and objects.
bool is_immutable(const Type& type);

// What the nodes of a graph change, each of which forbids to move or merge what reads it.
struct Writes {
  bool memory = false;      // of tensors, lists or dicts
  bool attributes = false;  // of objects
  explicit Writes(const Block& block);
};

// Calls f(node) for all nodes of a block and of the blocks within it, inner ones first. f may erase
// the node.
template <class F>
void for_each_node(const Block& block, const F& f) {
  for (Node* const node : block) {
    for (const Block* const inner : node->blocks()) {
      for_each_node(*inner, f);
    }
    f(node);
  }
}

// Puts a constant in the place of a node's only output, before the node, and erases the node.
void replace_with_constant(Node* node, IValue value);
// Puts other values in the place of a node's outputs, and erases it.
void replace_with_values(Node* node, const std::vector<Value*>& values);
// Whether constants are of one type and value; of tensors and objects, the same one.
bool same_constants(const Value& a, const Value& b);
// Whether all users of a value are ops that change and return nothing of it.
bool only_ops_read(const Value& value);

}  // namespace rushlight::graph
