// What the collectives of messages.cpp are made of: where messages go, memory that they lie in,
// and the messages of one call.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>

#include "distributed/dense.h"
#include "distributed/slots.h"
#include <rushlight/distributed/backend.h>

namespace rushlight::distributed {

inline std::map<ScalarType, Tensors> by_dtype(const Tensors& tensors) {
  std::map<ScalarType, Tensors> out;
  for (const Tensor& t : tensors) {
    out[t.dtype()].push_back(t);
  }
  return out;
}

// A message between two ranks, which ends when somebody waits for it.
struct PairWork : Work {
  PairWork(int own_rank, int other_rank, Tensor d, Tensor to, Milliseconds t)
      : memory(std::move(d)),
        output(std::move(to)),
        timeout(t),
        rank(own_rank),
        other(other_rank) {}
  void wait(std::optional<Milliseconds> most) override {
    if (!is_completed()) {
      std::exception_ptr error;
      try {
        const Milliseconds time = most.value_or(timeout);
        if (output.defined()) {
          set_source(message->wait_received(time));
          write_back(output, memory);
        } else {
          message->wait_sent(time);
        }
      } catch (const std::exception& e) {
        error = std::make_exception_ptr(BackendError(
            str("Rank ", rank, ": ", output.defined() ? "recv" : "send",
                " failed: ", other < 0 ? "" : str("lost rank ", other, ": "), e.what())));
      }
      message.reset();
      finish(error);
    }
    Work::wait(std::nullopt);
  }
  Tensor memory;
  Tensor output;
  Milliseconds timeout;
  int rank;
  int other;  // -1: anybody
  std::unique_ptr<Message> message;
};

// Who is told of a rank that does not answer.
class Failures {
 public:
  virtual ~Failures() = default;
  [[noreturn]] virtual void raise_lost_rank(int rank, const std::string& why) = 0;
};

// Where small messages of another rank go, if a channel's messages wait for their receivers: two
// boxes that are open all the time, so that nothing has to be said before such a message.
class Inbox {
 public:
  static constexpr size_t most = 4096;  // bytes of a message
  struct Head {
    uint64_t slot;
  };

  Inbox(Channel& channel, int from) : from_(from), memory_(new char[count * size]) {
    for (size_t i = 0; i < count; i++) {
      boxes_[i] = channel.message(memory_.get() + i * size, size);
      open(i);
    }
  }
  // The next message, which must be the one that goes to `slot`.
  void take(uint64_t slot, void* to, size_t bytes, Milliseconds timeout) {
    const uint64_t number = taken_++;
    const size_t i = number % count;
    RL_CHECK_AS(BackendError, boxes_[i] != nullptr, "the connection is closed");
    boxes_[i]->wait_received(timeout);
    const char* const box = memory_.get() + i * size;
    Head head;
    std::memcpy(&head, box, sizeof head);
    RL_CHECK_AS(BackendError, head.slot == slot,
                "it is in another collective, or in one of another length");
    std::memcpy(to, box + sizeof head, bytes);
    open(i);
  }
  // Its sender's part: what goes into the next box, and where that is.
  static std::unique_ptr<char[]> pack(uint64_t slot, const void* from, size_t bytes) {
    std::unique_ptr<char[]> out(new char[sizeof(Head) + bytes]);
    const Head head{slot};
    std::memcpy(out.get(), &head, sizeof head);
    std::memcpy(out.get() + sizeof head, from, bytes);
    return out;
  }
  uint64_t next_out() { return slot_of_box(sent_++); }

 private:
  static constexpr size_t count = 2;
  static constexpr size_t size = sizeof(Head) + most;
  void open(size_t i) {
    try {
      boxes_[i]->receive(from_, slot_of_box(opened_++));
    } catch (const BackendError&) {
      boxes_[i].reset();  // the rank is gone, as the next message will find
    }
  }

  int from_;
  std::unique_ptr<char[]> memory_;
  std::unique_ptr<Message> boxes_[count];
  uint64_t opened_ = 0;
  uint64_t taken_ = 0;
  uint64_t sent_ = 0;
};

// The messages of one collective.
class Call {
 public:
  // `inboxes`: of each rank; none where messages do not wait for their receivers.
  Call(Channel& channel, Failures& failures, std::vector<std::unique_ptr<Inbox>>& inboxes,
       Kind kind, uint64_t number, Milliseconds timeout)
      : channel_(channel),
        failures_(failures),
        inboxes_(inboxes),
        slots_(kind, number),
        deadline_(Clock::now() + timeout) {}

  void begin_step() { step_++; }
  uint64_t step() const { return step_; }
  void set_step(uint64_t step) { step_ = step; }

  void send(int to, const void* from, int64_t bytes) {
    if (bytes == 0) {
      return;  // the receiver knows
    }
    const uint64_t slot = slots_.at(step_, size_of(bytes));
    Part part{.rank = to};
    if (in_box(bytes)) {
      part.packed = Inbox::pack(slot, from, size_of(bytes));
      part.message = channel_.message(part.packed.get(), sizeof(Inbox::Head) + size_of(bytes));
      naming_failures(to, [&] { part.message->send(to, inboxes_[size_of(to)]->next_out()); });
    } else {
      part.message = channel_.message(const_cast<void*>(from), size_of(bytes));
      naming_failures(to, [&] { part.message->send(to, slot); });
    }
    sends_.push_back(std::move(part));
  }
  void receive(int from, void* to, int64_t bytes) {
    if (bytes == 0) {
      return;
    }
    Part part{.rank = from, .slot = slots_.at(step_, size_of(bytes)), .to = to, .bytes = bytes};
    if (!in_box(bytes)) {
      part.message = channel_.message(to, size_of(bytes));
      naming_failures(from, [&] { part.message->receive(from, part.slot); });
    }
    receives_.push_back(std::move(part));
  }
  // Until the first `count` of what is to be received is there.
  void wait_received(size_t count) {
    for (; count > 0; count--) {
      Part& part = receives_.front();
      naming_failures(part.rank, [&] {
        if (part.message != nullptr) {
          part.message->wait_received(time_left());
        } else {
          inboxes_[size_of(part.rank)]->take(part.slot, part.to, size_of(part.bytes), time_left());
        }
      });
      receives_.pop_front();
    }
  }
  void wait_all() {
    wait_received(receives_.size());
    while (!sends_.empty()) {
      Part& part = sends_.front();
      naming_failures(part.rank, [&] { part.message->wait_sent(time_left()); });
      sends_.pop_front();
    }
  }

 private:
  struct Part {
    int rank;
    uint64_t slot = 0;
    void* to = nullptr;
    int64_t bytes = 0;
    std::unique_ptr<char[]> packed = {};    // what goes into a box
    std::unique_ptr<Message> message = {};  // null for what comes out of one
  };
  bool in_box(int64_t bytes) const { return !inboxes_.empty() && size_of(bytes) <= Inbox::most; }
  static size_t size_of(int64_t bytes) { return static_cast<size_t>(bytes); }
  Milliseconds time_left() const {
    return std::max(Milliseconds(1),
                    std::chrono::duration_cast<Milliseconds>(deadline_ - Clock::now()));
  }
  template <class F>
  void naming_failures(int rank, const F& f) {
    try {
      f();
    } catch (const std::exception& e) {
      failures_.raise_lost_rank(rank, e.what());
    }
  }

  Channel& channel_;
  Failures& failures_;
  std::vector<std::unique_ptr<Inbox>>& inboxes_;
  Slots slots_;
  uint64_t step_ = 0;
  Clock::time_point deadline_;
  std::deque<Part> sends_;
  std::deque<Part> receives_;
};

}  // namespace rushlight::distributed
