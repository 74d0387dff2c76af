// Storage on the CPU allocator, borrowed memory, and meta storage that has a size only.
#include <rushlight/storage.h>

#include <cstring>

#include "core/allocator.h"

namespace rushlight {

namespace {
void free_cpu(void* data, size_t nbytes, void*) { deallocate(data, nbytes); }
}  // namespace

Ref<StorageImpl> StorageImpl::allocate(size_t nbytes, Device device) {
  auto storage = Ref<StorageImpl>::steal(new StorageImpl());
  storage->device_ = device;
  storage->nbytes_ = nbytes;
  if (device.is_cpu()) {
    storage->data_ = rushlight::allocate(nbytes);
    storage->deleter_ = free_cpu;
  } else {
    RL_CHECK(device.is_meta(), "rushlight was built without CUDA: no memory on device ", device);
  }
  return storage;
}

Ref<StorageImpl> StorageImpl::borrow(void* data, size_t nbytes, Device device, Deleter deleter,
                                     void* context) {
  auto storage = Ref<StorageImpl>::steal(new StorageImpl());
  storage->device_ = device;
  storage->data_ = data;
  storage->nbytes_ = nbytes;
  storage->deleter_ = deleter;
  storage->context_ = context;
  storage->resizable_ = false;
  return storage;
}

void StorageImpl::release() const {
  if (drop()) {
    delete this;
  }
}

StorageImpl::~StorageImpl() {
  if (deleter_ != nullptr) {
    deleter_(data_, nbytes_, context_);
  }
}

void StorageImpl::resize(size_t nbytes) {
  RL_CHECK(resizable_, "Trying to resize storage that is not resizable");
  if (device_.is_meta()) {
    nbytes_ = nbytes;
    return;
  }
  void* fresh = rushlight::allocate(nbytes);
  const size_t kept = nbytes < nbytes_ ? nbytes : nbytes_;
  if (kept != 0) {
    std::memcpy(fresh, data_, kept);
  }
  if (deleter_ != nullptr) {
    deleter_(data_, nbytes_, context_);
  }
  data_ = fresh;
  nbytes_ = nbytes;
  deleter_ = free_cpu;
}

}  // namespace rushlight
