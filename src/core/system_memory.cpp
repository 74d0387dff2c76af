// The system calls behind the allocator.
#include "core/system_memory.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

#include "core/allocator.h"
#include "core/container.h"

namespace rushlight::allocation {

char* map_aligned(size_t bytes, size_t alignment) {
  void* p =
      mmap(nullptr, bytes + alignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) {
    return nullptr;
  }
  char* start = static_cast<char*>(p);
  const size_t before = -reinterpret_cast<uintptr_t>(start) & (alignment - 1);
  const size_t after = alignment - before;
  if (before != 0) {
    munmap(start, before);
  }
  if (after != 0) {
    munmap(start + before + bytes, after);
  }
  return start + before;
}

namespace {

// Two huge pages that blocks are cut from, for a huge page is touched at the cost of a few small
// ones. What is given back is not cut again while others of the slab are in use: the allocator's
// bins hand out blocks again, and this sees those that nobody wants.
struct Slab {
  size_t cut;   // bytes from its start
  size_t live;  // blocks in use
};
constexpr size_t slab_size = 2 * huge_page;

constinit std::mutex slab_mutex;
Slab* newest_slab = nullptr;  // the one that blocks are cut from
const int slabs_are_whole_in_children = pthread_atfork(
    [] { slab_mutex.lock(); }, [] { slab_mutex.unlock(); }, [] { new (&slab_mutex) std::mutex; });

void* allocate_in_slab(size_t bytes) {
  const std::lock_guard<std::mutex> lock(slab_mutex);
  if (newest_slab == nullptr || slab_size - newest_slab->cut < bytes) {
    char* p = map_aligned(slab_size, slab_size);
    if (p == nullptr) {
      return nullptr;
    }
    madvise(p, slab_size, MADV_HUGEPAGE);
    newest_slab = new (p) Slab{page, 0};
  }
  char* block = reinterpret_cast<char*>(newest_slab) + newest_slab->cut;
  newest_slab->cut += bytes;
  newest_slab->live++;
  return block;
}

void return_to_slab(void* p, size_t bytes) {
  auto* slab = reinterpret_cast<Slab*>(reinterpret_cast<uintptr_t>(p) & ~(slab_size - 1));
  const std::lock_guard<std::mutex> lock(slab_mutex);
  if (--slab->live > 0) {
    madvise(p, bytes, MADV_DONTNEED);
    return;
  }
  if (newest_slab == slab) {
    newest_slab = nullptr;
  }
  munmap(slab, slab_size);
}

}  // namespace

void* system_allocate(size_t bytes) {
  if (bytes >= slab_threshold && bytes < map_threshold) {
    return allocate_in_slab(bytes);
  }
  if (bytes >= map_threshold) {
    char* p = map_aligned(bytes, bytes >= huge_page ? huge_page : page);
    if (p != nullptr && bytes >= huge_page) {
      madvise(p, bytes, MADV_HUGEPAGE);  // a wish: without huge pages all works as well
    }
    return p;
  }
  void* p = nullptr;
  return posix_memalign(&p, allocation_alignment, bytes) == 0 ? p : nullptr;
}

void system_free(void* p, size_t bytes) {
  if (bytes >= map_threshold) {
    munmap(p, bytes);
  } else if (bytes >= slab_threshold) {
    return_to_slab(p, bytes);
  } else {
    std::free(p);
  }
}

size_t default_limit() {
  const uint64_t memory =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::max<size_t>(std::min(memory, container_limits().bytes) / 4, 1);
}

}  // namespace rushlight::allocation
