// Elements of any dtype on the device: conversion to and from compute types, and loads whose dtype
// is known when the program runs only.
#pragma once

#include <rushlight/dtype.h>

#include "kernels/read_element.h"

namespace rushlight::cuda {

// The 16-bit floats by the processor's own conversions.
__device__ __forceinline__ float widen(Half h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits));
  return f;
}
__device__ __forceinline__ float widen(BFloat16 b) {
  return __uint_as_float(static_cast<unsigned>(b.bits) << 16);
}
template <class T>
__device__ __forceinline__ compute_t<T> widen(const T& x) {
  return convert<compute_t<T>>(read_element(&x));
}
template <class S>
__device__ __forceinline__ S narrow(compute_t<S> x) {
  if constexpr (std::is_same_v<S, Half>) {
    Half h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
    return h;
  } else if constexpr (std::is_same_v<S, BFloat16>) {
    BFloat16 b;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b.bits) : "f"(x));
    return b;
  } else {
    return convert<S>(x);
  }
}
// An element as T. Wide unsigned integers are more than their compute type says.
template <class T, class S>
__device__ __forceinline__ T element_as(const S& x) {
  if constexpr (is_reduced_float_v<S>) {
    return convert<T>(widen(x));
  } else {
    return convert<T>(read_element(&x));
  }
}
template <class S, class T>
__device__ __forceinline__ S element_of(T x) {
  if constexpr (is_reduced_float_v<S>) {
    return narrow<S>(convert<compute_t<S>>(x));
  } else {
    return convert<S>(x);
  }
}

// Conversions between any two dtypes, one copy for each compute type.
template <class T>
__device__ __noinline__ T load_other(const char* p, ScalarType t) {
  switch (t) {
#define RL_CASE(S, Enum, ...) \
  case ScalarType::Enum:      \
    return element_as<T>(*reinterpret_cast<const S*>(p));
    RL_FOR_EACH_DTYPE(RL_CASE)
#undef RL_CASE
    default:
      return T();
  }
}
template <class T>
__device__ __noinline__ void store_other(char* p, ScalarType t, T x) {
  switch (t) {
#define RL_CASE(S, Enum, ...)                    \
  case ScalarType::Enum:                         \
    *reinterpret_cast<S*>(p) = element_of<S>(x); \
    break;
    RL_FOR_EACH_DTYPE(RL_CASE)
#undef RL_CASE
    default:
      break;
  }
}

template <class T>
__device__ __forceinline__ T load_as(const char* p, ScalarType t) {
  return t == dtype_of_v<T> ? read_element(reinterpret_cast<const T*>(p)) : load_other<T>(p, t);
}
template <class T>
__device__ __forceinline__ void store_as(char* p, ScalarType t, T x) {
  if (t == dtype_of_v<T>) {
    *reinterpret_cast<T*>(p) = x;
  } else {
    store_other<T>(p, t, x);
  }
}

}  // namespace rushlight::cuda
