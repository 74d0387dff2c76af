// frexp: the special function with two results.
#include "cuda/column.h"
#include "cuda/each.cuh"

namespace rushlight {

namespace cuda {

namespace {

template <class T>
struct Split {
  T* mantissa;
  int32_t* exponent;
  const T* in;
  __device__ void operator()(const int64_t (&at)[3]) const {
    int power = 0;
    mantissa[at[0]] = narrow<T>(::frexp(widen(in[at[2]]), &power));
    exponent[at[1]] = power;
  }
};

}  // namespace

}  // namespace cuda

void cuda::frexp(const Tensor& mantissa, const Tensor& exponent, const Tensor& self) {
  const Launch launch(self.device());
  visit_dtype<set_floating>("frexp", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each(launch, Space<3>{self.sizes(), {mantissa.strides(), exponent.strides(), self.strides()}},
         Split<T>{mantissa.data<T>(), exponent.data<int32_t>(), self.data<T>()});
  });
}

}  // namespace rushlight
