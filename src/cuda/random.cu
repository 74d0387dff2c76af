// Random fills. Element i of a fill is made of four numbers of Philox's stream i, drawn from the
// generator's offset on, which then moves by 4: the same seed gives the same numbers on every GPU,
// whatever the grid. They are other numbers than the CPU's.
#include "cpu/random.h"
#include "cuda/column.h"
#include "cuda/draw.h"
#include "cuda/each.cuh"
#include "kernels/math.h"
#include "kernels/philox.h"

namespace rushlight {

namespace cuda {

namespace {

using philox::Numbers;

template <class T, class Dist>
__global__ void __launch_bounds__(block_size)
    random_kernel(T* out, int64_t n, uint64_t seed, uint64_t offset, Dist dist) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * block_size + threadIdx.x;
  if (i < n) {
    dist(out[i], i, philox::numbers(seed, static_cast<uint64_t>(i), offset));
  }
}

// Fills `out` with what dist(element, its number, four random numbers) writes.
template <class T, class Dist>
void fill_random(const Tensor& out, const Generator& generator, const Dist& dist) {
  const Draw draw = draw_from(generator, out.device());
  if (out.numel() == 0) {
    return;
  }
  const Tensor dense =
      out.is_contiguous() ? out : make_empty(out.sizes(), out.dtype(), out.device());
  {
    const Launch launch(out.device());
    // Complex elements are two real ones.
    const int64_t n = out.numel() * out.element_size() / static_cast<int64_t>(sizeof(T));
    random_kernel<T, Dist><<<blocks_for(n), block_size, 0, launch.stream()>>>(
        static_cast<T*>(dense.data_ptr()), n, draw.seed, draw.offset, dist);
    launch.done();
  }
  if (!dense.is_same(out)) {
    copy_raw(out, dense);
  }
}

template <class C>
__device__ C unit(const Numbers& r) {
  if constexpr (std::is_same_v<C, double>) {
    return philox::unit_double(r.at[0], r.at[1]);
  } else {
    return philox::unit_float(r.at[0]);
  }
}
__device__ uint64_t bits_64(const Numbers& r) { return uint64_t{r.at[0]} << 32 | r.at[1]; }

// By Box and Muller, from a number in (0, 1] and one in [0, 1).
template <class C>
__device__ C standard_normal(const Numbers& r) {
  if constexpr (std::is_same_v<C, double>) {
    const double u = 1 - philox::unit_double(r.at[0], r.at[1]);
    const double v = philox::unit_double(r.at[2], r.at[3]);
    return ::sqrt(-2 * ::log(u)) * ::cospi(2 * v);
  } else {
    const float u = (static_cast<float>(r.at[0]) + 1.0f) * 0x1p-32f;
    const float v = philox::unit_float(r.at[1]);
    return ::sqrtf(-2 * ::logf(u)) * ::cospif(2 * v);
  }
}

template <class T>
struct Uniform {
  using C = compute_t<T>;
  C low;
  C range;
  C end;
  __device__ void operator()(T& x, int64_t, const Numbers& r) const {
    const T value = narrow<T>(math::multiply_add(unit<C>(r), range, low));
    x = widen(value) == end ? narrow<T>(low) : value;
  }
};
template <class T>
struct Normal {
  using C = compute_t<T>;
  C mean;
  C std;
  __device__ void operator()(T& x, int64_t, const Numbers& r) const {
    x = narrow<T>(math::multiply_add(standard_normal<C>(r), std, mean));
  }
};
template <class T>
struct LogNormal {
  using C = compute_t<T>;
  C mean;
  C std;
  __device__ void operator()(T& x, int64_t, const Numbers& r) const {
    x = narrow<T>(math::exp(math::multiply_add(standard_normal<C>(r), std, mean)));
  }
};
template <class T>
struct Exponential {
  using C = compute_t<T>;
  C rate;
  __device__ void operator()(T& x, int64_t, const Numbers& r) const {
    x = narrow<T>(-math::log1p(-unit<C>(r)) / rate);
  }
};
template <class T>
struct Cauchy {
  using C = compute_t<T>;
  C median;
  C sigma;
  __device__ void operator()(T& x, int64_t, const Numbers& r) const {
    constexpr C edge = std::numeric_limits<float>::epsilon();
    const C u = unit<C>(r);
    const C kept = u > 1 - edge ? 1 - edge : u < edge ? edge : u;
    x = narrow<T>(median + sigma * math::tan(C(3.14159265358979323846) * (kept - C(0.5))));
  }
};
template <class T>
struct Geometric {
  double rest;  // log1p(-p)
  __device__ void operator()(T& x, int64_t, const Numbers& r) const {
    const double u = 1 - unit<double>(r);
    const double trials = ::ceil(::log(u) / rest);
    x = narrow<T>(convert<compute_t<T>>(trials < 1 ? 1.0 : trials));
  }
};
template <class T>
struct Bernoulli {
  double p;
  compute_t<T> value;
  __device__ void operator()(T& x, int64_t, const Numbers& r) const {
    x = narrow<T>(unit<double>(r) < p ? value : compute_t<T>(0));
  }
};
template <class T>
struct BernoulliEach {
  const double* p;
  __device__ void operator()(T& x, int64_t i, const Numbers& r) const {
    x = narrow<T>(unit<double>(r) < p[i] ? compute_t<T>(1) : compute_t<T>(0));
  }
};
template <class T>
struct Integers {
  uint64_t range;  // 0: all 64 bits
  int64_t from;
  __device__ void operator()(T& x, int64_t, const Numbers& r) const {
    const uint64_t bits = bits_64(r);
    const auto value =
        static_cast<int64_t>(range == 0 ? bits : bits % range + static_cast<uint64_t>(from));
    x = narrow<T>(convert<compute_t<T>>(value));
  }
};

void fill_integers(const Tensor& out, uint64_t range, int64_t from, const Generator& generator) {
  visit_dtype<set_real | set_Bool>("random_", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_random<T>(out, generator, Integers<T>{range, from});
  });
}

// Calls f(TypeTag<T>{}) for a floating or complex tensor, with the dtype of its real numbers.
template <class F>
void visit_real(const char* name, const Tensor& t, const F& f) {
  visit_dtype<set_floating>(name, to_real(t.dtype()), f);
}

// For each draw, the first place whose cumulative probability is not below a uniform number.
template <class T>
struct Choose {
  const T* cumulative;
  int64_t choices;
  int64_t samples;
  __device__ void operator()(int64_t& x, int64_t i, const Numbers& r) const {
    const T* const row = cumulative + i / samples * choices;
    const double u = unit<double>(r);
    int64_t low = 0;
    int64_t high = choices;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (static_cast<double>(widen(row[middle])) < u) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    x = low < choices ? low : choices - 1;
  }
};

}  // namespace

}  // namespace cuda

void cuda::uniform_(const Tensor& out, double from, double to, const Generator& generator) {
  visit_real("uniform_", out, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const C low = static_cast<C>(from);
    const C end = static_cast<C>(static_cast<T>(static_cast<C>(to)));
    fill_random<T>(out, generator, Uniform<T>{low, static_cast<C>(to) - low, end});
  });
}
void cuda::normal_(const Tensor& out, double mean, double std, const Generator& generator) {
  // Of a complex number each part has half of the variance.
  const double share = out.is_complex() ? std * 0.70710678118654752440 : std;
  visit_real("normal_", out, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    fill_random<T>(out, generator, Normal<T>{static_cast<C>(mean), static_cast<C>(share)});
  });
}
void cuda::log_normal_(const Tensor& out, double mean, double std, const Generator& generator) {
  visit_real("log_normal_", out, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    fill_random<T>(out, generator, LogNormal<T>{static_cast<C>(mean), static_cast<C>(std)});
  });
}
void cuda::exponential_(const Tensor& out, double lambd, const Generator& generator) {
  visit_real("exponential_", out, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_random<T>(out, generator, Exponential<T>{static_cast<compute_t<T>>(lambd)});
  });
}
void cuda::cauchy_(const Tensor& out, double median, double sigma, const Generator& generator) {
  visit_real("cauchy_", out, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    fill_random<T>(out, generator, Cauchy<T>{static_cast<C>(median), static_cast<C>(sigma)});
  });
}
void cuda::geometric_(const Tensor& out, double p, const Generator& generator) {
  visit_dtype<set_real>("geometric_", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_random<T>(out, generator, Geometric<T>{::log1p(-p)});
  });
}

void cuda::random__from(const Tensor& out, int64_t from, std::optional<int64_t> to,
                        const Generator& generator) {
  const cpu::RandomRange range(out.dtype(), from, to);
  fill_integers(out, range.all_bits() ? 0 : range.size(), from, generator);
}
void cuda::random__to(const Tensor& out, int64_t to, const Generator& generator) {
  cuda::random__from(out, 0, to, generator);
}
void cuda::random_(const Tensor& out, const Generator& generator) {
  visit_dtype<set_real | set_Bool>("random_", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    uint64_t range = 2;
    if constexpr (is_real_float_v<T>) {
      range = (uint64_t{1} << (std::is_same_v<T, double>  ? 53
                               : std::is_same_v<T, float> ? 24
                               : std::is_same_v<T, Half>  ? 11
                                                          : 8)) +
              1;
    } else if constexpr (!std::is_same_v<T, bool>) {
      range = static_cast<uint64_t>(std::numeric_limits<T>::max()) + 1;
    }
    fill_random<T>(out, generator, Integers<T>{range, 0});
  });
}

void cuda::bernoulli__float(const Tensor& out, double p, const Generator& generator) {
  visit_dtype<set_real | set_Bool>("bernoulli_", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_random<T>(out, generator, Bernoulli<T>{p, compute_t<T>(1)});
  });
}
void cuda::bernoulli__Tensor(const Tensor& out, const Tensor& p, const Generator& generator) {
  const Tensor chances = make_empty(out.sizes(), kFloat64, out.device());
  copy_raw(chances, p);
  visit_dtype<set_real | set_Bool>("bernoulli_", out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_random<T>(out, generator, BernoulliEach<T>{chances.data<double>()});
  });
}
void cuda::_scaled_bernoulli_(const Tensor& out, double p, double value) {
  visit_real("dropout", out, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_random<T>(out, Generator(), Bernoulli<T>{p, static_cast<compute_t<T>>(value)});
  });
}

void cuda::_draw_from_cumulative(const Tensor& out, const Tensor& cumulative, int64_t num_samples,
                                 const Generator& generator) {
  visit_dtype<set_floating>("multinomial", cumulative.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_random<int64_t>(out, generator,
                         Choose<T>{cumulative.data<T>(),
                                   cumulative.sizes()[cumulative.sizes().size() - 1], num_samples});
  });
}

}  // namespace rushlight
