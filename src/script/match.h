// Which overload of an op or of a function of the language a call means, and what makes its
// arguments fit.
#pragma once

#include "script/meaning.h"

namespace rushlight::script {

struct Arguments {
  std::vector<graph::Value*> positional;
  std::vector<std::pair<std::string, graph::Value*>> named;
};

// Values that stand where the schema wants them, defaults included; the graph gains what converts
// them. Nothing where they do not fit, and then `why` says it, where it is not null. `convert`:
// tensors may become numbers, strings devices.
std::optional<std::vector<graph::Value*>> match_arguments(graph::Graph& graph,
                                                          const graph::Schema& schema,
                                                          const Arguments& arguments, bool convert,
                                                          TypeVariables& variables,
                                                          std::string* why);

// The value as one of a type: itself or converted; null where it cannot be.
graph::Value* convert_value(graph::Graph& graph, graph::Value* value, const Type& type);

// Whether there is any op or function of the language of that name, "aten::add".
RL_API bool is_op(const std::string& name);

// Calls the overload that fits; the node. TypeError's text in an Error where none does: the caller
// adds where.
graph::Node* call_op(graph::Graph& graph, const std::string& name, const Arguments& arguments);

// Of several results one tuple, of none None.
graph::Value* result_of(graph::Graph& graph, graph::Node* node);

}  // namespace rushlight::script
