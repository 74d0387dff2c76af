// Where values of a program are between its instructions, and how many elements it works on at a
// time.
#include "cpu/program_builder.h"

namespace rushlight::cpu {

namespace {
constexpr int64_t most_piece = 4096;
}

// A large result in new memory is written past the caches, as eager ops write it.
bool ProgramBuilder::streams(size_t index) const {
  const Step& step = chain_.steps[index];
  return only_ < 0 && step.offset == 0 &&
         chain_.numel * itemsize(step.stored) >= stream_threshold &&
         std::none_of(
             chain_.leaves.begin(), chain_.leaves.end(),
             [&](const Leaf& leaf) { return leaf.storage.get() == step.result; });
}

// Buffers that are read behind an instruction on rows hold all rows of a piece.
void ProgramBuilder::find_piece_buffers() {
  std::vector<int> written_in(program_.slots.size(), 0);
  int part = 0;
  for (const Instruction& step : program_.instructions) {
    part += step.on_rows ? 1 : 0;
    for_each_slot(step, true, [&](size_t slot) { written_in[owner(slot)] = part; });
    for_each_slot(step, false, [&](size_t slot) {
      Slot& read = program_.slots[owner(slot)];
      read.of_piece |= read.kind == Slot::Kind::Buffer && written_in[owner(slot)] != part;
    });
  }
}

// Gives each slot that needs one a buffer, as few as possible: one is free after its last reader. A
// result may take the place of what it is computed from, of one size: blocks work element by
// element.
void ProgramBuilder::share_buffers() {
  std::vector<int> last_read(program_.slots.size(), -1);
  for (size_t i = 0; i < program_.instructions.size(); i++) {
    for_each_slot(program_.instructions[i], false,
                  [&](size_t slot) { last_read[owner(slot)] = static_cast<int>(i); });
  }
  program_.num_buffers = 0;
  program_.num_piece_buffers = 0;
  for (Slot& slot : program_.slots) {
    if (slot.kind == Slot::Kind::Repeated) {
      slot.buffer = static_cast<int16_t>(program_.num_buffers++);
    } else if (slot.kind == Slot::Kind::Single) {
      slot.buffer = static_cast<int16_t>(program_.num_singles++);
    } else if (slot.of_piece) {
      slot.buffer = static_cast<int16_t>(program_.num_piece_buffers++);
    }
  }
  const auto is_shared = [&](size_t slot) {
    return program_.slots[slot].kind == Slot::Kind::Buffer && !program_.slots[slot].of_piece;
  };
  const auto lies_alike = [&](size_t slot, int16_t out) {
    const Slot& other = program_.slots[static_cast<size_t>(out)];
    return itemsize(other.dtype) == itemsize(program_.slots[slot].dtype) &&
           other.width == program_.slots[slot].width && other.within < 0;
  };
  std::vector<int16_t> free;
  const auto take = [&](size_t written) {
    const size_t slot = owner(written);
    if (!is_shared(slot) || program_.slots[slot].buffer >= 0) {
      return;
    }
    if (free.empty()) {
      free.push_back(static_cast<int16_t>(program_.num_buffers++));
    }
    program_.slots[slot].buffer = free.back();
    free.pop_back();
  };
  for (size_t i = 0; i < program_.instructions.size(); i++) {
    const Instruction& step = program_.instructions[i];
    const bool computes = step.kind == Instruction::Kind::Compute;
    const auto give_back = [&](size_t read) {
      const size_t slot = owner(read);
      if (is_shared(slot) && last_read[slot] == static_cast<int>(i)) {
        free.push_back(program_.slots[slot].buffer);
        last_read[slot] = -1;
      }
    };
    for_each_slot(step, false, [&](size_t slot) {
      if (computes && lies_alike(slot, step.out)) {
        give_back(slot);
      }
    });
    for_each_slot(step, true, take);
    for_each_slot(step, false, give_back);
    for_each_slot(step, true, [&](size_t written) {
      const size_t slot = owner(written);
      if (is_shared(slot) && last_read[slot] < 0) {
        free.push_back(program_.slots[slot].buffer);
      }
    });
  }
}

void ProgramBuilder::choose_piece() {
  int64_t size = 1;
  int64_t operands = std::max<int64_t>(program_.num_buffers, 1);
  for (const Slot& slot : program_.slots) {
    const bool is_buffer = slot.kind == Slot::Kind::Buffer || slot.kind == Slot::Kind::Repeated;
    const bool is_memory = slot.kind == Slot::Kind::Memory || slot.kind == Slot::Kind::Rows;
    if (is_buffer || is_memory) {
      size = std::max(size, itemsize(slot.dtype));
    }
    operands += is_memory || slot.of_piece ? 1 : 0;
  }
  const int64_t row_bytes = program_.row * size;
  const int64_t fits = program_bytes / (std::max<int64_t>(program_.num_buffers, 1) * size);
  program_.part = std::clamp(fits - fits % least_piece, least_piece, most_piece);
  program_.rows_at_once = std::clamp<int64_t>(program_bytes / (operands * row_bytes), 1, most_rows);
  if (whole_rows_) {
    program_.piece_rows =
        std::clamp<int64_t>(piece_bytes / (operands * row_bytes), program_.rows_at_once, most_rows);
  } else {
    program_.piece_rows = program_.row > program_.part ? 0 : program_.rows_at_once;
  }
  if (program_.piece_rows != 0) {
    program_.buffer_bytes = program_.rows_at_once * row_bytes;
    program_.grain = std::max<int64_t>(TensorIterator::default_grain / program_.row, 1);
    return;
  }
  program_.buffer_bytes = program_.part * size;
  const auto steps = static_cast<int64_t>(program_.instructions.size());
  const int64_t grain = TensorIterator::default_grain * 2 / std::max<int64_t>(steps, 2);
  program_.grain = std::max(grain - grain % most_piece, most_piece);
}

// How far it is from row to row.
void ProgramBuilder::find_steps() {
  for (Slot& slot : program_.slots) {
    if (slot.kind == Slot::Kind::Rows || slot.kind == Slot::Kind::RowNumbers) {
      slot.step = program_.strided[static_cast<size_t>(slot.buffer)].strides[1];
    } else if (slot.kind != Slot::Kind::Single) {
      const bool is_part = slot.width != 0 && slot.within < 0;
      slot.step = itemsize(slot.dtype) * (slot.is_of_rows() ? 1
                                          : is_part         ? slot.width
                                                            : program_.row);
    }
  }
  for (Instruction& step : program_.instructions) {
    const int64_t row = step.width != 0 ? step.width : program_.row;
    const auto look = [&](size_t at) {
      const Slot& slot = program_.slots[at];
      step.by_rows |= slot.is_of_rows() ||
                      (slot.kind != Slot::Kind::Single && slot.step != itemsize(slot.dtype) * row);
    };
    for_each_slot(step, false, look);
    for_each_slot(step, true, look);
    step.by_rows &= !step.on_rows;
  }
}

}  // namespace rushlight::cpu
