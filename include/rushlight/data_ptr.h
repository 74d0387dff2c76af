// Memory with its owner, and who gives it: c10::DataPtr and c10::Allocator.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include <rushlight/compat.h>

namespace rushlight {

// An address, and what to call with `context` when its owner ends.
class DataPtr {
 public:
  DataPtr() : DataPtr(nullptr, kCPU) {}
  DataPtr(void* data, Device device) : DataPtr(data, nullptr, nullptr, device) {}
  DataPtr(void* data, void* context, DeleterFnPtr deleter, Device device)
      : data_(data), context_(context, deleter != nullptr ? deleter : keep), device_(device) {}
  void* get() const { return data_; }
  void* mutable_get() { return data_; }
  void* operator->() const { return data_; }
  void* get_context() const { return context_.get(); }
  void* release_context() { return context_.release(); }
  DeleterFnPtr get_deleter() const { return context_.get_deleter(); }
  Device device() const { return device_; }
  void clear() {
    context_.reset();
    data_ = nullptr;
  }
  explicit operator bool() const { return data_ != nullptr || context_ != nullptr; }
  friend bool operator==(const DataPtr& a, std::nullptr_t) { return !a; }
  friend bool operator!=(const DataPtr& a, std::nullptr_t) { return static_cast<bool>(a); }

 private:
  static void keep(void*) {}
  void* data_;
  std::unique_ptr<void, DeleterFnPtr> context_;
  Device device_;
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual DataPtr allocate(size_t nbytes) = 0;
  // What gives memory of raw_allocate back; null where an address does not say how.
  virtual DeleterFnPtr raw_deleter() const { return nullptr; }
  virtual void copy_data(void* to, const void* from, size_t nbytes) const {
    default_copy_data(to, from, nbytes);
  }
  DataPtr clone(const void* data, size_t nbytes) {
    DataPtr copy = allocate(nbytes);
    copy_data(copy.mutable_get(), data, nbytes);
    return copy;
  }
  void* raw_allocate(size_t nbytes) {
    DataPtr out = allocate(nbytes);
    RL_CHECK(out.get() == out.get_context(), "raw_allocate: the memory is not its own context");
    return out.release_context();
  }
  void raw_deallocate(void* data) {
    const DeleterFnPtr deleter = raw_deleter();
    RL_CHECK(deleter != nullptr, "raw_deallocate: the allocator has no raw_deleter");
    deleter(data);
  }

 protected:
  void default_copy_data(void* to, const void* from, size_t nbytes) const {
    if (nbytes != 0) {
      std::memcpy(to, from, nbytes);
    }
  }
};

// Memory for the CPU, aligned as that of tensors is; free_cpu gives it back.
inline void* alloc_cpu(size_t nbytes) {
  constexpr size_t alignment = 64;
  if (nbytes == 0) {
    return nullptr;
  }
  void* const out = std::aligned_alloc(alignment, (nbytes + alignment - 1) / alignment * alignment);
  RL_CHECK_AS(OutOfMemoryError, out != nullptr, "not enough memory: ", nbytes, " bytes");
  return out;
}
inline void free_cpu(void* data) { std::free(data); }
class DefaultCPUAllocator : public Allocator {
 public:
  DataPtr allocate(size_t nbytes) override {
    void* const data = alloc_cpu(nbytes);
    return {data, data, &free_cpu, kCPU};
  }
  DeleterFnPtr raw_deleter() const override { return &free_cpu; }
};
inline Allocator* GetCPUAllocator() {
  static DefaultCPUAllocator allocator;
  return &allocator;
}
inline Allocator* getCPUAllocator() { return GetCPUAllocator(); }
inline Allocator* GetDefaultCPUAllocator() { return GetCPUAllocator(); }

namespace detail {
inline Ref<StorageImpl> storage_of(DataPtr data, size_t nbytes) {
  const auto release = [](void*, size_t, void* held) { delete static_cast<DataPtr*>(held); };
  const Device device = data.device();
  void* const address = data.get();
  return StorageImpl::borrow(address, nbytes, device, release, new DataPtr(std::move(data)));
}
}  // namespace detail
inline Storage::Storage(use_byte_size_t, size_t nbytes, Allocator* allocator, bool resizable)
    : Ref(allocator != nullptr ? detail::storage_of(allocator->allocate(nbytes), nbytes)
                               : StorageImpl::allocate(nbytes, kCPU)) {
  if (!resizable) {
    get()->fix_size();
  }
}
inline Storage::Storage(use_byte_size_t, size_t nbytes, DataPtr data, Allocator*, bool)
    : Ref(detail::storage_of(std::move(data), nbytes)) {}

}  // namespace rushlight
