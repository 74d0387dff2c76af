// run_pointwise: walks the elements of an op in pieces and feeds them to its block. A piece of an operand that is
// contiguous and of the compute type is used where it lies; others (strided, broadcast, another dtype) pass through a
// buffer that stays in the first-level cache. Short rows are gathered into full pieces, so that broadcasting a row of
// 100 elements costs no more than the copy.
#include "cpu/isa/loops.h"

#include <algorithm>
#include <cstring>

#include "cpu/isa/cast.h"

namespace rushlight::cpu::RL_ISA {

namespace {

constexpr int64_t buffer_bytes = 8192;
constexpr int64_t tail_bytes = 1024;   // a granule of the widest type when the result is bool
constexpr int64_t short_row = 512;     // rows below this are gathered into pieces over several rows
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

struct Operand {
  int index = 0;
  int64_t size = 0;        // bytes of an element in memory
  int64_t compute_size = 0;
  Cast cast = nullptr;     // null: memory holds the compute type
  bool linear = false;     // the whole iteration is one contiguous run
  bool scalar = false;
};

class Run {
 public:
  Run(const TensorIterator& it, const PointwiseKernel& kernel, Block block, const void* attributes)
      : it_(it), block_(block), attributes_(attributes), num_inputs_(kernel.num_inputs) {
    const ScalarType compute = kernel.moves ? it.common_dtype() : compute_dtype(it.common_dtype());
    const ScalarType result = kernel.promote == Promote::Bool ? kBool
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
    for (int i = 0; i < num_inputs_; ++i) {
      const ScalarType wanted = i == 0 && kernel.promote == Promote::Rest ? kBool : compute;
      describe(in_[i], i + 1, wanted, wanted);
      simple_ = simple_ && in_[i].linear && in_[i].cast == nullptr;
    }
  }

  void operator()(int64_t begin, int64_t end) const {
    if (simple_) {
      const char* in[max_inputs];
      for (int i = 0; i < num_inputs_; ++i) {
        in[i] = it_.data(i + 1) + begin * in_[i].compute_size;
      }
      compute(it_.data(0) + begin * result_size_, in, end - begin);
    } else {
      by_pieces(begin, end);
    }
  }

 private:
  void describe(Operand& o, int index, ScalarType wanted, ScalarType target) {
    o.index = index;
    o.size = itemsize(it_.dtype(index));
    o.compute_size = itemsize(target);
    o.cast = it_.dtype(index) == wanted ? nullptr : cast_function(wanted, it_.dtype(index));
    o.linear = true;
    o.scalar = index > 0 && it_.is_scalar(index) && it_.numel() > 1;
    int64_t step = o.size;
    for (int d = 0; d < it_.dim(); ++d) {
      o.linear = o.linear && (it_.shape()[d] == 1 || it_.strides(index)[d] == step);
      step *= it_.shape()[d];
    }
  }

  // n elements, all operands contiguous and of the compute type; what is left of the last granule in a padded copy.
  void compute(char* out, const char* const* in, int64_t n) const {
    const int64_t whole = n & -granule_;
    if (whole != 0) {
      block_(out, in, attributes_, whole);
    }
    const int64_t rest = n - whole;
    if (rest == 0) {
      return;
    }
    alignas(64) char tails[max_tensors][tail_bytes];
    const char* tail_in[max_inputs];
    for (int i = 0; i < num_inputs_; ++i) {
      const int64_t size = in_[i].compute_size;
      const char* from = in[i] + whole * size;
      std::memcpy(tails[i], from, static_cast<size_t>(rest * size));
      fill(tails[i] + rest * size, from, size, granule_ - rest);
      tail_in[i] = tails[i];
    }
    block_(tails[max_inputs], tail_in, attributes_, granule_);
    std::memcpy(out + whole * result_size_, tails[max_inputs], static_cast<size_t>(rest * result_size_));
  }

  void by_pieces(int64_t begin, int64_t end) const {
    alignas(64) char buffers[max_tensors][buffer_bytes];
    const char* in[max_inputs];
    for (int i = 0; i < num_inputs_; ++i) {
      if (in_[i].scalar) {
        alignas(16) char value[16];
        if (in_[i].cast != nullptr) {
          in_[i].cast(value, it_.data(i + 1), 1);
        } else {
          std::memcpy(value, it_.data(i + 1), static_cast<size_t>(in_[i].compute_size));
        }
        fill(buffers[i], value, in_[i].compute_size, std::min(piece_, end - begin));
        in[i] = buffers[i];
      }
    }
    Cursor cursor;
    cursor.seek(it_, begin);
    const int64_t row = it_.shape()[0];
    const bool whole_rows = it_.dim() > 1 && row < short_row;
    while (begin < end) {
      int64_t n = std::min(piece_, end - begin);
      if (!whole_rows) {
        n = std::min(n, row - cursor.at[0]);
      }
      for (int i = 0; i < num_inputs_; ++i) {
        if (!in_[i].scalar) {
          in[i] = load(in_[i], buffers[i], cursor, begin, n);
        }
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
  const char* load(const Operand& o, char* buffer, const Cursor& cursor, int64_t begin, int64_t n) const {
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

  void store(const Operand& o, const char* values, const Cursor& cursor, int64_t begin, int64_t n) const {
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

  template <class F>
  void for_rows(const Operand& o, const Cursor& start, int64_t n, const F& f) const {
    const int64_t stride = it_.strides(o.index)[0];
    if (start.at[0] + n <= it_.shape()[0]) {
      f(it_.data(o.index) + start.offset(it_, o.index), stride, int64_t{0}, n);
      return;
    }
    Cursor cursor = start;
    for (int64_t done = 0; done < n;) {
      const int64_t count = std::min(n - done, it_.shape()[0] - cursor.at[0]);
      f(it_.data(o.index) + cursor.offset(it_, o.index), stride, done, count);
      done += count;
      cursor.next_row(it_);
    }
  }

  void gather_rows(const Operand& o, char* to, const Cursor& cursor, int64_t n) const {
    for_rows(o, cursor, n, [&](const char* from, int64_t stride, int64_t done, int64_t count) {
      gather(to + done * o.size, from, stride, o.size, count);
    });
  }

  void scatter_rows(const Operand& o, const char* from, const Cursor& cursor, int64_t n) const {
    for_rows(o, cursor, n, [&](char* to, int64_t stride, int64_t done, int64_t count) {
      scatter(to, stride, from + done * o.size, o.size, count);
    });
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
  bool simple_;
};

}  // namespace

void run_pointwise(const TensorIterator& it, const PointwiseKernel& kernel, const Scalar* const* attributes) {
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
    store_scalar(values + i * itemsize(compute), compute, *attributes[i]);
  }
  const Run run(it, kernel, block, values);
  parallel_for(0, it.numel(), TensorIterator::default_grain, run);
}

}  // namespace rushlight::cpu::RL_ISA
