#include "core/weak_storage.h"

#include <atomic>
#include <mutex>
#include <unordered_map>

namespace rushlight::weak_storage {

namespace {
struct WatchedStorage {
  const StorageImpl* storage;  // null once it is gone
  int64_t watchers;
};
struct Table {
  std::mutex mutex;
  uint64_t last = 0;
  std::unordered_map<uint64_t, WatchedStorage> by_number;
  std::unordered_map<const StorageImpl*, uint64_t> alive;
};
// Never destroyed: storages may outlive everything else.
Table& table() {
  static auto* const made = new Table;
  return *made;
}
std::atomic<size_t> count_alive{0};
}  // namespace

uint64_t watch(const Storage& storage) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto [entry, is_new] = t.alive.try_emplace(storage.get(), t.last + 1);
  if (is_new) {
    t.last++;
    t.by_number[t.last] = {storage.get(), 0};
    count_alive.store(t.alive.size(), std::memory_order_relaxed);
  }
  t.by_number[entry->second].watchers++;
  return entry->second;
}

bool is_freed(uint64_t number) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto found = t.by_number.find(number);
  return found == t.by_number.end() || found->second.storage == nullptr;
}

void remove_watcher(uint64_t number) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto found = t.by_number.find(number);
  if (found != t.by_number.end() && --found->second.watchers == 0) {
    if (found->second.storage != nullptr) {
      t.alive.erase(found->second.storage);
      count_alive.store(t.alive.size(), std::memory_order_relaxed);
    }
    t.by_number.erase(found);
  }
}

bool any() { return count_alive.load(std::memory_order_relaxed) != 0; }

void mark_freed(const StorageImpl* storage) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto found = t.alive.find(storage);
  if (found != t.alive.end()) {
    t.by_number[found->second].storage = nullptr;
    t.alive.erase(found);
    count_alive.store(t.alive.size(), std::memory_order_relaxed);
  }
}

}  // namespace rushlight::weak_storage
