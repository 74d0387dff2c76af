// Gradients of a function of tensors, for functions that are an op's derivative.
#pragma once

#include <array>

#include <rushlight/autograd.h>
#include <rushlight/ops.h>

#include "ops/derivatives.h"

namespace rushlight {

// The gradients of f(inputs) for the inputs that `mask` names. Where the caller records, so is
// this, and the gradients can be differentiated.
template <size_t N, class F>
std::array<Tensor, N> gradients_of(const Tensor& grad, const std::array<Tensor, N>& inputs,
                                   const std::array<bool, N>& mask, const F& f) {
  const bool recorded = grad_enabled();
  const AutoGradMode recording(true);
  std::array<Tensor, N> arguments;
  std::vector<Tensor> wanted;
  for (size_t i = 0; i < N; i++) {
    const bool kept = recorded && inputs[i].defined() && inputs[i].requires_grad();
    if (!inputs[i].defined()) {
      continue;
    }
    arguments[i] = kept      ? alias(inputs[i])
                   : mask[i] ? begin_transform(inputs[i].detach())
                             : inputs[i].detach();
    if (mask[i]) {
      wanted.push_back(arguments[i]);
    }
  }
  std::array<Tensor, N> out;
  if (wanted.empty()) {
    return out;
  }
  const Tensor result = f(arguments);
  const std::vector<Tensor> found =
      run_grad({result}, wanted, {grad}, recorded, recorded, /*allow_unused=*/true);
  for (size_t i = 0, next = 0; i < N; i++) {
    if (mask[i] && inputs[i].defined()) {
      out[i] = found[next].defined() ? found[next] : zeros_like(inputs[i]);
      next++;
    }
  }
  return out;
}
template <class F>
Tensor gradient_of(const Tensor& grad, const Tensor& self, const F& f) {
  return gradients_of<1>(grad, {self}, {true}, [&](const auto& in) { return f(in[0]); })[0];
}
// Of an op that is linear in an input of which only the size is known.
template <class F>
Tensor gradient_by_size(const Tensor& grad, IntArrayRef sizes, const F& f) {
  return gradient_of(grad, zeros(sizes, grad.options()), f);
}

}  // namespace rushlight
