// Trains a small classifier on the 1,797 handwritten digits that scikit-learn ships, with tensors,
// autograd and ops alone.
//
//   folder="$(python -c 'import sklearn.datasets as d; print(d.__path__[0])')"
//   zcat "$folder/data/digits.csv.gz" > digits.csv
//   build/digits digits.csv
//
// A line of the file is 64 pixels (8x8, values 0 to 16) and the digit.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <torch/torch.h>

namespace {

struct Digits {
  torch::Tensor images;  // (N, 64) float32 in [0, 1]
  torch::Tensor labels;  // (N,) int64
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
  return {torch::tensor(pixels).view({-1, 64}), torch::tensor(labels)};
}

// Weights as PyTorch's linear layers start: uniform within 1/sqrt(inputs).
struct Layer {
  torch::Tensor weight;
  torch::Tensor bias;
  Layer(int64_t inputs, int64_t outputs) {
    const double bound = 1 / std::sqrt(static_cast<double>(inputs));
    weight = torch::empty({outputs, inputs}).uniform_(-bound, bound).requires_grad_();
    bias = torch::empty({outputs}).uniform_(-bound, bound).requires_grad_();
  }
  torch::Tensor operator()(const torch::Tensor& x) const { return torch::linear(x, weight, bias); }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s digits.csv\n", argv[0]);
    return 2;
  }
  torch::manual_seed(0);
  const Digits all = read_digits(argv[1]);
  const int64_t n = all.labels.size(0);
  const int64_t held_out = n / 5;
  const auto order = torch::randperm(n);
  const auto test = order.slice(0, 0, held_out);
  const auto train = order.slice(0, held_out, n);
  const Digits testing{all.images.index_select(0, test), all.labels.index_select(0, test)};

  const Layer first(64, 128);
  const Layer second(128, 10);
  const auto forward = [&](const torch::Tensor& x) { return second(torch::relu(first(x))); };
  const std::vector<torch::Tensor> parameters = {first.weight, first.bias, second.weight,
                                                 second.bias};

  constexpr int64_t batch = 64;
  constexpr double rate = 0.5;
  for (int epoch = 1; epoch <= 30; epoch++) {
    const auto shuffled = train.index_select(0, torch::randperm(train.size(0)));
    double total = 0;
    int64_t steps = 0;
    for (const auto& rows : shuffled.split(batch)) {
      const auto scores = forward(all.images.index_select(0, rows));
      const auto loss = torch::cross_entropy_loss(scores, all.labels.index_select(0, rows));
      loss.backward();
      const torch::NoGradGuard no_grad;
      for (const auto& p : parameters) {
        p.sub_(p.grad() * rate);
        p.mutable_grad().reset();
      }
      total += loss.item<double>();
      steps++;
    }
    if (epoch % 10 == 0) {
      std::printf("epoch %2d  loss %.4f\n", epoch, total / static_cast<double>(steps));
    }
  }

  const torch::NoGradGuard no_grad;
  const auto right = forward(testing.images).argmax(1).eq(testing.labels).sum().item<int64_t>();
  std::printf("%.1f %% of %lld held-out digits are right\n",
              100.0 * static_cast<double>(right) / static_cast<double>(held_out),
              static_cast<long long>(held_out));
  return 0;
}
