// Losses and embeddings above the kernels: contracts, composites, derivatives.
#include <cmath>
#include <numbers>

#include <rushlight/batching.h>
#include <rushlight/forward.h>

#include "generated/contracts.h"
#include "ops/contracts.h"
#include "ops/derivatives.h"
#include "ops/moderate.h"

namespace rushlight {

namespace {

void check_class_dtype(const Tensor& target) {
  RL_CHECK(target.dtype() == kInt64 || target.dtype() == kUInt8,
           "expected target dtype to be Long or Byte, but got ", enum_name(target.dtype()),
           ": labels are integers, which long() makes of them");
}

// Logits (C), (N, C) or (N, C, d1, ...) and classes without the dimension C. Returns the losses'
// sizes.
DimVector check_classes(const Tensor& self, const Tensor& target, const Tensor& weight,
                        int64_t reduction) {
  check_reduction(reduction);
  RL_CHECK_VALUE(self.dim() >= 1, "Expected 1 or more dimensions (got 0)");
  const int64_t classes = self.sizes()[self.dim() == 1 ? 0 : 1];
  if (weight.defined()) {
    RL_CHECK(weight.dim() == 1 && weight.numel() == classes,
             "the weight tensor should be defined for all ", classes,
             " classes, a number for each, but has shape ", weight.sizes());
    RL_CHECK(weight.dtype() == self.dtype(), "expected scalar type ", enum_name(self.dtype()),
             " but found ", enum_name(weight.dtype()));
  }
  if (self.dim() <= 2) {
    const int64_t batch = self.dim() == 1 ? 1 : self.sizes()[0];
    const int64_t given = target.dim() == 0 ? 1 : target.sizes()[0];
    // Of a batch its size comes first.
    const bool is_told = self.dim() == 2 && given != batch;
    if (!is_told) {
      check_one_target("nll_loss", target);
    }
    RL_CHECK_VALUE(given == batch && (self.dim() == 1 || target.dim() > 0),
                   "Expected input batch_size (", batch, ") to match target batch_size (", given,
                   ").");
    check_class_dtype(target);
    return target.sizes();
  }
  DimVector wanted = self.sizes();
  wanted.erase(1);
  RL_CHECK_VALUE(target.dim() > 0 && target.sizes()[0] == wanted[0], "Expected input batch_size (",
                 wanted[0], ") to match target batch_size (",
                 target.dim() > 0 ? target.sizes()[0] : 1, ").");
  RL_CHECK(target.sizes() == wanted, "size mismatch (got input: ", self.sizes(),
           " , target: ", target.sizes(), "): Expected target size ", wanted, ", got ",
           target.sizes());
  check_class_dtype(target);
  return wanted;
}

}  // namespace

namespace shape {

OutSpecs<2> _nll_loss(Tensor& self, Tensor& target, Tensor& weight, int64_t& reduction, int64_t&) {
  check_floating("nll_loss", self);
  const DimVector losses = check_classes(self, target, weight, reduction);
  return {OutSpec{reduction == Reduction::None ? losses : DimVector(), self.dtype()},
          OutSpec{{}, accumulation_dtype(self)}};
}

OutSpec _nll_loss_backward(Tensor& grad_output, Tensor& target, Tensor& weight,
                           Tensor& total_weight, DimVector& sizes, int64_t& reduction, int64_t&) {
  RL_CHECK(total_weight.numel() == 1,
           "nll_loss_backward: expected total_weight to be a single element, got shape ",
           total_weight.sizes());
  check_floating("nll_loss_backward", grad_output);
  check_classes(make_empty(sizes, grad_output.dtype(), Device(kMeta)), target, weight, reduction);
  RL_CHECK(grad_output.numel() == (reduction == Reduction::None ? target.numel() : 1),
           "nll_loss_backward: the sizes of grad_output ", grad_output.sizes(), " and target ",
           target.sizes(), " do not belong together");
  return {sizes, grad_output.dtype()};
}

OutSpecs<3> _cross_entropy(Tensor& self, Tensor& target, Tensor& weight, int64_t& reduction,
                           int64_t&, double& label_smoothing) {
  check_floating("cross_entropy", self);
  const DimVector losses = check_classes(self, target, weight, reduction);
  RL_CHECK(label_smoothing >= 0 && label_smoothing <= 1,
           "label_smoothing must be between 0.0 and 1.0. Got: ", label_smoothing);
  const ScalarType sums = accumulation_dtype(self);
  DimVector pairs(losses);
  pairs.insert(0, 2);
  return {OutSpec{reduction == Reduction::None ? losses : DimVector(), self.dtype()},
          OutSpec{pairs, sums}, OutSpec{{}, sums}};
}

OutSpec _cross_entropy_backward(Tensor& grad_output, Tensor& self, Tensor& target, Tensor& weight,
                                Tensor& log_sum, Tensor& total_weight, int64_t& reduction, int64_t&,
                                double&) {
  const DimVector losses = check_classes(self, target, weight, reduction);
  RL_CHECK(log_sum.numel() == 2 * target.numel() && log_sum.dtype() == accumulation_dtype(self) &&
               total_weight.numel() == 1 &&
               grad_output.numel() == (reduction == Reduction::None ? target.numel() : 1),
           "_cross_entropy_backward: the tensors do not belong together");
  return {self.sizes(), self.dtype()};
}

OutSpec embedding(Tensor& weight, Tensor& indices, int64_t&, bool&, bool&) {
  RL_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  RL_CHECK(indices.dtype() == kInt64 || indices.dtype() == kInt32,
           "Expected tensor for argument #1 'indices' of embedding to be of the scalar types: "
           "Long, Int; but got ",
           indices.toString(), ": indices.long() converts them");
  DimVector sizes = indices.sizes();
  sizes.push_back(weight.sizes()[1]);
  return {sizes, weight.dtype()};
}

OutSpec embedding_dense_backward(Tensor& grad_output, Tensor& indices, int64_t& num_weights,
                                 int64_t&, bool&) {
  check_floating("embedding_backward", grad_output);
  RL_CHECK(indices.dtype() == kInt64 || indices.dtype() == kInt32,
           "embedding_dense_backward: indices must be Long or Int");
  RL_CHECK(num_weights >= 0, "embedding_dense_backward: num_weights must not be negative");
  DimVector wanted = indices.sizes();
  RL_CHECK(grad_output.dim() > 0, "embedding_dense_backward: grad_output must have a dimension");
  wanted.push_back(grad_output.sizes()[grad_output.dim() - 1]);
  RL_CHECK(grad_output.sizes() == wanted,
           "embedding_dense_backward: expected grad_output of shape ", wanted, ", got ",
           grad_output.sizes());
  return {{num_weights, wanted.back()}, grad_output.dtype()};
}

void embedding_renorm_(Tensor& self, Tensor& indices, double&, double&) {
  RL_CHECK(self.dim() == 2, "'weight' must be 2-D");
  RL_CHECK(indices.dtype() == kInt64 || indices.dtype() == kInt32,
           "embedding_renorm_: indices must be Long or Int");
}

}  // namespace shape

namespace {

// weight * t, 0 where the weight is 0 and t infinite.
Tensor multiply_weights(const Tensor& weight, const Tensor& t) {
  const bool infinite = is_floating(weight.dtype()) && is_floating(t.dtype());
  return infinite ? rushlight::_weighed(weight, t) : weight.mul(t);
}

}  // namespace

namespace {

// Losses accept any target that broadcasts, but hardly anybody wants that.
void check_target(const char* name, const Tensor& self, const Tensor& target) {
  if (!(self.sizes() == target.sizes())) {
    warn(str("Using a target size (", target.sizes(), ") that is different to the input size (",
             self.sizes(), ") in ", name,
             ": they are broadcast, so that an element is compared with several. Give both the "
             "same size."));
  }
}

}  // namespace

namespace composite {

Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  check_target("mse_loss", self, target);
  return reduce_losses(rushlight::_squared_error(self, target), reduction);
}
Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  check_target("l1_loss", self, target);
  return reduce_losses((self - target).abs(), reduction);
}
Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  check_target("smooth_l1_loss", self, target);
  RL_CHECK(beta >= 0, "smooth_l1_loss does not support negative values for beta.");
  return beta == 0 ? rushlight::l1_loss(self, target, reduction)
                   : reduce_losses(rushlight::_smooth_l1(self, target, beta), reduction);
}
Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  check_target("huber_loss", self, target);
  RL_CHECK(delta > 0, "huber_loss does not support non-positive values: delta is ", delta);
  return reduce_losses(rushlight::_huber(self, target, delta), reduction);
}

Tensor nll_loss_nd(const Tensor& self, const Tensor& target, const Tensor& weight,
                   int64_t reduction, int64_t ignore_index) {
  return std::get<0>(rushlight::_nll_loss(self, target, weight, reduction, ignore_index));
}

#define RL_NLL_LOSS(name)                                                                        \
  Tensor name(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, \
              int64_t ignore_index) {                                                            \
    return composite::nll_loss_nd(self, target, weight, reduction, ignore_index);                \
  }                                                                                              \
  std::tuple<Tensor, Tensor> name##_forward(const Tensor& self, const Tensor& target,            \
                                            const Tensor& weight, int64_t reduction,             \
                                            int64_t ignore_index) {                              \
    return rushlight::_nll_loss(self, target, weight, reduction, ignore_index);                  \
  }
RL_NLL_LOSS(nll_loss)
RL_NLL_LOSS(nll_loss2d)
#undef RL_NLL_LOSS

namespace {

// Targets that are probabilities of the classes.
Tensor cross_entropy_of_probabilities(const Tensor& self, const Tensor& target,
                                      const Tensor& weight, int64_t reduction,
                                      double label_smoothing) {
  check_reduction(reduction);
  RL_CHECK(label_smoothing >= 0 && label_smoothing <= 1,
           "label_smoothing must be between 0.0 and 1.0. Got: ", label_smoothing);
  const int64_t dim = self.dim() == 1 ? 0 : 1;
  const int64_t classes = self.size(dim);
  Tensor wanted = target;
  if (label_smoothing > 0) {
    wanted = target.mul(Scalar(1 - label_smoothing))
                 .add(Scalar(label_smoothing / static_cast<double>(classes)));
  }
  Tensor losses = multiply_weights(wanted, self.log_softmax(dim)).neg();
  if (weight.defined()) {
    RL_CHECK(weight.dim() == 1 && weight.numel() == classes,
             "the weight tensor should be defined for all ", classes,
             " classes, a number for each, but has shape ", weight.sizes());
    DimVector along(self.dim(), 1);
    along[dim] = classes;
    losses = losses.mul(weight.reshape(along));
  }
  if (reduction == Reduction::None) {
    return losses.sum(dim);
  }
  const Tensor total = losses.sum();
  return reduction == Reduction::Sum
             ? total
             : total.div(Scalar(static_cast<double>(self.numel()) / static_cast<double>(classes)));
}

}  // namespace

Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, const Tensor& weight,
                          int64_t reduction, int64_t ignore_index, double label_smoothing) {
  if (self.dim() > 0 && self.sizes() == target.sizes() &&
      (self.dim() > 1 || target.is_floating_point())) {
    RL_CHECK(target.is_floating_point(),
             "Expected floating point type for target with class probabilities, got ",
             enum_name(target.dtype()));
    RL_CHECK(ignore_index < 0, "ignore_index is not supported for floating point target");
    return cross_entropy_of_probabilities(self, target, weight, reduction, label_smoothing);
  }
  return std::get<0>(
      rushlight::_cross_entropy(self, target, weight, reduction, ignore_index, label_smoothing));
}

Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, const Tensor& weight,
                            int64_t reduction) {
  check_reduction(reduction);
  RL_CHECK_VALUE(self.sizes() == target.sizes(), "Using a target size (torch.Size(", target.sizes(),
                 ")) that is different to the input size (torch.Size(", self.sizes(),
                 ")) is deprecated. Please ensure they have the same size.");
  if (self.numel() != 0 && !self.is_meta()) {
    const auto [low, high] = rushlight::aminmax(batching::all_of(self.detach()));
    const bool fits = low.item<double>() >= 0 && high.item<double>() <= 1;
    RL_CHECK(fits,
             "all elements of input should be between 0 and 1: sigmoid() makes them so, and "
             "binary_cross_entropy_with_logits takes them as they are");
  }
  const Tensor losses = rushlight::_bce(self, target);
  return reduce_losses(weight.defined() ? losses.mul(weight) : losses, reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                        const Tensor& weight, const Tensor& pos_weight,
                                        int64_t reduction) {
  check_reduction(reduction);
  RL_CHECK_VALUE(self.sizes() == target.sizes(), "Target size (torch.Size(", target.sizes(),
                 ")) must be the same as that of the input (torch.Size(", self.sizes(), "))");
  Tensor losses;
  if (pos_weight.defined()) {
    // The logarithms of both chances: with one and the logit, infinities and digits would cancel.
    const Tensor yes = multiply_weights(pos_weight.neg().mul(target), rushlight::log_sigmoid(self));
    const Tensor no = multiply_weights(target.sub(Scalar(1)), rushlight::log_sigmoid(self.neg()));
    losses = yes.add(no);
  } else {
    losses = rushlight::_bce_with_logits(self, target);
  }
  return reduce_losses(weight.defined() ? losses.mul(weight) : losses, reduction);
}

Tensor multilabel_soft_margin_loss(const Tensor& self, const Tensor& target, const Tensor& weight,
                                   int64_t reduction) {
  existing_dim(-1, self.dim());
  const Tensor losses =
      composite::binary_cross_entropy_with_logits(self, target, weight, Tensor(), Reduction::None);
  return reduce_losses(losses.sum(-1) / static_cast<double>(self.size(-1)), reduction);
}

Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  // Where the target is 0 the logarithms of both may be infinite.
  if (log_target && is_floating(target.dtype())) {
    const Tensor finite = target.clamp_min(-1e4);  // whose exponential is 0
    return reduce_losses(multiply_weights(target.exp(), finite.sub(self)), reduction);
  }
  const Tensor losses = log_target
                            ? target.exp().mul(target.sub(self))
                            : rushlight::xlogy(target, target).sub(multiply_weights(target, self));
  return reduce_losses(losses, reduction);
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full,
                        double eps, int64_t reduction) {
  Tensor losses = log_input ? input.exp().sub(multiply_weights(target, input))
                            : input.sub(target.mul(input.add(Scalar(eps)).log()));
  if (full) {  // Stirling's approximation of log(target!)
    const Tensor log_factorial =
        target.mul(target.log())
            .sub(target)
            .add(target.mul(Scalar(2 * std::numbers::pi)).log().mul(Scalar(0.5)));
    losses = losses.add(log_factorial.masked_fill(target.le(Scalar(1)), Scalar(0)));
  }
  return reduce_losses(losses, reduction);
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var, bool full,
                         double eps, int64_t reduction) {
  check_reduction(reduction);
  RL_CHECK_VALUE(var.is_meta() || !batching::all_of(var.lt(0)).any().item().toBool(),
                 "var has negative entry/entries");
  Tensor spread = var;
  if (var.dim() == 0) {
    spread = var.to(input.dtype()).expand(input.sizes());
  } else if (var.dim() == input.dim() - 1) {
    spread = var.unsqueeze(-1);  // one variance for the last dimension
  }
  const auto fits = [&] {
    bool equal = spread.dim() == input.dim();
    for (int64_t d = 0; equal && d < input.dim(); d++) {
      equal = spread.size(d) == input.size(d) || (d == input.dim() - 1 && spread.size(d) == 1);
    }
    return equal;
  };
  RL_CHECK_VALUE(fits(), "var is of incorrect size: ", var.sizes(), " for an input of size ",
                 input.sizes());
  spread = spread.clone();
  {
    // A limit on the value that derivatives do not see, neither gradients nor tangents.
    const NoGradGuard no_grad;
    const forward::Below no_tangents(1);
    spread.clamp_min_(Scalar(eps));
  }
  Tensor losses = (spread.log() + (input - target).square() / spread) * 0.5;
  if (full) {
    losses = losses + 0.5 * std::log(2 * std::numbers::pi);
  }
  return reduce_losses(losses, reduction);
}

Tensor _weighted_loss(const Tensor& losses, const Tensor& weight, int64_t reduction) {
  check_reduction(reduction);
  const Tensor weighted = losses * weight;
  return reduction == Reduction::Mean ? weighted.sum() / weight.expand(weighted.sizes()).sum()
                                      : reduce_losses(weighted, reduction);
}

Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin,
                            int64_t reduction) {
  const Tensor far = self.neg()
                         .add(Scalar(margin))
                         .clamp_min(Scalar(0))
                         .masked_fill(target.eq(Scalar(1)), Scalar(0));
  const Tensor near = self.masked_fill(target.eq(Scalar(-1)), Scalar(0));
  return reduce_losses(near.add(far), reduction);
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             double margin, int64_t reduction) {
  check_one_target("cosine_embedding_loss", target);
  RL_CHECK(target.dim() == 1 ? input1.dim() == 2 && input2.dim() == 2
                             : input1.dim() == 1 && input2.dim() == 1,
           "cosine_embedding_loss: a target of ", target.dim(),
           " dimensions goes with vectors along one more, but inputs have ", input1.sizes(),
           " and ", input2.sizes());
  const double eps = 1e-12;
  const int64_t dim = target.dim();
  const auto square = [&](const Tensor& t) { return t.square().sum(dim).add(Scalar(eps)); };
  const Tensor size1 = square(input1);
  const Tensor size2 = square(input2);
  const ScalarType common = promote_types(input1.dtype(), input2.dtype());
  const Sizes limits = moderate_sizes(common, 2);
  Tensor cosine;
  if (are_moderate(size1, limits) && are_moderate(size2, limits)) {
    cosine = input1.mul(input2).sum(dim).div(size1.mul(size2).sqrt());
  } else {  // squares, or products of them, overflow
    const auto direction = [&](const Tensor& given) {
      const Tensor t = given.to(compute_dtype(given.dtype()));
      const Tensor size = t.norm(2, DimVector{dim}, true);
      return t.div(rushlight::hypot(size, rushlight::full_like(size, std::sqrt(eps))));
    };
    cosine = direction(input1).mul(direction(input2)).sum(dim).to(common);
  }
  const Tensor near = cosine.neg().add(Scalar(1)).masked_fill(target.ne(Scalar(1)), Scalar(0));
  const Tensor far =
      cosine.sub(Scalar(margin)).clamp_min(Scalar(0)).masked_fill(target.ne(Scalar(-1)), Scalar(0));
  return reduce_losses(near.add(far), reduction);
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           double margin, int64_t reduction) {
  RL_CHECK(input1.dim() == input2.dim() && input1.dim() == target.dim(),
           "margin_ranking_loss: All input tensors should have same dimension: their sizes are ",
           input1.sizes(), ", ", input2.sizes(), " and ", target.sizes());
  return reduce_losses(
      target.neg().mul(input1.sub(input2)).add(Scalar(margin)).clamp_min(Scalar(0)), reduction);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           double margin, double p, double eps, bool swap, int64_t reduction) {
  RL_CHECK(anchor.dim() == positive.dim() && positive.dim() == negative.dim(),
           "triplet_margin_loss: anchor, positive and negative must have the same number of "
           "dimensions, but they have ",
           anchor.dim(), ", ", positive.dim(), " and ", negative.dim());
  RL_CHECK_VALUE(!(margin <= 0), "margin must be greater than 0, got ", margin);
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return a.sub(b).add(Scalar(eps)).norm(Scalar(p), -1);
  };
  Tensor far = distance(anchor, negative);
  if (swap) {
    far = rushlight::minimum(far, distance(positive, negative));
  }
  return reduce_losses(distance(anchor, positive).sub(far).add(Scalar(margin)).clamp_min(Scalar(0)),
                       reduction);
}

Tensor soft_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  const Tensor margin = target.mul(self);
  return is_floating(margin.dtype())
             ? reduce_losses(rushlight::log_sigmoid(margin), reduction).neg()
             : reduce_losses(margin.neg().exp().log1p(), reduction);
}

namespace {
// How many samples, and classes: a matrix, a vector for one sample, or the number of one class.
std::pair<int64_t, int64_t> samples_of(const Tensor& self) {
  RL_CHECK(self.dim() == 0 || (self.dim() <= 2 && self.size(-1) > 0),
           "Expected non-empty vector or matrix of scores for classes, or one score, but got ",
           self.sizes());
  return {self.dim() == 2 ? self.size(0) : 1, self.dim() == 0 ? 1 : self.size(-1)};
}
}  // namespace

Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p,
                         const Scalar& margin, const Tensor& weight, int64_t reduction) {
  RL_CHECK_VALUE(p.equal(1) || p.equal(2), "only p == 1 and p == 2 supported");
  RL_CHECK_VALUE(!weight.defined() || weight.dim() == 1, "weight must be one-dimensional");
  const auto [batch, classes] = samples_of(self);
  RL_CHECK(target.dim() <= 1 && target.numel() == batch, "inconsistent target size, expected ",
           batch, " but got ", target.sizes());
  const Tensor x = self.reshape({batch, classes});
  const Tensor t = target.reshape({batch, 1});
  Tensor losses = x.sub(x.gather(1, t)).add(margin).clamp_min(Scalar(0));
  losses = p.equal(2) ? losses.square() : losses;
  if (weight.defined()) {
    RL_CHECK(weight.numel() == classes, "inconsistent weight size, expected ", classes, " but got ",
             weight.sizes());
    losses = losses.mul(weight.gather(0, target.reshape({batch})).reshape({batch, 1}));
  }
  losses = losses.scatter(1, t, Scalar(0)).sum(1).div(Scalar(classes));
  return reduce_losses(target.dim() == 0 ? losses.reshape({}) : losses, reduction);
}

Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  const auto [batch, classes] = samples_of(self);
  RL_CHECK(target.sizes() == self.sizes(), "inconsistent target size: ", target.sizes(),
           " for input of size: ", self.sizes());
  const Tensor x = self.reshape({batch, classes});
  const Tensor t = target.reshape({batch, classes});
  // Labels count up to the first -1.
  const Tensor given = t.lt(Scalar(0)).cumsum(1).eq(Scalar(0));
  const Tensor label = t.masked_fill(given.logical_not(), Scalar(0));
  const Tensor is_target =
      rushlight::zeros_like(t).scatter_add(1, label, given.to(t.dtype())).gt(Scalar(0));
  // [sample][label][class]
  const Tensor gap =
      x.unsqueeze(1).sub(x.gather(1, label).unsqueeze(2)).add(Scalar(1)).clamp_min(Scalar(0));
  const Tensor counts = given.unsqueeze(2).logical_and(is_target.logical_not().unsqueeze(1));
  const Tensor losses =
      gap.masked_fill(counts.logical_not(), Scalar(0)).sum({1, 2}).div(Scalar(classes));
  return reduce_losses(self.dim() < 2 ? losses.reshape({}) : losses, reduction);
}

}  // namespace composite

// ---- derivatives ----

// The loss that a change of the log probabilities makes: ignored samples make none, also of a mean
// over nothing else.
Tensor nll_loss_of_change(const Tensor& change, const Tensor& target, const Tensor& weight,
                          const Tensor& total_weight, int64_t reduction, int64_t ignore_index) {
  if (reduction != Reduction::Mean) {
    return std::get<0>(rushlight::_nll_loss(change, target, weight, reduction, ignore_index));
  }
  const Tensor sum =
      std::get<0>(rushlight::_nll_loss(change, target, weight, Reduction::Sum, ignore_index));
  const Tensor counts = target.ne(Scalar(ignore_index)).any();
  return rushlight::where(counts, sum.div(total_weight.to(sum.dtype())), Scalar(0));
}

std::tuple<Tensor, Tensor> cross_entropy_double_backward(
    const Tensor& grad, const Tensor& grad_output, const Tensor& self, const Tensor& target,
    const Tensor& weight, const Tensor& log_sum, const Tensor& total_weight, int64_t reduction,
    int64_t ignore_index, double label_smoothing) {
  const int64_t dim = self.dim() == 1 ? 0 : 1;
  const auto classes = static_cast<double>(self.size(dim));
  const Tensor unit = rushlight::_cross_entropy_backward(rushlight::ones_like(grad_output), self,
                                                         target, weight, log_sum, total_weight,
                                                         reduction, ignore_index, label_smoothing);
  const Tensor along = grad.mul(unit);
  const Tensor for_grad =
      reduction == Reduction::None ? along.sum(dim).reshape(grad_output.sizes()) : along.sum();

  // The factor of softmax in the gradient of each sample.
  const Tensor labels = target.to(kInt64);
  const Tensor ignored = labels.eq(Scalar(ignore_index));
  Tensor scale = rushlight::ones(target.sizes(), self.options());
  double all_weights = classes;
  if (weight.defined()) {
    scale = weight.index_select(0, labels.masked_fill(ignored, Scalar(0)).reshape({-1}))
                .reshape(target.sizes());
    all_weights = weight.sum().item<double>();
  }
  scale =
      scale.mul(Scalar(1 - label_smoothing)).add(Scalar(label_smoothing / classes * all_weights));
  // Of a mean over ignored samples alone the factor is infinite.
  scale = scale.mul(reduction == Reduction::Mean ? grad_output.div(total_weight) : grad_output)
              .masked_fill(ignored, Scalar(0));
  DimVector sizes = self.sizes();
  sizes[dim] = 1;
  const Tensor p = self.softmax(dim);
  const Tensor centred = grad.sub(grad.mul(p).sum(dim, true));
  return {for_grad, p.mul(centred).mul(scale.reshape(sizes))};
}

Tensor bce_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self,
                           const Tensor& target) {
  const Tensor spread = self.neg().add(Scalar(1)).mul(self).clamp_min(Scalar(1e-12));
  const Tensor slope =
      self.mul(self).sub(self.mul(target).mul(Scalar(2))).add(target).div(spread.square());
  return grad.mul(grad_output).mul(slope);
}

Tensor embedding_double_backward(const Tensor& grad, const Tensor& indices, int64_t padding_idx,
                                 bool scale_grad_by_freq) {
  Tensor rows = rushlight::embedding(grad, indices, padding_idx);
  if (padding_idx >= 0) {
    rows = rows.masked_fill(indices.eq(Scalar(padding_idx)).unsqueeze(-1), Scalar(0));
  }
  if (scale_grad_by_freq) {
    const Tensor flat = indices.reshape({-1});
    const Tensor uses = rushlight::bincount(flat).index_select(0, flat).reshape(indices.sizes());
    rows = rows.div(uses.unsqueeze(-1));
  }
  return rows;
}

}  // namespace rushlight
