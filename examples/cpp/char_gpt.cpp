// Trains a small transformer to write text like a file, one character after the other:
//
//   build/char_gpt FILE [STEPS]
//
// It prints the loss as it goes, then what the network writes, and draws the loss in char_gpt.pgm.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include <torch/torch.h>

#include "picture.h"
#include "template/progress.h"

namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int64_t context = 64;
constexpr int64_t width = 96;
constexpr int64_t heads = 4;
constexpr int64_t layers = 3;

struct BlockImpl : nn::Module {
  BlockImpl()
      : norm1(nn::LayerNormOptions({width})),
        norm2(nn::LayerNormOptions({width})),
        qkv(width, 3 * width),
        proj(width, width),
        up(width, 4 * width),
        down(4 * width, width) {
    register_module("norm1", norm1);
    register_module("norm2", norm2);
    register_module("qkv", qkv);
    register_module("proj", proj);
    register_module("up", up);
    register_module("down", down);
  }
  torch::Tensor forward(torch::Tensor x) {
    const int64_t n = x.size(0);
    const int64_t length = x.size(1);
    std::vector<torch::Tensor> parts = qkv(norm1(x)).split(width, 2);
    for (torch::Tensor& part : parts) {
      part = part.view({n, length, heads, width / heads}).transpose(1, 2);
    }
    const torch::Tensor mixed = torch::scaled_dot_product_attention(parts[0], parts[1], parts[2],
                                                                    {}, 0.0, /*is_causal=*/true);
    x = x + proj(mixed.transpose(1, 2).reshape({n, length, width}));
    return x + down(torch::gelu(up(norm2(x))));
  }
  nn::LayerNorm norm1, norm2;
  nn::Linear qkv, proj, up, down;
};
TORCH_MODULE(Block);

struct GPTImpl : nn::Module {
  explicit GPTImpl(int64_t letters)
      : tokens(letters, width),
        places(context, width),
        norm(nn::LayerNormOptions({width})),
        head(nn::LinearOptions(width, letters).bias(false)) {
    register_module("tokens", tokens);
    register_module("places", places);
    for (int64_t i = 0; i < layers; i++) {
      blocks->push_back(Block());
    }
    register_module("blocks", blocks);
    register_module("norm", norm);
    register_module("head", head);
  }
  torch::Tensor forward(const torch::Tensor& text) {
    const torch::Tensor x = tokens(text) + places(torch::arange(text.size(1)));
    return head(norm(blocks->forward(x)));
  }
  nn::Embedding tokens, places;
  nn::Sequential blocks;
  nn::LayerNorm norm;
  nn::Linear head;
};
TORCH_MODULE(GPT);

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FILE [STEPS]\n", argv[0]);
    return 2;
  }
  const int steps = argc > 2 ? std::atoi(argv[2]) : 600;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  TORCH_CHECK(static_cast<int64_t>(text.size()) > 2 * context, argv[1], " is too short");
  std::string letters;
  std::vector<int64_t> numbers;
  for (const char c : text) {
    if (letters.find(c) == std::string::npos) {
      letters += c;
    }
    numbers.push_back(static_cast<int64_t>(letters.find(c)));
  }
  torch::manual_seed(0);
  const torch::Tensor all = torch::tensor(numbers);
  GPT net(static_cast<int64_t>(letters.size()));
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(2e-3));

  Progress progress(steps);
  for (int step = 1; step <= steps; step++) {
    const torch::Tensor starts = torch::randint(all.size(0) - context - 1, {16, 1});
    const torch::Tensor places = starts + torch::arange(context);
    optimizer.zero_grad();
    const torch::Tensor scores = net(all.index({places}));
    const torch::Tensor loss =
        F::cross_entropy(scores.flatten(0, 1), all.index({places + 1}).flatten());
    loss.backward();
    nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    optimizer.step();
    progress.step(loss.item<double>());
  }
  write_curve("char_gpt.pgm", progress.losses());
  std::printf("%s\n", progress.curve().c_str());
  const torch::NoGradGuard no_grad;
  torch::Tensor written = all.slice(0, 0, 8).unsqueeze(0);
  for (int i = 0; i < 300; i++) {
    const torch::Tensor seen = written.slice(1, std::max<int64_t>(0, written.size(1) - context));
    const torch::Tensor scores = net(seen).select(1, -1) / 0.8;
    const torch::Tensor next = torch::multinomial(torch::softmax(scores, -1), 1);
    written = torch::cat({written, next}, 1);
    std::putchar(letters[static_cast<size_t>(next.item<int64_t>())]);
  }
  std::printf("\n\nthe loss: char_gpt.pgm\n");
  return 0;
}
