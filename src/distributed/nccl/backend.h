// The engine "nccl": collectives of NVIDIA's NCCL on tensors of GPUs.
//
// It knows a GPU by its streams and events alone (rushlight/stream.h) and finds NCCL at run time,
// so that it is built without either. Collectives are queued on a stream of their own, which waits
// for the stream of the caller, as that one does for them when a work is waited for. A thread
// watches what is queued: it tells works of their end, and where one fails or takes too long, all
// communicators of the group are aborted.
#pragma once

#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "distributed/nccl/batch.h"

namespace rushlight::distributed {

class NcclBackend : public Backend {
 public:
  explicit NcclBackend(const BackendOptions& options);
  ~NcclBackend() override;
  const char* name() const override { return "nccl"; }
  DeviceType device_type() const override { return kCUDA; }
  bool accepts_uneven() const override { return true; }

  void shutdown() override { end(false); }
  void abort() override { end(true); }

  void connect(Device device, Milliseconds timeout) override;

  // ---- what goes together ----

  bool can_group() const override { return true; }
  void begin_group() override;
  WorkPtr end_group(Milliseconds timeout) override;

  // ---- collectives ----

  WorkPtr broadcast(Tensors tensors, int root, Milliseconds timeout) override;
  WorkPtr all_reduce(Tensors tensors, Reduction op, Milliseconds timeout) override;
  WorkPtr reduce(Tensor tensor, int root, Reduction op, Milliseconds timeout) override;
  WorkPtr all_gather(Tensors outputs, Tensor input, Milliseconds timeout) override;
  WorkPtr reduce_scatter(Tensor output, Tensors inputs, Reduction op,
                         Milliseconds timeout) override;
  WorkPtr gather(Tensors outputs, Tensor input, int root, Milliseconds timeout) override;
  WorkPtr scatter(Tensor output, Tensors inputs, int root, Milliseconds timeout) override;
  WorkPtr all_to_all(Tensors outputs, Tensors inputs, Milliseconds timeout) override;
  WorkPtr barrier(Milliseconds timeout) override;

  // ---- messages ----

  WorkPtr send(Tensor tensor, int to, uint32_t /*tag*/, Milliseconds timeout) override;
  WorkPtr receive(Tensor tensor, int from, uint32_t /*tag*/, Milliseconds timeout) override;

 private:
  void check_rank(int r) const {
    RL_CHECK_VALUE(r >= 0 && r < size(), "rank ", r, " is not in a group of ", size());
  }
  void check_peer(int r) const {
    check_rank(r);
    RL_CHECK_VALUE(r != rank(), "a message to oneself");
  }
  void check_usable();

  // ---- reductions ----

  static void check_op(ScalarType dtype, const Reduction& op);
  nccl::Op op_of(ScalarType dtype, const Reduction& op, Batch& b);
  void reduce_to(Batch& b, const Tensor& from, const Tensor& to, int root, const Reduction& op);
  void send_to(Batch& b, const Tensor& from, int to);
  void receive_from(Batch& b, const Tensor& to, int from);
  // A rank's number in the communicator of a message: all, or the two.
  int number_of(const Batch& b, int other) const {
    return b.communicator->of_all ? other : (other > rank() ? 1 : 0);
  }

  // ---- queueing ----

  // Queues what `calls` asks of NCCL, behind what the current stream has. `peer`: of a message,
  // which has a communicator of its own, so that it waits for nothing else.
  WorkPtr queue(const std::string& what, const Tensor& like, Milliseconds timeout,
                const std::function<void(Batch&)>& calls, int peer = -1);
  WorkPtr launch(Batch& batch, Milliseconds timeout);

  // Until a call that NCCL carries out by and by is done.
  void wait_until_done(nccl::Comm comm, Clock::time_point deadline, const std::string& what);
  Communicator& communicator_of_all(Device device, Milliseconds timeout);
  Communicator& pair(int other, Device device, Milliseconds timeout);

  // Makes the communicator of the processes that come to the same key of the store.
  void join(Communicator& c, const std::string& key, int number, int count, Device device,
            Milliseconds timeout);

  // ---- watching ----

  void watch();

  // Lets go what has ended; fails where something went wrong.
  void finish_ended_works(std::unique_lock<std::mutex>& lock);

  // Aborts the communicators; what is under way fails.
  void fail(std::unique_lock<std::mutex>& lock, const std::string& why, bool tear_down);
  template <class F>
  void for_communicators(const F& f);
  static std::string place_of(int r) { return str("nccl/at/", r); }

  // How many collectives this rank has come to, for others to read, once a second.
  void publish(std::unique_lock<std::mutex>& lock);

  // What is said of a work that has taken too long, and which ranks have not come to it.
  std::string timeout_text(const Queued& work);
  void end(bool give_up);
  // All works have ended, so that this takes no time; one that hangs is aborted.
  void wait_until_finalized(nccl::Comm comm);

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

}  // namespace rushlight::distributed
