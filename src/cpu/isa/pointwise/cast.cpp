// Conversions between all dtypes, strided gathers and scatters, fills and small transpositions.
// The 16-bit floats convert through float, so a new dtype adds one row of conversions, not a
// square.
#include "cpu/isa/pointwise/cast.h"

#include <algorithm>
#include <cstring>

#include <immintrin.h>

#include "kernels/by_size.h"
#include "kernels/inline.h"

// Conversions are called for buffers of hundreds of elements: never worth a second copy.
#define RL_NOINLINE __attribute__((noinline))

namespace rushlight::cpu::RL_ISA {

namespace {

// Bools are read as bytes, of which any but 0 is true: the compiler makes vectors of bytes alone.
template <class From>
RL_INLINE auto plain_element(const From* from, int64_t i) {
  if constexpr (std::is_same_v<From, bool>) {
    return static_cast<uint8_t>(reinterpret_cast<const uint8_t*>(from)[i] != 0);
  } else {
    return from[i];
  }
}

template <class To, class From>
RL_NOINLINE void cast_plain(void* to, const void* from, int64_t n) {
  auto* out = static_cast<To*>(to);
  const auto* in = static_cast<const From*>(from);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    out[i] = convert<To>(plain_element(in, i));
  }
}

// Buffers of floats are read and written as their bits here.
using FloatBits __attribute__((may_alias)) = uint32_t;

RL_NOINLINE void half_to_float(void* to, const void* from, int64_t n) {
  auto* out = static_cast<float*>(to);
  const auto* in = static_cast<const uint16_t*>(from);
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(out + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  }
  for (; i < n; ++i) {
    out[i] = _cvtsh_ss(in[i]);
  }
#else
  for (; i < n; ++i) {
    out[i] = half_bits_to_float(in[i]);
  }
#endif
}

RL_NOINLINE void float_to_half(void* to, const void* from, int64_t n) {
  auto* out = static_cast<uint16_t*>(to);
  const auto* in = static_cast<const float*>(from);
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    const __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), h);
  }
  for (; i < n; ++i) {
    out[i] = _cvtss_sh(in[i], _MM_FROUND_TO_NEAREST_INT);
  }
#else
  for (; i < n; ++i) {
    out[i] = float_to_half_bits(in[i]);
  }
#endif
}

RL_NOINLINE void bfloat16_to_float(void* to, const void* from, int64_t n) {
  auto* out = static_cast<FloatBits*>(to);
  const auto* in = static_cast<const uint16_t*>(from);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<uint32_t>(in[i]) << 16;
  }
}

RL_NOINLINE void float_to_bfloat16(void* to, const void* from, int64_t n) {
  auto* out = static_cast<uint16_t*>(to);
  const auto* in = static_cast<const FloatBits*>(from);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t u = in[i];
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    out[i] = static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
  }
}

constexpr int64_t piece = 512;

// From one 16-bit float to any dtype and back, by way of float.
template <Cast Widen, class To>
void cast_from_reduced(void* to, const void* from, int64_t n) {
  alignas(64) float middle[piece];
  for (int64_t i = 0; i < n; i += piece) {
    const int64_t count = std::min(piece, n - i);
    Widen(middle, static_cast<const uint16_t*>(from) + i, count);
    cast_plain<To, float>(static_cast<To*>(to) + i, middle, count);
  }
}

template <Cast Narrow, class From>
void cast_to_reduced(void* to, const void* from, int64_t n) {
  alignas(64) float middle[piece];
  for (int64_t i = 0; i < n; i += piece) {
    const int64_t count = std::min(piece, n - i);
    cast_plain<float, From>(middle, static_cast<const From*>(from) + i, count);
    Narrow(static_cast<uint16_t*>(to) + i, middle, count);
  }
}

template <Cast Narrow, Cast Widen>
void cast_between_reduced(void* to, const void* from, int64_t n) {
  alignas(64) float middle[piece];
  for (int64_t i = 0; i < n; i += piece) {
    const int64_t count = std::min(piece, n - i);
    Widen(middle, static_cast<const uint16_t*>(from) + i, count);
    Narrow(static_cast<uint16_t*>(to) + i, middle, count);
  }
}

template <int Size>
void copy(void* to, const void* from, int64_t n) {
  std::memmove(to, from, static_cast<size_t>(n * Size));
}

template <class T>
constexpr Cast widen_of = std::is_same_v<T, Half> ? half_to_float : bfloat16_to_float;
template <class T>
constexpr Cast narrow_of = std::is_same_v<T, Half> ? float_to_half : float_to_bfloat16;

template <class To, class From>
constexpr Cast select_cast() {
  if constexpr (std::is_same_v<To, From>) {
    return copy<sizeof(To)>;
  } else if constexpr (is_reduced_float_v<From> && is_reduced_float_v<To>) {
    return cast_between_reduced<narrow_of<To>, widen_of<From>>;
  } else if constexpr (is_reduced_float_v<From>) {
    return std::is_same_v<To, float> ? widen_of<From> : cast_from_reduced<widen_of<From>, To>;
  } else if constexpr (is_reduced_float_v<To>) {
    return std::is_same_v<From, float> ? narrow_of<To> : cast_to_reduced<narrow_of<To>, From>;
  } else {
    return cast_plain<To, From>;
  }
}

struct CastTable {
  Cast of[num_dtypes][num_dtypes];
};

template <class To>
constexpr void fill_row(CastTable& table, int row) {
  int column = 0;
#define RL_CAST(T, Enum, name, alias) table.of[row][column++] = select_cast<To, T>();
  RL_FOR_EACH_DTYPE(RL_CAST)
#undef RL_CAST
}

constexpr CastTable make_table() {
  CastTable table{};
  int row = 0;
#define RL_ROW(T, Enum, name, alias) fill_row<T>(table, row++);
  RL_FOR_EACH_DTYPE(RL_ROW)
#undef RL_ROW
  return table;
}

constexpr CastTable casts = make_table();

}  // namespace

Cast cast_function(ScalarType to, ScalarType from) {
  return casts.of[static_cast<int>(to)][static_cast<int>(from)];
}

namespace {

// Every Step-th element; a step that the compiler knows becomes shuffles of whole vectors.
template <int64_t Step, class T>
void gather_every(T* __restrict to, const T* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    to[i] = from[i * Step];
  }
}

}  // namespace

void gather(char* to, const char* from, int64_t stride, int64_t size, int64_t n) {
  if (stride == size) {
    std::memcpy(to, from, static_cast<size_t>(n * size));
    return;
  }
  if (stride == 0) {
    fill(to, from, size, n);
    return;
  }
  visit_size(size, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = reinterpret_cast<T*>(to);
    const T* in = reinterpret_cast<const T*>(from);
    switch (stride == 2 * size ? 2 : stride == 3 * size ? 3 : stride == 4 * size ? 4 : 0) {
      case 2:
        return gather_every<2>(out, in, n);
      case 3:
        return gather_every<3>(out, in, n);
      case 4:
        return gather_every<4>(out, in, n);
      default:
        break;
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      out[i] = *reinterpret_cast<const T*>(from + i * stride);
    }
  });
}

void scatter(char* to, int64_t stride, const char* from, int64_t size, int64_t n) {
  if (stride == size) {
    std::memcpy(to, from, static_cast<size_t>(n * size));
    return;
  }
  visit_size(size, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = reinterpret_cast<const T*>(from);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      *reinterpret_cast<T*>(to + i * stride) = in[i];
    }
  });
}

void fill(char* to, const char* value, int64_t size, int64_t n) {
  visit_size(size, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = reinterpret_cast<T*>(to);
    const T v = *reinterpret_cast<const T*>(value);
    for (int64_t i = 0; i < n; ++i) {
      out[i] = v;
    }
  });
}

namespace {

// Four vectors of four elements, rows to columns.
template <class T>
struct Square {
  typedef T Vector __attribute__((vector_size(4 * sizeof(T)), aligned(1), may_alias));
  static void transpose(char* to, int64_t to_stride, const char* from, int64_t from_stride) {
    const Vector a = *reinterpret_cast<const Vector*>(from);
    const Vector b = *reinterpret_cast<const Vector*>(from + from_stride);
    const Vector c = *reinterpret_cast<const Vector*>(from + 2 * from_stride);
    const Vector d = *reinterpret_cast<const Vector*>(from + 3 * from_stride);
    const Vector ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Vector ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Vector cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Vector cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *reinterpret_cast<Vector*>(to) = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    *reinterpret_cast<Vector*>(to + to_stride) =
        __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    *reinterpret_cast<Vector*>(to + 2 * to_stride) =
        __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *reinterpret_cast<Vector*>(to + 3 * to_stride) =
        __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
  }
};

template <class T>
void transpose_as(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t rows,
                  int64_t columns) {
  constexpr int64_t size = sizeof(T);
  // A band of rows that takes one cache line of each line of the input.
  constexpr int64_t band = 64 / size;
  for (int64_t i0 = 0; i0 < rows; i0 += band) {
    const int64_t i1 = std::min(rows, i0 + band);
    int64_t j = 0;
    if constexpr (size <= 8) {
      for (; j + 4 <= columns; j += 4) {
        int64_t i = i0;
        for (; i + 4 <= i1; i += 4) {
          Square<T>::transpose(to + i * to_stride + j * size, to_stride,
                               from + j * from_stride + i * size, from_stride);
        }
        for (; i < i1; ++i) {
          for (int64_t k = j; k < j + 4; ++k) {
            *reinterpret_cast<T*>(to + i * to_stride + k * size) =
                *reinterpret_cast<const T*>(from + k * from_stride + i * size);
          }
        }
      }
    }
    for (; j < columns; ++j) {
      for (int64_t i = i0; i < i1; ++i) {
        *reinterpret_cast<T*>(to + i * to_stride + j * size) =
            *reinterpret_cast<const T*>(from + j * from_stride + i * size);
      }
    }
  }
}

}  // namespace

void transpose(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t size,
               int64_t rows, int64_t columns) {
  visit_size(size, [&](auto tag) {
    transpose_as<typename decltype(tag)::type>(to, to_stride, from, from_stride, rows, columns);
  });
}

void stream(char* to, const char* from, int64_t bytes) {
  constexpr int64_t line = 64;
  const int64_t head =
      std::min(bytes, static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) & (line - 1)));
  std::memcpy(to, from, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + line <= bytes; i += line) {
    const auto* in = reinterpret_cast<const __m128i*>(from + i);
    auto* out = reinterpret_cast<__m128i*>(to + i);
    for (int k = 0; k < 4; ++k) {
      _mm_stream_si128(out + k, _mm_loadu_si128(in + k));
    }
  }
  _mm_sfence();
  std::memcpy(to + i, from + i, static_cast<size_t>(bytes - i));
}

}  // namespace rushlight::cpu::RL_ISA
