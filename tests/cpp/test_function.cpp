// Custom functions, hooks and modes as programs write them against libtorch.
#include <torch/torch.h>

#include "check.h"

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

namespace {

Tensor leaf(double value, int64_t n = 2) {
  return torch::full({n}, value, torch::TensorOptions(torch::kFloat64).requires_grad(true));
}
double first(const Tensor& t) { return t.data_ptr<double>()[0]; }

struct Power : Function<Power> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, int64_t n, const std::string& note) {
    ctx->save_for_backward({x});
    ctx->saved_data["n"] = n;
    ctx->saved_data["note"] = note;
    ctx->saved_data["sizes"] = std::vector<int64_t>{1, 2, 3};
    return x.pow(n);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const Tensor x = ctx->get_saved_variables()[0];
    const int64_t n = ctx->saved_data["n"].toInt();
    CHECK(ctx->saved_data["note"].toStringRef() == "hello");
    CHECK(ctx->saved_data["sizes"].toIntVector().size() == 3);
    CHECK_THROWS(torch::Error, "read as a number", ctx->saved_data["note"].toInt());
    CHECK(ctx->needs_input_grad(0));
    return {grads[0] * static_cast<double>(n) * x.pow(n - 1), Tensor(), Tensor()};
  }
};

RL_TEST(function_with_saved_values) {
  const Tensor x = leaf(3);
  const Tensor y = Power::apply(x, int64_t{3}, std::string("hello"));
  CHECK(y.requires_grad() && std::strstr(y.grad_fn()->name(), "Power") != nullptr);
  const auto first_grad = torch::autograd::grad({y.sum()}, {x}, {}, true, true);
  CHECK(first(first_grad[0]) == 27);
  const auto second = torch::autograd::grad({first_grad[0].sum()}, {x});
  CHECK(first(second[0]) == 18);
  y.sum().backward();
  CHECK(first(x.grad()) == 27);
  CHECK_THROWS(torch::Error, "backward through the graph a second time", (y.sum().backward(), 0));
  const torch::NoGradGuard no_grad;
  CHECK(!Power::apply(x, int64_t{2}, std::string("hello")).requires_grad());
}

struct SortIt : Function<SortIt> {
  static variable_list forward(AutogradContext* ctx, Tensor x) {
    auto [values, indices] = x.sort();
    ctx->mark_non_differentiable({indices});
    ctx->save_for_backward({indices});
    return {values, indices};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    CHECK(grads.size() == 2 && grads[1].defined());  // zeros
    return {torch::zeros_like(grads[0]).scatter(0, ctx->get_saved_variables()[0], grads[0])};
  }
};

RL_TEST(outputs_without_gradient) {
  const Tensor x = torch::arange(4, torch::kFloat64).flip({0}).requires_grad_();
  const variable_list out = SortIt::apply(x);
  CHECK(out[0].requires_grad() && !out[1].requires_grad());
  (out[0] * torch::arange(4, torch::kFloat64)).sum().backward();
  CHECK(first(x.grad()) == 3);
}

struct DoubleInPlace : Function<DoubleInPlace> {
  static Tensor forward(AutogradContext* ctx, Tensor x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list grads) { return {grads[0] * 2}; }
};

RL_TEST(written_inputs) {
  const Tensor x = leaf(1);
  const Tensor y = x * 3;
  const Tensor z = DoubleInPlace::apply(y);
  CHECK(z.is_same(y) && first(y) == 6);
  y.sum().backward();
  CHECK(first(x.grad()) == 6);
  CHECK_THROWS(torch::Error, "a leaf Variable that requires grad", DoubleInPlace::apply(x));
}

struct TwoLists : Function<TwoLists> {
  static variable_list forward(AutogradContext* ctx, const variable_list& list,
                               std::optional<Tensor> maybe, bool flag) {
    ctx->set_materialize_grads(false);
    return {list[0] + list[1], flag ? list[0] * 5 : list[1], maybe.value_or(Tensor())};
  }
  static variable_list backward(AutogradContext*, variable_list grads) {
    CHECK(grads[0].defined() && !grads[1].defined());
    return {grads[0], grads[0] * 2, Tensor(), Tensor()};
  }
};

RL_TEST(lists_and_optional_tensors) {
  const Tensor a = leaf(1);
  const Tensor b = leaf(2);
  const variable_list out = TwoLists::apply(variable_list{a, b}, std::optional<Tensor>(), true);
  CHECK(out.size() == 3 && !out[2].defined());
  out[0].sum().backward();
  CHECK(first(a.grad()) == 1 && first(b.grad()) == 2);
}

struct TooFew : Function<TooFew> {
  static Tensor forward(AutogradContext*, Tensor a, Tensor b) { return a * b; }
  static variable_list backward(AutogradContext*, variable_list grads) { return {grads[0]}; }
};
struct ForNumber : Function<ForNumber> {
  static Tensor forward(AutogradContext*, Tensor a, double b) { return a * b; }
  static variable_list backward(AutogradContext*, variable_list grads) {
    return {grads[0], grads[0]};
  }
};

RL_TEST(wrong_gradients_raise) {
  const Tensor x = leaf(1);
  CHECK_THROWS(torch::Error, "incorrect number of gradients (expected 2, got 1)",
               (TooFew::apply(x, x).sum().backward(), 0));
  CHECK_THROWS(torch::Error, "different than None at position 2",
               (ForNumber::apply(x, 2.0).sum().backward(), 0));
}

RL_TEST(hooks_by_lambda) {
  const Tensor x = leaf(1);
  const Tensor y = x * 2;
  double seen = 0;
  y.register_hook([&](const Tensor& grad) { seen = first(grad); });
  const unsigned number = y.register_hook([](Tensor grad) { return grad * 10; });
  y.sum().backward({}, true);
  CHECK(seen == 1 && first(x.grad()) == 20);
  y.remove_hook(number);
  y.sum().backward();
  CHECK(first(x.grad()) == 22);
}

struct Note : torch::FinalCallback {
  explicit Note(double* place, Tensor t) : place_(place), leaf_(std::move(t)) {}
  void operator()() override { *place_ = first(leaf_.grad()); }
  double* place_;
  Tensor leaf_;
};

RL_TEST(final_callbacks) {
  const Tensor x = leaf(1);
  const Tensor y = x * 2;
  double at_end = 0;
  y.register_hook(
      [&](const Tensor&) { torch::queue_callback(std::make_unique<Note>(&at_end, x)); });
  y.sum().backward();
  CHECK(at_end == 2);
  CHECK_THROWS(torch::Error, "during backward pass",
               (torch::queue_callback(std::make_unique<Note>(&at_end, x)), 0));
}

RL_TEST(modes) {
  const Tensor x = leaf(1);
  {
    const torch::NoGradGuard guard;
    CHECK(!torch::GradMode::is_enabled() && !(x * 2).requires_grad());
    const torch::AutoGradMode on(true);
    CHECK((x * 2).requires_grad());
  }
  CHECK(torch::GradMode::is_enabled());
  {
    const torch::InferenceMode guard;
    CHECK(torch::InferenceMode::is_enabled() && !torch::GradMode::is_enabled());
    const torch::InferenceMode off(false);
    CHECK(torch::GradMode::is_enabled());
  }
  torch::autograd::backward({(x * x).sum()}, {});
  CHECK(first(x.grad()) == 2);
}

}  // namespace

RL_TEST_MAIN()
