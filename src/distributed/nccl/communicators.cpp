// Who talks to whom: communicators of all processes and of two.
#include "distributed/nccl/backend.h"

#include <algorithm>

namespace rushlight::distributed {

void NcclBackend::connect(Device device, Milliseconds timeout) {
  const std::lock_guard<std::recursive_mutex> lock(calls_);
  check_usable();
  communicator_of_all(resolve_device(device), timeout);
}

void NcclBackend::wait_until_done(nccl::Comm comm, Clock::time_point deadline,
                                  const std::string& what) {
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

Communicator& NcclBackend::communicator_of_all(Device device, Milliseconds timeout) {
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

Communicator& NcclBackend::pair(int other, Device device, Milliseconds timeout) {
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

void NcclBackend::join(Communicator& c, const std::string& key, int number, int count,
                       Device device, Milliseconds timeout) {
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

}  // namespace rushlight::distributed
