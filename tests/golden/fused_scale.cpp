// fused_scale(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor
// family golden; kind kernel; 

// ======== include/rushlight/ops.h
// Generated from the op table by `python -m gen`. Do not edit.

#pragma once

#include <cmath>

#include <rushlight/tensor.h>

namespace rushlight {

// Said once rather than for each (RL_API), which costs every program memory to compile.
#pragma GCC visibility push(default)
// fused_scale(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor
Tensor fused_scale(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
inline Tensor fused_scale(const Tensor& self, const Scalar& other, const Scalar& alpha = 1) { return fused_scale(self, make_number(other), alpha); }
Tensor& fused_scale_(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
inline Tensor& fused_scale_(const Tensor& self, const Scalar& other, const Scalar& alpha = 1) { return fused_scale_(self, make_number(other), alpha); }
Tensor& fused_scale_out(const Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
inline Tensor& fused_scale_out(const Tensor& out, const Tensor& self, const Scalar& other, const Scalar& alpha = 1) { return fused_scale_out(out, self, make_number(other), alpha); }
#pragma GCC visibility pop

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

struct KernelTable {
  void (*fused_scale)(const TensorIterator& it, const Scalar* attributes);
};

}  // namespace rushlight

#define RL_ISA_KERNELS(X) \
  X(fused_scale) \

#define RL_ONCE_KERNELS(X) \

#define RL_ANYWHERE_KERNELS(X) \


#include "core/kernel_table.h"

// ======== include/generated/contracts.h
// Generated from the op table by `python -m gen`. Do not edit.

#pragma once

#include "generated/kernels.h"

namespace rushlight {

namespace shape {
}  // namespace shape

namespace views {
}  // namespace views

namespace composite {
}  // namespace composite

namespace sparse {
}  // namespace sparse

namespace parts {
}  // namespace parts

}  // namespace rushlight

// ======== isa/pointwise_0.cpp
// Generated from the op table by `python -m gen`. Do not edit.

#include "cpu/isa/pointwise/loops.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {

RL_POINTWISE_KERNEL(fused_scale, 2, 1, set_floating | set_complexes, Promote::Same, false)

}  // namespace rushlight::cpu::RL_ISA

// ======== cuda/pointwise_0.cu
// Generated from the op table by `python -m gen`. Do not edit.

#include "cuda/pointwise.cuh"
#include "generated/kernels.h"

namespace rushlight {

RL_CUDA_POINTWISE(fused_scale, 2, 1, set_floating | set_complexes, Promote::Same, false)

}  // namespace rushlight

// ======== src/reductions.cpp
// Generated from the op table by `python -m gen`. Do not edit.

#include "ops/reductions.h"

namespace rushlight::shape {

#pragma GCC diagnostic ignored "-Wunused-parameter"


}  // namespace rushlight::shape

// ======== src/step_checks.cpp
// Generated from the op table by `python -m gen`. Do not edit.

#include "ops/step_checks.h"

namespace rushlight::shape {


}  // namespace rushlight::shape

// ======== src/recorded_steps.cpp
// Generated from the op table by `python -m gen`. Do not edit.

#include "ops/recorded_steps.h"

namespace rushlight::composite {


}  // namespace rushlight::composite

// ======== isa/steps.cpp
// Generated from the op table by `python -m gen`. Do not edit.

#include "cpu/isa/pointwise/step_by.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {


}  // namespace rushlight::cpu::RL_ISA

// ======== cuda/steps.cu
// Generated from the op table by `python -m gen`. Do not edit.

#include "cuda/step_by.cuh"
#include "generated/kernels.h"

namespace rushlight::cuda {


}  // namespace rushlight::cuda

// ======== src/registry.cpp
// Generated from the op table by `python -m gen`. Do not edit.

#include "core/registry_rows.h"

namespace rushlight {

namespace rows {
constexpr ArgInfo arguments[] = {
  {"out"}, {"self"}, {"other", {.number = true}}, {"alpha", {.base = Scalar}, integer(1), true}, {"self"},
  {"other"}, {"alpha", {.base = Scalar}, integer(1), true},
  {"out", {.written = true, .alias = 'a'}, {}, true}, {"self"}, {"other", {.base = Scalar}},
  {"alpha", {.base = Scalar}, integer(1), true}, {"out", {.written = true, .alias = 'a'}, {}, true},
  {"self", {.written = true, .alias = 'a'}}, {"other", {.number = true}},
  {"alpha", {.base = Scalar}, integer(1), true}, {"self", {.written = true, .alias = 'a'}}, {"other"},
  {"alpha", {.base = Scalar}, integer(1), true}, {"self", {.written = true, .alias = 'a'}},
  {"other", {.base = Scalar}}, {"alpha", {.base = Scalar}, integer(1), true},
};
constexpr ResultInfo results[] = {{""}, {"", {.written = true, .alias = 'a'}}};
constexpr int8_t places[] = {1, 2, 3, 0, 0, 1, 2};
}  // namespace rows
using namespace rows;

RL_OVERLOADS(fused_scale_functional_0) = {
    {"aten", "fused_scale", "Tensor", {arguments + 4, 3}, {results + 0, 1}, &function_fused_scale_functional_0, {arguments + 1, 3}, places + 4, 0x30000u},
    {"aten", "fused_scale", "Scalar", {arguments + 8, 3}, {results + 0, 1}, &function_fused_scale_functional_0, {arguments + 1, 3}, places + 4, 0x30000u}};
RL_OVERLOADS(fused_scale_inplace_0) = {
    {"aten", "fused_scale_", "Tensor", {arguments + 15, 3}, {results + 1, 1}, &function_fused_scale_inplace_0, {arguments + 12, 3}, places + 4, 0x30040u},
    {"aten", "fused_scale_", "Scalar", {arguments + 18, 3}, {results + 1, 1}, &function_fused_scale_inplace_0, {arguments + 12, 3}, places + 4, 0x30040u}};
RL_OVERLOADS(fused_scale_out_0) = {
    {"aten", "fused_scale", "Tensor_out", {arguments + 4, 4}, {results + 1, 1}, &function_fused_scale_out_0, {arguments + 0, 4}, places + 0, 0x34000u},
    {"aten", "fused_scale", "Scalar_out", {arguments + 8, 4}, {results + 1, 1}, &function_fused_scale_out_0, {arguments + 0, 4}, places + 0, 0x34000u}};

ArrayRef<const OpInfo*> all_ops() {
  static constexpr const OpInfo* all[] = {
      overloads_fused_scale_functional_0 + 0, overloads_fused_scale_functional_0 + 1,
      overloads_fused_scale_out_0 + 0, overloads_fused_scale_out_0 + 1, overloads_fused_scale_inplace_0 + 0,
      overloads_fused_scale_inplace_0 + 1,
  };
  return all;
}

}  // namespace rushlight

// ======== include/rushlight/overloads.h
// Generated from the op table by `python -m gen`. Do not edit.

#pragma once

#include <rushlight/overload.h>

namespace rushlight {

namespace _ops {
using fused_scale_Tensor = Overload<0, Tensor(const Tensor&, const Tensor&, const Scalar&)>;
using fused_scale_Scalar = Overload<1, Tensor(const Tensor&, const Scalar&, const Scalar&)>;
using fused_scale_Tensor_out = Overload<2, Tensor&(const Tensor&, const Tensor&, const Scalar&, Tensor&)>;
using fused_scale_Scalar_out = Overload<3, Tensor&(const Tensor&, const Scalar&, const Scalar&, Tensor&)>;
using fused_scale__Tensor = Overload<4, Tensor&(Tensor&, const Tensor&, const Scalar&)>;
using fused_scale__Scalar = Overload<5, Tensor&(Tensor&, const Scalar&, const Scalar&)>;
}  // namespace _ops

#pragma GCC visibility push(default)
extern const OutForms<_ops::fused_scale_Tensor_out, _ops::fused_scale_Scalar_out> fused_scale_outf;
#pragma GCC visibility pop

}  // namespace rushlight

// ======== src/overloads.cpp
// Generated from the op table by `python -m gen`. Do not edit.

#include <rushlight/overloads.h>

namespace rushlight {

const OutForms<_ops::fused_scale_Tensor_out, _ops::fused_scale_Scalar_out> fused_scale_outf{};

}  // namespace rushlight

// ======== src/ops_golden_0.cpp
// Generated from the op table by `python -m gen`. Do not edit.

#include <rushlight/ops.h>

#include "generated/forward.h"
#include "ops/derivatives.h"
#include "ops/pointwise_choice.h"
#include "ops/wrappers.h"

namespace rushlight {

namespace {

void backward_fused_scale(Node& node, [[maybe_unused]] const Tensor* grads, Tensor* out) {
  const Tensor& grad = grads[0];
  enum : size_t { edge_self, edge_other };
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
Ref<Node> record_fused_scale(const Tensor& self, const Tensor& other, const Scalar& alpha, bool writes) {
  Ref<Node> node = make_node(descriptor_fused_scale, self, other);
  const bool want_other = needs_grad(other);
  const bool want_self = needs_grad(self);
  node->save(want_other ? (writes ? value_before(self) : self) : Tensor());
  node->save(want_self ? other : Tensor());
  node->keep(alpha);
  return node;
}

Tensor run_fused_scale(const Tensor& self, const Tensor& other, const Scalar& alpha, const Tensor* given, bool resize) {
  const Tensor fresh;
  TensorIterator it("fused_scale");
  it.add_output(given != nullptr ? *given : fresh, resize);
  it.add_input(self);
  it.add_input(other);
  it.build({Promote::Float, set_floating | set_complexes});
  if (it.numel() != 0 && !it.device().is_meta()) {
    run_formula(it, &KernelTable::fused_scale, {alpha});
  }
  return it.take_output();
}

}  // namespace

RL_OP_FUNCTION(fused_scale_functional_0, 2) = {
  .run = run_boxed<Tensor(const Tensor&, const Tensor&, const Scalar&), fused_scale>,
  .overloads = overloads_fused_scale_functional_0, .batch = only_rule<batching::Kind::Aligned, 3u>,
  .tangent = {boxed<forward::fused_scale_functional_0>, 3u},
};
Tensor fused_scale(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  const Asks asked = asks_of_call(self, other);
  if (const Dispatch by = interceptor_if_asked(function_fused_scale_functional_0, asked, self, other)) {
    return dispatch_boxed<Tensor>(by, function_fused_scale_functional_0, self, other, alpha);
  }
  const Ref<Node> node = may_record_grad(asked) && any_needs_grad(self, other) ? record_fused_scale(self, other, alpha, false) : Ref<Node>();
  Tensor result = RL_LIKELY(!asks_handler_below(asked, self, other)) ? run_fused_scale(self, other, alpha, nullptr, false) : dispatch_boxed<Tensor>(dispatch_lower, function_fused_scale_functional_0, self, other, alpha);
  if (node) { set_history(result, node); }
  return result;
}

RL_OP_FUNCTION(fused_scale_inplace_0, 2) = {
  .run = run_boxed<Tensor&(const Tensor&, const Tensor&, const Scalar&), fused_scale_>,
  .overloads = overloads_fused_scale_inplace_0, .functional = &function_fused_scale_functional_0,
  .tangent = {boxed<forward::fused_scale_inplace_0>, 3u},
};
Tensor& fused_scale_(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  const Asks asked = asks_of_call(self, other);
  if (const Dispatch by = interceptor_if_asked(function_fused_scale_inplace_0, asked, self, other)) {
    return dispatch_boxed<Tensor&>(by, function_fused_scale_inplace_0, self, other, alpha);
  }
  const bool record = may_record_grad(asked) && any_needs_grad(self, other);
  check_inplace("fused_scale_", self, record);
  const Ref<Node> node = record ? record_fused_scale(self, other, alpha, true) : Ref<Node>();
  RL_LIKELY(!asks_handler_below(asked, self, other)) ? static_cast<void>(run_fused_scale(self, other, alpha, &self, false)) : static_cast<void>(dispatch_boxed<Tensor&>(dispatch_lower, function_fused_scale_inplace_0, self, other, alpha));
  count_write(self);
  if (node) { rebase_history(self, node); }
  return const_cast<Tensor&>(self);
}

RL_OP_FUNCTION(fused_scale_out_0, 2) = {
  .run = run_boxed<Tensor&(const Tensor&, const Tensor&, const Tensor&, const Scalar&), fused_scale_out>,
  .overloads = overloads_fused_scale_out_0, .functional = &function_fused_scale_functional_0,
};
Tensor& fused_scale_out(const Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha) {
  if (const Dispatch by = handler_of_out(function_fused_scale_out_0, "fused_scale", any_needs_grad(self, other, out), out, self, other)) {
    return dispatch_boxed<Tensor&>(by, function_fused_scale_out_0, out, self, other, alpha);
  }
  run_fused_scale(self, other, alpha, &out, true);
  count_write(out);
  return const_cast<Tensor&>(out);
}

}  // namespace rushlight

// ======== include/generated/forward.h
// Generated from the op table by `python -m gen`. Do not edit.

#pragma once

#include "ops/forward_pass.h"

namespace rushlight::forward {

Tensor fused_scale_functional_0(const Tensor& self, const Tensor& other, const Scalar& alpha);
Tensor& fused_scale_inplace_0(const Tensor& self, const Tensor& other, const Scalar& alpha);

}  // namespace rushlight::forward

// ======== src/forward_golden_0.cpp
// Generated from the op table by `python -m gen`. Do not edit.

#include "generated/forward.h"
#include "ops/derivatives.h"
#include "ops/tangents.h"

namespace rushlight {

#pragma GCC diagnostic ignored "-Wunused-parameter"

namespace {

Tensor tangent_fused_scale(const Tensor& self, const Tensor& other, const Scalar& alpha, const Tensor& result, const Tensor& self_t, const Tensor& other_t) {
  Tensor total;
  if (self_t.defined()) {
    const Tensor grad = forward::in_place_of_gradient(self_t, result);
    forward::add(total, forward::conjugate(grad * other.conj() * alpha));
  }
  if (other_t.defined()) {
    const Tensor grad = forward::in_place_of_gradient(other_t, result);
    forward::add(total, forward::conjugate(grad * self.conj() * alpha));
  }
  return total;
}

}  // namespace

Tensor forward::fused_scale_functional_0(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  const forward::Pass pass(self, other);
  auto made = rushlight::fused_scale(self, other, alpha);
  pass.set_tangents(made, tangent_fused_scale(self, other, alpha, made, pass.of(self), pass.of(other)));
  return made;
}

Tensor& forward::fused_scale_inplace_0(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  const forward::Pass pass(self, other);
  const Tensor before = pass.values(self, false);
  const Tensor tangent = tangent_fused_scale(forward::value_before_write(self, self, before), forward::value_before_write(other, self, before), alpha, self, pass.before(self), pass.of(other));
  rushlight::fused_scale_(self, other, alpha);
  pass.write(self, tangent);
  return const_cast<Tensor&>(self);
}

}  // namespace rushlight

// ======== python/ops_golden_0.cpp
// Generated from the op table by `python -m gen`. Do not edit.

#include <rushlight/ops.h>

#include "python/bindings.h"
#include "python/parser.h"

namespace rushlight::python {

namespace {

constexpr Param params[] = {
  {"self", Kind::Tensor}, {"other", Kind::TensorOrNumber}, {"alpha", Kind::Scalar, false, true, false, "1"},
  {"out", Kind::Tensor, true, true, true, "None"},
};
constexpr Signature fused_scale_signatures[] = {
  {{params + 0, 4}, FunctionForm | MethodForm | InplaceForm, 0},
};
PyObject* fused_scale_run([[maybe_unused]] const Arguments& a) {
  const auto& self = a.tensor(0);
  const auto& other = a.tensor_or_number(1);
  const auto& alpha = a.scalar(2, 1);
  if (a.inplace()) {
    return finish_with(a, a.object(0), [&] { rushlight::fused_scale_(self, other, alpha); });
  }
  if (a.is_given(3)) {
    return finish_out<1>(a, 3, "fused_scale", [&](const Tensor& out) { rushlight::fused_scale_out(out, self, other, alpha); });
  }
  return finish(a, [&] { return rushlight::fused_scale(self, other, alpha); });
}
constexpr Parser fused_scale_parser = {"fused_scale", fused_scale_signatures, 1, fused_scale_run, &ops_owner};
Binding rows[] = {
    RL_BINDING(fused_scale_parser, FunctionForm, "fused_scale", nullptr, "fused_scale(input, other, *, alpha=1, out=None)\n--\n\nfused_scale(input: Tensor, other: Tensor | Number, *, alpha: Number | Tensor = 1, out: Tensor | None = None) -> Tensor\n\n\n\nArgs:\n    input: the tensor to compute with.\n    other: the second operand; a Python number stands for a tensor without dimensions.\n    alpha: a factor of the second operand.\n    out: tensors to write the results into, which are resized and returned.\n\nDtypes: floating point, complex; the result is floating point: integers and bool become the default dtype.\nShape: the inputs are broadcast to a common shape.\nGradient: by self, other.\nSee also: Tensor.fused_scale, Tensor.fused_scale_."),
    RL_BINDING(fused_scale_parser, MethodForm, "fused_scale", nullptr, "fused_scale($self, other, *, alpha=1)\n--\n\nfused_scale(self, other: Tensor | Number, *, alpha: Number | Tensor = 1) -> Tensor\n\n\n\nArgs:\n    other: the second operand; a Python number stands for a tensor without dimensions.\n    alpha: a factor of the second operand.\n\nDtypes: floating point, complex; the result is floating point: integers and bool become the default dtype.\nShape: the inputs are broadcast to a common shape.\nGradient: by self, other.\nSee also: fused_scale, Tensor.fused_scale_.\n\nFor an example see `fused_scale`."),
    RL_BINDING(fused_scale_parser, InplaceForm, "fused_scale_", nullptr, "fused_scale_($self, other, *, alpha=1)\n--\n\nfused_scale_(self, other: Tensor | Number, *, alpha: Number | Tensor = 1) -> Tensor\n\n\n\nArgs:\n    other: the second operand; a Python number stands for a tensor without dimensions.\n    alpha: a factor of the second operand.\n\nDtypes: floating point, complex; self keeps its own.\nShape: self keeps its own; the others are broadcast to it.\nGradient: by self, other.\nIn place: self is changed and returned.\nSee also: fused_scale, Tensor.fused_scale.\n\nFor an example see `fused_scale`."),
};
const Bindings bindings(rows);

}  // namespace

}  // namespace rushlight::python
