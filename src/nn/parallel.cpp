// What data_parallel and its parts do beside calling modules.
#include <rushlight/nn/parallel.h>

#include <exception>
#include <thread>

#include <rushlight/ops.h>
#include <rushlight/stream.h>

namespace torch::nn::parallel::detail {

void run_together(const std::vector<std::function<void()>>& jobs) {
  std::vector<std::exception_ptr> failed(jobs.size());
  const bool record = tls.grad_mode;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < jobs.size(); i++) {
    threads.emplace_back([&, i] {
      try {
        const AutoGradMode as_caller(record);
        jobs[i]();
      } catch (...) {
        failed[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::exception_ptr& e : failed) {
    if (e != nullptr) {
      std::rethrow_exception(e);
    }
  }
}

void follow_parameters(const Module& copy, const Module& original) {
  const auto sources = original.named_parameters();
  for (const auto& parameter : copy.named_parameters()) {
    const Tensor& source = sources[parameter.key()];
    if (source.requires_grad()) {
      parameter.value().requires_grad_(false).copy_(source);
    }
  }
}

std::vector<Device> devices_or_all(const std::optional<std::vector<Device>>& given) {
  std::vector<Device> out;
  if (given) {
    out = *given;
  } else {
    for (int i = 0; i < device_count(kCUDA); i++) {
      out.emplace_back(kCUDA, static_cast<int8_t>(i));
    }
  }
  RL_CHECK(!out.empty(), "Expected at least one device to use data_parallel on");
  return out;
}

}  // namespace torch::nn::parallel::detail
