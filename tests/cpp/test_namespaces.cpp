// The functions of the namespaces linalg, fft and special, under libtorch's names.
#include <torch/torch.h>

#include "check.h"

namespace {

torch::Tensor unit() { return torch::eye(3, {}, torch::kFloat64); }

// A build without OpenBLAS says what it lacks.
bool has_lapack() {
  try {
    torch::linalg::svd(unit());
    return true;
  } catch (const torch::Error& error) {
    CHECK(std::string(error.what()).find("this build of rushlight has none") != std::string::npos);
    return false;
  }
}

RL_TEST(linalg) {
  const torch::Tensor a = torch::randn({3, 3}).to(torch::kFloat64) + 3 * unit();
  if (has_lapack()) {
    const auto [u, s, vh] = torch::linalg::svd(a, false);
    CHECK(torch::allclose((u * s).matmul(vh), a));
  }
  CHECK(torch::allclose(torch::linalg::inv(a).matmul(a), unit()));
  CHECK(torch::allclose(torch::linalg::solve(a, a), unit()));
  CHECK_THROWS(torch::LinAlgError, "input matrix is singular",
               torch::linalg::inv(torch::zeros({2, 2})));
}

RL_TEST(linalg_gradients) {
  const torch::Tensor a = (torch::randn({3, 3}).to(torch::kFloat64) + 3 * unit()).requires_grad_();
  const torch::Tensor det = torch::linalg::det(a);
  det.backward();
  CHECK(torch::allclose(a.grad(), (det * torch::linalg::inv(a).t()).detach()));
}

RL_TEST(fft_and_special) {
  const torch::Tensor x = torch::randn({8}).to(torch::kFloat64);
  CHECK(torch::allclose(torch::fft::irfft(torch::fft::rfft(x), 8), x));
  CHECK(torch::allclose(torch::special::ndtri(torch::special::ndtr(x)), x));
}

}  // namespace

RL_TEST_MAIN()
