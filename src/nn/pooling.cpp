// Undone maxima and pooling by windows at random distances, over ops for any number of dimensions.
#include <rushlight/nn/pooling.h>

#include <ostream>

#include <rushlight/factories.h>
#include <rushlight/ops.h>

namespace torch::nn {

namespace {

template <size_t D>
Tensor unpool(const Tensor& input, const Tensor& indices, const ExpandingArray<D>& kernel_size,
              const ExpandingArray<D>& stride, const ExpandingArray<D>& padding,
              const std::optional<std::vector<int64_t>>& output_size) {
  OptionalIntArrayRef size;
  if (output_size) {
    size = IntArrayRef(*output_size);
  }
  return _max_unpool(input, indices, D, kernel_size, IntArrayRef(stride), padding, size);
}

template <size_t D>
std::tuple<Tensor, Tensor> fractional(const Tensor& input, const FractionalMaxPoolOptions<D>& o,
                                      const Tensor& samples) {
  OptionalIntArrayRef size;
  if (o.output_size()) {
    size = IntArrayRef(*o.output_size());
  }
  std::optional<ArrayRef<double>> ratio;
  if (o.output_ratio()) {
    ratio = ArrayRef<double>(*o.output_ratio());
  }
  return _fractional_max_pool(input, D, o.kernel_size(), size, ratio, samples);
}

template <size_t D>
void check(const FractionalMaxPoolOptions<D>& o) {
  RL_CHECK(o.output_size() || o.output_ratio(), "FractionalMaxPool", D,
           "d requires specifying either an output size, or a pooling ratio");
  RL_CHECK(!o.output_size() || !o.output_ratio(),
           "only one of output_size and output_ratio may be specified");
  if (o.output_ratio()) {
    for (const double r : **o.output_ratio()) {
      RL_CHECK(0 < r && r < 1, "output_ratio must be between 0 and 1 (got ", r, ')');
    }
  }
}

}  // namespace

#define RL_UNPOOL(n)                                                                             \
  template class Cloneable<MaxUnpool##n##dImpl>;                                                 \
  Tensor MaxUnpool##n##dImpl::forward(const Tensor& input, const Tensor& indices,                \
                                      const std::optional<std::vector<int64_t>>& size) {         \
    return unpool<n>(input, indices, options.kernel_size(), options.stride(), options.padding(), \
                     size);                                                                      \
  }                                                                                              \
  void MaxUnpool##n##dImpl::pretty_print(std::ostream& stream) const {                           \
    stream << "torch::nn::MaxUnpool" #n "d(kernel_size=" << options.kernel_size()                \
           << ", stride=" << options.stride() << ", padding=" << options.padding() << ')';       \
  }                                                                                              \
  Tensor functional::max_unpool##n##d(const Tensor& input, const Tensor& indices,                \
                                      const MaxUnpool##n##dFuncOptions& o) {                     \
    return unpool<n>(input, indices, o.kernel_size(), o.stride(), o.padding(), o.output_size()); \
  }
RL_UNPOOL(1)
RL_UNPOOL(2)
RL_UNPOOL(3)
#undef RL_UNPOOL

#define RL_FRACTIONAL(n)                                                                      \
  template class Cloneable<FractionalMaxPool##n##dImpl>;                                      \
  FractionalMaxPool##n##dImpl::FractionalMaxPool##n##dImpl(                                   \
      FractionalMaxPool##n##dOptions options_)                                                \
      : options(std::move(options_)) {                                                        \
    FractionalMaxPool##n##dImpl::reset();                                                     \
  }                                                                                           \
  void FractionalMaxPool##n##dImpl::pretty_print(std::ostream& stream) const {                \
    stream << "torch::nn::FractionalMaxPool" #n "d()";                                        \
  }                                                                                           \
  void FractionalMaxPool##n##dImpl::reset() {                                                 \
    _random_samples = register_buffer("_random_samples", options._random_samples());          \
    check(options);                                                                           \
  }                                                                                           \
  Tensor FractionalMaxPool##n##dImpl::forward(const Tensor& input) {                          \
    return std::get<0>(forward_with_indices(input));                                          \
  }                                                                                           \
  std::tuple<Tensor, Tensor> FractionalMaxPool##n##dImpl::forward_with_indices(               \
      const Tensor& input) {                                                                  \
    return fractional(input, options, _random_samples);                                       \
  }                                                                                           \
  std::tuple<Tensor, Tensor> functional::fractional_max_pool##n##d_with_indices(              \
      const Tensor& input, const FractionalMaxPool##n##dFuncOptions& o) {                     \
    check(o);                                                                                 \
    return fractional(input, o, o._random_samples());                                         \
  }                                                                                           \
  Tensor functional::fractional_max_pool##n##d(const Tensor& input,                           \
                                               const FractionalMaxPool##n##dFuncOptions& o) { \
    return std::get<0>(fractional_max_pool##n##d_with_indices(input, o));                     \
  }
RL_FRACTIONAL(2)
RL_FRACTIONAL(3)
#undef RL_FRACTIONAL

}  // namespace torch::nn
