// Tensors from nested Python data, for indexing too.
#pragma once

#include <optional>

#include "python/common.h"

namespace rushlight::python {

// Whether `o` has items to walk: lists, tuples, arrays with dimensions, other sequences; no
// strings, no tensors.
bool is_nested(PyObject* o);

// A tensor of nested sequences of numbers; the dtype is inferred where it is not given. ValueError
// for ragged data.
Tensor of_sequences(PyObject* data, std::optional<ScalarType> dtype);

}  // namespace rushlight::python
