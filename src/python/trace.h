// The trace that Python takes of the ops of this thread (python/rushlight/jit/_recording.py).
#pragma once

#include "python/common.h"

namespace rushlight::python {

// Borrowed; null where there is none, and while it records a call.
extern thread_local PyObject* current_trace;

// Tells a trace that a program goes through the rows of a tensor, whose number it then fixes.
void tell_trace_of_iteration(PyObject* tensor);

void init_trace(PyObject* module);

}  // namespace rushlight::python
