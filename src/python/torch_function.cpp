// Who sees a call before rushlight does: torch-function modes, then arguments whose class has
// __torch_function__.
#include "python/torch_function.h"

#include <vector>

#include "python/convert.h"

namespace rushlight::python {

constinit thread_local TorchFunctionState torch_function_state
    __attribute__((tls_model("initial-exec")));

namespace {

PyObject* attribute_name;  // "__torch_function__"
PyObject* disabled_implementation;

// The class attribute, borrowed; null where there is none or where it is the disabled one.
PyObject* implementation(PyTypeObject* type) {
  // The last class found to have none, at that version of it: a run of calls on Parameters looks it
  // up once.
  static PyTypeObject* last = nullptr;
  static unsigned int last_version = 0;
  if (type == last && type->tp_version_tag == last_version && last_version != 0) {
    return nullptr;
  }
  PyObject* found = _PyType_Lookup(type, attribute_name);
  if (found == nullptr || found == disabled_implementation) {
    last = type;
    last_version = type->tp_version_tag;
    return nullptr;
  }
  return found;
}

bool object_overrides(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == tensor_class) {
    return false;
  }
  return implementation(type) != nullptr;
}

// Subclasses before their bases, otherwise in order of appearance; one of each class.
void collect(std::vector<PyObject*>& found, PyObject* o) {
  if (!object_overrides(o)) {
    return;
  }
  for (PyObject* other : found) {
    if (Py_TYPE(other) == Py_TYPE(o)) {
      return;
    }
  }
  size_t at = found.size();
  for (size_t i = 0; i < found.size(); i++) {
    if (PyType_IsSubtype(Py_TYPE(o), Py_TYPE(found[i]))) {
      at = i;
      break;
    }
  }
  found.insert(found.begin() + static_cast<std::ptrdiff_t>(at), o);
}

void collect_with_items(std::vector<PyObject*>& found, PyObject* o) {
  const Items items = items_of(o);
  for (Py_ssize_t i = 0; i < items.size; i++) {
    collect(found, items.data[i]);
  }
  if (!items.is_sequence() || !PyTuple_CheckExact(o)) {
    collect(found, o);
  }
}

// Takes the topmost mode off its stack while it runs.
class PoppedMode {
 public:
  PoppedMode() {
    PyObject* modes = torch_function_state.modes;
    const Py_ssize_t n = PyList_GET_SIZE(modes);
    mode_ = Object::borrow(PyList_GET_ITEM(modes, n - 1));
    check(PyList_SetSlice(modes, n - 1, n, nullptr));
  }
  ~PoppedMode() {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (PyList_Append(torch_function_state.modes, mode_.get()) < 0) {
      PyErr_Clear();
    }
    PyErr_Restore(type, value, trace);
  }
  PoppedMode(const PoppedMode&) = delete;
  PoppedMode& operator=(const PoppedMode&) = delete;
  PyObject* get() const { return mode_.get(); }

 private:
  Object mode_;
};

PyObject* call_torch_function_of(PyObject* who, PyObject* function, PyObject* types, PyObject* args,
                                 PyObject* kwargs) {
  const Object method = Object::check(PyObject_GetAttr(who, attribute_name));
  return check(PyObject_CallFunctionObjArgs(method.get(), function, types, args, kwargs, nullptr));
}

PyObject* call_overriding(PyObject* function, const std::vector<PyObject*>& found, PyObject* args,
                          PyObject* kwargs) {
  const Object types = Object::check(PyTuple_New(static_cast<Py_ssize_t>(found.size())));
  for (size_t i = 0; i < found.size(); i++) {
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i), Py_NewRef(Py_TYPE(found[i])));
  }
  if (mode_active()) {
    const PoppedMode mode;
    PyObject* result = call_torch_function_of(mode.get(), function, types.get(), args, kwargs);
    if (result != Py_NotImplemented) {
      return result;
    }
    Py_DECREF(result);
  }
  for (PyObject* o : found) {
    PyObject* result = call_torch_function_of(o, function, types.get(), args, kwargs);
    if (result != Py_NotImplemented) {
      return result;
    }
    Py_DECREF(result);
  }
  std::string names;
  for (PyObject* o : found) {
    names += names.empty() ? "" : ", ";
    names += text_view(Object::check(PyObject_Repr(reinterpret_cast<PyObject*>(Py_TYPE(o)))).get());
  }
  const Object name = Object::maybe(PyObject_GetAttrString(function, "__name__"));
  PyErr_Clear();
  raise(PyExc_TypeError, str("no implementation found for 'torch.",
                             name ? text_view(name.get()) : std::string_view("function"),
                             "' on types that implement __torch_function__: [", names, "]"));
}

// ---- what Python code uses ----

PyObject* call_disabled(PyObject*, PyObject* args, PyObject* kwargs) {
  return translate_errors([&] {
    static const char* const names[] = {"func", "types", "args", "kwargs", nullptr};
    PyObject *function, *types, *arguments = nullptr, *keywords = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO", const_cast<char**>(names), &function,
                                     &types, &arguments, &keywords)) {
      throw PythonError();
    }
    PyObject* const named = expect_keywords(keywords, "_disabled_torch_function_impl(): kwargs");
    const bool before = std::exchange(torch_function_state.subclasses_disabled, true);
    const Object tuple =
        Object::maybe(arguments != nullptr ? PySequence_Tuple(arguments) : PyTuple_New(0));
    PyObject* result = nullptr;
    if (tuple) {
      result = PyObject_Call(function, tuple.get(), named);
    }
    torch_function_state.subclasses_disabled = before;
    return result;
  });
}

// What Tensor.__torch_function__ does: the call itself, without offering it again to subclasses.
PyObject* swap_disabled(PyObject*, PyObject* args) {
  int subclasses, modes;
  if (!PyArg_ParseTuple(args, "pp:_swap_torch_function_disabled", &subclasses, &modes)) {
    return nullptr;
  }
  TorchFunctionState& state = torch_function_state;
  PyObject* before = Py_BuildValue("(NN)", PyBool_FromLong(state.subclasses_disabled),
                                   PyBool_FromLong(state.modes_disabled));
  if (before != nullptr) {
    state.subclasses_disabled = subclasses != 0;
    state.modes_disabled = modes != 0;
  }
  return before;
}

PyObject* push_mode(PyObject*, PyObject* mode) {
  return translate_errors([&]() -> PyObject* {
    PyObject*& modes = torch_function_state.modes;
    if (modes == nullptr) {
      modes = check(PyList_New(0));
    }
    check(PyList_Append(modes, mode));
    Py_RETURN_NONE;
  });
}

PyObject* pop_mode(PyObject*, PyObject*) {
  return translate_errors([&] {
    PyObject* modes = torch_function_state.modes;
    const Py_ssize_t n = modes != nullptr ? PyList_GET_SIZE(modes) : 0;
    RL_CHECK(n != 0, "no torch-function mode is active");
    Object mode = Object::borrow(PyList_GET_ITEM(modes, n - 1));
    check(PyList_SetSlice(modes, n - 1, n, nullptr));
    return mode.release();
  });
}

PyObject* mode_count(PyObject*, PyObject*) {
  PyObject* modes = torch_function_state.modes;
  return PyLong_FromSsize_t(modes != nullptr ? PyList_GET_SIZE(modes) : 0);
}

PyObject* has_torch_function(PyObject*, PyObject* const* args, Py_ssize_t nargs,
                             PyObject* kwnames) {
  return PyBool_FromLong(wants_torch_function(nullptr, args, nargs, kwnames));
}

// _offer_torch_function(function, relevant_args, args, kwargs): for library code in Python.
PyObject* offer_from_python(PyObject*, PyObject* args) {
  return translate_errors([&] {
    PyObject *function, *relevant, *arguments, *kwargs;
    if (!PyArg_ParseTuple(args, "OO!O!O!:handle_torch_function", &function, &PyTuple_Type,
                          &relevant, &PyTuple_Type, &arguments, &PyDict_Type, &kwargs)) {
      throw PythonError();
    }
    std::vector<PyObject*> found;
    for (Py_ssize_t i = 0;
         i < PyTuple_GET_SIZE(relevant) && !torch_function_state.subclasses_disabled; i++) {
      collect_with_items(found, PyTuple_GET_ITEM(relevant, i));
    }
    return call_overriding(function, found, arguments, kwargs);
  });
}

// The active modes of this thread, the innermost last.
PyObject* active_modes(PyObject*, PyObject*) {
  PyObject* modes = torch_function_state.modes;
  return modes != nullptr ? PyList_GetSlice(modes, 0, PyList_GET_SIZE(modes)) : PyList_New(0);
}

// ---- functions written in Python that are offered like ops ----

struct OfferedObject {
  PyObject_HEAD vectorcallfunc call;
  PyObject* function;
  PyObject* dict;
  PyObject* weak_references;
  bool spreads;  // f(x, [a, b]) is shown as f(x, a, b)
};
OfferedObject* as_offered(PyObject* o) { return reinterpret_cast<OfferedObject*>(o); }

PyObject* call_offered(PyObject* o, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  if (RL_UNLIKELY(wants_torch_function(nullptr, args, nargs, kwnames))) {
    return translate_errors([&] {
      if (as_offered(o)->spreads && nargs == 2 && kwnames == nullptr &&
          (PyList_Check(args[1]) || PyTuple_Check(args[1]))) {
        const Object list = Object::check(PySequence_Tuple(args[1]));
        std::vector<PyObject*> all = {args[0]};
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list.get()); i++) {
          all.push_back(PyTuple_GET_ITEM(list.get(), i));
        }
        return call_torch_function(o, nullptr, all.data(), static_cast<Py_ssize_t>(all.size()),
                                   nullptr);
      }
      return call_torch_function(o, nullptr, args, nargs, kwnames);
    });
  }
  return PyObject_Vectorcall(as_offered(o)->function, args, nargsf, kwnames);
}

PyObject* make_offered(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return translate_errors([&] {
    static const char* const names[] = {"function", "spreads", nullptr};
    PyObject* function;
    int spreads = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|p:_Offered", const_cast<char**>(names),
                                     &function, &spreads)) {
      throw PythonError();
    }
    RL_CHECK_TYPE(PyCallable_Check(function) != 0, "_Offered: expected a function, but got ",
                  type_name(function));
    Object o = Object::check(type->tp_alloc(type, 0));
    as_offered(o.get())->call = call_offered;
    as_offered(o.get())->function = Py_NewRef(function);
    as_offered(o.get())->spreads = spreads != 0;
    as_offered(o.get())->dict = check(PyDict_New());
    for (const char* name : {"__name__", "__qualname__", "__module__", "__doc__"}) {
      const Object value = Object::check(PyObject_GetAttrString(function, name));
      check(PyDict_SetItemString(as_offered(o.get())->dict, name, value.get()));
    }
    check(PyDict_SetItemString(as_offered(o.get())->dict, "__wrapped__", function));
    return o.release();
  });
}

int traverse_offered(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(as_offered(o)->function);
  Py_VISIT(as_offered(o)->dict);
  return 0;
}
int clear_offered(PyObject* o) {
  Py_CLEAR(as_offered(o)->function);
  Py_CLEAR(as_offered(o)->dict);
  return 0;
}
void dealloc_offered(PyObject* o) {
  PyObject_GC_UnTrack(o);
  if (as_offered(o)->weak_references != nullptr) {
    PyObject_ClearWeakRefs(o);
  }
  clear_offered(o);
  Py_TYPE(o)->tp_free(o);
}

// What is no attribute of its own is one of the function: __code__, __defaults__ …
PyObject* offered_attribute(PyObject* o, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(o, name);
  if (found == nullptr && PyErr_ExceptionMatches(PyExc_AttributeError)) {
    PyErr_Clear();
    return PyObject_GetAttr(as_offered(o)->function, name);
  }
  return found;
}

PyObject* bind_offered(PyObject* o, PyObject* object, PyObject*) {
  return object == nullptr || object == Py_None ? Py_NewRef(o) : PyMethod_New(o, object);
}
PyObject* repr_offered(PyObject* o) { return PyObject_Repr(as_offered(o)->function); }
// Pickled and copied as functions are: by name.
PyObject* reduce_offered(PyObject* o, PyObject*) {
  return PyObject_GetAttrString(as_offered(o)->function, "__qualname__");
}

PyMethodDef offered_methods[] = {
    {"__reduce__", reduce_offered, METH_NOARGS, nullptr},
    {},
};
// It counts as a function: `inspect.isfunction` and `isinstance` ask what class an object says it
// is.
PyObject* class_of_offered(PyObject*, void*) {
  return Py_NewRef(reinterpret_cast<PyObject*>(&PyFunction_Type));
}

PyGetSetDef offered_getset[] = {
    {"__class__", class_of_offered, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {},
};

PyTypeObject offered_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "rushlight._C._Offered",
    .tp_basicsize = sizeof(OfferedObject),
    .tp_dealloc = dealloc_offered,
    .tp_vectorcall_offset = offsetof(OfferedObject, call),
    .tp_repr = repr_offered,
    .tp_call = PyVectorcall_Call,
    .tp_getattro = offered_attribute,
    .tp_setattro = PyObject_GenericSetAttr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc =
        "A function whose calls are offered to modes and to arguments with "
        "__torch_function__ before it runs.",
    .tp_traverse = traverse_offered,
    .tp_clear = clear_offered,
    .tp_weaklistoffset = offsetof(OfferedObject, weak_references),
    .tp_methods = offered_methods,
    .tp_getset = offered_getset,
    .tp_descr_get = bind_offered,
    .tp_dictoffset = offsetof(OfferedObject, dict),
    .tp_new = make_offered,
};

PyMethodDef disabled_definition = {
    "_disabled_torch_function_impl",
    reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_disabled)),
    METH_VARARGS | METH_KEYWORDS,
    "As a class's __torch_function__: its instances are offered no calls."};

PyMethodDef module_functions[] = {
    {"_swap_torch_function_disabled", swap_disabled, METH_VARARGS, nullptr},
    {"_push_torch_function_mode", push_mode, METH_O, nullptr},
    {"_pop_torch_function_mode", pop_mode, METH_NOARGS, nullptr},
    {"_offer_torch_function", offer_from_python, METH_VARARGS, nullptr},
    {"_torch_function_mode_count", mode_count, METH_NOARGS, nullptr},
    {"_torch_function_modes", active_modes, METH_NOARGS, nullptr},
    {"_has_torch_function", as_function(has_torch_function), METH_FASTCALL | METH_KEYWORDS,
     nullptr},
    {},
};

}  // namespace

bool overrides_item(PyObject* o) {
  if (torch_function_state.subclasses_disabled) {
    return false;
  }
  const Items items = items_of(o);
  for (Py_ssize_t i = 0; i < items.size; i++) {
    PyTypeObject* t = Py_TYPE(items.data[i]);
    if (t != tensor_class && t != &PyLong_Type && object_overrides(items.data[i])) {
      return true;
    }
  }
  return !PyTuple_CheckExact(o) && !PyList_CheckExact(o) && object_overrides(o);
}

PyObject* call_torch_function(PyObject* function, PyObject* self, PyObject* const* args,
                              Py_ssize_t nargs, PyObject* kwnames, Offered offered) {
  const Py_ssize_t first = self != nullptr ? 1 : 0;
  const Object tuple = Object::check(PyTuple_New(nargs + first));
  if (self != nullptr) {
    PyTuple_SET_ITEM(tuple.get(), 0, Py_NewRef(self));
  }
  for (Py_ssize_t i = 0; i < nargs; i++) {
    PyTuple_SET_ITEM(tuple.get(), first + i, Py_NewRef(args[i]));
  }
  const Object kwargs = Object::check(PyDict_New());
  const Py_ssize_t named = kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = 0; i < named; i++) {
    check(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames, i), args[nargs + i]));
  }
  std::vector<PyObject*> found;
  if (!torch_function_state.subclasses_disabled) {
    if (self != nullptr) {
      collect(found, self);
    }
    for (Py_ssize_t i = 0; offered == Offered::ToAll && i < nargs + named; i++) {
      collect_with_items(found, args[i]);
    }
  }
  return call_overriding(function, found, tuple.get(), kwargs.get());
}

PyObject* call_torch_function_method(const char* name, std::initializer_list<PyObject*> args) {
  const Object function =
      Object::check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_class), name));
  return call_torch_function(function.get(), nullptr, args.begin(),
                             static_cast<Py_ssize_t>(args.size()), nullptr);
}

void set_torch_function(PyTypeObject* cls) {
  static PyObject* const dispatch_name = check(PyUnicode_InternFromString("__torch_dispatch__"));
  if (PyType_IsSubtype(cls, tensor_class) == 0) {
    return;
  }
  const auto is_inherited = [&](PyObject* name) {
    return _PyType_Lookup(cls, name) == _PyType_Lookup(tensor_class, name);
  };
  if (!is_inherited(dispatch_name) && is_inherited(attribute_name)) {
    check(PyObject_SetAttr(reinterpret_cast<PyObject*>(cls), attribute_name,
                           disabled_implementation));
  }
}

void init_torch_function(PyObject* module) {
  attribute_name = check(PyUnicode_InternFromString("__torch_function__"));
  disabled_implementation = check(PyCFunction_New(&disabled_definition, nullptr));
  add(module, "_disabled_torch_function_impl", disabled_implementation);
  check(PyModule_AddFunctions(module, module_functions));
  ready(offered_type);
  add(module, "_Offered", reinterpret_cast<PyObject*>(&offered_type));
}

}  // namespace rushlight::python
