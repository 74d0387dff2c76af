// Tensors as libtorch programs use them: indices, options, accessors, memory of others, dispatch.
#include <torch/torch.h>

#include "check.h"

using namespace torch::indexing;

namespace {

RL_TEST(indices_as_in_python) {
  const torch::Tensor x = torch::arange(24).reshape({2, 3, 4});
  CHECK(x.index({0, 1, 2}).item<int64_t>() == 6);
  CHECK((x.index({"...", 3}).sizes() == torch::IntArrayRef{2, 3}));
  CHECK((x.index({Slice(), None, Ellipsis, Slice(1, None, 2)}).sizes() ==
         torch::IntArrayRef{2, 1, 3, 2}));
  CHECK(x.index({x > 20}).numel() == 3);
  CHECK((x.index({torch::tensor({1, 0}), 2}).sizes() == torch::IntArrayRef{2, 4}));
  CHECK(x.index({torch::tensor({1, 0}), 2})[0][0].item<int64_t>() == 20);
  CHECK((x.index({Slice(), torch::tensor({0, 2})}).sizes() == torch::IntArrayRef{2, 2, 4}));
  CHECK((x.index({true}).sizes() == torch::IntArrayRef{1, 2, 3, 4}));
  CHECK_THROWS(torch::IndexError, "too many indices", x.index({0, 0, 0, 0}));
  CHECK_THROWS(torch::ValueError, "step must be greater", x.index({Slice(0, 2, -1)}));
  CHECK_THROWS(torch::ValueError, "Expected \"...\"", x.index({".."}));
}

RL_TEST(writing_by_index) {
  torch::Tensor x = torch::zeros({2, 3});
  x.index_put_({0, Slice(1, None)}, 5);
  x.index_put_({1}, torch::tensor({{1.0, 2.0, 3.0}}));
  CHECK(torch::equal(x, torch::tensor({{0.0, 5.0, 5.0}, {1.0, 2.0, 3.0}})));
  x[1] = torch::ones({3});
  x[0][0] = 7;
  x[0] += 1;
  CHECK(torch::equal(x, torch::tensor({{8.0, 6.0, 6.0}, {1.0, 1.0, 1.0}})));
  x.index_put_({x > 5}, 0);
  CHECK(x.sum().item<double>() == 3);
}

RL_TEST(tensors_of_values) {
  CHECK(torch::tensor({1, 2}).dtype() == torch::kInt64);
  CHECK(torch::tensor({1.5F, 2.0F}).dtype() == torch::kFloat32);
  CHECK(torch::tensor({true, false}).dtype() == torch::kBool);
  CHECK((torch::tensor({{{1}, {2}}, {{3}, {4}}}).sizes() == torch::IntArrayRef{2, 2, 1}));
  CHECK(torch::tensor(std::vector<double>{1, 2}, torch::kFloat64)[1].item<double>() == 2);
  CHECK(torch::tensor(3).dim() == 0);
  CHECK_THROWS(torch::ValueError, "rows of different sizes", torch::tensor({{1, 2}, {3}}));
}

RL_TEST(options_stand_behind_what_is_given) {
  CHECK(torch::randn({2}, torch::kFloat64).dtype() == torch::kFloat64);
  CHECK(torch::randint(5, {2}, torch::kFloat32).dtype() == torch::kFloat32);
  CHECK(torch::eye(2, torch::dtype(torch::kInt32)).dtype() == torch::kInt32);
  CHECK(torch::ones({2}, torch::requires_grad()).requires_grad());
  const torch::Tensor x = torch::ones({2});
  CHECK(x.to(torch::kCPU).is_same(x));
  CHECK(x.to(torch::dtype(torch::kFloat64)).dtype() == torch::kFloat64);
  CHECK(x.to("meta").is_meta());
}

RL_TEST(pages_are_not_locked) {
  const auto plain = torch::TensorOptions().dtype(torch::kInt).pinned_memory(false);
  CHECK(torch::zeros({2}, plain).dtype() == torch::kInt);
  CHECK_THROWS(c10::Error, "pinned_memory(true)", torch::TensorOptions().pinned_memory(true));
}

RL_TEST(memory_of_others) {
  std::vector<float> values = {1, 2, 3, 4};
  int freed = 0;
  {
    const torch::Tensor t =
        torch::from_blob(values.data(), {2, 2}, [&](void*) { freed++; }, torch::kFloat32);
    CHECK(t[1][0].item<float>() == 3);
    const torch::Tensor column = t.select(1, 0);
    CHECK(freed == 0);
  }
  CHECK(freed == 1);
}

RL_TEST(accessors_and_dispatch) {
  const torch::Tensor x = torch::arange(6, torch::kFloat64).reshape({2, 3});
  const auto packed = x.packed_accessor32<double, 2>();
  CHECK(packed[1][2] == 5 && packed.size(1) == 3);
  CHECK_THROWS(c10::Error, "expected 1 dims", (x.accessor<double, 1>()));
  const double sum = AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "sum", [&] {
    double total = 0;
    const auto a = x.accessor<scalar_t, 2>();
    for (int64_t i = 0; i < a.size(0); i++) {
      for (int64_t k = 0; k < a.size(1); k++) {
        total += a[i][k];
      }
    }
    return total;
  });
  CHECK(sum == 15);
  CHECK_THROWS(torch::NotImplementedError, "not implemented for 'Long'",
               AT_DISPATCH_FLOATING_TYPES(torch::kInt64, "sum", [&] { return sizeof(scalar_t); }));
}

RL_TEST(checks) {
  CHECK_THROWS(c10::Error, "got [2, 3] and [1, 2]",
               (
                   [] {
                     TORCH_CHECK(false, "got ", torch::ones({2, 3}).sizes(), " and ",
                                 std::vector<int>{1, 2});
                   }(),
                   0));
  CHECK_THROWS(c10::Error, "Expected 1 > 2 to be true", ([] { TORCH_CHECK(1 > 2); }(), 0));
}

}  // namespace

RL_TEST_MAIN()
