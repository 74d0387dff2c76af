// More of libtorch's names for programs of TorchScript: the ops.
#pragma once

#include <memory>

#include <rushlight/library.h>
#include <rushlight/graph_function.h>
#include <rushlight/script.h>
#include <rushlight/script_types.h>

namespace rushlight::jit {

class Operator {
 public:
  explicit Operator(const OpInfo& op) : schema_(op) {}
  const FunctionSchema& schema() const { return schema_; }

 private:
  FunctionSchema schema_;
};
// All ops that there are now, those of libraries too.
inline const std::vector<std::shared_ptr<Operator>> getAllOperators() {
  std::vector<std::shared_ptr<Operator>> out;
  for (const OpInfo* op : all_ops()) {
    out.push_back(std::make_shared<Operator>(*op));
  }
  return out;
}

}  // namespace rushlight::jit
