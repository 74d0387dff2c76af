// Images interleaved so that as many as a vector has lanes lie side by side: every vector is one
// pixel of all of them. What conv/batch.cpp and conv/batch_weight.cpp share. In interleaved images
// pixels keep the order that they have in the tensor's memory, so images may be in any order as
// long as each is dense.
#pragma once

#include "cpu/isa/conv/axes.h"
#include "cpu/isa/simd.h"
#include "cpu/scratch.h"

namespace rushlight::cpu::RL_ISA {

// Calls f(e, n) for the squares of elements e to e + n: n is a constant for all but the last.
template <class T, class F>
inline __attribute__((always_inline)) void for_squares(int64_t elements, const F& f) {
  constexpr int64_t w = Simd<T>::width;
  int64_t e = 0;
  for (; e + w <= elements; e += w) {
    f(e, std::integral_constant<int64_t, w>());
  }
  if (e < elements) {
    f(e, elements - e);
  }
}

// Transposes a square that f(i) loads: n vectors, and zeros.
template <class T, class F>
inline __attribute__((always_inline)) void load_square(
    typename Simd<T>::V (&square)[Simd<T>::width], int64_t n, const F& load) {
  constexpr int64_t w = Simd<T>::width;
  if (RL_LIKELY(n == w)) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < w; i++) {
      square[i] = load(i);
    }
  } else {
    for (int64_t i = 0; i < w; i++) {
      square[i] = i < n ? load(i) : Simd<T>::zero();
    }
  }
  transpose<T>(square);
}

template <class T, class F>
inline __attribute__((always_inline)) void store_square(
    const typename Simd<T>::V (&square)[Simd<T>::width], int64_t n, const F& store) {
  constexpr int64_t w = Simd<T>::width;
  if (RL_LIKELY(n == w)) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < w; i++) {
      store(i, square[i]);
    }
  } else {
    for (int64_t i = 0; i < n; i++) {
      store(i, square[i]);
    }
  }
}

// n images from image n0 on, which become lanes 0 to n of `to`, zeros behind them.
template <class S, class T>
void interleave(const Images& images, int64_t n0, int64_t n, int64_t elements, T* to) {
  using V = Simd<T>;
  const int64_t step = images.strides[0];
  const S* from = static_cast<const S*>(images.data) + n0 * step;
  for_squares<T>(elements, [&](int64_t e, auto together) __attribute__((always_inline)) {
    typename V::V square[V::width];
    load_square<T>(square, n, [&](int64_t i) { return load_some(from + i * step + e, together); });
    store_square<T>(square, together,
                    [&](int64_t i, typename V::V v) { V::store(to + (e + i) * V::width, v); });
  });
}

template <class S, class T>
void deinterleave(const T* from, const Images& images, int64_t n0, int64_t n, int64_t elements) {
  using V = Simd<T>;
  const int64_t step = images.strides[0];
  S* to = static_cast<S*>(images.data) + n0 * step;
  for_squares<T>(elements, [&](int64_t e, auto together) __attribute__((always_inline)) {
    typename V::V square[V::width];
    load_square<T>(square, together, [&](int64_t i) { return V::load(from + (e + i) * V::width); });
    store_square<T>(
        square, n, [&](int64_t i, typename V::V v) { store_some(to + i * step + e, v, together); });
  });
}

// Where input and output of a task are, in elements of interleaved images.
template <class T>
struct Steps {
  int64_t channel;
  int64_t pixel[3];
  explicit Steps(const Images& images) : channel(images.strides[1] * Simd<T>::width) {
    for (int d = 0; d < 3; d++) {
      pixel[d] = images.strides[2 + d] * Simd<T>::width;
    }
  }
};

// Channels o to o + n that a tile computes together, and where block b of all begins.
struct Blocks {
  int64_t count;
  int64_t channels;
  explicit Blocks(int64_t n, int64_t most) : count((n + most - 1) / most), channels(n) {}
  int64_t begin(int64_t b) const { return channels * b / count; }
};

// Calls f(first image, number) for the images of each task.
template <class T, class F>
void for_tasks(const Conv& c, const F& f) {
  constexpr int64_t w = Simd<T>::width;
  parallel_for(0, (c.batch + w - 1) / w, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; t++) {
      f(t, std::min(w, c.batch - t * w));
    }
  });
}

inline int64_t area(const Dims3& size) { return size[0] * size[1] * size[2]; }

// Why a convolution is not computed with interleaved images; null: it is. `most`: elements of an
// image and its result, which should stay in the second-level cache.
const char* interleaved_refusal(const Conv& c, int64_t most);

const char* batch_weight_backward(const Conv& c);

}  // namespace rushlight::cpu::RL_ISA
