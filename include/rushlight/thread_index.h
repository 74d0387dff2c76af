// Which thread runs: for memory that each thread of a parallel_for is to have of its own.
#pragma once

#include <rushlight/export.h>

namespace rushlight {

// Inside parallel_for (parallel.h) the number of the thread among those of this call, below
// get_num_threads(); 0 outside. Which chunks a thread gets depends on timing, so results are not to
// depend on it.
RL_API int parallel_thread_index();

}  // namespace rushlight
