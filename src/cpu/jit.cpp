// Which registers values of a run have, and its loop.
#include "cpu/jit.h"

#if defined(__x86_64__)
#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "cpu/jit_formulas.h"

namespace rushlight::cpu {

namespace {

using Xbyak::Xmm;

// The code of one run.
class Generator : public Emitter {
 public:
  explicit Generator(const JitRun& run) : run_(run) {}

  // False where there are not enough registers.
  bool generate();

 private:
  struct Place {
    int8_t reg = -1;
    bool kept = false;  // in its register from row to row, or from element to element
    int last_use = -1;
  };
  // What is the same for all elements has one place, all else one for each copy.
  Place& place_of(const JitOperand& o, size_t copy) {
    return o.kind == JitOperand::Kind::Value      ? values_[o.index * copies_ + copy]
           : o.kind == JitOperand::Kind::Constant ? constants_[o.index]
           : is_row_number(o.index)               ? slots_[o.index * copies_]
                                                  : slots_[o.index * copies_ + copy];
  }
  void find_last_uses();
  bool bring(const JitOperand& o, size_t copy, bool emit);
  bool choose_kept(size_t copies);
  bool walk(bool emit, int* most_live);
  int take() {
    if (free_.empty()) {
      return -1;
    }
    const int reg = free_.back();
    free_.pop_back();
    return reg;
  }
  bool is_row_number(size_t slot) const { return run_.slots[slot] == JitSlot::RowFloat; }
  static bool has_register(size_t slot) { return slot < num_pointers; }
  void give_back(Place& place) {
    if (place.reg >= 0 && !place.kept) {
      free_.push_back(place.reg);
      place.reg = -1;
    }
  }
  void write(const JitStep& step, int out, size_t copy);
  Xbyak::Reg64 pointer(size_t slot);
  Xbyak::Address element(size_t slot, int size, size_t copy);
  void load(size_t slot, int reg, size_t copy);
  void round(const JitStep& step, int reg);
  void store(const JitStep& step, int reg, size_t copy);
  void store_words(const Xbyak::Address& to, const Xmm& lanes);
  void begin();
  bool write_rows();
  void next_row();
  void end();

  static constexpr size_t num_pointers = 9;
  const JitRun& run_;
  // How many vectors go through a step before the next one: a processor sees some tens of
  // instructions ahead, and those of one vector wait for each other.
  size_t copies_ = 1;
  std::vector<Place> values_;
  std::vector<Place> slots_;
  std::vector<Place> constants_;
  std::vector<int> free_;
  int first_unused_ = 0;  // register, from which on the loop takes none
};

// ---- registers ----

void Generator::find_last_uses() {
  values_.assign(run_.steps.size() * copies_, {});
  slots_.assign(run_.slots.size() * copies_, {});
  constants_.assign(run_.num_constants, {});
  for (size_t i = 0; i < run_.steps.size(); i++) {
    const JitStep& step = run_.steps[i];
    for (int k = 0; k < step.num_operands; k++) {
      for (size_t c = 0; c < copies_; c++) {
        place_of(step.in[k], c).last_use = static_cast<int>(i);
      }
    }
  }
}

// False where there is no register for it.
bool Generator::bring(const JitOperand& o, size_t copy, bool emit) {
  Place& place = place_of(o, copy);
  if (place.reg >= 0) {
    return true;
  }
  place.reg = static_cast<int8_t>(take());
  if (place.reg >= 0 && emit && o.kind == JitOperand::Kind::Slot) {
    load(o.index, place.reg, copy);
  } else if (place.reg >= 0 && emit) {
    vbroadcastss(vector(place.reg), ptr[rdx + 4 * o.index]);
  }
  return place.reg >= 0;
}

// Goes over the steps as the loop does; `most_live` gets how many registers they take at once.
bool Generator::walk(bool emit, int* most_live) {
  const auto total = free_.size();
  for (size_t i = 0; i < run_.steps.size(); i++) {
    const JitStep& step = run_.steps[i];
    for (size_t c = 0; c < copies_; c++) {
      for (int k = 0; k < step.num_operands; k++) {
        if (!bring(step.in[k], c, emit)) {
          return false;
        }
      }
      Place& out = values_[i * copies_ + c];
      out.reg = static_cast<int8_t>(take());
      if (out.reg < 0) {
        return false;
      }
    }
    *most_live = std::max(*most_live, static_cast<int>(total - free_.size()));
    for (size_t c = 0; c < copies_ && emit; c++) {
      write(step, values_[i * copies_ + c].reg, c);
    }
    for (size_t c = 0; c < copies_; c++) {
      for (int k = 0; k < step.num_operands; k++) {
        Place& place = place_of(step.in[k], c);
        if (step.in[k].kind == JitOperand::Kind::Constant ||
            place.last_use == static_cast<int>(i)) {
          give_back(place);
        }
      }
      if (Place& out = values_[i * copies_ + c]; out.last_use < 0) {
        give_back(out);
      }
    }
  }
  return true;
}

// As many numbers as fit beside the values stay in registers, those of rows first.
bool Generator::choose_kept(size_t copies) {
  copies_ = copies;
  find_last_uses();
  const auto reset = [&](int from) {
    free_.clear();
    for (int r = num_registers(); r-- > from;) {
      free_.push_back(r);
    }
  };
  int most_live = 0;
  reset(0);
  if (!walk(false, &most_live)) {
    return false;
  }
  int kept = 0;
  const auto keep = [&](Place& place) {
    place.kept = kept < num_registers() - most_live;
    place.reg = static_cast<int8_t>(place.kept ? kept++ : -1);
  };
  for (size_t i = 0; i < run_.slots.size(); i++) {
    if (is_row_number(i)) {
      keep(slots_[i * copies_]);
    }
  }
  for (Place& constant : constants_) {
    keep(constant);
  }
  reset(kept);
  first_unused_ = kept + most_live;
  return true;
}

// ---- code ----

// rdi: slots, rsi: steps, rdx: constants, rcx: n, r8: the element; the rows that are left lie on
// the stack, and addresses of the first slots have registers.
Xbyak::Reg64 Generator::pointer(size_t slot) {
  const Xbyak::Reg64 registers[num_pointers] = {r9, r10, r11, rbx, rbp, r12, r13, r14, r15};
  if (has_register(slot)) {
    return registers[slot];
  }
  mov(rax, ptr[rdi + static_cast<int>(8 * slot)]);
  return rax;
}

// The elements of a slot that a copy has now.
Xbyak::Address Generator::element(size_t slot, int size, size_t copy) {
  const Xbyak::Reg64 base = pointer(slot);
  return ptr[base + r8 * size + size * lanes() * static_cast<int>(copy)];
}

void Generator::load(size_t slot, int reg, size_t copy) {
  const Xmm to = vector(reg);
  switch (run_.slots[slot]) {
    case JitSlot::Float:
      vmovups(to, element(slot, 4, copy));
      return;
    case JitSlot::BFloat16:
      vpmovzxwd(to, element(slot, 2, copy));
      vpslld(to, to, 16);
      return;
    case JitSlot::Half:
      vcvtph2ps(to, element(slot, 2, copy));
      return;
    case JitSlot::RowFloat:
      vbroadcastss(to, ptr[pointer(slot)]);
      return;
    case JitSlot::Bool:
      break;
  }
  vpmovzxbd(to, element(slot, 1, copy));
  if (wide_) {
    vptestmd(k1, to, to);
    vpmovm2d(to, k1);
  } else {
    load_zero(mask());
    vpcmpgtd(to, to, mask());
  }
}

void Generator::write(const JitStep& step, int out, size_t copy) {
  Xmm in[max_inputs + max_attributes];
  for (int k = 0; k < step.num_operands; k++) {
    in[k] = vector(place_of(step.in[k], copy).reg);
  }
  jit_formulas().begin[step.formula].emit(*this, vector(out), in);
  round(step, out);
  store(step, out, copy);
}

void Generator::round(const JitStep& step, int reg) {
  if (step.rounded == JitSlot::BFloat16) {
    round_to_bfloat16(vector(reg));
  } else if (step.rounded == JitSlot::Half) {
    round_to_half(vector(reg));
  }
}

// The low 16 bits of lanes, whose high ones are zeros.
void Generator::store_words(const Xbyak::Address& to, const Xmm& lanes) {
  if (wide_) {
    const Xbyak::Ymm words(lanes.getIdx());
    vpmovdw(words, Xbyak::Zmm(lanes.getIdx()));
    vmovups(to, words);
    return;
  }
  const Xmm low(lanes.getIdx());
  const Xmm high(temporary(1).getIdx());
  vextracti128(high, Xbyak::Ymm(lanes.getIdx()), 1);
  vpackusdw(low, low, high);
  vmovdqu(to, low);
}

void Generator::store(const JitStep& step, int reg, size_t copy) {
  if (step.store == JitStep::no_slot) {
    return;
  }
  const Xmm from = vector(reg);
  const Xmm t = temporary(0);
  switch (run_.slots[step.store]) {
    case JitSlot::Float:
      if (step.streams) {
        vmovntps(element(step.store, 4, copy), from);
      } else {
        vmovups(element(step.store, 4, copy), from);
      }
      return;
    case JitSlot::BFloat16:  // rounded already
      vpsrld(t, from, 16);
      return store_words(element(step.store, 2, copy), t);
    case JitSlot::Half:
      vcvtps2ph(element(step.store, 2, copy), from, 0);
      return;
    case JitSlot::Bool:
    case JitSlot::RowFloat:
      break;
  }
  vpsrld(t, from, 31);
  if (wide_) {
    vpmovdb(element(step.store, 1, copy), t);
    return;
  }
  const Xmm low(t.getIdx());
  const Xmm high(temporary(1).getIdx());
  vextracti128(high, Xbyak::Ymm(t.getIdx()), 1);
  vpackusdw(low, low, high);
  vpackuswb(low, low, low);
  vmovq(element(step.store, 1, copy), low);
}

void Generator::begin() {
  for (const Xbyak::Reg64& r : {rbx, rbp, r12, r13, r14, r15}) {
    push(r);
  }
  push(r8);
  for (size_t i = 0; i < std::min(num_pointers, run_.slots.size()); i++) {
    mov(pointer(i), ptr[rdi + static_cast<int>(8 * i)]);
  }
  load_literals();
  for (size_t i = 0; i < constants_.size(); i++) {
    if (constants_[i].kept) {
      vbroadcastss(vector(constants_[i].reg), ptr[rdx + static_cast<int>(4 * i)]);
    }
  }
}

bool Generator::write_rows() {
  Xbyak::Label row;
  Xbyak::Label loop;
  Xbyak::Label over;
  L(row);
  for (size_t i = 0; i < run_.slots.size(); i++) {
    if (const Place& place = slots_[i * copies_]; place.kept) {
      load(i, place.reg, 0);
    }
  }
  xor_(r8d, r8d);
  L(loop);
  int most_live = 0;
  if (!walk(true, &most_live)) {
    return false;
  }
  add(r8, lanes() * static_cast<int>(copies_));
  cmp(r8, rcx);
  jl(loop, T_NEAR);
  dec(qword[rsp]);
  jz(over, T_NEAR);
  next_row();
  jmp(row, T_NEAR);
  L(over);
  return true;
}

void Generator::next_row() {
  for (size_t i = 0; i < run_.slots.size(); i++) {
    const auto at = static_cast<int>(8 * i);
    if (has_register(i)) {
      add(pointer(i), ptr[rsi + at]);
    } else {
      mov(rax, ptr[rsi + at]);
      add(ptr[rdi + at], rax);
    }
  }
}

void Generator::end() {
  const bool streams = std::any_of(run_.steps.begin(), run_.steps.end(),
                                   [](const JitStep& step) { return step.streams; });
  if (streams) {
    sfence();
  }
  vzeroupper();
  for (const Xbyak::Reg64& r : {r8, r15, r14, r13, r12, rbp, rbx}) {
    pop(r);
  }
  ret();
  write_literals();
}

bool Generator::generate() {
  constexpr size_t most_code = 64;  // steps times copies: what there is memory for
  size_t copies = 4;
  while (copies > 1 && (copies * run_.steps.size() > most_code || !choose_kept(copies))) {
    copies /= 2;
  }
  if (copies == 1 && !choose_kept(1)) {
    return false;
  }
  // Once to see which literals there are, and once with as many as fit in the registers left over.
  for (const bool again : {false, true}) {
    if (again) {
      start_again(first_unused_);
    }
    begin();
    if (!write_rows()) {
      return false;
    }
    end();
  }
  return setProtectModeRE(false);
}

}  // namespace

JitCode make_jit_code(const JitRun& run) {
  try {
    auto generator = std::make_shared<Generator>(run);
    if (generator->generate()) {
      return {generator->getCode<JitFunction>(), generator, true};
    }
  } catch (const Xbyak::Error&) {  // no memory that may be executed: blocks compute
  }
  return {nullptr, nullptr, true};
}

int jit_formula(const char* name) {
  if (isa_level() == IsaLevel::v2) {
    return -1;
  }
  static const auto& numbers = [] -> const auto& {  // never destroyed
    auto& made = *new std::unordered_map<std::string_view, int>;
    const JitFormulas all = jit_formulas();
    for (size_t i = 0; i < all.size; i++) {
      made.emplace(all.begin[i].name, static_cast<int>(i));
    }
    return made;
  }();
  const auto found = numbers.find(name);
  return found == numbers.end() ? -1 : found->second;
}

bool jit_is_heavy(int formula) { return jit_formulas().begin[formula].is_heavy; }

}  // namespace rushlight::cpu

#else

namespace rushlight::cpu {
int jit_formula(const char*) { return -1; }
bool jit_is_heavy(int) { return false; }
JitCode make_jit_code(const JitRun&) { return {nullptr, nullptr, true}; }
}  // namespace rushlight::cpu

#endif
