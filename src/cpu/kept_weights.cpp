#include "cpu/kept_weights.h"

#include <atomic>
#include <cstring>
#include <shared_mutex>
#include <unordered_map>

namespace rushlight::cpu {

namespace {

// By address. Never destroyed: tensors may be freed while the process ends.
struct All {
  std::atomic<size_t> count = 0;
  std::shared_mutex mutex;
  std::unordered_map<const void*, KeptWeight*> weights;
};
All& all() {
  static All& one = *new All;
  return one;
}

void forget(void* data, size_t, void* context) {
  {
    const std::lock_guard<std::shared_mutex> lock(all().mutex);
    all().weights.erase(data);
    all().count.store(all().weights.size(), std::memory_order_relaxed);
  }
  delete static_cast<KeptWeight*>(context);
}

}  // namespace

Tensor keep_weight(const Tensor& weight) {
  RL_CHECK(weight.is_cpu() && weight.is_contiguous() && weight.numel() > 0,
           "only dense weights on the CPU are kept");
  const size_t bytes = static_cast<size_t>(weight.numel() * weight.itemsize());
  auto* const kept = new KeptWeight(static_cast<int64_t>(bytes));
  std::memcpy(kept->data(), weight.data_ptr(), bytes);
  auto impl =
      TensorImpl::make(StorageImpl::borrow(kept->data(), bytes, weight.device(), forget, kept),
                       weight.dtype(), kCPU);
  impl->set_sizes_and_strides(weight.sizes(), weight.strides());
  const std::lock_guard<std::shared_mutex> lock(all().mutex);
  all().weights[kept->data()] = kept;
  all().count.store(all().weights.size(), std::memory_order_relaxed);
  return Tensor(std::move(impl));
}

KeptWeight* find_kept_weight(const Tensor& weight) {
  if (all().count.load(std::memory_order_relaxed) == 0 || weight._version() != 0) {
    return nullptr;
  }
  const std::shared_lock<std::shared_mutex> lock(all().mutex);
  const auto found = all().weights.find(weight.data_ptr());
  return found != all().weights.end() ? found->second : nullptr;
}

}  // namespace rushlight::cpu
