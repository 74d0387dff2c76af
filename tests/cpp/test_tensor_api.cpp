// Tensors as libtorch programs use them: indices, options, accessors, memory of others, dispatch.
#include <unistd.h>

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
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

RL_TEST(sparse_tensors) {
  const torch::Tensor at = torch::tensor({{0, 1, 1}, {2, 0, 0}});
  const torch::Tensor values = torch::tensor({1.0F, 2.0F, 3.0F});
  const torch::Tensor coo = torch::sparse_coo_tensor(at, values, {2, 3});
  CHECK(coo.is_sparse() && !coo.is_sparse_csr() && coo.layout() == torch::kSparse);
  CHECK(torch::equal(coo.to_dense(), torch::tensor({{0.0F, 0.0F, 1.0F}, {5.0F, 0.0F, 0.0F}})));
  CHECK((torch::sparse_coo_tensor(at, values).sizes() == torch::IntArrayRef{2, 3}));
  const auto wide = torch::dtype(torch::kDouble).requires_grad(true);
  const torch::Tensor leaf = torch::sparse_coo_tensor(at, values, {2, 3}, wide);
  CHECK(leaf.dtype() == torch::kDouble && leaf.requires_grad() && leaf.is_leaf());
  CHECK(torch::sparse_coo_tensor({2, 3}, torch::kHalf)._nnz() == 0);
  CHECK_THROWS(c10::Error, "size is inconsistent", torch::sparse_coo_tensor(at, values, {2, 2}));
  CHECK_THROWS(c10::Error, "expected the layout",
               torch::sparse_coo_tensor(at, values, torch::layout(torch::kStrided)));
  const torch::Tensor csr = torch::sparse_csr_tensor(
      torch::tensor({0, 1, 2}), torch::tensor({2, 0}), values.slice(0, 1), {2, 3});
  CHECK(csr.is_sparse_csr() && csr.to_dense().sum().item<float>() == 5);
  const torch::Tensor csc =
      torch::sparse_csc_tensor(torch::tensor({0, 1, 2}), torch::tensor({1, 0}), values.slice(0, 1));
  CHECK(csc.layout() == torch::kSparseCsc && csc.size(0) == 2);
}

RL_TEST(transposed_views) {
  const torch::Tensor x = torch::arange(24).reshape({2, 3, 4});
  CHECK((x.mT().sizes() == torch::IntArrayRef{2, 4, 3}));
  CHECK((x.numpy_T().sizes() == torch::IntArrayRef{4, 3, 2}));
  const torch::Tensor z = torch::complex(torch::ones({2, 3}), torch::ones({2, 3}));
  CHECK(torch::imag(z.mH()).sum().item<float>() == -6);
  CHECK(torch::imag(z.matrix_H()).sum().item<float>() == -6);
  CHECK_THROWS(c10::Error, "only supported on matrices", x.matrix_H());
  CHECK_THROWS(c10::Error, "not a vector", torch::ones({2}).mT());
}

RL_TEST(memory_format_of_options) {
  const auto last = torch::TensorOptions().memory_format(torch::MemoryFormat::ChannelsLast);
  const std::vector<int64_t> strides = {60, 1, 15, 3};
  CHECK(last.has_memory_format() && !torch::TensorOptions().has_memory_format());
  CHECK(*torch::TensorOptions().merge_in(last).memory_format_opt() ==
        torch::MemoryFormat::ChannelsLast);
  // With an argument for it and without, of the size given, of a tensor's, and of data.
  CHECK(torch::empty({2, 3, 4, 5}, last).strides() == strides);
  CHECK(torch::ones({2, 3, 4, 5}, last.dtype(torch::kDouble)).strides() == strides);
  CHECK(torch::rand({2, 3, 4, 5}, last.requires_grad(true)).is_leaf());
  const torch::Tensor x = torch::arange(120).reshape({2, 3, 4, 5});
  CHECK(torch::zeros_like(x, last).strides() == strides);
  CHECK(torch::zeros_like(x.contiguous(torch::MemoryFormat::ChannelsLast),
                          torch::TensorOptions().memory_format(torch::MemoryFormat::Preserve))
            .strides() == strides);
  const torch::Tensor moved = x.to(last.dtype(torch::kInt));
  CHECK(moved.strides() == strides && moved.equal(x.to(torch::kInt)));
  CHECK_THROWS(c10::Error, "memory_format both in TensorOptions and explicit argument",
               torch::empty({2, 3, 4, 5}, last, torch::MemoryFormat::Contiguous));
  CHECK_THROWS(c10::Error, "memory_format both in TensorOptions and explicit argument",
               x.to(last, false, false, torch::MemoryFormat::Contiguous));
  CHECK_THROWS(c10::Error, "rank 4", torch::empty({2, 3}, last));
}

RL_TEST(what_extensions_ask) {
  const torch::Tensor x = torch::ones({2, 3, 4, 5});
  CHECK(x.suggest_memory_format() == torch::MemoryFormat::Contiguous);
  const torch::Tensor pixels = x.contiguous(torch::MemoryFormat::ChannelsLast);
  CHECK(pixels.suggest_memory_format() == torch::MemoryFormat::ChannelsLast);
  CHECK(pixels.slice(3, 0, 4).suggest_memory_format() == torch::MemoryFormat::ChannelsLast);
  CHECK(pixels.slice(3, 0, 4).suggest_memory_format(true) == torch::MemoryFormat::Contiguous);
  // Of one channel: plain strides are both.
  CHECK(torch::ones({2, 1, 4, 5}).suggest_memory_format() == torch::MemoryFormat::Contiguous);
  CHECK(torch::ones({2, 3, 1, 1}).suggest_memory_format() == torch::MemoryFormat::Contiguous);
  CHECK(torch::ones({2, 3, 4, 5, 6})
            .contiguous(torch::MemoryFormat::ChannelsLast3d)
            .suggest_memory_format() == torch::MemoryFormat::ChannelsLast3d);
  CHECK(x.is_alias_of(x.select(0, 1)) && !x.is_alias_of(x.clone()));
  CHECK(x.is_set_to(x.view_as(x)) && !x.is_set_to(x.select(0, 1)));
  CHECK(!x.is_pinned() && !x.is_quantized() && !x.is_mkldnn() && !x.is_xpu());
  CHECK(x.type().scalarType() == torch::kFloat && !x.type().is_cuda());
  CHECK(x.type() == torch::zeros({1}).type() && x.type() != torch::zeros({1}, torch::kLong).type());
  CHECK(x.type().toString() == "CPUFloatType");
  CHECK(AT_DISPATCH_FLOATING_TYPES(x.type(), "width", [&] { return sizeof(scalar_t); }) == 4);
  const auto packed =
      x.select(0, 0).select(0, 0).packed_accessor64<float, 2, torch::RestrictPtrTraits>();
  CHECK(packed[3][4] == 1);
  const torch::PackedTensorAccessor<float, 4, torch::RestrictPtrTraits, size_t> all =
      x.packed_accessor<float, 4, torch::RestrictPtrTraits, size_t>();
  CHECK(all.size(3) == 5 && all[1][2][3][4] == 1);
  CHECK(c10::CppTypeToScalarType<int64_t>::value == torch::kLong);
  const auto before = x._version();
  torch::autograd::increment_version(x);
  CHECK(x._version() == before + 1);
  CHECK(torch::zeros({1}, x.type().options()).dtype() == torch::kFloat);
}

RL_TEST(sizes_that_may_be_symbols_elsewhere) {
  const torch::Tensor x = torch::ones({2, 3});
  const c10::SymIntArrayRef sizes = x.sym_sizes();
  CHECK(sizes.size() == 2 && sizes[1] == 3 && sizes[0].expect_int() == 2);
  CHECK((torch::zeros(C10_AS_INTARRAYREF_SLOW(sizes)).sizes() == torch::IntArrayRef{2, 3}));
  CHECK(x.sym_size(-1) == 3 && x.sym_numel() == 6 &&
        x.sym_stride(0).guard_int(__FILE__, __LINE__) == 3);
}

RL_TEST(small_floats_among_themselves) {
  const c10::Half a = 1.0F;
  const c10::BFloat16 b = 3.0F;
  CHECK((std::is_same_v<decltype(a + a), c10::Half>));
  CHECK((std::is_same_v<decltype(b / b), c10::BFloat16>));
  CHECK((std::is_same_v<decltype(a * 2), c10::Half>));
  CHECK((std::is_same_v<decltype(a * 2.0F), float>));
  CHECK((std::is_same_v<decltype(a * 2.0), double>));
  CHECK(static_cast<float>(c10::Half(1.0F) / c10::Half(3.0F)) ==
        static_cast<float>(c10::Half(1.0F / 3.0F)));
}

RL_TEST(files_as_tensors) {
  const std::string path = "/tmp/rushlight_mapped_" + std::to_string(getpid());
  const torch::Tensor written = torch::from_file(path, true, 4, torch::kI32);
  written.fill_(7);
  CHECK(torch::equal(torch::from_file(path, false, 3, torch::kInt32),
                     torch::full({3}, 7, torch::kInt32)));
  CHECK(torch::from_file(path, {}, 16, torch::kU8)[4].item<int>() == 7);
  CHECK_THROWS(c10::Error, "too few bytes", torch::from_file(path, false, 5, torch::kF32));
  CHECK_THROWS(c10::Error, "not negative", torch::from_file(path, false, -1));
  CHECK_THROWS(c10::Error, "CPU only", torch::from_file(path, false, 1, torch::kMeta));
  std::remove(path.c_str());
  CHECK_THROWS(c10::Error, "unable to open file", torch::from_file(path, false, 1));
}

RL_TEST(casts_of_autocast) {
  const torch::Tensor w = torch::ones({2, 2}, torch::requires_grad());
  const auto cast = [&](const torch::Tensor& t) {
    return at::autocast::cached_cast(torch::kBFloat16, t, torch::kCPU);
  };
  CHECK(cast(w).dtype() == torch::kBFloat16);
  CHECK(cast(torch::ones({2}, torch::kInt)).dtype() == torch::kInt);
  CHECK(cast(torch::ones({2}, torch::kDouble)).dtype() == torch::kDouble);
  CHECK(at::autocast::cached_cast(torch::kHalf, w).dtype() == torch::kFloat);  // it is not on a GPU
  at::autocast::increment_nesting();
  CHECK(cast(w).is_same(cast(w)));
  at::autocast::decrement_nesting();
  at::autocast::clear_cache();
}

RL_TEST(other_windows_on_memory) {
  const torch::Tensor source = torch::arange(6).view({2, 3}).t();
  torch::Tensor x = torch::zeros({4}, torch::kLong);
  const auto version = x._version();
  x.set_(source);
  CHECK(torch::equal(x, source) && x.is_alias_of(source) && x.strides() == source.strides());
  CHECK(x._version() > version);
  x.set_(source.storage(), 1, {2, 2}, {3, 1});
  CHECK(torch::equal(x, torch::tensor({{1, 2}, {4, 5}})));
  x.set_(source.storage());
  CHECK(torch::equal(x, torch::arange(6)));
  x.set_(torch::empty({0}, torch::kLong).storage(), 0, {3});
  CHECK(x.storage()->nbytes() == 24);
  x.set_();
  CHECK(x.numel() == 0);
  CHECK_THROWS(c10::Error, "Could not set tensor", x.set_(torch::ones({2})));
  CHECK_THROWS(c10::Error, "invalid storage offset", x.set_(source.storage(), -1, {2}));
  CHECK_THROWS(c10::Error, "overflowed", x.set_(source.storage(), 0, {INT64_MAX, 3}, {3, 1}));
  CHECK_THROWS(c10::Error, "out of bounds", x.set_(source.storage(), INT64_MAX, {1}));
  CHECK_THROWS(c10::Error, "must match", x.set_(source.storage(), 0, {2, 2}, {1}));
  CHECK_THROWS(c10::Error, "a leaf Variable", torch::ones({2}).requires_grad_().set_());
}

RL_TEST(sizes_that_may_be_symbols) {
  const torch::Tensor x = torch::arange(12);
  const c10::SymInt three = 3;
  CHECK(x.view_symint({three, 4}).size(0) == 3);
  CHECK(torch::equal(x.reshape_symint(torch::ones({4, 3}).sym_sizes()), x.view({4, 3})));
  CHECK(torch::equal(x.narrow_symint(0, three, 2), x.narrow(0, 3, 2)));
  CHECK(torch::equal(x.slice_symint(0, c10::nullopt, three), x.slice(0, 0, 3)));
  CHECK(x.new_zeros_symint({three}, torch::kFloat).dtype() == torch::kFloat);
}

}  // namespace

RL_TEST_MAIN()
