// Pooling that is no entry of the table: undone maxima and windows at random distances.
#pragma once

#include <rushlight/nn/module.h>
#include <rushlight/nn/options.h>

namespace torch::nn {

template <size_t D>
struct MaxUnpoolOptions {
  MaxUnpoolOptions(ExpandingArray<D> kernel_size)
      : kernel_size_(kernel_size), stride_(kernel_size) {}
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride);
  TORCH_ARG(ExpandingArray<D>, padding) = 0;
};
template <size_t D>
struct FractionalMaxPoolOptions {
  using Ratios = ExpandingArray<D, double>;
  FractionalMaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size) {}
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(std::optional<ExpandingArray<D>>, output_size);
  TORCH_ARG(std::optional<Ratios>, output_ratio);
  TORCH_ARG(Tensor, _random_samples);
};

#define RL_UNPOOL(n)                                                                       \
  using MaxUnpool##n##dOptions = MaxUnpoolOptions<n>;                                      \
  class RL_API MaxUnpool##n##dImpl : public Cloneable<MaxUnpool##n##dImpl> {               \
   public:                                                                                 \
    explicit MaxUnpool##n##dImpl(MaxUnpool##n##dOptions options_) : options(options_) {}   \
    MaxUnpool##n##dImpl(ExpandingArray<n> kernel_size)                                     \
        : MaxUnpool##n##dImpl(MaxUnpool##n##dOptions(kernel_size)) {}                      \
    void reset() override {}                                                               \
    void pretty_print(std::ostream& stream) const override;                                \
    Tensor forward(const Tensor& input, const Tensor& indices,                             \
                   const std::optional<std::vector<int64_t>>& output_size = std::nullopt); \
    MaxUnpool##n##dOptions options;                                                        \
  };                                                                                       \
  RL_MODULE(MaxUnpool##n##d)
RL_UNPOOL(1);
RL_UNPOOL(2);
RL_UNPOOL(3);
#undef RL_UNPOOL

#define RL_FRACTIONAL(n)                                                                     \
  using FractionalMaxPool##n##dOptions = FractionalMaxPoolOptions<n>;                        \
  class RL_API FractionalMaxPool##n##dImpl : public Cloneable<FractionalMaxPool##n##dImpl> { \
   public:                                                                                   \
    explicit FractionalMaxPool##n##dImpl(FractionalMaxPool##n##dOptions options_);           \
    FractionalMaxPool##n##dImpl(ExpandingArray<n> kernel_size)                               \
        : FractionalMaxPool##n##dImpl(FractionalMaxPool##n##dOptions(kernel_size)) {}        \
    void reset() override;                                                                   \
    void pretty_print(std::ostream& stream) const override;                                  \
    Tensor forward(const Tensor& input);                                                     \
    std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);                    \
    FractionalMaxPool##n##dOptions options;                                                  \
    Tensor _random_samples;                                                                  \
  };                                                                                         \
  RL_MODULE(FractionalMaxPool##n##d)
RL_FRACTIONAL(2);
RL_FRACTIONAL(3);
#undef RL_FRACTIONAL

namespace functional {

template <size_t D>
struct MaxUnpoolFuncOptions {
  MaxUnpoolFuncOptions(ExpandingArray<D> kernel_size)
      : kernel_size_(kernel_size), stride_(kernel_size) {}
  TORCH_ARG(ExpandingArray<D>, kernel_size);
  TORCH_ARG(ExpandingArray<D>, stride);
  TORCH_ARG(ExpandingArray<D>, padding) = 0;
  TORCH_ARG(std::optional<std::vector<int64_t>>, output_size);
};
#define RL_UNPOOL(n)                                                         \
  using MaxUnpool##n##dFuncOptions = MaxUnpoolFuncOptions<n>;                \
  RL_API Tensor max_unpool##n##d(const Tensor& input, const Tensor& indices, \
                                 const MaxUnpool##n##dFuncOptions& options)
RL_UNPOOL(1);
RL_UNPOOL(2);
RL_UNPOOL(3);
#undef RL_UNPOOL
#define RL_FRACTIONAL(n)                                                                      \
  using FractionalMaxPool##n##dFuncOptions = FractionalMaxPool##n##dOptions;                  \
  RL_API Tensor fractional_max_pool##n##d(const Tensor& input,                                \
                                          const FractionalMaxPool##n##dFuncOptions& options); \
  RL_API std::tuple<Tensor, Tensor> fractional_max_pool##n##d_with_indices(                   \
      const Tensor& input, const FractionalMaxPool##n##dFuncOptions& options)
RL_FRACTIONAL(2);
RL_FRACTIONAL(3);
#undef RL_FRACTIONAL

}  // namespace functional
}  // namespace torch::nn
