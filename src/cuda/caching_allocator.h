// The caching allocator of one device: memory that is freed stays here for reuse, since asking the
// driver for memory makes the host wait for the device. It knows the device through DeviceMemory
// only, so that tests/cpp/test_cuda_host.cpp runs it over a fake one.
//
// Requests are rounded to 512 bytes. Those up to 1 MiB are cut from segments of 2 MiB, those below
// 10 MiB from segments of 20 MiB, larger ones get segments of their own, rounded to 2 MiB. A block
// belongs to the stream that was current when it was taken and is reused on that stream at once;
// streams that used it besides (`use`) delay its reuse until what they had queued is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rushlight::cuda {

using StreamHandle = void*;
using EventHandle = void*;

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual void* allocate(size_t bytes) = 0;  // null where there is none left
  virtual void release(void* p) = 0;
  // Marks the end of what is queued on a stream so far; `is_done` asks, `wait` waits.
  virtual EventHandle record(StreamHandle stream) = 0;
  virtual bool is_done(EventHandle event) = 0;
  virtual void wait(EventHandle event) = 0;
  virtual void drop(EventHandle event) = 0;
};

class CachingAllocator {
 public:
  explicit CachingAllocator(DeviceMemory& memory) : memory_(memory) {}
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // Null where the device has no room even after everything cached went back; null for 0 bytes.
  void* allocate(size_t bytes, StreamHandle stream);
  void free(void* p);
  // The block was handed to work on this stream, too.
  void use(void* p, StreamHandle stream);
  // Gives all segments that nobody holds a part of back to the driver.
  void empty_cache();

  // Under PyTorch's names, in its order.
  std::vector<std::pair<std::string, int64_t>> stats();
  void reset_peaks();
  void reset_totals();

 private:
  struct Block {
    char* data = nullptr;
    size_t size = 0;
    size_t requested = 0;
    StreamHandle stream = nullptr;
    bool is_small = false;
    bool taken = false;
    int waiting = 0;          // events that must be done before it is free
    Block* before = nullptr;  // its neighbours in the segment
    Block* after = nullptr;
    std::set<StreamHandle> uses;  // other streams
  };
  struct BySize {
    bool operator()(const Block* a, const Block* b) const;
  };
  using Pool = std::set<Block*, BySize>;
  struct Count {
    int64_t current = 0, peak = 0, allocated = 0, freed = 0;
    void add(int64_t n);
  };
  struct Counts {  // all, small pool, large pool
    Count kinds[3];
    void add(bool is_small, int64_t n);
  };

  Pool& pool_of(const Block& b) { return b.is_small ? small_ : large_; }
  Block* find_cached(size_t size, bool is_small, StreamHandle stream);
  Block* make_segment(size_t size, bool is_small, StreamHandle stream);
  void split(Block* block, size_t size);
  void make_free(Block* block);
  Block* merge(Block* a, Block* b);
  void collect_done(bool wait);
  void release_cached();
  void release_pool(Pool& pool);

  DeviceMemory& memory_;
  std::mutex mutex_;
  Pool small_;
  Pool large_;
  std::unordered_map<void*, Block*> taken_;
  std::deque<std::pair<EventHandle, Block*>> pending_;
  Counts allocation_, segment_, active_, inactive_split_;
  Counts allocated_bytes_, reserved_bytes_, active_bytes_, inactive_split_bytes_, requested_bytes_;
  int64_t retries_ = 0, failures_ = 0, device_allocations_ = 0, device_frees_ = 0;
};

}  // namespace rushlight::cuda
