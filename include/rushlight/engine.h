// The walk of backward by edges, by libtorch's names.
#pragma once

#include <rushlight/autograd.h>

namespace rushlight::autograd_api {

namespace impl {
using rushlight::gradient_edge;
}  // namespace impl

class Engine {
 public:
  static Engine& get_default_engine() {
    static Engine engine;
    return engine;
  }
  // Gradients of `inputs` and of nothing else, or of all leaves where there are none. With
  // `accumulate_grad` they are added to the leaves' .grad, and the result is empty.
  variable_list execute(const std::vector<Edge>& roots, const variable_list& gradients,
                        bool keep_graph, bool create_graph, bool accumulate_grad,
                        const std::vector<Edge>& inputs = {}) {
    return run_edges(roots, gradients, inputs, accumulate_grad, keep_graph, create_graph);
  }

 private:
  Engine() = default;
};

}  // namespace rushlight::autograd_api
