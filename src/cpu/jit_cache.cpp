// Register code by what it computes: made once, kept until it is dropped or there is too much of
// it.
#include <atomic>
#include <mutex>
#include <unordered_map>

#include "cpu/jit.h"

namespace rushlight::cpu {

namespace {

struct Entry {
  int uses = 0;
  JitCode code;  // final once it has been made, or could not be
};
constexpr size_t max_entries = 1024;
std::mutex cache_lock;
// Never destroyed: threads may compute while the process ends.
auto& cache = *new std::unordered_map<std::string, Entry>;
std::atomic<int64_t> age{0};

void forget() {
  cache.clear();
  age.fetch_add(1, std::memory_order_relaxed);
}

std::string key_of(const JitRun& run) {
  std::string key;
  for (const JitStep& step : run.steps) {
    key += static_cast<char>(step.formula);
    key += static_cast<char>(step.store);
    key += static_cast<char>(step.streams);
    key += static_cast<char>(step.rounded);
    for (int i = 0; i < step.num_operands; i++) {
      key += static_cast<char>(step.in[i].kind);
      key += static_cast<char>(step.in[i].index);
    }
  }
  for (const JitSlot slot : run.slots) {
    key += static_cast<char>(slot);
  }
  return key;
}

}  // namespace

JitCode jit_code(const JitRun& run, bool much_work) {
  const std::lock_guard guard(cache_lock);
  if (cache.size() >= max_entries) {
    forget();
  }
  Entry& entry = cache[key_of(run)];
  entry.uses++;
  if (!entry.code.is_final && (entry.uses > 1 || much_work)) {
    entry.code = make_jit_code(run);
  }
  return entry.code;
}

int64_t jit_cache_size() {
  const std::lock_guard guard(cache_lock);
  return static_cast<int64_t>(cache.size());
}
void clear_jit_cache() {
  const std::lock_guard guard(cache_lock);
  forget();
}
int64_t jit_age() { return age.load(std::memory_order_relaxed); }

}  // namespace rushlight::cpu
