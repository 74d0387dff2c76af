// What sorts elements by CUB's radix sort, for ops that need more than their order: keys in the
// order of elements, and places sorted by keys.
#pragma once

#include <bit>

#include "cuda/memory.h"
#include "cuda/rows.cuh"

namespace rushlight::cuda {

// Elements of up to 4 bytes are sorted as 32-bit keys, of which only the lower bits count.
template <class T>
using Key = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;

// In the order of keys: -inf … -0 = 0 … inf, NaN; turned round where the order falls.
template <class T>
__device__ Key<T> key_of(T x, bool descending) {
  using U = typename unsigned_of<sizeof(T)>::type;
  constexpr U top = static_cast<U>(U(1) << (8 * sizeof(U) - 1));
  U key;
  if constexpr (std::is_same_v<T, bool> || std::is_unsigned_v<T>) {
    key = static_cast<U>(x);
  } else if constexpr (std::is_integral_v<T>) {
    key = static_cast<U>(static_cast<U>(x) ^ top);
  } else {
    const auto wide = widen(x);
    const U bits = wide == 0 ? U(0) : std::bit_cast<U>(x);
    key = static_cast<U>(wide != wide ? ~U(0) : (bits & top) != 0 ? ~bits : bits | top);
  }
  return static_cast<U>(descending ? ~key : key);
}

// Sorts places by the lower bits of their keys; equal ones keep their order. All four lists have n
// elements.
void sort_pairs(const Launch& launch, Device device, const uint32_t* keys, uint32_t* sorted_keys,
                const uint32_t* places, uint32_t* sorted, int64_t n, int bits);
void sort_pairs(const Launch& launch, Device device, const uint64_t* keys, uint64_t* sorted_keys,
                const uint32_t* places, uint32_t* sorted, int64_t n, int bits);

// Positions in [rows, n], sorted by row and then by value: element i of row r comes from place
// r * n + result % n of it. `self` is contiguous.
class SortedPlaces {
 public:
  SortedPlaces(const Tensor& self, const DimSplit& split, bool descending);
  const uint32_t* get() const { return by_row_ ? unsorted() : sorted_places(); }

 private:
  size_t bytes() const { return static_cast<size_t>(total_) * sizeof(uint32_t); }
  uint32_t* unsorted() const { return first_.as<uint32_t>(); }
  uint32_t* sorted_places() const { return second_.as<uint32_t>(); }

  int64_t total_;
  Scratch first_;  // all places, then those that are sorted by row, too
  Scratch second_;
  bool by_row_ = false;
};

}  // namespace rushlight::cuda
