// Programs that torch.export has written, by PyTorch's name.
#pragma once

#include <rushlight/exported.h>

#include <torch/torch.h>

namespace torch::nativert {

class ModelRunner {
 public:
  // The model `name` of a .pt2 file.
  ModelRunner(const std::string& path, const std::string& name)
      : program_(rushlight::exported::load(path, {}, name)) {}

  c10::IValue run(const std::vector<c10::IValue>& args,
                  const std::unordered_map<std::string, c10::IValue>& kwargs = {}) {
    return program_.run(args, kwargs);
  }
  std::vector<c10::IValue> runWithFlatInputsAndOutputs(std::vector<c10::IValue> inputs) {
    return program_.run_flat(std::move(inputs));
  }
  uint64_t numOutputs() const { return program_.result_count(); }

 private:
  rushlight::exported::Program program_;
};

}  // namespace torch::nativert
