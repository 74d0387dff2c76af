// The thread that watches what is under way, and the end of it.
#include "distributed/nccl/backend.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace rushlight::distributed {

namespace {

constexpr std::chrono::microseconds poll_interval(250);
constexpr Milliseconds publish_interval(1000);

bool is_set(const char* name, const char* value) {
  const char* const found = getenv(name);
  return found != nullptr && std::strcmp(found, value) == 0;
}

}  // namespace

NcclBackend::NcclBackend(const BackendOptions& options)
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

NcclBackend::~NcclBackend() {
  if (getpid() != process_) {  // a fork has neither the thread nor the devices
    watcher_.detach();
    return;
  }
  end(false);
}

void NcclBackend::watch() {
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

void NcclBackend::finish_ended_works(std::unique_lock<std::mutex>& lock) {
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

void NcclBackend::fail(std::unique_lock<std::mutex>& lock, const std::string& why, bool tear_down) {
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
void NcclBackend::for_communicators(const F& f) {
  for (auto* const map : {&of_all_, &pairs_}) {
    for (auto& [key, c] : *map) {
      if (c.handle != nullptr) {
        f(c);
      }
    }
  }
}

void NcclBackend::publish(std::unique_lock<std::mutex>& lock) {
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

std::string NcclBackend::timeout_text(const Queued& work) {
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

void NcclBackend::end(bool give_up) {
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

void NcclBackend::wait_until_finalized(nccl::Comm comm) {
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

}  // namespace rushlight::distributed
