// Custom functions in C++, as libtorch writes them: a struct that derives from
// autograd::Function<itself> with static `forward(AutogradContext*, arguments…)`, which returns a
// Tensor or a variable_list, and `backward(AutogradContext*, variable_list)`, which returns one
// gradient for each argument of forward, undefined for those that are no tensors. `apply` runs it.
#pragma once

#include <string>
#include <unordered_map>

#include <rushlight/autograd.h>
#include <rushlight/ivalue.h>

namespace rushlight {

namespace autograd_api {

class FunctionNode;

// What an output of a custom function is, beside a new tensor.
struct OutputKind {
  bool is_input = false;            // returned as it was given
  bool is_dirty = false;            // an input that forward wrote in place
  bool non_differentiable = false;  // marked so
  bool several = false;             // there are other outputs
};
// Gives the next output of `node` its history and returns it: another tensor where an input is
// returned as it is. RuntimeError where a leaf, or a view that cannot be, was written.
RL_API Tensor record_custom_output(const Tensor& t, const Ref<Node>& node, OutputKind kind);

struct RL_API AutogradContext {
  AutogradContext() = default;
  AutogradContext(const AutogradContext&) = delete;
  AutogradContext& operator=(const AutogradContext&) = delete;

  std::unordered_map<std::string, IValue> saved_data;  // anything but inputs and outputs

  // Inputs and outputs that backward needs, at most once a forward; undefined ones are fine.
  void save_for_backward(variable_list to_save) { to_save_ = std::move(to_save); }
  variable_list get_saved_variables() const;
  void mark_dirty(const variable_list& inputs) { dirty_ = inputs; }
  void mark_non_differentiable(const variable_list& outputs) { non_differentiable_ = outputs; }
  // Whether backward gets zeros (the default) or undefined tensors where no gradient arrived.
  void set_materialize_grads(bool value) { materialize_grads_ = value; }
  // By the place among the tensors that forward was given.
  bool needs_input_grad(size_t input) const;

 private:
  friend class FunctionNode;
  variable_list to_save_;
  variable_list dirty_;
  variable_list non_differentiable_;
  bool materialize_grads_ = true;
  FunctionNode* node_ = nullptr;
};

// The node of a custom function; Function<T>::apply makes it.
class RL_API FunctionNode : public Node {
 public:
  using Backward = variable_list (*)(AutogradContext*, variable_list);
  // `is_tensor`: for each argument of forward how many tensors it holds, or not_a_tensor.
  FunctionNode(const NodeDescriptor* descriptor, Backward backward,
               std::vector<uint32_t> tensors_of_argument, const variable_list& inputs);
  static constexpr uint32_t not_a_tensor = UINT32_MAX;

  void apply(const Tensor* grads, Tensor* results) override;
  AutogradContext* context() { return &context_; }
  // Saves what forward asked for and records its outputs, unless nothing needs a gradient.
  static variable_list finish(const Ref<FunctionNode>& node, const variable_list& inputs,
                              variable_list outputs);

 private:
  AutogradContext context_;
  Backward backward_;
  std::vector<uint32_t> tensors_of_argument_;
  bool recording_;
};

RL_API std::string type_name_of(const char* mangled);

template <class T>
struct Function {
  // Runs T::forward and records it; returns what forward returns.
  template <class... Args>
  static auto apply(Args&&... args) {
    static const std::string name = type_name_of(typeid(T).name());
    static const NodeDescriptor descriptor = {name.c_str(), nullptr, true};
    variable_list inputs;
    std::vector<uint32_t> tensors_of_argument;
    (collect(inputs, tensors_of_argument, args), ...);
    const auto node = Ref<FunctionNode>::steal(
        new FunctionNode(&descriptor, &backward_of, std::move(tensors_of_argument), inputs));
    using Output = decltype(T::forward(node->context(), std::forward<Args>(args)...));
    Output outputs;
    {
      const NoGradGuard no_grad;
      outputs = T::forward(node->context(), std::forward<Args>(args)...);
    }
    if constexpr (std::is_same_v<std::decay_t<Output>, Tensor>) {
      return FunctionNode::finish(node, inputs, {std::move(outputs)})[0];
    } else {
      return FunctionNode::finish(node, inputs, std::move(outputs));
    }
  }

 private:
  // T::backward takes a list or refers to one.
  static variable_list backward_of(AutogradContext* context, variable_list grads) {
    return T::backward(context, std::move(grads));
  }
  template <class A>
  static void collect(variable_list& inputs, std::vector<uint32_t>& counts, const A& argument) {
    if constexpr (std::is_convertible_v<const A&, const Tensor&>) {
      counts.push_back(1);
      inputs.push_back(argument);
    } else if constexpr (std::is_same_v<A, std::optional<Tensor>>) {
      counts.push_back(1);
      inputs.push_back(argument.value_or(Tensor()));
    } else if constexpr (std::is_same_v<A, TensorList> || std::is_same_v<A, variable_list>) {
      counts.push_back(static_cast<uint32_t>(argument.size()));
      inputs.insert(inputs.end(), argument.begin(), argument.end());
    } else {
      counts.push_back(FunctionNode::not_a_tensor);
    }
  }
};

}  // namespace autograd_api
}  // namespace rushlight
