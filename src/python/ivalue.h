// Values of no fixed type from and to Python.
#pragma once

#include <rushlight/ivalue.h>

#include "python/common.h"

namespace rushlight::python {

// TypeError, naming `what`, where `o` is not of the type.
IValue to_ivalue(PyObject* o, const Type& type, const char* what);
// New references. None, the one value, or a tuple of several.
PyObject* from_ivalue(const IValue& value);
PyObject* from_stack(const Stack& stack);

}  // namespace rushlight::python
