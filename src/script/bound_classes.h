// Methods of C++ classes that are bound by name (custom_class.h), as functions of programs.
#pragma once

#include <rushlight/graph_function.h>

namespace rushlight::script {

// A function of the unit that calls the method; null where there is no such class or method.
graph::Function* bound_method(graph::CompilationUnit& unit, const std::string& of,
                              const std::string& name);

}  // namespace rushlight::script
