// What programs written for libtorch use beside tensors, layers and optimisers, by its names.
#include <ATen/core/Reduction.h>
#include <c10/util/accumulate.h>
#include <torch/data/datasets/base.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/parallel/data_parallel.h>
#include <torch/optim/schedulers/lr_scheduler.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <sstream>

#include "check.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;
namespace optim = torch::optim;

// What programs add to libtorch's namespaces, which see one another and what they hold.
namespace c10 {
constexpr int64_t three() { return 3; }
}  // namespace c10
namespace at {
Tensor doubled(const Tensor& t) { return add(t, t) + zeros({1}, kFloat); }
namespace native {
Tensor tripled(const Tensor& t) { return mul(relu(t), c10::three()); }
}  // namespace native
}  // namespace at
namespace torch {
Tensor sixfold(const Tensor& t) { return at::native::tripled(doubled(t)) * (three() - 2); }
struct DoublingImpl : nn::Module {
  Tensor forward(const Tensor& t) { return at::native::add(t, t); }
};
TORCH_MODULE(Doubling);
}  // namespace torch

namespace {

template <class T>
std::string text(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

RL_TEST(missing_archives_are_refused) {
  CHECK_THROWS(c10::Error, "open file failed", torch::jit::load("no/such/file.pt"));
  std::istringstream nothing;
  CHECK_THROWS(c10::Error, "zip archive", torch::jit::load(nothing));
  torch::jit::script::Module module;
  CHECK_THROWS(c10::Error, "empty", module.forward({torch::ones({1})}).toTensor());
}

RL_TEST(namespaces_are_added_to) {
  const torch::Tensor one = torch::ones({1});
  CHECK(torch::equal(torch::sixfold(one), one * 6));
  CHECK(torch::equal(torch::native::tripled(one), one * c10::three()));
  CHECK(torch::equal(torch::Doubling()->forward(one), at::doubled(one)));
}

// A copy on each device works on its part of the batch; the gradients of all copies come together.
RL_TEST(data_parallel) {
  torch::manual_seed(1);
  nn::Sequential net(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 2));
  const torch::Tensor x = torch::randn({7, 4});
  const torch::Tensor alone = net->forward(x);
  alone.square().sum().backward();
  std::vector<torch::Tensor> wanted;
  for (const torch::Tensor& p : net->parameters()) {
    wanted.push_back(p.grad().clone());
  }
  net->zero_grad();
  const std::vector<torch::Device> devices(3, torch::kCPU);
  const torch::Tensor together = nn::parallel::data_parallel(net, x, devices);
  CHECK(torch::allclose(together, alone));
  together.square().sum().backward();
  for (size_t i = 0; i < wanted.size(); i++) {
    CHECK(torch::allclose(net->parameters()[i].grad(), wanted[i], 1e-4, 1e-5));
  }
  CHECK(torch::equal(nn::parallel::data_parallel(net, x, {{torch::kCPU}}), alone));
  CHECK_THROWS(c10::Error, "4", nn::parallel::data_parallel(net, torch::ones({6, 3}), devices));
  CHECK_THROWS(c10::Error, "at least one device",
               nn::parallel::data_parallel(net, x, std::vector<torch::Device>()));
}

RL_TEST(embedding_bag_from_pretrained) {
  const torch::Tensor rows = torch::arange(12.0F).reshape({4, 3});
  nn::EmbeddingBag bag = nn::EmbeddingBag::from_pretrained(
      rows, nn::EmbeddingBagFromPretrainedOptions().mode(torch::kSum).freeze(false));
  const torch::Tensor out = bag(torch::tensor({0, 1, 3}), torch::tensor({0, 2}));
  CHECK(torch::equal(out, torch::stack({rows[0] + rows[1], rows[3]})));
  CHECK(bag->weight.requires_grad());
  CHECK(!nn::EmbeddingBag::from_pretrained(rows)->weight.requires_grad());
}

// A loss takes the word for its reduction alone, whatever its other options are.
RL_TEST(losses_take_words) {
  const torch::Tensor a = torch::tensor({1.0, 4.0});
  const torch::Tensor b = torch::tensor({1.0, 1.0});
  CHECK(torch::equal(F::smooth_l1_loss(a, b, torch::kNone), torch::tensor({0.0, 2.5})));
  CHECK(torch::equal(nn::SmoothL1Loss(torch::kSum)(a, b), torch::tensor(2.5)));
  CHECK(torch::equal(nn::HuberLoss(torch::kSum)(a, b), torch::tensor(2.5)));
  CHECK(torch::equal(nn::SmoothL1Loss(nn::SmoothL1LossOptions(torch::kSum).beta(6))(a, b),
                     torch::tensor(0.75)));
}

RL_TEST(normalize_into) {
  const torch::Tensor x = torch::tensor({{3.0, 4.0}});
  const torch::Tensor out = torch::empty({1, 2});
  CHECK(F::normalize(x, F::NormalizeFuncOptions().out(out)).is_same(out));
  CHECK(torch::allclose(out, torch::tensor({{0.6, 0.8}})));
}

RL_TEST(containers_take_over) {
  nn::ModuleDict dict;
  std::vector<std::pair<std::string, std::shared_ptr<nn::Module>>> list = {
      {"a", nn::Linear(1, 2).ptr()}, {"b", nn::Linear(2, 3).ptr()}};
  dict->update(list);
  nn::ModuleDict other;
  other->update(*dict);
  CHECK(other->keys() == std::vector<std::string>({"a", "b"}));
  CHECK(other["b"] == dict["b"]);

  nn::ParameterDict parameters;
  parameters->insert("a", torch::zeros({1}));
  nn::ParameterDict news;
  news->insert("a", torch::ones({1}));
  parameters->update(*news);
  CHECK(parameters["a"].item<float>() == 1);
  news->insert("b", torch::ones({1}));
  CHECK_THROWS(c10::Error, "'b' is not defined", parameters->update(*news));

  nn::ParameterList some(torch::zeros({1}), torch::zeros({2}));
  *some += *nn::ParameterList(torch::zeros({3}));
  CHECK(some->size() == 3 && some[2].size(0) == 3);
  nn::ParameterList copied;
  copied->extend(*some);
  CHECK(copied->size() == 3);
}

RL_TEST(packed_sequences_move) {
  namespace rnn = nn::utils::rnn;
  const rnn::PackedSequence packed =
      rnn::pack_sequence({torch::ones({2}), torch::ones({3})}, false);
  const rnn::PackedSequence wide = packed.to(torch::kFloat64);
  CHECK(wide.data().dtype() == torch::kFloat64);
  CHECK(wide.sorted_indices().dtype() == torch::kInt64);
  CHECK(torch::equal(wide.cpu().batch_sizes(), packed.batch_sizes()));
  CHECK(!packed.is_cuda());
}

// An optimiser of a program's own: its options, what it keeps of a parameter, its step.
struct HalvesOptions : optim::OptimizerCloneableOptions<HalvesOptions> {
  HalvesOptions(double lr = 1) : lr_(lr) {}
  TORCH_ARG(double, lr);
};
struct HalvesState : optim::OptimizerCloneableParamState<HalvesState> {
  TORCH_ARG(int64_t, step) = 0;
};
struct Halves : optim::Optimizer {
  Halves(std::vector<torch::Tensor> params, HalvesOptions options)
      : Optimizer(std::move(params), std::make_unique<HalvesOptions>(options)) {}
  torch::Tensor step(LossClosure closure = nullptr) override {
    const torch::NoGradGuard no_grad;
    for (auto& group : param_groups_) {
      const auto& options = static_cast<HalvesOptions&>(group.options());
      for (torch::Tensor& p : group.params()) {
        auto& kept = state_[p.unsafeGetTensorImpl()];
        if (kept == nullptr) {
          kept = std::make_unique<HalvesState>();
        }
        auto& state = static_cast<HalvesState&>(*kept);
        state.step(state.step() + 1);
        p.mul_(options.lr() / static_cast<double>(1 << state.step()));
      }
    }
    return closure ? closure() : torch::Tensor();
  }
  size_t kept() const { return state_.size(); }
};

RL_TEST(optimizers_of_ones_own) {
  const torch::Tensor p = torch::full({1}, 64.0, torch::requires_grad());
  Halves optimizer({p}, HalvesOptions(1));
  optimizer.step();
  optimizer.step();
  CHECK(p.item<float>() == 8);
  CHECK(optimizer.kept() == 1);
  optim::StepLR schedule(optimizer, 1, 0.5);
  schedule.step();
  CHECK(optimizer.param_groups()[0].options().get_lr() == 0.5);
}

RL_TEST(options_are_compared) {
  CHECK(optim::AdamOptions(0.1).eps(1e-3) == optim::AdamOptions(0.1).eps(1e-3));
  CHECK(optim::AdamOptions(0.1) != optim::AdamOptions(0.1).betas({0.5, 0.9}));
}

RL_TEST(indices_and_handles_are_printed) {
  using namespace torch::indexing;
  CHECK(Slice().start() == 0 && Slice().stop() == INDEX_MAX && Slice().step() == 1);
  CHECK(text(Slice(1, 3, 2)) == "1:3:2");
  CHECK(text(std::vector<TensorIndex>({None, "...", 3, true, Slice(0, 2)})) ==
        "(None, ..., 3, true, 0:2:1)");
  const torch::Tensor x = torch::arange(6);
  CHECK(torch::equal(x.index({Slice(None, 2)}), torch::tensor({0, 1})));
  CHECK(torch::equal(x.index({Slice(4)}), torch::tensor({4, 5})));
  const torch::Tensor y = torch::ones({1}, torch::requires_grad()) * 2;
  CHECK(text(y.grad_fn()) == text(static_cast<const void*>(y.grad_fn().get())));
}

RL_TEST(pads) {
  const torch::Tensor x = torch::arange(3.0F).reshape({1, 1, 3});
  CHECK(torch::equal(torch::reflection_pad1d(x, {1, 2}).flatten(),
                     torch::tensor({1.0, 0.0, 1.0, 2.0, 1.0, 0.0})));
  CHECK(torch::equal(torch::replication_pad1d(x, {1, 1}).flatten(),
                     torch::tensor({0.0, 0.0, 1.0, 2.0, 2.0})));
  CHECK(torch::reflection_pad2d(torch::ones({1, 1, 3, 3}), {1, 1, 2, 2}).size(2) == 7);
}

RL_TEST(options_by_dimensions) {
  const nn::MaxPool2d pool(nn::MaxPoolOptions<2>({2, 2}).stride({1, 2}));
  CHECK((*pool->options.stride() == std::array<int64_t, 2>{1, 2}));
  CHECK((std::is_same_v<nn::ZeroPadOptions<3>, nn::ZeroPad3dOptions>));
}

RL_TEST(values) {
  CHECK(text(std::optional<torch::Device>(torch::kCPU)) == "cpu");
  CHECK(text(std::optional<torch::Device>()) == "None");
  CHECK((std::is_same_v<at::scalar_value_type<c10::complex<float>>::type, float>));
  c10::Dict<std::string, int64_t> dict;
  dict.insert("a", 3);
  CHECK(torch::IValue(dict).toGenericDict().at("a").toInt() == 3);
}

RL_TEST(options_of_tensors) {
  const torch::TensorOptions given = torch::TensorOptions().dtype<double>().requires_grad(true);
  CHECK(given.has_dtype() && !given.has_device() && !given.has_layout());
  CHECK(!given.pinned_memory() && !given.is_sparse());
  const torch::TensorOptions merged = torch::TensorOptions(torch::kMeta).merge_in(given);
  CHECK(merged.device().is_meta() && merged.dtype() == torch::kDouble && merged.requires_grad());
  CHECK(merged.merge_in(torch::kFloat).dtype() == torch::kFloat);
  CHECK(given.type_equal(torch::kDouble) && !given.type_equal(torch::kFloat));
  CHECK(torch::ones({1}).set_requires_grad(true).requires_grad());
  CHECK(!torch::ones({1}, given.requires_grad(std::nullopt)).requires_grad());
  CHECK(torch::Device(torch::Device::Type::Meta).is_meta());
}

RL_TEST(numbers_at_indices_of_a_vector) {
  const torch::Tensor x = torch::zeros({2, 2});
  const std::vector<torch::indexing::TensorIndex> at = {1, torch::indexing::Slice()};
  x.index_put_(at, 3);
  CHECK(torch::equal(x, torch::tensor({{0.0, 0.0}, {3.0, 3.0}})));
}

RL_TEST(questions) {
  at::globalContext().setAllowTF32CuBLAS(true);
  CHECK(at::globalContext().allowTF32CuBLAS());
  CHECK(torch::default_generator().current_seed() == torch::default_generator().initial_seed());
  CHECK(torch::size(torch::ones({2, 3}), -1) == 3 && torch::numel(torch::ones({2, 3})) == 6);
  CHECK(!torch::mps::is_available() && torch::xpu::device_count() == 0);
  CHECK(c10::multiply_integers(std::vector<int64_t>{2, 3, 4}) == 24);
  CHECK(c10::sum_integers(torch::ones({2, 3}).sizes()) == 5);
  CHECK(at::isReducedFloatingType(at::kHalf) && !at::isReducedFloatingType(at::kInt));
  CHECK(at::toRealValueType(at::kComplexFloat) == at::kFloat);
  CHECK_THROWS(c10::Error, "(2 vs. 3)", [] { TORCH_CHECK_EQ(2, 3); }());
}

}  // namespace

RL_TEST_MAIN()
