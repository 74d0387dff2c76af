// Tensors as Python's objects and back, by libtorch's names. They raise TypeError in C++ unless
// Python has imported rushlight.
#pragma once

#include <rushlight/python.h>

// Around the body of a function of a module: exceptions of C++ become Python's.
#define HANDLE_TH_ERRORS try {
#define END_HANDLE_TH_ERRORS_RET(value)   \
  }                                       \
  catch (...) {                           \
    ::rushlight::bind::api().set_error(); \
    return value;                         \
  }
#define END_HANDLE_TH_ERRORS END_HANDLE_TH_ERRORS_RET(nullptr)

inline bool THPVariable_Check(PyObject* object) {
  return object != nullptr && rushlight::bind::api().unwrap(object) != nullptr;
}
// A new reference; null where Python raised.
inline PyObject* THPVariable_Wrap(const rushlight::Tensor& t) {
  return rushlight::bind::api().wrap(t);
}
inline const rushlight::Tensor& THPVariable_Unpack(PyObject* object) {
  const rushlight::Tensor* const t = rushlight::bind::api().unwrap(object);
  if (t == nullptr) {
    throw rushlight::TypeError(rushlight::str(
        "expected a Tensor, not ", object == nullptr ? "null" : Py_TYPE(object)->tp_name));
  }
  return *t;
}
