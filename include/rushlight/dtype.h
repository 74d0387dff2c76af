// Element types: the 16-bit floats, complex numbers, the twelve dtypes and their properties.
// A new dtype is one line in RL_FOR_EACH_DTYPE; what differs by dtype asks `dtype_info` or
// `visit_dtype`. Arithmetic and conversions are constexpr, which lets device code use them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include <rushlight/error.h>

namespace rushlight {

constexpr float half_bits_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t rest = static_cast<uint32_t>(h & 0x7fffu) << 13;
  // Moving the exponent by a multiplication also turns half denormals into normal floats.
  const float scaled = std::bit_cast<float>(rest) * 0x1p112f;
  const uint32_t inf_or_nan = (h & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | inf_or_nan | sign);
}

constexpr uint16_t float_to_half_bits(float f) {  // round to nearest even
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00u);
  }
  if (magnitude >= 0x477ff000u) {  // rounds to 2^16 or more
    return static_cast<uint16_t>(sign | 0x7c00u);
  }
  if (magnitude < 0x38800000u) {  // below the smallest normal half: the adder rounds for us
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(aligned) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

struct Half {
  uint16_t bits = 0;
  Half() = default;
  constexpr Half(float value) : bits(float_to_half_bits(value)) {}
  constexpr operator float() const { return half_bits_to_float(bits); }
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  constexpr BFloat16(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    bits = static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
  }
  constexpr operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

// Plain pairs: unlike std::complex their product is the textbook one, which vectorises.
template <class T>
struct complex {
  using value_type = T;
  T re = 0;
  T im = 0;
  constexpr complex() = default;
  constexpr complex(T real) : re(real) {}
  constexpr complex(T real, T imag) : re(real), im(imag) {}
  template <class U>
  constexpr explicit complex(const complex<U>& o)
      : re(static_cast<T>(o.re)), im(static_cast<T>(o.im)) {}
  constexpr T real() const { return re; }
  constexpr T imag() const { return im; }
  friend constexpr complex operator+(complex a, complex b) { return {a.re + b.re, a.im + b.im}; }
  friend constexpr complex operator-(complex a, complex b) { return {a.re - b.re, a.im - b.im}; }
  friend constexpr complex operator*(complex a, complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  friend constexpr complex operator/(complex a,
                                     complex b) {  // Smith's method: no overflow in |b|^2
    if (std::abs(b.re) >= std::abs(b.im)) {
      if (b.re == 0 && b.im == 0) {
        return {a.re / std::abs(b.re), a.im / std::abs(b.im)};
      }
      const T r = b.im / b.re;
      const T d = b.re + b.im * r;
      return {(a.re + a.im * r) / d, (a.im - a.re * r) / d};
    }
    const T r = b.re / b.im;
    const T d = b.re * r + b.im;
    return {(a.re * r + a.im) / d, (a.im * r - a.re) / d};
  }
  constexpr complex operator-() const { return {-re, -im}; }
  constexpr complex& operator+=(complex o) { return *this = *this + o; }
  constexpr complex& operator-=(complex o) { return *this = *this - o; }
  constexpr complex& operator*=(complex o) { return *this = *this * o; }
  constexpr complex& operator/=(complex o) { return *this = *this / o; }
  friend constexpr bool operator==(complex a, complex b) { return a.re == b.re && a.im == b.im; }
};

template <class T>
inline constexpr bool is_complex_v = false;
template <class T>
inline constexpr bool is_complex_v<complex<T>> = true;
template <class T>
inline constexpr bool is_reduced_float_v = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_real_float_v = std::is_floating_point_v<T> || is_reduced_float_v<T>;
template <class T>
inline constexpr bool is_integer_v = std::is_integral_v<T> && !std::is_same_v<T, bool>;

//      C++ type         enumerator     name          short alias
#define RL_FOR_EACH_DTYPE(_)                                 \
  _(uint8_t, Byte, "uint8", "uint8")                         \
  _(int8_t, Char, "int8", "int8")                            \
  _(int16_t, Short, "int16", "short")                        \
  _(int32_t, Int, "int32", "int")                            \
  _(int64_t, Long, "int64", "long")                          \
  _(Half, Half, "float16", "half")                           \
  _(float, Float, "float32", "float")                        \
  _(double, Double, "float64", "double")                     \
  _(complex<float>, ComplexFloat, "complex64", "cfloat")     \
  _(complex<double>, ComplexDouble, "complex128", "cdouble") \
  _(bool, Bool, "bool", "bool")                              \
  _(BFloat16, BFloat16, "bfloat16", "bfloat16")

enum class ScalarType : int8_t {
#define RL_ENUM(T, Enum, name, alias) Enum,
  RL_FOR_EACH_DTYPE(RL_ENUM)
#undef RL_ENUM
      Undefined
};
using Dtype = ScalarType;
inline constexpr int num_dtypes = static_cast<int>(ScalarType::Undefined);

inline constexpr ScalarType kUInt8 = ScalarType::Byte, kInt8 = ScalarType::Char,
                            kInt16 = ScalarType::Short, kInt32 = ScalarType::Int,
                            kInt64 = ScalarType::Long, kFloat16 = ScalarType::Half,
                            kFloat32 = ScalarType::Float, kFloat64 = ScalarType::Double,
                            kBFloat16 = ScalarType::BFloat16,
                            kComplexFloat = ScalarType::ComplexFloat,
                            kComplexDouble = ScalarType::ComplexDouble, kBool = ScalarType::Bool,
                            kByte = kUInt8, kChar = kInt8, kShort = kInt16, kInt = kInt32,
                            kLong = kInt64, kHalf = kFloat16, kFloat = kFloat32, kDouble = kFloat64;

struct DtypeInfo {
  const char* name;   // "float32"
  const char* alias;  // "float"
  int8_t itemsize;
  bool is_floating;  // real floating point
  bool is_complex;
  bool is_signed;
  bool is_integral;  // without bool
};
inline constexpr DtypeInfo dtype_infos[] = {
#define RL_INFO(T, Enum, name, alias)                            \
  {name,                                                         \
   alias,                                                        \
   sizeof(T),                                                    \
   is_real_float_v<T>,                                           \
   is_complex_v<T>,                                              \
   is_real_float_v<T> || is_complex_v<T> || std::is_signed_v<T>, \
   is_integer_v<T>},
    RL_FOR_EACH_DTYPE(RL_INFO)
#undef RL_INFO
        {"undefined", "undefined", 0, false, false, false, false}};
inline constexpr const DtypeInfo& dtype_info(ScalarType t) {
  return dtype_infos[static_cast<int>(t)];
}
inline constexpr int64_t itemsize(ScalarType t) { return dtype_info(t).itemsize; }
inline constexpr bool is_floating(ScalarType t) { return dtype_info(t).is_floating; }
inline constexpr bool is_complex(ScalarType t) { return dtype_info(t).is_complex; }
inline constexpr bool is_integral(ScalarType t) { return dtype_info(t).is_integral; }
inline constexpr bool is_differentiable(ScalarType t) { return is_floating(t) || is_complex(t); }
inline void append(std::string& out, ScalarType t) {
  out += dtype_info(t).name;
}  // "float32"; messages add "torch."

template <class T>
struct dtype_of;
#define RL_OF(T, Enum, name, alias)                       \
  template <>                                             \
  struct dtype_of<T> {                                    \
    static constexpr ScalarType value = ScalarType::Enum; \
  };
RL_FOR_EACH_DTYPE(RL_OF)
#undef RL_OF
template <class T>
inline constexpr ScalarType dtype_of_v = dtype_of<std::remove_const_t<T>>::value;

// Sums and formulas compute in this type: float for the 16-bit floats, T otherwise.
template <class T>
struct compute_type {
  using type = T;
};
template <>
struct compute_type<Half> {
  using type = float;
};
template <>
struct compute_type<BFloat16> {
  using type = float;
};
template <class T>
using compute_t = typename compute_type<T>::type;
// float for complex<float>, T for real T.
template <class T>
struct real_type {
  using type = T;
};
template <class T>
struct real_type<complex<T>> {
  using type = T;
};
template <class T>
using real_t = typename real_type<T>::type;

// Conversion of one element between any two dtypes.
template <class To, class From>
constexpr To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (is_complex_v<From>) {
    if constexpr (is_complex_v<To>) {
      return To(value);
    } else if constexpr (std::is_same_v<To, bool>) {
      return value.re != 0 || value.im != 0;
    } else {
      return convert<To>(value.re);
    }
  } else if constexpr (is_complex_v<To>) {
    return To(convert<typename To::value_type>(value));
  } else if constexpr (is_reduced_float_v<From>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (is_reduced_float_v<To>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // As x86 converts: through int32 (bytes without a sign and int64: through int64), whose least
    // number stands for all that does not fit; narrower ones keep its low bits.
    using Wide = std::conditional_t<sizeof(To) == 8 || std::is_unsigned_v<To>, int64_t, int32_t>;
    const From limit = From(sizeof(Wide) == 8 ? 9223372036854775808.0 : 2147483648.0);
    const bool fits = value < limit && value >= -limit;
    return static_cast<To>(fits ? static_cast<Wide>(value) : std::numeric_limits<Wide>::min());
  } else {
    return static_cast<To>(value);
  }
}

template <class T>
struct Tag {
  using type = T;
};

// "Float", "Half": what many of PyTorch's messages call dtypes.
RL_API const char* enum_name(ScalarType t);
[[noreturn]] RL_API void dtype_not_implemented(const char* op, ScalarType t);

// Sets of dtypes for visit_dtype and for contracts.
enum DtypeSet : uint32_t {
#define RL_BIT(T, Enum, name, alias) set_##Enum = 1u << static_cast<int>(ScalarType::Enum),
  RL_FOR_EACH_DTYPE(RL_BIT)
#undef RL_BIT
          set_integers = set_Byte |
      set_Char | set_Short | set_Int | set_Long,
  set_reduced = set_Half | set_BFloat16,
  set_floats = set_Float | set_Double,
  set_floating = set_floats | set_reduced,
  set_complexes = set_ComplexFloat | set_ComplexDouble,
  set_real = set_integers | set_floating,
  set_numbers = set_real | set_complexes,
  set_all = set_numbers | set_Bool,
};
inline constexpr bool contains(uint32_t set, ScalarType t) {
  return (set >> static_cast<int>(t)) & 1u;
}

// Calls f(Tag<T>{}) with the C++ type of `t`, for dtypes in the compile-time set; otherwise raises
// NotImplementedError: "op" not implemented for 'Half'. Only the types of the set are instantiated.
template <uint32_t Set, class F>
decltype(auto) visit_dtype(const char* op, ScalarType t, F&& f) {
  switch (t) {
#define RL_CASE(T, Enum, name, alias)        \
  case ScalarType::Enum:                     \
    if constexpr ((Set & set_##Enum) != 0) { \
      return f(Tag<T>{});                    \
    }                                        \
    break;
    RL_FOR_EACH_DTYPE(RL_CASE)
#undef RL_CASE
    case ScalarType::Undefined:
      break;
  }
  dtype_not_implemented(op, t);
}

RL_API ScalarType promote_types(ScalarType a, ScalarType b);
RL_API bool can_cast(ScalarType from, ScalarType to);
RL_API ScalarType get_default_dtype();
RL_API void set_default_dtype(ScalarType t);
inline ScalarType to_complex(ScalarType t) {
  return t == kFloat64 ? kComplexDouble : kComplexFloat;
}
inline ScalarType to_real(ScalarType t) {
  return t == kComplexDouble ? kFloat64 : t == kComplexFloat ? kFloat32 : t;
}
// The dtype that integers are promoted to by sqrt, mean and friends.
inline ScalarType to_floating(ScalarType t) {
  return is_differentiable(t) ? t : get_default_dtype();
}

}  // namespace rushlight
