// Geometry of tensors that views and composites of family shape share.
#pragma once

#include "core/op_support.h"

namespace rushlight {

// All that lies along the last dimension, as rows of a matrix.
inline Tensor as_rows(const Tensor& t) { return t.dim() == 1 ? t.unsqueeze(0) : t.flatten(0, -2); }

// What cuts a tensor makes each piece at once; more than anybody wants would fill the memory.
void check_pieces(const char* op, int64_t pieces);

// The product of two sizes or strides; RuntimeError where it overflows. Tensors without elements
// may have sizes of any magnitude.
int64_t checked_product(const char* op, int64_t a, int64_t b);

// RuntimeError unless permute is told the place of each dimension.
void check_order(IntArrayRef dims, int64_t ndim);

// A shape in which -1 stands for what is left of `numel`.
DimVector infer_size(IntArrayRef shape, int64_t numel);

// Strides with which a tensor's elements can be seen in another shape; false where they cannot.
bool view_strides(const Tensor& t, IntArrayRef shape, DimVector& out);

}  // namespace rushlight
