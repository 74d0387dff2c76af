// The text of a tensor, as C++ and Python print it.
#pragma once

#include <optional>
#include <string>

#include <rushlight/tensor.h>

namespace rushlight {

struct TextOptions {
  int precision = 4;                    // digits after the point of a float
  double threshold = 1000;              // elements above which only the edges are shown
  int64_t edge_items = 3;               // shown at each end of a dimension that is cut
  int64_t line_width = 80;              // text never breaks inside an element
  std::optional<bool> scientific = {};  // notation of floats; none: as the values are
};

// The values alone, rows `indent` from the left: "[1., 2.]".
RL_API std::string contents_text(const Tensor& t, int64_t indent, const TextOptions& options);
// "tensor([1., 2.], grad_fn=<MulBackward0>)".
std::string tensor_text(const Tensor& t, const TextOptions& options);

}  // namespace rushlight
