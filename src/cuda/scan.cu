// Running extremes with their places: cummax and cummin.
#include "cuda/scan_by.cuh"

namespace rushlight {

namespace cuda {

namespace {

// The later of equal elements wins; a NaN stays.
template <class T, bool Largest>
struct RunningExtreme {
  using A = compute_t<T>;
  struct Acc {
    A value;
    int64_t index;  // -1: nothing yet
  };
  T* values;
  int64_t* indices;
  const T* in;
  __device__ Acc identity() const { return {A(), -1}; }
  __device__ Acc read(int64_t at, int64_t i) const { return {widen(in[at]), i}; }
  __device__ Acc combine(Acc a, Acc b) const {
    if (a.index < 0 || b.index < 0) {
      return a.index < 0 ? b : a;
    }
    if (a.value != a.value || b.value != b.value) {
      return b.value != b.value ? b : a;
    }
    return (Largest ? b.value >= a.value : b.value <= a.value) ? b : a;
  }
  __device__ void write(Acc acc, int64_t at) const {
    values[at] = narrow<T>(acc.value);
    indices[at] = acc.index;
  }
};

template <bool Largest>
void cumulative_extreme(const char* name, const Tensor& values, const Tensor& indices,
                        const Tensor& given, int64_t dim) {
  const Tensor self = contiguous_raw(given);
  visit_dtype<set_real | set_Bool>(name, self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    run_scan(values, dim,
             RunningExtreme<T, Largest>{values.data<T>(), indices.data<int64_t>(), self.data<T>()});
  });
}

}  // namespace

}  // namespace cuda

void cuda::cummax(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim) {
  cumulative_extreme<true>("cummax", values, indices, self, dim);
}
void cuda::cummin(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim) {
  cumulative_extreme<false>("cummin", values, indices, self, dim);
}

}  // namespace rushlight
