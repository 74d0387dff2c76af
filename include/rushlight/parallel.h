// parallel_for: the one way that work is spread over threads.
// A range is cut into chunks of `grain` items, whatever the number of threads, and threads take
// chunks as they become free. So code that keeps one partial result per chunk gives the same bits
// on one thread and on many.
#pragma once

#include <cstdint>
#include <type_traits>

#include <rushlight/export.h>

namespace rushlight {

// Threads that parallel_for may use. At first what OMP_NUM_THREADS says, else the processors that
// the process may run on, at most its container's share of their time; 1 in a forked child, because
// the pool's threads do not survive a fork.
RL_API int get_num_threads();
// At least 1 (RuntimeError); a forked child stays at 1.
RL_API void set_num_threads(int n);
// True inside the function that parallel_for runs; a nested parallel_for runs on the calling
// thread.
RL_API bool in_parallel_region();

using ChunkFunction = void (*)(const void* context, int64_t begin, int64_t end);
RL_API void run_chunks(int64_t begin, int64_t end, int64_t grain, ChunkFunction f,
                       const void* context);

// Calls f(b, e) for every chunk [begin, begin + grain), [begin + grain, begin + 2 * grain) and so
// on, the last one shorter. An exception of f reaches the caller, that of the first chunk where
// several throw; chunks that have not started by then are dropped.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, const F& f) {
  if (begin >= end) {
    return;
  }
  if (end - begin <= grain) {
    f(begin, end);
    return;
  }
  run_chunks(
      begin, end, grain,
      [](const void* context, int64_t b, int64_t e) { (*static_cast<const F*>(context))(b, e); },
      &f);
}

inline int64_t num_chunks(int64_t begin, int64_t end, int64_t grain) {
  return begin < end ? (end - begin - 1) / grain + 1 : 0;
}

}  // namespace rushlight
