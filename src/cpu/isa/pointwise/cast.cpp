// Conversions between all dtypes, strided gathers and scatters, fills and small transpositions.
// Dtypes that kernels are not instantiated for and 16-bit floats convert through another one, so a
// new dtype adds a few conversions, not a row and a column.
#include "cpu/isa/pointwise/cast.h"

#include <algorithm>
#include <cstring>

#include "cpu/isa/sse.h"
#include "kernels/by_size.h"
#include "kernels/inline.h"

// Conversions are called for buffers of hundreds of elements: never worth a second copy.
#define RL_NOINLINE __attribute__((noinline))

namespace rushlight::cpu::RL_ISA {

namespace {

// Bools are read as bytes, of which any but 0 is true: the compiler makes vectors of bytes alone.
template <class From>
RL_INLINE auto load_element(const From* from, int64_t i) {
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
    out[i] = convert<To>(load_element(in, i));
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
#elif defined(__aarch64__)
  for (; i + 4 <= n; i += 4) {
    vst1q_f32(out + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(in + i))));
  }
  for (; i < n; ++i) {
    out[i] = half_bits_to_float(in[i]);
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
#elif defined(__aarch64__)
  for (; i + 4 <= n; i += 4) {
    vst1_u16(out + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(in + i))));
  }
  for (; i < n; ++i) {
    out[i] = float_to_half_bits(in[i]);
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

template <int Size>
void copy(void* to, const void* from, int64_t n) {
  std::memmove(to, from, static_cast<size_t>(n * Size));
}

template <class T>
constexpr CastStep widen_of = std::is_same_v<T, Half> ? half_to_float : bfloat16_to_float;
template <class T>
constexpr CastStep narrow_of = std::is_same_v<T, Half> ? float_to_half : float_to_bfloat16;

template <class T>
constexpr bool is_wide_unsigned_v = contains(set_wide_unsigned, dtype_of_v<T>);
template <class T>
constexpr bool is_complex_half_v = std::is_same_v<T, complex<Half>>;

// That there is no function: compared by its type, for sanitizers keep the addresses of functions
// from being constants.
struct NoStep {};

// The function that converts in one step.
template <class To, class From>
constexpr auto step_of() {
  constexpr bool from_float = std::is_same_v<From, float>;
  constexpr bool to_float = std::is_same_v<To, float>;
  if constexpr (std::is_same_v<To, From> ||
                (is_integer_v<To> && is_integer_v<From> && sizeof(To) == sizeof(From))) {
    return CastStep(copy<sizeof(To)>);
  } else if constexpr (is_reduced_float_v<From> && to_float) {
    return widen_of<From>;
  } else if constexpr (is_reduced_float_v<To> && !is_reduced_float_v<From> && from_float) {
    return narrow_of<To>;
  } else if constexpr (is_reduced_float_v<From> || is_reduced_float_v<To>) {
    return NoStep();
  } else {
    // What a stored dtype is brought to and made of.
    constexpr bool by_float = is_float8_v<From> ? to_float : !is_float8_v<To> || from_float;
    constexpr bool by_complex =
        is_complex_half_v<From>
            ? to_float || std::is_same_v<To, complex<float>> || std::is_same_v<To, bool>
            : !is_complex_half_v<To> || from_float || std::is_same_v<From, complex<float>>;
    using Wide = std::conditional_t<is_wide_unsigned_v<From>, From, To>;
    using Other = std::conditional_t<is_wide_unsigned_v<From>, To, From>;
    constexpr bool by_integer = !is_wide_unsigned_v<Wide> || std::is_same_v<Other, int64_t> ||
                                std::is_same_v<Other, float> ||
                                (sizeof(Wide) == 8 && std::is_same_v<Other, double>);
    if constexpr (by_float && by_complex && by_integer) {
      return CastStep(cast_plain<To, From>);
    } else {
      return NoStep();
    }
  }
}
template <class To, class From>
constexpr bool has_step = !std::is_same_v<decltype(step_of<To, From>()), NoStep>;

// The dtype between two that have no step: the value that comes out is that of `convert`.
template <class To, class From>
constexpr auto middle_of() {
  constexpr bool small = is_small_float_v<From> || is_small_float_v<To>;
  constexpr bool half = is_complex_half_v<From> || is_complex_half_v<To>;
  if constexpr (!small && half && is_complex_v<From> && is_complex_v<To>) {
    return TypeTag<complex<float>>{};
  } else if constexpr (small || half) {
    return TypeTag<float>{};
  } else if constexpr ((is_complex_v<From> && std::is_same_v<To, uint64_t>) ||
                       (is_complex_v<To> && std::is_same_v<From, uint64_t>)) {
    return TypeTag<real_t<std::conditional_t<is_complex_v<From>, From, To>>>{};
  } else {
    return TypeTag<int64_t>{};
  }
}

template <class To, class From>
constexpr Cast select_cast() {
  if constexpr (has_step<To, From>) {
    return {step_of<To, From>(), nullptr, 0, 0};
  } else {
    using Middle = typename decltype(middle_of<To, From>())::type;
    static_assert(has_step<Middle, From> && has_step<To, Middle>);
    return {step_of<Middle, From>(), step_of<To, Middle>(), sizeof(From), sizeof(To)};
  }
}

struct CastTable {
  Cast of[dtype_rows][dtype_rows];
};

template <class To>
constexpr void fill_row(CastTable& table, int row) {
#define RL_CAST(T, Enum, number, ...) table.of[row][number] = select_cast<To, T>();
  RL_FOR_EACH_DTYPE(RL_CAST)
#undef RL_CAST
}

constexpr CastTable make_table() {
  CastTable table{};
#define RL_ROW(T, Enum, number, ...) fill_row<T>(table, number);
  RL_FOR_EACH_DTYPE(RL_ROW)
#undef RL_ROW
  return table;
}

constexpr CastTable casts = make_table();

}  // namespace

void Cast::cast_in_two_steps(void* to, const void* from, int64_t n) const {
  constexpr int64_t piece = 512;
  alignas(64) char middle[piece * sizeof(double)];
  for (int64_t i = 0; i < n; i += piece) {
    const int64_t count = std::min(piece, n - i);
    first(middle, static_cast<const char*>(from) + i * from_size, count);
    second(static_cast<char*>(to) + i * to_size, middle, count);
  }
}

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
struct SquareTile {
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

// Two or three rows of whose elements those of a column follow each other, and back.
template <int rows, class T>
void split_columns(char* to, int64_t to_stride, const char* from, int64_t columns) {
  const T* __restrict x = reinterpret_cast<const T*>(from);
  T* __restrict a = reinterpret_cast<T*>(to);
  T* __restrict b = reinterpret_cast<T*>(to + to_stride);
  T* __restrict c = reinterpret_cast<T*>(to + (rows - 1) * to_stride);
  for (int64_t j = 0; j < columns; j++) {
    a[j] = x[rows * j];
    b[j] = x[rows * j + 1];
    if constexpr (rows == 3) {
      c[j] = x[rows * j + 2];
    }
  }
}
template <int columns, class T>
void join_rows(char* to, const char* from, int64_t from_stride, int64_t rows) {
  T* __restrict x = reinterpret_cast<T*>(to);
  const T* __restrict a = reinterpret_cast<const T*>(from);
  const T* __restrict b = reinterpret_cast<const T*>(from + from_stride);
  const T* __restrict c = reinterpret_cast<const T*>(from + (columns - 1) * from_stride);
  for (int64_t i = 0; i < rows; i++) {
    x[columns * i] = a[i];
    x[columns * i + 1] = b[i];
    if constexpr (columns == 3) {
      x[columns * i + 2] = c[i];
    }
  }
}

template <class T>
void transpose_as(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t rows,
                  int64_t columns) {
  constexpr int64_t size = sizeof(T);
  if constexpr (size <= 8) {
    if ((rows == 2 || rows == 3) && from_stride == rows * size) {
      return rows == 2 ? split_columns<2, T>(to, to_stride, from, columns)
                       : split_columns<3, T>(to, to_stride, from, columns);
    }
    if ((columns == 2 || columns == 3) && to_stride == columns * size) {
      return columns == 2 ? join_rows<2, T>(to, from, from_stride, rows)
                          : join_rows<3, T>(to, from, from_stride, rows);
    }
  }
  // A band of rows that takes one cache line of each line of the input.
  constexpr int64_t band = 64 / size;
  for (int64_t i0 = 0; i0 < rows; i0 += band) {
    const int64_t i1 = std::min(rows, i0 + band);
    int64_t j = 0;
    if constexpr (size <= 8) {
      for (; j + 4 <= columns; j += 4) {
        int64_t i = i0;
        for (; i + 4 <= i1; i += 4) {
          SquareTile<T>::transpose(to + i * to_stride + j * size, to_stride,
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
