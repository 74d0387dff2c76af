// Storage: one block of memory, its size and its owner. Tensors are windows on it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include <rushlight/device.h>
#include <rushlight/ref.h>

namespace rushlight {

class Notebook;
class DataPtr;    // data_ptr.h
class Allocator;  // data_ptr.h

class RL_API StorageImpl : public RefCounted {
 public:
  using Deleter = void (*)(void* data, size_t nbytes, void* context);
  void release() const;
  // The address. Who takes it may read and write: what has been noted of this memory
  // (src/cpu/chain.h) is completed first.
  void* data() const {
    if (__builtin_expect(noted_.load(std::memory_order_acquire) != 0, 0)) {
      complete();
    }
    return data_;
  }
  void* mutable_data() const { return data(); }
  size_t nbytes() const { return nbytes_; }
  size_t sym_nbytes() const { return nbytes_; }
  void set_nbytes(size_t nbytes) { resize(nbytes); }
  Device device() const { return device_; }
  DeviceType device_type() const { return device_.type(); }
  // False for memory that somebody else owns (numpy arrays, mapped files).
  bool resizable() const { return resizable_; }
  // Grows or shrinks, keeping the contents; RuntimeError where not resizable.
  void resize(size_t nbytes);
  // Goes on in the memory of another storage, at least as large and on the CPU as well, with what
  // it holds; the size is then fixed. Memory that was fixed before lives on until it ends.
  void move_to(Ref<StorageImpl> place);
  // From now on resizing raises: somebody outside (a numpy array) holds the address.
  void fix_size() {
    resizable_ = false;
    expose();
  }
  // Somebody outside may read and write from now on without asking: nothing may be noted.
  void expose() {
    data();
    exposed_.store(true, std::memory_order_relaxed);
  }
  bool exposed() const { return exposed_.load(std::memory_order_relaxed); }
  // The number of the transform (autograd.h) that was the latest when this was made, or that took
  // it over as an argument: what a function works on that is older is captured from outside.
  uint32_t transform_number() const { return birth_.load(std::memory_order_relaxed); }
  void set_transform_number(uint32_t transform) {
    birth_.store(transform, std::memory_order_relaxed);
  }

  // Uninitialised memory of the device's allocator. Meta storage has a size and no memory.
  static Ref<StorageImpl> allocate(size_t nbytes, Device device);
  // The same, of the CPU's allocator when the address is first taken.
  static Ref<StorageImpl> allocate_later(size_t nbytes);
  // Borrowed memory; `deleter` (may be null) runs when the last tensor is gone.
  static Ref<StorageImpl> borrow(void* data, size_t nbytes, Device device, Deleter deleter,
                                 void* context);

 private:
  friend class Notebook;
  StorageImpl();
  ~StorageImpl();
  void complete() const;
  void forget() const;  // it ends, noted or not
  void take_memory() const;
  mutable void* data_ = nullptr;
  size_t nbytes_ = 0;
  mutable Deleter deleter_ = nullptr;
  void* context_ = nullptr;
  Device device_;
  bool resizable_ = true;
  std::atomic<bool> exposed_ = false;
  std::atomic<uint32_t> birth_;
  // Usually 0. Low half: how many noted steps' chains read this memory. High half: the number of
  // the notebook that will write it, or `later` where it has yet to be allocated.
  static constexpr uint32_t one_writer = 1 << 16;
  static constexpr uint32_t later = 0xFFFFU;
  mutable std::atomic<uint32_t> noted_ = 0;
};

// The handle of a storage, with libtorch's names of what it knows.
class RL_API Storage : public Ref<StorageImpl> {
 public:
  using Ref::Ref;
  Storage(Ref<StorageImpl> storage) : Ref(std::move(storage)) {}
  struct use_byte_size_t {};
  // New memory, of the allocator where one is named, and memory that comes with its owner.
  Storage(use_byte_size_t, size_t nbytes, Allocator* allocator = nullptr, bool resizable = false);
  Storage(use_byte_size_t, size_t nbytes, DataPtr data, Allocator* allocator = nullptr,
          bool resizable = false);

  void* data() const { return get()->data(); }
  void* mutable_data() const { return data(); }
  size_t nbytes() const { return get()->nbytes(); }
  size_t sym_nbytes() const { return nbytes(); }
  void set_nbytes(size_t nbytes) const { get()->resize(nbytes); }
  bool resizable() const { return get()->resizable(); }
  Device device() const { return get()->device(); }
  DeviceType device_type() const { return device().type(); }
  StorageImpl* unsafeGetStorageImpl() const { return get(); }
  size_t use_count() const { return static_cast<size_t>(get()->use_count()); }
  bool unique() const { return use_count() == 1; }
  bool is_alias_of(const Storage& other) const { return *this == other; }
  // Where the memory is, as libtorch's DataPtr says it; the storage keeps owning it.
  struct Pointer {
    void* address;
    Device on;
    void* get() const { return address; }
    Device device() const { return on; }
    explicit operator bool() const { return address != nullptr; }
  };
  const Pointer data_ptr() const { return {data(), device()}; }
  const Pointer mutable_data_ptr() const { return data_ptr(); }
};

// A file as memory, all of it where nbytes is 0. Shared, writes go to the file, which is made or
// made longer where it is too short; else they stay with the memory. RuntimeError.
RL_API Storage map_file(const std::string& path, bool shared, int64_t nbytes);

// The number of a transform that begins: storages made from now on are born within it.
RL_API uint32_t next_transform();

}  // namespace rushlight
