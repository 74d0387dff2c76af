// What a type is called in schemas.
#pragma once

#include <string>
#include <typeinfo>
#include <vector>

#include <rushlight/export.h>

namespace rushlight {

struct Type {
  enum class Kind : uint8_t {
    Any,
    Tensor,
    Int,
    Float,
    Bool,
    Scalar,
    String,
    ScalarType,
    Device,
    Layout,
    MemoryFormat,
    Generator,
    List,    // of one
    Tuple,   // of each
    Dict,    // of two
    Object,  // of the class `name`
    Optional,
  };
  Kind kind = Kind::Any;
  std::vector<Type> of = {};
  std::string name = {};
  RL_API std::string str() const;  // "Tensor", "int[]", "Dict(str, Tensor)?"
};
// Names a class that is bound; RuntimeError where it has a name already.
RL_API void name_class(const std::type_info& type, const std::string& name);

}  // namespace rushlight
