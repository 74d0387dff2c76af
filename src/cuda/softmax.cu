// softmax, log_softmax and their backward along any dimension.
#include "cuda/column.h"
#include "cuda/rows.cuh"

namespace rushlight {

namespace cuda {

namespace {

template <class T, bool Log>
struct Softmax {
  T* out;
  const T* in;
  DimSplit split;
  template <class Team>
  __device__ void operator()(const Team& team, int64_t row) const {
    using A = compute_t<T>;
    const int64_t first = split.first(row);
    const auto load = [&](int64_t i) -> A { return widen(in[first + i * split.inner]); };
    A top = -math::infinity<A>;
    for (int64_t i = team.rank(); i < split.n; i += team.size()) {
      top = math::maximum(top, load(i));
    }
    top = team.template all<MaxOf>(top);
    A sum = 0;
    for (int64_t i = team.rank(); i < split.n; i += team.size()) {
      sum += math::exp(load(i) - top);
    }
    sum = team.template all<SumOf>(sum);
    const A log_sum = math::log(sum);
    for (int64_t i = team.rank(); i < split.n; i += team.size()) {
      const A x = load(i) - top;
      out[first + i * split.inner] = narrow<T>(Log ? x - log_sum : math::exp(x) / sum);
    }
  }
};

template <bool Log>
void softmax_rows(const char* name, const Tensor& out, const Tensor& self, int64_t dim) {
  const Tensor x = contiguous_raw(cast_raw(self, out.dtype()));
  const Launch launch(out.device());
  visit_dtype<set_floating>(name, out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const DimSplit split = dim_split_of(x, dim);
    for_rows(launch, out.numel() == 0 ? 0 : split.rows, split.n, split.inner,
             Softmax<T, Log>{out.data<T>(), x.data<T>(), split});
  });
}

template <class T, bool Log>
struct SoftmaxBackward {
  T* out;
  const T* grad;
  const T* result;
  DimSplit split;
  template <class Team>
  __device__ void operator()(const Team& team, int64_t row) const {
    using A = compute_t<T>;
    const int64_t first = split.first(row);
    A sum = 0;
    for (int64_t i = team.rank(); i < split.n; i += team.size()) {
      const int64_t at = first + i * split.inner;
      sum += Log ? widen(grad[at]) : widen(grad[at]) * widen(result[at]);
    }
    sum = team.template all<SumOf>(sum);
    for (int64_t i = team.rank(); i < split.n; i += team.size()) {
      const int64_t at = first + i * split.inner;
      const A g = widen(grad[at]);
      const A y = widen(result[at]);
      out[at] = narrow<T>(Log ? g - math::exp(y) * sum : (g - sum) * y);
    }
  }
};

template <bool Log>
void backward_rows(const char* name, const Tensor& out, const Tensor& grad_output,
                   const Tensor& output, int64_t dim) {
  const Tensor grad = contiguous_raw(cast_raw(grad_output, output.dtype()));
  const Tensor y = contiguous_raw(output);
  // The result may have another dtype: that of softmax's input.
  const bool direct = out.dtype() == output.dtype();
  const Tensor to = direct ? out : make_empty(out.sizes(), output.dtype(), out.device());
  {
    const Launch launch(out.device());
    visit_dtype<set_floating>(name, output.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const DimSplit split = dim_split_of(y, dim);
      for_rows(launch, out.numel() == 0 ? 0 : split.rows, split.n, split.inner,
               SoftmaxBackward<T, Log>{to.data<T>(), grad.data<T>(), y.data<T>(), split});
    });
  }
  if (!direct) {
    copy_raw(out, to);
  }
}

}  // namespace

}  // namespace cuda

void cuda::softmax(const Tensor& out, const Tensor& self, int64_t dim, std::optional<ScalarType>) {
  softmax_rows<false>("softmax", out, self, dim);
}
void cuda::log_softmax(const Tensor& out, const Tensor& self, int64_t dim,
                       std::optional<ScalarType>) {
  softmax_rows<true>("log_softmax", out, self, dim);
}
void cuda::_softmax_backward_data(const Tensor& out, const Tensor& grad_output,
                                  const Tensor& output, int64_t dim, ScalarType) {
  backward_rows<false>("_softmax_backward_data", out, grad_output, output, dim);
}
void cuda::_log_softmax_backward_data(const Tensor& out, const Tensor& grad_output,
                                      const Tensor& output, int64_t dim, ScalarType) {
  backward_rows<true>("_log_softmax_backward_data", out, grad_output, output, dim);
}

}  // namespace rushlight
