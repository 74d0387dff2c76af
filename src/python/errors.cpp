// C++ exceptions become Python's, warnings go to Python's warnings module.
#include <new>
#include <stdexcept>

#include <rushlight/executor.h>

#include "python/common.h"

namespace rushlight::python {

namespace {

PyObject* out_of_memory_error;  // OutOfMemoryError(RuntimeError)
PyObject* linalg_error;         // linalg.LinAlgError(RuntimeError)
PyObject* script_error;         // jit.Error(Exception)
PyObject* unpickling_error;     // pickle.UnpicklingError, imported when first raised
PyObject* warn_function;        // rushlight._warnings.warn, imported when first called

void set(PyObject* type, const char* message) {
  PyObject* text = PyUnicode_DecodeUTF8(
      message, static_cast<Py_ssize_t>(std::string_view(message).size()), "replace");
  if (text != nullptr) {
    PyErr_SetObject(type, text);
    Py_DECREF(text);
  }
}

// A new reference; null where there is none. PyImport_ImportModule calls the `__import__` of the
// frame that runs, and a callback of the garbage collector runs in any frame: in one of `exec` with
// other builtins, too.
PyObject* import_module(const char* name) {
  PyObject* const leaf = Py_BuildValue("(s)", "__name__");  // of "a.b" the module b is wanted
  PyObject* const module =
      leaf == nullptr ? nullptr : PyImport_ImportModuleLevel(name, nullptr, nullptr, leaf, 0);
  Py_XDECREF(leaf);
  return module;
}

PyObject* unpickling_type() {
  if (unpickling_error == nullptr) {
    PyObject* module = import_module("pickle");
    unpickling_error =
        module != nullptr ? PyObject_GetAttrString(module, "UnpicklingError") : nullptr;
    Py_XDECREF(module);
    if (unpickling_error == nullptr) {
      PyErr_Clear();
      return PyExc_RuntimeError;
    }
  }
  return unpickling_error;
}

// Warnings may come while the GIL is released.
void warn_in_python(const std::string& message) {
  if (Py_IsInitialized()) {
    const WithGil gil;
    warn_program(PyExc_UserWarning, message);
  }
}

}  // namespace

void warn_program(PyObject* category, const std::string& message) {
  PyObject* const warn = import_attribute(warn_function, "rushlight._warnings", "warn");
  const Object text = Object::check(
      PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "replace"));
  Object::check(PyObject_CallFunctionObjArgs(warn, text.get(), category, nullptr));
}

CarriedError CarriedError::take() {
  PyObject* type;
  PyObject* value;
  PyObject* trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace != nullptr) {
    PyException_SetTraceback(value, trace);
  }
  Py_XDECREF(type);
  Py_XDECREF(trace);
  CarriedError out;
  out.error_ = std::shared_ptr<PyObject>(value, [](PyObject* o) {
    if (o != nullptr && Py_IsInitialized()) {
      const WithGil gil;
      Py_DECREF(o);
    }
  });
  return out;
}

void CarriedError::restore() const {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error_.get())), error_.get());
}

void set_error_from_exception() noexcept {
  try {
    throw;
  } catch (const CarriedError& e) {
    e.restore();
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) {
      PyErr_SetString(PyExc_SystemError, "an error was reported without an exception");
    }
  } catch (const IndexError& e) {
    set(PyExc_IndexError, e.what());
  } catch (const ValueError& e) {
    set(PyExc_ValueError, e.what());
  } catch (const TypeError& e) {
    set(PyExc_TypeError, e.what());
  } catch (const NotImplementedError& e) {
    set(PyExc_NotImplementedError, e.what());
  } catch (const AssertionError& e) {
    set(PyExc_AssertionError, e.what());
  } catch (const OutOfMemoryError& e) {
    set(out_of_memory_error, e.what());
  } catch (const LinAlgError& e) {
    set(linalg_error, e.what());
  } catch (const UnpicklingError& e) {
    set(unpickling_type(), e.what());
  } catch (const graph::Raised& e) {
    set(script_error, e.what());
  } catch (const Error& e) {
    set(PyExc_RuntimeError, e.what());
  } catch (const std::bad_alloc&) {
    set(out_of_memory_error, "can't allocate memory: the machine has no more");
  } catch (const std::length_error&) {
    set(out_of_memory_error, "can't allocate memory: a text or list is longer than any can be");
  } catch (const std::exception& e) {
    set(PyExc_RuntimeError, e.what());
  } catch (...) {
    set(PyExc_RuntimeError, "an unknown C++ exception was thrown");
  }
}

void raise(PyObject* type, const std::string& message) {
  set(type, message.c_str());
  throw PythonError();
}

std::string_view text_view(PyObject* s) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(s, &size);
  if (data == nullptr) {
    throw PythonError();
  }
  return {data, static_cast<size_t>(size)};
}

PyObject* import_attribute(PyObject*& cache, const char* module, const char* name) {
  if (cache == nullptr) {
    const Object m = Object::check(import_module(module));
    cache = check(PyObject_GetAttrString(m.get(), name));
  }
  return cache;
}

void init_errors(PyObject* module) {
  out_of_memory_error =
      check(PyErr_NewExceptionWithDoc("rushlight.OutOfMemoryError",
                                      "Raised when memory for a tensor cannot be had.\n"
                                      "\n"
                                      "Example:\n"
                                      "    >>> issubclass(torch.OutOfMemoryError, RuntimeError)\n"
                                      "    True",
                                      PyExc_RuntimeError, nullptr));
  linalg_error = check(PyErr_NewExceptionWithDoc(
      "rushlight.linalg.LinAlgError",
      "Raised when a linear-algebra routine meets a matrix it cannot handle.\n"
      "\n"
      "Example:\n"
      "    >>> try:\n"
      "    ...     torch.linalg.inv(torch.zeros(2, 2))\n"
      "    ... except torch.linalg.LinAlgError:\n"
      "    ...     print(\"it has no inverse\")\n"
      "    it has no inverse",
      PyExc_RuntimeError, nullptr));
  script_error =
      check(PyErr_NewExceptionWithDoc("rushlight.jit.Error",
                                      "Raised where a program of TorchScript raises an exception.\n"
                                      "\n"
                                      "Example:\n"
                                      "    >>> issubclass(torch.jit.Error, RuntimeError)\n"
                                      "    False",
                                      PyExc_Exception, nullptr));
  add(module, "JITException", script_error);
  add(module, "OutOfMemoryError", out_of_memory_error);
  add(module, "_LinAlgError", linalg_error);
  set_warning_handler(warn_in_python);
}

}  // namespace rushlight::python
