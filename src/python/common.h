// What every file of the extension uses: owned references, C++ exceptions to Python ones and back,
// the GIL.
//
// A function that Python calls wraps its body in `translate_errors`; inside, errors are C++
// exceptions: rushlight's own (they become the Python exception of the same meaning) or
// PythonError, which says that Python's error is already set.
#pragma once

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

#include <exception>
#include <memory>
#include <utility>

#include <rushlight/tensor.h>

namespace rushlight::python {

// Thrown where a call into Python failed and left its exception set.
struct PythonError {};

// Python's error on its way through C++ code that may release the GIL, call Python or change
// threads: backward.
class CarriedError : public std::exception {
 public:
  static CarriedError take();  // takes over the error that is set
  void restore() const;        // sets it again; with the GIL
  const char* what() const noexcept override { return "an error of Python code"; }

 private:
  std::shared_ptr<PyObject> error_;
};

// An owned reference, or null.
class Object {
 public:
  Object() = default;
  Object(const Object& o) : p_(Py_XNewRef(o.p_)) {}
  Object(Object&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Object& operator=(Object o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Object() { Py_XDECREF(p_); }
  static Object borrow(PyObject* p) { return Object(Py_XNewRef(p)); }
  // Takes over a new reference; null means that Python raised.
  static Object check(PyObject* p) {
    if (p == nullptr) {
      throw PythonError();
    }
    return Object(p);
  }
  // The same where null is no error.
  static Object maybe(PyObject* p) { return Object(p); }
  PyObject* get() const { return p_; }
  PyObject* release() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  explicit Object(PyObject* p) : p_(p) {}
  PyObject* p_ = nullptr;
};

// For C API calls that return -1 on error.
inline int check(int status) {
  if (status < 0) {
    throw PythonError();
  }
  return status;
}
inline PyObject* check(PyObject* p) {
  if (p == nullptr) {
    throw PythonError();
  }
  return p;
}

// Sets Python's error from the C++ exception being handled. Only inside a catch block.
void set_error_from_exception() noexcept;

// Raises a Python exception from C++.
[[noreturn]] void raise(PyObject* type, const std::string& message);
// A warning at the program's line, whatever of the package is between (rushlight._warnings); under
// the GIL. One that is turned into an error leaves by PythonError.
void warn_program(PyObject* category, const std::string& message);

template <class F>
PyObject* translate_errors(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    set_error_from_exception();
    return nullptr;
  }
}
template <class F>
int translate_errors_to_status(F&& f) noexcept {
  try {
    f();
    return 0;
  } catch (...) {
    set_error_from_exception();
    return -1;
  }
}

bool interpreter_ends();
// Where the interpreter ends, a thread that is about to ask for the GIL stops for good: what it
// would ask may be gone. The thread in which it ends goes on (ending.cpp).
void wait_for_exit();

// How many threads are within a WithoutGil; changed and read with the GIL.
extern int threads_without_gil;

// Runs without the GIL while it lives, if `really`. Nothing of Python's may be touched meanwhile, a
// `Py_RETURN_NONE` before its end included (under TSan the tests of threads see it).
class WithoutGil {
 public:
  explicit WithoutGil(bool really = true) {
    if (really) {
      threads_without_gil++;
      state_ = PyEval_SaveThread();
    }
  }
  ~WithoutGil() {
    if (state_ != nullptr) {
      wait_for_exit();
      PyEval_RestoreThread(state_);
      threads_without_gil--;
    }
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_ = nullptr;
};

// Holds the GIL while it lives, from any thread.
class WithGil {
 public:
  WithGil() {
    wait_for_exit();
    state_ = PyGILState_Ensure();
  }
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

inline Object text(std::string_view s) {
  return Object::check(PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size())));
}
std::string_view text_view(PyObject* s);  // of a str; valid while it lives

// As messages name types: "str", "NoneType", "Tensor".
inline const char* type_name(PyObject* o) {
  const char* name = Py_TYPE(o)->tp_name;
  const char* dot = nullptr;
  for (const char* c = name; *c != '\0'; c++) {
    dot = *c == '.' ? c : dot;
  }
  return dot != nullptr ? dot + 1 : name;
}

// For PyArg_ParseTuple, and for keywords of PyObject_Call (None: there are none): TypeError.
inline PyObject* expect_tuple(PyObject* o, const char* what) {
  if (!PyTuple_Check(o)) {
    raise(PyExc_TypeError, std::string(what) + " must be a tuple, not " + type_name(o));
  }
  return o;
}
inline PyObject* expect_keywords(PyObject* o, const char* what) {
  if (o != nullptr && o != Py_None && !PyDict_Check(o)) {
    raise(PyExc_TypeError, std::string(what) + " must be a dict, not " + type_name(o));
  }
  return o == Py_None ? nullptr : o;
}

// Attribute of a module of the package, looked up once: import_attribute("rushlight._tensor_str",
// "_str").
PyObject* import_attribute(PyObject*& cache, const char* module, const char* name);

// Adds to a module or a type's namespace; raises on failure. Does not take over `value`.
inline void add(PyObject* module, const char* name, PyObject* value) {
  check(PyModule_AddObjectRef(module, name, value));
}
inline void ready(PyTypeObject& type) { check(PyType_Ready(&type)); }

inline Py_hash_t hash_pointer(const void* p) {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_HashPointer(p);
#else
  return _Py_HashPointer(p);
#endif
}

using FastFunction = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
inline PyCFunction as_function(FastFunction f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

void init_errors(PyObject* module);

}  // namespace rushlight::python
