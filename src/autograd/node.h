// What src/autograd and the Python extension know of nodes beyond the public header: hooks, anomaly
// data, locks.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rushlight/forward.h>
#include <rushlight/stream.h>

namespace rushlight {

// What few nodes have. Written by the thread that records or hooks; read by the engine.
struct Node::Extra {
  struct OutputHook {
    uint32_t output_nr;
    std::shared_ptr<TensorHook> hook;  // null once removed
  };
  struct Retained {  // a tensor that wants its gradient kept; it takes itself off the list when it
                     // dies
    uint32_t output_nr;
    TensorImpl* tensor;
    AutogradMeta* meta;
  };
  std::vector<OutputHook> output_hooks;
  std::vector<Retained> retained;
  std::vector<std::shared_ptr<NodeHook>> pre_hooks;
  std::vector<std::shared_ptr<NodeHook>> post_hooks;
  std::shared_ptr<Node> owner;  // of a node that a shared_ptr owns, while the graph refers to it
  Ref<Node> wrapped;            // CopySlices: the in-place op …
  Node* within = nullptr;       // … which knows the CopySlices that it is in, while that lives
  Stream stream;                // of the forward, where it was not the device's first
  std::string traceback;        // anomaly mode: where the op was recorded …
  Ref<Node> parent;             // … and the node whose backward recorded it
  void* python = nullptr;       // the Python object of this node, not owned
  void* metadata = nullptr;     // its metadata dict, owned
  void (*drop_metadata)(void*) = nullptr;
  ~Extra();
};

struct AutogradMeta::Hooks {
  std::vector<std::shared_ptr<TensorHook>> tensor_hooks;  // null once removed
  std::vector<std::shared_ptr<AccumulateHook>> accumulate_hooks;
  Ref<Node> retained_by;    // the node that fills in the grad of a tensor that retains it
  uint64_t leaf_since = 0;  // the level of vmap within which the tensor became a leaf, 0: none
};

// Given to SavedTensor::pack, packs nothing, but finds what the saved tensor refers to: the tensor
// itself, or what a hook made of it and the node that it came from. All null where others hold
// these, too.
struct RL_API SavedSearch final : SavedTensorHooks {
  TensorImpl* tensor = nullptr;
  PackedTensor* packed = nullptr;
  Node* node = nullptr;
  std::unique_ptr<PackedTensor> pack(const Tensor& t) override;
};

// A lock for a few instructions. Waiters yield, so that a preempted owner gets on.
class SpinGuard {
 public:
  explicit SpinGuard(std::atomic<bool>& flag) : flag_(flag) {
    while (flag_.exchange(true, std::memory_order_acquire)) {
      std::this_thread::yield();
    }
  }
  ~SpinGuard() { flag_.store(false, std::memory_order_release); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  std::atomic<bool>& flag_;
};

// Locks shared by all tensors and nodes, chosen by address: for accumulators, retained gradients,
// stale views.
std::atomic<bool>& spin_lock_of(const void* object);

// The accumulator of a leaf, made on first use; there is never more than one alive.
Ref<Node> accumulator_of(const Tensor& leaf);
// A dying accumulator takes itself out of its leaf.
void forget_accumulator(const Node& accumulator);
// A tensor that retains its gradient and dies, or gets another grad_fn.
RL_API void stop_retaining(AutogradMeta& meta);
void retain_grad_of_output(const Tensor& t, Node& grad_fn, uint32_t output_nr);

// The grad_fn of a view whose root was written since; also sets its output number.
Ref<Node> current_grad_fn(const Tensor& t);

// A strided window of a root, of its dtype or, between real and complex, of its parts.
Tensor take_window(const Tensor& root, ScalarType dtype, IntArrayRef sizes, IntArrayRef strides,
                   int64_t offset);

// Uninitialised, with the dtype and on the device of `like`: a special tensor makes its like.
Tensor new_like(const Tensor& like, IntArrayRef sizes, IntArrayRef strides);
// Whether `t` lacks a batch of vmap that `other` has; and a number with the batches of both, for
// new_like.
bool lacks_batch(const Tensor& t, const Tensor& other);
Tensor number_with_batches(const Tensor& like, const Tensor& other);

// Raises where a view of its kind may not be written (`itself`), or its root or another view was.
void check_view_kind(const Tensor& view, bool itself);
// A view that nobody else will know to be one is a tensor of its own from here on.
RL_API void become_own_root(TensorImpl* view);

// The same where its root was made on the way to it, as the product of matrices behind a product of
// batches, and nobody else has that: then the view is all there is.
RL_API void become_own_root_if_alone(TensorImpl* view);
// A result that is no view, whatever it was made by.
inline Tensor own(Tensor t) {
  if (RL_UNLIKELY(t.impl()->is_view())) {
    become_own_root_if_alone(t.impl());
  }
  return t;
}

// Asked of a node without backward function of its descriptor that the graph has dropped: whether
// its Python object, which others hold, owns it from now on.
RL_API extern bool (*stays_in_python)(const Node&);

// Turns the modes off for a scope.
class WithoutModes {
 public:
  WithoutModes() : upper_(tls.exchange_upper(nullptr)), lower_(tls.exchange_lower(nullptr)) {}
  ~WithoutModes() {
    tls.exchange_upper(upper_);
    tls.exchange_lower(lower_);
  }
  WithoutModes(const WithoutModes&) = delete;
  WithoutModes& operator=(const WithoutModes&) = delete;

 private:
  Mode* upper_;
  Mode* lower_;
};

// The output of an in-place op on a view, as it is after the write: a view of the root, the result
// of `slices`. `data` is the same memory without history.
Tensor view_of_written(const Tensor& data, Node& slices);

namespace forward {
void drop_tangents(AutogradMeta& meta);
}  // namespace forward

// Anomaly mode: the program's stack as text, empty without a provider; where a tensor was last
// written.
std::string current_traceback();
void note_write(const Tensor& t);

}  // namespace rushlight
