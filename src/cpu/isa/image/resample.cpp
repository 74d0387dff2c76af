// Images at other sizes. Every output element is a weighted sum of a few elements along each axis,
// so an axis is a table of taps, and the gradient is the same sum with the tables transposed. A row
// is first resampled along the width; rows are then added up along the other axes. Where channels
// are innermost, each place of a row holds all of them. Output rows are independent: threads change
// no bit.
#include <cmath>
#include <cstring>

#include "core/parallel.h"
#include "cpu/isa/reduce/fold.h"
#include "cpu/isa/sse.h"
#include "cpu/resample.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"
#include "kernels/by_size.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// ---- images ----

struct Images {
  int64_t count = 1;
  int64_t lanes = 1;  // channels side by side
  Images(const Tensor& t) {
    count = t.size(0) * t.size(1);
    if (!t.is_contiguous()) {
      lanes = t.size(1);
      count = t.size(0);
    }
  }
};

// Calls f(image, depth, first row, rows) for pieces of images, in parallel.
template <class F>
void for_pieces(int64_t count, int64_t depth, int64_t rows, int64_t work_per_row, const F& f) {
  const int64_t step = std::clamp<int64_t>(32768 / std::max<int64_t>(1, work_per_row), 1, rows);
  const int64_t pieces = (rows + step - 1) / step;
  const int64_t grain = std::max<int64_t>(1, 32768 / (std::max<int64_t>(1, work_per_row) * step));
  parallel_for(0, count * depth * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++) {
      const int64_t first = task % pieces * step;
      f(task / pieces / depth, task / pieces % depth, first, std::min(step, rows - first));
    }
  });
}

// ---- nearest: bytes move ----

template <class B>
void copy_nearest(const Tensor& out, const Tensor& self, const Axes<float>& axes) {
  const Images images(self);
  const auto& [d, h, w] = axes.axis;
  const B* from = static_cast<const B*>(self.data_ptr());
  B* to = static_cast<B*>(out.data_ptr());
  const int64_t lanes = images.lanes;
  for_pieces(images.count, d.outputs, h.outputs, w.outputs * lanes,
             [&](int64_t image, int64_t z, int64_t first, int64_t rows) {
               const B* plane = from + (image * d.inputs + d.at[z]) * h.inputs * w.inputs * lanes;
               B* row = to + ((image * d.outputs + z) * h.outputs + first) * w.outputs * lanes;
               for (int64_t y = first; y < first + rows; y++, row += w.outputs * lanes) {
                 if (y > first && h.at[y] == h.at[y - 1]) {
                   std::memcpy(row, row - w.outputs * lanes, w.outputs * lanes * sizeof(B));
                   continue;
                 }
                 const B* source = plane + h.at[y] * w.inputs * lanes;
                 const int32_t* at = w.at.data();
                 if (lanes == 1) {
                   for (int64_t x = 0; x < w.outputs; x++) {
                     row[x] = source[at[x]];
                   }
                   continue;
                 }
                 for (int64_t x = 0; x < w.outputs; x++) {
                   std::memcpy(row + x * lanes, source + at[x] * lanes, lanes * sizeof(B));
                 }
               }
             });
}

// ---- weighted sums ----

template <class S, class T>
S stored(T x) {
  if constexpr (std::is_same_v<S, uint8_t>) {
    return static_cast<S>(std::clamp<T>(std::nearbyint(x), T(0), T(255)));
  } else {
    return S(x);
  }
}

// A row along the width, `lanes` elements at each place (known to the compiler where Fixed says how
// many). `from` has zeros behind its end where taps are absent.
template <int Fixed, class T>
void resample_places(const Axis<T>& axis, int64_t any_lanes, const T* __restrict from,
                     T* __restrict to) {
  const int64_t lanes = Fixed > 0 ? Fixed : any_lanes;
  const int64_t n = axis.outputs;
  const int32_t* __restrict at = axis.at.data();
  const T* __restrict w = axis.weight.data();
  if (axis.taps == 2) {
    for (int64_t i = 0; i < n; i++) {
      const T* __restrict p = from + at[i] * lanes;
      const T* __restrict q = from + at[n + i] * lanes;
      const T a = w[i];
      const T b = w[n + i];
      for (int64_t c = 0; c < lanes; c++) {
        to[i * lanes + c] = a * p[c] + b * q[c];
      }
    }
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    for (int64_t c = 0; c < lanes; c++) {
      to[i * lanes + c] = w[i] * from[at[i] * lanes + c];
    }
  }
  for (int64_t t = 1; t < axis.taps; t++) {
    at += n;
    w += n;
    for (int64_t i = 0; i < n; i++) {
      for (int64_t c = 0; c < lanes; c++) {
        to[i * lanes + c] += w[i] * from[at[i] * lanes + c];
      }
    }
  }
}

template <class T>
void resample_row(const Axis<T>& axis, int64_t lanes, const T* from, T* to) {
  switch (lanes) {
    case 1:
      return resample_places<1>(axis, lanes, from, to);
    case 3:
      return resample_places<3>(axis, lanes, from, to);
    case 4:
      return resample_places<4>(axis, lanes, from, to);
    default:
      return resample_places<0>(axis, lanes, from, to);
  }
}

template <class T>
struct Term {
  T weight;
  const T* row;
};

template <class S, class T>
void add_rows(S* __restrict to, int64_t n, const Term<T>* terms, int64_t count,
              T* __restrict sums) {
  if (count == 2) {
    const auto [w0, r0] = terms[0];
    const auto [w1, r1] = terms[1];
    for (int64_t i = 0; i < n; i++) {
      to[i] = stored<S>(w0 * r0[i] + w1 * r1[i]);
    }
    return;
  }
  std::fill_n(sums, n, T(0));
  for (int64_t k = 0; k < count; k++) {
    const T w = terms[k].weight;
    const T* __restrict r = terms[k].row;
    for (int64_t i = 0; i < n; i++) {
      sums[i] += w * r[i];
    }
  }
  for (int64_t i = 0; i < n; i++) {
    to[i] = stored<S>(sums[i]);
  }
}

// Rows along the width first, each once for a piece of the output, then sums of whole rows.
template <class S, class T>
void resample_images(const Tensor& out, const Tensor& self, const Axes<T>& axes) {
  const auto& [d, h, w] = axes.axis;
  const Images images(self);
  const int64_t lanes = images.lanes;
  const int64_t wide = w.outputs * lanes;
  const S* from = self.data<S>();
  S* to = out.data<S>();
  const bool direct = std::is_same_v<S, T> && !w.absent;
  for_pieces(images.count, d.outputs, h.outputs, wide * (w.taps + d.taps * h.taps),
             [&](int64_t image, int64_t z, int64_t first, int64_t rows) {
               // The input rows that this piece needs.
               int64_t low = h.inputs;
               int64_t high = 0;
               for (int64_t y = first; y < first + rows; y++) {
                 for (int64_t t = 0; t < h.taps; t++) {
                   if (h.place(y, t) < h.inputs) {
                     low = std::min<int64_t>(low, h.place(y, t));
                     high = std::max<int64_t>(high, h.place(y, t) + 1);
                   }
                 }
               }
               const int64_t span = std::max<int64_t>(0, high - low);
               const Scratch<T> resampled(d.taps * span * wide);
               const Scratch<char> done(d.taps * span);
               const Scratch<T> row(direct ? 0 : (w.inputs + 1) * lanes);
               const Scratch<T> sums(wide);
               const Scratch<Term<T>> terms(d.taps * h.taps);
               std::fill_n(done.data(), d.taps * span, char(0));
               const auto along_width = [&](int64_t a, int64_t depth, int64_t y) -> const T* {
                 const int64_t slot = a * span + y - low;
                 T* const result = resampled + slot * wide;
                 if (done[slot] == 0) {
                   done[slot] = 1;
                   const S* source =
                       from + ((image * d.inputs + depth) * h.inputs + y) * w.inputs * lanes;
                   if constexpr (std::is_same_v<S, T>) {
                     if (direct) {
                       resample_row(w, lanes, source, result);
                       return result;
                     }
                   }
                   for (int64_t x = 0; x < w.inputs * lanes; x++) {
                     row[x] = static_cast<T>(source[x]);
                   }
                   std::fill_n(row + w.inputs * lanes, lanes, T(0));
                   resample_row(w, lanes, row.data(), result);
                 }
                 return result;
               };
               for (int64_t y = first; y < first + rows; y++) {
                 int64_t count = 0;
                 for (int64_t a = 0; a < d.taps; a++) {
                   for (int64_t b = 0; b < h.taps; b++) {
                     if (d.place(z, a) < d.inputs && h.place(y, b) < h.inputs) {
                       terms[count++] = {d.factor(z, a) * h.factor(y, b),
                                         along_width(a, d.place(z, a), h.place(y, b))};
                     }
                   }
                 }
                 add_rows(to + ((image * d.outputs + z) * h.outputs + y) * wide, wide, terms.data(),
                          count, sums.data());
               }
             });
}

// ---- bytes ----

// Taps of an output, whose places are neighbours: `few`, or a multiple of `many` that is enough.
int64_t slots_of(const Axis<double>& axis, int64_t few, int64_t many) {
  int64_t most = 1;
  for (int64_t i = 0; i < axis.outputs; i++) {
    int32_t low = std::numeric_limits<int32_t>::max();
    int32_t high = -1;
    for (int64_t t = 0; t < axis.taps; t++) {
      const int32_t place = axis.place(i, t);
      if (place != axis.inputs) {
        low = std::min(low, place);
        high = std::max(high, place);
      }
    }
    most = std::max(most, int64_t{high} - low + 1);
  }
  return most <= few ? few : (most + many - 1) / many * many;
}

// An axis with weights in fixed point: whole numbers over 1 << bits, each below 1 << 15. An output
// has `slots` taps at neighbouring places from `first`; those that it does not need have weight 0
// and may lie behind the end.
struct ByteAxis {
  const Axis<double>& axis;
  int bits = 0;
  int64_t slots;
  Scratch<int32_t> first;
  Scratch<int32_t> count;
  Scratch<int16_t> weight;

  ByteAxis(const Axis<double>& given, int64_t few, int64_t many)
      : axis(given),
        slots(slots_of(given, few, many)),
        first(given.outputs),
        count(given.outputs),
        weight(slots * given.outputs) {
    const Scratch<double> joined(slots * given.outputs);
    double largest = 0;
    for (int64_t i = 0; i < given.outputs; i++) {
      double* const mine = joined + i * slots;
      std::fill_n(mine, slots, 0.0);
      first[i] = 0;
      count[i] = 0;
      for (int64_t t = 0; t < given.taps; t++) {
        const int32_t place = given.place(i, t);
        if (place == given.inputs) {
          continue;
        }
        // Places rise by one, but for taps that the edge brings to one place: these are one.
        first[i] = count[i] == 0 ? place : first[i];
        count[i] = place - first[i] + 1;
        mine[place - first[i]] += given.factor(i, t);
      }
      largest = std::max(largest, *std::max_element(mine, mine + slots));
    }
    while (bits < 22 && largest * (1 << (bits + 1)) + 0.5 < (1 << 15)) {
      bits++;
    }
    for (int64_t i = 0; i < slots * given.outputs; i++) {
      const double scaled = joined[i] * (1 << bits);
      weight[i] = static_cast<int16_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
    }
  }
  int32_t half() const { return bits > 0 ? 1 << (bits - 1) : 0; }
  // Whether every output is the input at its place.
  bool is_identity() const {
    for (int64_t i = 0; i < axis.outputs; i++) {
      if (first[i] != i || count[i] != 1) {
        return false;
      }
    }
    return axis.inputs == axis.outputs;
  }
};

// Sums in fixed point become bytes; values beyond 0 and 255 become those. Returns four bytes.
inline int32_t bytes_of(__m128i sums, __m128i bits) {
  const __m128i whole = _mm_sra_epi32(sums, bits);
  const __m128i words = _mm_packs_epi32(whole, whole);
  return _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
}

// Taps that are read at a time, behind the last of which a row needs room.
constexpr int64_t few_of_single = 4;
constexpr int64_t taps_of_single = 8;
constexpr int64_t taps_of_several = 2;
constexpr int64_t room_behind_row = 64;

// One channel and four taps an output: those of two outputs make a vector.
void narrow_single_few(const ByteAxis& w, const uint8_t* from, uint8_t* to) {
  const int64_t n = w.axis.outputs;
  const int32_t* const first = w.first;
  const int16_t* const weights = w.weight;
  const __m128i half = _mm_set1_epi32(w.half());
  const __m128i bits = _mm_cvtsi32_si128(w.bits);
  const auto four_at = [&](int64_t i) { return _mm_loadu_si32(from + first[i]); };
  const auto two = [&](__m128i a, __m128i b, __m128i factors) {
    return _mm_madd_epi16(_mm_cvtepu8_epi16(_mm_unpacklo_epi32(a, b)), factors);
  };
  const auto factors_of = [&](int64_t i) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(weights + i * few_of_single));
  };
  int64_t x = 0;
  for (; x + 4 <= n; x += 4) {
    const auto* const factors = reinterpret_cast<const __m128i*>(weights + x * few_of_single);
    const __m128i low = two(four_at(x), four_at(x + 1), _mm_loadu_si128(factors));
    const __m128i high = two(four_at(x + 2), four_at(x + 3), _mm_loadu_si128(factors + 1));
    const int32_t bytes = bytes_of(_mm_add_epi32(_mm_hadd_epi32(low, high), half), bits);
    std::memcpy(to + x, &bytes, sizeof(bytes));
  }
  for (; x < n; x++) {
    const __m128i sum = two(four_at(x), _mm_setzero_si128(), factors_of(x));
    const int32_t byte = bytes_of(_mm_add_epi32(_mm_hadd_epi32(sum, sum), half), bits);
    to[x] = static_cast<uint8_t>(byte);
  }
}

// One channel: eight taps of an output make a vector, and four outputs are added up at once.
// `Slots`: of an output, 0 where the compiler does not know.
template <int Slots>
void narrow_single(const ByteAxis& w, const uint8_t* from, uint8_t* to) {
  // In variables: a byte that is written might be part of anything else.
  const int64_t slots = Slots > 0 ? Slots : w.slots;
  const int64_t n = w.axis.outputs;
  const int32_t* const first = w.first;
  const int16_t* const weights = w.weight;
  const __m128i half = _mm_set1_epi32(w.half());
  const __m128i bits = _mm_cvtsi32_si128(w.bits);
  const auto sum_of = [&](int64_t i) {
    const uint8_t* const p = from + first[i];
    const int16_t* const weight = weights + i * slots;
    __m128i sum = _mm_setzero_si128();
    for (int64_t t = 0; t < slots; t += taps_of_single) {
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + t));
      const __m128i factors = _mm_loadu_si128(reinterpret_cast<const __m128i*>(weight + t));
      sum = _mm_add_epi32(sum, _mm_madd_epi16(_mm_cvtepu8_epi16(bytes), factors));
    }
    return sum;
  };
  const auto four = [&](int64_t a, int64_t b, int64_t c, int64_t d) {
    const __m128i all =
        _mm_hadd_epi32(_mm_hadd_epi32(sum_of(a), sum_of(b)), _mm_hadd_epi32(sum_of(c), sum_of(d)));
    return bytes_of(_mm_add_epi32(all, half), bits);
  };
  int64_t x = 0;
  for (; x + 4 <= n; x += 4) {
    const int32_t bytes = four(x, x + 1, x + 2, x + 3);
    std::memcpy(to + x, &bytes, sizeof(bytes));
  }
  if (x < n) {
    const int64_t last = n - 1;
    const int32_t bytes = four(x, std::min(x + 1, last), std::min(x + 2, last), last);
    std::memcpy(to + x, &bytes, static_cast<size_t>(n - x));
  }
}

// Two to four channels side by side: two taps of all of them make a vector.
template <int Lanes>
void narrow_several(const ByteAxis& w, const uint8_t* from, uint8_t* to) {
  const int64_t slots = w.slots;
  const int64_t n = w.axis.outputs;
  const int32_t* const first = w.first;
  const int16_t* weight = w.weight;
  const __m128i half = _mm_set1_epi32(w.half());
  const __m128i bits = _mm_cvtsi32_si128(w.bits);
  // Channel c of both places, as 16-bit numbers side by side.
  alignas(16) int8_t order[16];
  for (int c = 0; c < 4; c++) {
    order[4 * c] = static_cast<int8_t>(c < Lanes ? c : -1);
    order[4 * c + 1] = -1;
    order[4 * c + 2] = static_cast<int8_t>(c < Lanes ? Lanes + c : -1);
    order[4 * c + 3] = -1;
  }
  const __m128i shuffle = _mm_load_si128(reinterpret_cast<const __m128i*>(order));
  for (int64_t x = 0; x < n; x++, to += Lanes, weight += slots) {
    const uint8_t* const p = from + first[x] * Lanes;
    __m128i sums = half;
    for (int64_t t = 0; t < slots; t += taps_of_several) {
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + t * Lanes));
      int32_t factors;
      std::memcpy(&factors, weight + t, sizeof(factors));
      const __m128i products =
          _mm_madd_epi16(_mm_shuffle_epi8(bytes, shuffle), _mm_set1_epi32(factors));
      sums = _mm_add_epi32(sums, products);
    }
    const int32_t bytes = bytes_of(sums, bits);
    std::memcpy(to, &bytes, x + 1 < n ? sizeof(bytes) : Lanes);  // the next output covers the rest
  }
}

// Vectors of whole numbers: what is done in parts of 16 bytes each.
#if defined(__AVX512BW__)
#define RL_WHOLE(op) _mm512_##op
using Whole = __m512i;
inline Whole bytes_at(const uint8_t* p) { return _mm512_loadu_si512(p); }
inline void store_bytes_at(uint8_t* p, Whole v) { _mm512_storeu_si512(p, v); }
#elif defined(__AVX2__)
#define RL_WHOLE(op) _mm256_##op
using Whole = __m256i;
inline Whole bytes_at(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline void store_bytes_at(uint8_t* p, Whole v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
}
#else
#define RL_WHOLE(op) _mm_##op
using Whole = __m128i;
inline Whole bytes_at(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
inline void store_bytes_at(uint8_t* p, Whole v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v);
}
#endif
constexpr int64_t whole_width = sizeof(Whole);

// Rows of `length` bytes, with the weights of output y, become one; returns where it stopped. Two
// rows are taken at a time: their bytes side by side, as 16-bit numbers, are multiplied and added
// by one instruction.
inline int64_t add_byte_rows(const ByteAxis& h, int64_t y, const uint8_t* rows, int64_t length,
                             uint8_t* to) {
  const int16_t* const weight = h.weight + y * h.slots;
  const int64_t count = h.count[y];
  const Whole half = RL_WHOLE(set1_epi32)(h.half());
  const __m128i bits = _mm_cvtsi32_si128(h.bits);
  const Whole zero = RL_WHOLE(set1_epi32)(0);
  int64_t i = 0;
  for (; i + whole_width <= length; i += whole_width) {
    Whole sums[4] = {half, half, half, half};
    for (int64_t t = 0; t < count; t += 2) {
      const bool pair = t + 1 < count;
      const Whole a = bytes_at(rows + t * length + i);
      const Whole b = pair ? bytes_at(rows + (t + 1) * length + i) : zero;
      const auto second = static_cast<uint32_t>(static_cast<uint16_t>(pair ? weight[t + 1] : 0));
      const Whole factors = RL_WHOLE(set1_epi32)(
          static_cast<int32_t>(second << 16 | static_cast<uint16_t>(weight[t])));
      const Whole low = RL_WHOLE(unpacklo_epi8)(a, b);
      const Whole high = RL_WHOLE(unpackhi_epi8)(a, b);
      const Whole words[4] = {
          RL_WHOLE(unpacklo_epi8)(low, zero), RL_WHOLE(unpackhi_epi8)(low, zero),
          RL_WHOLE(unpacklo_epi8)(high, zero), RL_WHOLE(unpackhi_epi8)(high, zero)};
#pragma GCC unroll 4
      for (int k = 0; k < 4; k++) {
        sums[k] = RL_WHOLE(add_epi32)(sums[k], RL_WHOLE(madd_epi16)(words[k], factors));
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
      sums[k] = RL_WHOLE(sra_epi32)(sums[k], bits);
    }
    const Whole packed = RL_WHOLE(packus_epi16)(RL_WHOLE(packs_epi32)(sums[0], sums[1]),
                                                RL_WHOLE(packs_epi32)(sums[2], sums[3]));
    store_bytes_at(to + i, packed);
  }
  return i;
}

// The rows from `rows` on that output y is made of.
inline void shorten_column(const ByteAxis& h, int64_t y, const uint8_t* rows, int64_t length,
                           uint8_t* to) {
  int64_t i = add_byte_rows(h, y, rows, length, to);
  for (; i < length; i++) {
    int32_t sum = h.half();
    for (int64_t t = 0; t < h.count[y]; t++) {
      sum += h.weight[y * h.slots + t] * rows[t * length + i];
    }
    to[i] = static_cast<uint8_t>(std::clamp(sum >> h.bits, 0, 255));
  }
}

// Any number of channels: each output is a column of the places that it is made of.
void narrow_row_of_columns(const ByteAxis& w, int64_t lanes, const uint8_t* from, uint8_t* to) {
  for (int64_t x = 0; x < w.axis.outputs; x++) {
    shorten_column(w, x, from + w.first[x] * lanes, lanes, to + x * lanes);
  }
}

// Images of bytes, as image libraries do it: a pass along the width and one along the height, each
// in fixed point and rounded to bytes.
void resample_bytes(const Tensor& out, const Tensor& self, const Axes<double>& axes) {
  const Images images(self);
  const int64_t lanes = images.lanes;
  const ByteAxis w(axes.axis[2], lanes == 1 ? few_of_single : taps_of_several,
                   lanes == 1 ? taps_of_single : taps_of_several);
  const ByteAxis h(axes.axis[1], 1, 1);
  const int64_t rows = h.axis.inputs;
  const int64_t length = w.axis.inputs * lanes;
  const int64_t wide = w.axis.outputs * lanes;
  const bool narrows = !w.is_identity();
  const Scratch<uint8_t> narrowed(narrows ? rows * wide : 0);
  for (int64_t image = 0; image < images.count; image++) {
    const uint8_t* from = self.data<uint8_t>() + image * rows * length;
    uint8_t* to = out.data<uint8_t>() + image * h.axis.outputs * wide;
    const int64_t row_work = wide * w.slots;
    const int64_t narrow_grain = std::max<int64_t>(1, 65536 / row_work);
    parallel_for(0, narrows ? rows : 0, narrow_grain, [&](int64_t begin, int64_t end) {
      // Taps without weight are read, too.
      const int64_t room = w.slots * lanes + room_behind_row;
      const Scratch<uint8_t> source(length + room);
      std::fill_n(source + length, room, uint8_t(0));
      for (int64_t y = begin; y < end; y++) {
        std::copy_n(from + y * length, length, source.data());
        uint8_t* const row = narrowed + y * wide;
        switch (lanes) {
          case 1:
            w.slots == few_of_single    ? narrow_single_few(w, source, row)
            : w.slots == taps_of_single ? narrow_single<taps_of_single>(w, source, row)
                                        : narrow_single<0>(w, source, row);
            break;
          case 2:
            narrow_several<2>(w, source, row);
            break;
          case 3:
            narrow_several<3>(w, source, row);
            break;
          case 4:
            narrow_several<4>(w, source, row);
            break;
          default:
            narrow_row_of_columns(w, lanes, source, row);
        }
      }
    });
    const int64_t grain = std::max<int64_t>(1, 262144 / (wide * h.axis.taps));
    parallel_for(0, h.axis.outputs, grain, [&](int64_t begin, int64_t end) {
      for (int64_t y = begin; y < end; y++) {
        shorten_column(h, y, (narrows ? narrowed.data() : from) + h.first[y] * wide, wide,
                       to + y * wide);
      }
    });
  }
}

void resample(const char* name, const Tensor& out, const Tensor& self, IntArrayRef in,
              IntArrayRef image, const How& how, const std::optional<double> (&scales)[3],
              bool backward) {
  if (out.numel() == 0) {
    return;
  }
  if (!backward && (how.filter == Filter::Nearest || how.filter == Filter::NearestExact)) {
    const Axes<float> axes = axes_of<float>(in, image, how, scales, false);
    visit_size(self.element_size(),
               [&](auto tag) { copy_nearest<typename decltype(tag)::type>(out, self, axes); });
    return;
  }
  if (self.dtype() == kUInt8 && in.size() == 2) {
    resample_bytes(out, self, axes_of<double>(in, image, how, scales, false));
    return;
  }
  visit_dtype<set_floating | set_Byte>(name, self.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using T = std::conditional_t<std::is_same_v<S, uint8_t>, float, compute_t<S>>;
    const Axes<T> axes = axes_of<T>(in, image, how, scales, backward);
    resample_images<S, T>(out, self, axes);
  });
}

}  // namespace

void _interpolate(const Tensor& out, const Tensor& self, IntArrayRef output_size,
                  std::string_view mode, bool align_corners, bool antialias,
                  std::optional<double> scale_d, std::optional<double> scale_h,
                  std::optional<double> scale_w) {
  resample("interpolate", out, self, self.sizes().slice(2, output_size.size()), output_size,
           {filter_of(mode), align_corners, antialias}, {scale_d, scale_h, scale_w}, false);
}

void _interpolate_backward(const Tensor& out, const Tensor& grad, IntArrayRef input_size,
                           int64_t dims, std::string_view mode, bool align_corners, bool antialias,
                           std::optional<double> scale_d, std::optional<double> scale_h,
                           std::optional<double> scale_w) {
  const size_t n = static_cast<size_t>(dims);
  resample("interpolate_backward", out, grad, input_size.slice(2, n), grad.sizes().slice(2, n),
           {filter_of(mode), align_corners, antialias}, {scale_d, scale_h, scale_w}, true);
}

}  // namespace rushlight::cpu::RL_ISA
