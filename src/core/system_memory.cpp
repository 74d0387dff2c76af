// The system calls behind the allocator.
#include "core/system_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "core/allocator.h"

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

void* system_allocate(size_t bytes) {
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
  } else {
    std::free(p);
  }
}

size_t default_limit() {
  size_t memory =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  // A container may have less than the machine.
  if (FILE* f = std::fopen("/sys/fs/cgroup/memory.max", "r")) {
    unsigned long long value = 0;
    if (std::fscanf(f, "%llu", &value) == 1) {
      memory = std::min<size_t>(memory, value);
    }
    std::fclose(f);
  }
  return std::max<size_t>(memory / 4, 1);
}

}  // namespace rushlight::allocation
