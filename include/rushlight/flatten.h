// torch::utils::flatten_dense_tensors and its inverse: many tensors as one, for a collective.
#pragma once

#include <rushlight/libtorch.h>

namespace rushlight::utils {

// One after the other, in a vector of their common dtype.
inline Tensor flatten_dense_tensors(TensorList tensors) {
  std::vector<Tensor> flat;
  for (const Tensor& t : tensors) {
    flat.push_back(t.contiguous().view({-1}));
  }
  return cat(flat);
}
// Views of such a vector, in the shapes of `tensors`.
inline std::vector<Tensor> unflatten_dense_tensors(const Tensor& flat, TensorList tensors) {
  std::vector<Tensor> out;
  int64_t at = 0;
  for (const Tensor& t : tensors) {
    out.push_back(flat.narrow(0, at, t.numel()).view(t.sizes()));
    at += t.numel();
  }
  return out;
}

}  // namespace rushlight::utils
