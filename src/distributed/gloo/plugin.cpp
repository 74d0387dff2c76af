// The engine "gloo": the Gloo library's connections over TCP. A plug-in, built where the library
// is.
#include <arpa/inet.h>
#include <unistd.h>

#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <mutex>
#include <set>

#include "core/interface_hash.h"
#include "distributed/pipe_signal.h"
#include <rushlight/distributed/backend.h>

namespace rushlight::distributed {

namespace {

using Buffer = gloo::transport::UnboundBuffer;

// What Gloo says begins with a place in its sources.
std::string without_source_location(const std::string& why) {
  const size_t end = why.front() == '[' ? why.find("] ") : std::string::npos;
  return end == std::string::npos ? why : why.substr(end + 2);
}

// A store of ours in the hands of Gloo.
class GlooStore : public gloo::rendezvous::Store {
 public:
  GlooStore(std::shared_ptr<distributed::Store> store, Milliseconds timeout)
      : store_(std::move(store)), timeout_(timeout) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_->set(key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_->get(key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    store_->wait(keys, store_->timeout());
  }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& /*timeout*/) override {
    store_->wait(keys, timeout_);
  }

 private:
  std::shared_ptr<distributed::Store> store_;
  Milliseconds timeout_;
};

// Those who wait now, for `abort` to wake.
struct Waiters {
  std::mutex mutex;
  std::set<Buffer*> buffers;
  bool aborted = false;

  class Entry {
   public:
    Entry(Waiters& all, Buffer& buffer) : all_(all), buffer_(buffer) {
      const std::lock_guard<std::mutex> lock(all_.mutex);
      RL_CHECK_AS(BackendError, !all_.aborted, "the process group was aborted");
      all_.buffers.insert(&buffer_);
    }
    ~Entry() {
      const std::lock_guard<std::mutex> lock(all_.mutex);
      all_.buffers.erase(&buffer_);
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    Waiters& all_;
    Buffer& buffer_;
  };
};

class GlooMessage : public Message {
 public:
  GlooMessage(std::shared_ptr<gloo::Context> context, std::shared_ptr<Waiters> waiters,
              void* memory, size_t bytes)
      : context_(std::move(context)),
        waiters_(std::move(waiters)),
        buffer_(context_->createUnboundBuffer(memory, bytes)) {}

  void send(int to, uint64_t slot) override {
    translate_errors([&] { buffer_->send(to, slot); });
  }
  void receive(int from, uint64_t slot) override {
    translate_errors([&] { buffer_->recv(from, slot); });
  }
  void receive_from_any(uint64_t slot) override {
    std::vector<int> others;
    for (int r = 0; r < context_->size; r++) {
      if (r != context_->rank) {
        others.push_back(r);
      }
    }
    translate_errors([&] { buffer_->recv(others, slot); });
  }
  void wait_sent(Milliseconds timeout) override {
    const Waiters::Entry entry(*waiters_, *buffer_);
    bool ended = false;
    translate_errors([&] { ended = buffer_->waitSend(timeout); });
    RL_CHECK_AS(BackendError, ended, "the process group was aborted");
  }
  int wait_received(Milliseconds timeout) override {
    const Waiters::Entry entry(*waiters_, *buffer_);
    bool ended = false;
    int rank = -1;
    translate_errors([&] { ended = buffer_->waitRecv(&rank, timeout); });
    RL_CHECK_AS(BackendError, ended, "the process group was aborted");
    return rank;
  }

 private:
  template <class F>
  static void translate_errors(const F& f) {
    try {
      f();
    } catch (const std::exception& e) {
      throw BackendError(without_source_location(e.what()));
    }
  }

  std::shared_ptr<gloo::Context> context_;
  std::shared_ptr<Waiters> waiters_;
  std::unique_ptr<Buffer> buffer_;
};

class GlooChannel : public Channel {
 public:
  explicit GlooChannel(std::shared_ptr<gloo::Context> context) : context_(std::move(context)) {}
  const char* name() const override { return "gloo"; }
  std::unique_ptr<Message> message(void* memory, size_t bytes) override {
    return std::make_unique<GlooMessage>(context_, waiters_, memory, bytes);
  }
  bool waits_for_receiver() const override { return true; }
  void abort() override {
    const std::lock_guard<std::mutex> lock(waiters_->mutex);
    waiters_->aborted = true;
    for (Buffer* const buffer : waiters_->buffers) {
      buffer->abortWaitRecv();
      buffer->abortWaitSend();
    }
  }
  void close() override {
    if (!closed_.exchange(true) && context_->size > 1) {
      context_->closeConnections();
    }
  }

 private:
  std::shared_ptr<gloo::Context> context_;
  std::shared_ptr<Waiters> waiters_ = std::make_shared<Waiters>();
  std::atomic<bool> closed_{false};
};

// The groups of a process share a device, which has a thread.
std::shared_ptr<gloo::transport::Device> device_for(const BackendOptions& options) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<gloo::transport::Device>> devices;
  const std::lock_guard<std::mutex> lock(mutex);
  const std::string key = str(getpid(), "/", options.interface, "/", options.hostname);
  if (auto device = devices[key].lock()) {
    return device;
  }
  gloo::transport::tcp::attr where;
  if (!options.interface.empty()) {
    where.iface = options.interface;
  } else {
    where.hostname = options.hostname.empty() ? "127.0.0.1" : options.hostname;
  }
  auto device = gloo::transport::tcp::CreateDevice(where);
  devices[key] = device;
  return device;
}

std::shared_ptr<Backend> make(const BackendOptions& options) {
  const NoPipeSignal no_signal;
  try {
    auto device = device_for(options);
    auto context = std::make_shared<gloo::rendezvous::Context>(options.rank, options.size);
    // Connecting may take five times as long as what Gloo is told, so it is told a fifth.
    context->setTimeout(std::max(options.timeout / 5, Milliseconds(1)));
    GlooStore store(options.store, options.timeout);
    if (options.size > 1) {
      context->connectFullMesh(store, device);
    }
    context->setTimeout(options.timeout);
    return make_message_backend(options.rank, options.size, std::make_unique<GlooChannel>(context));
  } catch (const std::exception& e) {
    throw BackendError(
        str("gloo could not connect the processes: ", without_source_location(e.what())));
  }
}

const Plugin plugin = {interface_hash, make};

}  // namespace

}  // namespace rushlight::distributed

extern "C" RL_API const rushlight::distributed::Plugin* rushlight_distributed_plugin() {
  return &rushlight::distributed::plugin;
}
