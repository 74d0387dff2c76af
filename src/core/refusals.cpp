// The checks that several files share.
#include "core/refusals.h"

#include "core/op_support.h"
#include "core/sparse.h"

namespace rushlight {

void refuse_devices(const char* op, Device a, Device b) {
  throw Error(str("Expected all tensors to be on the same device: ", op, " got some on ", a,
                  " and some on ", b, ". Move them with .to()"));
}

void refuse_number(int64_t elements) {
  throw Error(str("a Tensor with ", elements,
                  " elements cannot be converted to Scalar: tolist() gives all of them"));
}

void refuse_index(const Tensor& index) {
  throw IndexError(str("indices must be long, int, byte or bool tensors, but one is ",
                       index.defined() ? enum_name(index.dtype()) : "undefined",
                       ": convert it with long()"));
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

bool sparse_is_contiguous(const Tensor& t) {
  const Layout layout = find_sparse(t)->layout();
  RL_CHECK(
      layout == kSparse, layout_text(layout),
      " tensors do not have is_contiguous: their elements are not all in memory. values() are");
  return false;
}

void warn_of_lost_parts(ScalarType from, ScalarType to) {
  static bool warned = false;
  if (is_complex(from) && !is_complex(to) && to != kBool) {  // a truth loses nothing
    warn_once(warned,
              "Casting complex values to real discards the imaginary part; real() and abs() say "
              "what is meant.");
  }
}

}  // namespace rushlight
