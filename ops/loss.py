"""Losses of classification and ranking, and embeddings, whose gradients are as sparse.

Kernels stand in src/cpu/isa/nn/loss.cpp and src/cpu/isa/index/embedding.cpp.
"""

from gen.table import complex_, composite, custom, floating, op, pointwise, stored, update

_loss = {"python": "nn", "variants": "function"}
_out = {"python": "nn", "variants": "function out"}
_torch = {"variants": "function"}  # also public as rushlight.NAME

# ---- class indices ----

op("_nll_loss(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) "
   "-> (Tensor loss, Tensor total_weight)", kernel=custom(), variants="function",
   nondiff=("total_weight",),
   grad={"self": "_nll_loss_backward(grad_loss, target, weight, total_weight, self.sizes(), "
                 "reduction, ignore_index)"},
   doc="-weight[t] * self[t] for target t, over (N, C, d1, ...), and the weights' sum.", own=True,
   jvp="nll_loss_of_change(self_t, target, weight, total_weight, reduction, ignore_index)",
   batch={"self, target": "batched_nll_loss(self, target, weight, reduction, ignore_index, batch)",
          "": "slices: weights of classes are those of all samples"})
op("_nll_loss_backward(Tensor grad_output, Tensor target, Tensor? weight, Tensor total_weight, "
   "int[] sizes, "
   "int reduction, int ignore_index) -> Tensor", kernel=custom(), variants="function",
   grad={"grad_output": "nll_loss_of_change(grad, target, weight, total_weight, reduction, "
                        "ignore_index)"},
   doc="Derivative of `_nll_loss`.", own=True,
   jvp="linear",
   batch={"grad_output, target, total_weight":
              "batched_nll_loss_backward(grad_output, target, weight, total_weight, sizes, "
              "reduction, ignore_index, batch)",
          "": "slices: weights of classes are those of all samples"})
composite("nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int "
          "ignore_index=-100) "
          "-> Tensor", **_loss,
          doc="Negative log likelihood of classes, given log probabilities (N, C, d1, ...).",
          autocast="float32")
for _name, _shape in (("nll_loss", "(C) or (N, C)"), ("nll_loss2d", "(N, C, H, W)")):
    composite(f"{_name}(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int "
              f"ignore_index=-100) -> Tensor",
              **_out, doc=f"`nll_loss_nd` of {_shape}.",
              autocast="float32")
    composite(f"{_name}_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int "
              f"ignore_index) -> "
              "(Tensor output, Tensor total_weight)", **_loss, out="cpp",
              overloads=[f"{_name}_forward.output(self, target, weight, reduction, ignore_index, "
                         f"output!, total_weight!)"],
              doc=f"`{_name}` and the sum of the targets' weights.")
op("_cross_entropy(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, "
   "float label_smoothing) "
   "-> (Tensor loss, Tensor log_sum, Tensor total_weight)", kernel=custom(), variants="function",
   nondiff=("log_sum", "total_weight"),
   grad={"self": "_cross_entropy_backward(grad_loss, self, target, weight, log_sum, total_weight, "
                 "reduction, "
                 "ignore_index, label_smoothing)"},
   doc="Cross entropy of logits and classes in one pass over the logits; of each sample the "
       "largest logit m, then log(sum(exp(self - m))).", own=True,
   jvp="sum_like_loss(loss, _cross_entropy_backward(ones_like(loss), self, target, weight, "
       "log_sum, total_weight, reduction, ignore_index, label_smoothing) * self_t)",
   batch={"self, target": "batched_cross_entropy(self, target, weight, reduction, ignore_index, "
                          "label_smoothing, batch)",
          "": "slices: weights of classes are those of all samples"})
op("_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, Tensor "
   "log_sum, "
   "Tensor total_weight, int reduction, int ignore_index, float label_smoothing) -> Tensor",
   kernel=custom(),
   variants="function",
   grad={"grad_output, self": "cross_entropy_double_backward(grad, grad_output, self, target, "
                              "weight, log_sum, "
                              "total_weight, reduction, ignore_index, label_smoothing)"},
   doc="Derivative of `_cross_entropy`, written once.", own=True,
   jvp="twice: its own derivative is written out already",
   batch={"grad_output, self, target, log_sum, total_weight":
              "batched_cross_entropy_backward(grad_output, self, target, weight, log_sum, "
              "total_weight, reduction, ignore_index, label_smoothing, batch)",
          "": "slices: weights of classes are those of all samples"})
composite("cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, "
          "int ignore_index=-100, float label_smoothing=0.0) -> Tensor", **_loss,
          doc="Cross entropy of logits (N, C, d1, ...) and class indices, or class probabilities "
              "of the same shape.",
          autocast="float32")

# ---- probabilities ----

op("_bce(Tensor self, Tensor target) -> Tensor", kernel=pointwise(floating), variants="function",
   grad={"self": "_bce_backward(grad, self, target)",
         "target": "grad * ((1 - self).log() - self.log())"},
   doc="-(target * log(self) + (1 - target) * log(1 - self)), logarithms at least -100.", own=True)
op("_bce_backward(Tensor grad_output, Tensor self, Tensor target) -> Tensor",
   kernel=pointwise(floating),
   variants="function",
   grad={"grad_output": "_bce_backward(grad, self, target)",
         "self": "bce_double_backward(grad, grad_output, self, target)",
         "target": "-grad * grad_output / ((1 - self) * self).clamp_min(1e-12)"},
   doc="Derivative of `_bce`.", own=True)
op("_bce_with_logits(Tensor self, Tensor target) -> Tensor", kernel=pointwise(floating),
   variants="function",
   grad={"self": "_bce_with_logits_backward(grad, self, target)", "target": "-grad * self"},
   doc="`_bce` of sigmoid(self), without loss of digits.", own=True)
op("_bce_with_logits_backward(Tensor grad_output, Tensor self, Tensor target) -> Tensor",
   kernel=pointwise(floating),
   variants="function",
   grad={"grad_output": "grad * (self.sigmoid() - target)",
         "self": "sigmoid_backward(grad * grad_output, self.sigmoid())",
         "target": "-grad * grad_output"},
   doc="Derivative of `_bce_with_logits`.", own=True)
composite("binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) "
          "-> Tensor",
          **_out, doc="Cross entropy of probabilities and targets in [0, 1].",
          autocast={"cpu": "float32", "accelerator": "refused"})
composite("binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, "
          "Tensor? pos_weight=None, "
          "int reduction=1) -> Tensor", variants="function", out="cpp",
          doc="`binary_cross_entropy` of sigmoid(self).",
          autocast="float32")
composite("multilabel_soft_margin_loss(Tensor self, Tensor target, Tensor? weight=None, int "
          "reduction=1) -> Tensor",
          **_loss, doc="`binary_cross_entropy_with_logits`, averaged over the last dimension.",
          own=True)
composite("kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
          **_torch,
          doc="target * (log(target) - self).",
          autocast="float32")
composite("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int "
          "reduction) -> Tensor",
          **_torch, doc="Negative log likelihood of counts under a Poisson distribution.",
          autocast="float32")
composite("gaussian_nll_loss(Tensor input, Tensor target, Tensor|Scalar var, bool full=False, "
          "float eps=1e-06, "
          "int reduction=1) -> Tensor", **_loss,
          doc="Negative log likelihood under normal distributions of variance var, eps at least.",
          own=True)
composite("_weighted_loss(Tensor losses, Tensor weight, int reduction=1) -> Tensor", **_torch,
          doc="The losses of elements times weights, their sum, or the sum over that of the "
              "weights.", own=True)

# ---- margins ----

composite("hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=1) -> "
          "Tensor", **_torch,
          doc="self where the target is 1, max(0, margin - self) where it is -1.",
          autocast="float32")
composite("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, "
          "int reduction=1) "
          "-> Tensor", **_torch,
          doc="1 - cosine where the target is 1, max(0, cosine - margin) where it is -1.",
          autocast="float32")
composite("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int "
          "reduction=1) "
          "-> Tensor", **_torch, doc="max(0, -target * (input1 - input2) + margin).",
          autocast="float32")
composite("triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, "
          "float p=2.0, "
          "float eps=1e-06, bool swap=False, int reduction=1) -> Tensor", **_torch,
          doc="max(0, |anchor - positive| - |anchor - negative| + margin).",
          autocast="float32")
composite("soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", **_out,
          doc="log(1 + exp(-target * self)).",
          autocast="float32")
composite("multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? "
          "weight=None, "
          "int reduction=1) -> Tensor", **_out,
          doc="Mean over other classes of max(0, margin - self[target] + self[c]) to the power p.",
          autocast="float32")
composite("multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", **_out,
          doc="Sum over targets t and other classes c of max(0, 1 - self[t] + self[c]), over the "
              "number of classes.",
          autocast="float32")

# ---- embeddings ----

op("embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, "
   "bool sparse=False) "
   "-> Tensor", kernel=custom(stored=(stored,)), variants="function",
   grad={"weight": "embedding_backward(grad, indices, weight.size(0), padding_idx, "
                   "scale_grad_by_freq, sparse)"},
   doc="The rows of weight at the given indices.",
   jvp="linear",
   batch={"indices": "leading",
          "": "embedding(merge_batch(weight, 0, batch), offset_indices(indices, batch, "
              "weight.size(1)))"},
          tags=("core",))
op("embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights, int padding_idx, "
   "bool scale_grad_by_freq) -> Tensor", kernel=custom(), variants="function",
   grad={"grad_output": "embedding_double_backward(grad, indices, padding_idx, "
                        "scale_grad_by_freq)"},
   doc="Derivative of `embedding`: the sum of the gradients of each row's uses.",
   jvp="linear",
   batch="batched_embedding_backward(grad_output, indices, num_weights, padding_idx, "
         "scale_grad_by_freq, batch)", tags=("core",))
op("embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> "
   "Tensor(a!)",
   kernel=update(place="once"), variants="function inplace", grad="missing",
   doc="Scales the rows at the indices that are longer than max_norm down to it, in place.",
   batch="slices: rows are shortened where they lie")
_BAGS = "Tensor weight, Tensor indices, Tensor offsets"
_FOUR = "(Tensor, Tensor, Tensor, Tensor)"
composite(f"embedding_bag({_BAGS}, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "
          f"Tensor? per_sample_weights=None, bool include_last_offset=False) -> {_FOUR}",
          variants="function",
          doc="Sums (mode 0), means (1) or maxima (2) of the rows of bags of indices; also each "
              "index's bag, the bags' "
              "sizes and, for maxima, nothing more.")
composite(f"embedding_bag.padding_idx({_BAGS}, bool scale_grad_by_freq, int mode, bool sparse, "
          f"Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> {_FOUR}",
          variants="function",
          doc="The same, without the indices that are padding_idx.")
for _name in ("_embedding_bag", "_embedding_bag_forward_only"):
    composite(f"{_name}({_BAGS}, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "
              "Tensor? per_sample_weights=None, bool include_last_offset=False, "
              f"int padding_idx=-1) -> {_FOUR}", variants="function", out="cpp",
              body="embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, "
                   "per_sample_weights, include_last_offset, unless_negative(padding_idx))",
              doc="`embedding_bag`; a negative padding_idx is none.",
              tags=("core",) if _name == "_embedding_bag" else ())
composite("_rows_of_embedding(Tensor input, Tensor weight, int? padding_idx=None, float? "
          "max_norm=None, float norm_type=2, bool scale_grad_by_freq=False, bool sparse=False) -> "
          "Tensor",
          variants="function", python="functional.embedding", own=True,
          doc="The rows of `weight` at the indices `input`; `padding_idx` names a row whose "
              "gradient stays zero; rows longer than `max_norm` are shortened in place first.")
composite("_bags_of_embeddings(Tensor input, Tensor weight, Tensor? offsets=None, float? "
          "max_norm=None, "
          "float norm_type=2, bool scale_grad_by_freq=False, str mode='mean', bool sparse=False, "
          "Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) "
          "-> Tensor",
          variants="function", python="functional.embedding_bag", own=True,
          doc="Sums, means or maxima (`mode`) of the rows of `weight` at bags of indices: rows of "
              "`input`, or one row with `offsets`, where the bags begin (and, with "
              "`include_last_offset`, the last one ends). `per_sample_weights` are factors of the "
              "rows (sums only), `padding_idx` counts for nothing; rows longer than `max_norm` "
              "are shortened in place first.")

# ---- alignments ----

_CTC = "Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank"
op(f"_ctc_loss({_CTC}=0, bool zero_infinity=False) -> (Tensor neg_log_likelihood, Tensor "
   f"log_alpha)",
   kernel=custom(place="once"), variants="function", nondiff=("log_alpha",),
   grad={"log_probs": "_ctc_loss_backward(grad_neg_log_likelihood, log_probs, targets, "
                      "input_lengths, target_lengths, "
                      "neg_log_likelihood, log_alpha, blank, zero_infinity)"},
   doc="-log of the probability of each target under all its alignments with (length, batch, "
       "classes).",
   overloads=["_ctc_loss.out(log_probs, targets, input_lengths, target_lengths, blank, "
              "zero_infinity, out0!, out1!)"],
   jvp="(_ctc_loss_backward(ones_like(neg_log_likelihood), log_probs, targets, input_lengths, "
       "target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity) * "
       "log_probs_t).sum(2).sum(0)",
   batch="slices: samples are the second dimension, with lengths of their own")
op("_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
   "target_lengths, "
   "Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity) -> Tensor",
   kernel=custom(place="once"),
   variants="", grad="missing",
   doc="Derivative of `_ctc_loss` for log_probs that are a log_softmax.",
   overloads=["_ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, "
              "neg_log_likelihood, log_alpha, blank, zero_infinity=False)",
              "_ctc_loss_backward.out(grad, log_probs, targets, input_lengths, target_lengths, "
              "neg_log_likelihood, log_alpha, blank, zero_infinity=False, out!)"],
   batch="slices: samples are the second dimension, with lengths of their own")
composite("ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
          "target_lengths, int blank=0, "
          "int reduction=1, bool zero_infinity=False) -> Tensor", variants="function",
          doc="Connectionist temporal classification: 0 each loss, 1 the mean over targets' "
              "lengths, 2 the sum.",
          autocast={"cpu": "float32"})
composite("ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor "
          "target_lengths, int blank=0, "
          "int reduction=1, bool zero_infinity=False) -> Tensor", variants="function",
          doc="`ctc_loss` with lengths in tensors.",
          autocast={"cpu": "float32"})

# ---- losses that are a formula and a mean; reduction is 0 (none), 1 (mean) or 2 (sum) ----

op("_squared_error(Tensor self, Tensor target) -> Tensor", kernel=pointwise(floating, complex_),
   variants="function",
   grad={"self": "grad * (2 * (self - target)).conj()",
         "target": "grad * (2 * (target - self)).conj()"}, doc="(self - target)^2.", own=True)
op("_smooth_l1(Tensor self, Tensor target, float beta) -> Tensor", kernel=pointwise(floating),
   variants="function",
   grad={"self": "grad * _smooth_l1_slope(self, target, beta)",
         "target": "-grad * _smooth_l1_slope(self, target, beta)"},
   doc="Squared error / (2 beta) below beta, absolute error above.", own=True)
op("_smooth_l1_slope(Tensor self, Tensor target, float beta) -> Tensor", kernel=pointwise(floating),
   variants="function",
   grad={"self": "grad * ((self - target).abs() < beta) / beta",
         "target": "-grad * ((self - target).abs() < beta) / beta"},
   doc="The derivative of `_smooth_l1`.", own=True)
op("_huber(Tensor self, Tensor target, float delta) -> Tensor", kernel=pointwise(floating),
   variants="function",
   grad={"self": "grad * _huber_slope(self, target, delta)",
         "target": "-grad * _huber_slope(self, target, delta)"},
   doc="Half the squared error below delta, delta times the absolute error above.", own=True)
op("_huber_slope(Tensor self, Tensor target, float delta) -> Tensor", kernel=pointwise(floating),
   variants="function",
   grad={"self": "grad * ((self - target).abs() < delta)",
         "target": "-grad * ((self - target).abs() < delta)"},
   doc="The derivative of `_huber`.", own=True)
composite("mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", python="nn",
          variants="function out",
          doc="The squared error, reduced by default to its mean.",
          autocast="float32")
composite("l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", python="nn",
          variants="function",
          doc="The absolute error, reduced by default to its mean.",
          autocast="float32")
composite("smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor",
          python="nn",
          variants="function out",
          doc="The smooth L1 loss: squared error / (2 beta) below beta, absolute error - beta / "
              "2 above.",
          autocast="float32")
composite("huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor",
          python="nn",
          variants="function out",
          doc="The Huber loss: half the squared error below delta, linear above.",
          autocast="float32")
