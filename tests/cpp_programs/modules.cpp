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

// `f` calls the module with a tensor of the given sizes.
template <class M, class F>
void run(const std::string& name, M module, const std::vector<int64_t>& sizes, const F& f) {
  const torch::Tensor x = torch::randn(sizes, torch::requires_grad());
  const torch::Tensor out = f(module, x);
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
void run(const std::string& name, M module, const std::vector<int64_t>& sizes) {
  run(name, module, sizes, [](M& m, const torch::Tensor& x) { return one(m->forward(x)); });
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
    const auto closure = [&] {
      optimizer.zero_grad();
      torch::Tensor loss = nn::CrossEntropyLoss()(net->forward(x), y);
      loss.backward();
      nn::utils::clip_grad_norm_(net->parameters(), 1);
      return loss;
    };
    curve.push_back(optimizer.step(closure).detach());
  }
  results.emplace_back(name + ":curve", torch::stack(curve));
}

}  // namespace

#define RUN(name, module, ...) \
  torch::manual_seed(0);       \
  run(name, module, std::vector<int64_t> __VA_ARGS__)
// A call with more than one input: of m, the module, and x.
#define RUN_WITH(name, module, call, ...)             \
  torch::manual_seed(0);                              \
  run(name, module, std::vector<int64_t> __VA_ARGS__, \
      [&](auto& m, const torch::Tensor& x) { return call; })
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
  RUN("LPPool3d", nn::LPPool3d(nn::LPPool3dOptions(2, 2)), {1, 2, 4, 4, 4});
  RUN("CrossMapLRN2d", nn::CrossMapLRN2d(3), {2, 4, 3, 3});
  RUN("FractionalMaxPool2d",
      nn::FractionalMaxPool2d(
          nn::FractionalMaxPool2dOptions(2).output_size(torch::ExpandingArray<2>({3, 4}))),
      {2, 3, 8, 9});
  RUN("FractionalMaxPool3d",
      nn::FractionalMaxPool3d(
          nn::FractionalMaxPool3dOptions(2).output_ratio(torch::ExpandingArray<3, double>(0.5))),
      {1, 2, 6, 6, 6});
  nn::MaxPool1d pool1(2);
  nn::MaxPool2d pool2(nn::MaxPool2dOptions(3).stride(2).padding(1));
  nn::AdaptiveMaxPool3d pool3(2);
  const auto unpooled = [](auto& m, const auto& pooled) {
    return m->forward(std::get<0>(pooled), std::get<1>(pooled));
  };
  RUN_WITH("MaxUnpool1d", nn::MaxUnpool1d(2), unpooled(m, pool1->forward_with_indices(x)),
           {2, 3, 8});
  RUN_WITH("MaxUnpool2d", nn::MaxUnpool2d(nn::MaxUnpool2dOptions(3).stride(2).padding(1)),
           unpooled(m, pool2->forward_with_indices(x)), {2, 3, 9, 9});
  RUN_WITH("MaxUnpool3d", nn::MaxUnpool3d(2), unpooled(m, pool3->forward_with_indices(x)),
           {2, 3, 4, 4, 4});
  // A list is made from left to right, while the order of a call's arguments is open.
  const auto called = [](auto& m, const std::vector<torch::Tensor>& t, const auto&... rest) {
    return m->forward(t[0], t[1], t[2], rest...);
  };
  const auto attended = [](const std::tuple<torch::Tensor, torch::Tensor>& both) {
    return torch::cat({std::get<0>(both).flatten(), std::get<1>(both).flatten()});
  };
  const torch::Tensor causal = nn::TransformerImpl::generate_square_subsequent_mask(5);
  const torch::Tensor hidden =
      torch::zeros({2, 5}).masked_fill(torch::arange(10).reshape({2, 5}).eq(3), -INFINITY);
  RUN_WITH("MultiheadAttention", nn::MultiheadAttention(8, 2), attended(m->forward(x, x, x)),
           {5, 2, 8});
  RUN_WITH("MultiheadAttention:all",
           nn::MultiheadAttention(nn::MultiheadAttentionOptions(8, 2)
                                      .add_bias_kv(true)
                                      .add_zero_attn(true)
                                      .dropout(0.2)
                                      .kdim(6)
                                      .vdim(4)),
           attended(called(m, {x, x.slice(-1, 0, 6), x.slice(-1, 4)}, hidden, true, causal, false)),
           {5, 2, 8});
  RUN_WITH("MultiheadAttention:fast",
           nn::MultiheadAttention(nn::MultiheadAttentionOptions(8, 4).bias(false)),
           std::get<0>(m->forward(x, x, x, {}, false, causal.isinf())), {5, 2, 8});
  RUN_WITH("MultiheadAttention:one", nn::MultiheadAttention(8, 4),
           std::get<0>(called(m, {x, x * 2, x * 2}, torch::Tensor(), false)), {5, 8});
  RUN_WITH(
      "TransformerEncoderLayer",
      nn::TransformerEncoderLayer(
          nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).activation(torch::kGELU)),
      m->forward(x, causal, hidden), {5, 2, 8});
  RUN_WITH(
      "TransformerDecoderLayer",
      nn::TransformerDecoderLayer(
          nn::TransformerDecoderLayerOptions(8, 2).dim_feedforward(16).batch_first(true).norm_first(
              true)),
      m->forward(x, x * 2, causal), {2, 5, 8});
  RUN_WITH("TransformerEncoder",
           nn::TransformerEncoder(
               nn::TransformerEncoderOptions(
                   nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).activation(
                       [](const torch::Tensor& t) { return t.tanh(); }),
                   2)
                   .norm(torch::nn::AnyModule(nn::LayerNorm(std::vector<int64_t>{8})))),
           m->forward(x, causal), {5, 2, 8});
  RUN_WITH("Transformer", nn::Transformer(nn::TransformerOptions(8, 2, 2, 1).dim_feedforward(16)),
           m->forward(x, x.slice(0, 0, 3), {}, causal.slice(0, 0, 3).slice(1, 0, 3)), {5, 2, 8});
  RUN_WITH("AdaptiveLogSoftmaxWithLoss",
           nn::AdaptiveLogSoftmaxWithLoss(
               nn::AdaptiveLogSoftmaxWithLossOptions(16, 20, {4, 10}).head_bias(true)),
           torch::cat({m->forward(x, torch::tensor({0, 5, 15, 19, 4, 3})).output,
                       m->log_prob(x).flatten(), m->predict(x).to(torch::kFloat)}),
           {6, 16});
  RUN_WITH("TripletMarginWithDistanceLoss",
           nn::TripletMarginWithDistanceLoss(
               nn::TripletMarginWithDistanceLossOptions()
                   .distance_function([](const torch::Tensor& a, const torch::Tensor& b) {
                     return (a - b).abs().sum(1);
                   })
                   .margin(2)
                   .swap(true)
                   .reduction(torch::kNone)),
           called(m, {x, x.flip(0), x.roll(1)}), {4, 3});
  RUN_WITH("EmbeddingBag", nn::EmbeddingBag(nn::EmbeddingBagOptions(7, 3).mode(torch::kSum)),
           m->forward(torch::tensor({1, 2, 6, 0, 2}), torch::tensor({0, 3}), x), {5});
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
  train<torch::optim::Adadelta>("Adadelta", torch::optim::AdadeltaOptions(0.5));
  train<torch::optim::Adamax>("Adamax", torch::optim::AdamaxOptions(0.01));
  train<torch::optim::NAdam>("NAdam", torch::optim::NAdamOptions(0.01));
  train<torch::optim::RAdam>("RAdam", torch::optim::RAdamOptions(0.01).weight_decay(0.1));
  train<torch::optim::Rprop>("Rprop", torch::optim::RpropOptions(0.01));
  train<torch::optim::ASGD>("ASGD", torch::optim::ASGDOptions(0.01).t0(3));
  train<torch::optim::LBFGS>("LBFGS", torch::optim::LBFGSOptions(0.1).max_iter(4));
  train<torch::optim::LBFGS>(
      "LBFGS:searched",
      torch::optim::LBFGSOptions(1).max_iter(5).history_size(3).line_search_fn("strong_wolfe"));
  torch::save(results, argv[1]);
  return 0;
}
