// The pass of a program: pieces of whole granules where operands lie, then the few elements that
// are left over, which go through the same instructions in padded copies, so that the bits of an
// element do not depend on where it stands.
#include "cpu/isa/pointwise/program.h"

#include <rushlight/parallel.h>

#include "cpu/isa/pointwise/cast.h"
#include "cpu/isa/pointwise/rows.h"
#include "cpu/scratch.h"

namespace rushlight::cpu::RL_ISA {

namespace {

constexpr int64_t row_bytes = most_rows * 16;     // of a value of the rows of a piece
constexpr int64_t rest_bytes = least_piece * 16;  // of what is left over, in the widest dtype

void repeat(char* to, const Slot& number, int64_t n) {
  alignas(16) char value[16];
  const int64_t size = itemsize(number.dtype);
  if (const Cast cast =
          number.stored == number.dtype ? Cast() : cast_function(number.dtype, number.stored)) {
    cast(value, number.address, 1);
  } else {
    std::memcpy(value, number.address, static_cast<size_t>(size));
  }
  fill(to, value, size, n);
}

// The elements of one thread's part.
class Pass {
 public:
  Pass(const Program& program, char* buffers, char* given = nullptr)
      : program_(program), at_(program.slots.size()), given_(given) {
    char* const singles = buffers + program.num_buffers * program.buffer_bytes;
    char* const row_buffers = singles + program.num_singles * 16;
    char* const piece_buffers = row_buffers + program.num_row_buffers * row_bytes;
    for (size_t i = 0; i < at_.size(); i++) {
      const Slot& slot = program.slots[i];
      switch (slot.kind) {
        case Slot::Kind::Buffer:
          at_[i] = slot.of_piece
                       ? piece_buffers + slot.buffer * program.piece_rows * program.buffer_bytes
                       : buffers + slot.buffer * program.buffer_bytes;
          break;
        case Slot::Kind::Repeated:
          at_[i] = buffers + slot.buffer * program.buffer_bytes;
          repeat(at_[i], slot, program.piece);
          break;
        case Slot::Kind::Single:
          at_[i] = singles + slot.buffer * 16;
          repeat(at_[i], slot, 1);
          break;
        case Slot::Kind::RowBuffer:
          at_[i] = row_buffers + slot.buffer * row_bytes;
          std::memset(at_[i], 0, row_bytes);  // what is behind the rows is computed with
          break;
        case Slot::Kind::Memory:
        case Slot::Kind::RowMemory:
          break;
      }
    }
  }

  void run(int64_t begin, int64_t end) {
    if ((begin | end) % least_piece == 0 && has_rows()) {
      run_rows(begin, end);
      return;
    }
    const int64_t whole = end - (end - begin) % least_piece;
    while (begin < whole) {
      const int64_t n = std::min(program_.piece, whole - begin);
      bring_memory(begin);
      run_piece(begin, n, n);
      begin += n;
    }
    if (begin < end) {
      run_rest(begin, end - begin);
    }
  }

  // Rows `begin` to `end`, of a program that folds them.
  void run_folded_rows(int64_t begin, int64_t end) {
    base_ = at_;
    constexpr int64_t much = int64_t{8} << 20;  // bytes that no cache holds from step to step
    last_prefetched_ = program_.numel * 4 >= much ? end : 0;
    for (const Fused& fused : program_.fused) {
      constants_.push_back(fused.constants);
    }
    const std::vector<Instruction>& steps = program_.instructions;
    for (; begin < end; begin += rows_) {
      rows_ = std::min(program_.piece_rows, end - begin);
      for (size_t first = 0; first < steps.size();) {
        size_t last = first + 1;
        while (!steps[first].on_rows && last < steps.size() && !steps[last].on_rows) {
          last++;
        }
        const int64_t times = steps[first].on_rows ? 1 : rows_;
        for (int64_t r = 0; r < times; r++) {
          bring_row(begin, r);
          const int64_t element = (begin + r) * program_.row;
          for (size_t i = first; i < last; i++) {
            run_instruction(steps[i], element, program_.row, program_.row,
                            strided_rows_.empty() ? nullptr : strided_rows_.data());
          }
        }
        first = last;
      }
    }
  }

 private:
  // Whether all that is gathered lies in rows of whole granules, or is one number for each row:
  // then rows are used where they lie.
  bool has_rows() const {
    const int64_t row = program_.shape[0];
    return !program_.strided.empty() && program_.dim > 1 && row % least_piece == 0 &&
           row >= 4 * least_piece &&
           std::all_of(program_.strided.begin(), program_.strided.end(), lies_in_rows);
  }
  static bool lies_in_rows(const Strided& from) {
    return from.strides[0] == from.size || from.strides[0] == 0;
  }

  void run_rows(int64_t begin, int64_t end) {
    const int64_t row = program_.shape[0];
    Cursor cursor;
    seek(cursor, begin);
    std::vector<char*> rows(program_.strided.size());
    while (begin < end) {
      const int64_t n = std::min({program_.piece, row - cursor.at[0], end - begin});
      bring_memory(begin);
      for (size_t i = 0; i < rows.size(); i++) {
        const Strided& from = program_.strided[i];
        rows[i] = const_cast<char*>(from.address) + offset(from, cursor);
      }
      run_piece(begin, n, n, rows.data());
      begin += n;
      cursor.at[0] += n;
      for (int d = 0; cursor.at[d] == program_.shape[d] && d + 1 < program_.dim; d++) {
        cursor.at[d] = 0;
        cursor.at[d + 1]++;
      }
    }
  }

  // The next row comes while this one is worked on: the processor does not see that it will.
  static void prefetch(const char* from, int64_t bytes) {
    constexpr int64_t line = 64;
    for (int64_t i = 0; i < bytes; i += line) {
      __builtin_prefetch(from + i, 0, 2);
    }
  }

  // Where the slots have row `r` of the piece that begins at row `begin`.
  void bring_row(int64_t begin, int64_t r) {
    for (size_t i = 0; i < at_.size(); i++) {
      const Slot& slot = program_.slots[i];
      const int64_t size = itemsize(slot.dtype);
      if (slot.kind == Slot::Kind::Memory) {
        at_[i] = memory(i) + (begin + r) * program_.row * size;
        if (begin + r + 1 < last_prefetched_) {
          prefetch(at_[i] + program_.row * size, program_.row * size);
        }
      } else if (slot.kind == Slot::Kind::RowMemory) {
        at_[i] = slot.address + (begin + r) * size;
      } else if (slot.kind == Slot::Kind::RowBuffer) {
        at_[i] = base_[i] + r * size;
      } else {
        at_[i] = base_[i] + (slot.of_piece ? r * program_.row * size : 0);
      }
    }
    if (program_.strided.empty() || program_.shape[0] != program_.row) {
      return;
    }
    Cursor cursor;
    seek(cursor, (begin + r) * program_.row);
    strided_rows_.resize(program_.strided.size());
    for (size_t i = 0; i < strided_rows_.size(); i++) {
      const Strided& from = program_.strided[i];
      strided_rows_[i] =
          lies_in_rows(from) ? const_cast<char*>(from.address) + offset(from, cursor) : nullptr;
    }
  }

  void bring_memory(int64_t begin) {
    for (size_t i = 0; i < at_.size(); i++) {
      const Slot& slot = program_.slots[i];
      if (slot.kind == Slot::Kind::Memory) {
        at_[i] = memory(i) + begin * itemsize(slot.dtype);
      }
    }
  }

  void seek(Cursor& cursor, int64_t begin) const {
    for (int d = 0; d < program_.dim; d++) {
      cursor.at[d] = begin % program_.shape[d];
      begin /= program_.shape[d];
    }
  }
  int64_t offset(const Strided& from, const Cursor& cursor) const {
    int64_t bytes = 0;
    for (int d = 0; d < program_.dim; d++) {
      bytes += cursor.at[d] * from.strides[d];
    }
    return bytes;
  }

  char* memory(size_t slot) const {
    return static_cast<int64_t>(slot) == program_.given ? given_ : program_.slots[slot].address;
  }

  // `n` elements, of which the first `there` exist. `rows`: where the rows are that need not be
  // gathered, or null.
  void run_piece(int64_t begin, int64_t n, int64_t there, char* const* rows = nullptr) {
    for (const Instruction& step : program_.instructions) {
      run_instruction(step, begin, n, there, rows);
    }
  }

  void run_instruction(const Instruction& step, int64_t begin, int64_t n, int64_t there,
                       char* const* rows) {
    if (step.kind == Instruction::Kind::Fused) {
      return run_fused(step, n);
    }
    char* const out = at_[static_cast<size_t>(step.out)];
    const auto from = static_cast<size_t>(step.in[0]);
    switch (step.kind) {
      case Instruction::Kind::Compute: {
        const char* in[max_inputs];
        for (int i = 0; i < step.num_inputs; i++) {
          in[i] = at_[static_cast<size_t>(step.in[i])];
        }
        step.block(out, in, step.attributes, step.on_rows ? most_rows : n);
        break;
      }
      case Instruction::Kind::Fused:
        break;
      case Instruction::Kind::Convert:
        cast_function(program_.slots[static_cast<size_t>(step.out)].dtype,
                      program_.slots[from].dtype)(out, at_[from], n);
        break;
      case Instruction::Kind::Gather:
        bring(step, begin, n, there, rows);
        break;
      case Instruction::Kind::Stream:
        stream(out, at_[from], n * itemsize(program_.slots[from].dtype));
        break;
      case Instruction::Kind::Fold:
        step.fold(step.attributes, at_[from], program_.row, out);
        break;
      case Instruction::Kind::Spread:
        fill(out, at_[from], itemsize(program_.slots[from].dtype), program_.row);
        break;
      case Instruction::Kind::Keep:
        std::memcpy(out, at_[from],
                    static_cast<size_t>(rows_ * itemsize(program_.slots[from].dtype)));
        break;
    }
  }

  void run_fused(const Instruction& step, int64_t n) {
    const auto which = static_cast<size_t>(step.out);
    const Fused& fused = program_.fused[which];
    char* slots[JitStep::no_slot];
    for (size_t i = 0; i < fused.slots.size(); i++) {
      slots[i] = at_[static_cast<size_t>(fused.slots[i])];
    }
    const float* constants = fused.constants.data();
    if (!fused.row_constants.empty()) {
      for (const Fused::RowConstant& row : fused.row_constants) {
        std::memcpy(&constants_[which][static_cast<size_t>(row.constant)],
                    at_[static_cast<size_t>(row.slot)], sizeof(float));
      }
      constants = constants_[which].data();
    }
    fused.code.function(slots, constants, n);
  }

  void bring(const Instruction& step, int64_t begin, int64_t n, int64_t there, char* const* rows) {
    const auto which = static_cast<size_t>(step.in[0]);
    const Strided& from = program_.strided[which];
    char*& to = at_[static_cast<size_t>(step.out)];
    if (rows == nullptr || rows[which] == nullptr) {
      gather(from, to, begin, there);
      pad(to, from.size, there, n);
    } else if (from.strides[0] != 0) {
      to = rows[which];
    } else {
      fill(to, rows[which], from.size, n);
    }
  }

  void gather(const Strided& from, char* to, int64_t begin, int64_t n) const {
    Cursor cursor;
    seek(cursor, begin);
    gather_rows(program_.shape, from.strides, from.size, to, from.address + offset(from, cursor),
                cursor, n);
  }

  static void pad(char* values, int64_t size, int64_t n, int64_t to) {
    if (n < to) {
      fill(values + n * size, values + (n - 1) * size, size, to - n);
    }
  }

  void run_rest(int64_t begin, int64_t n) {
    const Scratch<char> copies(static_cast<int64_t>(at_.size()) * rest_bytes);
    char* copy = copies;
    for (size_t i = 0; i < at_.size(); i++, copy += rest_bytes) {
      const Slot& slot = program_.slots[i];
      if (slot.kind != Slot::Kind::Memory) {
        continue;
      }
      const int64_t size = itemsize(slot.dtype);
      at_[i] = copy;
      if (!slot.written) {
        std::memcpy(copy, memory(i) + begin * size, static_cast<size_t>(n * size));
        pad(copy, size, n, least_piece);
      }
    }
    run_piece(begin, least_piece, n);
    for (size_t i = 0; i < at_.size(); i++) {
      const Slot& slot = program_.slots[i];
      if (slot.kind == Slot::Kind::Memory && slot.written) {
        const int64_t size = itemsize(slot.dtype);
        std::memcpy(memory(i) + begin * size, at_[i], static_cast<size_t>(n * size));
      }
    }
  }

  const Program& program_;
  std::vector<char*> at_;  // of each slot, the elements that are worked on
  char* const given_;      // where element 0 of the given slot would be
  // Where rows are folded:
  int64_t rows_ = 0;                           // of the piece
  int64_t last_prefetched_ = 0;                // row, of those of this thread
  std::vector<char*> base_;                    // of each slot, the piece's first row
  std::vector<char*> strided_rows_;            // of each strided operand, the row; null: gathered
  std::vector<std::vector<float>> constants_;  // of register code, with those of the row
};

int64_t bytes_of_buffers(const Program& program) {
  return program.num_buffers * program.buffer_bytes + program.num_singles * 16 +
         program.num_row_buffers * row_bytes +
         program.num_piece_buffers * program.piece_rows * program.buffer_bytes;
}

void run(const Program& program) {
  if (program.row != 0) {
    return parallel_for(0, program.numel / program.row, program.grain,
                        [&](int64_t begin, int64_t end) {
                          const Scratch<char> buffers(bytes_of_buffers(program));
                          Pass(program, buffers).run_folded_rows(begin, end);
                        });
  }
  parallel_for(0, program.numel, program.grain, [&](int64_t begin, int64_t end) {
    const Scratch<char> buffers(bytes_of_buffers(program));
    Pass(program, buffers).run(begin, end);
  });
}

void read(const Program& program, int64_t first, int64_t n, char* to) {
  const Scratch<char> buffers(bytes_of_buffers(program));
  const Slot& given = program.slots[static_cast<size_t>(program.given)];
  Pass(program, buffers, to - first * itemsize(given.dtype)).run(first, first + n);
}

}  // namespace

const ProgramRunner program_runner = {run, read};

}  // namespace rushlight::cpu::RL_ISA
