// The threads are started when they are first asked for and live as long as the process. A call is
// a slot with free seats. A thread that finds one takes it, works, and leaves; one that finds none
// spins for a while, so that ops that follow each other find it awake, and sleeps. The caller
// closes its slot when no work is left to take, and waits only for those that are still inside. So
// a thread that sleeps, or that the system runs elsewhere, delays nobody.
#include "core/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>

namespace rushlight {
namespace {

using Clock = std::chrono::steady_clock;

// How long a thread without work stays awake, and how long a caller spins for those that finish.
// To wake a thread can cost its caller 20 us, in virtual machines: little beside a pause so long.
constexpr std::chrono::microseconds idle_spin{1000};
constexpr std::chrono::microseconds last_spin{50};

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("yield");
#endif
}

// Calls `done` until it is true, or the time is over: what it was at the end.
template <class Done>
bool spin(std::chrono::microseconds time, const Done& done) {
  const Clock::time_point end = Clock::now() + time;
  do {
    for (int i = 0; i < 32; i++) {
      if (done()) {
        return true;
      }
      relax();
    }
  } while (Clock::now() < end);
  return done();
}

void wait_while(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wake(std::atomic<uint32_t>& word, int64_t threads) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, static_cast<int>(threads), nullptr, nullptr, 0);
}

// A thread that comes to the processor of the caller moves to another one. Two threads that take
// turns on one processor never leave it by themselves: to the kernel each of them has just run, so
// its data are in the cache there. It asks seldom, for on a machine whose processors are all busy
// moving gains nothing.
void move_off_processor(int busy) {
  thread_local Clock::time_point next{};
  const Clock::time_point now = Clock::now();
  if (now < next) {
    return;
  }
  next = now + std::chrono::milliseconds(2);
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return;  // more processors than a cpu_set_t holds
  }
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<unsigned>(busy), &others);
  if (CPU_COUNT(&others) != 0 && sched_setaffinity(0, sizeof(others), &others) == 0) {
    sched_setaffinity(0, sizeof(allowed), &allowed);
  }
}

// Seats that are free, in the upper half, and threads inside, in the lower one.
constexpr uint32_t one_seat = 1 << 16;
constexpr uint32_t inside_mask = one_seat - 1;

struct alignas(64) Slot {
  std::atomic<uint32_t> state{0};
  std::atomic<bool> taken{false};
  std::atomic<bool> owner_sleeps{false};
  TeamFunction f = nullptr;
  void* work = nullptr;
  int processor = -1;  // of the caller
};

// Plain data that is never destroyed: the threads outlive main().
constexpr int num_slots = 64;
Slot slots[num_slots];
std::atomic<uint64_t> open_slots{0};  // a bit for each that has free seats
std::atomic<int64_t> awake{0};        // threads that spin
std::atomic<int64_t> asleep{0};
std::atomic<uint32_t> calls_to_sleepers{0};
std::atomic<int64_t> started{0};
std::atomic<int64_t> most_helpers{1023};  // fewer where the system has refused one
std::mutex starting;

// Takes a seat, works and leaves; false: there is none.
bool help(int index, int64_t member) {
  Slot& slot = slots[index];
  uint32_t state = slot.state.load(std::memory_order_relaxed);
  do {
    if (state < one_seat) {
      return false;
    }
  } while (
      !slot.state.compare_exchange_weak(state, state - one_seat + 1, std::memory_order_acquire));
  if (state < 2 * one_seat) {  // the last seat; the slot is this call's as long as we are inside
    open_slots.fetch_and(~(uint64_t{1} << index), std::memory_order_relaxed);
  }
  if (sched_getcpu() == slot.processor) {
    move_off_processor(slot.processor);
  }
  slot.f(slot.work, member);
  const uint32_t before = slot.state.fetch_sub(1, std::memory_order_seq_cst);
  if ((before & inside_mask) == 1 && slot.owner_sleeps.load(std::memory_order_seq_cst)) {
    wake(slot.state, 1);
  }
  return true;
}

bool help_any_call(int64_t member) {
  for (uint64_t open = open_slots.load(std::memory_order_acquire); open != 0; open &= open - 1) {
    if (help(std::countr_zero(open), member)) {
      return true;
    }
  }
  return false;
}

void serve(int64_t member, std::chrono::microseconds patience) {
  awake.fetch_add(1, std::memory_order_relaxed);
  while (true) {
    if (spin(patience, [] { return open_slots.load(std::memory_order_relaxed) != 0; })) {
      awake.fetch_sub(1, std::memory_order_relaxed);
      while (help_any_call(member)) {}
      awake.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    awake.fetch_sub(1, std::memory_order_relaxed);
    const uint32_t calls = calls_to_sleepers.load(std::memory_order_relaxed);
    asleep.fetch_add(1, std::memory_order_seq_cst);
    if (open_slots.load(std::memory_order_seq_cst) == 0) {
      wait_while(calls_to_sleepers, calls);
    }
    asleep.fetch_sub(1, std::memory_order_relaxed);
    awake.fetch_add(1, std::memory_order_relaxed);
  }
}

// Starts threads until there are `wanted`, or as many as the system lets us have.
void start(int64_t wanted) {
  const std::lock_guard<std::mutex> lock(starting);
  // Signals are for the program's own threads, but for those that a thread brings on itself.
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
    sigdelset(&blocked, own);
  }
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  cpu_set_t allowed;
  const bool known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  for (int64_t i = started.load(std::memory_order_relaxed); i < wanted; i++) {
    // Threads without a processor of their own do not spin.
    const bool spins = !known || i + 1 < CPU_COUNT(&allowed);
    try {
      std::thread(serve, i + 1, spins ? idle_spin : std::chrono::microseconds(0)).detach();
    } catch (const std::system_error&) {
      most_helpers.store(i, std::memory_order_relaxed);
      break;
    }
    started.store(i + 1, std::memory_order_relaxed);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Slot* take_slot(int& index) {
  for (index = 0; index < num_slots; index++) {
    if (!slots[index].taken.load(std::memory_order_relaxed) &&
        !slots[index].taken.exchange(true, std::memory_order_acquire)) {
      return &slots[index];
    }
  }
  return nullptr;
}

void close(Slot& slot, int index) {
  open_slots.fetch_and(~(uint64_t{1} << index), std::memory_order_relaxed);
  slot.state.fetch_and(inside_mask, std::memory_order_acquire);
  const auto empty = [&] { return slot.state.load(std::memory_order_acquire) == 0; };
  if (!spin(last_spin, empty)) {
    slot.owner_sleeps.store(true, std::memory_order_seq_cst);
    for (uint32_t inside; (inside = slot.state.load(std::memory_order_seq_cst)) != 0;) {
      wait_while(slot.state, inside);
    }
    slot.owner_sleeps.store(false, std::memory_order_relaxed);
  }
  slot.taken.store(false, std::memory_order_release);
}

}  // namespace

void run_with_helpers(int64_t helpers, TeamFunction f, void* work) {
  helpers = std::min(helpers, most_helpers.load(std::memory_order_relaxed));
  if (started.load(std::memory_order_relaxed) < helpers) {
    start(helpers);
  }
  int index = 0;
  Slot* const slot = helpers > 0 ? take_slot(index) : nullptr;
  if (slot == nullptr) {
    f(work, 0);
    return;
  }
  slot->f = f;
  slot->work = work;
  slot->processor = sched_getcpu();
  slot->state.store(static_cast<uint32_t>(helpers) * one_seat, std::memory_order_release);
  open_slots.fetch_or(uint64_t{1} << index, std::memory_order_seq_cst);
  const int64_t missing = std::min(helpers - awake.load(std::memory_order_relaxed),
                                   asleep.load(std::memory_order_seq_cst));
  if (missing > 0) {
    calls_to_sleepers.fetch_add(1, std::memory_order_relaxed);
    wake(calls_to_sleepers, missing);
  }
  f(work, 0);
  close(*slot, index);
}

}  // namespace rushlight
