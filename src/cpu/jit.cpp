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
  Place& place_of(const JitOperand& o) {
    return o.kind == JitOperand::Kind::Value  ? values_[o.index]
           : o.kind == JitOperand::Kind::Slot ? slots_[o.index]
                                              : constants_[o.index];
  }
  void find_last_uses();
  bool choose_kept();
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
  Xbyak::Reg64 pointer(size_t slot);
  void load(size_t slot, int reg);
  void store(const JitStep& step, int reg);
  void begin();
  bool write_rows();
  void next_row();
  void end();

  static constexpr size_t num_pointers = 9;
  const JitRun& run_;
  std::vector<Place> values_;
  std::vector<Place> slots_;
  std::vector<Place> constants_;
  std::vector<int> free_;
};

// ---- registers ----

void Generator::find_last_uses() {
  values_.assign(run_.steps.size(), {});
  slots_.assign(run_.slots.size(), {});
  constants_.assign(run_.num_constants, {});
  for (size_t i = 0; i < run_.steps.size(); i++) {
    const JitStep& step = run_.steps[i];
    for (int k = 0; k < step.num_operands; k++) {
      place_of(step.in[k]).last_use = static_cast<int>(i);
    }
  }
}

// Goes over the steps as the loop does; `most_live` gets how many registers they take at once.
bool Generator::walk(bool emit, int* most_live) {
  const auto total = free_.size();
  const auto bring = [&](const JitOperand& o) {
    Place& place = place_of(o);
    if (place.reg >= 0) {
      return true;
    }
    place.reg = static_cast<int8_t>(take());
    if (place.reg >= 0 && emit && o.kind == JitOperand::Kind::Slot) {
      load(o.index, place.reg);
    } else if (place.reg >= 0 && emit) {
      vbroadcastss(vector(place.reg), ptr[rdx + 4 * o.index]);
    }
    return place.reg >= 0;
  };
  for (size_t i = 0; i < run_.steps.size(); i++) {
    const JitStep& step = run_.steps[i];
    Xmm in[max_inputs + max_attributes];
    for (int k = 0; k < step.num_operands; k++) {
      if (!bring(step.in[k])) {
        return false;
      }
      in[k] = vector(place_of(step.in[k]).reg);
    }
    const int out = take();
    if (out < 0) {
      return false;
    }
    *most_live = std::max(*most_live, static_cast<int>(total - free_.size()));
    if (emit) {
      jit_formulas().begin[step.formula].emit(*this, vector(out), in);
      store(step, out);
    }
    for (int k = 0; k < step.num_operands; k++) {
      const JitOperand& o = step.in[k];
      Place& place = place_of(o);
      const bool over =
          o.kind == JitOperand::Kind::Constant || place.last_use == static_cast<int>(i);
      if (place.reg >= 0 && over && !place.kept) {
        free_.push_back(place.reg);
        place.reg = -1;
      }
    }
    values_[i].reg = static_cast<int8_t>(out);
    if (values_[i].last_use < 0) {
      free_.push_back(out);
      values_[i].reg = -1;
    }
  }
  return true;
}

// As many numbers as fit beside the values stay in registers, those of rows first.
bool Generator::choose_kept() {
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
  for (size_t i = 0; i < slots_.size(); i++) {
    if (is_row_number(i)) {
      keep(slots_[i]);
    }
  }
  for (Place& constant : constants_) {
    keep(constant);
  }
  reset(kept);
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

void Generator::load(size_t slot, int reg) {
  const Xbyak::Reg64 base = pointer(slot);
  const Xmm to = vector(reg);
  switch (run_.slots[slot]) {
    case JitSlot::Float:
      vmovups(to, ptr[base + r8 * 4]);
      return;
    case JitSlot::RowFloat:
      vbroadcastss(to, ptr[base]);
      return;
    case JitSlot::Bool:
      break;
  }
  vpmovzxbd(to, ptr[base + r8]);
  if (wide_) {
    vptestmd(k1, to, to);
    vpmovm2d(to, k1);
  } else {
    load_zero(mask());
    vpcmpgtd(to, to, mask());
  }
}

void Generator::store(const JitStep& step, int reg) {
  if (step.store == JitStep::no_slot) {
    return;
  }
  const Xbyak::Reg64 base = pointer(step.store);
  const Xmm from = vector(reg);
  if (run_.slots[step.store] == JitSlot::Float) {
    if (step.streams) {
      vmovntps(ptr[base + r8 * 4], from);
    } else {
      vmovups(ptr[base + r8 * 4], from);
    }
    return;
  }
  const Xmm t = temporary(0);
  vpsrld(t, from, 31);
  if (wide_) {
    vpmovdb(ptr[base + r8], t);
    return;
  }
  const Xmm low(t.getIdx());
  const Xmm high(temporary(1).getIdx());
  vextracti128(high, Xbyak::Ymm(t.getIdx()), 1);
  vpackusdw(low, low, high);
  vpackuswb(low, low, low);
  vmovq(ptr[base + r8], low);
}

void Generator::begin() {
  for (const Xbyak::Reg64& r : {rbx, rbp, r12, r13, r14, r15}) {
    push(r);
  }
  push(r8);
  for (size_t i = 0; i < std::min(num_pointers, run_.slots.size()); i++) {
    mov(pointer(i), ptr[rdi + static_cast<int>(8 * i)]);
  }
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
  for (size_t i = 0; i < slots_.size(); i++) {
    if (slots_[i].kept) {
      load(i, slots_[i].reg);
    }
  }
  xor_(r8d, r8d);
  L(loop);
  int most_live = 0;
  if (!walk(true, &most_live)) {
    return false;
  }
  add(r8, lanes());
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
  find_last_uses();
  if (!choose_kept()) {
    return false;
  }
  begin();
  if (!write_rows()) {
    return false;
  }
  end();
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
