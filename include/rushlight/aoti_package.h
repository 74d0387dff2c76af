// Packages of exported programs, by the name of PyTorch's loader of compiled ones: the program that
// a package holds is run, whatever else was compiled for it.
#pragma once

#include <rushlight/exported.h>

#include <torch/torch.h>

namespace torch::inductor {

class AOTIModelPackageLoader {
 public:
  explicit AOTIModelPackageLoader(const std::string& path, const std::string& model = "model")
      : program_(rushlight::exported::load(path, {}, model)) {}
  // Results without their containers; RuntimeError where one is no tensor.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) {
    std::vector<at::Tensor> out;
    for (const c10::IValue& value : program_.run_flat({inputs.begin(), inputs.end()})) {
      out.push_back(value.toTensor());
    }
    return out;
  }

 private:
  rushlight::exported::Program program_;
};

}  // namespace torch::inductor
