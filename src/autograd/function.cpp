// Custom functions: the history of their outputs, which Python's share, and the node of those
// written in C++ (include/rushlight/function.h).
#include <rushlight/function.h>

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>

#include <rushlight/ops.h>

#include "autograd/node.h"
#include "autograd/refusals.h"

namespace rushlight::autograd_api {
namespace {

// An input that comes back as an output: a view of it that cannot be written, so that its own
// history stays.
Tensor view_of_input(const Tensor& t, const Ref<Node>& node) {
  Tensor out = t.tensor_data();
  record_view(out, t, ViewKind::Custom, node);
  return out;
}

void check_dirty(const Tensor& t, bool several) {
  if (t.is_leaf() && t.requires_grad()) {
    refuse_leaf_write(/*is_view=*/false, "has been used");
  }
  if (!t.is_view()) {
    return;
  }
  RL_CHECK(!several,
           "mark_dirty: a Function that writes to a view can return nothing else. Write to a "
           "clone() of the view, or return the rest from another Function.");
  if (t._base().is_leaf() && t.requires_grad()) {
    refuse_leaf_write(/*is_view=*/true);
  }
}

bool contains(const variable_list& list, const Tensor& t) {
  return std::any_of(list.begin(), list.end(), [&](const Tensor& item) { return item.is_same(t); });
}

}  // namespace

Tensor record_custom_output(const Tensor& t, const Ref<Node>& node, OutputKind kind) {
  if (kind.is_dirty) {
    t.impl()->bump_version();  // forward may have written in a way that is not seen
  }
  const bool differentiable = node && !kind.non_differentiable && is_differentiable(t.dtype());
  if (!differentiable) {
    if (node) {
      clear_history(t, node);
    }
    if (kind.is_input && !kind.is_dirty) {
      const NoGradGuard no_grad;
      return node ? t.tensor_data() : view_of_input(t, Ref<Node>());
    }
    return t.requires_grad() && node ? t.tensor_data() : t;
  }
  if (kind.is_dirty) {
    check_dirty(t, kind.several);
    rebase_history(t, node);
    return t;
  }
  if (kind.is_input) {
    return view_of_input(t, node);
  }
  set_history(t, node);
  if (t.is_view()) {  // of an input, made while nothing was recorded
    ViewInfo& view = t.impl()->view();
    view.kind = kind.several ? ViewKind::MultiOutput : ViewKind::Custom;
    view.grad_fn_version = t._version();
  }
  return t;
}

// ---- the context ----

variable_list AutogradContext::get_saved_variables() const {
  RL_CHECK(node_ != nullptr, "get_saved_variables() is for backward");
  node_->check_not_released();
  variable_list out;
  for (size_t i = 0; i < node_->num_saved(); i++) {
    out.push_back(node_->saved_with_history(i));
  }
  return out;
}

bool AutogradContext::needs_input_grad(size_t input) const {
  return node_ != nullptr && node_->wants(input);
}

// ---- the node ----

FunctionNode::FunctionNode(const NodeDescriptor* descriptor, Backward backward,
                           std::vector<uint32_t> tensors_of_argument, const variable_list& inputs)
    : Node(descriptor),
      backward_(backward),
      tensors_of_argument_(std::move(tensors_of_argument)),
      recording_(tls.grad_mode && any_requires_grad(inputs)) {
  RL_CHECK_NOT_IMPLEMENTED(
      !forward::active() || !forward::has_tangent(TensorList(inputs)),
      "jvp is not implemented for a Function that is written in C++, and an input has a forward "
      "gradient. Write it in Python, or of ops that have a jvp");
  context_.node_ = this;
  if (recording_) {
    for (const Tensor& t : inputs) {
      add_edge(t);  // before forward may write to it
    }
  }
}

void FunctionNode::apply(const Tensor* grads, Tensor* results) {
  variable_list given(grads, grads + num_outputs());
  for (size_t i = 0; context_.materialize_grads_ && i < given.size(); i++) {
    const OutputInfo& info = output_info(i);
    if (!given[i].defined() && info.dtype() != ScalarType::Undefined) {
      given[i] = zeros(info.sizes(), TensorOptions(info.dtype()).device(info.device()));
    }
  }
  variable_list returned = backward_(&context_, std::move(given));
  size_t expected = 0;
  for (const uint32_t n : tensors_of_argument_) {
    expected += n == not_a_tensor ? 1 : n;
  }
  const size_t count = returned.size();
  while (returned.size() > expected && !returned.back().defined()) {
    returned.pop_back();
  }
  RL_CHECK(returned.size() == expected, "function ", name(),
           " returned an incorrect number of gradients (expected ", expected, ", got ", count, ")");
  size_t place = 0;
  size_t edge = 0;
  for (const uint32_t n : tensors_of_argument_) {
    if (n == not_a_tensor) {
      RL_CHECK(!returned[place].defined(), "function ", name(),
               " returned a gradient different than None at position ", place + 1,
               ", but the corresponding forward input was not a Variable");
      place++;
      continue;
    }
    for (uint32_t i = 0; i < n; i++, place++, edge++) {
      if (edges()[edge].node) {
        results[edge] = std::move(returned[place]);
      }
    }
  }
}

variable_list FunctionNode::finish(const Ref<FunctionNode>& node, const variable_list& inputs,
                                   variable_list outputs) {
  AutogradContext& context = node->context_;
  for (const Tensor& t : context.dirty_) {
    if (!contains(outputs, t)) {
      refuse_unreturned_dirty();
    }
  }
  const Ref<Node> recorded = node->recording_ ? Ref<Node>(node.get()) : Ref<Node>();
  for (Tensor& t : outputs) {
    if (!t.defined()) {
      if (recorded) {
        clear_history(t, recorded);
      }
      continue;
    }
    t = record_custom_output(t, recorded,
                             {contains(inputs, t), contains(context.dirty_, t),
                              contains(context.non_differentiable_, t), outputs.size() > 1});
  }
  if (recorded) {
    for (const Tensor& t : context.to_save_) {
      const AutogradMeta* meta = t.defined() ? t.impl()->autograd() : nullptr;
      const bool is_output = meta != nullptr && meta->grad_fn.get() == node.get();
      node->save(t, is_output ? node.get() : nullptr);
    }
  }
  context.to_save_.clear();
  context.dirty_.clear();
  context.non_differentiable_.clear();
  return outputs;
}

std::string type_name_of(const char* mangled) {
  int status = 0;
  char* text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string out = status == 0 ? text : mangled;
  std::free(text);
  return out;
}

}  // namespace rushlight::autograd_api
