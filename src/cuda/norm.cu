// Normalisation over layers, groups, root mean squares and batches. All but batches are rows with a
// mean and a deviation of their own and parameters that repeat; the gradients of parameters are
// sums over what a row kernel leaves behind. Statistics are kept in float for the 16-bit floats.
#include "cuda/column.h"
#include "cuda/rows.cuh"

namespace rushlight {

namespace cuda {

namespace {

// Which parameter an element of a row belongs to: its place (layers), or its channel (groups).
struct Parameters {
  int64_t groups = 0;    // 0: layers
  int64_t channels = 1;  // of a group
  int64_t each = 1;      // elements of a channel
  __host__ __device__ int64_t at(int64_t row, int64_t i) const {
    return groups == 0 ? i : row % groups * channels + i / each;
  }
};

// out = (x - mean) * rstd * weight + bias; without `centred` the mean is left out (root mean
// square).
template <class T>
struct Normalize {
  using A = compute_t<T>;
  T* out;
  A* means;  // null where not centred
  A* rstds;
  const T* in;
  const A* weight;  // null: 1
  const A* bias;    // null: 0
  int64_t n;
  A eps;
  bool centred;
  Parameters parameters;
  template <class Team>
  __device__ void operator()(const Team& team, int64_t row) const {
    const T* const x = in + row * n;
    A mean = 0;
    if (centred) {
      for (int64_t i = team.rank(); i < n; i += team.size()) {
        mean += widen(x[i]);
      }
      mean = team.template all<SumOf>(mean) / static_cast<A>(n);
    }
    A square = 0;
    for (int64_t i = team.rank(); i < n; i += team.size()) {
      const A d = widen(x[i]) - mean;
      square += d * d;
    }
    square = team.template all<SumOf>(square) / static_cast<A>(n);
    const A rstd = A(1) / math::sqrt(square + eps);
    for (int64_t i = team.rank(); i < n; i += team.size()) {
      const int64_t p = parameters.at(row, i);
      A y = (widen(x[i]) - mean) * rstd;
      y = weight != nullptr ? y * weight[p] : y;
      y = bias != nullptr ? y + bias[p] : y;
      out[row * n + i] = narrow<T>(y);
    }
    if (team.rank() == 0) {
      rstds[row] = rstd;
      if (means != nullptr) {
        means[row] = mean;
      }
    }
  }
};

// The gradient of the input, and grad * normalised for that of the weight.
template <class T>
struct NormalizeBackward {
  using A = compute_t<T>;
  T* out;
  A* products;  // grad * normalised, and
  A* grads;     // grad, in the compute type: summed afterwards; null where not wanted
  const T* grad;
  const T* in;
  const A* means;  // null: not centred
  const A* rstds;
  const A* weight;
  int64_t n;
  Parameters parameters;
  template <class Team>
  __device__ void operator()(const Team& team, int64_t row) const {
    const int64_t first = row * n;
    const A mean = means != nullptr ? means[row] : A(0);
    const A rstd = rstds[row];
    A sum = 0;
    A dot = 0;
    for (int64_t i = team.rank(); i < n; i += team.size()) {
      const A g = widen(grad[first + i]);
      const A y = (widen(in[first + i]) - mean) * rstd;
      const A weighted = weight != nullptr ? g * weight[parameters.at(row, i)] : g;
      sum += weighted;
      dot += weighted * y;
      products[first + i] = g * y;
      if (grads != nullptr) {
        grads[first + i] = g;
      }
    }
    sum = means != nullptr ? team.template all<SumOf>(sum) / static_cast<A>(n) : A(0);
    dot = team.template all<SumOf>(dot) / static_cast<A>(n);
    for (int64_t i = team.rank(); i < n; i += team.size()) {
      const A g = widen(grad[first + i]);
      const A y = (widen(in[first + i]) - mean) * rstd;
      const A weighted = weight != nullptr ? g * weight[parameters.at(row, i)] : g;
      out[first + i] = narrow<T>(rstd * (weighted - sum - y * dot));
    }
  }
};

template <class A>
Tensor parameter(const Tensor& t) {
  return t.defined() ? contiguous_raw(cast_raw(t, dtype_of_v<A>)) : Tensor();
}
template <class A>
A* data_or_null(const Tensor& t) {
  return t.defined() ? t.data<A>() : nullptr;
}

// What rms_norm takes where no eps is given: that of the compute type.
template <class A>
constexpr double default_eps = std::is_same_v<A, double> ? 0x1p-52 : 0x1p-23;

struct Rows {
  int64_t rows;
  int64_t n;
  Parameters parameters;
};
Rows layer_rows(const Tensor& input, IntArrayRef normalized_shape) {
  const int64_t n = product(normalized_shape);
  return {n == 0 ? 0 : input.numel() / n, n, {}};
}
Rows group_rows(const Tensor& input, int64_t groups) {
  const int64_t channels = input.sizes()[1];
  const int64_t rows = input.sizes()[0] * groups;
  const int64_t n = rows == 0 ? 0 : input.numel() / rows;
  const int64_t each = channels == 0 ? 1 : n / std::max<int64_t>(channels / groups, 1);
  return {rows, n, {groups, channels / groups, std::max<int64_t>(each, 1)}};
}

void normalize(const char* name, const Tensor& out, const Tensor* mean, const Tensor& rstd,
               const Tensor& input, const Rows& r, const Tensor& weight, const Tensor& bias,
               std::optional<double> eps) {
  const Launch launch(out.device());
  visit_dtype<set_floating>(name, input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = compute_t<T>;
    const Tensor w = parameter<A>(weight);
    const Tensor b = parameter<A>(bias);
    for_rows(
        launch, r.rows, r.n, 1,
        Normalize<T>{out.data<T>(), mean != nullptr ? mean->data<A>() : nullptr, rstd.data<A>(),
                     input.data<T>(), data_or_null<A>(w), data_or_null<A>(b), r.n,
                     static_cast<A>(eps.value_or(default_eps<A>)), mean != nullptr, r.parameters});
  });
}

// [rows..., n] summed to one number for each parameter.
void sum_parameters(const Tensor& out, const Tensor& products, const Tensor& input, const Rows& r) {
  if (out.numel() == 0) {
    return;
  }
  const Tensor sums = make_empty({out.numel()}, products.dtype(), out.device());
  if (r.parameters.groups == 0) {
    const Tensor table = make_view(products, {{r.rows, r.n}, {r.n, 1}, 0});
    cuda::sum(sums, table, IntArrayRef({0}), false, {});
  } else {
    const int64_t images = input.sizes()[0];
    const int64_t channels = input.sizes()[1];
    const int64_t each = r.parameters.each;
    const Tensor table =
        make_view(products, {{images, channels, each}, {channels * each, each, 1}, 0});
    cuda::sum(sums, table, IntArrayRef({0, 2}), false, {});
  }
  copy_raw(out, make_view(sums, {out.sizes(), contiguous_strides(out.sizes()), 0}));
}

void normalize_backward(const char* name, const Tensor& grad_input, const Tensor& grad_weight,
                        const Tensor* grad_bias, const Tensor& grad, const Tensor& input,
                        const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                        const Rows& r) {
  if (input.numel() == 0) {
    fill_raw(grad_weight, 0);
    if (grad_bias != nullptr) {
      fill_raw(*grad_bias, 0);
    }
    return;
  }
  const Launch launch(grad_input.device());
  visit_dtype<set_floating>(name, input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = compute_t<T>;
    const Tensor w = parameter<A>(weight);
    const Tensor products = make_empty({input.numel()}, dtype_of_v<A>, input.device());
    Tensor grads;
    if (grad_bias != nullptr) {
      grads = make_empty({input.numel()}, dtype_of_v<A>, input.device());
    }
    for_rows(launch, r.rows, r.n, 1,
             NormalizeBackward<T>{grad_input.data<T>(), products.data<A>(), data_or_null<A>(grads),
                                  grad.data<T>(), input.data<T>(), data_or_null<A>(mean),
                                  rstd.data<A>(), data_or_null<A>(w), r.n, r.parameters});
    sum_parameters(grad_weight, products, input, r);
    if (grad_bias != nullptr) {
      sum_parameters(*grad_bias, grads, input, r);
    }
  });
}

// ---- batches: statistics of channels, over [images, channels, elements] ----

DimVector channel_index(const Tensor& t) {
  DimVector strides(t.sizes().size());
  strides[1] = 1;
  return strides;
}
DimVector all_but_channels(const Tensor& t) {
  DimVector dims = {0};
  for (int64_t d = 2; d < t.dim(); d++) {
    dims.push_back(d);
  }
  return dims;
}

template <class A>
struct FinishStatistics {
  A* mean;
  A* invstd;        // holds the variance before
  A* running_mean;  // null: not kept
  A* running_var;
  A momentum;
  A eps;
  A unbiased;  // n / (n - 1)
  __device__ void operator()(const int64_t (&at)[1]) const {
    const int64_t c = at[0];
    const A variance = invstd[c];
    if (running_mean != nullptr) {
      running_mean[c] += momentum * (mean[c] - running_mean[c]);
    }
    if (running_var != nullptr) {
      running_var[c] += momentum * (variance * unbiased - running_var[c]);
    }
    invstd[c] = A(1) / math::sqrt(variance + eps);
  }
};
template <class A>
struct InverseDeviation {
  A* invstd;
  const A* variance;
  A eps;
  __device__ void operator()(const int64_t (&at)[1]) const {
    invstd[at[0]] = A(1) / math::sqrt(variance[at[0]] + eps);
  }
};

template <class T>
struct BatchNormalize {
  using A = compute_t<T>;
  T* out;
  const T* in;
  const A* mean;
  const A* invstd;
  const A* weight;
  const A* bias;
  __device__ void operator()(const int64_t (&at)[3]) const {  // out, in, channel
    const int64_t c = at[2];
    A y = (widen(in[at[1]]) - mean[c]) * invstd[c];
    y = weight != nullptr ? y * weight[c] : y;
    y = bias != nullptr ? y + bias[c] : y;
    out[at[0]] = narrow<T>(y);
  }
};
// grad * normalised, to be summed.
template <class T>
struct BatchProducts {
  using A = compute_t<T>;
  A* out;
  const T* grad;
  const T* in;
  const A* mean;
  const A* invstd;
  __device__ void operator()(const int64_t (&at)[4]) const {  // out, grad, in, channel
    const int64_t c = at[3];
    out[at[0]] = widen(grad[at[1]]) * (widen(in[at[2]]) - mean[c]) * invstd[c];
  }
};
template <class T>
struct BatchBackward {
  using A = compute_t<T>;
  T* out;
  const T* grad;
  const T* in;
  const A* mean;
  const A* invstd;
  const A* weight;
  const A* grad_sum;  // null: the statistics are constants
  const A* product_sum;
  A count;
  __device__ void operator()(const int64_t (&at)[4]) const {  // out, grad, in, channel
    const int64_t c = at[3];
    const A w = weight != nullptr ? weight[c] : A(1);
    A g = widen(grad[at[1]]);
    if (grad_sum != nullptr) {
      const A y = (widen(in[at[2]]) - mean[c]) * invstd[c];
      g = g - grad_sum[c] / count - y * product_sum[c] / count;
    }
    out[at[0]] = narrow<T>(g * w * invstd[c]);
  }
};

Space<1> channels_of(int64_t n) { return {{n}, {DimVector{1}}}; }

}  // namespace

}  // namespace cuda

void cuda::native_layer_norm(const Tensor& output, const Tensor& mean, const Tensor& rstd,
                             const Tensor& input, IntArrayRef normalized_shape,
                             const Tensor& weight, const Tensor& bias, double eps) {
  normalize("layer_norm", output, &mean, rstd, input, layer_rows(input, normalized_shape), weight,
            bias, eps);
}
void cuda::native_layer_norm_backward(const Tensor& grad_input, const Tensor& grad_weight,
                                      const Tensor& grad_bias, const Tensor& grad,
                                      const Tensor& input, IntArrayRef normalized_shape,
                                      const Tensor& mean, const Tensor& rstd,
                                      const Tensor& weight) {
  normalize_backward("layer_norm_backward", grad_input, grad_weight, &grad_bias, grad, input, mean,
                     rstd, weight, layer_rows(input, normalized_shape));
}
void cuda::_group_norm(const Tensor& output, const Tensor& mean, const Tensor& rstd,
                       const Tensor& input, const Tensor& weight, const Tensor& bias,
                       int64_t num_groups, double eps) {
  normalize("group_norm", output, &mean, rstd, input, group_rows(input, num_groups), weight, bias,
            eps);
}
void cuda::_group_norm_backward(const Tensor& grad_input, const Tensor& grad_weight,
                                const Tensor& grad_bias, const Tensor& grad, const Tensor& input,
                                const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                                int64_t num_groups) {
  normalize_backward("group_norm_backward", grad_input, grad_weight, &grad_bias, grad, input, mean,
                     rstd, weight, group_rows(input, num_groups));
}
void cuda::_fused_rms_norm(const Tensor& output, const Tensor& rstd, const Tensor& input,
                           IntArrayRef normalized_shape, const Tensor& weight,
                           std::optional<double> eps) {
  normalize("rms_norm", output, nullptr, rstd, input, layer_rows(input, normalized_shape), weight,
            Tensor(), eps);
}
void cuda::_fused_rms_norm_backward(const Tensor& grad_input, const Tensor& grad_weight,
                                    const Tensor& grad, const Tensor& input,
                                    IntArrayRef normalized_shape, const Tensor& rstd,
                                    const Tensor& weight) {
  normalize_backward("rms_norm_backward", grad_input, grad_weight, nullptr, grad, input, Tensor(),
                     rstd, weight, layer_rows(input, normalized_shape));
}

void cuda::native_batch_norm(const Tensor& output, const Tensor& save_mean,
                             const Tensor& save_invstd, const Tensor& input, const Tensor& weight,
                             const Tensor& bias, const Tensor& running_mean,
                             const Tensor& running_var, bool training, double momentum,
                             double eps) {
  const int64_t channels = input.sizes()[1];
  const int64_t count = channels == 0 ? 0 : input.numel() / channels;
  const Launch launch(output.device());
  visit_dtype<set_floating>("batch_norm", input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = compute_t<T>;
    Tensor mean = save_mean;
    Tensor invstd = save_invstd;
    if (training) {
      if (count == 0) {
        fill_raw(mean, 0);
        fill_raw(invstd, 0);
        return;
      }
      // Of the input in the compute type: statistics are not rounded to 16 bits.
      const Tensor wide = cast_raw(input, dtype_of_v<A>);
      const DimVector dims = all_but_channels(input);
      cuda::var_mean(invstd, mean, wide, OptionalIntArrayRef(IntArrayRef(dims)), Scalar(0), false);
      const Tensor kept_mean = parameter<A>(running_mean);
      const Tensor kept_var = parameter<A>(running_var);
      const A unbiased = static_cast<A>(static_cast<double>(count) /
                                        static_cast<double>(std::max<int64_t>(count - 1, 1)));
      each(launch, channels_of(channels),
           FinishStatistics<A>{mean.data<A>(), invstd.data<A>(), data_or_null<A>(kept_mean),
                               data_or_null<A>(kept_var), static_cast<A>(momentum),
                               static_cast<A>(eps), unbiased});
      for (const auto& [original, kept] :
           {std::pair(&running_mean, &kept_mean), std::pair(&running_var, &kept_var)}) {
        if (original->defined() && !original->is_same(*kept)) {
          copy_raw(*original, *kept);
        }
      }
    } else {
      mean = parameter<A>(running_mean);
      const Tensor variance = parameter<A>(running_var);
      invstd = make_empty({channels}, dtype_of_v<A>, input.device());
      each(launch, channels_of(channels),
           InverseDeviation<A>{invstd.data<A>(), variance.data<A>(), static_cast<A>(eps)});
    }
    const Tensor w = parameter<A>(weight);
    const Tensor b = parameter<A>(bias);
    each(launch, Space<3>{input.sizes(), {output.strides(), input.strides(), channel_index(input)}},
         BatchNormalize<T>{output.data<T>(), input.data<T>(), mean.data<A>(), invstd.data<A>(),
                           data_or_null<A>(w), data_or_null<A>(b)});
  });
}

void cuda::native_batch_norm_backward(const Tensor& grad_input, const Tensor& grad_weight,
                                      const Tensor& grad_bias, const Tensor& grad,
                                      const Tensor& input, const Tensor& weight, const Tensor&,
                                      const Tensor&, const Tensor& save_mean,
                                      const Tensor& save_invstd, bool training, double eps) {
  const int64_t channels = input.sizes()[1];
  if (input.numel() == 0) {
    fill_raw(grad_weight, 0);
    fill_raw(grad_bias, 0);
    return;
  }
  const int64_t count = input.numel() / channels;
  const Launch launch(grad_input.device());
  visit_dtype<set_floating>("batch_norm_backward", input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = compute_t<T>;
    // Without training the shape function hands the running statistics over in their places.
    const Tensor mean = save_mean;
    Tensor invstd = save_invstd;
    if (!training) {
      invstd = make_empty({channels}, dtype_of_v<A>, input.device());
      each(launch, channels_of(channels),
           InverseDeviation<A>{invstd.data<A>(), save_invstd.data<A>(), static_cast<A>(eps)});
    }
    const Tensor w = parameter<A>(weight);
    const DimVector dims = all_but_channels(input);
    const OptionalIntArrayRef reduced = OptionalIntArrayRef(IntArrayRef(dims));
    const Tensor products = make_empty(input.sizes(), dtype_of_v<A>, input.device());
    each(launch,
         Space<4>{input.sizes(),
                  {products.strides(), grad.strides(), input.strides(), channel_index(input)}},
         BatchProducts<T>{products.data<A>(), grad.data<T>(), input.data<T>(), mean.data<A>(),
                          invstd.data<A>()});
    const Tensor product_sum = make_empty({channels}, dtype_of_v<A>, input.device());
    const Tensor grad_sum = make_empty({channels}, dtype_of_v<A>, input.device());
    cuda::sum(product_sum, products, reduced, false, {});
    cuda::sum(grad_sum, grad, reduced, false, {});
    each(launch,
         Space<4>{input.sizes(),
                  {grad_input.strides(), grad.strides(), input.strides(), channel_index(input)}},
         BatchBackward<T>{grad_input.data<T>(), grad.data<T>(), input.data<T>(), mean.data<A>(),
                          invstd.data<A>(), data_or_null<A>(w),
                          training ? grad_sum.data<A>() : nullptr, product_sum.data<A>(),
                          static_cast<A>(count)});
    copy_raw(grad_weight, product_sum);
    copy_raw(grad_bias, grad_sum);
  });
}

}  // namespace rushlight
