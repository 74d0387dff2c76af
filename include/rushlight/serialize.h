// Saving and loading tensors in PyTorch's .pt format, which Python reads and writes as well.
// A file appears whole or not at all, and nothing in a file that is loaded is ever run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <rushlight/tensor.h>

namespace rushlight {

// Names and tensors in order, as a module's state_dict().
using StateDict = std::vector<std::pair<std::string, Tensor>>;

// A dict of tensors, one tensor, or a list. Tensors that share memory do so in the file.
RL_API void save(const StateDict& state, const std::string& path);
RL_API void save(const Tensor& tensor, const std::string& path);
RL_API void save(const std::vector<Tensor>& tensors, const std::string& path);

// The tensors of a file, those in nested dicts and lists under names joined by dots
// ("model.fc.weight"), what is no tensor left out. A file that holds one tensor alone gives it the
// empty name. RuntimeError where the file is damaged, UnpicklingError where it holds what is not
// plain data.
RL_API StateDict load_state_dict(const std::string& path);
// The one tensor of a file.
RL_API Tensor load_tensor(const std::string& path);
RL_API void load(Tensor& tensor, const std::string& path);
// All tensors of a file, in its order.
RL_API void load(std::vector<Tensor>& tensors, const std::string& path);

// The same in the safetensors format. Tensors that share memory are written one by one.
RL_API void save_safetensors(const StateDict& state, const std::string& path);
RL_API StateDict load_safetensors(const std::string& path);

}  // namespace rushlight
