// run_pointwise: walks the elements of an op and feeds them to its block, in one of five ways: a
// tiny op in one granule; operands that are one run of the compute type; rows that are used where
// they lie (rows without gaps, numbers, columns); tiles of transposed operands; pieces for all
// else, which pass through buffers that stay in the first-level cache: strided, of another dtype,
// or short rows, of which many fill a piece, so that broadcasting a row of 100 elements costs no
// more than the copy.
#include "cpu/isa/pointwise/loops.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <rushlight/thread_state.h>

#include "cpu/chain.h"
#include "cpu/isa/pointwise/cast.h"
#include "cpu/isa/pointwise/rows.h"

namespace rushlight::cpu::RL_ISA {

namespace {

constexpr int64_t buffer_bytes = 8192;
constexpr int64_t tail_bytes = 1024;   // a granule of the widest type when the result is bool
constexpr int64_t short_row = 512;     // rows below this are gathered into pieces over several rows
constexpr int64_t column_row = 64;     // or from this, where the formula takes a number as it is
constexpr int64_t column_piece = 256;  // of a row to which one number of a column is broadcast
constexpr int64_t tile_rows = 16;      // of transposed operands: a cache line of floats
constexpr int64_t tile_columns = 256;
constexpr int max_tensors = max_inputs + 1;

struct Operand {
  int index = 0;
  int64_t size = 0;  // bytes of an element in memory
  int64_t compute_size = 0;
  Cast cast;            // none: memory holds the compute type
  bool linear = false;  // the whole iteration is one contiguous run
  bool scalar = false;
  bool column = false;   // one number for each row
  bool repeats = false;  // every row is the same one
  int64_t step = 0;      // bytes from one element to the next as the block sees them
};

class Run {
 public:
  Run(const TensorIterator& it, const PointwiseKernel& kernel, Block block, const void* attributes)
      : it_(it), block_(block), attributes_(attributes), num_inputs_(kernel.num_inputs) {
    const ScalarType compute = kernel.compute(it.common_dtype());
    const ScalarType result = kernel.result(it.common_dtype());
    result_size_ = itemsize(result);
    granule_ = granule_of(itemsize(compute), kernel.promote == Promote::Rest ? 1 : result_size_);
    piece_ = itemsize(compute) == 16 ? 512 : 1024;
    describe(out_, 0, result, result);
    if (out_.cast) {
      out_.cast = cast_function(it.dtype(0), result);
    }
    streams_ = it.numel() * result_size_ >= stream_threshold;
    linear_ = out_.linear && !out_.cast;
    for (int i = 0; i < num_inputs_; ++i) {
      const ScalarType wanted = kernel.wanted(i, it.common_dtype());
      describe(in_[i], i + 1, wanted, wanted);
      linear_ = linear_ && in_[i].linear && !in_[i].cast;
      streams_ = streams_ && it.data(i + 1) != it.data(0);
    }
    streams_ = streams_ && linear_;
    linear_ = linear_ && !streams_;
    rows_ = !linear_ && has_rows(kernel, compute);
  }

  // The dimension along which an input lies together where it does not along the first: such inputs
  // are read by tiles. 0 where there is none.
  int tiled_dim() const {
    if (it_.dim() < 2 || it_.strides(0)[0] != out_.size || it_.shape()[0] < tile_rows) {
      return 0;
    }
    for (int i = 0; i < num_inputs_; ++i) {
      const int across = dim_together(in_[i]);
      if (across != 0) {
        return across;
      }
    }
    return 0;
  }

  int64_t num_tiles(int across) const {
    const int64_t columns = it_.shape()[0];
    const int64_t rows = it_.shape()[across];
    return it_.numel() / (columns * rows) * ((columns + tile_columns - 1) / tile_columns) *
           ((rows + tile_rows - 1) / tile_rows);
  }

  // One tile: rows of up to 256 elements along the first dimension, 16 of them along `across`.
  void run_tile(int across, int64_t index) const {
    const IntArrayRef shape = it_.shape();
    const int64_t column_tiles = (shape[0] + tile_columns - 1) / tile_columns;
    const int64_t row_tiles = (shape[across] + tile_rows - 1) / tile_rows;
    Cursor cursor;
    cursor.at[across] = index % row_tiles * tile_rows;
    cursor.at[0] = index / row_tiles % column_tiles * tile_columns;
    int64_t plane = index / (column_tiles * row_tiles);
    for (int d = 1; d < it_.dim(); ++d) {
      if (d != across) {
        cursor.at[d] = plane % shape[d];
        plane /= shape[d];
      }
    }
    const int64_t columns = std::min(tile_columns, shape[0] - cursor.at[0]);
    const int64_t rows = std::min(tile_rows, shape[across] - cursor.at[across]);
    alignas(64) char tiles[max_inputs][tile_rows * tile_columns * 16];
    alignas(64) char buffers[max_tensors][tile_columns * 16];
    const char* in[max_inputs];
    bool is_tiled[max_inputs];
    for (int i = 0; i < num_inputs_; ++i) {
      const Operand& o = in_[i];
      is_tiled[i] = dim_together(o) == across;
      if (is_tiled[i]) {
        transpose(tiles[i], tile_columns * o.size, it_.data(o.index) + cursor.offset(it_, o.index),
                  it_.strides(o.index)[0], o.size, rows, columns);
      } else if (o.scalar) {
        in[i] = broadcast(o, buffers[i], columns);
      }
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int i = 0; i < num_inputs_; ++i) {
        const Operand& o = in_[i];
        if (is_tiled[i]) {
          const char* row = tiles[i] + r * tile_columns * o.size;
          in[i] = !o.cast ? row : buffers[i];
          if (o.cast) {
            o.cast(buffers[i], row, columns);
          }
        } else if (!o.scalar) {
          in[i] = load(o, buffers[i], cursor, cursor.index(it_), columns);
        }
      }
      char* to = it_.data(0) + cursor.offset(it_, 0);
      char* out = !out_.cast ? to : buffers[max_inputs];
      compute(out, in, columns);
      if (out_.cast) {
        out_.cast(to, out, columns);
      }
      cursor.at[across]++;
    }
  }

  void operator()(int64_t begin, int64_t end) const {
    if (linear_) {
      const char* in[max_inputs];
      for (int i = 0; i < num_inputs_; ++i) {
        in[i] = it_.data(i + 1) + begin * in_[i].step;
      }
      compute(it_.data(0) + begin * result_size_, in, end - begin);
    } else if (rows_) {
      by_rows(begin, end);
    } else {
      by_pieces(begin, end);
    }
  }

 private:
  int dim_together(const Operand& o) const {
    const IntArrayRef strides = it_.strides(o.index);
    if (strides[0] == 0 || strides[0] == o.size) {
      return 0;
    }
    for (int d = 1; d < it_.dim(); ++d) {
      if (strides[d] == o.size && it_.shape()[d] >= tile_rows) {
        return d;
      }
    }
    return 0;
  }

  // The one element of a scalar operand, n times.
  const char* broadcast(const Operand& o, char* buffer, int64_t n) const {
    alignas(16) char value[16];
    if (o.cast) {
      o.cast(value, it_.data(o.index), 1);
    } else {
      std::memcpy(value, it_.data(o.index), static_cast<size_t>(o.size));
    }
    fill(buffer, value, o.compute_size, std::max(n, granule_));
    return buffer;
  }

  void describe(Operand& o, int index, ScalarType wanted, ScalarType target) {
    o.index = index;
    o.size = itemsize(it_.dtype(index));
    o.compute_size = itemsize(target);
    o.cast = it_.dtype(index) == wanted ? Cast() : cast_function(wanted, it_.dtype(index));
    o.linear = true;
    o.scalar = index > 0 && it_.is_scalar(index) && it_.numel() > 1;
    o.column = index > 0 && !o.scalar && it_.shape()[0] != 1 && it_.strides(index)[0] == 0;
    o.step = o.scalar ? 0 : o.compute_size;
    o.repeats = index > 0;
    int64_t step = o.size;
    for (int d = 0; d < it_.dim(); ++d) {
      o.linear = o.linear && (it_.shape()[d] == 1 || it_.strides(index)[d] == step);
      o.repeats = o.repeats && (d == 0 || it_.strides(index)[d] == 0);
      step *= it_.shape()[d];
    }
  }

  // n elements, all operands contiguous and of the compute type, or one number where `step` is 0.
  RL_INLINE void compute(char* out, const char* const* in, int64_t n) const {
    const int64_t rest = n & (granule_ - 1);
    if (rest == 0) {
      block_(out, in, attributes_, n);
    } else {
      compute_with_tail(out, in, n, rest);
    }
  }

  // What is left over a whole number of granules is the end of a granule that starts before it, or
  // in a padded copy; it comes first, while its inputs are what they were.
  void compute_with_tail(char* out, const char* const* in, int64_t n, int64_t rest) const {
    const int64_t whole = n - rest;
    alignas(64) char tails[max_tensors][tail_bytes];
    const char* tail_in[max_inputs];
    bool apart = whole != 0;
    for (int i = 0; i < num_inputs_; ++i) {
      const int64_t step = in_[i].step;
      apart = apart && in[i] != out;
      if (whole != 0 || step == 0) {
        tail_in[i] = in[i] + (n - granule_) * step;
      } else {
        std::memcpy(tails[i], in[i], static_cast<size_t>(rest * step));
        fill(tails[i] + rest * step, in[i], step, granule_ - rest);
        tail_in[i] = tails[i];
      }
    }
    char* tail_out = apart ? out + (n - granule_) * result_size_ : tails[max_inputs];
    block_(tail_out, tail_in, attributes_, granule_);
    if (whole != 0) {
      block_(out, in, attributes_, whole);
      tail_out += (granule_ - rest) * result_size_;
    }
    if (!apart) {
      std::memcpy(out + whole * result_size_, tail_out, static_cast<size_t>(rest * result_size_));
    }
  }

  // Whether operands are used where they lie, row by row: rows without gaps, numbers, columns.
  // Rows that are short or leave a tail are better gathered into pieces. Chooses how columns go.
  bool has_rows(const PointwiseKernel& kernel, ScalarType compute) {
    const int64_t row = it_.shape()[0];
    bool lie = !out_.cast && (row == 1 || it_.strides(0)[0] == out_.size);
    bool columns = false;
    for (int i = 0; i < num_inputs_; ++i) {
      const Operand& o = in_[i];
      const bool together = o.column || row == 1 || it_.strides(o.index)[0] == o.size;
      lie = lie && (o.scalar || (!o.cast && together));
      columns = columns || o.column;
    }
    buffered_ = columns ? column_piece : piece_;
    if (!lie) {
      return false;
    }
    for (int i = 0; i < 2 && num_inputs_ == 2 && compute == kFloat32 && row >= column_row; ++i) {
      if (in_[i].column && in_[1 - i].step != 0 && !in_[1 - i].column &&
          kernel.with_number[i] != nullptr) {
        block_ = kernel.with_number[i];
        in_[i].step = 0;
        in_[i].column = false;
        return true;
      }
    }
    if (it_.dim() > 1 && row < short_row && (columns || row % granule_ != 0)) {
      return false;
    }
    by_parts_ = streams_ || columns;
    for (int i = 0; i < num_inputs_; ++i) {
      Operand& o = in_[i];
      o.step = o.column ? 0 : o.step;
      by_parts_ = by_parts_ || (o.scalar && row > buffered_);
      part_steps_[i] = buffered_ * o.step;
    }
    return true;
  }

  void by_rows(int64_t begin, int64_t end) const {
    alignas(64) char buffers[max_tensors][buffer_bytes];
    const char* in[max_inputs] = {};
    for (int i = 0; i < num_inputs_; ++i) {
      in[i] = in_[i].scalar ? broadcast(in_[i], buffers[i], std::min(buffered_, end - begin))
                            : it_.data(i + 1) + begin * in_[i].step;
    }
    if (it_.dim() == 1) {
      run_row(it_.data(0) + begin * result_size_, in, buffers, end - begin);
      return;
    }
    int64_t steps[max_inputs];
    for (int i = 0; i < num_inputs_; ++i) {
      steps[i] = in_[i].scalar ? 0 : it_.strides(i + 1)[1];
    }
    const int64_t out_step = it_.strides(0)[1];
    const int64_t row = it_.shape()[0];
    const Block block = block_;
    const void* const attributes = attributes_;
    Cursor cursor;
    while (begin < end) {
      cursor.seek(it_, begin);
      // Whole rows along the second dimension, or what a chunk has of a cut one.
      const int64_t n = std::min(row - cursor.at[0], end - begin);
      const int64_t rows =
          n < row ? 1 : std::min(it_.shape()[1] - cursor.at[1], (end - begin) / row);
      for (int i = 0; i < num_inputs_; ++i) {
        if (!in_[i].scalar) {
          in[i] = it_.data(i + 1) + cursor.offset(it_, i + 1);
        }
      }
      char* out = it_.data(0) + cursor.offset(it_, 0);
      const bool direct = !by_parts_ && (n & (granule_ - 1)) == 0;
      for (int64_t r = 0; r < rows; ++r) {
        if (direct) {
          block(out, in, attributes, n);
        } else {
          run_row(out, in, buffers, n);
        }
        out += out_step;
        for (int i = 0; i < num_inputs_; ++i) {
          in[i] += steps[i];
          asm("");  // two or three pointers are better moved one by one than by a vector loop
        }
      }
      begin += rows * n;
    }
  }

  RL_INLINE void run_row(char* out, const char* const* in, char (*buffers)[buffer_bytes],
                         int64_t n) const {
    if (by_parts_) {
      run_row_in_parts(out, in, buffers, n);
    } else {
      compute(out, in, n);
    }
  }

  // A row. A number of a column is broadcast to part of it, which the row then passes by. Results
  // that no cache will hold are written past them: plain stores would read each line first.
  void run_row_in_parts(char* out, const char* const* in, char (*buffers)[buffer_bytes],
                        int64_t n) const {
    const char* at[max_inputs] = {};
    for (int i = 0; i < num_inputs_; ++i) {
      at[i] = in_[i].column ? buffers[i] : in[i];
      if (in_[i].column) {
        fill(buffers[i], in[i], in_[i].size, std::max(std::min(n, buffered_), granule_));
      }
    }
    for (int64_t done = 0;;) {
      const int64_t count = std::min(buffered_, n - done);
      char* to = out + done * result_size_;
      compute(streams_ ? buffers[max_inputs] : to, at, count);
      if (streams_) {
        stream(to, buffers[max_inputs], count * result_size_);
      }
      done += count;
      if (done == n) {
        return;
      }
      for (int i = 0; i < num_inputs_; ++i) {
        at[i] += part_steps_[i];
        asm("");
      }
    }
  }

  void by_pieces(int64_t begin, int64_t end) const {
    alignas(64) char buffers[max_tensors][buffer_bytes];
    const char* in[max_inputs];
    for (int i = 0; i < num_inputs_; ++i) {
      if (in_[i].scalar) {
        in[i] = broadcast(in_[i], buffers[i], std::min(piece_, end - begin));
      }
    }
    Cursor cursor;
    cursor.seek(it_, begin);
    const int64_t row = it_.shape()[0];
    const int64_t many_rows = it_.dim() > 1 && row < short_row ? rows_at_once(row) * row : 0;
    int64_t kept[max_inputs] =
        {};  // elements of repeating rows that the buffer holds, from a row's start
    while (begin < end) {
      int64_t n = std::min(piece_, end - begin);
      if (many_rows == 0 || cursor.at[0] != 0) {
        n = std::min(n, row - cursor.at[0]);
      } else {
        n = std::min(many_rows, end - begin);
      }
      for (int i = 0; i < num_inputs_; ++i) {
        if (in_[i].scalar || kept[i] >= n) {
          continue;
        }
        in[i] = load(in_[i], buffers[i], cursor, begin, n);
        kept[i] = many_rows != 0 && in_[i].repeats && cursor.at[0] == 0 ? n : 0;
      }
      const bool direct = !out_.cast && is_direct(out_, n, cursor);
      char* out = !direct ? buffers[max_inputs] : address_of(out_, cursor, begin);
      compute(out, in, n);
      if (!direct) {
        store(out_, out, cursor, begin, n);
      }
      begin += n;
      advance(cursor, begin, n);
    }
  }

  // Short rows are taken several at a time, if possible so many that no granule is left over.
  int64_t rows_at_once(int64_t row) const {
    const int64_t fit = piece_ / row;
    const int64_t even = granule_ / std::gcd(row, granule_);
    return fit < even ? fit : fit - fit % even;
  }

  void advance(Cursor& cursor, int64_t begin, int64_t n) const {
    if (cursor.at[0] + n < it_.shape()[0]) {
      cursor.at[0] += n;
    } else if (cursor.at[0] + n == it_.shape()[0]) {
      cursor.next_row(it_);
    } else {
      cursor.seek(it_, begin);
    }
  }

  bool is_direct(const Operand& o, int64_t n, const Cursor& cursor) const {
    return o.linear || (it_.strides(o.index)[0] == o.size && cursor.at[0] + n <= it_.shape()[0]);
  }

  char* address_of(const Operand& o, const Cursor& cursor, int64_t begin) const {
    return it_.data(o.index) + (o.linear ? begin * o.size : cursor.offset(it_, o.index));
  }

  // Brings the n elements from the cursor on together, in the compute type.
  const char* load(const Operand& o, char* buffer, const Cursor& cursor, int64_t begin,
                   int64_t n) const {
    if (is_direct(o, n, cursor)) {
      const char* from = address_of(o, cursor, begin);
      if (!o.cast) {
        return from;
      }
      o.cast(buffer, from, n);
      return buffer;
    }
    if (!o.cast) {
      gather_rows(it_, o.index, o.size, buffer, cursor, n);
      return buffer;
    }
    alignas(64) char stored[2 * buffer_bytes];
    gather_rows(it_, o.index, o.size, stored, cursor, n);
    o.cast(buffer, stored, n);
    return buffer;
  }

  void store(const Operand& o, const char* values, const Cursor& cursor, int64_t begin,
             int64_t n) const {
    alignas(64) char stored[2 * buffer_bytes];
    if (is_direct(o, n, cursor)) {
      o.cast(address_of(o, cursor, begin), values, n);
      return;
    }
    if (o.cast) {
      o.cast(stored, values, n);
      values = stored;
    }
    scatter_rows(it_, o.index, o.size, values, cursor, n);
  }

  const TensorIterator& it_;
  Block block_;
  const void* attributes_;
  int num_inputs_;
  int64_t result_size_;
  int64_t granule_;
  int64_t piece_;
  Operand out_;
  Operand in_[max_inputs];
  int64_t buffered_ = 0;                 // elements of a row that a number is broadcast to
  int64_t part_steps_[max_inputs] = {};  // bytes from one such part of a row to the next
  bool linear_;                          // all operands are one run of the compute type
  bool rows_;                            // has_rows()
  bool by_parts_ = false;                // something of these rows passes through buffers
  bool streams_;                         // a large result, apart from the inputs
};

template <class T>
RL_INLINE void pad(char* to, const char* from, int64_t n, int64_t granule) {
  auto* out = reinterpret_cast<T*>(to);
  const auto* in = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < granule; ++i) {
    out[i] = in[0];
  }
  for (int64_t i = 1; i < n; ++i) {
    out[i] = in[i];
  }
}

// The short way of tiny ops: float or double, fewer elements than a granule, contiguous operands
// and numbers. The same block computes, so the bits are those of any other way.
template <class T>
RL_INLINE bool run_tiny(const TensorIterator& it, const PointwiseKernel& kernel, Block block,
                        const void* attributes) {
  constexpr int64_t granule = 64 / sizeof(T);
  constexpr ScalarType dtype = dtype_of_v<T>;
  const int64_t n = it.numel();
  if (n > granule || it.dim() != 1 || kernel.promote == Promote::Bool || kernel.moves ||
      it.dtype(0) != dtype || (n > 1 && it.strides(0)[0] != sizeof(T))) {
    return false;
  }
  alignas(64) char buffers[max_tensors][64];
  const char* in[max_inputs];
  for (int i = 0; i < kernel.num_inputs; ++i) {
    const ScalarType t = it.dtype(i + 1);
    const bool one = n == 1 || it.strides(i + 1)[0] == 0;
    if (t == dtype && (one || it.strides(i + 1)[0] == sizeof(T))) {
      pad<T>(buffers[i], it.data(i + 1), one ? 1 : n, granule);
    } else if (t == kFloat64 && one) {
      const T value = static_cast<T>(*reinterpret_cast<const double*>(it.data(i + 1)));
      pad<T>(buffers[i], reinterpret_cast<const char*>(&value), 1, granule);
    } else {
      return false;
    }
    in[i] = buffers[i];
  }
  block(buffers[max_inputs], in, attributes, granule);
  auto* out = reinterpret_cast<T*>(it.data(0));
  for (int64_t i = 0; i < n; ++i) {
    out[i] = reinterpret_cast<const T*>(buffers[max_inputs])[i];
  }
  return true;
}

}  // namespace

void run_pointwise(const TensorIterator& it, const PointwiseKernel& kernel,
                   const Scalar* attributes) {
  if (it.numel() == 0) {
    return;
  }
  const ScalarType compute = compute_dtype(it.common_dtype());
  const Block block = kernel.blocks[static_cast<int>(it.common_dtype())];
  if (block == nullptr) {
    dtype_not_implemented(it.op(), it.common_dtype());
  }
  alignas(16) char values[max_attributes * 16];
  for (int i = 0; i < kernel.num_attributes; ++i) {
    if (attributes[i].is_complex() || is_integral(compute)) {
      attributes[i].check_fits(compute);
    }
    store_scalar(values + i * itemsize(compute), compute, attributes[i]);
  }
  if (RL_UNLIKELY(it.is_late())) {
    if (tls.notebook->note(it, kernel, values)) {
      return;
    }
    it.take_addresses();
  }
  if (it.common_dtype() == kFloat32
          ? run_tiny<float>(it, kernel, block, values)
          : it.common_dtype() == kFloat64 && run_tiny<double>(it, kernel, block, values)) {
    return;
  }
  const Run run(it, kernel, block, values);
  if (const int across = run.tiled_dim()) {
    constexpr int64_t grain = TensorIterator::default_grain / (tile_rows * tile_columns);
    parallel_for(0, run.num_tiles(across), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        run.run_tile(across, i);
      }
    });
    return;
  }
  parallel_for(0, it.numel(), TensorIterator::default_grain, run);
}

}  // namespace rushlight::cpu::RL_ISA
