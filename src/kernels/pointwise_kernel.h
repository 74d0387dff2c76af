// What the pointwise kernels of every device share beside the formulas: the type that one gives.
#pragma once

#include "core/iterator.h"

namespace rushlight {

// What a formula gives for operands of type T.
template <class T, Promote P>
struct result_of {
  using type = T;
};
template <class T>
struct result_of<T, Promote::Bool> {
  using type = bool;
};
template <class T>
struct result_of<T, Promote::Real> {
  using type = real_t<T>;
};

}  // namespace rushlight
