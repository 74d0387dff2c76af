// Ways to the same checksum: eight tables, the instructions of aarch64, and folding by carry-less
// multiplication on x86-64 (Gopal and others, "Fast CRC Computation for Generic Polynomials Using
// PCLMULQDQ Instruction", Intel 2009; the constants are those of its reflected variant for this
// polynomial).
#include "serialize/crc32.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace rushlight::serialize {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables tables = [] {
  Tables t{};
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int k = 0; k < 8; k++) {
      c = (c >> 1) ^ (-(c & 1u) & 0xedb88320u);
    }
    t[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; i++) {
    for (size_t k = 1; k < 8; k++) {
      t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 0xff];
    }
  }
  return t;
}();

// Polynomials modulo that of the checksum, the highest bit for x^0.
constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 0x80000000u; bit != 0; bit >>= 1) {
    product ^= (a & bit) != 0 ? b : 0;
    b = (b >> 1) ^ (-(b & 1u) & 0xedb88320u);
  }
  return product;
}

// On the inverted register, as all functions below.
uint32_t crc_by_tables(uint32_t c, const unsigned char* p, size_t n) {
  for (; n >= 8; n -= 8, p += 8) {
    uint32_t low = 0;
    uint32_t high = 0;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + 4, 4);
    low ^= c;
    c = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
        tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
        tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
  }
  for (; n > 0; n--, p++) {
    c = (c >> 8) ^ tables[0][(c ^ *p) & 0xff];
  }
  return c;
}

#if defined(__x86_64__)

__attribute__((target("pclmul,sse4.1"))) inline __m128i fold(__m128i x, __m128i keys,
                                                             __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(x, keys, 0x00);
  const __m128i high = _mm_clmulepi64_si128(x, keys, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// n is a multiple of 16 and at least 64.
__attribute__((target("pclmul,sse4.1"))) uint32_t crc_by_folding(uint32_t c, const unsigned char* p,
                                                                 size_t n) {
  const auto load = [](const unsigned char* at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  };
  const __m128i by_512 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i by_128 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  const __m128i by_64 = _mm_set_epi64x(0, 0x163cd6124);
  const __m128i reduce = _mm_set_epi64x(0x1f7011641, 0x1db710641);
  const __m128i low_32 = _mm_setr_epi32(-1, 0, -1, 0);

  __m128i x0 = _mm_xor_si128(load(p), _mm_cvtsi32_si128(static_cast<int>(c)));
  __m128i x1 = load(p + 16);
  __m128i x2 = load(p + 32);
  __m128i x3 = load(p + 48);
  for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
    x0 = fold(x0, by_512, load(p));
    x1 = fold(x1, by_512, load(p + 16));
    x2 = fold(x2, by_512, load(p + 32));
    x3 = fold(x3, by_512, load(p + 48));
  }
  __m128i x = fold(fold(fold(x0, by_128, x1), by_128, x2), by_128, x3);
  for (; n >= 16; p += 16, n -= 16) {
    x = fold(x, by_128, load(p));
  }
  // From 128 bits to 64, to 32, and Barrett's reduction of the rest.
  x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, by_128, 0x10));
  x = _mm_xor_si128(_mm_srli_si128(x, 4),
                    _mm_clmulepi64_si128(_mm_and_si128(x, low_32), by_64, 0x00));
  __m128i q = _mm_clmulepi64_si128(_mm_and_si128(x, low_32), reduce, 0x10);
  q = _mm_clmulepi64_si128(_mm_and_si128(q, low_32), reduce, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(x, q), 1));
}

// x^n modulo the polynomial of the checksum, as folding multiplies by it.
constexpr uint64_t folding_key(uint64_t n) {
  uint32_t power = 0x80000000u;
  uint32_t square = 0x80000000u >> 1;
  for (; n != 0; n >>= 1) {
    power = (n & 1) != 0 ? multiply(power, square) : power;
    square = multiply(square, square);
  }
  return uint64_t{power} << 1;
}

#define RL_WIDE __attribute__((target("avx512f,vpclmulqdq")))

RL_WIDE inline __m512i fold_wide(__m512i x, __m512i keys, const unsigned char* next) {
  const __m512i low = _mm512_clmulepi64_epi128(x, keys, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(x, keys, 0x11);
  return _mm512_ternarylogic_epi64(low, high, _mm512_loadu_si512(next), 0x96);
}

// Four times as many bits at once. n is a multiple of 256 and above 0.
RL_WIDE uint32_t crc_by_wide_folding(uint32_t c, const unsigned char* p, size_t n) {
  constexpr int64_t low = static_cast<int64_t>(folding_key(2048 + 32));
  constexpr int64_t high = static_cast<int64_t>(folding_key(2048 - 32));
  const __m512i by_2048 = _mm512_set_epi64(high, low, high, low, high, low, high, low);
  __m512i x0 = _mm512_xor_si512(_mm512_loadu_si512(p),
                                _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(c))));
  __m512i x1 = _mm512_loadu_si512(p + 64);
  __m512i x2 = _mm512_loadu_si512(p + 128);
  __m512i x3 = _mm512_loadu_si512(p + 192);
  for (p += 256, n -= 256; n != 0; p += 256, n -= 256) {
    x0 = fold_wide(x0, by_2048, p);
    x1 = fold_wide(x1, by_2048, p + 64);
    x2 = fold_wide(x2, by_2048, p + 128);
    x3 = fold_wide(x3, by_2048, p + 192);
  }
  // What is left has the checksum of all that was folded into it.
  alignas(64) unsigned char rest[256];
  _mm512_store_si512(rest, x0);
  _mm512_store_si512(rest + 64, x1);
  _mm512_store_si512(rest + 128, x2);
  _mm512_store_si512(rest + 192, x3);
  return crc_by_folding(0, rest, sizeof rest);
}
#undef RL_WIDE

#elif defined(__aarch64__)

__attribute__((target("+crc"))) uint32_t crc_by_instructions(uint32_t c, const unsigned char* p,
                                                             size_t n) {
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t eight;
    std::memcpy(&eight, p, 8);
    c = __builtin_aarch64_crc32x(c, eight);
  }
  for (; n > 0; n--, p++) {
    c = __builtin_aarch64_crc32b(c, *p);
  }
  return c;
}

#endif

}  // namespace

uint32_t crc32_tables(uint32_t crc, const void* data, size_t n) {
  return ~crc_by_tables(~crc, static_cast<const unsigned char*>(data), n);
}

uint32_t crc32(uint32_t crc, const void* data, size_t n) {
  const auto* p = static_cast<const unsigned char*>(data);
#if defined(__x86_64__)
  static const bool can_fold = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  static const bool can_fold_wide =
      can_fold && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
  crc = ~crc;
  if (can_fold_wide && n >= 1024) {
    const size_t folded = n & ~size_t{255};
    crc = crc_by_wide_folding(crc, p, folded);
    p += folded;
    n -= folded;
  }
  if (can_fold && n >= 64) {
    const size_t folded = n & ~size_t{15};
    crc = crc_by_folding(crc, p, folded);
    p += folded;
    n -= folded;
  }
  return ~crc_by_tables(crc, p, n);
#else
  static const bool has_instructions = (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
  return ~(has_instructions ? crc_by_instructions(~crc, p, n) : crc_by_tables(~crc, p, n));
#endif
}

uint32_t crc32_of_both(uint32_t first, uint32_t second, uint64_t n) {
  // first * x^(8 n), the power by squaring.
  uint32_t power = 0x80000000u >> 8;
  for (; n != 0; n >>= 1) {
    if ((n & 1) != 0) {
      first = multiply(first, power);
    }
    power = multiply(power, power);
  }
  return first ^ second;
}

}  // namespace rushlight::serialize
