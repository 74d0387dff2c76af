// What makes graphs smaller and quicker without changing what they compute, failures included. Each
// pass leaves a graph that verify() accepts, and says whether it changed something.
#pragma once

#include <set>

#include <rushlight/graph_function.h>

namespace rushlight::graph {

// Takes out nodes whose outputs nobody uses and that do nothing else, and outputs of ifs and loops
// that nobody uses.
RL_API bool remove_dead_code(Graph& graph);
// The same, but for draws of random numbers, behind which others come.
RL_API bool remove_dead_code_but_draws(Graph& graph);
// One node in the place of equal ones, where nothing can tell the difference.
RL_API bool merge_common_nodes(Graph& graph);
// Equal constants become one, at the beginning of the graph.
RL_API bool pool_constants(Graph& graph);
// Nodes whose inputs are constants become constants, and ifs with a known condition become the
// branch that it chooses. Tensors are computed ahead only where `tensors` says so.
RL_API bool propagate_constants(Graph& graph, bool tensors = false);
// Calls of functions, and of methods of known classes, become the nodes of their graphs, which
// remember the call. A function that calls itself stays a call.
RL_API bool inline_calls(Graph& graph);
// Small rewritings: tuples that are made and taken apart, casts and comparisons with None that the
// types decide, lists of constants that only ops take.
RL_API bool simplify(Graph& graph);
// Attributes of an object that the graph does not set become constants; `self` is its first input,
// which stays. Modules and lists are looked into, parameters and buffers are taken as they are now.
// Attributes named `kept` stay, of whatever object.
RL_API bool freeze_attributes(Graph& graph, const IValue& self,
                              const std::set<std::string>& kept = {});
// Batch norms of constants that follow a convolution of constants become part of its weights.
RL_API bool fold_batch_norms(Graph& graph);
// Constant weights of convolutions become copies beside which the layouts are kept that kernels
// want of them, from the first run on. For graphs that are run again and again.
RL_API bool keep_weights(Graph& graph);

// What a function is made ready by before its first run: all of the above but freezing, until
// nothing changes.
RL_API void optimize(Graph& graph);

}  // namespace rushlight::graph
