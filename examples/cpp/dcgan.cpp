// Trains two networks against each other on handwritten digits: one draws, one judges (a DCGAN,
// Radford 2015, at 16 x 16 pixels). Takes digits.csv as digits.cpp does:
//
//   build/dcgan digits.csv [EPOCHS]
//
// It writes dcgan.pgm: a row of drawings for each of six epochs, from the same noise, and real
// digits below.
#include <cstdio>

#include <torch/torch.h>

#include "digits.h"
#include "picture.h"

namespace {

namespace data = torch::data;
namespace nn = torch::nn;

constexpr int64_t noise = 32;
constexpr int64_t width = 32;

nn::Sequential make_drawer() {
  using Up = nn::ConvTranspose2dOptions;
  return nn::Sequential(
      nn::ConvTranspose2d(Up(noise, 2 * width, 4).bias(false)), nn::BatchNorm2d(2 * width),
      nn::ReLU(), nn::ConvTranspose2d(Up(2 * width, width, 4).stride(2).padding(1).bias(false)),
      nn::BatchNorm2d(width), nn::ReLU(), nn::ConvTranspose2d(Up(width, 1, 4).stride(2).padding(1)),
      nn::Tanh());
}

nn::Sequential make_judge() {
  using Down = nn::Conv2dOptions;
  const auto leaky = [] { return nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)); };
  return nn::Sequential(nn::Conv2d(Down(1, width, 4).stride(2).padding(1)), leaky(),
                        nn::Dropout(0.3),
                        nn::Conv2d(Down(width, 2 * width, 4).stride(2).padding(1)), leaky(),
                        nn::Dropout(0.3), nn::Conv2d(Down(2 * width, 1, 4)));
}

// Small normal numbers, as the paper has them.
void draw_weights(nn::Module& module) {
  const torch::NoGradGuard no_grad;
  if (auto* conv = module.as<nn::Conv2d>()) {
    conv->weight.normal_(0, 0.02);
  } else if (auto* conv_up = module.as<nn::ConvTranspose2d>()) {
    conv_up->weight.normal_(0, 0.02);
  } else if (auto* norm = module.as<nn::BatchNorm2d>()) {
    norm->weight.normal_(1, 0.02);
  }
}

torch::Tensor score(nn::Sequential& judge, const torch::Tensor& images, bool real) {
  const torch::Tensor scores = judge->forward(images).flatten();
  return nn::functional::binary_cross_entropy_with_logits(
      scores, real ? torch::ones_like(scores) : torch::zeros_like(scores));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s digits.csv [EPOCHS]\n", argv[0]);
    return 2;
  }
  const int epochs = argc > 2 ? std::atoi(argv[2]) : 30;
  torch::manual_seed(0);
  const Digits all = read_digits(argv[1]);
  const torch::Tensor images =
      nn::functional::interpolate(all.images * 2 - 1, nn::functional::InterpolateFuncOptions()
                                                          .scale_factor(std::vector<double>{2, 2})
                                                          .mode(torch::kBilinear)
                                                          .align_corners(false));
  nn::Sequential drawer = make_drawer();
  nn::Sequential judge = make_judge();
  drawer->apply(draw_weights);
  judge->apply(draw_weights);
  const auto options = torch::optim::AdamOptions(4e-4).betas({0.5, 0.999});
  torch::optim::Adam draw_step(drawer->parameters(), options);
  torch::optim::Adam judge_step(judge->parameters(), options);
  auto loader = data::make_data_loader(
      data::datasets::TensorDataset(images).map(data::transforms::Stack<data::TensorExample>()),
      data::DataLoaderOptions(64).drop_last(true));

  const torch::Tensor same = torch::randn({12, noise, 1, 1});
  std::vector<torch::Tensor> rows;
  for (int epoch = 1; epoch <= epochs; epoch++) {
    double judged = 0;
    double drawn = 0;
    int steps = 0;
    for (auto& batch : *loader) {
      const torch::Tensor fake = drawer->forward(torch::randn({batch.data.size(0), noise, 1, 1}));
      judge_step.zero_grad();
      torch::Tensor loss = score(judge, batch.data, true) + score(judge, fake.detach(), false);
      loss.backward();
      judge_step.step();
      judged += loss.item<double>();
      draw_step.zero_grad();
      loss = score(judge, fake, true);
      loss.backward();
      draw_step.step();
      drawn += loss.item<double>();
      steps++;
    }
    std::printf("\repoch %d/%d  judge %.3f  drawer %.3f ", epoch, epochs, judged / steps,
                drawn / steps);
    std::fflush(stdout);
    if (epoch * 6 / epochs != (epoch - 1) * 6 / epochs) {
      const torch::NoGradGuard no_grad;
      drawer->eval();
      rows.push_back(drawer->forward(same));
      drawer->train();
    }
  }
  rows.push_back(images.slice(0, 0, 12));
  write_grid("dcgan.pgm", (torch::cat(rows) + 1) / 2, 12, 3);
  std::printf("\ndrawings: dcgan.pgm\n");
  return 0;
}
