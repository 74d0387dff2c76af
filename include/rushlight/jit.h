// More of libtorch's names for programs of TorchScript: lists of what modules hold, and the ops.
#pragma once

#include <memory>

#include <rushlight/library.h>
#include <rushlight/graph_function.h>
#include <rushlight/script.h>
#include <rushlight/script_types.h>

namespace rushlight::jit {

// What a list of slots holds. Such lists are vectors here.
namespace detail {
struct ParameterPolicy {
  using value_type = Tensor;
};
struct BufferPolicy {
  using value_type = Tensor;
};
struct ModulePolicy {
  using value_type = Module;
};
struct AttributePolicy {
  using value_type = IValue;
};
template <class Policy>
struct NamedPolicy {
  using value_type =
      std::conditional_t<std::is_same_v<typename Policy::value_type, Tensor>, NamedTensor,
                         std::conditional_t<std::is_same_v<typename Policy::value_type, Module>,
                                            NamedModule, NamedValue>>;
};
}  // namespace detail
template <class Policy>
using slot_list_impl = std::vector<typename Policy::value_type>;
template <class Policy>
using slot_iterator_impl = typename slot_list_impl<Policy>::const_iterator;
using parameter_list = slot_list_impl<detail::ParameterPolicy>;
using buffer_list = slot_list_impl<detail::BufferPolicy>;
using module_list = slot_list_impl<detail::ModulePolicy>;
using named_parameter_list = slot_list_impl<detail::NamedPolicy<detail::ParameterPolicy>>;
using named_buffer_list = slot_list_impl<detail::NamedPolicy<detail::BufferPolicy>>;
using named_module_list = slot_list_impl<detail::NamedPolicy<detail::ModulePolicy>>;
using named_attribute_list = slot_list_impl<detail::NamedPolicy<detail::AttributePolicy>>;

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
