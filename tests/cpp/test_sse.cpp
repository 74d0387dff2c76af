// Vectors of 16 bytes (cpu/isa/sse.h) do what plain loops say: the compiler's own on x86-64, those
// over NEON on aarch64.
#if defined(__x86_64__)
#pragma GCC target("sse4.2")
#endif
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "check.h"

#define RL_ISA tested
#include "cpu/isa/sse.h"

namespace rushlight::cpu::tested {}
using namespace rushlight::cpu::tested;

namespace {

template <class T>
struct Lanes {
  static constexpr int count = 16 / sizeof(T);
  T x[count];
  T& operator[](int i) { return x[i]; }
  T operator[](int i) const { return x[i]; }
};

template <class T, class V>
Lanes<T> lanes(const V& v) {
  Lanes<T> out;
  std::memcpy(out.x, &v, sizeof(v));
  return out;
}

// What f(i) gives for each lane is what the vector has, bit for bit.
template <class T, class V, class F>
bool is(const V& v, const F& f) {
  const Lanes<T> found = lanes<T>(v);
  for (int i = 0; i < Lanes<T>::count; i++) {
    const T wanted = static_cast<T>(f(i));
    if (std::memcmp(&wanted, found.x + i, sizeof(T)) != 0) {
      return false;
    }
  }
  return true;
}

std::mt19937_64 bits(7);

// Bytes at random, with some of the largest and the smallest.
__m128i whole() {
  uint8_t bytes[16];
  for (uint8_t& byte : bytes) {
    const uint64_t x = bits();
    byte = static_cast<uint8_t>(x % 5 == 0 ? (x & 256 ? 255 : 0) : x >> 16);
  }
  __m128i v;
  std::memcpy(&v, bytes, sizeof(v));
  return v;
}

template <class T>
Lanes<T> numbers() {
  Lanes<T> out;
  for (T& x : out.x) {
    const uint64_t r = bits();
    x = r % 7 == 0   ? std::numeric_limits<T>::quiet_NaN()
        : r % 7 == 1 ? T(0)
        : r % 7 == 2 ? T(-0.0)
                     : static_cast<T>(static_cast<int64_t>(r) >> 40) / T(1024);
  }
  return out;
}

int32_t saturated(int32_t x, int32_t least, int32_t most) { return std::clamp(x, least, most); }

constexpr int times = 500;

RL_TEST(floats) {
  for (int t = 0; t < times; t++) {
    const auto x = numbers<float>();
    const auto y = numbers<float>();
    const __m128 a = _mm_loadu_ps(x.x);
    const __m128 b = _mm_loadu_ps(y.x);
    CHECK(is<float>(_mm_max_ps(a, b), [&](int i) { return x[i] > y[i] ? x[i] : y[i]; }));
    CHECK(is<float>(_mm_min_ps(a, b), [&](int i) { return x[i] < y[i] ? x[i] : y[i]; }));
    CHECK(is<uint32_t>(_mm_cmpunord_ps(a, b), [&](int i) {
      return std::isnan(x[i]) || std::isnan(y[i]) ? 0xffffffffU : 0U;
    }));
    CHECK(is<float>(_mm_set1_ps(x[0]), [&](int) { return x[0]; }));
    float stored[4];
    _mm_storeu_ps(stored, a);
    CHECK(std::memcmp(stored, x.x, sizeof(stored)) == 0);
    const __m128i w = whole();
    const auto n = lanes<int32_t>(w);
    CHECK(is<float>(_mm_cvtepi32_ps(w), [&](int i) { return static_cast<float>(n[i]); }));
  }
}

RL_TEST(doubles) {
  for (int t = 0; t < times; t++) {
    const auto x = numbers<double>();
    const auto y = numbers<double>();
    const __m128d a = _mm_loadu_pd(x.x);
    const __m128d b = _mm_loadu_pd(y.x);
    CHECK(is<double>(_mm_max_pd(a, b), [&](int i) { return x[i] > y[i] ? x[i] : y[i]; }));
    CHECK(is<double>(_mm_min_pd(a, b), [&](int i) { return x[i] < y[i] ? x[i] : y[i]; }));
    CHECK(is<uint64_t>(_mm_cmpunord_pd(a, b), [&](int i) {
      return std::isnan(x[i]) || std::isnan(y[i]) ? ~uint64_t{0} : uint64_t{0};
    }));
  }
}

RL_TEST(rows_become_columns) {
  Lanes<float> rows[4];
  __m128 v[4];
  for (int i = 0; i < 4; i++) {
    rows[i] = numbers<float>();
    v[i] = _mm_loadu_ps(rows[i].x);
  }
  _MM_TRANSPOSE4_PS(v[0], v[1], v[2], v[3]);
  for (int i = 0; i < 4; i++) {
    CHECK(is<float>(v[i], [&](int j) { return rows[j][i]; }));
  }
}

RL_TEST(sums_and_products_of_whole_numbers) {
  for (int t = 0; t < times; t++) {
    const __m128i a = whole();
    const __m128i b = whole();
    const auto x = lanes<uint32_t>(a);
    const auto y = lanes<uint32_t>(b);
    const auto p = lanes<int16_t>(a);
    const auto q = lanes<int16_t>(b);
    CHECK(is<uint32_t>(_mm_add_epi32(a, b), [&](int i) { return x[i] + y[i]; }));
    CHECK(is<uint32_t>(_mm_sub_epi32(a, b), [&](int i) { return x[i] - y[i]; }));
    CHECK(is<uint32_t>(_mm_mullo_epi32(a, b), [&](int i) { return x[i] * y[i]; }));
    CHECK(is<uint16_t>(_mm_add_epi16(a, b), [&](int i) { return p[i] + q[i]; }));
    CHECK(is<uint32_t>(_mm_madd_epi16(a, b), [&](int i) {
      const auto product = [&](int k) { return static_cast<uint32_t>(p[k] * q[k]); };
      return product(2 * i) + product(2 * i + 1);
    }));
    CHECK(is<uint32_t>(_mm_hadd_epi32(a, b), [&](int i) {
      const auto& from = i < 2 ? x : y;
      return from[i % 2 * 2] + from[i % 2 * 2 + 1];
    }));
    CHECK(is<uint32_t>(_mm_and_si128(a, b), [&](int i) { return x[i] & y[i]; }));
    CHECK(is<uint32_t>(_mm_or_si128(a, b), [&](int i) { return x[i] | y[i]; }));
    CHECK(is<uint32_t>(_mm_xor_si128(a, b), [&](int i) { return x[i] ^ y[i]; }));
  }
}

RL_TEST(shifts) {
  for (int t = 0; t < times; t++) {
    const __m128i a = whole();
    const auto h = lanes<uint16_t>(a);
    const auto w = lanes<uint32_t>(a);
    CHECK(is<uint16_t>(_mm_slli_epi16(a, 5), [&](int i) { return h[i] << 5; }));
    CHECK(is<uint16_t>(_mm_srli_epi16(a, 5), [&](int i) { return h[i] >> 5; }));
    CHECK(
        is<int16_t>(_mm_srai_epi16(a, 8), [&](int i) { return static_cast<int16_t>(h[i]) >> 8; }));
    CHECK(is<uint32_t>(_mm_slli_epi32(a, 16), [&](int i) { return w[i] << 16; }));
    CHECK(
        is<int32_t>(_mm_srai_epi32(a, 3), [&](int i) { return static_cast<int32_t>(w[i]) >> 3; }));
    const int n = t % 32;
    CHECK(is<int32_t>(_mm_sra_epi32(a, _mm_cvtsi32_si128(n)),
                      [&](int i) { return static_cast<int32_t>(w[i]) >> n; }));
  }
}

RL_TEST(lanes_of_other_widths) {
  for (int t = 0; t < times; t++) {
    const __m128i a = whole();
    const __m128i b = whole();
    const auto bytes = lanes<uint8_t>(a);
    const auto w = lanes<int32_t>(a);
    const auto v = lanes<int32_t>(b);
    const auto h = lanes<int16_t>(a);
    const auto k = lanes<int16_t>(b);
    CHECK(is<uint16_t>(_mm_cvtepu8_epi16(a), [&](int i) { return bytes[i]; }));
    CHECK(is<uint32_t>(_mm_cvtepu8_epi32(a), [&](int i) { return bytes[i]; }));
    CHECK(is<int32_t>(_mm_cvtepi8_epi32(a), [&](int i) { return static_cast<int8_t>(bytes[i]); }));
    CHECK(is<int16_t>(_mm_packs_epi32(a, b),
                      [&](int i) { return saturated(i < 4 ? w[i] : v[i - 4], -32768, 32767); }));
    CHECK(is<uint8_t>(_mm_packus_epi16(a, b),
                      [&](int i) { return saturated(i < 8 ? h[i] : k[i - 8], 0, 255); }));
  }
}

RL_TEST(places) {
  for (int t = 0; t < times; t++) {
    const __m128i a = whole();
    const __m128i b = whole();
    const auto x = lanes<uint8_t>(a);
    const auto y = lanes<uint8_t>(b);
    const auto w = lanes<uint32_t>(a);
    const auto v = lanes<uint32_t>(b);
    CHECK(is<uint8_t>(_mm_unpacklo_epi8(a, b), [&](int i) { return (i % 2 ? y : x)[i / 2]; }));
    CHECK(is<uint8_t>(_mm_unpackhi_epi8(a, b), [&](int i) { return (i % 2 ? y : x)[8 + i / 2]; }));
    CHECK(is<uint32_t>(_mm_unpacklo_epi32(a, b), [&](int i) { return (i % 2 ? v : w)[i / 2]; }));
    CHECK(
        is<uint8_t>(_mm_shuffle_epi8(a, b), [&](int i) { return y[i] & 128 ? 0 : x[y[i] & 15]; }));
  }
}

RL_TEST(memory) {
  const __m128i a = whole();
  const auto bytes = lanes<uint8_t>(a);
  alignas(16) uint8_t there[32] = {};
  _mm_storeu_si128(reinterpret_cast<__m128i*>(there + 1), a);
  CHECK(std::memcmp(there + 1, bytes.x, 16) == 0);
  const auto* const from = reinterpret_cast<const __m128i*>(there + 1);
  CHECK(is<uint8_t>(_mm_loadu_si128(from), [&](int i) { return bytes[i]; }));
  CHECK(is<uint8_t>(_mm_loadl_epi64(from), [&](int i) { return i < 8 ? bytes[i] : 0; }));
  CHECK(is<uint8_t>(_mm_loadu_si32(from), [&](int i) { return i < 4 ? bytes[i] : 0; }));
  CHECK(is<int32_t>(_mm_set1_epi32(-7), [](int) { return -7; }));
  CHECK(is<int8_t>(_mm_set1_epi8(-7), [](int) { return -7; }));
  CHECK(is<int8_t>(_mm_setr_epi8(0, -1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                   [](int i) { return i == 1 ? -1 : i; }));
  CHECK(_mm_cvtsi128_si32(_mm_cvtsi32_si128(-9)) == -9);
}

}  // namespace

RL_TEST_MAIN()
