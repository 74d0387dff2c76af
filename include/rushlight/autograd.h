// The graph: nodes, edges, saved tensors and what a tensor knows of them. The engine walks it
// (src/autograd/engine.cpp). A recorded op is one Node whose constant descriptor says its name and
// backward function; nothing but custom functions derives from Node.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include <rushlight/tensor.h>
#include <rushlight/thread_state.h>
#include <rushlight/value.h>

namespace rushlight::autograd_api {}
namespace torch {
inline namespace of_rushlight {
namespace autograd {
using namespace ::rushlight::autograd_api;
}
}  // namespace of_rushlight
}  // namespace torch
namespace rushlight {
namespace autograd = ::torch::autograd;
}

namespace rushlight {

class Node;
namespace forward {
struct Tangent;
}

struct Edge {
  Ref<Node> node;
  uint32_t input_nr = 0;  // which output of the op behind `node` the gradient belongs to
};

// Backward of an op: grads holds one gradient per output (undefined where none came), already made
// defined zeros when the descriptor says so; it fills result, one per edge, leaving undefined what
// node.wants(i) denies or what is zero. The engine then sums each to its input's size and casts it
// to its input's dtype (real part for real inputs).
using BackwardFunction = void (*)(Node& node, const Tensor* grads, Tensor* result);

struct NodeDescriptor {
  const char* name;  // PyTorch's: "MulBackward0"
  BackwardFunction backward;
  bool undefined_grads;  // backward accepts undefined gradients (otherwise zeros are filled in)
  // Names in the order of save() and keep(), parted by spaces, a list as "tensors[]": Python's
  // `_saved_self`.
  const char* saved = nullptr;
  const char* values = nullptr;
};

// What torch.autograd.graph.saved_tensors_hooks installs (ThreadState::saved_hooks): pack() is
// given every tensor that is saved and keeps it as it likes.
struct RL_API PackedTensor {
  virtual ~PackedTensor();
  virtual Tensor unpack() = 0;
};
struct RL_API SavedTensorHooks {
  virtual ~SavedTensorHooks();
  virtual std::unique_ptr<PackedTensor> pack(const Tensor& t) = 0;
};

// A tensor kept for backward. Remembers its version; unpacking one that was written since raises. A
// node's own output is kept without its grad_fn (no cycle) and gets it back when unpacked.
class RL_API SavedTensor {
 public:
  SavedTensor() = default;
  // `output_of`: the node being recorded when `t` is one of its outputs (set_history comes before
  // saving).
  SavedTensor(const Tensor& t, const Node* output_of = nullptr);
  bool defined() const { return data_.defined() || packed_; }
  // `detached_ok`: the caller records nothing, so an output may come back without its grad_fn.
  Tensor unpack(const Node& owner, bool detached_ok = false) const {
    return SavedTensor(*this).take(owner, detached_ok);
  }
  Tensor take(const Node& owner, bool detached_ok);  // the same, leaving this one empty
  // Packs by hand (`_raw_saved_self.register_hooks`); RuntimeError where it is packed already.
  void pack(SavedTensorHooks& hooks);
  // Where this is the node's output `t`: it has the tangents of `t`.
  void take_tangents(const Tensor& t);

 private:
  struct RL_API Packed : RefCounted {
    std::unique_ptr<PackedTensor> content;
    Ref<Node> grad_fn;  // of an input; a leaf's accumulator
    bool is_leaf = false;
    void release() const;
  };
  void check_version(const Node& owner) const;
  Tensor data_;
  Ref<Packed> packed_;  // in place of data_ where a hook packed it
  uint32_t output_nr_ = 0;
  uint32_t version_ = 0;
  bool is_output_ = false;
  bool had_grad_fn_ = false;
};

// Size, dtype and device of a node's output, to check and reduce the gradients that arrive for it.
class RL_API OutputInfo {
 public:
  OutputInfo() = default;
  explicit OutputInfo(const Tensor& t);
  OutputInfo(OutputInfo&& o) noexcept;
  OutputInfo& operator=(OutputInfo&& o) noexcept;
  ~OutputInfo();
  ScalarType dtype() const { return dtype_; }
  Device device() const { return device_; }
  DimVector sizes() const;
  bool has_sizes(IntArrayRef sizes) const;

 private:
  static constexpr size_t near_dims = 5;
  static constexpr uint8_t is_far = 255;
  DimVector* sizes_on_heap() const;
  uint8_t ndim_ = 0;
  ScalarType dtype_ = ScalarType::Undefined;
  Device device_;
  uint32_t near_[near_dims] =
      {};  // most sizes fit; others live on the heap, at the address kept here
};

// A compact object (128 bytes beside what it keeps) from per-thread free lists: recording one is
// most of what an op on a small tensor costs.
class RL_API Node : public RefCounted {
 public:
  explicit Node(const NodeDescriptor* descriptor);
  // For classes that override the second apply (custom_node.h).
  Node();
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  void release() const {
    if (drop()) {
      destroy();
    }
  }
  static void* operator new(size_t size);
  static void operator delete(void* p, size_t size);

  // Custom functions override these; ops go through the descriptor.
  virtual void apply(const Tensor* grads, Tensor* result) {
    descriptor_->backward(*this, grads, result);
  }
  // A reference of the graph to a node that a shared_ptr owns: the graph shares in owning it.
  static Ref<Node> of_shared(const std::shared_ptr<Node>& node);
  virtual const char* name() const { return descriptor_->name; }
  virtual void release_saved();        // frees saved tensors after backward; later unpacking raises
  virtual void release_variables() {}  // the same of what classes of programs keep by themselves

  const NodeDescriptor& descriptor() const { return *descriptor_; }
  uint64_t sequence() const { return sequence_; }
  void set_sequence(uint64_t n) { sequence_ = n; }
  ArrayRef<Edge> edges() const { return {edge_data(), num_edges_}; }
  size_t num_outputs() const { return num_outputs_; }
  const OutputInfo& output_info(size_t i) const {
    return num_outputs_ == 1 ? near_output_ : far_outputs_[i];
  }
  // Whether the gradient of input i is asked for.
  bool wants(size_t i) const {
    return i < num_edges_ && edge_data()[i].node &&
           (tls.wanted_by == nullptr || is_needed_by_run(i));
  }
  bool wants_any() const {
    for (size_t i = 0; i < num_edges_; i++) {
      if (wants(i)) {
        return true;
      }
    }
    return false;
  }
  void add_edge(const Tensor& input);  // gradient edge of an input (empty where it needs none)
  void add_edge(Edge edge);
  void set_next_edges(std::vector<Edge> edges);
  void clear_input_metadata();  // forgets its outputs: their gradients are its inputs
  uint32_t add_output(
      const Tensor& output);  // the next output's number; set_history and its like call it

  // Filled by generated code in the order that the op's backward reads them.
  void save(const Tensor& t, const Node* output_of = nullptr);
  void save_list(const std::vector<std::optional<Tensor>>& list);
  // A result's place is reserved when the node is built and filled once the op has run.
  void reserve_saved() { save(Tensor()); }
  void fill_saved(size_t i, const Tensor& output);
  // An output got tangents after it was saved.
  void take_tangents(const Tensor& output);
  void keep(Value v);
  Tensor saved(
      size_t i) const;  // RuntimeError after release ("backward through the graph a second time")
  std::vector<std::optional<Tensor>> saved_list(size_t first) const;  // up to the last of all
  const Value& value(size_t i) const;
  size_t num_saved() const;
  size_t num_values() const;
  bool released() const { return released_; }
  // Whether formulas were noted where it was recorded (src/cpu/chain.h); they are in its backward
  // then.
  bool was_noted() const { return noted_; }
  void check_not_released() const;
  // For Python: the tensor with its grad_fn; the saved tensor itself (under the caller's care).
  Tensor saved_with_history(size_t i) const;
  SavedTensor& saved_tensor(size_t i);

  // The same by lists, for classes of programs (custom_node.h).
  virtual std::vector<Tensor> apply(std::vector<Tensor>&& grads);

  struct Extra;  // hooks, anomaly data, Python object: src/autograd/node.h
  Extra* extra() const { return extra_; }
  Extra& extra_or_make();

 private:
  friend class Run;
  template <class T>
  struct Block;
  void destroy() const;
  static void dispose(const Node* node);
  Tensor unpack_saved(size_t i, bool detached_ok) const;
  bool is_needed_by_run(size_t i) const;
  const Edge* edge_data() const { return num_edges_ <= near_edge_count ? near_edges_ : far_edges_; }
  Edge& new_edge();
  void lock() const;
  void unlock() const { locked_.store(false, std::memory_order_release); }

  static constexpr uint32_t near_edge_count = 2;
  mutable std::atomic<uint32_t> slot_{
      0};  // where the run that claimed this node keeps its state, plus one
  const NodeDescriptor* descriptor_;
  mutable uint64_t sequence_;  // orders what is ready; links nodes that await destruction
  uint32_t num_edges_ = 0;
  uint32_t num_outputs_ = 0;
  union {
    Edge near_edges_[near_edge_count];
    Edge* far_edges_;
  };
  union {
    OutputInfo near_output_;
    OutputInfo* far_outputs_;
  };
  Block<SavedTensor>* saved_ = nullptr;
  Block<Value>* values_ = nullptr;
  Extra* extra_ = nullptr;
  mutable std::atomic<bool> locked_{false};  // guards saved_ between threads that run shared nodes
  bool released_ = false;
  const bool noted_ = tls.notebook != nullptr;
};

// Only src/autograd reads grad_fn and output_nr here: they may be stale. Others ask Tensor::grad_fn
// or gradient_edge.
struct RL_API AutogradMeta {
  AutogradMeta();
  ~AutogradMeta();
  static void* operator new(size_t size);
  static void operator delete(void* p, size_t size);
  Tensor grad;
  Ref<Node> grad_fn;
  uint32_t output_nr = 0;
  bool requires_grad = false;  // as a leaf
  bool retains_grad = false;
  bool is_dual = false;         // has its tangents alone, not those of what it is a view of
  Node* accumulator = nullptr;  // weak: one AccumulateGrad per leaf
  struct Hooks;
  std::unique_ptr<Hooks> hooks;                      // hooks of a leaf: src/autograd/node.h
  std::atomic<forward::Tangent*> tangents{nullptr};  // owned: src/autograd/forward.cpp
  Ref<TensorImpl> dual;  // of a view of a dual: has its tangents rather than the root's
};

// ---- what generated ops call ----

RL_API bool any_requires_grad(TensorList list);
inline bool needs_grad(const Tensor& t) { return t.defined() && t.requires_grad(); }

// After an op: `out` becomes the node's next output and gets it as grad_fn, unless its dtype has no
// gradients.
RL_API void set_history(const Tensor& out, const Ref<Node>& node);
// The next output of a node that is not differentiable (indices): only takes its number.
RL_API void clear_history(const Tensor& out, const Ref<Node>& node);
// Before an in-place op: raises for leaves that require grad, views made in no_grad, multi-output
// views, inference tensors. `needs_grad`: whether the op will be recorded.
RL_API void check_inplace(const char* op, const Tensor& self, bool needs_grad);
// After an in-place op and its version bump: new history; on a view the root's history is rewritten
// (CopySlices). Edge 0 of `node` belongs to `self` (empty where self needed no gradient).
RL_API void rebase_history(const Tensor& self, const Ref<Node>& node);
// After a view op: makes `view` share its version with `base` and remember its root. `node` is null
// where nothing is recorded; in no_grad or inference mode the kind follows the mode.
RL_API void record_view(const Tensor& view, const Tensor& base, ViewKind kind,
                        const Ref<Node>& node,
                        Tensor (*replay)(const Tensor&, const Tensor&) = nullptr);
// out= where a gradient is wanted: RuntimeError.
RL_API void check_out_grad(const char* op, bool needs_grad);

// ---- edges, leaves and hooks ----

// Where gradients of `t` go: its grad_fn, a leaf's accumulator, nowhere.
RL_API Edge gradient_edge(const Tensor& t);
RL_API const NodeDescriptor& accumulate_grad_descriptor();
RL_API Tensor leaf_of_accumulator(const Node& accumulator);
// `t.grad = grad`: RuntimeError where size, dtype or device differ.
RL_API void set_grad(const Tensor& t, const Tensor& grad);
// `t.detach_()`.
RL_API void detach_in_place(const Tensor& t);
// A transform of a function differentiates by tensors on the memory of its arguments, which are
// results of nodes of their own; the arguments get gradients through these where they want them.
RL_API Tensor begin_transform(const Tensor& argument);
// While the function runs that a transform differentiates: tensors that it captures, of storages
// older than this object, are not written in place (check_inplace), but its arguments may be.
class RL_API TransformScope {
 public:
  TransformScope();
  ~TransformScope();
  TransformScope(const TransformScope&) = delete;
  TransformScope& operator=(const TransformScope&) = delete;
  void adopt_storage(const Tensor& argument) const;

 private:
  const bool transforming_before_;
  const uint32_t before_;
};
// Whether tensors depend on a leaf, or on such a node that is not among `own`.
RL_API bool depends_on_others(const std::vector<Tensor>& tensors,
                              const std::vector<Ref<Node>>& own);
// Turns an undefined or defined result into one whose backward raises `message`
// (once_differentiable).
RL_API Tensor with_backward_error(const Tensor& t, const std::string& message);

// Called with the gradient of a tensor; a defined result replaces it.
struct RL_API TensorHook {
  virtual ~TensorHook();
  virtual Tensor operator()(const Tensor& grad) = 0;
};
// Called before a node runs with the gradients of its outputs, after it with those of its inputs
// (and the former).
struct RL_API NodeHook {
  virtual ~NodeHook();
  virtual void operator()(std::vector<Tensor>& changed, const std::vector<Tensor>& other) = 0;
};
struct RL_API AccumulateHook {  // after a leaf's grad was updated
  virtual ~AccumulateHook();
  virtual void operator()(const Tensor& leaf) = 0;
};
// Return a number for remove_hook. RuntimeError where `t` needs no gradient.
RL_API size_t add_tensor_hook(const Tensor& t, std::shared_ptr<TensorHook> hook);
RL_API void remove_tensor_hook(const Tensor& t, size_t number);
RL_API void add_accumulate_hook(const Tensor& leaf, std::shared_ptr<AccumulateHook> hook);
RL_API void add_pre_hook(Node& node, std::shared_ptr<NodeHook> hook);
RL_API void add_post_hook(Node& node, std::shared_ptr<NodeHook> hook);

template <class F>
unsigned Tensor::register_hook(F hook) const {
  struct Hook : TensorHook {
    explicit Hook(F f) : function(std::move(f)) {}
    Tensor operator()(const Tensor& grad) override {
      if constexpr (std::is_void_v<decltype(function(grad))>) {
        function(grad);
        return {};
      } else {
        return function(grad);
      }
    }
    F function;
  };
  return static_cast<unsigned>(add_tensor_hook(*this, std::make_shared<Hook>(std::move(hook))));
}

// ---- running it ----

// The node whose backward runs on this thread; null outside of backward.
RL_API Node* current_node();
// A number for each backward, the innermost of this thread; 0 outside. Whether that backward will
// run a node.
RL_API uint64_t current_run();
RL_API bool will_run(const Node& node);
// Whether that backward goes to all leaves, as without `inputs`.
RL_API bool run_reaches_all_leaves();
// Called when the innermost backward of this thread has computed all its gradients. RuntimeError
// outside of backward.
struct RL_API FinalCallback {
  virtual ~FinalCallback();
  virtual void operator()() = 0;
};
RL_API void queue_callback(std::unique_ptr<FinalCallback> callback);
// Gradients of `roots` (undefined ones: ones for a scalar) are added to the leaves' .grad; with
// `inputs`, to theirs alone. Saved tensors are freed as it goes unless retain_graph. RuntimeErrors
// are PyTorch's.
RL_API void run_backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients,
                         bool retain_graph, bool create_graph,
                         const std::vector<Tensor>& inputs = {});
// The gradients of `inputs` themselves; undefined for an unused one where `allow_unused`, else
// RuntimeError.
RL_API std::vector<Tensor> run_grad(const std::vector<Tensor>& outputs,
                                    const std::vector<Tensor>& inputs,
                                    const std::vector<Tensor>& gradients, bool retain_graph,
                                    bool create_graph, bool allow_unused);
// The same by edges (GradientEdge); an undefined gradient is one for an output of one element.
RL_API std::vector<Tensor> run_edges(const std::vector<Edge>& roots,
                                     const std::vector<Tensor>& gradients,
                                     const std::vector<Edge>& inputs, bool accumulate,
                                     bool retain_graph, bool create_graph);

// libtorch's torch::autograd, to which programs may add names: it sees these.
namespace autograd_api {
using Variable = Tensor;
using variable_list = std::vector<Tensor>;
using tensor_list = variable_list;
using rushlight::AutoGradMode;
using rushlight::Edge;
using rushlight::GradMode;
using rushlight::Node;
RL_API void backward(const variable_list& tensors, const variable_list& grad_tensors = {},
                     std::optional<bool> retain_graph = {}, bool create_graph = false,
                     const variable_list& inputs = {});
RL_API variable_list grad(const variable_list& outputs, const variable_list& inputs,
                          const variable_list& grad_outputs = {},
                          std::optional<bool> retain_graph = {}, bool create_graph = false,
                          bool allow_unused = false);
}  // namespace autograd_api

// ---- anomaly mode (ThreadState::anomaly_mode): where an op was recorded, who wrote a tensor ----

// Set by the Python extension: the stack of the program as text.
RL_API void set_traceback_provider(std::string (*provider)());

}  // namespace rushlight
