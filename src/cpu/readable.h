// What kernels make of their inputs first: bools that are read as such, one by one, where reading
// every byte with read_element (kernels/read_element.h) would cost more than looking at them once,
// and dtypes that kernels are not instantiated for.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight::cpu {

// Contiguous, and without bools whose bytes are neither 0 nor 1.
Tensor with_valid_bools(const Tensor& t);

// In `dtype` where kernels are not instantiated for that of `t`, otherwise as it is.
Tensor computable(const Tensor& t, ScalarType dtype);

// Elements that compare as those of `t`, in a dtype that kernels are instantiated for: wide
// unsigned integers become signed ones of their size, with the highest bit turned over.
Tensor comparable(const Tensor& t);
// And back.
Tensor from_comparable(const Tensor& x, ScalarType dtype);

}  // namespace rushlight::cpu
