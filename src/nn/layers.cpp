// Layers with parameters: registering them, their starting values, forward, printing.
#include <rushlight/nn/layers.h>

#include <cmath>
#include <ostream>

#include <rushlight/factories.h>
#include <rushlight/nn/functional.h>
#include <rushlight/nn/init.h>

#include "nn/detail.h"

namespace torch::nn {

namespace {

#define RL_MADE(Name)                                                             \
  template class Cloneable<Name##Impl>;                                           \
  Name##Impl::Name##Impl(Name##Options options_) : options(std::move(options_)) { \
    Name##Impl::reset();                                                          \
  }
#define RL_PLAIN(Name) \
  void Name##Impl::reset() {}

const char* bool_text(bool b) { return b ? "true" : "false"; }

// Uniform within 1/√fan_in, as linear layers and convolutions start.
void start(const Tensor& weight, const Tensor& bias) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  const int64_t fan_in = std::get<0>(init::_calculate_fan_in_and_fan_out(weight));
  if (bias.defined() && fan_in != 0) {
    const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
    init::uniform_(bias, -bound, bound);
  }
}

DimVector prepend_dims(std::initializer_list<int64_t> first, IntArrayRef rest) {
  DimVector out(first);
  for (const int64_t n : rest) {
    out.push_back(n);
  }
  return out;
}

}  // namespace

// ---- linear ----

RL_MADE(Linear)
void LinearImpl::reset() {
  weight = register_parameter("weight", empty({options.out_features(), options.in_features()}));
  bias = register_parameter("bias", options.bias() ? empty({options.out_features()}) : Tensor());
  reset_parameters();
}
void LinearImpl::reset_parameters() { start(weight, bias); }
Tensor LinearImpl::forward(const Tensor& input) { return rushlight::linear(input, weight, bias); }
void LinearImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::Linear(in_features=" << options.in_features()
         << ", out_features=" << options.out_features() << ", bias=" << bool_text(options.bias())
         << ')';
}

RL_MADE(Bilinear)
void BilinearImpl::reset() {
  weight = register_parameter(
      "weight", empty({options.out_features(), options.in1_features(), options.in2_features()}));
  bias = register_parameter("bias", options.bias() ? empty({options.out_features()}) : Tensor());
  reset_parameters();
}
void BilinearImpl::reset_parameters() {
  const double bound = 1 / std::sqrt(static_cast<double>(weight.size(1)));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) {
    init::uniform_(bias, -bound, bound);
  }
}
Tensor BilinearImpl::forward(const Tensor& input1, const Tensor& input2) {
  return rushlight::bilinear(input1, input2, weight, bias);
}
void BilinearImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::Bilinear(in1_features=" << options.in1_features()
         << ", in2_features=" << options.in2_features()
         << ", out_features=" << options.out_features() << ", bias=" << bool_text(options.bias())
         << ')';
}

template class Cloneable<IdentityImpl>;
void IdentityImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::Identity()"; }

RL_MADE(Unflatten)
RL_PLAIN(Unflatten)
Tensor UnflattenImpl::forward(const Tensor& input) {
  return input.unflatten(options.dim(), options.sizes());
}
void UnflattenImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::Unflatten(dim=" << options.dim() << ", unflattened_size={";
  for (size_t i = 0; i < options.sizes().size(); i++) {
    stream << (i == 0 ? "" : ", ") << options.sizes()[i];
  }
  stream << "})";
}

// ---- activations ----

RL_MADE(Hardtanh)
void HardtanhImpl::reset() {
  RL_CHECK(options.max_val() > options.min_val(), "max_val must be greater than min_val");
}
Tensor HardtanhImpl::forward(const Tensor& input) {
  return functional::detail::hardtanh(input, options.min_val(), options.max_val(),
                                      options.inplace());
}
void HardtanhImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::Hardtanh(min_val=" << options.min_val() << ", max_val=" << options.max_val()
         << (options.inplace() ? ", inplace=true)" : ")");
}
RL_MADE(ReLU6)
RL_PLAIN(ReLU6)
Tensor ReLU6Impl::forward(const Tensor& input) {
  return functional::detail::relu6(input, options.inplace());
}
void ReLU6Impl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::ReLU6(" << (options.inplace() ? "inplace=true)" : ")");
}
RL_MADE(PReLU)
void PReLUImpl::reset() {
  weight = register_parameter("weight", full({options.num_parameters()}, options.init()));
}
Tensor PReLUImpl::forward(const Tensor& input) { return input.prelu(weight); }
void PReLUImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::PReLU(num_parameters=" << options.num_parameters() << ')';
}
template class Cloneable<Softmax2dImpl>;
Tensor Softmax2dImpl::forward(const Tensor& input) {
  RL_CHECK(input.dim() == 4 || input.dim() == 3, "Softmax2d requires a 3D or 4D tensor as input");
  return input.softmax(-3);
}
void Softmax2dImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::Softmax2d()"; }

// ---- convolution ----

namespace {

template <size_t D, class Options>
void check_channels(const Options& o) {
  RL_CHECK(o.groups() > 0 && o.in_channels() > 0 && o.out_channels() > 0,
           "in_channels, groups and out_channels must be greater than 0.");
  RL_CHECK(o.in_channels() % o.groups() == 0, "in_channels must be divisible by groups");
  RL_CHECK(o.out_channels() % o.groups() == 0, "out_channels must be divisible by groups");
}

template <size_t D, class Options>
void print_conv(std::ostream& stream, const char* name, const Options& o, bool padded) {
  const auto print = [&](const char* what, IntArrayRef list, int64_t usual) {
    for (const int64_t n : list) {
      if (n != usual) {
        stream << ", " << what << '=' << str(list);
        return;
      }
    }
  };
  stream << "torch::nn::" << name << D << "d(" << o.in_channels() << ", " << o.out_channels()
         << ", kernel_size=" << o.kernel_size() << ", stride=" << o.stride();
  if constexpr (std::is_same_v<Options, ConvOptions<D>>) {
    if (padded && !o.padding().word().empty()) {
      stream << ", padding='" << o.padding().word() << '\'';
    } else {
      print("padding", o.padding().sizes(), 0);
    }
  } else {
    print("padding", o.padding(), 0);
    print("output_padding", o.output_padding(), 0);
  }
  print("dilation", o.dilation(), 1);
  if (o.groups() != 1) {
    stream << ", groups=" << o.groups();
  }
  if (!o.bias()) {
    stream << ", bias=false";
  }
  if (o.padding_mode() != "zeros") {
    stream << ", padding_mode=" << constant_of(o.padding_mode());
  }
  stream << ')';
}

// What goes before and behind each dimension, last dimension first, where the padding is no zeros.
template <size_t D>
DimVector padding_for_pad(const ConvOptions<D>& o) {
  DimVector out;
  for (size_t i = D; i-- > 0;) {
    const int64_t reach = (*o.dilation())[i] * ((*o.kernel_size())[i] - 1);
    const int64_t own = (*o.padding().sizes())[i];
    const bool same = o.padding().word() == "same";
    out.push_back(same ? reach / 2 : own);
    out.push_back(same ? reach - reach / 2 : own);
  }
  return out;
}

// The part of the output behind what the input alone would give.
template <size_t D>
DimVector output_padding(const ConvTransposeOptions<D>& o, const Tensor& input,
                         std::optional<IntArrayRef> output_size) {
  if (!output_size) {
    return DimVector(IntArrayRef(o.output_padding()));
  }
  IntArrayRef wanted = *output_size;
  const auto extra = static_cast<size_t>(input.dim()) - D;
  if (wanted.size() == D + extra) {
    wanted = wanted.slice(extra);
  }
  RL_CHECK_VALUE(wanted.size() == D, "output_size must have ", D, " or ", D + extra,
                 " elements (got ", wanted.size(), ")");
  DimVector out;
  for (size_t i = 0; i < D; i++) {
    const int64_t least = (input.size(static_cast<int64_t>(i + extra)) - 1) * (*o.stride())[i] -
                          2 * (*o.padding())[i] + (*o.dilation())[i] * ((*o.kernel_size())[i] - 1) +
                          1;
    const int64_t most = least + (*o.stride())[i] - 1;
    RL_CHECK_VALUE(wanted[i] >= least && wanted[i] <= most, "requested an output size of ", wanted,
                   ", but valid sizes range from ", least, " to ", most, " in dimension ", i);
    out.push_back(wanted[i] - least);
  }
  return out;
}

}  // namespace

#define RL_CONV(n)                                                                               \
  RL_MADE(Conv##n##d)                                                                            \
  void Conv##n##dImpl::reset() {                                                                 \
    check_channels<n>(options);                                                                  \
    weight = register_parameter(                                                                 \
        "weight",                                                                                \
        empty(prepend_dims({options.out_channels(), options.in_channels() / options.groups()},   \
                           options.kernel_size())));                                             \
    bias =                                                                                       \
        register_parameter("bias", options.bias() ? empty({options.out_channels()}) : Tensor()); \
    reset_parameters();                                                                          \
  }                                                                                              \
  void Conv##n##dImpl::reset_parameters() { start(weight, bias); }                               \
  Tensor Conv##n##dImpl::forward(const Tensor& input) {                                          \
    const ConvPadding<n>& padding = options.padding();                                           \
    if (options.padding_mode() != "zeros") {                                                     \
      const Tensor padded = pad(input, padding_for_pad(options), options.padding_mode());        \
      return conv##n##d(padded, weight, bias, options.stride(), IntArrayRef(int64_t{0}),         \
                        options.dilation(), options.groups());                                   \
    }                                                                                            \
    if (!padding.word().empty()) {                                                               \
      return conv##n##d(input, weight, bias, options.stride(), std::string_view(padding.word()), \
                        options.dilation(), options.groups());                                   \
    }                                                                                            \
    return conv##n##d(input, weight, bias, options.stride(), IntArrayRef(padding.sizes()),       \
                      options.dilation(), options.groups());                                     \
  }                                                                                              \
  void Conv##n##dImpl::pretty_print(std::ostream& stream) const {                                \
    print_conv<n>(stream, "Conv", options, true);                                                \
  }                                                                                              \
  RL_MADE(ConvTranspose##n##d)                                                                   \
  void ConvTranspose##n##dImpl::reset() {                                                        \
    check_channels<n>(options);                                                                  \
    RL_CHECK(options.padding_mode() == "zeros",                                                  \
             "Only `zeros` padding mode is supported for ConvTranspose" #n "d");                 \
    weight = register_parameter(                                                                 \
        "weight",                                                                                \
        empty(prepend_dims({options.in_channels(), options.out_channels() / options.groups()},   \
                           options.kernel_size())));                                             \
    bias =                                                                                       \
        register_parameter("bias", options.bias() ? empty({options.out_channels()}) : Tensor()); \
    reset_parameters();                                                                          \
  }                                                                                              \
  void ConvTranspose##n##dImpl::reset_parameters() { start(weight, bias); }                      \
  Tensor ConvTranspose##n##dImpl::forward(const Tensor& input,                                   \
                                          std::optional<IntArrayRef> output_size) {              \
    return conv_transpose##n##d(input, weight, bias, options.stride(), options.padding(),        \
                                output_padding(options, input, output_size), options.groups(),   \
                                options.dilation());                                             \
  }                                                                                              \
  void ConvTranspose##n##dImpl::pretty_print(std::ostream& stream) const {                       \
    print_conv<n>(stream, "ConvTranspose", options, false);                                      \
  }
RL_CONV(1)
RL_CONV(2)
RL_CONV(3)
#undef RL_CONV

// ---- normalisation ----

namespace {

void check_dims(const Tensor& input, int64_t least, int64_t most) {
  RL_CHECK_VALUE(input.dim() >= least && input.dim() <= most, "expected ", least, "D",
                 least == most ? std::string() : str(" or ", most, 'D'), " input (got ",
                 input.dim(), "D input)");
}

template <class M>
Tensor batch_norm_of(M& m, const Tensor& input) {
  const std::optional<double> momentum = m.options.momentum();
  double factor = momentum.value_or(0);
  if (m.is_training() && m.options.track_running_stats() && m.num_batches_tracked.defined()) {
    const NoGradGuard no_grad;
    m.num_batches_tracked.add_(1);
    if (!momentum) {
      factor = 1 / static_cast<double>(m.num_batches_tracked.template item<int64_t>());
    }
  }
  const bool from_batch = m.is_training() || !m.running_mean.defined();
  const bool used = !m.is_training() || m.options.track_running_stats();
  return batch_norm(input, m.weight, m.bias, used ? m.running_mean : Tensor(),
                    used ? m.running_var : Tensor(), from_batch, factor, m.options.eps());
}

template <class M>
Tensor instance_norm_of(M& m, const Tensor& input, int64_t without_batch) {
  const bool single = input.dim() == without_batch;
  const Tensor out = instance_norm(
      single ? input.unsqueeze(0) : input, m.weight, m.bias, m.running_mean, m.running_var,
      m.is_training() || !m.options.track_running_stats(), m.options.momentum(), m.options.eps());
  return single ? out.squeeze(0) : out;
}

void print_momentum(std::ostream& stream, std::optional<double> momentum) {
  if (momentum) {
    stream << *momentum;
  } else {
    stream << "nullopt";
  }
}

}  // namespace

#define RL_NORM(Name, n, forwarded)                                                              \
  RL_MADE(Name##n##d)                                                                            \
  void Name##n##d##Impl::reset() {                                                               \
    const int64_t c = options.num_features();                                                    \
    weight = register_parameter("weight", options.affine() ? empty({c}) : Tensor());             \
    bias = register_parameter("bias", options.affine() ? empty({c}) : Tensor());                 \
    const bool track = options.track_running_stats();                                            \
    running_mean = register_buffer("running_mean", track ? zeros({c}) : Tensor());               \
    running_var = register_buffer("running_var", track ? ones({c}) : Tensor());                  \
    num_batches_tracked =                                                                        \
        register_buffer("num_batches_tracked", track ? tensor(0, kInt64) : Tensor());            \
    reset_parameters();                                                                          \
  }                                                                                              \
  void Name##n##d##Impl::reset_running_stats() {                                                 \
    if (options.track_running_stats()) {                                                         \
      running_mean.zero_();                                                                      \
      running_var.fill_(1);                                                                      \
      num_batches_tracked.zero_();                                                               \
    }                                                                                            \
  }                                                                                              \
  void Name##n##d##Impl::reset_parameters() {                                                    \
    reset_running_stats();                                                                       \
    if (options.affine()) {                                                                      \
      init::ones_(weight);                                                                       \
      init::zeros_(bias);                                                                        \
    }                                                                                            \
  }                                                                                              \
  Tensor Name##n##d##Impl::forward(const Tensor& input) { forwarded }                            \
  void Name##n##d##Impl::pretty_print(std::ostream& stream) const {                              \
    stream << "torch::nn::" #Name #n "d(" << options.num_features() << ", eps=" << options.eps() \
           << ", momentum=";                                                                     \
    print_momentum(stream, options.momentum());                                                  \
    stream << ", affine=" << bool_text(options.affine())                                         \
           << ", track_running_stats=" << bool_text(options.track_running_stats()) << ')';       \
  }
#define RL_BATCH(n, least, most)        \
  RL_NORM(BatchNorm, n, {               \
    check_dims(input, least, most);     \
    return batch_norm_of(*this, input); \
  })
#define RL_INSTANCE(n)                              \
  RL_NORM(InstanceNorm, n, {                        \
    check_dims(input, (n) + 1, (n) + 2);            \
    return instance_norm_of(*this, input, (n) + 1); \
  })
RL_BATCH(1, 2, 3)
RL_BATCH(2, 4, 4)
RL_BATCH(3, 5, 5)
RL_INSTANCE(1)
RL_INSTANCE(2)
RL_INSTANCE(3)
#undef RL_BATCH
#undef RL_INSTANCE
#undef RL_NORM

RL_MADE(LayerNorm)
void LayerNormImpl::reset() {
  const bool affine = options.elementwise_affine();
  weight = register_parameter(
      "weight", affine ? rushlight::empty(IntArrayRef(options.normalized_shape())) : Tensor());
  bias = register_parameter("bias", affine && options.bias()
                                        ? rushlight::empty(IntArrayRef(options.normalized_shape()))
                                        : Tensor());
  reset_parameters();
}
void LayerNormImpl::reset_parameters() {
  if (weight.defined()) {
    init::ones_(weight);
  }
  if (bias.defined()) {
    init::zeros_(bias);
  }
}
Tensor LayerNormImpl::forward(const Tensor& input) {
  return layer_norm(input, options.normalized_shape(), weight, bias, options.eps());
}
void LayerNormImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::LayerNorm(" << str(IntArrayRef(options.normalized_shape()))
         << ", eps=" << options.eps()
         << ", elementwise_affine=" << bool_text(options.elementwise_affine()) << ')';
}

RL_MADE(GroupNorm)
void GroupNormImpl::reset() {
  const int64_t c = options.num_channels();
  weight = register_parameter("weight", options.affine() ? empty({c}) : Tensor());
  bias = register_parameter("bias", options.affine() ? empty({c}) : Tensor());
  reset_parameters();
}
void GroupNormImpl::reset_parameters() {
  if (options.affine()) {
    init::ones_(weight);
    init::zeros_(bias);
  }
}
Tensor GroupNormImpl::forward(const Tensor& input) {
  return group_norm(input, options.num_groups(), weight, bias, options.eps());
}
void GroupNormImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::GroupNorm(" << options.num_groups() << ", " << options.num_channels()
         << ", eps=" << options.eps() << ", affine=" << bool_text(options.affine()) << ')';
}

RL_MADE(LocalResponseNorm)
RL_PLAIN(LocalResponseNorm)
Tensor LocalResponseNormImpl::forward(const Tensor& input) {
  return local_response_norm(input, options.size(), options.alpha(), options.beta(), options.k());
}
void LocalResponseNormImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::LocalResponseNorm(" << options.size() << ", alpha=" << options.alpha()
         << ", beta=" << options.beta() << ", k=" << options.k() << ')';
}

RL_MADE(CrossMapLRN2d)
RL_PLAIN(CrossMapLRN2d)
Tensor CrossMapLRN2dImpl::forward(const Tensor& input) {
  return local_response_norm(input, options.size(), options.alpha(), options.beta(),
                             static_cast<double>(options.k()));
}
void CrossMapLRN2dImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::CrossMapLRN2d(" << options.size() << ", alpha=" << options.alpha()
         << ", beta=" << options.beta() << ", k=" << options.k() << ')';
}

// ---- embedding ----

namespace {
// A row that is counted from the end, from the start.
std::optional<int64_t> place_of(std::optional<int64_t> padding_idx, int64_t rows) {
  if (padding_idx) {
    RL_CHECK(*padding_idx >= -rows && *padding_idx < rows,
             "Padding_idx must be within num_embeddings");
    return *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
  }
  return padding_idx;
}
template <class M>
void reset_embedding(M& m, Tensor& weight, const Tensor& given) {
  if (given.defined()) {
    weight = m.register_parameter("weight", given);
  } else {
    weight = m.register_parameter("weight",
                                  empty({m.options.num_embeddings(), m.options.embedding_dim()}));
    m.reset_parameters();
  }
}
template <class M>
void start_embedding(const M& m) {
  init::normal_(m.weight);
  if (m.options.padding_idx()) {
    const NoGradGuard no_grad;
    m.weight[*m.options.padding_idx()].fill_(0);
  }
}
template <class Options>
void print_embedding(std::ostream& stream, const Options& o) {
  stream << "(num_embeddings=" << o.num_embeddings() << ", embedding_dim=" << o.embedding_dim();
  if (o.padding_idx()) {
    stream << ", padding_idx=" << *o.padding_idx();
  }
  if (o.max_norm()) {
    stream << ", max_norm=" << *o.max_norm();
  }
  if (o.norm_type() != 2) {
    stream << ", norm_type=" << o.norm_type();
  }
  stream << (o.scale_grad_by_freq() ? ", scale_grad_by_freq=true" : "")
         << (o.sparse() ? ", sparse=true" : "");
}
}  // namespace

RL_MADE(Embedding)
void EmbeddingImpl::reset() {
  options.padding_idx(place_of(options.padding_idx(), options.num_embeddings()));
  reset_embedding(*this, weight, options._weight());
}
void EmbeddingImpl::reset_parameters() { start_embedding(*this); }
Tensor EmbeddingImpl::forward(const Tensor& indices) {
  return _rows_of_embedding(indices, weight, options.padding_idx(), options.max_norm(),
                            options.norm_type(), options.scale_grad_by_freq(), options.sparse());
}
void EmbeddingImpl::pretty_print(std::ostream& stream) const {
  print_embedding(stream << "torch::nn::Embedding", options);
  stream << ')';
}
Embedding Embedding::from_pretrained(const Tensor& embeddings,
                                     const EmbeddingFromPretrainedOptions& o) {
  RL_CHECK(embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional");
  Embedding made(EmbeddingOptions(embeddings.size(0), embeddings.size(1))
                     ._weight(embeddings)
                     .padding_idx(o.padding_idx())
                     .max_norm(o.max_norm())
                     .norm_type(o.norm_type())
                     .scale_grad_by_freq(o.scale_grad_by_freq())
                     .sparse(o.sparse()));
  made->weight.set_requires_grad(!o.freeze());
  return made;
}

RL_MADE(EmbeddingBag)
void EmbeddingBagImpl::reset() {
  options.padding_idx(place_of(options.padding_idx(), options.num_embeddings()));
  reset_embedding(*this, weight, options._weight());
}
EmbeddingBag EmbeddingBag::from_pretrained(const Tensor& embeddings,
                                           const EmbeddingBagFromPretrainedOptions& o) {
  RL_CHECK(embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional");
  EmbeddingBag made(EmbeddingBagOptions(embeddings.size(0), embeddings.size(1))
                        ._weight(embeddings)
                        .max_norm(o.max_norm())
                        .norm_type(o.norm_type())
                        .scale_grad_by_freq(o.scale_grad_by_freq())
                        .mode(o.mode())
                        .sparse(o.sparse())
                        .include_last_offset(o.include_last_offset())
                        .padding_idx(o.padding_idx()));
  made->weight.set_requires_grad(!o.freeze());
  return made;
}
void EmbeddingBagImpl::reset_parameters() { start_embedding(*this); }
Tensor EmbeddingBagImpl::forward(const Tensor& input, const Tensor& offsets,
                                 const Tensor& per_sample_weights) {
  return functional::embedding_bag(input, weight,
                                   functional::EmbeddingBagFuncOptions()
                                       .offsets(offsets)
                                       .max_norm(options.max_norm())
                                       .norm_type(options.norm_type())
                                       .scale_grad_by_freq(options.scale_grad_by_freq())
                                       .mode(options.mode())
                                       .sparse(options.sparse())
                                       .per_sample_weights(per_sample_weights)
                                       .include_last_offset(options.include_last_offset())
                                       .padding_idx(options.padding_idx()));
}
void EmbeddingBagImpl::pretty_print(std::ostream& stream) const {
  print_embedding(stream << "torch::nn::EmbeddingBag", options);
  if (options.mode() != "mean") {
    stream << ", mode=" << constant_of(options.mode());
  }
  stream << (options.include_last_offset() ? ", include_last_offset=true)" : ")");
}

// ---- upsampling, ctc ----

RL_MADE(Upsample)
RL_PLAIN(Upsample)
Tensor UpsampleImpl::forward(const Tensor& input) {
  OptionalIntArrayRef size;
  if (options.size()) {
    size = *options.size();
  }
  std::optional<ArrayRef<double>> scale;
  std::vector<double> factors;
  if (options.scale_factor()) {
    factors = *options.scale_factor();
    scale = ArrayRef<double>(factors);
  }
  return interpolate(input, size, scale, options.mode(), options.align_corners());
}
void UpsampleImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::Upsample(";
  if (options.scale_factor()) {
    stream << "scale_factor=";
    for (size_t i = 0; i < options.scale_factor()->size(); i++) {
      stream << (i == 0 ? "[" : ", ") << (*options.scale_factor())[i];
    }
    stream << ']';
  } else if (options.size()) {
    stream << "size=" << str(IntArrayRef(*options.size()));
  }
  stream << ", mode=" << constant_of(options.mode()) << ')';
}

RL_MADE(CTCLoss)
RL_PLAIN(CTCLoss)
Tensor CTCLossImpl::forward(const Tensor& log_probs, const Tensor& targets,
                            const Tensor& input_lengths, const Tensor& target_lengths) {
  return ctc_loss(log_probs, targets, input_lengths, target_lengths, options.blank(),
                  reduction_of(options.reduction()), options.zero_infinity());
}
void CTCLossImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::CTCLoss()"; }

}  // namespace torch::nn
