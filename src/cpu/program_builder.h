// A chain of noted formulas, and what makes a program of it.
#pragma once

#include <cstring>

#include <rushlight/storage.h>

#include "cpu/program.h"

namespace rushlight::cpu {

// What a chain reads: memory, or a number where there is no storage.
struct Leaf {
  Storage storage;
  alignas(16) char number[16];
  ScalarType dtype;
  bool linear = false;                 // it lies as the chain's results do
  int64_t width = 0;                   // elements of a row, where that is less than the chain's
  int64_t offset = 0;                  // bytes
  int64_t strides[Strided::max_dims];  // bytes, by dimension of the chain

  bool same_as(const Leaf& o, int64_t dim) const {
    return storage == o.storage && dtype == o.dtype && offset == o.offset && width == o.width &&
           std::equal(strides, strides + dim, o.strides);
  }
};

struct Input {
  bool is_step;  // or a leaf
  int16_t index;
};

struct Step {
  enum class Kind : uint8_t {
    Formula,
    Copy,  // of its input, converted
    Fold,  // rows of its input, to one element each; the formula is in `attributes`
    Join,  // its inputs' rows one after the other; they are steps of this one's alone
  };
  Kind kind = Kind::Formula;
  bool on_rows = false;  // its value has an element for each row
  const PointwiseKernel* kernel = nullptr;
  RowFold fold = nullptr;
  int64_t width = 0;   // elements of a row, where that is less than the chain's
  ScalarType common;   // that of the result where there is no formula
  ScalarType stored;   // the dtype of the result
  int16_t light = -1;  // its number among the formulas of register code (jit.h), or -1
  Input in[max_inputs];
  int8_t inputs = 1;
  int num_inputs() const { return inputs; }
  int num_attributes() const { return kernel == nullptr ? 0 : kernel->num_attributes; }
  ScalarType wanted(int i) const { return kernel == nullptr ? common : kernel->wanted(i, common); }
  ScalarType computed_in() const { return kernel == nullptr ? common : kernel->compute(common); }
  ScalarType computed() const { return kernel == nullptr ? common : kernel->result(common); }
  StorageImpl* result = nullptr;  // of this value; null when nobody can see it any more
  int64_t offset = 0;             // bytes
  alignas(16) char attributes[max_attributes * 16];
};

struct Chain {
  int64_t dim = 0;
  int64_t sizes[Strided::max_dims];
  int64_t strides[Strided::max_dims];  // of the results, dense
  int64_t numel = 0;
  // Elements of the rows that steps fold, or join of parts: of the last dimensions; 0: none does.
  int64_t row = 0;
  int64_t rows() const { return row == 0 ? 0 : numel / row; }
  int64_t elements_of(const Step& step) const {
    return step.on_rows ? rows() : step.width != 0 ? rows() * step.width : numel;
  }
  std::vector<Step> steps;
  std::vector<Leaf> leaves;
};

class ProgramBuilder {
 public:
  using Address = char* (*)(const StorageImpl*);

  ProgramBuilder(const Chain& chain, Program& program, Address address)
      : chain_(chain), program_(program), address_(address) {}
  // Computes what somebody can see.
  void build();
  // A key of what build() makes: equal keys, equal programs, but for what refresh() brings. False
  // where there is so much to do that making it costs nothing.
  bool key(std::string& key) const;
  // Brings the addresses and numbers of this chain into the program of one with the same key.
  void refresh();
  // Computes one step's value for who reads it, and nothing else; false where that is better
  // computed once and kept.
  bool build_reader(int step);

 private:
  void begin();
  void add_steps();
  // Whether the program gives this step's value to somebody, and where.
  bool is_seen(size_t step) const {
    return only_ < 0 ? chain_.steps[step].result != nullptr : static_cast<int>(step) == only_;
  }
  int16_t seen_memory(size_t step);
  // A leaf without memory.
  bool is_number(const Input& input) const {
    return !input.is_step && !chain_.leaves[static_cast<size_t>(input.index)].storage;
  }
  // The slots that an instruction reads or writes.
  template <class F>
  void for_each_slot(const Instruction& step, bool written, const F& f) const {
    if (step.kind == Instruction::Kind::Fused) {
      const Fused& fused = program_.fused[static_cast<size_t>(step.out)];
      for (size_t k = 0; k < fused.slots.size(); k++) {
        if (fused.written[k] == written) {
          f(static_cast<size_t>(fused.slots[k]));
        }
      }
    } else if (written) {
      f(static_cast<size_t>(step.out));
    } else if (step.kind != Instruction::Kind::Gather) {
      std::for_each(step.in, step.in + step.num_inputs,
                    [&](int16_t slot) { f(static_cast<size_t>(slot)); });
    }
  }
  char* address_of_leaf(size_t leaf) const {
    return address_(chain_.leaves[leaf].storage.get()) + chain_.leaves[leaf].offset;
  }
  char* address_of_result(size_t step) const {
    return address_(chain_.steps[step].result) + chain_.steps[step].offset;
  }
  void find_needed();
  bool is_needed(size_t step) const { return (needed_ >> step & 1) != 0; }
  void find_shape();
  void find_rows();
  bool needs(Step::Kind kind) const;
  bool lies_in_rows(const Leaf& leaf) const;
  bool is_light(const Step& step) const;
  JitSlot rounded(const Step& step) const;
  bool is_read_after(size_t index, size_t end) const;
  bool fuse(size_t begin, size_t end);
  struct Run;
  void add_one(size_t index);
  void add_formula(size_t index);
  void stream_result(size_t index);
  int16_t read(const Input& input, ScalarType wanted);
  int16_t value(const Input& input);
  void add_fold(size_t index);
  void add_copy(size_t index);
  void begin_joins();
  void forget_rows();
  void keep_row_values();
  void find_piece_buffers();
  bool is_of_rows(int16_t slot) const {
    return program_.slots[static_cast<size_t>(slot)].is_of_rows();
  }
  int16_t elements(int16_t slot);
  int16_t row_buffer(ScalarType dtype);
  int16_t read_leaf(int index);
  int16_t number(int leaf, ScalarType wanted, Slot::Kind kind);
  int16_t memory(char* address, ScalarType dtype, bool written, size_t origin);
  int16_t buffer(ScalarType dtype);
  // Whether a value has a place of its own, in which it is computed.
  bool is_kept(size_t step) const { return parts_[step] >= 0 || (is_seen(step) && !streams(step)); }
  int16_t kept(size_t step);
  size_t owner(size_t slot) const {
    const int16_t within = program_.slots[slot].within;
    return within < 0 ? slot : static_cast<size_t>(within);
  }
  void add(Instruction step) {
    step.width = width_;
    program_.instructions.push_back(step);
  }
  int16_t converted(int16_t from, ScalarType wanted);
  Block choose_block(const Step& step, int16_t* in);
  bool streams(size_t step) const;
  void share_buffers();
  void choose_piece();
  void find_steps();

  const Chain& chain_;
  Program& program_;
  const Address address_;
  int only_ = -1;                    // the one step that is seen
  uint64_t needed_ = 0;              // steps, by bits
  bool whole_rows_ = false;          // rows are folded, or joined
  bool rows_lie_ = false;            // rows are what tensors have together
  int64_t width_ = 0;                // of the step that is added
  std::vector<int16_t> leaf_slots_;  // -1: not read yet
  std::vector<int16_t> step_slots_;  // where a value is in its stored dtype
  std::vector<int16_t> parts_;       // of a joined value: where a step's is to be; or -1
  struct Spread {
    int16_t of_rows;
    int64_t width;
    int16_t slot;
  };
  std::vector<Spread> spread_;    // where elements of rows are all over them
  int order_[Strided::max_dims];  // dimensions, innermost first
};

}  // namespace rushlight::cpu
