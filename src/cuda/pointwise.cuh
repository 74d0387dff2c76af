// What turns a formula into device kernels. For each dtype a *contiguous* kernel, which moves 16
// bytes at a time where all operands lie without gaps in the common dtype, and for each compute
// type a *strided* one for everything else: any layout, and operands of any dtype, converted as
// they are read. Python numbers and 0-d CPU tensors travel as arguments. What a launch needs is
// decided outside of templates, by run_pointwise in pointwise.cpp.
#pragma once

#include "cuda/column.h"
#include "cuda/element.cuh"
#include "cuda/pointwise.h"
#include "cuda/runtime.h"
#include "kernels/gamma_random.h"
#include "kernels/pointwise_kernel.h"
#include "kernels/special.h"

namespace rushlight::cuda {

// Inputs that are numbers, and attributes, in the compute type.
template <class T, int Inputs, int Attributes>
struct Constants {
  T input[Inputs];
  T attribute[Attributes + 1];
};

template <class T, class F, int Inputs, int Attributes, size_t... I, size_t... A>
__device__ __forceinline__ auto apply(const T (&x)[Inputs],
                                      const Constants<T, Inputs, Attributes>& c,
                                      std::index_sequence<I...>, std::index_sequence<A...>) {
  return F{}(x[I]..., c.attribute[A]...);
}

template <class S, int N>
struct alignas(sizeof(S) * N) Pack {
  S at[N];
};
template <int Inputs>
struct ContiguousPorts {
  void* out;
  const void* in[Inputs];  // null for a number
  bool one[Inputs];        // a single element, for all
};

// S: dtype of the inputs; R: of the output.
template <class S, class R, class F, int Inputs, int Attributes, int N>
__global__ void __launch_bounds__(block_size)
    contiguous_kernel(uint32_t n, ContiguousPorts<Inputs> ports,
                      Constants<compute_t<S>, Inputs, Attributes> c) {
  using T = compute_t<S>;
  const uint32_t start = (blockIdx.x * block_size + threadIdx.x) * N;
  if (start >= n) {
    return;
  }
  T x[Inputs][N];
  const bool whole = start + N <= n;
  for (int i = 0; i < Inputs; i++) {
    const S* p = static_cast<const S*>(ports.in[i]);
    if (p == nullptr || ports.one[i]) {
      const T value = p == nullptr ? c.input[i] : widen(*p);
      for (int k = 0; k < N; k++) {
        x[i][k] = value;
      }
    } else if (whole) {
      const Pack<S, N> pack = *reinterpret_cast<const Pack<S, N>*>(p + start);
      for (int k = 0; k < N; k++) {
        x[i][k] = widen(pack.at[k]);
      }
    } else {
      for (int k = 0; k < N; k++) {
        x[i][k] = start + k < n ? widen(p[start + k]) : T();
      }
    }
  }
  Pack<R, N> result;
  for (int k = 0; k < N; k++) {
    T element[Inputs];
    for (int i = 0; i < Inputs; i++) {
      element[i] = x[i][k];
    }
    using Wide = compute_t<R>;
    result.at[k] = narrow<R>(static_cast<Wide>(apply<T, F, Inputs, Attributes>(
        element, c, std::make_index_sequence<Inputs>(), std::make_index_sequence<Attributes>())));
  }
  R* out = static_cast<R*>(ports.out);
  if (whole) {
    *reinterpret_cast<Pack<R, N>*>(out + start) = result;
  } else {
    for (int k = 0; k < N && start + k < n; k++) {
      out[start + k] = result.at[k];
    }
  }
}

template <int Inputs>
struct StridedPorts {
  char* data[Inputs + 1];  // the output first; null for a number
  ScalarType dtype[Inputs + 1];
};

// T: compute type; R: what the formula gives.
template <class T, class R, class F, int Inputs, int Attributes>
__global__ void __launch_bounds__(block_size)
    strided_kernel(uint32_t n, StridedPorts<Inputs> ports, Walk<Inputs + 1> walk,
                   Constants<T, Inputs, Attributes> c) {
  const uint32_t element = blockIdx.x * block_size + threadIdx.x;
  if (element >= n) {
    return;
  }
  int64_t offsets[Inputs + 1];
  walk.offsets(element, offsets);
  T x[Inputs];
  for (int i = 0; i < Inputs; i++) {
    x[i] = ports.data[i + 1] == nullptr
               ? c.input[i]
               : load_as<T>(ports.data[i + 1] + offsets[i + 1], ports.dtype[i + 1]);
  }
  store_as<R>(
      ports.data[0] + offsets[0], ports.dtype[0],
      static_cast<R>(apply<T, F, Inputs, Attributes>(x, c, std::make_index_sequence<Inputs>(),
                                                     std::make_index_sequence<Attributes>())));
}

template <class T, int Inputs, int Attributes>
Constants<T, Inputs, Attributes> constants_of(const PointwiseWork& work) {
  Constants<T, Inputs, Attributes> c{};
  for (int i = 0; i < Inputs; i++) {
    c.input[i] = work.data[i + 1] == nullptr ? work.numbers[i].as<T>() : T();
  }
  for (int i = 0; i < Attributes; i++) {
    c.attribute[i] = work.attributes[i].as<T>();
  }
  return c;
}

template <class S, class R, class F, int Inputs, int Attributes>
void launch_contiguous(const PointwiseWork& work, cudaStream_t stream) {
  constexpr int large = sizeof(S) > sizeof(R) ? sizeof(S) : sizeof(R);
  constexpr int N = 16 / large < 4 ? 16 / large : 4;
  ContiguousPorts<Inputs> ports{};
  ports.out = work.data[0];
  for (int i = 0; i < Inputs; i++) {
    ports.in[i] = work.data[i + 1];
    ports.one[i] = work.one[i + 1];
  }
  contiguous_kernel<S, R, F, Inputs, Attributes, N>
      <<<blocks_for(work.numel, block_size * N), block_size, 0, stream>>>(
          static_cast<uint32_t>(work.numel), ports,
          constants_of<compute_t<S>, Inputs, Attributes>(work));
}

template <class T, class R, class F, int Inputs, int Attributes>
void launch_strided(const PointwiseWork& work, cudaStream_t stream) {
  StridedPorts<Inputs> ports{};
  for (int i = 0; i <= Inputs; i++) {
    ports.data[i] = work.data[i];
    ports.dtype[i] = work.dtype[i];
  }
  strided_kernel<T, R, F, Inputs, Attributes><<<blocks_for(work.numel), block_size, 0, stream>>>(
      static_cast<uint32_t>(work.numel), ports, walk_of<Inputs + 1>(work),
      constants_of<T, Inputs, Attributes>(work));
}

// The kernels of formula F for the dtypes of the set.
template <int Inputs, int Attributes, uint32_t Set, Promote P, class F>
constexpr PointwiseKernel make_kernel(F) {
  static_assert(Inputs <= max_inputs);
  PointwiseKernel kernel{Inputs, P, {}, {}};
#define RL_ENTRY(S, Enum, ...)                                                        \
  if constexpr ((Set & set_##Enum) != 0) {                                            \
    using T = compute_t<S>;                                                           \
    kernel.contiguous[static_cast<int>(ScalarType::Enum)] =                           \
        &launch_contiguous<S, typename result_of<S, P>::type, F, Inputs, Attributes>; \
    kernel.strided[static_cast<int>(ScalarType::Enum)] =                              \
        &launch_strided<T, typename result_of<T, P>::type, F, Inputs, Attributes>;    \
  }
  RL_FOR_EACH_DTYPE(RL_ENTRY)
#undef RL_ENTRY
  return kernel;
}

// Defines the kernel of RL_FORMULA(name, …), in namespace rushlight.
#define RL_CUDA_POINTWISE(name, inputs, attributes, dtypes, promotion, rounds_once)                \
  namespace cuda {                                                                                 \
  namespace {                                                                                      \
  struct name##_formula {                                                                          \
    template <class... X>                                                                          \
    __device__ __forceinline__ auto operator()(X... x) const {                                     \
      return formula::name(x...);                                                                  \
    }                                                                                              \
  };                                                                                               \
  constexpr PointwiseKernel name##_kernel =                                                        \
      make_kernel<inputs, attributes, static_cast<uint32_t>(dtypes), promotion>(name##_formula{}); \
  }                                                                                                \
  }                                                                                                \
  void cuda::name(const TensorIterator& it, const Scalar* given) {                                 \
    run_pointwise(it, name##_kernel, given);                                                       \
  }

}  // namespace rushlight::cuda
