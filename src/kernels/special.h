// Formulas of the special functions: Bessel and error functions, orthogonal polynomials, and (over
// gamma.h) gamma functions.
// They are computed in double whatever the dtype is, by series, recurrences, integrals and
// continued fractions that need no tables; loops end by themselves. A new one: a function here, its
// RL_FORMULA below, an entry in ops/special.py.
#pragma once

#include "kernels/gamma.h"

namespace rushlight::special {

// ---- modified Bessel functions ----

// e^-|x| I_order(|x|) for order 0 or 1.
RL_INLINE double bessel_i_scaled(int order, double x) {
  x = math::abs(x);
  if (x <= 30) {
    const double z = 0.25 * x * x;
    double term = order == 0 ? 1 : 0.5 * x;
    double sum = term;
    for (double k = 1; k < 200; k += 1) {
      term *= z / (k * (k + order));
      sum += term;
      if (term <= tiny * sum) {
        break;
      }
    }
    return sum * math::exp(-x);
  }
  if (x == inf) {
    return 0;
  }
  const double mu = 4.0 * order * order;
  double term = 1;
  double sum = 1;
  for (double k = 1; k < 40; k += 1) {
    const double odd = 2 * k - 1;
    term *= -(mu - odd * odd) / (8 * k * x);
    sum += term;
    if (math::abs(term) <= tiny * math::abs(sum)) {
      break;
    }
  }
  return sum / math::sqrt(2 * pi * x);
}

RL_INLINE double i0e(double x) { return x != x ? x : bessel_i_scaled(0, x); }
RL_INLINE double i1e(double x) { return x != x ? x : math::copysign(bessel_i_scaled(1, x), x); }
// In two factors: e^|x| alone overflows a little before the product does.
RL_INLINE double unscale(double scaled, double x) {
  const double half = math::exp(0.5 * math::abs(x));
  return scaled * half * half;
}
// NaN at infinities, as SciPy and PyTorch have it.
RL_INLINE double i0(double x) { return unscale(i0e(x), x); }
RL_INLINE double i1(double x) { return unscale(i1e(x), x); }

// cosh(n step) - 1 for n = 1, 2 …, by sums of positive numbers.
struct CoshSteps {
  double twice;      // 2 (cosh(step) - 1)
  double increment;  // of the last step
  double value;
  RL_INLINE explicit CoshSteps(double step) {
    const double s = math::sinh(0.5 * step);
    twice = 4 * s * s;
    increment = value = 0.5 * twice;
  }
  RL_INLINE void advance() {
    increment += twice * (1 + value);
    value += increment;
  }
};

// e^x K_order(x) for x >= 2: the integral over t > 0 of exp(-x (cosh(t) - 1)) cosh(order t), by the
// trapezoidal rule. Its error falls as exp(-2 pi y / step), where y is how far from the real axis
// the integrand is small: pi / 2, or for large x as far as a Gaussian's is. With this step that is
// below a double's rounding, and at most 17 terms count.
RL_INLINE double bessel_k_integral(double order, double x) {
  const double step = 0.68 / math::sqrt(x + 6.6);
  CoshSteps decay(step);
  CoshSteps growth(order * step);
  double sum = 0.5;
  for (int n = 1; n < 100; n++) {
    const double term = math::exp(-x * decay.value) * (1 + growth.value);
    sum += term;
    if (term <= 0.1 * tiny * sum) {
      break;
    }
    decay.advance();
    growth.advance();
  }
  return sum * step;
}

// e^x K_order(x) for order 0 or 1.
RL_INLINE double bessel_k_scaled(int order, double x) {
  if (x != x || x < 0) {
    return nan;
  }
  if (x == 0) {
    return inf;
  }
  if (x == inf) {
    return 0;
  }
  if (x > 2) {
    return bessel_k_integral(order, x);
  }
  constexpr double euler = 0.5772156649015328606065;
  const double z = 0.25 * x * x;
  const double log_half = math::log(0.5 * x);
  double term = 1;
  double harmonic = 0;
  double sum = order == 0 ? -(log_half + euler) : 0.5 * (1 - 2 * euler) - log_half;
  for (double k = 1; k < 30; k += 1) {
    term *= z / (k * (k + order));
    harmonic += 1 / k;
    // psi(k + 1) and, for order 1, its mean with psi(k + 2)
    const double psi = harmonic - euler + (order == 0 ? 0 : 0.5 / (k + 1));
    const double change = term * (psi - log_half);
    sum += change;
    if (math::abs(change) <= tiny * math::abs(sum)) {
      break;
    }
  }
  const double value = order == 0 ? sum : 1 / x - 0.5 * x * sum;
  return value * math::exp(x);
}

RL_INLINE double bessel_k(int order, double x) {
  return x == inf ? 0 : bessel_k_scaled(order, x) * math::exp(-x);
}

// Ai(x): Maclaurin's series, beyond it K of order 1/3, and the oscillating expansion far left.
RL_INLINE double airy_ai(double x) {
  if (x != x || math::abs(x) == inf) {
    return x != x ? x : x > 0 ? 0 : nan;
  }
  const double far = math::abs(x);
  const double root = math::sqrt(far);
  const double zeta = 2 * far * root / 3;
  if (x > 2.1) {
    return x > 104 ? 0
                   : math::exp(-zeta) * math::sqrt(x / 3) * bessel_k_integral(1.0 / 3, zeta) / pi;
  }
  if (x >= -9) {
#ifdef RL_DEVICE_MATH
    using Wide = double;
#else
    using Wide = long double;  // the terms grow to 10^7 before they cancel
#endif
    const Wide cube = static_cast<Wide>(x) * x * x;
    Wide f = 1;
    Wide g = x;
    Wide even = 1;
    Wide odd = x;
    for (int k = 1; k < 80; k++) {
      f *= cube / ((3.0 * k - 1) * (3.0 * k));
      g *= cube / ((3.0 * k) * (3.0 * k + 1));
      even += f;
      odd += g;
    }
    return static_cast<double>(static_cast<Wide>(0.3550280538878172392600632L) * even -
                               static_cast<Wide>(0.2588194037928067984051836L) * odd);
  }
  double term = 1;
  double cosine = 1;
  double sine = 0;
  for (int k = 1; k < 24; k++) {
    const double ratio =
        (6.0 * k - 5) * (6.0 * k - 3) * (6.0 * k - 1) / (216.0 * k * (2.0 * k - 1)) / zeta;
    if (ratio > 1) {
      break;
    }
    term *= ratio;
    const double signed_term = (k / 2) % 2 == 0 ? term : -term;
    (k % 2 == 0 ? cosine : sine) += signed_term;
  }
  const double angle = zeta - 0.25 * pi;
  return (math::cos(angle) * cosine + math::sin(angle) * sine) /
         (math::sqrt(pi) * math::sqrt(root));
}

// ---- error functions ----

RL_INLINE double erfcx(double x) {
  if (x == inf) {
    return 0;
  }
  if (x < 20) {
    // The exponential of an exact square: its low part is what rounding left.
    const double square = x * x;
    const double rest = __builtin_fma(x, x, -square);
    return x < -26.7 ? inf : math::erfc(x) * math::exp(square) * (1 + rest);
  }
  const double z = 0.5 / (x * x);
  return (1 - z * (1 - 3 * z * (1 - 5 * z * (1 - 7 * z * (1 - 9 * z))))) /
         (x * 1.7724538509055160273);
}

RL_INLINE double log_ndtr(double x) {
  const double t = x * root_half;
  if (x < -1) {
    return math::log(0.5 * erfcx(-t)) - t * t;
  }
  return math::log1p(-0.5 * math::erfc(t));
}

// Newton's method on the logarithm of the distribution, which is nearly a parabola in the tail.
RL_INLINE double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) {
    return nan;
  }
  if (p == 0 || p == 1) {
    return p == 0 ? -inf : inf;
  }
  const bool upper = p > 0.5;
  const double q = upper ? 1 - p : p;
  if (q == 0.5) {
    return 0;
  }
  const double log_q = math::log(q);
  double x = 0;
  if (q < 0.1) {
    const double square = -2 * log_q - 1.8378770664093453;  // log(2 pi)
    x = -math::sqrt(square - math::log(square));
  } else {
    x = 2.5066282746310002 * (q - 0.5);
  }
  for (int i = 0; i < 12; i++) {
    const double value = log_ndtr(x);
    const double slope = x < -1 ? 0.79788456080286536 / erfcx(-x * root_half)
                                : math::exp(-0.5 * x * x - value) * 0.39894228040143268;
    const double step = (value - log_q) / slope;
    x -= step;
    if (math::abs(step) <= 2 * tiny * math::abs(x)) {
      break;
    }
  }
  return upper ? -x : x;
}

// ---- orthogonal polynomials of degree n, by their recurrences ----

// p0, p1, then p(k + 1) = (a(k) x + b(k)) p(k) - c(k) p(k - 1), as `next(k, p(k), p(k - 1))`.
template <class F>
RL_INLINE double recurrence(double n, double p0, double p1, const F& next) {
  constexpr double most = 1e6;  // 5 ms; beyond, rounding errors would be all that is left
  if (!(n <= most)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const auto degree = static_cast<int64_t>(n);
  if (degree <= 0) {
    return p0;
  }
  double before = p0;
  double now = p1;
  for (int64_t k = 1; k < degree && now == now; k++) {
    const double after = next(static_cast<double>(k), now, before);
    before = now;
    now = after;
  }
  return now;
}

// The Chebyshev polynomials share p(k + 1) = 2 x p(k) - p(k - 1) and differ in p(1); within
// (-1, 1) they are functions of the angle, which costs the same for all degrees.
RL_INLINE double chebyshev(char kind, double x, double n) {
  n = math::trunc(n);
  if (n < 0) {
    return 0;
  }
  if (math::abs(x) < 1 && n > 8) {
    const double angle = math::acos(x);
    switch (kind) {
      case 't':
        return math::cos(n * angle);
      case 'u': {
        const double s = math::sin(angle);
        return s != 0 ? math::sin((n + 1) * angle) / s : (n + 1) * math::cos((n + 1) * angle) / x;
      }
      case 'v': {
        const double c = math::cos(0.5 * angle);
        return c != 0 ? math::cos((n + 0.5) * angle) / c
                      : (math::fmod(n, 2.0) == 0 ? 2 * n + 1 : -2 * n - 1);
      }
      default: {
        const double s = math::sin(0.5 * angle);
        return s != 0 ? math::sin((n + 0.5) * angle) / s : 2 * n + 1;
      }
    }
  }
  if (math::abs(x) == 1) {
    const double sign = x > 0 || math::fmod(n, 2.0) == 0 ? 1 : -1;
    switch (kind) {
      case 't':
        return sign;
      case 'u':
        return sign * (n + 1);
      case 'v':
        return x > 0 ? 1 : sign * (2 * n + 1);
      default:
        return x > 0 ? 2 * n + 1 : sign;
    }
  }
  const double first = kind == 't' ? x : kind == 'u' ? 2 * x : kind == 'v' ? 2 * x - 1 : 2 * x + 1;
  return recurrence(n, 1, first,
                    [x](double, double now, double before) { return 2 * x * now - before; });
}

RL_INLINE double hermite_h(double x, double n) {
  return n <= -1 ? 0 : recurrence(n, 1, 2 * x, [x](double k, double now, double before) {
    return 2 * x * now - 2 * k * before;
  });
}
RL_INLINE double hermite_he(double x, double n) {
  return n <= -1 ? 0 : recurrence(n, 1, x, [x](double k, double now, double before) {
    return x * now - k * before;
  });
}
RL_INLINE double laguerre(double x, double n) {
  return n <= -1 ? 0 : recurrence(n, 1, 1 - x, [x](double k, double now, double before) {
    return ((2 * k + 1 - x) * now - k * before) / (k + 1);
  });
}
RL_INLINE double legendre(double x, double n) {
  if (n <= -1) {
    return 0;
  }
  if (math::abs(x) == 1) {
    return x > 0 || math::fmod(math::trunc(n), 2.0) == 0 ? 1 : -1;
  }
  return recurrence(n, 1, x, [x](double k, double now, double before) {
    return ((2 * k + 1) * x * now - k * before) / (k + 1);
  });
}

}  // namespace rushlight::special

namespace rushlight::formula {

#define RL_SPECIAL_1(name, function) \
  RL_FORMULA(name, x) { return static_cast<T>(special::function(static_cast<double>(x))); }
#define RL_SPECIAL_2(name, function)                                                          \
  RL_FORMULA(name, x, y) {                                                                    \
    return static_cast<T>(special::function(static_cast<double>(x), static_cast<double>(y))); \
  }

RL_FORMULA(lgamma, x) {
  if constexpr (std::is_same_v<T, float>) {
    return special::lgamma_single(x);
  } else {
    return static_cast<T>(special::lgamma(static_cast<double>(x)));
  }
}
RL_FORMULA(digamma, x) {
  if constexpr (std::is_same_v<T, float>) {
    return special::digamma_single(x);
  } else {
    return static_cast<T>(special::digamma(static_cast<double>(x)));
  }
}
RL_SPECIAL_2(_polygamma, polygamma)
RL_SPECIAL_2(special_zeta, zeta)
RL_SPECIAL_2(igamma, gammainc)
RL_SPECIAL_2(igammac, gammaincc)
RL_SPECIAL_1(i0, i0)
RL_SPECIAL_1(special_i0e, i0e)
RL_SPECIAL_1(special_i1, i1)
RL_SPECIAL_1(special_i1e, i1e)
RL_SPECIAL_1(special_erfcx, erfcx)
RL_SPECIAL_1(special_log_ndtr, log_ndtr)
RL_SPECIAL_1(special_ndtri, ndtri)
RL_SPECIAL_1(special_airy_ai, airy_ai)
RL_SPECIAL_2(special_hermite_polynomial_h, hermite_h)
RL_SPECIAL_2(special_hermite_polynomial_he, hermite_he)
RL_SPECIAL_2(special_laguerre_polynomial_l, laguerre)
RL_SPECIAL_2(special_legendre_polynomial_p, legendre)
#undef RL_SPECIAL_1
#undef RL_SPECIAL_2

// Of order 0 or 1.
#define RL_BESSEL_K(name, function, order) \
  RL_FORMULA(name, x) { return static_cast<T>(special::function(order, static_cast<double>(x))); }
RL_BESSEL_K(special_modified_bessel_k0, bessel_k, 0)
RL_BESSEL_K(special_modified_bessel_k1, bessel_k, 1)
RL_BESSEL_K(special_scaled_modified_bessel_k0, bessel_k_scaled, 0)
RL_BESSEL_K(special_scaled_modified_bessel_k1, bessel_k_scaled, 1)
#undef RL_BESSEL_K

RL_FORMULA(special_bessel_j0, x) { return static_cast<T>(::j0(static_cast<double>(x))); }
RL_FORMULA(special_bessel_j1, x) { return static_cast<T>(::j1(static_cast<double>(x))); }
RL_FORMULA(special_bessel_y0, x) {
  return x < T(0)    ? math::nan<T>
         : x == T(0) ? -math::infinity<T>
                     : static_cast<T>(::y0(static_cast<double>(x)));
}
RL_FORMULA(special_bessel_y1, x) {
  return x < T(0)    ? math::nan<T>
         : x == T(0) ? -math::infinity<T>
                     : static_cast<T>(::y1(static_cast<double>(x)));
}
RL_FORMULA(special_spherical_bessel_j0, x) {
  const T z = x * x;
  const T near = T(1) - z * (T(1) / T(6)) * (T(1) - z * (T(1) / T(20)));
  const T ratio = math::sin(x) / x;
  return math::abs(x) == math::infinity<T> ? T(0) : math::abs(x) < T(0.01) ? near : ratio;
}

#define RL_CHEBYSHEV(letter, character)                                                         \
  RL_FORMULA(special_chebyshev_polynomial_##letter, x, n) {                                     \
    return static_cast<T>(                                                                      \
        special::chebyshev(character, static_cast<double>(x), static_cast<double>(n)));         \
  }                                                                                             \
  RL_FORMULA(special_shifted_chebyshev_polynomial_##letter, x, n) {                             \
    return static_cast<T>(                                                                      \
        special::chebyshev(character, 2 * static_cast<double>(x) - 1, static_cast<double>(n))); \
  }
RL_CHEBYSHEV(t, 't')
RL_CHEBYSHEV(u, 'u')
RL_CHEBYSHEV(v, 'v')
RL_CHEBYSHEV(w, 'w')
#undef RL_CHEBYSHEV

RL_FORMULA(special_entr, x) {
  const T value = -x * math::log(x);
  return x != x ? x : x > T(0) ? value : x == T(0) ? T(0) : -math::infinity<T>;
}
RL_FORMULA(special_xlog1py, x, y) {
  const T product = x * math::log1p(y);
  return y != y ? y : x == T(0) ? T(0) : product;
}

// Euclid's algorithm on magnitudes; lcm divides before it multiplies.
RL_FORMULA(gcd, x, y) {
  T a = x < T(0) ? math::neg(x) : x;
  T b = y < T(0) ? math::neg(y) : y;
  while (b != T(0)) {
    const T rest = math::rem_trunc(a, b);
    a = b;
    b = rest;
  }
  return a < T(0) ? math::neg(a) : a;
}
RL_FORMULA(lcm, x, y) {
  const T common = gcd<T>(x, y);
  const T product = common == T(0) ? T(0) : math::mul(math::div_trunc(x, common), y);
  return product < T(0) ? math::neg(product) : product;
}

}  // namespace rushlight::formula
