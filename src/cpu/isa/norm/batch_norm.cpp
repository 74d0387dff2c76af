// Batch norm, forward and backward, in as few passes over memory as the arithmetic allows. It keeps
// one mean and one sum of squares for each chunk (an image's plane of a channel; some rows where
// channels are innermost) and combines them in order, so that neither threads nor the size of the
// batch cost accuracy or change bits.
#include <utility>
#include <vector>

#include "cpu/isa/norm/norm.h"

namespace rushlight::cpu::RL_ISA {
namespace {

// How an input lies: planes of one channel (`inner` contiguous elements), or rows of all channels
// (inner 1).
struct BatchLayout {
  int64_t images;
  int64_t channels;
  int64_t inner;
  bool rows;  // channels innermost: images * inner rows of channels
  int64_t count() const { return images * inner; }
};

BatchLayout layout_of(const Tensor& input) {
  BatchLayout l{input.size(0), input.size(1), 1, false};
  for (int64_t d = 2; d < input.dim(); d++) {
    l.inner *= input.size(d);
  }
  l.rows = l.inner == 1 || !input.is_contiguous();
  return l;
}

// Calls f(c0, c1, r0, r1, chunk) for blocks of the rows; `chunk` numbers row blocks.
struct RowBlocks {
  int64_t rows;
  int64_t chunks;
};
RowBlocks row_blocks(const BatchLayout& l) {
  const int64_t least = std::max<int64_t>(16, 16384 / std::max<int64_t>(1, l.channels));
  const int64_t rows = std::max(least, (l.count() + 63) / 64);
  return {rows, num_chunks(0, l.count(), rows)};
}

template <class S, class T>
void batch_moments(const S* x, const BatchLayout& l, Moments<T>* result) {
  using V = Simd<T>;
  const int64_t parts = l.rows ? row_blocks(l).chunks : l.images;
  const Scratch<Moments<T>> partial(std::max<int64_t>(1, parts * l.channels));
  if (l.rows) {
    const RowBlocks blocks = row_blocks(l);
    parallel_for(0, l.count(), blocks.rows, [&](int64_t begin, int64_t end) {
      Moments<T>* to = partial + begin / blocks.rows * l.channels;
      const typename V::V n = V::set1(T(1) / static_cast<T>(end - begin));
      for_vectors<T>(l.channels, [&](int64_t c, int64_t m) {
        typename V::V sum = V::zero();
        for (int64_t r = begin; r < end; r++) {
          sum = V::add(sum, load_some(x + r * l.channels + c, m));
        }
        const typename V::V mean = V::mul(sum, n);
        typename V::V squares = V::zero();
        for (int64_t r = begin; r < end; r++) {
          const typename V::V d = V::sub(load_some(x + r * l.channels + c, m), mean);
          squares = V::fma(d, d, squares);
        }
        T means[V::width];
        T sums[V::width];
        V::store(means, mean);
        V::store(sums, squares);
        for (int64_t k = 0; k < m; k++) {
          to[c + k] = {means[k], sums[k]};
        }
      });
    });
  } else {
    parallel_for(0, l.images * l.channels, row_grain(l.inner), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++) {
        partial[p] = moments<S, T>(x + p * l.inner, l.inner);
      }
    });
  }
  for (int64_t c = 0; c < l.channels; c++) {
    Moments<T> all{0, 0};
    T count = 0;
    for (int64_t p = 0; p < parts; p++) {
      const int64_t rows =
          l.rows ? std::min(row_blocks(l).rows, l.count() - p * row_blocks(l).rows) : l.inner;
      combine(all, count, partial[p * l.channels + c], static_cast<T>(rows));
    }
    result[c] = all;
  }
}

// y = x * scale + shift by channel, or with a second tensor: y = g * scale + x * scale2 + shift.
template <class S, class T, bool two>
void by_channel(S* y, const S* g, const S* x, const BatchLayout& l, const T* scale, const T* scale2,
                const T* shift) {
  using V = Simd<T>;
  if (l.rows) {
    parallel_for(0, l.count(), row_grain(l.channels), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) {
        const int64_t at = r * l.channels;
        for_vectors<T>(l.channels, [&](int64_t c, int64_t m) {
          typename V::V v =
              V::fma(load_some(g + at + c, m), load_some(scale + c, m), load_some(shift + c, m));
          if constexpr (two) {
            v = V::fma(load_some(x + at + c, m), load_some(scale2 + c, m), v);
          }
          store_some(y + at + c, v, m);
        });
      }
    });
    return;
  }
  parallel_for(0, l.images * l.channels, row_grain(l.inner), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      const int64_t c = p % l.channels;
      const int64_t at = p * l.inner;
      const typename V::V a = V::set1(scale[c]);
      const typename V::V a2 = V::set1(two ? scale2[c] : T(0));
      const typename V::V b = V::set1(shift[c]);
      for_vectors<T>(l.inner, [&](int64_t i, int64_t m) {
        typename V::V v = V::fma(load_some(g + at + i, m), a, b);
        if constexpr (two) {
          v = V::fma(load_some(x + at + i, m), a2, v);
        }
        store_some(y + at + i, v, m);
      });
    }
  });
}

// Calls f(position) for all elements of a channel.
template <class F>
void for_channel(const BatchLayout& l, int64_t c, const F& f) {
  for (int64_t n = 0; n < (l.rows ? l.count() : l.images); n++) {
    const int64_t first = l.rows ? n * l.channels + c : (n * l.channels + c) * l.inner;
    for (int64_t i = 0; i < (l.rows ? 1 : l.inner); i++) {
      f(first + i);
    }
  }
}
template <class T, class S>
WideMoments wide_moments_of_channel(const S* x, const BatchLayout& l, int64_t c) {
  return wide_moments<T>(l.count(), true, [&](const auto& f) {
    for_channel(l, c, [&](int64_t i) { f(static_cast<double>(x[i])); });
  });
}

// A channel whose deviation is extreme, forward and backward.
template <class S, class T>
void normalize_channel(S* y, const S* x, const BatchLayout& l, int64_t c, const WideMoments& wide,
                       T w, T b) {
  for_channel(l, c, [&](int64_t i) {
    y[i] = static_cast<S>(static_cast<T>(wide.value(static_cast<double>(x[i])) * w + b));
  });
}
template <class S, class T>
void normalize_channel_backward(S* dx, T& dw, T& db, const S* g, const S* x, const BatchLayout& l,
                                int64_t c, T rstd, T w) {
  WideMoments wide = wide_moments_of_channel<T>(x, l, c);
  wide.set_rstd(rstd);
  double sum = 0;
  double product = 0;
  for_channel(l, c, [&](int64_t i) {
    sum += static_cast<double>(g[i]);
    product += static_cast<double>(g[i]) * wide.value(static_cast<double>(x[i]));
  });
  dw = static_cast<T>(product);
  db = static_cast<T>(sum);
  const auto n = static_cast<double>(l.count());
  for_channel(l, c, [&](int64_t i) {
    const double value = wide.value(static_cast<double>(x[i]));
    const double rest = static_cast<double>(g[i]) - (sum + value * product) / n;
    dx[i] = static_cast<S>(static_cast<T>(rest * w * wide.rstd * wide.scale));
  });
}

// Sums of g and of g * (x - mean) by channel.
template <class S, class T>
void batch_gradient_sums(const S* g, const S* x, const BatchLayout& l, const T* mean, T* sum,
                         T* product) {
  using V = Simd<T>;
  const RowBlocks blocks = row_blocks(l);
  const int64_t parts = l.rows ? blocks.chunks : l.images;
  const Scratch<T> partial(std::max<int64_t>(1, parts * l.channels * 2));
  if (l.rows) {
    parallel_for(0, l.count(), blocks.rows, [&](int64_t begin, int64_t end) {
      T* to = partial + begin / blocks.rows * l.channels * 2;
      for_vectors<T>(l.channels, [&](int64_t c, int64_t m) {
        const typename V::V centre = load_some(mean + c, m);
        typename V::V a = V::zero();
        typename V::V b = V::zero();
        for (int64_t r = begin; r < end; r++) {
          const typename V::V gv = load_some(g + r * l.channels + c, m);
          a = V::add(a, gv);
          b = V::fma(gv, V::sub(load_some(x + r * l.channels + c, m), centre), b);
        }
        store_some(to + c, a, m);
        store_some(to + l.channels + c, b, m);
      });
    });
  } else {
    parallel_for(0, l.images * l.channels, row_grain(l.inner), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++) {
        const typename V::V centre = V::set1(mean[p % l.channels]);
        const auto sums = sums_over<T, 2>(l.inner, [&](int64_t i, int64_t m) {
          const typename V::V gv = load_some(g + p * l.inner + i, m);
          return Vectors<T, 2>{{gv, V::mul(gv, V::sub(load_some(x + p * l.inner + i, m), centre))}};
        });
        T* to = partial + p / l.channels * l.channels * 2 + p % l.channels;
        to[0] = sums[0];
        to[l.channels] = sums[1];
      }
    });
  }
  for (int64_t c = 0; c < l.channels; c++) {
    sum[c] = 0;
    product[c] = 0;
    for (int64_t p = 0; p < parts; p++) {
      sum[c] += partial[p * l.channels * 2 + c];
      product[c] += partial[p * l.channels * 2 + l.channels + c];
    }
  }
}

template <class T>
void update_running(const Tensor& running, const T* values, int64_t n, double momentum) {
  visit_dtype<set_floating>("batch_norm", running.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    S* to = running.data<S>();
    const int64_t step = running.dim() == 0 ? 1 : running.strides()[running.dim() - 1];
    for (int64_t c = 0; c < n; c++) {
      to[c * step] = S(static_cast<T>(momentum) * values[c] +
                       (T(1) - static_cast<T>(momentum)) * static_cast<T>(to[c * step]));
    }
  });
}

}  // namespace

void native_batch_norm(const Tensor& out_output, const Tensor& out_save_mean,
                       const Tensor& out_save_invstd, const Tensor& input, const Tensor& weight,
                       const Tensor& bias, const Tensor& running_mean, const Tensor& running_var,
                       bool training, double momentum, double eps) {
  visit_dtype<set_floating>("batch_norm", input.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using T = compute_t<S>;
    const BatchLayout l = layout_of(input);
    const int64_t channels = l.channels;
    const Parameter<T> w(weight, channels, T(1));
    const Parameter<T> b(bias, channels, T(0));
    const Scratch<T> memory(2 * channels);
    T* scale = memory;
    T* shift = memory + channels;
    std::vector<std::pair<int64_t, WideMoments>> strange;
    if (training) {
      const Scratch<Moments<T>> all(channels);
      batch_moments<S, T>(input.data<S>(), l, all.data());
      const T count = static_cast<T>(l.count());
      const Scratch<T> unbiased(channels);
      T* means = out_save_mean.data<T>();
      T* invstds = out_save_invstd.data<T>();
      for (int64_t c = 0; c < channels; c++) {
        const T variance = all[c].squares / count + static_cast<T>(eps);
        means[c] = all[c].mean;
        invstds[c] = T(1) / std::sqrt(variance);
        unbiased[c] = all[c].squares / (count - T(1));
        if (RL_UNLIKELY(l.count() > 0 && out_of_range(variance))) {
          WideMoments wide = wide_moments_of_channel<T>(input.data<S>(), l, c);
          wide.set_eps(eps);
          means[c] = static_cast<T>(wide.plain_mean());
          invstds[c] = static_cast<T>(wide.plain_rstd());
          unbiased[c] =
              static_cast<T>(wide.plain_variance() * static_cast<double>(count) / (count - T(1)));
          strange.emplace_back(c, wide);
        }
        scale[c] = invstds[c] * w[c];
        shift[c] = b[c] - means[c] * scale[c];
      }
      if (running_mean.defined() && l.count() > 0) {
        update_running(running_mean, means, channels, momentum);
      }
      if (running_var.defined() && l.count() > 0) {
        update_running(running_var, unbiased.data(), channels, momentum);
      }
    } else {
      const Parameter<T> mean(contiguous_raw(running_mean), channels, T(0));
      const Parameter<T> var(contiguous_raw(running_var), channels, T(1));
      for (int64_t c = 0; c < channels; c++) {
        scale[c] = w[c] / std::sqrt(var[c] + static_cast<T>(eps));
        shift[c] = b[c] - mean[c] * scale[c];
      }
    }
    by_channel<S, T, false>(out_output.data<S>(), input.data<S>(), nullptr, l, scale, nullptr,
                            shift);
    for (const auto& [c, wide] : strange) {
      normalize_channel(out_output.data<S>(), input.data<S>(), l, c, wide, w[c], b[c]);
    }
  });
}

void native_batch_norm_backward(const Tensor& out_grad_input, const Tensor& out_grad_weight,
                                const Tensor& out_grad_bias, const Tensor& grad_output,
                                const Tensor& input, const Tensor& weight, const Tensor&,
                                const Tensor&, const Tensor& save_mean, const Tensor& save_invstd,
                                bool training, double eps) {
  visit_dtype<set_floating>("batch_norm", input.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using T = compute_t<S>;
    const BatchLayout l = layout_of(input);
    const int64_t channels = l.channels;
    const Parameter<T> w(weight, channels, T(1));
    const T* mean = save_mean.data<T>();
    const T* spread = save_invstd.data<T>();  // the running variance outside of training
    const Scratch<T> memory(6 * channels);
    T* sum = memory;
    T* product = memory + channels;
    T* scale = memory + 2 * channels;
    T* scale2 = memory + 3 * channels;
    T* shift = memory + 4 * channels;
    T* dw = memory + 5 * channels;
    batch_gradient_sums<S, T>(grad_output.data<S>(), input.data<S>(), l, mean, sum, product);
    const T count = static_cast<T>(l.count());
    for (int64_t c = 0; c < channels; c++) {
      const T invstd = training ? spread[c] : T(1) / std::sqrt(spread[c] + static_cast<T>(eps));
      dw[c] = count > 0 ? product[c] * invstd : T(0);  // of nothing there is no spread
      // dx = w * invstd * (g - sum / n - (x - mean) * invstd^2 * product / n)
      scale[c] = w[c] * invstd;
      scale2[c] = training && count > 0 ? -scale[c] * invstd * invstd * product[c] / count : T(0);
      shift[c] = training && count > 0 ? -scale[c] * sum[c] / count - mean[c] * scale2[c] : T(0);
    }
    if (training) {
      by_channel<S, T, true>(out_grad_input.data<S>(), grad_output.data<S>(), input.data<S>(), l,
                             scale, scale2, shift);
    } else {
      by_channel<S, T, false>(out_grad_input.data<S>(), grad_output.data<S>(), nullptr, l, scale,
                              nullptr, shift);
    }
    for (int64_t c = 0; training && c < channels; c++) {
      if (RL_UNLIKELY(l.count() > 0 && is_extreme(spread[c]))) {
        normalize_channel_backward(out_grad_input.data<S>(), dw[c], sum[c], grad_output.data<S>(),
                                   input.data<S>(), l, c, spread[c], w[c]);
      }
    }
    write_parameter(out_grad_weight, dw);
    write_parameter(out_grad_bias, sum);
  });
}

}  // namespace rushlight::cpu::RL_ISA
