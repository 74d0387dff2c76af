// Distances between all rows of two matrices, and their gradient. Each distance and each row of a
// gradient is summed by one task in order: threads change no bit.
#include <cmath>

#include "core/parallel.h"
#include "cpu/isa/simd.h"
#include "cpu/scratch.h"
#include "generated/kernels.h"
#include "kernels/math.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int64_t lanes = 16;  // sums that do not wait for each other

enum class Norm { Zero, One, Two, Infinite, Any };

Norm norm_of(double p) {
  return p == 0          ? Norm::Zero
         : p == 1        ? Norm::One
         : p == 2        ? Norm::Two
         : std::isinf(p) ? Norm::Infinite
                         : Norm::Any;
}

template <Norm N, class T>
inline T term(T x, T p) {
  const T size = x < T(0) ? -x : x;
  if constexpr (N == Norm::Zero) {
    return size == T(0) ? T(0) : T(1);
  } else if constexpr (N == Norm::Two) {
    return x * x;
  } else if constexpr (N == Norm::Any) {
    return math::pow(size, p);
  } else {
    return size;
  }
}

template <Norm N, class T>
inline T joined(T a, T b) {
  return N == Norm::Infinite ? math::maximum(a, b) : a + b;
}

template <Norm N, class T>
T distance(const T* __restrict a, const T* __restrict b, int64_t n, T p) {
  alignas(64) T sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int64_t x = 0; x < lanes; x++) {
      sums[x] = joined<N>(sums[x], term<N>(a[i + x] - b[i + x], p));
    }
  }
  if (i < n) {
    alignas(64) T rest[lanes] = {};
    std::copy(a + i, a + n, rest);
    for (int64_t x = 0; x < n - i; x++) {
      rest[x] -= b[i + x];
    }
    for (int64_t x = 0; x < lanes; x++) {
      sums[x] = joined<N>(sums[x], term<N>(rest[x], p));
    }
  }
  for (int64_t half = lanes / 2; half > 0; half /= 2) {
    for (int64_t x = 0; x < half; x++) {
      sums[x] = joined<N>(sums[x], sums[x + half]);
    }
  }
  if constexpr (N == Norm::Two) {
    return math::sqrt(sums[0]);
  } else if constexpr (N == Norm::Any) {
    return std::pow(sums[0], 1 / p);
  }
  return sums[0];
}

// A matrix in the compute type.
template <class S, class T>
const T* in_compute_type(const S* from, int64_t n, const Scratch<T>& memory) {
  if constexpr (std::is_same_v<S, T>) {
    return from;
  } else {
    for (int64_t i = 0; i < n; i++) {
      memory[i] = static_cast<T>(from[i]);
    }
    return memory;
  }
}

template <class S, Norm N>
void all_distances(const Tensor& out, const Tensor& x1, const Tensor& x2, double p) {
  using T = compute_t<S>;
  constexpr bool direct = std::is_same_v<S, T>;
  const int64_t rows = x1.size(1);
  const int64_t others = x2.size(1);
  const int64_t width = x1.size(2);
  const Scratch<T> memory1(direct ? 0 : x1.numel());
  const Scratch<T> memory2(direct ? 0 : x2.numel());
  const T* a = in_compute_type(x1.data<S>(), x1.numel(), memory1);
  const T* b = in_compute_type(x2.data<S>(), x2.numel(), memory2);
  S* const to = out.data<S>();
  const int64_t work = std::max<int64_t>(1, others * width);
  parallel_for(
      0, x1.size(0) * rows, std::max<int64_t>(1, 16384 / work), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
          const T* other = b + i / rows * others * width;
          for (int64_t j = 0; j < others; j++) {
            to[i * others + j] =
                S(distance<N, T>(a + i * width, other + j * width, width, static_cast<T>(p)));
          }
        }
      });
}

// What one pair adds to the gradient of its first row.
template <Norm N, class T>
void add_slopes(T* __restrict sums, const T* __restrict a, const T* __restrict b, int64_t n, T grad,
                T distance, T p) {
  if (distance == T(0)) {
    return;
  }
  // grad / distance^(p - 1), the factor of all terms.
  const T scale = N == Norm::Two   ? grad / distance
                  : N == Norm::Any ? grad / std::pow(distance, p - 1)
                                   : grad;
  for (int64_t i = 0; i < n; i++) {
    const T x = a[i] - b[i];
    const T sign = x > T(0) ? T(1) : x < T(0) ? T(-1) : x;
    if constexpr (N == Norm::One) {
      sums[i] += sign * scale;
    } else if constexpr (N == Norm::Two) {
      sums[i] += x * scale;
    } else if constexpr (N == Norm::Infinite) {
      sums[i] += x * sign == distance ? sign * scale : T(0);
    } else {
      const T size = x == T(0) ? T(1) : x * sign;
      sums[i] += sign * math::pow(size, p - 1) * scale;
    }
  }
}

template <class S, Norm N>
void gradient(const Tensor& out, const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
              const Tensor& distances) {
  using T = compute_t<S>;
  constexpr bool direct = std::is_same_v<S, T>;
  const int64_t rows = x1.size(1);
  const int64_t others = x2.size(1);
  const int64_t width = x1.size(2);
  const Scratch<T> memory1(direct ? 0 : x1.numel());
  const Scratch<T> memory2(direct ? 0 : x2.numel());
  const T* a = in_compute_type(x1.data<S>(), x1.numel(), memory1);
  const T* b = in_compute_type(x2.data<S>(), x2.numel(), memory2);
  const S* g = grad.data<S>();
  const S* d = distances.data<S>();
  S* const to = out.data<S>();
  const int64_t work = std::max<int64_t>(1, others * width);
  parallel_for(0, x1.size(0) * rows, std::max<int64_t>(1, 16384 / work),
               [&](int64_t begin, int64_t end) {
                 const Scratch<T> sums(width);
                 for (int64_t i = begin; i < end; i++) {
                   const T* other = b + i / rows * others * width;
                   std::fill_n(sums.data(), width, T(0));
                   for (int64_t j = 0; j < others && N != Norm::Zero; j++) {
                     add_slopes<N, T>(sums, a + i * width, other + j * width, width,
                                      static_cast<T>(g[i * others + j]),
                                      static_cast<T>(d[i * others + j]), static_cast<T>(p));
                   }
                   for (int64_t x = 0; x < width; x++) {
                     to[i * width + x] = S(sums[x]);
                   }
                 }
               });
}

template <class F>
void with_norm(double p, const F& f) {
  switch (norm_of(p)) {
    case Norm::Zero:
      return f.template operator()<Norm::Zero>();
    case Norm::One:
      return f.template operator()<Norm::One>();
    case Norm::Two:
      return f.template operator()<Norm::Two>();
    case Norm::Infinite:
      return f.template operator()<Norm::Infinite>();
    case Norm::Any:
      return f.template operator()<Norm::Any>();
  }
}

}  // namespace

void _cdist(const Tensor& out, const Tensor& x1, const Tensor& x2, double p) {
  if (out.numel() == 0) {
    return;
  }
  visit_dtype<set_floating>("cdist", x1.dtype(), [&](auto tag) {
    with_norm(p, [&]<Norm N>() { all_distances<typename decltype(tag)::type, N>(out, x1, x2, p); });
  });
}

void _cdist_backward(const Tensor& out, const Tensor& grad, const Tensor& x1, const Tensor& x2,
                     double p, const Tensor& cdist) {
  if (out.numel() == 0) {
    return;
  }
  visit_dtype<set_floating>("cdist_backward", x1.dtype(), [&](auto tag) {
    with_norm(p, [&]<Norm N>() {
      gradient<typename decltype(tag)::type, N>(out, grad, x1, x2, p, cdist);
    });
  });
}

}  // namespace rushlight::cpu::RL_ISA
