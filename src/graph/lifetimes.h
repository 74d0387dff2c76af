// Where values are used for the last time.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include <rushlight/graph.h>

namespace rushlight::graph {

class Lifetimes {
 public:
  explicit Lifetimes(const Graph& graph);
  // Whether a value dies as that input of a node.
  bool is_last_use_at(const Node& node, size_t input) const {
    return last_.count({const_cast<Node*>(&node), input}) != 0;
  }
  // What dies behind a node, or before the first node of a block.
  const std::vector<const Value*>& dead_after(const Node& node) const {
    return values_at(behind_, &node);
  }
  const std::vector<const Value*>& dead_before(const Block& block) const {
    return values_at(before_, &block);
  }

 private:
  struct Hash {
    size_t operator()(const Use& use) const {
      return std::hash<const void*>()(use.node) * 31 + use.place;
    }
  };
  template <class Key>
  using Dead = std::unordered_map<Key, std::vector<const Value*>>;
  template <class Key>
  static const std::vector<const Value*>& values_at(const Dead<Key>& dead, Key key) {
    static const auto& none = *new std::vector<const Value*>;
    const auto found = dead.find(key);
    return found == dead.end() ? none : found->second;
  }

  void number(const Block& block);
  void find_in(const Block& block);
  void end_life(const Value& value, const Block& block);

  std::unordered_map<const Node*, size_t> order_;  // in its block
  std::unordered_set<Use, Hash> last_;
  Dead<const Node*> behind_;
  Dead<const Block*> before_;
};

}  // namespace rushlight::graph
