// Collectives of messages between pairs of ranks, for engines that only pass those.
//
// One thread carries out what was asked for, in order; where nothing else waits, a caller that
// waits does it itself. All ranks exchange directly: small tensors go to everybody, who combines
// them; of large ones each rank gets, combines and hands out a part, in pieces of which one travels
// while another is combined. Both ways combine in the order of ranks.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <deque>
#include <functional>
#include <thread>

#include "distributed/message_call.h"
#include "distributed/pipe_signal.h"

namespace rushlight::distributed {

namespace {

constexpr int64_t small_bytes = int64_t{1} << 15;  // of all ranks together
constexpr int64_t piece_bytes = int64_t{1} << 20;
constexpr int64_t window_bytes = int64_t{1} << 25;  // of all ranks' pieces that are under way

// What another rank says before it gives up: which rank it has lost.
class Note {
 public:
  void expect(Channel& channel, int from) {
    try {
      message_ = channel.message(&lost_, sizeof lost_);
      message_->receive(from, note_slot);
    } catch (const BackendError&) {
      message_.reset();  // it is gone already, as the first collective will find
    }
  }
  // The lost rank; -1 where nothing has come.
  int lost_rank() const { return std::atomic_ref<int32_t>(lost_).load(); }
  // The same of a rank that does not answer any more, of which nothing else will come.
  int read() {
    if (message_ != nullptr) {
      try {
        message_->wait_received(Milliseconds(1));
      } catch (const BackendError&) {
        message_.reset();
      }
    }
    return lost_rank();
  }

 private:
  mutable int32_t lost_ = -1;  // the engine's thread writes it
  std::unique_ptr<Message> message_;
};

class MessageBackend : public Backend, private Failures {
 public:
  MessageBackend(int rank, int size, std::unique_ptr<Channel> channel)
      : Backend(rank, size),
        channel_(std::move(channel)),
        process_(getpid()),
        notes_(static_cast<size_t>(size)) {
    for_other_ranks([this](int r) { notes_[static_cast<size_t>(r)].expect(*channel_, r); });
    if (channel_->waits_for_receiver() && size > 1) {
      inboxes_.resize(static_cast<size_t>(size));
      for_other_ranks([this](int r) {
        inboxes_[static_cast<size_t>(r)] = std::make_unique<Inbox>(*channel_, r);
      });
    }
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~MessageBackend() override {
    if (getpid() != process_) {
      thread_.detach();          // a fork has no threads,
      (void)channel_.release();  // and the connections are its parent's
      (void)new std::vector<Note>(std::move(notes_));
      (void)new std::vector<std::unique_ptr<Inbox>>(std::move(inboxes_));
      return;
    }
    shutdown();
  }
  const char* name() const override { return channel_->name(); }
  int rank_lost_by(int r) const override {
    check_rank(r);
    return notes_[static_cast<size_t>(r)].lost_rank();
  }

  void shutdown() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
      if (runner_ == std::this_thread::get_id()) {
        return;  // in a callback of a work: the thread ends once that has returned
      }
    }
    wake_.notify_all();
    const std::lock_guard<std::mutex> lock(join_mutex_);
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  // The last to hold it may be a callback that its own thread calls.
  static void drop(MessageBackend* backend) {
    if (getpid() != backend->process_ || backend->thread_.get_id() != std::this_thread::get_id()) {
      delete backend;
      return;
    }
    const std::lock_guard<std::mutex> lock(backend->mutex_);
    backend->stopping_ = true;
    backend->ends_itself_ = true;
    backend->thread_.detach();
  }
  void abort() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      aborted_ = true;
    }
    channel_->abort();
    shutdown();
  }

  void give_up(int r) override {
    check_rank(r);
    if (!aborted_ && size() > 1) {
      announce_lost(r);
    }
  }

  WorkPtr broadcast(Tensors tensors, int root, Milliseconds timeout) override {
    check_rank(root);
    return enqueue("broadcast", Kind::Broadcast, timeout, [=, this](Call& call) {
      for (const Tensor& t : tensors) {
        const Tensor d = rank() == root ? dense(t) : dense_output(t);
        broadcast_bytes(call, memory(d), bytes_of(d), root);
        if (rank() != root) {
          write_back(t, d);
        }
      }
    });
  }

  WorkPtr all_reduce(Tensors tensors, Reduction op, Milliseconds timeout) override {
    for (const Tensor& t : tensors) {
      check_reduction(t.dtype(), op);
    }
    return enqueue("all_reduce", Kind::AllReduce, timeout, [=, this](Call& call) {
      if (tensors.size() == 1) {
        const Tensor d = dense(tensors[0]);
        reduce_dense(call, d, d, op, -1);
        write_back(tensors[0], d);
        return;
      }
      // Several go as one, all read before any is written: a tensor may stand there twice.
      for (const auto& [dtype, list] : by_dtype(tensors)) {
        int64_t count = 0;
        for (const Tensor& t : list) {
          count += t.numel();
        }
        const Tensor flat = make_empty({count}, dtype, kCPU);
        const auto each = [&](const auto& f) {
          char* at = memory(flat);
          for (const Tensor& t : list) {
            f(t, at);
            at += bytes_of(t);
          }
        };
        each([](const Tensor& t, char* at) {
          const Tensor d = dense(t);
          std::memcpy(at, memory(d), static_cast<size_t>(bytes_of(d)));
        });
        reduce_dense(call, flat, flat, op, -1);
        each([](const Tensor& t, const char* at) {
          const Tensor d = dense_output(t);
          std::memcpy(memory(d), at, static_cast<size_t>(bytes_of(d)));
          write_back(t, d);
        });
      }
    });
  }

  WorkPtr reduce(Tensor tensor, int root, Reduction op, Milliseconds timeout) override {
    check_rank(root);
    check_reduction(tensor.dtype(), op);
    return enqueue("reduce", Kind::Reduce, timeout, [=, this](Call& call) {
      const Tensor d = dense(tensor);
      const Tensor out =
          rank() == root ? d : make_empty(d.sizes(), d.dtype(), d.device());  // theirs is kept
      reduce_dense(call, d, out, op, root);
      if (rank() == root) {
        write_back(tensor, d);
      }
    });
  }

  WorkPtr all_gather(Tensors outputs, Tensor input, Milliseconds timeout) override {
    return enqueue("all_gather", Kind::AllGather, timeout, [=, this](Call& call) {
      const Tensor in = dense(input);
      call.begin_step();
      Tensors places;
      for (int r = 0; r < size(); r++) {
        places.push_back(dense_output(outputs[static_cast<size_t>(r)]));
        if (r != rank()) {
          call.receive(r, memory(places.back()), bytes_of(places.back()));
        }
      }
      for_other_ranks([&](int r) { call.send(r, memory(in), bytes_of(in)); });
      copy_if_other(places[static_cast<size_t>(rank())], in);
      call.wait_all();
      for (size_t r = 0; r < places.size(); r++) {
        write_back(outputs[r], places[r]);
      }
    });
  }

  WorkPtr gather(Tensors outputs, Tensor input, int root, Milliseconds timeout) override {
    check_rank(root);
    return enqueue("gather", Kind::Gather, timeout, [=, this](Call& call) {
      const Tensor in = dense(input);
      call.begin_step();
      if (rank() != root) {
        call.send(root, memory(in), bytes_of(in));
        call.wait_all();
        return;
      }
      Tensors places;
      for (int r = 0; r < size(); r++) {
        places.push_back(dense_output(outputs[static_cast<size_t>(r)]));
        if (r != root) {
          call.receive(r, memory(places.back()), bytes_of(places.back()));
        }
      }
      copy_if_other(places[static_cast<size_t>(root)], in);
      call.wait_all();
      for (size_t r = 0; r < places.size(); r++) {
        write_back(outputs[r], places[r]);
      }
    });
  }

  WorkPtr scatter(Tensor output, Tensors inputs, int root, Milliseconds timeout) override {
    check_rank(root);
    return enqueue("scatter", Kind::Scatter, timeout, [=, this](Call& call) {
      const Tensor out = dense_output(output);
      call.begin_step();
      if (rank() != root) {
        call.receive(root, memory(out), bytes_of(out));
        call.wait_all();
      } else {
        Tensors parts;
        for (const Tensor& t : inputs) {
          parts.push_back(dense(t));
        }
        for_other_ranks([&](int r) {
          const Tensor& part = parts[static_cast<size_t>(r)];
          call.send(r, memory(part), bytes_of(part));
        });
        copy_if_other(out, parts[static_cast<size_t>(root)]);
        call.wait_all();
      }
      write_back(output, out);
    });
  }

  WorkPtr reduce_scatter(Tensor output, Tensors inputs, Reduction op,
                         Milliseconds timeout) override {
    check_reduction(output.dtype(), op);
    return enqueue("reduce_scatter", Kind::ReduceScatter, timeout, [=, this](Call& call) {
      Tensors parts;
      std::vector<Range> ranges;
      for (const Tensor& t : inputs) {
        parts.push_back(dense(t));
        ranges.push_back({memory(parts.back()), t.numel()});
      }
      const Tensor out = dense_output(output);
      combine_range(call, ranges, memory(out), output.dtype(), op);
      call.wait_all();
      write_back(output, out);
    });
  }

  WorkPtr all_to_all(Tensors outputs, Tensors inputs, Milliseconds timeout) override {
    return enqueue("all_to_all", Kind::AllToAll, timeout, [=, this](Call& call) {
      Tensors places;
      Tensors parts;
      for (const Tensor& t : inputs) {
        parts.push_back(dense(t));
      }
      call.begin_step();
      for (int r = 0; r < size(); r++) {
        places.push_back(dense_output(outputs[static_cast<size_t>(r)]));
        if (r != rank()) {
          call.receive(r, memory(places.back()), bytes_of(places.back()));
        }
      }
      for_other_ranks([&](int r) {
        const Tensor& part = parts[static_cast<size_t>(r)];
        call.send(r, memory(part), bytes_of(part));
      });
      const auto own = static_cast<size_t>(rank());
      copy_if_other(places[own], parts[own]);
      call.wait_all();
      for (size_t r = 0; r < places.size(); r++) {
        write_back(outputs[r], places[r]);
      }
    });
  }

  // In round k each rank hears from the one 2^k before it: after the last, from all.
  WorkPtr barrier(Milliseconds timeout) override {
    return enqueue("barrier", Kind::Barrier, timeout, [this](Call& call) {
      char token[2] = {1, 0};
      for (int distance = 1; distance < size(); distance *= 2) {
        call.begin_step();
        call.receive((rank() - distance + size()) % size(), token + 1, 1);
        call.send((rank() + distance) % size(), token, 1);
        call.wait_all();
      }
    });
  }

  WorkPtr send(Tensor tensor, int to, uint32_t tag, Milliseconds timeout) override {
    check_rank(to);
    const Tensor d = dense(tensor);
    auto work = std::make_shared<PairWork>(rank(), to, d, Tensor(), timeout);
    work->message = channel_->message(memory(d), static_cast<size_t>(bytes_of(d)));
    work->message->send(to, pair_slot(tag, static_cast<size_t>(bytes_of(d))));
    return work;
  }

  WorkPtr receive(Tensor tensor, int from, uint32_t tag, Milliseconds timeout) override {
    const Tensor d = dense_output(tensor);
    auto work = std::make_shared<PairWork>(rank(), from, d, tensor, timeout);
    work->message = channel_->message(memory(d), static_cast<size_t>(bytes_of(d)));
    const uint64_t slot = pair_slot(tag, static_cast<size_t>(bytes_of(d)));
    if (from < 0) {
      work->message->receive_from_any(slot);
    } else {
      check_rank(from);
      work->message->receive(from, slot);
    }
    return work;
  }

 private:
  struct Job {
    const char* what;
    Kind kind;
    Milliseconds timeout;
    std::function<void(Call&)> run;
    WorkPtr work;
  };
  struct Range {
    char* data;
    int64_t count;
  };

  void check_rank(int r) const {
    RL_CHECK_VALUE(r >= 0 && r < size(), "invalid rank ", r, " in a group of ", size());
  }
  template <class F>
  void for_other_ranks(const F& f) const {
    // Each begins with its neighbour, so that not all send to the same one first.
    for (int i = 1; i < size(); i++) {
      f((rank() + i) % size());
    }
  }
  static void copy_if_other(const Tensor& to, const Tensor& from) {
    if (memory(to) != memory(from) && to.numel() != 0) {
      std::memmove(memory(to), memory(from), static_cast<size_t>(bytes_of(from)));
    }
  }

  WorkPtr enqueue(const char* what, Kind kind, Milliseconds timeout,
                  std::function<void(Call&)> run) {
    Job job{what, kind, timeout, std::move(run), std::make_shared<Work>()};
    WorkPtr work = job.work;
    std::unique_lock<std::mutex> lock(mutex_);
    RL_CHECK_AS(BackendError, !stopping_ && thread_.joinable(), what,
                ": the process group was destroyed");
    if (runner_ == std::this_thread::get_id()) {  // a callback of the one before
      lock.unlock();
      run_job(job);
    } else if (AtOnce::is_active() && jobs_.empty() && runner_ == std::thread::id()) {
      runner_ = std::this_thread::get_id();
      lock.unlock();
      {
        const NoPipeSignal no_signal;
        run_job(job);
      }
      lock.lock();
      runner_ = std::thread::id();
      if (stopping_ || !jobs_.empty()) {
        lock.unlock();
        wake_.notify_one();
      }
    } else {
      jobs_.push_back(std::move(job));
      lock.unlock();
      wake_.notify_one();
    }
    return work;
  }

  void run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock,
                 [this] { return runner_ == std::thread::id() && (stopping_ || !jobs_.empty()); });
      if (jobs_.empty()) {
        break;
      }
      {
        Job job = std::move(jobs_.front());
        jobs_.pop_front();
        runner_ = std::this_thread::get_id();
        lock.unlock();
        run_job(job);
      }
      lock.lock();
      runner_ = std::thread::id();
    }
    const bool ends_itself = ends_itself_;
    lock.unlock();
    channel_->close();
    if (ends_itself) {
      delete this;
    }
  }

  // By one thread at a time, which is `runner_`.
  void run_job(Job& job) {
    std::exception_ptr error;
    try {
      RL_CHECK_AS(BackendError, !aborted_, "the process group was aborted");
      RL_CHECK_AS(BackendError, failure_.empty(), "an earlier collective failed: ", failure_);
      Call call(*channel_, *this, inboxes_, job.kind, number_++, job.timeout);
      job.run(call);
    } catch (const std::exception& e) {
      const std::string why = str("Rank ", rank(), ": ", job.what, " failed: ", e.what());
      if (failure_.empty()) {
        failure_ = e.what();
        // What the others wait for will not come: they are told by the end of the connections.
        if (lost_ >= 0) {
          announce_lost(lost_);
        }
        channel_->abort();
        channel_->close();
      }
      error = std::make_exception_ptr(BackendError(why));
    }
    job.run = nullptr;  // gives the tensors back before anybody is told
    job.work->finish(error);
  }

  // A rank did not answer. Where that is because it has lost another one, it said so before.
  [[noreturn]] void raise_lost_rank(int other, const std::string& why) override {
    lost_ = notes_[static_cast<size_t>(other)].read();
    if (lost_ < 0) {
      lost_ = other;
      throw BackendError(str("lost rank ", other, ": ", why));
    }
    throw BackendError(str("lost rank ", lost_, " (rank ", other, " saw it, and is gone): ", why));
  }

  // The other ranks may wait for this one, which gives up: they are to know for whom it waited.
  void announce_lost(int32_t lost) {
    if (passed_on_.exchange(true)) {
      return;
    }
    said_ = lost;
    std::vector<std::unique_ptr<Message>> messages;
    for_other_ranks([&](int r) {
      if (r != lost) {
        try {
          messages.push_back(channel_->message(&said_, sizeof said_));
          messages.back()->send(r, note_slot);
        } catch (const BackendError&) {
          messages.pop_back();  // it is gone, too
        }
      }
    });
    for (const auto& message : messages) {
      try {
        message->wait_sent(Milliseconds(200));
      } catch (const BackendError&) {
        continue;  // it is gone, too
      }
    }
  }

  // Memory that is kept.
  char* scratch_of(int64_t bytes) {
    if (bytes > scratch_bytes_) {
      scratch_ = std::make_unique_for_overwrite<char[]>(static_cast<size_t>(bytes));
      scratch_bytes_ = bytes;
    }
    return scratch_.get();
  }

  void broadcast_bytes(Call& call, char* data, int64_t bytes, int root) {
    // A binomial tree over ranks counted from the root.
    const int n = size();
    const int me = (rank() - root + n) % n;
    const auto real = [&](int r) { return (r + root) % n; };
    call.begin_step();
    int bit = 1;
    while (bit < n && (me & bit) == 0) {
      bit *= 2;
    }
    const uint64_t first_step = call.step();
    const int64_t pieces = std::max<int64_t>(1, (bytes + piece_bytes - 1) / piece_bytes);
    const auto piece = [&](int64_t p, int64_t& begin) {
      begin = p * piece_bytes;
      return std::min(piece_bytes, bytes - begin);
    };
    int64_t begin;
    if (me != 0) {
      for (int64_t p = 0; p < pieces; p++) {
        call.set_step(first_step + static_cast<uint64_t>(p));
        const int64_t length = piece(p, begin);
        call.receive(real(me - bit), data + begin, length);
      }
    }
    for (int64_t p = 0; p < pieces; p++) {
      call.set_step(first_step + static_cast<uint64_t>(p));
      const int64_t length = piece(p, begin);
      if (me != 0 && length != 0) {
        call.wait_received(1);
      }
      for (int child = bit / 2; child >= 1; child /= 2) {
        if (me + child < n) {
          call.send(real(me + child), data + begin, length);
        }
      }
    }
    call.wait_all();
    call.set_step(first_step + static_cast<uint64_t>(pieces));
  }

  void reduce_dense(Call& call, const Tensor& in, const Tensor& out, const Reduction& op,
                    int root) {
    const int64_t bytes = bytes_of(in);
    if (size() == 1) {
      combine(memory(out), {memory(in)}, in.numel(), in.dtype(), op);
      return;
    }
    if (bytes * size() <= small_bytes) {
      reduce_small(call, in, out, op, root);
    } else {
      reduce_large(call, in, out, op, root);
    }
  }

  void reduce_small(Call& call, const Tensor& in, const Tensor& out, const Reduction& op,
                    int root) {
    const int64_t bytes = bytes_of(in);
    call.begin_step();
    if (root >= 0 && root != rank()) {
      call.send(root, memory(in), bytes);
      call.wait_all();
      return;
    }
    char* const scratch = scratch_of(bytes * size());
    std::vector<const void*> parts(static_cast<size_t>(size()));
    parts[static_cast<size_t>(rank())] = memory(in);
    for_other_ranks([&](int r) {
      char* const place = scratch + r * bytes;
      parts[static_cast<size_t>(r)] = place;
      call.receive(r, place, bytes);
    });
    if (root < 0) {
      for_other_ranks([&](int r) { call.send(r, memory(in), bytes); });
    }
    call.wait_all();
    combine(memory(out), parts, in.numel(), in.dtype(), op);
  }

  void reduce_large(Call& call, const Tensor& in, const Tensor& out, const Reduction& op,
                    int root) {
    const auto width = static_cast<int64_t>(itemsize(in.dtype()));
    // Parts of whole cache lines.
    const int64_t line = 64 / std::min<int64_t>(width, 64);
    const int64_t lines = (in.numel() + line - 1) / line;
    std::vector<Range> ranges;
    for (int r = 0; r < size(); r++) {
      const int64_t begin = std::min(in.numel(), lines * r / size() * line);
      const int64_t end = std::min(in.numel(), lines * (r + 1) / size() * line);
      ranges.push_back({memory(in) + begin * width, end - begin});
    }
    const auto own = static_cast<size_t>(rank());
    char* const mine = memory(out) + (ranges[own].data - memory(in));
    const uint64_t base = call.step();
    combine_range(call, ranges, mine, in.dtype(), op);
    call.wait_all();  // what others get lies where their results belong
    // Asked for before anything is sent: otherwise Gloo sends in one direction at a time.
    call.set_step(base + second_half);
    if (root < 0 || root == rank()) {
      for_other_ranks([&](int r) {
        const Range& range = ranges[static_cast<size_t>(r)];
        call.receive(r, memory(out) + (range.data - memory(in)), range.count * width);
      });
    }
    if (root < 0) {
      for_other_ranks([&](int r) { call.send(r, mine, ranges[own].count * width); });
    } else if (root != rank()) {
      call.send(root, mine, ranges[own].count * width);
    }
    call.wait_all();
    call.set_step(base + 1);
  }

  // Sends every rank its range and combines this one's into `out`, in pieces.
  void combine_range(Call& call, const std::vector<Range>& ranges, char* out, ScalarType dtype,
                     const Reduction& op) {
    const auto width = static_cast<int64_t>(itemsize(dtype));
    const int64_t piece = piece_bytes / width;
    const auto own = static_cast<size_t>(rank());
    const int64_t count = ranges[own].count;
    const int64_t pieces = (count + piece - 1) / piece;
    const uint64_t base = call.step() + 1;
    const int64_t held = std::min(piece, count) * width;  // of one rank
    // A sender waits for word that its piece is awaited, which stands behind what this rank sends:
    // so many are asked for beforehand that neither direction runs dry.
    const int64_t windows =
        std::clamp(window_bytes / std::max<int64_t>(held * size(), 1), int64_t{2}, pieces + 2);
    char* const scratch = scratch_of(std::min(windows, pieces) * held * size());
    const auto place = [&](int64_t p, int r) {
      return scratch + ((p % windows) * size() + r) * held;
    };
    const auto post = [&](int64_t p) {
      call.set_step(base + static_cast<uint64_t>(p));
      const int64_t length = std::min(piece, count - p * piece) * width;
      for_other_ranks([&](int r) { call.receive(r, place(p, r), length); });
    };
    for (int64_t p = 0; p < std::min(windows, pieces); p++) {
      post(p);
    }
    for_other_ranks([&](int r) {
      const Range& range = ranges[static_cast<size_t>(r)];
      for (int64_t begin = 0; begin < range.count; begin += piece) {
        call.set_step(base + static_cast<uint64_t>(begin / piece));
        call.send(r, range.data + begin * width, std::min(piece, range.count - begin) * width);
      }
    });
    std::vector<const void*> parts(static_cast<size_t>(size()));
    for (int64_t p = 0; p < pieces; p++) {
      call.wait_received(static_cast<size_t>(size() - 1));
      for (int r = 0; r < size(); r++) {
        parts[static_cast<size_t>(r)] =
            r == rank() ? ranges[own].data + p * piece * width : place(p, r);
      }
      const int64_t n = std::min(piece, count - p * piece);
      combine(out + p * piece * width, parts, n, dtype, op);
      if (p + windows < pieces) {
        post(p + windows);
      }
    }
  }

  static constexpr uint64_t second_half = uint64_t{1} << 19;

  std::unique_ptr<Channel> channel_;
  int process_;
  std::vector<Note> notes_;  // of each rank
  std::vector<std::unique_ptr<Inbox>> inboxes_;
  int32_t lost_ = -1;  // the rank for which this one has given up, of its runner
  int32_t said_ = -1;  // the same, as the others were told
  std::atomic<bool> passed_on_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  std::thread::id runner_;  // who carries out a collective now
  uint64_t number_ = 0;     // of the next one, as the runner's all below is
  bool stopping_ = false;
  std::atomic<bool> aborted_{false};
  std::string failure_;
  std::unique_ptr<char[]> scratch_;
  int64_t scratch_bytes_ = 0;
  std::mutex join_mutex_;
  bool ends_itself_ = false;  // nobody else holds it any more
  std::thread thread_;
};

}  // namespace

std::shared_ptr<Backend> make_message_backend(int rank, int size,
                                              std::unique_ptr<Channel> channel) {
  return {new MessageBackend(rank, size, std::move(channel)), MessageBackend::drop};
}

}  // namespace rushlight::distributed
