// Views: their root, and the grad_fn of one whose root (or whose sibling) was written after it was
// made.
#include <rushlight/ops.h>

#include "autograd/node.h"
#include "core/small_blocks.h"

namespace rushlight {

void* ViewInfo::operator new(size_t size) { return small_allocate(size); }
void ViewInfo::operator delete(void* p, size_t size) { small_free(p, size); }

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
  impl->set_version_cell(base.impl()->share_version());
  if (to_real(view.dtype()) != to_real(base.dtype())) {
    return;  // the same bits with another meaning: gradients do not pass
  }
  const AutogradMeta* base_meta = base.impl()->autograd();
  const ViewInfo* base_view = base_meta != nullptr ? base_meta->view.get() : nullptr;
  AutogradMeta& meta = impl->autograd_or_make();
  meta.view = std::make_unique<ViewInfo>();
  ViewInfo& info = *meta.view;
  info.root = base_view != nullptr ? base_view->root : base;
  info.kind = kind_of_view(base_view != nullptr ? base_view->kind : ViewKind::Normal, kind);
  info.replay = replay != nullptr || base_view == nullptr ? replay : base_view->replay;
  info.grad_fn_version = impl->version();
  if (node) {
    set_history(view, node);
  } else {
    impl->set_late_view(is_differentiable(view.dtype()));
  }
}

bool TensorImpl::root_requires_grad() const {
  return autograd_ != nullptr && autograd_->view != nullptr &&
         autograd_->view->root.requires_grad();
}

bool Tensor::is_view() const {
  return held().autograd() != nullptr && held().autograd()->view != nullptr;
}
Tensor Tensor::_base() const { return is_view() ? held().autograd()->view->root : Tensor(); }

Ref<Node> current_grad_fn(const Tensor& t) {
  AutogradMeta* meta = t.impl()->autograd();
  if (meta == nullptr) {
    return {};
  }
  ViewInfo* view = meta->view.get();
  if (RL_LIKELY(view == nullptr) || meta->requires_grad) {
    return meta->requires_grad ? Ref<Node>() : meta->grad_fn;
  }
  const uint32_t version = t.impl()->version();
  {
    const SpinGuard guard(spin_lock_of(meta));
    if (view->grad_fn_version == version || !t.impl()->requires_grad()) {
      return meta->grad_fn;
    }
  }
  check_view_kind(t, /*itself=*/false);
  // The view taken again from its root as that is now.
  Ref<Node> grad_fn;
  uint32_t output_nr = 0;
  {
    const GradMode recording(true);
    Mode* const upper = std::exchange(tls.upper, nullptr);
    Mode* const lower = std::exchange(tls.lower, nullptr);
    struct Restore {
      Mode* upper;
      Mode* lower;
      ~Restore() {
        tls.upper = upper;
        tls.lower = lower;
      }
    } restore{upper, lower};
    const Tensor again = view->replay != nullptr ? view->replay(view->root, t)
                                                 : take_window(view->root, t.dtype(), t.sizes(),
                                                               t.strides(), t.storage_offset());
    AutogradMeta* fresh = again.impl()->autograd();
    if (fresh != nullptr) {
      grad_fn = fresh->grad_fn;
      output_nr = fresh->output_nr;
    }
  }
  const SpinGuard guard(spin_lock_of(meta));
  if (view->grad_fn_version != version) {
    std::swap(meta->grad_fn, grad_fn);  // the old one must not die under the lock
    meta->output_nr = output_nr;
    view->grad_fn_version = version;
    t.impl()->set_requires_grad_flag(static_cast<bool>(meta->grad_fn));
  }
  return meta->grad_fn;
}

}  // namespace rushlight
