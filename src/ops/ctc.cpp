// Connectionist temporal classification above its kernel (cpu/ctc.cpp): the contract and the
// reductions; and bags of embeddings.
#include "generated/contracts.h"
#include "ops/derivatives.h"
#include "ops/integers_in.h"

namespace rushlight {

namespace {

// (length, batch, classes) and what belongs to it; values of targets are the kernel's to check.
void check_ctc(const Tensor& log_probs, Tensor& targets, IntArrayRef input_lengths,
               IntArrayRef target_lengths, int64_t blank) {
  if (log_probs.dtype() != kFloat32 && log_probs.dtype() != kFloat64) {
    dtype_not_implemented("ctc_loss", log_probs.dtype());
  }
  RL_CHECK(log_probs.dim() == 3, "ctc_loss: expected log_probs of 3 dimensions, got ",
           log_probs.sizes());
  RL_CHECK(targets.dtype() == kInt64 || targets.dtype() == kInt32,
           "ctc_loss: targets must be int32 or int64, got ", targets.dtype());
  const int64_t batch = log_probs.size(1);
  RL_CHECK(batch > 0, "log_probs tensor must not be empty");
  RL_CHECK(0 <= blank && blank < log_probs.size(2), "blank must be in label range");
  RL_CHECK(static_cast<int64_t>(input_lengths.size()) == batch,
           "input_lengths must be of size batch_size");
  RL_CHECK(static_cast<int64_t>(target_lengths.size()) == batch,
           "target_lengths must be of size batch_size");
  RL_CHECK(targets.dim() == 1 || (targets.dim() == 2 && targets.size(0) == batch),
           "ctc_loss: expected targets of shape (sum of lengths) or (batch, longest), got ",
           targets.sizes());
  int64_t total = 0;
  for (int64_t b = 0; b < batch; b++) {
    const int64_t n = target_lengths[static_cast<size_t>(b)];
    RL_CHECK(n >= 0, "ctc_loss: target_lengths must not be negative, but one is ", n);
    const int64_t t = input_lengths[static_cast<size_t>(b)];
    RL_CHECK(t >= 0, "ctc_loss: input_lengths must not be negative, but one is ", t);
    RL_CHECK(t <= log_probs.size(0), "ctc_loss: input_lengths have value at most ",
             log_probs.size(0), ", the steps of log_probs, but one is ", t);
    RL_CHECK(targets.dim() == 1 || n <= targets.size(1), "ctc_loss: a target of ", n,
             " classes does not fit into targets of ", targets.size(1), " columns");
    RL_CHECK(n <= targets.numel(),
             "Expected target_lengths to be at most the size of targets, got ", n);
    total += n;
  }
  RL_CHECK(targets.dim() == 2 || total == targets.numel(), "ctc_loss: target_lengths add up to ",
           total, ", but targets holds ", targets.numel(), " classes");
  targets = contiguous_raw(cast_raw(targets, kInt64));
}

DimVector alpha_sizes(const Tensor& log_probs, IntArrayRef target_lengths) {
  int64_t longest = 0;
  for (const int64_t n : target_lengths) {
    longest = std::max(longest, n);
  }
  return {log_probs.size(1), log_probs.size(0), 2 * longest + 1};
}

}  // namespace

OutSpecs<2> shape::_ctc_loss(Tensor& log_probs, Tensor& targets, DimVector& input_lengths,
                             DimVector& target_lengths, int64_t& blank, bool&) {
  check_ctc(log_probs, targets, input_lengths, target_lengths, blank);
  log_probs = contiguous_raw(log_probs);
  return {OutSpec{{log_probs.size(1)}, log_probs.dtype()},
          OutSpec{alpha_sizes(log_probs, target_lengths), log_probs.dtype()}};
}

OutSpec shape::_ctc_loss_backward(Tensor& grad, Tensor& log_probs, Tensor& targets,
                                  DimVector& input_lengths, DimVector& target_lengths,
                                  Tensor& neg_log_likelihood, Tensor& log_alpha, int64_t& blank,
                                  bool&) {
  check_ctc(log_probs, targets, input_lengths, target_lengths, blank);
  const DimVector alphas = alpha_sizes(log_probs, target_lengths);
  const DimVector batch = {log_probs.size(1)};
  RL_CHECK(log_alpha.sizes() == IntArrayRef(alphas) && grad.sizes() == IntArrayRef(batch) &&
               neg_log_likelihood.sizes() == IntArrayRef(batch) &&
               log_alpha.dtype() == log_probs.dtype() && grad.dtype() == log_probs.dtype() &&
               neg_log_likelihood.dtype() == log_probs.dtype(),
           "ctc_loss backward: wrong sizes or dtypes");
  for (Tensor* t : {&grad, &log_probs, &neg_log_likelihood, &log_alpha}) {
    *t = contiguous_raw(*t);
  }
  return {log_probs.sizes(), log_probs.dtype()};
}

namespace {

DimVector list_of(const char* name, const Tensor& lengths) {
  RL_CHECK(lengths.dtype() == kInt64 || lengths.dtype() == kInt32, name, " must be integral, got ",
           lengths.dtype());
  RL_CHECK(lengths.dim() <= 1 && !lengths.is_meta(), name, " must be a vector with values, got ",
           lengths.sizes());
  return integers_in(lengths);
}

}  // namespace

namespace composite {

Tensor ctc_loss_IntList(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                        IntArrayRef target_lengths, int64_t blank, int64_t reduction,
                        bool zero_infinity) {
  RL_CHECK(reduction >= 0 && reduction <= 2, "ctc_loss: reduction is 0, 1 or 2, got ", reduction);
  const bool batched = log_probs.dim() != 2;
  Tensor loss = std::get<0>(
      rushlight::_ctc_loss(batched ? log_probs : log_probs.unsqueeze(1),
                           batched || targets.dim() != 1 ? targets : targets.unsqueeze(0),
                           input_lengths, target_lengths, blank, zero_infinity));
  if (zero_infinity) {
    loss = rushlight::where(loss.eq(std::numeric_limits<double>::infinity()),
                            rushlight::zeros_like(loss), loss);
  }
  if (reduction == 1) {
    Tensor divisor = rushlight::empty({static_cast<int64_t>(target_lengths.size())},
                                      TensorOptions(loss.dtype()));
    for (size_t b = 0; b < target_lengths.size(); b++) {
      divisor.select(0, static_cast<int64_t>(b))
          .fill_(Scalar(std::max<int64_t>(1, target_lengths[b])));
    }
    return loss.div(divisor.to(loss.device())).mean();
  }
  if (reduction == 2) {
    return loss.sum();
  }
  return batched ? loss : loss.squeeze(0);
}

Tensor ctc_loss_Tensor(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                       const Tensor& target_lengths, int64_t blank, int64_t reduction,
                       bool zero_infinity) {
  return composite::ctc_loss_IntList(log_probs, targets, list_of("input_lengths", input_lengths),
                                     list_of("target_lengths", target_lengths), blank, reduction,
                                     zero_infinity);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag_padding_idx(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
    int64_t mode, bool sparse, const Tensor& per_sample_weights, bool include_last_offset,
    std::optional<int64_t> padding_idx) {
  RL_CHECK(weight.dim() == 2, "embedding_bag: weight has to be a matrix, got ", weight.sizes());
  RL_CHECK(indices.dim() == 1 && offsets.dim() == 1,
           "embedding_bag: indices and offsets have to be 1D tensors, got ", indices.sizes(),
           " and ", offsets.sizes());
  RL_CHECK(indices.dtype() == offsets.dtype() &&
               (indices.dtype() == kInt64 || indices.dtype() == kInt32),
           "embedding_bag: expected indices and offsets of one integer dtype, got ",
           indices.dtype(), " and ", offsets.dtype());
  RL_CHECK(mode >= 0 && mode <= 2, "embedding_bag: mode has to be 0, 1 or 2, got ", mode);
  RL_CHECK(!per_sample_weights.defined() || mode == 0,
           "embedding_bag: per_sample_weights is only supported for mode='sum', which is 0, not "
           "for mode ",
           mode);
  RL_CHECK(!per_sample_weights.defined() || (per_sample_weights.sizes() == indices.sizes() &&
                                             per_sample_weights.dtype() == weight.dtype()),
           "embedding_bag: expected per_sample_weights of the shape of indices and the dtype of "
           "weight");
  const int64_t n = indices.size(0);
  const int64_t bags = offsets.size(0) - (include_last_offset ? 1 : 0);
  RL_CHECK(bags >= 0, "embedding_bag: include_last_offset: numBags should be at least 1");
  const TensorOptions places = TensorOptions(kInt64).device(weight.device());
  const bool shapes_alone = weight.is_meta();
  const Tensor index = shapes_alone ? indices.to(places) : indices.to(kInt64);
  const Tensor begins = (shapes_alone ? offsets.to(places) : offsets.to(kInt64)).narrow(0, 0, bags);
  if (!offsets.is_meta() && offsets.impl()->special() == nullptr && offsets.size(0) > 0) {
    const int64_t first = offsets.to(kInt64).select(0, 0).item<int64_t>();
    const int64_t last = offsets.to(kInt64).select(0, -1).item<int64_t>();
    RL_CHECK(first == 0,
             "embedding_bag: offsets[0] has to be 0, where the first bag begins, but is ", first);
    RL_CHECK(last <= n, "embedding_bag: the last of offsets, ", last,
             ", can not be greater than input's length, ", n);
  }
  RL_CHECK(bags > 0 || n == 0, "embedding_bag: indices belong to no bag");
  // How many bags begin up to a place says which bag it is in.
  const Tensor bag = rushlight::zeros({n + 1}, places)
                         .index_add(0, begins, rushlight::ones({bags}, places))
                         .narrow(0, 0, n)
                         .cumsum(0)
                         .sub(1);
  Tensor counts_as_one = rushlight::ones({n}, places);
  Tensor rows = rushlight::embedding(weight, index, -1, scale_grad_by_freq, sparse);
  Tensor hidden;
  if (padding_idx.has_value()) {
    const int64_t height = weight.size(0);
    RL_CHECK(*padding_idx >= -height && *padding_idx < height,
             "padding_idx must be within the number of embeddings, -", height, " through ",
             height - 1, ", but got ", *padding_idx);
    hidden = index.eq(Scalar(*padding_idx < 0 ? *padding_idx + height : *padding_idx));
    counts_as_one = hidden.logical_not().to(kInt64);
  }
  const Tensor sizes = rushlight::zeros({bags}, places).index_add(0, bag, counts_as_one);
  // What a row is multiplied by, or a sum divided by, comes before the only rounding.
  if (mode == 1 || per_sample_weights.defined()) {
    rows = rows.to(compute_dtype(weight.dtype()));
  }
  Tensor result;
  const Tensor none = rushlight::zeros({bags, weight.size(1)}, rows.options());
  if (mode == 2) {
    if (hidden.defined()) {
      rows = rows.masked_fill(hidden.unsqueeze(1), -std::numeric_limits<double>::infinity());
    }
    const Tensor to = bag.unsqueeze(1).expand(rows.sizes());
    result =
        none.scatter_reduce(0, to, rows, "amax", false).masked_fill(sizes.eq(0).unsqueeze(1), 0);
  } else {
    if (per_sample_weights.defined()) {
      rows = rows.mul(per_sample_weights.unsqueeze(1));
    }
    if (hidden.defined()) {
      rows = rows.masked_fill(hidden.unsqueeze(1), 0);
    }
    result = none.index_add(0, bag, rows);
    if (mode == 1) {
      result = result.div(sizes.clamp_min(1).to(result.dtype()).unsqueeze(1));
    }
    result = result.to(weight.dtype());
  }
  return {result, bag, sizes, rushlight::empty({0}, places)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
    int64_t mode, bool sparse, const Tensor& per_sample_weights, bool include_last_offset) {
  return composite::embedding_bag_padding_idx(weight, indices, offsets, scale_grad_by_freq, mode,
                                              sparse, per_sample_weights, include_last_offset, {});
}

Tensor _rows_of_embedding(const Tensor& input, const Tensor& weight,
                          std::optional<int64_t> padding_idx, std::optional<double> max_norm,
                          double norm_type, bool scale_grad_by_freq, bool sparse) {
  int64_t padding = -1;
  if (padding_idx.has_value()) {
    const int64_t rows = weight.size(0);
    RL_CHECK_AS(AssertionError, *padding_idx < rows && *padding_idx >= -rows,
                "Padding_idx must be within num_embeddings");
    padding = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
  }
  Tensor indices = input;
  if (max_norm.has_value()) {
    const NoGradGuard no_grad;
    indices = input.contiguous();
    rushlight::embedding_renorm_(weight, indices, *max_norm, norm_type);
  }
  return rushlight::embedding(weight, indices, padding, scale_grad_by_freq, sparse);
}

Tensor _bags_of_embeddings(const Tensor& input, const Tensor& weight, const Tensor& offsets,
                           std::optional<double> max_norm, double norm_type,
                           bool scale_grad_by_freq, std::string_view mode, bool sparse,
                           const Tensor& per_sample_weights, bool include_last_offset,
                           std::optional<int64_t> padding_idx) {
  if (weight.dtype() == kInt64 && input.is_floating_point()) {
    warn(
        "Argument order of nn.functional.embedding_bag was changed: it is embedding_bag(input, "
        "weight, ...) now. The old order is taken, but deprecated.");
    return composite::_bags_of_embeddings(weight, input, offsets, max_norm, norm_type,
                                          scale_grad_by_freq, mode, sparse, per_sample_weights,
                                          include_last_offset, padding_idx);
  }
  RL_CHECK_VALUE(!per_sample_weights.defined() || per_sample_weights.sizes() == input.sizes(),
                 "embedding_bag: per_sample_weights and input must have the same shape, but have ",
                 per_sample_weights.sizes(), " and ", input.sizes());
  RL_CHECK_VALUE(input.dim() == 1 || input.dim() == 2,
                 "embedding_bag: input has to be 1D or 2D Tensor, but its dimension is ",
                 input.dim());
  RL_CHECK_VALUE(
      input.dim() == 1 || !offsets.defined(),
      "embedding_bag: offsets has to be None where the input is 2D: each of its rows is a bag");
  RL_CHECK_VALUE(input.dim() == 2 || (offsets.defined() && offsets.dim() == 1),
                 "embedding_bag: offsets has to be a 1D Tensor of where bags begin, not ",
                 offsets.defined() ? str("one of shape ", offsets.sizes()) : "None");
  RL_CHECK_VALUE(mode == "sum" || mode == "mean" || mode == "max",
                 "embedding_bag: mode has to be 'sum', 'mean' or 'max', not '", mode, "'");
  RL_CHECK_NOT_IMPLEMENTED(
      !per_sample_weights.defined() || mode == "sum",
      "embedding_bag: per_sample_weights is only supported for mode='sum', not for '", mode, "'");
  Tensor begins = offsets;
  if (input.dim() == 2) {  // rows of equal length; without columns all begin at 0
    const TensorOptions options = TensorOptions(input.dtype()).device(input.device());
    begins = rushlight::arange(0, input.size(0), 1, options) * input.size(1);
  }
  if (max_norm.has_value()) {
    const NoGradGuard no_grad;
    rushlight::embedding_renorm_(weight, input.contiguous(), *max_norm, norm_type);
  }
  return std::get<0>(composite::embedding_bag_padding_idx(
      weight, input.reshape({-1}), begins.to(input.dtype()), scale_grad_by_freq,
      mode == "sum"    ? 0
      : mode == "mean" ? 1
                       : 2,
      sparse, per_sample_weights.defined() ? per_sample_weights.reshape({-1}) : per_sample_weights,
      include_last_offset, padding_idx));
}

}  // namespace composite
}  // namespace rushlight
