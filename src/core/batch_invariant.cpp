// The switch of the mode in which a row's bits do not depend on the other rows.
#include <rushlight/batch_invariant.h>

#include <atomic>

namespace rushlight {

namespace {
std::atomic<bool> mode{false};
}  // namespace

bool is_batch_invariant() { return mode.load(std::memory_order_relaxed); }
void use_batch_invariant(bool on) { mode.store(on, std::memory_order_relaxed); }

}  // namespace rushlight
