// Anomaly mode: where nodes were recorded and tensors written, told when backward fails.
#include "autograd/node.h"

namespace rushlight {
namespace {
std::atomic<std::string (*)()> traceback_provider{nullptr};
}  // namespace

void set_traceback_provider(std::string (*provider)()) { traceback_provider = provider; }

std::string current_traceback() {
  std::string (*provider)() = traceback_provider;
  return provider == nullptr ? std::string() : provider();
}

void note_write(const Tensor& t) {
  t.impl()->share_version().last_write = std::make_unique<std::string>(current_traceback());
}

}  // namespace rushlight
