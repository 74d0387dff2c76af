// The micro-kernel of gemm_engine.h by AMX, for pairs of bfloat16.
#pragma once

#include "cpu/isa/matmul/amx.h"
#include "cpu/isa/matmul/pairs.h"

namespace rushlight::cpu::RL_ISA {

class AmxPairs {
 public:
  static constexpr int64_t most_rows = 2 * amx_rows;

  // alpha is 1, and `from` nothing or c with a beta of 1. The product of a and `more_b` is added,
  // where that is something and k a multiple of 16.
  void multiply(const Micro<Pair>& z, int64_t rows, const Pair* more_b = nullptr) {
    shapes_.set(std::min(rows, amx_rows), std::max<int64_t>(rows - amx_rows, 1));
    rows > amx_rows ? multiply_halves<2>(z, rows, more_b) : multiply_halves<1>(z, rows, more_b);
  }

 private:
  static constexpr int64_t columns = 32;
  static constexpr int64_t terms = amx_bytes / 4;  // pairs in a row of a register

  template <int halves>
  static void multiply_halves(const Micro<Pair>& z, int64_t rows, const Pair* more_b) {
    static_assert(GemmBlocks<float>::nr == columns);
    // Registers hold whole panels.
    alignas(64) float padded[most_rows * columns];
    const bool whole = z.columns == columns;
    float* const c = whole ? z.c : padded;
    const int64_t c_row = whole ? z.c_row : columns;
    if (z.from == nullptr) {
      asm volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" ::);
    } else {
      for (int64_t r = 0; !whole && r < rows; r++) {
        std::copy_n(z.c + r * z.c_row, z.columns, padded + r * columns);
      }
      load<0>(c, c_row);
      load<1>(c + columns / 2, c_row);
      if constexpr (halves == 2) {
        load<2>(c + amx_rows * c_row, c_row);
        load<3>(c + amx_rows * c_row + columns / 2, c_row);
      }
    }
    int64_t k = 0;
    for (; k + terms <= z.k; k += terms) {
      add_products<halves>(z.a + k * z.a_col, z.a_row, z.b + k * z.b_row, z.b_row);
      if (more_b != nullptr) {
        add_products<halves, false>(nullptr, 0, more_b + k * z.b_row, z.b_row);
      }
    }
    if (k < z.k) {
      add_last_products<halves>(z, rows, k);
    }
    store<0>(c, c_row);
    store<1>(c + columns / 2, c_row);
    if constexpr (halves == 2) {
      store<2>(c + amx_rows * c_row, c_row);
      store<3>(c + amx_rows * c_row + columns / 2, c_row);
    }
    for (int64_t r = 0; !whole && r < rows; r++) {
      std::copy_n(padded + r * columns, z.columns, z.c + r * z.c_row);
    }
  }

  // Of the last terms of a sum, with zeros behind them: other memory may hold NaN.
  template <int halves>
  static void add_last_products(const Micro<Pair>& z, int64_t rows, int64_t k) {
    Pair a[most_rows * terms] = {};
    Pair b[terms * columns] = {};
    for (int64_t r = 0; r < rows; r++) {
      std::copy_n(z.a + r * z.a_row + k, z.k - k, a + r * terms);
    }
    std::copy_n(z.b + k * z.b_row, (z.k - k) * columns, b);
    add_products<halves>(a, terms, b, columns);
  }

  template <int halves, bool loads_a = true>
  static RL_ALWAYS_INLINE void add_products(const Pair* a, int64_t a_row, const Pair* b,
                                            int64_t b_row) {
    if constexpr (loads_a) {
      load<4>(a, a_row);
      if constexpr (halves == 2) {
        load<5>(a + amx_rows * a_row, a_row);
      }
    }
    load<6>(b, b_row);
    asm volatile("tdpbf16ps %%tmm6, %%tmm4, %%tmm0" ::);
    load<7>(b + columns / 2, b_row);
    asm volatile("tdpbf16ps %%tmm7, %%tmm4, %%tmm1" ::);
    if constexpr (halves == 2) {
      asm volatile("tdpbf16ps %%tmm6, %%tmm5, %%tmm2" ::);
      asm volatile("tdpbf16ps %%tmm7, %%tmm5, %%tmm3" ::);
    }
  }

  // Rows are `row` elements of 4 bytes apart.
  template <int at, class E>
  static RL_ALWAYS_INLINE void load(const E* from, int64_t row) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row * 4), "i"(at) : "memory");
  }
  template <int at>
  static RL_ALWAYS_INLINE void store(float* to, int64_t row) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row * 4), "i"(at) : "memory");
  }

  AmxShapes shapes_;
};

}  // namespace rushlight::cpu::RL_ISA
