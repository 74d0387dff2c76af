// embedding and its gradient. Backwards, a row of the table belongs to one thread, which adds up
// the gradients of its uses in the order of the indices, in the compute type: the same bits for any
// number of threads.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/op_support.h"
#include "core/parallel.h"
#include "cpu/isa/pointwise/convert_run.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"

namespace rushlight::cpu::RL_ISA {

namespace {

inline constexpr int64_t work_per_task = 16384;

Tensor checked_indices(const Tensor& indices, int64_t rows) {
  const Tensor positions = contiguous_raw(cast_raw(indices, kInt64));
  const int64_t* at = positions.data<int64_t>();
  const auto is_bad = [&](int64_t i) {
    return static_cast<uint64_t>(i) >= static_cast<uint64_t>(rows);
  };
  bool bad = false;
  for (int64_t i = 0; i < positions.numel(); i++) {
    bad |= is_bad(at[i]);
  }
  RL_CHECK_INDEX(!bad,
                 "index out of range in self: ", *std::find_if(at, at + positions.numel(), is_bad),
                 " in a table of ", rows, " rows, which count from 0");
  return positions;
}

}  // namespace

void embedding(const Tensor& out, const Tensor& weight, const Tensor& indices, int64_t, bool,
               bool) {
  const Tensor positions = checked_indices(indices, weight.sizes()[0]);
  const Tensor table = contiguous_raw(weight);
  const int64_t width = weight.sizes()[1] * weight.element_size();
  const int64_t* at = positions.data<int64_t>();
  const char* from = static_cast<const char*>(table.data_ptr());
  char* to = static_cast<char*>(out.data_ptr());
  if (width == 0) {
    return;
  }
  parallel_for(0, positions.numel(), std::max<int64_t>(1, 4 * work_per_task / width),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; i++) {
                   std::memcpy(to + i * width, from + at[i] * width, width);
                 }
               });
}

void embedding_dense_backward(const Tensor& out, const Tensor& grad_output, const Tensor& indices,
                              int64_t num_weights, int64_t padding_idx, bool scale_grad_by_freq) {
  const Tensor positions = checked_indices(indices, num_weights);
  const int64_t* at = positions.data<int64_t>();
  const int64_t n = positions.numel();
  const int64_t width = out.sizes()[1];
  const Tensor grad = contiguous_raw(grad_output);
  // Uses of each row, in order: counted, then listed row by row.
  std::vector<int64_t> start(num_weights + 1, 0);
  for (int64_t i = 0; i < n; i++) {
    start[at[i] + 1]++;
  }
  for (int64_t r = 0; r < num_weights; r++) {
    start[r + 1] += start[r];
  }
  std::vector<int64_t> next(start.begin(), start.end() - 1);
  Scratch<int64_t> uses(n);
  for (int64_t i = 0; i < n; i++) {
    uses[next[at[i]]++] = i;
  }
  visit_dtype<set_floating>("embedding_backward", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = compute_t<T>;
    const T* g = grad.data<T>();
    T* to = out.data<T>();
    const int64_t grain = std::max<int64_t>(1, work_per_task / (width + 1));
    parallel_for(0, num_weights, grain, [&](int64_t begin, int64_t end) {
      Scratch<A> total(width);
      for (int64_t r = begin; r < end; r++) {
        T* row = to + r * width;
        const int64_t count = start[r + 1] - start[r];
        if (count == 0 || r == padding_idx) {
          std::fill_n(row, width, T(0));
          continue;
        }
        const A scale = scale_grad_by_freq ? A(1) / static_cast<A>(count) : A(1);
        if (count == 1 && scale == 1) {
          std::copy_n(g + uses[start[r]] * width, width, row);
          continue;
        }
        A* sum = total.data();
        std::fill_n(sum, width, A(0));
        for (int64_t u = start[r]; u < start[r + 1]; u++) {
          const T* x = g + uses[u] * width;
          for (int64_t j = 0; j < width; j++) {
            sum[j] += static_cast<A>(x[j]);
          }
        }
        for (int64_t j = 0; j < width; j++) {
          row[j] = static_cast<T>(sum[j] * scale);
        }
      }
    });
  });
}

}  // namespace rushlight::cpu::RL_ISA
