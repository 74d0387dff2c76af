// What programs name of torch::jit. Graphs of TorchScript are not run, so there are no modules but
// empty ones: load refuses, and so does all that an empty module is asked for.
#pragma once

#include <fstream>
#include <unordered_map>

#include <rushlight/ivalue.h>

namespace rushlight::jit {

using rushlight::IValue;

class Module {
 public:
  using Kwargs = std::unordered_map<std::string, IValue>;
  IValue forward(std::vector<IValue>, const Kwargs& = {}) { refuse(); }
  IValue operator()(std::vector<IValue>) { refuse(); }
  IValue run_method(const std::string&, ...) { refuse(); }
  IValue attr(const std::string&) const { refuse(); }
  bool hasattr(const std::string&) const { refuse(); }
  std::vector<Tensor> parameters(bool = true) const { refuse(); }
  std::vector<Tensor> buffers(bool = true) const { refuse(); }
  std::vector<Module> children() const { refuse(); }
  std::vector<Module> modules() const { refuse(); }
  void eval() { refuse(); }
  void train(bool = true) { refuse(); }
  bool is_training() const { refuse(); }
  void to(Device, ScalarType, bool = false) { refuse(); }
  void to(ScalarType, bool = false) { refuse(); }
  void to(Device, bool = false) { refuse(); }
  void save(const std::string&) const { refuse(); }
  Module clone(bool = false) const { refuse(); }
  Module copy() const { refuse(); }
  Module deepcopy() const { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    throw Error("torch::jit::Module: the module is empty; graphs of TorchScript are not run");
  }
};
inline Module freeze(const Module& module) { return module.copy(); }
inline Module optimize_for_inference(Module& module) { return module.copy(); }

[[noreturn]] inline void refuse_graph(const std::string& what) {
  throw NotImplementedError("torch::jit::load: " + what +
                            " is a graph of TorchScript, which is not run. Save the module's state "
                            "dict in Python, and load it into a module of C++ by torch::load");
}
[[noreturn]] inline Module load(const std::string& path, std::optional<Device> = {}, bool = true) {
  RL_CHECK(std::ifstream(path).good(), "torch::jit::load: open file failed, file path: ", path);
  refuse_graph(path);
}
[[noreturn]] inline Module load(std::istream&, std::optional<Device> = {}, bool = true) {
  refuse_graph("the stream");
}

namespace script {
using jit::Module;
}  // namespace script

}  // namespace rushlight::jit
