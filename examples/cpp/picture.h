// Pictures of the examples, in the format PGM, which most viewers open.
#pragma once

#include <fstream>
#include <string>

#include <torch/torch.h>

// Images (N, 1, height, width) in [0, 1], `columns` in a row, each pixel `scale` pixels wide.
inline void write_grid(const std::string& path, const torch::Tensor& images, int64_t columns,
                       int64_t scale) {
  const int64_t height = images.size(2) + 1;
  const int64_t width = images.size(3) + 1;
  const int64_t rows = (images.size(0) + columns - 1) / columns;
  torch::Tensor canvas = torch::zeros({rows * height + 1, columns * width + 1});
  for (int64_t i = 0; i < images.size(0); i++) {
    const int64_t top = i / columns * height + 1;
    const int64_t left = i % columns * width + 1;
    canvas.slice(0, top, top + height - 1).slice(1, left, left + width - 1).copy_(images[i][0]);
  }
  canvas = (canvas.clamp(0, 1) * 255).to(torch::kByte);
  canvas = canvas.repeat_interleave(scale, 0).repeat_interleave(scale, 1).contiguous();
  std::ofstream file(path, std::ios::binary);
  file << "P5\n" << canvas.size(1) << ' ' << canvas.size(0) << "\n255\n";
  file.write(reinterpret_cast<const char*>(canvas.data_ptr<uint8_t>()), canvas.numel());
  TORCH_CHECK(file.good(), "cannot write ", path);
}

// A curve of numbers over their places, dark on light.
inline void write_curve(const std::string& path, const std::vector<double>& values) {
  constexpr int64_t width = 480;
  constexpr int64_t height = 240;
  const torch::Tensor canvas = torch::ones({1, 1, height, width});
  auto pixels = canvas.accessor<float, 4>();
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double range = std::max(*high - *low, 1e-12);
  int64_t before = -1;
  for (int64_t x = 0; x < width; x++) {
    const auto place = static_cast<size_t>(x) * (values.size() - 1) / (width - 1);
    const auto y = static_cast<int64_t>((*high - values[place]) / range * (height - 1));
    const int64_t from = before < 0 ? y : std::min(before, y);
    const int64_t to = before < 0 ? y : std::max(before, y);
    for (int64_t i = from; i <= to; i++) {
      pixels[0][0][i][x] = 0;
    }
    before = y;
  }
  write_grid(path, canvas, 1, 1);
}
