// _cached_attention (ops/decoding.py): few queries, over a cache that their keys are appended to.
//
// A task is a head of the cache with all queries that share it, so that keys and values are read
// once. Sums of rows have sixteen terms side by side, whatever lanes there are.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/parallel.h"
#include "cpu/isa/simd.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"
#include "kernels/math.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int64_t side_by_side = 16;

// Positions whose keys or values are floats at a time.
constexpr int64_t together = 32;

// Sums of sixteen terms as four.
#if defined(__AVX512F__)
using Sixteen = __m512;
Sixteen zeros() { return _mm512_setzero_ps(); }
Sixteen add_product(Sixteen sum, const float* a, const float* b) {
  return _mm512_add_ps(sum, _mm512_mul_ps(_mm512_loadu_ps(a), _mm512_loadu_ps(b)));
}
__m128 folded(Sixteen x) {
  const __m512 upper = _mm512_maskz_shuffle_f32x4(0xffff, x, x, 0x4e);
  const __m256 eight = _mm512_castps512_ps256(_mm512_add_ps(x, upper));
  return _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
}
#elif defined(__AVX2__)
struct Sixteen {
  __m256 low;
  __m256 high;
};
Sixteen zeros() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
Sixteen add_product(Sixteen sum, const float* a, const float* b) {
  const auto product = [&](int64_t i) {
    return _mm256_mul_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i));
  };
  return {_mm256_add_ps(sum.low, product(0)), _mm256_add_ps(sum.high, product(8))};
}
__m128 folded(Sixteen x) {
  const __m256 eight = _mm256_add_ps(x.low, x.high);
  return _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
}
#else
struct Sixteen {
  __m128 part[4];
};
Sixteen zeros() {
  const __m128 zero = _mm_setzero_ps();
  return {{zero, zero, zero, zero}};
}
Sixteen add_product(Sixteen sum, const float* a, const float* b) {
  for (int i = 0; i < 4; i++) {
    const __m128 product = _mm_mul_ps(_mm_loadu_ps(a + i * 4L), _mm_loadu_ps(b + i * 4L));
    sum.part[i] = _mm_add_ps(sum.part[i], product);
  }
  return sum;
}
__m128 folded(Sixteen x) {
  return _mm_add_ps(_mm_add_ps(x.part[0], x.part[2]), _mm_add_ps(x.part[1], x.part[3]));
}
#endif

// out[i] = scale * the product of a with row i of b, for up to four rows of n numbers.
inline __attribute__((always_inline)) void four_products(const float* a, const float* b, int64_t n,
                                                         int64_t rows, float scale, float* out) {
  Sixteen sums[4] = {zeros(), zeros(), zeros(), zeros()};
  const float* row[4];
  for (int64_t i = 0; i < 4; i++) {
    row[i] = b + std::min(i, rows - 1) * n;  // a row that is not there: another one
  }
  int64_t e = 0;
  for (; e + side_by_side <= n; e += side_by_side) {
    for (int i = 0; i < 4; i++) {
      sums[i] = add_product(sums[i], a + e, row[i] + e);
    }
  }
  if (e < n) {
    float left[side_by_side] = {};
    std::copy(a + e, a + n, left);
    for (int i = 0; i < 4; i++) {
      float right[side_by_side] = {};
      std::copy(row[i] + e, row[i] + n, right);
      sums[i] = add_product(sums[i], left, right);
    }
  }
  __m128 x[4];
  for (int i = 0; i < 4; i++) {
    x[i] = folded(sums[i]);
  }
  _MM_TRANSPOSE4_PS(x[0], x[1], x[2], x[3]);
  const __m128 found = _mm_add_ps(_mm_add_ps(x[0], x[2]), _mm_add_ps(x[1], x[3]));
  float y[4];
  _mm_storeu_ps(y, _mm_mul_ps(found, _mm_set1_ps(scale)));
  std::copy_n(y, rows, out);
}

// to[e] += weights[i] * rows[i][e], for `some` rows of n numbers.
inline __attribute__((always_inline)) void add_rows(float* to, const float* weights,
                                                    const float* rows, int64_t some, int64_t n) {
  int64_t e = 0;
  for (; e + side_by_side <= n; e += side_by_side) {
    float sums[side_by_side];
    std::copy_n(to + e, side_by_side, sums);
    for (int64_t i = 0; i < some; i++) {
      for (int64_t j = 0; j < side_by_side; j++) {
        sums[j] += weights[i] * rows[i * n + e + j];
      }
    }
    std::copy_n(sums, side_by_side, to + e);
  }
  for (int64_t i = 0; i < some && e < n; i++) {
    for (int64_t j = e; j < n; j++) {
      to[j] += weights[i] * rows[i * n + j];
    }
  }
}

// Elements of a row of a cache: its numbers, and behind codes their scale.
template <class T>
constexpr int64_t pitch(int64_t width) {
  return std::is_same_v<T, int8_t> ? width + int64_t{sizeof(float)} : width;
}

// Rows of a cache as floats: themselves where they are.
template <class T>
const float* floats(const T* from, int64_t rows, int64_t width, float* spare) {
  if constexpr (std::is_same_v<T, float>) {
    return from;
  } else if constexpr (std::is_same_v<T, int8_t>) {
    for (int64_t r = 0; r < rows; r++) {
      const T* const codes = from + r * pitch<T>(width);
      float scale = 0;
      std::memcpy(&scale, codes + width, sizeof(scale));
      for (int64_t i = 0; i < width; i++) {
        spare[r * width + i] = static_cast<float>(codes[i]) * scale;
      }
    }
    return spare;
  } else {
    const int64_t n = rows * width;
    constexpr int64_t w = Simd<float>::width;
    int64_t i = 0;
    for (; i + w <= n; i += w) {
      Simd<float>::store(spare + i, Simd<float>::load(from + i));
    }
    for (; i < n; i++) {
      spare[i] = static_cast<float>(from[i]);
    }
    return spare;
  }
}

// A row as a cache has it.
template <class T>
void store_row(T* to, const float* from, int64_t width) {
  if constexpr (std::is_same_v<T, int8_t>) {
    float top = 0;
    for (int64_t i = 0; i < width; i++) {
      const float size = std::fabs(from[i]);
      top = size > top || size != size ? size : top;
    }
    const float scale = top / 127;
    for (int64_t i = 0; i < width; i++) {
      // A row with an infinity or a NaN is NaN by its scale.
      // The scale of the smallest numbers is rounded: what they are divided by may be too small.
      to[i] =
          scale > 0 && scale < math::infinity<float>
              ? static_cast<int8_t>(std::clamp(std::nearbyint(from[i] / scale), -127.0F, 127.0F))
              : int8_t{0};
    }
    std::memcpy(to + width, &scale, sizeof(scale));
  } else {
    for (int64_t i = 0; i < width; i++) {
      to[i] = static_cast<T>(from[i]);
    }
  }
}

// Scores of the first n positions become weights that add up to one.
void softmax(float* x, int64_t n) {
  float top = -math::infinity<float>;
  for (int64_t i = 0; i < n; i++) {
    top = x[i] > top || x[i] != x[i] ? x[i] : top;
  }
  std::array<float, side_by_side> sums = {};
  for (int64_t i = 0; i < n; i++) {
    x[i] = math::exp(x[i] - top);
  }
  for (int64_t i = 0; i < n; i++) {
    sums[i % side_by_side] += x[i];
  }
  float sum = 0;
  for (const float s : sums) {
    sum += s;
  }
  for (int64_t i = 0; i < n; i++) {
    x[i] /= sum;
  }
}

// One head of the cache: `group` heads of queries, each of `rows`, read it.
template <class T>
struct Head {
  const float* query;
  const T* keys;
  const T* values;
  float* out;
  int64_t queries;  // group * rows
  int64_t rows;
  int64_t before;  // positions filled before the first row
  int64_t width;
  int64_t value_width;

  int64_t seen(int64_t q) const { return before + q % rows + 1; }

  void attend(float scale) const {
    const int64_t positions = before + rows;
    const Scratch<float> weights(queries * positions);
    const Scratch<float> spare(together * std::max(width, value_width));
    for (int64_t p = 0; p < positions; p += together) {
      const int64_t here = std::min(together, positions - p);
      const float* const k = floats(keys + p * pitch<T>(width), here, width, spare);
      for (int64_t q = 0; q < queries; q++) {
        const int64_t some = std::min(here, seen(q) - p);
        for (int64_t i = 0; i < some; i += 4) {
          four_products(query + q * width, k + i * width, width, std::min<int64_t>(4, some - i),
                        scale, weights + q * positions + p + i);
        }
      }
    }
    for (int64_t q = 0; q < queries; q++) {
      softmax(weights + q * positions, seen(q));
      std::fill_n(out + q * value_width, value_width, 0.0F);
    }
    for (int64_t p = 0; p < positions; p += together) {
      const int64_t here = std::min(together, positions - p);
      const float* const v = floats(values + p * pitch<T>(value_width), here, value_width, spare);
      for (int64_t q = 0; q < queries; q++) {
        add_rows(out + q * value_width, weights + q * positions + p, v, std::min(here, seen(q) - p),
                 value_width);
      }
    }
  }
};

// Where a sequence is in the cache.
struct Place {
  int64_t slot;
  int64_t* filled;
};

std::vector<Place> places_of(const Tensor& length, int64_t sequences, int64_t slots, int64_t rows,
                             int64_t positions) {
  const bool picks = length.dim() == 2;  // (sequences, 2): what is filled, and the slot
  const int64_t step = length.numel() == 1 ? 0 : picks ? length.stride(0) : length.stride(-1);
  std::vector<Place> found;
  for (int64_t i = 0; i < sequences; i++) {
    int64_t* const filled = length.data<int64_t>() + i * step;
    const int64_t slot = picks ? filled[length.stride(1)] : i;
    RL_CHECK_INDEX(slot >= 0 && slot < slots, "_cached_attention: there is no sequence ", slot,
                   " in a cache of ", slots);
    RL_CHECK(std::none_of(found.begin(), found.end(),
                          [&](const Place& other) { return other.slot == slot; }),
             "_cached_attention: the sequence ", slot, " is given twice");
    RL_CHECK_INDEX(*filled >= 0 && *filled <= positions - rows, "_cached_attention: a cache of ",
                   positions, " positions, of which ", *filled, " are filled, has no room for ",
                   rows);
    found.push_back({slot, filled});
  }
  return found;
}

}  // namespace

void _cached_attention(const Tensor& out, const Tensor& query, const Tensor& key,
                       const Tensor& value, const Tensor& keys, const Tensor& values,
                       const Tensor& length, double scale) {
  const int64_t rows = query.size(2);
  const int64_t positions = keys.size(2);
  const int64_t sequences = key.size(0);
  const int64_t heads = key.size(1);
  const std::vector<Place> places = places_of(length, sequences, keys.size(0), rows, positions);
  const int64_t width = key.size(3);
  const int64_t value_width = value.size(3);
  const int64_t queries = heads == 0 ? 0 : query.size(1) / heads * rows;
  int64_t longest = 0;
  for (const Place& place : places) {
    longest = std::max(longest, *place.filled + rows);
  }
  visit_dtype<set_Float | set_reduced | set_Char>("_cached_attention", keys.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t work = queries * longest * (width + value_width);
    parallel_for(0, sequences * heads, std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(1, work)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t h = begin; h < end; h++) {
                     const Place& place = places[static_cast<size_t>(h / heads)];
                     const int64_t before = *place.filled;
                     const int64_t first = (place.slot * heads + h % heads) * positions;
                     T* const k = keys.data<T>() + first * pitch<T>(width);
                     T* const v = values.data<T>() + first * pitch<T>(value_width);
                     for (int64_t r = 0; r < rows; r++) {
                       store_row(k + (before + r) * pitch<T>(width),
                                 key.data<float>() + (h * rows + r) * width, width);
                       store_row(v + (before + r) * pitch<T>(value_width),
                                 value.data<float>() + (h * rows + r) * value_width, value_width);
                     }
                     Head<T>{query.data<float>() + h * queries * width,
                             k,
                             v,
                             out.data<float>() + h * queries * value_width,
                             queries,
                             rows,
                             before,
                             width,
                             value_width}
                         .attend(static_cast<float>(scale));
                   }
                 });
  });
  for (size_t i = 0; i < (length.numel() == 1 ? std::min<size_t>(1, places.size()) : places.size());
       i++) {
    *places[i].filled += rows;
  }
}

}  // namespace rushlight::cpu::RL_ISA
