// The word that says who may want to see a call: which bits tensors, threads and the process set,
// and the order in which interceptors get a call.
#include <algorithm>
#include <string>
#include <vector>

#include <rushlight/autocast.h>
#include <rushlight/forward.h>
#include <rushlight/mode.h>
#include <rushlight/rushlight.h>

#include "check.h"
#include "core/intercept.h"

using namespace rushlight;

namespace {

// Notes whose turn it was, and goes on.
struct Noting : Mode {
  Noting(std::string name, std::vector<std::string>& seen) : name(std::move(name)), seen(seen) {}
  std::vector<Value> handle(const OpInfo& op, const std::vector<Value>& arguments) override {
    seen.push_back(name + " " + op.name);
    return call(op, arguments);
  }
  std::string name;
  std::vector<std::string>& seen;
};
using Level = ModeScope::Level;

}  // namespace

RL_TEST(tensors) {
  CHECK(Tensor().asks() == ask::undefined);
  const Tensor t = ones({2});
  CHECK(t.asks() == 0);
  CHECK((t.asks() | asks_of(MaybeUndefined{Tensor()})) == 0);
  t.requires_grad_();
  CHECK(t.asks() == ask::grad);
  CHECK(asks_of(TensorList{ones({1}), t}) == ask::grad);
  CHECK((t * 2).asks() == ask::grad);
  CHECK(t.detach().requires_grad() == false);
  t.requires_grad_(false);
  CHECK(t.asks() == 0);
  // A view of what wants none now, but may later.
  const Tensor base = zeros({2});
  const Tensor view = base.view({2, 1});
  CHECK(view.asks() == ask::grad);
  CHECK(!view.requires_grad());
  base.mul_(ones({2}, TensorOptions().requires_grad(true)));
  CHECK(view.requires_grad());
  CHECK((ones({2}).to_sparse().asks() & ask::special) != 0);
}

RL_TEST(threads) {
  std::vector<std::string> seen;
  Noting mode("", seen);
  CHECK(tls.asks() == 0);
  {
    const ModeScope above(mode, Level::Upper);
    CHECK(tls.asks() == ask::mode_above);
  }
  CHECK(tls.asks() == 0);
  {
    const ModeScope below(mode, Level::Lower);
    CHECK(tls.asks() == ask::mode_below);
  }
  autocast::set_enabled(kCPU, true);
  CHECK(tls.asks() == ask::autocast);
  autocast::set_enabled(kCPU, false);
  CHECK(tls.asks() == 0);
}

RL_TEST(process) {
  const uint64_t first = forward::enter_level();
  const uint64_t second = forward::enter_level();
  CHECK(process_asks.load() == ask::tangents);
  forward::exit_level(second);
  CHECK(process_asks.load() == ask::tangents);
  forward::exit_level(first);
  CHECK(process_asks.load() == 0);
}

// A mode above sees the call before autocast changes its arguments; one below sees what autocast
// and the tangent's rule make of it, and nothing of what records it.
RL_TEST(order) {
  std::vector<std::string> seen;
  Noting above("above", seen);
  Noting below("below", seen);
  const ModeScope scope_above(above, Level::Upper);
  const ModeScope scope_below(below, Level::Lower);
  const Tensor a = ones({2, 2});
  seen.clear();
  autocast::set_enabled(kCPU, true);
  const Tensor product = mm(a, a);
  autocast::set_enabled(kCPU, false);
  CHECK(product.dtype() == kBFloat16);
  CHECK(seen.front() == "above mm");
  CHECK(seen.back() == "below mm");
  CHECK(seen.size() > 2);  // the casts
  const uint64_t level = forward::enter_level();
  const Tensor dual = forward::make_dual(a, a, level);
  seen.clear();
  const Tensor squared = dual * dual;
  CHECK(forward::tangent(squared, level).defined());
  CHECK(seen.front() == "above mul");
  CHECK(std::count(seen.begin(), seen.end(), "below mul") >= 2);  // the value, and its tangent
  forward::exit_level(level);
}

// The casts of autocast, and what a mode does, are asked for by calls that have nothing to do with
// them, too: those go straight on.
RL_TEST(nobody) {
  autocast::set_enabled(kCPU, true);
  const Tensor sum = ones({2}) + ones({2});
  autocast::set_enabled(kCPU, false);
  CHECK(sum.dtype() == kFloat);
  const OpFunction& add = *find_op("add", "Tensor")->function;
  const Tensor a = ones({2});
  const Tensor* const tensors[] = {&a, &a};
  CHECK(find_interceptor(add, ask::autocast | ask::tangents | ask::special, tensors) == nullptr);
  CHECK(find_interceptor(add, ask::mode_above, tensors) == dispatch_upper);
}

RL_TEST_MAIN()
