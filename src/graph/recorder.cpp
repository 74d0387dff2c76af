#include "graph/recorder.h"

#include "graph/code.h"

namespace rushlight::graph {

std::vector<rushlight::Value> Recorder::handle(const OpInfo& op,
                                               const std::vector<rushlight::Value>& arguments) {
  const Schema& schema = schema_of(op);
  std::vector<Value*> inputs;
  for (size_t i = 0; i < arguments.size(); i++) {
    inputs.push_back(input(arguments[i], op.arguments[i].type, schema.arguments[i].type));
  }
  std::vector<rushlight::Value> results = call(op, arguments);
  if (is_known(op, results)) {
    return results;
  }
  Node* const node = graph_.insert(graph_.create(op, inputs));
  for (size_t i = 0; i < results.size() && i < node->outputs().size(); i++) {
    remember(results[i], node->output(i));
  }
  return results;
}

void Recorder::remember(const rushlight::Value& result, Value* value) {
  if (result.isTensor()) {
    if (result.toTensor().defined()) {
      note(result.toTensor(), value);
    }
  } else if (result.isTensorList()) {
    const std::vector<Tensor> items = result.toTensorVector();
    Node* const unpacked = graph_.append(Kind::ListUnpack, {value}, items.size());
    for (size_t i = 0; i < items.size(); i++) {
      remember(items[i], unpacked->output(i));
    }
  }
}

Value* Recorder::input(const rushlight::Value& argument, const TypeInfo& info, const Type& type) {
  if (argument.isTensor()) {
    const Tensor& t = argument.toTensor();
    if (!t.defined()) {
      return graph_.constant({}, {Type::Kind::None});
    }
    Value* const found = find(t);
    return found != nullptr ? found : constant(t);
  }
  bool has_tensors = false;
  argument.for_each_tensor([&](const Tensor&) { has_tensors = true; });
  if (!has_tensors) {
    return graph_.constant(from_op(argument, info), type);
  }
  std::vector<Value*> items;
  argument.for_each_tensor([&](const Tensor& t) { items.push_back(input(t, info, type)); });
  Node* const list = graph_.append(Kind::ListConstruct, items);
  list->output()->type = type;
  return list->output();
}

}  // namespace rushlight::graph
