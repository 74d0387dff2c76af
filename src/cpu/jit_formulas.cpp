// What each light formula is in instructions.
#if defined(__x86_64__)
#include "cpu/jit_formulas.h"

#include <iterator>

namespace rushlight::cpu {

namespace {

using Register = Emitter::Register;

// A number wins over a NaN in `loser`, which both instructions would give.
void extreme(Emitter& g, const Register& out, const Register* in, bool largest, int tested) {
  if (largest) {
    g.vmaxps(out, in[0], in[1]);
  } else {
    g.vminps(out, in[0], in[1]);
  }
  g.compare(in[tested], in[tested], Emitter::unordered);
  g.select(out, in[0], out);
}
template <Emitter::Predicate predicate>
void comparison(Emitter& g, const Register& out, const Register* in) {
  g.compare(in[0], in[1], predicate);
  g.mask_to_lanes(out);
}

// As in kernels/pointwise.h, in its order of operations.
constexpr JitFormula formulas[] = {
    {"add",
     [](Emitter& g, const Register& out, const Register* in) { g.vaddps(out, in[0], in[1]); }},
    {"sub",
     [](Emitter& g, const Register& out, const Register* in) { g.vsubps(out, in[0], in[1]); }},
    {"rsub",
     [](Emitter& g, const Register& out, const Register* in) { g.vsubps(out, in[1], in[0]); }},
    {"mul",
     [](Emitter& g, const Register& out, const Register* in) { g.vmulps(out, in[0], in[1]); }},
    {"div",
     [](Emitter& g, const Register& out, const Register* in) { g.vdivps(out, in[0], in[1]); }},
    {"add_scaled",
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmovaps(out, in[2]);
       g.vfmadd213ps(out, in[1], in[0]);
     }},
    {"sub_scaled",
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmovaps(out, in[2]);
       g.vfnmadd213ps(out, in[1], in[0]);
     }},
    {"rsub_scaled",
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmovaps(out, in[2]);
       g.vfnmadd213ps(out, in[0], in[1]);
     }},
    {"square",
     [](Emitter& g, const Register& out, const Register* in) { g.vmulps(out, in[0], in[0]); }},
    {"cube",
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmulps(out, in[0], in[0]);
       g.vmulps(out, out, in[0]);
     }},
    {"neg", [](Emitter& g, const Register& out,
               const Register* in) { g.flip_bits(out, in[0], 0x80000000U); }},
    {"abs", [](Emitter& g, const Register& out,
               const Register* in) { g.and_bits(out, in[0], 0x7FFFFFFFU); }},
    {"reciprocal",
     [](Emitter& g, const Register& out, const Register* in) {
       g.load_number(out, 1.0f);
       g.vdivps(out, out, in[0]);
     }},
    {"inverse_square",
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmulps(g.temporary(0), in[0], in[0]);
       g.load_number(out, 1.0f);
       g.vdivps(out, out, g.temporary(0));
     }},
    {"sqrt", [](Emitter& g, const Register& out, const Register* in) { g.vsqrtps(out, in[0]); }},
    {"rsqrt",
     [](Emitter& g, const Register& out, const Register* in) {
       g.vsqrtps(g.temporary(0), in[0]);
       g.load_number(out, 1.0f);
       g.vdivps(out, out, g.temporary(0));
     }},
    {"addcmul",
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmulps(out, in[3], in[1]);
       g.vfmadd213ps(out, in[2], in[0]);
     }},
    {"addcmul_plain",
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmovaps(out, in[1]);
       g.vfmadd213ps(out, in[2], in[0]);
     }},
    {"addcdiv",
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmulps(out, in[3], in[1]);
       g.vdivps(out, out, in[2]);
       g.vaddps(out, in[0], out);
     }},
    {"addcdiv_plain",
     [](Emitter& g, const Register& out, const Register* in) {
       g.vdivps(out, in[1], in[2]);
       g.vaddps(out, in[0], out);
     }},
    {"standardize",
     [](Emitter& g, const Register& out, const Register* in) {
       g.vsubps(out, in[0], in[1]);
       g.vdivps(out, out, in[2]);
     }},
    {"lerp",
     [](Emitter& g, const Register& out, const Register* in) {
       g.and_bits(g.temporary(0), in[2], 0x7FFFFFFFU);
       g.load_number(out, 0.5f);
       g.compare(g.temporary(0), out, Emitter::less);
       g.load_number(out, 1.0f);
       g.vsubps(out, in[2], out);
       g.select(g.temporary(0), in[2], out);
       g.select(g.temporary(1), in[0], in[1]);
       g.vsubps(out, in[1], in[0]);
       g.vfmadd213ps(out, g.temporary(0), g.temporary(1));
     }},
    {"relu",
     [](Emitter& g, const Register& out, const Register* in) {
       g.load_zero(out);
       g.vmaxps(out, out, in[0]);  // the second where either is NaN or both are zeros
     }},
    {"maximum",
     [](Emitter& g, const Register& out, const Register* in) { extreme(g, out, in, true, 0); }},
    {"minimum",
     [](Emitter& g, const Register& out, const Register* in) { extreme(g, out, in, false, 0); }},
    {"fmax",
     [](Emitter& g, const Register& out, const Register* in) { extreme(g, out, in, true, 1); }},
    {"fmin",
     [](Emitter& g, const Register& out, const Register* in) { extreme(g, out, in, false, 1); }},
    {"clamp_min",
     [](Emitter& g, const Register& out, const Register* in) { extreme(g, out, in, true, 0); }},
    {"clamp_max",
     [](Emitter& g, const Register& out, const Register* in) { extreme(g, out, in, false, 0); }},
    {"threshold",
     [](Emitter& g, const Register& out, const Register* in) {
       g.compare(in[0], in[1], Emitter::less_equal);
       g.select(out, in[2], in[0]);
     }},
    {"threshold_backward",
     [](Emitter& g, const Register& out, const Register* in) {
       g.load_zero(out);
       g.compare(in[1], in[2], Emitter::less_equal);
       g.select(out, out, in[0]);
     }},
    {"leaky_relu",
     [](Emitter& g, const Register& out, const Register* in) {
       g.load_zero(out);
       g.compare(in[0], out, Emitter::greater);
       g.vmulps(out, in[0], in[1]);
       g.select(out, in[0], out);
     }},
    {"leaky_relu_backward",
     [](Emitter& g, const Register& out, const Register* in) {
       g.load_zero(out);
       g.compare(in[1], out, Emitter::greater);
       g.vmulps(out, in[0], in[2]);
       g.select(out, in[0], out);
     }},
    {"tanh_backward",
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmulps(g.temporary(0), in[1], in[1]);
       g.load_number(out, 1.0f);
       g.vsubps(out, out, g.temporary(0));
       g.vmulps(out, in[0], out);
     }},
    {"sigmoid_backward",
     [](Emitter& g, const Register& out, const Register* in) {
       g.load_number(out, 1.0f);
       g.vsubps(out, out, in[1]);
       g.vmulps(out, in[0], out);
       g.vmulps(out, out, in[1]);
     }},
    {"_squared_error",
     [](Emitter& g, const Register& out, const Register* in) {
       g.vsubps(out, in[0], in[1]);
       g.vmulps(out, out, out);
     }},
    {"round",
     [](Emitter& g, const Register& out, const Register* in) { g.round_to(out, in[0], 8); }},
    {"floor",
     [](Emitter& g, const Register& out, const Register* in) { g.round_to(out, in[0], 9); }},
    {"ceil",
     [](Emitter& g, const Register& out, const Register* in) { g.round_to(out, in[0], 10); }},
    {"trunc",
     [](Emitter& g, const Register& out, const Register* in) { g.round_to(out, in[0], 11); }},
    {"eq", comparison<Emitter::equal>},
    {"ne", comparison<Emitter::not_equal>},
    {"lt", comparison<Emitter::less>},
    {"le", comparison<Emitter::less_equal>},
    {"gt", comparison<Emitter::greater>},
    {"ge", comparison<Emitter::greater_equal>},
    {"where",
     [](Emitter& g, const Register& out, const Register* in) {
       g.lanes_to_mask(in[0]);
       g.select(out, in[1], in[2]);
     }},
};

}  // namespace

JitFormulas jit_formulas() { return {formulas, std::size(formulas)}; }

}  // namespace rushlight::cpu
#endif
