// Thrust's iterator over f(element).
#pragma once

#include <cstddef>

namespace thrust {

template <class F, class In>
struct transform_iterator {
  In in;
  F f;
  auto operator[](ptrdiff_t i) const { return f(in[i]); }
};
template <class In, class F>
transform_iterator<F, In> make_transform_iterator(In in, F f) {
  return {in, f};
}

}  // namespace thrust
