// Poisson and binomial numbers, one after the other: numbers are drawn in PyTorch's order, so a
// seed gives its counts.
#include <cmath>

#include "core/generator.h"
#include "cpu/random.h"
#include "generated/kernels.h"
#include "kernels/counts.h"

namespace rushlight::cpu {

void poisson(const Tensor& out, const Tensor& self, const Generator& generator) {
  const OrderedOutput target(out);
  const Tensor rates = contiguous_raw(self);
  const DrawLock draw(generator);
  const auto draw_unit = [&] { return next_unit(draw.state()); };
  visit_dtype<set_floating>("poisson", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const rate = rates.data<T>();
    T* const to = static_cast<T*>(target.data());
    for (int64_t i = 0; i < out.numel(); i++) {
      const double r = static_cast<compute_t<T>>(rate[i]);
      RL_CHECK(r >= 0, "invalid Poisson rate, expected rate to be non-negative, got ", r);
      to[i] = convert<T>(counts::poisson_one(r, draw_unit));
    }
  });
  target.write_back();
}

void binomial(const Tensor& out, const Tensor& count, const Tensor& prob,
              const Generator& generator) {
  const OrderedOutput target(out);
  const Tensor counts = contiguous_raw(count);
  const Tensor probabilities = contiguous_raw(prob);
  const DrawLock draw(generator);
  const auto draw_unit = [&] { return next_unit(draw.state()); };
  visit_dtype<set_floating>("binomial_cpu", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const n = counts.data<T>();
    const T* const p = probabilities.data<T>();
    T* const to = static_cast<T*>(target.data());
    for (int64_t i = 0; i < out.numel(); i++) {
      const double trials = static_cast<compute_t<T>>(n[i]);
      RL_CHECK(!std::isinf(trials), "binomial: expected a finite number of trials, got ", trials);
      to[i] = convert<T>(
          counts::binomial_one(std::floor(trials), static_cast<compute_t<T>>(p[i]), draw_unit));
    }
  });
  target.write_back();
}

}  // namespace rushlight::cpu
