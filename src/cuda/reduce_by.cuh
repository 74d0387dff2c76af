// The kernel that a formula of src/kernels/reduce.h becomes: the op table names the formula, and
// the generator writes the call.
#pragma once

#include "cuda/column.h"
#include "cuda/reduce.cuh"
#include "kernels/math.h"
#include "kernels/reduce.h"

namespace rushlight::cuda {

struct Target {
  char* to;
  int64_t width;
  ScalarType dtype;
};

template <class F>
struct Reduced {
  using T = typename F::type;
  using A = std::conditional_t<F::over == fold::Over::Truth, bool, T>;
  using Acc = typename F::State;
  F formula;
  int64_t count;
  Target targets[2];
  __device__ Acc identity() const { return formula.identity(); }
  __device__ Acc step(Acc acc, A x, int64_t index) const {
    const T element = static_cast<T>(x);
    if constexpr (requires { formula.map(element); }) {
      return formula.combine(acc, formula.map(element));
    } else {
      return formula.step(acc, element, index);
    }
  }
  __device__ Acc combine(Acc a, Acc b) const { return formula.combine(a, b); }
  __device__ void finish(Acc acc, int64_t at) const {
    if constexpr (requires { formula.finish(acc, count); }) {
      store(targets[0], formula.finish(acc, count), at);
    } else if constexpr (requires { acc.second; }) {
      store(targets[0], acc.first, at);
      store(targets[1], acc.second, at);
    } else {
      store(targets[0], acc, at);
    }
  }
  template <class R>
  __device__ static void store(const Target& target, R result, int64_t at) {
    store_as<R>(target.to + at * target.width, target.dtype, result);
  }
};

// S: the dtype that is read without a conversion by hand.
template <class S, class F>
void run_formula(const F& formula, InputList outs, const Tensor& self, OptionalIntArrayRef dim) {
  const int64_t outputs = outs[0]->numel();
  Reduced<F> reduced{formula, outputs == 0 ? 0 : self.numel() / outputs, {}};
  for (size_t i = 0; i < outs.size(); i++) {
    const Tensor& out = *outs[i];
    reduced.targets[i] = {static_cast<char*>(out.data_ptr()), out.element_size(), out.dtype()};
  }
  reduce<S>(self, dim, F::ordered, reduced);
}

// `Set`: the dtypes of what decides on the type to compute in.
template <template <class> class F, uint32_t Set, class... Attributes>
void reduce_by(const char* name, InputList outs, const Tensor& self, OptionalIntArrayRef dim,
               const Attributes&... attributes) {
  constexpr fold::Over over = F<float>::over;
  if constexpr (over == fold::Over::Truth) {
    run_formula<bool>(F<uint8_t>{attributes...}, outs, self, dim);
  } else {
    const ScalarType t = over == fold::Over::Result ? outs[0]->dtype() : self.dtype();
    visit_dtype<Set>(name, t, [&](auto tag) {
      using S = typename decltype(tag)::type;
      using T = typename fold::computed_in<S, over>::type;
      run_formula<S>(F<T>{attributes...}, outs, self, dim);
    });
  }
}

}  // namespace rushlight::cuda
