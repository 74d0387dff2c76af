// Builds modules from a seed, runs them forward and backward, and saves what came of it; then
// trains a network with each optimiser. tests/python/test_cpp_twin.py does the same in Python.
#include <torch/torch.h>

namespace nn = torch::nn;

namespace {

torch::StateDict results;

torch::Tensor one(torch::Tensor t) { return t; }
template <class... Rest>
torch::Tensor one(std::tuple<torch::Tensor, Rest...> t) {
  return std::get<0>(t);
}

template <class M>
void run(const std::string& name, M module, const std::vector<int64_t>& sizes) {
  const torch::Tensor x = torch::randn(sizes, torch::requires_grad());
  const torch::Tensor out = one(module->forward(x));
  (out * out).sum().backward();
  results.emplace_back(name + ":out", out.detach());
  results.emplace_back(name + ":grad", x.grad());
  for (const auto& [key, value] : module->state_dict()) {
    results.emplace_back(name + ":state:" + key, value);
  }
  for (const auto& p : module->named_parameters()) {
    results.emplace_back(name + ":grad:" + p.key(), p.value().grad());
  }
}

template <class M>
void run_loss(const std::string& name, M module, const torch::Tensor& target) {
  const torch::Tensor x = torch::randn({4, 3}, torch::requires_grad());
  const torch::Tensor out = module->forward(x.sigmoid(), target);
  out.sum().backward();
  results.emplace_back(name + ":out", out.detach());
  results.emplace_back(name + ":grad", x.grad());
}

template <class Optimizer, class Options>
void train(const std::string& name, Options options) {
  torch::manual_seed(1);
  nn::Sequential net;  // one after the other: the order in which arguments are made is open
  net->push_back(nn::Linear(4, 8));
  net->push_back(nn::Tanh());
  net->push_back(nn::Linear(8, 2));
  Optimizer optimizer(net->parameters(), options);
  std::vector<torch::Tensor> curve;
  for (int i = 0; i < 10; i++) {
    const torch::Tensor x = torch::randn({6, 4});
    const torch::Tensor y = torch::randint(2, {6});
    optimizer.zero_grad();
    const torch::Tensor loss = nn::CrossEntropyLoss()(net->forward(x), y);
    loss.backward();
    nn::utils::clip_grad_norm_(net->parameters(), 1);
    optimizer.step();
    curve.push_back(loss.detach());
  }
  results.emplace_back(name + ":curve", torch::stack(curve));
}

}  // namespace

#define RUN(name, module, ...) \
  torch::manual_seed(0);       \
  run(name, module, std::vector<int64_t> __VA_ARGS__)
#define LOSS(name, module, target) \
  torch::manual_seed(0);           \
  run_loss(name, module, target)

int main(int argc, char** argv) {
  TORCH_CHECK(argc == 2, "usage: modules RESULTS.pt");
  RUN("Linear", nn::Linear(5, 3), {2, 5});
  RUN("Conv1d", nn::Conv1d(nn::Conv1dOptions(2, 4, 3).padding(torch::kSame)), {2, 2, 9});
  RUN("Conv2d",
      nn::Conv2d(nn::Conv2dOptions(4, 6, {3, 2})
                     .stride(2)
                     .padding(1)
                     .groups(2)
                     .padding_mode(torch::kReflect)),
      {2, 4, 8, 8});
  RUN("Conv3d", nn::Conv3d(2, 3, 2), {1, 2, 4, 4, 4});
  RUN("ConvTranspose2d",
      nn::ConvTranspose2d(
          nn::ConvTranspose2dOptions(4, 2, 3).stride(2).output_padding(1).bias(false)),
      {2, 4, 5, 5});
  RUN("BatchNorm1d", nn::BatchNorm1d(3), {8, 3});
  RUN("BatchNorm2d", nn::BatchNorm2d(nn::BatchNorm2dOptions(3).momentum(torch::nullopt)),
      {4, 3, 5, 5});
  RUN("InstanceNorm2d",
      nn::InstanceNorm2d(nn::InstanceNorm2dOptions(3).affine(true).track_running_stats(true)),
      {4, 3, 5, 5});
  RUN("LayerNorm", nn::LayerNorm(std::vector<int64_t>{4, 5}), {3, 4, 5});
  RUN("GroupNorm", nn::GroupNorm(2, 4), {3, 4, 5});
  RUN("LocalResponseNorm", nn::LocalResponseNorm(2), {3, 4, 5, 5});
  RUN("PReLU", nn::PReLU(nn::PReLUOptions().num_parameters(3)), {2, 3});
  RUN("RNN", nn::RNN(nn::RNNOptions(3, 4).num_layers(2).nonlinearity(torch::kReLU)), {5, 2, 3});
  RUN("LSTM", nn::LSTM(nn::LSTMOptions(3, 4).bidirectional(true).proj_size(2)), {5, 2, 3});
  RUN("GRU", nn::GRU(nn::GRUOptions(3, 4).batch_first(true).num_layers(2)), {2, 5, 3});
  RUN("LSTMCell", nn::LSTMCell(3, 4), {2, 3});
  RUN("GRUCell", nn::GRUCell(3, 4), {2, 3});
  RUN("RNNCell", nn::RNNCell(3, 4), {2, 3});
  RUN("Dropout", nn::Dropout(0.3), {40});
  RUN("AlphaDropout", nn::AlphaDropout(0.3), {40});
  RUN("ELU", nn::ELU(nn::ELUOptions().alpha(0.5)), {9});
  RUN("GELU", nn::GELU(nn::GELUOptions().approximate("tanh")), {9});
  RUN("RReLU", nn::RReLU(), {9});
  RUN("Softmax", nn::Softmax(1), {3, 4});
  RUN("Softplus", nn::Softplus(nn::SoftplusOptions().beta(2)), {9});
  RUN("Hardtanh", nn::Hardtanh(nn::HardtanhOptions().min_val(-0.5)), {9});
  RUN("Softshrink", nn::Softshrink(0.2), {9});
  RUN("GLU", nn::GLU(0), {4, 3});
  RUN("MaxPool2d", nn::MaxPool2d(nn::MaxPool2dOptions({3, 2}).stride(2).padding(1)), {2, 3, 8, 8});
  RUN("AvgPool1d", nn::AvgPool1d(2), {2, 3, 8});
  RUN("AdaptiveAvgPool2d", nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({3, torch::nullopt})),
      {2, 3, 8, 7});
  RUN("LPPool2d", nn::LPPool2d(nn::LPPool2dOptions(2, {2, 2})), {2, 3, 8, 8});
  RUN("ReflectionPad2d", nn::ReflectionPad2d(1), {2, 3, 4, 4});
  RUN("ZeroPad1d", nn::ZeroPad1d(nn::ZeroPad1dOptions({1, 2})), {2, 3, 4});
  RUN("Unfold", nn::Unfold(nn::UnfoldOptions({2, 2}).padding(1)), {2, 3, 4, 4});
  RUN("PixelShuffle", nn::PixelShuffle(2), {2, 4, 3, 3});
  RUN("Upsample",
      nn::Upsample(nn::UpsampleOptions()
                       .scale_factor(std::vector<double>{2, 2})
                       .mode(torch::kBilinear)
                       .align_corners(true)),
      {2, 3, 4, 4});
  const torch::Tensor classes = torch::tensor({0, 2, 1, 2});
  const torch::Tensor values = torch::arange(12).reshape({4, 3}) / 12;
  LOSS("MSELoss", nn::MSELoss(), values);
  LOSS("L1Loss", nn::L1Loss(nn::L1LossOptions(torch::kSum)), values);
  LOSS("SmoothL1Loss", nn::SmoothL1Loss(nn::SmoothL1LossOptions().beta(0.5)), values);
  LOSS("BCELoss", nn::BCELoss(), values);
  LOSS("KLDivLoss", nn::KLDivLoss(nn::KLDivLossOptions(torch::kBatchMean)), values);
  LOSS("CrossEntropyLoss",
       nn::CrossEntropyLoss(nn::CrossEntropyLossOptions().label_smoothing(0.1).weight(
           torch::tensor({1.0, 2.0, 3.0}))),
       classes);
  LOSS("MultiMarginLoss", nn::MultiMarginLoss(), classes);
  train<torch::optim::SGD>("SGD", torch::optim::SGDOptions(0.1).momentum(0.9).nesterov(true));
  train<torch::optim::Adam>("Adam", torch::optim::AdamOptions(0.01).amsgrad(true));
  train<torch::optim::AdamW>("AdamW", torch::optim::AdamWOptions(0.01));
  train<torch::optim::RMSprop>("RMSprop", torch::optim::RMSpropOptions(0.01).centered(true));
  train<torch::optim::Adagrad>("Adagrad", torch::optim::AdagradOptions(0.1).lr_decay(0.1));
  torch::save(results, argv[1]);
  return 0;
}
