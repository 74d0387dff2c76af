// Units of programs in Python, _C._ProgramUnit: classes and functions that may name each other.
#pragma once

#include "python/script_values.h"

namespace rushlight::python {

graph::CompilationUnit& unit_of(PyObject* self);
std::shared_ptr<graph::CompilationUnit> shared_unit_of(PyObject* self);
// RuntimeError where the unit has none of that name.
ClassType& class_named(const graph::CompilationUnit& unit, const std::string& name);
graph::Function& function_named(const graph::CompilationUnit& unit, const std::string& name);
// The new function of a unit: a method of a class, where there is one. Its name is
// "owner.name", or `name` as it stands.
graph::Function& add_function(graph::CompilationUnit& unit, ClassType* owner,
                              const std::string& name, graph::Schema schema,
                              std::unique_ptr<graph::Graph> graph = nullptr);

// What a function says in its first lines that it takes and returns; a Tensor where it says
// nothing.
graph::Schema schema_of_source(graph::CompilationUnit& unit, ClassType* owner, const char* name,
                               const char* source, const char* file, int line, PyObject* scope);
// Methods of the type.
PyObject* compile_source(PyObject* self, PyObject* args);
PyObject* declare_source(PyObject* self, PyObject* args);

}  // namespace rushlight::python
