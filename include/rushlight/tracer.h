// Tracing from C++: the ops of this thread, as nodes of a graph, by libtorch's names.
#pragma once

#include <rushlight/jit.h>
#include <rushlight/graph_function.h>

namespace rushlight::jit {

using graph::Function;

namespace tracer {
struct TracingState;
}  // namespace tracer

// The graph that a trace makes; its values are rushlight::graph's.
class RL_API TracedGraph {
 public:
  // What libtorch calls a value of the graph.
  class RL_API Value {
   public:
    Value* setType(const std::shared_ptr<script_types::Type>& type);
    graph::Value* value = nullptr;
  };
  TracedGraph();
  Value* addInput(const std::string& name = "") { return insertInput(made_.size(), name); }
  Value* insertInput(size_t place, const std::string& name = "");  // RuntimeError but at the end
  size_t registerOutput(Value* value);
  std::string toString() const { return graph_->str(); }
  graph::Graph& graph() const { return *graph_; }
  // The graph itself, which is a function's from now on; RuntimeError where it was taken before.
  std::unique_ptr<graph::Graph> take();

 private:
  friend struct tracer::TracingState;
  Value* wrap(graph::Value* value);
  std::unique_ptr<graph::Graph> graph_;
  std::deque<Value> made_;
};

namespace tracer {

// What a trace knows: which value of the graph each tensor is. One that comes from elsewhere is a
// constant of the graph.
struct RL_API TracingState {
  TracingState();
  ~TracingState();
  void setValue(const IValue& of, TracedGraph::Value* value);
  TracedGraph::Value* getValue(const IValue& of);
  bool hasValue(const IValue& of) const;
  // RuntimeError where it does not come from the trace; `place`: which result, for the message.
  TracedGraph::Value* getOutput(const IValue& of, size_t place);
  std::shared_ptr<TracedGraph> graph;

 private:
  friend RL_API void setTracingState(std::shared_ptr<TracingState> state);
  struct Recorder;
  std::unique_ptr<Recorder> recorder_;
};

// This thread's; null where nothing is traced. Setting one starts its trace, null ends it.
RL_API const std::shared_ptr<TracingState>& getTracingState();
RL_API void setTracingState(std::shared_ptr<TracingState> state);
inline bool isTracing() { return getTracingState() != nullptr; }
RL_API void abandon();  // ends the trace, and forgets it

}  // namespace tracer

// Of a trace nothing is left to be done: no scopes are kept, and nodes are named as they are.
inline void FixupTraceScopeBlocks(const std::shared_ptr<TracedGraph>&, const Module*) {}
inline void NormalizeOps(const std::shared_ptr<TracedGraph>&) {}

}  // namespace rushlight::jit
