// What transforms of functions (grad, vjp, jacobians) differentiate by.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include <rushlight/forward.h>

#include "core/op_support.h"

namespace rushlight {

namespace {
void pass_gradients(Node& node, const Tensor* grads, Tensor* result) {
  if (node.wants(0)) {
    result[0] = grads[0];
  }
}
constexpr NodeDescriptor transform_descriptor = {"TransformInputBackward0", pass_gradients, false};
}  // namespace

Tensor begin_transform(const Tensor& argument) {
  RL_CHECK(is_floating(argument.dtype()) || argument.is_complex(),
           "only Tensors of floating point dtype can require gradients");
  Tensor out = forward::data_of(argument);
  auto node = Ref<Node>::steal(new Node(&transform_descriptor));
  if (argument.requires_grad()) {
    node->add_edge(argument);
  }
  set_history(out, node);
  return out;
}

TransformScope::TransformScope()
    : transforming_before_(std::exchange(tls.transforming, true)),
      before_(std::exchange(tls.transform, next_transform())) {}

TransformScope::~TransformScope() {
  tls.transforming = transforming_before_;
  tls.transform = before_;
}

void TransformScope::adopt_storage(const Tensor& argument) const {
  if (argument.has_storage()) {
    argument.storage()->set_transform_number(tls.transform);
  }
}

bool depends_on_others(const std::vector<Tensor>& tensors, const std::vector<Ref<Node>>& own) {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> waiting;
  std::vector<Ref<Node>> held;
  const auto visit = [&](const Node* node) {
    if (node != nullptr && seen.insert(node).second) {
      waiting.push_back(node);
    }
  };
  // Transforms around this one began earlier; those within it have ended, and only pass on.
  uint64_t begin = UINT64_MAX;
  for (const Ref<Node>& node : own) {
    begin = std::min<uint64_t>(begin, node->sequence());
  }
  for (const Tensor& t : tensors) {
    if (!t.defined() || !t.requires_grad()) {
      continue;
    }
    held.push_back(gradient_edge(t).node);
    visit(held.back().get());
  }
  while (!waiting.empty()) {
    const Node* node = waiting.back();
    waiting.pop_back();
    if (&node->descriptor() == &accumulate_grad_descriptor() ||
        (&node->descriptor() == &transform_descriptor && node->sequence() < begin)) {
      return true;
    }
    for (const Edge& edge : node->edges()) {
      visit(edge.node.get());
    }
  }
  return false;
}

}  // namespace rushlight
