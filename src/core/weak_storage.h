// Who wants to know when a storage is gone.
#pragma once

#include <cstdint>

#include <rushlight/storage.h>

namespace rushlight::weak_storage {

// A number that no other storage has while somebody watches this one, alive or gone.
RL_API uint64_t watch(const Storage& storage);
// Whether the storage of a number is gone; of a number that nobody watches, too.
RL_API bool is_freed(uint64_t number);
// One watcher less.
RL_API void remove_watcher(uint64_t number);

// Storages tell here that they go; `any` is the one test that all pay for.
bool any();
void mark_freed(const StorageImpl* storage);

}  // namespace rushlight::weak_storage
