// Derivatives that are longer than the line they have in the op table, declared for the generated backward
// functions. Each is defined in the file of its family; all are written over public ops, so they have derivatives.
#pragma once

#include <rushlight/ops.h>

#include "core/op_support.h"

namespace rushlight {

// ---- shape ----
Tensor permute_backward(const Tensor& grad, IntArrayRef dims);
Tensor split_backward(TensorList grads, IntArrayRef self_sizes, const TensorOptions& options, IntArrayRef sizes,
                      int64_t dim);
Tensor unbind_backward(TensorList grads, IntArrayRef self_sizes, const TensorOptions& options, int64_t dim);
Tensor as_strided_backward(const Tensor& grad, const Tensor& self, IntArrayRef size, IntArrayRef stride,
                           std::optional<int64_t> storage_offset);

// ---- pointwise ----

// ---- reduce ----

// ---- index ----

// ---- sort ----

// ---- loss ----

// ---- linalg ----

// ---- conv ----

// ---- pool ----

// ---- norm ----

}  // namespace rushlight
