// What a tensor knows of autograd: whether it wants a gradient, its grad, its leaf's accumulator,
// its hooks.
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include <rushlight/batching.h>
#include <rushlight/ops.h>

#include "autograd/node.h"
#include "core/recording.h"
#include "core/small_blocks.h"
#include "core/sparse.h"

namespace rushlight {

AutogradMeta::AutogradMeta() = default;
AutogradMeta::~AutogradMeta() {
  if (retains_grad) {
    stop_retaining(*this);
  }
  if (RL_UNLIKELY(tangents != nullptr)) {
    forward::drop_tangents(*this);
  }
}
void* AutogradMeta::operator new(size_t size) { return small_allocate(size); }
void AutogradMeta::operator delete(void* p, size_t size) { small_free(p, size); }

namespace {
AutogradMeta::Hooks& hooks_of(AutogradMeta& meta) {
  if (meta.hooks == nullptr) {
    meta.hooks = std::make_unique<AutogradMeta::Hooks>();
  }
  return *meta.hooks;
}
}  // namespace

bool any_requires_grad(TensorList list) {
  for (const Tensor& t : list) {
    if (needs_grad(t)) {
      return true;
    }
  }
  return false;
}

Tensor new_like(const Tensor& like, IntArrayRef sizes, IntArrayRef strides) {
  return is_special(like) && tls.see_special
             ? like.new_empty_strided(sizes, strides)
             : make_empty_strided(sizes, strides, like.dtype(), like.device());
}

bool lacks_batch(const Tensor& t, const Tensor& other) {
  for (Tensor o = other; batching::level_of(o) != 0; o = Tensor(batching::value_of(o))) {
    if (!batching::has_batch(t, batching::level_of(o))) {
      return true;
    }
  }
  return false;
}

Tensor number_with_batches(const Tensor& like, const Tensor& other) {
  return like.new_zeros({}) + other.new_zeros({}, TensorOptions().dtype(like.dtype()));
}

// ---- accumulating into a leaf ----

namespace {

// A leaf's grad has the leaf's strides where these are dense, else it is contiguous.
// (`.data` may have given the leaf other sizes since.)
bool has_layout_of_leaf(const Tensor& grad, const Tensor& leaf) {
  if (!(grad.sizes() == leaf.sizes())) {
    return false;
  }
  if (!leaf.impl()->is_non_overlapping_and_dense()) {
    return grad.is_contiguous();
  }
  for (int64_t d = 0; d < leaf.dim(); d++) {
    if (leaf.sizes()[d] != 1 && leaf.strides()[d] != grad.strides()[d]) {
      return false;
    }
  }
  return true;
}

Tensor copy_in_form_of(const Tensor& grad, const Tensor& leaf) {
  const bool dense = leaf.impl()->is_non_overlapping_and_dense();
  const DimVector strides = dense ? DimVector(leaf.strides()) : contiguous_strides(leaf.sizes());
  const Tensor copy =  // what is recorded is made by an op
      is_recording() ? empty_strided(leaf.sizes(), strides, grad.options())
                     : new_like(grad, leaf.sizes(), strides);
  copy.copy_(grad);
  return copy;
}

// The engine's reference, which is about to be dropped, is the only one; a view may have a root
// that only it holds.
bool is_sole_owner(const Tensor& grad) {
  const bool owns_root = grad.is_view() && grad.impl()->view().root->use_count() == 1;
  return grad.use_count() == 1 && grad.storage()->use_count() == (owns_root ? 2 : 1);
}

// Whether a program may write to the values of a sparse gradient: those that backward expands stand
// for several elements each.
bool has_values_of_its_own(const Tensor& grad) {
  const SparseTensor* sparse = find_sparse(grad);
  return sparse == nullptr || sparse->values().is_contiguous();
}

// Of a sparse leaf, or of a dense one whose gradient is sparse: dense ones take sparse ones, not
// the other way round.
void add_sparse_to_grad(AutogradMeta& meta, const Tensor& grad) {
  if (!meta.grad.defined()) {
    const bool take = !tls.grad_mode && grad.use_count() == 1 && has_values_of_its_own(grad);
    meta.grad = take ? grad.detach() : grad.clone();
  } else if (!tls.grad_mode && (!is_sparse(meta.grad) || is_sparse(grad))) {
    const Tensor before = meta.grad;
    before.add_(grad);
  } else {
    meta.grad = is_sparse(meta.grad) ? add(grad, meta.grad) : add(meta.grad, grad);
  }
}

// A mode may see the ops below and run a backward to the same leaf meanwhile; what that has added
// must stay.
void add_to_grad(const Tensor& leaf, const Tensor& grad) {
  AutogradMeta& meta = leaf.impl()->autograd_or_make();
  if (RL_UNLIKELY(any_sparse(leaf, grad) || (meta.grad.defined() && is_sparse(meta.grad)))) {
    add_sparse_to_grad(meta, grad);
    return;
  }
  if (!meta.grad.defined()) {
    const bool take = !tls.grad_mode && is_sole_owner(grad) && has_layout_of_leaf(grad, leaf);
    Tensor first = !take                                    ? copy_in_form_of(grad, leaf)
                   : grad.is_view() || grad.requires_grad() ? grad.variable_data()
                                                            : grad;
    if (!meta.grad.defined()) {
      meta.grad = std::move(first);
      return;
    }
  }
  const Tensor before = meta.grad;
  if (!tls.grad_mode) {
    before.add_(grad);
    return;
  }
  const uint32_t version = before.impl()->version();
  Tensor sum = add(before, grad);
  if (!meta.grad.is_same(before) || before.impl()->version() != version) {
    const WithoutModes without;
    sum = add(meta.grad, grad);
  }
  meta.grad = std::move(sum);
}

// Different leaves take gradients at the same time, one leaf (and those with the same hash) takes
// them one after the other: one thread adds, others wait. No lock is held while ops run, for a mode
// may see them and run a backward of its own. In such a backward the thread goes straight on where
// it is the one that adds; where another is, it does not wait, as that one may be waiting for it,
// but leaves its gradient there.
class AccumulationQueue {
 public:
  struct Left {
    Tensor leaf;
    Tensor grad;
    bool grad_mode;
  };

  static AccumulationQueue& of(const TensorImpl* leaf) {
    static auto* const queues = new AccumulationQueue[64];  // never destroyed: threads may wait
    return queues[(reinterpret_cast<uintptr_t>(leaf) >> 6) % 64];
  }
  enum class Turn : uint8_t { Mine, MineAlready, Left };
  Turn enter(const void* who, const Tensor& leaf, const Tensor& grad) {
    std::unique_lock lock(mutex_);
    if (who_ == who) {
      return Turn::MineAlready;
    }
    if (who_ != nullptr && tls.accumulating != nullptr) {
      left_.push_back({leaf, grad, tls.grad_mode});
      return Turn::Left;
    }
    free_.wait(lock, [&] { return who_ == nullptr; });
    who_ = who;
    return Turn::Mine;
  }
  // What others have left; with nothing left, the next may enter.
  std::vector<Left> take_left() {
    const std::lock_guard lock(mutex_);
    if (left_.empty()) {
      who_ = nullptr;
      free_.notify_one();
    }
    return std::exchange(left_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable free_;
  const void* who_ = nullptr;  // adds now
  std::vector<Left> left_;
};

void run_accumulate_hooks(const Tensor& leaf) {
  const AutogradMeta* meta = leaf.impl()->autograd();
  if (meta->hooks != nullptr) {
    const auto hooks = meta->hooks->accumulate_hooks;
    for (const auto& hook : hooks) {
      (*hook)(leaf);
    }
  }
}

void accumulate(const Tensor& leaf, const Tensor& grad) {
  using Turn = AccumulationQueue::Turn;
  AccumulationQueue& queue = AccumulationQueue::of(leaf.impl());
  const void* const before = tls.accumulating;
  const void* const who = before != nullptr ? before : &tls;
  const Turn turn = queue.enter(who, leaf, grad);
  if (turn == Turn::Left) {
    return;
  }
  std::exception_ptr error;
  const auto add = [&](const Tensor& to, const Tensor& what) {
    try {
      add_to_grad(to, what);
    } catch (...) {
      error = std::current_exception();
    }
  };
  std::vector<Tensor> others;
  tls.accumulating = who;
  add(leaf, grad);
  if (turn == Turn::Mine) {
    for (auto left = queue.take_left(); !left.empty(); left = queue.take_left()) {
      const WithoutModes without;  // which belong to this thread
      for (const AccumulationQueue::Left& other : left) {
        const GradMode mode(other.grad_mode);
        add(other.leaf, other.grad);
        others.push_back(other.leaf);
      }
    }
  }
  tls.accumulating = before;
  if (error != nullptr) {
    std::rethrow_exception(error);
  }
  run_accumulate_hooks(leaf);
  for (const Tensor& other : others) {
    run_accumulate_hooks(other);
  }
}

void accumulate_grad_backward(Node& node, const Tensor* grads, Tensor*) {
  const Tensor leaf = leaf_of_accumulator(node);
  if (grads[0].defined() && leaf.requires_grad()) {
    accumulate(leaf, grads[0]);
  }
}

constexpr NodeDescriptor accumulate_descriptor = {
    "torch::autograd::AccumulateGrad", accumulate_grad_backward, true, nullptr, "variable"};

}  // namespace

const NodeDescriptor& accumulate_grad_descriptor() { return accumulate_descriptor; }

Tensor leaf_of_accumulator(const Node& accumulator) { return accumulator.value(0).get<Tensor>(); }

Ref<Node> accumulator_of(const Tensor& leaf) {
  AutogradMeta& meta = leaf.impl()->autograd_or_make();
  {
    const SpinGuard guard(spin_lock_of(&meta));
    if (meta.accumulator != nullptr && meta.accumulator->try_retain()) {
      return Ref<Node>::steal(meta.accumulator);
    }
  }
  auto made = Ref<Node>::steal(new Node(&accumulate_descriptor));
  made->set_sequence(UINT64_MAX);  // as soon as it is ready: frees the gradient
  made->keep(leaf);
  made->add_output(leaf);
  const SpinGuard guard(spin_lock_of(&meta));
  if (meta.accumulator != nullptr && meta.accumulator->try_retain()) {  // another thread was faster
    return Ref<Node>::steal(meta.accumulator);
  }
  meta.accumulator = made.get();
  return made;
}

void forget_accumulator(const Node& accumulator) {
  AutogradMeta* meta = leaf_of_accumulator(accumulator).impl()->autograd();
  const SpinGuard guard(spin_lock_of(meta));
  if (meta->accumulator == &accumulator) {
    meta->accumulator = nullptr;
  }
}

Edge gradient_edge(const Tensor& t) {
  if (!t.defined() || !t.requires_grad()) {
    return {};
  }
  AutogradMeta& meta = t.impl()->autograd_or_make();
  if (meta.requires_grad && meta.grad_fn) {  // an unpacked leaf
    return {meta.grad_fn, 0};
  }
  if (Ref<Node> grad_fn = current_grad_fn(t)) {
    return {std::move(grad_fn), meta.output_nr};
  }
  return {accumulator_of(t), 0};
}

// ---- history of results ----

void set_history(const Tensor& out, const Ref<Node>& node) {
  const uint32_t number = node->add_output(out);
  if (!out.defined() || !is_differentiable(out.dtype())) {
    return;
  }
  AutogradMeta& meta = out.impl()->autograd_or_make();
  meta.grad_fn = node;
  meta.output_nr = number;
  out.impl()->set_requires_grad_flag(true);
}

void clear_history(const Tensor& out, const Ref<Node>& node) { node->add_output(out); }

namespace {
void error_backward(Node& node, const Tensor*, Tensor*) {
  throw Error(node.value(0).get<std::string>());
}
constexpr NodeDescriptor error_descriptor = {"Error", error_backward, true};
}  // namespace

Tensor with_backward_error(const Tensor& t, const std::string& message) {
  Tensor out = t.tensor_data();
  if (is_differentiable(t.dtype())) {
    auto node = Ref<Node>::steal(new Node(&error_descriptor));
    node->keep(message);
    node->add_edge(t);
    set_history(out, node);
  }
  return out;
}

// ---- Tensor ----

bool Tensor::is_leaf() const {
  const AutogradMeta* meta = checked_impl().autograd();
  return (meta != nullptr && meta->requires_grad) || !current_grad_fn(*this);
}

Ref<Node> Tensor::grad_fn() const {
  checked_impl();  // raises where it is undefined
  return current_grad_fn(*this);
}

int64_t Tensor::output_nr() const {
  grad_fn();
  return checked_impl().autograd() == nullptr ? 0 : checked_impl().autograd()->output_nr;
}

const Tensor& Tensor::requires_grad_(bool requires_grad) const {
  RL_CHECK(is_leaf() || requires_grad,
           "you can only change requires_grad flags of leaf variables: this one, of shape ",
           sizes(), ", was computed. detach() gives a tensor without history");
  RL_CHECK(!requires_grad || is_differentiable(dtype()),
           "only Tensors of floating point dtype can require gradients");
  if (requires_grad == this->requires_grad() || !is_leaf()) {
    return *this;
  }
  RL_CHECK(!requires_grad || !checked_impl().is_inference() || tls.inference_mode,
           "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  AutogradMeta& meta = checked_impl().autograd_or_make();
  meta.requires_grad = requires_grad;
  checked_impl().set_requires_grad_flag(requires_grad);
  if (const int64_t level = batching::current_level(); requires_grad && level != 0) {
    hooks_of(meta).leaf_since = static_cast<uint64_t>(level);
  }
  return *this;
}

const Tensor& Tensor::grad() const {
  static const Tensor& none = *new Tensor;
  const AutogradMeta* meta = checked_impl().autograd();
  if (meta == nullptr) {
    return none;
  }
  if (!meta->grad.defined() && !meta->retains_grad && !meta->requires_grad &&
      checked_impl().requires_grad() && !is_leaf()) {
    warn(
        "The .grad attribute of a Tensor is read that backward does not fill: a Tensor that is not "
        "a leaf Tensor is being accessed. Call .retain_grad() on it before backward, or read the "
        ".grad of the leaf.");
  }
  return meta->grad;
}

Tensor& Tensor::mutable_grad() const { return checked_impl().autograd_or_make().grad; }

void set_grad(const Tensor& t, const Tensor& grad) {
  if (grad.defined()) {
    RL_CHECK(!grad.is_same(t), "can't assign Variable as its own grad");
    RL_CHECK(grad.device().type() == t.device().type(),
             "attempting to assign a gradient with device type '", grad.device(),
             "' to a tensor with device type '", t.device(), "'. They must be on the same device");
    RL_CHECK(grad.dtype() == t.dtype(), "attempting to assign a gradient with dtype '",
             grad.dtype(), "' to a tensor with dtype '", t.dtype(), "'. The dtypes must match");
    RL_CHECK(grad.sizes() == t.sizes(), "attempting to assign a gradient of size '", grad.sizes(),
             "' to a tensor of size '", t.sizes(), "'. The sizes must match");
  } else if (t.impl()->autograd() == nullptr) {
    return;
  }
  t.mutable_grad() = grad;
}

void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph,
                      const std::vector<Tensor>& inputs) const {
  run_backward({*this}, {gradient}, retain_graph.value_or(create_graph), create_graph, inputs);
}

namespace {
bool has_memory(const TensorImpl& t) {
  if (t.special() != nullptr) {
    try {
      t.special()->check_has_memory();
    } catch (const Error&) {
      return false;
    }
  }
  return true;
}
}  // namespace

void Tensor::set_data(const Tensor& other) const {
  TensorImpl& self = checked_impl();
  RL_CHECK(!self.requires_grad() || is_differentiable(other.dtype()),
           "set_data: a tensor requires grad, so its data must be floating point or complex, not "
           "torch.",
           other.dtype());
  RL_CHECK(!is_view() || other.dtype() == dtype(),
           "the data of a view cannot be replaced by data of another dtype");
  RL_CHECK((self.special() == nullptr) == (other.checked_impl().special() == nullptr) &&
               layout_of(*this) == layout_of(other) &&
               (!has_memory(self) || has_memory(other.checked_impl())),
           "set_data: the tensor and its new data have incompatible tensor type: layouts differ, "
           "or one of them is a wrapper, or without memory");
  if (const SparseTensor* from = find_sparse(other)) {
    self.set_special(std::make_unique<SparseTensor>(*from));
  }
  if (const AutogradMeta* meta = self.autograd()) {
    const SpinGuard guard(spin_lock_of(meta));
    // Gradients of the old form must not reach the new one by a graph recorded before.
    if (other.dtype() != dtype() || other.device() != device()) {
      self.autograd()->accumulator = nullptr;
    }
  }
  self.set_storage(other.storage());
  self.set_dtype(other.dtype());
  self.set_device(other.device());
  self.set_storage_offset(other.storage_offset());
  self.set_sizes_and_strides(other.sizes(), other.strides());
}

void detach_in_place(const Tensor& t) {
  if (t.is_view() && t.numel() == t.impl()->view().root->numel()) {  // a copy in another shape
    become_own_root_if_alone(t.impl());
  }
  RL_CHECK(!t.is_view(), "Can't detach views in-place. Use detach() instead.");
  AutogradMeta* meta = t.impl()->autograd();
  if (meta == nullptr) {
    return;
  }
  if (meta->retains_grad) {
    stop_retaining(*meta);
    meta->retains_grad = false;
  }
  meta->grad_fn.reset();
  meta->output_nr = 0;
  meta->requires_grad = false;
  t.impl()->set_requires_grad_flag(false);
  if (meta->tangents != nullptr) {
    forward::drop_tangents(*meta);
  }
}

// ---- retain_grad and hooks ----

void Tensor::retain_grad() const {
  RL_CHECK(requires_grad(), "can't retain_grad on Tensor that has requires_grad=False");
  AutogradMeta& meta = checked_impl().autograd_or_make();
  if (is_leaf() || meta.retains_grad) {
    return;
  }
  meta.retains_grad = true;
  retain_grad_of_output(*this, *current_grad_fn(*this), meta.output_nr);
}

bool Tensor::retains_grad() const {
  const AutogradMeta* meta = checked_impl().autograd();
  return meta != nullptr && meta->retains_grad && !is_leaf();
}

void retain_grad_of_output(const Tensor& t, Node& grad_fn, uint32_t output_nr) {
  AutogradMeta& meta = *t.impl()->autograd();
  stop_retaining(meta);
  const SpinGuard guard(spin_lock_of(&grad_fn));
  grad_fn.extra_or_make().retained.push_back({output_nr, t.impl(), &meta});
  hooks_of(meta).retained_by = Ref<Node>(&grad_fn);
}

void stop_retaining(AutogradMeta& meta) {
  if (meta.hooks == nullptr || !meta.hooks->retained_by) {
    return;
  }
  const Ref<Node> node = std::move(meta.hooks->retained_by);
  const SpinGuard guard(spin_lock_of(node.get()));
  std::erase_if(node->extra()->retained,
                [&](const Node::Extra::Retained& r) { return r.meta == &meta; });
}

size_t add_tensor_hook(const Tensor& t, std::shared_ptr<TensorHook> hook) {
  RL_CHECK(t.requires_grad(), "cannot register a hook on a tensor that doesn't require gradient");
  AutogradMeta& meta = t.impl()->autograd_or_make();
  if (const Ref<Node> grad_fn = t.grad_fn()) {
    auto& hooks = grad_fn->extra_or_make().output_hooks;
    hooks.push_back({meta.output_nr, std::move(hook)});
    return hooks.size() - 1;
  }
  hooks_of(meta).tensor_hooks.push_back(std::move(hook));
  return meta.hooks->tensor_hooks.size() - 1;
}

void Tensor::remove_hook(unsigned number) const { remove_tensor_hook(*this, number); }

void remove_tensor_hook(const Tensor& t, size_t number) {
  if (const Ref<Node> grad_fn = t.grad_fn()) {
    if (grad_fn->extra() != nullptr && number < grad_fn->extra()->output_hooks.size()) {
      grad_fn->extra()->output_hooks[number].hook.reset();
    }
  } else if (const AutogradMeta* meta = t.impl()->autograd();
             meta != nullptr && meta->hooks != nullptr &&
             number < meta->hooks->tensor_hooks.size()) {
    meta->hooks->tensor_hooks[number].reset();
  }
}

void add_accumulate_hook(const Tensor& leaf, std::shared_ptr<AccumulateHook> hook) {
  RL_CHECK(leaf.requires_grad(),
           "cannot register a hook on a tensor that doesn't require gradient");
  RL_CHECK(leaf.is_leaf(), "post accumulate grad hooks cannot be registered on non-leaf tensors");
  hooks_of(leaf.impl()->autograd_or_make()).accumulate_hooks.push_back(std::move(hook));
}

}  // namespace rushlight
