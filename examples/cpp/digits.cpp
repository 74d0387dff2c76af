// Trains a small convolutional network on the 1,797 handwritten digits that scikit-learn ships.
//
//   folder="$(python -c 'import sklearn.datasets as d; print(d.__path__[0])')"
//   zcat "$folder/data/digits.csv.gz" > digits.csv
//   build/digits digits.csv
//
// A line of the file is 64 pixels (8x8, values 0 to 16) and the digit.
#include <cstdio>

#include <torch/torch.h>

#include "digits.h"
#include "net.h"
#include "picture.h"
#include "template/progress.h"

namespace data = torch::data;
namespace nn = torch::nn;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s digits.csv\n", argv[0]);
    return 2;
  }
  torch::manual_seed(0);
  const Digits all = read_digits(argv[1]);
  const int64_t n = all.labels.size(0);
  const auto order = torch::randperm(n);
  const Digits testing = all.rows(order.slice(0, 0, n / 5));
  const Digits training = all.rows(order.slice(0, n / 5, n));

  Net net;
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(3e-3));
  auto loader = data::make_data_loader(Digits(training).map(data::transforms::Stack<>()),
                                       data::DataLoaderOptions(64).workers(1));
  constexpr int epochs = 8;
  Progress progress(epochs * ((training.labels.size(0) + 63) / 64));
  net->train();
  for (int epoch = 0; epoch < epochs; epoch++) {
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      const auto loss = nn::functional::cross_entropy(net(batch.data), batch.target);
      loss.backward();
      optimizer.step();
      progress.step(loss.item<double>());
    }
  }
  std::printf("%s", progress.curve().c_str());

  net->eval();
  const torch::NoGradGuard no_grad;
  const auto guesses = net(testing.images).argmax(1);
  const auto right = guesses.eq(testing.labels).sum().item<int64_t>();
  std::printf("%.1f %% of %lld held-out digits are right\n",
              100.0 * static_cast<double>(right) / static_cast<double>(n / 5),
              static_cast<long long>(n / 5));
  torch::save(net, "digits.pt");
  write_grid("digits.pgm", testing.images.slice(0, 0, 60), 12, 4);
  for (int64_t row = 0; row < 8; row++) {  // the first of them, as a picture of characters
    for (int64_t k = 0; k < 4; k++) {
      const auto pixels = testing.images[k][0][row].contiguous();
      for (int64_t column = 0; column < 8; column++) {
        const double level = 4.99 * static_cast<double>(pixels.data_ptr<float>()[column]);
        std::putchar(" .:*#"[static_cast<int>(level)]);
      }
      std::printf("  ");
    }
    std::putchar('\n');
  }
  for (int64_t k = 0; k < 4; k++) {
    std::printf("%-10lld", static_cast<long long>(guesses[k].item<int64_t>()));
  }
  std::putchar('\n');
  return 0;
}
