// AT_DISPATCH_FLOATING_TYPES(type, "name", [&] { ... scalar_t ... }) and its like: the body,
// compiled for each dtype of a set and run for one.
#pragma once

#include <rushlight/dtype.h>

namespace rushlight {

// A set of dtypes from a list.
template <class... T>
constexpr uint32_t set_of(T... dtypes) {
  return ((1u << static_cast<int>(dtypes)) | ... | 0u);
}

namespace impl {
template <ScalarType t>
struct ScalarTypeToCPPType;
#define RL_CPP_TYPE(T, Enum, ...)                \
  template <>                                    \
  struct ScalarTypeToCPPType<ScalarType::Enum> { \
    using type = T;                              \
  };
RL_FOR_EACH_DTYPE(RL_CPP_TYPE)
#undef RL_CPP_TYPE
template <ScalarType t>
using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<t>::type;
}  // namespace impl
template <class T>
struct CppTypeToScalarType : std::integral_constant<ScalarType, dtype_of_v<T>> {};

}  // namespace rushlight

// _(C++ type, enumerator) for each dtype of a set.
#define AT_FORALL_INT_TYPES(_) \
  _(uint8_t, Byte)             \
  _(int8_t, Char)              \
  _(int16_t, Short)            \
  _(int, Int)                  \
  _(int64_t, Long)
#define AT_FORALL_SCALAR_TYPES(_) \
  AT_FORALL_INT_TYPES(_)          \
  _(float, Float)                 \
  _(double, Double)
#define RL_FORALL_ONE(TYPE, _) \
  _(::rushlight::impl::ScalarTypeToCPPTypeT<::rushlight::ScalarType::TYPE>, TYPE)
#define AT_FORALL_SCALAR_TYPES_AND(TYPE, _) \
  AT_FORALL_SCALAR_TYPES(_)                 \
  RL_FORALL_ONE(TYPE, _)
#define AT_FORALL_SCALAR_TYPES_AND2(TYPE1, TYPE2, _) \
  AT_FORALL_SCALAR_TYPES_AND(TYPE1, _)               \
  RL_FORALL_ONE(TYPE2, _)
#define AT_FORALL_SCALAR_TYPES_AND3(TYPE1, TYPE2, TYPE3, _) \
  AT_FORALL_SCALAR_TYPES_AND2(TYPE1, TYPE2, _)              \
  RL_FORALL_ONE(TYPE3, _)
#define AT_FORALL_COMPLEX_TYPES(_)             \
  _(::rushlight::complex<float>, ComplexFloat) \
  _(::rushlight::complex<double>, ComplexDouble)
#define AT_FORALL_FLOAT8_TYPES(_)                  \
  _(::rushlight::Float8_e5m2, Float8_e5m2)         \
  _(::rushlight::Float8_e4m3fn, Float8_e4m3fn)     \
  _(::rushlight::Float8_e5m2fnuz, Float8_e5m2fnuz) \
  _(::rushlight::Float8_e4m3fnuz, Float8_e4m3fnuz)
#define AT_FORALL_SCALAR_TYPES_WITH_COMPLEX(_)            \
  AT_FORALL_SCALAR_TYPES(_)                               \
  _(::rushlight::Half, Half)                              \
  _(::rushlight::complex<::rushlight::Half>, ComplexHalf) \
  AT_FORALL_COMPLEX_TYPES(_)                              \
  _(bool, Bool)                                           \
  _(::rushlight::BFloat16, BFloat16)                      \
  AT_FORALL_FLOAT8_TYPES(_)

// AT_DISPATCH_SWITCH(type, "name", AT_DISPATCH_CASE(kFloat, [&] {...}) …): a body for each case.
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                 \
  [&] {                                                     \
    const ::rushlight::ScalarType rl_dtype = TYPE;          \
    switch (rl_dtype) {                                     \
      __VA_ARGS__                                           \
      default:                                              \
        ::rushlight::dtype_not_implemented(NAME, rl_dtype); \
    }                                                       \
  }()
#define AT_PRIVATE_CASE_TYPE_USING_HINT(DTYPE, NAME, ...)                         \
  case DTYPE: {                                                                   \
    using NAME [[maybe_unused]] = ::rushlight::impl::ScalarTypeToCPPTypeT<DTYPE>; \
    return __VA_ARGS__();                                                         \
  }
#define AT_DISPATCH_CASE(DTYPE, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(DTYPE, scalar_t, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES(...)          \
  AT_DISPATCH_CASE(::rushlight::kDouble, __VA_ARGS__) \
  AT_DISPATCH_CASE(::rushlight::kFloat, __VA_ARGS__)
#define AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(...) \
  AT_DISPATCH_CASE(::rushlight::kHalf, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::rushlight::kBFloat16, __VA_ARGS__)
#define AT_DISPATCH_CASE_COMPLEX_TYPES(...)                  \
  AT_DISPATCH_CASE(::rushlight::kComplexDouble, __VA_ARGS__) \
  AT_DISPATCH_CASE(::rushlight::kComplexFloat, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)        \
  AT_DISPATCH_CASE(::rushlight::kByte, __VA_ARGS__) \
  AT_DISPATCH_CASE(::rushlight::kChar, __VA_ARGS__) \
  AT_DISPATCH_CASE(::rushlight::kInt, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::rushlight::kLong, __VA_ARGS__) \
  AT_DISPATCH_CASE(::rushlight::kShort, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...)        \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(...) \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)           \
  AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)           \
  AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)

// The body for one to eight dtypes more.
#define RL_CASES1 AT_DISPATCH_CASE
#define RL_CASES2(A, B, ...) RL_CASES1(A, __VA_ARGS__) AT_DISPATCH_CASE(B, __VA_ARGS__)
#define RL_CASES3(A, B, C, ...) RL_CASES2(A, B, __VA_ARGS__) AT_DISPATCH_CASE(C, __VA_ARGS__)
#define RL_CASES4(A, B, C, D, ...) RL_CASES3(A, B, C, __VA_ARGS__) AT_DISPATCH_CASE(D, __VA_ARGS__)
#define RL_CASES5(A, B, C, D, E, ...) \
  RL_CASES4(A, B, C, D, __VA_ARGS__) AT_DISPATCH_CASE(E, __VA_ARGS__)
#define RL_CASES6(A, B, C, D, E, F, ...) \
  RL_CASES5(A, B, C, D, E, __VA_ARGS__) AT_DISPATCH_CASE(F, __VA_ARGS__)
#define RL_CASES7(A, B, C, D, E, F, G, ...) \
  RL_CASES6(A, B, C, D, E, F, __VA_ARGS__) AT_DISPATCH_CASE(G, __VA_ARGS__)
#define RL_CASES8(A, B, C, D, E, F, G, H, ...) \
  RL_CASES7(A, B, C, D, E, F, G, __VA_ARGS__) AT_DISPATCH_CASE(H, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(...) \
  AT_DISPATCH_CASE_FLOATING_TYPES_AND(::rushlight::kHalf, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_FLOATING_TYPES_AND(::rushlight::kHalf, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND(A, ...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) RL_CASES1(A, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND(A, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND2(A, B, ...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) RL_CASES2(A, B, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND2(A, B, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND3(A, B, C, ...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) RL_CASES3(A, B, C, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND3(A, B, C, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND3(A, B, C, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND4(A, B, C, D, ...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) RL_CASES4(A, B, C, D, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND4(A, B, C, D, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND4(A, B, C, D, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND5(A, B, C, D, E, ...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) RL_CASES5(A, B, C, D, E, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND5(A, B, C, D, E, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND5(A, B, C, D, E, __VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_COMPLEX_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__))
#define AT_DISPATCH_CASE_COMPLEX_TYPES_AND(A, ...) \
  AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__) RL_CASES1(A, __VA_ARGS__)
#define AT_DISPATCH_COMPLEX_TYPES_AND(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_COMPLEX_TYPES_AND(A, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND1(A, ...) \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__) RL_CASES1(A, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND1(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND1(A, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND2(A, B, ...) \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__) RL_CASES2(A, B, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(A, B, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                           \
                     AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND2(A, B, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND3(A, B, C, ...) \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__) RL_CASES3(A, B, C, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND3(A, B, C, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                              \
                     AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND3(A, B, C, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND4(A, B, C, D, ...) \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__) RL_CASES4(A, B, C, D, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND4(A, B, C, D, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                 \
                     AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND4(A, B, C, D, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND5(A, B, C, D, E, ...) \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__) RL_CASES5(A, B, C, D, E, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND5(A, B, C, D, E, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                    \
                     AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND5(A, B, C, D, E, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND6(A, B, C, D, E, F, ...) \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__) RL_CASES6(A, B, C, D, E, F, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND6(A, B, C, D, E, F, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(                                                                  \
      TYPE, NAME, AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND6(A, B, C, D, E, F, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_CASE_INTEGRAL_TYPES_AND(A, ...) \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) RL_CASES1(A, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES_AND(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES_AND(A, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND(A, ...) \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) RL_CASES1(A, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND(A, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND2(A, B, ...) \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) RL_CASES2(A, B, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND2(A, B, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND2(A, B, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND3(A, B, C, ...) \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) RL_CASES3(A, B, C, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND3(A, B, C, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND3(A, B, C, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND(A, ...) \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__) RL_CASES1(A, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND(A, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND2(A, B, ...) \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__) RL_CASES2(A, B, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(A, B, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND2(A, B, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND3(A, B, C, ...) \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__) RL_CASES3(A, B, C, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(A, B, C, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND3(A, B, C, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND4(A, B, C, D, ...) \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__) RL_CASES4(A, B, C, D, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(A, B, C, D, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                            \
                     AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND4(A, B, C, D, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND5(A, B, C, D, E, ...) \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__) RL_CASES5(A, B, C, D, E, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND5(A, B, C, D, E, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                               \
                     AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND5(A, B, C, D, E, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND6(A, B, C, D, E, F, ...) \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__) RL_CASES6(A, B, C, D, E, F, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND6(A, B, C, D, E, F, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                  \
                     AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND6(A, B, C, D, E, F, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND7(A, B, C, D, E, F, G, ...) \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__) RL_CASES7(A, B, C, D, E, F, G, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND7(A, B, C, D, E, F, G, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(                                                                \
      TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND7(A, B, C, D, E, F, G, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND8(A, B, C, D, E, F, G, H, ...) \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__) RL_CASES8(A, B, C, D, E, F, G, H, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND8(A, B, C, D, E, F, G, H, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(                                                                   \
      TYPE, NAME,                                                                       \
      AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND8(A, B, C, D, E, F, G, H, __VA_ARGS__))
// The body has index_t, int32_t or int64_t.
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                            \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                            \
                     AT_DISPATCH_CASE_INDEX(::rushlight::kInt, __VA_ARGS__) \
                         AT_DISPATCH_CASE_INDEX(::rushlight::kLong, __VA_ARGS__))
#define AT_DISPATCH_CASE_INDEX(DTYPE, ...) \
  AT_PRIVATE_CASE_TYPE_USING_HINT(DTYPE, index_t, __VA_ARGS__)

// One body as a template, for a list of dtypes.
#define RL_DISPATCH(SET, TYPE, NAME, ...)                                             \
  ::rushlight::visit_dtype<static_cast<uint32_t>(SET)>(NAME, TYPE, [&](auto rl_tag) { \
    using scalar_t [[maybe_unused]] = typename decltype(rl_tag)::type;                \
    return __VA_ARGS__();                                                             \
  })
// AT_DISPATCH_V2(type, "name", AT_WRAP([&] {...}), AT_EXPAND(AT_ALL_TYPES), kHalf).
#define AT_WRAP(...) __VA_ARGS__
#define AT_EXPAND(X) X
#define AT_FLOATING_TYPES ::rushlight::kDouble, ::rushlight::kFloat
#define AT_BAREBONES_UNSIGNED_TYPES ::rushlight::kUInt16, ::rushlight::kUInt32, ::rushlight::kUInt64
#define AT_INTEGRAL_TYPES \
  ::rushlight::kByte, ::rushlight::kChar, ::rushlight::kInt, ::rushlight::kLong, ::rushlight::kShort
#define AT_INTEGRAL_TYPES_V2 AT_INTEGRAL_TYPES, AT_BAREBONES_UNSIGNED_TYPES
#define AT_COMPLEX_TYPES ::rushlight::kComplexDouble, ::rushlight::kComplexFloat
#define AT_ALL_TYPES AT_INTEGRAL_TYPES, AT_FLOATING_TYPES
#define AT_ALL_TYPES_AND_COMPLEX AT_ALL_TYPES, AT_COMPLEX_TYPES
#define AT_DISPATCH_V2(TYPE, NAME, BODY, ...) \
  RL_DISPATCH(::rushlight::set_of(__VA_ARGS__), TYPE, NAME, BODY)
