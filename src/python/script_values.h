// Values of programs (TorchScript) from and to Python, by their types.
#pragma once

#include <rushlight/graph_function.h>

#include "python/convert.h"
#include "python/values.h"

namespace rushlight::python {

inline std::string string_of(PyObject* o) { return std::string(text_view(o)); }

// Lists and dicts are copied. TypeError, naming `what`, where `o` is not of the type.
IValue to_script(PyObject* o, const Type& type, const std::string& what);
// The same, with RuntimeError where PyTorch has that: of what calls are given.
IValue to_argument(PyObject* o, const Type& type, const std::string& what);
// A new reference. Named tuples and members of enums become Python's, objects what jit._program
// makes of them.
PyObject* from_script(const IValue& value, const Type& type);

// The Python type of objects of programs, _C._ProgramObject.
PyObject* wrap_object(intrusive_ptr<rushlight::Object> object);
// Null where `o` is none, and holds none as `_c`.
intrusive_ptr<rushlight::Object> unwrap_object(PyObject* o);

// Runs a function on `first` and Python's arguments, without the GIL; what it returns.
PyObject* run_function(graph::Function& function, std::vector<IValue> first, PyObject* positional,
                       PyObject* named);

// (text, [constant]): a function as text, and the constants that it names as CONSTANTS.c0, ….
PyObject* code_and_constants(graph::Function& function);

}  // namespace rushlight::python
