// Products with weights in blocks of GGUF: cpu/gguf_kernels.h.
//
// A lane is a result. The codes of a stretch of a block are unpacked once for all rows; sums of
// parts are whole numbers, which become floats when a block ends, and blocks are added in order.
#include <algorithm>
#include <array>
#include <cstring>

#include "cpu/gguf_kernels.h"
#if defined(__AVX512BW__)
#include "cpu/isa/matmul/amx.h"
#include "cpu/scratch.h"
#endif
#include "cpu/isa/matmul/block_products.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int64_t most_rows = 16;
constexpr int64_t unit_bytes = int8_panel * int8_group;

#if defined(__AVX512BW__)
V either(V a, V b) { return _mm512_or_si512(a, b); }
V differing(V a, V b) { return _mm512_xor_si512(a, b); }
template <int n>
V left(V x) {
  return _mm512_slli_epi16(x, n);
}
template <int n>
V right(V x) {
  return _mm512_srli_epi16(x, n);
}
V upper_words(V x) { return _mm512_maskz_slli_epi32(0xffff, x, 16); }
#elif defined(__AVX2__)
V either(V a, V b) { return _mm256_or_si256(a, b); }
V differing(V a, V b) { return _mm256_xor_si256(a, b); }
template <int n>
V left(V x) {
  return _mm256_slli_epi16(x, n);
}
template <int n>
V right(V x) {
  return _mm256_srli_epi16(x, n);
}
V upper_words(V x) { return _mm256_slli_epi32(x, 16); }
#else
V either(V a, V b) { return _mm_or_si128(a, b); }
V differing(V a, V b) { return _mm_xor_si128(a, b); }
template <int n>
V left(V x) {
  return _mm_slli_epi16(x, n);
}
template <int n>
V right(V x) {
  return _mm_srli_epi16(x, n);
}
V upper_words(V x) { return _mm_slli_epi32(x, 16); }
#endif

V lower_half(V x) { return both(x, broadcast(0x0f0f0f0f)); }
V upper_half(V x) { return both(right<4>(x), broadcast(0x0f0f0f0f)); }
int32_t pair(int32_t low, int32_t high) {
  return static_cast<int32_t>((static_cast<uint32_t>(low) & 0xffff) | static_cast<uint32_t>(high)
                                                                          << 16);
}

// Where the fields of a panel begin.
using Fields = std::array<const uint8_t*, 4>;

F::V halves(const uint8_t* p, int v) {
  return F::load(reinterpret_cast<const Half*>(p) + v * lanes);
}
V unit(const uint8_t* p, int64_t i, int v) {
  return load(p + i * unit_bytes + v * static_cast<int64_t>(sizeof(V)));
}

// ---- what formats differ in ----
//
// `middle` is the code of 0, `parts` are those that a stretch has, and input(stretch, k) is where
// part k begins. code(stretch, k, u, v) are the codes of its group u of four inputs.

struct Q8_0 {
  static constexpr GgufFormat format = GgufFormat::Q8_0;
  static constexpr int32_t middle = 128;
  static constexpr int parts = 1;
  static constexpr int64_t input(int64_t /*stretch*/, int64_t /*k*/) { return 0; }

  Q8_0(const Fields& f, int64_t block) : d(f[0] + block * 32), at(f[1] + block * 8 * unit_bytes) {}
  F::V step(int v) const { return halves(d, v); }
  V code(int64_t /*stretch*/, int /*k*/, int u, int v) const {
    return differing(unit(at, u, v), broadcast(static_cast<int32_t>(0x80808080)));
  }

  const uint8_t* d;
  const uint8_t* at;
};

struct Q4_0 {
  static constexpr GgufFormat format = GgufFormat::Q4_0;
  static constexpr int32_t middle = 8;
  static constexpr int parts = 1;
  static constexpr int64_t input(int64_t /*stretch*/, int64_t /*k*/) { return 0; }

  Q4_0(const Fields& f, int64_t block) : d(f[0] + block * 32), at(f[1] + block * 4 * unit_bytes) {}
  F::V step(int v) const { return halves(d, v); }
  V code(int64_t /*stretch*/, int /*k*/, int u, int v) const {
    const V two = unit(at, u % 4, v);
    return u < 4 ? lower_half(two) : upper_half(two);
  }

  const uint8_t* d;
  const uint8_t* at;
};

struct Q4_K {
  static constexpr GgufFormat format = GgufFormat::Q4_K;
  static constexpr int32_t middle = 0;
  static constexpr int parts = 2;
  static constexpr int64_t input(int64_t stretch, int64_t k) { return 64 * stretch + 32 * k; }

  Q4_K(const Fields& f, int64_t block) : d(f[0] + block * 64), at(f[2] + block * 32 * unit_bytes) {
    const auto row = [&](int j) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(f[1] + (block * 12 + j) * 16));
    };
    const auto write = [](uint8_t* to, int j, __m128i x) {
      _mm_store_si128(reinterpret_cast<__m128i*>(to + j * 16L), x);
    };
    const __m128i six = _mm_set1_epi8(63);
    const __m128i four = _mm_set1_epi8(15);
    const __m128i top = _mm_set1_epi8(48);
    for (int j = 0; j < 4; j++) {
      const __m128i a = row(j);
      const __m128i b = row(j + 4);
      const __m128i c = row(j + 8);
      write(scales, j, _mm_and_si128(a, six));
      write(minima, j, _mm_and_si128(b, six));
      write(scales, j + 4,
            _mm_or_si128(_mm_and_si128(c, four), _mm_and_si128(_mm_srli_epi16(a, 2), top)));
      write(minima, j + 4,
            _mm_or_si128(_mm_and_si128(_mm_srli_epi16(c, 4), four),
                         _mm_and_si128(_mm_srli_epi16(b, 2), top)));
    }
  }
  F::V step(int v) const { return halves(d, v); }
  F::V minimum(int v) const { return halves(d + 32, v); }
  V scale(int64_t part, int v) const { return widened(scales + part * 16 + v * lanes); }
  // The minima of parts 2i and 2i + 1 in the words of a lane.
  V two_minima(int64_t i, int v) const {
    const uint8_t* const first = minima + i * 32 + v * lanes;
    return either(widened(first), upper_words(widened(first + 16)));
  }
  V code(int64_t stretch, int k, int u, int v) const {
    const V two = unit(at, stretch * 8 + u, v);
    return k == 0 ? lower_half(two) : upper_half(two);
  }

  const uint8_t* d;
  const uint8_t* at;
  alignas(16) uint8_t scales[8 * 16];
  alignas(16) uint8_t minima[8 * 16];
};

struct Q6_K {
  static constexpr GgufFormat format = GgufFormat::Q6_K;
  static constexpr int32_t middle = 32;
  static constexpr int parts = 4;
  static constexpr int64_t input(int64_t stretch, int64_t k) {
    return stretch / 2 * 128 + stretch % 2 * 16 + 32 * k;
  }

  Q6_K(const Fields& f, int64_t block)
      : d(f[3] + block * 32),
        scales(reinterpret_cast<const int8_t*>(f[2]) + block * 256),
        lower(f[0] + block * 32 * unit_bytes),
        upper(f[1] + block * 16 * unit_bytes) {}
  F::V step(int v) const { return halves(d, v); }
  V scale(int64_t part, int v) const { return widened(scales + part * 16 + v * lanes); }
  V code(int64_t stretch, int k, int u, int v) const {
    const int64_t at = stretch / 2 * 16 + stretch % 2 * 4 + u;
    const V two = unit(lower, at + k % 2 * 8, v);
    const V four = unit(upper, at - stretch / 2 * 8, v);
    const V above = k == 0   ? left<4>(four)
                    : k == 1 ? left<2>(four)
                    : k == 2 ? four
                             : right<2>(four);
    return either(k < 2 ? lower_half(two) : upper_half(two), both(above, broadcast(0x30303030)));
  }

  const uint8_t* d;
  const int8_t* scales;
  const uint8_t* lower;
  const uint8_t* upper;
};

// ---- products ----

template <class Format>
constexpr bool has_scales = requires(const Format& f) { f.scale(0, 0); };
template <class Format>
constexpr bool has_minima = requires(const Format& f) { f.minimum(0); };

// Adds the sums of a block to `totals`, a panel's columns for each row.
template <class Format>
inline __attribute__((always_inline)) void add_sums(const GgufGemm& g, int64_t row, int64_t rows,
                                                    const Format& weights, int64_t block,
                                                    const V* whole, F::V* totals) {
  constexpr GgufBlock about = gguf_block(Format::format);
  constexpr int64_t parts = about.numbers / about.part;
  [[maybe_unused]] V minima[parts / 2 + 1][vectors];
  if constexpr (has_minima<Format>) {
#pragma GCC unroll 8
    for (int i = 0; i < parts / 2; i++) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) {
        minima[i][v] = weights.two_minima(i, v);
      }
    }
  }
  for (int64_t r = 0; r < rows; r++) {
    const int64_t at = (row + r) * g.a.blocks + block;
    const F::V step = F::set1(g.a.steps[at]);
    [[maybe_unused]] const int32_t* const sums = g.a.sums + at * parts;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
      F::V total = F::add(totals[r * vectors + v],
                          F::mul(F::mul(step, weights.step(v)), to_floats(whole[r * vectors + v])));
      if constexpr (has_minima<Format>) {
        V lowest = broadcast(0);
#pragma GCC unroll 8
        for (int i = 0; i < parts / 2; i++) {
          const V two = broadcast(pair(sums[2 * i], sums[2 * i + 1]));
          lowest = add(lowest, add_pairs(minima[i][v], two));
        }
        total = F::sub(total, F::mul(F::mul(step, weights.minimum(v)), to_floats(lowest)));
      }
      totals[r * vectors + v] = total;
    }
  }
}

// Adds the products of a block and `rows` rows to `totals`, a panel's columns for each row. Codes
// are unpacked once for several rows, and where they are used for one.
template <class Format, class Way, bool one_row>
inline __attribute__((always_inline)) void add_block(const GgufGemm& g, int64_t row, int64_t rows,
                                                     const Format& weights, int64_t block,
                                                     F::V* totals) {
  constexpr GgufBlock about = gguf_block(Format::format);
  constexpr int units = static_cast<int>(about.part / int8_group);
  constexpr int64_t parts = about.numbers / about.part;
  constexpr int64_t stretches = parts / Format::parts;
  V whole[most_rows * vectors];
  for (int64_t stretch = 0; stretch < stretches; stretch++) {
    typename Way::Codes unpacked[Format::parts][units][vectors];
    const auto code = [&](int k, int u, int v) __attribute__((always_inline)) {
      return Way::codes(weights.code(stretch, k, u, v));
    };
    if constexpr (!one_row) {
#pragma GCC unroll 4
      for (int k = 0; k < Format::parts; k++) {
#pragma GCC unroll 8
        for (int u = 0; u < units; u++) {
#pragma GCC unroll 4
          for (int v = 0; v < vectors; v++) {
            unpacked[k][u][v] = code(k, u, v);
          }
        }
      }
    }
    [[maybe_unused]] V scales[Format::parts][vectors];
    if constexpr (has_scales<Format>) {
#pragma GCC unroll 4
      for (int k = 0; k < Format::parts; k++) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
          scales[k][v] = weights.scale(Format::input(stretch, k) / about.part, v);
        }
      }
    }
    for (int64_t r = 0; r < rows; r++) {
      const int8_t* const a = g.a.codes + (row + r) * g.a.row + block * about.numbers;
      const int32_t* const sums = g.a.sums + ((row + r) * g.a.blocks + block) * parts;
      V total[vectors];
#pragma GCC unroll 4
      for (int k = 0; k < Format::parts; k++) {
        const int64_t input = Format::input(stretch, k);
        V acc[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
          acc[v] = broadcast(-Format::middle * sums[input / about.part]);
        }
#pragma GCC unroll 8
        for (int u = 0; u < units; u += 2) {
          int32_t one;  // apart, as processors broadcast from memory
          int32_t two;
          std::memcpy(&one, a + input + u * int8_group, sizeof(one));
          std::memcpy(&two, a + input + (u + 1) * int8_group, sizeof(two));
          const typename Way::Weights x = Way::weights(broadcast(one));
          const typename Way::Weights y = Way::weights(broadcast(two));
#pragma GCC unroll 4
          for (int v = 0; v < vectors; v++) {
            if constexpr (one_row) {
              acc[v] = add_two<Way>(acc[v], code(k, u, v), x, code(k, u + 1, v), y);
            } else {
              acc[v] = add_two<Way>(acc[v], unpacked[k][u][v], x, unpacked[k][u + 1][v], y);
            }
          }
        }
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
          if constexpr (has_scales<Format>) {
            acc[v] = multiply_lanes(acc[v], scales[k][v]);
          }
          total[v] = k == 0 ? acc[v] : add(total[v], acc[v]);
        }
      }
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) {
        V& sum = whole[r * vectors + v];
        sum = stretch == 0 ? total[v] : add(sum, total[v]);
      }
    }
  }
  add_sums(g, row, rows, weights, block, whole, totals);
}

// Asks for the memory of the next panel, a part with each block of this one.
template <class Format>
inline __attribute__((always_inline)) void fetch_next_panel(const uint8_t* panel, int64_t blocks,
                                                            int64_t block) {
  constexpr int64_t bytes = gguf_block(Format::format).bytes() * int8_panel;
  const uint8_t* const next = panel + (blocks + block) * bytes;
  for (int64_t i = 0; i < bytes; i += 64) {
    __builtin_prefetch(next + i);
  }
}

// The results of some rows and a panel.
template <class Format, class Way, bool one_row>
inline __attribute__((always_inline)) void multiply_rows(const GgufGemm& g, const Fields& fields,
                                                         int64_t row, int64_t rows,
                                                         int64_t column) {
  F::V totals[most_rows * vectors];
  for (int64_t i = 0; i < rows * vectors; i++) {
    totals[i] = F::zero();
  }
  for (int64_t b = 0; b < g.a.blocks; b++) {
    fetch_next_panel<Format>(fields[0], g.a.blocks, b);
    add_block<Format, Way, one_row>(g, row, rows, Format(fields, b), b, totals);
  }
  write_results(g, row, rows, column, totals);
}

template <class Format>
Fields fields_of(const GgufGemm& g, int64_t p) {
  constexpr GgufBlock about = gguf_block(Format::format);
  const uint8_t* const panel = g.panels + p * int8_panel * g.a.blocks * about.bytes();
  Fields fields;
  for (size_t f = 0; f < fields.size(); f++) {
    fields[f] = panel + about.panel_offset(f, g.a.blocks);
  }
  return fields;
}

template <class Format, class Way>
void multiply_panel(const GgufGemm& g, int64_t row, int64_t rows, int64_t p) {
  const Fields fields = fields_of<Format>(g, p);
  if (rows == 1) {
    multiply_rows<Format, Way, true>(g, fields, row, 1, p * int8_panel);
  } else {
    multiply_rows<Format, Way, false>(g, fields, row, rows, p * int8_panel);
  }
}

using Multiply = void (*)(const GgufGemm&, int64_t row, int64_t rows, int64_t panel);

Multiply choose(GgufFormat format) {
  if (has_one_instruction()) {
    constexpr std::array<Multiply, 4> ways = {
        multiply_panel<Q8_0, OneInstruction>, multiply_panel<Q4_0, OneInstruction>,
        multiply_panel<Q4_K, OneInstruction>, multiply_panel<Q6_K, OneInstruction>};
    return ways[static_cast<size_t>(format)];
  }
  constexpr std::array<Multiply, 4> ways = {
      multiply_panel<Q8_0, Widened>, multiply_panel<Q4_0, SixBits>, multiply_panel<Q4_K, SixBits>,
      multiply_panel<Q6_K, SixBits>};
  return ways[static_cast<size_t>(format)];
}

#if defined(__AVX512BW__)
// ---- by AMX ----

// A panel whose codes are bytes with a sign, and the scales of parts.
template <class Format>
struct Unpacked {
  Unpacked(const GgufGemm& g, const Fields& fields)
      : codes(g.a.blocks * about.numbers * int8_panel),
        scales(has_scales<Format> ? g.a.blocks * parts * int8_panel : 0) {
    constexpr int units = static_cast<int>(about.part / int8_group);
    const V middle = _mm512_set1_epi8(static_cast<char>(Format::middle));
    for (int64_t b = 0; b < g.a.blocks; b++) {
      const Format weights(fields, b);
      for (int64_t stretch = 0; stretch < parts / Format::parts; stretch++) {
#pragma GCC unroll 4
        for (int k = 0; k < Format::parts; k++) {
          const int64_t part = b * parts + Format::input(stretch, k) / about.part;
          int8_t* const to = codes + part * about.part * int8_panel;
#pragma GCC unroll 8
          for (int u = 0; u < units; u++) {
            store(to + u * unit_bytes, _mm512_sub_epi8(weights.code(stretch, k, u, 0), middle));
          }
          if constexpr (has_scales<Format>) {
            store(scales + part * int8_panel, weights.scale(part % parts, 0));
          }
        }
      }
    }
  }

  static constexpr GgufBlock about = gguf_block(Format::format);
  static constexpr int64_t parts = about.numbers / about.part;
  Scratch<int8_t> codes;
  Scratch<int32_t> scales;
};

// The results of 16 rows and an unpacked panel.
template <class Format>
void multiply_unpacked(const AmxPartSums& sums_of_parts, const GgufGemm& g, int64_t row,
                       int64_t column, const Fields& fields, const Unpacked<Format>& panel) {
  constexpr int64_t parts = Unpacked<Format>::parts;
  F::V totals[amx_rows];
  V whole[amx_rows];
#pragma GCC unroll 16
  for (F::V& total : totals) {
    total = F::zero();
  }
  const auto add_part = [&](int64_t i, const int32_t* sums) __attribute__((always_inline)) {
    [[maybe_unused]] const V scale =
        has_scales<Format> ? load(panel.scales + i * int8_panel) : broadcast(1);
#pragma GCC unroll 16
    for (int64_t r = 0; r < amx_rows; r++) {
      V sum = load(sums + r * int8_panel);
      if constexpr (has_scales<Format>) {
        sum = multiply_lanes(sum, scale);
      }
      whole[r] = i % parts == 0 ? sum : add(whole[r], sum);
    }
    if (i % parts == parts - 1) {
      add_sums(g, row, amx_rows, Format(fields, i / parts), i / parts, whole, totals);
    }
  };
  sums_of_parts.for_parts(g.a.codes + row * g.a.row, g.a.row, panel.codes, g.a.blocks * parts,
                          add_part);
  write_results(g, row, amx_rows, column, totals);
}

// Of a multiple of 16 rows.
template <class Format>
void multiply_by_amx(const GgufGemm& g, int64_t first_row, int64_t last_row, int64_t p) {
  const AmxPartSums sums_of_parts(gguf_block(Format::format).part);
  const Fields fields = fields_of<Format>(g, p);
  const Unpacked<Format> panel(g, fields);
  for (int64_t i = first_row; i < last_row; i += amx_rows) {
    multiply_unpacked(sums_of_parts, g, i, p * int8_panel, fields, panel);
  }
}

#endif

void multiply(const GgufGemm& g, int64_t first_row, int64_t last_row, int64_t first_panel,
              int64_t last_panel) {
#if defined(__AVX512BW__)
  const int64_t by_amx = amx_part_rows(last_row - first_row);
  if (by_amx != 0) {
    constexpr std::array ways = {multiply_by_amx<Q8_0>, multiply_by_amx<Q4_0>,
                                 multiply_by_amx<Q4_K>, multiply_by_amx<Q6_K>};
    for (int64_t p = first_panel; p < last_panel; p++) {
      ways[static_cast<size_t>(g.format)](g, first_row, first_row + by_amx, p);
    }
    first_row += by_amx;
  }
#endif
  const Multiply kernel = choose(g.format);
  const int64_t parts = (last_row - first_row + most_rows - 1) / most_rows;
  for (int64_t p = first_panel; p < last_panel; p++) {
    for (int64_t b = 0; b < parts; b++) {
      const int64_t i = first_row + (last_row - first_row) * b / parts;
      kernel(g, i, first_row + (last_row - first_row) * (b + 1) / parts - i, p);
    }
  }
}

}  // namespace

const GgufKernels gguf_kernels = {most_rows, multiply};

}  // namespace rushlight::cpu::RL_ISA
