// Calls on their way to the stream: groups of them, and what is under way.
#include "distributed/nccl/backend.h"

namespace rushlight::distributed {

void NcclBackend::begin_group() {
  const std::lock_guard<std::recursive_mutex> lock(calls_);
  check_usable();
  RL_CHECK_AS(BackendError, group_ == nullptr, "a group of calls has begun already");
  group_ = std::make_unique<Batch>();
  group_->what = "a group of calls";
}

WorkPtr NcclBackend::end_group(Milliseconds timeout) {
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

void NcclBackend::check_usable() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failed_.empty()) {
    throw BackendError(failed_);
  }
  RL_CHECK_AS(BackendError, !stopping_, "the process group was shut down");
}

WorkPtr NcclBackend::queue(const std::string& what, const Tensor& like, Milliseconds timeout,
                           const std::function<void(Batch&)>& calls, int peer) {
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

WorkPtr NcclBackend::launch(Batch& batch, Milliseconds timeout) {
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

}  // namespace rushlight::distributed
