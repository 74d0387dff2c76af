// The CPU allocator: alignment, reuse, threads, limits, statistics, errors, fork. `speed` prints
// nanoseconds a pair.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "check.h"
#include "core/allocator.h"

#include <rushlight/error.h>

using namespace rushlight;

#ifdef RL_ALLOC_PASSTHROUGH
constexpr int rounds_a_thread = 1000;
constexpr int busy_threads =
    0;  // sanitizers' own allocators do not survive a fork among busy threads
#else
constexpr int rounds_a_thread = 60000;
constexpr int busy_threads = 2;
#endif

static int64_t stat(const char* key) {
  for (const auto& [name, value] : memory_stats()) {
    if (name == key) {
      return value;
    }
  }
  return -1000;
}

RL_TEST(every_size_is_aligned_and_distinct) {
  std::vector<std::pair<char*, size_t>> blocks;
  for (size_t n = 1; n < 9000; n += n < 600 ? 1 : 37) {
    blocks.emplace_back(static_cast<char*>(allocate(n)), n);
  }
  for (size_t n = 4096; n <= size_t{64} << 20; n = n * 5 / 4) {
    for (size_t m : {n - 1, n, n + 1}) {
      blocks.emplace_back(static_cast<char*>(allocate(m)), m);
    }
  }
  int tag = 0;
  for (auto& [p, n] : blocks) {
    CHECK(reinterpret_cast<uintptr_t>(p) % allocation_alignment == 0);
    tag++;
    std::memset(p, tag % 251, n < 100 ? n : 100);
    std::memset(p + n - (n < 100 ? n : 100), tag % 251, n < 100 ? n : 100);
  }
  tag = 0;
  for (auto& [p, n] : blocks) {
    tag++;
    CHECK(p[0] == static_cast<char>(tag % 251) && p[n / 2 < 100 ? n / 2 : 99] == p[0] &&
          p[n - 1] == p[0]);
    deallocate(p, n);
  }
}

RL_TEST(zero_and_null) {
  CHECK(allocate(0) == nullptr);
  deallocate(nullptr, 0);
  deallocate(nullptr, 100);
}

RL_TEST(absurd_sizes_raise) {
  const int64_t before = stat("num_ooms");
  CHECK_THROWS(OutOfMemoryError, "refused 18446744073709551615 bytes", allocate(SIZE_MAX));
  CHECK_THROWS(OutOfMemoryError, "allocate", allocate(SIZE_MAX / 2));
  CHECK_THROWS(OutOfMemoryError, "refused 70368744177664 bytes", allocate(size_t{1} << 46));
  CHECK_THROWS(OutOfMemoryError, "allocate", allocate((size_t{1} << 46) + 1));
  CHECK(stat("num_ooms") == before + 4);
}

#ifndef RL_ALLOC_PASSTHROUGH
RL_TEST(freed_blocks_come_back) {
  for (size_t n : {size_t{100}, size_t{5000}, size_t{300000}, size_t{40} << 20}) {
    void* p = allocate(n);
    deallocate(p, n);
    CHECK(allocate(n) == p);
    deallocate(p, n);
  }
  void* const aligned = allocate(size_t{5} << 20);
  CHECK(reinterpret_cast<uintptr_t>(aligned) % (2 << 20) == 0);
  deallocate(aligned, size_t{5} << 20);
}

RL_TEST(memory_that_was_freed_just_now_stands_in_for_less) {
  empty_cache();
  constexpr size_t small = size_t{1} << 20;
  constexpr size_t large = size_t{5} << 20;
  const int64_t in_use = stat("allocated_bytes.all.current");
  const int64_t reserved = stat("reserved_bytes.all.current");
  const auto use = [](size_t bytes) {
    void* const p = allocate(bytes);
    deallocate(p, bytes);
    return p;
  };
  void* const own = use(small);
  CHECK(use(small) == own);  // the latest of its size
  use(64 * small);           // more than a cache holds, and too large to stand in
  void* const recent = use(large);
  for (int round = 0; round < 3; round++) {
    CHECK(allocate(small) == recent);
    CHECK(stat("allocated_bytes.all.current") == in_use + static_cast<int64_t>(small));
    void* const other = allocate(large);
    CHECK(other != recent);
    deallocate(other, large);
    deallocate(recent, small);
    CHECK(use(large) == recent);  // it returns to its own bin
  }
  CHECK(stat("allocated_bytes.all.current") == in_use);
  // However many stand in, little of what they hold lies idle.
  std::vector<void*> held;
  for (int i = 0; i < 200; i++) {
    use(64 * small);
    use(8 * small);
    held.push_back(allocate(small));
  }
  CHECK(stat("reserved_bytes.all.current") - reserved < static_cast<int64_t>(450 * small));
  for (void* const p : held) {
    deallocate(p, small);
  }
  CHECK(stat("allocated_bytes.all.current") == in_use);
  empty_cache();
  CHECK(stat("reserved_bytes.all.current") <= reserved);
}

RL_TEST(the_cache_has_a_limit) {
  empty_cache();
  const size_t before = cache_limit();
  set_cache_limit(size_t{20} << 20);
  const int64_t in_use = stat("allocated_bytes.all.current");
  std::vector<void*> blocks;
  for (int i = 0; i < 10; i++) {
    blocks.push_back(allocate(size_t{8} << 20));
  }
  CHECK(stat("allocated_bytes.all.current") == in_use + (80 << 20));
  CHECK(stat("allocated_bytes.all.peak") >= in_use + (80 << 20));
  const int64_t reserved = stat("reserved_bytes.all.current");
  for (void* p : blocks) {
    deallocate(p, size_t{8} << 20);
  }
  CHECK(stat("allocated_bytes.all.current") == in_use);
  CHECK(stat("reserved_bytes.all.current") == reserved - (64 << 20));
  set_cache_limit(before);
  empty_cache();
  CHECK(stat("reserved_bytes.large_pool.current") == stat("allocated_bytes.large_pool.current"));
}

RL_TEST(empty_cache_returns_small_memory) {
  empty_cache();
  const int64_t reserved = stat("reserved_bytes.small_pool.current");
  std::vector<void*> blocks;
  for (int i = 0; i < 100000; i++) {
    blocks.push_back(allocate(200));
  }
  CHECK(stat("reserved_bytes.small_pool.current") > reserved + (20 << 20));
  for (void* p : blocks) {
    deallocate(p, 200);
  }
  empty_cache();
  CHECK(stat("reserved_bytes.small_pool.current") <= reserved + (2 << 20));
}
#endif

RL_TEST(statistics) {
  const int64_t blocks = stat("allocation.all.current");
  const int64_t asked = stat("requested_bytes.all.current");
  const int64_t total = stat("allocation.all.allocated");
  std::vector<void*> list;
  for (int i = 0; i < 1000; i++) {
    list.push_back(allocate(70));
  }
  list.push_back(allocate(5000));
  CHECK(stat("allocation.all.current") == blocks + 1001);
  CHECK(stat("requested_bytes.all.current") == asked + 75000);
  CHECK(stat("allocation.all.allocated") == total + 1001);
  CHECK(stat("allocation.all.peak") >= stat("allocation.all.current"));
  for (int i = 0; i < 1000; i++) {
    deallocate(list[i], 70);
  }
  deallocate(list[1000], 5000);
  CHECK(stat("allocation.all.current") == blocks);
  CHECK(stat("requested_bytes.all.current") == asked);
  CHECK(stat("allocation.all.peak") >= blocks + 950);
  reset_peak_memory_stats();
  CHECK(stat("allocation.all.peak") == blocks);
  reset_accumulated_memory_stats();
  CHECK(stat("allocation.all.allocated") == 0);
  CHECK(stat("allocation.all.freed") == 0);
  CHECK(stat("allocation.all.current") == blocks);
  CHECK(memory_stats().size() == 9 * 12 + 6);
}

// Blocks wander between threads; each holds a pattern that must survive.
RL_TEST(many_threads) {
  const int64_t before = stat("allocation.all.current");
  constexpr int slots = 512;
  struct Slot {
    std::mutex mutex;
    char* p = nullptr;
    size_t n = 0;
    char tag = 0;
  };
  static Slot table[slots];
  std::atomic<int> broken{0};
  const auto work = [&](int seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < rounds_a_thread; i++) {
      Slot& s = table[random() % slots];
      std::lock_guard<std::mutex> lock(s.mutex);
      if (s.p != nullptr) {
        broken += s.p[0] != s.tag || s.p[s.n - 1] != s.tag;
        deallocate(s.p, s.n);
        s.p = nullptr;
      } else {
        s.n = 1 + random() % (random() % 8 != 0 ? 4096 : 3000000);
        s.tag = static_cast<char>(random());
        s.p = static_cast<char*>(allocate(s.n));
        s.p[0] = s.p[s.n - 1] = s.tag;
      }
    }
  };
  for (int round = 0; round < 3; round++) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) {
      threads.emplace_back(work, 10 * round + t);
    }
    for (auto& t : threads) {
      t.join();
    }
  }
  for (Slot& s : table) {
    deallocate(s.p, s.n);
  }
  CHECK(broken == 0);
  CHECK(stat("allocation.all.current") == before);
}

struct AtThreadEnd {
  void* p = nullptr;
  ~AtThreadEnd() { deallocate(p, 100); }
};
RL_TEST(blocks_freed_as_a_thread_ends) {
  const int64_t before = stat("allocation.all.current");
  std::thread([] {
    static thread_local AtThreadEnd last;
    last.p = allocate(100);
  }).join();
  CHECK(stat("allocation.all.current") == before);
}

RL_TEST(forked_child_allocates) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int t = 0; t < busy_threads; t++) {
    busy.emplace_back([&] {
      while (!stop) {
        deallocate(allocate(100000), 100000);
        deallocate(allocate(100), 100);
      }
    });
  }
  int bad = 0;
  for (int i = 0; i < 50; i++) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      for (size_t n : {100, 5000, 3000000}) {
        void* p = allocate(n);
        std::memset(p, 1, n);
        deallocate(p, n);
      }
      empty_cache();
      _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    bad += status != 0;
  }
  stop = true;
  for (auto& t : busy) {
    t.join();
  }
  CHECK(bad == 0);
}

RL_TEST(speed) {
  for (size_t n : {size_t{16}, size_t{1000}, size_t{4096}, size_t{40000}, size_t{40} << 20}) {
    const auto start = std::chrono::steady_clock::now();
    // What comes from the system takes sanitizers a hundred times as long.
    const int rounds = n > size_t{1} << 20 ? rounds_a_thread / 100 : 10 * rounds_a_thread;
    for (int i = 0; i < rounds; i++) {
      void* p = allocate(n);
      asm volatile("" : : "r"(p) : "memory");
      deallocate(p, n);
    }
    const std::chrono::duration<double, std::nano> t = std::chrono::steady_clock::now() - start;
    std::printf("     %zu bytes: %.1f ns a pair\n", n, t.count() / rounds);
  }
}

RL_TEST_MAIN()
