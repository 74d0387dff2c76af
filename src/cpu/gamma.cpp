// Gamma and Dirichlet numbers, one after the other: numbers are drawn in PyTorch's order, so a seed
// gives its numbers.
#include "kernels/gamma_random.h"

#include <algorithm>
#include <limits>

#include "core/generator.h"
#include "cpu/random.h"
#include "generated/kernels.h"

namespace rushlight::cpu {

void _standard_gamma(const Tensor& out, const Tensor& self, const Generator& generator) {
  const OrderedOutput target(out);
  const Tensor shapes = contiguous_raw(self);
  const DrawLock draw(generator);
  const auto unit = [&] { return next_unit(draw.state()); };
  const auto normal = [&] { return random::next_normal(draw.state()); };
  visit_dtype<set_floats>("gamma_cpu", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr T least = std::numeric_limits<T>::min();
    const T* const a = shapes.data<T>();
    T* const to = static_cast<T*>(target.data());
    for (int64_t i = 0; i < out.numel(); i++) {
      const T x = static_cast<T>(gamma::standard_gamma(a[i], unit, normal));
      to[i] = x < least ? least : x;
    }
  });
  target.write_back();
}

namespace {

// Whether any is NaN. Where some are infinite they become 1 and all others 0: they share the sum.
bool any_is_no_number(double* x, int64_t n) {
  const auto is_infinite = [](double value) { return value > std::numeric_limits<double>::max(); };
  const bool strange = std::any_of(x, x + n, [](double value) { return value != value; });
  if (std::any_of(x, x + n, is_infinite)) {
    std::transform(x, x + n, x, [&](double value) { return is_infinite(value) ? 1.0 : 0.0; });
  }
  return strange;
}

}  // namespace

void _sample_dirichlet(const Tensor& out, const Tensor& self, const Generator& generator) {
  const OrderedOutput target(out);
  const Tensor shapes = contiguous_raw(self);
  const Tensor numbers = make_empty(self.sizes(), kFloat64, self.device());
  double* const x = numbers.data<double>();
  const int64_t n = out.numel();
  const int64_t row = out.dim() == 0 ? 1 : out.size(-1);
  const DrawLock draw(generator);
  const auto unit = [&] { return next_unit(draw.state()); };
  const auto normal = [&] { return random::next_normal(draw.state()); };
  visit_dtype<set_floats>("dirichlet", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr double least = std::numeric_limits<T>::min();
    constexpr double most = 1 - std::numeric_limits<T>::epsilon() / 2;
    const T* const a = shapes.data<T>();
    T* const to = static_cast<T*>(target.data());
    for (int64_t i = 0; i < n; i++) {
      x[i] = gamma::gamma_or_log(static_cast<double>(a[i]), unit, normal);
    }
    for (int64_t first = 0; first < n; first += row) {
      double* const shares = x + first;
      const bool strange = any_is_no_number(shares, row);
      gamma::divide_by_sum(shares, row, least, most);
      for (int64_t i = first; i < first + row; i++) {
        to[i] = strange ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(x[i]);
      }
    }
  });
  target.write_back();
}

}  // namespace rushlight::cpu
