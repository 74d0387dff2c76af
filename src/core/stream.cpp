// Streams and events on what a device brings (core/backend.h); the CPU answers trivially.
#include <rushlight/stream.h>

#include <utility>

#include "core/backend.h"

namespace rushlight {
namespace {

// Null for devices without queues.
const Backend* queues_of(Device device) {
  return device.is_cpu() || device.is_meta() ? nullptr : &backend_of(device.type());
}

}  // namespace

Stream Stream::make(Device device, int priority) {
  const Backend* const backend = queues_of(device);
  if (backend == nullptr) {
    return {device, 0};
  }
  const Device place = resolve_device(device);
  return {place, backend->streams.make(place, priority)};
}

Stream Stream::current(Device device) {
  const Backend* const backend = queues_of(device);
  if (backend == nullptr) {
    return {device, 0};
  }
  const Device place = resolve_device(device);
  return {place, backend->streams.current(place)};
}

bool Stream::query() const {
  const Backend* const backend = queues_of(device_);
  return backend == nullptr || backend->streams.query(device_, id_);
}

void Stream::synchronize() const {
  if (const Backend* const backend = queues_of(device_)) {
    backend->streams.synchronize(device_, id_);
  }
}

void Stream::wait(const Event& event) const {
  const Backend* const backend = queues_of(device_);
  if (!event.is_recorded()) {
    return;
  }
  if (backend == nullptr) {  // the CPU's work is what the host does from now on
    event.synchronize();
  } else if (event.handle() != nullptr) {
    backend->streams.wait(device_, id_, event.handle());
  }
}

void Stream::wait(const Stream& other) const {
  if (!(*this == other)) {
    const Event event;
    event.record(other);
    wait(event);
  }
}

void Stream::record_use(const Storage& storage) const {
  const Backend* const backend = queues_of(device_);
  if (backend != nullptr && storage->data() != nullptr) {
    backend->streams.record_use(device_, id_, storage->data());
  }
}

void set_current_stream(const Stream& stream) {
  if (const Backend* const backend = queues_of(stream.device())) {
    backend->streams.set_current(stream.device(), stream.id());
  }
}

std::vector<Stream> current_streams() {
  std::vector<Stream> streams;
  for (int i = 0; i < num_device_types; i++) {
    const auto type = static_cast<DeviceType>(i);
    const Backend* const backend = loaded_backend(type);
    const int devices = backend == nullptr ? 0 : backend->device_count();
    for (int d = 0; d < devices; d++) {
      const Device device(type, static_cast<int8_t>(d));
      if (const uint64_t id = backend->streams.current(device); id != 0) {
        streams.emplace_back(device, id);
      }
    }
  }
  return streams;
}

StreamGuard::StreamGuard(const Stream& stream) : before_(stream.device(), 0) {
  if (const Backend* const backend = queues_of(stream.device())) {
    device_before_ = backend->current_device();
    before_ = Stream::current(stream.device());
    backend->set_device(stream.device());
    set_current_stream(stream);
  }
}

StreamGuard::~StreamGuard() {
  if (const Backend* const backend = queues_of(before_.device())) {
    set_current_stream(before_);
    backend->set_device(Device(before_.device().type(), static_cast<int8_t>(device_before_)));
  }
}

// ---- events ----

struct Event::Mark {
  Options options;
  const Backend* backend = nullptr;  // of what it was recorded on; null for the CPU
  Device device;
  void* handle = nullptr;
  bool recorded = false;
  explicit Mark(Options o) : options(o) {}
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark() {
    if (handle != nullptr) {
      backend->events.destroy(handle);
    }
  }
};

Event::Event(Options options) : mark_(std::make_shared<Mark>(options)) {}

void Event::record(const Stream& stream) const {
  const Backend* const backend = queues_of(stream.device());
  Mark& mark = *mark_;
  RL_CHECK(!mark.recorded || mark.device == stream.device(), "Event device ", mark.device,
           " does not match recording stream's device ", stream.device(), ".");
  if (backend != nullptr) {
    if (mark.handle == nullptr) {
      mark.handle =
          backend->events.make(stream.device(), mark.options.timing, mark.options.blocking);
    }
    backend->events.record(stream.device(), mark.handle, stream.id());
  }
  mark.backend = backend;
  mark.device = stream.device();
  mark.recorded = true;
}

bool Event::is_recorded() const { return mark_->recorded; }
void* Event::handle() const { return mark_->handle; }

bool Event::query() const {
  return mark_->handle == nullptr || mark_->backend->events.query(mark_->handle);
}

void Event::synchronize() const {
  if (mark_->handle != nullptr) {
    mark_->backend->events.synchronize(mark_->handle);
  }
}

double Event::elapsed(const Event& end) const {
  RL_CHECK_VALUE(mark_->options.timing && end.mark_->options.timing,
                 "Both events must be created with argument 'enable_timing=True'.");
  RL_CHECK_VALUE(is_recorded() && end.is_recorded(),
                 "Both events must be recorded before calculating elapsed time.");
  RL_CHECK_VALUE(mark_->device == end.mark_->device, "Both events must be recorded on one device, ",
                 "but these are of ", mark_->device, " and ", end.mark_->device);
  RL_CHECK_VALUE(mark_->handle != nullptr, "events of ", mark_->device, " have no times");
  return mark_->backend->events.elapsed(mark_->handle, end.mark_->handle);
}

// ---- devices ----

void synchronize(Device device) {
  if (const Backend* const backend = queues_of(device)) {
    backend->synchronize(resolve_device(device));
  }
}

int current_device(DeviceType type) {
  const Backend* const backend = queues_of(Device(type));
  return backend == nullptr ? 0 : backend->current_device();
}

void set_current_device(Device device) {
  if (const Backend* const backend = queues_of(device)) {
    backend->set_device(resolve_device(device));
  }
}

}  // namespace rushlight
