// Products of codes: cpu/int8_gemm.h.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "cpu/int8_gemm.h"
#if defined(__AVX512BW__)
#include "cpu/isa/matmul/amx.h"
#endif
#include "cpu/isa/matmul/byte_products.h"
#include "cpu/isa/simd.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// Rows and panels whose sums fit the registers.
#if defined(__AVX512BW__)
constexpr int64_t most_rows = 12;
constexpr int64_t most_panels = 2;
#elif defined(__AVX2__) || defined(__aarch64__)
constexpr int64_t most_rows = 4;
constexpr int64_t most_panels = 1;
#else
constexpr int64_t most_rows = 2;
constexpr int64_t most_panels = 1;
#endif
constexpr int64_t most_columns = most_panels * int8_panel;

// ---- tiles ----

// The sums of some rows of codes and all columns of some panels; most_columns lie between rows.
using Tile = void (*)(const uint8_t* a, const Int8Gemm& g, const int8_t* panel, int32_t* sums);

template <class Way, int rows, int panels, int ways>
void add_up(const uint8_t* a, const Int8Gemm& problem, const int8_t* panel, int32_t* sums) {
  constexpr int in_panel = int8_panel / lanes;
  constexpr int vectors = panels * in_panel;
  V acc[ways][rows][vectors];
#pragma GCC unroll 4
  for (int u = 0; u < ways; u++) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; v++) {
        acc[u][r][v] = broadcast(0);
      }
    }
  }
  const int64_t panel_bytes = int8_panel_bytes(problem.groups);
  const int64_t a_row = problem.a_row;
  const auto step = [&](const uint8_t* a, const int8_t* panel, int64_t g,
                        int u) __attribute__((always_inline)) {
    typename Way::Weights w[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) {
      w[v] = Way::weights(load(panel + v / in_panel * panel_bytes + g * int8_panel_bytes(1) +
                               v % in_panel * static_cast<int64_t>(sizeof(V))));
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
      int32_t four;
      std::memcpy(&four, a + r * a_row + g * int8_group, sizeof(four));
      const typename Way::Codes x = Way::codes(broadcast(four));
#pragma GCC unroll 8
      for (int v = 0; v < vectors; v++) {
        acc[u][r][v] = Way::add_products(acc[u][r][v], x, w[v]);
      }
    }
  };
  const int64_t groups = problem.run_groups();
  for (int64_t run = 0; run < problem.runs; run++) {
    const uint8_t* const from = a + problem.run_offset(run);
    const int8_t* const of_run = panel + run * int8_panel_bytes(groups);
    int64_t g = 0;
    for (; g + ways <= groups; g += ways) {
#pragma GCC unroll 4
      for (int u = 0; u < ways; u++) {
        step(from, of_run, g + u, u);
      }
    }
    for (; g < groups; g++) {
      step(from, of_run, g, 0);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) {
      V sum = acc[0][r][v];
#pragma GCC unroll 4
      for (int u = 1; u < ways; u++) {
        sum = add(sum, acc[u][r][v]);
      }
      store(sums + r * most_columns + v * lanes, sum);
    }
  }
}

// Sums of few rows are each cut into several, as an addition waits for the one before.
template <class Way, int rows, int panels>
void tile(const uint8_t* a, const Int8Gemm& g, const int8_t* panel, int32_t* sums) {
  add_up<Way, rows, panels, rows == 1 ? 4 : rows == 2 ? 2 : 1>(a, g, panel, sums);
}

// By rows less 1.
using Tiles = std::array<Tile, most_rows>;
template <class Way, int panels, size_t... i>
constexpr Tiles tiles_of_rows(std::index_sequence<i...>) {
  return {tile<Way, i + 1, panels>...};
}
template <class Way, int panels>
constexpr Tiles tiles = tiles_of_rows<Way, panels>(std::make_index_sequence<most_rows>());

template <int panels>
const Tiles& choose_tiles(bool seven_bits) {
  if (has_one_instruction()) {
    return tiles<OneInstruction, panels>;
  }
  return seven_bits ? tiles<SevenBits, panels> : tiles<Widened, panels>;
}

// ---- results ----

// A row of n <= most_columns codes from column j on.
inline __attribute__((always_inline)) void write_some_codes(const Int8Result& to, const int32_t* s,
                                                            int64_t i, int64_t j, int64_t n) {
  float y[most_columns];
  for (int64_t x = 0; x < n; x++) {
    y[x] = static_cast<float>(s[x]);
  }
  if (to.bias != nullptr) {
    for (int64_t x = 0; x < n; x++) {
      y[x] += to.bias[j + x];
    }
  }
  int32_t codes[most_columns];
  for (int64_t x = 0; x < n; x++) {
    const float code = std::nearbyint(y[x] * to.factors[j + x]) + to.zero_point;
    const float least = code > to.first ? code : to.first;
    codes[x] = static_cast<int32_t>(least < to.last ? least : to.last);
  }
  auto* const out = static_cast<uint8_t*>(to.data) + i * to.row + j;
  for (int64_t x = 0; x < n; x++) {
    out[x] = static_cast<uint8_t>(codes[x]);
  }
}

void write_codes(const Int8Result& to, const int32_t* s, int64_t i, int64_t j, int64_t n) {
  if (n == most_columns) {  // a length that the compiler knows
    write_some_codes(to, s, i, j, most_columns);
  } else {
    write_some_codes(to, s, i, j, n);
  }
}

void write_numbers(const Int8Result& to, const int32_t* s, int64_t i, int64_t j, int64_t n) {
  float y[most_columns];
  const float row_factor = to.row_factors == nullptr ? 1 : to.row_factors[i];
  for (int64_t x = 0; x < n; x++) {
    y[x] = static_cast<float>(s[x]) * row_factor * to.factors[j + x];
  }
  if (to.bias != nullptr) {
    for (int64_t x = 0; x < n; x++) {
      y[x] += to.bias[j + x];
    }
  }
  if (to.relu) {
    for (int64_t x = 0; x < n; x++) {
      y[x] = y[x] < 0.0F ? 0.0F : y[x];
    }
  }
  std::memcpy(static_cast<float*>(to.data) + i * to.row + j, y, n * sizeof(float));
}

// Part of a row of results: n <= most_columns columns from column j on.
void finish(const Int8Result& to, const int32_t* s, int64_t i, int64_t j, int64_t n) {
  switch (to.kind) {
    case Int8Result::sums:
      std::memcpy(static_cast<int32_t*>(to.data) + i * to.row + j, s, n * sizeof(int32_t));
      return;
    case Int8Result::numbers:
      return write_numbers(to, s, i, j, n);
    case Int8Result::codes:
      return write_codes(to, s, i, j, n);
  }
}

// What the zero point of the codes of A has added.
void subtract_zero_point(const Int8Gemm& g, int32_t* s, int64_t j, int64_t n) {
  const auto zero = static_cast<uint32_t>(g.zero_point);
  for (int64_t x = 0; x < n; x++) {
    const auto sum = static_cast<uint32_t>(g.column_sums[j + x]);
    s[x] = static_cast<int32_t>(static_cast<uint32_t>(s[x]) - zero * sum);
  }
}

#if defined(__AVX512BW__)
// Rows of whole panels as codes: write_codes with what columns have in common in registers.
void write_rows_of_codes(const Int8Gemm& g, const int32_t* sums, int64_t first_row, int64_t rows,
                         int64_t j) {
  const Int8Result& to = g.result;
  V zeros[most_panels];
  __m512 factors[most_panels];
  __m512 bias[most_panels];
#pragma GCC unroll 2
  for (int64_t v = 0; v < most_panels; v++) {
    const int64_t at = j + v * int8_panel;
    zeros[v] = g.column_sums == nullptr
                   ? broadcast(0)
                   : _mm512_mullo_epi32(broadcast(g.zero_point), load(g.column_sums + at));
    factors[v] = _mm512_loadu_ps(to.factors + at);
    bias[v] = to.bias == nullptr ? _mm512_setzero_ps() : _mm512_loadu_ps(to.bias + at);
  }
  const __m512 zero_point = _mm512_set1_ps(to.zero_point);
  const __m512 first = _mm512_set1_ps(to.first);
  const __m512 last = _mm512_set1_ps(to.last);
  auto* out = static_cast<uint8_t*>(to.data) + first_row * to.row + j;
  for (int64_t r = 0; r < rows; r++, out += to.row) {
#pragma GCC unroll 2
    for (int64_t v = 0; v < most_panels; v++) {
      const V sum = _mm512_sub_epi32(load(sums + r * most_columns + v * int8_panel), zeros[v]);
      const __m512 y = _mm512_add_ps(_mm512_maskz_cvtepi32_ps(0xffff, sum), bias[v]);
      const __m512 place = _mm512_maskz_roundscale_ps(
          0xffff, _mm512_mul_ps(y, factors[v]), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      const __m512 least = _mm512_maskz_max_ps(0xffff, _mm512_add_ps(place, zero_point), first);
      const V code = _mm512_maskz_cvttps_epi32(0xffff, _mm512_maskz_min_ps(0xffff, least, last));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + v * int8_panel),
                       _mm512_maskz_cvtepi32_epi8(0xffff, code));
    }
  }
}
#endif

// What becomes of the sums of some rows and n <= most_columns columns from column j on.
void finish_rows(const Int8Gemm& g, int32_t* sums, int64_t first_row, int64_t rows, int64_t j,
                 int64_t n) {
#if defined(__AVX512BW__)
  if (g.result.kind == Int8Result::codes && n == most_columns) {
    return write_rows_of_codes(g, sums, first_row, rows, j);
  }
#endif
  for (int64_t r = 0; r < rows; r++) {
    int32_t* const row = sums + r * most_columns;
    if (g.column_sums != nullptr) {
      subtract_zero_point(g, row, j, n);
    }
    finish(g.result, row, first_row + r, j, n);
  }
}

// The sums of rows of codes and some panels in vectors.
class VectorSums {
 public:
  static constexpr int64_t rows_at_once = most_rows;

  VectorSums(const Int8Gemm& g, const int8_t* panels, int64_t count)
      : tiles_(count == 1 ? choose_tiles<1>(g.seven_bits)
                          : choose_tiles<most_panels>(g.seven_bits)),
        problem_(g),
        panels_(panels) {}

  void add_up(const uint8_t* a, int64_t rows, int32_t* sums) const {
    tiles_[rows - 1](a, problem_, panels_, sums);
  }

 private:
  const Tiles& tiles_;
  const Int8Gemm& problem_;
  const int8_t* panels_;
};

#if defined(__AVX512BW__)
// The sums of some rows of codes and one or two panels, which lie one behind the other.
class AmxSums {
 public:
  static constexpr int64_t rows_at_once = 2 * amx_rows;
  static constexpr int64_t groups_at_once = amx_bytes / int8_group;

  // The groups that do not fill the rows of a register are copied.
  AmxSums(const Int8Gemm& g, const int8_t* panels, int64_t count)
      : problem_(g), panels_(panels), count_(count) {
    const int64_t whole = g.groups / groups_at_once * groups_at_once;
    for (int64_t p = 0; p < count; p++) {
      std::memcpy(rest_[p], panels + p * int8_panel_bytes(g.groups) + int8_panel_bytes(whole),
                  int8_panel_bytes(g.groups - whole));
    }
  }

  // Rows of sums are as long as two panels.
  void add_up(const uint8_t* a, int64_t rows, int32_t* sums) {
    shapes_.set(std::min(rows, amx_rows), std::max<int64_t>(rows - amx_rows, 1));
    if (rows > amx_rows) {
      count_ == 1 ? add_up_parts<2, 1>(a, rows, sums) : add_up_parts<2, 2>(a, rows, sums);
    } else {
      count_ == 1 ? add_up_parts<1, 1>(a, rows, sums) : add_up_parts<1, 2>(a, rows, sums);
    }
  }

 private:
  template <int halves, int panels>
  void add_up_parts(const uint8_t* a, int64_t rows, int32_t* sums) const {
    asm volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" ::);
    const int64_t a_row = problem_.a_row;
    const int64_t groups = problem_.run_groups();
    const int64_t whole = groups / groups_at_once * groups_at_once;
    const int8_t* b = panels_;
    for (int64_t run = 0; run < problem_.runs; run++) {
      const uint8_t* const from = a + problem_.run_offset(run);
      for (int64_t g = 0; g < whole; g += groups_at_once, b += int8_panel_bytes(groups_at_once)) {
        multiply<halves, panels>(from + g * int8_group, a_row, b,
                                 b + int8_panel_bytes(problem_.groups));
      }
    }
    if (whole < groups) {  // of one run
      alignas(64) uint8_t codes[rows_at_once * amx_bytes] = {};
      for (int64_t r = 0; r < rows; r++) {
        std::memcpy(codes + r * amx_bytes, a + r * a_row + whole * int8_group,
                    (groups - whole) * int8_group);
      }
      multiply<halves, panels>(codes, amx_bytes, rest_[0], rest_[1]);
    }
    constexpr int64_t row = 2 * int8_panel;
    constexpr int64_t row_bytes = row * sizeof(int32_t);
    int32_t* const lower = sums + amx_rows * row;
    asm volatile("tilestored %%tmm0, (%0,%1,1)" ::"r"(sums), "r"(row_bytes) : "memory");
    if constexpr (panels == 2) {
      asm volatile("tilestored %%tmm1, (%0,%1,1)" ::"r"(sums + int8_panel), "r"(row_bytes)
                   : "memory");
    }
    if constexpr (halves == 2) {
      asm volatile("tilestored %%tmm2, (%0,%1,1)" ::"r"(lower), "r"(row_bytes) : "memory");
    }
    if constexpr (halves == 2 && panels == 2) {
      asm volatile("tilestored %%tmm3, (%0,%1,1)" ::"r"(lower + int8_panel), "r"(row_bytes)
                   : "memory");
    }
  }

  // 64 bytes of each row with 16 groups of each panel.
  template <int halves, int panels>
  static void multiply(const uint8_t* a, int64_t a_row, const int8_t* b, const int8_t* next_b) {
    asm volatile("tileloadd (%0,%1,1), %%tmm4" ::"r"(a), "r"(a_row) : "memory");
    asm volatile("tileloadd (%0,%1,1), %%tmm6" ::"r"(b), "r"(amx_bytes) : "memory");
    asm volatile("tdpbusd %%tmm6, %%tmm4, %%tmm0" ::);
    if constexpr (panels == 2) {
      asm volatile("tileloadd (%0,%1,1), %%tmm7" ::"r"(next_b), "r"(amx_bytes) : "memory");
      asm volatile("tdpbusd %%tmm7, %%tmm4, %%tmm1" ::);
    }
    if constexpr (halves == 2) {
      asm volatile("tileloadd (%0,%1,1), %%tmm5" ::"r"(a + amx_rows * a_row), "r"(a_row)
                   : "memory");
      asm volatile("tdpbusd %%tmm6, %%tmm5, %%tmm2" ::);
    }
    if constexpr (halves == 2 && panels == 2) {
      asm volatile("tdpbusd %%tmm7, %%tmm5, %%tmm3" ::);
    }
  }

  AmxShapes shapes_;
  const Int8Gemm& problem_;
  const int8_t* panels_;
  int64_t count_;
  alignas(64) int8_t rest_[2][amx_rows * amx_bytes] = {};
};

constexpr int64_t least_amx_rows = 8;  // below it vectors are as fast
#endif

template <class Sums>
void multiply_by(const Int8Gemm& g, int64_t first_row, int64_t last_row, int64_t first_panel,
                 int64_t last_panel) {
  constexpr int64_t at_once = Sums::rows_at_once;
  alignas(64) int32_t sums[at_once * most_columns];
  const int64_t blocks = (last_row - first_row + at_once - 1) / at_once;
  for (int64_t p = first_panel; p < last_panel;) {
    const int64_t panels = last_panel - p < most_panels ? 1 : most_panels;
    Sums of_panels(g, g.panels + p * int8_panel_bytes(g.groups), panels);
    const int64_t j = p * int8_panel;
    const int64_t n = std::min(panels * int8_panel, g.columns - j);
    for (int64_t b = 0; b < blocks; b++) {
      // Blocks are nearly equal, as few rows take as long to come to their sums as many.
      const int64_t i = first_row + (last_row - first_row) * b / blocks;
      const int64_t rows = first_row + (last_row - first_row) * (b + 1) / blocks - i;
      of_panels.add_up(g.a + i * g.a_row, rows, sums);
      finish_rows(g, sums, i, rows, j, n);
    }
    p += panels;
  }
}

void multiply(const Int8Gemm& g, int64_t first_row, int64_t last_row, int64_t first_panel,
              int64_t last_panel) {
#if defined(__AVX512BW__)
  if (has_amx() && last_row - first_row >= least_amx_rows) {
    return multiply_by<AmxSums>(g, first_row, last_row, first_panel, last_panel);
  }
#endif
  multiply_by<VectorSums>(g, first_row, last_row, first_panel, last_panel);
}

// Whether rows may lie in runs of so many groups.
bool takes_runs([[maybe_unused]] int64_t groups) {
#if defined(__AVX512BW__)
  return !has_amx() || groups % AmxSums::groups_at_once == 0;
#else
  return true;
#endif
}

int64_t rows_at_once() {
#if defined(__AVX512BW__)
  if (has_amx()) {
    return AmxSums::rows_at_once;
  }
#endif
  return VectorSums::rows_at_once;
}

// ---- one channel for itself ----

// The sums of n <= most_columns channels from c on.
inline __attribute__((always_inline)) void add_taps(const Int8Depthwise& d,
                                                    const uint8_t* const* taps, int64_t c,
                                                    int64_t n, int32_t* sums) {
  const auto zero = static_cast<int16_t>(d.zero_point);
  for (int64_t t = 0; t < d.count; t++) {
    if (taps[t] == nullptr) {
      continue;
    }
    const uint8_t* const x = taps[t] + c;
    const int8_t* const w = d.weight + t * d.channels + c;
    for (int64_t q = 0; q < n; q++) {
      // At most 255 * 128 in size, which 16 bits hold.
      const auto from_zero = static_cast<int16_t>(x[q] - zero);
      sums[q] += static_cast<int16_t>(from_zero * w[q]);
    }
  }
}

void depthwise(const Int8Depthwise& d, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; i++) {
    const uint8_t* const* const taps = d.taps + i * d.count;
    for (int64_t c = 0; c < d.channels; c += most_columns) {
      const int64_t n = std::min(most_columns, d.channels - c);
      int32_t sums[most_columns] = {};
      if (n == most_columns) {  // a length that the compiler knows
        add_taps(d, taps, c, most_columns, sums);
      } else {
        add_taps(d, taps, c, n, sums);
      }
      finish(d.result, sums, i, c, n);
    }
  }
}

// ---- codes ----

void limits(const float* x, int64_t n, float& low, float& high) {
  using S = Simd<float>;
  S::V least = S::set1(x[0]);
  S::V most = least;
  S::Flags nan = S::unordered(least, least);
  int64_t i = 0;
  for (; i + S::width <= n; i += S::width) {
    const S::V v = S::load(x + i);
    least = S::min(least, v);
    most = S::max(most, v);
    nan = S::either(nan, S::unordered(v, v));
  }
  float lows[S::width];
  float highs[S::width];
  S::store(lows, least);
  S::store(highs, most);
  low = *std::min_element(lows, lows + S::width);
  high = *std::max_element(highs, highs + S::width);
  bool any_nan = S::any(nan);
  for (; i < n; i++) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
    any_nan |= x[i] != x[i];
  }
  if (any_nan) {
    low = high = std::numeric_limits<float>::quiet_NaN();
  }
}

void to_codes(const float* x, int64_t n, Int8Codes how, uint8_t* codes) {
  constexpr int64_t block = 64;
  for (int64_t i = 0; i < n; i += block) {
    const int64_t some = std::min(block, n - i);
    int32_t whole[block];
    for (int64_t q = 0; q < some; q++) {
      const float place = std::nearbyint(x[i + q] * how.inverse + how.zero_point);
      const float most = place < 255.0F ? place : 255.0F;
      whole[q] = static_cast<int32_t>(most > 0.0F ? most : 0.0F);
    }
    for (int64_t q = 0; q < some; q++) {
      codes[i + q] = static_cast<uint8_t>(whole[q]);
    }
  }
}

bool are_seven_bits(const uint8_t* codes, int64_t n) {
  if (has_one_instruction()) {
    return false;
  }
  uint8_t all = 0;
  for (int64_t i = 0; i < n; i++) {
    all |= codes[i];
  }
  return all < 128;
}

}  // namespace

const Int8Kernels int8_kernels = {rows_at_once, takes_runs, multiply,      depthwise,
                                  limits,       to_codes,   are_seven_bits};

}  // namespace rushlight::cpu::RL_ISA
