// How arguments and results lie in lists, tuples and dicts.
#pragma once

#include <rushlight/collections.h>

#include <rushlight/json.h>

namespace rushlight::exported {

struct Tree {
  enum class Kind : uint8_t { Leaf, List, Tuple, Dict };
  Kind kind = Kind::Leaf;
  std::vector<Value> keys;  // of a dict
  std::vector<Tree> of;

  // "[1, {…}]", as files have it. NotImplementedError of containers of classes.
  static Tree read(std::string_view text);
  // Appends the leaves of a value; RuntimeError, which names it by `where`, if it is built another
  // way.
  void flatten(const Value& value, const std::string& where, std::vector<Value>& leaves) const;
  // The value of these leaves, from `place` on.
  Value unflatten(const std::vector<Value>& leaves, size_t& place) const;
  size_t leaf_count() const;
};

}  // namespace rushlight::exported
