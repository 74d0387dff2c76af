// nn::parallel: parts of a batch through copies of a module, each on a device and in a thread of
// its own.
#pragma once

#include <functional>

#include <rushlight/nn/module.h>
#include <rushlight/ops.h>

namespace torch::nn::parallel {

namespace detail {
// Runs all of them at a time, as the calling thread records gradients; rethrows the first
// exception.
RL_API void run_together(const std::vector<std::function<void()>>& jobs);
// Makes the parameters of a copy results of the original's, so that gradients arrive there.
RL_API void follow_parameters(const Module& copy, const Module& original);
// `given`, or all GPUs where nothing is; RuntimeError where there is none.
RL_API std::vector<Device> devices_or_all(const std::optional<std::vector<Device>>& given);
}  // namespace detail

// Copies of a module, one on each device; gradients of all of them are added to the module's.
template <class M>
std::vector<std::shared_ptr<M>> replicate(const std::shared_ptr<M>& module,
                                          const std::vector<Device>& devices) {
  std::vector<std::shared_ptr<M>> out;
  for (const Device device : devices) {
    out.push_back(std::dynamic_pointer_cast<M>(module->clone(device)));
    RL_CHECK(out.back() != nullptr, "a module's clone() is of another type than the module");
    detail::follow_parameters(*out.back(), *module);
  }
  return out;
}
template <class M>
std::vector<ModuleHolder<M>> replicate(const ModuleHolder<M>& module,
                                       const std::vector<Device>& devices) {
  std::vector<ModuleHolder<M>> out;
  for (std::shared_ptr<M>& copy : replicate(module.ptr(), devices)) {
    out.emplace_back(std::move(copy));
  }
  return out;
}

// Each module's forward of the input in its place. Inputs go to the devices, where these are given.
template <class M>
std::vector<Tensor> parallel_apply(std::vector<M>& modules, const std::vector<Tensor>& inputs,
                                   const std::optional<std::vector<Device>>& devices = {}) {
  RL_CHECK(modules.size() == inputs.size(), "Must have as many inputs as modules");
  RL_CHECK(!devices || devices->size() == modules.size(), "Must have as many devices as modules");
  std::vector<Tensor> out(modules.size());
  std::vector<std::function<void()>> jobs;
  for (size_t i = 0; i < modules.size(); i++) {
    jobs.push_back([&, i] {
      out[i] = modules[i]->forward(devices ? inputs[i].to((*devices)[i]) : inputs[i]);
    });
  }
  detail::run_together(jobs);
  return out;
}

// The batch `input` cut along `dim` for the devices (all GPUs, if not given), through copies of the
// module, and put together again on `output_device` (if not given, the first).
template <class M>
Tensor data_parallel(M module, Tensor input, const std::optional<std::vector<Device>>& devices = {},
                     const std::optional<Device>& output_device = {}, int64_t dim = 0) {
  std::vector<Device> on = detail::devices_or_all(devices);
  const Device to = output_device.value_or(on.front());
  if (on.size() == 1) {
    module->to(on.front());
    return module->forward(input.to(on.front())).to(to);
  }
  std::vector<Tensor> parts = input.chunk(static_cast<int64_t>(on.size()), dim);
  on.resize(parts.size());
  auto copies = replicate(module, on);
  std::vector<Tensor> out = parallel_apply(copies, parts, on);
  for (Tensor& part : out) {
    part = part.to(to);
  }
  return rushlight::cat(out, dim);
}

}  // namespace torch::nn::parallel
