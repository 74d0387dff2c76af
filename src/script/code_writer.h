// Graphs, classes and functions as the text of archives, which PyTorch reads as well.
#pragma once

#include <set>

#include <rushlight/graph_function.h>

namespace rushlight::script {

// What text mentions and does not hold itself.
struct RL_API Mentions {
  std::vector<IValue> constants;  // CONSTANTS.c0, …
  std::vector<ClassType*> classes;
  std::vector<graph::Function*> functions;

  void add(const Type& type);
  void add(ClassType& type);
  void add(graph::Function& function);
  size_t add_constant(const IValue& value);

 private:
  std::set<const void*> known_;
};

// "def forward(self: __torch__.Net, x: Tensor) -> Tensor:" and its body, as lines.
RL_API std::string function_text(graph::Function& function, Mentions& mentions, int indent = 0);
std::string class_text(ClassType& type, Mentions& mentions);
// A value as a literal of a program.
std::string literal(const IValue& value, const Type& type, Mentions& mentions);

}  // namespace rushlight::script
