// Copies between any two layouts and dtypes, and fills. Rows that both sides hold together are
// converted in one call, many short ones moved in a loop of their own; transposed copies go by
// square tiles, so that both sides touch whole cache lines.
#include "cpu/copy.h"

#include <algorithm>
#include <cstring>

#include "cpu/formula_kernel.h"
#include "cpu/isa/pointwise/cast.h"

namespace rushlight::cpu::RL_ISA {

namespace {

constexpr int64_t piece = 1024;
constexpr int64_t tile = 64;

struct Sides {
  Cast cast;
  bool same;  // the dtypes are equal
  int64_t to_size;
  int64_t from_size;
};

void copy_row(const Sides& sides, char* to, int64_t to_stride, const char* from,
              int64_t from_stride, int64_t n) {
  const bool to_together = to_stride == sides.to_size;
  const bool from_together = from_stride == sides.from_size;
  if (to_together && from_together) {
    sides.cast(to, from, n);
    return;
  }
  if (sides.same && (to_together || from_together)) {
    to_together ? gather(to, from, from_stride, sides.from_size, n)
                : scatter(to, to_stride, from, sides.to_size, n);
    return;
  }
  alignas(64) char gathered[16 * piece];
  alignas(64) char converted[16 * piece];
  for (int64_t i = 0; i < n; i += piece) {
    const int64_t count = std::min(piece, n - i);
    const char* in = from + i * from_stride;
    char* out = to + i * to_stride;
    if (!from_together) {
      gather(gathered, in, from_stride, sides.from_size, count);
      in = gathered;
    }
    if (to_together) {
      sides.cast(out, in, count);
    } else {
      sides.cast(converted, in, count);
      scatter(out, to_stride, converted, sides.to_size, count);
    }
  }
}

// The dimension along which the input lies together, where that is not the output's own; 0 where
// there is none.
int transposed_dim(const TensorIterator& it) {
  const int64_t size = itemsize(it.dtype(1));
  if (it.dtype(0) != it.dtype(1) || it.strides(0)[0] != size || it.strides(1)[0] == size ||
      it.strides(1)[0] == 0) {
    return 0;
  }
  for (int d = 1; d < it.dim(); ++d) {
    if (it.strides(1)[d] == size) {
      return it.shape()[0] >= 2 && it.shape()[d] >= 4 ? d : 0;
    }
  }
  return 0;
}

void copy_transposed(const TensorIterator& it, int across) {
  const int64_t size = itemsize(it.dtype(0));
  const IntArrayRef shape = it.shape();
  const int64_t columns = shape[0];
  const int64_t rows = shape[across];
  const int64_t column_tiles = (columns + tile - 1) / tile;
  const int64_t row_tiles = (rows + tile - 1) / tile;
  const int64_t planes = it.numel() / (columns * rows);
  constexpr int64_t tiles_at_once = 8;
  parallel_for(
      0, planes * row_tiles * column_tiles, tiles_at_once, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          const int64_t column = k % column_tiles * tile;
          const int64_t row = k / column_tiles % row_tiles * tile;
          int64_t plane = k / (column_tiles * row_tiles);
          char* to = it.data(0) + column * it.strides(0)[0] + row * it.strides(0)[across];
          const char* from = it.data(1) + column * it.strides(1)[0] + row * it.strides(1)[across];
          for (int d = 1; d < it.dim(); ++d) {
            if (d != across) {
              to += plane % shape[d] * it.strides(0)[d];
              from += plane % shape[d] * it.strides(1)[d];
              plane /= shape[d];
            }
          }
          transpose(to, it.strides(0)[across], from, it.strides(1)[0], size,
                    std::min(tile, rows - row), std::min(tile, columns - column));
        }
      });
}

// `count` rows of n elements of equal size, `*_step` bytes from row to row.
struct Rows {
  char* to;
  int64_t to_step;
  const char* from;
  int64_t from_step;
  int64_t count;
};

template <int64_t Bytes>
void move_rows_of(const Rows& r) {
  for (int64_t i = 0; i < r.count; ++i) {
    std::memcpy(r.to + i * r.to_step, r.from + i * r.from_step, Bytes);
  }
}

void move_rows(const Rows& r, int64_t bytes) {
  switch (bytes) {
    case 8:
      return move_rows_of<8>(r);
    case 16:
      return move_rows_of<16>(r);
    case 32:
      return move_rows_of<32>(r);
    case 64:
      return move_rows_of<64>(r);
    case 128:
      return move_rows_of<128>(r);
    default:
      for (int64_t i = 0; i < r.count; ++i) {
        move_run(r.to + i * r.to_step, r.from + i * r.from_step, bytes);
      }
  }
}

// Elements of one dtype in two dimensions or more, neither transposed nor with long rows: what a
// row costs besides its bytes is what counts here.
bool has_short_rows(const TensorIterator& it) {
  constexpr int64_t longest = 4096;
  const int64_t size = itemsize(it.dtype(0));
  return it.dtype(0) == it.dtype(1) && it.dim() >= 2 && it.shape()[0] <= longest &&
         (it.strides(0)[0] == size || it.strides(1)[0] == size);
}

void copy_short_rows(const TensorIterator& it) {
  const int64_t size = itemsize(it.dtype(0));
  const IntArrayRef shape = it.shape();
  const int64_t n = shape[0];
  const int64_t to_stride = it.strides(0)[0];
  const int64_t from_stride = it.strides(1)[0];
  const int64_t grain = std::max<int64_t>(1, TensorIterator::default_grain / n);
  parallel_for(0, it.numel() / n, grain, [&](int64_t begin, int64_t end) {
    int64_t row = begin;
    while (row < end) {
      Rows rows{it.data(0), it.strides(0)[1], it.data(1), it.strides(1)[1],
                std::min(shape[1] - row % shape[1], end - row)};
      int64_t rest = row;
      for (int d = 1; d < it.dim(); ++d) {
        rows.to += rest % shape[d] * it.strides(0)[d];
        rows.from += rest % shape[d] * it.strides(1)[d];
        rest /= shape[d];
      }
      if (to_stride == size && from_stride == size) {
        move_rows(rows, n * size);
      } else {
        for (int64_t i = 0; i < rows.count; ++i) {
          char* to = rows.to + i * rows.to_step;
          const char* from = rows.from + i * rows.from_step;
          if (to_stride == size) {
            gather(to, from, from_stride, size, n);
          } else {
            scatter(to, to_stride, from, size, n);
          }
        }
      }
      row += rows.count;
    }
  });
}

// A conversion whose result no cache will hold: written past them.
void copy_past_caches(const TensorIterator& it, const Sides& sides) {
  it.for_each([&](char** data, const int64_t*, int64_t n) {
    alignas(64) char converted[16 * piece];
    for (int64_t i = 0; i < n; i += piece) {
      const int64_t count = std::min(piece, n - i);
      sides.cast(converted, data[1] + i * sides.from_size, count);
      stream(data[0] + i * sides.to_size, converted, count * sides.to_size);
    }
  });
}

void copy(const TensorIterator& it) {
  if (const int across = transposed_dim(it)) {
    copy_transposed(it, across);
    return;
  }
  if (has_short_rows(it)) {
    copy_short_rows(it);
    return;
  }
  const Sides sides{cast_function(it.dtype(0), it.dtype(1)), it.dtype(0) == it.dtype(1),
                    itemsize(it.dtype(0)), itemsize(it.dtype(1))};
  const bool together = it.strides(0)[0] == sides.to_size && it.strides(1)[0] == sides.from_size;
  if (together && it.dim() == 1 &&
      it.numel() * (sides.to_size + sides.from_size) >= 2 * stream_threshold) {
    copy_past_caches(it, sides);
    return;
  }
  it.for_each([&](char** data, const int64_t* strides, int64_t n) {
    copy_row(sides, data[0], strides[0], data[1], strides[1], n);
  });
}

void copy_bytes(char* to, const char* from, int64_t n) {
  constexpr int64_t grain = 1 << 18;
  parallel_for(0, n, grain, [&](int64_t begin, int64_t end) {
    if (n >= stream_threshold) {
      stream(to + begin, from + begin, end - begin);
    } else {
      std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
    }
  });
}

void fill_all(const TensorIterator& it, const char* value) {
  const int64_t size = itemsize(it.dtype(0));
  const bool huge = it.numel() * size >= stream_threshold;
  it.for_each([&](char** data, const int64_t* strides, int64_t n) {
    if (strides[0] == size && !huge) {
      fill(data[0], value, size, n);
      return;
    }
    alignas(64) char values[16 * piece];
    fill(values, value, size, std::min(piece, n));
    for (int64_t i = 0; i < n; i += piece) {
      const int64_t count = std::min(piece, n - i);
      if (strides[0] == size) {
        stream(data[0] + i * size, values, count * size);
      } else {
        scatter(data[0] + i * strides[0], strides[0], values, size, count);
      }
    }
  });
}

}  // namespace

extern const CopyKernels copy_kernels;
const CopyKernels copy_kernels = {copy, copy_bytes, fill_all};

}  // namespace rushlight::cpu::RL_ISA
