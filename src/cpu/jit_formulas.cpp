// What each light formula is in instructions.
#if defined(__x86_64__)
#include "cpu/jit_formulas.h"

#include <iterator>

namespace rushlight::cpu {

namespace {

using Register = Emitter::Register;

// Where either operand is NaN both instructions give in[1]; in[0] where in[tested] is.
template <bool largest, int tested>
void extreme(Emitter& g, const Register& out, const Register* in) {
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

// math::exp. `out` may be `x`.
void exponential(Emitter& g, const Register& out, const Register& x) {
  constexpr float shift = 12582912.0f + 254.0f;
  constexpr uint32_t origin = 0x4b400000 + 254;
  const Register m = g.temporary(0);
  const Register r = g.temporary(1);
  const Register p = g.temporary(2);
  g.vmovups(m, g.literal(1.44269504088896341f));
  g.vfmadd213ps(m, x, g.literal(shift));
  g.vpmaxsd(m, m, g.literal(origin - 150));
  g.vpminsd(m, m, g.literal(origin + 129));
  g.vsubps(r, m, g.literal(shift));
  g.vmovaps(p, x);
  g.vfmadd231ps(p, r, g.literal(-0.693359375f));
  g.vfmadd231ps(p, r, g.literal(2.12194440e-4f));
  g.load_number(r, -1.0f);
  g.vmaxps(r, r, p);  // the second where either is NaN
  g.load_number(p, 1.9875691500e-4f);
  for (const float c :
       {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f}) {
    g.vfmadd213ps(p, r, g.literal(c));
  }
  g.vmulps(out, r, r);
  g.vfmadd213ps(p, out, r);
  g.vaddps(p, p, g.literal(1.0f));
  g.vpsrld(r, m, 1);
  g.vpslld(r, r, 23);
  g.vpaddd(m, m, g.literal(uint32_t{1}));
  g.vpsrld(m, m, 1);
  g.vpslld(m, m, 23);
  g.vmulps(out, p, r);
  g.vmulps(out, out, m);
}
// 1 + e^-x
void one_and_exponential(Emitter& g, const Register& out, const Register& x) {
  g.flip_bits(out, x, 0x80000000U);
  exponential(g, out, out);
  g.vaddps(out, out, g.literal(1.0f));
}
void sigmoid(Emitter& g, const Register& out, const Register& x) {
  one_and_exponential(g, out, x);
  g.load_number(g.temporary(0), 1.0f);
  g.vdivps(out, g.temporary(0), out);
}

// As in kernels/pointwise.h, in its order of operations.
constexpr JitFormula formulas[] = {
    {"copy", false,
     [](Emitter& g, const Register& out, const Register* in) { g.vmovaps(out, in[0]); }},
    {"add", false,
     [](Emitter& g, const Register& out, const Register* in) { g.vaddps(out, in[0], in[1]); }},
    {"sub", false,
     [](Emitter& g, const Register& out, const Register* in) { g.vsubps(out, in[0], in[1]); }},
    {"rsub", false,
     [](Emitter& g, const Register& out, const Register* in) { g.vsubps(out, in[1], in[0]); }},
    {"mul", false,
     [](Emitter& g, const Register& out, const Register* in) { g.vmulps(out, in[0], in[1]); }},
    {"div", false,
     [](Emitter& g, const Register& out, const Register* in) { g.vdivps(out, in[0], in[1]); }},
    {"add_scaled", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmovaps(out, in[2]);
       g.vfmadd213ps(out, in[1], in[0]);
     }},
    {"sub_scaled", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmovaps(out, in[2]);
       g.vfnmadd213ps(out, in[1], in[0]);
     }},
    {"rsub_scaled", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmovaps(out, in[2]);
       g.vfnmadd213ps(out, in[0], in[1]);
     }},
    {"square", false,
     [](Emitter& g, const Register& out, const Register* in) { g.vmulps(out, in[0], in[0]); }},
    {"cube", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmulps(out, in[0], in[0]);
       g.vmulps(out, out, in[0]);
     }},
    {"neg", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.flip_bits(out, in[0], 0x80000000U);
     }},
    {"abs", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.and_bits(out, in[0], 0x7FFFFFFFU);
     }},
    {"reciprocal", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.load_number(out, 1.0f);
       g.vdivps(out, out, in[0]);
     }},
    {"inverse_square", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmulps(g.temporary(0), in[0], in[0]);
       g.load_number(out, 1.0f);
       g.vdivps(out, out, g.temporary(0));
     }},
    {"sqrt", false,
     [](Emitter& g, const Register& out, const Register* in) { g.vsqrtps(out, in[0]); }},
    {"rsqrt", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.vsqrtps(g.temporary(0), in[0]);
       g.load_number(out, 1.0f);
       g.vdivps(out, out, g.temporary(0));
     }},
    {"addcmul", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmulps(out, in[3], in[1]);
       g.vfmadd213ps(out, in[2], in[0]);
     }},
    {"addcmul_plain", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmovaps(out, in[1]);
       g.vfmadd213ps(out, in[2], in[0]);
     }},
    {"addcdiv", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmulps(out, in[3], in[1]);
       g.vdivps(out, out, in[2]);
       g.vaddps(out, in[0], out);
     }},
    {"addcdiv_plain", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.vdivps(out, in[1], in[2]);
       g.vaddps(out, in[0], out);
     }},
    {"standardize", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.vsubps(out, in[0], in[1]);
       g.vdivps(out, out, in[2]);
     }},
    {"lerp", false,
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
    {"relu", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.load_zero(out);
       g.vmaxps(out, out, in[0]);  // the second where either is NaN or both are zeros
     }},
    {"maximum", false, extreme<true, 0>},
    {"minimum", false, extreme<false, 0>},
    {"fmax", false, extreme<true, 1>},
    {"fmin", false, extreme<false, 1>},
    {"clamp_min", false, extreme<true, 0>},
    {"clamp_max", false, extreme<false, 0>},
    {"threshold", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.compare(in[0], in[1], Emitter::less_equal);
       g.select(out, in[2], in[0]);
     }},
    {"threshold_backward", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.load_zero(out);
       g.compare(in[1], in[2], Emitter::less_equal);
       g.select(out, out, in[0]);
     }},
    {"leaky_relu", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.load_zero(out);
       g.compare(in[0], out, Emitter::greater);
       g.vmulps(out, in[0], in[1]);
       g.select(out, in[0], out);
     }},
    {"leaky_relu_backward", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.load_zero(out);
       g.compare(in[1], out, Emitter::greater);
       g.vmulps(out, in[0], in[2]);
       g.select(out, in[0], out);
     }},
    {"tanh_backward", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.vmulps(g.temporary(0), in[1], in[1]);
       g.load_number(out, 1.0f);
       g.vsubps(out, out, g.temporary(0));
       g.vmulps(out, in[0], out);
     }},
    {"sigmoid_backward", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.load_number(out, 1.0f);
       g.vsubps(out, out, in[1]);
       g.vmulps(out, in[0], out);
       g.vmulps(out, out, in[1]);
     }},
    {"_squared_error", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.vsubps(out, in[0], in[1]);
       g.vmulps(out, out, out);
     }},
    {"round", false,
     [](Emitter& g, const Register& out, const Register* in) { g.round_to(out, in[0], 8); }},
    {"floor", false,
     [](Emitter& g, const Register& out, const Register* in) { g.round_to(out, in[0], 9); }},
    {"ceil", false,
     [](Emitter& g, const Register& out, const Register* in) { g.round_to(out, in[0], 10); }},
    {"trunc", false,
     [](Emitter& g, const Register& out, const Register* in) { g.round_to(out, in[0], 11); }},
    {"exp", true,
     [](Emitter& g, const Register& out, const Register* in) { exponential(g, out, in[0]); }},
    {"sigmoid", true,
     [](Emitter& g, const Register& out, const Register* in) { sigmoid(g, out, in[0]); }},
    {"silu", true,
     [](Emitter& g, const Register& out, const Register* in) {
       one_and_exponential(g, out, in[0]);
       g.load_number(g.temporary(0), -1e4f);
       g.vmaxps(g.temporary(0), g.temporary(0), in[0]);
       g.vdivps(out, g.temporary(0), out);
     }},
    {"silu_backward", true,
     [](Emitter& g, const Register& out, const Register* in) {
       sigmoid(g, out, in[1]);
       const Register slope = g.temporary(0);
       const Register x = g.temporary(1);
       g.load_number(slope, 1.0f);
       g.vsubps(slope, slope, out);
       g.load_number(x, -1e4f);
       g.vmaxps(x, x, in[1]);
       g.load_number(g.temporary(2), 1e4f);
       g.vminps(x, g.temporary(2), x);
       g.vmulps(slope, x, slope);
       g.vaddps(slope, slope, g.literal(1.0f));
       g.vmulps(out, in[0], out);
       g.vmulps(out, out, slope);
     }},
    {"eq", false, comparison<Emitter::equal>},
    {"ne", false, comparison<Emitter::not_equal>},
    {"lt", false, comparison<Emitter::less>},
    {"le", false, comparison<Emitter::less_equal>},
    {"gt", false, comparison<Emitter::greater>},
    {"ge", false, comparison<Emitter::greater_equal>},
    {"where", false,
     [](Emitter& g, const Register& out, const Register* in) {
       g.lanes_to_mask(in[0]);
       g.select(out, in[1], in[2]);
     }},
};

}  // namespace

JitFormulas jit_formulas() { return {formulas, std::size(formulas)}; }

}  // namespace rushlight::cpu
#endif
