// For kernels that read bools as such, one by one: where reading every byte with read_element
// (kernels/read_element.h) would cost more than looking at them once.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight::cpu {

// Contiguous, and without bools whose bytes are neither 0 nor 1.
Tensor readable(const Tensor& t);

}  // namespace rushlight::cpu
