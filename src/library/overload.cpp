// Ops by their row of the registry: what the types of at::_ops call.
#include <rushlight/overload.h>

#include <rushlight/operator_handle.h>
#include <rushlight/schema.h>

namespace rushlight {

namespace {
const OpInfo& op_of_row(int row) { return *all_ops()[static_cast<size_t>(row)]; }
}  // namespace

std::vector<Value> call_overload(int row, const std::vector<Value>& arguments) {
  return call(op_of_row(row), arguments);
}

std::vector<Value> call_overload(int row, const DispatchKeySet& keys,
                                 std::vector<Value> arguments) {
  OperatorHandle(op_of_row(row)).redispatchBoxed(keys, &arguments);
  return arguments;
}

OverloadName name_of_overload(int row) {
  static const auto& names = *new std::vector<std::string>([] {
    std::vector<std::string> out;
    for (const OpInfo* op : all_ops()) {
      out.push_back(str(op->space, "::", op->name));
    }
    return out;
  }());
  return {names[static_cast<size_t>(row)].c_str(), op_of_row(row).overload};
}

}  // namespace rushlight
