// Nodes that programs write by hand: the history of their outputs, and what they save.
#include <rushlight/custom_node.h>

#include <algorithm>

#include <rushlight/function.h>

namespace rushlight::autograd_api {

edge_list collect_next_edges(const variable_list& inputs) {
  edge_list out;
  for (const Tensor& t : inputs) {
    out.push_back(gradient_edge(t));
  }
  return out;
}
void deleteNode(Node* node) { delete node; }
optional_variable_list to_optional(const Variable& output) { return {output}; }
optional_variable_list to_optional(const variable_list& outputs) {
  return {outputs.begin(), outputs.end()};
}

optional_variable_list record_outputs(const variable_list& inputs,
                                      const std::unordered_set<TensorImpl*>& non_differentiable,
                                      const std::unordered_set<TensorImpl*>& dirty,
                                      ArrayRef<std::optional<Variable>> outputs,
                                      const std::shared_ptr<Node>& node) {
  const Ref<Node> recorded = node ? Node::of_shared(node) : Ref<Node>();
  optional_variable_list out;
  for (const std::optional<Variable>& t : outputs) {
    if (!t.has_value() || !t->defined()) {
      if (recorded) {
        clear_history(Tensor(), recorded);
      }
      out.push_back(t);
      continue;
    }
    TensorImpl* const impl = t->impl();
    const bool is_input = std::any_of(inputs.begin(), inputs.end(),
                                      [&](const Tensor& input) { return input.is_same(*t); });
    out.push_back(record_custom_output(
        *t, recorded,
        {is_input, dirty.count(impl) > 0, non_differentiable.count(impl) > 0, outputs.size() > 1}));
  }
  return out;
}

SavedVariable::SavedVariable() = default;
SavedVariable::SavedVariable(SavedVariable&&) noexcept = default;
SavedVariable& SavedVariable::operator=(SavedVariable&&) noexcept = default;
SavedVariable::~SavedVariable() = default;
void SavedVariable::reset_data() {
  saved_ = SavedTensor();
  was_reset_ = true;
}

SavedVariable::SavedVariable(const Tensor& tensor, bool is_output, bool is_inplace_on_view)
    : is_output_(is_output || is_inplace_on_view) {
  const Ref<Node> node = is_output_ && tensor.defined() ? tensor.grad_fn() : Ref<Node>();
  saved_ = SavedTensor(tensor, node.get());
  is_output_ = static_cast<bool>(node);
}

Tensor SavedVariable::unpack(const std::shared_ptr<Node>& saved_for) const {
  RL_CHECK(!was_reset_,
           "Trying to backward through the graph a second time: reset_data() has freed the saved "
           "tensor");
  RL_CHECK(saved_for != nullptr || !is_output_,
           "unpack: the tensor is an output of the node that saved it: pass that node");
  static Node& nobody = *new Node;  // an owner to name in errors
  return saved_.unpack(saved_for != nullptr ? *saved_for : nobody);
}

VariableInfo::VariableInfo(const Variable& tensor, bool)
    : layout(tensor.layout()),
      device(tensor.device()),
      scalar_type(tensor.scalar_type()),
      size(tensor.sizes().begin(), tensor.sizes().end()),
      requires_grad(tensor.requires_grad()),
      is_empty(false) {}

Variable VariableInfo::zeros(OptionalDeviceGuard& guard) const {
  if (is_empty) {
    return {};
  }
  guard.reset_device(device);
  return rushlight::zeros(size, TensorOptions(scalar_type).device(device).layout(layout));
}

}  // namespace rushlight::autograd_api
