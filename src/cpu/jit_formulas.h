// What formulas are in instructions: the words that they are written with, and their table.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <string_view>

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
  // A number in all lanes, from behind the code.
  Xbyak::Address literal(uint32_t bits) { return ptr[rip + literals_[bits]]; }
  Xbyak::Address literal(float value) { return literal(std::bit_cast<uint32_t>(value)); }
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

 protected:
  static constexpr size_t code_bytes = 16384;
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
    for (auto& [bits, place] : literals_) {
      L(place);
      for (int i = 0; i < 16; i++) {
        dd(bits);
      }
    }
  }

  const bool wide_;

 private:
  std::map<uint32_t, Xbyak::Label> literals_;
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
