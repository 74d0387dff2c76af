// The layers that hold parameters or buffers, and the few without that are no entries of the table:
// linear, convolution, normalisation, embedding.
#pragma once

#include <rushlight/nn/module.h>
#include <rushlight/nn/options.h>

namespace torch::nn {

// What a layer's class declares beside forward: its options, reset() and how it prints.
#define RL_LAYER(Name)                                    \
  explicit Name##Impl(Name##Options options_);            \
  void reset() override;                                  \
  void pretty_print(std::ostream& stream) const override; \
  Name##Options options

// ---- linear ----

struct LinearOptions {
  LinearOptions(int64_t in_features, int64_t out_features)
      : in_features_(in_features), out_features_(out_features) {}
  TORCH_ARG(int64_t, in_features);
  TORCH_ARG(int64_t, out_features);
  TORCH_ARG(bool, bias) = true;
};
class RL_API LinearImpl : public Cloneable<LinearImpl> {
 public:
  RL_LAYER(Linear);
  LinearImpl(int64_t in_features, int64_t out_features)
      : LinearImpl(LinearOptions(in_features, out_features)) {}
  void reset_parameters();
  Tensor forward(const Tensor& input);
  Tensor weight;
  Tensor bias;
};
RL_MODULE(Linear);

struct BilinearOptions {
  BilinearOptions(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : in1_features_(in1_features), in2_features_(in2_features), out_features_(out_features) {}
  TORCH_ARG(int64_t, in1_features);
  TORCH_ARG(int64_t, in2_features);
  TORCH_ARG(int64_t, out_features);
  TORCH_ARG(bool, bias) = true;
};
class RL_API BilinearImpl : public Cloneable<BilinearImpl> {
 public:
  RL_LAYER(Bilinear);
  BilinearImpl(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : BilinearImpl(BilinearOptions(in1_features, in2_features, out_features)) {}
  void reset_parameters();
  Tensor forward(const Tensor& input1, const Tensor& input2);
  Tensor weight;
  Tensor bias;
};
RL_MODULE(Bilinear);

class RL_API IdentityImpl : public Cloneable<IdentityImpl> {
 public:
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input) { return input; }
};
RL_MODULE(Identity);

struct UnflattenOptions {
  UnflattenOptions(int64_t dim, std::vector<int64_t> sizes) : dim_(dim), sizes_(std::move(sizes)) {}
  TORCH_ARG(int64_t, dim);
  TORCH_ARG(std::vector<int64_t>, sizes);
};
class RL_API UnflattenImpl : public Cloneable<UnflattenImpl> {
 public:
  RL_LAYER(Unflatten);
  UnflattenImpl(int64_t dim, std::vector<int64_t> sizes)
      : UnflattenImpl(UnflattenOptions(dim, std::move(sizes))) {}
  Tensor forward(const Tensor& input);
};
RL_MODULE(Unflatten);

// ---- activations with arguments of their own ----

struct HardtanhOptions {
  TORCH_ARG(double, min_val) = -1;
  TORCH_ARG(double, max_val) = 1;
  TORCH_ARG(bool, inplace) = false;
};
class RL_API HardtanhImpl : public Cloneable<HardtanhImpl> {
 public:
  RL_LAYER(Hardtanh);
  HardtanhImpl() : HardtanhImpl(HardtanhOptions()) {}
  Tensor forward(const Tensor& input);
};
RL_MODULE(Hardtanh);

struct ReLU6Options {
  ReLU6Options(bool inplace = false) : inplace_(inplace) {}
  TORCH_ARG(bool, inplace);
};
class RL_API ReLU6Impl : public Cloneable<ReLU6Impl> {
 public:
  RL_LAYER(ReLU6);
  ReLU6Impl() : ReLU6Impl(ReLU6Options()) {}
  Tensor forward(const Tensor& input);
};
RL_MODULE(ReLU6);

struct PReLUOptions {
  TORCH_ARG(int64_t, num_parameters) = 1;
  TORCH_ARG(double, init) = 0.25;
};
class RL_API PReLUImpl : public Cloneable<PReLUImpl> {
 public:
  RL_LAYER(PReLU);
  PReLUImpl() : PReLUImpl(PReLUOptions()) {}
  Tensor forward(const Tensor& input);
  Tensor weight;
};
RL_MODULE(PReLU);

class RL_API Softmax2dImpl : public Cloneable<Softmax2dImpl> {
 public:
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
};
RL_MODULE(Softmax2d);

// ---- convolution ----

// Numbers, or "same" or "valid".
template <size_t D>
class ConvPadding {
 public:
  ConvPadding(ExpandingArray<D> sizes) : sizes_(sizes) {}
  ConvPadding(int64_t one) : sizes_(one) {}
  ConvPadding(ArrayRef<int64_t> list) : sizes_(list) {}
  ConvPadding(const std::vector<int64_t>& list) : sizes_(list) {}
  ConvPadding(const std::array<int64_t, D>& sizes) : sizes_(sizes) {}
  ConvPadding(std::initializer_list<int64_t> list) : sizes_(list) {}
  ConvPadding(enumtype::Word word) : sizes_(0), word_(word.text) {}
  const std::string& word() const { return word_; }
  const ExpandingArray<D>& sizes() const { return sizes_; }

 private:
  ExpandingArray<D> sizes_;
  std::string word_;
};

template <size_t D>
struct ConvOptions {
  ConvOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  using padding_t = ConvPadding<D>;
  TORCH_ARG(int64_t, in_channels);
  TORCH_ARG(int64_t, out_channels);
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride) = 1;
  TORCH_ARG(ConvPadding<D>, padding) = 0;
  TORCH_ARG(ExpandingArray<D>, dilation) = 1;
  TORCH_ARG(int64_t, groups) = 1;
  TORCH_ARG(bool, bias) = true;
  RL_KEYWORD_ARG(padding_mode) = kZeros;
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;
template <size_t D>
struct ConvTransposeOptions {
  ConvTransposeOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  TORCH_ARG(int64_t, in_channels);
  TORCH_ARG(int64_t, out_channels);
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride) = 1;
  TORCH_ARG(ExpandingArray<D>, padding) = 0;
  TORCH_ARG(ExpandingArray<D>, output_padding) = 0;
  TORCH_ARG(int64_t, groups) = 1;
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(ExpandingArray<D>, dilation) = 1;
  RL_KEYWORD_ARG(padding_mode) = kZeros;
};
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;

#define RL_CONV(n)                                                                           \
  class RL_API Conv##n##d##Impl : public Cloneable<Conv##n##d##Impl> {                       \
   public:                                                                                   \
    RL_LAYER(Conv##n##d);                                                                    \
    Conv##n##dImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<n> kernel_size) \
        : Conv##n##dImpl(Conv##n##dOptions(in_channels, out_channels, kernel_size)) {}       \
    void reset_parameters();                                                                 \
    Tensor forward(const Tensor& input);                                                     \
    Tensor weight;                                                                           \
    Tensor bias;                                                                             \
  };                                                                                         \
  RL_MODULE(Conv##n##d);                                                                     \
  class RL_API ConvTranspose##n##d##Impl : public Cloneable<ConvTranspose##n##d##Impl> {     \
   public:                                                                                   \
    RL_LAYER(ConvTranspose##n##d);                                                           \
    ConvTranspose##n##dImpl(int64_t in_channels, int64_t out_channels,                       \
                            ExpandingArray<n> kernel_size)                                   \
        : ConvTranspose##n##dImpl(                                                           \
              ConvTranspose##n##dOptions(in_channels, out_channels, kernel_size)) {}         \
    void reset_parameters();                                                                 \
    Tensor forward(const Tensor& input, std::optional<IntArrayRef> output_size = {});        \
    Tensor weight;                                                                           \
    Tensor bias;                                                                             \
  };                                                                                         \
  RL_MODULE(ConvTranspose##n##d)
RL_CONV(1);
RL_CONV(2);
RL_CONV(3);
#undef RL_CONV

// ---- normalisation ----

struct BatchNormOptions {
  BatchNormOptions(int64_t num_features) : num_features_(num_features) {}
  TORCH_ARG(int64_t, num_features);
  TORCH_ARG(double, eps) = 1e-5;
  TORCH_ARG(std::optional<double>, momentum) = 0.1;
  TORCH_ARG(bool, affine) = true;
  TORCH_ARG(bool, track_running_stats) = true;
};
struct InstanceNormOptions {
  InstanceNormOptions(int64_t num_features) : num_features_(num_features) {}
  TORCH_ARG(int64_t, num_features);
  TORCH_ARG(double, eps) = 1e-5;
  TORCH_ARG(double, momentum) = 0.1;
  TORCH_ARG(bool, affine) = false;
  TORCH_ARG(bool, track_running_stats) = false;
};
#define RL_NORM(Name, n)                                               \
  using Name##n##dOptions = Name##Options;                             \
  class RL_API Name##n##d##Impl : public Cloneable<Name##n##d##Impl> { \
   public:                                                             \
    RL_LAYER(Name##n##d);                                              \
    void reset_parameters();                                           \
    void reset_running_stats();                                        \
    Tensor forward(const Tensor& input);                               \
    Tensor weight;                                                     \
    Tensor bias;                                                       \
    Tensor running_mean;                                               \
    Tensor running_var;                                                \
    Tensor num_batches_tracked;                                        \
  };                                                                   \
  RL_MODULE(Name##n##d)
RL_NORM(BatchNorm, 1);
RL_NORM(BatchNorm, 2);
RL_NORM(BatchNorm, 3);
RL_NORM(InstanceNorm, 1);
RL_NORM(InstanceNorm, 2);
RL_NORM(InstanceNorm, 3);
#undef RL_NORM

struct LayerNormOptions {
  LayerNormOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}
  TORCH_ARG(std::vector<int64_t>, normalized_shape);
  TORCH_ARG(double, eps) = 1e-5;
  TORCH_ARG(bool, elementwise_affine) = true;
  TORCH_ARG(bool, bias) = true;
};
class RL_API LayerNormImpl : public Cloneable<LayerNormImpl> {
 public:
  RL_LAYER(LayerNorm);
  LayerNormImpl(std::vector<int64_t> normalized_shape)
      : LayerNormImpl(LayerNormOptions(std::move(normalized_shape))) {}
  void reset_parameters();
  Tensor forward(const Tensor& input);
  Tensor weight;
  Tensor bias;
};
RL_MODULE(LayerNorm);

struct GroupNormOptions {
  GroupNormOptions(int64_t num_groups, int64_t num_channels)
      : num_groups_(num_groups), num_channels_(num_channels) {}
  TORCH_ARG(int64_t, num_groups);
  TORCH_ARG(int64_t, num_channels);
  TORCH_ARG(double, eps) = 1e-5;
  TORCH_ARG(bool, affine) = true;
};
class RL_API GroupNormImpl : public Cloneable<GroupNormImpl> {
 public:
  RL_LAYER(GroupNorm);
  GroupNormImpl(int64_t num_groups, int64_t num_channels)
      : GroupNormImpl(GroupNormOptions(num_groups, num_channels)) {}
  void reset_parameters();
  Tensor forward(const Tensor& input);
  Tensor weight;
  Tensor bias;
};
RL_MODULE(GroupNorm);

struct LocalResponseNormOptions {
  LocalResponseNormOptions(int64_t size) : size_(size) {}
  TORCH_ARG(int64_t, size);
  TORCH_ARG(double, alpha) = 1e-4;
  TORCH_ARG(double, beta) = 0.75;
  TORCH_ARG(double, k) = 1;
};
class RL_API LocalResponseNormImpl : public Cloneable<LocalResponseNormImpl> {
 public:
  RL_LAYER(LocalResponseNorm);
  Tensor forward(const Tensor& input);
};
RL_MODULE(LocalResponseNorm);

// LocalResponseNorm of (N, C, H, W), by its old name.
struct CrossMapLRN2dOptions {
  CrossMapLRN2dOptions(int64_t size) : size_(size) {}
  TORCH_ARG(int64_t, size);
  TORCH_ARG(double, alpha) = 1e-4;
  TORCH_ARG(double, beta) = 0.75;
  TORCH_ARG(int64_t, k) = 1;
};
class RL_API CrossMapLRN2dImpl : public Cloneable<CrossMapLRN2dImpl> {
 public:
  RL_LAYER(CrossMapLRN2d);
  Tensor forward(const Tensor& input);
};
RL_MODULE(CrossMapLRN2d);

// ---- embedding, upsampling, ctc ----

struct EmbeddingOptions {
  EmbeddingOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  TORCH_ARG(int64_t, num_embeddings);
  TORCH_ARG(int64_t, embedding_dim);
  TORCH_ARG(std::optional<int64_t>, padding_idx);
  TORCH_ARG(std::optional<double>, max_norm);
  TORCH_ARG(double, norm_type) = 2;
  TORCH_ARG(bool, scale_grad_by_freq) = false;
  TORCH_ARG(bool, sparse) = false;
  TORCH_ARG(Tensor, _weight);
};
class RL_API EmbeddingImpl : public Cloneable<EmbeddingImpl> {
 public:
  RL_LAYER(Embedding);
  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingImpl(EmbeddingOptions(num_embeddings, embedding_dim)) {}
  void reset_parameters();
  Tensor forward(const Tensor& indices);
  Tensor weight;
};
extern template class Cloneable<EmbeddingImpl>;
struct EmbeddingFromPretrainedOptions {
  TORCH_ARG(bool, freeze) = true;
  TORCH_ARG(std::optional<int64_t>, padding_idx);
  TORCH_ARG(std::optional<double>, max_norm);
  TORCH_ARG(double, norm_type) = 2;
  TORCH_ARG(bool, scale_grad_by_freq) = false;
  TORCH_ARG(bool, sparse) = false;
};
class Embedding : public ModuleHolder<EmbeddingImpl> {
 public:
  using ModuleHolder<EmbeddingImpl>::ModuleHolder;
  using Impl = EmbeddingImpl;
  RL_API static Embedding from_pretrained(const Tensor& embeddings,
                                          const EmbeddingFromPretrainedOptions& options = {});
};

struct EmbeddingBagOptions {
  EmbeddingBagOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  TORCH_ARG(int64_t, num_embeddings);
  TORCH_ARG(int64_t, embedding_dim);
  TORCH_ARG(std::optional<double>, max_norm);
  TORCH_ARG(double, norm_type) = 2;
  TORCH_ARG(bool, scale_grad_by_freq) = false;
  RL_KEYWORD_ARG(mode) = kMean;
  TORCH_ARG(bool, sparse) = false;
  TORCH_ARG(Tensor, _weight);
  TORCH_ARG(bool, include_last_offset) = false;
  TORCH_ARG(std::optional<int64_t>, padding_idx);
};
class RL_API EmbeddingBagImpl : public Cloneable<EmbeddingBagImpl> {
 public:
  RL_LAYER(EmbeddingBag);
  EmbeddingBagImpl(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingBagImpl(EmbeddingBagOptions(num_embeddings, embedding_dim)) {}
  void reset_parameters();
  Tensor forward(const Tensor& input, const Tensor& offsets = {},
                 const Tensor& per_sample_weights = {});
  Tensor weight;
};
extern template class Cloneable<EmbeddingBagImpl>;
struct EmbeddingBagFromPretrainedOptions {
  TORCH_ARG(bool, freeze) = true;
  TORCH_ARG(std::optional<double>, max_norm);
  TORCH_ARG(double, norm_type) = 2;
  TORCH_ARG(bool, scale_grad_by_freq) = false;
  RL_KEYWORD_ARG(mode) = kMean;
  TORCH_ARG(bool, sparse) = false;
  TORCH_ARG(bool, include_last_offset) = false;
  TORCH_ARG(std::optional<int64_t>, padding_idx);
};
class EmbeddingBag : public ModuleHolder<EmbeddingBagImpl> {
 public:
  using ModuleHolder<EmbeddingBagImpl>::ModuleHolder;
  using Impl = EmbeddingBagImpl;
  RL_API static EmbeddingBag from_pretrained(const Tensor& embeddings,
                                             const EmbeddingBagFromPretrainedOptions& options = {});
};

struct UpsampleOptions {
  TORCH_ARG(std::optional<std::vector<int64_t>>, size);
  TORCH_ARG(std::optional<std::vector<double>>, scale_factor);
  RL_KEYWORD_ARG(mode) = kNearest;
  TORCH_ARG(std::optional<bool>, align_corners);
};
class RL_API UpsampleImpl : public Cloneable<UpsampleImpl> {
 public:
  RL_LAYER(Upsample);
  Tensor forward(const Tensor& input);
};
RL_MODULE(Upsample);

struct CTCLossOptions {
  TORCH_ARG(int64_t, blank) = 0;
  RL_KEYWORD_ARG(reduction) = kMean;
  TORCH_ARG(bool, zero_infinity) = false;
};
class RL_API CTCLossImpl : public Cloneable<CTCLossImpl> {
 public:
  RL_LAYER(CTCLoss);
  CTCLossImpl() : CTCLossImpl(CTCLossOptions()) {}
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths);
};
RL_MODULE(CTCLoss);

}  // namespace torch::nn
