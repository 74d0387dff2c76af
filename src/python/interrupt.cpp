// Ctrl-C ends programs of TorchScript and long ops, which look at no signals themselves.
#include <rushlight/interrupt.h>

#include <chrono>
#include <csignal>

#include "python/bindings.h"
#include "python/common.h"

namespace rushlight::python {

namespace {
// Whether a thread of Python's has not looked for signals for so long.
template <int Milliseconds>
bool is_time_to_look() {
  using Clock = std::chrono::steady_clock;
  static thread_local Clock::time_point next;
  if (PyGILState_GetThisThreadState() == nullptr) {
    return false;
  }
  const Clock::time_point now = Clock::now();
  if (now < next) {
    return false;
  }
  next = now + std::chrono::milliseconds(Milliseconds);
  return true;
}

// Between ops, as Python does between two of its instructions.
void ask_for_signals() {
  if (is_time_to_look<20>()) {
    const WithGil gil;
    if (PyErr_CheckSignals() != 0) {
      throw CarriedError::take();
    }
  }
}

bool ctrl_c_has_its_default() {
  static PyObject* getsignal = nullptr;
  static PyObject* default_handler = nullptr;
  const Object handler = Object::check(
      PyObject_CallFunction(import_attribute(getsignal, "signal", "getsignal"), "i", SIGINT));
  return handler.get() == import_attribute(default_handler, "signal", "default_int_handler");
}

// In the midst of an op only Ctrl-C that would raise KeyboardInterrupt is heard. A handler of the
// program's waits until the op is done: it might save what is half written.
void ask_for_ctrl_c() {
  if (is_time_to_look<400>()) {  // another thread may hold the GIL for 5 ms
    const WithGil gil;
    if (PyOS_InterruptOccurred() == 0) {
      return;
    }
    if (ctrl_c_has_its_default()) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
      throw CarriedError::take();
    }
    PyErr_SetInterrupt();
  }
}
}  // namespace

void init_interrupt(PyObject*) { set_interrupt(ask_for_signals, ask_for_ctrl_c); }

}  // namespace rushlight::python
