// Views: their root, and the grad_fn of one whose root (or whose sibling) was written after it was
// made.
#include <rushlight/ops.h>

#include "autograd/node.h"

namespace rushlight {

namespace {

// What holds for a view of a view: the stricter of the two kinds.
ViewKind kind_of_view(ViewKind of_base, ViewKind own) {
  if (own != ViewKind::Custom && tls.inference_mode) {
    own = ViewKind::Inference;
  } else if (own != ViewKind::Custom && !tls.grad_mode) {
    own = ViewKind::NoGrad;
  }
  return own == ViewKind::Normal ? of_base : own;
}

}  // namespace

Tensor take_window(const Tensor& root, ScalarType dtype, IntArrayRef sizes, IntArrayRef strides,
                   int64_t offset) {
  if (root.dtype() == dtype) {
    return as_strided(root, sizes, strides, offset);
  }
  if (root.is_complex()) {
    return as_strided(view_as_real(root), sizes, strides, offset);
  }
  DimVector real_sizes(sizes);
  DimVector real_strides(strides);
  for (int64_t& s : real_strides) {
    s *= 2;
  }
  real_sizes.push_back(2);
  real_strides.push_back(1);
  return view_as_complex(as_strided(root, real_sizes, real_strides, 2 * offset));
}

void record_view(const Tensor& view, const Tensor& base, ViewKind kind, const Ref<Node>& node,
                 Tensor (*replay)(const Tensor&, const Tensor&)) {
  TensorImpl* impl = view.impl();
  if (base.impl()->is_inference()) {  // neither versions nor views are followed
    impl->set_inference(true);
    return;
  }
  impl->set_inference(false);
  if (view.dtype() != base.dtype() && to_real(view.dtype()) != to_real(base.dtype())) {
    // The same bits with another meaning: writes are counted, gradients do not pass.
    impl->set_version_cell(base.impl()->share_version());
    return;
  }
  const ViewInfo& of_base = base.impl()->view();
  TensorImpl* const root = of_base.root ? of_base.root.get() : base.impl();
  // A class or a mode that handles the op may give back what is there already: the base itself, or
  // what that is a view of.
  for (const TensorImpl* r = root; r != nullptr; r = r->view().root.get()) {
    if (r == impl) {
      return;
    }
  }
  impl->view() = {Ref<TensorImpl>(root), replay != nullptr ? replay : of_base.replay,
                  root->version(), kind_of_view(of_base.kind, kind)};
  const AutogradMeta* dual = forward::active() ? base.impl()->autograd() : nullptr;
  if (dual != nullptr && (dual->is_dual || dual->dual)) {
    impl->autograd_or_make().dual = dual->is_dual ? base.ref() : dual->dual;
  }
  if (node) {
    set_history(view, node);
  } else {
    impl->set_late_view(is_differentiable(view.dtype()));
  }
}

bool Tensor::is_view() const { return checked_impl().is_view(); }
Tensor Tensor::_base() const { return Tensor(checked_impl().view().root); }

Ref<Node> current_grad_fn(const Tensor& t) {
  TensorImpl* impl = t.impl();
  const AutogradMeta* known = impl->autograd();
  if (RL_LIKELY(!impl->is_view()) || (known != nullptr && known->requires_grad)) {
    return known == nullptr || known->requires_grad ? Ref<Node>() : known->grad_fn;
  }
  ViewInfo& view = impl->view();
  const uint32_t version = impl->version();
  {
    const SpinGuard guard(spin_lock_of(impl));
    if (view.grad_fn_version == version || !impl->requires_grad()) {
      const AutogradMeta* meta = impl->autograd();
      return meta == nullptr ? Ref<Node>() : meta->grad_fn;
    }
  }
  check_view_kind(t, /*itself=*/false);
  // The view taken again from its root as that is now. A root without a history has none to give:
  // the view is one of a leaf that is itself a view, and was written to beside the graph.
  Ref<Node> grad_fn;
  uint32_t output_nr = 0;
  if (!view.root->requires_grad()) {
    const SpinGuard guard(spin_lock_of(impl));
    view.grad_fn_version = version;
    const AutogradMeta* meta = impl->autograd();
    return meta == nullptr ? Ref<Node>() : meta->grad_fn;
  }
  {
    const GradMode recording(true);
    const WithoutModes without;
    const Tensor root(view.root);
    const Tensor again = view.replay != nullptr ? view.replay(root, t)
                                                : take_window(root, t.dtype(), t.sizes(),
                                                              t.strides(), t.storage_offset());
    AutogradMeta* fresh = again.impl()->autograd();
    if (fresh != nullptr) {
      grad_fn = fresh->grad_fn;
      output_nr = fresh->output_nr;
    }
  }
  AutogradMeta& meta = impl->autograd_or_make();
  const SpinGuard guard(spin_lock_of(impl));
  if (view.grad_fn_version != version) {
    std::swap(meta.grad_fn, grad_fn);  // the old one must not die under the lock
    meta.output_nr = output_nr;
    view.grad_fn_version = version;
    impl->set_requires_grad_flag(static_cast<bool>(meta.grad_fn));
  }
  return meta.grad_fn;
}

}  // namespace rushlight
