// Recordings of steps, from C++: they are compared and replayed.
#include <rushlight/capture.h>
#include <rushlight/graph.h>
#include <torch/torch.h>

#include "check.h"

using namespace rushlight;
namespace nn = torch::nn;
namespace optim = torch::optim;

namespace {

struct Training {
  nn::Sequential model{nn::Linear(5, 8), nn::ReLU(), nn::Linear(8, 3)};
  optim::Adam optimizer{model->parameters(), optim::AdamOptions(0.05)};
  Tensor loss;
  void step(const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    loss = nn::functional::cross_entropy(model->forward(x), y);
    loss.backward();
    optimizer.step();
  }
};

RL_TEST(replays_train_as_the_step) {
  manual_seed(1);
  Training written;
  manual_seed(1);
  Training replayed;
  std::vector<Tensor> xs;
  std::vector<Tensor> ys;
  for (int i = 0; i < 6; i++) {
    xs.push_back(randn({4, 5}));
    ys.push_back(randint(3, {4}, TensorOptions().dtype(kLong)));
    written.step(xs.back(), ys.back());
  }
  replayed.step(xs[0], ys[0]);
  std::vector<std::unique_ptr<Recording>> made;
  for (size_t i = 1; i < 3; i++) {
    const Tensor x = xs[i];
    const Tensor y = ys[i];
    made.push_back(
        std::make_unique<Recording>(std::vector<Tensor>{x, y}, [&] { replayed.step(x, y); }));
    CHECK(made.back()->refusal().empty());
    CHECK(made.back()->leaves().size() == 4);
    made.back()->set_outputs({replayed.loss});
  }
  CHECK(made[1]->difference(*made[0]).empty());
  Tensor loss;
  for (size_t i = 3; i < 6; i++) {
    loss = made[1]->replay({xs[i], ys[i]}).at(0);
  }
  CHECK(equal(loss, written.loss.detach()));
  CHECK(!loss.requires_grad());
  const std::vector<Tensor> a = written.model->parameters();
  const std::vector<Tensor> b = replayed.model->parameters();
  for (size_t i = 0; i < a.size(); i++) {
    CHECK(equal(a[i], b[i]));
  }
  CHECK(made[1]->graph()->str().find("adam_step_") != std::string::npos);
}

RL_TEST(what_a_replay_would_not_do_is_refused) {
  const Tensor x = ones({3});
  const auto record = [](const Tensor& input, const std::function<void()>& step) {
    return Recording({input}, step).refusal();
  };
  CHECK_THROWS(Error, "reads the value", record(x, [&] { (void)(x * 2).sum().item(); }));
  CHECK_THROWS(Error, "seeds a generator", record(x, [] { manual_seed(3); }));
  CHECK_THROWS(Error, "dense tensors", record(x.to_sparse(), [] {}));
  double read = 0;
  const Recording lenient({x}, [&] { read = (x * 2).sum().item().toDouble(); }, /*strict=*/false);
  CHECK(read == 6);
  CHECK(lenient.refusal().find("reads the value") != std::string::npos);
}

RL_TEST(recordings_that_differ_say_where) {
  const Tensor x = ones({3});
  const auto times = [&](double number) {
    Tensor product;
    auto made = std::make_unique<Recording>(std::vector<Tensor>{x}, [&] { product = x * number; });
    made->set_outputs({product});
    return made;
  };
  const auto two = times(2);
  CHECK(times(2)->difference(*two).empty());
  const std::string difference = times(3)->difference(*two);
  CHECK(difference.find("{3.0}]() of aten::mul was") != std::string::npos);
}

RL_TEST(numbers_that_vary_are_given_to_replays) {
  const Tensor x = ones({3});
  const Tensor p = zeros({3});
  const auto with = [&](double rate) {
    auto made = std::make_unique<Recording>(std::vector<Tensor>{x}, [&] {
      const NoGradGuard no_grad;
      std::vector<Tensor> none;
      sgd_step_({p}, {x}, none, rate, 0.0, 0.0, 0.0, false, false, false);
    });
    made->set_outputs({p});
    return made;
  };
  const auto first = with(0.5);
  const auto second = with(0.25);
  CHECK(second->difference(*first) != "");
  CHECK(second->difference(*first, {1.0}, {1.0}) != "");
  CHECK(second->difference(*first, {7.0, 0.25}, {7.0, 0.5}).empty());
  CHECK(second->varying() == std::vector<std::vector<size_t>>({{1}}));
  fill_(p, 0);
  CHECK(equal(second->replay({ones({3})}, {7.0, 2.0})[0], full({3}, -2.0)));
  CHECK_THROWS(Error, "expected 2 settings or more", second->replay({ones({3})}));
}

}  // namespace

RL_TEST_MAIN()
