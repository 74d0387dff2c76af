// Programs that torch.export has written (.pt2 files), run without Python:
//
//   rushlight::exported::Program program = rushlight::exported::load("net.pt2");
//   rushlight::Tensor y = program.run({x}).toTensor();
#pragma once

#include <iosfwd>
#include <unordered_map>

#include <rushlight/collections.h>
#include <rushlight/tensor.h>
#include <rushlight/type_of.h>

namespace rushlight::exported {

using IValue = rushlight::Value;
using Kwargs = std::unordered_map<std::string, IValue>;

struct Loaded;  // what a file holds

class RL_API Program {
 public:
  explicit Program(std::shared_ptr<const Loaded> loaded) : loaded_(std::move(loaded)) {}

  // Takes what the function that was exported took, in lists, tuples and dicts as there, and gives
  // what it returned. No gradients are recorded. Any number of threads may call it, unless the
  // program writes to its buffers. RuntimeError where arguments do not fit what the program was
  // exported for, or where an op fails; the message shows the line of the function.
  IValue run(std::vector<IValue> arguments, const Kwargs& by_name = {}) const;
  IValue operator()(std::vector<IValue> arguments, const Kwargs& by_name = {}) const {
    return run(std::move(arguments), by_name);
  }
  // Arguments and results without their containers, in the order in which those are read.
  std::vector<IValue> run_flat(std::vector<IValue> arguments) const;

  std::vector<std::string> argument_names() const;  // of the flat arguments
  size_t result_count() const;                      // of the flat results
  // Parameters, buffers and constants by name. What is written into them, later runs see.
  const std::vector<std::pair<std::string, Tensor>>& tensors() const;
  std::string graph_text() const;

 private:
  std::shared_ptr<const Loaded> loaded_;
};

// Reads a program; nothing of the file is run. `device`: where its tensors go, and where the
// program makes new ones; nothing: where they were. `model`: of a file that has several.
// RuntimeError where this is no such file, or a damaged one, or one of another version;
// NotImplementedError where it calls ops that are not there: all of them are named.
RL_API Program load(const std::string& path, std::optional<Device> device = {},
                    const std::string& model = "model");
RL_API Program load(std::istream& stream, std::optional<Device> device = {},
                    const std::string& model = "model");

}  // namespace rushlight::exported
