// Finding, loading and checking the libraries of devices beside the CPU.
#include "core/backend.h"

#include <rushlight/stream.h>

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "core/interface_hash.h"
#include "core/op_support.h"
#include "generated/kernels.h"

namespace rushlight {

namespace {

std::atomic<const Backend*> backends[num_device_types];
std::mutex loading;

// The folder of this library.
std::string library_folder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&backend_path), &info) == 0) {
    return "";
  }
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string name_of(DeviceType type) { return Device(type).str(); }

// Whether it is a name alone.
bool is_name(DeviceType type) { return static_cast<int>(type) >= num_device_types; }

[[noreturn]] void refuse(DeviceType type) {
  std::string name = name_of(type);
  for (char& c : name) {
    c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  const bool is_missing_build = !is_name(type) || name == "XPU" || name == "MTIA";
  if (is_missing_build) {
    throw AssertionError(str("Torch not compiled with ", name,
                             " enabled: this rushlight has no library for ", name_of(type),
                             " devices. Without a device, or with device=\"cpu\", tensors are made "
                             "in main memory"));
  }
  throw NotImplementedError(
      str("Could not run 'aten::empty.memory_format' with arguments from the '", name,
          "' backend: rushlight knows ", name_of(type), " devices by name alone"));
}

const Backend& load(DeviceType type) {
  const std::string path = backend_path(type);
  if (path.empty()) {
    refuse(type);
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  RL_CHECK(library != nullptr, "could not load ", path, ": ", dlerror());
  using Entry = const Backend* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "rushlight_backend"));
  RL_CHECK(entry != nullptr, path, " is no library of a device: it lacks rushlight_backend()");
  const Backend* const found = entry();
  // The first field, so that it can be read whatever has become of the others.
  RL_CHECK(std::string_view(found->interface_hash) == interface_hash, path,
           " was built for another rushlight (", found->interface_hash, ", this is ",
           interface_hash, "); install the version that belongs to this one");
  return *found;
}

void register_backend(DeviceType type, const Backend& backend) {
  kernel_tables[static_cast<int>(type)] = backend.kernels;
  backends[static_cast<int>(type)].store(&backend, std::memory_order_release);
}

}  // namespace

std::string backend_path(DeviceType type) {
  if (type == kCPU || type == kMeta || is_name(type)) {
    return "";
  }
  const std::string path = library_folder() + "/librushlight_" + name_of(type) + ".so";
  return access(path.c_str(), R_OK) == 0 ? path : "";
}

const Backend* loaded_backend(DeviceType type) noexcept {
  if (is_name(type)) {
    return nullptr;
  }
  return backends[static_cast<int>(type)].load(std::memory_order_acquire);
}

const Backend& backend_of(DeviceType type) {
  if (const Backend* backend = loaded_backend(type)) {
    return *backend;
  }
  const std::lock_guard<std::mutex> lock(loading);
  if (const Backend* backend = loaded_backend(type)) {
    return *backend;
  }
  const Backend& backend = load(type);
  register_backend(type, backend);
  return backend;
}

void add_backend(DeviceType type, const Backend& backend) {
  const std::lock_guard<std::mutex> lock(loading);
  RL_CHECK(type != kCPU && type != kMeta && !is_name(type) && loaded_backend(type) == nullptr,
           Device(type), " is there already, or only a name");
  register_backend(type, backend);
}

DeviceType accelerator_type() {
  for (int i = 0; i < num_device_types; i++) {
    const auto type = static_cast<DeviceType>(i);
    if (loaded_backend(type) != nullptr || !backend_path(type).empty()) {
      return type;
    }
  }
  return kCPU;
}

bool is_pinned(const Tensor& t) {
  for (const auto& backend : backends) {
    const Backend* const b = backend.load(std::memory_order_acquire);
    if (t.is_cpu() && b != nullptr && b->is_pinned(t.storage()->data())) {
      return true;
    }
  }
  return false;
}

Tensor pin_memory(const Tensor& t) {
  RL_CHECK(t.is_cpu(), "cannot pin '", t.toString(), "' only dense CPU tensors can be pinned");
  const DeviceType type = accelerator_type();
  RL_CHECK(type != kCPU && backend_of(type).device_count() != 0,
           "Cannot access accelerator device when none is available.");
  if (is_pinned(t)) {
    return t;
  }
  const Tensor like = make_empty_like(t, t.dtype());
  auto impl = TensorImpl::make(
      backend_of(type).allocate_pinned(static_cast<size_t>(like.storage()->nbytes())), t.dtype(),
      kCPU);
  impl->set_sizes_and_strides(like.sizes(), like.strides());
  const Tensor out(std::move(impl));
  copy_raw(out, t);
  return out;
}

Device number_device(Device device) { return backend_of(device.type()).resolve(device); }

int64_t device_count(DeviceType type) {
  if (type == kCPU) {
    return 1;
  }
  try {
    return backend_of(type).device_count();
  } catch (const Error&) {  // this installation lacks the device's library
    return 0;
  }
}

}  // namespace rushlight
