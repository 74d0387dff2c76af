// CUB's radix sort as a stable sort.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include <host.h>

namespace cub {

struct DeviceRadixSort {
  template <class Key, class Value, class N>
  static cudaError_t SortPairs(void* room, size_t& bytes, const Key* keys, Key* sorted_keys,
                               const Value* values, Value* sorted, N n, int begin_bit, int end_bit,
                               cudaStream_t) {
    if (room == nullptr) {
      bytes = 1;
      return cudaSuccess;
    }
    const int spare = static_cast<int>(8 * sizeof(Key)) - end_bit;
    const auto part = [&](size_t i) {
      return static_cast<Key>(static_cast<Key>(keys[i] << spare) >> (spare + begin_bit));
    };
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return part(a) < part(b); });
    for (size_t i = 0; i < order.size(); i++) {
      sorted_keys[i] = keys[order[i]];
      sorted[i] = values[order[i]];
    }
    return cudaSuccess;
  }
};

}  // namespace cub
