// The graph: nodes, edges, saved tensors and what a tensor knows of them. The engine walks it (src/autograd/engine.cpp).
// A recorded op is one Node whose constant descriptor says its name and backward function; nothing but custom
// functions derives from Node.
#pragma once

#include <memory>
#include <vector>

#include <rushlight/tensor.h>
#include <rushlight/value.h>

namespace rushlight {

class Node;

struct Edge {
  Ref<Node> node;
  uint32_t input_nr = 0;
};

// Backward of an op: grads holds one gradient per output (undefined where none came), already made defined zeros when
// the descriptor says so; it fills result, one per edge, leaving undefined what node.wants(i) denies or what is zero.
// The engine then sums each to its input's size and casts it to its input's dtype (real part for real inputs).
using BackwardFunction = void (*)(Node& node, const Tensor* grads, Tensor* result);

struct NodeDescriptor {
  const char* name;  // PyTorch's: "MulBackward0"
  BackwardFunction backward;
  bool undefined_grads;  // backward accepts undefined gradients (otherwise zeros are filled in)
};

// A tensor kept for backward. Remembers its version; unpacking one that was written since raises. A node's own
// output is kept without its grad_fn (no cycle) and gets it back when unpacked.
class RL_API SavedTensor {
 public:
  SavedTensor() = default;
  // `output_of`: the node being recorded when `t` is one of its outputs.
  SavedTensor(const Tensor& t, const Node* output_of = nullptr);
  bool defined() const;
  Tensor unpack(const Node& owner) const;
  void reset();
  // Hooks (pack/unpack) live in the autograd meta; see src/autograd/saved.cpp.

 private:
  Tensor data_;
  Ref<Node> grad_fn_;  // of an input; outputs restore theirs from the owner
  uint32_t output_nr_ = 0;
  uint32_t version_ = 0;
  bool is_output_ = false;
  bool is_leaf_ = false;
  struct Packed;  // result of a pack hook
  std::shared_ptr<Packed> packed_;
};

// Size, dtype and device of a node's output, to check and reduce the gradients that arrive for it.
struct OutputInfo {
  DimVector sizes;
  ScalarType dtype = ScalarType::Undefined;
  Device device;
};

class RL_API Node : public RefCounted {
 public:
  explicit Node(const NodeDescriptor* descriptor);
  virtual ~Node();
  void release() const;  // destroys long chains without recursion
  // Custom functions override these two; ops go through the descriptor.
  virtual void apply(const Tensor* grads, Tensor* result);
  virtual const char* name() const { return descriptor_->name; }
  virtual void release_saved();  // frees saved tensors after backward; later unpacking raises

  const NodeDescriptor& descriptor() const { return *descriptor_; }
  uint64_t sequence() const { return sequence_; }
  std::vector<Edge>& edges() { return edges_; }
  const std::vector<Edge>& edges() const { return edges_; }
  bool wants(size_t i) const { return i < edges_.size() && static_cast<bool>(edges_[i].node); }
  size_t num_outputs() const { return outputs_.size(); }
  const OutputInfo& output_info(size_t i) const { return outputs_[i]; }
  bool wants_any(size_t first, size_t n) const {
    for (size_t i = first; i < first + n; i++) {
      if (wants(i)) {
        return true;
      }
    }
    return false;
  }
  void add_edge(const Tensor& input);          // gradient edge of an input (empty where it needs none)
  uint32_t add_output(const Tensor& output);   // registers an output, returns its number

  // Filled by generated code in the order that the op's backward reads them.
  void save(const Tensor& t, const Node* output_of = nullptr) { saved_.emplace_back(t, output_of); }
  void save_list(TensorList list);
  // A result's place is reserved when the node is built and filled once the op has run.
  void reserve_saved() { saved_.emplace_back(); }
  void fill_saved(size_t i, const Tensor& output) { saved_[i] = SavedTensor(output, this); }
  void keep(Value v) { values_.push_back(std::move(v)); }
  Tensor saved(size_t i) const;                // RuntimeError after release ("backward through the graph a second time")
  std::vector<Tensor> saved_list(size_t first, size_t n) const;
  const Value& value(size_t i) const { return values_[i]; }
  bool released() const { return released_; }
  std::vector<SavedTensor>& saved_tensors() { return saved_; }

  struct Hooks;  // pre, post and tensor hooks, anomaly data, Python object: src/autograd/node.h
  Hooks* hooks() const { return hooks_.get(); }
  Hooks& hooks_or_make();

 private:
  const NodeDescriptor* descriptor_;
  uint64_t sequence_;
  std::vector<Edge> edges_;
  std::vector<OutputInfo> outputs_;
  std::vector<SavedTensor> saved_;
  std::vector<Value> values_;
  bool released_ = false;
  std::unique_ptr<Hooks> hooks_;
};

enum class ViewKind : uint8_t { Normal, MultiOutput, NoGrad, Custom };

// A view's root and how to take it again. `replay` is null where as_strided of the root does it.
struct ViewInfo {
  Tensor root;  // never itself a differentiable view
  ViewKind kind = ViewKind::Normal;
  uint32_t grad_fn_version = 0;  // version at which the view's grad_fn was made; a stale one is regenerated
  Tensor (*replay)(const Tensor& root, const Tensor& view) = nullptr;
};

struct AutogradMeta {
  Tensor grad;
  Ref<Node> grad_fn;
  uint32_t output_nr = 0;
  bool requires_grad = false;  // of a leaf
  bool retains_grad = false;
  Node* accumulator = nullptr;  // weak: one AccumulateGrad per leaf
  std::unique_ptr<ViewInfo> view;
  struct Hooks;
  std::shared_ptr<Hooks> hooks;  // tensor hooks: src/autograd/hooks.h
  std::string name;
};

// ---- what generated ops call ----

RL_API bool any_requires_grad(TensorList list);
inline bool grad_wanted(const Tensor& t) { return t.defined() && t.requires_grad(); }

// After an op: `out` becomes the node's next output and gets it as grad_fn, unless its dtype has no gradients.
RL_API void set_history(const Tensor& out, const Ref<Node>& node);
// The next output of a node that is not differentiable (indices): only takes its number.
RL_API void set_no_history(const Tensor& out, const Ref<Node>& node);
// Before an in-place op: raises for leaves that require grad, views made in no_grad, multi-output views,
// inference tensors. `needs_grad`: whether the op will be recorded.
RL_API void check_inplace(const char* op, const Tensor& self, bool needs_grad);
// After an in-place op: new history; on a view the root's history is rewritten (CopySlices).
RL_API void rebase_history(const Tensor& self, const Ref<Node>& node);
// After a view op: `view` shares version and storage with `base`.
RL_API void record_view(const Tensor& view, const Tensor& base, ViewKind kind, const Ref<Node>& node,
                        Tensor (*replay)(const Tensor&, const Tensor&) = nullptr);
// out= where a gradient is wanted: RuntimeError.
RL_API void check_out_grad(const char* op, bool needs_grad);

// ---- running it ----

using Variables = std::vector<Tensor>;
RL_API void run_backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients, bool retain_graph,
                         bool create_graph);
RL_API std::vector<Tensor> run_grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                                    const std::vector<Tensor>& gradients, bool retain_graph, bool create_graph,
                                    bool allow_unused);

}  // namespace rushlight
