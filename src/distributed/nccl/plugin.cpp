// The engine "nccl": collectives of NVIDIA's NCCL on tensors of GPUs.
//
// It knows a GPU by its streams and events alone (rushlight/stream.h) and finds NCCL at run time,
// so that it is built without either. Collectives are queued on a stream of their own, which waits
// for the stream of the caller, as that one does for them when a work is waited for. A thread
// watches what is queued: it tells works of their end, and where one fails or takes too long, all
// communicators of the group are aborted.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "core/backend.h"
#include "core/interface_hash.h"
#include "distributed/dense.h"
#include "distributed/nccl/nccl.h"
#include <rushlight/stream.h>

namespace rushlight::distributed {

namespace {

constexpr std::chrono::microseconds poll_interval(250);
constexpr Milliseconds publish_interval(1000);

struct Communicator {
  nccl::Comm handle = nullptr;
  Stream stream;
  bool of_all = true;
};

// Something queued on a stream.
struct Queued : Work {
  void wait(std::optional<Milliseconds> timeout) override {
    if (!is_completed()) {
      Stream::current(stream.device()).wait(end);
    }
    if (is_completed() || host_waits || timeout.has_value()) {
      Work::wait(timeout);
    }
  }
  Stream stream;
  Event end;
  bool host_waits = false;
  // Of the watcher, which lets the tensors go at the end.
  Tensors tensors;
  std::string what;
  uint64_t number = 0;  // among the group's collectives; 0: a message
  Milliseconds timeout{};
  Clock::time_point deadline;
};

// The calls of NCCL that make one work.
struct Batch {
  std::string what;
  Communicator* communicator = nullptr;
  bool failed = false;
  Tensors tensors;
  std::vector<nccl::Op> ops;                 // to be destroyed
  std::vector<std::function<void()>> after;  // copies, on the same stream

  nccl::Comm comm() const { return communicator->handle; }
  void* stream() const { return reinterpret_cast<void*>(communicator->stream.id()); }
  // Dense memory of an input, and of an output that is written back.
  Tensor input(const Tensor& t) { return keep_tensor(dense(keep_tensor(t))); }
  Tensor output(const Tensor& t) {
    return write_back_later(t, keep_tensor(dense_output(keep_tensor(t))));
  }
  Tensor in_place(const Tensor& t) {
    return write_back_later(t, keep_tensor(dense(keep_tensor(t))));
  }
  Tensor keep_tensor(const Tensor& t) {
    const Device device = communicator->stream.device();
    RL_CHECK_VALUE(t.device() == device, what, ": tensors must be on the same GPU device, not on ",
                   device, " and ", t.device());
    tensors.push_back(t);
    return t;
  }

 private:
  Tensor write_back_later(const Tensor& to, Tensor from) {
    if (!to.is_contiguous()) {
      after.emplace_back([=] { write_back(to, from); });
    }
    return from;
  }
};

size_t size_of(const Tensor& t) { return static_cast<size_t>(bytes_of(t)); }

// Whether tensors lie one after the other.
bool are_adjacent(const Tensors& list) {
  const char* at = memory(list[0]);
  for (const Tensor& t : list) {
    if (!t.is_contiguous() || memory(t) != at) {
      return false;
    }
    at += bytes_of(t);
  }
  return true;
}
bool have_one_length(const Tensors& list) {
  return std::all_of(list.begin(), list.end(),
                     [&](const Tensor& t) { return t.numel() == list[0].numel(); });
}
// Memory for tensors of one length, and the part of it that is one tensor's.
Tensor make_flat_buffer(const Tensors& list) {
  return make_empty({static_cast<int64_t>(list.size()) * list[0].numel()}, list[0].dtype(),
                    list[0].device());
}
Tensor part_of(const Tensor& joined, size_t i, const Tensor& like) {
  ViewSpec spec{DimVector(like.sizes()), contiguous_strides(like.sizes())};
  spec.offset = static_cast<int64_t>(i) * like.numel();
  return make_view(joined, spec);
}

size_t count_of(const Tensor& t) {
  return static_cast<size_t>(t.numel()) * (is_complex(t.dtype()) ? 2 : 1);
}

bool is_set(const char* name, const char* value) {
  const char* const found = getenv(name);
  return found != nullptr && std::strcmp(found, value) == 0;
}

class NcclBackend : public Backend {
 public:
  explicit NcclBackend(const BackendOptions& options)
      : Backend(options.rank, options.size),
        api_(nccl::api()),
        store_(options.store),
        watchers_store_(options.store->clone()),
        high_priority_(options.high_priority),
        process_(getpid()),
        host_waits_(is_set("TORCH_NCCL_BLOCKING_WAIT", "1")),
        tears_down_(!host_waits_ && !is_set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0") &&
                    !is_set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "2")) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    watcher_ = std::thread([this] { watch(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~NcclBackend() override {
    if (getpid() != process_) {  // a fork has neither the thread nor the devices
      watcher_.detach();
      return;
    }
    end(false);
  }
  const char* name() const override { return "nccl"; }
  DeviceType device_type() const override { return kCUDA; }
  bool accepts_uneven() const override { return true; }

  void shutdown() override { end(false); }
  void abort() override { end(true); }

  void connect(Device device, Milliseconds timeout) override {
    const std::lock_guard<std::recursive_mutex> lock(calls_);
    check_usable();
    communicator_of_all(resolve_device(device), timeout);
  }

  // ---- what goes together ----

  bool can_group() const override { return true; }
  void begin_group() override {
    const std::lock_guard<std::recursive_mutex> lock(calls_);
    check_usable();
    RL_CHECK_AS(BackendError, group_ == nullptr, "a group of calls has begun already");
    group_ = std::make_unique<Batch>();
    group_->what = "a group of calls";
  }
  WorkPtr end_group(Milliseconds timeout) override {
    const std::lock_guard<std::recursive_mutex> lock(calls_);
    RL_CHECK_AS(BackendError, group_ != nullptr, "no group of calls has begun");
    const std::unique_ptr<Batch> batch = std::move(group_);
    if (batch->failed) {
      return nullptr;
    }
    if (batch->communicator == nullptr) {  // nothing was asked for
      auto work = std::make_shared<Work>();
      work->finish(nullptr);
      return work;
    }
    const StreamGuard guard(batch->communicator->stream);
    return launch(*batch, timeout);
  }

  // ---- collectives ----

  WorkPtr broadcast(Tensors tensors, int root, Milliseconds timeout) override {
    check_rank(root);
    return queue("broadcast", tensors[0], timeout, [&](Batch& b) {
      for (const Tensor& t : tensors) {
        const Tensor d = rank() == root ? b.input(t) : b.output(t);
        api_.check(api_.Broadcast(memory(d), memory(d), size_of(d), nccl::bytes_type, root,
                                  b.comm(), b.stream()));
      }
    });
  }

  WorkPtr all_reduce(Tensors tensors, Reduction op, Milliseconds timeout) override {
    for (const Tensor& t : tensors) {
      check_op(t.dtype(), op);
    }
    return queue("all_reduce", tensors[0], timeout, [&](Batch& b) {
      for (const Tensor& t : tensors) {
        const Tensor d = b.in_place(t);
        api_.check(api_.AllReduce(memory(d), memory(d), count_of(d), nccl::type_of(d.dtype()),
                                  op_of(d.dtype(), op, b), b.comm(), b.stream()));
      }
    });
  }

  WorkPtr reduce(Tensor tensor, int root, Reduction op, Milliseconds timeout) override {
    check_rank(root);
    check_op(tensor.dtype(), op);
    return queue("reduce", tensor, timeout, [&](Batch& b) {
      const Tensor d = rank() == root ? b.in_place(tensor) : b.input(tensor);
      reduce_to(b, d, d, root, op);
    });
  }

  WorkPtr all_gather(Tensors outputs, Tensor input, Milliseconds timeout) override {
    return queue("all_gather", input, timeout, [&](Batch& b) {
      const Tensor own = b.input(input);
      if (!have_one_length(outputs)) {
        for (int r = 0; r < size(); r++) {
          const Tensor to = b.output(outputs[static_cast<size_t>(r)]);
          api_.check(api_.Broadcast(memory(own), memory(to), size_of(to), nccl::bytes_type, r,
                                    b.comm(), b.stream()));
        }
        return;
      }
      const auto gather = [&](const Tensor& to) {
        api_.check(api_.AllGather(memory(own), memory(to), size_of(own), nccl::bytes_type, b.comm(),
                                  b.stream()));
      };
      for (const Tensor& t : outputs) {
        b.keep_tensor(t);
      }
      if (are_adjacent(outputs)) {
        gather(outputs[0]);
        return;
      }
      const Tensor joined = b.keep_tensor(make_flat_buffer(outputs));
      gather(joined);
      b.after.emplace_back([=] {
        for (size_t r = 0; r < outputs.size(); r++) {
          copy_raw(outputs[r], part_of(joined, r, outputs[r]), true);
        }
      });
    });
  }

  WorkPtr reduce_scatter(Tensor output, Tensors inputs, Reduction op,
                         Milliseconds timeout) override {
    check_op(output.dtype(), op);
    return queue("reduce_scatter", output, timeout, [&](Batch& b) {
      const Tensor to = b.output(output);
      if (!have_one_length(inputs)) {
        for (int r = 0; r < size(); r++) {
          reduce_to(b, b.input(inputs[static_cast<size_t>(r)]), to, r, op);
        }
        return;
      }
      Tensor joined = inputs[0];
      for (const Tensor& t : inputs) {
        b.keep_tensor(t);
      }
      if (!are_adjacent(inputs)) {
        joined = b.keep_tensor(make_flat_buffer(inputs));
        for (size_t r = 0; r < inputs.size(); r++) {
          copy_raw(part_of(joined, r, inputs[r]), inputs[r], true);
        }
      }
      api_.check(api_.ReduceScatter(memory(joined), memory(to), count_of(to),
                                    nccl::type_of(to.dtype()), op_of(to.dtype(), op, b), b.comm(),
                                    b.stream()));
    });
  }

  WorkPtr gather(Tensors outputs, Tensor input, int root, Milliseconds timeout) override {
    check_rank(root);
    return queue("gather", input, timeout, [&](Batch& b) {
      send_to(b, b.input(input), root);
      if (rank() == root) {
        for (int r = 0; r < size(); r++) {
          receive_from(b, b.output(outputs[static_cast<size_t>(r)]), r);
        }
      }
    });
  }

  WorkPtr scatter(Tensor output, Tensors inputs, int root, Milliseconds timeout) override {
    check_rank(root);
    return queue("scatter", output, timeout, [&](Batch& b) {
      if (rank() == root) {
        for (int r = 0; r < size(); r++) {
          send_to(b, b.input(inputs[static_cast<size_t>(r)]), r);
        }
      }
      receive_from(b, b.output(output), root);
    });
  }

  WorkPtr all_to_all(Tensors outputs, Tensors inputs, Milliseconds timeout) override {
    return queue("all_to_all", inputs[0], timeout, [&](Batch& b) {
      for (int r = 0; r < size(); r++) {
        send_to(b, b.input(inputs[static_cast<size_t>(r)]), r);
        receive_from(b, b.output(outputs[static_cast<size_t>(r)]), r);
      }
    });
  }

  WorkPtr barrier(Milliseconds timeout) override {
    const Tensor one = make_empty({1}, ScalarType::Float, Device(kCUDA));
    fill_raw(one, 0);
    WorkPtr work = all_reduce({one}, Reduction{}, timeout);
    if (work != nullptr) {
      static_cast<Queued&>(*work).host_waits = true;
    }
    return work;
  }

  // ---- messages ----

  WorkPtr send(Tensor tensor, int to, uint32_t /*tag*/, Milliseconds timeout) override {
    check_peer(to);
    return queue(
        str("send to rank ", to), tensor, timeout,
        [&](Batch& b) { send_to(b, b.input(tensor), number_of(b, to)); }, to);
  }
  WorkPtr receive(Tensor tensor, int from, uint32_t /*tag*/, Milliseconds timeout) override {
    RL_CHECK_VALUE(from >= 0, "NCCL receives from a rank that is named: recv(tensor, src)");
    check_peer(from);
    return queue(
        str("recv from rank ", from), tensor, timeout,
        [&](Batch& b) { receive_from(b, b.output(tensor), number_of(b, from)); }, from);
  }

 private:
  void check_rank(int r) const {
    RL_CHECK_VALUE(r >= 0 && r < size(), "rank ", r, " is not in a group of ", size());
  }
  void check_peer(int r) const {
    check_rank(r);
    RL_CHECK_VALUE(r != rank(), "a message to oneself");
  }
  void check_usable() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!failed_.empty()) {
      throw BackendError(failed_);
    }
    RL_CHECK_AS(BackendError, !stopping_, "the process group was shut down");
  }

  // ---- reductions ----

  static void check_op(ScalarType dtype, const Reduction& op) {
    const bool bits =
        op.kind == ReduceKind::BAnd || op.kind == ReduceKind::BOr || op.kind == ReduceKind::BXor;
    RL_CHECK_VALUE(!bits, "Cannot use ReduceOp.BAND, BOR or BXOR with NCCL");
    RL_CHECK_AS(TypeError, dtype != ScalarType::Bool || op.kind != ReduceKind::Avg,
                "Cannot use ReduceOp.AVG with boolean inputs");
    const bool adds = op.kind == ReduceKind::Sum || op.kind == ReduceKind::Avg ||
                      op.kind == ReduceKind::PremulSum;
    RL_CHECK_VALUE(adds || !is_complex(dtype), "complex numbers have sums and means alone");
    RL_CHECK_VALUE(op.kind != ReduceKind::PremulSum || is_floating(dtype) || is_complex(dtype),
                   "PREMUL_SUM is one of floats, not of ", dtype);
    nccl::type_of(dtype);
  }

  nccl::Op op_of(ScalarType dtype, const Reduction& op, Batch& b) {
    switch (op.kind) {
      case ReduceKind::Sum:
        return dtype == ScalarType::Bool ? nccl::max : nccl::sum;  // any
      case ReduceKind::Avg:
        return nccl::average;
      case ReduceKind::Product:
        return nccl::product;
      case ReduceKind::Min:
        return nccl::min;
      case ReduceKind::Max:
        return nccl::max;
      default:
        break;
    }
    // Of a sum of products with a number, which NCCL reads at once.
    double as_double = op.factor;
    auto as_float = static_cast<float>(op.factor);
    Half as_half(as_float);
    BFloat16 as_bfloat(as_float);
    const nccl::Type type = nccl::type_of(dtype);
    void* const factor = type == nccl::type_of(ScalarType::Double)  ? static_cast<void*>(&as_double)
                         : type == nccl::type_of(ScalarType::Float) ? static_cast<void*>(&as_float)
                         : type == nccl::type_of(ScalarType::Half) ? static_cast<void*>(&as_half)
                                                                   : static_cast<void*>(&as_bfloat);
    nccl::Op made = 0;
    constexpr int on_the_host = 1;
    api_.check(api_.RedOpCreatePreMulSum(&made, factor, type, on_the_host, b.comm()));
    b.ops.push_back(made);
    return made;
  }

  void reduce_to(Batch& b, const Tensor& from, const Tensor& to, int root, const Reduction& op) {
    api_.check(api_.Reduce(memory(from), memory(to), count_of(from), nccl::type_of(from.dtype()),
                           op_of(from.dtype(), op, b), root, b.comm(), b.stream()));
  }

  void send_to(Batch& b, const Tensor& from, int to) {
    if (from.numel() != 0) {
      api_.check(
          api_.Send(memory(from), size_of(from), nccl::bytes_type, to, b.comm(), b.stream()));
    }
  }
  void receive_from(Batch& b, const Tensor& to, int from) {
    if (to.numel() != 0) {
      api_.check(api_.Recv(memory(to), size_of(to), nccl::bytes_type, from, b.comm(), b.stream()));
    }
  }
  // A rank's number in the communicator of a message: all, or the two.
  int number_of(const Batch& b, int other) const {
    return b.communicator->of_all ? other : (other > rank() ? 1 : 0);
  }

  // ---- queueing ----

  // Queues what `calls` asks of NCCL, behind what the current stream has. `peer`: of a message,
  // which has a communicator of its own, so that it waits for nothing else.
  template <class F>
  WorkPtr queue(const std::string& what, const Tensor& like, Milliseconds timeout, const F& calls,
                int peer = -1) {
    const std::lock_guard<std::recursive_mutex> lock(calls_);
    check_usable();
    RL_CHECK_AS(BackendError, group_ == nullptr || !group_->failed, what,
                ": a call of its group has failed");
    const Device device = like.device();
    Communicator& c = group_ == nullptr && peer >= 0 ? pair(peer, device, timeout)
                                                     : communicator_of_all(device, timeout);
    c.stream.wait(Stream::current(device));
    const StreamGuard guard(c.stream);
    Batch alone;
    alone.what = what;
    Batch& batch = group_ != nullptr ? *group_ : alone;
    if (batch.communicator == nullptr) {
      batch.communicator = &c;
      api_.check(api_.GroupStart());
    }
    try {
      RL_CHECK_VALUE(batch.communicator == &c, what, ": tensors of a group lie on one device");
      calls(batch);
    } catch (...) {
      (void)api_.GroupEnd();
      batch.failed = true;
      throw;
    }
    return group_ != nullptr ? nullptr : launch(batch, timeout);
  }

  WorkPtr launch(Batch& batch, Milliseconds timeout) {
    Communicator& c = *batch.communicator;
    const auto deadline = Clock::now() + timeout;
    api_.check(api_.GroupEnd());
    wait_until_done(c.handle, deadline, batch.what);
    for (const nccl::Op op : batch.ops) {
      api_.check(api_.RedOpDestroy(op, c.handle));
    }
    for (const auto& step : batch.after) {
      step();
    }
    auto work = std::make_shared<Queued>();
    work->end.record(c.stream);
    work->stream = c.stream;
    work->host_waits = host_waits_;
    work->tensors = std::move(batch.tensors);
    work->what = batch.what;
    work->timeout = timeout;
    work->deadline = deadline;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (c.of_all) {
        work->number = ++asked_;
        last_ = batch.what;
      }
      under_way_.push_back(work);
    }
    wake_.notify_one();
    return work;
  }

  // Until a call that NCCL carries out by and by is done.
  void wait_until_done(nccl::Comm comm, Clock::time_point deadline, const std::string& what) {
    auto pause = std::chrono::microseconds(20);
    for (;;) {
      int state = nccl::success;
      api_.check(api_.CommGetAsyncError(comm, &state));
      api_.check(state);
      if (state != nccl::in_progress) {
        return;
      }
      RL_CHECK_AS(BackendError, Clock::now() < deadline, "NCCL: ", what, " timed out on rank ",
                  rank());
      check_usable();
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, std::chrono::microseconds(1000));
    }
  }

  Communicator& communicator_of_all(Device device, Milliseconds timeout) {
    const auto found = of_all_.find(device.index());
    if (found != of_all_.end()) {
      return found->second;
    }
    Communicator& c = of_all_[device.index()];
    try {
      join(c, str("nccl/all/", of_all_.size()), rank(), size(), device, timeout);
    } catch (...) {
      of_all_.erase(device.index());
      throw;
    }
    return c;
  }

  Communicator& pair(int other, Device device, Milliseconds timeout) {
    const auto found = pairs_.find(other);
    if (found != pairs_.end()) {
      return found->second;
    }
    Communicator& c = pairs_[other];
    c.of_all = false;
    try {
      join(c, str("nccl/", std::min(other, rank()), ":", std::max(other, rank())),
           other < rank() ? 1 : 0, 2, device, timeout);
    } catch (...) {
      pairs_.erase(other);
      throw;
    }
    return c;
  }

  // Makes the communicator of the processes that come to the same key of the store.
  void join(Communicator& c, const std::string& key, int number, int count, Device device,
            Milliseconds timeout) {
    const auto deadline = Clock::now() + timeout;
    c.stream = Stream::make(device, high_priority_ ? -1 : 0);
    nccl::UniqueId id{};
    if (number == 0) {
      api_.check(api_.GetUniqueId(&id));
      store_->set(key, std::string(id.bytes.data(), id.bytes.size()));
    } else {
      store_->wait({key}, timeout);
      const std::string told = store_->get(key);
      RL_CHECK_AS(BackendError, told.size() == id.bytes.size(), "the store has no id of NCCL's at ",
                  key);
      std::copy(told.begin(), told.end(), id.bytes.begin());
    }
    const StreamGuard guard(c.stream);
    nccl::Config config;
    nccl::Comm comm = nullptr;
    try {
      api_.check(api_.CommInitRankConfig(&comm, count, id, number, &config));
      wait_until_done(comm, deadline, "connecting the processes");
    } catch (...) {
      if (comm != nullptr) {
        (void)api_.CommAbort(comm);
      }
      throw;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    c.handle = comm;
  }

  // ---- watching ----

  void watch() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopping_ || !under_way_.empty()) {
      if (under_way_.empty()) {
        // Others may want to know how far this rank has come.
        if (published_ == asked_) {
          wake_.wait(lock);
        } else {
          wake_.wait_for(lock, publish_interval);
        }
      } else {
        wake_.wait_for(lock, poll_interval);
      }
      publish(lock);
      finish_ended_works(lock);
    }
  }

  // Lets go what has ended; fails where something went wrong.
  void finish_ended_works(std::unique_lock<std::mutex>& lock) {
    const std::list<std::shared_ptr<Queued>> works = under_way_;
    std::vector<std::shared_ptr<Queued>> ended;
    std::string wrong;
    try {
      for_communicators([&](Communicator& c) {
        int state = nccl::success;
        api_.check(api_.CommGetAsyncError(c.handle, &state));
        api_.check(state);
      });
      lock.unlock();
      for (const auto& work : works) {
        if (work->end.query()) {
          ended.push_back(work);
        } else if (Clock::now() > work->deadline && wrong.empty()) {
          wrong = timeout_text(*work);
        }
      }
    } catch (const std::exception& e) {
      wrong = str("rank ", rank(), ": ", e.what());
    }
    if (lock.owns_lock()) {
      lock.unlock();
    }
    for (const auto& work : ended) {
      work->finish(nullptr);
      work->tensors.clear();
    }
    lock.lock();
    for (const auto& work : ended) {
      under_way_.remove(work);
    }
    if (!wrong.empty()) {
      fail(lock, wrong, tears_down_);
    }
  }

  // Aborts the communicators; what is under way fails.
  void fail(std::unique_lock<std::mutex>& lock, const std::string& why, bool tear_down) {
    if (failed_.empty()) {
      failed_ = why;
    }
    lock.unlock();
    if (tear_down) {
      // What waits on a stream for a collective that was aborted would go on with what lies in
      // memory: the process ends before that.
      (void)std::fprintf(stderr,
                         "%s\nThe process ends here, before anything is computed from what was not "
                         "received; TORCH_NCCL_ASYNC_ERROR_HANDLING=2 raises an error at the next "
                         "collective instead.\n",
                         why.c_str());
      (void)std::fflush(stderr);
      std::_Exit(EXIT_FAILURE);
    }
    // Whoever asks for something now sees `failed_` and lets `calls_` go.
    const std::lock_guard<std::recursive_mutex> calls(calls_);
    lock.lock();
    std::vector<nccl::Comm> comms;
    for_communicators([&](Communicator& c) { comms.push_back(std::exchange(c.handle, nullptr)); });
    const auto works = std::exchange(under_way_, {});
    lock.unlock();
    for (const nccl::Comm comm : comms) {
      (void)api_.CommAbort(comm);
    }
    for (const auto& work : works) {
      work->finish(std::make_exception_ptr(BackendError(why)));
      work->tensors.clear();
    }
    lock.lock();
  }

  template <class F>
  void for_communicators(const F& f) {
    for (auto* const map : {&of_all_, &pairs_}) {
      for (auto& [key, c] : *map) {
        if (c.handle != nullptr) {
          f(c);
        }
      }
    }
  }

  static std::string place_of(int r) { return str("nccl/at/", r); }

  // How many collectives this rank has come to, for others to read, once a second.
  void publish(std::unique_lock<std::mutex>& lock) {
    if (published_ == asked_ || Clock::now() < publish_next_) {
      return;
    }
    const uint64_t at = asked_;
    const std::string text = str(at, " ", last_);
    lock.unlock();
    try {
      watchers_store_->set(place_of(rank()), text);
    } catch (const std::exception&) {
      // The store's keeper is gone, as the collectives will find.
    }
    lock.lock();
    published_ = at;
    publish_next_ = Clock::now() + publish_interval;
  }

  // What is said of a work that has taken too long, and which ranks have not come to it.
  std::string timeout_text(const Queued& work) {
    const std::string text =
        str("Watchdog caught collective operation timeout: ", work.what, " did not end within ",
            work.timeout.count(), " ms on rank ", rank());
    if (work.number == 0) {
      return text;
    }
    std::string late;
    try {
      {
        std::unique_lock<std::mutex> lock(mutex_);
        publish_next_ = Clock::now();
        publish(lock);
      }
      std::this_thread::sleep_for(publish_interval + publish_interval / 4);
      for (int r = 0; r < size(); r++) {
        const std::string at =
            watchers_store_->check({place_of(r)}) ? watchers_store_->get(place_of(r)) : "0 nothing";
        if (std::stoull(at) < work.number) {
          late += str(late.empty() ? ": " : ", ", "rank ", r, " has not come to it (call ",
                      work.number, " of the group; it is at ", at, ")");
        }
      }
    } catch (const std::exception& e) {
      return str(text, "; the store, which has what the others do, cannot be reached: ", e.what());
    }
    return text + (late.empty() ? ", to which all ranks have come" : late);
  }

  void end(bool give_up) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (give_up) {
      fail(lock, "the process group was aborted", false);
    }
    stopping_ = true;
    lock.unlock();
    wake_.notify_all();
    if (watcher_.joinable()) {
      watcher_.join();
    }
    lock.lock();
    for_communicators([&](Communicator& c) {
      const nccl::Comm comm = std::exchange(c.handle, nullptr);
      try {
        api_.check(api_.CommFinalize(comm));
        wait_until_finalized(comm);
        api_.check(api_.CommDestroy(comm));
      } catch (const std::exception&) {
        (void)api_.CommAbort(comm);  // nobody waits for what it would have said
      }
    });
  }
  // All works have ended, so that this takes no time; one that hangs is aborted.
  void wait_until_finalized(nccl::Comm comm) {
    for (int i = 0; i < 2000; i++) {
      int state = nccl::success;
      api_.check(api_.CommGetAsyncError(comm, &state));
      api_.check(state);
      if (state != nccl::in_progress) {
        return;
      }
      std::this_thread::sleep_for(poll_interval);
    }
    throw BackendError("NCCL: ending the communicator timed out");
  }

  const nccl::Api& api_;
  std::shared_ptr<Store> store_;
  std::shared_ptr<Store> watchers_store_;
  bool high_priority_;
  pid_t process_;
  bool host_waits_;
  bool tears_down_;

  std::recursive_mutex calls_;  // held by whoever asks for collectives; `mutex_` is taken within
  std::unique_ptr<Batch> group_;
  std::map<int, Communicator> of_all_;  // by device
  std::map<int, Communicator> pairs_;   // by the other rank

  std::mutex mutex_;  // of what follows, and of the communicators' handles
  std::condition_variable wake_;
  std::list<std::shared_ptr<Queued>> under_way_;
  std::string failed_;
  bool stopping_ = false;
  uint64_t asked_ = 0;
  std::string last_;
  uint64_t published_ = 0;
  Clock::time_point publish_next_;
  std::thread watcher_;
};

std::shared_ptr<Backend> make(const BackendOptions& options) {
  return std::make_shared<NcclBackend>(options);
}

const Plugin plugin = {interface_hash, make, nccl::find};

}  // namespace

}  // namespace rushlight::distributed

extern "C" RL_API const rushlight::distributed::Plugin* rushlight_distributed_plugin() {
  return &rushlight::distributed::plugin;
}
