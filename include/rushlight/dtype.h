// Element types: floats of 16 and 8 bits, complex numbers, the dtypes and their properties.
// A new dtype is one line in RL_FOR_EACH_DTYPE; what differs by dtype asks `dtype_info` or
// `visit_dtype`. Arithmetic and conversions are constexpr, which lets device code use them.
//
// Kernels are instantiated for twelve of the dtypes, the sets below `set_all`. The others are
// *stored*: they are moved by the size of their elements, converted, and computed in the dtype of
// `compute_t`, where an op computes with them at all.
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

// std::bit_cast, also in C++17.
template <class To, class From>
constexpr To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

constexpr float half_bits_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t rest = static_cast<uint32_t>(h & 0x7fffu) << 13;
  // Moving the exponent by a multiplication also turns half denormals into normal floats.
  const float scaled = bits_as<float>(rest) * 0x1p112f;
  const uint32_t inf_or_nan = (h & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  return bits_as<float>(bits_as<uint32_t>(scaled) | inf_or_nan | sign);
}

constexpr uint16_t float_to_half_bits(float f) {  // round to nearest even
  const uint32_t bits = bits_as<uint32_t>(f);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00u);
  }
  if (magnitude >= 0x477ff000u) {  // rounds to 2^16 or more
    return static_cast<uint16_t>(sign | 0x7c00u);
  }
  if (magnitude < 0x38800000u) {  // below the smallest normal half: the adder rounds for us
    const float aligned = bits_as<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (bits_as<uint32_t>(aligned) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

struct Half {
  union {
    uint16_t bits = 0;
    uint16_t x;  // libtorch's name
  };
  Half() = default;
  constexpr Half(float value) : bits(float_to_half_bits(value)) {}
  constexpr operator float() const { return half_bits_to_float(bits); }
};

struct BFloat16 {
  union {
    uint16_t bits = 0;
    uint16_t x;  // libtorch's name
  };
  BFloat16() = default;
  constexpr BFloat16(float value) {
    const uint32_t u = bits_as<uint32_t>(value);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    bits = static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
  }
  constexpr operator float() const { return bits_as<float>(static_cast<uint32_t>(bits) << 16); }
};

// Which numbers the codes of an 8-bit float stand for beside the finite ones.
enum class Float8Specials : uint8_t {
  InfAndNan,  // as IEEE has them: the largest exponent is theirs
  Nan,        // all bits but the sign; too large numbers become the largest one
  NanAsZero,  // the code of a negative zero, of which there is none
};

template <int Mantissa, int Bias, Float8Specials specials>
struct Float8 {
  uint8_t bits = 0;
  Float8() = default;
  constexpr Float8(float value) : bits(encode(value)) {}
  constexpr operator float() const { return decode(bits); }

  static constexpr float max() { return decode(largest_code); }
  static constexpr float smallest_normal() { return decode(1 << Mantissa); }
  // Of the formats without a negative zero PyTorch says 1/8 both times.
  static constexpr float eps() {
    return specials == Float8Specials::NanAsZero ? 0.125f : 1.0f / (1 << Mantissa);
  }

 private:
  static constexpr int shift = 23 - Mantissa;
  static constexpr uint8_t largest_code = specials == Float8Specials::InfAndNan ? 0x7b
                                          : specials == Float8Specials::Nan     ? 0x7e
                                                                                : 0x7f;
  static constexpr uint8_t nan_code = specials == Float8Specials::NanAsZero ? 0x80 : 0x7f;
  static constexpr uint8_t overflow_code = specials == Float8Specials::InfAndNan ? 0x7c
                                           : specials == Float8Specials::Nan     ? largest_code
                                                                                 : nan_code;

  static constexpr float decode(uint8_t code) {
    const uint32_t sign = static_cast<uint32_t>(code & 0x80u) << 24;
    const uint32_t rest = code & 0x7fu;
    if (specials == Float8Specials::NanAsZero ? code == nan_code
                                              : specials == Float8Specials::Nan && rest == 0x7fu) {
      return bits_as<float>(sign | 0x7fc00000u);
    }
    if (specials == Float8Specials::InfAndNan && rest >= 0x7cu) {
      return bits_as<float>(sign | 0x7f800000u | (rest & 0x3u) << shift);
    }
    const float scale = bits_as<float>(static_cast<uint32_t>(254 - Bias) << 23);
    const float scaled = bits_as<float>(rest << shift) * scale;
    return bits_as<float>(bits_as<uint32_t>(scaled) | sign);
  }

  static constexpr uint8_t encode(float value) {  // round to nearest even
    const uint32_t bits = bits_as<uint32_t>(value);
    const uint32_t sign = (bits >> 24) & 0x80u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    // The number that the code behind the largest one would stand for: rounding gives no larger
    // one.
    const uint32_t limit = static_cast<uint32_t>((0x80 >> Mantissa) - Bias + 127) << 23;
    uint32_t code = 0;
    if (magnitude > 0x7f800000u) {
      code = nan_code;
    } else if (magnitude >= limit) {
      code = overflow_code;
    } else if (magnitude < static_cast<uint32_t>(128 - Bias) << 23) {
      // Below the smallest normal number: the adder rounds for us.
      const uint32_t one = static_cast<uint32_t>(128 - Bias + shift) << 23;
      const float aligned = bits_as<float>(magnitude) + bits_as<float>(one);
      code = bits_as<uint32_t>(aligned) - one;
    } else {
      const uint32_t odd = (magnitude >> shift) & 1u;
      const uint32_t rounded =
          magnitude - (static_cast<uint32_t>(127 - Bias) << 23) + ((1u << (shift - 1)) - 1u) + odd;
      code = rounded >> shift;
      code = code > largest_code ? overflow_code : code;
    }
    const bool unsigned_zero = specials == Float8Specials::NanAsZero && code == 0;
    return static_cast<uint8_t>(unsigned_zero ? 0u : code | sign);
  }
};
using Float8_e4m3fn = Float8<3, 7, Float8Specials::Nan>;
using Float8_e5m2 = Float8<2, 15, Float8Specials::InfAndNan>;
using Float8_e4m3fnuz = Float8<3, 8, Float8Specials::NanAsZero>;
using Float8_e5m2fnuz = Float8<2, 16, Float8Specials::NanAsZero>;

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
  friend constexpr bool operator!=(complex a, complex b) { return !(a == b); }
};

template <class T>
inline constexpr bool is_complex_v = false;
template <class T>
inline constexpr bool is_complex_v<complex<T>> = true;
template <class T>
inline constexpr bool is_reduced_float_v = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_float8_v = false;
template <int M, int B, Float8Specials S>
inline constexpr bool is_float8_v<Float8<M, B, S>> = true;
// Floats that convert through float.
template <class T>
inline constexpr bool is_small_float_v = is_reduced_float_v<T> || is_float8_v<T>;
template <class T>
inline constexpr bool is_real_float_v = std::is_floating_point_v<T> || is_small_float_v<T>;
template <class T>
inline constexpr bool is_integer_v = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// C++ type, enumerator and its number, name, short alias, safetensors' name ("": none), numpy's
// number (-1: none), DLPack's code. Numbers are PyTorch's: programs, bindings and TorchScript's
// archives store them. Between them lie those of dtypes that are not here.
#define RL_FOR_EACH_DTYPE(_)                                                                       \
  _(uint8_t, Byte, 0, "uint8", "uint8", "U8", 2, 1)                                                \
  _(int8_t, Char, 1, "int8", "int8", "I8", 1, 0)                                                   \
  _(int16_t, Short, 2, "int16", "short", "I16", 3, 0)                                              \
  _(int32_t, Int, 3, "int32", "int", "I32", 5, 0)                                                  \
  _(int64_t, Long, 4, "int64", "long", "I64", 7, 0)                                                \
  _(Half, Half, 5, "float16", "half", "F16", 23, 2)                                                \
  _(float, Float, 6, "float32", "float", "F32", 11, 2)                                             \
  _(double, Double, 7, "float64", "double", "F64", 12, 2)                                          \
  _(complex<float>, ComplexFloat, 9, "complex64", "cfloat", "C64", 14, 5)                          \
  _(complex<double>, ComplexDouble, 10, "complex128", "cdouble", "", 15, 5)                        \
  _(bool, Bool, 11, "bool", "bool", "BOOL", 0, 6)                                                  \
  _(BFloat16, BFloat16, 15, "bfloat16", "bfloat16", "BF16", -1, 4)                                 \
  _(complex<Half>, ComplexHalf, 8, "complex32", "chalf", "", -1, 5)                                \
  _(uint16_t, UInt16, 27, "uint16", "uint16", "U16", 4, 1)                                         \
  _(uint32_t, UInt32, 28, "uint32", "uint32", "U32", 6, 1)                                         \
  _(uint64_t, UInt64, 29, "uint64", "uint64", "U64", 8, 1)                                         \
  _(Float8_e4m3fn, Float8_e4m3fn, 24, "float8_e4m3fn", "float8_e4m3fn", "F8_E4M3", -1, 10)         \
  _(Float8_e5m2, Float8_e5m2, 23, "float8_e5m2", "float8_e5m2", "F8_E5M2", -1, 12)                 \
  _(Float8_e4m3fnuz, Float8_e4m3fnuz, 26, "float8_e4m3fnuz", "float8_e4m3fnuz", "F8_E4M3FNUZ", -1, \
    11)                                                                                            \
  _(Float8_e5m2fnuz, Float8_e5m2fnuz, 25, "float8_e5m2fnuz", "float8_e5m2fnuz", "F8_E5M2FNUZ", -1, \
    13)

enum class ScalarType : int8_t {
#define RL_ENUM(T, Enum, number, ...) Enum = number,
  RL_FOR_EACH_DTYPE(RL_ENUM)
#undef RL_ENUM
      Undefined = 46
};
using Dtype = ScalarType;
inline constexpr ScalarType all_dtypes[] = {
#define RL_DTYPE(T, Enum, ...) ScalarType::Enum,
    RL_FOR_EACH_DTYPE(RL_DTYPE)
#undef RL_DTYPE
};
// Tables by dtype have so many rows, of which not all are a dtype's.
inline constexpr int dtype_rows = static_cast<int>(ScalarType::UInt64) + 1;

inline constexpr ScalarType kUInt8 = ScalarType::Byte, kInt8 = ScalarType::Char,
                            kInt16 = ScalarType::Short, kInt32 = ScalarType::Int,
                            kInt64 = ScalarType::Long, kFloat16 = ScalarType::Half,
                            kFloat32 = ScalarType::Float, kFloat64 = ScalarType::Double,
                            kBFloat16 = ScalarType::BFloat16,
                            kComplexFloat = ScalarType::ComplexFloat,
                            kComplexDouble = ScalarType::ComplexDouble, kBool = ScalarType::Bool,
                            kComplexHalf = ScalarType::ComplexHalf, kUInt16 = ScalarType::UInt16,
                            kUInt32 = ScalarType::UInt32, kUInt64 = ScalarType::UInt64,
                            kByte = kUInt8, kChar = kInt8, kShort = kInt16, kInt = kInt32,
                            kLong = kInt64, kHalf = kFloat16, kFloat = kFloat32, kDouble = kFloat64,
                            kU8 = kUInt8, kI8 = kInt8, kI16 = kInt16, kI32 = kInt32, kI64 = kInt64,
                            kF16 = kFloat16, kF32 = kFloat32, kF64 = kFloat64,
                            kFloat8_e4m3fn = ScalarType::Float8_e4m3fn,
                            kFloat8_e5m2 = ScalarType::Float8_e5m2,
                            kFloat8_e4m3fnuz = ScalarType::Float8_e4m3fnuz,
                            kFloat8_e5m2fnuz = ScalarType::Float8_e5m2fnuz;

// What sums, formulas and comparisons compute in: float for the smaller floats, int64 for unsigned
// integers of 16 to 64 bits (whose low bits are right; order they have not), T otherwise.
template <class T, class = void>
struct compute_type {
  using type = T;
};
template <class T>
struct compute_type<T, std::enable_if_t<is_small_float_v<T>>> {
  using type = float;
};
template <>
struct compute_type<complex<Half>> {
  using type = complex<float>;
};
template <class T>
struct compute_type<T, std::enable_if_t<std::is_unsigned_v<T> && sizeof(T) >= 2>> {
  using type = int64_t;
};
template <class T>
using compute_t = typename compute_type<T>::type;

template <class T>
struct dtype_of;
#define RL_OF(T, Enum, ...)                               \
  template <>                                             \
  struct dtype_of<T> {                                    \
    static constexpr ScalarType value = ScalarType::Enum; \
  };
RL_FOR_EACH_DTYPE(RL_OF)
#undef RL_OF
template <class T>
inline constexpr ScalarType dtype_of_v = dtype_of<std::remove_const_t<T>>::value;

struct DtypeInfo {
  const char* name;         // "float32"
  const char* alias;        // "float"
  const char* enum_name;    // "Float": what many of PyTorch's messages and old files call it
  const char* safetensors;  // "F32", or ""
  int8_t numpy;             // numpy's number, or -1
  uint8_t dlpack;           // DLPack's code
  int8_t itemsize;
  bool is_floating;  // real floating point
  bool is_complex;
  bool is_signed;
  bool is_integral;  // without bool
  bool is_float8;
  bool is_wide_unsigned;  // unsigned integers of 16 to 64 bits
  ScalarType compute;     // of compute_t
};
struct DtypeInfos {
  DtypeInfo of[static_cast<int>(ScalarType::Undefined) + 1];
};
constexpr DtypeInfos make_dtype_infos() {
  DtypeInfos infos{};
  for (DtypeInfo& info : infos.of) {
    info = {"undefined", "undefined", "Undefined", "",    -1,    0,     0,
            false,       false,       false,       false, false, false, ScalarType::Undefined};
  }
#define RL_INFO(T, Enum, number, name, alias, safetensors, numpy, dlpack)           \
  infos.of[number] = {name,                                                         \
                      alias,                                                        \
                      #Enum,                                                        \
                      safetensors,                                                  \
                      numpy,                                                        \
                      dlpack,                                                       \
                      sizeof(T),                                                    \
                      is_real_float_v<T>,                                           \
                      is_complex_v<T>,                                              \
                      is_real_float_v<T> || is_complex_v<T> || std::is_signed_v<T>, \
                      is_integer_v<T>,                                              \
                      is_float8_v<T>,                                               \
                      std::is_unsigned_v<T> && sizeof(T) >= 2,                      \
                      dtype_of_v<compute_t<T>>};
  RL_FOR_EACH_DTYPE(RL_INFO)
#undef RL_INFO
  return infos;
}
inline constexpr DtypeInfos dtype_infos = make_dtype_infos();
inline constexpr const DtypeInfo& dtype_info(ScalarType t) {
  return dtype_infos.of[static_cast<int>(t)];
}
inline constexpr int64_t itemsize(ScalarType t) { return dtype_info(t).itemsize; }
inline constexpr bool is_floating(ScalarType t) { return dtype_info(t).is_floating; }
inline constexpr bool is_complex(ScalarType t) { return dtype_info(t).is_complex; }
inline constexpr bool is_integral(ScalarType t) { return dtype_info(t).is_integral; }
inline constexpr bool is_float8(ScalarType t) { return dtype_info(t).is_float8; }
inline constexpr bool is_wide_unsigned(ScalarType t) { return dtype_info(t).is_wide_unsigned; }
inline constexpr ScalarType compute_dtype(ScalarType t) { return dtype_info(t).compute; }
inline constexpr const char* enum_name(ScalarType t) { return dtype_info(t).enum_name; }
inline constexpr bool is_differentiable(ScalarType t) { return is_floating(t) || is_complex(t); }
inline void append(std::string& out, ScalarType t) {
  out += dtype_info(t).name;
}  // "float32"; messages add "torch."

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
  } else if constexpr (is_small_float_v<From>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (is_small_float_v<To>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (std::is_same_v<To, uint64_t>) {
      if (value >= From(9223372036854775808.0)) {
        return value < From(18446744073709551616.0) ? static_cast<To>(value) : To(0);
      }
    }
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
struct TypeTag {
  using type = T;
};

[[noreturn]] RL_API void dtype_not_implemented(const char* op, ScalarType t);

// Sets of dtypes for visit_dtype and for contracts.
enum DtypeSet : uint32_t {
#define RL_BIT(T, Enum, ...) set_##Enum = 1u << static_cast<int>(ScalarType::Enum),
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
  // Dtypes that kernels are not instantiated for.
  set_wide_unsigned = set_UInt16 | set_UInt32 | set_UInt64,
  set_float8 = set_Float8_e4m3fn | set_Float8_e5m2 | set_Float8_e4m3fnuz | set_Float8_e5m2fnuz,
  set_stored = set_all | set_wide_unsigned | set_float8 | set_ComplexHalf,
};
inline constexpr bool contains(uint32_t set, ScalarType t) {
  return (uint64_t{set} >> static_cast<int>(t)) & 1u;
}

// Calls f(TypeTag<T>{}) with the C++ type of `t`, for dtypes in the compile-time set; otherwise
// raises NotImplementedError: "op" not implemented for 'Half'. Only the types of the set are
// instantiated.
template <uint32_t Set, class F>
decltype(auto) visit_dtype(const char* op, ScalarType t, F&& f) {
  switch (t) {
#define RL_CASE(T, Enum, ...)                \
  case ScalarType::Enum:                     \
    if constexpr ((Set & set_##Enum) != 0) { \
      return f(TypeTag<T>{});                \
    }                                        \
    break;
    RL_FOR_EACH_DTYPE(RL_CASE)
#undef RL_CASE
    case ScalarType::Undefined:
      break;
  }
  dtype_not_implemented(op, t);
}

struct FloatLimits {
  double eps;
  double max;
  double smallest_normal;
};
// Of a real floating-point dtype.
RL_API FloatLimits float_limits(ScalarType t);

RL_API ScalarType promote_types(ScalarType a, ScalarType b);
RL_API bool can_cast(ScalarType from, ScalarType to);
RL_API ScalarType get_default_dtype();
RL_API void set_default_dtype(ScalarType t);
// The complex dtype with parts of this one, itself for a complex one; raises where there is none.
RL_API ScalarType to_complex(ScalarType t);
inline ScalarType to_real(ScalarType t) {
  return t == kComplexDouble  ? kFloat64
         : t == kComplexFloat ? kFloat32
         : t == kComplexHalf  ? kFloat16
                              : t;
}
// The dtype that integers are promoted to by sqrt, mean and friends.
inline ScalarType to_floating(ScalarType t) {
  return is_differentiable(t) ? t : get_default_dtype();
}

}  // namespace rushlight
