// The engine from C++: gradients, sharing between threads, deep graphs, writes through views,
// memory of a node.
#include <thread>

#include <rushlight/autograd.h>
#include <rushlight/ops.h>

#include "check.h"

using namespace rushlight;

namespace {

Tensor leaf(double value, int64_t n = 3) {
  Tensor t = full({n}, value, TensorOptions(kFloat64));
  t.requires_grad_();
  return t;
}

double first(const Tensor& t) { return *t.data_ptr<double>(); }

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}
bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

RL_TEST(gradients_add_up) {
  const Tensor x = leaf(2);
  const Tensor y = x * x + x;
  y.sum().backward({}, true);
  CHECK(first(x.grad()) == 5);
  y.sum().backward();
  CHECK(first(x.grad()) == 10);
  CHECK(
      contains(error_of([&] { y.sum().backward(); }), "backward through the graph a second time"));
  const auto grads = run_grad({(x * x * x).sum()}, {x}, {}, true, true, false);
  CHECK(first(grads[0]) == 12);
  CHECK(first(run_grad({grads[0].sum()}, {x}, {}, false, false, false)[0]) == 12);
}

RL_TEST(a_leaf_takes_over_only_its_own_buffer) {
  const Tensor x = leaf(1);
  const Tensor y = leaf(1);
  (x + y).sum().backward();  // both get the same tensor
  CHECK(x.grad().data_ptr() != y.grad().data_ptr());
  const Tensor given = ones({3}, TensorOptions(kFloat64));
  const Tensor z = leaf(1);
  z.backward(given);
  CHECK(z.grad().data_ptr() != given.data_ptr());
}

RL_TEST(deep_graphs) {
  const Tensor x = leaf(1, 1);
  Tensor y = x;
  for (int i = 0; i < 200000; i++) {
    y = y + x;
  }
  y.backward();
  CHECK(first(x.grad()) == 200001);
  y.reset();  // 200,000 nodes die without recursion
}

RL_TEST(threads_share_a_graph) {
  const Tensor x = leaf(1.5);
  Tensor shared = x;
  for (int i = 0; i < 200; i++) {
    shared = shared * x / x + x - x;
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; i++) {
        (shared * 2).sum().backward({}, true);
      }
    });
  }
  for (std::thread& t : threads) {
    t.join();
  }
  CHECK(std::abs(first(x.grad()) - 4 * 20 * 2) < 1e-6);
}

RL_TEST(threads_record_on_one_leaf) {
  const Tensor x = leaf(1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; i++) {
        (x.view({3, 1}) * 2).sum().backward();
      }
    });
  }
  for (std::thread& t : threads) {
    t.join();
  }
  CHECK(first(x.grad()) == 4 * 500 * 2);
}

RL_TEST(writes_through_views) {
  const Tensor x = leaf(3, 4);
  const Tensor y = x * 1;
  const Tensor view = y.view({2, 2});
  view.select(0, 0).mul_(5);
  CHECK(std::string(y.grad_fn()->name()) == "torch::autograd::CopySlices");
  CHECK(std::string(view.grad_fn()->name()) == "AsStridedBackward0");
  view.sum().backward();
  CHECK(first(x.grad()) == 5 && x.grad().data_ptr<double>()[3] == 1);
  CHECK(contains(error_of([&] { x.add_(1); }), "leaf Variable that requires grad"));
  CHECK(contains(error_of([&] { x.select(0, 0).add_(1); }), "a view of a leaf Variable"));
  const Tensor e = x.exp();
  e.add_(1);
  CHECK(contains(error_of([&] { e.sum().backward(); }),
                 "modified by an inplace operation: [torch.DoubleTensor [4]]"));
}

RL_TEST(late_views_follow_their_root) {
  const Tensor x = zeros({4}, TensorOptions(kFloat64));
  const Tensor view = x.slice(0, 0, 2);
  CHECK(!view.requires_grad());
  const Tensor w = leaf(2, 4);
  x.add_(w);
  CHECK(view.requires_grad() && !view.is_leaf());
  view.sum().backward();
  CHECK(first(w.grad()) == 1 && w.grad().data_ptr<double>()[3] == 0);
}

struct Doubler : TensorHook {
  int* calls;
  explicit Doubler(int* c) : calls(c) {}
  Tensor operator()(const Tensor& grad) override {
    (*calls)++;
    return grad * 2;
  }
};

RL_TEST(hooks_and_retained_gradients) {
  int calls = 0;
  const Tensor x = leaf(1);
  const Tensor y = x * 3;
  y.retain_grad();
  const size_t number = add_tensor_hook(y, std::make_shared<Doubler>(&calls));
  add_tensor_hook(x, std::make_shared<Doubler>(&calls));
  y.sum().backward({}, true);
  CHECK(calls == 2 && first(y.grad()) == 2 && first(x.grad()) == 12);
  remove_tensor_hook(y, number);
  y.sum().backward();
  CHECK(calls == 3 && first(y.grad()) == 3 && first(x.grad()) == 18);
}

// A hook that runs backward in turn, ever deeper.
struct Nested : TensorHook {
  int depth;
  explicit Nested(int d) : depth(d) {}
  Tensor operator()(const Tensor&) override {
    if (depth > 0) {
      const GradMode recording(true);
      const Tensor inner = leaf(1, 1);
      const Tensor y = inner * 2;
      add_tensor_hook(y, std::make_shared<Nested>(depth - 1));
      y.backward();
      CHECK(first(inner.grad()) == 2);
    }
    return {};
  }
};

RL_TEST(backward_within_backward) {
  const Tensor x = leaf(1, 1);
  const Tensor y = x * 2;
  add_tensor_hook(y, std::make_shared<Nested>(300));
  y.backward();
  CHECK(first(x.grad()) == 2);
}

RL_TEST(inputs_and_unused) {
  const Tensor x = leaf(1);
  const Tensor y = leaf(1);
  const Tensor h = x * y;
  run_backward({h.sum()}, {}, true, false, {y});
  CHECK(!x.grad().defined() && first(y.grad()) == 1);
  CHECK(contains(error_of([&] { run_grad({x.sum()}, {y}, {}, false, false, false); }),
                 "appears to not have been used"));
  CHECK(!run_grad({x.sum()}, {y}, {}, false, false, true)[0].defined());
  CHECK(contains(error_of([&] { (x * 2).backward(); }), "only for scalar outputs"));
  CHECK(first(run_grad({h.sum()}, {h}, {}, true, false, false)[0]) == 1);
}

}  // namespace

RL_TEST(a_node_is_small) { CHECK(sizeof(Node) <= 128); }

RL_TEST_MAIN()
