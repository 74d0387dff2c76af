// The adaptive softmax and triplets by any distance.
#include <rushlight/nn/adaptive.h>

#include <cmath>
#include <ostream>

#include <rushlight/factories.h>
#include <rushlight/ops.h>

namespace torch::nn {

template class Cloneable<AdaptiveLogSoftmaxWithLossImpl>;
AdaptiveLogSoftmaxWithLossImpl::AdaptiveLogSoftmaxWithLossImpl(
    AdaptiveLogSoftmaxWithLossOptions options_)
    : options(std::move(options_)) {
  AdaptiveLogSoftmaxWithLossImpl::reset();
}

AdaptiveLogSoftmaxWithLossImpl::AdaptiveLogSoftmaxWithLossImpl(int64_t in_features,
                                                               int64_t n_classes,
                                                               std::vector<int64_t> cutoffs_)
    : AdaptiveLogSoftmaxWithLossImpl(
          AdaptiveLogSoftmaxWithLossOptions(in_features, n_classes, std::move(cutoffs_))) {}

void AdaptiveLogSoftmaxWithLossImpl::reset() {
  const int64_t in = options.in_features();
  cutoffs = options.cutoffs();
  RL_CHECK(!cutoffs.empty(), "cutoffs should be a sequence of length larger than 0");
  int64_t before = 0;
  for (const int64_t c : cutoffs) {
    RL_CHECK(c > before && c < options.n_classes(),
             "cutoffs should be a sequence of classes from 1 to n_classes - 1, ",
             options.n_classes() - 1, ", each greater than the one before, but got ", c, " after ",
             before);
    before = c;
  }
  cutoffs.push_back(options.n_classes());
  shortlist_size = cutoffs[0];
  n_clusters = static_cast<int64_t>(cutoffs.size()) - 1;
  head_size = shortlist_size + n_clusters;
  head = register_module("head", Linear(LinearOptions(in, head_size).bias(options.head_bias())));
  tail = register_module("tail", ModuleList());
  for (int64_t i = 0; i < n_clusters; i++) {
    const auto width = static_cast<int64_t>(
        std::floor(static_cast<double>(in) / std::pow(options.div_value(), i + 1)));
    const int64_t classes = cutoffs[static_cast<size_t>(i) + 1] - cutoffs[static_cast<size_t>(i)];
    Sequential cluster;  // one after the other: the order in which arguments are made is open
    cluster->push_back(Linear(LinearOptions(in, width).bias(false)));
    cluster->push_back(Linear(LinearOptions(width, classes).bias(false)));
    tail->push_back(cluster);
  }
}

void AdaptiveLogSoftmaxWithLossImpl::reset_parameters() {
  head->reset_parameters();
  for (const auto& cluster : *tail) {
    for (const auto& layer : cluster->children()) {
      layer->as<Linear>()->reset_parameters();
    }
  }
}

ASMoutput AdaptiveLogSoftmaxWithLossImpl::forward(const Tensor& input_, const Tensor& target_) {
  RL_CHECK(target_.dim() == 0 || target_.dim() == 1,
           "AdaptiveLogSoftmaxWithLoss: 0D or 1D target tensor expected, but got one of ",
           target_.dim(), " dimensions (multi-target not supported)");
  RL_CHECK(input_.dim() == target_.dim() + 1, target_.dim(), "D target tensor expects ",
           target_.dim() + 1, "D input tensors, but found inputs with size ", input_.sizes());
  const bool batched = target_.dim() == 1;
  RL_CHECK(!batched || input_.size(0) == target_.size(0),
           "AdaptiveLogSoftmaxWithLoss: Input and target should have the same batch size, but got ",
           input_.size(0), " and ", target_.size(0));
  const Tensor input = batched ? input_ : input_.unsqueeze(0);
  const Tensor target = batched ? target_ : target_.unsqueeze(0);
  if (target.numel() > 0) {
    const auto least = target.min().item<int64_t>();
    const auto most = target.max().item<int64_t>();
    RL_CHECK(least >= 0 && most < options.n_classes(), "Target values should be in [0, ",
             options.n_classes() - 1, "], but values in range [", least, ", ", most,
             "] were found. ");
  }
  Tensor gathered = target.masked_fill(target >= shortlist_size, 0);
  Tensor output = input.new_zeros({target.size(0)});
  for (int64_t i = 0; i < n_clusters; i++) {
    const int64_t low = cutoffs[static_cast<size_t>(i)];
    const int64_t high = cutoffs[static_cast<size_t>(i) + 1];
    const Tensor rows = ((target >= low) & (target < high)).nonzero().squeeze(1);
    if (rows.numel() == 0) {
      continue;
    }
    const Tensor within = tail->at<SequentialImpl>(static_cast<size_t>(i))
                              .forward(input.index_select(0, rows))
                              .log_softmax(1);
    const Tensor relative = (target.index_select(0, rows) - low).unsqueeze(1);
    output = output.index_copy(0, rows, within.gather(1, relative).squeeze(1));
    gathered = gathered.index_fill(0, rows, shortlist_size + i);
  }
  output = output + head(input).log_softmax(1).gather(1, gathered.unsqueeze(1)).squeeze(1);
  const double loss = (-output).mean().item<double>();
  return {batched ? output : output.squeeze(0), loss};
}

Tensor AdaptiveLogSoftmaxWithLossImpl::_get_full_log_prob(const Tensor& input,
                                                          const Tensor& head_output) {
  const Tensor log_head = head_output.log_softmax(1);
  std::vector<Tensor> parts{log_head.slice(1, 0, shortlist_size)};
  for (int64_t i = 0; i < n_clusters; i++) {
    const Tensor within =
        tail->at<SequentialImpl>(static_cast<size_t>(i)).forward(input).log_softmax(1);
    parts.push_back(within + log_head.select(1, shortlist_size + i).unsqueeze(1));
  }
  return cat(parts, 1);
}
Tensor AdaptiveLogSoftmaxWithLossImpl::log_prob(const Tensor& input) {
  return _get_full_log_prob(input, head(input));
}
Tensor AdaptiveLogSoftmaxWithLossImpl::predict(const Tensor& input) {
  return log_prob(input).argmax(1);
}
void AdaptiveLogSoftmaxWithLossImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::AdaptiveLogSoftmaxWithLoss";
}

template class Cloneable<TripletMarginWithDistanceLossImpl>;
TripletMarginWithDistanceLossImpl::TripletMarginWithDistanceLossImpl(
    TripletMarginWithDistanceLossOptions options_)
    : options(std::move(options_)) {}
TripletMarginWithDistanceLossImpl::TripletMarginWithDistanceLossImpl()
    : TripletMarginWithDistanceLossImpl(TripletMarginWithDistanceLossOptions()) {}
void TripletMarginWithDistanceLossImpl::reset() {}
Tensor TripletMarginWithDistanceLossImpl::forward(const Tensor& anchor, const Tensor& positive,
                                                  const Tensor& negative) {
  return functional::triplet_margin_with_distance_loss(anchor, positive, negative, options);
}
void TripletMarginWithDistanceLossImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::TripletMarginWithDistanceLoss(margin=" << options.margin()
         << ", swap=" << (options.swap() ? "true)" : "false)");
}

Tensor functional::triplet_margin_with_distance_loss(
    const Tensor& anchor, const Tensor& positive, const Tensor& negative,
    const TripletMarginWithDistanceLossFuncOptions& o) {
  RL_CHECK_VALUE(o.margin() > 0, "margin must be greater than 0, got ", o.margin());
  RL_CHECK(anchor.dim() == positive.dim() && positive.dim() == negative.dim(),
           "triplet_margin_with_distance_loss: anchor, positive and negative must have the same "
           "number of dimensions, but they have ",
           anchor.dim(), ", ", positive.dim(), " and ", negative.dim());
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return o.distance_function() ? (*o.distance_function())(a, b) : pairwise_distance(a, b);
  };
  const Tensor near = distance(anchor, positive);
  Tensor far = distance(anchor, negative);
  if (o.swap()) {
    far = minimum(far, distance(positive, negative));
  }
  const Tensor loss = (near - far + o.margin()).clamp_min(0);
  const int64_t reduction = reduction_of(o.reduction());
  return reduction == reduction_of("none")  ? loss
         : reduction == reduction_of("sum") ? loss.sum()
                                            : loss.mean();
}

}  // namespace torch::nn
