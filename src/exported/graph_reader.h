// From the records of a .pt2 file to a graph.
#pragma once

#include <unordered_map>

#include <rushlight/graph_function.h>

#include "exported/facts.h"

namespace rushlight::exported {

// Reads a graph and those in it. NotImplementedError of ops and kinds of values that are not there.
class GraphReader {
 public:
  // `device`: in place of those that the file names; nothing: those. `left`: how many nodes may
  // still be made, also of graphs that are read more than once; it must outlive the reader.
  GraphReader(graph::Graph& graph, std::optional<Device> device, size_t& left)
      : graph_(graph), device_(device), left_(left) {}

  // What a name of the file stands for.
  void define(const std::string& name, graph::Value* value) { names_[name] = value; }
  graph::Value* value_named(const std::string& name) const;
  // Puts in the nodes of a graph, whose inputs have been defined, and gives its outputs.
  std::vector<graph::Value*> read(const serialize::Json& record);
  // An argument of a node, for an argument of this type in its schema.
  graph::Value* argument(const serialize::Json& record, const Type& type = {});

 private:
  using Value = graph::Value;
  using Values = std::vector<Value*>;
  using Json = serialize::Json;
  struct Callee;  // what a node calls

  static std::optional<Callee> callee(const std::string& target);
  static void find_missing(const Json& record, std::vector<std::string>& missing);

  void read_node(const Json& record);
  Values call(const Callee& callee, const Json& inputs);
  Values call_overload(const Callee& callee, const Json& inputs);
  Values call_numbers(const std::string& function, const Json& inputs);
  Values call_branches(const Json& inputs);
  Values call_loop(const Json& inputs);
  Values call_steps(const Json& graph, const Values& carried, const Values& sequences,
                    const Values& others);
  Values call_inner(size_t graph_at, const Json& inputs);
  Values read_inner(const Json& argument, const Values& inputs);
  void name_results(const Json& outputs, const Values& results);

  Values values_of(const Json& argument);  // of a list each of its items
  Values values_at(const std::vector<Json>& arguments, size_t place);
  Value* constant(IValue value, Type type);
  Value* number(const Json& record, const Type& type);
  Value* list(const Json& records, const Type& item);
  Value* list_of(const Values& values, const Type& item = {Type::Kind::Tensor});
  Value* as_truth(Value* value);

  graph::Graph& graph_;
  std::optional<Device> device_;
  size_t& left_;
  std::unordered_map<std::string, Value*> names_;
};

}  // namespace rushlight::exported
