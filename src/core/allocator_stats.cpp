// Statistics of the CPU allocator, under the names of PyTorch's memory_stats().
#include <algorithm>
#include <mutex>

#include <rushlight/error.h>

#include "core/allocator.h"
#include "core/allocator_pool.h"

namespace rushlight {

using namespace allocation;

namespace {

struct Snapshot {
  Counts allocated[2], freed[2], reserved[2], returned[2];  // small, large
};

Snapshot snapshot_locked() {
  Snapshot s;
  s.allocated[0] = pool.gone_allocated;
  s.freed[0] = pool.gone_freed;
  for (ThreadCache* t = pool.threads; t != nullptr; t = t->next) {
    // Frees first: a block freed in between must not look as if it had never been allocated.
    s.freed[0].add(t->freed.get());
    s.allocated[0].add(t->allocated.get());
  }
  s.allocated[1] = pool.large_allocated;
  s.freed[1] = pool.large_freed;
  s.reserved[0] = pool.small_reserved;
  s.returned[0] = pool.small_returned;
  s.reserved[1] = pool.large_reserved;
  s.returned[1] = pool.large_returned;
  return s;
}

using Stats = std::vector<std::pair<std::string, int64_t>>;

// The four figures of a kind in the pools all, large_pool, small_pool.
void add_kind(Stats& out, const char* kind, int64_t Counts::* field, const Counts (&plus)[2],
              const Counts (&minus)[2], const Counts (&plus_base)[2], const Counts (&minus_base)[2],
              const Counts (&peak)[3]) {
  const char* const names[] = {"all", "large_pool", "small_pool"};
  for (int i = 0; i < 3; i++) {
    int64_t up = 0;
    int64_t down = 0;
    int64_t current = 0;
    for (int k = 0; k < 2; k++) {
      if (i == 0 || (i == 1) == (k == 1)) {
        up += plus[k].*field - plus_base[k].*field;
        down += minus[k].*field - minus_base[k].*field;
        current += plus[k].*field - minus[k].*field;
      }
    }
    const std::string prefix = str(kind, ".", names[i], ".");
    out.emplace_back(prefix + "allocated", up);
    out.emplace_back(prefix + "current", current);
    out.emplace_back(prefix + "freed", down);
    out.emplace_back(prefix + "peak", std::max(current, peak[2 - i].*field));
  }
}

}  // namespace

std::vector<std::pair<std::string, int64_t>> memory_stats() {
  Snapshot s;
  Counts use_peak[3];
  Counts reserved_peak[3];
  Counts base[4][2];
  int64_t retries = 0;
  int64_t failures = 0;
  {
    std::lock_guard<std::mutex> lock(pool.mutex);
    s = snapshot_locked();
    std::copy_n(pool.in_use_peak, 3, use_peak);
    std::copy_n(pool.reserved_peak, 3, reserved_peak);
    std::copy_n(pool.base_allocated, 2, base[0]);
    std::copy_n(pool.base_freed, 2, base[1]);
    std::copy_n(pool.base_reserved, 2, base[2]);
    std::copy_n(pool.base_returned, 2, base[3]);
    retries = pool.retries;
    failures = pool.failures;
  }
  Stats out;
  const auto add_in_use = [&](const char* kind, int64_t Counts::* field) {
    add_kind(out, kind, field, s.allocated, s.freed, base[0], base[1], use_peak);
  };
  const auto add_reserved = [&](const char* kind, int64_t Counts::* field) {
    add_kind(out, kind, field, s.reserved, s.returned, base[2], base[3], reserved_peak);
  };
  const auto add_zero = [&](const char* kind) {  // blocks are not split here
    const Counts none[2];
    const Counts no_peak[3];
    add_kind(out, kind, &Counts::blocks, none, none, none, none, no_peak);
  };
  add_in_use("active", &Counts::blocks);
  add_in_use("active_bytes", &Counts::bytes);
  add_in_use("allocated_bytes", &Counts::bytes);
  add_in_use("allocation", &Counts::blocks);
  add_zero("inactive_split");
  add_zero("inactive_split_bytes");
  out.emplace_back("max_split_size", -1);
  out.emplace_back("num_alloc_retries", retries);
  out.emplace_back("num_device_alloc", s.reserved[0].blocks + s.reserved[1].blocks);
  out.emplace_back("num_device_free", s.returned[0].blocks + s.returned[1].blocks);
  out.emplace_back("num_ooms", failures);
  out.emplace_back("num_sync_all_streams", 0);
  add_in_use("requested_bytes", &Counts::requested);
  add_reserved("reserved_bytes", &Counts::bytes);
  add_reserved("segment", &Counts::blocks);
  return out;
}

void reset_peak_memory_stats() noexcept {
  std::lock_guard<std::mutex> lock(pool.mutex);
  const Snapshot s = snapshot_locked();
  for (int k = 0; k < 2; k++) {
    pool.in_use_peak[k] = s.allocated[k].minus(s.freed[k]);
    pool.reserved_peak[k] = s.reserved[k].minus(s.returned[k]);
  }
  for (Counts(*peak)[3] : {&pool.in_use_peak, &pool.reserved_peak}) {
    (*peak)[2] = (*peak)[0];
    (*peak)[2].add((*peak)[1]);
  }
}

void reset_accumulated_memory_stats() noexcept {
  std::lock_guard<std::mutex> lock(pool.mutex);
  const Snapshot s = snapshot_locked();
  for (int k = 0; k < 2; k++) {
    pool.base_allocated[k] = s.allocated[k];
    pool.base_freed[k] = s.freed[k];
    pool.base_reserved[k] = s.reserved[k];
    pool.base_returned[k] = s.returned[k];
  }
  pool.retries = 0;
  pool.failures = 0;
}

}  // namespace rushlight
