// The tangents of results: what generated forward functions share.
#include "ops/forward_pass.h"

#include <utility>

namespace rushlight::forward {

namespace {
[[noreturn]] void refuse_jvp(const char* op, const std::string& of) {
  throw NotImplementedError(
      str("Trying to use forward AD with ", op, " that does not support it: it has no jvp", of));
}
}  // namespace
void refuse(const char* op) { refuse_jvp(op, ""); }
void refuse(const char* op, const char* argument) { refuse_jvp(op, str(" for '", argument, "'")); }
void refuse_results(const char* op, const Tensor& result) {
  if (result.defined() && is_differentiable(result.dtype())) {
    refuse(op);
  }
}

// ---- a call ----

std::vector<Value> dispatch(const OpFunction& function, std::vector<Value> arguments) {
  const TangentRule& rule = function.tangent;
  bool carried = false;
  for (size_t i = 0; i < arguments.size(); i++) {
    if ((rule.carriers >> i & 1) != 0) {
      arguments[i].for_each_tensor([&](const Tensor& t) { carried = carried || level_of(t) != 0; });
    }
  }
  if (carried) {
    return rule.call(arguments);
  }
  const Below all(1);  // tangents of arguments that the op has no derivative by
  return function.call(arguments);
}

// ---- a pass ----

Tensor Pass::of(const Tensor& argument) const {
  Tensor t = tangent(argument, level_);
  if (t.defined()) {
    given_.push_back(t);
  }
  return t;
}

Tensor Pass::before(const Tensor& self) const {
  const Tensor t = of(self);
  return t.defined() && tls.grad_mode ? t.clone() : t;
}

std::vector<Tensor> Pass::of(TensorList arguments) const {
  std::vector<Tensor> out;
  out.reserve(arguments.size());
  for (const Tensor& t : arguments) {
    out.push_back(of(t));
  }
  return out;
}

void Pass::set_result_tangent(const Tensor& result, const Tensor& tangent, bool is_view) const {
  if (!tangent.defined() || !result.defined() || !is_differentiable(result.dtype())) {
    return;
  }
  // Writes to the result must not reach the tangent of an argument.
  const bool shared = !is_view && std::any_of(given_.begin(), given_.end(), [&](const Tensor& t) {
    return t.is_same(tangent) || t.storage() == tangent.storage();
  });
  give_tangent(result, level_, shared ? tangent.clone() : tangent);
  pass_tangent_to_node(result);
}

void Pass::set_tangents(const std::vector<Tensor>& results,
                        const std::vector<Tensor>& tangents) const {
  for (size_t i = 0; i < tangents.size(); i++) {
    set_tangents(results[i], tangents[i]);
  }
}

void Pass::set_view_tangent(const std::vector<Tensor>& views,
                            const std::vector<Tensor>& tangents) const {
  for (size_t i = 0; i < tangents.size(); i++) {
    set_view_tangent(views[i], tangents[i]);
  }
}

void Pass::write(const Tensor& self, const Tensor& tangent) const {
  if (!tangent.defined()) {
    return;
  }
  write_tangent(self, level_, tangent);
  pass_tangent_to_node(self);
}

// ---- parts of rules ----

Tensor in_place_of_gradient(const Tensor& tangent, const Tensor& result) {
  Tensor t = tangent.dtype() == result.dtype() ? tangent : tangent.to(result.dtype());
  t = t.sizes() == result.sizes() ? t : t.expand(result.sizes());
  return conjugate(t);
}

std::vector<Tensor> or_zeros(const std::vector<Tensor>& tangents, TensorList arguments) {
  std::vector<Tensor> out;
  out.reserve(tangents.size());
  for (size_t i = 0; i < tangents.size(); i++) {
    out.push_back(or_zeros(tangents[i], arguments[i]));
  }
  return out;
}

bool any_defined(const std::vector<Tensor>& tangents) {
  return std::any_of(tangents.begin(), tangents.end(), [](const Tensor& t) { return t.defined(); });
}

Tensor reduce_tangent(const Tensor& slope, const Tensor& tangent, const Tensor& result,
                      OptionalIntArrayRef dim, bool keepdim) {
  const Tensor product = conjugate(slope) * tangent;
  const bool some = dim.has_value() && !dim.value().empty();
  const Tensor sum = some ? product.sum(dim, keepdim) : product.sum();
  return sum.sizes() == result.sizes() ? sum : sum.reshape(result.sizes());
}

Results derivative_of_backward(const std::vector<Tensor>& arguments,
                               const std::vector<Tensor>& tangents, const Rerun& op) {
  const bool recorded =
      tls.grad_mode && (any_requires_grad(arguments) || any_requires_grad(tangents));
  const GradMode recording(true);
  // Under new names, for one argument may be made of another. None is a leaf: where there are
  // batches, the engine takes leaves for tensors that all slices share.
  std::vector<Tensor> given = arguments;
  std::vector<Tensor> wanted;
  std::vector<Tensor> seeds;
  for (size_t i = 0; i < given.size(); i++) {
    if (tangents[i].defined()) {
      given[i] = begin_transform(given[i]);
      wanted.push_back(given[i]);
      seeds.push_back(tangents[i]);
    }
  }
  const Results results = op.run(given);
  Results outputs;
  Results blank;
  for (const Tensor& t : results) {
    if (t.defined() && t.requires_grad()) {
      outputs.push_back(t);
      blank.push_back(begin_transform(zeros_like(t.detach())));
    }
  }
  Results found(blank.size());
  if (!outputs.empty()) {
    const std::vector<Tensor> gradients = run_grad(outputs, wanted, blank, true, true, true);
    std::vector<Tensor> linear;
    std::vector<Tensor> directions;
    for (size_t i = 0; i < gradients.size(); i++) {
      if (gradients[i].defined() && gradients[i].requires_grad()) {
        linear.push_back(gradients[i]);
        directions.push_back(seeds[i]);
      }
    }
    if (!linear.empty()) {
      found = run_grad(linear, blank, directions, recorded, recorded, true);
    }
  }
  Results out;
  size_t next = 0;
  for (const Tensor& t : results) {
    Tensor tangent = t.defined() && t.requires_grad() ? found[next++] : Tensor();
    out.push_back(tangent.defined() || !t.defined() ? tangent : zeros_like(t.detach()));
  }
  return out;
}

}  // namespace rushlight::forward
