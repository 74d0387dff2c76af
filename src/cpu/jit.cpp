// What each light formula is in instructions, and which registers values have.
#include "cpu/jit.h"

#if defined(__x86_64__)
#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "cpu/isa_level.h"

#define XBYAK_NO_OP_NAMES
#include "../../third_party/xbyak/xbyak.h"

namespace rushlight::cpu {

namespace {

using Xbyak::Xmm;

class Generator;
using Emit = void (*)(Generator& g, const Xmm& out, const Xmm* in);

// Lanes of 32 bits; a bool is a lane of ones or zeros.
class Generator : public Xbyak::CodeGenerator {
 public:
  explicit Generator(const JitRun& run)
      : CodeGenerator(code_bytes, Xbyak::DontSetProtectRWE),
        run_(run),
        wide_(isa_level() == IsaLevel::v4) {}

  // False where there are not enough registers.
  bool generate();

  // ---- what formulas are made of ----

  Xmm temporary(int i) const { return vector(num_registers() + i); }
  void load_bits(const Xmm& to, uint32_t bits) {
    mov(eax, bits);
    vmovd(Xmm(to.getIdx()), eax);
    vbroadcastss(to, Xmm(to.getIdx()));
  }
  void load_number(const Xmm& to, float value) { load_bits(to, std::bit_cast<uint32_t>(value)); }
  void load_zero(const Xmm& to) { vxorps(Xmm(to.getIdx()), Xmm(to.getIdx()), Xmm(to.getIdx())); }
  // The next select() and lane mask are of this comparison.
  void compare(const Xmm& a, const Xmm& b, uint8_t predicate) {
    if (wide_) {
      vcmpps(k1, a, b, predicate);
    } else {
      vcmpps(mask(), a, b, predicate);
    }
  }
  void select(const Xmm& out, const Xmm& yes, const Xmm& no) {
    if (wide_) {
      vblendmps(out | k1, no, yes);
    } else {
      vblendvps(out, no, yes, mask());
    }
  }
  void mask_to_lanes(const Xmm& out) {
    if (wide_) {
      vpmovm2d(out, k1);
    } else {
      vmovaps(out, mask());
    }
  }
  void lanes_to_mask(const Xmm& lanes) {
    if (wide_) {
      vpmovd2m(k1, lanes);
    } else {
      vmovaps(mask(), lanes);
    }
  }
  // Each bit of the lanes of 32 bits.
  void and_bits(const Xmm& out, const Xmm& in, uint32_t bits) {
    load_bits(out, bits);
    vandps(out, out, in);
  }
  void flip_bits(const Xmm& out, const Xmm& in, uint32_t bits) {
    load_bits(out, bits);
    vxorps(out, out, in);
  }
  void round_to(const Xmm& out, const Xmm& in, uint8_t how) {
    if (wide_) {
      vrndscaleps(out, in, how);
    } else {
      vroundps(out, in, how);
    }
  }

 private:
  static constexpr size_t code_bytes = 16384;
  static constexpr int num_temporaries = 3;

  int num_registers() const { return wide_ ? 28 : 11; }
  Xmm vector(int i) const {
    return wide_ ? static_cast<Xmm>(Xbyak::Zmm(i)) : static_cast<Xmm>(Xbyak::Ymm(i));
  }
  Xmm mask() const { return Xbyak::Ymm(15); }
  int lanes() const { return wide_ ? 16 : 8; }

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
  const bool wide_;
  std::vector<Place> values_;
  std::vector<Place> slots_;
  std::vector<Place> constants_;
  size_t kept_constants_ = 0;  // the first ones stay in registers
  std::vector<int> free_;
};

enum Predicate : uint8_t {
  equal = 0,
  less = 1,
  less_equal = 2,
  unordered = 3,
  not_equal = 4,
  greater_equal = 13,
  greater = 14
};

struct Formula {
  std::string_view name;
  Emit emit;
};

#define RL_EMIT [](Generator& g, const Xmm& out, [[maybe_unused]] const Xmm* in)
#define RL_COMPARE(name, predicate)                   \
  {#name, RL_EMIT{g.compare(in[0], in[1], predicate); \
  g.mask_to_lanes(out);                               \
  }                                                   \
  }

// A number wins over a NaN in `loser`, which both instructions would give.
void extreme(Generator& g, const Xmm& out, const Xmm* in, bool largest, int tested) {
  if (largest) {
    g.vmaxps(out, in[0], in[1]);
  } else {
    g.vminps(out, in[0], in[1]);
  }
  g.compare(in[tested], in[tested], unordered);
  g.select(out, in[0], out);
}

// As in kernels/pointwise.h, in its order of operations.
constexpr Formula formulas[] = {{"add", RL_EMIT{g.vaddps(out, in[0], in[1]);
}  // namespace
}  // namespace rushlight::cpu
, {"sub", RL_EMIT{g.vsubps(out, in[0], in[1]);
}
}
, {"rsub", RL_EMIT{g.vsubps(out, in[1], in[0]);
}
}
, {"mul", RL_EMIT{g.vmulps(out, in[0], in[1]);
}
}
, {"div", RL_EMIT{g.vdivps(out, in[0], in[1]);
}
}
, {"add_scaled", RL_EMIT{g.vmovaps(out, in[2]);
g.vfmadd213ps(out, in[1], in[0]);
}
}
, {"sub_scaled", RL_EMIT{g.vmovaps(out, in[2]);
g.vfnmadd213ps(out, in[1], in[0]);
}
}
, {"rsub_scaled", RL_EMIT{g.vmovaps(out, in[2]);
g.vfnmadd213ps(out, in[0], in[1]);
}
}
, {"square", RL_EMIT{g.vmulps(out, in[0], in[0]);
}
}
, {"cube", RL_EMIT{g.vmulps(out, in[0], in[0]);
g.vmulps(out, out, in[0]);
}
}
, {"neg", RL_EMIT{g.flip_bits(out, in[0], 0x80000000U);
}
}
, {"abs", RL_EMIT{g.and_bits(out, in[0], 0x7FFFFFFFU);
}
}
, {"reciprocal", RL_EMIT{g.load_number(out, 1.0f);
g.vdivps(out, out, in[0]);
}
}
, {"inverse_square", RL_EMIT{g.vmulps(g.temporary(0), in[0], in[0]);
g.load_number(out, 1.0f);
g.vdivps(out, out, g.temporary(0));
}
}
, {"sqrt", RL_EMIT{g.vsqrtps(out, in[0]);
}
}
, {"rsqrt", RL_EMIT{g.vsqrtps(g.temporary(0), in[0]);
g.load_number(out, 1.0f);
g.vdivps(out, out, g.temporary(0));
}
}
, {"addcmul", RL_EMIT{g.vmulps(out, in[3], in[1]);
g.vfmadd213ps(out, in[2], in[0]);
}
}
, {"addcmul_plain", RL_EMIT{g.vmovaps(out, in[1]);
g.vfmadd213ps(out, in[2], in[0]);
}
}
, {"addcdiv", RL_EMIT{g.vmulps(out, in[3], in[1]);
g.vdivps(out, out, in[2]);
g.vaddps(out, in[0], out);
}
}
, {"addcdiv_plain", RL_EMIT{g.vdivps(out, in[1], in[2]);
g.vaddps(out, in[0], out);
}
}
, {"standardize", RL_EMIT{g.vsubps(out, in[0], in[1]);
g.vdivps(out, out, in[2]);
}
}
, {"lerp", RL_EMIT{g.and_bits(g.temporary(0), in[2], 0x7FFFFFFFU);
g.load_number(out, 0.5f);
g.compare(g.temporary(0), out, less);
g.load_number(out, 1.0f);
g.vsubps(out, in[2], out);
g.select(g.temporary(0), in[2], out);
g.select(g.temporary(1), in[0], in[1]);
g.vsubps(out, in[1], in[0]);
g.vfmadd213ps(out, g.temporary(0), g.temporary(1));
}
}
, {"relu", RL_EMIT{g.load_zero(out);
g.vmaxps(out, out, in[0]);  // the second where either is NaN or both are zeros
}
}
, {"maximum", RL_EMIT{extreme(g, out, in, true, 0);
}
}
, {"minimum", RL_EMIT{extreme(g, out, in, false, 0);
}
}
, {"fmax", RL_EMIT{extreme(g, out, in, true, 1);
}
}
, {"fmin", RL_EMIT{extreme(g, out, in, false, 1);
}
}
, {"clamp_min", RL_EMIT{extreme(g, out, in, true, 0);
}
}
, {"clamp_max", RL_EMIT{extreme(g, out, in, false, 0);
}
}
, {"threshold", RL_EMIT{g.compare(in[0], in[1], less_equal);
g.select(out, in[2], in[0]);
}
}
, {"threshold_backward", RL_EMIT{g.load_zero(out);
g.compare(in[1], in[2], less_equal);
g.select(out, out, in[0]);
}
}
, {"leaky_relu", RL_EMIT{g.load_zero(out);
g.compare(in[0], out, greater);
g.vmulps(out, in[0], in[1]);
g.select(out, in[0], out);
}
}
, {"leaky_relu_backward", RL_EMIT{g.load_zero(out);
g.compare(in[1], out, greater);
g.vmulps(out, in[0], in[2]);
g.select(out, in[0], out);
}
}
, {"tanh_backward", RL_EMIT{g.vmulps(g.temporary(0), in[1], in[1]);
g.load_number(out, 1.0f);
g.vsubps(out, out, g.temporary(0));
g.vmulps(out, in[0], out);
}
}
, {"sigmoid_backward", RL_EMIT{g.load_number(out, 1.0f);
g.vsubps(out, out, in[1]);
g.vmulps(out, in[0], out);
g.vmulps(out, out, in[1]);
}
}
, {"_squared_error", RL_EMIT{g.vsubps(out, in[0], in[1]);
g.vmulps(out, out, out);
}
}
, {"round", RL_EMIT{g.round_to(out, in[0], 8);
}
}
, {"floor", RL_EMIT{g.round_to(out, in[0], 9);
}
}
, {"ceil", RL_EMIT{g.round_to(out, in[0], 10);
}
}
, {"trunc", RL_EMIT{g.round_to(out, in[0], 11);
}
}
, RL_COMPARE(eq, equal), RL_COMPARE(ne, not_equal), RL_COMPARE(lt, less),
    RL_COMPARE(le, less_equal), RL_COMPARE(gt, greater), RL_COMPARE(ge, greater_equal),
    {"where", RL_EMIT{g.lanes_to_mask(in[0]);
g.select(out, in[1], in[2]);
}
}
,
}
;
#undef RL_EMIT
#undef RL_COMPARE

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
      formulas[step.formula].emit(*this, vector(out), in);
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
    for (const Formula& formula : formulas) {
      made.emplace(formula.name, static_cast<int>(made.size()));
    }
    return made;
  }();
  const auto found = numbers.find(name);
  return found == numbers.end() ? -1 : found->second;
}

}  // namespace rushlight::cpu

#else

namespace rushlight::cpu {
int jit_formula(const char*) { return -1; }
JitCode make_jit_code(const JitRun&) { return {nullptr, nullptr, true}; }
}  // namespace rushlight::cpu

#endif
