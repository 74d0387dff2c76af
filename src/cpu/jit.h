// Register code for runs of light formulas: one loop in which values stay in registers. Made at run
// time, for x86-64-v3 and v4, operands of float32 and 16-bit floats; what it computes has the bits
// of the blocks. A value is float32 in its register, that of a 16-bit float rounded to it. Where
// memory may not be made executable there is none, and blocks do all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cpu/formula_kernel.h"

namespace rushlight::cpu {

enum class JitSlot : uint8_t {
  Float,
  BFloat16,
  Half,
  Bool,
  RowFloat,  // one number for each row; read
};

struct JitOperand {
  enum class Kind : uint8_t { Value, Slot, Constant };
  Kind kind;
  uint8_t index;  // of Value: the step of the run that gives it
};

struct JitStep {
  static constexpr uint8_t no_slot = 255;
  uint8_t formula;
  uint8_t num_operands;  // inputs, then attributes
  JitOperand in[max_inputs + max_attributes];
  JitSlot rounded = JitSlot::Float;  // what the result is rounded to
  uint8_t store = no_slot;           // the slot that it is written to
  bool streams = false;              // past the caches
};

struct JitRun {
  std::vector<JitStep> steps;
  std::vector<JitSlot> slots;
  uint8_t num_constants = 0;
};

// Slots are addresses of the first of some rows of n elements, a multiple of 64, and steps the
// bytes from row to row. The addresses are used up.
using JitFunction = void (*)(char** slots, const int64_t* steps, const float* constants, int64_t n,
                             int64_t rows);
struct JitCode {
  JitFunction function = nullptr;
  std::shared_ptr<const void> owner;  // of the memory that the code is in
  bool is_final = false;              // there will be no other
};

// The number of a formula that can be in a run; -1 for others.
int jit_formula(const char* name);
// Whether what it gives is better written and read again than computed twice.
bool jit_is_heavy(int formula);
// Code for the run, from the cache, or null: it is made when it is asked for the second time, or at
// once for much work.
JitCode jit_code(const JitRun& run, bool much_work);

// Code that is in no cache; null where there are too few registers, or no memory that may be
// executed.
JitCode make_jit_code(const JitRun& run);

// How much code there is, and the way to drop it.
RL_API int64_t jit_cache_size();
int64_t jit_age();  // how often it has been dropped
RL_API void clear_jit_cache();

}  // namespace rushlight::cpu
