// The kinds of nodes of graphs.
#pragma once

#include <cstdint>

namespace rushlight::graph {

// What a node does.
enum class Kind : uint8_t {
  Op,        // an overload of the registry, the table's or a library's
  Builtin,   // a function of the language (builtins.h)
  Param,     // its outputs are what comes into its block
  Return,    // its inputs are what goes out of it
  Constant,  // attribute value
  If,        // inputs: condition; two blocks, whose results are the node's
  Loop,      // inputs: most rounds, first condition, what is carried; a block (round, carried…) →
             // (condition, carried…)
  GetAttr,   // attribute name; inputs: object
  SetAttr,   // attribute name; inputs: object, value
  CreateObject,
  CallFunction,   // of `function`
  CallMethod,     // attribute name; inputs: object, arguments
  ListConstruct,  // the type of the output says of what
  DictConstruct,  // inputs: key, value, key, value…
  TupleConstruct,
  ListUnpack,
  TupleUnpack,
  TupleIndex,  // inputs: tuple, place
  TupleSlice,  // attributes beg, end
  IsInstance,  // types
  UncheckedCast,
  Uninitialized,
  RaiseException,  // inputs: message, and perhaps the qualified name of the class
  Enter,           // of a with statement: inputs: object; calls its __enter__
  Exit,            // inputs: object
  Fork,            // of `function`, or a block; makes a Future
  Wait,
  Opaque,  // recorded, cannot run: attribute kind says what it is called
};

}  // namespace rushlight::graph
