// What the entry points (run.cpp) and the engine share.
#pragma once

#include <unordered_map>

#include <rushlight/stream.h>

#include "autograd/node.h"

namespace rushlight {

// Brings a gradient to the size, dtype and device of what it belongs to: sums over broadcast
// dimensions, casts, takes the real part. RuntimeError where it cannot; `who` and `index` name the
// giver.
void fit_gradient(Tensor& grad, const OutputInfo& info, const char* who, size_t index);

// What hooks, or a program that calls a node by hand, made of the gradients of a node's outputs:
// the node gets none that does not fit. RuntimeError.
RL_API void fit_gradients(const Node& node, Tensor* grads);
// The node's backward on these: zeros where some are missing and it cannot do without.
RL_API void run_backward_of(Node& node, Tensor* grads, Tensor* results);

// One run of backward over the graph that is reached from some roots. It lives on the stack of its
// caller.
//
// Dependency counts decide when a node may run: how many of its gradients are still to come. Among
// the nodes that are ready the one recorded last goes first. Each node has a state in `states_`;
// the node's slot says where, provided that no other run (of another thread, or around this one)
// has claimed the node; then `elsewhere_` says where.
//
// A node runs on the stream of its forward (stream_of). Gradients are added up on the stream of
// the node that takes them, which first waits for the stream that made them; the stream on which
// backward was called waits for all others in the end. So a backward stands among the caller's work
// as any other op does.
class Run {
 public:
  Run(bool retain_graph, bool create_graph)
      : retain_graph_(retain_graph), create_graph_(create_graph) {}
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // In this order: the roots, the graph, what is wanted (nothing: all leaves), the run itself.
  void add_root(const Edge& edge, Tensor grad);
  // A level of vmap that gradients were given a batch of which outputs do not have: it is theirs,
  // and no gradient is summed over it.
  void keep_level(int64_t level) { kept_levels_.push_back(level); }
  void discover();
  // The gradient that arrives at `edge` goes to `*result`; with null, the node behind the edge
  // runs.
  void capture(const Edge& edge, Tensor* result);
  void execute();
  // Whether anything wanted lies behind this node.
  bool leads_to_capture(const Node& node) const;
  bool will_run(const Node& node) const;
  uint64_t number() const { return number_; }
  bool restricted() const { return restricted_; }
  void add_callback(std::unique_ptr<FinalCallback> callback) {
    callbacks_.push_back(std::move(callback));
  }

 private:
  struct State {
    Node* node;
    uint32_t dependencies = 0;
    int32_t first_capture = -1;
    bool needed = true;
    bool claimed = false;
    Tensor grad;                      // of a node with one output …
    std::unique_ptr<Tensor[]> grads;  // … or with several
  };
  struct Capture {
    uint32_t output_nr;
    int32_t next;
    Tensor* result;
  };
  struct Ready {
    uint64_t sequence;
    uint32_t slot;
    friend bool operator<(const Ready& a, const Ready& b) { return a.sequence < b.sequence; }
  };

  int64_t find(const Node& node) const;
  uint32_t find_or_add(Node& node);
  void restrict_to_captures();
  void push_if_needed(uint32_t slot);
  void accumulate(State& state, uint32_t output_nr, Tensor grad);
  void accumulate_across_streams(State& state, uint32_t output_nr, Tensor grad);
  void note_stream(const Stream& stream);
  void run_all();
  void run_callbacks();
  void evaluate(uint32_t slot);
  void record_apply(Node& node, Tensor* grads, size_t num_grads, Tensor* results);
  void apply(Node& node, Tensor* grads, size_t num_grads, Tensor* results, size_t num_results);

  static std::atomic<uint64_t> count_;
  const uint64_t number_ = ++count_;
  const bool retain_graph_;
  const bool create_graph_;
  std::vector<int64_t> kept_levels_;
  bool restricted_ = false;
  bool noted_ = false;  // formulas are, as when a node of it was recorded
  bool recorded_ = false;  // a profiler looks at this thread
  std::vector<State> states_;
  std::vector<Ready> ready_;
  std::vector<Capture> captures_;
  std::vector<Ref<Node>> roots_;  // keep the graph alive
  std::unordered_map<const Node*, uint32_t> elsewhere_;
  std::vector<std::unique_ptr<FinalCallback>> callbacks_;
  std::vector<Stream> streams_;  // that work was queued on, of devices beside the CPU
};

}  // namespace rushlight
