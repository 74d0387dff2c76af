// Products of codes of 8 bits, exact in 32: of rows of uint8 with
// columns of int8 that are packed (kernels/int8_layout.h). Sums of
// integers are the same in any order, and what makes floats or codes of them is one formula, so
// that results have the same bits on every processor and with any number of threads.
#pragma once

#include <cstdint>

#include "cpu/isa_level.h"
#include "kernels/int8_layout.h"

namespace rushlight::cpu {

// What becomes of the sums of a row and a column, s - zero_point * column_sums[j] in all.
struct Int8Result {
  enum Kind : uint8_t {
    sums,     // int32: themselves
    numbers,  // float: s * row_factors[i] * factors[j] + bias[j]
    codes,    // uint8, or int8 in the same bits: (s + bias[j]) * factors[j], rounded, + zero_point
  };
  Kind kind;
  void* data;
  int64_t row;  // elements between rows; columns lie side by side
  const float* factors = nullptr;
  const float* row_factors = nullptr;  // or null: all are 1
  const float* bias = nullptr;         // or null
  bool relu = false;                   // of numbers
  float zero_point = 0;                // of codes
  float first = 0;                     // the smallest code of a result
  float last = 0;
};

struct Int8Gemm {
  const uint8_t* a = nullptr;  // rows of whole groups of codes
  int64_t a_row = 0;           // bytes between rows
  // A row lies in runs of as many groups each, so many bytes behind its begin; null: in one.
  const int64_t* run_offsets = nullptr;
  int64_t runs = 1;
  bool seven_bits = false;     // whether all codes are below 128
  const int8_t* panels = nullptr;
  int64_t groups;
  int64_t columns;
  const int32_t* column_sums = nullptr;  // or null
  int32_t zero_point = 0;
  Int8Result result;

  int64_t run_groups() const { return groups / runs; }
  int64_t run_offset(int64_t run) const { return run_offsets == nullptr ? 0 : run_offsets[run]; }
};

// Numbers that become codes: x * inverse + zero_point, rounded, between 0 and 255; NaN is 255.
struct Int8Codes {
  float inverse;  // of the scale
  float zero_point;
};

// A convolution of each channel for itself: some results, each a row of channels.
struct Int8Depthwise {
  const uint8_t* const* taps;  // for each result and tap a row of codes, or null in the padding
  int64_t count;               // of taps
  const int8_t* weight;        // (taps, channels)
  int64_t channels;
  int32_t zero_point;
  Int8Result result;
};

// All of it runs on the calling thread.
struct Int8Kernels {
  int64_t (*rows_at_once)();  // of A
  bool (*takes_runs)(int64_t groups);
  // The results of rows and panels from `first` to `last`.
  void (*multiply)(const Int8Gemm& problem, int64_t first_row, int64_t last_row,
                   int64_t first_panel, int64_t last_panel);
  void (*depthwise)(const Int8Depthwise& problem, int64_t first_result, int64_t last_result);
  // The smallest and the largest of n > 0 numbers; both NaN where one is.
  void (*limits)(const float* x, int64_t n, float& low, float& high);
  void (*to_codes)(const float* x, int64_t n, Int8Codes how, uint8_t* codes);
  // Whether all codes are below 128, where products gain by it; otherwise false.
  bool (*are_seven_bits)(const uint8_t* codes, int64_t n);
};

RL_DECLARE_ISA_TABLE(Int8Kernels, int8_kernels)
inline const Int8Kernels& int8_kernels() { return RL_ISA_TABLE(int8_kernels); }

}  // namespace rushlight::cpu
