// What the engine "nccl" asks of the library at once, and what it waits for.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/backend.h"
#include "distributed/dense.h"
#include "distributed/nccl/nccl.h"
#include <rushlight/stream.h>

namespace rushlight::distributed {

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

}  // namespace rushlight::distributed
