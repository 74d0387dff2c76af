// Programs with classes of their own outside namespaces, and those of libraries they use, named as
// rushlight's: headers mean rushlight's all the same. What <torch/torch.h> alone brings: macros
// that log and check, and libraries of ops.
#include <complex>
#include <sstream>
#include <stack>
using namespace std;

namespace cv {
struct Scalar {};
struct Error {};
}  // namespace cv
using namespace cv;
struct Device {};
struct ArrayRef {};
struct Half {};
struct NoGradGuard {};
struct StateDict {};
struct TensorOptions {};
enum ScalarType { one_of_ours };
int kCPU = 3;
using IntArrayRef = int;

#include <torch/torch.h>

#include "check.h"

namespace {

torch::Tensor doubled(const torch::Tensor& x) { return x * 2; }

}  // namespace

TORCH_LIBRARY(program_names, m) { m.def("doubled", doubled); }

namespace {

RL_TEST(names_of_programs_are_no_matter) {
  torch::nn::Sequential net(torch::nn::Linear(2, 3), torch::nn::LSTM(3, 4));
  net->to(torch::kDouble);
  CHECK(net->parameters()[0].dtype() == torch::kDouble && kCPU == 3);
  const auto data = torch::data::datasets::TensorDataset(torch::eye(3));
  CHECK(torch::equal(data.tensor, torch::eye(3)));
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("program_names::doubled", "");
  CHECK(op.typed<torch::Tensor(const torch::Tensor&)>().call(torch::ones(1)).item<int>() == 2);
}

template <class T>
std::string text(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}
RL_TEST(values_in_streams) {
  CHECK(text(at::kStrided) == "Strided" && text(at::MemoryFormat::ChannelsLast) == "ChannelsLast");
  CHECK(c10::DeviceTypeName(at::kCUDA) == "CUDA" && c10::DeviceTypeName(at::kCPU, true) == "cpu");
  CHECK(at::CPU(at::kFloat).toString() == "CPUFloatType");
  CHECK(torch::zeros({2}, at::CPU(at::kByte)).dtype() == torch::kByte);
  CHECK(torch::zeros({2}, caffe2::TypeMeta(torch::kByte)).dtype() == torch::kByte);
  using c10::IValue;
  CHECK(text(IValue(3)) == "3" && text(IValue("a")) == "a" && text(IValue()) == "None");
  CHECK(text(IValue(2.0)) == "2." && text(IValue(0.1)) == "0.10000000000000001");
  CHECK(text(IValue(true)) == "True" && text(IValue(std::make_tuple(1))) == "(1,)");
  CHECK(text(IValue(std::make_tuple(1, 2.5))) == "(1, 2.5)");
  CHECK(text(IValue(std::vector<int64_t>{1, 2})) == "[1, 2]");
  CHECK(text(IValue(c10::complex<double>(1, -2))) == "1.-2.j");
  c10::Dict<std::string, int64_t> dict;
  dict.insert("a", 1);
  dict.insert("b", 2);
  CHECK(text(IValue(dict)) == "{a: 1, b: 2}");
  CHECK(text(IValue(c10::Dict<std::string, int64_t>())) == "{}");
  const torch::Deleter deleter = [](void*) {};
  CHECK(deleter != nullptr && std::string(TORCH_VERSION) == "2.13.0");
  CHECK(torch::getNumGPUs() == static_cast<size_t>(torch::cuda::device_count()));
}

RL_TEST(generators_that_may_be_none) {
  std::optional<at::Generator> generator = at::make_generator<at::CPUGeneratorImpl>(7), none;
  const auto drawn = [](const std::optional<at::Generator>& from) {
    const torch::Tensor p = torch::full({4}, 0.5);
    std::vector<torch::Tensor> out = {at::normal(p, p, from),
                                      at::normal(p, 1.0, from),
                                      at::normal(0.0, p, from),
                                      at::normal(0.0, 1.0, {4}, from, torch::kFloat),
                                      at::bernoulli(p, from),
                                      at::multinomial(p, 2, false, from),
                                      at::rand({4}, from, torch::kFloat),
                                      at::randperm(4, from, torch::kLong),
                                      torch::empty(4).uniform_(0, 1, from)};
    return out;
  };
  const auto first = drawn(generator);
  generator->set_current_seed(7);
  const auto again = drawn(generator);
  torch::manual_seed(7);
  const auto by_default = drawn(none);
  for (size_t i = 0; i < first.size(); i++) {
    CHECK(torch::equal(first[i], again[i]) && torch::equal(first[i], by_default[i]));
  }
  CHECK(at::bernoulli(torch::ones(3), c10::nullopt).sum().item<int>() == 3);
  CHECK(!at::Generator(none).defined() && at::Generator(generator).defined());
}

RL_TEST(arrays_and_numbers_as_programs_have_them) {
  const int64_t sizes[3] = {2, 2, 2};
  const torch::Tensor x = torch::fft::rfftn(torch::ones({2, 2, 2}));
  CHECK(torch::allclose(torch::fft::irfftn(x, sizes), torch::ones({2, 2, 2})));
  CHECK(at::Scalar(3).isIntegral() && !at::Scalar(true).isIntegral());
  constexpr auto most = static_cast<size_t>(at::DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES);
  CHECK(most > static_cast<size_t>(at::DeviceType::PrivateUse1));
  namespace F = torch::nn::functional;
  const torch::Tensor image = torch::rand({1, 1, 4, 4}), kernel = torch::rand({1, 1, 3, 3});
  const torch::Tensor padded = F::conv2d(image, kernel, F::Conv2dFuncOptions().padding({1, 0}));
  const std::vector<int64_t> by = {1, 0};
  CHECK(torch::equal(padded, F::conv2d(image, kernel, F::Conv2dFuncOptions().padding(by))));
  const auto lent = F::Conv2dFuncOptions().padding(torch::IntArrayRef(by));
  CHECK(torch::equal(padded, F::conv2d(image, kernel, lent)));
  std::map<std::string, torch::nn::init::NonlinearityType> words = {{"relu", torch::kReLU}};
  CHECK(words["relu"] == torch::kReLU && !(words["none"] == torch::kReLU));
  const at::IntList list = x.sizes();
  CHECK(list.size() == 3 &&
        torch::ones({2}).contiguous(LEGACY_CONTIGUOUS_MEMORY_FORMAT).dim() == 1);
}

#undef CHECK
#define CHECK(condition) RL_CHECK_LOGGED(condition)
void check_positive(int x) { CHECK(x > 0) << "for " << x; }
#undef CHECK
#define CHECK(condition) \
  ::rushlight::testing::report(static_cast<bool>(condition), #condition, __FILE__, __LINE__)

RL_TEST(logs_and_checks) {
  LOG(INFO) << "below what is written";
  VLOG(1) << "so is this";
  LOG_IF(ERROR, false) << "not reached";
  DLOG(INFO) << "nor this";
  CHECK(!VLOG_IS_ON(1));
  check_positive(1);
  CHECK_THROWS(c10::Error, "Check failed: x > 0 for -1", (check_positive(-1), 0));
  const auto equal = [](int a, int b) { TORCH_CHECK_EQ(a, b) << "told"; };
  equal(1, 1);
  CHECK_THROWS(c10::Error, "Check failed: a == b (1 vs. 2). told", (equal(1, 2), 0));
  const auto enforce = [](bool good) { CAFFE_ENFORCE(good, "no ", 3); };
  CHECK_THROWS(c10::Error, "good. no 3", (enforce(false), 0));
  const auto at_most = [](int a, int b) { CAFFE_ENFORCE_LE(a, b); };
  CHECK_THROWS(c10::Error, "a <= b. 3 vs 2", (at_most(3, 2), 0));
  const auto argument = [](bool good) { TORCH_CHECK_ARG(good, 2, "bad"); };
  CHECK_THROWS(c10::Error, "invalid argument 2: bad", (argument(false), 0));
  const auto typed = [](bool good) { TORCH_CHECK_WITH(ValueError, good, "bad"); };
  CHECK_THROWS(c10::ValueError, "bad", (typed(false), 0));
  int value = 3;
  CHECK(*TORCH_CHECK_NOTNULL(&value) == 3);
  int* const none = nullptr;
  CHECK_THROWS(c10::Error, "'none' must be non NULL", TORCH_CHECK_NOTNULL(none));
  const auto throws = [] { C10_THROW_ERROR(IndexError, "out"); };
  CHECK_THROWS(c10::IndexError, "out", (throws(), 0));
}

}  // namespace

RL_TEST_MAIN()
