// Elements of an operand of an iterator, in the order of the iteration: where they are, and how
// those of several rows are brought together and back.
#pragma once

#include <algorithm>

#include "core/iterator.h"
#include "cpu/isa/pointwise/cast.h"
#include "kernels/by_size.h"
#include "kernels/inline.h"

namespace rushlight::cpu::RL_ISA {

// Position in the merged shape.
struct Cursor {
  int64_t at[TensorIterator::max_dims];

  void seek(const TensorIterator& it, int64_t index) {
    const IntArrayRef shape = it.shape();
    for (int d = 0; d < it.dim(); ++d) {
      at[d] = index % shape[d];
      index /= shape[d];
    }
  }
  int64_t offset(const TensorIterator& it, int operand) const {
    const int64_t* strides = it.strides(operand).data();
    int64_t bytes = 0;
    for (int d = 0; d < it.dim(); ++d) {
      bytes += at[d] * strides[d];
    }
    return bytes;
  }
  int64_t index(const TensorIterator& it) const {
    int64_t index = 0;
    for (int d = it.dim() - 1; d >= 0; --d) {
      index = index * it.shape()[d] + at[d];
    }
    return index;
  }
  void next_row(const TensorIterator& it) {
    at[0] = 0;
    for (int d = 1; d < it.dim(); ++d) {
      if (++at[d] < it.shape()[d]) {
        return;
      }
      at[d] = 0;
    }
  }
};

// Many short runs are filled: whole blocks, the last of which may overlap the one before it.
template <class T>
RL_INLINE void fill_run(T* to, T value, int64_t n) {
  constexpr int64_t block = 64 / static_cast<int64_t>(sizeof(T));
  const auto fill_block = [value](T* x) {
    for (int64_t i = 0; i < block; ++i) {
      x[i] = value;
    }
  };
  if (n < block) {
    std::fill(to, to + n, value);
    return;
  }
  for (int64_t i = 0; i + block <= n; i += block) {
    fill_block(to + i);
  }
  fill_block(to + n - block);
}

// n elements together, from the position and the address `from` on, of an operand with these strides.
inline void gather_rows(const int64_t* shape, const int64_t* strides, int64_t size, char* to,
                        const char* from, Cursor cursor, int64_t n) {
  const int64_t stride = strides[0];
  visit_size(size, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = reinterpret_cast<T*>(to);
    while (true) {
      const int64_t count = std::min(n, shape[0] - cursor.at[0]);
      if (stride == static_cast<int64_t>(sizeof(T))) {
        move_run(reinterpret_cast<char*>(out), from, count * stride);
      } else if (stride == 0) {
        fill_run(out, *reinterpret_cast<const T*>(from), count);
      } else {
        for (int64_t i = 0; i < count; ++i) {
          out[i] = *reinterpret_cast<const T*>(from + i * stride);
        }
      }
      out += count;
      n -= count;
      if (n == 0) {
        return;
      }
      from -= cursor.at[0] * stride;
      cursor.at[0] = 0;
      int d = 1;
      from += strides[d];
      while (++cursor.at[d] == shape[d]) {
        cursor.at[d] = 0;
        from -= shape[d] * strides[d];
        ++d;
        from += strides[d];
      }
    }
  });
}
inline void gather_rows(const TensorIterator& it, int operand, int64_t size, char* to,
                        const Cursor& start, int64_t n) {
  gather_rows(it.shape().data(), it.strides(operand).data(), size, to,
              it.data(operand) + start.offset(it, operand), start, n);
}

// The other way.
inline void scatter_rows(const TensorIterator& it, int operand, int64_t size, const char* from,
                         Cursor cursor, int64_t n) {
  while (n > 0) {
    const int64_t count = std::min(n, it.shape()[0] - cursor.at[0]);
    scatter(it.data(operand) + cursor.offset(it, operand), it.strides(operand)[0], from, size,
            count);
    from += count * size;
    n -= count;
    cursor.next_row(it);
  }
}

}  // namespace rushlight::cpu::RL_ISA
