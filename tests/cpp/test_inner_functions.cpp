// libtorch's inner functions, out= forms without kernels, functions that are absent, and traces.
#include <sstream>

#include <torch/torch.h>
#include <torch/csrc/jit/codegen/cuda/interface.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/passes/normalize_ops.h>
#include <ATen/autocast_mode.h>

#include "check.h"

namespace {

using torch::Tensor;

bool close(const Tensor& a, const Tensor& b) { return torch::allclose(a, b, 1e-5, 1e-6); }

// ---- functions ----

RL_TEST(casts_views_and_copies) {
  const Tensor x = torch::arange(6, torch::kFloat).reshape({2, 3});
  CHECK(torch::_cast_Long(x).dtype() == torch::kLong);
  CHECK(x.chalf().dtype() == torch::kComplexHalf);
  CHECK(torch::equal(torch::_unsafe_view(x, {3, 2}), x.view({3, 2})));
  CHECK(torch::equal(torch::_reshape_from_tensor(x, torch::tensor({3, 2})), x.reshape({3, 2})));
  CHECK(torch::equal(torch::_reshape_alias(x, {3, 2}, {1, 3}), x.t()));
  CHECK(torch::resize(x, {4}).sizes() == torch::IntArrayRef({4}) && x.numel() == 6);
  Tensor bits = torch::tensor({6, 5});
  bits.__iand__(torch::tensor({3, 4}));
  bits.__ilshift__(1);
  CHECK(torch::equal(bits, torch::tensor({4, 8})));
}

RL_TEST(elements_and_products) {
  const Tensor x = torch::tensor({{-1.5f, 0.25f}, {2.0f, -0.75f}}), w = torch::tensor({0.5f, 4.0f});
  CHECK(torch::equal(torch::_prelu_kernel(x, w), torch::where(x > 0, x, w * x)));
  CHECK(torch::equal(torch::_add_relu(x, x, 2), (3 * x).relu()));
  CHECK(close(torch::_euclidean_dist(x, x), torch::cdist(x, x)));
  CHECK(close(torch::_compute_linear_combination(x, x), x.mm(x)));
  const Tensor hidden = torch::full({1, 3}, -INFINITY);
  CHECK(torch::equal(torch::_safe_softmax(hidden, 1), torch::zeros({1, 3})));
  CHECK(std::get<1>(torch::_aminmax(x)).item<float>() == 2.0f);
  const auto [product, norms] = torch::_weight_norm_interface(x, torch::ones({2, 1}));
  CHECK(close(product.norm(2, torch::IntArrayRef({1})), torch::ones({2})) && norms.numel() == 2);
}

RL_TEST(layers_and_sequences) {
  const Tensor steps = torch::arange(12, torch::kFloat).reshape({2, 3, 2});  // two sequences
  const auto [rows, sizes] =
      torch::_pack_padded_sequence(steps, torch::tensor({3, 1}), /*batch_first=*/true);
  CHECK(torch::equal(sizes, torch::tensor({2, 1, 1})) && rows.size(0) == 4);
  const Tensor back = torch::_pack_padded_sequence_backward(rows, steps.sizes(), sizes, true);
  CHECK(torch::equal(back[0], steps[0]) && back[1][1].sum().item<float>() == 0);
  CHECK_THROWS(torch::Error, "lengths", (torch::_pack_padded_sequence(steps, torch::tensor({1, 3}), true)));
  const Tensor q = torch::rand({1, 2, 4, 8}), k = torch::rand({1, 2, 5, 8});
  const auto attended = torch::_scaled_dot_product_attention_math(q, k, k);
  CHECK(close(std::get<0>(attended), torch::scaled_dot_product_attention(q, k, k)));
  CHECK(close(std::get<1>(attended).sum(-1), torch::ones({1, 2, 4})));
  const Tensor x = torch::tensor({-3.0f, 0.24f, 7.0f}).requires_grad_();
  torch::fake_quantize_per_tensor_affine(x, 0.1, 0, -10, 10).sum().backward();
  CHECK(torch::equal(x.grad(), torch::tensor({0.0f, 1.0f, 0.0f})));
}

RL_TEST(sparse_and_indices) {
  const Tensor rows = torch::tensor({0, 0, 2});
  const Tensor crow = torch::_convert_indices_from_coo_to_csr(rows, 3);
  CHECK(torch::equal(crow, torch::tensor({0, 2, 2, 3})));
  const Tensor both = torch::_convert_indices_from_csr_to_coo(crow, torch::tensor({1, 2, 0}));
  CHECK(torch::equal(both[0], rows));
  const Tensor made = torch::_sparse_coo_tensor_with_dims(1, 1, {3, 2});
  CHECK(made.is_sparse() && made.to_dense().abs().sum().item<float>() == 0);
  const Tensor dense = torch::tensor({{0.0f, 3.0f}, {1.0f, 0.0f}});
  CHECK(torch::equal(torch::_sparse_sum(dense.to_sparse()), torch::tensor(4.0f)));
  CHECK_THROWS(torch::Error, "", (torch::_validate_sparse_csr_tensor_args(crow, rows, torch::ones({3}), {9, 9})));
}

RL_TEST(gradients) {
  const Tensor x = torch::rand({3, 4}), g = torch::ones({3, 4});
  CHECK(close(torch::elu_backward(g, 1.0, 1.0, 1.0, false, x - 0.5),
              torch::elu_backward(g, 1.0, 1.0, 1.0, true, torch::elu(x - 0.5))));
  const Tensor weight = torch::rand({5, 2}).requires_grad_();
  const Tensor at = torch::tensor({0, 3, 3, 1}), offsets = torch::tensor({0, 3});
  const auto [bags, offset2bag, sizes, most] = torch::embedding_bag(weight, at, offsets);
  bags.sum().backward();
  CHECK(close(weight.grad(), torch::_embedding_bag_dense_backward(
                                 torch::ones({2, 2}), at, torch::tensor({0, 0, 0, 1}), sizes, most,
                                 5, false, 0, std::optional<Tensor>())));
}

// ---- out= forms, and what is absent ----

RL_TEST(results_are_written) {
  Tensor out = torch::empty({0}), second = torch::empty({0});
  const Tensor x = torch::rand({2, 3});
  torch::_stack_out(out, std::vector<Tensor>{x, x});
  CHECK(out.sizes() == torch::IntArrayRef({2, 2, 3}));
  torch::_aminmax_out(out, second, x);
  CHECK(out.item<float>() <= second.item<float>());
  CHECK_THROWS(torch::Error, "automatic differentiation", (torch::zero_out(torch::ones({2}).requires_grad_(), x)));
}

RL_TEST(absent_functions_say_why) {
  CHECK_THROWS(torch::NotImplementedError, "cudnn_convolution: cuDNN",
               (torch::cudnn_convolution(torch::ones({1}), 2, true)));
  Tensor out = torch::empty({1});
  CHECK_THROWS(torch::NotImplementedError, "cuDNN", (torch::cudnn_convolution_out(out, out)));
  CHECK_THROWS(torch::NotImplementedError, "oneDNN", (torch::ones({1}).to_mkldnn()));
  CHECK_THROWS(torch::Error, "setEnabled", (torch::jit::fuser::cuda::setEnabled(true)));
}

// ---- files, memory ----

RL_TEST(functions_write_and_read_archives) {
  std::string bytes;
  const auto write = [&](const void* data, size_t n) {
    bytes.append(static_cast<const char*>(data), n);
    return n;
  };
  const auto read = [&](uint64_t at, void* into, size_t n) {
    return bytes.copy(static_cast<char*>(into), n, at);
  };
  const Tensor x = torch::rand({3});
  torch::save(x, write);
  Tensor y;
  torch::load(y, read, [&] { return bytes.size(); });
  CHECK(torch::equal(x, y));
  float numbers[] = {1.5f, 2.5f, 3.5f, 4.5f};
  const Tensor seen = torch::for_blob(numbers, {2}).strides({2}).storage_offset(1).make_tensor();
  CHECK(seen[1].item<float>() == 4.5f);
  std::ostringstream text;
  torch::print(text, seen, 80);
  CHECK(!text.str().empty() && at::globalContext().supportedQEngines().size() == 1);
  CHECK(!at::autocast::is_enabled());
}

// ---- traces ----

RL_TEST(programs_are_traced) {
  using namespace torch::jit;
  Module module("Traced");
  const Tensor x = torch::rand({2, 3}), scale = torch::full({3}, 2.0f);
  auto state = std::make_shared<tracer::TracingState>();
  tracer::setTracingState(state);
  CHECK(tracer::isTracing());
  state->graph->insertInput(0, "self")->setType(module._ivalue()->type());
  auto* const input = state->graph->addInput();
  input->setType(TensorType::get());
  state->setValue(x, input);
  const Tensor y = torch::cat({x * scale, x}).chunk(2)[0].relu() - 1;
  state->graph->registerOutput(state->getOutput(y, 0));
  CHECK_THROWS(torch::Error, "data dependence", (state->getOutput(scale, 1)));
  NormalizeOps(state->graph);
  tracer::setTracingState(nullptr);
  CHECK(!tracer::isTracing());
  auto* const made = module._ivalue()->compilation_unit()->create_function("forward", state->graph);
  module.type()->addMethod(made);
  const Tensor other = torch::rand({2, 3});
  CHECK(close(module.forward({other}).toTensor(), (other * scale).relu() - 1));
  CHECK(module._ivalue()->getAttr("training").toBool());
  CHECK_THROWS(torch::Error, "already", (state->graph->take()));
  std::stringstream file;  // and it can be saved
  module.save(file);
  CHECK(close(torch::jit::load(file).forward({other}).toTensor(), (other * scale).relu() - 1));
}

}  // namespace

RL_TEST_MAIN()
