// Free lists by size, in steps of 16 bytes. They are plain thread-local data without a destructor
// of its own, since objects may be freed while a thread's other thread-locals are being destroyed;
// a guard empties them at its end.
#include "core/small_blocks.h"

#include <cstdint>
#include <new>

namespace rushlight {
namespace {

constexpr size_t step = 16;
#ifdef RL_ALLOC_PASSTHROUGH
constexpr size_t largest = 0;  // no lists
#else
constexpr size_t largest = 512;
#endif
constexpr size_t most_kept = 4 << 20;  // bytes a thread keeps

struct FreeBlock {
  FreeBlock* next;
};

struct FreeLists {
  FreeBlock* heads[largest / step + 1] = {};
  size_t kept = 0;
  bool guarded = false;
  bool closed = false;  // the thread is ending
};
constinit thread_local FreeLists lists __attribute__((tls_model("initial-exec")));

struct Guard {
  ~Guard() {
    lists.closed = true;
    for (FreeBlock*& head : lists.heads) {
      while (head != nullptr) {
        FreeBlock* block = head;
        head = block->next;
        ::operator delete(block);
      }
    }
    lists.kept = 0;
  }
};

[[gnu::noinline]] void* new_small_block(size_t bytes) {
  if (!lists.guarded) {
    lists.guarded = true;
    static thread_local Guard guard;
    (void)guard;
  }
  return ::operator new(bytes);
}

}  // namespace

void* small_allocate(size_t bytes) {
  if (bytes <= largest) {
    const size_t i = (bytes + step - 1) / step;
    FreeBlock* block = lists.heads[i];
    if (block != nullptr) {
      lists.heads[i] = block->next;
      lists.kept -= i * step;
      return block;
    }
    return new_small_block(i * step);
  }
  return ::operator new(bytes);
}

void small_free(void* p, size_t bytes) noexcept {
  const size_t i = (bytes + step - 1) / step;
  if (bytes <= largest && lists.kept + i * step <= most_kept && !lists.closed) {
    auto* block = static_cast<FreeBlock*>(p);
    block->next = lists.heads[i];
    lists.heads[i] = block;
    lists.kept += i * step;
    return;
  }
  ::operator delete(p);
}

}  // namespace rushlight
