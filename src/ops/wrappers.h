// What only generated code uses: the wrappers of ops and their boxed forms. Functions here take
// tensors and lists of tensors alike, so that the generator need not tell them apart.
#pragma once

#include <algorithm>

#include <rushlight/forward.h>

#include "core/intercept.h"
#include "core/op_support.h"
#include "core/registry_rows.h"
#include "generated/contracts.h"
#include "ops/boxed.h"

namespace rushlight {

// ---- what expressions of the table call ----

inline bool is_number(const Tensor& t) { return t.impl()->is_wrapped_number(); }
inline std::optional<int64_t> unless_negative(int64_t i) {
  return i < 0 ? std::optional<int64_t>() : i;
}

// In memory of its own.
Tensor copy_of(const Tensor& view);
std::vector<Tensor> copy_of(const std::vector<Tensor>& views);
// A copy of self that src, too, can be written into, though it have more batches.
Tensor clone_for_batches(const Tensor& self, const Tensor& src);
// `whole`, after src was written into a view of it; RuntimeError where their shapes differ.
Tensor copy_into_view(const Tensor& whole, const Tensor& view, const Tensor& src);

// ---- inputs ----

using Addresses = std::vector<const Tensor*>;

template <class... A>
Addresses addresses_of(const A&... arguments) {
  Addresses out;
  (add_tensors(out, arguments), ...);
  return out;
}

// A kernel's inputs have dtypes that it is for.
inline void check_one(const char* op, uint32_t taken, const Tensor& t) {
  if (t.defined() && RL_UNLIKELY(!contains(taken, t.dtype()))) {
    dtype_not_implemented(op, t.dtype());
  }
}
inline void check_one(const char* op, uint32_t taken, TensorList list) {
  for (const Tensor& t : list) {
    check_one(op, taken, t);
  }
}
inline void check_one(const char* op, uint32_t taken, const std::vector<Tensor>& list) {
  check_one(op, taken, TensorList(list));
}
inline void check_one(const char* op, uint32_t taken,
                      const std::vector<std::optional<Tensor>>& list) {
  for (const std::optional<Tensor>& t : list) {
    check_one(op, taken, t.value_or(Tensor()));
  }
}
template <class T>
void check_one(const char*, uint32_t, const T&) {}  // no tensor
template <class... A>
void check_input_dtypes(const char* op, uint32_t taken, const A&... arguments) {
  (check_one(op, taken, arguments), ...);
}

// ---- outputs ----

// What a kernel writes: new tensors, or what stands for those of the caller that are `given`
// (usually null), with the addresses of its `inputs`.
template <class F>
Tensor begin_outputs(const char* op, Device where, const OutSpec& spec, const Tensor* given,
                     const F& inputs) {
  return given != nullptr ? begin_out(op, *given, spec, where, inputs()) : make_output(spec, where);
}
template <size_t n, class F>
std::array<Tensor, n> begin_outputs(const char* op, Device where, const OutSpecs<n>& specs,
                                    const std::array<const Tensor*, n>& given, const F& inputs) {
  std::array<Tensor, n> out;
  for (size_t i = 0; i < n; i++) {
    out[i] = begin_outputs(op, where, specs[i], given[i], inputs);
  }
  if (given[0] != nullptr) {
    check_outputs_apart(op, {given.data(), n});
  }
  return out;
}
inline std::vector<Tensor> begin_outputs(const char*, Device where,
                                         const std::vector<OutSpec>& specs) {
  std::vector<Tensor> out;
  out.reserve(specs.size());
  for (const OutSpec& spec : specs) {
    out.push_back(make_output(spec, where));
  }
  return out;
}
// Where the result's size depends on values, `out` may share no memory with an input.
inline void check_apart(const char* op, const Tensor& out, InputList inputs) {
  for (const Tensor* in : inputs) {
    const Overlap overlap = in->defined() ? memory_overlap(out, *in) : Overlap::No;
    check_no_partial_overlap(op, overlap == Overlap::Full ? Overlap::Partial : overlap);
  }
}
inline void finish_out(const Tensor* given, const Tensor& made) {
  if (given != nullptr) {
    finish_out(*given, made);
  }
}

// Whether an op updates tensors in which several elements share a place.
enum class Expanded { Refused, Warned, Welcome };

// What an op that updates its input writes: the tensor that was given or a new one, with the values
// of self.
inline Tensor start_update(const char* op, const Tensor* given, const Tensor& self, Device where,
                           Expanded expanded) {
  Tensor out = given != nullptr ? *given : make_empty_like(self, self.dtype());
  if (where.is_meta()) {
    return out;
  }
  if (!out.is_same(self)) {
    copy_raw(out, self);
  } else if (expanded == Expanded::Warned && has_internal_overlap(out)) {
    warn(str(op,
             "_: writing to an expanded tensor is deprecated, for several of its elements are "
             "one place in memory; clone() it first"));
  } else if (expanded == Expanded::Refused) {
    check_no_internal_overlap(op, out);
  }
  return out;
}
inline void copy_overlapping_input(const char* op, const Tensor& out, bool in_step, Tensor& t) {
  t = copy_if_overlapping(op, out, t, in_step);
}
inline void copy_overlapping_input(const char* op, const Tensor& out, bool in_step,
                                   std::vector<std::optional<Tensor>>& list) {
  for (std::optional<Tensor>& t : list) {
    if (t.has_value()) {
      t = copy_if_overlapping(op, out, *t, in_step);
    }
  }
}
// Makes copies of the other inputs where they share memory with it.
template <class... A>
void copy_overlapping_inputs(const char* op, const Tensor& out, bool in_step, A&... inputs) {
  (copy_overlapping_input(op, out, in_step, inputs), ...);
}

// The kernel makes the result, whose size depends on values.
template <class R, class... P, class... A>
R run_dynamic(const char* op, uint32_t taken, R (*KernelTable::*kernel)(P...), Device where,
              const A&... arguments) {
  check_input_dtypes(op, taken, arguments...);
  RL_CHECK_NOT_IMPLEMENTED(!where.is_meta(), op,
                           ": the size of the result depends on values, which meta tensors lack");
  return find_kernel(kernel_tables, where, kernel, op)(arguments...);
}

// Runs a formula on the device of a built iterator, which has one output.
inline void run_formula(const TensorIterator& it,
                        void (*KernelTable::*formula)(const TensorIterator&, const Scalar*),
                        std::initializer_list<Scalar> attributes = {}) {
  find_kernel(kernel_tables, it.device(), formula, it.op())(it, attributes.begin());
}

// out= of what was made without it: one result, or a tuple of several.
inline void assign_outs(const char* op, const Tensor& made, const Tensor& out) {
  check_out_grad(op, made.requires_grad());
  assign_out(op, out, made);
}
template <class... T, class... Out>
void assign_outs(const char* op, const std::tuple<T...>& made, const Out&... outs) {
  check_outputs_apart(op, {&outs...});
  std::apply([&](const T&... values) { check_out_grad(op, (values.requires_grad() || ...)); },
             made);
  std::apply([&](const T&... values) { (assign_out(op, outs, values), ...); }, made);
}

// ---- history ----

inline void add_edges(Node& node, const Tensor& t) { node.add_edge(t); }
inline void add_edges(Node& node, TensorList list) {
  for (const Tensor& t : list) {
    node.add_edge(t);
  }
}
// A node with an edge for each of these.
template <class... T>
Ref<Node> make_node(const NodeDescriptor& descriptor, const T&... tensors) {
  Ref<Node> node = Ref<Node>::steal(new Node(&descriptor));
  (add_edges(*node, tensors), ...);
  return node;
}
// What an in-place op is about to overwrite, for its derivative.
inline Tensor value_before(const Tensor& self) {
  return RL_UNLIKELY(forward::active()) ? forward::clone_with_tangents(self) : self.clone();
}
inline bool needs_grad(TensorList list) { return any_requires_grad(list); }
template <class... T>
bool any_needs_grad(const T&... tensors) {
  return (needs_grad(tensors) || ...);
}
inline void set_history(const std::vector<Tensor>& list, const Ref<Node>& node) {
  for (const Tensor& t : list) {
    set_history(t, node);
  }
}
inline void count_write(const Tensor& t) {
  if (t.defined()) {
    t.impl()->bump_version();
  }
}
inline void count_write(TensorList list) {
  for (const Tensor& t : list) {
    count_write(t);
  }
}

inline bool has_tangent(const Tensor& t) { return forward::has_tangent(t); }
inline bool has_tangent(MaybeUndefined t) { return forward::has_tangent(t.tensor); }
inline bool has_tangent(TensorList list) { return forward::has_tangent(list); }
inline bool has_tangent(const std::vector<std::optional<Tensor>>&) { return false; }
// Who takes a call of an out= form in the place of its kernel, or null; RuntimeError where autograd
// or forward mode would have to see it.
template <class... T>
[[gnu::noinline]] Dispatch handler_of_out(const OpFunction& function, const char* op,
                                          bool wants_grad, const T&... tensors) {
  const Asks asked = asks_of_call(tensors...);
  if (const Dispatch by = interceptor_if_asked(function, asked, tensors...)) {
    return by;
  }
  check_out_grad(op, tls.grad_mode && wants_grad);
  RL_CHECK_NOT_IMPLEMENTED(!forward::active() || !(has_tangent(tensors) || ...),
                           "Trying to use forward AD with ", op,
                           "_out that does not support it because it is an out= function");
  return asks_handler_below(asked, tensors...) ? dispatch_lower_out : nullptr;
}

}  // namespace rushlight
