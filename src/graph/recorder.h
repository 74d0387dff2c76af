// A mode that runs each op that it sees and writes a node for it into a graph.
#pragma once

#include <rushlight/graph.h>
#include <rushlight/mode.h>

namespace rushlight::graph {

class Recorder : public Mode {
 public:
  explicit Recorder(Graph& into) : graph_(into) {}
  std::vector<rushlight::Value> handle(const OpInfo& op,
                                       const std::vector<rushlight::Value>& arguments) override;
  // From now on a tensor, or each of a list, is this value.
  void remember(const rushlight::Value& result, Value* value);
  // The value that a tensor is; null where it comes from elsewhere.
  virtual Value* find(const Tensor& t) = 0;

 protected:
  Graph& graph_;

 private:
  virtual void note(const Tensor& t, Value* value) = 0;
  // Whether a call needs no node: its results are values of the graph already.
  virtual bool is_known(const OpInfo&, const std::vector<rushlight::Value>&) { return false; }
  // A tensor from elsewhere, as a constant.
  virtual Value* constant(const Tensor& t) = 0;
  Value* input(const rushlight::Value& argument, const TypeInfo& info, const Type& type);
};

}  // namespace rushlight::graph
