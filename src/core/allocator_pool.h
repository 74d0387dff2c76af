// What allocator.cpp and its statistics share: the counters, the common state and the threads' own.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

namespace rushlight::allocation {

inline constexpr int num_small = 28;  // sizes of small blocks
inline constexpr int num_bins = 8 * (46 - 12);

// ---- counting ----

struct Counts {
  int64_t blocks = 0;
  int64_t bytes = 0;      // of the blocks handed out
  int64_t requested = 0;  // of what was asked for
  void add(const Counts& o) {
    blocks += o.blocks;
    bytes += o.bytes;
    requested += o.requested;
  }
  Counts minus(const Counts& o) const {
    return {blocks - o.blocks, bytes - o.bytes, requested - o.requested};
  }
  void raise_to(const Counts& o) {
    blocks = std::max(blocks, o.blocks);
    bytes = std::max(bytes, o.bytes);
    requested = std::max(requested, o.requested);
  }
};

// Written by one thread, read by others.
class OwnCounter {
 public:
  void add(int64_t n) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  int64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};
struct OwnCounts {
  OwnCounter blocks;
  OwnCounter bytes;
  OwnCounter requested;
  void count(size_t size, size_t asked) {
    blocks.add(1);
    bytes.add(static_cast<int64_t>(size));
    requested.add(static_cast<int64_t>(asked));
  }
  Counts get() const { return {blocks.get(), bytes.get(), requested.get()}; }
};

// ---- common state ----

struct FreeBlock {
  FreeBlock* next;
};

// 32 spans.
struct Arena {
  char* base;
  uint32_t free_spans;  // one bit each
  Arena* next;
};

// Starts a span; its blocks follow.
struct alignas(64) Span {
  Arena* arena;
  Span* previous;  // among the spans of this size that have free blocks
  Span* next;
  FreeBlock* free;
  uint32_t used;
  uint32_t cut;  // blocks that were ever handed out; the rest of the span is untouched
  int size_class;
};
static_assert(sizeof(Span) == 64);

// Lies in a free large block.
struct CachedBlock {
  CachedBlock* newer_in_bin;
  CachedBlock* older_in_bin;
  CachedBlock* newer;
  CachedBlock* older;
  size_t bytes;
  size_t freed_at;  // the pool's clock then
  int bin;
};

// Large blocks that stand in for smaller ones, with the bins that they return to: a hash table.
class Lent {
 public:
  bool is_full() const { return count_ == slots / 2; }
  void add(const void* block, int bin) {
    size_t i = home_of(block);
    while (blocks_[i] != nullptr) {
      i = (i + 1) % slots;
    }
    blocks_[i] = block;
    bins_[i] = bin;
    count_++;
  }
  // The bin of a block, which is forgotten; -1 for one that was not lent.
  int take(const void* block) {
    if (count_ == 0) {
      return -1;
    }
    size_t i = home_of(block);
    while (blocks_[i] != block) {
      if (blocks_[i] == nullptr) {
        return -1;
      }
      i = (i + 1) % slots;
    }
    const int bin = bins_[i];
    blocks_[i] = nullptr;
    count_--;
    for (i = (i + 1) % slots; blocks_[i] != nullptr; i = (i + 1) % slots) {
      const void* const moved = std::exchange(blocks_[i], nullptr);
      count_--;
      add(moved, bins_[i]);
    }
    return bin;
  }

 private:
  static constexpr size_t slots = 1024;
  static size_t home_of(const void* block) {
    return (reinterpret_cast<uintptr_t>(block) * 0x9e3779b97f4a7c15u) >> 54;
  }
  const void* blocks_[slots] = {};
  int bins_[slots] = {};
  size_t count_ = 0;
};

struct ThreadCache {
  struct List {
    FreeBlock* head = nullptr;
    uint32_t count = 0;
  };
  List lists[num_small];
  OwnCounts allocated;
  OwnCounts freed;
  Counts published;  // what the pool knows to be in use through this thread
  ThreadCache* previous = nullptr;
  ThreadCache* next = nullptr;
};

struct Pool {
  std::mutex mutex;
  // small blocks
  Span* spans[num_small] = {};
  Arena* arenas = nullptr;
  ThreadCache* threads = nullptr;
  Counts small_in_use;    // as last published by the threads
  Counts gone_allocated;  // of threads that have ended, and of calls after a thread's end
  Counts gone_freed;
  // large blocks
  CachedBlock* bins[num_bins] = {};
  CachedBlock* newest = nullptr;
  CachedBlock* oldest = nullptr;
  Lent lent;
  size_t idle = 0;   // bytes of lent blocks that nobody asked for
  size_t clock = 0;  // bytes of all large blocks that were handed out
  size_t cached = 0;
  size_t limit = 0;  // 0: not set yet
  Counts large_allocated;
  Counts large_freed;
  // reserved from the system: blocks are segments here, `requested` is not used
  Counts small_reserved, small_returned;
  Counts large_reserved, large_returned;
  // peaks and baselines of the statistics, in the order small, large, all
  Counts in_use_peak[3];
  Counts reserved_peak[3];
  Counts base_allocated[2], base_freed[2], base_reserved[2], base_returned[2];
  int64_t retries = 0;
  int64_t failures = 0;

  Counts large_in_use() const { return large_allocated.minus(large_freed); }
  void note_use() {
    Counts all = large_in_use();
    in_use_peak[0].raise_to(small_in_use);
    in_use_peak[1].raise_to(all);
    all.add(small_in_use);
    in_use_peak[2].raise_to(all);
  }
  void note_reserved() {
    Counts all = small_reserved.minus(small_returned);
    const Counts large = large_reserved.minus(large_returned);
    reserved_peak[0].raise_to(all);
    reserved_peak[1].raise_to(large);
    all.add(large);
    reserved_peak[2].raise_to(all);
  }
};

// Never destroyed: tensors may be freed while the process ends.
extern constinit Pool pool;

}  // namespace rushlight::allocation
