// In-place ops: what may be written, and the history of a tensor, or of a view's root, after a
// write.
#include <rushlight/batching.h>
#include <rushlight/ops.h>

#include "autograd/node.h"
#include "autograd/refusals.h"
#include "core/inference.h"
#include "core/op_support.h"

namespace rushlight {

void check_view_kind(const Tensor& view, bool itself) {
  const AutogradMeta* meta = view.impl()->autograd();
  const char* what = itself ? "is being modified inplace"
                            : "and its base or another view of its base has been modified inplace";
  const std::string which = meta != nullptr && meta->grad_fn
                                ? str("Output ", meta->output_nr, " of ", meta->grad_fn->name(),
                                      " is a view", itself ? " and " : " ")
                                : "A view ";
  switch (view.impl()->view().kind) {
    case ViewKind::Normal:
      return;
    case ViewKind::MultiOutput:
      throw Error(
          str(which, what,
              ". It is an output of a function that returns multiple views, and such views cannot "
              "be modified inplace. Replace the inplace operation by an out-of-place one."));
    case ViewKind::Custom:
      throw Error(str(which, what,
                      ". It was created inside a custom Function, as an output or as an input that "
                      "forward returned: the write would stand in for the Function's own backward. "
                      "Write to a clone() of it."));
    case ViewKind::NoGrad:
      throw Error(str("A view was created in no_grad mode", itself ? " and " : " ", what,
                      " with grad mode enabled. Whether the write is meant to be recorded is "
                      "ambiguous: move both the view and the write inside the no_grad block, or "
                      "both outside."));
    case ViewKind::Inference:
      throw Error(str("A view was created in inference mode", itself ? " and " : " ", what,
                      " in normal mode. Whether the write is meant to be recorded is ambiguous: "
                      "move both the view and the write inside the inference_mode block, or both "
                      "outside."));
  }
}

void become_own_root(TensorImpl* view) {
  view->set_version_cell(view->share_version());
  view->set_late_view(false);
  view->view() = {};
}

void become_own_root_if_alone(TensorImpl* view) {
  const TensorImpl& root = *view->view().root;
  const AutogradMeta* const meta = view->autograd();
  const ViewKind kind = view->view().kind;
  const bool simple =
      kind == ViewKind::Normal || (kind == ViewKind::NoGrad && !root.requires_grad());
  if (simple && root.use_count() == 1 && root.python() == nullptr &&
      (meta == nullptr || !meta->dual)) {
    become_own_root(view);
  }
}

namespace {
void check_not_captured(const char* op, const Tensor& self) {
  // Numbers wrap around, so their difference tells which is earlier.
  const bool captured =
      self.has_storage() &&
      static_cast<int32_t>(self.storage()->transform_number() - tls.transform) < 0;
  RL_CHECK(!captured,
           "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call "
           "in-place operation (aten::",
           op,
           ") that would mutate a captured Tensor. This is not supported: rewrite the function so "
           "that it takes the tensors it mutates as arguments.");
}
}  // namespace

void check_inplace(const char* op, const Tensor& self, bool needs_grad) {
  TensorImpl* impl = self.impl();
  check_inference_write(op, self);
  if (RL_UNLIKELY(tls.transforming)) {
    check_not_captured(op, self);
  }
  if (RL_UNLIKELY(tls.anomaly_mode)) {
    note_write(self);
  }
  if (!needs_grad) {
    return;
  }
  if (impl->is_view() && impl->view().kind == ViewKind::NoGrad) {
    become_own_root_if_alone(impl);
  }
  if (impl->is_view()) {
    check_view_kind(self, /*itself=*/true);
    if (self.requires_grad() && self._base().is_leaf()) {
      refuse_leaf_write(/*is_view=*/true);
    }
  }
  if (self.requires_grad() && self.is_leaf()) {
    refuse_leaf_write(/*is_view=*/false);
  }
}

void check_out_grad(const char* op, bool needs_grad) {
  RL_CHECK(!needs_grad, op,
           "(): out=... arguments don't support automatic differentiation, and an input requires "
           "grad. Call it without out=, or under no_grad().");
}

namespace {

void give_history(const Tensor& t, Ref<Node> node, uint32_t output_nr) {
  AutogradMeta& meta = t.impl()->autograd_or_make();
  meta.grad_fn = std::move(node);
  meta.output_nr = output_nr;
  meta.requires_grad = false;
  t.impl()->set_requires_grad_flag(true);
  if (meta.retains_grad) {
    retain_grad_of_output(t, *meta.grad_fn, output_nr);
  }
}

// ---- CopySlices: a root one of whose views was written ----
// The gradient of the root passes through unchanged but for the written part, which goes through
// the in-place op. Values: sizes, strides of the root; dtype, sizes, strides and offset (from the
// root's) of the view; dtype of the root.

void copy_slices_backward(Node& node, const Tensor* grads, Tensor* result) {
  if (!grads[0].defined()) {
    return;
  }
  const DimVector root_sizes = node.value(0).get<DimVector>();
  const DimVector root_strides = node.value(1).get<DimVector>();
  const ScalarType dtype = node.value(2).get<ScalarType>();
  const DimVector sizes = node.value(3).get<DimVector>();
  const DimVector strides = node.value(4).get<DimVector>();
  const int64_t offset = node.value(5).get<int64_t>();
  Node& written = *node.extra()->wrapped;
  written.check_not_released();
  // A window of a fresh copy, by recorded ops where a graph of the gradient is wanted.
  const auto copy_as = [&](const Tensor& like) {
    const Tensor copy = new_like(like, root_sizes, root_strides);
    copy.copy_(grads[0]);
    return copy;
  };
  const auto window = [&](const Tensor& root) {
    return take_window(root, dtype, sizes, strides, offset);
  };
  Tensor root_grad = copy_as(grads[0]);
  Tensor part = window(root_grad);
  const Tensor part_grad = part.clone();
  std::vector<Tensor> inner(written.edges().size());
  written.apply(&part_grad, inner.data());
  for (size_t i = 1; i < inner.size(); i++) {
    result[i] = std::move(inner[i]);
  }
  if (node.wants(0)) {
    if (!inner.empty() && inner[0].defined()) {
      if (lacks_batch(root_grad, inner[0])) {
        root_grad = copy_as(number_with_batches(grads[0], inner[0]));
        part = window(root_grad);
      }
      part.copy_(inner[0]);
    } else {
      part.zero_();
    }
    result[0] = std::move(root_grad);
  }
}
constexpr NodeDescriptor copy_slices_descriptor = {"torch::autograd::CopySlices",
                                                   copy_slices_backward, true};

}  // namespace

Tensor view_of_written(const Tensor& data, Node& slices) {
  const ScalarType dtype = slices.value(6).get<ScalarType>();
  const int64_t before = slices.value(5).get<int64_t>();
  const int64_t bytes = (data.storage_offset() - before) * data.element_size();
  auto impl = TensorImpl::make(data.storage(), dtype, data.device());
  const Tensor root(std::move(impl));
  root.impl()->set_storage_offset(bytes / root.element_size());
  root.impl()->set_sizes_and_strides(slices.value(0).get<DimVector>(),
                                     slices.value(1).get<DimVector>());
  AutogradMeta& meta = root.impl()->autograd_or_make();
  meta.grad_fn = Ref<Node>(&slices);
  root.impl()->set_requires_grad_flag(true);
  const WithoutModes without;
  const GradMode recording(true);
  return take_window(root, data.dtype(), data.sizes(), data.strides(), data.storage_offset());
}

void rebase_history(const Tensor& self, const Ref<Node>& node) {
  if (!is_differentiable(self.dtype())) {
    return;  // integers that took a float: no gradient passes
  }
  const uint32_t output_nr = node->add_output(self);
  AutogradMeta& meta = self.impl()->autograd_or_make();
  if (!self.is_view()) {
    give_history(self, node, output_nr);
    return;
  }
  const Tensor root = self._base();
  auto slices = Ref<Node>::steal(new Node(&copy_slices_descriptor));
  slices->add_edge(root);
  for (size_t i = 1; i < node->edges().size(); i++) {
    slices->add_edge(node->edges()[i]);
  }
  slices->keep(DimVector(root.sizes()));
  slices->keep(DimVector(root.strides()));
  slices->keep(self.dtype());
  slices->keep(DimVector(self.sizes()));
  slices->keep(DimVector(self.strides()));
  const int64_t bytes =
      self.storage_offset() * self.element_size() - root.storage_offset() * root.element_size();
  slices->keep(bytes / self.element_size());
  slices->keep(root.dtype());
  slices->extra_or_make().wrapped = node;
  node->extra_or_make().within = slices.get();
  const uint32_t root_nr = slices->add_output(root);
  give_history(root, std::move(slices), root_nr);
  // The view's own grad_fn is made again from the root when somebody asks for it.
  self.impl()->view().grad_fn_version = self.impl()->version() - 1;
  self.impl()->set_requires_grad_flag(true);
  if (meta.retains_grad) {
    retain_grad_of_output(self, *current_grad_fn(self), meta.output_nr);
  }
}

}  // namespace rushlight
