// Recordings: what the ops of a step do to tensors, without the program around them.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <rushlight/tensor.h>

namespace rushlight {

namespace graph {
class Graph;
class Program;
}  // namespace graph

// The ops below autograd that a step ran on this thread, those of its backward and of optimizers
// too, as a graph. Replayed, they run in the same order on the same memory, but for what the step
// itself makes; tensors that it finds (parameters, buffers) are the same objects, as they are then.
class RL_API Recording {
 public:
  // What is recorded.
  struct RL_API Step {
    virtual ~Step();
    virtual void run() = 0;
    virtual std::string place() { return {}; }  // where the program is now, "file:line"
  };
  // Runs a step. `inputs` are given anew to each replay. A step may do what a replay could not: it
  // reads values, seeds random numbers, talks to other processes, uses sparse or nested tensors.
  // Strictly, that is a RuntimeError where it happens; else refusal() says it.
  Recording(const std::vector<Tensor>& inputs, Step&& step, bool strict = true);
  template <class F>
    requires(!std::is_base_of_v<Step, std::remove_cvref_t<F>>)
  Recording(const std::vector<Tensor>& inputs, F&& step, bool strict = true)
      : Recording(inputs, Call<std::remove_reference_t<F>>(step), strict) {}
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Why it cannot be replayed; empty where it can.
  const std::string& refusal() const;
  // Tensors that replays give, in this order. Called once, behind the step, where it can.
  void set_outputs(const std::vector<Tensor>& outputs);
  // Whether the step reads this tensor as it found it.
  bool finds(const Tensor& t) const;
  // Leaves that want a gradient, among what the step found.
  std::vector<Tensor> leaves() const;
  // Where another recording of the step does not do the same, in words; empty where it does.
  //
  // `settings` are numbers that the step was run with, and `other_settings` the same ones of the
  // other recording. A number of an op may differ that is settings[i] here and other_settings[i]
  // there: from now on replays take it from what they are given as setting i.
  std::string difference(const Recording& other, const std::vector<double>& settings = {},
                         const std::vector<double>& other_settings = {});
  // For each number that replays take from the settings, which of them it may be: more than one
  // where they were alike in both recordings. They have to be alike in replays, too.
  const std::vector<std::vector<size_t>>& varying() const { return varying_; }
  const std::shared_ptr<graph::Graph>& graph() const { return replayed_; }

  // Runs the ops, unrecorded, on tensors of the inputs' shapes, dtypes and strides. `settings` are
  // wanted where numbers vary.
  std::vector<Tensor> replay(const std::vector<Tensor>& inputs,
                             const std::vector<double>& settings = {}) const;

 private:
  class Recorder;
  template <class F>
  struct Call final : Step {
    explicit Call(F& f) : call(f) {}
    void run() override { call(); }
    F& call;
  };
  struct Comparison;
  void vary(const std::vector<size_t>& places);

  std::shared_ptr<graph::Graph> graph_;     // as it was recorded, to be compared
  std::shared_ptr<graph::Graph> replayed_;  // with inputs for numbers that vary
  std::vector<std::vector<size_t>> varying_;
  std::vector<size_t> varying_places_;  // of their constants, among the nodes
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<graph::Program> program_;
};

}  // namespace rushlight
