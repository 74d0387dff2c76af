// Tables of rows: the gradient of embedding, and rows that are too long. Their lookup stands in
// index.cu.
#include <cmath>

#include "cuda/atomic.cuh"
#include "cuda/checked.cuh"
#include "cuda/column.h"
#include "cuda/rows.cuh"

namespace rushlight {

namespace cuda {

namespace {

template <class T>
struct AddRows {
  T* out;
  const T* grad;
  const int64_t* index;
  const int64_t* count;  // null: not divided
  int64_t rows;
  int64_t width;
  int64_t padding;
  __device__ void operator()(const int64_t (&at)[3]) const {  // grad, index, column
    const int64_t row = checked_index(index[at[1]], rows);
    if (row == padding) {
      return;
    }
    T value = grad[at[0]];
    if (count != nullptr) {
      value = narrow<T>(widen(value) / static_cast<compute_t<T>>(count[row]));
    }
    atomic_combine<Add>(out + row * width + at[2], value);
  }
};
struct CountRows {
  int64_t* count;
  const int64_t* index;
  int64_t rows;
  __device__ void operator()(const int64_t (&at)[1]) const {
    atomic_combine<Add>(count + checked_index(index[at[0]], rows), int64_t{1});
  }
};

struct MarkRow {
  uint8_t* used;
  const int64_t* index;
  int64_t rows;
  __device__ void operator()(const int64_t (&at)[1]) const {
    used[checked_index(index[at[0]], rows)] = 1;
  }
};
template <class T>
struct ShortenRow {
  T* table;
  const uint8_t* used;
  int64_t row_stride;
  int64_t stride;
  int64_t width;
  double most;
  double power;
  bool largest;  // the norm is that of the largest element
  template <class Team>
  __device__ void operator()(const Team& team, int64_t r) const {
    if (used[r] == 0) {
      return;
    }
    T* const row = table + r * row_stride;
    double total = 0;
    for (int64_t i = team.rank(); i < width; i += team.size()) {
      const double size = ::fabs(static_cast<double>(widen(row[i * stride])));
      total = largest ? ::fmax(total, size) : total + ::pow(size, power);
    }
    total = largest ? team.template all<MaxOf>(total) : team.template all<SumOf>(total);
    const double norm = largest ? total : ::pow(total, 1 / power);
    if (norm > most) {
      const double scale = most / (norm + 1e-7);
      for (int64_t i = team.rank(); i < width; i += team.size()) {
        T& x = row[i * stride];
        x = narrow<T>(static_cast<compute_t<T>>(static_cast<double>(widen(x)) * scale));
      }
    }
  }
};

}  // namespace

}  // namespace cuda

void cuda::embedding_dense_backward(const Tensor& out, const Tensor& grad_output,
                                    const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                                    bool scale_grad_by_freq) {
  fill_raw(out, 0);
  const Tensor places = contiguous_raw(cast_raw(indices, kInt64));
  const Tensor grad = contiguous_raw(grad_output);
  const int64_t n = places.numel();
  if (n == 0 || grad.numel() == 0) {
    return;
  }
  const Launch launch(out.device());
  Tensor count;
  if (scale_grad_by_freq) {
    count = make_empty({num_weights}, kInt64, out.device());
    fill_raw(count, 0);
    each(launch, Space<1>{{n}, {DimVector{1}}},
         CountRows{count.data<int64_t>(), places.data<int64_t>(), num_weights});
  }
  const int64_t width = grad.numel() / n;
  visit_dtype<set_floating>("embedding_dense_backward", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, Space<3>{{n, width}, {DimVector{width, 1}, DimVector{1, 0}, DimVector{0, 1}}},
         AddRows<T>{out.data<T>(), grad.data<T>(), places.data<int64_t>(),
                    count.defined() ? count.data<int64_t>() : nullptr, num_weights, width,
                    padding_idx});
  });
}

void cuda::embedding_renorm_(const Tensor& out, const Tensor& indices, double max_norm,
                             double norm_type) {
  const Tensor places = contiguous_raw(cast_raw(indices, kInt64));
  if (places.numel() == 0) {
    return;
  }
  const int64_t rows = out.sizes()[0];
  const Tensor used = make_empty({rows}, kUInt8, out.device());
  fill_raw(used, 0);
  const Launch launch(out.device());
  each(launch, Space<1>{{places.numel()}, {DimVector{1}}},
       MarkRow{used.data<uint8_t>(), places.data<int64_t>(), rows});
  visit_dtype<set_floating>("embedding_renorm_", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_rows(launch, rows, out.sizes()[1], 1,
             ShortenRow<T>{out.data<T>(), used.data<uint8_t>(), out.strides()[0], out.strides()[1],
                           out.sizes()[1], max_norm, norm_type, std::isinf(norm_type)});
  });
}

}  // namespace rushlight
