// What extensions and kernels lean on by libtorch's names: vectors, accumulation types, positions,
// bits, geometry, checks, flat tensors, DLPack, memory with its owner, dispatch over more dtypes.
#include <ATen/AccumulateType.h>
#include <ATen/DLConvertor.h>
#include <ATen/TensorGeometry.h>
#include <ATen/TensorUtils.h>
#include <ATen/cpu/vec/functional.h>
#include <ATen/native/cpu/utils.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Unroll.h>
#include <c10/util/bit_cast.h>
#include <c10/util/llvmMathExtras.h>
#include <torch/csrc/utils/tensor_flatten.h>
#include <torch/torch.h>

#include "check.h"

namespace {

template <class T, bool is_cuda>
constexpr at::ScalarType sum_type = c10::CppTypeToScalarType<at::acc_type<T, is_cuda>>::value;

RL_TEST(sums_are_kept_in_wider_types) {
  CHECK((sum_type<float, false> == at::kDouble && sum_type<float, true> == at::kFloat));
  CHECK((sum_type<at::Half, false> == at::kFloat && sum_type<at::BFloat16, true> == at::kFloat));
  CHECK((sum_type<uint8_t, false> == at::kLong && sum_type<int, true> == at::kLong));
  CHECK((sum_type<bool, false> == at::kBool && sum_type<at::Float8_e5m2, false> == at::kFloat));
  CHECK((sum_type<c10::complex<float>, false> == at::kComplexDouble));
  CHECK((sum_type<c10::complex<float>, true> == at::kComplexFloat));
  CHECK((sum_type<c10::complex<at::Half>, false> == at::kComplexFloat));
}

RL_TEST(vectors_compute_as_their_elements) {
  using Vec = at::vec::Vectorized<float>;
  CHECK(Vec::size() == 8 && at::vec::Vectorized<at::BFloat16>::size() == 16);
  const at::Tensor a = torch::arange(1.0, 12.0), b = torch::linspace(-1, 1, 11);
  at::Tensor out = torch::empty(11);
  at::vec::map2([](const Vec& x, const Vec& y) { return at::vec::fmadd(x, y, y.exp()); },
                out.data_ptr<float>(), a.data_ptr<float>(), b.data_ptr<float>(), 11);
  CHECK(torch::allclose(out, a * b + b.exp()));
  at::vec::map([](const Vec& x) { return x.sqrt() - x.tanh() / Vec(2); }, out.data_ptr<float>(),
               a.data_ptr<float>(), 11);
  CHECK(torch::allclose(out, a.sqrt() - a.tanh() / 2));
  const auto add = [](const Vec& x, const Vec& y) { return x + y; };
  const auto larger = [](const Vec& x, const Vec& y) { return at::vec::maximum(x, y); };
  CHECK(at::vec::reduce_all<float>(add, a.data_ptr<float>(), 11) == 66);
  CHECK(at::vec::reduce_all<float>(larger, b.data_ptr<float>(), 11) == 1);
  CHECK(at::vec::map_reduce_all<float>([](const Vec& x) { return x * x; }, add, a.data_ptr<float>(),
                                       11) == 506);
  const Vec steps = Vec::arange(0.0F, 2.0F);
  const Vec mask = steps > Vec(5);
  CHECK(Vec::blendv(Vec(0), steps, mask)[2] == 0 && Vec::blendv(Vec(0), steps, mask)[3] == 6);
  CHECK((mask & steps)[3] == 6 && steps.gt(Vec(5))[3] == 1 && (steps == steps).is_set(0));
  CHECK(steps.zero_mask() == 1 && at::vec::clamp(steps, Vec(1), Vec(3))[7] == 3);
  CHECK(Vec::loadu(a.data_ptr<float>(), 3)[2] == 3 && Vec::loadu(a.data_ptr<float>(), 3)[3] == 0);
  CHECK(std::isnan(at::vec::maximum(Vec(NAN), Vec(1))[0]));
  CHECK(std::isnan(at::vec::minimum(Vec(1), Vec(NAN))[0]));
  const auto [low, high] =
      at::vec::convert_to_float(at::vec::Vectorized<at::BFloat16>::arange(at::BFloat16(0), 1));
  CHECK(low[7] == 7 && high[7] == 15);
  CHECK(static_cast<float>(at::vec::convert_from_float<at::Half>(low, high)[12]) == 12);
  const at::vec::Vectorized<int64_t> ints(1, 2, 3, 4);
  CHECK((ints * ints)[3] == 16 && (-ints)[0] == -1);
}

RL_TEST(positions_bits_and_unrolled_loops) {
  int64_t i = 0, j = 0;
  CHECK(at::native::data_index_init(int64_t{7}, i, int64_t{2}, j, int64_t{3}) == 1);
  CHECK(i == 0 && j == 1);
  at::native::data_index_init(int64_t{5}, i, int64_t{2}, j, int64_t{3});
  CHECK(i == 1 && j == 2 && at::native::data_index_step(i, int64_t{2}, j, int64_t{3}));
  CHECK(i == 0 && j == 0 && !at::native::data_index_step(i, int64_t{2}, j, int64_t{3}) && j == 1);
  int sum = 0;
  c10::ForcedUnroll<4>{}([&](auto k, int by) { sum += k * by; }, 10);
  CHECK(sum == 60);
  CHECK(c10::bit_cast<uint32_t>(1.0F) == 0x3F800000U);
  CHECK(c10::llvm::Log2_64(1000) == 9 && c10::llvm::Log2_64_Ceil(1000) == 10);
  CHECK(c10::llvm::NextPowerOf2(64) == 128 && c10::llvm::PowerOf2Ceil(64) == 64);
  CHECK(c10::llvm::countLeadingZeros(1U) == 31 && c10::llvm::countTrailingZeros(8U) == 3);
  CHECK(c10::llvm::isPowerOf2_64(64) && !c10::llvm::isPowerOf2_64(0));
}

RL_TEST(geometry_without_memory) {
  const at::Tensor t = torch::ones({2, 3});
  const at::TensorGeometry g(t.t());
  CHECK(g.sizes() == at::IntArrayRef({3, 2}) && g.strides() == at::IntArrayRef({1, 3}));
  CHECK(g.numel() == 6 && g.dim() == 2 && !g.is_contiguous() && g.size(-1) == 2);
  CHECK(g.transpose(0, 1).sizes() == t.sizes() && g.transpose(0, 1).is_contiguous());
  CHECK_THROWS(c10::IndexError, "Dimension out of range", g.size(2));
}

RL_TEST(checks_name_the_argument) {
  const at::Tensor a = torch::ones({2, 3}), b = torch::ones(2);
  const at::TensorArg x(a, "x", 1), y(b, "y", 2);
  at::checkDeviceType("f", {a, b}, at::kCPU);
  CHECK_THROWS(c10::Error, "Expected tensor to have cuda DeviceType",
               (at::checkDeviceType("f", {a}, at::kCUDA), 0));
  CHECK_THROWS(c10::Error, "expected it to be on GPU", (at::checkAllSameGPU("f", {x, y}), 0));
  CHECK_THROWS(c10::Error, "to have Sparse Layout", (at::checkLayout("f", a, at::kSparse), 0));
  CHECK_THROWS(c10::Error, "same number of elements", (at::checkAllSameNumel("f", {x, y}), 0));
  CHECK_THROWS(c10::Error, "tensor.size[0] == 3", (at::check_dim_size(a, 2, 0, 3), 0));
}

RL_TEST(tensors_as_one_and_back) {
  const std::vector<at::Tensor> parts = {torch::rand({2, 2}).t(), torch::rand({0}), torch::rand(3)};
  const at::Tensor flat = torch::utils::flatten_dense_tensors(parts);
  CHECK(flat.sizes() == at::IntArrayRef({7}));
  const auto views = torch::utils::unflatten_dense_tensors(flat, parts);
  for (size_t k = 0; k < parts.size(); k++) {
    CHECK(torch::equal(views[k], parts[k]));
  }
}

RL_TEST(dlpack_shares_memory) {
  at::Tensor t = torch::arange(6).reshape({2, 3}).t();
  DLManagedTensor* const managed = at::toDLPack(t);
  CHECK(managed->dl_tensor.ndim == 2 && managed->dl_tensor.shape[0] == 3);
  CHECK(managed->dl_tensor.strides[0] == 1 && managed->dl_tensor.dtype.code == kDLInt);
  CHECK(managed->dl_tensor.dtype.bits == 64 && managed->dl_tensor.device.device_type == kDLCPU);
  const at::Tensor back = at::fromDLPack(managed);
  t[0][1] = 30;
  CHECK(torch::equal(back, t) && back.data_ptr() == t.data_ptr());
  int freed = 0;
  {
    DLManagedTensor* const other = at::toDLPack(t);
    const at::Tensor third = at::fromDLPack(other, [&](void* it) {
      freed++;
      static_cast<DLManagedTensor*>(it)->deleter(static_cast<DLManagedTensor*>(it));
    });
    CHECK(third.strides() == t.strides() && freed == 0);
  }
  CHECK(freed == 1);
  CHECK(at::toScalarType(at::getDLDataType(torch::empty(1, at::kBFloat16))) == at::kBFloat16);
  CHECK_THROWS(c10::Error, "Unsupported dtype", at::toScalarType(DLDataType{kDLFloat, 24, 1}));
  CHECK_THROWS(c10::Error, "meta", at::toDLPack(torch::empty(1, at::kMeta)));
}

RL_TEST(memory_has_an_owner) {
  c10::Allocator* const allocator = at::getCPUAllocator();
  at::DataPtr memory = allocator->allocate(100);
  CHECK(memory.get() != nullptr && memory.device().is_cpu() && memory != nullptr);
  CHECK(reinterpret_cast<uintptr_t>(memory.get()) % 64 == 0);
  memory.clear();
  CHECK(memory == nullptr);
  static int freed = 0;
  {
    int place = 0;
    torch::DataPtr own(&place, &place, [](void*) { freed++; }, at::kCPU);
    const torch::DataPtr moved = std::move(own);
    CHECK(moved.get() == &place && freed == 0);
  }
  CHECK(freed == 1);
  void* const raw = allocator->raw_allocate(8);
  allocator->raw_deallocate(raw);
  c10::free_cpu(c10::alloc_cpu(10));
  CHECK(c10::alloc_cpu(0) == nullptr);
}

template <class F>
int64_t size_by(at::ScalarType type, const F& f) {
  return f(type);
}
RL_TEST(dispatch_over_more_dtypes) {
  const auto five = [](at::ScalarType type) -> int64_t {
    return AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND5(
        at::kHalf, at::kBFloat16, at::kBool, at::kUInt16, at::kFloat8_e5m2, type, "five",
        [&] { return static_cast<int64_t>(sizeof(scalar_t)); });
  };
  CHECK(size_by(at::kComplexDouble, five) == 16 && size_by(at::kFloat8_e5m2, five) == 1);
  CHECK(size_by(at::kBool, five) == 1 && size_by(at::kInt, five) == 4);
  CHECK_THROWS(c10::Error, "\"five\" not implemented for 'UInt64'", size_by(at::kUInt64, five));
  const auto cases = [](at::ScalarType type) -> int64_t {
    return AT_DISPATCH_SWITCH(type, "cases",
                              AT_DISPATCH_CASE_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, [] {
                                return 1;
                              }) AT_DISPATCH_CASE_INTEGRAL_TYPES_AND(at::kBool, [] { return 2; }));
  };
  CHECK(size_by(at::kHalf, cases) == 1 && size_by(at::kDouble, cases) == 1);
  CHECK(size_by(at::kBool, cases) == 2 && size_by(at::kByte, cases) == 2);
}

}  // namespace

RL_TEST_MAIN()
