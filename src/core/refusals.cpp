// The checks that several files share.
#include "core/refusals.h"

namespace rushlight {

void refuse_devices(const char* op, Device a, Device b) {
  throw Error(str("Expected all tensors to be on the same device: ", op, " got some on ", a,
                  " and some on ", b, ". Move them with .to()"));
}

void refuse_index(const Tensor& index) {
  throw IndexError(str("indices must be long, int, byte or bool tensors, but one is ",
                       index.defined() ? enum_name(index.dtype()) : "undefined"));
}

void check_bin_weights(const Tensor& numbers, const Tensor& weights) {
  RL_CHECK(!weights.defined() || weights.sizes() == numbers.sizes(),
           "bincount: weights should have the same length as input, but they have shapes ",
           weights.sizes(), " and ", numbers.sizes());
}

void check_unique_slices(const char* op, int64_t slices, int64_t elements) {
  RL_CHECK(slices == 0 || elements != 0, op, ": There are 0 sized dimensions beside dim, so that ",
           slices, " slices have no elements to be told apart by");
}

}  // namespace rushlight
