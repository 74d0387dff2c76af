// Functions of the module math, of one number and of two.
#include <cmath>
#include <complex>
#include <numeric>

#include "graph/builtins.h"

namespace rushlight::graph {

namespace {

std::complex<double> std_complex(const Scalar& a) {
  const auto x = a.as<complex<double>>();
  return {x.re, x.im};
}

// A float of a real number, a complex number of a complex one.
template <double (*real)(double)>
Scalar of_real(Scalar a) {
  RL_CHECK(!a.is_complex(), "the function takes no complex numbers");
  return real(a.as<double>());
}
template <double (*real)(double), std::complex<double> (*imaginary)(const std::complex<double>&)>
Scalar of_any(Scalar a) {
  if (a.is_complex()) {
    const std::complex<double> out = imaginary(std_complex(a));
    return complex<double>(out.real(), out.imag());
  }
  return real(a.as<double>());
}

constexpr double pi = 3.14159265358979323846;
double degrees(double a) { return a * 180 / pi; }
double radians(double a) { return a * pi / 180; }
double round_half_even(double a) { return std::nearbyint(a); }
double log_to(double a, double base) { return std::log(a) / std::log(base); }

// To the whole number below or above, which is an int.
template <double (*whole)(double)>
Scalar to_int(Scalar a) {
  if (a.is_integral(true)) {
    return a.as<int64_t>();
  }
  const double out = whole(a.as<double>());
  RL_CHECK(out >= -9223372036854775808.0 && out < 9223372036854775808.0, "the float ", out,
           " is outside of what an int holds");
  return static_cast<int64_t>(out);
}

int64_t factorial(int64_t n) {
  RL_CHECK_VALUE(n >= 0, "factorial() not defined for negative values");
  RL_CHECK(n <= 20, "factorial(", n, ") is outside of what an int holds");
  int64_t out = 1;
  for (int64_t i = 2; i <= n; i++) {
    out *= i;
  }
  return out;
}

struct Single {
  const char* name;
  BuiltinCall call;
  bool takes_complex;
};
#define RL_REAL(name) {"aten::" #name, call_of<of_real<std::name>>, false}
#define RL_BOTH(name) {"aten::" #name, call_of<of_any<std::name, std::name<double>>>, true}
constexpr Single singles[] = {
    RL_BOTH(acos),
    RL_BOTH(acosh),
    RL_BOTH(asin),
    RL_BOTH(asinh),
    RL_BOTH(atan),
    RL_BOTH(atanh),
    RL_BOTH(cos),
    RL_BOTH(cosh),
    RL_BOTH(exp),
    RL_BOTH(log),
    RL_BOTH(log10),
    RL_BOTH(sin),
    RL_BOTH(sinh),
    RL_BOTH(sqrt),
    RL_BOTH(tan),
    RL_BOTH(tanh),
    RL_REAL(erf),
    RL_REAL(erfc),
    RL_REAL(expm1),
    RL_REAL(fabs),
    RL_REAL(lgamma),
    RL_REAL(log1p),
    RL_REAL(log2),
    {"aten::gamma", call_of<of_real<std::tgamma>>, false},
    {"aten::degrees", call_of<of_real<degrees>>, false},
    {"aten::radians", call_of<of_real<radians>>, false},
    {"aten::round", call_of<of_real<round_half_even>>, false},
};
#undef RL_REAL
#undef RL_BOTH

template <double (*f)(double, double)>
double of_two(double a, double b) {
  return f(a, b);
}
struct Double {
  const char* name;
  BuiltinCall call;
};
constexpr Double doubles[] = {
    {"aten::atan2", call_of<of_two<std::atan2>>},
    {"aten::copysign", call_of<of_two<std::copysign>>},
    {"aten::fmod", call_of<of_two<std::fmod>>},
    {"aten::mathremainder", call_of<of_two<std::remainder>>},
    {"aten::log", call_of<log_to>},
};

const BuiltinRow other_rows[] = {
    {"aten::factorial.int(int a) -> int", call_of<factorial>},
    {"aten::gcd.int(int a, int b) -> int", call_of<+[](int64_t a, int64_t b) {
       const auto size = [](int64_t x) {
         return x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
       };
       return static_cast<int64_t>(std::gcd(size(a), size(b)));
     }>},
    {"aten::ldexp(float x, int i) -> float", call_of<+[](double x, int64_t i) {
       return std::ldexp(x, static_cast<int>(std::max<int64_t>(std::min<int64_t>(i, 5000), -5000)));
     }>},
    {"aten::frexp(float a) -> (float, int)", call_of<+[](double a) {
       int exponent = 0;
       const double part = std::frexp(a, &exponent);
       return std::pair<double, int64_t>(part, exponent);
     }>},
    {"aten::modf(float a) -> (float, float)", call_of<+[](double a) {
       double whole = 0;
       const double part = std::modf(a, &whole);
       return std::pair<double, double>(part, whole);
     }>},
    {"aten::isnan.float(float a) -> bool", call_of<+[](double a) { return std::isnan(a); }>},
    {"aten::isinf.float(float a) -> bool", call_of<+[](double a) { return std::isinf(a); }>},
    {"aten::isfinite.float(float a) -> bool", call_of<+[](double a) { return std::isfinite(a); }>},
};

}  // namespace

BuiltinRows math_builtins() {
  BuiltinRows rows;
  for (const Single& one : singles) {
    const std::string name = one.name;
    rows.push_back({name + ".int(int a) -> float", one.call});
    rows.push_back({name + ".float(float a) -> float", one.call});
    if (one.takes_complex) {
      rows.push_back({name + ".complex(complex a) -> complex", one.call});
    }
    rows.push_back({name + ".Scalar(Scalar a) -> Scalar", one.call});
  }
  for (const Double& two : doubles) {
    const std::string name = two.name;
    const bool is_log = name == "aten::log";
    for (const char* const a : {"int", "float"}) {
      for (const char* const b : {"int", "float"}) {
        const bool one_word = !is_log && std::string_view(a) == b;
        rows.push_back({name + "." + a + (one_word ? std::string() : std::string("_") + b) + "(" +
                            a + " a, " + b + " b) -> float",
                        two.call});
      }
    }
    rows.push_back({name + ".Scalar_Scalar(Scalar a, Scalar b) -> float", two.call});
  }
  for (const char* const name : {"aten::ceil", "aten::floor"}) {
    const BuiltinCall call = std::string_view(name) == "aten::ceil"
                                 ? BuiltinCall(call_of<to_int<std::ceil>>)
                                 : BuiltinCall(call_of<to_int<std::floor>>);
    rows.push_back({std::string(name) + ".int(int a) -> int", call});
    rows.push_back({std::string(name) + ".float(float a) -> int", call});
    rows.push_back({std::string(name) + ".Scalar(Scalar a) -> Scalar", call});
  }
  rows.insert(rows.end(), std::begin(other_rows), std::end(other_rows));
  return rows;
}

}  // namespace rushlight::graph
