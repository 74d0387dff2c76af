// __torch_function__: subclasses, other classes and modes that see a call before its arguments are
// converted.
#pragma once

#include "python/common.h"
#include "python/tensor_type.h"

namespace rushlight::python {

struct TorchFunctionState {
  PyObject* modes = nullptr;  // list of modes, the topmost last; usually null or empty
  bool subclasses_disabled = false;
  bool modes_disabled = false;
};
extern thread_local TorchFunctionState torch_function_state
    __attribute__((tls_model("initial-exec")));

bool overrides_item(PyObject* o);
// Whether `o`, or an item of a list or tuple, has a __torch_function__ that wants to see the call.
inline bool overrides(PyObject* o) {
  const PyTypeObject* t = Py_TYPE(o);
  if (t == tensor_class || t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type ||
      t == &PyUnicode_Type || o == Py_None) {
    return false;
  }
  return overrides_item(o);
}

inline bool mode_active() {
  return torch_function_state.modes != nullptr && !torch_function_state.modes_disabled &&
         PyList_GET_SIZE(torch_function_state.modes) != 0;
}

// `self` may be null; `args` holds nargs positional values, then those of the names in kwnames.
inline bool wants_torch_function(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                                 PyObject* kwnames) {
  if (RL_UNLIKELY(mode_active())) {
    return true;
  }
  if (self != nullptr && overrides(self)) {
    return true;
  }
  const Py_ssize_t n = nargs + (kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0);
  for (Py_ssize_t i = 0; i < n; i++) {
    if (overrides(args[i])) {
      return true;
    }
  }
  return false;
}

// Offers the call to the modes and the overriding arguments. `function` is the public callable;
// `self` is put before the positional arguments when not null, and may be all that is asked.
enum class Offered : uint8_t { ToAll, ToSelf };
PyObject* call_torch_function(PyObject* function, PyObject* self, PyObject* const* args,
                              Py_ssize_t nargs, PyObject* kwnames,
                              Offered offered = Offered::ToAll);

// For slots: arguments are (self, others…), the callable is TensorBase's method of that name.
PyObject* call_torch_function_method(const char* name, std::initializer_list<PyObject*> args);

// A new class that brings a __torch_dispatch__ and no __torch_function__ is offered no calls: it
// sees the ops below instead.
void set_torch_function(PyTypeObject* cls);

void init_torch_function(PyObject* module);

}  // namespace rushlight::python
