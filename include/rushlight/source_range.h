// What graphs remember of where they come from: places in texts, calls, and tensors that were seen.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <rushlight/device.h>
#include <rushlight/dtype.h>

namespace rushlight::graph {

struct Source {
  std::string text;
  std::string file;
  size_t first_line = 1;  // number of the text's first line in the file
};
struct RL_API SourceRange {
  std::shared_ptr<const Source> source;
  size_t begin = 0;  // in source->text
  size_t end = 0;
  bool is_known() const { return source != nullptr; }
  std::string place() const;  // "file.py:12:4"; empty where it is not known
  // The line and its neighbours, with what is meant underlined, as errors show them.
  std::string excerpt(const std::string& function = {}) const;
};
// The calls that have been inlined around a node, from the inside out.
struct CallSite {
  std::string function;  // that the node was written in
  SourceRange range;     // of the call
  std::shared_ptr<const CallSite> outer;
};

// What is known of a tensor beyond its type, by tracing; nothing relies on it.
struct TensorFacts {
  std::optional<ScalarType> dtype;
  std::optional<DimVector> sizes;
  std::optional<DimVector> strides;
  std::optional<bool> requires_grad;
  std::optional<Device> device;
  RL_API std::string str() const;  // "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)"
};

}  // namespace rushlight::graph
