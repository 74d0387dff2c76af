// Python numbers to C++ ones.
#include "python/convert.h"

#include <rushlight/forward.h>

#include "python/numpy.h"

namespace rushlight::python {

namespace {

// A class of numpy, without importing it: null until somebody else has.
PyObject* numpy_class(PyObject*& cache, const char* name) {
  if (cache == nullptr) {
    PyObject* modules = PyImport_GetModuleDict();
    PyObject* numpy = PyDict_GetItemString(modules, "numpy");
    if (numpy == nullptr) {
      return nullptr;
    }
    cache = PyObject_GetAttrString(numpy, name);
    if (cache == nullptr) {
      PyErr_Clear();  // numpy is still being imported
    }
  }
  return cache;
}

bool is_numpy(PyObject* o, PyObject*& cache, const char* name) {
  PyObject* type = numpy_class(cache, name);
  return type != nullptr && PyType_Check(type) &&
         PyType_IsSubtype(Py_TYPE(o), reinterpret_cast<PyTypeObject*>(type)) != 0;
}

PyObject* generic;
PyObject* ndarray;
PyObject* numpy_bool;
PyObject* numpy_complex;

// A tensor that may stand for a number.
const Tensor* number_tensor(PyObject* o) {
  if (!is_tensor(o)) {
    return nullptr;
  }
  const Tensor& t = unwrap(o);
  const bool plain = !t.requires_grad() && !(forward::active() && forward::has_tangent(t));
  return t.dim() == 0 && plain ? &t : nullptr;
}

}  // namespace

bool is_numpy_scalar(PyObject* o) { return is_numpy(o, generic, "generic"); }
bool is_numpy_array(PyObject* o) { return is_numpy(o, ndarray, "ndarray"); }
bool is_numpy_bool(PyObject* o) { return is_numpy(o, numpy_bool, "bool_"); }

bool is_int_slow(PyObject* o) {
  if (PyBool_Check(o)) {
    return false;
  }
  if (PyLong_Check(o)) {
    return true;
  }
  if (is_tensor(o)) {
    const Tensor* t = number_tensor(o);
    return t != nullptr && is_integral(t->dtype());
  }
  if (is_numpy_array(o)) {
    ArrayView view;
    return view_array(o, view) && view.sizes.empty() && is_integral(view.dtype);
  }
  return PyIndex_Check(o) && !is_numpy_bool(o);
}

int64_t to_int_slow(PyObject* o) {
  int overflow = 0;
  if (PyLong_Check(o)) {
    const int64_t value = PyLong_AsLongLongAndOverflow(o, &overflow);
    RL_CHECK_VALUE(overflow == 0, "Overflow when unpacking long long");
    return value;
  }
  if (is_tensor(o)) {
    return unwrap(o).item().toLong();
  }
  const Object index = Object::check(PyNumber_Index(o));
  return to_int(index.get());
}

bool is_float_slow(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o)) {
    return true;
  }
  if (is_tensor(o)) {
    return number_tensor(o) != nullptr;
  }
  return is_numpy_scalar(o) && Py_TYPE(o)->tp_as_number != nullptr &&
         Py_TYPE(o)->tp_as_number->nb_float != nullptr &&
         !is_numpy(o, numpy_complex, "complexfloating");
}

double to_float(PyObject* o) {
  if (is_tensor(o)) {
    return unwrap(o).item().toDouble();
  }
  const double value = PyFloat_AsDouble(o);
  if (value == -1.0 && PyErr_Occurred()) {
    throw PythonError();
  }
  return value;
}

bool is_bool(PyObject* o) {
  return PyBool_Check(o) || is_numpy_bool(o) ||
         (is_tensor(o) && number_tensor(o) != nullptr && unwrap(o).dtype() == kBool);
}

bool to_bool(PyObject* o) {
  if (is_tensor(o)) {
    return unwrap(o).item().toBool();
  }
  return check(PyObject_IsTrue(o)) != 0;
}

bool is_number_slow(PyObject* o) {
  return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) || is_numpy_scalar(o);
}

bool is_scalar(PyObject* o) { return is_number(o) || number_tensor(o) != nullptr; }

Scalar to_scalar(PyObject* o) {
  if (PyFloat_Check(o)) {
    return Scalar(PyFloat_AS_DOUBLE(o));
  }
  if (PyBool_Check(o)) {
    return Scalar(o == Py_True);
  }
  if (PyLong_Check(o)) {
    int overflow = 0;
    const int64_t value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow == 0) {
      return Scalar(value);
    }
    const uint64_t large = PyLong_AsUnsignedLongLong(o);
    if (PyErr_Occurred()) {
      throw PythonError();
    }
    return Scalar(large);
  }
  if (is_tensor(o)) {
    return unwrap(o).item();
  }
  if (is_numpy_bool(o)) {
    return Scalar(check(PyObject_IsTrue(o)) != 0);
  }
  if (PyIndex_Check(o)) {
    return Scalar(to_int(o));
  }
  if (PyComplex_Check(o) || is_numpy(o, numpy_complex, "complexfloating")) {
    const Py_complex z = PyComplex_AsCComplex(o);
    if (PyErr_Occurred()) {
      throw PythonError();
    }
    return Scalar(complex<double>(z.real, z.imag));
  }
  return Scalar(to_float(o));
}

}  // namespace rushlight::python
