// AMX, which holds matrices of 16 rows of 64 bytes in registers and multiplies two of them at once.
// Written as instructions: the code is compiled for processors without it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <sys/syscall.h>
#include <unistd.h>

#include "cpu/dims.h"
#include "kernels/int8_layout.h"

namespace rushlight::cpu::RL_ISA {

constexpr int64_t amx_rows = 16;   // of a matrix
constexpr int64_t amx_bytes = 64;  // of a row

// Whether the processor has it and the system lets this process use it, which must be asked.
inline bool has_amx() {
  static const bool has = [] {
    __builtin_cpu_init();
    constexpr int64_t request_state = 0x1023;  // ARCH_REQ_XCOMP_PERM
    constexpr int64_t of_matrices = 18;
    return __builtin_cpu_supports("amx-int8") != 0 && __builtin_cpu_supports("amx-bf16") != 0 &&
           syscall(SYS_arch_prctl, request_state, of_matrices) == 0;
  }();
  return has;
}

// Shapes of the registers: 0 to 3 are sums, 4 and 5 rows of codes, 6 and 7 panels. They are empty
// again when it goes, so that threads that sleep keep nothing.
class AmxShapes {
 public:
  // Of rows of so many bytes of codes.
  explicit AmxShapes(int64_t bytes = amx_bytes) : bytes_(bytes) {}
  AmxShapes(const AmxShapes&) = delete;
  AmxShapes& operator=(const AmxShapes&) = delete;
  ~AmxShapes() {
    if (upper_ != 0) {
      asm volatile("tilerelease" ::: "memory");
    }
  }

  // Registers 0, 1 and 4 belong to `upper` rows and 2, 3 and 5 to `lower` ones, 1 to 16 each.
  void set(int64_t upper, int64_t lower) {
    if (upper == upper_ && lower == lower_) {
      return;
    }
    upper_ = upper;
    lower_ = lower;
    struct alignas(64) {
      uint8_t palette = 1;
      uint8_t start = 0;
      uint8_t reserved[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } shapes;
    const int64_t rows[] = {upper, upper, lower, lower, upper, lower, bytes_ / 4, bytes_ / 4};
    for (int i = 0; i < 8; i++) {
      shapes.rows[i] = static_cast<uint8_t>(rows[i]);
      shapes.row_bytes[i] = static_cast<uint16_t>(i == 4 || i == 5 ? bytes_ : amx_bytes);
    }
    asm volatile("ldtilecfg %0" ::"m"(shapes));
  }

 private:
  int64_t bytes_;
  int64_t upper_ = 0;
  int64_t lower_ = 0;
};

// Sums of parts of 16 rows of codes and a panel, both with a sign. A part has at most 64 terms or a
// multiple of 64.
class AmxPartSums {
 public:
  static constexpr int64_t at_once = 4;
  static constexpr int64_t elements = amx_rows * int8_panel;  // for a part

  static bool takes(int64_t part) {
    return part % int8_group == 0 && (part <= amx_bytes || part % amx_bytes == 0);
  }

  explicit AmxPartSums(int64_t part)
      : part_(part), bytes_(std::min(part, amx_bytes)), shapes_(bytes_) {
    shapes_.set(amx_rows, amx_rows);
  }

  // Calls f(i, sums) for each of some parts in their order, where sums are 16 x 16. They wait for
  // two rounds before they are read, as what a register has written is read only from the cache.
  template <class F>
  RL_ALWAYS_INLINE void for_parts(const int8_t* a, int64_t a_row, const int8_t* panel,
                                  int64_t parts, const F& f) const {
    const int64_t panel_bytes = part_ * int8_panel;
    alignas(64) int32_t sums[2][at_once * elements];
    for (int64_t i = 0; i < parts + 2 * at_once; i += at_once) {
      int32_t* const of_round = sums[i / at_once % 2];
      const int64_t before = i - 2 * at_once;
      for (int64_t j = std::max<int64_t>(before, 0); j < std::min(before + at_once, parts); j++) {
        f(j, of_round + (j - before) * elements);
      }
      if (i < parts) {
        multiply(a + i * part_, a_row, panel + i * panel_bytes, parts - i, of_round);
      }
    }
  }

 private:
  // Up to four.
  void multiply(const int8_t* a, int64_t a_row, const int8_t* b, int64_t parts,
                int32_t* sums) const {
    const int64_t bytes = part_ * int8_panel;
    multiply_part<0>(a, a_row, b);
    if (parts > 1) {
      multiply_part<1>(a + part_, a_row, b + bytes);
    }
    if (parts > 2) {
      multiply_part<2>(a + 2 * part_, a_row, b + 2 * bytes);
    }
    if (parts > 3) {
      multiply_part<3>(a + 3 * part_, a_row, b + 3 * bytes);
    }
    write_part<0>(sums);
    if (parts > 1) {
      write_part<1>(sums);
    }
    if (parts > 2) {
      write_part<2>(sums);
    }
    if (parts > 3) {
      write_part<3>(sums);
    }
  }

  template <int at>
  void multiply_part(const int8_t* a, int64_t a_row, const int8_t* b) const {
    constexpr int codes = 4 + at % 2;
    constexpr int weights = 6 + at % 2;
    asm volatile("tilezero %%tmm%c0" ::"i"(at));
    for (int64_t k = 0; k < part_; k += bytes_) {
      asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(a + k), "r"(a_row), "i"(codes) : "memory");
      asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(b + k * int8_panel), "r"(amx_bytes),
                   "i"(weights)
                   : "memory");
      asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(at), "i"(codes), "i"(weights));
    }
  }

  template <int at>
  static void write_part(int32_t* sums) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(sums + at * elements), "r"(amx_bytes),
                 "i"(at)
                 : "memory");
  }

  int64_t part_;
  int64_t bytes_;
  AmxShapes shapes_;
};

// So many of some rows are multiplied by it, the others by vectors.
inline int64_t amx_part_rows(int64_t rows) {
  return has_amx() && rows >= 2 * amx_rows ? rows / amx_rows * amx_rows : 0;
}

}  // namespace rushlight::cpu::RL_ISA
