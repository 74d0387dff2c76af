// Values from and to Python.
#pragma once

#include <rushlight/ivalue.h>
#include <rushlight/schema.h>

#include "python/common.h"

namespace rushlight::python {

// TypeError, naming the op and the argument, where `o` is not of the schema's type.
Value to_value(PyObject* o, const OpInfo& op, const TypeInfo& type, const char* name);
// TypeError, naming `what`, where `o` is not of the type.
Value to_value(PyObject* o, const Type& type, const char* what);

// New references. A number that was on its way into an op comes back as a number.
PyObject* from_value(const Value& value);
PyObject* tuple_from(const std::vector<Value>& values);
// None, the one result, or a tuple of several.
PyObject* from_results(const std::vector<Value>& results);

// Objects of bound classes (classes.cpp): what is in one, or null; the Python object of one.
const Value* object_value(PyObject* o);
PyObject* from_object(const Value& value);
// Any Python object as a value, for functions of Python that take it.
Value python_object(PyObject* o);

}  // namespace rushlight::python
