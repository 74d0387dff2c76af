// fused_scale(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor
// family golden; kind kernel; 

// ======== include/rushlight/ops.h
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

}  // namespace rushlight

#include <rushlight/operators.h>

// ======== include/rushlight/tensor_methods.inc
// Generated from the op table by `python -m gen`. Do not edit.
Tensor fused_scale(const Tensor& other, const Scalar& alpha = 1) const;
Tensor fused_scale(const Scalar& other, const Scalar& alpha = 1) const;
Tensor& fused_scale_(const Tensor& other, const Scalar& alpha = 1) const;
Tensor& fused_scale_(const Scalar& other, const Scalar& alpha = 1) const;

// ======== src/methods.cpp
// Generated from the op table by `python -m gen`. Do not edit.

#include <rushlight/ops.h>

namespace rushlight {

Tensor Tensor::fused_scale(const Tensor& other, const Scalar& alpha) const {
  return rushlight::fused_scale(*this, other, alpha);
}
Tensor Tensor::fused_scale(const Scalar& other, const Scalar& alpha) const {
  return rushlight::fused_scale(*this, make_number(other), alpha);
}
Tensor& Tensor::fused_scale_(const Tensor& other, const Scalar& alpha) const {
  return rushlight::fused_scale_(*this, other, alpha);
}
Tensor& Tensor::fused_scale_(const Scalar& other, const Scalar& alpha) const {
  return rushlight::fused_scale_(*this, make_number(other), alpha);
}

}  // namespace rushlight

// ======== include/generated/kernels.h
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

}  // namespace rushlight

#define RL_ISA_KERNELS(X) \
  X(fused_scale) \

#define RL_ONCE_KERNELS(X) \

#define RL_ANYWHERE_KERNELS(X) \


#include "core/kernel_table.h"

// ======== isa/pointwise_0.cpp
// Generated from the op table by `python -m gen`. Do not edit.

#include "cpu/isa/loops.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {

RL_POINTWISE_KERNEL(fused_scale, 2, 1, set_floating | set_complexes, Promote::Float)

}  // namespace rushlight::cpu::RL_ISA

// ======== cuda/pointwise_0.cu
// Generated from the op table by `python -m gen`. Do not edit.

#include "cuda/pointwise.cuh"
#include "generated/kernels.h"

namespace rushlight {

RL_CUDA_POINTWISE(fused_scale, 2, 1, set_floating | set_complexes, Promote::Float)

}  // namespace rushlight

// ======== src/registry.cpp
// Generated from the op table by `python -m gen`. Do not edit.

#include <rushlight/mode.h>

namespace rushlight {

extern const OpInfo info_fused_scale_functional_0;
extern const OpInfo info_fused_scale_inplace_0;

static const OpInfo* const op_infos[] = {
    &info_fused_scale_functional_0,
    &info_fused_scale_inplace_0,
};

ArrayRef<const OpInfo*> all_ops() { return {op_infos, std::size(op_infos)}; }

}  // namespace rushlight

// ======== src/ops_golden_0.cpp
// Generated from the op table by `python -m gen`. Do not edit.

#include <rushlight/ops.h>

#include "ops/derivatives.h"
#include "ops/wrappers.h"

namespace rushlight {

namespace {

void backward_fused_scale(Node& node, [[maybe_unused]] const Tensor* grads, Tensor* out) {
  [[maybe_unused]] const Tensor& grad = grads[0];
  const size_t edge_self = 0;
  const size_t edge_other = 1;
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

extern const OpInfo info_fused_scale_functional_0;
const OpInfo info_fused_scale_functional_0 = op_info<static_cast<Tensor (*)(const Tensor& self, const Tensor& other, const Scalar& alpha)>(fused_scale)>("fused_scale", "", "fused_scale(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor");
Tensor fused_scale(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  if (RL_UNLIKELY(tls.upper != nullptr)) {
    return dispatch_boxed<Tensor>(dispatch_upper, info_fused_scale_functional_0, self, other, alpha);
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
  Tensor made_ = RL_LIKELY(tls.lower == nullptr) ? run_fused_scale(self, other, alpha, nullptr, false) : dispatch_boxed<Tensor>(dispatch_lower, info_fused_scale_functional_0, self, other, alpha);
  if (node) {
    const auto& result = made_;
    set_history(result, node);
  }
  return made_;
}

extern const OpInfo info_fused_scale_inplace_0;
const OpInfo info_fused_scale_inplace_0 = op_info<static_cast<Tensor& (*)(const Tensor& self, const Tensor& other, const Scalar& alpha)>(fused_scale_)>("fused_scale_", "", "fused_scale_(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor");
Tensor& fused_scale_(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  if (RL_UNLIKELY(tls.upper != nullptr)) {
    dispatch_boxed<void>(dispatch_upper, info_fused_scale_inplace_0, self, other, alpha);
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
  RL_LIKELY(tls.lower == nullptr) ? static_cast<void>(run_fused_scale(self, other, alpha, &self, false)) : dispatch_boxed<void>(dispatch_lower, info_fused_scale_inplace_0, self, other, alpha);
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

// ======== python/ops_golden_0.cpp
// Generated from the op table by `python -m gen`. Do not edit.

#include <rushlight/ops.h>

#include "python/bindings.h"
#include "python/parser.h"

namespace rushlight::python {

namespace {

// ---- fused_scale ----

constexpr Param fused_scale_params_0[] = {
    {"self", Kind::Tensor, false, false, false, nullptr},
    {"other", Kind::TensorOrNumber, false, false, false, nullptr},
    {"alpha", Kind::Scalar, false, true, false, "1"},
    {"out", Kind::Tensor, true, true, true, "None"},
};
constexpr Signature fused_scale_signatures[] = {
    {fused_scale_params_0, FunctionForm | MethodForm | InplaceForm, 0, false, false},
};
PyObject* fused_scale_run([[maybe_unused]] const Arguments& a) {
  switch (a.signature()) {
    case 0: {
      const auto& self = a.tensor(0);
      const auto& other = a.tensor_or_number(1);
      const auto& alpha = a.scalar(2, 1);
      if (a.inplace()) {
        return finish_given(a, a.object(0), [&] { rushlight::fused_scale_(self, other, alpha); });
      }
      if (a.given(3)) {
        return finish_out<1>(a, 3, "fused_scale", [&](const Tensor& out) { rushlight::fused_scale_out(out, self, other, alpha); });
      }
      return finish(a, [&] { return rushlight::fused_scale(self, other, alpha); });
    }
  }
  Py_UNREACHABLE();
}
constexpr Parser fused_scale_parser = {"fused_scale", fused_scale_signatures, 1, fused_scale_run, &ops_owner};

Binding rows[] = {
    RL_BINDING(fused_scale_parser, FunctionForm, "fused_scale", "fused_scale(input: Tensor, other: Tensor | Number, *, alpha: Number | Tensor = 1, out: Tensor | None = None) -> Tensor\n\n\n\nDtypes: floating point, complex; the result is floating point: integers and bool become the default dtype.\nShape: the inputs are broadcast to a common shape.\nGradient: by self, other."),
    RL_BINDING(fused_scale_parser, MethodForm, "fused_scale", "fused_scale(input: Tensor, other: Tensor | Number, *, alpha: Number | Tensor = 1, out: Tensor | None = None) -> Tensor\n\n\n\nDtypes: floating point, complex; the result is floating point: integers and bool become the default dtype.\nShape: the inputs are broadcast to a common shape.\nGradient: by self, other."),
    RL_BINDING(fused_scale_parser, InplaceForm, "fused_scale_", "fused_scale(input: Tensor, other: Tensor | Number, *, alpha: Number | Tensor = 1, out: Tensor | None = None) -> Tensor\n\n\n\nDtypes: floating point, complex; the result is floating point: integers and bool become the default dtype.\nShape: the inputs are broadcast to a common shape.\nGradient: by self, other."),
};
const Bindings bindings(rows);

}  // namespace

}  // namespace rushlight::python
