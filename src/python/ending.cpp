// What becomes of threads that compute while the interpreter ends.
//
// Before 3.14 Python ends a daemon thread that asks for the GIL by pthread_exit, which unwinds its
// stack. C++ code must not be unwound there: destructors would drop references without the GIL, and
// functions that are `noexcept` or catch everything would abort the process. So such a thread stops
// for good where the unwinder meets the first function of this library, as it does since 3.14; the
// process ends without it. One that computes without the GIL until the interpreter is gone stops
// before it asks. The linker puts this function in the place of the one that the unwinder
// asks what to do with a frame (cmake/Extension.cmake).
#include <unistd.h>
#include <unwind.h>

#include "python/common.h"

namespace rushlight::python {

bool interpreter_ends() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0 || Py_IsInitialized() == 0;
#else
  return _Py_IsFinalizing() != 0 || Py_IsInitialized() == 0;
#endif
}

namespace {

thread_local bool ends_here = false;

// Run by atexit, before the interpreter says that it ends.
PyObject* note_thread(PyObject*, PyObject*) {
  ends_here = true;
  Py_RETURN_NONE;
}
PyMethodDef note_thread_method = {"_note_thread", note_thread, METH_NOARGS, nullptr};

}  // namespace

void wait_for_exit() {
  while (!ends_here && interpreter_ends()) {
    pause();
  }
}

void init_ending() {
  const Object function = Object::check(PyCFunction_New(&note_thread_method, nullptr));
  const Object atexit = Object::check(PyImport_ImportModule("atexit"));
  Object::check(PyObject_CallMethod(atexit.get(), "register", "O", function.get()));
}

}  // namespace rushlight::python

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap makes
_Unwind_Reason_Code __real___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class kind,
                                                _Unwind_Exception* exception,
                                                _Unwind_Context* context);

_Unwind_Reason_Code __wrap___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class kind,
                                                _Unwind_Exception* exception,
                                                _Unwind_Context* context) {
  while ((actions & _UA_FORCE_UNWIND) != 0 && rushlight::python::interpreter_ends()) {
    pause();
  }
  return __real___gxx_personality_v0(version, actions, kind, exception, context);
}
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
