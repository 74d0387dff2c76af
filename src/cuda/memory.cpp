#include "cuda/memory.h"

#include <array>
#include <map>
#include <mutex>
#include <set>

#include "cuda/caching_allocator.h"
#include "cuda/runtime.h"

namespace rushlight::cuda {

namespace {

// ---- what the caching allocators stand on ----

class GpuMemory : public DeviceMemory {
 public:
  explicit GpuMemory(int device) : device_(device) {}
  void* allocate(size_t bytes) override {
    const DeviceGuard guard(Device(kCUDA, static_cast<int8_t>(device_)));
    void* p = nullptr;
    const cudaError_t status = cudaMalloc(&p, bytes);
    if (status == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      return nullptr;
    }
    check(status);
    return p;
  }
  void release(void* p) override { (void)cudaFree(p); }
  EventHandle record(StreamHandle stream) override {
    return record_on(device_, static_cast<cudaStream_t>(stream));
  }
  bool is_done(EventHandle event) override {
    const cudaError_t status = cudaEventQuery(static_cast<cudaEvent_t>(event));
    if (status == cudaErrorNotReady) {
      (void)cudaGetLastError();
      return false;
    }
    return true;
  }
  void wait(EventHandle event) override {
    (void)cudaEventSynchronize(static_cast<cudaEvent_t>(event));
  }
  void drop(EventHandle event) override { (void)cudaEventDestroy(static_cast<cudaEvent_t>(event)); }

 protected:
  // Null where the device can do no more: after a failed kernel, or when the driver has gone at the
  // end of the process. Tensors are freed then, too, and freeing raises nothing.
  static EventHandle record_on(int device, cudaStream_t stream) {
    int before = 0;
    cudaEvent_t event = nullptr;
    bool fine = cudaGetDevice(&before) == cudaSuccess && cudaSetDevice(device) == cudaSuccess;
    if (fine) {
      fine = cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess &&
             cudaEventRecord(event, stream) == cudaSuccess;
      (void)cudaSetDevice(before);
    }
    return fine ? event : nullptr;
  }

 private:
  int device_;
};

// A stream and the device that it belongs to, as a handle: pinned blocks may be used on any device.
struct Place {
  int device;
  cudaStream_t stream;
  auto operator<=>(const Place&) const = default;
};
StreamHandle handle_of(const Place& place) {
  static std::mutex mutex;
  static auto* places = new std::set<Place>();
  const std::lock_guard<std::mutex> lock(mutex);
  return const_cast<Place*>(&*places->insert(place).first);
}

class PinnedMemory : public GpuMemory {
 public:
  PinnedMemory() : GpuMemory(0) {}
  EventHandle record(StreamHandle stream) override {
    const Place& place = *static_cast<const Place*>(stream);
    return record_on(place.device, place.stream);
  }
  void* allocate(size_t bytes) override {
    void* p = nullptr;
    const cudaError_t status = cudaHostAlloc(&p, bytes, cudaHostAllocPortable);
    if (status == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      return nullptr;
    }
    check(status);
    return p;
  }
  void release(void* p) override { (void)cudaFreeHost(p); }
};

// Neither is ever destroyed: tensors may be freed while the process ends, after the driver.
struct Gpu {
  explicit Gpu(int device) : memory(device), allocator(memory) {}
  GpuMemory memory;
  CachingAllocator allocator;
};
CachingAllocator& allocator_of(int device) {
  static std::mutex mutex;
  static std::array<Gpu*, 128> all{};
  const std::lock_guard<std::mutex> lock(mutex);
  Gpu*& gpu = all[static_cast<size_t>(device)];
  if (gpu == nullptr) {
    gpu = new Gpu(device);
  }
  return gpu->allocator;
}

// PinnedBlocks blocks are not bound to a stream: all are taken on none, and wait for those that
// used them.
struct PinnedBlocks {
  PinnedMemory memory;
  CachingAllocator allocator{memory};
  std::mutex mutex;
  std::map<const char*, size_t> taken;  // start and size
};
PinnedBlocks& pinned_blocks() {
  static auto* all = new PinnedBlocks();
  return *all;
}
StreamHandle no_stream() {
  static char mark;
  return &mark;
}

void free_pinned(void* p, size_t, void*) {
  {
    const std::lock_guard<std::mutex> lock(pinned_blocks().mutex);
    pinned_blocks().taken.erase(static_cast<const char*>(p));
  }
  pinned_blocks().allocator.free(p);
}

std::string size_text(size_t bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 3) {
    value /= 1024;
    unit++;
  }
  char text[64];
  (void)snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
  return text;
}

}  // namespace

void* allocate(size_t bytes, Device device) {
  require_device();
  if (bytes == 0) {
    return nullptr;
  }
  CachingAllocator& allocator = allocator_of(device.index());
  void* const p = allocator.allocate(bytes, current_stream(device.index()));
  if (RL_UNLIKELY(p == nullptr)) {
    const DeviceGuard guard(device);
    size_t free = 0;
    size_t total = 0;
    (void)cudaMemGetInfo(&free, &total);
    int64_t allocated = 0;
    int64_t reserved = 0;
    for (const auto& [name, value] : allocator.stats()) {
      allocated = name == "allocated_bytes.all.current" ? value : allocated;
      reserved = name == "reserved_bytes.all.current" ? value : reserved;
    }
    throw OutOfMemoryError(str("CUDA out of memory. Tried to allocate ", size_text(bytes), ". GPU ",
                               static_cast<int>(device.index()), " has a total capacity of ",
                               size_text(total), " of which ", size_text(free),
                               " is free. Tensors hold ", size_text(static_cast<size_t>(allocated)),
                               "; ", size_text(static_cast<size_t>(reserved - allocated)),
                               " is cached for reuse."));
  }
  return p;
}

void deallocate(void* p, size_t, void* context) {
  if (p != nullptr) {
    allocator_of(static_cast<int>(reinterpret_cast<intptr_t>(context))).free(p);
  }
}

void record_use(void* p, Device device, cudaStream_t stream) {
  if (p != nullptr) {
    allocator_of(device.index()).use(p, stream);
  }
}

void empty_cache() {
  const int count = device_count();
  for (int i = 0; i < count; i++) {
    allocator_of(i).empty_cache();
  }
}

std::vector<std::pair<std::string, int64_t>> memory_stats(int device) {
  return allocator_of(device).stats();
}

void reset_memory_stats(int device, bool peaks) {
  if (peaks) {
    allocator_of(device).reset_peaks();
  } else {
    allocator_of(device).reset_totals();
  }
}

Storage allocate_pinned(size_t bytes) {
  require_device();
  void* const p = pinned_blocks().allocator.allocate(bytes, no_stream());
  RL_CHECK_AS(OutOfMemoryError, p != nullptr || bytes == 0,
              "no pinned memory left: tried to allocate ", size_text(bytes));
  if (p != nullptr) {
    const std::lock_guard<std::mutex> lock(pinned_blocks().mutex);
    pinned_blocks().taken.emplace(static_cast<const char*>(p), bytes);
  }
  return StorageImpl::borrow(p, bytes, Device(kCPU), free_pinned, nullptr);
}

namespace {
// The start of the pinned block that p lies in, or null.
const char* pinned_start(const void* p) {
  const std::lock_guard<std::mutex> lock(pinned_blocks().mutex);
  const auto& taken = pinned_blocks().taken;
  auto at = taken.upper_bound(static_cast<const char*>(p));
  if (at == taken.begin()) {
    return nullptr;
  }
  --at;
  return static_cast<const char*>(p) < at->first + at->second ? at->first : nullptr;
}
}  // namespace

bool is_pinned(const void* p) { return p != nullptr && pinned_start(p) != nullptr; }

void record_pinned_use(const void* p, int device, cudaStream_t stream) {
  if (const char* start = pinned_start(p)) {
    pinned_blocks().allocator.use(const_cast<char*>(start), handle_of({device, stream}));
  }
}

}  // namespace rushlight::cuda
