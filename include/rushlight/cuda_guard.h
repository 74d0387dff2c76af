// GPUs by libtorch's names: the current device and stream, guards of both, and the allocator's
// cache. Where there is no GPU all of these raise, but for counting the devices.
#pragma once

#include <optional>

#include <rushlight/device_cache.h>
#include <rushlight/stream.h>

struct CUstream_st;
using cudaStream_t = CUstream_st*;  // as CUDA's own headers declare it

namespace rushlight::cuda {

// RuntimeError, naming what was asked, unless there is a GPU.
inline void check_there_is_one(const char* asked) {
  RL_CHECK(device_count(kCUDA) > 0, asked,
           ": no CUDA-capable device, or an installation without CUDA");
}
inline int8_t current_device() {
  check_there_is_one("current_device");
  return static_cast<int8_t>(rushlight::current_device(kCUDA));
}
inline void set_device(int8_t index) {
  check_there_is_one("set_device");
  set_current_device(Device(kCUDA, index));
}
inline void device_synchronize() {
  check_there_is_one("device_synchronize");
  rushlight::synchronize(Device(kCUDA));
}

// A stream of a GPU.
class CUDAStream {
 public:
  enum Unchecked { UNCHECKED };
  CUDAStream(Unchecked, const Stream& stream) : stream_(stream) {}
  explicit CUDAStream(const Stream& stream) : stream_(stream) {
    RL_CHECK(stream.device().is_cuda(), "a stream of a CUDA device was expected, not one of ",
             stream.device());
  }
  operator Stream() const { return stream_; }
  operator cudaStream_t() const { return stream(); }
  const Stream& unwrap() const { return stream_; }
  cudaStream_t stream() const {
    return reinterpret_cast<cudaStream_t>(static_cast<uintptr_t>(stream_.id()));
  }
  uint64_t id() const { return stream_.id(); }
  Device device() const { return stream_.device(); }
  DeviceType device_type() const { return kCUDA; }
  int8_t device_index() const { return device().index(); }
  bool query() const { return stream_.query(); }
  void synchronize() const { stream_.synchronize(); }
  friend bool operator==(const CUDAStream& a, const CUDAStream& b) {
    return a.stream_ == b.stream_;
  }
  friend bool operator!=(const CUDAStream& a, const CUDAStream& b) { return !(a == b); }

 private:
  Stream stream_;
};

// Devices are named by their number; -1 is the current one.
inline Device device_numbered(int8_t index) {
  const int8_t current = current_device();
  return Device(kCUDA, index < 0 ? current : index);
}
inline CUDAStream getCurrentCUDAStream(int8_t index = -1) {
  return CUDAStream(Stream::current(device_numbered(index)));
}
inline CUDAStream getDefaultCUDAStream(int8_t index = -1) {
  return CUDAStream(Stream(device_numbered(index), 0));
}
inline CUDAStream getStreamFromPool(int priority, int8_t index = -1) {
  return CUDAStream(Stream::make(device_numbered(index), priority));
}
inline CUDAStream getStreamFromPool(bool high_priority = false, int8_t index = -1) {
  return getStreamFromPool(high_priority ? -1 : 0, index);
}
inline void setCurrentCUDAStream(const CUDAStream& stream) { set_current_stream(stream); }

// A mark in what a stream does; copies are handles on the same one.
class CUDAEvent {
 public:
  // Flags as CUDA has them: 1: a host that waits sleeps; 2: no times are kept.
  explicit CUDAEvent(unsigned flags = 2) : event_({(flags & 2u) == 0, (flags & 1u) != 0}) {}
  void record() { record(getCurrentCUDAStream()); }
  void record(const CUDAStream& stream) { event_.record(stream); }
  void recordOnce(const CUDAStream& stream) {
    if (!isCreated()) {
      record(stream);
    }
  }
  // What the stream is given from now on waits for the mark.
  void block(const CUDAStream& stream) { stream.unwrap().wait(event_); }
  bool isCreated() const { return event_.is_recorded(); }
  bool query() const { return event_.query(); }
  void synchronize() const { event_.synchronize(); }
  // Milliseconds from this mark to another.
  float elapsed_time(const CUDAEvent& end) const {
    return static_cast<float>(event_.elapsed(end.event_));
  }

 private:
  Event event_;
};

// Makes a stream, and its device, current for a scope.
class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(const Stream& stream)
      : stream_(stream), before_(getCurrentCUDAStream(stream.device().index())), guard_(stream) {}
  CUDAStream current_stream() const { return stream_; }
  CUDAStream original_stream() const { return before_; }
  Device current_device() const { return stream_.device(); }

 private:
  CUDAStream stream_;
  CUDAStream before_;
  StreamGuard guard_;
};

// Makes a device current for a scope; later ones too, by set_device and set_index.
class CUDAGuard {
 public:
  explicit CUDAGuard(int8_t index) : before_(kCUDA, cuda::current_device()), now_(before_) {
    set_index(index);
  }
  explicit CUDAGuard(Device device) : before_(kCUDA, cuda::current_device()), now_(before_) {
    set_device(device);
  }
  ~CUDAGuard() { set_current_device(before_); }
  CUDAGuard(const CUDAGuard&) = delete;
  CUDAGuard& operator=(const CUDAGuard&) = delete;
  void set_index(int8_t index) { set_device(device_numbered(index)); }
  void set_device(Device device) {
    RL_CHECK(device.is_cuda(), "a CUDA device was expected, not ", device);
    now_ = device.has_index() ? device : before_;
    set_current_device(now_);
  }
  void reset_device(Device device) { set_device(device); }
  Device original_device() const { return before_; }
  Device current_device() const { return now_; }

 private:
  Device before_;
  Device now_;
};

// The same, of no device at first.
class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<Device> device) {
    if (device) {
      set_device(*device);
    }
  }
  explicit OptionalCUDAGuard(std::optional<int8_t> index) {
    if (index) {
      set_index(*index);
    }
  }
  void set_device(Device device) {
    guard_ ? guard_->set_device(device) : static_cast<void>(guard_.emplace(device));
  }
  void set_index(int8_t index) {
    guard_ ? guard_->set_index(index) : static_cast<void>(guard_.emplace(index));
  }
  std::optional<Device> original_device() const {
    return guard_ ? std::optional(guard_->original_device()) : std::nullopt;
  }
  std::optional<Device> current_device() const {
    return guard_ ? std::optional(guard_->current_device()) : std::nullopt;
  }
  void reset() { guard_.reset(); }

 private:
  std::optional<CUDAGuard> guard_;
};

namespace CUDACachingAllocator {
// Gives memory that no tensor uses back to the driver; without a GPU there is none.
inline void emptyCache() { empty_device_cache(kCUDA); }
}  // namespace CUDACachingAllocator

}  // namespace rushlight::cuda
