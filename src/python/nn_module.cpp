// The base class of nn.Module: what every program does often, reading an attribute and calling,
// without Python code in between. Everything else of a module is Python
// (python/rushlight/nn/modules/module.py).
//
// Attributes that are in no class and not in the instance's dict are looked up in `_parameters`,
// `_buffers` and `_modules`. A call runs `forward` directly where no hook exists, else
// `call_with_hooks` of nn/modules/_hooks.py; an error on the way out is told to `note_error` of
// nn/modules/_errors.py, which names the module.
#include <optional>

#include "core/region.h"
#include "python/bindings.h"

namespace rushlight::python {

constinit thread_local ModuleWatcher* module_watcher = nullptr;

namespace {

// Interned names, made once.
struct Names {
  PyObject* tables[3];
  PyObject* hooks[4];
  PyObject* forward;
  PyObject* is_compiled;  // in the dict of an instance whose calls are noted (cpu/chain.h)
  PyObject* getattr;
  PyObject* getattribute;
};
Names names;

PyObject* global_hooks;     // a tuple of the dicts of hooks of all modules
PyObject* call_with_hooks;  // function of the module, its arguments and keywords
PyObject* note_error;       // function of the error, the module and its arguments

PyTypeObject* base_type;

// The value under a name in one of the three tables; null without an error where there is none.
PyObject* find_in_tables(PyObject* self, PyObject* name) {
  const Object dict = Object::maybe(PyObject_GenericGetDict(self, nullptr));
  if (!dict) {
    PyErr_Clear();  // a class with __slots__ has no dict, and so no tables
    return nullptr;
  }
  for (PyObject* const table_name : names.tables) {
    PyObject* const table = PyDict_GetItemWithError(dict.get(), table_name);
    if (table == nullptr || !PyDict_Check(table)) {
      if (PyErr_Occurred() != nullptr) {
        throw PythonError();
      }
      continue;
    }
    PyObject* const value = PyDict_GetItemWithError(table, name);
    if (value != nullptr) {
      return Py_NewRef(value);
    }
    if (PyErr_Occurred() != nullptr) {
      throw PythonError();
    }
  }
  return nullptr;
}

PyObject* no_attribute(PyObject* self, PyObject* name) {
  PyErr_Format(PyExc_AttributeError, "'%.200s' object has no attribute '%U'", type_name(self),
               name);
  return nullptr;
}

// Module.__getattr__, for subclasses that define their own and ask this one.
PyObject* module_getattr_method(PyObject* self, PyObject* name) {
  return translate_errors([&]() -> PyObject* {
    if (!PyUnicode_Check(name)) {
      raise(PyExc_TypeError, str("attribute name must be string, not '", type_name(name), "'"));
    }
    PyObject* const value = find_in_tables(self, name);
    return value != nullptr ? value : no_attribute(self, name);
  });
}

PyObject* module_getattro(PyObject* self, PyObject* name) {
  PyObject* const plain = _PyObject_GenericGetAttrWithDict(self, name, nullptr, 1);
  if (plain != nullptr) {
    return plain;
  }
  if (PyErr_Occurred() != nullptr) {
    // A property's AttributeError sends the look-up on, as it does for every class with
    // __getattr__.
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) {
      return nullptr;
    }
    PyErr_Clear();
  }
  return module_getattr_method(self, name);
}

bool has_items(PyObject* dict) {
  return dict != nullptr && PyDict_Check(dict) && PyDict_GET_SIZE(dict) != 0;
}

// Whether a call meets hooks; raises AttributeError where Module.__init__ has not run.
bool is_hooked(PyObject* self, PyObject* dict) {
  for (PyObject* const name : names.hooks) {
    PyObject* const hooks = PyDict_GetItemWithError(dict, name);
    if (hooks == nullptr) {
      if (PyErr_Occurred() == nullptr) {
        raise(PyExc_AttributeError, str(type_name(self), " was called before Module.__init__()"));
      }
      throw PythonError();
    }
    if (!PyDict_Check(hooks) || PyDict_GET_SIZE(hooks) != 0) {
      return true;
    }
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(global_hooks); i++) {
    if (has_items(PyTuple_GET_ITEM(global_hooks, i))) {
      return true;
    }
  }
  return false;
}

// forward(*args, **kwargs), without making a bound method where `forward` is a plain function of
// the class.
PyObject* call_forward(PyObject* self, PyObject* dict, PyObject* args, PyObject* kwargs) {
  constexpr Py_ssize_t most = 8;
  const Py_ssize_t count = PyTuple_GET_SIZE(args);
  PyObject* const function = _PyType_Lookup(Py_TYPE(self), names.forward);  // borrowed
  const bool simple = function != nullptr && PyFunction_Check(function) && kwargs == nullptr &&
                      count < most && PyDict_GetItemWithError(dict, names.forward) == nullptr;
  if (simple) {
    PyObject* stack[most + 1];
    stack[0] = self;
    for (Py_ssize_t i = 0; i < count; i++) {
      stack[i + 1] = PyTuple_GET_ITEM(args, i);
    }
    const Object held = Object::borrow(function);
    return PyObject_Vectorcall(function, stack, static_cast<size_t>(count + 1), nullptr);
  }
  const Object forward = Object::check(PyObject_GetAttr(self, names.forward));
  return PyObject_Call(forward.get(), args, kwargs);
}

// Tells note_error about the error that is set, which then goes on.
void pass_on_error(PyObject* self, PyObject* args) {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace != nullptr) {
    PyException_SetTraceback(value, trace);
  }
  if (PyObject_IsInstance(value, PyExc_Exception) == 1) {
    const Object noted =
        Object::maybe(PyObject_CallFunctionObjArgs(note_error, value, self, args, nullptr));
    if (!noted) {
      PyErr_Clear();  // the error itself matters more than its note
    }
  }
  PyErr_Restore(type, value, trace);
}

// What compiled it, called with it and the arguments (nn/modules/module.py).
PyObject* call_compiled(PyObject* compiled, PyObject* self, PyObject* args, PyObject* kwargs) {
  const Object first = Object::check(PyTuple_Pack(1, self));
  const Object all = Object::check(PySequence_Concat(first.get(), args));
  return PyObject_Call(compiled, all.get(), kwargs);
}

PyObject* call_module(PyObject* self, PyObject* args, PyObject* kwargs, bool as_written) {
  return translate_errors([&]() -> PyObject* {
    const Object dict = Object::check(PyObject_GenericGetDict(self, nullptr));
    PyObject* const compiled =
        as_written ? nullptr : PyDict_GetItemWithError(dict.get(), names.is_compiled);
    if (RL_UNLIKELY(compiled != nullptr) && compiled != Py_True) {
      return call_compiled(compiled, self, args, kwargs);
    }
    ModuleWatcher* const watcher = module_watcher;
    if (watcher != nullptr) {
      watcher->begin_module(self);
    }
    std::optional<Region> region;
    if (RL_UNLIKELY(compiled != nullptr)) {
      region.emplace();
    }
    PyObject* result = nullptr;
    if (is_hooked(self, dict.get())) {
      const Object keywords =
          kwargs != nullptr ? Object::borrow(kwargs) : Object::check(PyDict_New());
      result = PyObject_CallFunctionObjArgs(call_with_hooks, self, args, keywords.get(), nullptr);
    } else {
      result = call_forward(self, dict.get(), args, kwargs);
    }
    if (result == nullptr) {
      pass_on_error(self, args);
    } else if (region.has_value()) {
      Object kept = Object::maybe(result);
      region->close();
      result = kept.release();
    }
    if (watcher != nullptr && watcher == module_watcher) {
      watcher->end_module();
    }
    return result;
  });
}

PyObject* module_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  return call_module(self, args, kwargs, false);
}
PyObject* module_call_as_written(PyObject* self, PyObject* args, PyObject* kwargs) {
  return call_module(self, args, kwargs, true);
}

// Python gives every subclass the slot that calls __getattr__ by name, because this class has a
// method of that name. A subclass that has no __getattr__ and no __getattribute__ of its own gets
// the direct slot back. Returns whether it had another.
bool look_up_directly(PyTypeObject* type) {
  const auto is_inherited = [&](PyObject* name) {
    return _PyType_Lookup(type, name) == _PyType_Lookup(base_type, name);
  };
  if (type->tp_getattro == module_getattro || !is_inherited(names.getattr) ||
      !is_inherited(names.getattribute)) {
    return false;
  }
  type->tp_getattro = module_getattro;
  PyType_Modified(type);
  return true;
}

PyObject* module_init_subclass(PyObject* cls, PyObject* args, PyObject* kwargs) {
  return translate_errors([&]() -> PyObject* {
    look_up_directly(reinterpret_cast<PyTypeObject*>(cls));
    // On to the next class in line, which refuses keywords that nobody took.
    const Object super = Object::check(
        PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PySuper_Type),
                                     reinterpret_cast<PyObject*>(base_type), cls, nullptr));
    const Object next = Object::check(PyObject_GetAttrString(super.get(), "__init_subclass__"));
    return PyObject_Call(next.get(), args, kwargs);
  });
}

// _set_module_functions(global_hooks, call_with_hooks, note_error): what nn/modules/module.py hands
// over.
PyObject* set_module_functions(PyObject*, PyObject* args) {
  PyObject* hooks = nullptr;
  PyObject* call = nullptr;
  PyObject* note = nullptr;
  if (PyArg_ParseTuple(args, "O!OO:_set_module_functions", &PyTuple_Type, &hooks, &call, &note) ==
      0) {
    return nullptr;
  }
  Py_XSETREF(global_hooks, Py_NewRef(hooks));
  Py_XSETREF(call_with_hooks, Py_NewRef(call));
  Py_XSETREF(note_error, Py_NewRef(note));
  Py_RETURN_NONE;
}

// _look_up_directly(cls): for after a __getattr__ that stood in a class for a while.
PyObject* look_up_directly_function(PyObject*, PyObject* cls) {
  return translate_errors([&]() -> PyObject* {
    if (!PyType_Check(cls) ||
        PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), base_type) == 0) {
      raise(PyExc_TypeError, str("_look_up_directly(): a class of modules, not ", type_name(cls)));
    }
    return PyBool_FromLong(look_up_directly(reinterpret_cast<PyTypeObject*>(cls)));
  });
}

PyMethodDef methods[] = {
    {"__getattr__", module_getattr_method, METH_O, "Parameters, buffers and modules by name."},
    {"__init_subclass__",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(module_init_subclass)),
     METH_VARARGS | METH_KEYWORDS | METH_CLASS, "Keeps attribute look-up direct in subclasses."},
    {"_call_as_written",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(module_call_as_written)),
     METH_VARARGS | METH_KEYWORDS, "A call, whether the module is compiled or not."},
    {},
};
PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("Attribute look-up and calls of nn.Module.")},
    {Py_tp_getattro, reinterpret_cast<void*>(module_getattro)},
    {Py_tp_call, reinterpret_cast<void*>(module_call)},
    {Py_tp_methods, methods},
    {0, nullptr},
};
PyType_Spec spec = {"rushlight._C._ModuleBase", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                    slots};

PyMethodDef functions[] = {
    {"_set_module_functions", set_module_functions, METH_VARARGS,
     "What a module's call needs from Python."},
    {"_look_up_directly", look_up_directly_function, METH_O,
     "Gives a class of modules the direct look-up of attributes; whether it had another."},
    {},
};

PyObject* intern(const char* name) { return check(PyUnicode_InternFromString(name)); }

}  // namespace

void init_nn_module(PyObject* module) {
  names = {{intern("_parameters"), intern("_buffers"), intern("_modules")},
           {intern("_forward_hooks"), intern("_forward_pre_hooks"), intern("_backward_hooks"),
            intern("_backward_pre_hooks")},
           intern("forward"),
           intern("_is_compiled"),
           intern("__getattr__"),
           intern("__getattribute__")};
  global_hooks = check(PyTuple_New(0));
  call_with_hooks = Py_NewRef(Py_None);
  note_error = Py_NewRef(Py_None);
  base_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
  // Subclasses with a __getattr__ of their own look with object's __getattribute__ first, so that
  // theirs is asked for what stands in a table.
  if (PyDict_DelItem(base_type->tp_dict, names.getattribute) != 0) {
    throw PythonError();
  }
  PyType_Modified(base_type);
  add(module, "_ModuleBase", reinterpret_cast<PyObject*>(base_type));
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace rushlight::python
