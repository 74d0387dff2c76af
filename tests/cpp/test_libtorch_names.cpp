// What programs of libtorch lean on beside tensors and modules: namespaces that they add to, short
// names, standard headers that come along, names of the process, the engine, GPUs and TorchScript.
#include <ATen/DeviceAccelerator.h>
#include <ATen/autocast_mode.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/native/CPUBlas.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/script.h>

#include "check.h"

// Programs put modules and datasets of their own among those of the library.
namespace torch {
namespace nn {
struct TwiceImpl : Module {
  TwiceImpl() { linear = register_module("linear", Linear(2, 2)); }
  Tensor forward(Tensor x) { return functional::relu(linear(x)) * 2; }
  Linear linear{nullptr};
};
TORCH_MODULE(Twice);
namespace functional {
inline Tensor thrice(const Tensor& x) { return x * 3; }
}  // namespace functional
}  // namespace nn
namespace data {
namespace datasets {
class Squares : public Dataset<Squares> {
 public:
  Example<> get(size_t i) override {
    const auto x = static_cast<int64_t>(i);
    return {torch::full({1}, x), torch::full({1}, x * x)};
  }
  torch::optional<size_t> size() const override { return 6; }
};
}  // namespace datasets
}  // namespace data
namespace autograd {
struct Tripled : public Node {
  variable_list apply(variable_list&& grads) override { return {grads[0] * 3}; }
  void release_variables() override { released = true; }
  bool released = false;
  std::vector<VariableInfo> inputs;
};
}  // namespace autograd
}  // namespace torch

namespace {

RL_TEST(programs_add_to_namespaces) {
  using namespace torch;
  torch::manual_seed(0);
  nn::Twice twice;
  const Tensor x = torch::rand({3, 2});
  CHECK(torch::equal(twice(x), nn::functional::relu(twice->linear(x)) * 2));
  CHECK(torch::equal(torch::nn::functional::thrice(x), x * 3));
  CHECK(nn::Linear(2, 3)->name() == "torch::nn::LinearImpl");
  CHECK(twice->name() == "torch::nn::TwiceImpl");
  auto loader = data::make_data_loader<data::samplers::SequentialSampler>(
      data::datasets::Squares().map(data::transforms::Stack<>()), 4);
  int64_t sum = 0;
  for (auto& batch : *loader) {
    sum += (batch.target - batch.data).sum().item<int64_t>();
  }
  CHECK(sum == 55 - 15);
  // Names of torch::autograd are seen from within and through torch, too.
  const std::shared_ptr<autograd::Tripled> node(new autograd::Tripled, autograd::deleteNode);
  const Tensor leaf = torch::ones({2}, torch::requires_grad());
  node->set_next_edges(autograd::collect_next_edges({leaf}));
  node->inputs.emplace_back(leaf);
  const auto outputs =
      autograd::record_outputs({leaf}, {}, {}, autograd::to_optional(leaf.detach() * 3), node);
  autograd::backward({autograd::to_output_type<Tensor>(outputs).sum()});
  CHECK(torch::equal(leaf.grad(), torch::full({2}, 3)) && node->released);
  at::OptionalDeviceGuard guard;
  CHECK(torch::equal(node->inputs[0].zeros(guard), torch::zeros({2})));
  CHECK(!autograd::VariableInfo().zeros(guard).defined());
}

// The short names of the bases, as most programs write them.
struct Numbers : torch::data::Dataset<Numbers, torch::data::TensorExample> {
  torch::data::TensorExample get(size_t i) override {
    return torch::full({}, static_cast<int64_t>(i));
  }
  torch::optional<size_t> size() const override { return 4; }
};
struct Ranges : torch::data::BatchDataset<Ranges, torch::Tensor> {
  torch::Tensor get_batch(torch::ArrayRef<size_t> request) override {
    return torch::arange(static_cast<int64_t>(request.size()));
  }
  torch::optional<size_t> size() const override { return 8; }
};

RL_TEST(datasets_by_short_names) {
  const auto numbers = torch::data::make_data_loader(
      Numbers().map(torch::data::transforms::Stack<torch::data::TensorExample>()), 2);
  int64_t sum = 0;
  for (auto& batch : *numbers) {
    sum += batch.data.sum().item<int64_t>();
  }
  CHECK(sum == 6);
  const auto ranges = torch::data::make_data_loader(Ranges(), 4);
  size_t batches = 0;
  for (auto& batch : *ranges) {
    CHECK(batch.size(0) == 4);
    batches++;
  }
  CHECK(batches == 2);
}

// A holder shares any object: a dataset, and a module that keeps its base to itself.
struct WordsImpl : torch::data::Dataset<WordsImpl> {
  explicit WordsImpl(int64_t n) : n(n) {}
  torch::data::Example<> get(size_t) override { return {torch::ones({n}), torch::zeros({1})}; }
  torch::optional<size_t> size() const override { return 1; }
  int64_t n;
};
TORCH_MODULE(Words);
class ShapeImpl : torch::nn::Module {
 public:
  explicit ShapeImpl(std::vector<int64_t> shape) : shape_(std::move(shape)) {}
  torch::Tensor forward(torch::Tensor x) { return x.view(shape_); }

 private:
  std::vector<int64_t> shape_;
};
TORCH_MODULE(Shape);
struct Wider : torch::nn::Linear {
  Wider() = default;
  explicit Wider(int64_t n) : torch::nn::Linear(n, 2 * n) {}
};

RL_TEST(holders_of_anything) {
  Words words(3);
  const Words same = words;
  CHECK(same->n == 3 && words.get() == same.ptr().get());
  CHECK(words->get(0).data.size(0) == 3);
  Shape shape(std::vector<int64_t>{2, 3});
  CHECK(shape(torch::zeros({6})).size(1) == 3);
  const Words none = nullptr;
  CHECK_THROWS(torch::Error, "Accessing empty ModuleHolder", none->n);
  Wider wider(2);
  CHECK(wider(torch::ones({1, 2})).size(1) == 4);
  torch::nn::Linear plain = wider;
  CHECK(plain.get() == wider.get());
}

RL_TEST(optimisers_move) {
  std::vector<torch::optim::Adam> all;
  const torch::Tensor w = torch::ones({2}).requires_grad_();
  for (int i = 0; i < 3; i++) {
    all.emplace_back(std::vector<torch::Tensor>{w}, torch::optim::AdamOptions(0.1));
  }
  (w * w).sum().backward();
  all[1].step();
  CHECK(torch::allclose(w.detach(), torch::full({2}, 0.9)));
  torch::optim::Adam moved = std::move(all[1]);
  moved.step();
  CHECK(torch::allclose(w.detach(), torch::full({2}, 0.8), 1e-3));
}

template <class T>
std::string printed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

RL_TEST(containers_print) {
  const std::vector<int64_t> numbers{1, 2, 3};
  CHECK(printed(numbers) == "1 2 3");
  CHECK(printed(std::vector<std::string>{}).empty());
  CHECK(printed(std::vector<torch::IntArrayRef>{numbers, numbers}) == "[1, 2, 3] [1, 2, 3]");
  CHECK(printed(std::set<int>{3, 1}) == "1 3");
  CHECK(printed(std::map<std::string, int>{{"x", 1}, {"y", 2}}) == "(x, 1) (y, 2)");
  CHECK(printed(std::vector<std::vector<int>>{{1}, {2, 3}}) == "1 2 3");
  const std::string many = printed(std::vector<int>(103, 7));
  CHECK(many.size() == 203 && many.substr(196) == "7 7 ...");
}

// Of what the header brings along, each of these was missed by a program.
RL_TEST(standard_headers_come_along) {
  std::mutex mutex;
  std::condition_variable ready;
  std::deque<int> order;
  std::thread worker([&] {
    const std::lock_guard<std::mutex> lock(mutex);
    order.push_back(1);
    ready.notify_one();
  });
  {
    std::unique_lock<std::mutex> lock(mutex);
    ready.wait(lock, [&] { return !order.empty(); });
  }
  worker.join();
  std::queue<int> queue(order);
  std::list<int> list(order.begin(), order.end());
  std::unordered_set<int> seen(list.begin(), list.end());
  CHECK(queue.front() == 1 && seen.count(1) == 1);
  std::ostringstream out;
  out << std::setw(6) << std::setprecision(3) << 3.14159;
  CHECK(out.str() == "  3.14");
  CHECK(std::chrono::steady_clock::now().time_since_epoch().count() != 0);
  CHECK(std::bitset<4>(5).count() == 2);
}

RL_TEST(complex_numbers) {
  const c10::complex<float> z(3, 4);
  CHECK(std::conj(z) == c10::complex<float>(3, -4));
  CHECK(std::abs(z) == 5 && std::norm(z) == 25 && std::real(z) == 3 && std::imag(z) == 4);
  const auto one = std::exp(c10::complex<double>(0, 1));
  CHECK(std::abs(one.real() - std::cos(1.0)) < 1e-15 && std::abs(std::arg(one) - 1) < 1e-15);
  CHECK(std::abs(std::sqrt(c10::complex<double>(-4, 0)) - c10::complex<double>(0, 2)) < 1e-15);
  CHECK(std::abs(std::pow(c10::complex<double>(0, 1), 2.0) + c10::complex<double>(1)) < 1e-15);
  CHECK(printed(std::conj(c10::complex<float>(1, 2))) == "(1,-2)");
}

RL_TEST(type_meta) {
  caffe2::TypeMeta type = torch::ones({1}).dtype();
  CHECK(type == caffe2::TypeMeta::Make<float>() && type.itemsize() == 4 && type.name() == "float");
  type = torch::kBFloat16;
  CHECK(type != caffe2::TypeMeta::Make<float>() && type.name() == "c10::BFloat16");
  CHECK(printed(caffe2::TypeMeta(torch::kLong)) == "long");
  CHECK(torch::zeros({1}, torch::dtype(type)).dtype() == torch::kBFloat16);
  CHECK(!caffe2::TypeMeta().isScalarType());
  // What dtype() gives is a dtype wherever one is wanted, and options.
  const torch::Tensor x = torch::ones({2}, torch::kDouble);
  CHECK(x.dtype().itemsize() == 8 && x.dtype().name() == "double" && x.dtype().Match<double>());
  CHECK(x.dtype().toScalarType() == torch::kDouble && x.dtype() == x.scalar_type());
  CHECK(x.options().dtype().name() == "double" && x.type().typeMeta() == x.dtype());
  const torch::ScalarType plain = x.dtype();
  CHECK(plain == torch::kDouble && (x.defined() ? x.dtype() : torch::kFloat) == plain);
  switch (x.dtype()) {
    case torch::kDouble:
      break;
    default:
      CHECK(false);
  }
  CHECK(torch::zeros({2}, x.dtype()).dtype() == plain && x.to(x.dtype()).is_same(x));
  CHECK(torch::zeros({2}, x.options().dtype(x.dtype())).dtype() == plain);
  CHECK(torch::ones({2}).sum(x.dtype()).dtype() == plain);
  CHECK(torch::full_like(torch::ones({2}), 3, x.dtype()).dtype() == plain);
  CHECK(c10::IValue(x.dtype()).toScalarType() == plain);
  CHECK(torch::optTypeMetaToScalarType(x.dtype()) == plain && printed(x.dtype()) == "double");
  for (const torch::ScalarType t : rushlight::all_dtypes) {
    CHECK(caffe2::TypeMeta(t).isScalarType() && caffe2::TypeMeta(t).name().front() != 'n');
  }
}

RL_TEST(storages) {
  using Size = c10::Storage::use_byte_size_t;
  const c10::Storage fixed(Size(), 8), grown(Size(), 8, c10::GetCPUAllocator(), true);
  CHECK(fixed.nbytes() == 8 && !fixed.resizable() && fixed.device_type() == torch::kCPU);
  CHECK(fixed.use_count() == 1 && fixed.unique() && !fixed.is_alias_of(grown));
  int64_t numbers[] = {1, 2};
  const c10::DataPtr same = c10::GetCPUAllocator()->clone(numbers, sizeof(numbers));
  CHECK(std::equal(numbers, numbers + 2, static_cast<const int64_t*>(same.get())));
  static int freed = 0;
  freed = 0;
  {
    const auto count = [](void*) { freed++; };
    c10::DataPtr memory(numbers, numbers, count, torch::kCPU);
    const c10::Storage borrowed(Size(), sizeof(numbers), std::move(memory));
    const torch::Tensor x = torch::empty({0}, torch::kLong).set_(borrowed, 0, {2}, {1});
    CHECK(x.sum().item<int64_t>() == 3 && borrowed.data_ptr().get() == numbers);
    CHECK(x.storage().is_alias_of(borrowed) && x.unsafeGetTensorImpl()->storage_initialized());
    CHECK(freed == 0);
  }
  CHECK(freed == 1);
  CHECK(!torch::empty({2}, torch::kMeta).unsafeGetTensorImpl()->storage_initialized());
}

template <class T, size_t N>
struct Backwards : at::TensorAccessorBase<T, N> {
  using at::TensorAccessorBase<T, N>::TensorAccessorBase;
  T& operator[](int64_t i) const {
    return this->data_[this->strides_[0] * (this->sizes_[0] - 1 - i)];
  }
};
RL_TEST(accessors_of_programs) {
  const torch::Tensor x = torch::arange(4).slice(0, 0, 4, 2);
  const Backwards<int64_t, 1> seen(x.data_ptr<int64_t>(), x.sizes().data(), x.strides().data());
  CHECK(seen[0] == 2 && seen[1] == 0 && seen.size(0) == 2 && seen.stride(0) == 2);
  CHECK(x.name().empty());
  CHECK_THROWS(c10::Error, "undefined", torch::Tensor().name());
}

RL_TEST(short_lists_of_names) {
  CHECK(at::isQIntType(at::kQUInt8) && at::toUnderlying(at::kQInt32) == at::kInt);
  CHECK(!at::isQIntType(at::kByte) && torch::ones({1}, at::kByte).dtype() != at::kQUInt8);
  CHECK_THROWS(std::exception, "", torch::ones({1}, at::kQUInt8));
  std::vector<std::string> names;
#define RL_NAME(type, name) names.push_back(#name);
  AT_FORALL_SCALAR_TYPES_AND2(Bool, Half, RL_NAME)
#undef RL_NAME
  CHECK(names.size() == 9 && names[0] == "Byte" && names[8] == "Half");
  const auto generator =
      at::globalContext().getAcceleratorHooksInterface(at::kCPU).getNewGenerator();
  CHECK(generator.device() == torch::kCPU);
  CHECK_THROWS(c10::Error, "offset", generator.get_offset());
  ska_ordered::order_preserving_flat_hash_map<std::string, int64_t> map = {{"z", 1}, {"a", 2}};
  map["m"] = 3;
  CHECK(!map.insert({"z", 9}).second && map.at("z") == 1 && map.erase("a") == 1);
  const auto copy = map;
  map.clear();
  std::string order;
  for (const auto& [key, value] : copy) {
    order += key + std::to_string(value);
  }
  CHECK(order == "z1m3" && map.empty() && copy.find("a") == copy.end());
  CHECK_THROWS(std::out_of_range, "key", copy.at("a"));
}

RL_TEST(blocks_of_products) {
  namespace blas = at::native::cpublas;
  const torch::Tensor a = torch::rand({3, 4}), b = torch::rand({4, 5});
  const torch::Tensor small = b.to(torch::kBFloat16), packed = torch::zeros_like(small);
  torch::Tensor c = torch::ones({3, 5});
  blas::brgemm(3, 5, 4, 4, 5, 5, true, a.data_ptr<float>(), b.data_ptr<float>(),
               c.data_ptr<float>());
  CHECK(torch::allclose(c, torch::matmul(a, b) + 1));
  blas::pack(4, 5, 5, 5, torch::kBFloat16, torch::kBFloat16, small.data_ptr(), packed.data_ptr());
  CHECK(torch::equal(packed.view({2, 5, 2}), small.view({2, 2, 5}).transpose(1, 2)));
  blas::brgemm(3, 5, 4, 4, 5, 5, false, a.data_ptr<float>(), packed.data_ptr<at::BFloat16>(),
               c.data_ptr<float>());
  CHECK(torch::allclose(c, torch::matmul(a, small.to(torch::kFloat)), 1e-4));
  CHECK(!blas::could_pack(torch::kBFloat16));
}

RL_TEST(flags_of_the_context) {
  at::Context& context = at::globalContext();
  CHECK(!context.deterministicCuDNN() && context.userEnabledCuDNN());
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(true);
  context.setUserEnabledCuDNN(false);
  CHECK(context.deterministicCuDNN() && context.benchmarkCuDNN() && !context.userEnabledCuDNN());
  context.setDeterministicAlgorithms(true, true);
  CHECK(context.deterministicAlgorithms() && context.deterministicAlgorithmsWarnOnly());
  context.setFloat32MatmulPrecision("high");
  CHECK(context.float32MatmulPrecision() == at::Float32MatmulPrecision::HIGH);
  CHECK_THROWS(torch::Error, "'low'", context.setFloat32MatmulPrecision("low"));
  CHECK(!at::hasMKL() && !at::hasMPS());
}

RL_TEST(engine) {
  const torch::Tensor x = torch::full({2}, 3.0).requires_grad_(), y = (x * x).sum();
  using torch::autograd::impl::gradient_edge;
  auto& engine = torch::autograd::Engine::get_default_engine();
  const auto grads =
      engine.execute({gradient_edge(y)}, {torch::ones({})}, true, false, false, {gradient_edge(x)});
  CHECK(grads.size() == 1 && torch::equal(grads[0], torch::full({2}, 6.0)));
  CHECK(!x.grad().defined());
  engine.execute({gradient_edge(y)}, {torch::ones({})}, false, false, true);
  CHECK(torch::equal(x.grad(), torch::full({2}, 6.0)));
}

RL_TEST(guards_of_gpus) {
  c10::cuda::CUDACachingAllocator::emptyCache();
  c10::cuda::OptionalCUDAGuard none;
  CHECK(!none.current_device().has_value());
  if (torch::cuda::is_available()) {
    const c10::cuda::CUDAGuard guard(0);
    CHECK(guard.current_device() == torch::Device(torch::kCUDA, 0));
    CHECK(c10::cuda::current_device() == 0);
    const auto stream = c10::cuda::getStreamFromPool();
    const c10::cuda::CUDAStreamGuard current(stream);
    CHECK(c10::cuda::getCurrentCUDAStream() == stream);
    CHECK(current.original_stream() == c10::cuda::getDefaultCUDAStream());
    const torch::Tensor x = torch::ones({1024}, torch::kCUDA);
    stream.synchronize();
    CHECK(x.sum().item<float>() == 1024);
    c10::cuda::CUDACachingAllocator::emptyCache();
    return;
  }
  CHECK_THROWS(torch::Error, "no CUDA-capable device", c10::cuda::CUDAGuard(0));
  CHECK_THROWS(torch::Error, "no CUDA-capable device", none.set_index(0));
  CHECK_THROWS(torch::Error, "no CUDA-capable device", c10::cuda::getCurrentCUDAStream());
  CHECK_THROWS(torch::Error, "no CUDA-capable device", c10::cuda::getStreamFromPool(true));
}

RL_TEST(ops_by_overload) {
  const torch::Tensor x = torch::arange(6, torch::kFloat).reshape({2, 3});
  CHECK(torch::equal(at::_ops::add_Tensor::call(x, x, 2), 3 * x));
  CHECK(torch::equal(at::_ops::sum_dim_IntList::call(x, {{1}}, true, {}), x.sum(1, true)));
  CHECK(at::_ops::where::call(x > 3).size() == 2);
  CHECK(torch::equal(at::_ops::linear::call(x, torch::ones({4, 3}), {}),
                     torch::linear(x, torch::ones({4, 3}))));
  const auto [values, places] = at::_ops::max_dim::call(x, 1, false);
  CHECK(torch::equal(values, x.amax(1)) && places.scalar_type() == torch::kLong);
  CHECK(at::_ops::zeros::call({2, 2}, at::kDouble, {}, {}, {}).scalar_type() == at::kDouble);
  CHECK(std::string(at::_ops::add_Tensor::name) == "aten::add" &&
        std::string(at::_ops::add_Tensor::overload_name) == "Tensor");
  static_assert(
      std::is_same_v<at::_ops::mm::schema, at::Tensor(const at::Tensor&, const at::Tensor&)>);

  torch::Tensor y = x.clone();
  CHECK(&at::_ops::mul__Scalar::call(y, 2) == &y && torch::equal(y, 2 * x));
  const torch::Tensor w = x.clone().requires_grad_();
  CHECK(at::_ops::mul_Tensor::call(w, w).requires_grad());
  CHECK(!at::_ops::mul_Tensor::redispatch(at::DispatchKeySet(at::DispatchKey::CPU), w, w)
             .requires_grad());
  CHECK_THROWS(torch::Error, "cannot be multiplied", at::_ops::mm::call(x, x));
}

RL_TEST(outputs_come_last) {
  const torch::Tensor x = torch::arange(6, torch::kFloat).reshape({2, 3});
  torch::Tensor out = torch::empty({0}), places = torch::empty({0}, torch::kLong);
  CHECK(&at::add_outf(x, x, 1, out) == &out && torch::equal(out, 2 * x));
  at::sum_outf(x, {{0}}, false, torch::kDouble, places = torch::empty({0}, torch::kDouble));
  CHECK(torch::equal(places, x.sum(0).to(torch::kDouble)));
  places = torch::empty({0}, torch::kLong);
  const auto [most, at] = torch::max_outf(x, 1, false, out, places);
  CHECK(&most == &out && &at == &places && torch::equal(places, x.argmax(1)));
  torch::Tensor other = torch::empty({0});
  at::histogram_outf(x.reshape({6}), 2, {{0, 6}}, {}, false, out, other);
  CHECK(torch::equal(out, torch::full({2}, 3.0)) && other.numel() == 3);
  CHECK_THROWS(torch::Error, "out", at::add_outf(x, x, 1, places));
}

RL_TEST(the_processor_has_no_number) {
  const torch::Tensor x = torch::zeros({2}, torch::Device(torch::kCPU, 0));
  CHECK(x.device() == torch::kCPU && (x + torch::ones({2})).sum().item<float>() == 2);
  CHECK(torch::ones({2}).to(torch::Device("cpu:0")).device() == torch::kCPU);
  float values[] = {1, 2};
  CHECK(torch::from_blob(values, {2}, torch::Device(torch::kCPU, 0)).storage().device() ==
        torch::kCPU);
}

RL_TEST(words_of_options_have_types) {
  namespace F = torch::nn::functional;
  F::InterpolateFuncOptions::mode_t mode = torch::kNearest;
  const torch::Tensor x = torch::ones({1, 1, 2, 2});
  const auto size = std::vector<int64_t>{4, 4};
  CHECK(F::interpolate(x, F::InterpolateFuncOptions().size(size).mode(mode)).numel() == 16);
  mode = torch::kBilinear;
  CHECK(F::interpolate(x, F::InterpolateFuncOptions().size(size).mode(mode).align_corners(false))
            .equal(torch::ones({1, 1, 4, 4})));
  const F::PadFuncOptions::mode_t padding = torch::kReflect;
  CHECK(padding == torch::kReflect);
  CHECK(F::adaptive_avg_pool2d(x, F::AdaptiveAvgPool2dFuncOptions(std::vector<int64_t>{1, 2}))
            .equal(torch::ones({1, 1, 1, 2})));
  const torch::nn::L1LossOptions::reduction_t sum = torch::kSum;
  CHECK(torch::nn::L1Loss(torch::nn::L1LossOptions(sum))(x, 2 * x).item<float>() == 4);
}

RL_TEST(dicts_told_their_types) {
  c10::impl::GenericDict generic;
  generic.insert("a", std::vector<torch::Tensor>{torch::ones({2})});
  const auto typed = c10::impl::toTypedDict<std::string, std::vector<torch::Tensor>>(generic);
  CHECK(typed.at("a").size() == 1 && c10::impl::toGenericDict(typed).size() == 1);
}

RL_TEST(autocast_by_device) {
  at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
  CHECK(at::autocast::get_autocast_dtype(at::kCPU) == at::kHalf);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const torch::Tensor x = torch::ones({2, 2});
  CHECK(at::autocast::is_autocast_enabled(at::kCPU) && x.mm(x).scalar_type() == at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  CHECK(x.mm(x).scalar_type() == at::kFloat && at::autocast::is_autocast_cache_enabled());
}

RL_TEST(accelerators) {
  CHECK(!at::device_of(torch::Tensor()) && at::device_of(torch::ones({1})) == at::kCPU);
  CHECK(at::isAccelerator(at::kCUDA) && !at::isAccelerator(at::kCPU));
  if (at::accelerator::deviceCount() > 0) {
    at::cuda::CUDAEvent event;
    event.record();
    event.block(at::cuda::getCurrentCUDAStream());
    event.synchronize();
    CHECK(event.isCreated() && event.query() && at::getAccelerator() == at::kCUDA);
    return;
  }
  CHECK(!at::getAccelerator() && !at::cuda::CUDAEvent().isCreated());
  CHECK_THROWS(torch::Error, "none is available", at::getAccelerator(true));
  CHECK_THROWS(torch::Error, "none is available", at::accelerator::synchronizeDevice(0));
  CHECK_THROWS(torch::Error, "no CUDA-capable device", at::cuda::CUDAEvent().record());
}

RL_TEST(operators_of_scripts) {
  auto& all = torch::jit::getAllOperators();
  const bool found = std::any_of(all.begin(), all.end(), [](const auto& op) {
    return op->schema().name() == "aten::add" && op->schema().overload_name() == "Tensor";
  });
  CHECK(found && all.size() > 1000);
}

}  // namespace

RL_TEST_MAIN()
