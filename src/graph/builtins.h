// The table of the language's functions, a part for each kind of value.
#pragma once

#include <rushlight/graph_function.h>

namespace rushlight::graph {

struct BuiltinRow {
  const char* schema;
  BuiltinCall call;
  bool pure = true;
};
using BuiltinRows = ArrayRef<BuiltinRow>;

BuiltinRows list_builtins();

}  // namespace rushlight::graph
