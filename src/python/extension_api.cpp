// What extensions are given: tensors to Python and back, errors.
#include <rushlight/python.h>

#include "python/bindings.h"
#include "python/tensor_type.h"
#include "python/types.h"

namespace rushlight::python {

namespace {

PyObject* wrap_or_raise(const Tensor& t) {
  try {
    return wrap(t);
  } catch (...) {
    set_error_from_exception();
    return nullptr;
  }
}

const Tensor* unwrap_or_null(PyObject* o) { return is_tensor(o) ? &unwrap(o) : nullptr; }

ScalarType dtype_or_undefined(PyObject* o) { return as_dtype(o).value_or(ScalarType::Undefined); }

constexpr bind::PythonApi table = {wrap_or_raise, unwrap_or_null, dtype_or_undefined,
                                   [] { set_error_from_exception(); }};

}  // namespace

void init_extension_api(PyObject* module) {
  const Object capsule = Object::check(
      PyCapsule_New(const_cast<bind::PythonApi*>(&table), "rushlight._C._python_api", nullptr));
  check(PyModule_AddObjectRef(module, "_python_api", capsule.get()));
}

}  // namespace rushlight::python
