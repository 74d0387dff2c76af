// What the CUDA column computes on the host, without a GPU: the caching allocator over a fake
// device, and the walk from an element's number to its offsets.
#include <map>
#include <random>
#include <vector>

#include "check.h"
#include "cuda/caching_allocator.cpp"
#include "cuda/offset.h"

using namespace rushlight;  // NOLINT

namespace {

constexpr size_t MiB = size_t{1} << 20;

// A device with so much memory; events are done when the test says so.
class FakeMemory : public cuda::DeviceMemory {
 public:
  explicit FakeMemory(size_t room) : room_(room) {}
  ~FakeMemory() override {
    for (const auto& [p, bytes] : held) {
      ::operator delete(p);
    }
  }
  void* allocate(size_t bytes) override {
    if (used + bytes > room_) {
      return nullptr;
    }
    used += bytes;
    allocations++;
    void* const p = ::operator new(bytes);
    held[p] = bytes;
    return p;
  }
  void release(void* p) override {
    used -= held.at(p);
    held.erase(p);
    ::operator delete(p);
  }
  cuda::EventHandle record(cuda::StreamHandle stream) override {
    recorded.push_back(stream);
    return new bool(false);
  }
  bool is_done(cuda::EventHandle event) override { return all_done || *static_cast<bool*>(event); }
  void wait(cuda::EventHandle event) override {
    waits++;
    *static_cast<bool*>(event) = true;
  }
  void drop(cuda::EventHandle event) override { delete static_cast<bool*>(event); }

  std::map<void*, size_t> held;
  std::vector<cuda::StreamHandle> recorded;
  size_t used = 0;
  int allocations = 0;
  int waits = 0;
  bool all_done = false;

 private:
  size_t room_;
};

int64_t stat(cuda::CachingAllocator& a, const char* name) {
  for (const auto& [key, value] : a.stats()) {
    if (key == name) {
      return value;
    }
  }
  throw std::runtime_error(name);
}

int stream_a;
int stream_b;

}  // namespace

RL_TEST(blocks_are_reused_on_their_stream) {
  FakeMemory memory(100 * MiB);
  cuda::CachingAllocator a(memory);
  CHECK(a.allocate(0, nullptr) == nullptr);
  void* const p = a.allocate(1000, nullptr);
  CHECK(p != nullptr && reinterpret_cast<uintptr_t>(p) % 8 == 0);
  CHECK(stat(a, "allocated_bytes.all.current") == 1024);
  CHECK(stat(a, "requested_bytes.all.current") == 1000);
  CHECK(stat(a, "reserved_bytes.small_pool.current") == 2 * static_cast<int64_t>(MiB));
  a.free(p);
  CHECK(stat(a, "allocated_bytes.all.current") == 0);
  CHECK(stat(a, "allocated_bytes.all.peak") == 1024);
  CHECK(a.allocate(600, nullptr) == p);
  CHECK(memory.allocations == 1);
  void* const other = a.allocate(600, &stream_a);  // another stream, another segment
  CHECK(other != nullptr && memory.allocations == 2);
  a.free(p);
  a.free(other);
  a.empty_cache();
  CHECK(memory.used == 0 && stat(a, "reserved_bytes.all.current") == 0);
  CHECK(stat(a, "num_device_alloc") == 2 && stat(a, "num_device_free") == 2);
}

RL_TEST(sizes_have_their_segments) {
  FakeMemory memory(1000 * MiB);
  cuda::CachingAllocator a(memory);
  void* const small = a.allocate(MiB, nullptr);
  CHECK(memory.used == 2 * MiB);
  void* const middle = a.allocate(MiB + 1, nullptr);
  CHECK(memory.used == 22 * MiB);
  void* const large = a.allocate(31 * MiB + 1, nullptr);
  CHECK(memory.used == 54 * MiB);
  CHECK(stat(a, "segment.small_pool.current") == 1 && stat(a, "segment.large_pool.current") == 2);
  for (void* p : {small, middle, large}) {
    a.free(p);
  }
  a.empty_cache();
  CHECK(memory.used == 0);
}

RL_TEST(neighbours_are_joined_again) {
  FakeMemory memory(100 * MiB);
  cuda::CachingAllocator a(memory);
  std::vector<char*> blocks;
  for (int i = 0; i < 16; i++) {
    blocks.push_back(static_cast<char*>(a.allocate(128 * 1024, nullptr)));
    CHECK(i == 0 || blocks[i] == blocks[0] + i * 128 * 1024);
  }
  CHECK(memory.allocations == 1);
  CHECK(stat(a, "inactive_split.all.current") == 0);
  for (int i = 1; i < 16; i += 2) {
    a.free(blocks[i]);
  }
  CHECK(stat(a, "inactive_split.all.current") == 8);
  a.empty_cache();  // parts of the segment are held
  CHECK(memory.used == 2 * MiB);
  for (int i = 0; i < 16; i += 2) {
    a.free(blocks[i]);
  }
  CHECK(stat(a, "inactive_split.all.current") == 0);
  CHECK(a.allocate(MiB, nullptr) == blocks[0]);
  CHECK(memory.allocations == 1);
}

RL_TEST(other_streams_delay_reuse) {
  FakeMemory memory(100 * MiB);
  cuda::CachingAllocator a(memory);
  void* const p = a.allocate(4096, &stream_a);
  a.use(p, &stream_a);  // its own stream: nothing to wait for
  a.use(p, &stream_b);
  a.use(p, &stream_b);
  a.free(p);
  CHECK(memory.recorded.size() == 1 && memory.recorded[0] == &stream_b);
  CHECK(stat(a, "active.all.current") == 1 && stat(a, "allocation.all.current") == 0);
  void* const q = a.allocate(4096, &stream_a);
  CHECK(q != p);
  memory.all_done = true;
  a.free(q);
  CHECK(a.allocate(4096, &stream_a) == p);
}

RL_TEST(no_room_gives_cached_memory_back_first) {
  FakeMemory memory(64 * MiB);
  cuda::CachingAllocator a(memory);
  void* const p = a.allocate(40 * MiB, &stream_a);
  a.use(p, &stream_b);
  a.free(p);
  void* const q = a.allocate(60 * MiB, &stream_b);  // waits for stream b, then p goes back
  CHECK(q != nullptr && memory.waits == 1);
  CHECK(stat(a, "num_alloc_retries") == 1 && stat(a, "num_ooms") == 0);
  CHECK(a.allocate(8 * MiB, nullptr) == nullptr);
  CHECK(a.allocate(SIZE_MAX, nullptr) == nullptr);
  CHECK(stat(a, "num_ooms") == 2);
  a.free(q);
  a.reset_peaks();
  a.reset_totals();
  CHECK(stat(a, "allocated_bytes.all.peak") == 0 && stat(a, "allocation.all.allocated") == 0);
}

RL_TEST(random_use_never_overlaps) {
  FakeMemory memory(512 * MiB);
  cuda::CachingAllocator a(memory);
  std::mt19937 random(1);
  std::map<char*, size_t> held;
  const cuda::StreamHandle streams[] = {nullptr, &stream_a, &stream_b};
  for (int i = 0; i < 20000; i++) {
    memory.all_done = random() % 2 == 0;
    if (held.size() < 60 && random() % 3 != 0) {
      const size_t bytes = 1 + random() % (random() % 4 == 0 ? 12 * MiB : 64 * 1024);
      char* const p = static_cast<char*>(a.allocate(bytes, streams[random() % 3]));
      if (p == nullptr) {
        continue;
      }
      const auto next = held.lower_bound(p);
      CHECK(next == held.end() || p + bytes <= next->first);
      CHECK(next == held.begin() || std::prev(next)->first + std::prev(next)->second <= p);
      held[p] = bytes;
      if (random() % 5 == 0) {
        a.use(p, streams[random() % 3]);
      }
    } else if (!held.empty()) {
      auto at = held.begin();
      std::advance(at, random() % held.size());
      a.free(at->first);
      held.erase(at);
    }
  }
  for (const auto& [p, bytes] : held) {
    a.free(p);
  }
  a.empty_cache();
  CHECK(memory.used == 0 && stat(a, "active_bytes.all.current") == 0);
  CHECK(stat(a, "inactive_split_bytes.all.current") == 0);
}

RL_TEST(division_by_multiplication) {
  std::mt19937 random(2);
  std::vector<uint32_t> divisors = {1, 2, 3, 5, 7, 10, 641, 65535, 65536, 2147483646, 2147483647};
  for (int i = 0; i < 500; i++) {
    divisors.push_back((1 + random() % 2147483647u) >> random() % 31);
  }
  for (uint32_t d : divisors) {
    d = d == 0 ? 1 : d;
    const cuda::Divider divider(d);
    CHECK(divider.divisor() == d);
    for (int i = 0; i < 200; i++) {
      const uint32_t n = (random() & 0x7fffffffu) >> random() % 31;
      CHECK(divider.divide(n) == n / d);
    }
    for (uint32_t n : {0u, 1u, d - 1, d & 0x7fffffffu, 2147483646u, 2147483647u}) {
      CHECK(divider.divide(n) == n / d);
    }
  }
}

RL_TEST(walks_give_offsets) {
  cuda::Walk<2> walk;
  const int64_t sizes[] = {3, 4, 5};
  const int64_t first[] = {4, 12, 48};
  const int64_t second[] = {-8, 0, 1000000000000};
  walk.ndim = 3;
  for (int d = 0; d < 3; d++) {
    walk.sizes[d] = cuda::Divider(static_cast<uint32_t>(sizes[d]));
    walk.strides[d][0] = first[d];
    walk.strides[d][1] = second[d];
  }
  walk.base[1] = 7;
  uint32_t element = 0;
  for (int64_t k = 0; k < 5; k++) {
    for (int64_t j = 0; j < 4; j++) {
      for (int64_t i = 0; i < 3; i++) {
        int64_t at[2];
        walk.offsets(element++, at);
        CHECK(at[0] == 4 * i + 12 * j + 48 * k);
        CHECK(at[1] == 7 - 8 * i + 1000000000000 * k);
      }
    }
  }
}

RL_TEST_MAIN()
