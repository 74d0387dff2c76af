// parallel_for: chunks, who takes which, and what of the calling thread holds for its helpers.
#include "core/parallel.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <rushlight/error.h>
#include <rushlight/thread_index.h>

#include "core/container.h"
#include "core/cuts.h"
#include "core/denormals.h"
#include "core/rounds.h"
#include "core/thread_pool.h"

namespace rushlight {
namespace {

std::atomic<int> num_threads{0};  // 0: not asked yet
std::atomic<bool> forked{false};
thread_local bool inside = false;
thread_local int index_inside = 0;

// Also tells the libraries that ask OpenMP how many threads there are.
void enter_child() {
  forked.store(true, std::memory_order_relaxed);
  omp_set_num_threads(1);
}

// At load, not at first use: a library may start the pool before we do.
__attribute__((constructor)) void watch_forks() { pthread_atfork(nullptr, nullptr, enter_child); }

struct Watch {
  std::atomic<bool> on{false};
  std::mutex mutex;
  std::vector<int64_t>& cuts = *new std::vector<int64_t>;  // never destroyed
};
Watch watch;

// How small numbers are treated is a setting of each thread: flush to zero, denormals are zero.
#if defined(__x86_64__)
constexpr unsigned flushing_bits = 0x8040;
unsigned flush_bits() { return _mm_getcsr() & flushing_bits; }
void set_flush_bits(unsigned bits) {
  const unsigned now = _mm_getcsr();
  if ((now & flushing_bits) != bits) {
    _mm_setcsr((now & ~flushing_bits) | bits);
  }
}
#else
constexpr unsigned flushing_bits = 1u << 24;
unsigned flush_bits() { return __builtin_aarch64_get_fpcr() & flushing_bits; }
void set_flush_bits(unsigned bits) {
  const unsigned now = __builtin_aarch64_get_fpcr();
  if ((now & flushing_bits) != bits) {
    __builtin_aarch64_set_fpcr((now & ~flushing_bits) | bits);
  }
}
#endif

struct InsideScope {
  const bool before = inside;
  const int index_before = index_inside;
  explicit InsideScope(int index) {
    inside = true;
    index_inside = index;
  }
  ~InsideScope() {
    inside = before;
    index_inside = index_before;
  }
};

// Chunks that one thread takes first, in order. Those of a thread lie side by side and are the
// same ones at every call, so what it wrote in one op is in its cache in the next.
struct alignas(64) Share {
  std::atomic<int64_t> next{0};
  int64_t end = 0;
};
constexpr int64_t max_shares = 32;

// What the threads of one call share.
struct Work {
  int64_t begin;
  int64_t end;
  int64_t grain;
  int64_t chunks;
  ChunkFunction f;
  const void* context;
  int64_t num_shares;
  unsigned flushing;  // the caller's
  Share shares[max_shares]{};
  std::atomic<int> helpers{0};  // that have come so far
  std::atomic<int64_t> failed_chunk{INT64_MAX};
  std::mutex mutex{};
  std::exception_ptr error{};

  void split_into_shares() {
    for (int64_t s = 0; s < num_shares; s++) {
      shares[s].next.store(chunks * s / num_shares, std::memory_order_relaxed);
      shares[s].end = chunks * (s + 1) / num_shares;
    }
  }

  void run_chunk(int64_t i) {
    const int64_t b = begin + i * grain;
    f(context, b, end - b > grain ? b + grain : end);
  }

  // A member's own share first, then what is left of the others'. Chunks above a failed one are
  // dropped and those below it still run, so the error that is kept, that of the lowest chunk, does
  // not depend on timing.
  void take_chunks(int64_t member) noexcept {
    InsideScope scope(member == 0 ? 0 : 1 + helpers.fetch_add(1, std::memory_order_relaxed));
    set_flush_bits(flushing);
    const int64_t own = member == 0 ? 0 : 1 + (member - 1) % (num_shares - 1);
    for (int64_t k = 0; k < num_shares; k++) {
      Share& share = shares[(own + k) % num_shares];
      while (true) {
        const int64_t i = share.next.fetch_add(1, std::memory_order_relaxed);
        if (i >= share.end || i > failed_chunk.load(std::memory_order_relaxed)) {
          break;
        }
        try {
          if (member == 0) {
            look_for_end();
          }
          run_chunk(i);
        } catch (...) {
          std::lock_guard<std::mutex> lock(mutex);
          if (i < failed_chunk.load(std::memory_order_relaxed)) {
            failed_chunk.store(i, std::memory_order_relaxed);
            error = std::current_exception();
          }
        }
      }
    }
  }
};

// OpenMP knows OMP_NUM_THREADS and the processors that this process may run on. A container's share
// of their time it does not know: threads beyond that would only be held up together.
int default_num_threads() {
  const int n = std::max(1, omp_get_max_threads());
  const char* const asked = std::getenv("OMP_NUM_THREADS");
  if (asked != nullptr && *asked != '\0') {
    return n;
  }
  const double share = std::ceil(container_limits().processors);
  return share < n ? std::max(1, static_cast<int>(share)) : n;
}

}  // namespace

int get_num_threads() {
  if (forked.load(std::memory_order_relaxed)) {
    return 1;
  }
  int n = num_threads.load(std::memory_order_relaxed);
  if (n == 0) {
    n = default_num_threads();
    set_num_threads(n);
  }
  return n;
}

void set_num_threads(int n) {
  RL_CHECK(n > 0, "set_num_threads expects a positive integer, got ", n);
  num_threads.store(n, std::memory_order_relaxed);
  omp_set_num_threads(forked.load(std::memory_order_relaxed) ? 1 : n);
}

bool set_flush_denormal(bool on) {
  set_flush_bits(on ? flushing_bits : 0);
  return flushing_bits != 0;
}

bool in_parallel_region() { return inside || omp_in_parallel() != 0; }
int parallel_thread_index() { return index_inside; }

void watch_cuts() {
  const std::lock_guard<std::mutex> lock(watch.mutex);
  watch.cuts.clear();
  watch.on.store(true, std::memory_order_relaxed);
}

std::vector<int64_t> recorded_cuts() {
  const std::lock_guard<std::mutex> lock(watch.mutex);
  watch.on.store(false, std::memory_order_relaxed);
  return std::move(watch.cuts);
}

void run_chunks(int64_t begin, int64_t end, int64_t grain, ChunkFunction f, const void* context) {
  if (begin >= end) {
    return;
  }
  RL_CHECK(grain > 0, "parallel_for: the grain must be positive, got ", grain);
  const int64_t chunks = num_chunks(begin, end, grain);
  const int64_t threads = std::min<int64_t>(get_num_threads(), chunks);
  const bool nested = in_parallel_region();
  if (RL_UNLIKELY(watch.on.load(std::memory_order_relaxed)) && !nested) {
    const std::lock_guard<std::mutex> lock(watch.mutex);
    watch.cuts.push_back(chunks);
  }
  if (threads == 1 || nested) {
    for (int64_t i = 0; i < chunks; i++) {
      if (i > 0) {
        look_for_end();
      }
      const int64_t b = begin + i * grain;
      f(context, b, end - b > grain ? b + grain : end);
    }
    return;
  }
  Work work{begin, end, grain, chunks, f, context, std::min(threads, max_shares), flush_bits()};
  work.split_into_shares();
  run_with_helpers(
      threads - 1,
      [](void* of_all, int64_t member) { static_cast<Work*>(of_all)->take_chunks(member); }, &work);
  if (work.error) {
    std::rethrow_exception(work.error);
  }
}

}  // namespace rushlight
