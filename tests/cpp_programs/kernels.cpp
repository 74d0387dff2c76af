// Kernels of extensions: TensorIterator, the macros that choose a dtype, libtorch's helpers
// (tests/python/test_cpp_kernels.py).
#include <ATen/ATen.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cpu/Loops.h>
#include <c10/util/irange.h>
#include <torch/library.h>
#include <torch/torch.h>

namespace {

at::Tensor fused(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor out;
  auto iter = at::TensorIteratorConfig()
                  .add_output(out)
                  .add_input(a)
                  .add_input(b)
                  .promote_inputs_to_common_dtype(true)
                  .build();
  AT_DISPATCH_ALL_TYPES_AND3(at::kHalf, at::kBFloat16, at::kBool, iter.dtype(), "fused", [&] {
    at::native::cpu_kernel(iter, [](scalar_t x, scalar_t y) -> scalar_t { return x * y + x; });
  });
  return iter.output();
}
at::Tensor& fused_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  auto iter = at::TensorIterator::binary_op(out, a, b);
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), "fused_out", [&] {
    at::native::cpu_kernel(iter, [](scalar_t x, scalar_t y) -> scalar_t { return x * y + x; });
  });
  return out;
}
at::Tensor greater(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor out;
  auto iter = at::TensorIterator::comparison_op(out, a, b);
  AT_DISPATCH_V2(iter.input_dtype(), "greater", AT_WRAP([&] {
                   at::native::cpu_kernel(iter, [](scalar_t x, scalar_t y) { return x > y; });
                 }),
                 AT_EXPAND(AT_ALL_TYPES), at::kBool);
  return out;
}
at::Tensor counted(at::Tensor out, int64_t from) {
  auto iter = at::TensorIterator::nullary_op(out);
  at::native::cpu_serial_kernel(iter, [&]() -> int64_t { return from++; });
  return out;
}
double total(const at::Tensor& x) {
  double sum = 0;
  at::TensorIteratorConfig().check_all_same_dtype(false).add_input(x).build().serial_for_each(
      [&](char** data, const int64_t* strides, int64_t n) {
        for (const auto i : c10::irange(n)) {
          sum += *reinterpret_cast<const double*>(data[0] + i * strides[0]);
        }
      });
  return sum;
}
std::string name_of(const at::Tensor& x) {
  return AT_DISPATCH_SWITCH(x.scalar_type(), "name_of", AT_DISPATCH_CASE_FLOATING_TYPES([&] {
                              return std::string(sizeof(scalar_t) == 8 ? "d" : "f");
                            }) AT_DISPATCH_CASE(at::kBool, [&] { return std::string("b"); }));
}
int64_t picked(const at::Tensor& index) {
  return AT_DISPATCH_INDEX_TYPES(index.scalar_type(), "picked",
                                 ([&]() -> int64_t { return index.const_data_ptr<index_t>()[0]; }));
}
// What is of the chosen type is known inside: no `template` before data_ptr.
double first(const at::Tensor& x, const at::Tensor& y) {
  at::TensorArg a{x, "x", 1}, b{y, "y", 2};
  at::CheckedFrom c = "first";
  at::checkAllDefined(c, {a, b});
  at::checkDim(c, a, 1);
  at::checkAllSameSize(c, {a, b});
  at::checkSameType(c, a, b);
  at::checkContiguous(c, a);
  TORCH_CHECK(x.numel() > 0, "nothing is there")
  const auto held = c10::MaybeOwned<at::Tensor>::borrowed(x);
  double out = torch::autograd::any_variable_requires_grad({x, y}) ? 100 : 0;
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "first", [&] {
    auto sum = *held + at::native::zeros_like(y).fill_(scalar_t(1));
    const auto* p = sum.data_ptr<scalar_t>();
    out += static_cast<double>(p[0]);
  });
  return out;
}
std::vector<int64_t> helpers() {
  const double sum = at::parallel_reduce(
      0, 1000, 64, 0.0,
      [](int64_t begin, int64_t end, double x) {
        for (const auto i : c10::irange(begin, end)) {
          x += static_cast<double>(i);
        }
        return x;
      },
      std::plus<double>());
  std::vector<int64_t> out = at::infer_size({2, 1}, {3});
  out.push_back(static_cast<int64_t>(sum));
  out.push_back(at::divup(7, 2));
  {
    const torch::autograd::DetectAnomalyGuard guard;
    out.push_back(torch::autograd::AnomalyMode::is_enabled() ? 1 : 0);
  }
  out.push_back(torch::autograd::AnomalyMode::is_enabled() ? 1 : 0);
  c10::SmallVector<int64_t, 5> small;
  small.push_back(at::globalContext().hasCUDA() ? 9 : 4);
  out.push_back(at::zeros(small).numel());
  return out;
}

}  // namespace

TORCH_LIBRARY(kernels, m) {
  m.def("fused", fused);
  m.def("fused_out(Tensor a, Tensor b, Tensor(a!) out) -> Tensor(a!)", fused_out);
  m.def("greater", greater);
  m.def("counted", counted);
  m.def("total", total);
  m.def("name_of", name_of);
  m.def("picked", picked);
  m.def("first", first);
  m.def("helpers", helpers);
}
