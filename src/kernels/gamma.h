// Gamma functions, complete and incomplete, and their derivatives and the zeta function, in double:
// what the formulas of special.h and others build on.
#pragma once

#include "kernels/pointwise.h"

namespace rushlight::special {

inline constexpr double pi = 3.14159265358979323846;
inline constexpr double inf = math::infinity<double>;
inline constexpr double nan = math::nan<double>;
inline constexpr double root_half = 0.70710678118654752440;
inline constexpr double tiny = 1.1102230246251565e-16;

RL_INLINE double lgamma(double x) {
#ifdef RL_DEVICE_MATH
  return ::lgamma(x);
#else
  int sign = 0;  // the plain function writes a global variable
  return ::lgamma_r(x, &sign);
#endif
}

// By recurrence up to 10, then the asymptotic series; below 0 by reflection.
RL_INLINE double digamma(double x) {
  if (x == 0) {
    return math::copysign(inf, -x);
  }
  double result = 0;
  if (x < 0) {
    if (x == math::trunc(x)) {
      return nan;
    }
    // tan has the period 1 in x / pi: the fraction keeps its digits.
    result = -pi / math::tan(pi * (x - math::trunc(x)));
    x = 1 - x;
  }
  for (; x < 10; x += 1) {
    result -= 1 / x;
  }
  const double z = 1 / (x * x);
  const double series =
      z * (0.08333333333333333333 +
           z * (-0.008333333333333333333 +
                z * (0.003968253968253968254 +
                     z * (-0.004166666666666666667 +
                          z * (0.007575757575757575758 +
                               z * (-0.0210927960927960928 + z * 0.08333333333333333333))))));
  return result + math::log(x) - 0.5 / x - series;
}

// Both again for float32, in double and without branches, so that loops over them vectorise:
// arguments below 1/2 are reflected, those below 8 moved up by 8. Near zeros of the functions the
// error is 1e-15, which float32 does not see.
RL_INLINE float lgamma_single(float argument) {
  const double x = argument;
  const bool reflected = x < 0.5;
  const double y = reflected ? 1 - x : x;
  const bool is_small = y < 8;
  const double z = is_small ? y + 8 : y;
  const double low = y * (y + 1) * (y + 2) * (y + 3);
  const double product = low * ((y + 4) * (y + 5) * (y + 6) * (y + 7));
  const double moved = is_small ? product : 1;
  const double r = 1 / z;
  const double square = r * r;
  const double series =
      (z - 0.5) * math::log(z) - z + 0.91893853320467274178 +
      r * (0.08333333333333333333 +
           square * (-0.002777777777777777778 +
                     square * (0.0007936507936507936508 +
                               square * (-0.0005952380952380952381 +
                                         square * (0.0008417508417508417508 +
                                                   square * (-0.001917526917526917527 +
                                                             square * 0.006410256410256410256))))));
  const double sine = math::abs(math::sin(pi * (x - math::rint(x))));
  const double rest = math::log(reflected ? pi * moved / sine : moved);
  const double value = reflected ? rest - series : series - rest;
  return static_cast<float>(math::abs(x) == inf ? inf : (x == 1) | (x == 2) ? 0 : value);
}
RL_INLINE float digamma_single(float argument) {
  const double x = argument;
  const bool reflected = x < 0.5;
  const double y = reflected ? 1 - x : x;
  const bool is_small = y < 8;
  const double z = is_small ? y + 8 : y;
  double moved = 0;
  for (int k = 0; k < 8; k++) {
    moved += 1 / (y + k);
  }
  const double square = 1 / (z * z);
  const double series =
      square *
      (0.08333333333333333333 +
       square * (-0.008333333333333333333 +
                 square * (0.003968253968253968254 +
                           square * (-0.004166666666666666667 +
                                     square * (0.007575757575757575758 +
                                               square * (-0.0210927960927960928 +
                                                         square * 0.08333333333333333333))))));
  const double value = math::log(z) - 0.5 / z - series - (is_small ? moved : 0);
  const double fraction = x - math::rint(x);  // of x near 0 this is x itself
  const double reflection = value - pi / math::tan(pi * fraction);
  const double pole = x == 0 ? math::copysign(inf, -x) : nan;
  const double low = fraction == 0 ? pole : reflection;
  return static_cast<float>(reflected ? low : x == inf ? inf : value);
}

// The sum of (q + k)^-s over k >= 0 for q > 0: some terms, then Euler and Maclaurin's formula,
// whose coefficients are (2k)! / B(2k).
RL_INLINE double zeta_above(double s, double q) {
  double sum = math::pow(q, -s);
  if (sum == 0) {  // nor is any other term as large as the smallest number
    return 0;
  }
  double a = q;
  double b = 0;
  for (int i = 0; i < 9 || a <= 9; i++) {
    a += 1;
    b = math::pow(a, -s);
    sum += b;
    if (b > -tiny * sum && b < tiny * sum) {
      return sum;
    }
  }
  constexpr double terms[] = {12.0,
                              -720.0,
                              30240.0,
                              -1209600.0,
                              47900160.0,
                              -1892437580.318379161,
                              74724249600.0,
                              -2950130727918.164224,
                              116467828143500.6725,
                              -4597978722407472.611,
                              181521054019435467.7,
                              -7166165256175667011.0};
  sum += b * a / (s - 1) - 0.5 * b;
  double factor = 1;
  double k = 0;
  for (double term : terms) {
    factor *= s + k;
    b /= a;
    const double t = factor * b / term;
    sum += t;
    if (math::abs(t / sum) < tiny) {
      break;
    }
    factor *= s + k + 1;
    b /= a;
    k += 2;
  }
  return sum;
}

// The same for any q. Below 0 (s is an integer there) the terms on either side of the pole are two
// sums away from it, and the one on the left ends at q.
RL_INLINE double zeta(double s, double q) {
  if (s == 1) {
    return inf;
  }
  if (!(s > 1) || q != q) {
    return nan;
  }
  if (q == inf) {
    return 0;
  }
  if (q <= 0) {
    if (q == math::floor(q)) {
      return inf;
    }
    if (s != math::floor(s)) {
      return nan;
    }
  }
  const double first = q < 0 ? q - math::floor(q) : q;
  const double sign = q > 0 ? 0 : math::fmod(s, 2.0) == 0 ? 1 : -1;
  const double places[] = {first, 1 - first, 1 - q};
  const double signs[] = {1, sign, -sign};
  double sum = 0;
  for (int i = 0; i < 3; i++) {
    if (signs[i] != 0) {
      sum += signs[i] * zeta_above(s, places[i]);
    }
  }
  return sum;
}

RL_INLINE double polygamma(double x, double n) {
  if (n == 0) {
    return digamma(x);
  }
  const double sign = math::fmod(n, 2.0) == 0 ? -1 : 1;
  return sign * math::exp(lgamma(n + 1)) * zeta(n + 1, x);
}

// ---- incomplete gamma functions ----

// mu - log(1 + mu)
RL_INLINE double minus_log1p(double mu) {
  if (math::abs(mu) >= 0.3) {
    return mu - math::log1p(mu);
  }
  double sum = 0;
  double power = mu * mu;
  for (int k = 2; k < 60; k++) {
    const double term = power / k;
    sum += k % 2 == 0 ? term : -term;
    power *= mu;
    if (math::abs(term) < tiny * sum) {
      break;
    }
  }
  return sum;
}

// x^a e^-x / gamma(a + 1)
RL_INLINE double gamma_weight(double a, double x) {
  if (a < 20) {
    return math::exp(a * math::log(x) - x - lgamma(a + 1));
  }
  // Through Stirling's series, without large logarithms that cancel: x = a (1 + mu).
  const double phi = minus_log1p((x - a) / a);
  const double z = 1 / (a * a);
  const double correction =
      (0.08333333333333333333 + z * (-0.002777777777777777778 +
                                     z * (0.0007936507936507936508 + z * -0.0005952380952380952))) /
      a;
  return math::exp(-a * phi - correction) / math::sqrt(2 * pi * a);
}

// The lower regularised function by its series; right where x is not far above a.
RL_INLINE double gamma_series(double a, double x) {
  double term = 1;
  double sum = 1;
  for (double k = 1; k < 100000; k += 1) {
    term *= x / (a + k);
    sum += term;
    if (term <= tiny * sum) {
      break;
    }
  }
  return sum * gamma_weight(a, x);
}

// The upper one by Legendre's continued fraction, as the sum of what each of its convergents adds
// to the one before; right where x is at least a + 1. `ratio` is that of a convergent's denominator
// to the one before, which follows from the recurrence of denominators.
RL_INLINE double gamma_fraction(double a, double x) {
  const double beyond = x - a;
  double ratio = beyond + 1;
  double term = 1 / ratio;
  double sum = term;
  for (double k = 1; k < 100000; k += 1) {
    const double factor = k * (k - a);
    const double next = beyond + 2 * k + 1 - factor / ratio;
    term *= factor / (ratio * next);
    sum += term;
    ratio = next;
    if (math::abs(term) <= tiny * sum) {
      break;
    }
  }
  return sum * a * gamma_weight(a, x);
}

// From here on the upper one is nearly a normal distribution's; series and fraction would need the
// root of `a` terms and more.
inline constexpr double large_gamma = 1e8;

// The upper one for such `a`: the uniform expansion (DLMF 8.12.4), of whose coefficients
// 1 / mu - 1 / eta, a series here, and -1 / (540 a) are above rounding where it is neither 0 nor 1.
RL_INLINE double gamma_uniform(double a, double x) {
  const double mu = (x - a) / a;
  if (math::abs(mu) > 0.1) {
    return mu > 0 ? 0 : 1;
  }
  const double eta = math::copysign(math::sqrt(2 * minus_log1p(mu)), mu);
  const double series = -1.0 / 3 + eta * (1.0 / 12 - eta * 2 / 135) - 1 / (540 * a);
  return 0.5 * math::erfc(eta * math::sqrt(0.5 * a)) +
         math::exp(-0.5 * a * eta * eta) * series / math::sqrt(2 * pi * a);
}

RL_INLINE double gammainc(double a, double x) {
  if (!(a >= 0) || !(x >= 0)) {
    return nan;
  }
  if (a == 0) {
    return x > 0 ? 1 : nan;
  }
  if (x == 0) {
    return 0;
  }
  if (a == inf) {
    return x == inf ? nan : 0;
  }
  if (x == inf) {
    return 1;
  }
  if (a >= large_gamma) {
    return 1 - gamma_uniform(a, x);
  }
  return x < a + 1 ? gamma_series(a, x) : 1 - gamma_fraction(a, x);
}

RL_INLINE double gammaincc(double a, double x) {
  if (!(a >= 0) || !(x >= 0)) {
    return nan;
  }
  if (a == 0) {
    return x > 0 ? 0 : nan;
  }
  if (x == 0) {
    return 1;
  }
  if (a == inf) {
    return x == inf ? nan : 1;
  }
  if (x == inf) {
    return 0;
  }
  if (a >= large_gamma) {
    return gamma_uniform(a, x);
  }
  return x < a + 1 ? 1 - gamma_series(a, x) : gamma_fraction(a, x);
}

}  // namespace rushlight::special
