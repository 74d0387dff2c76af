// What the collectives of messages.cpp are made of: where messages go, memory that they lie in,
// and the messages of one call.
#pragma once

#include <algorithm>
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
  [[noreturn]] virtual void lost(int rank, const std::string& why) = 0;
};

// The messages of one collective.
class Call {
 public:
  Call(Channel& channel, Failures& failures, Kind kind, uint64_t number, Milliseconds timeout)
      : channel_(channel),
        failures_(failures),
        slots_(kind, number),
        deadline_(Clock::now() + timeout) {}

  void begin_step() { step_++; }
  uint64_t step() const { return step_; }
  void set_step(uint64_t step) { step_ = step; }

  void send(int to, const void* from, int64_t bytes) {
    if (bytes == 0) {
      return;  // the receiver knows
    }
    auto message = channel_.message(const_cast<void*>(from), size_of(bytes));
    named(to, [&] { message->send(to, slots_.at(step_, size_of(bytes))); });
    sends_.push_back({to, std::move(message)});
  }
  void receive(int from, void* to, int64_t bytes) {
    if (bytes == 0) {
      return;
    }
    auto message = channel_.message(to, size_of(bytes));
    named(from, [&] { message->receive(from, slots_.at(step_, size_of(bytes))); });
    receives_.push_back({from, std::move(message)});
  }
  // Until the first `count` of what is to be received is there.
  void wait_received(size_t count) {
    for (; count > 0; count--) {
      Part& part = receives_.front();
      named(part.rank, [&] { part.message->wait_received(left()); });
      receives_.pop_front();
    }
  }
  void wait_all() {
    wait_received(receives_.size());
    while (!sends_.empty()) {
      Part& part = sends_.front();
      named(part.rank, [&] { part.message->wait_sent(left()); });
      sends_.pop_front();
    }
  }

 private:
  struct Part {
    int rank;
    std::unique_ptr<Message> message;
  };
  static size_t size_of(int64_t bytes) { return static_cast<size_t>(bytes); }
  Milliseconds left() const {
    return std::max(Milliseconds(1),
                    std::chrono::duration_cast<Milliseconds>(deadline_ - Clock::now()));
  }
  template <class F>
  void named(int rank, const F& f) {
    try {
      f();
    } catch (const std::exception& e) {
      failures_.lost(rank, e.what());
    }
  }

  Channel& channel_;
  Failures& failures_;
  Slots slots_;
  uint64_t step_ = 0;
  Clock::time_point deadline_;
  std::deque<Part> sends_;
  std::deque<Part> receives_;
};

}  // namespace rushlight::distributed
