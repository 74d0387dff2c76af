// Random counts: Poisson and binomial numbers, by Hormann's transformed rejection (1993) where they
// are large on average and by waiting times where they are small. unit() draws a number of [0, 1).
#pragma once

#include <math.h>

#include <cstdint>

#include "kernels/math.h"

namespace rushlight::counts {

// lgamma of C writes to a global variable.
RL_INLINE double log_gamma(double x) {
#ifdef RL_DEVICE_MATH
  return ::lgamma(x);
#else
  int sign = 0;
  return ::lgamma_r(x, &sign);
#endif
}

// ln k! less Stirling's formula for it.
RL_INLINE double stirling_tail(double k) {
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

// Beyond this many, logarithms of factorials lose the digits that their difference needs.
constexpr double many = 1e8;
constexpr double half_log_two_pi = 0.91893853320467274178;

// k log(k / mean) - (k - mean), which is small where k is near the mean.
RL_INLINE double deviance(double k, double mean) {
  const double away = (k - mean) / mean;
  return k == 0 ? mean : mean * ((1 + away) * ::log1p(away) - away);
}

// The logarithm of a Poisson number's probability without large logarithms that cancel.
RL_INLINE double log_poisson(double k, double mean) {
  if (k == 0) {
    return -mean;
  }
  const double rest = stirling_tail(k) + ((k + 0.5) * ::log1p(1 / k) - 1);
  return -deviance(k, mean) - 0.5 * ::log(k) - half_log_two_pi - rest;
}

template <class Unit>
RL_INLINE double poisson_one(double rate, const Unit& unit) {
  constexpr double infinite = __builtin_huge_val();
  if (rate == 0 || rate == infinite) {
    return rate;
  }
  if (rate < 10) {  // how many exponential times fit into one
    const double limit = ::exp(-rate);
    double product = 1;
    int64_t count = 0;
    while (true) {
      product *= unit();
      if (!(product > limit)) {
        return static_cast<double>(count);
      }
      count++;
    }
  }
  const double root = ::sqrt(rate);
  const double log_rate = ::log(rate);
  const double b = 0.931 + 2.53 * root;
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double quick = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = unit() - 0.5;
    const double v = unit();
    const double us = 0.5 - ::fabs(u);
    const double k = ::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= quick) {
      return k;
    }
    if (k < 0 || (us < 0.013 && v > us)) {
      continue;
    }
    const double log_chance =
        rate > many ? log_poisson(k, rate) : -rate + k * log_rate - log_gamma(k + 1);
    if (::log(v) + ::log(inverse_alpha) - ::log(a / (us * us) + b) <= log_chance) {
      return k;
    }
  }
}

// For probabilities of at most a half.
template <class Unit>
RL_INLINE double binomial_small(double count, double p, const Unit& unit) {
  if (count * p < 10) {  // waiting times between successes are geometric
    const double log_miss = ::log1p(-p);
    double waited = 0;
    double successes = 0;
    while (true) {
      waited += ::ceil(::log(unit()) / log_miss);
      if (!(waited <= count)) {
        return successes;
      }
      successes++;
    }
  }
  const double deviation = ::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = count * p + 0.5;
  const double quick = 0.92 - 4.2 / b;
  const double odds = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double m = ::floor((count + 1) * p);
  while (true) {
    const double u = unit() - 0.5;
    const double v = unit();
    const double us = 0.5 - ::fabs(u);
    const double k = ::floor((2 * a / us + b) * u + c);
    if (k < 0 || k > count) {
      continue;
    }
    if (us >= 0.07 && v <= quick) {
      return k;
    }
    const double tails =
        stirling_tail(m) + stirling_tail(count - m) - stirling_tail(k) - stirling_tail(count - k);
    // Apart from a constant, a binomial number is two Poisson numbers.
    const auto log_chance = [=](double n) {
      return log_poisson(n, count * p) + log_poisson(count - n, count * (1 - p));
    };
    const double bound = count > many
                             ? log_chance(k) - log_chance(m)
                             : (m + 0.5) * ::log((m + 1) / (odds * (count - m + 1))) +
                                   (count + 1) * ::log((count - m + 1) / (count - k + 1)) +
                                   (k + 0.5) * ::log(odds * (count - k + 1) / (k + 1)) + tails;
    if (::log(v * alpha / (a / (us * us) + b)) <= bound) {
      return k;
    }
  }
}

template <class Unit>
RL_INLINE double binomial_one(double count, double p, const Unit& unit) {
  if (count != count || p != p) {
    return __builtin_nan("");
  }
  if (count <= 0 || p <= 0) {
    return 0;
  }
  if (p >= 1) {
    return count;
  }
  return p <= 0.5 ? binomial_small(count, p, unit) : count - binomial_small(count, 1 - p, unit);
}

}  // namespace rushlight::counts
