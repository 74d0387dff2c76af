// Generated from the op table by `python -m gen`. Do not edit.

#pragma once

#include <cmath>

#include <rushlight/tensor.h>

namespace rushlight {

// fused_scale(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor
RL_API Tensor fused_scale(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
inline Tensor fused_scale(const Tensor& self, const Scalar& other, const Scalar& alpha = 1) { return fused_scale(self, make_number(other), alpha); }
RL_API Tensor& fused_scale_(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
inline Tensor& fused_scale_(const Tensor& self, const Scalar& other, const Scalar& alpha = 1) { return fused_scale_(self, make_number(other), alpha); }
RL_API Tensor& fused_scale_out(const Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
inline Tensor& fused_scale_out(const Tensor& out, const Tensor& self, const Scalar& other, const Scalar& alpha = 1) { return fused_scale_out(out, self, make_number(other), alpha); }

inline constexpr const char* schema_hash = "2586ef4ec8403edb";

}  // namespace rushlight

#include <rushlight/operators.h>

// Generated from the op table by `python -m gen`. Do not edit.
Tensor fused_scale(const Tensor& other, const Scalar& alpha = 1) const;
Tensor fused_scale(const Scalar& other, const Scalar& alpha = 1) const;
Tensor& fused_scale_(const Tensor& other, const Scalar& alpha = 1) const;
Tensor& fused_scale_(const Scalar& other, const Scalar& alpha = 1) const;

// Generated from the op table by `python -m gen`. Do not edit.

#pragma once

#include "core/iterator.h"
#include "core/op_support.h"

namespace rushlight {

namespace shape {
}  // namespace shape

namespace views {
}  // namespace views

namespace composite {
}  // namespace composite

struct KernelTable {
  void (*fused_scale)(TensorIterator& it, const Scalar& alpha);
};
// By device; a null entry is an op that the device lacks. Meta has none and needs none.
extern const KernelTable* kernel_tables[num_device_types];
inline constexpr const char* kernel_table_hash = "2586ef4ec8403edb";  // of the schemas

// Kernels over copy_raw, fill_raw and views, which every device shares.
namespace anywhere {
}  // namespace anywhere

namespace cpu {
namespace v2 {
void fused_scale(TensorIterator& it, const Scalar& alpha);
}  // namespace v2
namespace v3 {
void fused_scale(TensorIterator& it, const Scalar& alpha);
}  // namespace v3
namespace v4 {
void fused_scale(TensorIterator& it, const Scalar& alpha);
}  // namespace v4
}  // namespace cpu
}  // namespace rushlight

// Generated from the op table by `python -m gen`. Do not edit.

#include <rushlight/ops.h>

#include "generated/kernels.h"
#include "ops/derivatives.h"
#include "ops/wrappers.h"

namespace rushlight {

extern const OpInfo op_infos[];

namespace {

void backward_fused_scale(Node& node, [[maybe_unused]] const Tensor* grads, Tensor* out) {
  [[maybe_unused]] const Tensor& grad = grads[0];
  const size_t edge_self = 0;
  const size_t edge_other = edge_self + 1;
  if (node.wants(edge_self)) {
    const Tensor other = node.saved(1);
    const auto alpha = node.value(0).get<Scalar>();
    out[edge_self] = grad * other.conj() * alpha;
  }
  if (node.wants(edge_other)) {
    const Tensor self = node.saved(0);
    const auto alpha = node.value(0).get<Scalar>();
    out[edge_other] = grad * self.conj() * alpha;
  }
}
const NodeDescriptor descriptor_fused_scale = {"FusedScaleBackward0", backward_fused_scale, false, "self other", "alpha"};

Tensor run_fused_scale(const Tensor& self, const Tensor& other, const Scalar& alpha, const Tensor* given, bool resize) {
  const Tensor fresh;
  TensorIterator it("fused_scale");
  it.add_output(given != nullptr ? *given : fresh, resize);
  it.add_input(self);
  it.add_input(other);
  it.build({Promote::Float, set_floating | set_complexes});
  const Device where_ = it.device();
  if (it.numel() != 0 && !where_.is_meta()) {
    find_kernel(kernel_tables, where_, &KernelTable::fused_scale, "fused_scale")(it, alpha);
  }
  return it.output();
}

}  // namespace

Tensor fused_scale(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  if (RL_UNLIKELY(tls.upper != nullptr)) {
    return dispatch_boxed<Tensor>(dispatch_upper, op_infos[0], self, other, alpha);
  }
  check_defined("fused_scale", "self", self);
  check_defined("fused_scale", "other", other);
  Ref<Node> node;
  if (tls.grad_mode && (grad_wanted(self) || grad_wanted(other))) {
    node = Ref<Node>::steal(new Node(&descriptor_fused_scale));
    [[maybe_unused]] const bool want_self = grad_wanted(self);
    [[maybe_unused]] const bool want_other = grad_wanted(other);
    add_edges(*node, self);
    add_edges(*node, other);
    node->save(want_other ? self : Tensor());
    node->save(want_self ? other : Tensor());
    node->keep(alpha);
  }
  Tensor made_ = RL_LIKELY(tls.lower == nullptr) ? run_fused_scale(self, other, alpha, nullptr, false) : dispatch_boxed<Tensor>(dispatch_lower, op_infos[0], self, other, alpha);
  if (node) {
    const auto& result = made_;
    set_history(result, node);
  }
  return made_;
}

Tensor& fused_scale_(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  if (RL_UNLIKELY(tls.upper != nullptr)) {
    dispatch_boxed<void>(dispatch_upper, op_infos[1], self, other, alpha);
    return const_cast<Tensor&>(self);
  }
  check_defined("fused_scale_", "self", self);
  check_defined("fused_scale_", "other", other);
  const bool record = tls.grad_mode && (grad_wanted(self) || grad_wanted(other));
  check_inplace("fused_scale_", self, record);
  Ref<Node> node;
  if (record) {
    node = Ref<Node>::steal(new Node(&descriptor_fused_scale));
    [[maybe_unused]] const bool want_self = grad_wanted(self);
    [[maybe_unused]] const bool want_other = grad_wanted(other);
    add_edges(*node, self);
    add_edges(*node, other);
    node->save(want_other ? self.clone() : Tensor());
    node->save(want_self ? other : Tensor());
    node->keep(alpha);
  }
  if (RL_LIKELY(tls.lower == nullptr)) {
    run_fused_scale(self, other, alpha, &self, false);
  } else {
    dispatch_boxed<void>(dispatch_lower, op_infos[1], self, other, alpha);
  }
  count_write(self);
  if (node) {
    rebase_history(self, node);
  }
  return const_cast<Tensor&>(self);
}

Tensor& fused_scale_out(const Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_defined("fused_scale", "self", self);
  check_defined("fused_scale", "other", other);
  check_defined("fused_scale", "out", out);
  check_out_grad("fused_scale", tls.grad_mode && (grad_wanted(self) || grad_wanted(other) || grad_wanted(out)));
  run_fused_scale(self, other, alpha, &out, true);
  count_write(out);
  return const_cast<Tensor&>(out);
}

}  // namespace rushlight

// Generated from the op table by `python -m gen`. Do not edit.

#include "cpu/isa/loops.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {

RL_POINTWISE_KERNEL(fused_scale, 2, 1, set_floating | set_complexes, Promote::Float)

}  // namespace rushlight::cpu::RL_ISA
