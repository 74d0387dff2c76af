#include "cuda/streams.h"

#include <mutex>

#include "cuda/memory.h"
#include "cuda/runtime.h"

namespace rushlight::cuda {
namespace {

cudaStream_t as_stream(uint64_t id) { return reinterpret_cast<cudaStream_t>(id); }
uint64_t as_id(cudaStream_t stream) { return reinterpret_cast<uint64_t>(stream); }
cudaEvent_t as_event(void* event) { return static_cast<cudaEvent_t>(event); }

// Whether work is done, of the status that asking gave.
bool is_done(cudaError_t status) {
  if (status == cudaErrorNotReady) {
    (void)cudaGetLastError();
    return false;
  }
  check(status);
  return true;
}

// Pools of streams: each call takes the next of 32.
uint64_t make_stream(Device device, int priority) {
  constexpr int count = 32;
  static std::mutex mutex;
  static cudaStream_t streams[128][2][count];
  static unsigned next[128][2];
  const std::lock_guard<std::mutex> lock(mutex);
  const int at = device.index();
  const int high = priority < 0 ? 1 : 0;
  cudaStream_t& stream = streams[at][high][next[at][high]++ % count];
  if (stream == nullptr) {
    const DeviceGuard guard(device);
    int least = 0;
    int greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    check(
        cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, high != 0 ? greatest : least));
  }
  return as_id(stream);
}

uint64_t current(Device device) { return as_id(current_stream(device.index())); }
void set_current(Device device, uint64_t stream) {
  set_current_stream(device.index(), as_stream(stream));
}
bool query_stream(Device device, uint64_t stream) {
  const DeviceGuard guard(device);
  return is_done(cudaStreamQuery(as_stream(stream)));
}
void synchronize_stream(Device device, uint64_t stream) {
  const DeviceGuard guard(device);
  check(cudaStreamSynchronize(as_stream(stream)));
}
void wait(Device device, uint64_t stream, void* event) {
  const DeviceGuard guard(device);
  check(cudaStreamWaitEvent(as_stream(stream), as_event(event), 0));
}
void record_stream(Device device, uint64_t stream, void* memory) {
  record_use(memory, device, as_stream(stream));
}

void* make_event(Device device, bool timing, bool blocking) {
  const DeviceGuard guard(device);
  const unsigned flags = (timing ? 0u : unsigned{cudaEventDisableTiming}) |
                         (blocking ? unsigned{cudaEventBlockingSync} : 0u);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, flags));
  return event;
}
void destroy_event(void* event) { (void)cudaEventDestroy(as_event(event)); }
void record_event(Device device, void* event, uint64_t stream) {
  const DeviceGuard guard(device);
  check(cudaEventRecord(as_event(event), as_stream(stream)));
}
bool query_event(void* event) { return is_done(cudaEventQuery(as_event(event))); }
void synchronize_event(void* event) { check(cudaEventSynchronize(as_event(event))); }
double elapsed(void* start, void* end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, as_event(start), as_event(end)));
  return milliseconds;
}

}  // namespace

const Backend::Streams stream_functions = {
    .make = make_stream,
    .current = current,
    .set_current = set_current,
    .query = query_stream,
    .synchronize = synchronize_stream,
    .wait = wait,
    .record_use = record_stream,
};

const Backend::Events event_functions = {
    .make = make_event,
    .destroy = destroy_event,
    .record = record_event,
    .query = query_event,
    .synchronize = synchronize_event,
    .elapsed = elapsed,
};

void synchronize(Device device) {
  const DeviceGuard guard(device);
  check(cudaDeviceSynchronize());
}

void set_current_device(Device device) { set_device(device.index()); }

}  // namespace rushlight::cuda
