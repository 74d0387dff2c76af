// Random counts: Poisson and binomial numbers, by Hormann's transformed rejection (1993) where they
// are large on average and by waiting times where they are small. Numbers are drawn in PyTorch's
// order, so a seed gives its counts.
#include <cmath>

#include "core/generator.h"
#include "cpu/random.h"
#include "generated/kernels.h"

namespace rushlight::cpu {

namespace {

// Uniform in [0, 1), of 53 bits from two draws.
double unit(GeneratorImpl& g) {
  const uint64_t high = next_32(g.engine);
  const uint64_t low = next_32(g.engine);
  return static_cast<double>((high & 0x1fffffu) << 32 | low) * 0x1p-53;
}

double log_gamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}

double poisson_one(double rate, GeneratorImpl& g) {
  if (rate == 0) {
    return 0;
  }
  if (rate < 10) {  // how many exponential times fit into one
    const double limit = std::exp(-rate);
    double product = 1;
    int64_t count = 0;
    while (true) {
      product *= unit(g);
      if (!(product > limit)) {
        return static_cast<double>(count);
      }
      count++;
    }
  }
  const double root = std::sqrt(rate);
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * root;
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double quick = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = unit(g) - 0.5;
    const double v = unit(g);
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= quick) {
      return k;
    }
    if (k < 0 || (us < 0.013 && v > us)) {
      continue;
    }
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        -rate + k * log_rate - log_gamma(k + 1)) {
      return k;
    }
  }
}

// ln k! less Stirling's formula for it.
double stirling_tail(double k) {
  constexpr double small[] = {0.0810614667953272, 0.0413406959554092, 0.0276779256849983,
                              0.0207906721037650, 0.0166446911898211, 0.0138761288230707,
                              0.0118967099458917, 0.0104112652619720, 0.00925546218271273,
                              0.00833056343336287};
  if (k <= 9) {
    return small[static_cast<int>(k)];
  }
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// For probabilities of at most a half.
double binomial_small(double count, double p, GeneratorImpl& g) {
  if (count * p < 10) {  // waiting times between successes are geometric
    const double log_miss = std::log1p(-p);
    double waited = 0;
    double successes = 0;
    while (true) {
      waited += std::ceil(std::log(unit(g)) / log_miss);
      if (!(waited <= count)) {
        return successes;
      }
      successes++;
    }
  }
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = count * p + 0.5;
  const double quick = 0.92 - 4.2 / b;
  const double odds = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double m = std::floor((count + 1) * p);
  while (true) {
    const double u = unit(g) - 0.5;
    const double v = unit(g);
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (k < 0 || k > count) {
      continue;
    }
    if (us >= 0.07 && v <= quick) {
      return k;
    }
    const double bound = (m + 0.5) * std::log((m + 1) / (odds * (count - m + 1))) +
                         (count + 1) * std::log((count - m + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) + stirling_tail(m) +
                         stirling_tail(count - m) - stirling_tail(k) - stirling_tail(count - k);
    if (std::log(v * alpha / (a / (us * us) + b)) <= bound) {
      return k;
    }
  }
}

double binomial_one(double count, double p, GeneratorImpl& g) {
  if (std::isnan(count) || std::isnan(p)) {
    return NAN;
  }
  if (count <= 0 || p <= 0) {
    return 0;
  }
  if (p >= 1) {
    return count;
  }
  return p <= 0.5 ? binomial_small(count, p, g) : count - binomial_small(count, 1 - p, g);
}

}  // namespace

void poisson(const Tensor& out, const Tensor& self, const Generator& generator) {
  const OrderedOutput target(out);
  const Tensor rates = contiguous_raw(self);
  const DrawLock draw(generator);
  visit_dtype<set_floating>("poisson", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const rate = rates.data<T>();
    T* const to = static_cast<T*>(target.data());
    for (int64_t i = 0; i < out.numel(); i++) {
      const double r = static_cast<compute_t<T>>(rate[i]);
      RL_CHECK(r >= 0 && r <= 1e18, "invalid Poisson rate, expected rate to be non-negative");
      to[i] = convert<T>(poisson_one(r, draw.state()));
    }
  });
}

void binomial(const Tensor& out, const Tensor& count, const Tensor& prob,
              const Generator& generator) {
  const OrderedOutput target(out);
  const Tensor counts = contiguous_raw(count);
  const Tensor probabilities = contiguous_raw(prob);
  const DrawLock draw(generator);
  visit_dtype<set_floating>("binomial_cpu", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const n = counts.data<T>();
    const T* const p = probabilities.data<T>();
    T* const to = static_cast<T*>(target.data());
    for (int64_t i = 0; i < out.numel(); i++) {
      const double trials = static_cast<compute_t<T>>(n[i]);
      RL_CHECK(!(trials > 1e18), "binomial: ", trials, " trials are too many");
      to[i] = convert<T>(
          binomial_one(std::floor(trials), static_cast<compute_t<T>>(p[i]), draw.state()));
    }
  });
}

}  // namespace rushlight::cpu
