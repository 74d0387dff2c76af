// Products with weights in blocks: cpu/block_kernels.h.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "cpu/block_kernels.h"
#if defined(__AVX512BW__)
#include "cpu/isa/matmul/amx.h"
#include "cpu/scratch.h"
#endif
#include "cpu/isa/matmul/block_products.h"

namespace rushlight::cpu::RL_ISA {
namespace {

#if defined(__AVX512BW__)
constexpr int64_t most_rows = 8;
V subtract(V a, V b) { return _mm512_sub_epi32(a, b); }
V upper_halves(V x) { return _mm512_srli_epi16(x, 4); }
#elif defined(__AVX2__)
constexpr int64_t most_rows = 4;
V subtract(V a, V b) { return _mm256_sub_epi32(a, b); }
V upper_halves(V x) { return _mm256_srli_epi16(x, 4); }
#else
constexpr int64_t most_rows = 2;
V subtract(V a, V b) { return _mm_sub_epi32(a, b); }
V upper_halves(V x) { return _mm_srli_epi16(x, 4); }
#endif

// ---- the input ----

// The bits of the largest size; those of NaN are above all others.
inline __attribute__((always_inline)) uint32_t largest_bits(const float* x, int64_t n) {
  uint32_t most = 0;
  for (int64_t i = 0; i < n; i++) {
    most = std::max(most, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffU);
  }
  return most;
}

// The codes of n numbers, and their sum.
inline __attribute__((always_inline)) int32_t round_some(const float* x, int64_t n, float inverse,
                                                         int8_t* codes) {
  int32_t sum = 0;
  for (int64_t i = 0; i < n; i++) {
    const auto code = static_cast<int32_t>(std::nearbyint(x[i] * inverse));
    codes[i] = static_cast<int8_t>(code);
    sum += code;
  }
  return sum;
}

void round_row(const float* x, const BlockRows& to, int64_t row) {
  const int64_t parts = to.block / to.part;
  for (int64_t b = 0; b < to.blocks; b++) {
    const float* const from = x + b * to.block;
    const uint32_t bits = to.block == 32 ? largest_bits(from, 32) : largest_bits(from, to.block);
    const auto largest = std::bit_cast<float>(bits);
    const float step = largest / 127;
    int8_t* const codes = to.codes + row * to.row + b * to.block;
    int32_t* const sums = to.sums + (row * to.blocks + b) * parts;
    float& step_of = to.steps[row * to.blocks + b];
    // Numbers too small to divide by are zeros; a block with NaN or infinity is NaN.
    if (!(step >= std::numeric_limits<float>::min() && std::isfinite(step))) {
      std::fill_n(codes, to.block, int8_t{0});
      std::fill_n(sums, parts, 0);
      step_of = std::isfinite(largest) ? 0.0F : std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    step_of = step;
    const float inverse = 1 / step;
    for (int64_t p = 0; p < parts; p++) {
      const float* const some = from + p * to.part;
      int8_t* const out = codes + p * to.part;
      // Lengths that the compiler knows.
      sums[p] = to.part == 32   ? round_some(some, 32, inverse, out)
                : to.part == 16 ? round_some(some, 16, inverse, out)
                                : round_some(some, to.part, inverse, out);
    }
  }
}

// ---- products ----

// The scales and the zero points of a block and a panel.
struct BlockWeights {
  F::V scales[vectors];
  V zeros[vectors];
};

inline BlockWeights weights_from(const float* scales, const uint8_t* zeros, int32_t middle) {
  BlockWeights out;
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) {
    out.scales[v] = F::load(scales + v * lanes);
    out.zeros[v] = zeros == nullptr ? broadcast(middle) : widened(zeros + v * lanes);
  }
  return out;
}

inline BlockWeights weights_of(const BlockGemm& g, int64_t block, int64_t column) {
  const int64_t n = std::min(int8_panel, g.columns - column);
  const int64_t at = block * g.columns + column;
  const int32_t middle = g.bits == 4 ? 8 : 128;
  const uint8_t* const zeros = g.zeros == nullptr ? nullptr : g.zeros + at;
  if (RL_LIKELY(n == int8_panel)) {
    return weights_from(g.scales + at, zeros, middle);
  }
  float padded_scales[int8_panel] = {};
  uint8_t padded_zeros[int8_panel] = {};
  std::copy_n(g.scales + at, n, padded_scales);
  if (zeros != nullptr) {
    std::copy_n(zeros, n, padded_zeros);
  }
  return weights_from(padded_scales, zeros == nullptr ? nullptr : padded_zeros, middle);
}

// Adds the products of a block of some rows to `totals`, a panel's columns for each row.
template <class Way, int bits, int rows>
void add_block(const BlockGemm& g, int64_t row, const uint8_t* panel, int64_t block,
               const BlockWeights& w, F::V* totals) {
  V acc[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
      acc[r][v] = broadcast(0);
    }
  }
  const int8_t* const a = g.a.codes + row * g.a.row + block * g.a.block;
  const auto add_quads = [&](int64_t quad, const V* first, const V* second)
                             __attribute__((always_inline)) {
                               typename Way::Codes c[2][vectors];
#pragma GCC unroll 4
                               for (int v = 0; v < vectors; v++) {
                                 c[0][v] = Way::codes(first[v]);
                                 c[1][v] = Way::codes(second[v]);
                               }
#pragma GCC unroll 8
                               for (int r = 0; r < rows; r++) {
                                 const int8_t* const from = a + r * g.a.row + quad * int8_group;
                                 int32_t one;  // apart, as processors broadcast from memory
                                 int32_t two;
                                 std::memcpy(&one, from, sizeof(one));
                                 std::memcpy(&two, from + int8_group, sizeof(two));
                                 const typename Way::Weights x = Way::weights(broadcast(one));
                                 const typename Way::Weights y = Way::weights(broadcast(two));
#pragma GCC unroll 4
                                 for (int v = 0; v < vectors; v++) {
                                   acc[r][v] = add_two<Way>(acc[r][v], c[0][v], x, c[1][v], y);
                                 }
                               }
                             };
  const int64_t quads = g.a.block / int8_group;
  for (int64_t q = 0; q < quads; q += 2) {
    V first[vectors];
    V second[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
      const int64_t at = v * static_cast<int64_t>(sizeof(V));
      if constexpr (bits == 4) {
        const V both_halves = load(panel + q / 2 * int8_panel_bytes(1) + at);
        first[v] = both(both_halves, broadcast(0x0f0f0f0f));
        second[v] = both(upper_halves(both_halves), broadcast(0x0f0f0f0f));
      } else {
        first[v] = load(panel + q * int8_panel_bytes(1) + at);
        second[v] = load(panel + (q + 1) * int8_panel_bytes(1) + at);
      }
    }
    add_quads(q, first, second);
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
    const int64_t at = (row + r) * g.a.blocks + block;
    const F::V step = F::set1(g.a.steps[at]);
    const V sum = broadcast(g.a.sums[at]);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
      const V whole = subtract(acc[r][v], multiply_lanes(w.zeros[v], sum));
      F::V& total = totals[r * vectors + v];
      total = F::add(total, F::mul(F::mul(step, w.scales[v]), to_floats(whole)));
    }
  }
}

// The results of some rows and a panel.
template <class Way, int bits, int rows>
void multiply_panel(const BlockGemm& g, int64_t row, int64_t p) {
  F::V totals[rows * vectors];
  for (auto& total : totals) {
    total = F::zero();
  }
  const int64_t block_bytes = g.a.block / int8_group * int8_panel_bytes(1) * bits / 8;
  const uint8_t* const panel = g.panels + p * g.a.blocks * block_bytes;
  const int64_t column = p * int8_panel;
  for (int64_t b = 0; b < g.a.blocks; b++) {
    add_block<Way, bits, rows>(g, row, panel + b * block_bytes, b, weights_of(g, b, column),
                               totals);
  }
  write_results(g, row, rows, column, totals);
}

using Multiply = void (*)(const BlockGemm&, int64_t row, int64_t panel);
using ByRows = std::array<Multiply, most_rows>;  // less 1

template <class Way, int bits, size_t... i>
constexpr ByRows for_each_rows(std::index_sequence<i...>) {
  return {multiply_panel<Way, bits, i + 1>...};
}
template <class Way, int bits>
constexpr ByRows by_rows = for_each_rows<Way, bits>(std::make_index_sequence<most_rows>());

const ByRows& choose(int64_t bits) {
  if (has_one_instruction()) {
    return bits == 4 ? by_rows<OneInstruction, 4> : by_rows<OneInstruction, 8>;
  }
  return bits == 4 ? by_rows<SixBits, 4> : by_rows<Widened, 8>;
}

void multiply_by_vectors(const BlockGemm& g, int64_t first_row, int64_t last_row, int64_t p) {
  const ByRows& kernels = choose(g.bits);
  const int64_t parts = (last_row - first_row + most_rows - 1) / most_rows;
  for (int64_t b = 0; b < parts; b++) {
    const int64_t i = first_row + (last_row - first_row) * b / parts;
    const int64_t rows = first_row + (last_row - first_row) * (b + 1) / parts - i;
    kernels[rows - 1](g, i, p);
  }
}

#if defined(__AVX512BW__)
// ---- by AMX ----

// A panel whose codes are bytes less their zero points, and whose scales lie side by side.
struct Unpacked {
  explicit Unpacked(const BlockRows& a)
      : codes(a.blocks * a.block * int8_panel), scales(a.blocks * int8_panel) {}

  Scratch<int8_t> codes;
  Scratch<float> scales;  // (blocks, 16)
};

// False where a difference does not fit a byte.
bool unpack_panel(const BlockGemm& g, int64_t p, const Unpacked& to) {
  const int64_t quads = g.a.block / int8_group;
  const uint8_t* panel = g.panels + p * g.a.blocks * quads * int8_panel_bytes(1) * g.bits / 8;
  int8_t* codes_to = to.codes;
  for (int64_t b = 0; b < g.a.blocks; b++) {
    const BlockWeights w = weights_of(g, b, p * int8_panel);
    F::store(to.scales + b * int8_panel, w.scales[0]);
    const V zeros = w.zeros[0];
    if (g.bits == 4 && _mm512_test_epi32_mask(zeros, broadcast(128)) != 0) {
      return false;
    }
    const V zero_bytes = multiply_lanes(zeros, broadcast(0x01010101));
    const auto write = [&](V codes) {
      store(codes_to, _mm512_sub_epi8(codes, zero_bytes));
      codes_to += sizeof(V);
    };
    for (int64_t q = 0; q < quads; q += 2) {
      const V first = load(panel);
      panel += sizeof(V);
      if (g.bits == 4) {
        write(both(first, broadcast(0x0f0f0f0f)));
        write(both(upper_halves(first), broadcast(0x0f0f0f0f)));
      } else {
        write(first);
        write(load(panel));
        panel += sizeof(V);
      }
    }
  }
  return true;
}

// The results of 16 rows and an unpacked panel.
void multiply_unpacked(const AmxPartSums& parts, const BlockGemm& g, int64_t row, int64_t p,
                       const Unpacked& panel) {
  F::V totals[amx_rows];
#pragma GCC unroll 16
  for (F::V& total : totals) {
    total = F::zero();
  }
  const auto add_block = [&](int64_t b, const int32_t* sums) __attribute__((always_inline)) {
    const F::V scales = F::load(panel.scales + b * int8_panel);
    const float* const steps = g.a.steps + row * g.a.blocks + b;
#pragma GCC unroll 16
    for (int64_t r = 0; r < amx_rows; r++) {
      const F::V step = F::set1(steps[r * g.a.blocks]);
      const F::V whole = to_floats(load(sums + r * int8_panel));
      totals[r] = F::add(totals[r], F::mul(F::mul(step, scales), whole));
    }
  };
  parts.for_parts(g.a.codes + row * g.a.row, g.a.row, panel.codes, g.a.blocks, add_block);
  F::V results[amx_rows];  // apart, so that totals stay in registers
#pragma GCC unroll 16
  for (int64_t r = 0; r < amx_rows; r++) {
    results[r] = totals[r];
  }
  write_results(g, row, amx_rows, p * int8_panel, results);
}

bool can_be_unpacked(const BlockGemm& g) {
  return AmxPartSums::takes(g.a.block) && (g.bits == 4 || g.zeros == nullptr);
}

#endif

void multiply(const BlockGemm& g, int64_t first_row, int64_t last_row, int64_t first_panel,
              int64_t last_panel) {
#if defined(__AVX512BW__)
  const int64_t by_amx = can_be_unpacked(g) ? amx_part_rows(last_row - first_row) : 0;
  if (by_amx != 0) {
    const AmxPartSums parts(g.a.block);
    const Unpacked panel(g.a);
    for (int64_t p = first_panel; p < last_panel; p++) {
      int64_t row = first_row;
      if (unpack_panel(g, p, panel)) {
        for (; row < first_row + by_amx; row += amx_rows) {
          multiply_unpacked(parts, g, row, p, panel);
        }
      }
      multiply_by_vectors(g, row, last_row, p);
    }
    return;
  }
#endif
  for (int64_t p = first_panel; p < last_panel; p++) {
    multiply_by_vectors(g, first_row, last_row, p);
  }
}

}  // namespace

const BlockKernels block_kernels = {most_rows, round_row, multiply};

}  // namespace rushlight::cpu::RL_ISA
