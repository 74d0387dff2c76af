// Arithmetic, comparisons and conversions of numbers. Results are ints, floats or complex numbers
// as the wider of the operands is.
#include <cmath>

#include "core/nesting.h"
#include "graph/builtins.h"

namespace rushlight::graph {

namespace {

using Complex = complex<double>;

bool are_ints(const Scalar& a, const Scalar& b) {
  return a.is_integral(true) && b.is_integral(true);
}
bool is_any_complex(const Scalar& a, const Scalar& b) { return a.is_complex() || b.is_complex(); }

// Sums, differences and products of ints wrap around, as the machine's do.
template <class F>
Scalar by_kind(const Scalar& a, const Scalar& b, F f) {
  if (are_ints(a, b)) {
    return static_cast<int64_t>(
        f(static_cast<uint64_t>(a.as<int64_t>()), static_cast<uint64_t>(b.as<int64_t>())));
  }
  if (is_any_complex(a, b)) {
    return f(a.as<Complex>(), b.as<Complex>());
  }
  return f(a.as<double>(), b.as<double>());
}
Scalar add(Scalar a, Scalar b) {
  return by_kind(a, b, [](auto x, auto y) { return x + y; });
}
Scalar sub(Scalar a, Scalar b) {
  return by_kind(a, b, [](auto x, auto y) { return x - y; });
}
Scalar mul(Scalar a, Scalar b) {
  return by_kind(a, b, [](auto x, auto y) { return x * y; });
}
Scalar div(Scalar a, Scalar b) {
  if (is_any_complex(a, b)) {
    return a.as<Complex>() / b.as<Complex>();
  }
  return a.as<double>() / b.as<double>();
}

void check_divisor(int64_t b) { RL_CHECK(b != 0, "division by 0"); }
// Towards minus infinity. The least int divided by -1 wraps around.
int64_t floor_div(int64_t a, int64_t b) {
  check_divisor(b);
  if (b == -1) {
    return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  }
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
int64_t floor_mod(int64_t a, int64_t b) {
  check_divisor(b);
  if (b == -1) {
    return 0;
  }
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
double floor_mod(double a, double b) { return std::fmod(b + std::fmod(a, b), b); }

Scalar floordiv(Scalar a, Scalar b) {
  if (are_ints(a, b)) {
    return floor_div(a.as<int64_t>(), b.as<int64_t>());
  }
  return std::floor(a.as<double>() / b.as<double>());
}
Scalar remainder(Scalar a, Scalar b) {
  if (are_ints(a, b)) {
    return floor_mod(a.as<int64_t>(), b.as<int64_t>());
  }
  return floor_mod(a.as<double>(), b.as<double>());
}
std::pair<Scalar, Scalar> divmod(Scalar a, Scalar b) {
  RL_CHECK(b.as<double>() != 0, "divmod: division by 0");
  return {floordiv(a, b), remainder(a, b)};
}
int64_t round_to_zero_floordiv(int64_t a, int64_t b) {
  check_divisor(b);
  return b == -1 ? floor_div(a, b) : a / b;
}

Scalar pow(Scalar a, Scalar b) {
  if (is_any_complex(a, b)) {
    const Complex x = a.as<Complex>();
    const Complex y = b.as<Complex>();
    const double size = std::hypot(x.re, x.im);
    if (size == 0) {
      return y.re == 0 && y.im == 0 ? Complex(1) : Complex(0);
    }
    const double angle = std::atan2(x.im, x.re);
    const double out = std::exp(y.re * std::log(size) - y.im * angle);
    const double turn = y.im * std::log(size) + y.re * angle;
    return Complex(out * std::cos(turn), out * std::sin(turn));
  }
  return std::pow(a.as<double>(), b.as<double>());
}
int64_t pow_of_ints(int64_t a, int64_t b) {
  RL_CHECK(b >= 0, "an int to a negative power is no int");
  uint64_t out = 1;
  for (auto base = static_cast<uint64_t>(a); b != 0; b >>= 1, base *= base) {
    out *= (b & 1) != 0 ? base : 1;
  }
  return static_cast<int64_t>(out);
}
Scalar neg(Scalar a) {
  return a.is_integral(true)
             ? Scalar(static_cast<int64_t>(0 - static_cast<uint64_t>(a.as<int64_t>())))
             : -a;
}
Scalar abs(Scalar a) {
  if (a.is_complex()) {
    const auto x = a.as<Complex>();
    return std::hypot(x.re, x.im);
  }
  if (a.is_integral(true)) {
    return a.as<int64_t>() < 0 ? neg(a) : Scalar(a.as<int64_t>());
  }
  return std::fabs(a.as<double>());
}

// Python's order: of equal ones the first; a NaN is kept where it comes first.
template <bool wants_more>
Scalar extreme(Scalar a, Scalar b) {
  const bool takes_second = wants_more ? less(IValue(a), IValue(b)) : less(IValue(b), IValue(a));
  const Scalar out = takes_second ? b : a;
  return are_ints(a, b) ? out : Scalar(out.as<double>());
}

// Of numbers, shifts by more bits than there are give what infinitely many bits would.
int64_t shift_left(int64_t a, int64_t b) {
  RL_CHECK(b >= 0, "negative shift count");
  return b > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
}
int64_t shift_right(int64_t a, int64_t b) {
  RL_CHECK(b >= 0, "negative shift count");
  return a >> std::min<int64_t>(b, 63);
}

int64_t range_length(int64_t low, int64_t high, int64_t step) {
  RL_CHECK_VALUE(step != 0, "range() arg 3 must not be zero");
  if (step > 0 ? low >= high : low <= high) {
    return 0;
  }
  const auto distance = [](int64_t from, int64_t to) {
    return static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  };
  const uint64_t span = step > 0 ? distance(low, high) : distance(high, low);
  const uint64_t size = step > 0 ? static_cast<uint64_t>(step) : distance(step, 0);
  return static_cast<int64_t>((span - 1) / size + 1);
}

// ---- conversions ----

int64_t int_of_float(double a) {
  RL_CHECK(a >= -9223372036854775808.0 && a < 9223372036854775808.0, "the float ", a,
           " is outside of what an int holds");
  return static_cast<int64_t>(a);
}
int64_t int_of(Scalar a) {
  RL_CHECK(!a.is_complex(), "a complex number cannot be converted to an int");
  return a.is_integral(true) ? a.as<int64_t>() : int_of_float(a.as<double>());
}
double float_of(Scalar a) {
  RL_CHECK(!a.is_complex(), "a complex number cannot be converted to a float");
  return a.as<double>();
}
Scalar complex_of(Scalar real, Scalar imaginary) {
  return Complex(real.as<double>(), imaginary.as<double>());
}
int64_t int_of_text(std::string text) {
  char* end = nullptr;
  errno = 0;
  const long long out = std::strtoll(text.c_str(), &end, 10);
  const bool starts = !text.empty() && std::isspace(static_cast<unsigned char>(text[0])) == 0;
  RL_CHECK(starts && end == text.c_str() + text.size() && errno == 0,
           "invalid literal for int(): '", text, "'");
  return out;
}
double float_of_text(std::string text) {
  char* end = nullptr;
  const double out = std::strtod(text.c_str(), &end);
  const bool starts = !text.empty() && std::isspace(static_cast<unsigned char>(text[0])) == 0;
  RL_CHECK(starts && end == text.c_str() + text.size(), "could not convert string to float: '",
           text, "'");
  return out;
}
template <bool (*compare)(const IValue&, const IValue&), bool swaps, bool negates>
void comparison(IValue* a, size_t, IValue* out) {
  out[0] = IValue(compare(a[swaps ? 1 : 0], a[swaps ? 0 : 1]) != negates);
}
// <= is not the negation of > where one of them is a NaN.
bool less_or_equal(const IValue& a, const IValue& b) { return less(a, b) || equal(a, b); }

bool is_same(const IValue& a, const IValue& b) {
  if (a.isNone() || b.isNone()) {
    return a.isNone() && b.isNone();
  }
  if (a.isObject() && b.isObject()) {
    return a.object().get() == b.object().get();
  }
  if (a.isTensor() && b.isTensor()) {
    return a.toTensor().impl() == b.toTensor().impl();
  }
  if (a.isList() && b.isList()) {
    return are_one_list(a, b);
  }
  return a.isScalar() && b.isScalar() && type_of(a) == type_of(b) && equal(a, b);
}

// ---- the table ----

// A function of two numbers, for each pair of kinds: "add.int_float(int a, float b) -> float".
struct Pairs {
  const char* name;
  BuiltinCall call;
  const char* of_ints;     // what two ints give
  const char* of_floats;   // what two floats give
  const char* of_complex;  // nothing where complex numbers have no such function
  const char* of_scalars;
};
constexpr Pairs pairs[] = {
    {"aten::add", call_of<add>, "int", "float", "complex", "Scalar"},
    {"aten::sub", call_of<sub>, "int", "float", "complex", "Scalar"},
    {"aten::mul", call_of<mul>, "int", "float", "complex", "Scalar"},
    {"aten::div", call_of<div>, "float", "float", "complex", "float"},
    {"aten::pow", call_of<pow>, "float", "float", "complex", "float"},
    {"aten::floordiv", call_of<floordiv>, "int", "float", nullptr, "Scalar"},
    {"aten::remainder", call_of<remainder>, "int", "float", nullptr, "Scalar"},
    {"aten::divmod", call_of<divmod>, "(int, int)", "(float, float)", nullptr, nullptr},
    {"prim::max", call_of<extreme<true>>, "int", "float", nullptr, "Scalar"},
    {"prim::min", call_of<extreme<false>>, "int", "float", nullptr, "Scalar"},
    {"aten::eq", comparison<equal, false, false>, "bool", "bool", "bool", "bool"},
    {"aten::ne", comparison<equal, false, true>, "bool", "bool", "bool", "bool"},
    {"aten::lt", comparison<less, false, false>, "bool", "bool", nullptr, "bool"},
    {"aten::gt", comparison<less, true, false>, "bool", "bool", nullptr, "bool"},
    {"aten::le", comparison<less_or_equal, false, false>, "bool", "bool", nullptr, "bool"},
    {"aten::ge", comparison<less_or_equal, true, false>, "bool", "bool", nullptr, "bool"},
};
std::string pair_row(const Pairs& of, const std::string& a, const std::string& b,
                     const std::string& result) {
  const std::string overload = a == "Scalar" ? "" : a == b ? "." + a : "." + a + "_" + b;
  return of.name + overload + "(" + a + " a, " + b + " b) -> " + result;
}
void add_pairs(BuiltinRows& rows, const Pairs& of) {
  rows.push_back({pair_row(of, "int", "int", of.of_ints), of.call});
  rows.push_back({pair_row(of, "float", "float", of.of_floats), of.call});
  rows.push_back({pair_row(of, "int", "float", of.of_floats), of.call});
  rows.push_back({pair_row(of, "float", "int", of.of_floats), of.call});
  if (of.of_complex != nullptr) {
    rows.push_back({pair_row(of, "complex", "complex", of.of_complex), of.call});
    for (const char* const other : {"int", "float"}) {
      rows.push_back({pair_row(of, "complex", other, of.of_complex), of.call});
      rows.push_back({pair_row(of, other, "complex", of.of_complex), of.call});
    }
  }
  if (of.of_scalars != nullptr) {
    rows.push_back({pair_row(of, "Scalar", "Scalar", of.of_scalars), of.call});
  }
}

const BuiltinRow single_rows[] = {
    {"aten::pow.int_to_int(int a, int b) -> int", call_of<pow_of_ints>},
    {"aten::__round_to_zero_floordiv.int(int a, int b) -> int", call_of<round_to_zero_floordiv>},
    {"aten::neg.int(int a) -> int", call_of<neg>},
    {"aten::neg.float(float a) -> float", call_of<neg>},
    {"aten::neg.complex(complex a) -> complex", call_of<neg>},
    {"aten::neg.Scalar(Scalar a) -> Scalar", call_of<neg>},
    {"prim::abs.int(int a) -> int", call_of<abs>},
    {"prim::abs.float(float a) -> float", call_of<abs>},
    {"prim::abs.complex(complex a) -> float", call_of<abs>},
    {"prim::abs.Scalar(Scalar a) -> Scalar", call_of<abs>},
    {"aten::__and__.bool(bool a, bool b) -> bool", call_of<+[](bool a, bool b) { return a && b; }>},
    {"aten::__or__.bool(bool a, bool b) -> bool", call_of<+[](bool a, bool b) { return a || b; }>},
    {"aten::__xor__.bool(bool a, bool b) -> bool", call_of<+[](bool a, bool b) { return a != b; }>},
    {"aten::__and__.int(int a, int b) -> int",
     call_of<+[](int64_t a, int64_t b) { return a & b; }>},
    {"aten::__or__.int(int a, int b) -> int", call_of<+[](int64_t a, int64_t b) { return a | b; }>},
    {"aten::__xor__.int(int a, int b) -> int",
     call_of<+[](int64_t a, int64_t b) { return a ^ b; }>},
    {"aten::__lshift__.int(int a, int b) -> int", call_of<shift_left>},
    {"aten::__rshift__.int(int a, int b) -> int", call_of<shift_right>},
    {"aten::__not__(bool self) -> bool", call_of<+[](bool a) { return !a; }>},
    {"aten::__is__(t1 self, t2 obj) -> bool", comparison<is_same, false, false>},
    {"aten::__isnot__(t1 self, t2 obj) -> bool", comparison<is_same, false, true>},
    {"aten::eq.bool(bool a, bool b) -> bool", comparison<equal, false, false>},
    {"aten::ne.bool(bool a, bool b) -> bool", comparison<equal, false, true>},
    {"aten::eq.device(Device a, Device b) -> bool", comparison<equal, false, false>},
    {"aten::ne.device(Device a, Device b) -> bool", comparison<equal, false, true>},
    {"aten::eq.str(str a, str b) -> bool", comparison<equal, false, false>},
    {"aten::ne.str(str a, str b) -> bool", comparison<equal, false, true>},
    {"aten::lt.str(str a, str b) -> bool", comparison<less, false, false>},
    {"aten::gt.str(str a, str b) -> bool", comparison<less, true, false>},
    {"aten::le.str(str a, str b) -> bool", comparison<less_or_equal, false, false>},
    {"aten::ge.str(str a, str b) -> bool", comparison<less_or_equal, true, false>},
    {"aten::eq.enum(AnyEnumType a, AnyEnumType b) -> bool", comparison<is_same, false, false>},
    {"aten::ne.enum(AnyEnumType a, AnyEnumType b) -> bool", comparison<is_same, false, true>},
    {"aten::Int.bool(bool a) -> int", call_of<int_of>},
    {"aten::Int.float(float a) -> int", call_of<int_of>},
    {"aten::Int.int(int a) -> int", call_of<int_of>},
    {"aten::Int.Scalar(Scalar a) -> int", call_of<int_of>},
    {"aten::Int.str(str a) -> int", call_of<int_of_text>},
    {"aten::Float.int(int a) -> float", call_of<float_of>},
    {"aten::Float.bool(bool a) -> float", call_of<float_of>},
    {"aten::Float.float(float a) -> float", call_of<float_of>},
    {"aten::Float.Scalar(Scalar a) -> float", call_of<float_of>},
    {"aten::Float.str(str a) -> float", call_of<float_of_text>},
    {"aten::Bool.int(int a) -> bool", call_of<+[](int64_t a) { return a != 0; }>},
    {"aten::Bool.float(float a) -> bool", call_of<+[](double a) { return a != 0; }>},
    {"aten::Bool.bool(bool a) -> bool", call_of<+[](bool a) { return a; }>},
    {"aten::Complex.Scalar(Scalar a) -> complex",
     call_of<+[](Scalar a) { return Scalar(a.as<Complex>()); }>},
    {"aten::__range_length(int lo, int hi, int step) -> int", call_of<range_length>},
    {"aten::__derive_index(int index, int start, int step) -> int",
     call_of<+[](int64_t index, int64_t start, int64_t step) {
       return static_cast<int64_t>(static_cast<uint64_t>(start) +
                                   static_cast<uint64_t>(index) * static_cast<uint64_t>(step));
     }>},
};

}  // namespace

bool equal(const IValue& a, const IValue& b) {
  if (a.isScalar() && b.isScalar()) {
    const Scalar x = a.toScalar();
    const Scalar y = b.toScalar();
    return are_ints(x, y) ? x.as<int64_t>() == y.as<int64_t>() : x.as<Complex>() == y.as<Complex>();
  }
  if (a.isString() && b.isString()) {
    return a.toStringRef() == b.toStringRef();
  }
  if (a.isDevice() && b.isDevice()) {
    return a.toDevice() == b.toDevice();
  }
  if ((a.isList() && b.isList()) || (a.isTuple() && b.isTuple())) {
    const Nesting deeper;
    const IValue::Items x = a.isTuple() ? items_of(a) : a.toListRef();
    const IValue::Items y = b.isTuple() ? items_of(b) : b.toListRef();
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), equal);
  }
  if (a.isTensor() && b.isTensor()) {
    return is_same(a, b) || a.toTensor().eq(b.toTensor()).all().item<bool>();
  }
  return is_same(a, b);
}

bool less(const IValue& a, const IValue& b) {
  if (a.isScalar() && b.isScalar()) {
    const Scalar x = a.toScalar();
    const Scalar y = b.toScalar();
    return are_ints(x, y) ? x.as<int64_t>() < y.as<int64_t>() : x.as<double>() < y.as<double>();
  }
  if (a.isString() && b.isString()) {
    return a.toStringRef() < b.toStringRef();
  }
  if (a.isTensor() && b.isTensor()) {
    return a.toTensor().lt(b.toTensor()).item<bool>();
  }
  if (a.isTuple() && b.isTuple()) {
    return std::lexicographical_compare(items_of(a).begin(), items_of(a).end(), items_of(b).begin(),
                                        items_of(b).end(), less);
  }
  Object* const object = object_of(a);
  Function* const method = object == nullptr ? nullptr : object->type->find_method("__lt__");
  RL_CHECK(method != nullptr, "values of type ", type_of(a).annotation(), " have no order");
  return method->run({a, b}).at(0).toBool();
}

BuiltinRows number_builtins() {
  BuiltinRows rows;
  for (const Pairs& of : pairs) {
    add_pairs(rows, of);
  }
  for (const char* const a : {"int", "float", "bool"}) {
    for (const char* const b : {"int", "float", "bool"}) {
      rows.push_back(
          {std::string("aten::Complex.") + a + "_" + b + "(" + a + " x, " + b + " y) -> complex",
           call_of<complex_of>});
    }
  }
  rows.insert(rows.end(), std::begin(single_rows), std::end(single_rows));
  return rows;
}

}  // namespace rushlight::graph
