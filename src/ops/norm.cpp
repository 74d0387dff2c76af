// Contracts of the normalisations, their gradients, and the public forms.
// Gradients: usually the fused kernel; expressions over ordinary ops where the backward itself is
// recorded.
#include <limits>

#include "generated/contracts.h"
#include "ops/contracts.h"
#include "ops/derivatives.h"
#include "ops/moderate.h"
#include "ops/tangents.h"

namespace rushlight {

namespace {

// Parameters have the input's dtype, or float32 beside 16-bit inputs; they come out contiguous.
void prepare_parameter(Tensor& parameter, const Tensor& input) {
  if (!parameter.defined()) {
    return;
  }
  const bool mixed = parameter.dtype() == kFloat32 && contains(set_reduced, input.dtype());
  RL_CHECK(parameter.dtype() == input.dtype() || mixed, "parameters have the dtype of the input, ",
           enum_name(input.dtype()), ", or scalar type of Float where that has 16 bits, not ",
           enum_name(parameter.dtype()));
  parameter = contiguous_raw(parameter);
}

void check_elements(const char* name, const Tensor& t, int64_t n) {
  RL_CHECK(!t.defined() || t.numel() == n, name, " should contain ", n, " elements not ",
           t.defined() ? t.numel() : 0, ": one for each channel of the input, its dimension 1");
}

// Sizes of layer_norm's statistics: ones where it normalises.
DimVector statistics_sizes(const Tensor& input, IntArrayRef normalized_shape) {
  DimVector sizes(input.sizes());
  for (size_t d = 0; d < normalized_shape.size(); d++) {
    sizes[sizes.size() - 1 - d] = 1;
  }
  return sizes;
}

void check_normalized_shape(const Tensor& input, IntArrayRef normalized_shape, const Tensor& weight,
                            const Tensor& bias) {
  RL_CHECK(!normalized_shape.empty(),
           "layer_norm: normalized_shape names at least one dimension, but got ", normalized_shape);
  for (const auto& [name, t] : {std::pair("weight", &weight), std::pair("bias", &bias)}) {
    RL_CHECK(!t->defined() || t->sizes() == normalized_shape, name,
             " must be of same shape as normalized_shape, not ",
             t->defined() ? t->sizes() : IntArrayRef(),
             " and normalized_shape = ", normalized_shape);
  }
  const size_t dims = static_cast<size_t>(input.dim());
  const bool fits = dims >= normalized_shape.size() &&
                    input.sizes().slice(dims - normalized_shape.size(), normalized_shape.size()) ==
                        normalized_shape;
  if (!fits) {
    std::string wanted = "[*";
    for (const int64_t s : normalized_shape) {
      wanted += str(", ", s);
    }
    throw Error(str("normalized_shape=", normalized_shape, " goes with input of shape ", wanted,
                    "], not with ", input.sizes()));
  }
}

// The contract of a backward pass over rows, each with a mean and a deviation of its own.
OutSpecs<3> prepare_backward(const char* op, Tensor& grad, Tensor& input, Tensor& mean,
                             Tensor& rstd, Tensor& weight, int64_t rows,
                             IntArrayRef parameter_sizes) {
  RL_CHECK(grad.sizes() == input.sizes() && grad.dtype() == input.dtype(), op,
           ": grad_output must have the size and dtype of input");
  RL_CHECK(mean.numel() == rows && rstd.numel() == rows, op, ": wrong size of the statistics");
  prepare_parameter(weight, input);
  input = contiguous_raw(input);
  grad = contiguous_raw(grad);
  mean = contiguous_raw(cast_raw(mean, accumulation_dtype(input)));
  rstd = contiguous_raw(cast_raw(rstd, accumulation_dtype(input)));
  const OutSpec parameter{parameter_sizes, weight.defined() ? weight.dtype() : input.dtype()};
  return {OutSpec{input.sizes(), input.dtype()}, parameter, parameter};
}

}  // namespace

namespace shape {

OutSpecs<3> native_batch_norm(Tensor& input, Tensor& weight, Tensor& bias, Tensor& running_mean,
                              Tensor& running_var, bool& training, double&, double&) {
  const int64_t channels = input.dim() > 1 ? input.size(1) : 0;
  RL_CHECK(training || running_mean.defined(), "running_mean must be defined in evaluation mode");
  RL_CHECK(training || running_var.defined(), "running_var must be defined in evaluation mode");
  check_elements("running_mean", running_mean, channels);
  check_elements("running_var", running_var, channels);
  check_elements("weight", weight, channels);
  check_elements("bias", bias, channels);
  RL_CHECK(input.dim() > 1, "batch_norm expects an input of at least 2 dimensions, got ",
           input.dim());
  check_floating("batch_norm", input);
  prepare_parameter(weight, input);
  prepare_parameter(bias, input);
  for (const Tensor* t : {&running_mean, &running_var}) {
    const bool mixed =
        t->defined() && t->dtype() == kFloat32 && contains(set_reduced, input.dtype());
    RL_CHECK(!t->defined() || t->dtype() == input.dtype() || mixed,
             "parameters have the dtype of the input, ", enum_name(input.dtype()),
             ", or scalar type of Float where that has 16 bits, not ", enum_name(t->dtype()));
    if (training && t->defined()) {
      check_no_internal_overlap("batch_norm", *t);
    }
  }
  const ScalarType kept = accumulation_dtype(input);
  const MemoryFormat format = format_of(input);
  input = contiguous_raw(input, format);
  const int64_t saved = training ? channels : 0;
  return {OutSpec{input.sizes(), input.dtype(), {}, format}, OutSpec{{saved}, kept},
          OutSpec{{saved}, kept}};
}

OutSpecs<3> native_batch_norm_backward(Tensor& grad, Tensor& input, Tensor& weight,
                                       Tensor& running_mean, Tensor& running_var, Tensor& mean,
                                       Tensor& invstd, bool& training, double&) {
  RL_CHECK(grad.sizes() == input.sizes() && grad.dtype() == input.dtype() && input.dim() > 1,
           "native_batch_norm_backward: grad_output must have the size and dtype of input");
  const int64_t channels = input.size(1);
  check_elements("weight", weight, channels);
  check_elements(training ? "save_mean" : "running_mean", training ? mean : running_mean, channels);
  check_elements(training ? "save_invstd" : "running_var", training ? invstd : running_var,
                 channels);
  RL_CHECK(training ? mean.defined() && invstd.defined()
                    : running_mean.defined() && running_var.defined(),
           "native_batch_norm_backward needs the statistics of the forward pass");
  check_floating("batch_norm_backward", input);
  prepare_parameter(weight, input);
  const MemoryFormat format = format_of(input);
  input = contiguous_raw(input, format);
  grad = contiguous_raw(grad, format);
  const ScalarType kept = accumulation_dtype(input);
  mean = contiguous_raw(cast_raw(training ? mean : running_mean, kept));
  invstd = contiguous_raw(cast_raw(training ? invstd : running_var, kept));
  const ScalarType parameter = weight.defined() ? weight.dtype() : input.dtype();
  return {OutSpec{input.sizes(), input.dtype(), {}, format}, OutSpec{{channels}, parameter},
          OutSpec{{channels}, parameter}};
}

OutSpecs<3> native_layer_norm(Tensor& input, DimVector& normalized_shape, Tensor& weight,
                              Tensor& bias, double&) {
  check_normalized_shape(input, normalized_shape, weight, bias);
  check_floating("LayerNormKernelImpl", input);
  prepare_parameter(weight, input);
  prepare_parameter(bias, input);
  input = contiguous_raw(input);
  const OutSpec statistics{statistics_sizes(input, normalized_shape), accumulation_dtype(input)};
  return {OutSpec{input.sizes(), input.dtype()}, statistics, statistics};
}

OutSpecs<3> native_layer_norm_backward(Tensor& grad, Tensor& input, DimVector& normalized_shape,
                                       Tensor& mean, Tensor& rstd, Tensor& weight) {
  check_normalized_shape(input, normalized_shape, weight, {});
  check_floating("LayerNormBackwardKernelImpl", input);
  const int64_t rows = product(statistics_sizes(input, normalized_shape));
  return prepare_backward("native_layer_norm_backward", grad, input, mean, rstd, weight, rows,
                          normalized_shape);
}

OutSpecs<3> _group_norm(Tensor& input, Tensor& weight, Tensor& bias, int64_t& num_groups, double&) {
  RL_CHECK(input.dim() >= 2, "group_norm takes (N, C, ...): Expected at least 2 dimensions, not ",
           input.dim());
  RL_CHECK(num_groups > 0, "group_norm: num_groups must be greater than 0, not ", num_groups);
  const int64_t channels = input.size(1);
  RL_CHECK(channels % num_groups == 0, "group_norm: ", channels, " channels of input of shape ",
           input.sizes(), " do not divide into num_groups=", num_groups);
  for (const auto& [name, t] : {std::pair("weight", &weight), std::pair("bias", &bias)}) {
    RL_CHECK(!t->defined() || (t->dim() == 1 && t->numel() == channels), "group_norm: ", name,
             " to be a vector of ", channels,
             " elements, one for each channel, was expected, not of shape ",
             t->defined() ? t->sizes() : IntArrayRef());
  }
  check_floating("GroupNormKernelImpl", input);
  prepare_parameter(weight, input);
  prepare_parameter(bias, input);
  input = contiguous_raw(input);
  const OutSpec statistics{{input.size(0), num_groups}, accumulation_dtype(input)};
  return {OutSpec{input.sizes(), input.dtype()}, statistics, statistics};
}

OutSpecs<3> _group_norm_backward(Tensor& grad, Tensor& input, Tensor& mean, Tensor& rstd,
                                 Tensor& weight, int64_t& num_groups) {
  RL_CHECK(input.dim() >= 2 && num_groups > 0 && input.size(1) % num_groups == 0,
           "_group_norm_backward: wrong input or number of groups");
  check_elements("weight", weight, input.size(1));
  check_floating("GroupNormBackwardKernelImpl", input);
  return prepare_backward("_group_norm_backward", grad, input, mean, rstd, weight,
                          input.size(0) * num_groups, {input.size(1)});
}

OutSpecs<2> _fused_rms_norm(Tensor& input, DimVector& normalized_shape, Tensor& weight,
                            std::optional<double>&) {
  check_normalized_shape(input, normalized_shape, weight, {});
  check_floating("rms_norm", input);
  prepare_parameter(weight, input);
  input = contiguous_raw(input);
  return {OutSpec{input.sizes(), input.dtype()},
          OutSpec{statistics_sizes(input, normalized_shape), accumulation_dtype(input)}};
}

OutSpecs<2> _fused_rms_norm_backward(Tensor& grad, Tensor& input, DimVector& normalized_shape,
                                     Tensor& rstd, Tensor& weight) {
  Tensor mean = rstd;
  const OutSpecs<3> all =
      native_layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight);
  return {all[0], all[1]};
}

}  // namespace shape

// ---- derivatives ----

namespace {

// A vector of channels in the shape of an input's dimension 1.
Tensor per_channel(const Tensor& t, const Tensor& input) {
  DimVector sizes(static_cast<size_t>(input.dim()), 1);
  sizes[1] = -1;
  return t.reshape(sizes);
}

DimVector all_but_channels(const Tensor& t) {
  DimVector dims = {0};
  for (int64_t d = 2; d < t.dim(); d++) {
    dims.push_back(d);
  }
  return dims;
}

// Normalised values and the gradient that passes through the normalisation, over ordinary ops.
struct Standardized {
  Tensor centred;
  Tensor rstd;
  Tensor value;
};

Standardized standardize(const Tensor& input, IntArrayRef dims, double eps) {
  const Tensor centred = input - input.mean(dims, true);
  const Tensor rstd = ((centred * centred).mean(dims, true) + eps).rsqrt();
  return {centred, rstd, centred * rstd};
}

Tensor normalization_backward(const Tensor& grad, const Standardized& x, IntArrayRef dims) {
  return x.rstd * (grad - grad.mean(dims, true) - x.value * (grad * x.value).mean(dims, true));
}

DimVector last_dims(int64_t n) {
  DimVector dims;
  for (int64_t d = -n; d < 0; d++) {
    dims.push_back(d);
  }
  return dims;
}

Tensor tensor_if(bool want, const Tensor& t) { return want ? t : Tensor(); }

}  // namespace

ThreeTensors batch_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                 const Tensor& running_mean, const Tensor& running_var,
                                 const Tensor& mean, const Tensor& invstd, bool training,
                                 double eps, std::array<bool, 3> mask) {
  if (!forward::is_differentiated(grad, input, weight)) {
    const auto [x, w, b] = native_batch_norm_backward(grad, input, weight, running_mean,
                                                      running_var, mean, invstd, training, eps);
    return {tensor_if(mask[0], x), tensor_if(mask[1], w), tensor_if(mask[2], b)};
  }
  const DimVector dims = all_but_channels(input);
  Standardized x;
  if (training) {
    x = standardize(input, dims, eps);
  } else {
    x.centred = input - per_channel(running_mean, input);
    x.rstd = (per_channel(running_var, input) + eps).rsqrt();
    x.value = x.centred * x.rstd;
  }
  const Tensor weighted = weight.defined() ? grad * per_channel(weight, input) : grad;
  return {training ? normalization_backward(weighted, x, dims) : weighted * x.rstd,
          (grad * x.value).sum(dims), grad.sum(dims)};
}

ThreeTensors layer_norm_backward(const Tensor& grad, const Tensor& input,
                                 IntArrayRef normalized_shape, const Tensor& weight, const Tensor&,
                                 const Tensor& mean, const Tensor& rstd, double eps,
                                 std::array<bool, 3> mask) {
  if (!forward::is_differentiated(grad, input, weight)) {
    const auto [x, w, b] =
        native_layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight);
    return {tensor_if(mask[0], x), tensor_if(mask[1], w), tensor_if(mask[2], b)};
  }
  const DimVector dims = last_dims(static_cast<int64_t>(normalized_shape.size()));
  const Standardized x = standardize(input, dims, eps);
  const Tensor weighted = weight.defined() ? grad * weight : grad;
  return {normalization_backward(weighted, x, dims), (grad * x.value).sum_to_size(normalized_shape),
          grad.sum_to_size(normalized_shape)};
}

DimVector in_groups(const Tensor& input, int64_t num_groups) {
  return {input.size(0), num_groups, product(input.sizes().slice(1, input.dim() - 1)) / num_groups};
}

ThreeTensors group_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                 const Tensor&, const Tensor& mean, const Tensor& rstd,
                                 int64_t num_groups, double eps, std::array<bool, 3> mask) {
  if (!forward::is_differentiated(grad, input, weight)) {
    const auto [x, w, b] = _group_norm_backward(grad, input, mean, rstd, weight, num_groups);
    return {tensor_if(mask[0], x), tensor_if(mask[1], w), tensor_if(mask[2], b)};
  }
  const DimVector grouped = in_groups(input, num_groups);
  const Standardized x = standardize(input.reshape(grouped), {-1}, eps);
  const Tensor weighted = weight.defined() ? grad * per_channel(weight, input) : grad;
  const DimVector dims = all_but_channels(input);
  return {normalization_backward(weighted.reshape(grouped), x, {-1}).reshape(input.sizes()),
          (grad * x.value.reshape(input.sizes())).sum(dims), grad.sum(dims)};
}

namespace {
double rms_eps(const Tensor& input, std::optional<double> eps) {
  return eps.value_or(accumulation_dtype(input) == kFloat64
                          ? std::numeric_limits<double>::epsilon()
                          : std::numeric_limits<float>::epsilon());
}
}  // namespace

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& grad, const Tensor& input,
                                             IntArrayRef normalized_shape, const Tensor& weight,
                                             const Tensor& rstd, std::optional<double> eps,
                                             std::array<bool, 2> mask) {
  if (!forward::is_differentiated(grad, input, weight)) {
    const auto [x, w] = _fused_rms_norm_backward(grad, input, normalized_shape, rstd, weight);
    return {tensor_if(mask[0], x), tensor_if(mask[1], w)};
  }
  const DimVector dims = last_dims(static_cast<int64_t>(normalized_shape.size()));
  const Tensor scale = ((input * input).mean(dims, true) + rms_eps(input, eps)).rsqrt();
  const Tensor value = input * scale;
  const Tensor weighted = weight.defined() ? grad * weight : grad;
  return {scale * (weighted - value * (weighted * value).mean(dims, true)),
          (grad * value).sum_to_size(normalized_shape)};
}

Tensor batch_norm_tangent(const Tensor& input_t, const Tensor& input, const Tensor& weight,
                          const Tensor& running_mean, const Tensor& running_var, const Tensor& mean,
                          const Tensor& invstd, bool training, double eps) {
  if (training) {  // symmetric: tangents and gradients take the same way
    return std::get<0>(batch_norm_backward(input_t, input, weight, running_mean, running_var, mean,
                                           invstd, training, eps, {true, false, false}));
  }
  const Tensor rstd = (running_var + eps).rsqrt();
  return input_t * per_channel(weight.defined() ? rstd * weight : rstd, input);
}

Tensor batch_norm_scaled(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                         const Tensor& mean, const Tensor& invstd, bool training, double eps) {
  if (training && forward::is_differentiated(input)) {
    return standardize(input, all_but_channels(input), eps).value;
  }
  const Tensor rstd = training ? invstd : (running_var + eps).rsqrt();
  return (input - per_channel(training ? mean : running_mean, input)) * per_channel(rstd, input);
}

Tensor layer_norm_scaled(const Tensor& input, IntArrayRef normalized_shape, const Tensor& mean,
                         const Tensor& rstd, double eps) {
  if (forward::is_differentiated(input)) {
    const DimVector dims = last_dims(static_cast<int64_t>(normalized_shape.size()));
    return standardize(input, dims, eps).value;
  }
  return (input - mean) * rstd;
}

Tensor group_norm_scaled(const Tensor& input, const Tensor& mean, const Tensor& rstd,
                         int64_t num_groups, double eps) {
  const Tensor groups = input.reshape(in_groups(input, num_groups));
  const Tensor scaled = forward::is_differentiated(input)
                            ? standardize(groups, {-1}, eps).value
                            : (groups - mean.unsqueeze(-1)) * rstd.unsqueeze(-1);
  return scaled.reshape(input.sizes());
}

Tensor rms_norm_scaled(const Tensor& input, IntArrayRef normalized_shape, const Tensor& rstd,
                       std::optional<double> eps) {
  if (forward::is_differentiated(input)) {
    const DimVector dims = last_dims(static_cast<int64_t>(normalized_shape.size()));
    return input * ((input * input).mean(dims, true) + rms_eps(input, eps)).rsqrt();
  }
  return input * rstd;
}

// ---- composites ----

namespace composite {

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const Tensor& running_mean, const Tensor& running_var, bool training,
                  double momentum, double eps, bool) {
  return std::get<0>(
      native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps));
}

Tensor layer_norm(const Tensor& input, IntArrayRef normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps, bool) {
  return std::get<0>(native_layer_norm(input, normalized_shape, weight, bias, eps));
}

Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias,
                  double eps, bool) {
  const Tensor output = std::get<0>(_group_norm(input, weight, bias, num_groups, eps));
  const MemoryFormat format = format_of(input);
  return format == MemoryFormat::Contiguous ? output : output.contiguous(format);
}

std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor& input, const Tensor& weight,
                                                     const Tensor& bias, int64_t N, int64_t C,
                                                     int64_t HxW, int64_t group, double eps) {
  RL_CHECK(input.dim() >= 2 && input.size(0) == N && input.size(1) == C &&
               input.numel() == product({N, C, HxW}),
           "native_group_norm: expected an input of ", N, " images with ", C, " channels of ", HxW,
           " elements, but got sizes ", input.sizes());
  return _group_norm(input, weight, bias, group, eps);
}

namespace {
// What is written in the scope may have been made before the transform that runs.
class Outside {
 public:
  Outside() : transforming_(std::exchange(tls.transforming, false)) {}
  ~Outside() { tls.transforming = transforming_; }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  bool transforming_;
};
}  // namespace

Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const Tensor& running_mean, const Tensor& running_var, bool use_input_stats,
                     double momentum, double eps, bool) {
  RL_CHECK(input.dim() >= 2, "instance_norm expects an input of at least 2 dimensions, got ",
           input.dim());
  RL_CHECK(use_input_stats || (running_mean.defined() && running_var.defined()),
           "Expected running_mean and running_var to be defined when use_input_stats is false");
  const int64_t images = input.size(0);
  const int64_t channels = input.size(1);
  // Every channel of every image becomes a channel of one image.
  DimVector sizes(input.sizes());
  sizes[0] = 1;
  sizes[1] = images * channels;
  const auto repeat_for_images = [&](const Tensor& t) {
    return t.defined() ? t.unsqueeze(0).expand({images, t.size(0)}).reshape({-1}) : t;
  };
  // Copies even for one image: they are written.
  const Tensor mean =
      running_mean.defined() ? repeat_for_images(running_mean).clone() : running_mean;
  const Tensor var = running_var.defined() ? repeat_for_images(running_var).clone() : running_var;
  const Tensor out = composite::batch_norm(input.reshape(sizes), repeat_for_images(weight),
                                           repeat_for_images(bias), mean, var, use_input_stats,
                                           momentum, eps, true);
  if (use_input_stats) {
    const NoGradGuard no_grad;
    // A function that is differentiated may update statistics that it captures, as batch_norm does.
    const Outside transforms;
    if (running_mean.defined()) {
      running_mean.copy_(mean.reshape({images, channels}).mean(DimVector{0}));
    }
    if (running_var.defined()) {
      running_var.copy_(var.reshape({images, channels}).mean(DimVector{0}));
    }
  }
  return out.reshape(input.sizes());
}

namespace {

// Statistics of one value are no statistics: it would become 0.
void check_values(const char* what, int64_t values, const std::string& sizes) {
  RL_CHECK_VALUE(values != 1, "Expected more than 1 ", what,
                 " in training, for statistics of one are none, but the shape is ", sizes);
}

std::string size_of(const Tensor& input) { return str("torch.Size(", input.sizes(), ")"); }

int64_t values_per_channel(IntArrayRef sizes) {
  return product(sizes) / std::max<int64_t>(sizes[1], 1);
}

}  // namespace

Tensor _batch_norm_of_values(const Tensor& input, const Tensor& running_mean,
                             const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                             bool training, double momentum, double eps) {
  if (training && input.dim() >= 2) {
    check_values("value per channel", values_per_channel(input.sizes()), size_of(input));
  }
  return rushlight::batch_norm(input, weight, bias, running_mean, running_var, training, momentum,
                               eps);
}

Tensor _instance_norm_of_values(const Tensor& input, const Tensor& running_mean,
                                const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                                bool use_input_stats, double momentum, double eps) {
  if (use_input_stats) {
    const size_t kept = std::min<size_t>(input.sizes().size(), 2);
    const int64_t values = product(input.sizes().slice(kept, input.sizes().size() - kept));
    check_values("spatial element", values, size_of(input));
  }
  return rushlight::instance_norm(input, weight, bias, running_mean, running_var, use_input_stats,
                                  momentum, eps);
}

Tensor _group_norm_of_values(const Tensor& input, int64_t num_groups, const Tensor& weight,
                             const Tensor& bias, double eps) {
  if (input.dim() >= 2 && num_groups > 0) {
    DimVector grouped(input.sizes());
    grouped[0] = input.size(0) * input.size(1) / num_groups;
    grouped[1] = num_groups;
    check_values("value per channel", values_per_channel(grouped), str(IntArrayRef(grouped)));
  }
  return rushlight::group_norm(input, num_groups, weight, bias, eps);
}

Tensor rms_norm(const Tensor& input, IntArrayRef normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  if (input.is_complex()) {
    check_normalized_shape(input, normalized_shape, weight, Tensor());
    const DimVector dims = last_dims(static_cast<int64_t>(normalized_shape.size()));
    const double small = rms_eps(rushlight::real(input), eps);
    const Tensor value = input * ((input * input).mean(dims, true) + small).rsqrt();
    return weight.defined() ? value * weight : value;
  }
  return std::get<0>(_fused_rms_norm(input, normalized_shape, weight, eps));
}

Tensor local_response_norm(const Tensor& input, int64_t size, double alpha, double beta, double k) {
  RL_CHECK_VALUE(input.dim() >= 3, "Expected 3D or higher dimensionality input (got ", input.dim(),
                 " dimensions)");
  RL_CHECK(size >= 1, "local_response_norm: size must be at least 1, got ", size);
  if (input.numel() == 0) {
    return input;
  }
  const auto pad_channels = [&](const Tensor& t) {
    return rushlight::constant_pad_nd(t.flatten(2).unsqueeze(1), {0, 0, size / 2, (size - 1) / 2});
  };
  const Tensor means = rushlight::avg_pool2d(pad_channels(input.square()), {size, 1}, 1).squeeze(1);
  const Sizes limits = moderate_sizes(input.dtype(), 1);
  const bool by_lengths = alpha >= 0 && k >= 0 && is_floating(input.dtype());
  if (!by_lengths || are_moderate(means, {k > 0 ? 0 : limits.least, limits.most})) {
    return input / (means.reshape(input.sizes()) * alpha + k).pow(Scalar(beta));
  }
  // Squares overflow, or vanish where they alone count: the root of the sum by lengths of windows.
  const Tensor lengths =
      rushlight::lp_pool2d(pad_channels(input), 2, {size, 1}, DimVector{1}).squeeze(1);
  const Tensor roots =
      lengths.reshape(input.sizes()) * std::sqrt(alpha / static_cast<double>(size));
  const Tensor root = rushlight::hypot(roots, rushlight::full_like(roots, std::sqrt(k)));
  return input / root * root.pow(Scalar(1 - 2 * beta));
}

Tensor normalize(const Tensor& input, double p, IntArrayRef dim, double eps) {
  return input / input.norm(Scalar(p), dim, true).clamp_min(Scalar(eps));
}

}  // namespace composite
}  // namespace rushlight
