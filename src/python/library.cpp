// Ops that C++ programs defined (rushlight/library.h), for ops.NAMESPACE.NAME.
#include <rushlight/library.h>

#include "python/bindings.h"
#include "python/values.h"

namespace rushlight::python {

namespace {

// A kernel as a function of Python: _library_run(record, name of the op, values).
PyObject* library_run(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Py_ssize_t place;
    const char* name;
    PyObject* values;
    if (!PyArg_ParseTuple(args, "nsO!:_library_run", &place, &name, &PyTuple_Type, &values)) {
      throw PythonError();
    }
    const library::Record& record = library::at(static_cast<size_t>(place));
    const library::Kernel& kernel = record.kernel;
    const auto n = static_cast<size_t>(PyTuple_GET_SIZE(values));
    if (kernel.typed && n != kernel.arguments.size()) {
      raise(PyExc_TypeError,
            str(name, "() takes ", kernel.arguments.size(), " arguments but ", n, " were given"));
    }
    Stack stack;
    for (size_t i = 0; i < n; i++) {
      stack.push_back(to_value(PyTuple_GET_ITEM(values, static_cast<Py_ssize_t>(i)),
                               kernel.typed ? kernel.arguments[i] : Type(), name));
    }
    {
      const WithoutGil no_gil;
      library::run(record, name, stack);
    }
    return from_results(stack);
  });
}

PyObject* library_count(PyObject*, PyObject*) { return PyLong_FromSize_t(library::count()); }

// (namespace, name, schema or "", dispatch key or None, whether there is a function, whether it is
// passed over, Python module, tags)
PyObject* library_record(PyObject*, PyObject* place) {
  return guarded([&]() -> PyObject* {
    const library::Record& r = library::at(PyLong_AsSize_t(place));
    return Py_BuildValue("(ssszOOsI)", r.space.c_str(), r.name.c_str(), r.schema.c_str(),
                         r.key ? library::name_of(*r.key) : nullptr,
                         r.kernel.function != nullptr ? Py_True : Py_False,
                         r.kernel.falls_through ? Py_True : Py_False, r.python_module.c_str(),
                         r.tags);
  });
}

bool run_in_python(const std::string& name, Stack& stack, bool below) {
  static PyObject* call = nullptr;
  const Object values = Object::check(tuple_from(stack));
  PyObject* const function = imported(call, "rushlight._library.registry", "_call_from_library");
  const Object done = Object::check(PyObject_CallFunction(
      function, "sOO", name.c_str(), values.get(), below ? Py_True : Py_False));
  if (done.get() == Py_NotImplemented) {
    return false;
  }
  stack.clear();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(done.get()); i++) {
    stack.push_back(to_value(PyTuple_GET_ITEM(done.get(), i), Type(), name.c_str()));
  }
  return true;
}
bool run_elsewhere(const std::string& name, Stack& stack, bool below) {
  const WithGil gil;
  try {
    return run_in_python(name, stack, below);
  } catch (const PythonError&) {
    throw CarriedError::take();
  }
}

PyMethodDef functions[] = {
    {"_library_count", library_count, METH_NOARGS, "How many records C++ libraries have made."},
    {"_library_record", library_record, METH_O, "One record of a C++ library, by its number."},
    {"_library_run", library_run, METH_VARARGS, "Runs the function of a record."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_library(PyObject* module) {
  check(PyModule_AddFunctions(module, functions));
  library::set_elsewhere(run_elsewhere);
}

}  // namespace rushlight::python
