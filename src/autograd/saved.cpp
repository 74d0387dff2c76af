// Tensors kept for backward: versions, outputs without their grad_fn, pack and unpack hooks.
#include "autograd/node.h"
#include "autograd/refusals.h"
#include "core/op_support.h"

namespace rushlight {
namespace {

constexpr const char* needed = "one of the variables needed for gradient computation";

std::string type_name(const Tensor& t) {
  return str("torch.", t.is_cuda() ? "cuda." : "", enum_name(t.dtype()), "Tensor");
}

// `t` apart from the graph, then made an output of `grad_fn` (or, with `as_leaf`, a leaf whose
// accumulator it is).
Tensor with_history(const Tensor& t, Ref<Node> grad_fn, uint32_t output_nr, bool as_leaf) {
  Tensor out = forward::data_of(t);
  AutogradMeta& meta = out.impl()->autograd_or_make();
  meta.grad_fn = std::move(grad_fn);
  meta.output_nr = output_nr;
  meta.requires_grad = as_leaf;
  out.impl()->set_requires_grad_flag(true);
  return out;
}

// Within it no level of forward mode is hidden.
class AllLevels {
 public:
  AllLevels() : limit_(std::exchange(tls.forward_limit, UINT64_MAX)) {}
  ~AllLevels() { tls.forward_limit = limit_; }
  AllLevels(const AllLevels&) = delete;
  AllLevels& operator=(const AllLevels&) = delete;

 private:
  uint64_t limit_;
};

// What a hook makes of a tensor. It sees all tangents, which the tensor itself would keep: those of
// the level that the op runs in are hidden from the op alone.
std::unique_ptr<PackedTensor> content_of(const Tensor& t, SavedTensorHooks& hooks) {
  const NoGradGuard no_grad;
  const AllLevels shown;
  const uint32_t before = t.impl()->version();
  auto content = hooks.pack(t);
  RL_CHECK(t.impl()->version() == before,
           "saved_tensors_hooks: the pack hook is modifying its input in place; it may read it "
           "alone. Let it return a changed copy.");
  return content;
}

}  // namespace

void SavedTensor::Packed::release() const {
  if (drop()) {
    delete this;
  }
}

SavedTensor::SavedTensor(const Tensor& t, const Node* output_of) {
  if (!t.defined()) {
    return;
  }
  TensorImpl* impl = t.impl();
  RL_CHECK(!impl->is_inference() || tls.inference_mode,
           "Inference tensors cannot be saved for backward. Make a clone of the tensor outside of "
           "inference mode and "
           "compute with that, or use torch.no_grad() instead of torch.inference_mode().");
  version_ = impl->version();
  const AutogradMeta* meta = impl->autograd();
  had_grad_fn_ = meta != nullptr && meta->grad_fn;
  is_output_ = output_of != nullptr && is_differentiable(t.dtype());
  if (is_output_) {
    output_nr_ = meta != nullptr && meta->grad_fn.get() == output_of ? meta->output_nr : 0;
    data_ = t.tensor_data();
  } else {
    data_ = t;
  }
  if (RL_UNLIKELY(tls.saved_hooks != nullptr)) {
    pack(*tls.saved_hooks);
  }
}

void SavedTensor::take_tangents(const Tensor& t) {
  if (packed_) {
    const AutogradMeta* meta = t.impl()->autograd();
    if (is_output_ && tls.saved_hooks != nullptr && meta != nullptr &&
        meta->output_nr == output_nr_) {
      packed_->content = content_of(forward::data_of(t), *tls.saved_hooks);
    }
    return;
  }
  if (is_output_ && data_.defined() && data_.storage() == t.storage() &&
      data_.storage_offset() == t.storage_offset() && data_.sizes() == t.sizes() &&
      data_.strides() == t.strides()) {
    forward::copy_tangents(t, data_);
  }
}

std::unique_ptr<PackedTensor> SavedSearch::pack(const Tensor&) { return nullptr; }

void SavedTensor::pack(SavedTensorHooks& hooks) {
  if (auto* search = dynamic_cast<SavedSearch*>(&hooks)) {
    search->tensor = data_.impl();
    if (packed_ && packed_->use_count() == 1) {
      search->packed = packed_->content.get();
      search->node = packed_->grad_fn.get();
    }
    return;
  }
  if (packed_) {
    refuse_second_hooks();
  }
  RL_CHECK(data_.defined(),
           "Calling register_hooks on a saved tensor with value None is forbidden");
  auto packed = Ref<Packed>::steal(new Packed());
  if (!is_output_ && data_.requires_grad()) {
    Edge edge = gradient_edge(data_);
    packed->grad_fn = std::move(edge.node);
    packed->is_leaf = data_.is_leaf();
    output_nr_ = edge.input_nr;
  }
  packed->content = content_of(data_, hooks);
  packed_ = std::move(packed);
  data_.reset();
}

Tensor SavedTensor::take(const Node& owner, bool detached_ok) {
  if (packed_) {
    const Ref<Packed> packed = std::move(packed_);
    Tensor t = packed->content->unpack();
    if (detached_ok) {
      return t;
    }
    if (is_output_) {
      return with_history(t, Ref<Node>(const_cast<Node*>(&owner)), output_nr_, false);
    }
    return packed->grad_fn ? with_history(t, packed->grad_fn, output_nr_, packed->is_leaf) : t;
  }
  if (!data_.defined()) {
    return Tensor();
  }
  if (RL_UNLIKELY(data_.impl()->version() != version_)) {
    check_version(owner);
  }
  if (!is_output_ && had_grad_fn_) {
    const AutogradMeta* meta = data_.impl()->autograd();
    RL_CHECK(meta != nullptr && meta->grad_fn, needed,
             " is a saved tensor that has been detached by .detach_(), and with it from what "
             "it was computed from. .detach() makes another tensor.");
  }
  if (!is_output_ || detached_ok) {
    return std::move(data_);
  }
  if (owner.extra() != nullptr && owner.extra()->within != nullptr && !is_special(data_)) {
    return view_of_written(data_, *owner.extra()->within);
  }
  return with_history(data_, Ref<Node>(const_cast<Node*>(&owner)), output_nr_, false);
}

void SavedTensor::check_version(const Node& owner) const {
  const uint32_t version = data_.impl()->version();
  std::string source;
  if (is_output_) {
    source = str(", which is output ", output_nr_, " of ", owner.name(), ",");
  } else if (const Ref<Node> grad_fn = data_.grad_fn()) {
    source = str(", which is output ", data_.output_nr(), " of ", grad_fn->name(), ",");
  }
  std::string hint =
      "Hint: enable anomaly detection to find the line that wrote it, with "
      "torch.autograd.set_detect_anomaly(True).";
  if (tls.anomaly_mode) {
    const std::unique_ptr<std::string>& last_write = data_.impl()->share_version().last_write;
    hint = last_write != nullptr
               ? "It was last written here:\n" + *last_write
               : "Hint: it was written after the operation that failed to compute its gradient.";
  }
  throw Error(str(needed, " has been modified by an inplace operation: [", type_name(data_), " ",
                  data_.sizes(), "]", source, " is at version ", version, "; expected version ",
                  version_, " instead. ", hint));
}

}  // namespace rushlight
