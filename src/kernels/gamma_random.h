// Gamma numbers by rejection, and how gamma and beta numbers move with their parameters: where a
// number x has the distribution function F(x; a), a step of a at the same F moves x by
// -(dF/da) / (dF/dx) (implicit derivatives: Figurnov, Mohamed, Mnih 2018). Both derivatives have
// the density as a factor, which cancels, so nothing overflows. Derivatives in a are carried along
// by the series and continued fractions (Moore 1982; Boik, Robison-Cox 1998). All in double.
#pragma once

#include "kernels/special.h"

namespace rushlight::gamma {

// Marsaglia and Tsang (2000): normal numbers, cubed, pass the test with probability 0.95 and more;
// below 1 a number of a + 1 times a power of a uniform one. unit() draws from [0, 1), normal() a
// standard normal number. What is made of `a` alone is rounded to its type, and two constants to
// float, as they are in PyTorch, whose numbers these are for the same draws.
struct Cube {
  double d;
  double v;
};
template <class T, class Unit, class Normal>
RL_INLINE Cube cubed_normal(T a, const Unit& unit, const Normal& normal) {
  const double d = a - 1.0f / 3.0f;
  const double c = 1 / math::sqrt(9 * d);
  while (true) {
    double x = 0;
    double y = 0;
    do {
      x = normal();
      y = 1 + c * x;
    } while (y <= 0);
    const double v = y * y * y;
    const double u = 1 - unit();
    const double square = x * x;
    // Not !(u >= ...): not-a-number leaves the loop.
    if (!(u >= 1 - 0.0331f * square * square) ||
        !(math::log(u) >= 0.5 * square + d * (1 - v + math::log(v)))) {
      return {d, v};
    }
  }
}

template <class T, class Unit, class Normal>
RL_INLINE double standard_gamma(T a, const Unit& unit, const Normal& normal) {
  double scale = 1;
  if (a < 1) {
    if (a == 0) {
      return 0;
    }
    scale = math::pow(1 - unit(), static_cast<double>(1 / a));
    a += 1;
  }
  const Cube n = cubed_normal(a, unit, normal);
  return scale * n.d * n.v;
}

// Below this, numbers of a row that is divided by its sum are given by their logarithms, which are
// negative: with small parameters all of them may be.
inline constexpr double least_normal = 2.2250738585072014e-308;

template <class Unit, class Normal>
RL_INLINE double gamma_or_log(double a, const Unit& unit, const Normal& normal) {
  if (!(a < 1) || a == 0) {
    return standard_gamma(a, unit, normal);
  }
  constexpr double smallest = 1e-300;  // of which logarithms are finite
  const double u = 1 - unit();
  const Cube n = cubed_normal(a + 1, unit, normal);
  const double x = math::pow(u, 1 / a) * n.d * n.v;
  return x >= least_normal ? x
                           : math::log(u) / (a < smallest ? smallest : a) + math::log(n.d * n.v);
}

// A row of `n` such numbers becomes their shares of its sum, within [least, most].
RL_INLINE void divide_by_sum(double* x, int64_t n, double least, double most) {
  double largest = 0;
  double largest_log = -special::inf;
  for (int64_t i = 0; i < n; i++) {
    largest = x[i] > largest ? x[i] : largest;
    largest_log = x[i] < 0 && x[i] > largest_log ? x[i] : largest_log;
  }
  const double shift = largest > 0 || largest_log == -special::inf ? 0 : largest_log;
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    x[i] = x[i] < 0 ? math::exp(x[i] - shift) : x[i];
    sum += x[i];
  }
  for (int64_t i = 0; i < n; i++) {
    const double share = x[i] / sum;  // 0 / 0 where all parameters are 0
    x[i] = !(share >= least) ? least : share > most ? most : share;
  }
}

// A number with its derivative.
struct Dual {
  double v;
  double d;
};
RL_INLINE Dual operator+(Dual x, Dual y) { return {x.v + y.v, x.d + y.d}; }
RL_INLINE Dual operator-(Dual x, Dual y) { return {x.v - y.v, x.d - y.d}; }
RL_INLINE Dual operator*(Dual x, Dual y) { return {x.v * y.v, x.d * y.v + x.v * y.d}; }
RL_INLINE Dual operator/(Dual x, Dual y) {
  const double quotient = x.v / y.v;
  return {quotient, (x.d - quotient * y.d) / y.v};
}
RL_INLINE Dual constant(double v) { return {v, 0}; }

// 1 / (b(0) + a(1) / (b(1) + a(2) / (b(2) + ...))) by Lentz's algorithm. For the fractions below
// some multiple of the root of the largest parameter gives all digits.
template <class Numerator, class Denominator>
RL_INLINE Dual continued_fraction(const Numerator& numerator, const Denominator& denominator) {
  constexpr int longest = 20000;
  constexpr double close = 4e-16;
  const auto away_from_zero = [](Dual x) { return math::abs(x.v) < 1e-300 ? constant(1e-300) : x; };
  Dual f = away_from_zero(denominator(0));
  Dual c = f;
  Dual d = constant(0);
  for (int i = 1; i < longest; i++) {
    const Dual a = numerator(i);
    const Dual b = denominator(i);
    d = constant(1) / away_from_zero(b + a * d);
    c = away_from_zero(b + a / c);
    const Dual step = c * d;
    f = f * step;
    if (math::abs(step.v - 1) < close &&
        math::abs(step.d) * math::abs(f.v) < close * (math::abs(f.v) + math::abs(f.d))) {
      break;
    }
  }
  return constant(1) / f;
}

// Beyond this parameter the normal approximation's leading term is right to a relative 1e-5 / 2.
inline constexpr double many = 2e5;

// log(r) / (r - 1)
RL_INLINE double log_slope(double r) {
  return math::abs(r - 1) < 1e-8 ? 1 : math::log1p(r - 1) / (r - 1);
}

// dx / da of a gamma number x of shape a.
RL_INLINE double gamma_implicit(double a, double x) {
  if (!(a > 0) || !(x >= 0)) {
    return special::nan;
  }
  if (x == 0 || x == special::inf) {
    return x;
  }
  if (a > many) {
    const double ratio = x / a;
    return ratio * log_slope(ratio);
  }
  const double log_x = math::log(x);
  if (x > a + 1) {
    const Dual h =
        continued_fraction([a](int i) { return Dual{-i * (i - a), static_cast<double>(i)}; },
                           [a, x](int i) { return Dual{x + 1 + 2 * i - a, -1}; });
    return x * (h.v * (log_x - special::digamma(a)) + h.d);
  }
  // The sum of x^k / ((a + 1) ... (a + k)).
  double term = 1;
  double sum = 1;
  double harmonic = 0;
  double slope = 0;
  for (double k = 1; k < 100000 && term > special::tiny * sum; k += 1) {
    const double r = 1 / (a + k);
    term *= x * r;
    harmonic += r;
    sum += term;
    slope -= term * harmonic;
  }
  return -x / a * (sum * (log_x - special::digamma(a + 1)) + slope);
}

// The continued fraction of the incomplete beta function.
RL_INLINE Dual beta_fraction(Dual a, Dual b, double x) {
  return continued_fraction(
      [a, b, x](int i) {
        const Dual m = constant(i / 2);
        const Dual even = a + constant(i);
        return i % 2 == 1 ? constant(-x) * (a + m) * (a + b + m) / ((even - constant(1)) * even)
                          : constant(x) * m * (b - m) / ((even - constant(1)) * even);
      },
      [](int) { return constant(1); });
}

// dx / da of a beta number x of parameters a and b, divided by 1 - x.
RL_INLINE double beta_implicit(double x, double a, double b) {
  if (!(x >= 0) || !(x <= 1) || !(a > 0) || !(b >= 0)) {
    return special::nan;
  }
  if (x == 0 || b == 0) {
    return 0;
  }
  if (a > many && b > many) {
    const double ratio = x * ((a + b) / a);
    return ratio * log_slope(ratio) / (a + b);
  }
  const double log_x = math::log(x);
  if (x < (a + 1) / (a + b + 2)) {
    const Dual h = beta_fraction({a, 1}, {b, 0}, x);
    return -x / a * (h.v * (log_x - special::digamma(a + 1) + special::digamma(a + b)) + h.d);
  }
  const Dual h = beta_fraction({b, 0}, {a, 1}, 1 - x);
  return x / b * (h.v * (log_x - special::digamma(a) + special::digamma(a + b)) + h.d);
}

}  // namespace rushlight::gamma

namespace rushlight::formula {

RL_FORMULA(_standard_gamma_grad, a, x) {
  return static_cast<T>(gamma::gamma_implicit(static_cast<double>(a), static_cast<double>(x)));
}
RL_FORMULA(_dirichlet_grad, x, alpha, total) {
  const double a = static_cast<double>(alpha);
  return static_cast<T>(
      gamma::beta_implicit(static_cast<double>(x), a, static_cast<double>(total) - a));
}

}  // namespace rushlight::formula
