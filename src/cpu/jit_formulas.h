// What formulas are in instructions: the words that they are written with, and their table.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#define XBYAK_NO_OP_NAMES
#include "../../third_party/xbyak/xbyak.h"

#include "cpu/isa_level.h"

namespace rushlight::cpu {

// Lanes of 32 bits; a bool is a lane of ones or zeros. Registers are Ymm for v3 and Zmm for v4.
class Emitter : public Xbyak::CodeGenerator {
 public:
  using Register = Xbyak::Xmm;
  enum Predicate : uint8_t {
    equal = 0,
    less = 1,
    less_equal = 2,
    unordered = 3,
    not_equal = 4,
    greater_equal = 13,
    greater = 14
  };

  Register temporary(int i) const { return vector(num_registers() + i); }
  // A number in all lanes, in a register or behind the code.
  const Xbyak::Operand& literal(uint32_t bits) {
    Literal& it = literals_[bits];
    it.uses++;
    if (it.reg >= 0) {
      it.lanes = vector(it.reg);
      return it.lanes;
    }
    it.address = ptr[rip + it.place];
    return it.address;
  }
  const Xbyak::Operand& literal(float value) { return literal(std::bit_cast<uint32_t>(value)); }
  void load_number(const Register& to, float value) { vmovups(to, literal(value)); }
  void load_zero(const Register& to) {
    vxorps(Register(to.getIdx()), Register(to.getIdx()), Register(to.getIdx()));
  }
  // The next select() and lane mask are of this comparison.
  void compare(const Register& a, const Register& b, uint8_t predicate) {
    if (wide_) {
      vcmpps(k1, a, b, predicate);
    } else {
      vcmpps(mask(), a, b, predicate);
    }
  }
  void select(const Register& out, const Register& yes, const Register& no) {
    if (wide_) {
      vblendmps(out | k1, no, yes);
    } else {
      vblendvps(out, no, yes, mask());
    }
  }
  void mask_to_lanes(const Register& out) {
    if (wide_) {
      vpmovm2d(out, k1);
    } else {
      vmovaps(out, mask());
    }
  }
  void lanes_to_mask(const Register& lanes) {
    if (wide_) {
      vpmovd2m(k1, lanes);
    } else {
      vmovaps(mask(), lanes);
    }
  }
  // Each bit of the lanes of 32 bits.
  void and_bits(const Register& out, const Register& in, uint32_t bits) {
    vandps(out, in, literal(bits));
  }
  void flip_bits(const Register& out, const Register& in, uint32_t bits) {
    vxorps(out, in, literal(bits));
  }
  void round_to(const Register& out, const Register& in, uint8_t how) {
    if (wide_) {
      vrndscaleps(out, in, how);
    } else {
      vroundps(out, in, how);
    }
  }
  // Half as many bytes: where 16 bits of each lane lie.
  Register half_of(const Register& r) const {
    return wide_ ? static_cast<Register>(Xbyak::Ymm(r.getIdx())) : Register(r.getIdx());
  }
  // As conversions round (cpu/isa/pointwise/cast.cpp), in place.
  void round_to_bfloat16(const Register& x) {
    const Register odd = temporary(0);
    const Register half = temporary(1);
    compare(x, x, unordered);
    vpsrld(odd, x, 16);
    vpaddd(half, x, literal(uint32_t{0x7FFF}));
    and_bits(odd, odd, 1);
    vpaddd(x, half, odd);
    and_bits(x, x, 0xFFFF0000U);
    if (wide_) {
      vmovups(x | k1, literal(uint32_t{0x7FC00000}));
    } else {
      vblendvps(x, x, literal(uint32_t{0x7FC00000}), mask());
    }
  }
  void round_to_half(const Register& x) {
    const Register t = half_of(temporary(0));
    vcvtps2ph(t, x, 0);
    vcvtph2ps(x, t);
  }

 protected:
  static constexpr size_t code_bytes = 32768;
  static constexpr int num_temporaries = 3;

  Emitter()
      : CodeGenerator(code_bytes, Xbyak::DontSetProtectRWE), wide_(isa_level() == IsaLevel::v4) {}
  int num_registers() const { return wide_ ? 28 : 11; }
  Register vector(int i) const {
    return wide_ ? static_cast<Register>(Xbyak::Zmm(i)) : static_cast<Register>(Xbyak::Ymm(i));
  }
  Register mask() const { return Xbyak::Ymm(15); }
  int lanes() const { return wide_ ? 16 : 8; }
  void write_literals() {
    align(64);
    for (auto& [bits, literal] : literals_) {
      L(literal.place);
      for (int i = 0; i < 16; i++) {
        dd(bits);
      }
    }
  }
  // Forgets the code, and gives the registers from `reg` on to the literals that it used most.
  void start_again(int reg) {
    reset();
    std::vector<std::pair<int, uint32_t>> by_use;
    for (auto& [bits, literal] : literals_) {
      by_use.emplace_back(-std::exchange(literal.uses, 0), bits);
      literal.place = Xbyak::Label();
    }
    std::sort(by_use.begin(), by_use.end());
    for (const auto& [uses, bits] : by_use) {
      if (reg == num_registers()) {
        break;
      }
      literals_[bits].reg = reg++;
    }
  }
  void load_literals() {
    for (auto& [bits, literal] : literals_) {
      if (literal.reg >= 0) {
        vmovups(vector(literal.reg), ptr[rip + literal.place]);
      }
    }
  }

  const bool wide_;

 private:
  struct Literal {
    Xbyak::Label place;
    int uses = 0;
    int reg = -1;
    Register lanes;
    Xbyak::Address address{0};
  };
  std::map<uint32_t, Literal> literals_;
};

struct JitFormula {
  std::string_view name;
  bool is_heavy;  // dearer than to write what it gives and read it again
  void (*emit)(Emitter& g, const Emitter::Register& out, const Emitter::Register* in);
};
// All of them; a formula's number is its place.
struct JitFormulas {
  const JitFormula* begin;
  size_t size;
};
JitFormulas jit_formulas();

}  // namespace rushlight::cpu
