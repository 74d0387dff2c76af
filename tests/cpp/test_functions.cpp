// Functions that libtorch has beside the ops of the table (functions.h): gradients by the names of
// ops beside what autograd finds, batch norm in steps beside batch norm in one.
#include <torch/torch.h>

#include "check.h"

namespace {

using torch::Tensor;

Tensor numbers(torch::IntArrayRef sizes) { return torch::randn(sizes, torch::kFloat64); }

// The gradient of f(x) for x, times `grad`.
template <class F>
Tensor by_autograd(const Tensor& grad, const Tensor& x, const F& f) {
  const Tensor leaf = x.detach().requires_grad_();
  return torch::autograd::grad({f(leaf)}, {leaf}, {grad})[0];
}
#define CHECK_GRADIENT(found, grad, x, op) \
  CHECK(torch::allclose(found, by_autograd(grad, x, [&](const Tensor& t) { return op; })))

RL_TEST(gradients_of_losses) {
  const Tensor x = numbers({4, 3}), target = numbers({4, 3}), grad = numbers({4, 3});
  const Tensor one = torch::ones({}, torch::kFloat64);
  CHECK_GRADIENT(at::mse_loss_backward(one, x, target, at::Reduction::Sum), one, x,
                 torch::mse_loss(t, target, at::Reduction::Sum));
  CHECK_GRADIENT(at::smooth_l1_loss_backward(grad, x, target, at::Reduction::None, 0.5), grad, x,
                 torch::smooth_l1_loss(t, target, at::Reduction::None, 0.5));
  CHECK_GRADIENT(at::huber_loss_backward(one, x, target, at::Reduction::Mean, 0.5), one, x,
                 torch::huber_loss(t, target, at::Reduction::Mean, 0.5));
  CHECK_GRADIENT(at::binary_cross_entropy_backward(one, x.sigmoid(), target.sigmoid()), one,
                 x.sigmoid(), torch::binary_cross_entropy(t, target.sigmoid()));
  const Tensor classes = torch::tensor({0, 2, 1, 2});
  CHECK_GRADIENT(at::nll_loss_backward(one, x, classes, {}, at::Reduction::Mean, 1, one), one, x,
                 torch::nll_loss(t, classes, {}, at::Reduction::Mean, 1));
}

RL_TEST(gradients_by_names) {
  const Tensor x = numbers({2, 3, 6, 6});
  const Tensor grad = numbers({2, 3, 3, 3}), wide = numbers({2, 3, 8, 8});
  CHECK_GRADIENT(at::avg_pool2d_backward(grad, x, 2, 2, 0, false, true, {}), grad, x,
                 torch::avg_pool2d(t, 2));
  const Tensor places = std::get<1>(torch::adaptive_max_pool2d(x, 3));
  CHECK_GRADIENT(at::adaptive_max_pool2d_backward(grad, x, places), grad, x,
                 std::get<0>(torch::adaptive_max_pool2d(t, 3)));
  CHECK_GRADIENT(at::upsample_bilinear2d_backward(wide, {8, 8}, x.sizes(), false), wide, x,
                 torch::upsample_bilinear2d(t, {8, 8}, false));
  CHECK_GRADIENT(at::upsample_nearest2d_backward(wide, {8, 8}, x.sizes()), wide, x,
                 torch::upsample_nearest2d(t, {8, 8}));
  CHECK_GRADIENT(at::reflection_pad2d_backward(wide, x, {1, 1, 1, 1}), wide, x,
                 torch::reflection_pad2d(t, {1, 1, 1, 1}));
  const Tensor index = torch::tensor({2, 0, 2});
  const Tensor rows = numbers({2, 3, 3, 6});
  CHECK_GRADIENT(at::index_select_backward(rows, x.sizes(), 2, index), rows, x,
                 torch::index_select(t, 2, index));
  const Tensor square = numbers({3, 3}), one = torch::ones({}, torch::kFloat64);
  CHECK_GRADIENT(at::trace_backward(one, square.sizes()), one, square, torch::trace(t));
  const Tensor words = numbers({3, 2});
  CHECK_GRADIENT(at::embedding_backward(words, index, 4, -1, false, false), words, numbers({4, 2}),
                 torch::embedding(t, index));
}

RL_TEST(gradients_of_choices) {
  const Tensor x = numbers({4, 3}), one = torch::ones({}, torch::kFloat64), grad = numbers({4, 3});
  const Tensor classes = torch::tensor({0, 2, 1, 2});
  CHECK_GRADIENT(at::multi_margin_loss_backward(one, x, classes, 1, 0.5), one, x,
                 torch::multi_margin_loss(t, classes, 1, 0.5));
  CHECK_GRADIENT(at::log_sigmoid_backward(grad, x, {}), grad, x, torch::log_sigmoid(t));
  CHECK_GRADIENT(at::cumprod_backward(grad, x, 1, x.cumprod(1)), grad, x, t.cumprod(1));
  const auto [largest, places] = x.max(1);
  const Tensor row = numbers({4});
  CHECK_GRADIENT(at::value_selecting_reduction_backward(row, 1, places, x.sizes(), false), row, x,
                 std::get<0>(t.max(1)));
  const Tensor square = numbers({3, 3}), matrix = numbers({3, 3});
  CHECK_GRADIENT(at::matrix_exp_backward(square, matrix), matrix, square, torch::matrix_exp(t));
  const Tensor picture = numbers({1, 2, 4, 4}), half = numbers({1, 2, 2, 2});
  CHECK_GRADIENT(at::max_pool2d_backward(half, picture, 2), half, picture, torch::max_pool2d(t, 2));
  const Tensor grid = numbers({1, 4, 4, 2}), theta = numbers({1, 2, 3});
  CHECK_GRADIENT(at::affine_grid_generator_backward(grid, picture.sizes(), false), grid, theta,
                 torch::affine_grid_generator(t, picture.sizes(), false));
}

RL_TEST(functional_forms) {
  const Tensor x = numbers({2, 3});
  CHECK(at::is_floating_point(x) && torch::equal(at::zero(x), torch::zeros_like(x)));
  CHECK(torch::equal(at::copy(x, torch::ones({3})), torch::ones_like(x)));
  CHECK(torch::equal(at::_shape_as_tensor(x), torch::tensor({2, 3})));
  CHECK(torch::equal(at::_softmax(x, 1, false), x.softmax(1)));
  CHECK(at::_log_softmax(x.to(torch::kHalf), 1, true).dtype() == torch::kFloat);
  const Tensor leaf = x.detach().requires_grad_();
  Tensor y = leaf * 1;
  at::gelu_(y);
  CHECK(torch::equal(y, torch::gelu(x)));
  CHECK_GRADIENT(torch::autograd::grad({y.sum()}, {leaf})[0], torch::ones_like(x), x,
                 torch::gelu(t));
  const Tensor rows = torch::tensor({{1, 2}, {1, 2}, {3, 4}});
  CHECK(std::get<0>(at::unique_dim_consecutive(rows, 0)).size(0) == 2);
  CHECK(torch::equal(std::get<0>(at::log_sigmoid_forward(x)), torch::log_sigmoid(x)));
}

RL_TEST(gradients_of_several) {
  const Tensor x = numbers({2, 3, 6, 6}), w = numbers({4, 3, 3, 3}), grad = numbers({2, 4, 4, 4});
  const auto [gx, gw, gb] = at::convolution_backward(grad, x, w, torch::IntArrayRef{4}, 1, 0, 1,
                                                     false, 0, 1, {true, true, true});
  CHECK_GRADIENT(gx, grad, x, torch::conv2d(t, w));
  CHECK_GRADIENT(gw, grad, w, torch::conv2d(x, t));
  CHECK(torch::allclose(gb, grad.sum({0, 2, 3})));
  const Tensor a = numbers({3, 4}), b = numbers({4, 2}), both = numbers({3, 2});
  const auto [ga, none] = at::matmul_backward(both, a, b, {true, false});
  CHECK_GRADIENT(ga, both, a, t.matmul(b));
  CHECK(!none.defined());
  const auto [li, lw, lb] = at::linear_backward(a, both, b.t(), {true, true, true});
  CHECK_GRADIENT(li, both, a, torch::linear(t, b.t()));
  CHECK_GRADIENT(lw, both, b.t(), torch::linear(a, t));
  CHECK(torch::allclose(lb, both.sum(0)));
}

// They are recorded like any op.
RL_TEST(gradients_of_gradients) {
  const Tensor x = numbers({5}).requires_grad_(), target = numbers({5});
  const Tensor grad = numbers({5}).requires_grad_();
  const Tensor first = at::mse_loss_backward(grad, x, target, at::Reduction::None);
  const auto second = torch::autograd::grad({first.sum()}, {x, grad});
  CHECK(torch::allclose(second[0], 2 * grad));
  CHECK(torch::allclose(second[1], 2 * (x - target)));
  const torch::NoGradGuard no_grad;
  CHECK(!at::mse_loss_backward(grad, x, target, at::Reduction::None).requires_grad());
}

RL_TEST(batch_norm_in_steps) {
  const double eps = 1e-5;
  const Tensor x = numbers({6, 3, 4}), w = numbers({3}), b = numbers({3}),
               grad = numbers({6, 3, 4});
  const auto [m1, s1] = at::batch_norm_stats(x.narrow(0, 0, 2), eps);
  const auto [m2, s2] = at::batch_norm_stats(x.narrow(0, 2, 4), eps);
  const Tensor mean = torch::zeros({3}, torch::kFloat64), var = torch::ones({3}, torch::kFloat64);
  const Tensor counts = torch::tensor({8., 16.});
  const auto [m, s] = at::batch_norm_gather_stats_with_counts(
      x, torch::stack({m1, m2}), torch::stack({s1, s2}), mean, var, 0.1, eps, counts);
  const auto [whole_m, whole_s] = at::batch_norm_stats(x, eps);
  CHECK(torch::allclose(m, whole_m) && torch::allclose(s, whole_s));

  const Tensor mean2 = torch::zeros({3}, torch::kFloat64), var2 = torch::ones({3}, torch::kFloat64);
  const Tensor leaf = x.detach().requires_grad_();
  const Tensor wl = w.detach().requires_grad_();
  const Tensor y = torch::batch_norm(leaf, wl, b, mean2, var2, true, 0.1, eps);
  CHECK(torch::allclose(at::batch_norm_elemt(x, w, b, m, s, eps), y));
  CHECK(torch::allclose(mean, mean2) && torch::allclose(var, var2));

  const auto wanted = torch::autograd::grad({y}, {leaf, wl}, {grad});
  const auto [dy, dy_xmu, gw, gb] =
      at::batch_norm_backward_reduce(grad, x, m, s, w, true, true, true);
  CHECK(torch::allclose(gw, wanted[1]) && torch::allclose(gb, grad.sum({0, 2})));
  CHECK(torch::allclose(at::batch_norm_backward_elemt(grad, x, m, s, w, dy, dy_xmu, counts),
                        wanted[0]));
  const auto [um, uv] = at::batch_norm_update_stats(x, mean, var, 0.1);
  CHECK(torch::allclose(um, whole_m) && torch::allclose((uv + eps).rsqrt(), whole_s));
}

RL_TEST(lists_norms_and_convolutions) {
  const Tensor a = torch::ones({2}), b = torch::ones({3});
  CHECK(
      torch::equal(at::pad_sequence({a, b}, true, 7), torch::tensor({{1., 1., 7.}, {1., 1., 1.}})));
  CHECK(torch::equal(torch::nn::utils::rnn::pad_sequence({a, b}, true, 7, "left"),
                     torch::tensor({{7., 1., 1.}, {1., 1., 1.}})));
  CHECK_THROWS(c10::Error, "one of left or right", at::pad_sequence({a}, true, 0, "up"));
  const Tensor flat = at::flatten_dense_tensors({a, 2 * b});
  CHECK(torch::equal(at::unflatten_dense_tensors(flat, {a, b})[1], 2 * b));

  const Tensor v = numbers({4, 3, 2});
  CHECK(torch::allclose(at::norm_except_dim(v, 2, 1), v.norm(2, {0, 2}, true)));
  CHECK(torch::allclose(at::_weight_norm(v, torch::ones({4, 1, 1}), 0).norm(2, {1, 2}),
                        torch::ones({4}, torch::kFloat64)));
  const Tensor x = numbers({1, 2, 5, 5}), w = numbers({3, 2, 3, 3});
  CHECK(torch::equal(at::thnn_conv2d(x, w, {3, 3}), torch::conv2d(x, w)));
  CHECK(torch::equal(at::slow_conv_dilated2d(x, w, {3, 3}, {}, 1, 2, 2),
                     torch::conv2d(x, w, {}, 1, 2, 2)));
  CHECK_THROWS(c10::Error, "kernel_size", at::thnn_conv2d(x, w, {2, 2}));
}

RL_TEST(random_numbers_and_dropout) {
  const Tensor like = torch::empty({1000}, torch::kFloat64);
  torch::manual_seed(1);
  const Tensor drawn = at::uniform(like, 2, 3);
  torch::manual_seed(1);
  CHECK(torch::equal(drawn, like.clone().uniform_(2, 3)));
  CHECK(at::random(like, 5).max().item<double>() < 5);
  const auto [kept, mask] = at::native_dropout(torch::ones({1000}), 0.5, true);
  CHECK(torch::equal(kept, mask * 2.0));
  CHECK(torch::equal(at::native_dropout_backward(torch::ones({1000}), mask, 2), kept));
  CHECK(std::get<1>(at::native_dropout(like, 0.5, false)).all().item<bool>());
}

}  // namespace

RL_TEST_MAIN()
