// Ops over the stable ABI. One binary of it, whoever's headers it is compiled with, loads in
// rushlight and in PyTorch: tests/python/test_stable_abi.py, tests/parity/test_stable_abi.py.
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/device.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/Dispatch_v2.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/core/TensorAccessor.h>
#include <torch/headeronly/util/Exception.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Device;
using torch::stable::Tensor;
namespace stable = torch::stable;

Tensor scaled(const Tensor& x, double by) {
  const Tensor from = stable::contiguous(x);
  Tensor out = stable::empty_like(from);
  THO_DISPATCH_V2(from.scalar_type(), "scaled", AT_WRAP([&] {
                    const scalar_t* a = from.const_data_ptr<scalar_t>();
                    scalar_t* b = out.mutable_data_ptr<scalar_t>();
                    stable::parallel_for(0, from.numel(), 1000, [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; i++) {
                        b[i] = static_cast<scalar_t>(static_cast<double>(a[i]) * by);
                      }
                    });
                  }),
                  AT_EXPAND(AT_ALL_TYPES), ScalarType::Half, ScalarType::BFloat16);
  return out;
}

Tensor joined(std::vector<Tensor> list) {
  STD_TORCH_CHECK(!list.empty(), "nothing to join, not even ", 1);
  int64_t n = 0;
  for (const Tensor& t : list) {
    n += t.numel();
  }
  Tensor out = stable::new_zeros(list[0], {n});
  int64_t at = 0;
  for (Tensor& t : list) {
    Tensor part = stable::narrow(out, 0, at, t.numel());
    stable::copy_(part, stable::flatten(t));
    at += t.numel();
  }
  return out;
}

std::tuple<Tensor, int64_t, std::string, std::vector<int64_t>, std::optional<double>> parts(
    Tensor x, std::vector<int64_t> sizes, std::optional<Tensor> y, bool flag, std::string word,
    std::optional<double> number) {
  int64_t count = 0;
  for (const int64_t n : sizes) {
    count += n;
  }
  if (number.has_value()) {
    number = *number * 2;
  }
  return {y.has_value() ? *y : x, flag ? count : -count, word + "!", sizes, number};
}

Tensor made(std::vector<int64_t> size, ScalarType dtype, Device device) {
  return stable::full(size, 7, dtype, std::nullopt, device, false);
}

void fill_(Tensor x, double value) { stable::fill_(x, value); }

double trace(Tensor x) {
  double sum = 0;
  const auto rows = torch::headeronly::HeaderOnlyTensorAccessor<double, 2>(
      x.mutable_data_ptr<double>(), x.sizes().data(), x.strides().data());
  for (int64_t i = 0; i < x.size(0) && i < x.size(1); i++) {
    sum += rows[i][i];
  }
  return sum;
}

// What a tensor is, as text.
std::string told(Tensor x) {
  std::string out = std::to_string(x.dim()) + " " + std::to_string(x.numel());
  for (const int64_t s : x.strides()) {
    out += " " + std::to_string(s);
  }
  out += x.is_contiguous() ? " contiguous" : " strided";
  out += " " + std::to_string(x.element_size()) + " " + std::to_string(x.storage_offset());
  out += std::string(x.is_cpu() ? " cpu" : "") + (x.is_cuda() ? " cuda" : "");
  out += x.device() == Device("cpu") ? " here " : " elsewhere ";
  return out + std::to_string(x.get_device_index()) + (x.defined() ? "" : " undefined");
}

// The functions of torch::stable, one after the other.
std::vector<Tensor> all(Tensor x) {
  std::vector<Tensor> out;
  const Tensor copy = stable::clone(x);
  out.push_back(stable::transpose(copy, 0, 1));
  out.push_back(stable::unsqueeze(copy, 0));
  out.push_back(stable::squeeze(out.back(), 0));
  out.push_back(stable::select(copy, 0, 1));
  out.push_back(stable::matmul(copy, stable::transpose(copy, 0, 1)));
  out.push_back(stable::amax(copy, 1));
  out.push_back(stable::amax(copy, {0, 1}, true));
  out.push_back(stable::pad(copy, {1, 2}, "constant", 5));
  out.push_back(stable::reshape(copy, {-1}));
  out.push_back(stable::view(copy, {copy.numel(), 1}));
  out.push_back(stable::to(copy, ScalarType::Float));
  out.push_back(stable::to(copy, Device("cpu")));
  out.push_back(stable::sum(copy));
  out.push_back(stable::sum(copy, std::vector<int64_t>{1}, true, ScalarType::Double));
  Tensor into = stable::new_empty(copy, {copy.size(1)});
  out.push_back(stable::sum_out(into, copy, std::vector<int64_t>{0}));
  out.push_back(stable::subtract(copy, copy, 0.5));
  Tensor zeros = stable::empty({2}, ScalarType::Long);
  out.push_back(stable::zero_(zeros));
  static double memory[] = {1, 2, 3, 4};
  out.push_back(stable::from_blob(memory, {2}, {2}, Device(torch::headeronly::DeviceType::CPU),
                                  ScalarType::Double, 1));
  return out;
}

int64_t deleted = 0;
Tensor lent() {
  auto* memory = new float[2]{1, 2};
  return stable::from_blob(memory, {2}, {1}, Device("cpu"), ScalarType::Float, [](void* data) {
    delete[] static_cast<float*>(data);
    deleted++;
  });
}
int64_t num_deleted() { return deleted; }

Tensor wrong(Tensor x) { return stable::view(x, {x.numel() + 1}); }

}  // namespace

STABLE_TORCH_LIBRARY(stable_test, m) {
  m.def("scaled(Tensor x, float by=2.0) -> Tensor", {at::Tag::pt2_compliant_tag});
  m.def("joined(Tensor[] list) -> Tensor");
  m.def(
      "parts(Tensor x, int[] sizes, Tensor? y, bool flag, str word, float? number=None) -> "
      "(Tensor, "
      "int, str, int[], float?)");
  m.def("made(int[] size, ScalarType dtype, Device device) -> Tensor");
  m.def("fill_(Tensor(a!) x, float value) -> ()");
  m.def("trace(Tensor x) -> float");
  m.def("told(Tensor x) -> str");
  m.def("all(Tensor x) -> Tensor[]");
  m.def("lent() -> Tensor");
  m.def("num_deleted() -> int");
  m.def("wrong(Tensor x) -> Tensor");
}
STABLE_TORCH_LIBRARY_IMPL(stable_test, CPU, m) {
  m.impl("scaled", TORCH_BOX(&scaled));
  m.impl("fill_", TORCH_BOX(&fill_));
}
STABLE_TORCH_LIBRARY_IMPL(stable_test, CompositeExplicitAutograd, m) {
  m.impl("joined", TORCH_BOX(&joined));
  m.impl("parts", TORCH_BOX(&parts));
  m.impl("made", TORCH_BOX(&made));
  m.impl("trace", TORCH_BOX(&trace));
  m.impl("told", TORCH_BOX(&told));
  m.impl("all", TORCH_BOX(&all));
  m.impl("lent", TORCH_BOX(&lent));
  m.impl("num_deleted", TORCH_BOX(&num_deleted));
  m.impl("wrong", TORCH_BOX(&wrong));
}
