// Whether numbers have powers and products that can be represented. What is written over sums of
// such looks first, and takes numbers relative to the largest where they do not.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight {

struct Sizes {
  double least;
  double most;
};
// Of numbers whose p-th powers, and sums of some million of them, have all digits in a dtype.
Sizes moderate_sizes(ScalarType dtype, double p);

// Whether all elements are of such a size, or 0 where that is fine. Elsewhere than in the host's
// memory nobody looks: no. Where there is nothing to look at (meta, traces): yes.
bool are_moderate(const Tensor& t, const Sizes& sizes, bool or_zero = true);

// By what the elements along some dimensions are divided so that they are moderate: 1 where they
// are, else the largest |t|, without a gradient.
Tensor unit_of(const Tensor& t, IntArrayRef dims, const Sizes& sizes);

}  // namespace rushlight
