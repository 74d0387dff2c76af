// Copies and fills as the core reaches them, through Backend.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight::cuda {

void copy(const Tensor& to, const Tensor& from, bool non_blocking);
void fill(const Tensor& to, const Scalar& value);

}  // namespace rushlight::cuda
