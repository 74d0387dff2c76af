// Rows of images on their way to and from the numbers that convolutions compute with.
#pragma once

#include "cpu/isa/simd.h"

namespace rushlight::cpu::RL_ISA {

// Elements at a stride; a loop of its own for every second one becomes vectors.
template <class S, class T>
void copy_row(T* dst, const S* from, int64_t stride, int64_t n) {
  if (stride == 1) {
    for_vectors<T>(n, [&](int64_t i, int64_t lanes) {
      store_some(dst + i, load_some(from + i, lanes), lanes);
    });
  } else if (stride == 2) {
    for (int64_t i = 0; i < n; i++) {
      dst[i] = static_cast<T>(from[i * 2]);
    }
  } else {
    for (int64_t i = 0; i < n; i++) {
      dst[i] = static_cast<T>(from[i * stride]);
    }
  }
}

template <class S, class T>
void put_row(S* to, int64_t stride, const T* from, int64_t n) {
  if (stride == 1) {
    for_vectors<T>(n, [&](int64_t i, int64_t lanes) {
      store_some(to + i, load_some(from + i, lanes), lanes);
    });
  } else {
    for (int64_t i = 0; i < n; i++) {
      to[i * stride] = S(from[i]);
    }
  }
}

}  // namespace rushlight::cpu::RL_ISA
