// run_pointwise: walks the elements of an op in pieces and feeds them to its block. A piece of an
// operand that is contiguous and of the compute type is used where it lies; others (strided,
// broadcast, another dtype) pass through a buffer that stays in the first-level cache. Short rows
// are gathered into full pieces, so that broadcasting a row of 100 elements costs no more than the
// copy.
#include "cpu/isa/pointwise/loops.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "cpu/isa/pointwise/cast.h"
#include "kernels/by_size.h"

namespace rushlight::cpu::RL_ISA {

namespace {

constexpr int64_t buffer_bytes = 8192;
constexpr int64_t tail_bytes = 1024;   // a granule of the widest type when the result is bool
constexpr int64_t short_row = 512;     // rows below this are gathered into pieces over several rows
constexpr int64_t column_row = 64;     // rows from here on pass by their number of a column
constexpr int64_t column_piece = 256;  // of a row to which one number of a column is broadcast
constexpr int64_t tile_rows = 16;      // of transposed operands: a cache line of floats
constexpr int64_t tile_columns = 256;
constexpr int max_tensors = max_inputs + 1;

ScalarType compute_dtype(ScalarType t) { return t == kFloat16 || t == kBFloat16 ? kFloat32 : t; }

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

struct Operand {
  int index = 0;
  int64_t size = 0;  // bytes of an element in memory
  int64_t compute_size = 0;
  Cast cast = nullptr;  // null: memory holds the compute type
  bool linear = false;  // the whole iteration is one contiguous run
  bool scalar = false;
  bool repeats = false;  // every row is the same one
};

class Run {
 public:
  Run(const TensorIterator& it, const PointwiseKernel& kernel, Block block, const void* attributes)
      : it_(it), block_(block), attributes_(attributes), num_inputs_(kernel.num_inputs) {
    const ScalarType compute = kernel.moves ? it.common_dtype() : compute_dtype(it.common_dtype());
    const ScalarType result = kernel.promote == Promote::Bool   ? kBool
                              : kernel.promote == Promote::Real ? to_real(compute)
                                                                : compute;
    result_size_ = itemsize(result);
    granule_ = granule_of(itemsize(compute), kernel.promote == Promote::Rest ? 1 : result_size_);
    piece_ = itemsize(compute) == 16 ? 512 : 1024;
    describe(out_, 0, result, result);
    if (out_.cast != nullptr) {
      out_.cast = cast_function(it.dtype(0), result);
    }
    simple_ = out_.linear && out_.cast == nullptr;
    streams_ = it.numel() * result_size_ >= stream_threshold;
    for (int i = 0; i < num_inputs_; ++i) {
      const ScalarType wanted = i == 0 && kernel.promote == Promote::Rest ? kBool : compute;
      describe(in_[i], i + 1, wanted, wanted);
      simple_ = simple_ && in_[i].linear && in_[i].cast == nullptr;
      streams_ = streams_ && it.data(i + 1) != it.data(0);
    }
    rows_ = !simple_ && has_whole_rows();
    columns_ = !simple_ && !rows_ && has_columns();
    for (int i = 0; i < 2 && !simple_ && num_inputs_ == 2 && compute == kFloat32; ++i) {
      with_number_ = is_column(i) ? kernel.with_number[i] : with_number_;
      number_ = is_column(i) ? i : number_;
    }
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
          in[i] = o.cast == nullptr ? row : buffers[i];
          if (o.cast != nullptr) {
            o.cast(buffers[i], row, columns);
          }
        } else if (!o.scalar) {
          in[i] = load(o, buffers[i], cursor, cursor.index(it_), columns);
        }
      }
      char* to = it_.data(0) + cursor.offset(it_, 0);
      char* out = out_.cast == nullptr ? to : buffers[max_inputs];
      compute(out, in, columns);
      if (out_.cast != nullptr) {
        out_.cast(to, out, columns);
      }
      cursor.at[across]++;
    }
  }

  void operator()(int64_t begin, int64_t end) const {
    if (simple_) {
      const char* in[max_inputs];
      for (int i = 0; i < num_inputs_; ++i) {
        in[i] = it_.data(i + 1) + begin * in_[i].compute_size;
      }
      char* out = it_.data(0) + begin * result_size_;
      if (streams_) {
        compute_past_caches(out, in, end - begin);
      } else {
        compute(out, in, end - begin);
      }
    } else if (with_number_ != nullptr) {
      by_numbers(begin, end);
    } else if (rows_) {
      by_rows(begin, end);
    } else if (columns_) {
      by_columns(begin, end);
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
    if (o.cast != nullptr) {
      o.cast(value, it_.data(o.index), 1);
    } else {
      std::memcpy(value, it_.data(o.index), static_cast<size_t>(o.size));
    }
    fill(buffer, value, o.compute_size, n);
    return buffer;
  }

  void describe(Operand& o, int index, ScalarType wanted, ScalarType target) {
    o.index = index;
    o.size = itemsize(it_.dtype(index));
    o.compute_size = itemsize(target);
    o.cast = it_.dtype(index) == wanted ? nullptr : cast_function(wanted, it_.dtype(index));
    o.linear = true;
    o.scalar = index > 0 && it_.is_scalar(index) && it_.numel() > 1;
    o.repeats = index > 0;
    int64_t step = o.size;
    for (int d = 0; d < it_.dim(); ++d) {
      o.linear = o.linear && (it_.shape()[d] == 1 || it_.strides(index)[d] == step);
      o.repeats = o.repeats && (d == 0 || it_.strides(index)[d] == 0);
      step *= it_.shape()[d];
    }
  }

  // n elements, all operands contiguous and of the compute type. What is left of the last granule
  // is computed with the elements before it once more, or in a padded copy.
  void compute(char* out, const char* const* in, int64_t n) const {
    const int64_t whole = n & -granule_;
    if (whole != 0) {
      block_(out, in, attributes_, whole);
    }
    const int64_t rest = n - whole;
    if (rest == 0) {
      return;
    }
    const char* tail_in[max_inputs];
    bool again = whole != 0;  // the last whole granule, unless its inputs are overwritten
    for (int i = 0; i < num_inputs_; ++i) {
      tail_in[i] = in[i] + (n - granule_) * in_[i].compute_size;
      again = again && in[i] != out;
    }
    if (again) {
      block_(out + (n - granule_) * result_size_, tail_in, attributes_, granule_);
      return;
    }
    alignas(64) char tails[max_tensors][tail_bytes];
    for (int i = 0; i < num_inputs_; ++i) {
      const int64_t size = in_[i].compute_size;
      const char* from = in[i] + whole * size;
      std::memcpy(tails[i], from, static_cast<size_t>(rest * size));
      fill(tails[i] + rest * size, from, size, granule_ - rest);
      tail_in[i] = tails[i];
    }
    block_(tails[max_inputs], tail_in, attributes_, granule_);
    std::memcpy(out + whole * result_size_, tails[max_inputs],
                static_cast<size_t>(rest * result_size_));
  }

  // Results that no cache will hold are written past them: plain stores would read each line first.
  void compute_past_caches(char* out, const char** in, int64_t n) const {
    alignas(64) char results[buffer_bytes];
    for (int64_t i = 0; i < n; i += piece_) {
      const int64_t count = std::min(piece_, n - i);
      compute(results, in, count);
      stream(out + i * result_size_, results, count * result_size_);
      for (int k = 0; k < num_inputs_; ++k) {
        in[k] += count * in_[k].compute_size;
      }
    }
  }

  // Short rows that lie together in all operands and leave no tail are used where they lie.
  bool has_whole_rows() const {
    const int64_t row = it_.shape()[0];
    bool whole = it_.dim() > 1 && row < short_row && row % granule_ == 0 && out_.cast == nullptr &&
                 it_.strides(0)[0] == out_.size;
    for (int i = 0; i < num_inputs_; ++i) {
      const Operand& o = in_[i];
      whole = whole && (o.scalar || (o.cast == nullptr && it_.strides(o.index)[0] == o.size));
    }
    return whole;
  }

  // Calls pass(output, inputs, elements) for the rows of a chunk, and for what it has of cut ones.
  // Inputs that are scalars stay what they are in `in`.
  template <class F>
  RL_INLINE void for_whole_rows(int64_t begin, int64_t end, const char** in, const F& pass) const {
    int64_t step[max_inputs];
    for (int i = 0; i < num_inputs_; ++i) {
      step[i] = in_[i].scalar ? 0 : it_.strides(i + 1)[1];
    }
    const int64_t row = it_.shape()[0];
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
      for (int64_t r = 0; r < rows; ++r) {
        pass(out, in, n);
        out += it_.strides(0)[1];
        for (int i = 0; i < num_inputs_; ++i) {
          in[i] += step[i];
        }
      }
      begin += rows * n;
    }
  }

  void by_rows(int64_t begin, int64_t end) const {
    alignas(64) char buffers[max_inputs][buffer_bytes];
    const char* in[max_inputs];
    for (int i = 0; i < num_inputs_; ++i) {
      in[i] = in_[i].scalar ? broadcast(in_[i], buffers[i], piece_) : nullptr;
    }
    for_whole_rows(begin, end, in, [&](char* out, const char* const* rows, int64_t n) {
      block_(out, rows, attributes_, n);
    });
  }

  // Of two inputs this one is a column, a number for each row of a matrix whose rows lie together.
  bool is_column(int i) const {
    const Operand& o = in_[i];
    const Operand& matrix = in_[1 - i];
    return it_.dim() > 1 && it_.shape()[0] >= column_row && out_.cast == nullptr &&
           o.cast == nullptr && matrix.cast == nullptr && !o.scalar &&
           it_.strides(o.index)[0] == 0 && it_.strides(0)[0] == out_.size &&
           it_.strides(matrix.index)[0] == matrix.size;
  }

  void by_numbers(int64_t begin, int64_t end) const {
    const char* in[max_inputs] = {};
    for_whole_rows(begin, end, in, [&](char* out, const char* const* rows, int64_t n) {
      pass_number(out, rows, n);
    });
  }

  // One row. Its last granule comes first where one is left over, before the row is overwritten.
  void pass_number(char* out, const char* const* in, int64_t n) const {
    const int64_t rest = n & (granule_ - 1);
    if (rest == 0) {
      with_number_(out, in, attributes_, n);
      return;
    }
    const int matrix = 1 - number_;
    const int64_t size = in_[matrix].size;
    const bool apart = n >= granule_ && in[matrix] != out;
    alignas(64) char tails[2][tail_bytes];
    const char* tail_in[2] = {in[0], in[1]};
    if (n >= granule_) {
      tail_in[matrix] += (n - granule_) * size;
    } else {
      fill(tails[0], in[matrix], size, granule_ - n);
      std::memcpy(tails[0] + (granule_ - n) * size, in[matrix], static_cast<size_t>(n * size));
      tail_in[matrix] = tails[0];
    }
    with_number_(apart ? out + (n - granule_) * size : tails[1], tail_in, attributes_, granule_);
    with_number_(out, in, attributes_, n - rest);
    if (!apart) {
      std::memcpy(out + (n - rest) * size, tails[1] + (granule_ - rest) * size,
                  static_cast<size_t>(rest * size));
    }
  }

  // Long rows, of which some operands have but one number: a column and a matrix.
  bool has_columns() const {
    bool lie = it_.dim() > 1 && it_.shape()[0] >= short_row && out_.cast == nullptr &&
               it_.strides(0)[0] == out_.size;
    bool any = false;
    for (int i = 0; i < num_inputs_; ++i) {
      const Operand& o = in_[i];
      const int64_t stride = it_.strides(o.index)[0];
      lie = lie && (o.scalar || (o.cast == nullptr && (stride == 0 || stride == o.size)));
      any = any || (!o.scalar && stride == 0);
    }
    return lie && any;
  }

  // The number of a row fills less than a piece, which the row then passes by.
  void by_columns(int64_t begin, int64_t end) const {
    alignas(64) char buffers[max_inputs][buffer_bytes];
    const char* in[max_inputs];
    bool is_number[max_inputs];
    for (int i = 0; i < num_inputs_; ++i) {
      in[i] = in_[i].scalar ? broadcast(in_[i], buffers[i], column_piece) : nullptr;
      is_number[i] = in_[i].scalar || it_.strides(i + 1)[0] == 0;
    }
    for_whole_rows(begin, end, in, [&](char* out, const char* const* rows, int64_t n) {
      const char* at[max_inputs];
      for (int i = 0; i < num_inputs_; ++i) {
        at[i] = is_number[i] ? buffers[i] : rows[i];
        if (is_number[i] && !in_[i].scalar) {
          fill(buffers[i], rows[i], in_[i].size, std::min(n, column_piece));
        }
      }
      for (int64_t done = 0; done < n; done += column_piece) {
        compute(out + done * result_size_, at, std::min(n - done, column_piece));
        for (int i = 0; i < num_inputs_; ++i) {
          at[i] += is_number[i] ? 0 : column_piece * in_[i].size;
        }
      }
    });
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
      const bool direct = out_.cast == nullptr && is_direct(out_, n, cursor);
      char* out = !direct ? buffers[max_inputs] : place(out_, cursor, begin);
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

  char* place(const Operand& o, const Cursor& cursor, int64_t begin) const {
    return it_.data(o.index) + (o.linear ? begin * o.size : cursor.offset(it_, o.index));
  }

  // Brings the n elements from the cursor on together, in the compute type.
  const char* load(const Operand& o, char* buffer, const Cursor& cursor, int64_t begin,
                   int64_t n) const {
    if (is_direct(o, n, cursor)) {
      const char* from = place(o, cursor, begin);
      if (o.cast == nullptr) {
        return from;
      }
      o.cast(buffer, from, n);
      return buffer;
    }
    if (o.cast == nullptr) {
      gather_rows(o, buffer, cursor, n);
      return buffer;
    }
    alignas(64) char stored[2 * buffer_bytes];
    gather_rows(o, stored, cursor, n);
    o.cast(buffer, stored, n);
    return buffer;
  }

  void store(const Operand& o, const char* values, const Cursor& cursor, int64_t begin,
             int64_t n) const {
    alignas(64) char stored[2 * buffer_bytes];
    if (is_direct(o, n, cursor)) {
      o.cast(place(o, cursor, begin), values, n);
      return;
    }
    if (o.cast != nullptr) {
      o.cast(stored, values, n);
      values = stored;
    }
    scatter_rows(o, values, cursor, n);
  }

  void gather_rows(const Operand& o, char* to, const Cursor& start, int64_t n) const {
    const int64_t* strides = it_.strides(o.index).data();
    const int64_t* shape = it_.shape().data();
    const int64_t stride = strides[0];
    visit_size(o.size, [&](auto tag) {
      using T = typename decltype(tag)::type;
      Cursor cursor = start;
      T* out = reinterpret_cast<T*>(to);
      const char* from = it_.data(o.index) + start.offset(it_, o.index);
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

  void scatter_rows(const Operand& o, const char* from, Cursor cursor, int64_t n) const {
    while (n > 0) {
      const int64_t count = std::min(n, it_.shape()[0] - cursor.at[0]);
      scatter(it_.data(o.index) + cursor.offset(it_, o.index), it_.strides(o.index)[0], from,
              o.size, count);
      from += count * o.size;
      n -= count;
      cursor.next_row(it_);
    }
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
  bool simple_;                  // all operands are linear and of the compute type
  bool rows_;                    // has_whole_rows()
  bool columns_;                 // has_columns()
  Block with_number_ = nullptr;  // the kernel's for an input that is_column(), that of `number_`
  int number_ = 0;
  bool streams_;  // a large result, apart from the inputs
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
    store_scalar(values + i * itemsize(compute), compute, attributes[i]);
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
