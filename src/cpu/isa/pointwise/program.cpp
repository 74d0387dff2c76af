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
    for (size_t i = 0; i < at_.size(); i++) {
      const Slot& slot = program.slots[i];
      if (slot.kind == Slot::Kind::Single) {
        at_[i] = buffers + program.num_buffers * program.buffer_bytes + slot.buffer * 16;
        repeat(at_[i], slot, 1);
      } else if (slot.kind != Slot::Kind::Memory) {
        at_[i] = buffers + slot.buffer * program.buffer_bytes;
        if (slot.kind == Slot::Kind::Repeated) {
          repeat(at_[i], slot, program.piece);
        }
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

 private:
  // Whether all that is gathered lies in rows of whole granules, or is one number for each row:
  // then rows are used where they lie.
  bool has_rows() const {
    const int64_t row = program_.shape[0];
    return !program_.strided.empty() && program_.dim > 1 && row % least_piece == 0 &&
           row >= 2 * least_piece &&
           std::all_of(program_.strided.begin(), program_.strided.end(), [](const Strided& from) {
             return from.strides[0] == from.size || from.strides[0] == 0;
           });
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
      char* const out =
          step.kind == Instruction::Kind::Fused ? nullptr : at_[static_cast<size_t>(step.out)];
      switch (step.kind) {
        case Instruction::Kind::Compute: {
          const char* in[max_inputs];
          for (int i = 0; i < step.num_inputs; i++) {
            in[i] = at_[static_cast<size_t>(step.in[i])];
          }
          step.block(out, in, step.attributes, n);
          break;
        }
        case Instruction::Kind::Fused: {
          const Fused& fused = program_.fused[static_cast<size_t>(step.out)];
          char* slots[JitStep::no_slot];
          for (size_t i = 0; i < fused.slots.size(); i++) {
            slots[i] = at_[static_cast<size_t>(fused.slots[i])];
          }
          fused.code.function(slots, fused.constants.data(), n);
          break;
        }
        case Instruction::Kind::Convert: {
          const auto from = static_cast<size_t>(step.in[0]);
          cast_function(program_.slots[static_cast<size_t>(step.out)].dtype,
                        program_.slots[from].dtype)(out, at_[from], n);
          break;
        }
        case Instruction::Kind::Gather:
          bring(step, begin, n, there, rows);
          break;
        case Instruction::Kind::Stream: {
          const auto from = static_cast<size_t>(step.in[0]);
          stream(out, at_[from], n * itemsize(program_.slots[from].dtype));
          break;
        }
      }
    }
  }

  void bring(const Instruction& step, int64_t begin, int64_t n, int64_t there, char* const* rows) {
    const auto which = static_cast<size_t>(step.in[0]);
    const Strided& from = program_.strided[which];
    char*& to = at_[static_cast<size_t>(step.out)];
    if (rows == nullptr) {
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
};

int64_t bytes_of_buffers(const Program& program) {
  return program.num_buffers * program.buffer_bytes + program.num_singles * 16;
}

void run(const Program& program) {
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
