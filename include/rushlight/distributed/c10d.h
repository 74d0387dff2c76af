// Process groups and stores under libtorch's names: c10d::ProcessGroupGloo and its like.
//
// A group's methods start what moves data and give a Work. Tensors must be left alone until it has
// ended; `wait` throws what went wrong.
#pragma once

#include <cstdlib>

#include <rushlight/distributed/backend.h>
#include <rushlight/distributed/tcp_store.h>
#include <torch/torch.h>

namespace c10d {

using rushlight::BackendError;
using rushlight::intrusive_ptr;
using rushlight::make_intrusive;
using rushlight::NetworkError;
using rushlight::StoreError;
using rushlight::Tensor;
using DistBackendError = BackendError;
using DistNetworkError = NetworkError;
using DistStoreError = StoreError;
namespace engine = rushlight::distributed;

inline constexpr std::chrono::milliseconds kUnsetTimeout{-1};
inline constexpr std::chrono::milliseconds kNoTimeout{0};
inline constexpr std::chrono::milliseconds kProcessGroupDefaultTimeout{30 * 60 * 1000};
inline constexpr std::chrono::milliseconds kBackendDefaultTimeout = kProcessGroupDefaultTimeout;

// ---- stores ----

class Store : public rushlight::intrusive_ptr_target {
 public:
  static constexpr std::chrono::milliseconds kDefaultTimeout = engine::Store::default_timeout;
  static constexpr std::chrono::milliseconds kNoTimeout = std::chrono::milliseconds::zero();

  explicit Store(std::shared_ptr<engine::Store> made) : store_(std::move(made)) {}

  void set(const std::string& key, const std::string& value) { store_->set(key, value); }
  void set(const std::string& key, const std::vector<uint8_t>& value) {
    store_->set(key, text(value));
  }
  std::vector<uint8_t> get(const std::string& key) { return bytes(store_->get(key)); }
  std::string get_to_str(const std::string& key) { return store_->get(key); }
  std::vector<uint8_t> compareSet(const std::string& key, const std::vector<uint8_t>& expected,
                                  const std::vector<uint8_t>& desired) {
    return bytes(store_->compare_set(key, text(expected), text(desired)));
  }
  std::string compareSet(const std::string& key, const std::string& expected,
                         const std::string& desired) {
    return store_->compare_set(key, expected, desired);
  }
  int64_t add(const std::string& key, int64_t value) { return store_->add(key, value); }
  bool deleteKey(const std::string& key) { return store_->delete_key(key); }
  bool check(const std::vector<std::string>& keys) { return store_->check(keys); }
  int64_t getNumKeys() { return store_->num_keys(); }
  std::vector<std::string> listKeys() { return store_->list_keys(); }
  void wait(const std::vector<std::string>& keys) { store_->wait(keys, store_->timeout()); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) {
    store_->wait(keys, timeout);
  }
  const std::chrono::milliseconds& getTimeout() const { return timeout_ = store_->timeout(); }
  void setTimeout(const std::chrono::milliseconds& timeout) { store_->set_timeout(timeout); }
  void append(const std::string& key, const std::vector<uint8_t>& value) {
    store_->append(key, text(value));
  }
  std::vector<std::vector<uint8_t>> multiGet(const std::vector<std::string>& keys) {
    std::vector<std::vector<uint8_t>> found;
    for (const std::string& value : store_->multi_get(keys)) {
      found.push_back(bytes(value));
    }
    return found;
  }
  void multiSet(const std::vector<std::string>& keys,
                const std::vector<std::vector<uint8_t>>& values) {
    std::vector<std::string> texts;
    for (const std::vector<uint8_t>& value : values) {
      texts.push_back(text(value));
    }
    store_->multi_set(keys, texts);
  }
  bool hasExtendedApi() const { return store_->has_extended_api(); }
  intrusive_ptr<Store> clone() { return make_intrusive<Store>(store_->clone()); }

  const std::shared_ptr<engine::Store>& engine_store() const { return store_; }

 private:
  static std::string text(const std::vector<uint8_t>& value) {
    return {value.begin(), value.end()};
  }
  static std::vector<uint8_t> bytes(const std::string& value) {
    return {value.begin(), value.end()};
  }

  std::shared_ptr<engine::Store> store_;
  mutable std::chrono::milliseconds timeout_{};
};

class HashStore : public Store {
 public:
  HashStore() : Store(std::make_shared<engine::HashStore>()) {}
};

class FileStore : public Store {
 public:
  FileStore(const std::string& path, int numWorkers)
      : Store(std::make_shared<engine::FileStore>(path, numWorkers)), path_(path) {}
  const std::string& getPath() const noexcept { return path_; }

 private:
  std::string path_;
};

class PrefixStore : public Store {
 public:
  PrefixStore(const std::string& prefix, const intrusive_ptr<Store>& store)
      : Store(std::make_shared<engine::PrefixStore>(prefix, store->engine_store())),
        store_(store) {}
  intrusive_ptr<Store> getUnderlyingStore() { return store_; }

 private:
  intrusive_ptr<Store> store_;
};

struct TCPStoreOptions {
  static constexpr uint16_t kDefaultPort = 29500;
  uint16_t port = kDefaultPort;
  bool isServer = false;
  std::optional<std::size_t> numWorkers = std::nullopt;
  bool waitWorkers = true;
  std::chrono::milliseconds timeout = Store::kDefaultTimeout;
  bool multiTenant = false;
};

class TCPStore : public Store {
 public:
  explicit TCPStore(const std::string& host, const TCPStoreOptions& options = {})
      : TCPStore(make_store(host, options)) {}
  const std::string& getHost() const noexcept { return tcp_->host(); }
  uint16_t getPort() const noexcept { return tcp_->port(); }

 private:
  explicit TCPStore(const std::shared_ptr<engine::TcpStore>& tcp) : Store(tcp), tcp_(tcp) {}
  static std::shared_ptr<engine::TcpStore> make_store(const std::string& host,
                                                      const TCPStoreOptions& options) {
    engine::TcpStoreOptions o;
    o.port = options.port;
    if (options.numWorkers.has_value()) {
      o.world_size = static_cast<int>(*options.numWorkers);
    }
    o.is_master = options.isServer;
    o.timeout = options.timeout;
    o.wait_for_workers = options.waitWorkers;
    o.multi_tenant = options.multiTenant;
    return std::make_shared<engine::TcpStore>(host, o);
  }

  std::shared_ptr<engine::TcpStore> tcp_;
};

// ---- options ----

struct ReduceOp {
  enum RedOpType : uint8_t { SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM, UNUSED };
  ReduceOp() = default;
  ReduceOp(RedOpType op, double factor = 1) : op_(op), factor_(factor) {}
  operator RedOpType() const { return op_; }
  engine::Reduction reduction() const {
    RL_CHECK(op_ != UNUSED, "ReduceOp::UNUSED is no reduction");
    return {static_cast<engine::ReduceKind>(op_), factor_};
  }

  RedOpType op_ = SUM;
  double factor_ = 1;  // of PREMUL_SUM
};

struct BroadcastOptions {
  int64_t rootRank = 0;
  int64_t rootTensor = 0;
  std::chrono::milliseconds timeout = kUnsetTimeout;
};
struct AllreduceOptions {
  ReduceOp reduceOp = ReduceOp::SUM;
  std::chrono::milliseconds timeout = kUnsetTimeout;
};
struct AllreduceCoalescedOptions : AllreduceOptions {};
struct ReduceOptions {
  ReduceOp reduceOp = ReduceOp::SUM;
  int64_t rootRank = 0;
  int64_t rootTensor = 0;
  std::chrono::milliseconds timeout = kUnsetTimeout;
};
struct AllgatherOptions {
  std::chrono::milliseconds timeout = kUnsetTimeout;
};
struct GatherOptions {
  int64_t rootRank = 0;
  std::chrono::milliseconds timeout = kUnsetTimeout;
};
struct ScatterOptions {
  int64_t rootRank = 0;
  std::chrono::milliseconds timeout = kUnsetTimeout;
};
struct ReduceScatterOptions {
  ReduceOp reduceOp = ReduceOp::SUM;
  std::chrono::milliseconds timeout = kUnsetTimeout;
};
struct AllToAllOptions {
  std::chrono::milliseconds timeout = kUnsetTimeout;
};
struct BarrierOptions {
  std::chrono::milliseconds timeout = kUnsetTimeout;
};

// ---- works ----

class Work : public rushlight::intrusive_ptr_target {
 public:
  Work(engine::WorkPtr work, std::vector<Tensor> outputs)
      : work_(std::move(work)), outputs_(std::move(outputs)) {}
  bool isCompleted() { return work_->is_completed(); }
  bool isSuccess() const { return work_->is_success(); }
  std::exception_ptr exception() const { return work_->error(); }
  int sourceRank() const { return work_->source(); }
  std::vector<Tensor> result() { return outputs_; }
  // Until it has ended; throws its error, or BackendError where `timeout` passes first.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) {
    work_->wait(timeout > kNoTimeout ? std::optional(timeout) : std::nullopt);
    return true;
  }
  void synchronize() { wait(); }

 private:
  engine::WorkPtr work_;
  std::vector<Tensor> outputs_;
};

// ---- groups ----

// The processes of a group as one of them sees it, and an engine that connects them.
class Backend : public rushlight::intrusive_ptr_target {
 public:
  using Work = c10d::Work;

  int getRank() const { return engine_->rank(); }
  int getSize() const { return engine_->size(); }
  const std::string getBackendName() const { return engine_->name(); }
  std::chrono::milliseconds getTimeout() const { return timeout_; }
  void setTimeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }

  intrusive_ptr<Work> broadcast(std::vector<Tensor>& tensors, const BroadcastOptions& opts = {}) {
    return work(engine_->broadcast(dense(tensors), root(opts.rootRank), time(opts)), tensors);
  }
  intrusive_ptr<Work> allreduce(std::vector<Tensor>& tensors, const AllreduceOptions& opts = {}) {
    return work(engine_->all_reduce(dense(tensors), opts.reduceOp.reduction(), time(opts)),
                tensors);
  }
  intrusive_ptr<Work> allreduce_coalesced(std::vector<Tensor>& tensors,
                                          const AllreduceCoalescedOptions& opts = {}) {
    return allreduce(tensors, opts);
  }
  intrusive_ptr<Work> reduce(std::vector<Tensor>& tensors, const ReduceOptions& opts = {}) {
    const Tensor& t = single_tensor(tensors);
    return work(engine_->reduce(t, root(opts.rootRank), opts.reduceOp.reduction(), time(opts)),
                tensors);
  }
  // outputs[0][r] has what rank r has as its input.
  intrusive_ptr<Work> allgather(std::vector<std::vector<Tensor>>& outputs,
                                std::vector<Tensor>& inputs, const AllgatherOptions& opts = {}) {
    const Tensor& input = single_tensor(inputs);
    return work(engine_->all_gather(tensors_of_ranks(outputs, input), input, time(opts)),
                outputs[0]);
  }
  // The output has the inputs of all ranks, one after the other.
  intrusive_ptr<Work> _allgather_base(Tensor& output, Tensor& input,
                                      const AllgatherOptions& opts = {}) {
    return work(
        engine_->all_gather(split_by_rank(output, input), flatten_checked(input), time(opts)),
        {output});
  }
  // outputs is empty but on the root.
  intrusive_ptr<Work> gather(std::vector<std::vector<Tensor>>& outputs, std::vector<Tensor>& inputs,
                             const GatherOptions& opts = {}) {
    const Tensor& input = single_tensor(inputs);
    const int to = root(opts.rootRank);
    RL_CHECK_VALUE(to == getRank() || outputs.empty(), "gather: requires empty output on non-root");
    const std::vector<Tensor> all =
        to == getRank() ? tensors_of_ranks(outputs, input) : std::vector<Tensor>();
    return work(engine_->gather(all, input, to, time(opts)), all);
  }
  // inputs is empty but on the root.
  intrusive_ptr<Work> scatter(std::vector<Tensor>& outputs,
                              std::vector<std::vector<Tensor>>& inputs,
                              const ScatterOptions& opts = {}) {
    const Tensor& output = single_tensor(outputs);
    const int from = root(opts.rootRank);
    RL_CHECK_VALUE(from == getRank() || inputs.empty(),
                   "scatter: requires empty input on non-root");
    const std::vector<Tensor> all =
        from == getRank() ? tensors_of_ranks(inputs, output) : std::vector<Tensor>();
    return work(engine_->scatter(output, all, from, time(opts)), outputs);
  }
  intrusive_ptr<Work> reduce_scatter(std::vector<Tensor>& outputs,
                                     std::vector<std::vector<Tensor>>& inputs,
                                     const ReduceScatterOptions& opts = {}) {
    const Tensor& output = single_tensor(outputs);
    return work(engine_->reduce_scatter(output, tensors_of_ranks(inputs, output),
                                        opts.reduceOp.reduction(), time(opts)),
                outputs);
  }
  intrusive_ptr<Work> _reduce_scatter_base(Tensor& output, Tensor& input,
                                           const ReduceScatterOptions& opts = {}) {
    return work(engine_->reduce_scatter(flatten_checked(output), split_by_rank(input, output),
                                        opts.reduceOp.reduction(), time(opts)),
                {output});
  }
  intrusive_ptr<Work> alltoall(std::vector<Tensor>& outputs, std::vector<Tensor>& inputs,
                               const AllToAllOptions& opts = {}) {
    for (const std::vector<Tensor>* list : {&outputs, &inputs}) {
      RL_CHECK_VALUE(list->size() == static_cast<size_t>(getSize()), "alltoall: expected ",
                     getSize(), " tensors, one for each rank, but got ", list->size());
    }
    return work(engine_->all_to_all(dense(outputs), dense(inputs), time(opts)), outputs);
  }
  intrusive_ptr<Work> barrier(const BarrierOptions& opts = {}) {
    return work(engine_->barrier(time(opts)), {});
  }
  intrusive_ptr<Work> send(std::vector<Tensor>& tensors, int dstRank, int tag) {
    return work(
        engine_->send(single_tensor(tensors), dstRank, static_cast<uint32_t>(tag), timeout_),
        tensors);
  }
  intrusive_ptr<Work> recv(std::vector<Tensor>& tensors, int srcRank, int tag) {
    return work(
        engine_->receive(single_tensor(tensors), srcRank, static_cast<uint32_t>(tag), timeout_),
        tensors);
  }
  intrusive_ptr<Work> recvAnysource(std::vector<Tensor>& tensors, int tag) {
    return recv(tensors, -1, tag);
  }
  void shutdown() { engine_->shutdown(); }
  void abort() { engine_->abort(); }

 protected:
  Backend(std::shared_ptr<engine::Backend> made, std::chrono::milliseconds timeout)
      : engine_(std::move(made)), timeout_(timeout) {}

 private:
  static intrusive_ptr<Work> work(engine::WorkPtr made, std::vector<Tensor> outputs) {
    return make_intrusive<Work>(std::move(made), std::move(outputs));
  }
  template <class Options>
  std::chrono::milliseconds time(const Options& opts) const {
    return opts.timeout == kUnsetTimeout ? timeout_ : opts.timeout;
  }
  int root(int64_t rank) const {
    RL_CHECK_VALUE(rank >= 0 && rank < getSize(), "invalid root rank: ", rank);
    return static_cast<int>(rank);
  }
  static void check(const Tensor& t) {
    RL_CHECK_VALUE(t.defined() && t.device().is_cpu(),
                   "process groups exchange tensors in host memory");
    RL_CHECK_VALUE(t.layout() == rushlight::kStrided, "process groups exchange dense tensors");
  }
  static Tensor detach_checked(const Tensor& t) {
    check(t);
    return t.requires_grad() ? t.detach() : t;
  }
  static std::vector<Tensor> dense(const std::vector<Tensor>& tensors) {
    RL_CHECK_VALUE(!tensors.empty(), "requires non-empty tensor list");
    std::vector<Tensor> all;
    for (const Tensor& t : tensors) {
      all.push_back(detach_checked(t));
    }
    return all;
  }
  static Tensor single_tensor(const std::vector<Tensor>& tensors) {
    RL_CHECK_VALUE(tensors.size() == 1, "requires a single-element tensor list, but got ",
                   tensors.size());
    return detach_checked(tensors[0]);
  }
  // One tensor of each rank, all like `one`.
  std::vector<Tensor> tensors_of_ranks(const std::vector<std::vector<Tensor>>& lists,
                                       const Tensor& one) const {
    RL_CHECK_VALUE(lists.size() == 1 && lists[0].size() == static_cast<size_t>(getSize()),
                   "requires a single list with ", getSize(), " tensors");
    for (const Tensor& t : lists[0]) {
      check(t);
      RL_CHECK_VALUE(t.sizes() == one.sizes() && t.scalar_type() == one.scalar_type(),
                     "tensors must have the same shape and type");
    }
    return dense(lists[0]);
  }
  static Tensor flatten_checked(const Tensor& t) {
    check(t);
    RL_CHECK_VALUE(t.is_contiguous(), "requires contiguous tensors");
    return detach_checked(t).view({-1});
  }
  // The parts of a tensor that has one like `one` of each rank.
  std::vector<Tensor> split_by_rank(const Tensor& whole, const Tensor& one) const {
    const Tensor all = flatten_checked(whole);
    RL_CHECK_VALUE(all.numel() == one.numel() * getSize() && all.scalar_type() == one.scalar_type(),
                   "the larger tensor must have ", getSize(),
                   " times as many elements as the smaller one, of the same type");
    std::vector<Tensor> found;
    for (int r = 0; r < getSize(); r++) {
      found.push_back(all.narrow(0, r * one.numel(), one.numel()));
    }
    return found;
  }

  std::shared_ptr<engine::Backend> engine_;
  std::chrono::milliseconds timeout_;
};

// Processes that Gloo connects.
class ProcessGroupGloo : public Backend {
 public:
  // A network interface, or an address of this machine.
  struct Device {
    std::string interface;
    std::string hostname;
  };
  struct Options : rushlight::intrusive_ptr_target {
    explicit Options(std::chrono::milliseconds t = kBackendDefaultTimeout) : timeout(t) {}
    static intrusive_ptr<Options> create(std::chrono::milliseconds t = kBackendDefaultTimeout) {
      return make_intrusive<Options>(t);
    }
    std::chrono::milliseconds timeout;
    std::vector<std::shared_ptr<Device>> devices;  // the first is used
    int threads = 2;                               // each group has one
  };

  // Connections go by the first device, by GLOO_SOCKET_IFNAME, or by the address by which this
  // machine reaches the store's server, else by the loopback interface.
  ProcessGroupGloo(const intrusive_ptr<Store>& store, int rank, int size,
                   const intrusive_ptr<Options>& options = Options::create())
      : Backend(connect(store, rank, size, *options), options->timeout) {}

  static std::shared_ptr<Device> createDeviceForInterface(const std::string& interface) {
    return std::make_shared<Device>(Device{interface, ""});
  }
  static std::shared_ptr<Device> createDeviceForHostname(const std::string& hostname) {
    return std::make_shared<Device>(Device{"", hostname});
  }
  static std::shared_ptr<Device> createDefaultDevice() { return std::make_shared<Device>(); }

 private:
  static std::shared_ptr<engine::Backend> connect(const intrusive_ptr<Store>& store, int rank,
                                                  int size, const Options& options) {
    RL_CHECK_VALUE(size > 0 && rank >= 0 && rank < size, "rank ", rank, " is not in a world of ",
                   size);
    Device device;
    if (!options.devices.empty()) {
      device = *options.devices[0];
    }
    if (device.interface.empty() && device.hostname.empty()) {
      const char* const name = std::getenv("GLOO_SOCKET_IFNAME");
      device.interface = std::string(name == nullptr ? "" : name);
      device.interface = device.interface.substr(0, device.interface.find(','));
      if (device.interface.empty()) {
        device.hostname = engine::local_address(*store->engine_store());
      }
    }
    return engine::load_plugin("gloo").make({store->engine_store()->clone(), rank, size,
                                             options.timeout, device.interface, device.hostname});
  }
};

// A group is a backend: tensors are in host memory.
using ProcessGroup = Backend;

}  // namespace c10d
