// Modules, containers, optimisers, loaders and files, as libtorch programs use them.
#include <torch/torch.h>

#include <cstdio>

#include "check.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

namespace {

struct NetImpl : nn::Module {
  explicit NetImpl(int64_t width) : fc1(4, width), fc2(nn::LinearOptions(width, 2).bias(false)) {
    register_module("fc1", fc1);
    register_module("fc2", fc2);
    drop = register_module("drop", nn::Dropout(0.5));
    scale = register_parameter("scale", torch::ones({1}));
    seen = register_buffer("seen", torch::zeros({}));
  }
  torch::Tensor forward(torch::Tensor x) {
    seen += 1;
    return fc2(drop(torch::relu(fc1->forward(x)))) * scale;
  }
  nn::Linear fc1;
  nn::Linear fc2;
  nn::Dropout drop{nullptr};
  torch::Tensor scale;
  torch::Tensor seen;
};
TORCH_MODULE(Net);

RL_TEST(names_and_modes) {
  Net net(8);
  const std::vector<std::string> names = net->named_parameters().keys();
  CHECK((names == std::vector<std::string>{"scale", "fc1.weight", "fc1.bias", "fc2.weight"}));
  CHECK(net->named_buffers().keys() == std::vector<std::string>{"seen"});
  CHECK(net->modules().size() == 4);
  CHECK(net->named_modules().contains("drop"));
  net->eval();
  CHECK(!net->drop->is_training());
  const torch::Tensor x = torch::randn({3, 4});
  CHECK(torch::equal(net(x), net(x)));
  net(x).sum().backward();
  CHECK(net->fc2->weight.grad().defined());
  net->zero_grad();  // fc2 has no bias
  CHECK(!net->fc2->weight.grad().defined());
  net->to(torch::kFloat64);
  CHECK(net->fc1->weight.dtype() == torch::kFloat64);
  int linear = 0;
  net->apply([&](nn::Module& m) { linear += m.as<nn::Linear>() != nullptr ? 1 : 0; });
  CHECK(linear == 2);
  CHECK_THROWS(c10::Error, "already defined", net->register_buffer("seen", torch::ones({1})));
  CHECK_THROWS(c10::Error, "must not contain a dot", net->register_buffer("a.b", torch::ones({1})));
  CHECK_THROWS(c10::Error, "empty ModuleHolder", nn::Linear(nullptr)->weight);
}

RL_TEST(printing) {
  std::ostringstream out;
  out << nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 2, 3).padding(1)), nn::ReLU(true),
                        nn::MaxPool2d(2), nn::Linear(3, 4));
  CHECK(out.str() ==
        "torch::nn::Sequential(\n"
        "  (0): torch::nn::Conv2d(1, 2, kernel_size=[3, 3], stride=[1, 1], padding=[1, 1])\n"
        "  (1): torch::nn::ReLU(inplace=true)\n"
        "  (2): torch::nn::MaxPool2d(kernel_size=[2, 2], stride=[2, 2], padding=[0, 0], "
        "dilation=[1, 1], ceil_mode=false)\n"
        "  (3): torch::nn::Linear(in_features=3, out_features=4, bias=true)\n"
        ")");
}

RL_TEST(containers) {
  nn::Sequential inner(nn::Linear(3, 3), nn::Tanh());
  nn::Sequential s({{"a", nn::Linear(2, 3)}, {"b", inner}, {"f", nn::Functional(torch::relu)}});
  CHECK((s->forward(torch::ones({5, 2})).sizes() == torch::IntArrayRef{5, 3}));
  CHECK(s->named_parameters().contains("b.0.weight"));
  CHECK(s->at<nn::LinearImpl>(0).options.out_features() == 3);
  CHECK_THROWS(c10::Error, "Expected argument #0", s->forward(1));
  nn::ModuleList list(nn::Linear(1, 2), nn::ReLU());
  CHECK(list->size() == 2 && list->named_parameters().contains("0.bias"));
  nn::ModuleDict dict;
  dict->insert("x", nn::Linear(1, 2));
  CHECK(dict->contains("x") && dict[std::string("x")]->parameters().size() == 2);
  nn::ParameterList parameters(torch::ones({2}, torch::requires_grad()), torch::ones({3}));
  CHECK(parameters->parameters().size() == 2 && !parameters->at(1).requires_grad());
  nn::Sequential pooled(
      nn::Functional(torch::max_pool2d, 2, torch::ExpandingArray<2>(2), 0, 1, false));
  CHECK(pooled->forward(torch::ones({1, 1, 4, 4})).numel() == 4);
}

RL_TEST(copies_are_apart) {
  nn::Sequential s(nn::Linear(2, 3), nn::BatchNorm1d(3));
  const auto copy = std::dynamic_pointer_cast<nn::SequentialImpl>(s->clone());
  CHECK(torch::equal(copy->parameters()[0], s->parameters()[0]));
  const torch::NoGradGuard no_grad;
  copy->parameters()[0].fill_(3);
  CHECK(!torch::equal(copy->parameters()[0], s->parameters()[0]));
  nn::LSTM lstm(nn::LSTMOptions(2, 3).num_layers(2).bidirectional(true));
  const auto twin = std::dynamic_pointer_cast<nn::LSTMImpl>(lstm->clone());
  const torch::Tensor x = torch::randn({4, 1, 2});
  CHECK(torch::equal(std::get<0>(twin->forward(x)), std::get<0>(lstm(x))));
}

RL_TEST(functional_forms) {
  const torch::Tensor x = torch::randn({2, 3, 8, 8});
  CHECK(torch::equal(F::max_pool2d(x, F::MaxPool2dFuncOptions(2)), nn::MaxPool2d(2)(x)));
  CHECK(torch::equal(F::leaky_relu(x, F::LeakyReLUFuncOptions().negative_slope(0.2)),
                     nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2))(x)));
  CHECK((F::pad(x, F::PadFuncOptions({1, 2, 0, 0}).mode(torch::kReflect)).size(3)) == 11);
  CHECK((F::interpolate(x, F::InterpolateFuncOptions().scale_factor(std::vector<double>{2, 2}))
             .size(2)) == 16);
  CHECK(F::dropout(x, F::DropoutFuncOptions().p(0.5).training(false)).is_same(x) ||
        torch::equal(F::dropout(x, F::DropoutFuncOptions().training(false)), x));
  const torch::Tensor t = torch::randint(3, {2, 8, 8});
  CHECK(F::cross_entropy(x, t, F::CrossEntropyFuncOptions().reduction(torch::kSum)).item<double>() >
        nn::CrossEntropyLoss()(x, t).item<double>());
  CHECK_THROWS(torch::ValueError, "not a valid value for reduction",
               F::mse_loss(x, x, F::MSELossFuncOptions("average")));
  CHECK_THROWS(c10::Error, "in_channels must be divisible by groups",
               nn::Conv2d(nn::Conv2dOptions(3, 4, 1).groups(2)));
}

// The loss of a small problem after some steps.
template <class Optimizer, class Options>
double trained(Options options) {
  torch::manual_seed(1);
  nn::Linear model(3, 1);
  Optimizer optimizer(model->parameters(), options);
  const torch::Tensor x = torch::randn({32, 3});
  const torch::Tensor y = x.matmul(torch::tensor({{1.0}, {-2.0}, {0.5}})) + 1;
  double loss = 0;
  for (int i = 0; i < 300; i++) {
    optimizer.zero_grad();
    const torch::Tensor l = torch::mse_loss(model(x), y);
    l.backward();
    optimizer.step();
    loss = l.template item<double>();
  }
  return loss;
}

RL_TEST(optimisers_learn) {
  CHECK(trained<torch::optim::SGD>(torch::optim::SGDOptions(0.05).momentum(0.9)) < 1e-4);
  CHECK(trained<torch::optim::Adam>(torch::optim::AdamOptions(0.05)) < 1e-3);
  CHECK(trained<torch::optim::AdamW>(torch::optim::AdamWOptions(0.05).amsgrad(true)) < 1e-2);
  CHECK(trained<torch::optim::RMSprop>(torch::optim::RMSpropOptions(0.02).momentum(0.1)) < 1e-2);
  CHECK(trained<torch::optim::Adagrad>(torch::optim::AdagradOptions(0.5)) < 1e-3);
}

RL_TEST(schedules) {
  nn::Linear model(1, 1);
  torch::optim::SGD optimizer(model->parameters(), 1.0);
  torch::optim::StepLR schedule(optimizer, 2, 0.5);
  schedule.step();
  CHECK(optimizer.param_groups()[0].options().get_lr() == 1);
  schedule.step();
  CHECK(optimizer.param_groups()[0].options().get_lr() == 0.5);
  torch::optim::ReduceLROnPlateauScheduler plateau(
      optimizer, torch::optim::ReduceLROnPlateauScheduler::min, 0.1F, 1);
  for (int i = 0; i < 3; i++) {
    plateau.step(1);
  }
  CHECK(std::abs(optimizer.param_groups()[0].options().get_lr() - 0.05) < 1e-6);
  CHECK_THROWS(c10::Error, "more than one parameter group",
               (optimizer.add_param_group(model->parameters()), 0));
}

RL_TEST(files) {
  const std::string path = "test_nn.pt";
  nn::Sequential s(nn::Linear(2, 3), nn::BatchNorm1d(3));
  s->forward(torch::randn({4, 2}));
  torch::save(s, path);
  nn::Sequential other(nn::Linear(2, 3), nn::BatchNorm1d(3));
  torch::load(other, path);
  for (size_t i = 0; i < s->parameters().size(); i++) {
    CHECK(torch::equal(s->parameters()[i], other->parameters()[i]));
  }
  CHECK(torch::equal(s->buffers()[0], other->buffers()[0]));
  nn::Sequential wrong(nn::Linear(2, 4), nn::BatchNorm1d(4));
  CHECK_THROWS(c10::Error, "size mismatch", (torch::load(wrong, path), 0));
  torch::nn::Sequential far(torch::nn::Linear(2, 3), torch::nn::Linear(3, 1));
  torch::nn::Sequential near(torch::nn::Linear(2, 4), torch::nn::BatchNorm1d(1));
  torch::save(far, path);
  CHECK_THROWS(
      c10::Error,
      "SequentialImpl from 'test_nn.pt':\n\tMissing key(s): \"1.num_batches_tracked\", "
      "\"1.running_mean\", "
      "\"1.running_var\"\n\tsize mismatch for 0.bias: [3] in the archive, [4] in the module",
      (torch::load(near, path), 0));
  torch::load(far, path);  // the refusal leaves nothing behind

  torch::optim::Adam adam(s->parameters(), 0.1);
  s->forward(torch::randn({4, 2})).sum().backward();
  adam.step();
  std::stringstream stream;
  torch::save(adam, stream);
  torch::optim::Adam again(other->parameters(), 0.2);
  torch::load(again, stream);
  CHECK(again.param_groups()[0].options().get_lr() == 0.1);
  torch::save(torch::ones({2}), path);
  torch::Tensor t;
  torch::load(t, path);
  CHECK(torch::equal(t, torch::ones({2})));
  std::remove(path.c_str());
}

struct Squares : torch::data::datasets::Dataset<Squares> {
  torch::data::Example<> get(size_t i) override {
    TORCH_CHECK(i != 90, "sample ", i, " is broken");
    const auto x = static_cast<int64_t>(i);
    return {torch::full({2}, x), torch::tensor(x * x)};
  }
  torch::optional<size_t> size() const override { return 100; }
};

RL_TEST(loaders_keep_order_and_exceptions) {
  using torch::data::samplers::SequentialSampler;
  for (const size_t workers : {0, 3}) {
    auto loader = torch::data::make_data_loader<SequentialSampler>(
        Squares().map(torch::data::transforms::Stack<>()),
        torch::data::DataLoaderOptions(30).workers(workers));
    for (int epoch = 0; epoch < 2; epoch++) {
      int64_t next = 0;
      bool thrown = false;
      try {
        for (auto& batch : *loader) {
          CHECK((batch.data.sizes() == torch::IntArrayRef{30, 2}));
          CHECK(batch.data[0][0].item<int64_t>() == next);
          CHECK(batch.target[2].item<int64_t>() == (next + 2) * (next + 2));
          next += 30;
        }
      } catch (const c10::Error& e) {
        thrown = std::strstr(e.what(), "sample 90 is broken") != nullptr;
      }
      CHECK(thrown && next == 90);
    }
  }
  auto shuffled = torch::data::make_data_loader(
      torch::data::datasets::TensorDataset(torch::arange(10))
          .map(torch::data::transforms::Stack<torch::data::TensorExample>()),
      torch::data::DataLoaderOptions(4).drop_last(true));
  int64_t seen = 0;
  for (const torch::data::TensorExample& batch : *shuffled) {
    seen += batch.data.numel();
  }
  CHECK(seen == 8);
}

RL_TEST(recurrent_layers) {
  nn::GRU gru(nn::GRUOptions(3, 4).batch_first(true));
  const auto [out, state] = gru(torch::randn({2, 5, 3}));
  CHECK((out.sizes() == torch::IntArrayRef{2, 5, 4}));
  CHECK(torch::allclose(out.select(1, 4), state[0]));
  nn::RNN rnn(nn::RNNOptions(3, 4).nonlinearity(torch::kReLU));
  const auto packed = nn::utils::rnn::pack_padded_sequence(torch::randn({5, 2, 3}),
                                                           torch::tensor({3, 5}), false, false);
  const auto [rows, last] = rnn->forward_with_packed_input(packed);
  const auto [padded, lengths] = nn::utils::rnn::pad_packed_sequence(rows);
  CHECK((padded.sizes() == torch::IntArrayRef{5, 2, 4}));
  CHECK(lengths[0].item<int64_t>() == 3);
  CHECK(torch::allclose(padded[2][0], last[0][0]));
  nn::LSTMCell cell(3, 4);
  CHECK((std::get<1>(cell(torch::randn({2, 3}))).sizes() == torch::IntArrayRef{2, 4}));
}

}  // namespace

RL_TEST_MAIN()
