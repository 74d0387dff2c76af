// Layer, group and RMS norm, forward and backward: rows that are contiguous, one at a time, from
// the cache.
#include "cpu/isa/norm/norm.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// ---- layer norm and RMS norm ----

// out = (x - mean) * rstd * weight + bias for every row; mean is 0 where `centre` is false.
template <class S, bool centre>
void normalize_rows(const Tensor& out, const Tensor& input, int64_t length, const Tensor& weight,
                    const Tensor& bias, double eps, compute_t<S>* means, compute_t<S>* rstds) {
  using T = compute_t<S>;
  using V = Simd<T>;
  const int64_t rows = length == 0 ? 0 : input.numel() / length;
  const Parameter<T> w(weight, length, T(1));
  const Parameter<T> b(bias, length, T(0));
  const bool plain = !weight.defined() && !bias.defined();
  const S* x = input.data<S>();
  S* y = out.data<S>();
  parallel_for(0, rows, row_grain(length), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      const S* from = x + r * length;
      S* to = y + r * length;
      T mean = 0;
      T squares;
      if constexpr (centre) {
        const Moments<T> m = moments<S, T>(from, length);
        mean = m.mean;
        squares = m.squares;
        means[r] = mean;
      } else {
        squares = sums_over<T, 1>(length, [&](int64_t i, int64_t m) {
          const typename V::V v = load_some(from + i, m);
          return Vectors<T, 1>{{V::mul(v, v)}};
        })[0];
      }
      const T variance = squares / static_cast<T>(length) + static_cast<T>(eps);
      if (RL_UNLIKELY(out_of_range(variance))) {
        WideMoments wide = wide_moments_of_row<T>(from, length, centre);
        wide.set_eps(eps);
        rstds[r] = static_cast<T>(wide.plain_rstd());
        if constexpr (centre) {
          means[r] = static_cast<T>(wide.plain_mean());
        }
        for (int64_t i = 0; i < length; i++) {
          to[i] = static_cast<S>(
              static_cast<T>(wide.value(static_cast<double>(from[i])) * w[i] + b[i]));
        }
        continue;
      }
      const T rstd = T(1) / std::sqrt(variance);
      rstds[r] = rstd;
      const typename V::V scale = V::set1(rstd);
      const typename V::V shift = V::set1(mean);
      for_vectors<T>(length, [&](int64_t i, int64_t m) {
        typename V::V v = V::mul(V::sub(load_some(from + i, m), shift), scale);
        if (!plain) {
          v = V::fma(v, load_some(w.data() + i, m), load_some(b.data() + i, m));
        }
        store_some(to + i, v, m);
      });
    }
  });
}

// One row of normalize_rows_backward whose deviation is extreme.
template <class S, bool centre, class T = compute_t<S>>
void wide_row_backward(S* dx, T* dw, T* db, const S* g, const S* x, int64_t length, T rstd,
                       const T* w) {
  WideMoments wide = wide_moments_of_row<T>(x, length, centre);
  wide.set_rstd(rstd);
  double sum = 0;
  double product = 0;
  for (int64_t i = 0; i < length; i++) {
    const auto gi = static_cast<double>(g[i]);
    const double value = wide.value(static_cast<double>(x[i]));
    dw[i] += static_cast<T>(gi * value);
    if constexpr (centre) {
      db[i] += static_cast<T>(gi);
    }
    sum += gi * w[i];
    product += gi * w[i] * value;
  }
  const double mean_grad = centre ? sum / static_cast<double>(length) : 0;
  const double mean_product = product / static_cast<double>(length);
  for (int64_t i = 0; i < length; i++) {
    const double value = wide.value(static_cast<double>(x[i]));
    const double rest = static_cast<double>(g[i]) * w[i] - mean_grad - value * mean_product;
    dx[i] = static_cast<S>(static_cast<T>(rest * wide.rstd * wide.scale));
  }
}

// Gradients of normalize_rows. Those of the parameters are summed by chunks of rows, then over the
// chunks.
template <class S, bool centre>
void normalize_rows_backward(const Tensor& grad_input, const Tensor& grad_weight,
                             const Tensor& grad_bias, const Tensor& grad, const Tensor& input,
                             int64_t length, const compute_t<S>* means, const compute_t<S>* rstds,
                             const Tensor& weight) {
  using T = compute_t<S>;
  using V = Simd<T>;
  const int64_t rows = length == 0 ? 0 : input.numel() / length;
  const Parameter<T> w(weight, length, T(1));
  const int64_t chunk = std::max<int64_t>({row_grain(length), 16, (rows + 63) / 64});
  const int64_t chunks = num_chunks(0, rows, chunk);
  const Scratch<T> sums(std::max<int64_t>(1, chunks) * 2 * length);
  const S* g = grad.data<S>();
  const S* x = input.data<S>();
  S* dx = grad_input.data<S>();
  parallel_for(0, rows, chunk, [&](int64_t begin, int64_t end) {
    T* dw = sums + begin / chunk * 2 * length;
    T* db = dw + length;
    std::fill_n(dw, 2 * length, T(0));
    for (int64_t r = begin; r < end; r++) {
      const S* gr = g + r * length;
      const S* xr = x + r * length;
      if (RL_UNLIKELY(is_extreme(rstds[r]))) {
        wide_row_backward<S, centre>(dx + r * length, dw, db, gr, xr, length, rstds[r], w.data());
        continue;
      }
      const typename V::V mean = V::set1(centre ? means[r] : T(0));
      const typename V::V rstd = V::set1(rstds[r]);
      const auto totals = sums_over<T, 2>(length, [&](int64_t i, int64_t m) {
        const typename V::V gv = load_some(gr + i, m);
        const typename V::V value = V::mul(V::sub(load_some(xr + i, m), mean), rstd);
        const typename V::V gw = V::mul(gv, load_some(w.data() + i, m));
        const typename V::V product = V::mul(gv, value);
        store_some(dw + i, V::add(load_some(dw + i, m), product), m);
        if constexpr (centre) {
          store_some(db + i, V::add(load_some(db + i, m), gv), m);
        }
        return Vectors<T, 2>{{gw, V::mul(gw, value)}};
      });
      const T n = static_cast<T>(length);
      const typename V::V mean_grad = V::set1(centre ? totals[0] / n : T(0));
      const typename V::V mean_product = V::set1(totals[1] / n);
      for_vectors<T>(length, [&](int64_t i, int64_t m) {
        const typename V::V value = V::mul(V::sub(load_some(xr + i, m), mean), rstd);
        const typename V::V gw = V::mul(load_some(gr + i, m), load_some(w.data() + i, m));
        const typename V::V rest = V::sub(V::sub(gw, mean_grad), V::mul(value, mean_product));
        store_some(dx + r * length + i, V::mul(rest, rstd), m);
      });
    }
  });
  const Scratch<T> total(2 * length);
  std::fill_n(total.data(), 2 * length, T(0));
  for (int64_t c = 0; c < chunks; c++) {
    for (int64_t i = 0; i < 2 * length; i++) {
      total[i] += sums[c * 2 * length + i];
    }
  }
  write_parameter(grad_weight, total.data());
  if constexpr (centre) {
    write_parameter(grad_bias, total.data() + length);
  }
}

// One group of _group_norm_backward whose deviation is extreme: `channels` planes of `inner`.
template <class S, class T = compute_t<S>>
void wide_group_backward(S* dx, T* plain, T* products, const S* g, const S* x, int64_t channels,
                         int64_t inner, T rstd, const T* w) {
  const int64_t length = channels * inner;
  WideMoments wide = wide_moments_of_row<T>(x, length, true);
  wide.set_rstd(rstd);
  double sum = 0;
  double product = 0;
  for (int64_t c = 0; c < channels; c++) {
    double of_plane = 0;
    double with_value = 0;
    for (int64_t i = c * inner; i < (c + 1) * inner; i++) {
      of_plane += static_cast<double>(g[i]);
      with_value += static_cast<double>(g[i]) * wide.value(static_cast<double>(x[i]));
    }
    plain[c] = static_cast<T>(of_plane);
    products[c] = static_cast<T>(with_value);
    sum += of_plane * w[c];
    product += with_value * w[c];
  }
  for (int64_t i = 0; i < length; i++) {
    const double value = wide.value(static_cast<double>(x[i]));
    const double rest = static_cast<double>(g[i]) * w[i / inner] -
                        (sum + value * product) / static_cast<double>(length);
    dx[i] = static_cast<S>(static_cast<T>(rest * wide.rstd * wide.scale));
  }
}

}  // namespace

void native_layer_norm(const Tensor& out_output, const Tensor& out_mean, const Tensor& out_rstd,
                       const Tensor& input, IntArrayRef normalized_shape, const Tensor& weight,
                       const Tensor& bias, double eps) {
  visit_dtype<set_floating>("layer_norm", input.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using T = compute_t<S>;
    normalize_rows<S, true>(out_output, input, product(normalized_shape), weight, bias, eps,
                            out_mean.data<T>(), out_rstd.data<T>());
  });
}

void native_layer_norm_backward(const Tensor& out_grad_input, const Tensor& out_grad_weight,
                                const Tensor& out_grad_bias, const Tensor& grad_output,
                                const Tensor& input, IntArrayRef normalized_shape,
                                const Tensor& mean, const Tensor& rstd, const Tensor& weight) {
  visit_dtype<set_floating>("layer_norm", input.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using T = compute_t<S>;
    normalize_rows_backward<S, true>(out_grad_input, out_grad_weight, out_grad_bias, grad_output,
                                     input, product(normalized_shape), mean.data<T>(),
                                     rstd.data<T>(), weight);
  });
}

void _fused_rms_norm(const Tensor& out_output, const Tensor& out_rstd, const Tensor& input,
                     IntArrayRef normalized_shape, const Tensor& weight,
                     std::optional<double> eps) {
  visit_dtype<set_floating>("rms_norm", input.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using T = compute_t<S>;
    const double least = std::is_same_v<T, double> ? 0x1p-52 : 0x1p-23;  // the type's epsilon
    normalize_rows<S, false>(out_output, input, product(normalized_shape), weight, {},
                             eps.value_or(least), nullptr, out_rstd.data<T>());
  });
}

void _fused_rms_norm_backward(const Tensor& out_grad_input, const Tensor& out_grad_weight,
                              const Tensor& grad_output, const Tensor& input,
                              IntArrayRef normalized_shape, const Tensor& rstd,
                              const Tensor& weight) {
  visit_dtype<set_floating>("rms_norm", input.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using T = compute_t<S>;
    normalize_rows_backward<S, false>(out_grad_input, out_grad_weight, {}, grad_output, input,
                                      product(normalized_shape), nullptr, rstd.data<T>(), weight);
  });
}

void _group_norm(const Tensor& out_output, const Tensor& out_mean, const Tensor& out_rstd,
                 const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t num_groups,
                 double eps) {
  visit_dtype<set_floating>("group_norm", input.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using T = compute_t<S>;
    using V = Simd<T>;
    const int64_t channels = input.size(1);
    const int64_t groups = input.size(0) * num_groups;
    const int64_t length = groups == 0 ? 0 : input.numel() / groups;
    const int64_t of_group = channels / num_groups;
    const int64_t inner = of_group == 0 ? 0 : length / of_group;
    const Parameter<T> w(weight, channels, T(1));
    const Parameter<T> b(bias, channels, T(0));
    const S* x = input.data<S>();
    S* y = out_output.data<S>();
    T* means = out_mean.data<T>();
    T* rstds = out_rstd.data<T>();
    parallel_for(0, groups, row_grain(length), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) {
        const Moments<T> m = moments<S, T>(x + r * length, length);
        const T variance = m.squares / static_cast<T>(length) + static_cast<T>(eps);
        if (RL_UNLIKELY(out_of_range(variance))) {
          WideMoments wide = wide_moments_of_row<T>(x + r * length, length, true);
          wide.set_eps(eps);
          means[r] = static_cast<T>(wide.plain_mean());
          rstds[r] = static_cast<T>(wide.plain_rstd());
          for (int64_t i = 0; i < length; i++) {
            const int64_t c = r % num_groups * of_group + i / inner;
            const double value = wide.value(static_cast<double>(x[r * length + i]));
            y[r * length + i] = static_cast<S>(static_cast<T>(value * w[c] + b[c]));
          }
          continue;
        }
        means[r] = m.mean;
        rstds[r] = T(1) / std::sqrt(variance);
        for (int64_t k = 0; k < of_group; k++) {
          const int64_t c = r % num_groups * of_group + k;
          const int64_t at = r * length + k * inner;
          const typename V::V scale = V::set1(rstds[r] * w[c]);
          const typename V::V shift = V::set1(b[c] - m.mean * rstds[r] * w[c]);
          for_vectors<T>(inner, [&](int64_t i, int64_t n) {
            store_some(y + at + i, V::fma(load_some(x + at + i, n), scale, shift), n);
          });
        }
      }
    });
  });
}

void _group_norm_backward(const Tensor& out_grad_input, const Tensor& out_grad_weight,
                          const Tensor& out_grad_bias, const Tensor& grad_output,
                          const Tensor& input, const Tensor& mean, const Tensor& rstd,
                          const Tensor& weight, int64_t num_groups) {
  visit_dtype<set_floating>("group_norm", input.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using T = compute_t<S>;
    using V = Simd<T>;
    const int64_t channels = input.size(1);
    const int64_t images = input.size(0);
    const int64_t groups = images * num_groups;
    const int64_t length = groups == 0 ? 0 : input.numel() / groups;
    const int64_t of_group = channels / num_groups;
    const int64_t inner = of_group == 0 ? 0 : length / of_group;
    const Parameter<T> w(weight, channels, T(1));
    const S* g = grad_output.data<S>();
    const S* x = input.data<S>();
    S* dx = out_grad_input.data<S>();
    const T* means = mean.data<T>();
    const T* rstds = rstd.data<T>();
    // Sums of g and of g * xhat over each plane.
    const Scratch<T> plain(std::max<int64_t>(1, images * channels));
    const Scratch<T> products(std::max<int64_t>(1, images * channels));
    parallel_for(0, groups, row_grain(length), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) {
        if (RL_UNLIKELY(is_extreme(rstds[r]))) {
          wide_group_backward(dx + r * length, plain + r * of_group, products + r * of_group,
                              g + r * length, x + r * length, of_group, inner, rstds[r],
                              w.data() + r % num_groups * of_group);
          continue;
        }
        const typename V::V centre = V::set1(means[r]);
        const typename V::V scale = V::set1(rstds[r]);
        T sum = 0;
        T product = 0;
        for (int64_t k = 0; k < of_group; k++) {
          const int64_t plane = r * of_group + k;
          const int64_t at = plane * inner;
          const auto sums = sums_over<T, 2>(inner, [&](int64_t i, int64_t n) {
            const typename V::V gv = load_some(g + at + i, n);
            return Vectors<T, 2>{
                {gv, V::mul(gv, V::mul(V::sub(load_some(x + at + i, n), centre), scale))}};
          });
          plain[plane] = sums[0];
          products[plane] = sums[1];
          sum += sums[0] * w[plane % channels];
          product += sums[1] * w[plane % channels];
        }
        const typename V::V mean_grad = V::set1(sum / static_cast<T>(length));
        const typename V::V mean_product = V::set1(product / static_cast<T>(length));
        for (int64_t k = 0; k < of_group; k++) {
          const int64_t plane = r * of_group + k;
          const int64_t at = plane * inner;
          const typename V::V factor = V::set1(w[plane % channels]);
          for_vectors<T>(inner, [&](int64_t i, int64_t n) {
            const typename V::V value = V::mul(V::sub(load_some(x + at + i, n), centre), scale);
            const typename V::V gw = V::mul(load_some(g + at + i, n), factor);
            store_some(dx + at + i,
                       V::mul(V::sub(V::sub(gw, mean_grad), V::mul(value, mean_product)), scale),
                       n);
          });
        }
      }
    });
    const Scratch<T> total(2 * channels);
    for (int64_t c = 0; c < channels; c++) {
      T dw = 0;
      T db = 0;
      for (int64_t n = 0; n < images; n++) {
        dw += products[n * channels + c];
        db += plain[n * channels + c];
      }
      total[c] = dw;
      total[channels + c] = db;
    }
    write_parameter(out_grad_weight, total.data());
    write_parameter(out_grad_bias, total.data() + channels);
  });
}

}  // namespace rushlight::cpu::RL_ISA
