// Kernels that move whole rows: cat, tril, triu.
#include <algorithm>
#include <cstring>

#include <rushlight/thread_state.h>

#include "core/op_support.h"
#include "core/parallel.h"
#include "cpu/chain.h"
#include "generated/kernels.h"

namespace rushlight::cpu {

namespace {

inline constexpr int64_t bytes_per_task = 1 << 17;

// Rows of several contiguous sources of the output's dtype, one after another.
void join_rows(const Tensor& out, TensorList tensors, int64_t dim) {
  int64_t outer = 1;
  for (int64_t d = 0; d < dim; d++) {
    outer *= out.sizes()[d];
  }
  const int64_t row = out.nbytes() / outer;
  char* to = static_cast<char*>(out.data_ptr());
  parallel_for(0, outer, std::max<int64_t>(1, bytes_per_task / row),
               [&](int64_t begin, int64_t end) {
                 int64_t at = 0;
                 for (const Tensor& t : tensors) {
                   if (t.numel() == 0) {
                     continue;
                   }
                   const int64_t length = t.nbytes() / outer;
                   const char* from = static_cast<const char*>(t.data_ptr());
                   for (int64_t o = begin; o < end; o++) {
                     std::memcpy(to + o * row + at, from + o * length, length);
                   }
                   at += length;
                 }
               });
}

}  // namespace

// The shape function has left out what is empty.
void cat(const Tensor& out, TensorList tensors, int64_t dim) {
  if (out.numel() == 0) {
    return;
  }
  if (RL_UNLIKELY(tls.notebook != nullptr) && dim == out.dim() - 1 &&
      tls.notebook->note_join(out, tensors)) {
    return;
  }
  bool rows = out.is_contiguous() && dim > 0;
  for (const Tensor& t : tensors) {
    rows &= t.dtype() == out.dtype() && t.is_contiguous();
  }
  if (rows) {
    return join_rows(out, tensors, dim);
  }
  int64_t at = 0;
  for (const Tensor& t : tensors) {
    copy_raw(
        make_view(out, {t.sizes(), out.strides(), out.storage_offset() + at * out.strides()[dim]}),
        t);
    at += t.sizes()[dim];
  }
}

namespace {

// Keeps columns [begin(row), end(row)) of every row of every matrix, zero elsewhere.
template <class Range>
void keep_columns(const Tensor& out, const Tensor& given, const Range& range) {
  if (out.numel() == 0) {
    return;
  }
  const Tensor self = contiguous_raw(given);
  const int64_t rows = self.sizes()[self.dim() - 2];
  const int64_t columns = self.sizes()[self.dim() - 1];
  const int64_t width = self.element_size();
  const char* from = static_cast<const char*>(self.data_ptr());
  char* to = static_cast<char*>(out.data_ptr());
  const int64_t grain = std::max<int64_t>(1, bytes_per_task / (columns * width));
  parallel_for(0, self.numel() / columns, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      auto [first, last] = range(r % rows, columns);
      first = std::clamp<int64_t>(first, 0, columns);
      last = std::clamp(last, first, columns);
      char* row = to + r * columns * width;
      std::memset(row, 0, first * width);
      std::memcpy(row + first * width, from + (r * columns + first) * width,
                  (last - first) * width);
      std::memset(row + last * width, 0, (columns - last) * width);
    }
  });
}

// Diagonals further out than a tensor can be are all alike, and add up without overflow.
int64_t clamp_diagonal(int64_t diagonal) {
  return std::clamp<int64_t>(diagonal, -(1LL << 48), 1LL << 48);
}

}  // namespace

void tril(const Tensor& out, const Tensor& self, int64_t diagonal) {
  const int64_t k = clamp_diagonal(diagonal);
  keep_columns(out, self,
               [k](int64_t row, int64_t) { return std::pair<int64_t, int64_t>(0, row + k + 1); });
}

void triu(const Tensor& out, const Tensor& self, int64_t diagonal) {
  const int64_t k = clamp_diagonal(diagonal);
  keep_columns(out, self, [k](int64_t row, int64_t columns) {
    return std::pair<int64_t, int64_t>(row + k, columns);
  });
}

}  // namespace rushlight::cpu
