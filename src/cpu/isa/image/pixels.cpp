// Pictures of bytes at other sizes, channels innermost, bit for bit as Pillow makes them: along the
// width first, with bytes in between, by weights of 22 fractional bits. Such a weight is a pair of
// 16-bit halves, so that two taps are one instruction for each half; 32-bit sums are exact.
#include <algorithm>
#include <cstring>

#include "core/parallel.h"
#include "cpu/isa/image/bytes.h"
#include "cpu/isa/sse.h"
#include "cpu/resample.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int fraction = 22;
constexpr int32_t half = 1 << (fraction - 1);
constexpr int low_bits = 15;  // of a weight; a half of 16 bits is signed

// An output has `slots` taps at neighbouring places from `first`; those beyond `count` have weight
// 0 and may lie behind the end.
struct PixelAxis {
  const Axis<double>& axis;
  int64_t slots;
  Scratch<int32_t> first;
  Scratch<int32_t> count;
  Scratch<int16_t> low;
  Scratch<int16_t> high;

  PixelAxis(const Axis<double>& given, int64_t group)
      : axis(given),
        slots((given.taps + group - 1) / group * group),
        first(given.outputs),
        count(given.outputs),
        low(slots * given.outputs),
        high(slots * given.outputs) {
    for (int64_t i = 0; i < given.outputs; i++) {
      first[i] = 0;
      count[i] = 0;
      for (int64_t t = 0; t < slots; t++) {
        const bool there = t < given.taps && given.place(i, t) < given.inputs;
        const double scaled = there ? given.factor(i, t) * (1 << fraction) : 0.0;
        const auto whole = static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
        low[i * slots + t] = static_cast<int16_t>(whole & ((1 << low_bits) - 1));
        high[i * slots + t] = static_cast<int16_t>(whole >> low_bits);
        if (there) {
          first[i] = count[i] == 0 ? given.place(i, t) : first[i];
          count[i] = static_cast<int32_t>(t) + 1;
        }
      }
    }
  }
};

inline __m128i join_halves(__m128i low, __m128i high) {
  return _mm_add_epi32(low, _mm_slli_epi32(high, low_bits));
}

// Four sums become four bytes.
inline int32_t bytes_of(__m128i sums) {
  const __m128i whole = _mm_srai_epi32(_mm_add_epi32(sums, _mm_set1_epi32(half)), fraction);
  const __m128i words = _mm_packs_epi32(whole, whole);
  return _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
}

constexpr int64_t room_behind_row = 64;

// ---- one channel: eight taps of an output make a vector ----

constexpr int64_t taps_of_single = 8;

void narrow_single(const PixelAxis& w, const uint8_t* from, uint8_t* to) {
  const int64_t n = w.axis.outputs;
  const int64_t slots = w.slots;
  const int32_t* const first = w.first;
  const auto sum_of = [&](int64_t i) {
    const uint8_t* const p = from + first[i];
    __m128i low = _mm_setzero_si128();
    __m128i high = _mm_setzero_si128();
    for (int64_t t = 0; t < slots; t += taps_of_single) {
      const auto at = [&](const int16_t* weights) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights + i * slots + t));
      };
      const __m128i bytes =
          _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + t)));
      low = _mm_add_epi32(low, _mm_madd_epi16(bytes, at(w.low)));
      high = _mm_add_epi32(high, _mm_madd_epi16(bytes, at(w.high)));
    }
    return join_halves(low, high);
  };
  for (int64_t x = 0; x < n; x += 4) {
    const auto sum = [&](int64_t k) { return sum_of(std::min(x + k, n - 1)); };
    const __m128i all =
        _mm_hadd_epi32(_mm_hadd_epi32(sum(0), sum(1)), _mm_hadd_epi32(sum(2), sum(3)));
    const int32_t bytes = bytes_of(all);
    std::memcpy(to + x, &bytes, static_cast<size_t>(std::min<int64_t>(4, n - x)));
  }
}

// ---- four channels: two taps of all of them make half a vector, or a whole one ----

// Weights of pairs of taps, as often as there are channels: a vector for each group of taps.
#if defined(__AVX2__)
constexpr int64_t taps_of_four = 4;
#else
constexpr int64_t taps_of_four = 2;
#endif

struct SpreadWeights {
  Scratch<int16_t> low;
  Scratch<int16_t> high;
  SpreadWeights(const PixelAxis& w)
      : low(w.axis.outputs * w.slots * 4), high(w.axis.outputs * w.slots * 4) {
    for (int64_t k = 0; k < w.axis.outputs * w.slots; k++) {
      for (int64_t c = 0; c < 4; c++) {
        const int64_t to = k / 2 * 8 + c * 2 + k % 2;
        low[to] = w.low[k];
        high[to] = w.high[k];
      }
    }
  }
};

void narrow_four(const PixelAxis& w, const SpreadWeights& weights, const uint8_t* from,
                 uint8_t* to) {
  const int64_t n = w.axis.outputs;
  const int64_t slots = w.slots;
  const int32_t* const first = w.first;
  const int16_t* low_weights = weights.low;
  const int16_t* high_weights = weights.high;
  // A channel of both pixels, as 16-bit numbers side by side.
  const __m128i pairs = _mm_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1);
#if defined(__AVX2__)
  const __m256i order = _mm256_setr_m128i(
      pairs, _mm_setr_epi8(8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1));
#endif
  for (int64_t x = 0; x < n; x++) {
    const uint8_t* const p = from + int64_t{first[x]} * 4;
#if defined(__AVX2__)
    __m256i low = _mm256_setzero_si256();
    __m256i high = _mm256_setzero_si256();
    for (int64_t t = 0; t < slots; t += taps_of_four) {
      const __m256i four =
          _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + t * 4)));
      const __m256i taps = _mm256_shuffle_epi8(four, order);
      const auto at = [&](const int16_t* all) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(all + t * 4));
      };
      low = _mm256_add_epi32(low, _mm256_madd_epi16(taps, at(low_weights)));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(taps, at(high_weights)));
    }
    const __m256i sums = _mm256_add_epi32(low, _mm256_slli_epi32(high, low_bits));
    const int32_t bytes =
        bytes_of(_mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1)));
#else
    __m128i low = _mm_setzero_si128();
    __m128i high = _mm_setzero_si128();
    for (int64_t t = 0; t < slots; t += taps_of_four) {
      const __m128i taps =
          _mm_shuffle_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + t * 4)), pairs);
      const auto at = [&](const int16_t* all) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(all + t * 4));
      };
      low = _mm_add_epi32(low, _mm_madd_epi16(taps, at(low_weights)));
      high = _mm_add_epi32(high, _mm_madd_epi16(taps, at(high_weights)));
    }
    const int32_t bytes = bytes_of(join_halves(low, high));
#endif
    std::memcpy(to + x * 4, &bytes, sizeof(bytes));
    low_weights += slots * 4;
    high_weights += slots * 4;
  }
}

// ---- rows ----

// A byte of each of two rows, as 16-bit numbers side by side.
inline Sums add_pairs(const uint8_t* a, const uint8_t* b) {
#if defined(__AVX512F__) && defined(__AVX512BW__)
  const __m128i p = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a));
  const __m128i q = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b));
  return reinterpret_cast<Sums>(
      _mm512_cvtepu8_epi16(_mm256_set_m128i(_mm_unpackhi_epi8(p, q), _mm_unpacklo_epi8(p, q))));
#elif defined(__AVX2__)
  const __m128i p = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(a));
  const __m128i q = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(b));
  return reinterpret_cast<Sums>(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(p, q)));
#else
  int32_t p;
  int32_t q;
  std::memcpy(&p, a, sizeof(p));
  std::memcpy(&q, b, sizeof(q));
  return reinterpret_cast<Sums>(
      _mm_cvtepu8_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(p), _mm_cvtsi32_si128(q))));
#endif
}

inline Sums products(Sums pairs, int32_t weights) {
#if defined(__AVX512F__) && defined(__AVX512BW__)
  return reinterpret_cast<Sums>(
      _mm512_madd_epi16(reinterpret_cast<__m512i>(pairs), _mm512_set1_epi32(weights)));
#elif defined(__AVX2__)
  return reinterpret_cast<Sums>(
      _mm256_madd_epi16(reinterpret_cast<__m256i>(pairs), _mm256_set1_epi32(weights)));
#else
  return reinterpret_cast<Sums>(
      _mm_madd_epi16(reinterpret_cast<__m128i>(pairs), _mm_set1_epi32(weights)));
#endif
}

// The rows from `rows` on that output y is made of become one; behind them there is room for a
// vector.
void shorten(const PixelAxis& h, int64_t y, const uint8_t* rows, int64_t length, uint8_t* to) {
  const int16_t* const low_weights = h.low + y * h.slots;
  const int16_t* const high_weights = h.high + y * h.slots;
  const int64_t count = h.count[y];
  for (int64_t i = 0; i < length; i += sums_width) {
    Sums low{};
    Sums high{};
    for (int64_t t = 0; t < count; t += 2) {
      const uint8_t* const row = rows + t * length + i;
      const Sums pair = add_pairs(row, t + 1 < count ? row + length : row);
      const auto at = [t](const int16_t* weights) {
        int32_t both;
        std::memcpy(&both, weights + t, sizeof(both));
        return both;
      };
      low += products(pair, at(low_weights));
      high += products(pair, at(high_weights));
    }
    const Sums sums = low + (high << low_bits) + half;
    if (i + sums_width <= length) {
      store_bytes(to + i, sums, fraction);
    } else {
      uint8_t last[sums_width];
      store_bytes(last, sums, fraction);
      std::memcpy(to + i, last, static_cast<size_t>(length - i));
    }
  }
}

}  // namespace

void _resize_pixels(const Tensor& out, const Tensor& self, IntArrayRef output_size,
                    std::string_view mode) {
  if (out.numel() == 0) {
    return;
  }
  const int64_t lanes = self.size(2);
  const How how{filter_of(mode), false, true};
  const Axes<double> axes = axes_of<double>(self.sizes().slice(0, 2), output_size, how, {}, false);
  const PixelAxis w(axes.axis[2], lanes == 1 ? taps_of_single : taps_of_four);
  const PixelAxis h(axes.axis[1], 2);
  const SpreadWeights spread(w);
  const int64_t length = w.axis.inputs * lanes;
  const int64_t wide = w.axis.outputs * lanes;
  const Scratch<uint8_t> narrowed(h.axis.inputs * wide + room_behind_row);
  const uint8_t* const from = self.data<uint8_t>();
  uint8_t* const to = out.data<uint8_t>();
  const int64_t row_grain = std::max<int64_t>(1, 65536 / (wide * w.slots));
  parallel_for(0, h.axis.inputs, row_grain, [&](int64_t begin, int64_t end) {
    // Taps without weight are read, too.
    const int64_t room = w.slots * lanes + room_behind_row;
    const Scratch<uint8_t> source(length + room);
    std::fill_n(source + length, room, uint8_t(0));
    for (int64_t y = begin; y < end; y++) {
      std::copy_n(from + y * self.stride(0), length, source.data());
      uint8_t* const row = narrowed + y * wide;
      lanes == 1 ? narrow_single(w, source, row) : narrow_four(w, spread, source, row);
    }
  });
  const int64_t grain = std::max<int64_t>(1, 262144 / (wide * h.axis.taps));
  parallel_for(0, h.axis.outputs, grain, [&](int64_t begin, int64_t end) {
    for (int64_t y = begin; y < end; y++) {
      shorten(h, y, narrowed + h.first[y] * wide, wide, to + y * wide);
    }
  });
}

}  // namespace rushlight::cpu::RL_ISA
