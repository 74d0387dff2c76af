// Nodes of the graph that programs write by hand and own by shared_ptr, and what such nodes keep
// for backward: libtorch's names. Function (function.h) is the shorter way to the same.
#pragma once

#include <unordered_set>

#include <rushlight/autograd.h>
#include <rushlight/compat.h>

namespace rushlight::autograd_api {

using edge_list = std::vector<Edge>;
using optional_variable_list = std::vector<std::optional<Variable>>;

// Where the gradients of tensors go, in order.
RL_API edge_list collect_next_edges(const variable_list& inputs);
template <class... T>
edge_list collect_next_edges(const Tensor& first, const T&... others) {
  return collect_next_edges(variable_list{first, others...});
}
RL_API void deleteNode(Node* node);

RL_API optional_variable_list to_optional(const Variable& output);
RL_API optional_variable_list to_optional(const variable_list& outputs);
// The outputs of a function with `node` as their history (none: they are not recorded): those that
// are inputs, written (`dirty`) or without a gradient are told by address.
RL_API optional_variable_list record_outputs(
    const variable_list& inputs, const std::unordered_set<TensorImpl*>& non_differentiable,
    const std::unordered_set<TensorImpl*>& dirty, ArrayRef<std::optional<Variable>> outputs,
    const std::shared_ptr<Node>& node);
// The same by libtorch's name. Forward mode and views of inputs are as in Function: the last
// arguments say nothing more.
template <class Jvp, class ViewAsSelf>
optional_variable_list _wrap_outputs(const variable_list& inputs,
                                     const std::unordered_set<TensorImpl*>& non_differentiable,
                                     const std::unordered_set<TensorImpl*>& dirty,
                                     ArrayRef<std::optional<Variable>> outputs,
                                     const std::shared_ptr<Node>& node, const Jvp&,
                                     const std::unordered_set<TensorImpl*>&, const ViewAsSelf&,
                                     bool = false) {
  return record_outputs(inputs, non_differentiable, dirty, outputs, node);
}

// A tensor that a node keeps. RuntimeError where it was written since, or after reset_data().
class RL_API SavedVariable {
 public:
  SavedVariable();
  // An output of the node that keeps it is kept without its history, so that there is no cycle;
  // `saved_for` of unpack gives it back.
  SavedVariable(const Tensor& tensor, bool is_output, bool is_inplace_on_view = false);
  Tensor unpack(const std::shared_ptr<Node>& saved_for = nullptr) const;
  SavedVariable(SavedVariable&&) noexcept;
  SavedVariable& operator=(SavedVariable&&) noexcept;
  ~SavedVariable();
  void reset_data();

 private:
  SavedTensor saved_;
  bool is_output_ = false;
  bool was_reset_ = false;
};

// What zeros in place of a gradient need to know of a tensor: none has been seen where is_empty.
struct RL_API VariableInfo {
  VariableInfo() = default;
  explicit VariableInfo(const Variable& tensor, bool = false);
  Variable zeros(OptionalDeviceGuard& guard) const;
  Layout layout = kStrided;
  Device device = kCPU;
  ScalarType scalar_type = kFloat;
  std::vector<int64_t> size;
  bool requires_grad = false;
  bool is_empty = true;
};

// The outputs as the list, or the tensor, that a function returns.
template <class T>
T to_output_type(const optional_variable_list& outputs) {
  variable_list out;
  for (const auto& output : outputs) {
    out.push_back(output.value_or(Variable()));
  }
  if constexpr (std::is_same_v<T, Variable>) {
    return out.at(0);
  } else {
    return out;
  }
}

}  // namespace rushlight::autograd_api
