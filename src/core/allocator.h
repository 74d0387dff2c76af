// The caching CPU allocator: 64-byte aligned memory that is kept for reuse instead of going back to
// the system, since touching fresh memory costs ten times as much as computing in it. With
// RL_ALLOC_PASSTHROUGH defined (sanitizer builds) every call goes straight to the C library; with
// RL_ALLOC_GUARD besides, to pages that end where memory does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <rushlight/export.h>

namespace rushlight {

inline constexpr size_t allocation_alignment = 64;

// Uninitialised memory; null for 0 bytes. OutOfMemoryError where the system gives none or the size
// is absurd.
RL_API void* allocate(size_t bytes);
// `bytes` as asked for; any thread may free; null is ignored.
RL_API void deallocate(void* p, size_t bytes) noexcept;

// Gives the cached memory of this thread and of the common cache back to the system.
RL_API void empty_cache() noexcept;
// Freed memory that is kept at most, by default a quarter of the machine's; more goes back to the
// system at once.
RL_API void set_cache_limit(size_t bytes) noexcept;
RL_API size_t cache_limit() noexcept;

// Counters under the names of PyTorch's memory_stats(), in its order. Peaks of small blocks (up to
// 4 KiB) are seen in steps of some 16 KiB a thread.
RL_API std::vector<std::pair<std::string, int64_t>> memory_stats();
RL_API void reset_peak_memory_stats() noexcept;
RL_API void reset_accumulated_memory_stats() noexcept;

}  // namespace rushlight
