// The only way between the values of programs and those of ops.
#include "core/boxed_arguments.h"
#include "graph/code.h"

namespace rushlight::graph {

rushlight::Value to_op(const IValue& value, const TypeInfo& type) {
  if (value.isNone()) {
    return {};
  }
  if (type.is_list) {
    if (value.isList()) {
      return list_of_ops(type, value);
    }
    // An int for int[2].
    return rushlight::Value(DimVector(std::max<size_t>(type.size, 1), value.toInt()));
  }
  switch (type.base) {
    case BaseType::ScalarType:
      return value.isInt() ? rushlight::Value(dtype_of_number(value.toInt())) : value;
    case BaseType::Layout:
      return value.isInt() ? rushlight::Value(layout_of_number(value.toInt())) : value;
    case BaseType::MemoryFormat:
      return value.isInt() ? rushlight::Value(memory_format_of_number(value.toInt())) : value;
    case BaseType::Device:
      return value.isString() ? rushlight::Value(Device(value.toStringRef())) : value;
    default:
      return value;
  }
}

IValue from_op(rushlight::Value value, const TypeInfo& type) {
  if (type.is_list) {
    return shared_list(IValue(std::move(value)));
  }
  switch (type.base) {
    case BaseType::ScalarType:
      return value.is<ScalarType>() ? IValue(number_of(value.get<ScalarType>()))
                                    : IValue(std::move(value));
    case BaseType::Layout:
      return value.is<Layout>() ? IValue(number_of(value.get<Layout>())) : IValue(std::move(value));
    case BaseType::MemoryFormat:
      return value.is<MemoryFormat>() ? IValue(static_cast<int64_t>(value.get<MemoryFormat>()))
                                      : IValue(std::move(value));
    default:
      return IValue(std::move(value));
  }
}

}  // namespace rushlight::graph
