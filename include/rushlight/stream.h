// Streams, queues of work on a device, and events, marks in them. Work on different streams may run
// at the same time; on one it runs in order. The CPU has one stream, whose work is done when its
// function returns, and its events have always passed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <rushlight/device.h>
#include <rushlight/export.h>
#include <rushlight/storage.h>

namespace rushlight {

class Event;
class Node;

class RL_API Stream {
 public:
  Stream() = default;  // the CPU's
  // The device's own number of a stream; 0 is the one that is current at first.
  Stream(Device device, uint64_t id) : device_(device), id_(id) {}
  // One of the device's pool; with a negative priority its work goes first.
  static Stream make(Device device, int priority = 0);
  // The one that this thread queues work on.
  static Stream current(Device device);

  Device device() const { return device_; }
  uint64_t id() const { return id_; }
  bool query() const;  // whether all that is queued is done
  void synchronize() const;
  // Work queued from now on waits for the event, or for all that `other` has queued so far.
  void wait(const Event& event) const;
  void wait(const Stream& other) const;
  // The memory is used here too: once its tensors are gone it is kept until that work is done.
  void record_use(const Storage& storage) const;
  friend bool operator==(const Stream& a, const Stream& b) {
    return a.device_ == b.device_ && a.id_ == b.id_;
  }
  friend bool operator!=(const Stream& a, const Stream& b) { return !(a == b); }

 private:
  Device device_;
  uint64_t id_ = 0;
};

// Makes a stream the current one of this thread for its device.
RL_API void set_current_stream(const Stream& stream);

// Those of this thread that are not their device's first, for another thread to go on where this
// one is.
RL_API std::vector<Stream> current_streams();

// Makes a stream, and its device, current for a scope.
class RL_API StreamGuard {
 public:
  explicit StreamGuard(const Stream& stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  int device_before_ = 0;
  Stream before_;
};

// Copies are handles on the same mark. Made on its device when it is first recorded.
class RL_API Event {
 public:
  struct Options {
    bool timing = false;    // whether `elapsed` may be asked
    bool blocking = false;  // whether a host that waits sleeps
  };
  Event() : Event(Options()) {}
  explicit Event(Options options);
  // Marks the end of what the stream has queued.
  void record(const Stream& stream) const;
  bool is_recorded() const;
  bool query() const;  // whether everything before the mark is done
  void synchronize() const;
  // Milliseconds from this mark to another. ValueError unless both are recorded and timed.
  double elapsed(const Event& end) const;
  void* handle() const;  // the device's own; null before the first record

 private:
  friend class Stream;
  struct Mark;
  std::shared_ptr<Mark> mark_;
};

// Where the backward of a node runs: the stream that was current when its op ran, the CPU's where
// its outputs lie there.
RL_API Stream stream_of(const Node& node);

// Waits until the device has done all its work.
RL_API void synchronize(Device device);
// The device of a kind that is current on this thread.
RL_API int current_device(DeviceType type);
RL_API void set_current_device(Device device);
// How many devices of a kind this machine and installation have.
RL_API int64_t device_count(DeviceType type);

}  // namespace rushlight
