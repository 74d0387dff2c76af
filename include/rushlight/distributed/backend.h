// What an engine that moves bytes between processes is to the rest: asynchronous collectives on
// dense tensors of one type of device, which end, fail, or are given up.
//
// Engines are plug-ins, loaded on demand (`load_plugin`). One that only passes messages implements
// `Channel` and gets its collectives from `make_message_backend` (messages.cpp); one that brings
// collectives of its own implements `Backend`.
#pragma once

#include <atomic>
#include <exception>

#include <rushlight/tensor.h>

#include <rushlight/distributed/store.h>

namespace rushlight::distributed {

// The numbers are PyTorch's.
enum class ReduceKind { Sum, Avg, Product, Min, Max, BAnd, BOr, BXor, PremulSum };
struct Reduction {
  ReduceKind kind = ReduceKind::Sum;
  double factor = 1;  // of PremulSum
};

// Is called once.
class RL_API Callback {
 public:
  virtual ~Callback();
  virtual void call() = 0;
};

// Something under way. It ends once, well or with an error. What is under way on a device is waited
// for by the device's current stream, not by the host: `wait` without a timeout returns at once.
class RL_API Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work();

  // Until it has ended; throws its error, or BackendError where `timeout` (if any) passes first.
  virtual void wait(std::optional<Milliseconds> timeout = std::nullopt);
  bool is_completed() const { return completed_.load(std::memory_order_acquire); }
  bool is_success() const { return is_completed() && error_ == nullptr; }
  // Null while it is under way and where all went well.
  std::exception_ptr error() const { return is_completed() ? error_ : nullptr; }
  // The rank that a message came from.
  int source() const { return source_; }
  // Called once it has ended, at once where it has; on any thread.
  void then(std::unique_ptr<Callback> callback);

  void finish(std::exception_ptr error);
  void set_source(int rank) { source_ = rank; }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::atomic<bool> completed_{false};
  std::exception_ptr error_;
  int source_ = -1;
  std::vector<std::unique_ptr<Callback>> callbacks_;
};

using Tensors = std::vector<Tensor>;
using WorkPtr = std::shared_ptr<Work>;

// The processes of a group as one of them sees it. Each calls the same collectives in the same
// order, and none blocks: what is written and read must be left alone until the work has ended.
// Several tensors in one call go together.
//
// The thread that lets a collective be carried out may use it, too: in a callback of a work it has
// ended before the call returns.
class RL_API Backend {
 public:
  Backend(int rank, int size) : rank_(rank), size_(size) {}
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend();
  int rank() const { return rank_; }
  int size() const { return size_; }
  virtual const char* name() const = 0;
  // Where its tensors lie.
  virtual DeviceType device_type() const { return kCPU; }
  // Connects the processes for a device now, not with the first of its tensors.
  virtual void connect([[maybe_unused]] Device device, [[maybe_unused]] Milliseconds timeout) {}
  // Whether what is asked for between `begin_group` and `end_group`, by one thread, goes together
  // as one work; what each of those gives by itself is null.
  virtual bool can_group() const { return false; }
  virtual void begin_group() {}
  virtual WorkPtr end_group(Milliseconds timeout);
  // Whether ranks may have inputs of different lengths in `all_gather` and `reduce_scatter`.
  virtual bool accepts_uneven() const { return false; }
  // The rank that another one has given up waiting for, as it said; -1 where it said nothing.
  virtual int rank_lost_by([[maybe_unused]] int rank) const { return -1; }
  // Say to the others that this one gives up waiting for `rank`.
  virtual void give_up([[maybe_unused]] int rank) {}

  virtual WorkPtr broadcast(Tensors tensors, int root, Milliseconds timeout) = 0;
  virtual WorkPtr all_reduce(Tensors tensors, Reduction op, Milliseconds timeout) = 0;
  virtual WorkPtr reduce(Tensor tensor, int root, Reduction op, Milliseconds timeout) = 0;
  // outputs[i] has what rank i has as its input.
  virtual WorkPtr all_gather(Tensors outputs, Tensor input, Milliseconds timeout) = 0;
  virtual WorkPtr gather(Tensors outputs, Tensor input, int root, Milliseconds timeout) = 0;
  virtual WorkPtr scatter(Tensor output, Tensors inputs, int root, Milliseconds timeout) = 0;
  virtual WorkPtr reduce_scatter(Tensor output, Tensors inputs, Reduction op,
                                 Milliseconds timeout) = 0;
  virtual WorkPtr all_to_all(Tensors outputs, Tensors inputs, Milliseconds timeout) = 0;
  virtual WorkPtr barrier(Milliseconds timeout) = 0;
  virtual WorkPtr send(Tensor tensor, int to, uint32_t tag, Milliseconds timeout) = 0;
  // From anybody where `from` is -1.
  virtual WorkPtr receive(Tensor tensor, int from, uint32_t tag, Milliseconds timeout) = 0;

  // Lets what was asked for end, and closes the connections.
  virtual void shutdown() = 0;
  // Gives everything up: what is under way fails.
  virtual void abort() = 0;

 private:
  int rank_;
  int size_;
};

// While it stands, this thread waits for what it asks for: a collective for which nothing else is
// to be done first may be carried out by this thread itself.
class RL_API AtOnce {
 public:
  explicit AtOnce(bool on);
  ~AtOnce();
  AtOnce(const AtOnce&) = delete;
  AtOnce& operator=(const AtOnce&) = delete;
  static bool is_active();

 private:
  bool before_;
};

// A message on its way: memory that is sent from or received into, left alone until it has ended.
class RL_API Message {
 public:
  virtual ~Message();
  virtual void send(int to, uint64_t slot) = 0;
  virtual void receive(int from, uint64_t slot) = 0;
  virtual void receive_from_any(uint64_t slot) = 0;
  // Throw BackendError where the connection is lost, the time is over, or all was given up.
  virtual void wait_sent(Milliseconds timeout) = 0;
  virtual int wait_received(Milliseconds timeout) = 0;  // the rank that it came from
};

// Connections to all other ranks. A message goes to the receiver's memory of the same slot.
class RL_API Channel {
 public:
  virtual ~Channel();
  virtual const char* name() const = 0;
  // Memory for a message to be sent from, or received into, where it may be shorter.
  virtual std::unique_ptr<Message> message(void* memory, size_t bytes) = 0;
  // Whether what is sent waits for word that its receiver is ready for it.
  virtual bool waits_for_receiver() const { return false; }
  virtual void abort() = 0;  // whoever waits is woken and told; from any thread
  virtual void close() = 0;
};

RL_API std::shared_ptr<Backend> make_message_backend(int rank, int size,
                                                     std::unique_ptr<Channel> channel);

struct BackendOptions {
  std::shared_ptr<Store> store;
  int rank;
  int size;
  Milliseconds timeout;
  std::string interface;       // a network interface, or empty
  std::string hostname;        // an address of this machine, or empty: the loopback interface
  bool high_priority = false;  // whether work on devices goes before other work
};

// What starts an engine's processes (mpirun), and so knows how many there are.
class RL_API Launcher {
 public:
  struct Place {
    int rank;
    int size;
  };
  virtual ~Launcher();
  // This process's place among those that were started together.
  virtual Place enter() = 0;
  // What rank 0 says, to all, each of which calls it.
  virtual std::string broadcast_text(const std::string& text) = 0;
};

// What a plug-in's `rushlight_distributed_plugin` returns.
struct Plugin {
  const char* interface_hash;  // of the headers that it was built with
  std::shared_ptr<Backend> (*make)(const BackendOptions& options);
  // Of an engine that uses a library found at run time: where that lies, looked for in `folders`
  // and where the system has libraries; empty where there is none. Is asked before all else.
  std::string (*find)(const std::vector<std::string>& folders) = nullptr;
  Launcher* launcher = nullptr;  // where the engine has one
};

// The file of a plug-in; empty where there is none.
RL_API std::string plugin_path(const std::string& name);
RL_API const Plugin& load_plugin(const std::string& name);

// out[i] = what `op` makes of parts[0][i], parts[1][i] and so on, in this order. The parts are of
// `out`'s dtype; 16-bit floats are computed in float32 and rounded once. `out` may be one of the
// parts.
RL_API void combine(void* out, const std::vector<const void*>& parts, int64_t count,
                    ScalarType dtype, const Reduction& op);
// Throws TypeError or ValueError where an op does not go with a dtype.
RL_API void check_reduction(ScalarType dtype, const Reduction& op);

}  // namespace rushlight::distributed
