// frexp: the special function with two results.
#include <cmath>

#include "generated/kernels.h"

namespace rushlight::cpu {

void frexp(const Tensor& out_mantissa, const Tensor& out_exponent, const Tensor& self) {
  const Tensor from = contiguous_raw(self);
  const bool direct = out_mantissa.is_contiguous() && out_exponent.is_contiguous();
  const Tensor mantissa =
      direct ? out_mantissa : make_empty(self.sizes(), self.dtype(), self.device());
  const Tensor exponent = direct ? out_exponent : make_empty(self.sizes(), kInt32, self.device());
  visit_dtype<set_floating>("frexp", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const x = from.data<T>();
    T* const m = mantissa.data<T>();
    int32_t* const e = exponent.data<int32_t>();
    parallel_for(0, self.numel(), 32768, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        int power = 0;
        m[i] = static_cast<T>(std::frexp(static_cast<compute_t<T>>(x[i]), &power));
        e[i] = power;
      }
    });
  });
  if (!direct) {
    copy_raw(out_mantissa, mantissa);
    copy_raw(out_exponent, exponent);
  }
}

}  // namespace rushlight::cpu
