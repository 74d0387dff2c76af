// Short rows turned on their side, so that a vector holds the same place of many.
#pragma once

#include <algorithm>

#include "core/parallel.h"
#include "cpu/isa/pointwise/cast.h"
#include "cpu/reduce_driver.h"
#include "cpu/scratch.h"

namespace rushlight::cpu::RL_ISA {

// Elements are computed in whole vectors wherever they stand.
inline constexpr int64_t granule = 16;

RL_INLINE int64_t round_up_to_granule(int64_t n) { return (n + granule - 1) & -granule; }

// Rows that are turned at once: a tile lies in the first-level cache, twice.
template <class A>
int64_t rows_to_transpose(int64_t n) {
  constexpr int64_t bytes = 8192;
  return std::clamp<int64_t>(bytes / (n * static_cast<int64_t>(sizeof(A))) & -granule, 32, 512);
}

// Tiles of short rows, n elements each, that follow each other in memory. In a tile there are `ld`
// elements, whole granules, from one place of the rows to the next; behind the last row are zeros.
template <class A>
class TurnedRows {
 public:
  TurnedRows(int64_t n, int64_t rows)
      : n_(n), tile_(n * round_up_to_granule(rows)), staging_(n * rows) {}

  A* tile() const { return tile_; }
  // Reads `rows` rows; `read` converts their elements, of in_size bytes, where A is not theirs.
  int64_t load(const char* from, int64_t rows, ConvertRun read, int64_t in_size) {
    constexpr int64_t size = sizeof(A);
    const int64_t ld = round_up_to_granule(rows);
    if (read != nullptr) {
      read(staging_.data(), from, in_size, rows * n_);
      from = reinterpret_cast<const char*>(staging_.data());
    }
    transpose(reinterpret_cast<char*>(tile()), ld * size, from, n_ * size, size, n_, rows);
    for (int64_t c = 0; rows < ld && c < n_; c++) {
      std::fill(tile() + c * ld + rows, tile() + (c + 1) * ld, A(0));
    }
    return ld;
  }
  void store(char* to, int64_t rows, ConvertRun write) {
    constexpr int64_t size = sizeof(A);
    const int64_t ld = round_up_to_granule(rows);
    char* const turned = write != nullptr ? reinterpret_cast<char*>(staging_.data()) : to;
    transpose(turned, n_ * size, reinterpret_cast<const char*>(tile()), ld * size, size, rows, n_);
    if (write != nullptr) {
      write(to, turned, size, rows * n_);
    }
  }

 private:
  int64_t n_;
  Scratch<A> tile_;
  Scratch<A> staging_;
};

// Calls f(turned, first, rows) for blocks of at most `width` of `count` rows of n elements, from
// several threads.
template <class A, class F>
void for_transposed_rows(int64_t count, int64_t n, int64_t width, const F& f) {
  const int64_t grain = std::max<int64_t>(1, 16384 / (n * width));
  parallel_for(0, num_chunks(0, count, width), grain, [&](int64_t begin, int64_t end) {
    const int64_t stop = std::min(end * width, count);
    TurnedRows<A> turned(n, std::min(width, stop - begin * width));
    for (int64_t first = begin * width; first < stop; first += width) {
      f(turned, first, std::min(width, stop - first));
    }
  });
}

}  // namespace rushlight::cpu::RL_ISA
