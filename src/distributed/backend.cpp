// What all engines share: works, and loading plug-ins.
#include <rushlight/distributed/backend.h>

#include <dlfcn.h>
#include <unistd.h>

#include "core/interface_hash.h"

namespace rushlight::distributed {

Callback::~Callback() = default;
Work::~Work() = default;
Backend::~Backend() = default;
Message::~Message() = default;
Channel::~Channel() = default;
Launcher::~Launcher() = default;

WorkPtr Backend::end_group(Milliseconds /*timeout*/) { return nullptr; }

namespace {
thread_local bool at_once = false;
}  // namespace

AtOnce::AtOnce(bool on) : before_(std::exchange(at_once, on)) {}
AtOnce::~AtOnce() { at_once = before_; }
bool AtOnce::is_active() { return at_once; }

void Work::wait(std::optional<Milliseconds> timeout) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto has_ended = [this] { return is_completed(); };
    if (timeout.has_value()) {
      RL_CHECK_AS(BackendError, ended_.wait_for(lock, *timeout, has_ended),
                  "Operation timed out! (", timeout->count(), " ms)");
    } else {
      ended_.wait(lock, has_ended);
    }
  }
  if (error_ != nullptr) {
    std::rethrow_exception(error_);
  }
}

void Work::then(std::unique_ptr<Callback> callback) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!is_completed()) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback->call();
}

void Work::finish(std::exception_ptr error) {
  std::vector<std::unique_ptr<Callback>> callbacks;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_completed()) {
      return;
    }
    error_ = std::move(error);
    completed_.store(true, std::memory_order_release);
    callbacks = std::move(callbacks_);
    callbacks_.clear();
  }
  ended_.notify_all();
  for (const auto& callback : callbacks) {
    callback->call();
  }
}

std::string plugin_path(const std::string& name) {
  for (const char c : name) {
    if (c < 'a' || c > 'z') {
      return "";
    }
  }
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&plugin_path), &info) == 0) {
    return "";
  }
  const std::string own = info.dli_fname;
  const std::string path =
      own.substr(0, own.rfind('/') + 1) + "librushlight_distributed_" + name + ".so";
  return access(path.c_str(), R_OK) == 0 ? path : "";
}

const Plugin& load_plugin(const std::string& name) {
  static std::mutex mutex;
  static auto& loaded = *new std::map<std::string, const Plugin*>;
  const std::lock_guard<std::mutex> lock(mutex);
  if (const auto found = loaded.find(name); found != loaded.end()) {
    return *found->second;
  }
  const std::string path = plugin_path(name);
  RL_CHECK(!path.empty(), "Distributed package doesn't have ", name, " built in");
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  RL_CHECK(library != nullptr, "could not load ", path, ": ", dlerror());
  using Entry = const Plugin* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "rushlight_distributed_plugin"));
  RL_CHECK(entry != nullptr, path, " is no plug-in of distributed");
  const Plugin* const plugin = entry();
  RL_CHECK(std::string_view(plugin->interface_hash) == interface_hash, path,
           " was built for another rushlight (", plugin->interface_hash, ", this is ",
           interface_hash, ")");
  loaded[name] = plugin;
  return *plugin;
}

}  // namespace rushlight::distributed
