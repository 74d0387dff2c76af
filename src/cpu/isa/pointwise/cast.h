// Moving elements between dtypes and layouts: what every kernel that accepts any dtype or stride
// builds on.
#pragma once

#include <cstring>

#include <rushlight/dtype.h>

namespace rushlight::cpu::RL_ISA {

// Converts n contiguous elements; a plain copy where the dtypes are equal. The ranges lie apart.
using CastStep = void (*)(void* to, const void* from, int64_t n);

// A conversion in one step or in two, by way of a dtype of at most 8 bytes.
struct Cast {
  CastStep first = nullptr;
  CastStep second = nullptr;
  int64_t from_size = 0;
  int64_t to_size = 0;

  explicit operator bool() const { return first != nullptr; }
  void operator()(void* to, const void* from, int64_t n) const {
    if (second == nullptr) {
      first(to, from, n);
    } else {
      cast_in_two_steps(to, from, n);
    }
  }

 private:
  void cast_in_two_steps(void* to, const void* from, int64_t n) const;
};
Cast cast_function(ScalarType to, ScalarType from);

// Elements of 1, 2, 4, 8 or 16 bytes; strides in bytes.
void gather(char* to, const char* from, int64_t stride, int64_t size, int64_t n);
void scatter(char* to, int64_t stride, const char* from, int64_t size, int64_t n);
void fill(char* to, const char* value, int64_t size, int64_t n);
// memcpy for runs of some tens of bytes, inlined: a call of the library's costs more than they do.
inline __attribute__((always_inline)) void move_run(char* to, const char* from, int64_t bytes) {
  constexpr int64_t block = 32;
  if (bytes < block || bytes > 1024) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  for (int64_t i = 0; i + block <= bytes; i += block) {
    std::memcpy(to + i, from + i, block);
  }
  // The last block may overlap the one before it: both have the same bytes there.
  std::memcpy(to + bytes - block, from + bytes - block, block);
}
// to[i][j] = from[j][i] for i < rows, j < columns; both have unit inner stride and the given outer
// strides in bytes.
void transpose(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t size,
               int64_t rows, int64_t columns);
// memcpy past the caches, for results too large to be found there again (stream_threshold).
void stream(char* to, const char* from, int64_t bytes);

}  // namespace rushlight::cpu::RL_ISA
