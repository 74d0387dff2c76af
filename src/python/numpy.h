// numpy without its headers and without importing it first: arrays are read through the buffer
// protocol and made through numpy's own table of functions, which its C ABI fixes.
#pragma once

#include "python/common.h"

namespace rushlight::python {

// An array on the memory of a CPU tensor, which it keeps. TypeError for dtypes that numpy lacks.
PyObject* to_numpy(const Tensor& t);

// A tensor on the memory of a numpy array, which it keeps; a copy where the array is read-only,
// which is said if `warns`. TypeError, ValueError as torch.from_numpy.
Tensor from_numpy(PyObject* array, bool warns = false);

// What a numpy array consists of, read without making anything; it must outlive this.
struct ArrayView {
  const char* data;
  IntArrayRef sizes;
  IntArrayRef strides;  // in bytes
  ScalarType dtype;     // Undefined where torch has none, or the bytes are swapped or unaligned
  bool is_contiguous;   // in C's order
};
// TypeError: no tensor has elements of this numpy type.
[[noreturn]] void refuse_numpy_type(std::string_view type);
// False where `o` is no numpy array.
bool view_array(PyObject* o, ArrayView& view);

// A 1-d tensor of `count` elements (-1: all) from a byte on in the memory of an object with the
// buffer protocol, which it keeps; a copy, with a warning, of what may only be read.
Tensor of_buffer(PyObject* buffer, ScalarType t, int64_t count, int64_t offset);

// A tensor on the memory of any object with the buffer protocol; undefined if it has none.
Tensor from_buffer(PyObject* object, bool& read_only);

// What the memory of a tensor belongs to, if that is the tensor's alone to keep and a Python object
// that may refer back to it; else null. The collector may clear it.
PyObject* buffer_owner(const TensorImpl& impl);

}  // namespace rushlight::python
