// Elements as unsigned integers of the same order: -0 and 0 are equal, NaNs are equal to each other
// and above all. With its position below the key, an item is unique, so every way of sorting items
// is stable.
#pragma once

#include <bit>
#include <cstring>

#include <rushlight/dtype.h>

#include "kernels/read_element.h"

namespace rushlight::cpu::RL_ISA {

template <class T>
struct key_of {  // bool and unsigned integers
  using type = T;
  static type get(T x) { return x; }
};
template <>
struct key_of<bool> {
  using type = uint8_t;
  static type get(const bool& x) { return read_element(&x); }
};
template <class T>
  requires(std::is_signed_v<T> && std::is_integral_v<T>)
struct key_of<T> {
  using type = std::make_unsigned_t<T>;
  static type get(T x) {
    return static_cast<type>(static_cast<type>(x) ^ (type(1) << (8 * sizeof(T) - 1)));
  }
};
template <class Bits, Bits Infinity>
Bits float_key(Bits bits) {
  constexpr Bits sign = static_cast<Bits>(Bits(1) << (8 * sizeof(Bits) - 1));
  const Bits size = bits & static_cast<Bits>(~sign);
  bits = size == 0 ? Bits(0) : bits;
  const Bits key = (bits & sign) != 0 ? static_cast<Bits>(~bits) : static_cast<Bits>(bits | sign);
  return size > Infinity ? static_cast<Bits>(~Bits(0)) : key;
}
template <>
struct key_of<Half> {
  using type = uint16_t;
  static type get(Half x) { return float_key<uint16_t, 0x7c00>(x.bits); }
};
template <>
struct key_of<BFloat16> {
  using type = uint16_t;
  static type get(BFloat16 x) { return float_key<uint16_t, 0x7f80>(x.bits); }
};
template <>
struct key_of<float> {
  using type = uint32_t;
  static type get(float x) { return float_key<uint32_t, 0x7f800000>(std::bit_cast<uint32_t>(x)); }
};
template <>
struct key_of<double> {
  using type = uint64_t;
  static type get(double x) {
    return float_key<uint64_t, 0x7ff0000000000000>(std::bit_cast<uint64_t>(x));
  }
};
template <class T>
using Key = typename key_of<T>::type;

// The least and the greatest of integers, from which shorter keys can be counted.
template <class T>
struct IntegerRange {
  T least = 0;
  T greatest = 0;
  uint64_t offset_from_least(T x) const {
    return static_cast<uint64_t>(x) - static_cast<uint64_t>(least);
  }
  uint64_t below(T x) const { return static_cast<uint64_t>(greatest) - static_cast<uint64_t>(x); }
  bool fits_word() const { return offset_from_least(greatest) >> 32 == 0; }
  int key_bytes() const { return (std::bit_width(offset_from_least(greatest)) + 7) / 8; }
};
template <class T>
IntegerRange<T> integer_range(const T* x, int64_t n) {
  IntegerRange<T> range{x[0], x[0]};
  for (int64_t i = 0; i < n; i++) {
    range.least = x[i] < range.least ? x[i] : range.least;
    range.greatest = x[i] > range.greatest ? x[i] : range.greatest;
  }
  return range;
}

// Keys of up to 32 bits share a word with the position.
struct Item8 {
  uint64_t word;
  static Item8 make(uint64_t key, int64_t index) {
    return {key << 32 | static_cast<uint32_t>(index)};
  }
  uint64_t key() const { return word >> 32; }
  int64_t index() const { return static_cast<int64_t>(word & 0xffffffffu); }
  friend bool operator<(Item8 a, Item8 b) { return a.word < b.word; }
};
struct Item16 {
  uint64_t high;
  int64_t low;
  static Item16 make(uint64_t key, int64_t index) { return {key, index}; }
  uint64_t key() const { return high; }
  int64_t index() const { return low; }
  friend bool operator<(Item16 a, Item16 b) {
    return a.high < b.high || (a.high == b.high && a.low < b.low);
  }
};

// For whoever asks for no positions.
struct BareKey {
  uint64_t word;
  static BareKey make(uint64_t key, int64_t) { return {key}; }
  uint64_t key() const { return word; }
  friend bool operator<(BareKey a, BareKey b) { return a.word < b.word; }
};

// More items than these are sorted by all threads together.
inline constexpr int64_t long_row = 1 << 17;

// In the order of keys, from the least significant byte up; a byte that all items share costs
// nothing. `a` and `b` have n items; returns the one that holds the result.
template <class Item>
Item* radix_sort(Item* a, Item* b, int64_t n, int bytes);

// Rows of at most this many items of 8 bytes are sorted side by side, `sorted_together` at a time.
inline constexpr int64_t network_row = 24;
inline constexpr int64_t sorted_together = 16;
// Item i of row r is items[i * sorted_together + r].
void sort_side_by_side(Item8* items, int64_t n);

}  // namespace rushlight::cpu::RL_ISA
