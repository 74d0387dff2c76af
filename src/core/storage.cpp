// Storage on a device's allocator, borrowed memory, and meta storage that has a size only.
#include <rushlight/storage.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "core/allocator.h"
#include "core/allowance.h"
#include "core/backend.h"
#include "core/small_blocks.h"
#include "core/weak_storage.h"

namespace rushlight {

namespace {
void free_cpu(void* data, size_t nbytes, void*) { deallocate(data, nbytes); }

// On one device beside the CPU, by way of tensors of bytes over them.
void copy_bytes(const StorageImpl& to, const StorageImpl& from, size_t n) {
  const auto bytes = [n](const StorageImpl& s) {
    auto impl = TensorImpl::make(StorageImpl::borrow(s.data(), n, s.device(), nullptr, nullptr),
                                 kByte, s.device());
    impl->set_sizes_contiguous({static_cast<int64_t>(n)});
    return Tensor(std::move(impl));
  };
  backend_of(to.device().type()).copy(bytes(to), bytes(from), false);
}
}  // namespace

namespace {
void* place() { return small_allocate(sizeof(StorageImpl)); }

std::atomic<uint32_t> latest_transform{0};
}  // namespace

StorageImpl::StorageImpl() : birth_(latest_transform.load(std::memory_order_relaxed)) {}

uint32_t next_transform() { return latest_transform.fetch_add(1, std::memory_order_relaxed) + 1; }

Ref<StorageImpl> StorageImpl::allocate(size_t nbytes, Device device) {
  auto storage = Ref<StorageImpl>::steal(new (place()) StorageImpl());
  storage->device_ = resolve_device(device);
  storage->nbytes_ = nbytes;
  if (RL_LIKELY(device.is_cpu())) {
    storage->take_memory();
    return storage;
  }
  Allowance::take_bytes(nbytes);
  if (!device.is_meta()) {
    const Backend& backend = backend_of(device.type());
    storage->data_ = backend.allocate(nbytes, storage->device_);
    storage->deleter_ = backend.deallocate;
    storage->context_ = reinterpret_cast<void*>(static_cast<intptr_t>(storage->device_.index()));
  }
  return storage;
}

Ref<StorageImpl> StorageImpl::allocate_later(size_t nbytes) {
  auto storage = Ref<StorageImpl>::steal(new (place()) StorageImpl());
  storage->device_ = kCPU;
  storage->nbytes_ = nbytes;
  storage->noted_.store(later * one_writer, std::memory_order_relaxed);
  return storage;
}

void StorageImpl::take_memory() const {
  Allowance::take_bytes(nbytes_);
  data_ = rushlight::allocate(nbytes_);
  deleter_ = free_cpu;
}

Ref<StorageImpl> StorageImpl::borrow(void* data, size_t nbytes, Device device, Deleter deleter,
                                     void* context) {
  auto storage = Ref<StorageImpl>::steal(new (place()) StorageImpl());
  storage->device_ = resolve_device(device);
  storage->data_ = data;
  storage->nbytes_ = nbytes;
  storage->deleter_ = deleter;
  storage->context_ = context;
  storage->resizable_ = false;
  storage->exposed_.store(true, std::memory_order_relaxed);
  return storage;
}

void StorageImpl::release() const {
  // References are taken from references, never from weak pointers: the last owner is alone, and
  // needs no atomic write.
  if (use_count() == 1 || drop()) {
    auto* const self = const_cast<StorageImpl*>(this);
    self->~StorageImpl();
    small_free(self, sizeof(StorageImpl));
  }
}

StorageImpl::~StorageImpl() {
  if (RL_UNLIKELY(weak_storage::any())) {
    weak_storage::mark_freed(this);
  }
  if (RL_UNLIKELY(noted_.load(std::memory_order_acquire) != 0)) {
    forget();
  }
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
  if (nbytes == nbytes_) {
    return;
  }
  data();  // what has been noted of this memory
  const Ref<StorageImpl> fresh = allocate(nbytes, device_);
  const size_t kept = nbytes < nbytes_ ? nbytes : nbytes_;
  if (kept != 0 && device_.is_cpu()) {
    std::memcpy(fresh->data_, data_, kept);
  } else if (kept != 0) {
    copy_bytes(*fresh, *this, kept);
  }
  std::swap(data_, fresh->data_);
  std::swap(nbytes_, fresh->nbytes_);
  std::swap(deleter_, fresh->deleter_);
  std::swap(context_, fresh->context_);
}

void StorageImpl::move_to(Ref<StorageImpl> place) {
  RL_CHECK(device_.is_cpu() && place->device_.is_cpu() && place->nbytes_ >= nbytes_,
           "a storage of ", nbytes_, " bytes on ", device_, " cannot move to ", place->nbytes_,
           " bytes on ", place->device_);
  data();  // what has been noted of this memory
  if (nbytes_ != 0) {
    std::memcpy(place->data(), data_, nbytes_);
  }
  struct Held {
    Ref<StorageImpl> place;
    Ref<StorageImpl> before;  // where somebody outside holds the address
  };
  auto before = borrow(data_, nbytes_, device_, std::exchange(deleter_, nullptr), context_);
  data_ = place->data();
  context_ = new Held{std::move(place), resizable_ ? Ref<StorageImpl>() : std::move(before)};
  deleter_ = [](void*, size_t, void* held) { delete static_cast<Held*>(held); };
  fix_size();
}

Storage map_file(const std::string& path, bool shared, int64_t nbytes) {
  RL_CHECK(nbytes >= 0, "Storage size must not be negative, but got ", nbytes);
  const int fd = open(path.c_str(), (shared ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0666);
  RL_CHECK(fd >= 0, "unable to open file <", path, ">: ", std::strerror(errno));
  struct stat status{};
  void* data = nullptr;
  const char* failed = fstat(fd, &status) != 0 ? "unable to read the size of" : nullptr;
  if (failed == nullptr && nbytes == 0) {
    nbytes = status.st_size;
  }
  if (failed == nullptr && status.st_size < nbytes) {
    failed = !shared                      ? "too few bytes for the storage are in"
             : ftruncate(fd, nbytes) != 0 ? "unable to lengthen"
                                          : nullptr;
  }
  if (failed == nullptr && nbytes != 0) {
    data = mmap(nullptr, static_cast<size_t>(nbytes), PROT_READ | PROT_WRITE,
                shared ? MAP_SHARED : MAP_PRIVATE, fd, 0);
    failed = data == MAP_FAILED ? "unable to mmap" : nullptr;
  }
  const int code = errno;
  close(fd);
  RL_CHECK(failed == nullptr, failed, " file <", path, "> of ",
           static_cast<int64_t>(status.st_size), " bytes for ", nbytes, ": ", std::strerror(code));
  const auto unmap = [](void* address, size_t bytes, void*) {
    if (bytes != 0) {
      munmap(address, bytes);
    }
  };
  return StorageImpl::borrow(data, static_cast<size_t>(nbytes), kCPU, unmap, nullptr);
}

}  // namespace rushlight
