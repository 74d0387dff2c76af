// Pointwise kernels that choose between formulas or check their operands first; ops/pointwise.py
// marks them manual=("kernel",). What stands in the host's memory can be looked at; what lies on
// the device cannot without waiting for it, so a zero divisor there is no error but gives the
// dividend.
#include <cmath>
#include <limits>

#include "cpu/pointwise_checks.h"
#include "cuda/column.h"
#include "cuda/pointwise.cuh"

namespace rushlight {

namespace cuda {
namespace {

#define RL_KERNEL(name, inputs, attributes, dtypes) \
  RL_CUDA_FORMULA(name, inputs, attributes, dtypes, Promote::Same)
RL_FOR_EACH_CHOICE(RL_KERNEL)
#undef RL_KERNEL

void run_scaled(const TensorIterator& it, const Scalar& factor, const char* name,
                const PointwiseKernel& plain, const PointwiseKernel& scaled) {
  if (factor.is_integral() && factor.as<int64_t>() == 1) {
    run_pointwise(it, plain);
    return;
  }
  cpu::check_factor(it, factor, name);
  const Scalar* const attributes[] = {&factor};
  run_pointwise(it, scaled, attributes);
}

// Where the divisor is a number of the host and the operands are integers.
void check_divisor(const TensorIterator& it) {
  if (it.is_on_host(2) && it.is_scalar(2)) {
    cpu::check_divisor(it);
  }
}

// where moves elements; operands of another dtype than the result's are converted on the way.
template <class T>
__global__ void __launch_bounds__(block_size)
    where_kernel(uint32_t n, StridedPorts<3> ports, Walk<4> walk, T yes, T no) {
  const uint32_t element = blockIdx.x * block_size + threadIdx.x;
  if (element >= n) {
    return;
  }
  int64_t at[4];
  walk.offsets(element, at);
  const bool condition = *reinterpret_cast<const uint8_t*>(ports.data[1] + at[1]) != 0;
  const int chosen = condition ? 2 : 3;
  const char* const p = ports.data[chosen];
  const T value =
      p == nullptr ? (condition ? yes : no) : load_as<T>(p + at[chosen], ports.dtype[chosen]);
  store_as<T>(ports.data[0] + at[0], ports.dtype[0], value);
}

template <class T>
void launch_where(const PointwiseWork& work, cudaStream_t stream) {
  StridedPorts<3> ports{};
  for (int i = 0; i < 4; i++) {
    ports.data[i] = work.data[i];
    ports.dtype[i] = work.dtype[i];
  }
  const T yes = work.data[2] == nullptr ? work.numbers[1].as<T>() : T();
  const T no = work.data[3] == nullptr ? work.numbers[2].as<T>() : T();
  where_kernel<T><<<blocks_for(work.numel), block_size, 0, stream>>>(
      static_cast<uint32_t>(work.numel), ports, walk_of<4>(work), yes, no);
}

}  // namespace
}  // namespace cuda

void cuda::add(TensorIterator& it, const Scalar& alpha) {
  run_scaled(it, alpha, "alpha", add_kernel, add_scaled_kernel);
}
void cuda::sub(TensorIterator& it, const Scalar& alpha) {
  cpu::check_no_bool(it);
  run_scaled(it, alpha, "alpha", sub_kernel, sub_scaled_kernel);
}
void cuda::rsub(TensorIterator& it, const Scalar& alpha) {
  cpu::check_no_bool(it);
  run_scaled(it, alpha, "alpha", rsub_kernel, rsub_scaled_kernel);
}
void cuda::neg(TensorIterator& it) {
  cpu::check_no_bool(it);
  run_pointwise(it, neg_kernel);
}
void cuda::addcmul(TensorIterator& it, const Scalar& value) {
  run_scaled(it, value, "value", addcmul_plain_kernel, addcmul_kernel);
}
void cuda::addcdiv(TensorIterator& it, const Scalar& value) {
  cpu::check_true_division(it);
  run_scaled(it, value, "value", addcdiv_plain_kernel, addcdiv_kernel);
}
void cuda::lerp(TensorIterator& it) {
  cpu::check_one_dtype(it);
  run_pointwise(it, lerp_kernel);
}
void cuda::_clamp(TensorIterator& it) { run_pointwise(it, clamp_kernel); }
void cuda::_div_trunc(TensorIterator& it) {
  check_divisor(it);
  run_pointwise(it, div_trunc_kernel);
}
void cuda::floor_divide(TensorIterator& it) {
  check_divisor(it);
  run_pointwise(it, floor_divide_kernel);
}
void cuda::remainder(TensorIterator& it) {
  check_divisor(it);
  run_pointwise(it, remainder_kernel);
}
void cuda::nextafter(TensorIterator& it) {
  const ScalarType t = it.common_dtype();
  run_pointwise(it, t == kHalf       ? next_half_kernel
                    : t == kBFloat16 ? next_bfloat16_kernel
                                     : nextafter_kernel);
}
void cuda::fmod(TensorIterator& it) {
  check_divisor(it);
  run_pointwise(it, fmod_kernel);
}

void cuda::_where(TensorIterator& it) {
  if (it.numel() == 0) {
    return;
  }
  const PointwiseWork work = describe(it);
  RL_CHECK(work.data[1] != nullptr, "where: the condition must lie on ", it.device());
  const Launch launch(it.device());
  visit_dtype<set_all>("where", it.common_dtype(), [&](auto tag) {
    for_each_part(work, [&](const PointwiseWork& part) {
      launch_where<typename decltype(tag)::type>(part, launch.stream());
    });
  });
  launch.done();
}

// Small constant powers have formulas of their own, which are exact where powf is not.
void cuda::pow(TensorIterator& it) {
  const ScalarType t = it.common_dtype();
  if (it.is_on_host(2) && it.is_scalar(2) && it.numel() != 0) {
    const double power = cpu::checked_power(it);
    const PointwiseKernel* chosen = nullptr;
    if (power == 2) {
      chosen = &square_kernel;
    } else if (power == 3) {
      chosen = &cube_kernel;
    } else if (is_floating(t) && (power == 0.5 || power == -0.5)) {
      chosen = power > 0 ? &sqrt_kernel : &rsqrt_kernel;
    } else if (is_differentiable(t) && (power == -1 || power == -2)) {
      chosen = power == -1 ? &reciprocal_kernel : &inverse_square_kernel;
    }
    if (chosen != nullptr) {
      return run_pointwise(it, *chosen);
    }
  }
  run_pointwise(it, pow_kernel);
}

void cuda::round_decimals(TensorIterator& it, int64_t decimals) {
  if (decimals == 0) {
    return run_pointwise(it, round_kernel);
  }
  if (!is_floating(it.common_dtype())) {
    dtype_not_implemented("round", it.common_dtype());
  }
  const Scalar scale(std::pow(10.0, static_cast<double>(decimals < 0 ? -decimals : decimals)));
  const Scalar* const attributes[] = {&scale};
  run_pointwise(it, decimals > 0 ? round_decimals_kernel : round_tens_kernel, attributes);
}

void cuda::gelu(TensorIterator& it, std::string_view approximate) {
  run_pointwise(it, approximate == "tanh" ? gelu_tanh_kernel : gelu_erf_kernel);
}
void cuda::gelu_backward(TensorIterator& it, std::string_view approximate) {
  run_pointwise(it, approximate == "tanh" ? gelu_tanh_backward_kernel : gelu_erf_backward_kernel);
}

void cuda::_nan_to_num(TensorIterator& it, std::optional<double> nan, std::optional<double> posinf,
                       std::optional<double> neginf) {
  double largest = std::numeric_limits<double>::max();
  switch (it.common_dtype()) {
    case kFloat16:
      largest = 65504.0;
      break;
    case kBFloat16:
      largest = 0x1.fep127;
      break;
    case kFloat32:
      largest = std::numeric_limits<float>::max();
      break;
    default:
      break;
  }
  const Scalar values[] = {nan.value_or(0.0), posinf.value_or(largest), neginf.value_or(-largest)};
  const Scalar* const attributes[] = {&values[0], &values[1], &values[2]};
  run_pointwise(it, nan_to_num_kernel, attributes);
}

}  // namespace rushlight
