// What bindings of other languages lean on, with <torch/torch.h> alone: optional tensors and dtypes
// as they pass them, nodes of their own, types of TorchScript, handles of storages and generators.
#include <torch/torch.h>

#include "check.h"

namespace {

using torch::Tensor;

// ---- arguments ----

RL_TEST(optional_tensors_are_arguments) {
  const Tensor x = torch::arange(6, torch::kFloat).reshape({2, 3});
  const Tensor weight = torch::ones({4, 3});
  const std::optional<Tensor> none;
  const std::optional<Tensor> bias = torch::ones({4});
  CHECK(torch::equal(torch::linear(x, weight, none), torch::linear(x, weight)));
  CHECK(torch::equal(torch::linear(x, weight, bias), torch::linear(x, weight) + 1));
  const std::optional<Tensor> two = torch::full({3}, 2.0f);
  CHECK(torch::equal(x.clamp(none, two), x.clamp_max(2)));
  Tensor y = x.clone();
  torch::clamp_(y, two, none);
  CHECK(torch::equal(y, x.clamp_min(2)));
  const bool given = false;  // a tensor converts to an optional one, not the other way
  CHECK(!(given ? bias : Tensor())->defined());
}

RL_TEST(dtypes_of_reductions) {
  const Tensor x = torch::full({3}, 3, torch::kInt);
  CHECK(x.sum(torch::kDouble).dtype() == torch::kDouble);
  CHECK(torch::mean(x, torch::kFloat).item<float>() == 3);
  const std::optional<torch::ScalarType> wide = torch::kLong;
  CHECK(torch::prod(x, wide).dtype() == torch::kLong && x.prod(wide).item<int64_t>() == 27);
  CHECK(x.sum({}).item<int64_t>() == 9);
  const std::optional<torch::IntArrayRef> all;
  const std::optional<int64_t> first = 0;
  CHECK(torch::std(x.to(torch::kFloat), all, false, false).item<float>() == 0);
  CHECK(torch::amax(x, *first).item<int>() == 3);
  const torch::Tensor wave = torch::rand({64});
  CHECK(torch::equal(
      wave.stft(16, 4, 16, torch::ones({16}), false, true, true),
      torch::stft(wave, 16, 4, 16, torch::ones({16}), false, "reflect", false, true, true)));
}

RL_TEST(dtypes_have_libtorchs_numbers) {
  const std::pair<torch::ScalarType, int> numbers[] = {{torch::kByte, 0},
                                                       {torch::kChar, 1},
                                                       {torch::kShort, 2},
                                                       {torch::kInt, 3},
                                                       {torch::kLong, 4},
                                                       {torch::kHalf, 5},
                                                       {torch::kFloat, 6},
                                                       {torch::kDouble, 7},
                                                       {torch::kComplexHalf, 8},
                                                       {torch::kComplexFloat, 9},
                                                       {torch::kComplexDouble, 10},
                                                       {torch::kBool, 11},
                                                       {torch::kBFloat16, 15},
                                                       {torch::kFloat8_e5m2, 23},
                                                       {torch::kFloat8_e4m3fn, 24},
                                                       {torch::kFloat8_e5m2fnuz, 25},
                                                       {torch::kFloat8_e4m3fnuz, 26},
                                                       {torch::kUInt16, 27},
                                                       {torch::kUInt32, 28},
                                                       {torch::kUInt64, 29},
                                                       {torch::ScalarType::Undefined, 46}};
  for (const auto& [dtype, number] : numbers) {
    CHECK(static_cast<int>(dtype) == number);
    if (dtype != torch::ScalarType::Undefined) {
      const Tensor x = torch::zeros({2}, static_cast<torch::ScalarType>(number));
      CHECK(x.scalar_type() == dtype && x.to(torch::kDouble).sum().item<double>() == 0);
    }
  }
}

RL_TEST(numbers_and_handles) {
  const torch::Scalar half = 0.5;
  CHECK(half.toHalf() == 0.5f && half.toBFloat16() == 0.5f && half.toComplexDouble().re == 0.5);
  CHECK(torch::Scalar(7).toByte() == 7 && torch::Scalar(-7).toChar() == -7);
  CHECK_THROWS(torch::Error, "overflow", torch::Scalar(300).toByte());
  CHECK(torch::Half(1.0f).x == 0x3c00 && torch::BFloat16(1.0f).x == 0x3f80);

  const Tensor x = torch::zeros({4});
  CHECK(x.storage().nbytes() == 16 && x.storage().data_ptr().get() == x.data_ptr());
  CHECK(x.storage().device() == torch::kCPU);
  const torch::Generator g = torch::make_generator<at::CPUGeneratorImpl>(3);
  const Tensor state = g.get_state();
  const Tensor drawn = torch::rand({3}, g);
  at::Generator(g.getIntrusivePtr()).set_state(state);
  CHECK(torch::equal(torch::rand({3}, g), drawn));
  CHECK_THROWS(torch::Error, "ByteTensor", g.set_state(torch::zeros({3})));
  CHECK(torch::Device("mps").type() == torch::kMPS && torch::Device(torch::kXPU).str() == "xpu");
}

RL_TEST(flags_of_the_process) {
  auto& context = at::globalContext();
  context.setAllowFP16ReductionCuBLAS(false);
  CHECK(context.allowFP16ReductionCuBLAS() ==
        at::CuBLASReductionOption::DisallowReducedPrecisionAllowSplitK);
  context.setAllowFP16ReductionCuBLAS(true);
  CHECK(context.allowFP16ReductionCuBLAS() ==
        at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK);
  context.setSDPUseFlash(false);
  CHECK(!context.userEnabledFlashSDP() && context.userEnabledMathSDP());
  context.setSDPUseFlash(true);
}

RL_TEST(kinds_that_tensors_are_not) {
  const Tensor x = torch::rand({2, 3});
  CHECK(!x.has_names() && x.names().size() == 2 && x.names()[0].isWildcard());
  const at::Dimname rows = at::Dimname::fromSymbol(at::Symbol::dimname("rows"));
  CHECK(rows.symbol().toUnqualString() == "rows");
  CHECK(torch::equal(x.rename(c10::nullopt), x));
  CHECK_THROWS(c10::NotImplementedError, "named dimensions", x.rename({rows, rows}));
  CHECK_THROWS(c10::NotImplementedError, "quantised",
               torch::quantize_per_tensor(x, 1, 0, torch::kByte));
  CHECK_THROWS(c10::NotImplementedError, "quantised", x.q_scale());
}

RL_TEST(lists_of_values) {
  const std::vector<Tensor> tensors = {torch::ones({1}), torch::zeros({1})};
  const c10::List<Tensor> list{tensors};
  CHECK(list.size() == 2 && list.vec()[1].is_same(tensors[1]));
  const c10::List<std::optional<Tensor>> at(
      std::vector<std::optional<Tensor>>{torch::tensor({0, 2}), std::nullopt});
  const Tensor x = torch::arange(6).reshape({3, 2});
  CHECK(torch::equal(torch::index(x, at), x.index_select(0, torch::tensor({0, 2}))));
}

// ---- nodes ----

struct Doubled : torch::autograd::Node {
  explicit Doubled(bool& destroyed) : destroyed(destroyed) {}
  ~Doubled() override { destroyed = true; }
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    return {grads[0] * factor.unpack(self.lock())};
  }
  torch::autograd::SavedVariable factor;
  std::weak_ptr<torch::autograd::Node> self;
  bool& destroyed;
};

// y = 2 x, recorded by hand; the graph alone owns the node afterwards.
Tensor doubled(const Tensor& x, bool& destroyed) {
  const std::shared_ptr<Doubled> node(new Doubled(destroyed), torch::autograd::deleteNode);
  node->self = node;
  node->set_next_edges(torch::autograd::collect_next_edges(x));
  Tensor y;
  {
    const torch::NoGradGuard no_grad;
    y = x * 2;
  }
  node->factor = torch::autograd::SavedVariable(torch::full({}, 2.0f), false);
  const auto outputs = torch::autograd::_wrap_outputs({x}, {}, {}, torch::autograd::to_optional(y),
                                                      node, torch::autograd::_jvp_fn_t(), {},
                                                      torch::autograd::_view_as_self_fn_t(), false);
  CHECK(outputs.at(0)->grad_fn().get() == node.get());
  return *outputs[0];
}

RL_TEST(nodes_of_programs) {
  bool destroyed = false;
  {
    const Tensor x = torch::ones({3}).requires_grad_();
    Tensor y = doubled(x, destroyed);
    CHECK(!destroyed && y.requires_grad());
    (y * y).sum().backward();
    CHECK(torch::equal(x.grad(), torch::full({3}, 8.0f)));
    CHECK(!destroyed);
    y.reset();
  }
  CHECK(destroyed);
  struct Lacking : torch::autograd::Node {};
  CHECK_THROWS(c10::NotImplementedError, "override", Lacking().apply({}));
}

RL_TEST(saved_variables) {
  const Tensor x = torch::ones({2});
  torch::autograd::SavedVariable saved(x, false);
  CHECK(torch::equal(saved.unpack(), x));
  x.add_(1);
  CHECK_THROWS(torch::Error, "modified by an inplace operation", saved.unpack());
  saved.reset_data();
  CHECK_THROWS(torch::Error, "second time", saved.unpack());
  bool destroyed = false;
  const Tensor y = doubled(torch::ones({2}).requires_grad_(), destroyed);
  const torch::autograd::SavedVariable output(y, true);
  CHECK_THROWS(torch::Error, "pass that node", output.unpack());
}

// ---- data ----

RL_TEST(iterators_of_batches) {
  auto data = torch::data::datasets::TensorDataset(torch::arange(5))
                  .map(torch::data::transforms::Stack<torch::data::TensorExample>());
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(data), torch::data::DataLoaderOptions(2));
  torch::data::Iterator<torch::data::TensorExample> at = loader->begin();
  int64_t sum = 0;
  int batches = 0;
  for (; at != loader->end(); ++at, batches++) {
    sum += at->data.sum().item<int64_t>();
  }
  CHECK(sum == 10 && batches == 3);
}

}  // namespace

RL_TEST_MAIN()
