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
    int last_use = -1;
  };
  Place& place_of(const JitOperand& o) {
    return o.kind == JitOperand::Kind::Value  ? values_[o.index]
           : o.kind == JitOperand::Kind::Slot ? slots_[o.index]
                                              : constants_[o.index];
  }
  void find_last_uses();
  bool choose_constants();
  bool walk(bool emit, int* most_live);
  int take() {
    if (free_.empty()) {
      return -1;
    }
    const int reg = free_.back();
    free_.pop_back();
    return reg;
  }
  Xbyak::Reg64 pointer(int slot);
  void load(int slot, int reg);
  void store(const JitStep& step, int reg);
  void begin();
  void end();

  const JitRun& run_;
  std::vector<Place> values_;
  std::vector<Place> slots_;
  std::vector<Place> constants_;
  size_t kept_constants_ = 0;  // the first ones stay in registers
  std::vector<int> free_;
};

// ---- registers ----

void Generator::find_last_uses() {
  values_.assign(run_.steps.size(), {});
  slots_.assign(run_.is_bool.size(), {});
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
      vbroadcastss(vector(place.reg), ptr[rsi + 4 * o.index]);
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
      const bool kept = o.kind == JitOperand::Kind::Constant && o.index < kept_constants_;
      const bool over =
          o.kind == JitOperand::Kind::Constant || place.last_use == static_cast<int>(i);
      if (place.reg >= 0 && over && !kept) {
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

// As many constants as fit beside the values stay in registers.
bool Generator::choose_constants() {
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
  kept_constants_ =
      std::min<size_t>(run_.num_constants, static_cast<size_t>(num_registers() - most_live));
  for (size_t i = 0; i < kept_constants_; i++) {
    constants_[i].reg = static_cast<int8_t>(i);
  }
  reset(static_cast<int>(kept_constants_));
  return true;
}

// ---- code ----

// rdi: slots, rsi: constants, rdx: n, rcx: the element; addresses of the first slots have
// registers.
Xbyak::Reg64 Generator::pointer(int slot) {
  const Xbyak::Reg64 registers[] = {r8, r9, r10, r11, rbx, rbp, r12, r13, r14, r15};
  if (slot < static_cast<int>(std::size(registers))) {
    return registers[slot];
  }
  mov(rax, ptr[rdi + 8 * slot]);
  return rax;
}

void Generator::load(int slot, int reg) {
  const Xbyak::Reg64 base = pointer(slot);
  const Xmm to = vector(reg);
  if (!run_.is_bool[static_cast<size_t>(slot)]) {
    vmovups(to, ptr[base + rcx * 4]);
    return;
  }
  vpmovzxbd(to, ptr[base + rcx]);
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
  if (!run_.is_bool[step.store]) {
    if (step.streams) {
      vmovntps(ptr[base + rcx * 4], from);
    } else {
      vmovups(ptr[base + rcx * 4], from);
    }
    return;
  }
  const Xmm t = temporary(0);
  vpsrld(t, from, 31);
  if (wide_) {
    vpmovdb(ptr[base + rcx], t);
    return;
  }
  const Xmm low(t.getIdx());
  const Xmm high(temporary(1).getIdx());
  vextracti128(high, Xbyak::Ymm(t.getIdx()), 1);
  vpackusdw(low, low, high);
  vpackuswb(low, low, low);
  vmovq(ptr[base + rcx], low);
}

void Generator::begin() {
  for (const Xbyak::Reg64& r : {rbx, rbp, r12, r13, r14, r15}) {
    push(r);
  }
  for (int i = 0; i < std::min(10, static_cast<int>(run_.is_bool.size())); i++) {
    mov(pointer(i), ptr[rdi + 8 * i]);
  }
  for (size_t i = 0; i < kept_constants_; i++) {
    vbroadcastss(vector(static_cast<int>(i)), ptr[rsi + static_cast<int>(4 * i)]);
  }
  xor_(ecx, ecx);
}

void Generator::end() {
  const bool streams = std::any_of(run_.steps.begin(), run_.steps.end(),
                                   [](const JitStep& step) { return step.streams; });
  if (streams) {
    sfence();
  }
  vzeroupper();
  for (const Xbyak::Reg64& r : {r15, r14, r13, r12, rbp, rbx}) {
    pop(r);
  }
  ret();
  write_literals();
}

bool Generator::generate() {
  find_last_uses();
  if (!choose_constants()) {
    return false;
  }
  begin();
  Xbyak::Label loop;
  L(loop);
  int most_live = 0;
  if (!walk(true, &most_live)) {
    return false;
  }
  add(rcx, lanes());
  cmp(rcx, rdx);
  jl(loop, T_NEAR);
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
