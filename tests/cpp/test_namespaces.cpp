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

RL_TEST(results_that_are_given) {
  const torch::Tensor x = torch::randn({4, 4}).to(torch::kFloat64);
  torch::Tensor out = torch::empty_like(x), spectrum = torch::empty_like(x, torch::kComplexDouble);
  torch::Tensor sign = torch::empty({}, torch::kFloat64), log = torch::empty({}, torch::kFloat64);
  CHECK(torch::equal(torch::special::erf_out(out, x), torch::special::erf(x)));
  CHECK(torch::equal(torch::linalg::det_out(sign, x), torch::linalg::det(x)));
  CHECK(torch::equal(torch::fft::fft_out(spectrum, x), torch::fft::fft(x)));
  torch::linalg::slogdet_out(sign, log, x);
  CHECK(torch::equal(sign, std::get<0>(torch::linalg::slogdet(x))));
}

// Of overloads that a call fits, the one that needs least is meant.
RL_TEST(overloads_with_defaults) {
  const torch::Tensor x = torch::randn({1, 1, 5, 5}), w = torch::randn({2, 1, 3, 3});
  CHECK(torch::equal(torch::conv2d(x, w), torch::conv2d(x, w, {}, 1, "valid")));
  if (has_lapack()) {
    CHECK(torch::allclose(torch::linalg::pinv(unit()), unit()));
    CHECK(torch::linalg::matrix_rank(unit()).item<int64_t>() == 3);
  }
}

}  // namespace

RL_TEST_MAIN()
