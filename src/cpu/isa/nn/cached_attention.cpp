// _cached_attention (ops/decoding.py): few queries, over a cache that their keys are appended to.
//
// A task is a head of the cache with all queries that share it, so that keys and values are read
// once. Sums of rows have sixteen terms side by side, whatever lanes there are.
#include <algorithm>
#include <array>
#include <cmath>

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

// Rows of a cache as floats: themselves where they are.
template <class T>
const float* floats(const T* from, int64_t n, float* spare) {
  if constexpr (std::is_same_v<T, float>) {
    return from;
  } else {
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
      const float* const k = floats(keys + p * width, here * width, spare);
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
      const float* const v = floats(values + p * value_width, here * value_width, spare);
      for (int64_t q = 0; q < queries; q++) {
        add_rows(out + q * value_width, weights + q * positions + p, v, std::min(here, seen(q) - p),
                 value_width);
      }
    }
  }
};

// Rows (heads, rows, width) go behind the positions that each head has filled.
template <class T>
void append(T* cache, int64_t positions, int64_t before, const float* from, int64_t heads,
            int64_t rows, int64_t width) {
  for (int64_t h = 0; h < heads; h++) {
    T* const to = cache + (h * positions + before) * width;
    for (int64_t i = 0; i < rows * width; i++) {
      to[i] = static_cast<T>(from[h * rows * width + i]);
    }
  }
}

}  // namespace

void _cached_attention(const Tensor& out, const Tensor& query, const Tensor& key,
                       const Tensor& value, const Tensor& keys, const Tensor& values,
                       const Tensor& length, double scale) {
  const int64_t rows = query.size(2);
  const int64_t positions = keys.size(2);
  auto* const filled = length.data<int64_t>();
  const int64_t before = *filled;
  RL_CHECK_INDEX(before >= 0 && before <= positions - rows, "_cached_attention: a cache of ",
                 positions, " positions, of which ", before, " are filled, has no room for ", rows);
  const int64_t heads = key.size(0) * key.size(1);
  const int64_t width = key.size(3);
  const int64_t value_width = value.size(3);
  const int64_t queries = heads == 0 ? 0 : query.size(0) * query.size(1) / heads * rows;
  visit_dtype<set_Float | set_reduced>("_cached_attention", keys.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    append(keys.data<T>(), positions, before, key.data<float>(), heads, rows, width);
    append(values.data<T>(), positions, before, value.data<float>(), heads, rows, value_width);
    const int64_t work = queries * (before + rows) * (width + value_width);
    parallel_for(0, heads, std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(1, work)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t h = begin; h < end; h++) {
                     Head<T>{query.data<float>() + h * queries * width,
                             keys.data<T>() + h * positions * width,
                             values.data<T>() + h * positions * value_width,
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
  *filled = before + rows;
}

}  // namespace rushlight::cpu::RL_ISA
