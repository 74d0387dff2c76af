// Losses that are modules of their own kind: a softmax in clusters, triplets by any distance.
#pragma once

#include <functional>

#include <rushlight/nn/containers.h>
#include <rushlight/nn/layers.h>

namespace torch::nn {

struct RL_API ASMoutput {
  ASMoutput(Tensor output_, double loss_) : output(std::move(output_)), loss(loss_) {}
  Tensor output;
  double loss;  // minus the mean of the output; to be differentiated by way of the output
};

struct AdaptiveLogSoftmaxWithLossOptions {
  AdaptiveLogSoftmaxWithLossOptions(int64_t in_features, int64_t n_classes,
                                    std::vector<int64_t> cutoffs)
      : in_features_(in_features), n_classes_(n_classes), cutoffs_(std::move(cutoffs)) {}
  TORCH_ARG(int64_t, in_features);
  TORCH_ARG(int64_t, n_classes);
  TORCH_ARG(std::vector<int64_t>, cutoffs);
  TORCH_ARG(double, div_value) = 4;
  TORCH_ARG(bool, head_bias) = false;
};
// A softmax over many classes of unequal frequency; those before the first cutoff are the head's.
class RL_API AdaptiveLogSoftmaxWithLossImpl : public Cloneable<AdaptiveLogSoftmaxWithLossImpl> {
 public:
  RL_LAYER(AdaptiveLogSoftmaxWithLoss);
  AdaptiveLogSoftmaxWithLossImpl(int64_t in_features, int64_t n_classes,
                                 std::vector<int64_t> cutoffs_);
  void reset_parameters();
  // The log probability of each target, and minus their mean.
  ASMoutput forward(const Tensor& input, const Tensor& target);
  Tensor _get_full_log_prob(const Tensor& input, const Tensor& head_output);
  Tensor log_prob(const Tensor& input);  // (N, n_classes)
  Tensor predict(const Tensor& input);   // (N): the most likely classes
  std::vector<int64_t> cutoffs;          // with n_classes as the last
  int64_t shortlist_size = 0;
  int64_t n_clusters = 0;
  int64_t head_size = 0;
  Linear head = nullptr;
  ModuleList tail;
};
RL_MODULE(AdaptiveLogSoftmaxWithLoss);

struct TripletMarginWithDistanceLossOptions {
  using distance_function_t = std::function<Tensor(const Tensor&, const Tensor&)>;
  TORCH_ARG(std::optional<distance_function_t>, distance_function);
  TORCH_ARG(double, margin) = 1;
  TORCH_ARG(bool, swap) = false;
  RL_KEYWORD_ARG(reduction) = kMean;
};
class RL_API TripletMarginWithDistanceLossImpl
    : public Cloneable<TripletMarginWithDistanceLossImpl> {
 public:
  RL_LAYER(TripletMarginWithDistanceLoss);
  TripletMarginWithDistanceLossImpl();
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative);
};
RL_MODULE(TripletMarginWithDistanceLoss);

namespace functional {
using TripletMarginWithDistanceLossFuncOptions = TripletMarginWithDistanceLossOptions;
RL_API Tensor triplet_margin_with_distance_loss(
    const Tensor& anchor, const Tensor& positive, const Tensor& negative,
    const TripletMarginWithDistanceLossFuncOptions& options = {});
}  // namespace functional
}  // namespace torch::nn
