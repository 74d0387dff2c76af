// parallel_for: chunks, threads, nesting, exceptions, fork.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.h"
#include "core/parallel.h"

#include <rushlight/error.h>
#include <rushlight/thread_index.h>

using namespace rushlight;

static std::vector<std::pair<int64_t, int64_t>> chunks_of(int64_t begin, int64_t end,
                                                          int64_t grain) {
  std::vector<std::pair<int64_t, int64_t>> list;
  std::mutex mutex;
  parallel_for(begin, end, grain, [&](int64_t b, int64_t e) {
    std::lock_guard<std::mutex> lock(mutex);
    list.emplace_back(b, e);
  });
  std::sort(list.begin(), list.end());
  return list;
}

RL_TEST(chunks_do_not_depend_on_threads) {
  for (int threads : {1, 2, 3, 5}) {
    set_num_threads(threads);
    CHECK(get_num_threads() == threads);
    CHECK(chunks_of(3, 14, 4) ==
          (std::vector<std::pair<int64_t, int64_t>>{{3, 7}, {7, 11}, {11, 14}}));
    CHECK(chunks_of(3, 14, 11).size() == 1);
    CHECK(chunks_of(5, 5, 1).empty());
    CHECK(chunks_of(7, 5, 1).empty());
    CHECK(chunks_of(0, 10000, 7).size() == 1429);
    CHECK(chunks_of(INT64_MAX - 5, INT64_MAX, 2).back().second == INT64_MAX);
  }
}

RL_TEST(nested_calls_are_serial) {
  set_num_threads(4);
  CHECK(!in_parallel_region());
  std::atomic<int> bad{0};
  parallel_for(0, 64, 1, [&](int64_t, int64_t) {
    const auto outer = std::this_thread::get_id();
    bad += !in_parallel_region();
    parallel_for(0, 8, 1, [&](int64_t, int64_t) { bad += std::this_thread::get_id() != outer; });
  });
  CHECK(bad == 0);
  CHECK(!in_parallel_region());
}

// Threads that are there from earlier calls have no numbers above those of this one.
RL_TEST(threads_have_numbers_of_their_own) {
  for (int threads : {8, 2, 3}) {
    set_num_threads(threads);
    CHECK(parallel_thread_index() == 0);
    std::mutex mutex;
    std::set<std::pair<int, std::thread::id>> seen;
    parallel_for(0, 400, 1, [&](int64_t, int64_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      std::lock_guard<std::mutex> lock(mutex);
      seen.emplace(parallel_thread_index(), std::this_thread::get_id());
    });
    std::set<int> numbers;
    std::set<std::thread::id> ids;
    for (const auto& [number, id] : seen) {
      CHECK(number >= 0 && number < threads);
      CHECK((number == 0) == (id == std::this_thread::get_id()));
      numbers.insert(number);
      ids.insert(id);
    }
    CHECK(numbers.size() == seen.size() && ids.size() == seen.size());
    CHECK(parallel_thread_index() == 0);
  }
  set_num_threads(4);
}

RL_TEST(the_first_exception_arrives) {
  set_num_threads(3);
  for (int round = 0; round < 50; round++) {
    std::string text;
    try {
      parallel_for(0, 1000, 1, [&](int64_t b, int64_t) {
        if (b >= 10 && b % 3 == 1) {
          throw std::runtime_error(std::to_string(b));
        }
      });
    } catch (const std::runtime_error& e) {
      text = e.what();
    }
    CHECK(text == "10");
  }
  CHECK(!in_parallel_region());
  CHECK_THROWS(Error, "positive", set_num_threads(0));
  CHECK_THROWS(Error, "grain", run_chunks(0, 9, 0, nullptr, nullptr));
}

RL_TEST(several_callers) {
  set_num_threads(2);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; i++) {
        parallel_for(0, 1000, 10, [&](int64_t b, int64_t e) { sum += e - b; });
      }
    });
  }
  for (auto& t : threads) {
    t.join();
  }
  CHECK(sum == 4 * 20 * 1000);
}

RL_TEST(more_callers_than_slots) {
  set_num_threads(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 100; t++) {
    threads.emplace_back([&] {
      parallel_for(0, 20, 1, [&](int64_t b, int64_t) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        sum += b;
      });
    });
  }
  for (auto& t : threads) {
    t.join();
  }
  CHECK(sum == 100 * 190);
}

RL_TEST(sleeping_threads_come) {
  set_num_threads(3);
  for (int round = 0; round < 5; round++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // they do not spin for so long
    std::mutex mutex;
    std::set<std::thread::id> ids;
    parallel_for(0, 30, 1, [&](int64_t, int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const std::lock_guard<std::mutex> lock(mutex);
      ids.insert(std::this_thread::get_id());
    });
    CHECK(ids.size() == 3);
  }
}

RL_TEST(forked_child_is_serial) {
  set_num_threads(2);
  parallel_for(0, 100, 1, [](int64_t, int64_t) {});
  const pid_t child = fork();
  if (child == 0) {
    int64_t sum = 0;
    std::set<std::thread::id> ids;
    parallel_for(0, 100, 1, [&](int64_t b, int64_t) {
      sum += b;
      ids.insert(std::this_thread::get_id());
    });
    set_num_threads(4);
    alarm(10);
    _exit(sum == 4950 && ids.size() == 1 && get_num_threads() == 1 ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(get_num_threads() == 2);
}

RL_TEST_MAIN()
