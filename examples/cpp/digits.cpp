// Trains a small convolutional network on the 1,797 handwritten digits that scikit-learn ships.
//
//   folder="$(python -c 'import sklearn.datasets as d; print(d.__path__[0])')"
//   zcat "$folder/data/digits.csv.gz" > digits.csv
//   build/digits digits.csv
//
// A line of the file is 64 pixels (8x8, values 0 to 16) and the digit.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <torch/torch.h>

namespace {

namespace data = torch::data;
namespace nn = torch::nn;

struct Digits : data::datasets::Dataset<Digits> {
  torch::Tensor images;  // (N, 1, 8, 8) float32 in [0, 1]
  torch::Tensor labels;  // (N,) int64

  data::Example<> get(size_t i) override {
    return {images[static_cast<int64_t>(i)], labels[static_cast<int64_t>(i)]};
  }
  torch::optional<size_t> size() const override { return static_cast<size_t>(labels.size(0)); }
  Digits rows(const torch::Tensor& which) const {
    Digits part;
    part.images = images.index({which});
    part.labels = labels.index({which});
    return part;
  }
};

Digits read_digits(const std::string& path) {
  std::ifstream file(path);
  TORCH_CHECK(file.good(), "cannot read ", path);
  std::vector<float> pixels;
  std::vector<int64_t> labels;
  std::string line;
  while (std::getline(file, line)) {
    const char* at = line.c_str();
    char* end = nullptr;
    std::vector<double> row;
    for (double value = std::strtod(at, &end); end != at; value = std::strtod(at, &end)) {
      row.push_back(value);
      at = *end == ',' ? end + 1 : end;
    }
    if (row.empty()) {
      continue;
    }
    TORCH_CHECK(row.size() == 65, path, ": expected 65 numbers in a line, got ", row.size());
    for (size_t i = 0; i < 64; i++) {
      pixels.push_back(static_cast<float>(row[i] / 16));
    }
    labels.push_back(static_cast<int64_t>(row[64]));
  }
  Digits all;
  all.images = torch::tensor(pixels).view({-1, 1, 8, 8});
  all.labels = torch::tensor(labels);
  return all;
}

struct NetImpl : nn::Module {
  NetImpl()
      : conv1(nn::Conv2dOptions(1, 16, 3).padding(1)),
        conv2(nn::Conv2dOptions(16, 32, 3).padding(1)),
        norm(32),
        fc(32 * 2 * 2, 10) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("norm", norm);
    register_module("fc", fc);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(conv1(x)), 2);
    x = torch::max_pool2d(torch::relu(norm(conv2(x))), 2);
    return fc(x.flatten(1));
  }
  nn::Conv2d conv1;
  nn::Conv2d conv2;
  nn::BatchNorm2d norm;
  nn::Linear fc;
};
TORCH_MODULE(Net);

}  // namespace

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
  for (int epoch = 1; epoch <= 8; epoch++) {
    net->train();
    double total = 0;
    int steps = 0;
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      const auto loss = nn::functional::cross_entropy(net(batch.data), batch.target);
      loss.backward();
      optimizer.step();
      total += loss.item<double>();
      steps++;
    }
    std::printf("epoch %d  loss %.4f\n", epoch, total / steps);
  }

  net->eval();
  const torch::NoGradGuard no_grad;
  const auto guesses = net(testing.images).argmax(1);
  const auto right = guesses.eq(testing.labels).sum().item<int64_t>();
  std::printf("%.1f %% of %lld held-out digits are right\n",
              100.0 * static_cast<double>(right) / static_cast<double>(n / 5),
              static_cast<long long>(n / 5));
  torch::save(net, "digits.pt");
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
