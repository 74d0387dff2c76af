// The pass of a program: rows, several at a time, and parts of long ones, of whole granules where
// operands lie; then the few elements that are left over, which go through the same instructions in
// padded copies, so that the bits of an element do not depend on where it stands.
#include "cpu/program.h"

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
          at_[i] = slot.within >= 0 ? nullptr
                   : slot.of_piece  ? piece_buffers + slot.buffer * piece_buffer_bytes(program)
                                    : buffers + slot.buffer * program.buffer_bytes;
          break;
        case Slot::Kind::Repeated:
          at_[i] = buffers + slot.buffer * program.buffer_bytes;
          repeat(at_[i], slot, program.buffer_bytes / itemsize(slot.dtype));
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
        case Slot::Kind::Rows:
        case Slot::Kind::RowMemory:
        case Slot::Kind::RowNumbers:
          break;
      }
    }
    base_ = at_;
  }

  void run(int64_t begin, int64_t end) {
    constexpr int64_t much = int64_t{8} << 20;  // bytes that no cache holds from step to step
    last_prefetched_ = program_.numel * 4 >= much ? end : 0;
    const int64_t row = program_.row;
    while (begin < end) {
      const int64_t left = row - begin % row;  // of this row
      if (program_.piece_rows != 0 && left == row && end - begin >= row) {
        const int64_t rows = std::min(program_.piece_rows, (end - begin) / row);
        run_piece(begin, rows);
        begin += rows * row;
        continue;
      }
      const int64_t n = std::min({program_.part, left, end - begin});
      const int64_t whole = n - n % least_piece;
      if (whole != 0) {
        bring(begin, 0);
        run_all(begin, {whole, whole, 1});
      } else {
        run_rest(begin, n);
      }
      begin += whole != 0 ? whole : n;
    }
  }

  static int64_t piece_buffer_bytes(const Program& program) {
    return program.piece_rows * (program.buffer_bytes / program.rows_at_once);
  }

 private:
  // What instructions work on at a time: rows of n elements, of which the first `there` exist.
  struct Extent {
    int64_t n;
    int64_t there;
    int64_t rows;
  };

  // Rows from element `begin` on. All of them go through the instructions up to the next one on the
  // elements of rows.
  void run_piece(int64_t begin, int64_t rows) {
    const std::vector<Instruction>& steps = program_.instructions;
    const int64_t row = program_.row;
    for (size_t first = 0; first < steps.size();) {
      if (steps[first].on_rows) {
        run_on_rows(steps[first++], begin / row, rows);
        continue;
      }
      const auto last = static_cast<size_t>(
          std::find_if(steps.begin() + static_cast<std::ptrdiff_t>(first), steps.end(),
                       [](const Instruction& step) { return step.on_rows; }) -
          steps.begin());
      for (int64_t r = 0; r < rows;) {
        const int64_t element = begin + r * row;
        const int64_t together = bring(element, r);
        const Extent extent{row, row, std::min({program_.rows_at_once, rows - r, together})};
        for (size_t i = first; i < last; i++) {
          run_instruction(steps[i], element, extent);
        }
        r += extent.rows;
      }
      first = last;
    }
  }

  void run_on_rows(const Instruction& step, int64_t first, int64_t rows) {
    if (step.kind == Instruction::Kind::Keep) {
      const Slot& out = program_.slots[static_cast<size_t>(step.out)];
      std::memcpy(out.address + first * out.step, base_[static_cast<size_t>(step.in[0])],
                  static_cast<size_t>(rows * out.step));
      return;
    }
    const char* in[max_inputs];
    for (int i = 0; i < step.num_inputs; i++) {
      in[i] = base_[static_cast<size_t>(step.in[i])];
    }
    step.block(base_[static_cast<size_t>(step.out)], in, step.attributes, most_rows);
  }

  // What comes next is asked for while this is worked on: the processor does not see that it will.
  static void prefetch(const char* from, int64_t bytes) {
    constexpr int64_t line = 64;
    for (int64_t i = 0; i < bytes; i += line) {
      __builtin_prefetch(from + i, 0, 2);
    }
  }

  // Where the slots have the elements from `begin` on, row `r` of a piece. Returns how many rows
  // follow each other as the slots' steps say.
  int64_t bring(int64_t begin, int64_t r) {
    Cursor cursor;
    int64_t together = most_rows;
    if (!program_.strided.empty()) {
      seek(cursor, begin);
      together = program_.dim > 2 ? program_.shape[1] - cursor.at[1] : together;
    }
    for (size_t i = 0; i < at_.size(); i++) {
      const Slot& slot = program_.slots[i];
      switch (slot.kind) {
        case Slot::Kind::Memory: {
          at_[i] = memory(i) + begin * itemsize(slot.dtype);
          const int64_t bytes = program_.rows_at_once * slot.step;
          if (begin + program_.rows_at_once * program_.row < last_prefetched_ &&
              program_.piece_rows != 0) {
            prefetch(at_[i] + bytes, bytes);
          }
          break;
        }
        case Slot::Kind::Rows:
        case Slot::Kind::RowNumbers: {
          const Strided& from = program_.strided[static_cast<size_t>(slot.buffer)];
          at_[i] = const_cast<char*>(from.address) + offset(from, cursor);
          break;
        }
        case Slot::Kind::RowBuffer:
          at_[i] = base_[i] + r * slot.step;
          break;
        case Slot::Kind::Buffer:
          at_[i] = slot.within >= 0
                       ? at_[static_cast<size_t>(slot.within)] + slot.first * itemsize(slot.dtype)
                       : base_[i] + (slot.of_piece ? r * slot.step : 0);
          break;
        case Slot::Kind::RowMemory:
        case Slot::Kind::Repeated:
        case Slot::Kind::Single:
          break;
      }
    }
    return together;
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

  void run_all(int64_t begin, const Extent& extent) {
    for (const Instruction& step : program_.instructions) {
      run_instruction(step, begin, extent);
    }
  }

  // Calls f(out, in, n) for what lies together: all rows, or each.
  template <class F>
  void for_runs(const Instruction& step, const Extent& extent, const F& f) const {
    const auto out = static_cast<size_t>(step.out);
    char* to = at_[out];
    const char* in[max_inputs];
    for (int i = 0; i < step.num_inputs; i++) {
      in[i] = at_[static_cast<size_t>(step.in[i])];
    }
    if (!step.by_rows) {
      return f(to, in, extent.n * extent.rows);
    }
    for (int64_t r = 0;; r++) {
      f(to, in, extent.n);
      if (r + 1 == extent.rows) {
        return;
      }
      to += program_.slots[out].step;
      for (int i = 0; i < step.num_inputs; i++) {
        in[i] += program_.slots[static_cast<size_t>(step.in[i])].step;
      }
    }
  }

  void run_instruction(const Instruction& step, int64_t begin, Extent extent) {
    if (step.width != 0) {
      extent.n = extent.there = step.width;
    }
    if (step.kind == Instruction::Kind::Fused) {
      return run_fused(step, extent);
    }
    const auto out = static_cast<size_t>(step.out);
    if (step.kind == Instruction::Kind::Gather) {
      const Strided& from = program_.strided[static_cast<size_t>(step.in[0])];
      gather(from, at_[out], begin, extent.there * extent.rows);
      return pad(at_[out], from.size, extent.there, extent.n);
    }
    const Slot& from = program_.slots[static_cast<size_t>(step.in[0])];
    const int64_t size = itemsize(from.dtype);
    switch (step.kind) {
      case Instruction::Kind::Compute:
        for_runs(step, extent, [&](char* to, const char* const* in, int64_t n) {
          step.block(to, in, step.attributes, n);
        });
        break;
      case Instruction::Kind::Convert: {
        const Cast cast = cast_function(program_.slots[out].dtype, from.dtype);
        for_runs(step, extent,
                 [&](char* to, const char* const* in, int64_t n) { cast(to, in[0], n); });
        break;
      }
      case Instruction::Kind::Stream:
        for_runs(step, extent,
                 [&](char* to, const char* const* in, int64_t n) { stream(to, in[0], n * size); });
        break;
      case Instruction::Kind::Fold:
        step.fold(step.attributes, at_[static_cast<size_t>(step.in[0])], from.step, extent.n,
                  extent.rows, at_[out]);
        break;
      case Instruction::Kind::Spread:
        for_runs(step, extent,
                 [&](char* to, const char* const* in, int64_t n) { fill(to, in[0], size, n); });
        break;
      case Instruction::Kind::Fused:
      case Instruction::Kind::Gather:
      case Instruction::Kind::Keep:
        break;
    }
  }

  void run_fused(const Instruction& step, const Extent& extent) {
    const Fused& fused = program_.fused[static_cast<size_t>(step.out)];
    char* slots[JitStep::no_slot];
    int64_t steps[JitStep::no_slot];
    for (size_t i = 0; i < fused.slots.size(); i++) {
      const auto slot = static_cast<size_t>(fused.slots[i]);
      slots[i] = at_[slot];
      steps[i] = program_.slots[slot].step;
    }
    if (step.by_rows) {
      fused.code.function(slots, steps, fused.constants.data(), extent.n, extent.rows);
    } else {
      fused.code.function(slots, steps, fused.constants.data(), extent.n * extent.rows, 1);
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
    bring(begin, 0);
    std::vector<char*> lies = at_;
    char* copy = copies;
    for (size_t i = 0; i < at_.size(); i++, copy += rest_bytes) {
      const Slot& slot = program_.slots[i];
      if (slot.kind == Slot::Kind::Memory || slot.kind == Slot::Kind::Rows) {
        const int64_t size = itemsize(slot.dtype);
        at_[i] = copy;
        if (!slot.written) {
          std::memcpy(copy, lies[i], static_cast<size_t>(n * size));
          pad(copy, size, n, least_piece);
        }
      }
    }
    run_all(begin, {least_piece, n, 1});
    for (size_t i = 0; i < at_.size(); i++) {
      const Slot& slot = program_.slots[i];
      if (slot.kind == Slot::Kind::Memory && slot.written) {
        std::memcpy(lies[i], at_[i], static_cast<size_t>(n * itemsize(slot.dtype)));
      }
    }
  }

  const Program& program_;
  std::vector<char*> at_;        // of each slot, the elements that are worked on
  std::vector<char*> base_;      // of buffers, the first
  char* const given_;            // where element 0 of the given slot would be
  int64_t last_prefetched_ = 0;  // element, of those of this thread
};

int64_t bytes_of_buffers(const Program& program) {
  return program.num_buffers * program.buffer_bytes + program.num_singles * 16 +
         program.num_row_buffers * row_bytes +
         program.num_piece_buffers * Pass::piece_buffer_bytes(program);
}

void run(const Program& program) {
  const int64_t unit = program.piece_rows != 0 ? program.row : 1;
  parallel_for(0, program.numel / unit, program.grain, [&](int64_t begin, int64_t end) {
    const Scratch<char> buffers(bytes_of_buffers(program));
    Pass(program, buffers).run(begin * unit, end * unit);
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
