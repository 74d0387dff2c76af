// Functions in the place of the table's ops (tests/python/test_cpp_overrides.py).
#include <torch/library.h>
#include <torch/torch.h>

namespace {

int64_t calls = 0;

at::Tensor my_neg(const at::Tensor& self) {
  calls++;
  return self + 10;
}
at::Tensor& my_neg_(at::Tensor& self) { return self.fill_(7); }
at::Tensor my_sum(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim,
                  std::optional<at::ScalarType> dtype) {
  TORCH_CHECK(dim.has_value() && !keepdim && !dtype.has_value());
  return self.select((*dim)[0], 0).clone();
}
at::Tensor my_cat(const at::TensorList& tensors, int64_t dim) { return tensors[0] + dim; }
std::tuple<at::Tensor, at::Tensor> my_sort(const at::Tensor& self, int64_t, bool descending) {
  return {self + 1, at::zeros_like(self).to(at::kLong) + (descending ? 1 : 0)};
}
at::Tensor my_empty(at::IntArrayRef size, std::optional<at::ScalarType>, std::optional<at::Layout>,
                    std::optional<at::Device>, std::optional<bool>,
                    std::optional<at::MemoryFormat>) {
  return at::full(size, 3);
}
// Its gradient is a hundred times the true one.
struct Abs : torch::autograd::Function<Abs> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x) {
    const at::AutoDispatchBelowADInplaceOrView below;
    ctx->save_for_backward({x});
    return at::abs(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    return {grads[0] * ctx->get_saved_variables()[0].sign() * 100};
  }
};
at::Tensor my_abs(const at::Tensor& x) { return Abs::apply(x); }

// Told the keys of the call, it goes on below autograd.
at::Tensor my_exp(c10::DispatchKeySet keys, const at::Tensor& x) {
  TORCH_CHECK(keys.has(c10::DispatchKey::AutogradCPU));
  static auto op = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("aten::exp", "")
                       .typed<at::Tensor(const at::Tensor&)>();
  calls++;
  return op.redispatch(keys & c10::after_autograd_keyset, x);
}
void boxed_cos(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  calls++;
  op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
}
void unknown(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::Tensor x = torch::jit::pop(stack).toTensor();
  torch::jit::push(stack, x - static_cast<double>(op.schema().arguments().size()));
}
int64_t count() { return calls; }
bool tagged(const std::string& name, const std::string& overload, int64_t tag) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name.c_str(), overload.c_str())
      .hasTag(static_cast<at::Tag>(tag));
}

}  // namespace

TORCH_LIBRARY(overrides, m) {
  m.def("count() -> int", count);
  m.def("tagged", tagged);
  m.def("lonely(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag, at::Tag::pointwise});
  m.def("listed(Tensor x) -> Tensor", my_neg, {at::Tag::core});
}
TORCH_LIBRARY_FRAGMENT(aten, m) { m.def("overrides_more(Tensor x) -> Tensor", my_neg); }
TORCH_LIBRARY_IMPL(aten, CPU, m) {
  m.impl("neg", my_neg);
  m.impl("neg_", TORCH_FN(my_neg_));
  m.impl("aten::sum.dim_IntList", my_sum);
  m.impl("cat", my_cat);
  m.impl("sort", my_sort);
  m.impl("empty.memory_format", my_empty);
  m.impl("no_such_op", my_neg);
}
TORCH_LIBRARY_IMPL(aten, Autograd, m) { m.impl("abs", my_abs); }
TORCH_LIBRARY_IMPL(aten, AutogradCPU, m) {
  m.impl("exp", my_exp);
  m.impl("cos", torch::CppFunction::makeFromBoxedFunction<&boxed_cos>());
  m.impl("sin", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("neg", my_abs); }
TORCH_LIBRARY_IMPL(_, CPU, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&unknown>()); }
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&unknown>());
}
