// The handwritten digits that scikit-learn ships, from a file of which a line is 64 pixels (8x8,
// values 0 to 16) and the digit.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <torch/torch.h>

struct Digits : torch::data::datasets::Dataset<Digits> {
  torch::Tensor images;  // (N, 1, 8, 8) float32 in [0, 1]
  torch::Tensor labels;  // (N,) int64

  torch::data::Example<> get(size_t i) override {
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

inline Digits read_digits(const std::string& path) {
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
