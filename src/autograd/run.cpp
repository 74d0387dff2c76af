// backward and grad: checks what they are given, makes the gradients that are implied, and starts a
// run.
#include <rushlight/batching.h>
#include <rushlight/ops.h>

#include "autograd/engine.h"
#include "autograd/refusals.h"
#include "core/op_support.h"

namespace rushlight {
namespace {

std::string element_of_tensors(size_t i) { return str("element ", i, " of tensors"); }

// A gradient that nobody gave is one, and its output one real number. RuntimeError.
void check_implicit_gradient(int64_t numel, ScalarType dtype) {
  RL_CHECK(numel == 1, "grad can be implicitly created only for scalar outputs, not for one of ",
           numel, " elements: backward takes a gradient for each of them");
  RL_CHECK(!is_complex(dtype),
           "grad can be implicitly created only for real numbers, not for torch.", dtype,
           ": backward takes the gradient of a complex one");
}

// The gradient of root i: as given, or one for a scalar.
Tensor root_gradient(const Tensor& root, const std::vector<Tensor>& gradients, size_t i) {
  RL_CHECK(root.defined(), element_of_tensors(i), " is None");
  RL_CHECK(root.requires_grad(), element_of_tensors(i),
           " does not require grad and does not have a grad_fn: it was computed from nothing that "
           "requires grad. backward() goes to leaves: set requires_grad=True on them before");
  if (i < gradients.size() && gradients[i].defined()) {
    const Tensor& given = gradients[i];
    RL_CHECK(given.sizes() == root.sizes(), "Mismatch in shape: grad_output[", i,
             "] is of torch.Size(", given.sizes(), "), output[", i, "] of torch.Size(",
             root.sizes(), ")");
    RL_CHECK(given.is_complex() == root.is_complex(),
             "Mismatch in dtype: a gradient is complex where its output is, but grad_output[", i,
             "] is torch.", given.dtype(), " and output[", i, "] torch.", root.dtype(), ".");
    return given;
  }
  check_implicit_gradient(root.numel(), root.dtype());
  const NoGradGuard no_grad;
  return ones_like(root);
}

// One, for an output of one element.
Tensor implicit_gradient(const OutputInfo& info) {
  const DimVector sizes = info.sizes();
  check_implicit_gradient(product(sizes), info.dtype());
  const NoGradGuard no_grad;
  return ones(sizes, TensorOptions(info.dtype()).device(info.device()));
}

std::vector<Tensor> start(const std::vector<Edge>& roots, std::vector<Tensor> gradients,
                          bool restricted, const std::vector<Edge>& inputs, bool accumulate,
                          bool retain_graph, bool create_graph, TensorList outputs = {}) {
  std::vector<Tensor> results(inputs.size());
  Run run(retain_graph, create_graph);
  for (size_t i = 0; i < outputs.size(); i++) {
    const int64_t level = batching::level_of(gradients[i]);
    if (level != 0 && !batching::has_batch(outputs[i], level)) {
      run.keep_level(level);
    }
  }
  const GradMode mode(create_graph);
  for (size_t i = 0; i < roots.size(); i++) {
    run.add_root(roots[i], std::move(gradients[i]));
  }
  run.discover();
  for (size_t i = 0; restricted && i < inputs.size(); i++) {
    // Inner tensors that accumulate retain their gradient where it arrives; their own node need not
    // run.
    const bool is_leaf =
        inputs[i].node && &inputs[i].node->descriptor() == &accumulate_grad_descriptor();
    run.capture(inputs[i], accumulate && is_leaf ? nullptr : &results[i]);
  }
  run.execute();
  return results;
}

void collect_roots(const std::vector<Tensor>& tensors, const std::vector<Tensor>& given,
                   std::vector<Edge>& edges, std::vector<Tensor>& gradients) {
  RL_CHECK(given.empty() || given.size() == tensors.size(), "got ", tensors.size(), " tensors and ",
           given.size(), " gradients");
  edges.reserve(tensors.size());
  gradients.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); i++) {
    gradients.push_back(root_gradient(tensors[i], given, i));
    edges.push_back(gradient_edge(tensors[i]));
  }
}

}  // namespace

void run_backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients,
                  bool retain_graph, bool create_graph, const std::vector<Tensor>& inputs) {
  if (create_graph) {
    static bool warned = false;
    warn_once(warned,
              "backward() with create_graph=True makes a reference cycle between a parameter and "
              "its gradient, which "
              "keeps both alive. Prefer autograd.grad, or set the .grad fields to None after use.");
  }
  std::vector<Edge> edges;
  std::vector<Tensor> grads;
  collect_roots(roots, gradients, edges, grads);
  std::vector<Edge> wanted;
  for (size_t i = 0; i < inputs.size(); i++) {
    RL_CHECK(needs_grad(inputs[i]), "One of the differentiated Tensors does not require grad");
    inputs[i].retain_grad();  // nothing for a leaf
    wanted.push_back(gradient_edge(inputs[i]));
  }
  start(edges, std::move(grads), !inputs.empty(), wanted, /*accumulate=*/true, retain_graph,
        create_graph);
}

std::vector<Tensor> run_grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& gradients, bool retain_graph,
                             bool create_graph, bool allow_unused) {
  RL_CHECK(!inputs.empty(), "`inputs` argument to `grad()` cannot be empty.");
  std::vector<Edge> edges;
  std::vector<Tensor> grads;
  collect_roots(outputs, gradients, edges, grads);
  std::vector<Edge> wanted;
  wanted.reserve(inputs.size());
  for (const Tensor& input : inputs) {
    RL_CHECK(needs_grad(input), "One of the differentiated Tensors does not require grad");
    wanted.push_back(gradient_edge(input));
  }
  std::vector<Tensor> results = start(edges, std::move(grads), true, wanted, /*accumulate=*/false,
                                      retain_graph, create_graph, outputs);
  for (size_t i = 0; !allow_unused && i < results.size(); i++) {
    check_used(results[i], i);
  }
  return results;
}

std::vector<Tensor> run_edges(const std::vector<Edge>& roots, const std::vector<Tensor>& gradients,
                              const std::vector<Edge>& inputs, bool accumulate, bool retain_graph,
                              bool create_graph) {
  RL_CHECK(roots.size() == gradients.size(), "got ", roots.size(), " edges and ", gradients.size(),
           " gradients");
  for (size_t i = 0; i < roots.size(); i++) {
    RL_CHECK(roots[i].node && roots[i].input_nr < roots[i].node->num_outputs(), "edge ", i,
             " leads nowhere");
  }
  std::vector<Tensor> given = gradients;
  for (size_t i = 0; i < roots.size(); i++) {
    if (!given[i].defined()) {
      given[i] = implicit_gradient(roots[i].node->output_info(roots[i].input_nr));
    }
  }
  return start(roots, std::move(given), !accumulate || !inputs.empty(), inputs, accumulate,
               retain_graph, create_graph);
}

namespace autograd_api {

void backward(const variable_list& tensors, const variable_list& grad_tensors,
              std::optional<bool> retain_graph, bool create_graph, const variable_list& inputs) {
  run_backward(tensors, grad_tensors, retain_graph.value_or(create_graph), create_graph, inputs);
}

variable_list grad(const variable_list& outputs, const variable_list& inputs,
                   const variable_list& grad_outputs, std::optional<bool> retain_graph,
                   bool create_graph, bool allow_unused) {
  return run_grad(outputs, inputs, grad_outputs, retain_graph.value_or(create_graph), create_graph,
                  allow_unused);
}

}  // namespace autograd_api

}  // namespace rushlight
