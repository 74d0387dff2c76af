// erf of a vector of floats, under the name by which the compiler's vectoriser calls it
// (src/kernels/math.h declares `rushlight_erff`). Where vectors have 16 lanes, a table of 16
// polynomials fits registers and is twice as fast as the C library; elsewhere that is called.
#include <cmath>
#include <cstdint>

#include "cpu/isa/sse.h"

// What the compiler calls where it makes no vectors. Weak: every instruction set has it, and the
// linker keeps that of the lowest.
extern "C" __attribute__((weak, visibility("hidden"))) float rushlight_erff(float x) noexcept {
  return std::erf(x);
}

#if defined(__AVX512F__)

namespace {

// erf(x) / x for |x| in [i / 4, (i + 1) / 4) as a polynomial in |x| - i / 4 - 1 / 8: row k has the
// coefficients of degree k for i = 0 ... 15. Fitted to a relative error of 3e-9.
alignas(64) constexpr float coefficients[6][16] = {
    {1.12252963f, 1.07764506f, 0.997185409f, 0.896085799f, 0.789678454f, 0.689578235f, 0.602119207f,
     0.529061377f, 0.469339281f, 0.420722961f, 0.380874157f, 0.347809434f, 0.319996834f,
     0.296295762f, 0.275861979f, 0.258064508f},
    {-0.0931549445f, -0.259446084f, -0.373897403f, -0.424389422f, -0.419026196f, -0.377613425f,
     -0.32101351f, -0.264274955f, -0.215058103f, -0.175459579f, -0.144657627f, -0.120876245f,
     -0.102378264f, -0.0877875611f, -0.0760992467f, -0.0665972009f},
    {-0.365642309f, -0.288495272f, -0.16526486f, -0.0397309475f, 0.0541918091f, 0.104267411f,
     0.117074728f, 0.107401393f, 0.0888634846f, 0.069871515f, 0.0539598949f, 0.0417536981f,
     0.0326962695f, 0.0259983577f, 0.020990666f, 0.0171860252f},
    {0.0553772375f, 0.142984897f, 0.17534402f, 0.151600838f, 0.0962298885f, 0.0390333869f,
     -0.00137376774f, -0.0213114228f, -0.0262708496f, -0.0236383229f, -0.018693205f, -0.0140004568f,
     -0.0103348251f, -0.00767579395f, -0.00578537956f, -0.00443425542f},
    {0.106054433f, 0.0626983568f, 0.00198034197f, -0.0444001444f, -0.0603374988f, -0.0504389629f,
     -0.0297867041f, -0.0112713967f, -0.000127361098f, 0.00437602447f, 0.00504130777f,
     0.00421293033f, 0.00313142198f, 0.00223550061f, 0.00158987381f, 0.00114451093f},
    {-0.0194442142f, -0.0462021455f, -0.0464203507f, -0.0255043209f, -0.000650137372f, 0.014384659f,
     0.0168994553f, 0.0120439474f, 0.00591294188f, 0.00167795166f, -0.000305616937f,
     -0.000863715773f, -0.000814758765f, -0.000612894539f, -0.000427390187f, -0.000293173769f},
};

constexpr __mmask16 all = 0xffff;  // the unmasked forms make g++ 12 warn of its own headers

}  // namespace

extern "C" __attribute__((visibility("hidden"))) __m512 _ZGVeN16v_rushlight_erff(__m512 x) {
  const __m512i sign_bit = _mm512_set1_epi32(INT32_MIN);
  const __m512i bits = _mm512_castps_si512(x);
  const __m512 size = _mm512_castsi512_ps(_mm512_maskz_andnot_epi32(all, sign_bit, bits));
  // From 3.95 on erf is 1 in float. A NaN stays: min gives its second operand then.
  const __m512 bounded = _mm512_maskz_min_ps(all, _mm512_set1_ps(3.99999f), size);
  const __m512i interval =
      _mm512_maskz_cvttps_epi32(all, _mm512_mul_ps(bounded, _mm512_set1_ps(4.0f)));
  const __m512 middle = _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(all, interval),
                                        _mm512_set1_ps(0.25f), _mm512_set1_ps(0.125f));
  const __m512 d = _mm512_sub_ps(bounded, middle);
  const auto row = [&](int k) {
    return _mm512_maskz_permutexvar_ps(all, interval, _mm512_load_ps(coefficients[k]));
  };
  __m512 p = _mm512_fmadd_ps(row(5), d, row(4));
  p = _mm512_fmadd_ps(p, d, row(3));
  p = _mm512_fmadd_ps(p, d, row(2));
  p = _mm512_fmadd_ps(p, d, row(1));
  p = _mm512_fmadd_ps(p, d, row(0));
  const __m512 y = _mm512_maskz_min_ps(all, _mm512_set1_ps(1.0f), _mm512_mul_ps(bounded, p));
  return _mm512_castsi512_ps(
      _mm512_or_si512(_mm512_castps_si512(y), _mm512_and_si512(sign_bit, bits)));
}

#elif defined(__AVX2__)

extern "C" __m256 _ZGVdN8v_erff(__m256 x);
extern "C" __attribute__((visibility("hidden"))) __m256 _ZGVdN8v_rushlight_erff(__m256 x) {
  return _ZGVdN8v_erff(x);
}

#elif defined(__x86_64__)

extern "C" __m128 _ZGVbN4v_erff(__m128 x);
extern "C" __attribute__((visibility("hidden"))) __m128 _ZGVbN4v_rushlight_erff(__m128 x) {
  return _ZGVbN4v_erff(x);
}

#endif
