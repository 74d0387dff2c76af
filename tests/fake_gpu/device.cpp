// A device "cuda" of host memory: librushlight_cuda.so as far as programs need it that are tested
// for what they do with a GPU, not for what its kernels compute, which are the CPU's.
//
// Ops run at once, on the host. Streams other than the first have threads: copies and fills are
// queued there, as collectives are (nccl.cpp), so that who does not wait for them reads what was
// there before.
#include "device.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "core/backend.h"
#include "core/interface_hash.h"
#include "core/op_support.h"
#include <rushlight/factories.h>

using namespace rushlight;

namespace fake_gpu {

namespace {

constexpr int devices = 4;

class Queue {
 public:
  Queue() : thread_([this] { run(); }) { thread_.detach(); }
  void push(std::function<void()> task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }
  bool is_idle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return tasks_.empty();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.empty(); });
  }

 private:
  void run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !tasks_.empty(); });
      const std::function<void()> task = tasks_.front();
      lock.unlock();
      task();
      lock.lock();
      tasks_.pop_front();  // only now: it is idle when all is done
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::thread thread_;
};

struct Mark {
  std::mutex mutex;
  std::condition_variable passed_changed;
  bool passed = false;
  void pass() {
    const std::lock_guard<std::mutex> lock(mutex);
    passed = true;
    passed_changed.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    passed_changed.wait(lock, [this] { return passed; });
  }
  bool query() {
    const std::lock_guard<std::mutex> lock(mutex);
    return passed;
  }
};
// What was recorded last; who waits keeps it.
struct EventSlot {
  std::shared_ptr<Mark> mark = std::make_shared<Mark>();
};

thread_local int current = 0;
thread_local uint64_t streams[devices] = {};

Queue* queue_of(uint64_t id) { return reinterpret_cast<Queue*>(id); }
std::shared_ptr<Mark> mark_of(void* event) { return static_cast<EventSlot*>(event)->mark; }

// The same memory as the host sees it.
Tensor on_host(const Tensor& t) {
  return t.is_cpu() ? t : from_blob(t.impl()->data(), t.sizes(), t.strides(), t.dtype());
}

Device of_either(const Tensor& a, const Tensor& b) { return a.is_cpu() ? b.device() : a.device(); }
void* stream_of_thread(Device device) { return reinterpret_cast<void*>(streams[device.index()]); }

void copy(const Tensor& to, const Tensor& from, bool) {
  void* const stream = stream_of_thread(of_either(to, from));
  enqueue(stream, [to, from] { copy_raw(on_host(to), on_host(from)); });
  if (stream != nullptr && (to.is_cpu() || from.is_cpu())) {
    queue_of(reinterpret_cast<uint64_t>(stream))->wait();
  }
}
void fill(const Tensor& to, const Scalar& value) {
  enqueue(stream_of_thread(to.device()), [to, value] { fill_raw(on_host(to), value); });
}

Device resolve(Device device) {
  const int index = device.has_index() ? device.index() : current;
  RL_CHECK(index < devices, "CUDA error: invalid device ordinal");
  return {device.type(), static_cast<int8_t>(index)};
}

uint64_t make_stream(Device, int) { return reinterpret_cast<uint64_t>(new Queue); }

const Backend backend = {
    .interface_hash = interface_hash,
    .kernels = cpu_kernels(),
    .device_count = [] { return devices; },
    .resolve = resolve,
    .current_device = [] { return current; },
    .set_device = [](Device device) { current = resolve(device).index(); },
    .synchronize = [](Device) {},
    .allocate = [](size_t bytes, Device) { return bytes == 0 ? nullptr : std::malloc(bytes); },
    .deallocate = [](void* data, size_t, void*) { std::free(data); },
    .copy = copy,
    .fill = fill,
    .allocate_pinned = [](size_t bytes) -> Storage {
      return StorageImpl::allocate(bytes, Device(kCPU));
    },
    .is_pinned = [](const void*) { return false; },
    .streams =
        {
            .make = make_stream,
            .current = [](Device device) { return streams[device.index()]; },
            .set_current = [](Device device, uint64_t id) { streams[device.index()] = id; },
            .query = [](Device, uint64_t id) { return id == 0 || queue_of(id)->is_idle(); },
            .synchronize =
                [](Device, uint64_t id) {
                  if (id != 0) {
                    queue_of(id)->wait();
                  }
                },
            .wait =
                [](Device, uint64_t id, void* event) {
                  enqueue(reinterpret_cast<void*>(id), [mark = mark_of(event)] { mark->wait(); });
                },
            .record_use = [](Device, uint64_t, void*) {},
        },
    .events =
        {
            .make = [](Device, bool, bool) -> void* { return new EventSlot; },
            .destroy = [](void* event) { delete static_cast<EventSlot*>(event); },
            .record =
                [](Device, void* event, uint64_t id) {
                  auto mark = std::make_shared<Mark>();
                  static_cast<EventSlot*>(event)->mark = mark;
                  enqueue(reinterpret_cast<void*>(id), [mark] { mark->pass(); });
                },
            .query = [](void* event) { return mark_of(event)->query(); },
            .synchronize = [](void* event) { mark_of(event)->wait(); },
            .elapsed = [](void*, void*) { return 1.0; },
        },
};

}  // namespace

void enqueue(void* stream, std::function<void()> task) {
  if (stream == nullptr) {
    task();
  } else {
    static_cast<Queue*>(stream)->push(std::move(task));
  }
}

}  // namespace fake_gpu

extern "C" {
RL_API const Backend* rushlight_backend() { return &fake_gpu::backend; }
RL_API const char* rushlight_cuda_error() { return ""; }
RL_API int rushlight_cuda_device_count() { return fake_gpu::devices; }
RL_API int rushlight_cuda_require() { return 0; }
RL_API int rushlight_cuda_toolkit_version() { return 13000; }
RL_API const char* rushlight_cuda_memory_stats(int) { return ""; }
RL_API const char* rushlight_cuda_column() { return ""; }
RL_API const char* rushlight_cuda_arch_list() { return ""; }
}
