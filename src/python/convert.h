// Python numbers to C++ ones. `is_…` says whether an argument of that type takes the object,
// without raising; `to_…` converts what `is_…` accepted and raises only where the value does not
// fit.
//
// ints take int and anything with __index__ (numpy's ints), floats also numpy's floats; bool is no
// int. 0-d tensors that do not require grad count as numbers, as in PyTorch.
#pragma once

#include <vector>

#include "python/common.h"
#include "python/tensor_type.h"

namespace rushlight::python {

bool is_int_slow(PyObject* o);
inline bool is_int(PyObject* o) { return PyLong_CheckExact(o) || is_int_slow(o); }
int64_t to_int_slow(PyObject* o);
inline int64_t to_int(PyObject* o) {
#if PY_VERSION_HEX < 0x030c0000
  if (RL_LIKELY(PyLong_CheckExact(o)) && Py_SIZE(o) >= -1 && Py_SIZE(o) <= 1) {  // a digit or none
    return Py_SIZE(o) * static_cast<int64_t>(reinterpret_cast<PyLongObject*>(o)->ob_digit[0]);
  }
#else
  if (RL_LIKELY(PyLong_CheckExact(o)) &&
      PyUnstable_Long_IsCompact(reinterpret_cast<PyLongObject*>(o))) {
    return PyUnstable_Long_CompactValue(reinterpret_cast<PyLongObject*>(o));
  }
#endif
  return to_int_slow(o);
}

bool is_float_slow(PyObject* o);
inline bool is_float(PyObject* o) { return PyFloat_CheckExact(o) || is_float_slow(o); }
double to_float(PyObject* o);

bool is_bool(PyObject* o);
bool to_bool(PyObject* o);

// A Python or numpy number of any kind; not a tensor.
bool is_number_slow(PyObject* o);
inline bool is_number(PyObject* o) {
  return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) || is_number_slow(o);
}
// The same, or a 0-d tensor that does not require grad.
bool is_scalar(PyObject* o);
Scalar to_scalar(PyObject* o);

// numpy.generic, where numpy has been imported by somebody.
bool is_numpy_scalar(PyObject* o);
bool is_numpy_array(PyObject* o);
bool is_numpy_bool(PyObject* o);

// Items of a list or tuple; null size otherwise.
struct Items {
  PyObject** data = nullptr;
  Py_ssize_t size = -1;
  bool is_sequence() const { return size >= 0; }
};
inline Items items_of(PyObject* o) {
  if (PyTuple_Check(o)) {
    return {reinterpret_cast<PyTupleObject*>(o)->ob_item, PyTuple_GET_SIZE(o)};
  }
  if (PyList_Check(o)) {
    return {reinterpret_cast<PyListObject*>(o)->ob_item, PyList_GET_SIZE(o)};
  }
  return {};
}

}  // namespace rushlight::python
