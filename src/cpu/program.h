// A program: what a chain of formulas is turned into, for one pass over its elements. Its
// instructions work on pieces that stay in the first-level cache. src/cpu/isa/pointwise/program.cpp
// runs it.
#pragma once

#include <vector>

#include "cpu/formula_kernel.h"
#include "cpu/isa_level.h"
#include "cpu/jit.h"

namespace rushlight::cpu {

// Folds `rows` rows of `n` elements that follow each other, `step` bytes from row to row, to one
// element each; `formula` is that of the fold.
using RowFold = void (*)(const void* formula, const char* x, int64_t step, int64_t n, int64_t rows,
                         char* to);

// Where the elements of a value are. An address is that of the value's first element; buffers hold
// what is worked on at a time.
struct Slot {
  enum class Kind : uint8_t {
    Buffer,      // of the pass
    Memory,      // a tensor's, gapless in the order of the pass
    Rows,        // a tensor's, gapless within a row; which of `strided`
    RowBuffer,   // of the pass: one element for each row of a piece
    RowMemory,   // a tensor's: one element for each row; written
    RowNumbers,  // a tensor's: one element for each row; which of `strided`
    Repeated,    // one number, as often as a buffer has elements
    Single,      // one number, once
  };
  Kind kind;
  bool written;  // a tensor's memory that is written, not read
  ScalarType dtype;
  ScalarType stored;    // of the number at `address`, for the last two
  int16_t buffer = -1;  // of the pass; of Single, the place among them; of Rows: of `strided`
  int16_t origin = -1;  // the leaf that it is, or the step whose result is `written`
  char* address = nullptr;
  bool of_piece = false;  // of Buffer where rows are folded: it holds all rows of a piece
  int64_t step = 0;       // bytes from row to row
  int64_t width = 0;      // elements of a row, where that is less than the program's
  int16_t within = -1;    // the slot of whose rows it is a part
  int64_t first = 0;      // element, of these rows

  bool is_of_rows() const {
    return kind == Kind::RowBuffer || kind == Kind::RowMemory || kind == Kind::RowNumbers;
  }
};

struct Instruction {
  enum class Kind : uint8_t {
    Compute,  // a block
    Fused,    // register code for several steps: which of `fused`
    Convert,  // from the dtype of one slot to that of another
    Gather,   // from a tensor that does not lie gapless in the order of the pass
    Stream,   // to a tensor's memory, past the caches
    Fold,     // rows, to one element each
    Spread,   // a row's element over the row
    Keep,     // the elements of rows, to a tensor's memory
  };
  Kind kind;
  int8_t num_inputs = 1;
  int16_t out;             // slot; of Fused: which of `fused`
  int16_t in[max_inputs];  // slots; of Gather: which of `strided`
  Block block = nullptr;
  const void* attributes = nullptr;
  int16_t origin = -1;   // of Compute and Fold: the step
  bool on_rows = false;  // elements are those of the rows of a piece
  bool by_rows = false;  // rows do not follow each other without gaps in all that it works on
  int64_t width = 0;     // elements of a row, where that is less than the program's
  RowFold fold = nullptr;
};

// A tensor that does not lie gapless: strides in bytes, innermost first.
struct Strided {
  static constexpr int max_dims = 8;
  const char* address;
  int16_t origin;  // the leaf that it is
  int64_t size;
  int64_t strides[max_dims + 1];  // one more is read, not used
};

// Several steps in one: the slots that it reads and writes, in the order of its code.
struct Fused {
  JitCode code;
  std::vector<int16_t> slots;
  std::vector<bool> written;
  std::vector<float> constants;
  struct Origin {
    int16_t step;  // whose attribute it is; -1: a leaf
    int16_t index;
    ScalarType wanted;
  };
  std::vector<Origin> origins;  // of the constants
};

// A pass goes over rows, of which several are worked on at a time where they are short, and parts
// where they are long. Where nothing asks for rows all elements are one.
//
// Where rows are folded, all of a piece of rows go through the instructions up to the next one on
// the elements of rows, which then runs once for the piece.
struct Program {
  std::vector<Slot> slots;
  std::vector<Instruction> instructions;
  std::vector<Strided> strided;
  std::vector<Fused> fused;
  int64_t num_buffers = 0;
  int64_t num_singles = 0;
  int64_t num_row_buffers = 0;
  int64_t num_piece_buffers = 0;
  int64_t buffer_bytes = 0;  // a multiple of 64
  int64_t numel = 0;
  int64_t row = 0;  // elements
  int64_t rows_at_once = 0;
  int64_t piece_rows = 0;  // 0: rows are worked on in parts
  int64_t part = 0;        // elements, a multiple of 64
  int64_t grain = 0;       // rows, or elements where rows are worked on in parts
  bool is_final = true;    // nothing would be better at another time
  int16_t given = -1;      // the slot whose memory the reader gives
  int dim = 1;             // innermost first
  int64_t shape[Strided::max_dims + 1];
};

// What runs programs, of one instruction set.
struct ProgramRunner {
  // All elements, on several threads.
  void (*run)(const Program& program);
  // Elements `first` to `first + n`, of which the given slot's come to `to`.
  void (*read)(const Program& program, int64_t first, int64_t n, char* to);
};

RL_DECLARE_ISA_TABLE(ProgramRunner, program_runner)
inline const ProgramRunner& programs() { return RL_ISA_TABLE(program_runner); }

inline constexpr int64_t program_bytes = 32768;  // of all buffers, at most: a first-level cache
// Of all that is worked on where rows are folded, for all rows of a piece: a part of a second-level
// cache.
inline constexpr int64_t piece_bytes = 131072;
inline constexpr int64_t most_rows = 64;    // of a piece
inline constexpr int64_t least_piece = 64;  // a granule of whatever types meet

}  // namespace rushlight::cpu
