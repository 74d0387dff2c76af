// What turns a formula into a kernel. A formula is instantiated once per compute type, as a
// *block*: a loop over contiguous elements that the compiler vectorises. Everything else (strides,
// broadcasting, 0-d operands, conversions between dtypes, tails, threads) is done once, outside of
// templates, by run_pointwise in loops.cpp, which brings operands into small contiguous buffers
// where they are not so already. Tails run through the same vector code in a padded buffer, so the
// bits of an element do not depend on where it stands.
#pragma once

#include <utility>

#include "cpu/formula_kernel.h"
#include "kernels/gamma_random.h"
#include "kernels/pointwise_kernel.h"
#include "kernels/read_element.h"
#include "kernels/special.h"

namespace rushlight::cpu::RL_ISA {

// The iterator is built and has one output. Attributes are converted to the compute type.
void run_pointwise(const TensorIterator& it, const PointwiseKernel& kernel,
                   const Scalar* attributes = nullptr);

template <class T, class Out, class F, size_t... I, size_t... A>
RL_INLINE void block_loop(Out* out, const char* const* in, [[maybe_unused]] const void* attributes,
                          int64_t n, std::index_sequence<I...>, std::index_sequence<A...>) {
  const T* const x[] = {reinterpret_cast<const T*>(in[I])...};
  const T a[] = {static_cast<const T*>(attributes)[A]..., T()};
  n &= -granule_of(sizeof(T), sizeof(Out));
  // An output may be an input itself, never part of one: no element depends on another.
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<Out>(F{}(read_element(x[I] + i)..., a[A]...));
  }
}

template <class T, class Out, class F, int Inputs, int Attributes>
void block(char* out, const char* const* in, const void* attributes, int64_t n) {
  block_loop<T, Out, F>(reinterpret_cast<Out*>(out), in, attributes, n,
                        std::make_index_sequence<Inputs>(), std::make_index_sequence<Attributes>());
}

// One of two inputs is a number: a column broadcast along rows of a matrix.
template <class T, class F, int Number, size_t... A>
RL_INLINE void number_loop(T* out, const T* x, const T v, [[maybe_unused]] const T* attributes,
                           int64_t n, std::index_sequence<A...>) {
  const T a[] = {attributes[A]..., T()};
  n &= -granule_of(sizeof(T), sizeof(T));
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    out[i] = Number == 0 ? F{}(v, x[i], a[A]...) : F{}(x[i], v, a[A]...);
  }
}

template <class T, class F, int Number, int Attributes>
void block_with_number(char* out, const char* const* in, const void* attributes, int64_t n) {
  number_loop<T, F, Number>(reinterpret_cast<T*>(out), reinterpret_cast<const T*>(in[1 - Number]),
                            *reinterpret_cast<const T*>(in[Number]),
                            static_cast<const T*>(attributes), n,
                            std::make_index_sequence<Attributes>());
}

// The kernel of formula F for the dtypes of the set. F is a stateless function object.
template <int Inputs, int Attributes, uint32_t Set, Promote P, bool RoundsOnce, class F>
consteval PointwiseKernel make_kernel(const char* name, F) {
  static_assert(Inputs <= max_inputs && Attributes <= max_attributes);
  PointwiseKernel kernel{name, P, Inputs, Attributes, false, {}, {}};
#define RL_ENTRY(T, Enum, ...)                                            \
  if constexpr ((Set & set_##Enum) != 0) {                                \
    using C = compute_t<T>;                                               \
    kernel.blocks[static_cast<int>(ScalarType::Enum)] =                   \
        &block<C, typename result_of<C, P>::type, F, Inputs, Attributes>; \
  }
  RL_FOR_EACH_DTYPE(RL_ENTRY)
#undef RL_ENTRY
  if constexpr (RoundsOnce) {
    static_assert(Inputs == 2 && (Set & set_Float) != 0);
    kernel.with_number[0] = &block_with_number<float, F, 0, Attributes>;
    kernel.with_number[1] = &block_with_number<float, F, 1, Attributes>;
  }
  return kernel;
}

// Defines the kernel of RL_FORMULA(name, ...). `dtypes` is a DtypeSet expression (of common
// dtypes), `promotion` a member of Promote.
#define RL_POINTWISE_KERNEL(name, num_inputs, num_attributes, dtypes, promotion, rounds_once)     \
  void name(const TensorIterator& it, const Scalar* attributes) {                                 \
    static constexpr PointwiseKernel kernel =                                                     \
        make_kernel<num_inputs, num_attributes, static_cast<uint32_t>(dtypes), promotion,         \
                    rounds_once>(                                                                 \
            #name, [](auto... x) __attribute__((always_inline)) { return formula::name(x...); }); \
    run_pointwise(it, kernel, attributes);                                                        \
  }

}  // namespace rushlight::cpu::RL_ISA
