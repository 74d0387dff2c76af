// Makes a program of a chain: what each needed step reads and writes, in which dtypes, and where
// that lies.
#include "cpu/program_builder.h"

#include "kernels/read_element.h"

namespace rushlight::cpu {

namespace {

// A number as `wanted`, a float.
float number_of(const Leaf& leaf, ScalarType wanted) {
  return visit_dtype<set_all>("compile", leaf.dtype, [&](auto tag) -> float {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_v<T>) {
      return 0;  // is_light() has refused it
    } else {
      const auto x = convert<float>(read_element(reinterpret_cast<const T*>(leaf.number)));
      return wanted == kBFloat16 ? convert<float>(convert<BFloat16>(x))
             : wanted == kHalf   ? convert<float>(convert<Half>(x))
                                 : x;
    }
  });
}
bool is_small_float(ScalarType dtype) { return dtype == kBFloat16 || dtype == kHalf; }
bool is_light_float(ScalarType dtype) { return dtype == kFloat32 || is_small_float(dtype); }
JitSlot jit_slot(ScalarType dtype) {
  return dtype == kBool       ? JitSlot::Bool
         : dtype == kBFloat16 ? JitSlot::BFloat16
         : dtype == kHalf     ? JitSlot::Half
                              : JitSlot::Float;
}
float attribute_of(const Step& step, int index) {
  float attribute = 0;
  std::memcpy(&attribute, step.attributes + static_cast<size_t>(index) * 4, sizeof attribute);
  return attribute;
}

}  // namespace

void ProgramBuilder::build() {
  begin();
  find_needed();
  find_shape();
  add_steps();
}

bool ProgramBuilder::build_reader(int step) {
  only_ = step;
  begin();
  find_needed();
  int64_t whole = 0;  // operands of the chain's size, which are read once more
  uint64_t seen = 0;
  for (size_t i = 0; i < chain_.steps.size(); i++) {
    if (!is_needed(i)) {
      continue;
    }
    const Step& one = chain_.steps[i];
    if (!is_light(one) || jit_is_heavy(one.light)) {
      return false;
    }
    for (int k = 0; k < one.num_inputs(); k++) {
      const Input& in = one.in[k];
      const auto at = static_cast<size_t>(in.index);
      if (!in.is_step && chain_.leaves[at].linear && (seen >> (at % 64) & 1) == 0) {
        seen |= uint64_t{1} << at % 64;
        whole++;
      }
    }
  }
  constexpr int64_t most = 3;
  if (whole > most) {
    return false;
  }
  find_shape();
  add_steps();
  return true;
}

void ProgramBuilder::begin() {
  program_.slots.clear();
  program_.instructions.clear();
  program_.strided.clear();
  program_.fused.clear();
  program_.num_singles = 0;
  program_.num_row_buffers = 0;
  program_.numel = chain_.numel;
  program_.given = -1;
  program_.is_final = true;
  leaf_slots_.assign(chain_.leaves.size(), -1);
  step_slots_.assign(chain_.steps.size(), -1);
  parts_.assign(chain_.steps.size(), -1);
  spread_.clear();
}

void ProgramBuilder::add_steps() {
  begin_joins();
  for (size_t i = 0; i < chain_.steps.size();) {
    if (!is_needed(i)) {
      i++;
      continue;
    }
    width_ = chain_.steps[i].width;
    size_t end = i;
    while (end < chain_.steps.size() && (!is_needed(end) || (is_light(chain_.steps[end]) &&
                                                             chain_.steps[end].width == width_))) {
      end++;
    }
    end = std::max(end, i + 1);
    if (fuse(i, end)) {
      i = end;
    }
    for (; i < end; i++) {
      if (is_needed(i)) {
        add_one(i);
      }
    }
  }
  width_ = 0;
  keep_row_values();
  find_piece_buffers();
  share_buffers();
  choose_piece();
  find_steps();
}

// ---- programs of equal chains ----

bool ProgramBuilder::key(std::string& key) const {
  const auto add = [&key](const auto& value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  if (chain_.numel * 16 >= stream_threshold) {
    return false;
  }
  key.clear();
  add(chain_.row);
  add(chain_.leaves.size());
  add(chain_.steps.size());
  bool gathers = false;
  for (const Leaf& leaf : chain_.leaves) {
    key += static_cast<char>(leaf.dtype);
    key += !leaf.storage ? 'n' : leaf.linear ? 'm' : 'g';
    add(leaf.width);
    if (leaf.storage && !leaf.linear) {
      gathers = true;
      key.append(reinterpret_cast<const char*>(leaf.strides),
                 static_cast<size_t>(chain_.dim) * sizeof *leaf.strides);
    }
  }
  if (gathers) {  // how dimensions join
    const auto bytes = static_cast<size_t>(chain_.dim) * sizeof *chain_.sizes;
    add(chain_.dim);
    key.append(reinterpret_cast<const char*>(chain_.sizes), bytes);
    key.append(reinterpret_cast<const char*>(chain_.strides), bytes);
  }
  for (const Step& step : chain_.steps) {
    add(step.kernel);
    add(step.fold);
    add(step.width);
    key += static_cast<char>(step.kind);
    key += static_cast<char>(step.inputs);
    key += static_cast<char>(step.on_rows);
    key += static_cast<char>(step.common);
    key += static_cast<char>(step.stored);
    key += step.result != nullptr ? 's' : 'u';
    for (int i = 0; i < step.num_inputs(); i++) {
      key += static_cast<char>(step.in[i].is_step);
      add(step.in[i].index);
    }
  }
  return true;
}

void ProgramBuilder::refresh() {
  program_.numel = chain_.numel;
  find_needed();
  find_shape();
  for (Slot& slot : program_.slots) {
    const auto origin = static_cast<size_t>(slot.origin);
    if (slot.kind == Slot::Kind::Memory || slot.kind == Slot::Kind::RowMemory) {
      slot.address = slot.written ? address_of_result(origin) : address_of_leaf(origin);
    } else if (slot.kind == Slot::Kind::Repeated || slot.kind == Slot::Kind::Single) {
      slot.address = const_cast<char*>(chain_.leaves[origin].number);
    }
  }
  for (Strided& strided : program_.strided) {
    strided.address = address_of_leaf(static_cast<size_t>(strided.origin));
  }
  for (Instruction& step : program_.instructions) {
    if (step.origin >= 0) {
      step.attributes = chain_.steps[static_cast<size_t>(step.origin)].attributes;
    }
  }
  for (Fused& fused : program_.fused) {
    for (size_t i = 0; i < fused.constants.size(); i++) {
      const Fused::Origin from = fused.origins[i];
      fused.constants[i] =
          from.step < 0 ? number_of(chain_.leaves[static_cast<size_t>(from.index)], from.wanted)
                        : attribute_of(chain_.steps[static_cast<size_t>(from.step)], from.index);
    }
  }
}

// Steps whose results somebody can see, and those that they are made from.
void ProgramBuilder::find_needed() {
  needed_ = 0;
  for (size_t i = chain_.steps.size(); i-- > 0;) {
    const Step& step = chain_.steps[i];
    needed_ |= static_cast<uint64_t>(is_seen(i)) << i;
    if (!is_needed(i)) {
      continue;
    }
    for (int k = 0; k < step.num_inputs(); k++) {
      if (step.in[k].is_step) {
        needed_ |= uint64_t{1} << step.in[k].index;
      }
    }
  }
}

// As few dimensions as possible, innermost first; those of all that is gathered join alike.
void ProgramBuilder::find_shape() {
  int dims = 0;
  for (int d = 0; d < chain_.dim; d++) {
    if (chain_.sizes[d] != 1) {
      order_[dims++] = d;
    }
  }
  std::sort(order_, order_ + dims,
            [&](int a, int b) { return chain_.strides[a] < chain_.strides[b]; });
  const bool joins_parts = needs(Step::Kind::Join);  // what parts lie in is no row of theirs
  int last = -1;
  int kept[Strided::max_dims];
  for (int i = 0; i < dims; i++) {
    const int d = order_[i];
    const bool joins =
        last >= 0 && !(joins_parts && program_.shape[last] == chain_.row) &&
        std::all_of(chain_.leaves.begin(), chain_.leaves.end(), [&](const Leaf& leaf) {
          return !leaf.storage || leaf.linear ||
                 leaf.strides[d] == leaf.strides[kept[last]] * program_.shape[last];
        });
    if (joins) {
      program_.shape[last] *= chain_.sizes[d];
    } else {
      kept[++last] = d;
      program_.shape[last] = chain_.sizes[d];
    }
  }
  if (last < 0) {
    kept[++last] = 0;
    program_.shape[0] = 1;
  }
  program_.dim = last + 1;
  std::copy_n(kept, program_.dim, order_);
  find_rows();
}
bool ProgramBuilder::needs(Step::Kind kind) const {
  for (size_t i = 0; i < chain_.steps.size(); i++) {
    if (is_needed(i) && chain_.steps[i].kind == kind) {
      return true;
    }
  }
  return false;
}

// What a row is: what steps fold or join, or else the innermost dimension of tensors that are
// broadcast or part of others.
void ProgramBuilder::find_rows() {
  whole_rows_ = needs(Step::Kind::Fold) || needs(Step::Kind::Join);
  const int64_t inner = program_.shape[0];
  rows_lie_ = inner % least_piece == 0 && (whole_rows_ ? inner == chain_.row : program_.dim > 1);
  const bool broadcasts =
      rows_lie_ && std::any_of(chain_.leaves.begin(), chain_.leaves.end(), [&](const Leaf& leaf) {
        return leaf.storage && !leaf.linear && lies_in_rows(leaf);
      });
  program_.row = whole_rows_ ? chain_.row : broadcasts ? inner : chain_.numel;
  rows_lie_ &= program_.row == inner;
}
bool ProgramBuilder::lies_in_rows(const Leaf& leaf) const {
  const int64_t stride = leaf.strides[order_[0]];
  return stride == 0 || stride == itemsize(leaf.dtype);
}

// ---- runs of light steps ----

// Whether register code can compute it: floats of 32 or 16 bits, computed in float32 or only moved.
bool ProgramBuilder::is_light(const Step& step) const {
  const bool is_bool = step.computed() == kBool;
  if (step.light < 0 || !is_light_float(step.computed_in()) ||
      (is_bool ? step.stored != kBool : !is_light_float(step.stored)) ||
      !(is_bool || step.computed() == kFloat32 || step.computed() == step.stored)) {
    return false;
  }
  for (int i = 0; i < step.num_inputs(); i++) {
    const Input& in = step.in[i];
    const auto at = static_cast<size_t>(in.index);
    const ScalarType dtype = in.is_step ? chain_.steps[at].stored : chain_.leaves[at].dtype;
    const ScalarType wanted = step.wanted(i);
    const bool is_taken = is_number(in) ? is_light_float(wanted) && !is_complex(dtype)
                          : step.kind == Step::Kind::Copy || wanted == kFloat32
                              ? is_light_float(dtype)
                              : dtype == wanted && (wanted == kBool || is_small_float(wanted));
    if (!is_taken) {
      return false;
    }
  }
  return true;
}

// What register code has to round a step's result to: numbers are rounded already.
JitSlot ProgramBuilder::rounded(const Step& step) const {
  const Input& in = step.in[0];
  const auto at = static_cast<size_t>(in.index);
  const bool only_moves =
      step.kind == Step::Kind::Copy
          ? is_number(in) ||
                step.stored == (in.is_step ? chain_.steps[at].stored : chain_.leaves[at].dtype)
          : step.computed() == step.stored;
  return only_moves ? JitSlot::Float : jit_slot(step.stored);
}

// Whether a step from `end` on reads this one.
bool ProgramBuilder::is_read_after(size_t index, size_t end) const {
  for (size_t i = end; i < chain_.steps.size(); i++) {
    const Step& step = chain_.steps[i];
    for (int k = 0; k < step.num_inputs() && is_needed(i); k++) {
      if (step.in[k].is_step && step.in[k].index == static_cast<int16_t>(index)) {
        return true;
      }
    }
  }
  return false;
}

// What code is asked for, and the slots and numbers that it is called with.
struct ProgramBuilder::Run {
  JitRun run;
  Fused fused;
  std::vector<size_t> stored_steps;  // -1 for a slot that is read

  uint8_t read(int16_t slot, JitSlot kind) {
    for (size_t i = 0; i < fused.slots.size(); i++) {
      if (fused.slots[i] == slot) {
        return static_cast<uint8_t>(i);
      }
    }
    return add(slot, kind, static_cast<size_t>(-1));
  }
  // The slot follows when there is code.
  uint8_t store(size_t step, JitSlot kind) { return add(-1, kind, step); }
  uint8_t add(int16_t slot, JitSlot kind, size_t step) {
    fused.slots.push_back(slot);
    fused.written.push_back(slot < 0);
    run.slots.push_back(kind);
    stored_steps.push_back(step);
    return static_cast<uint8_t>(fused.slots.size() - 1);
  }
  JitOperand constant(float value, Fused::Origin origin) {
    fused.constants.push_back(value);
    fused.origins.push_back(origin);
    run.num_constants++;
    return {JitOperand::Kind::Constant, static_cast<uint8_t>(run.num_constants - 1)};
  }
};

// One instruction for the needed steps of a range of light ones; false where there is no code for
// them yet, or they are too few.
bool ProgramBuilder::fuse(size_t begin, size_t end) {
  Run made;
  std::vector<int16_t> values(chain_.steps.size(), -1);  // where they are values of the run
  bool has_row_numbers = false;
  for (size_t i = begin; i < end; i++) {
    if (!is_needed(i)) {
      continue;
    }
    const Step& step = chain_.steps[i];
    if (!is_light(step)) {
      return false;
    }
    JitStep code{static_cast<uint8_t>(step.light), 0, {}};
    code.rounded = rounded(step);
    for (int k = 0; k < step.num_inputs(); k++) {
      const Input& in = step.in[k];
      const auto at = static_cast<size_t>(in.index);
      if (is_number(in)) {
        code.in[code.num_operands++] = made.constant(number_of(chain_.leaves[at], step.wanted(k)),
                                                     {-1, in.index, step.wanted(k)});
      } else if (in.is_step && values[at] >= 0) {
        code.in[code.num_operands++] = {JitOperand::Kind::Value, static_cast<uint8_t>(values[at])};
      } else {
        int16_t slot = value(in);
        const ScalarType dtype = program_.slots[static_cast<size_t>(slot)].dtype;
        slot = dtype == kFloat32 ? slot : elements(slot);
        const JitSlot kind = is_of_rows(slot) ? JitSlot::RowFloat : jit_slot(dtype);
        has_row_numbers |= kind == JitSlot::RowFloat;
        code.in[code.num_operands++] = {JitOperand::Kind::Slot, made.read(slot, kind)};
      }
    }
    for (int k = 0; k < step.num_attributes(); k++) {
      code.in[code.num_operands++] = made.constant(
          attribute_of(step, k), {static_cast<int16_t>(i), static_cast<int16_t>(k), kFloat32});
    }
    const bool read_after = is_read_after(i, end);
    if (is_seen(i) || read_after || parts_[i] >= 0) {
      code.streams = !read_after && step.stored == kFloat32 && streams(i);
      code.store = made.store(i, jit_slot(step.stored));
    }
    values[i] = static_cast<int16_t>(made.run.steps.size());
    made.run.steps.push_back(code);
  }
  constexpr int64_t much = int64_t{1} << 19;
  // One step is worth it where a block would be called for each row, or need conversions.
  const bool converts = std::any_of(made.run.slots.begin(), made.run.slots.end(), [](JitSlot slot) {
    return slot == JitSlot::BFloat16 || slot == JitSlot::Half;
  });
  const size_t least = has_row_numbers || converts || width_ != 0 ? 1 : 2;
  if (made.run.steps.size() < least || made.fused.slots.size() >= JitStep::no_slot) {
    return false;
  }
  const auto work = static_cast<int64_t>(made.run.steps.size()) * chain_.numel;
  made.fused.code = jit_code(made.run, work >= much);
  program_.is_final &= made.fused.code.is_final;
  if (made.fused.code.function == nullptr) {
    return false;
  }
  for (size_t i = 0; i < made.stored_steps.size(); i++) {
    if (!made.fused.written[i]) {
      continue;
    }
    const size_t step = made.stored_steps[i];
    step_slots_[step] = parts_[step] < 0 && is_seen(step) ? seen_memory(step) : kept(step);
    made.fused.slots[i] = step_slots_[step];
  }
  program_.fused.push_back(std::move(made.fused));
  add({Instruction::Kind::Fused, 0, static_cast<int16_t>(program_.fused.size() - 1), {}});
  return true;
}

// ---- single steps ----

void ProgramBuilder::add_one(size_t index) {
  switch (chain_.steps[index].kind) {
    case Step::Kind::Formula:
      return add_formula(index);
    case Step::Kind::Copy:
      return add_copy(index);
    case Step::Kind::Fold:
      return add_fold(index);
    case Step::Kind::Join:
      return stream_result(index);
  }
}

void ProgramBuilder::add_formula(size_t index) {
  const Step& step = chain_.steps[index];
  const PointwiseKernel& kernel = *step.kernel;
  Instruction compute{Instruction::Kind::Compute, kernel.num_inputs, 0, {}, nullptr, nullptr};
  compute.block = choose_block(step, compute.in);
  compute.attributes = step.attributes;
  compute.origin = static_cast<int16_t>(index);
  const ScalarType result = kernel.result(step.common);
  if (step.on_rows) {
    compute.on_rows = true;
    compute.out = row_buffer(result);
    add(compute);
    step_slots_[index] = compute.out;
    forget_rows();
    return;
  }
  compute.out = result == step.stored ? kept(index) : buffer(result);
  add(compute);
  step_slots_[index] = compute.out;
  if (result != step.stored) {
    step_slots_[index] = kept(index);
    add({Instruction::Kind::Convert, 1, step_slots_[index], {compute.out}});
  }
  stream_result(index);
}

void ProgramBuilder::add_copy(size_t index) {
  const Step& step = chain_.steps[index];
  const Input& in = step.in[0];
  const int16_t from =
      is_number(in) || !is_kept(index) ? read(in, step.stored) : elements(value(in));
  const auto kind = program_.slots[static_cast<size_t>(from)].kind;
  // What lies in memory that the chain writes later on is read now.
  const bool may_change =
      !in.is_step && (kind == Slot::Kind::Memory || kind == Slot::Kind::Rows) &&
      std::any_of(chain_.steps.begin(), chain_.steps.end(), [&](const Step& other) {
        return other.result == chain_.leaves[static_cast<size_t>(in.index)].storage.get();
      });
  step_slots_[index] = from;
  if (is_kept(index) || may_change) {
    step_slots_[index] = kept(index);
    add({Instruction::Kind::Convert, 1, step_slots_[index], {from}});
  }
  stream_result(index);
}

// Where the value of a step is kept in its stored dtype.
int16_t ProgramBuilder::kept(size_t index) {
  return parts_[index] >= 0 ? parts_[index]
         : is_kept(index)   ? seen_memory(index)
                            : buffer(chain_.steps[index].stored);
}

void ProgramBuilder::stream_result(size_t index) {
  if (is_seen(index) && streams(index)) {
    add({Instruction::Kind::Stream, 1, seen_memory(index), {step_slots_[index]}});
  }
}

// ---- joined rows ----

// Parts of joined rows are computed where they are to be.
void ProgramBuilder::begin_joins() {
  width_ = 0;
  for (size_t i = 0; i < chain_.steps.size(); i++) {
    const Step& step = chain_.steps[i];
    if (!is_needed(i) || step.kind != Step::Kind::Join) {
      continue;
    }
    const int16_t whole = step_slots_[i] = kept(i);
    int64_t first = 0;
    for (int k = 0; k < step.num_inputs(); k++) {
      const auto part = static_cast<size_t>(step.in[k].index);
      Slot slot{Slot::Kind::Buffer, false, step.stored, step.stored};
      slot.within = whole;
      slot.first = first;
      slot.width = chain_.steps[part].width;
      first += slot.width;
      program_.slots.push_back(slot);
      parts_[part] = static_cast<int16_t>(program_.slots.size() - 1);
    }
  }
}

// ---- rows ----

void ProgramBuilder::add_fold(size_t index) {
  const Step& step = chain_.steps[index];
  Instruction fold{Instruction::Kind::Fold, 1, 0, {elements(value(step.in[0]))}};
  fold.fold = step.fold;
  fold.attributes = step.attributes;
  fold.origin = static_cast<int16_t>(index);
  fold.out = row_buffer(step.stored);
  add(fold);
  step_slots_[index] = fold.out;
}

// What was brought for one row after the other is brought again behind an instruction on rows.
void ProgramBuilder::forget_rows() {
  spread_.clear();
  for (int16_t& slot : leaf_slots_) {
    if (slot >= 0 && program_.slots[static_cast<size_t>(slot)].kind == Slot::Kind::Buffer) {
      slot = -1;
    }
  }
}

// Brings values of rows to where they are wanted.
void ProgramBuilder::keep_row_values() {
  for (size_t i = 0; i < chain_.steps.size(); i++) {
    const Step& step = chain_.steps[i];
    if (!step.on_rows || !is_seen(i)) {
      continue;
    }
    program_.slots.push_back({Slot::Kind::RowMemory, true, step.stored, step.stored, -1,
                              static_cast<int16_t>(i), address_of_result(i)});
    Instruction keep{Instruction::Kind::Keep,
                     1,
                     static_cast<int16_t>(program_.slots.size() - 1),
                     {step_slots_[i]}};
    keep.on_rows = true;
    add(keep);
  }
}

// What is in a slot, over all elements of each row where it has one for a row.
int16_t ProgramBuilder::elements(int16_t slot) {
  if (!is_of_rows(slot)) {
    return slot;
  }
  for (const Spread& known : spread_) {
    if (known.of_rows == slot && known.width == width_) {
      return known.slot;
    }
  }
  const int16_t spread = buffer(program_.slots[static_cast<size_t>(slot)].dtype);
  add({Instruction::Kind::Spread, 1, spread, {slot}});
  spread_.push_back({slot, width_, spread});
  return spread;
}

int16_t ProgramBuilder::row_buffer(ScalarType dtype) {
  program_.slots.push_back({Slot::Kind::RowBuffer, false, dtype, dtype,
                            static_cast<int16_t>(program_.num_row_buffers++), -1, nullptr});
  return static_cast<int16_t>(program_.slots.size() - 1);
}

// The slots that a step's block reads, and the block: one that takes a number as it is where there
// is one.
Block ProgramBuilder::choose_block(const Step& step, int16_t* in) {
  const PointwiseKernel& kernel = *step.kernel;
  Block block = kernel.blocks[static_cast<int>(step.common)];
  int single = -1;
  const auto is_single = [&](const Input& input) {
    if (is_number(input)) {
      return true;
    }
    const int16_t slot = step.on_rows ? int16_t{-1} : value(input);
    return slot >= 0 && is_of_rows(slot) &&
           program_.slots[static_cast<size_t>(slot)].dtype == kFloat32;
  };
  for (int i = 0; i < 2 && kernel.num_inputs == 2 && step.common == kFloat32; i++) {
    if (is_single(step.in[i]) && !is_single(step.in[1 - i]) && kernel.with_number[i] != nullptr) {
      block = kernel.with_number[i];
      single = i;
    }
  }
  for (int i = 0; i < kernel.num_inputs; i++) {
    const ScalarType wanted = kernel.wanted(i, step.common);
    const Input& input = step.in[i];
    if (!is_number(input) && (step.on_rows || i == single)) {
      in[i] = value(input);
    } else {
      in[i] = i == single ? number(input.index, wanted, Slot::Kind::Single) : read(input, wanted);
    }
  }
  return block;
}

// ---- slots ----

int16_t ProgramBuilder::read(const Input& input, ScalarType wanted) {
  if (is_number(input)) {
    return number(input.index, wanted, Slot::Kind::Repeated);
  }
  return converted(elements(value(input)), wanted);
}

// Where an input is in its stored dtype; maybe an element for each row.
int16_t ProgramBuilder::value(const Input& input) {
  return input.is_step ? step_slots_[static_cast<size_t>(input.index)] : read_leaf(input.index);
}

int16_t ProgramBuilder::read_leaf(int index) {
  int16_t& slot = leaf_slots_[static_cast<size_t>(index)];
  if (slot >= 0) {
    return slot;
  }
  const Leaf& leaf = chain_.leaves[static_cast<size_t>(index)];
  char* const address = address_of_leaf(static_cast<size_t>(index));
  if (leaf.linear) {
    return slot = memory(address, leaf.dtype, false, static_cast<size_t>(index));
  }
  Strided strided{address, static_cast<int16_t>(index), itemsize(leaf.dtype), {}};
  for (int d = 0; d < program_.dim; d++) {
    strided.strides[d] = chain_.dim == 0 ? 0 : leaf.strides[order_[d]];
  }
  program_.strided.push_back(strided);
  const auto which = static_cast<int16_t>(program_.strided.size() - 1);
  if (rows_lie_ && lies_in_rows(leaf)) {
    const bool one = strided.strides[0] == 0;
    program_.slots.push_back({one ? Slot::Kind::RowNumbers : Slot::Kind::Rows, false, leaf.dtype,
                              leaf.dtype, which, static_cast<int16_t>(index), nullptr});
    return slot = static_cast<int16_t>(program_.slots.size() - 1);
  }
  slot = buffer(leaf.dtype);
  add({Instruction::Kind::Gather, 1, slot, {which}});
  return slot;
}

int16_t ProgramBuilder::converted(int16_t from, ScalarType wanted) {
  if (program_.slots[static_cast<size_t>(from)].dtype == wanted) {
    return from;
  }
  for (const Instruction& done : program_.instructions) {
    if (done.kind == Instruction::Kind::Convert && done.in[0] == from &&
        program_.slots[static_cast<size_t>(done.out)].dtype == wanted) {
      return done.out;
    }
  }
  const int16_t to = buffer(wanted);
  add({Instruction::Kind::Convert, 1, to, {from}});
  return to;
}

int16_t ProgramBuilder::number(int leaf, ScalarType wanted, Slot::Kind kind) {
  const Leaf& from = chain_.leaves[static_cast<size_t>(leaf)];
  char* const address = const_cast<char*>(from.number);
  for (size_t i = 0; i < program_.slots.size(); i++) {
    const Slot& slot = program_.slots[i];
    if (slot.kind == kind && slot.address == address && slot.dtype == wanted) {
      return static_cast<int16_t>(i);
    }
  }
  program_.slots.push_back(
      {kind, false, wanted, from.dtype, -1, static_cast<int16_t>(leaf), address});
  return static_cast<int16_t>(program_.slots.size() - 1);
}

int16_t ProgramBuilder::seen_memory(size_t index) {
  const ScalarType stored = chain_.steps[index].stored;
  if (only_ < 0) {
    return memory(address_of_result(index), stored, true, index);
  }
  return program_.given = memory(nullptr, stored, true, index);
}

int16_t ProgramBuilder::memory(char* address, ScalarType dtype, bool written, size_t origin) {
  program_.slots.push_back(
      {Slot::Kind::Memory, written, dtype, dtype, -1, static_cast<int16_t>(origin), address});
  return static_cast<int16_t>(program_.slots.size() - 1);
}

int16_t ProgramBuilder::buffer(ScalarType dtype) {
  Slot slot{Slot::Kind::Buffer, false, dtype, dtype};
  slot.width = width_;
  program_.slots.push_back(slot);
  return static_cast<int16_t>(program_.slots.size() - 1);
}

}  // namespace rushlight::cpu
