// Tensors print as in Python (tests/python/test_printing.py compares the two over many of them).
#include <torch/torch.h>

#include <sstream>
#include <string>

#include "check.h"

namespace {
std::string text(const torch::Tensor& t) {
  std::ostringstream out;
  out << t;
  return out.str();
}
}  // namespace

RL_TEST(values_and_what_follows) {
  CHECK(text(torch::tensor({1.0f, 2.5f})) == "tensor([1.0000, 2.5000])");
  CHECK(text(torch::ones({2, 2})) == "tensor([[1., 1.],\n        [1., 1.]])");
  CHECK(text(torch::arange(3)) == "tensor([0, 1, 2])");
  CHECK(text(torch::tensor({true, false})) == "tensor([ True, False])");
  CHECK(text(torch::zeros({2}, torch::kDouble)) == "tensor([0., 0.], dtype=torch.float64)");
  CHECK(text(torch::zeros({0, 2})) == "tensor([], size=(0, 2))");
  CHECK(text(torch::empty({2}, torch::kMeta)) == "tensor(..., device='meta', size=(2,))");
  CHECK(text(torch::tensor(1e-5f)) == "tensor(1.0000e-05)");
  const torch::Tensor x = torch::ones({1}, torch::requires_grad());
  CHECK(text(x) == "tensor([1.], requires_grad=True)");
  CHECK(text(x * 2) == "tensor([2.], grad_fn=<MulBackward0>)");
  CHECK(text(torch::Tensor()) == "[ Tensor (undefined) ]");
}

RL_TEST(large_tensors_are_cut) {
  CHECK(text(torch::arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
  const std::string all = text(torch::arange(1000));
  CHECK(all.find("...") == std::string::npos && all.find("500") != std::string::npos);
}

RL_TEST(lines_may_be_of_any_length) {
  std::ostringstream out;
  torch::print(out, torch::arange(10), 20);
  CHECK(out.str() == "tensor([0, 1, 2, 3,\n        4, 5, 6, 7,\n        8, 9])");
}

RL_TEST_MAIN()
