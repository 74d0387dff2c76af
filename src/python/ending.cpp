// What becomes of threads that compute while the interpreter ends.
//
// Before 3.14 Python ends a daemon thread that asks for the GIL by pthread_exit, which unwinds its
// stack. C++ code must not be unwound there: destructors would drop references without the GIL, and
// functions that are `noexcept` or catch everything would abort the process. So such a thread stops
// for good where the unwinder meets the first function of this library, as it does since 3.14; the
// process ends without it. The linker puts this function in the place of the one that the unwinder
// asks what to do with a frame (cmake/Extension.cmake).
#include <unistd.h>
#include <unwind.h>

#include "python/common.h"

namespace {

bool interpreter_ends() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0 || Py_IsInitialized() == 0;
#else
  return _Py_IsFinalizing() != 0 || Py_IsInitialized() == 0;
#endif
}

}  // namespace

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
  while ((actions & _UA_FORCE_UNWIND) != 0 && interpreter_ends()) {
    pause();
  }
  return __real___gxx_personality_v0(version, actions, kind, exception, context);
}
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
