// How the CPU allocator works:
// - Blocks of up to 4 KiB come from 64 KiB spans of one block size each, cut from 2 MiB arenas.
//   Every thread keeps short lists of free ones, so that a pair of calls costs a few nanoseconds;
//   lists are refilled and emptied in batches.
// - Larger blocks are rounded up to one of eight sizes a doubling and, once freed, wait in a bin of
//   that size, the latest first (it is the one in the processor's cache). Where all of that size
//   have left the cache, a larger one that was freed just now stands in. Beyond the limit the
//   longest unused ones go back to the system.
// - From 128 KiB on they are cut from slabs of 4 MiB, from 1 MiB on mapped on their own, aligned to
//   2 MiB; huge pages are asked for in both cases.
// Everything common lies under one lock, never held while the system is asked for memory of a large
// block.
#include "core/allocator.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include <rushlight/error.h>

#include "core/allocator_pool.h"
#include "core/system_memory.h"

namespace rushlight {

using namespace allocation;

namespace allocation {
constinit Pool pool;
}

namespace {

#ifdef RL_ALLOC_PASSTHROUGH
constexpr bool passthrough = true;
#else
constexpr bool passthrough = false;
#endif

constexpr size_t small_limit = 4096;
constexpr size_t span_size = size_t{64} << 10;
constexpr size_t arena_size = size_t{2} << 20;
constexpr size_t spans_per_arena = arena_size / span_size;
// Close to all that an address can name; sanitizers end the process from 2^40 on.
constexpr size_t absurd = size_t{1} << (passthrough ? 39 : 46);

// ---- sizes ----

// 64, 128 .. 1024, then 1280, 1536 .. 4096.
constexpr size_t small_size(int c) {
  return c < 16 ? 64 * (static_cast<size_t>(c) + 1) : 256 * (static_cast<size_t>(c) - 11);
}
static_assert(small_size(num_small - 1) == small_limit);
constexpr auto small_class_table = [] {
  std::array<uint8_t, small_limit / 64 + 1> table{};
  int c = 0;
  for (size_t i = 0; i < table.size(); i++) {
    if (i * 64 > small_size(c)) {
      c++;
    }
    table[i] = static_cast<uint8_t>(c);
  }
  return table;
}();
int small_class(size_t bytes) { return small_class_table[(bytes + 63) / 64]; }
// Blocks that move between a thread and the common lists at a time.
constexpr uint32_t batch_of(int c) {
  const size_t n = 8192 / small_size(c);
  return static_cast<uint32_t>(n < 4 ? 4 : n > 64 ? 64 : n);
}

struct LargeSize {
  int bin;
  size_t bytes;
};
LargeSize large_size(size_t bytes) {
  const int exponent = std::bit_width(bytes - 1) - 1;
  const size_t step = size_t{1} << (exponent - 3);
  const size_t rounded = (bytes + step - 1) & ~(step - 1);
  const int eighth = static_cast<int>((rounded - 1) >> (exponent - 3)) & 7;
  return {8 * (exponent - 12) + eighth, rounded};
}

size_t large_bytes(int bin) {
  const size_t doubling = size_t{1} << (12 + bin / 8);
  return doubling + (static_cast<size_t>(bin % 8) + 1) * (doubling >> 3);
}

constexpr uint32_t blocks_in_span(int c) {
  return static_cast<uint32_t>((span_size - sizeof(Span)) / small_size(c));
}

thread_local ThreadCache* cache __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local bool thread_ended __attribute__((tls_model("initial-exec"))) = false;

[[noreturn]] void out_of_memory(size_t bytes) {
  throw OutOfMemoryError(str("DefaultCPUAllocator: can't allocate memory: the system refused ",
                             bytes, " bytes (", std::strerror(ENOMEM), ")"));
}

// ---- small blocks, all under the lock ----

Span* new_span(int c) {
  Arena* arena = pool.arenas;
  while (arena != nullptr && arena->free_spans == 0) {
    arena = arena->next;
  }
  if (arena == nullptr) {
    arena = new (std::nothrow) Arena;
    char* base = arena == nullptr ? nullptr : map_aligned(arena_size, arena_size);
    if (base == nullptr) {
      delete arena;
      return nullptr;
    }
    *arena = {base, ~uint32_t{0}, pool.arenas};
    pool.arenas = arena;
    pool.small_reserved.add({1, static_cast<int64_t>(arena_size), 0});
    pool.note_reserved();
  }
  const int i = std::countr_zero(arena->free_spans);
  arena->free_spans &= ~(uint32_t{1} << i);
  Span* span = new (arena->base + static_cast<size_t>(i) * span_size)
      Span{arena, nullptr, nullptr, nullptr, 0, 0, c};
  pool.spans[c] = span;
  return span;
}

void unlink_span(Span* span) {
  (span->previous != nullptr ? span->previous->next : pool.spans[span->size_class]) = span->next;
  if (span->next != nullptr) {
    span->next->previous = span->previous;
  }
  span->previous = span->next = nullptr;
}

// One free block of a class, or null.
FreeBlock* take_small(int c) {
  Span* span = pool.spans[c];
  if (span == nullptr) {
    span = new_span(c);
    if (span == nullptr) {
      return nullptr;
    }
  }
  FreeBlock* block = span->free;
  if (block != nullptr) {
    span->free = block->next;
  } else {
    block =
        reinterpret_cast<FreeBlock*>(reinterpret_cast<char*>(span + 1) + span->cut * small_size(c));
    span->cut++;
  }
  span->used++;
  if (span->used == blocks_in_span(c)) {
    unlink_span(span);
  }
  return block;
}

void give_small(FreeBlock* block) {
  Span* span = reinterpret_cast<Span*>(reinterpret_cast<uintptr_t>(block) & ~(span_size - 1));
  const int c = span->size_class;
  if (span->used == blocks_in_span(c)) {
    span->next = pool.spans[c];
    if (span->next != nullptr) {
      span->next->previous = span;
    }
    pool.spans[c] = span;
  }
  block->next = span->free;
  span->free = block;
  span->used--;
  const bool only_one = pool.spans[c] == span && span->next == nullptr;
  if (span->used == 0 && !only_one) {
    unlink_span(span);
    Arena* arena = span->arena;
    const size_t i = static_cast<size_t>(reinterpret_cast<char*>(span) - arena->base) / span_size;
    arena->free_spans |= uint32_t{1} << i;
  }
}

// Returns arenas that hold nothing, and the pages of the free spans of the others.
void return_arenas() {
  Arena** link = &pool.arenas;
  while (*link != nullptr) {
    Arena* arena = *link;
    if (arena->free_spans == ~uint32_t{0}) {
      *link = arena->next;
      munmap(arena->base, arena_size);
      delete arena;
      pool.small_returned.add({1, static_cast<int64_t>(arena_size), 0});
      continue;
    }
    for (size_t i = 0; i < spans_per_arena; i++) {
      if ((arena->free_spans >> i & 1) != 0) {
        madvise(arena->base + i * span_size, span_size, MADV_DONTNEED);
      }
    }
    link = &arena->next;
  }
}

void publish(ThreadCache& t) {
  const Counts now = t.allocated.get().minus(t.freed.get());
  pool.small_in_use.add(now.minus(t.published));
  t.published = now;
  pool.note_use();
}

void flush_list(ThreadCache& t, int c, uint32_t n) {
  ThreadCache::List& list = t.lists[c];
  for (uint32_t i = 0; i < n && list.head != nullptr; i++) {
    FreeBlock* block = list.head;
    list.head = block->next;
    list.count--;
    give_small(block);
  }
}

void flush_thread(ThreadCache& t) {
  for (int c = 0; c < num_small; c++) {
    flush_list(t, c, t.lists[c].count);
  }
  publish(t);
}

// ---- threads and forks ----

void end_thread(void* p) {
  ThreadCache* t = static_cast<ThreadCache*>(p);
  cache = nullptr;
  thread_ended = true;
  {
    std::lock_guard<std::mutex> lock(pool.mutex);
    flush_thread(*t);
    pool.gone_allocated.add(t->allocated.get());
    pool.gone_freed.add(t->freed.get());
    (t->previous != nullptr ? t->previous->next : pool.threads) = t->next;
    if (t->next != nullptr) {
      t->next->previous = t->previous;
    }
  }
  delete t;
}

pthread_key_t thread_key;
bool have_thread_key = false;

void set_up_process() {
  have_thread_key = pthread_key_create(&thread_key, end_thread) == 0;
  pthread_atfork([] { pool.mutex.lock(); }, [] { pool.mutex.unlock(); },
                 [] { new (&pool.mutex) std::mutex; });
}

// Null where the thread is ending or memory is short: the caller then works on the common lists.
ThreadCache* make_cache() {
  static std::once_flag once;
  std::call_once(once, set_up_process);
  if (thread_ended || !have_thread_key) {
    return nullptr;
  }
  ThreadCache* t = new (std::nothrow) ThreadCache;
  if (t == nullptr || pthread_setspecific(thread_key, t) != 0) {
    delete t;
    return nullptr;
  }
  std::lock_guard<std::mutex> lock(pool.mutex);
  t->next = pool.threads;
  if (t->next != nullptr) {
    t->next->previous = t;
  }
  pool.threads = t;
  cache = t;
  return t;
}

// ---- large blocks ----

void unlink_cached(CachedBlock* b) {
  (b->newer_in_bin != nullptr ? b->newer_in_bin->older_in_bin : pool.bins[b->bin]) =
      b->older_in_bin;
  if (b->older_in_bin != nullptr) {
    b->older_in_bin->newer_in_bin = b->newer_in_bin;
  }
  (b->newer != nullptr ? b->newer->older : pool.newest) = b->older;
  (b->older != nullptr ? b->older->newer : pool.oldest) = b->newer;
  pool.cached -= b->bytes;
}

// Takes the longest unused blocks out of the cache until it holds at most `limit`; the list is the
// caller's to free.
CachedBlock* evict_beyond(size_t limit) {
  CachedBlock* list = nullptr;
  while (pool.cached > limit) {
    CachedBlock* b = pool.oldest;
    unlink_cached(b);
    b->older = list;
    list = b;
    pool.large_returned.add({1, static_cast<int64_t>(b->bytes), 0});
  }
  return list;
}

// Without the lock: unmapping takes long.
void free_list(CachedBlock* list) {
  while (list != nullptr) {
    CachedBlock* next = list->older;
    system_free(list, list->bytes);
    list = next;
  }
}

// Memory that was freed fewer bytes ago is likely to lie in one of the processor's caches.
constexpr size_t cached_window = size_t{16} << 20;

bool is_recent(const CachedBlock* b) {
  return b != nullptr && pool.clock - b->freed_at <= cached_window;
}

// The block freed last that can stand in for one of this size; null for none. Results of layers
// shrink and grow: each size has a block of its own, which was last used a whole pass ago, while
// what the layer before worked on is in the cache.
CachedBlock* recent_larger(const LargeSize& size) {
  constexpr int most_steps = 8;
  constexpr size_t most_times = 8;
  if (is_recent(pool.bins[size.bin]) || pool.lent.is_full()) {
    return nullptr;
  }
  // Some small tensors stay for long.
  const size_t most_idle = 4 * cached_window + static_cast<size_t>(pool.large_in_use().bytes) / 8;
  CachedBlock* b = pool.newest;
  for (int step = 0; step < most_steps && is_recent(b); step++, b = b->older) {
    if (b->bytes > size.bytes && b->bytes <= most_times * size.bytes &&
        pool.idle + b->bytes - size.bytes <= most_idle) {
      return b;
    }
  }
  return nullptr;
}

// A cached block for this size, or null.
CachedBlock* take_cached(const LargeSize& size) {
  CachedBlock* b = recent_larger(size);
  if (b != nullptr) {
    pool.lent.add(b, b->bin);
    pool.idle += b->bytes - size.bytes;
  } else {
    b = pool.bins[size.bin];
  }
  if (b != nullptr) {
    unlink_cached(b);
  }
  return b;
}

// The size of a block that was handed out for `asked`.
LargeSize returned_size(const void* p, const LargeSize& asked) {
  const int bin = pool.lent.take(p);
  if (bin < 0) {
    return asked;
  }
  pool.idle -= large_bytes(bin) - asked.bytes;
  return {bin, large_bytes(bin)};
}

size_t limit_locked() {
  if (pool.limit == 0) {
    pool.limit = default_limit();
  }
  return pool.limit;
}

void* allocate_large(size_t bytes) {
  if (bytes >= absurd) {
    std::lock_guard<std::mutex> lock(pool.mutex);
    pool.failures++;
    out_of_memory(bytes);
  }
  const LargeSize size = large_size(bytes);
  const Counts one{1, static_cast<int64_t>(size.bytes), static_cast<int64_t>(bytes)};
  {
    std::lock_guard<std::mutex> lock(pool.mutex);
    pool.clock += size.bytes;
    if (CachedBlock* b = take_cached(size)) {
      pool.large_allocated.add(one);  // whatever stands in for it
      pool.note_use();
      return b;
    }
  }
  void* p = system_allocate(size.bytes);
  if (p == nullptr) {
    empty_cache();
    p = system_allocate(size.bytes);
    std::lock_guard<std::mutex> lock(pool.mutex);
    pool.retries++;
    if (p == nullptr) {
      pool.failures++;
      out_of_memory(bytes);
    }
  }
  std::lock_guard<std::mutex> lock(pool.mutex);
  pool.large_reserved.add({1, one.bytes, 0});
  pool.note_reserved();
  pool.large_allocated.add(one);
  pool.note_use();
  return p;
}

void deallocate_large(void* p, size_t bytes) noexcept {
  CachedBlock* surplus = nullptr;
  {
    std::lock_guard<std::mutex> lock(pool.mutex);
    const LargeSize asked = large_size(bytes);
    const LargeSize size = returned_size(p, asked);
    pool.large_freed.add({1, static_cast<int64_t>(asked.bytes), static_cast<int64_t>(bytes)});
    CachedBlock* b = new (p) CachedBlock{nullptr,    pool.bins[size.bin], nullptr, pool.newest,
                                         size.bytes, pool.clock,          size.bin};
    if (b->older_in_bin != nullptr) {
      b->older_in_bin->newer_in_bin = b;
    }
    pool.bins[size.bin] = b;
    (b->older != nullptr ? b->older->newer : pool.oldest) = b;
    pool.newest = b;
    pool.cached += b->bytes;
    surplus = evict_beyond(limit_locked());
  }
  free_list(surplus);
}

// ---- slow paths of small blocks ----

__attribute__((noinline)) void* refill(size_t bytes) {
  const int c = small_class(bytes);
  ThreadCache* t = cache != nullptr ? cache : make_cache();
  std::unique_lock<std::mutex> lock(pool.mutex);
  FreeBlock* block = take_small(c);
  if (block == nullptr) {
    pool.failures++;
    out_of_memory(bytes);
  }
  if (t == nullptr) {
    const Counts one{1, static_cast<int64_t>(small_size(c)), static_cast<int64_t>(bytes)};
    pool.gone_allocated.add(one);
    pool.small_in_use.add(one);
    pool.note_use();
    return block;
  }
  ThreadCache::List& list = t->lists[c];
  while (list.count < batch_of(c) - 1) {
    FreeBlock* more = take_small(c);
    if (more == nullptr) {
      break;
    }
    more->next = list.head;
    list.head = more;
    list.count++;
  }
  t->allocated.count(small_size(c), bytes);
  publish(*t);
  return block;
}

__attribute__((noinline)) void free_without_cache(FreeBlock* block, size_t bytes) noexcept {
  const int64_t size = static_cast<int64_t>(small_size(small_class(bytes)));
  std::lock_guard<std::mutex> lock(pool.mutex);
  pool.gone_freed.add({1, size, static_cast<int64_t>(bytes)});
  pool.small_in_use.add({-1, -size, -static_cast<int64_t>(bytes)});
  give_small(block);
}

__attribute__((noinline)) void flush_batch(ThreadCache& t, int c) noexcept {
  std::lock_guard<std::mutex> lock(pool.mutex);
  flush_list(t, c, batch_of(c));
  publish(t);
}

#ifdef RL_ALLOC_GUARD
// Each block has pages of its own and ends (but for up to 15 bytes) where a page begins that nobody
// may touch; freed, its pages are gone. So to read or write behind a block, or a dead one, ends the
// process at once, whatever code does it, at full speed.
constexpr size_t guard_alignment = 16;

size_t pages_of(size_t bytes) { return (bytes + page - 1) & ~(page - 1); }

void* exact_allocate(size_t bytes) {
  const size_t size = pages_of(bytes);
  void* p = mmap(nullptr, size + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) {
    return nullptr;
  }
  if (mprotect(p, size, PROT_READ | PROT_WRITE) != 0) {
    munmap(p, size + page);
    return nullptr;
  }
  return static_cast<char*>(p) + size - ((bytes + guard_alignment - 1) & ~(guard_alignment - 1));
}

void exact_free(void* p, size_t bytes) {
  char* base = static_cast<char*>(p) - (reinterpret_cast<uintptr_t>(p) & (page - 1));
  munmap(base, pages_of(bytes) + page);
}
#else
// posix_memalign takes any size, so that a sanitizer sees exact bounds.
void* exact_allocate(size_t bytes) {
  void* p = nullptr;
  return posix_memalign(&p, allocation_alignment, bytes) == 0 ? p : nullptr;
}

void exact_free(void* p, size_t) { std::free(p); }
#endif

// Counted as large blocks.
void* pass_allocate(size_t bytes) {
  void* p = bytes < absurd ? exact_allocate(bytes) : nullptr;
  const bool failed = p == nullptr;
  std::lock_guard<std::mutex> lock(pool.mutex);
  if (failed) {
    pool.failures++;
    out_of_memory(bytes);
  }
  pool.large_allocated.add({1, static_cast<int64_t>(bytes), static_cast<int64_t>(bytes)});
  pool.note_use();
  return p;
}

void pass_free(void* p, size_t bytes) noexcept {
  exact_free(p, bytes);
  std::lock_guard<std::mutex> lock(pool.mutex);
  pool.large_freed.add({1, static_cast<int64_t>(bytes), static_cast<int64_t>(bytes)});
}

}  // namespace

void* allocate(size_t bytes) {
  if constexpr (passthrough) {
    return bytes == 0 ? nullptr : pass_allocate(bytes);
  }
  if (RL_LIKELY(bytes - 1 < small_limit)) {
    ThreadCache* t = cache;
    if (RL_LIKELY(t != nullptr)) {
      const int c = small_class(bytes);
      ThreadCache::List& list = t->lists[c];
      FreeBlock* block = list.head;
      if (RL_LIKELY(block != nullptr)) {
        list.head = block->next;
        list.count--;
        t->allocated.count(small_size(c), bytes);
        return block;
      }
    }
    return refill(bytes);
  }
  return bytes == 0 ? nullptr : allocate_large(bytes);
}

void deallocate(void* p, size_t bytes) noexcept {
  if (p == nullptr) {
    return;
  }
  if constexpr (passthrough) {
    pass_free(p, bytes);
    return;
  }
  if (RL_UNLIKELY(bytes > small_limit)) {
    deallocate_large(p, bytes);
    return;
  }
  FreeBlock* block = static_cast<FreeBlock*>(p);
  ThreadCache* t = cache != nullptr ? cache : make_cache();
  if (RL_UNLIKELY(t == nullptr)) {
    free_without_cache(block, bytes);
    return;
  }
  const int c = small_class(bytes);
  ThreadCache::List& list = t->lists[c];
  block->next = list.head;
  list.head = block;
  list.count++;
  t->freed.count(small_size(c), bytes);
  if (RL_UNLIKELY(list.count >= 2 * batch_of(c))) {
    flush_batch(*t, c);
  }
}

void empty_cache() noexcept {
  CachedBlock* list = nullptr;
  {
    std::lock_guard<std::mutex> lock(pool.mutex);
    if (cache != nullptr) {
      flush_thread(*cache);
    }
    return_arenas();
    list = evict_beyond(0);
  }
  free_list(list);
}

void set_cache_limit(size_t bytes) noexcept {
  CachedBlock* list = nullptr;
  {
    std::lock_guard<std::mutex> lock(pool.mutex);
    pool.limit = std::max<size_t>(bytes, 1);
    list = evict_beyond(pool.limit);
  }
  free_list(list);
}

size_t cache_limit() noexcept {
  std::lock_guard<std::mutex> lock(pool.mutex);
  return limit_locked();
}

}  // namespace rushlight
