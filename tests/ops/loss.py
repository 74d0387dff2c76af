"""Samples of losses and embeddings."""

_PAIR = ["x(3, 4), x(3, 4)", "x(3, 4), x(3, 4), reduction=2", "x(3, 4), x(3, 4), reduction=0"]
_CLASSES = [
    "x(5, 4), ints(5, high=4)",
    "x(4), ints(high=4)",
    "x(2, 3, 4, 5), ints(2, 4, 5, high=3)",
    "x(5, 4), ints(5, high=4), const(4)",
    "x(5, 4), ints(5, high=4), const(4), 2",
    "x(5, 4), ints(5, high=4), const(4), 0, 1",
    "x(2, 3, 200), ints(2, 200, high=3), None, 1, 2",
    "x(3, 1500), ints(3, high=1500)",
]
SAMPLES = {
    "_bce": ["x(3, 4, low=0.1, high=0.9), x(3, 4, low=0.1, high=0.9)"],
    "_bce_backward": ["x(3, 4), x(3, 4, low=0.1, high=0.9), x(3, 4, low=0.1, high=0.9)"],
    "nll_loss_nd": _CLASSES,
    "nll_loss": _CLASSES[:2],
    "nll_loss2d": ["x(1, 3, 2, 2), ints(1, 2, 2, high=3)", *_CLASSES[2:3]],
    "nll_loss_forward": ["x(5, 4), ints(5, high=4), const(4), 1, -100", "x(5, 4), ints(5, high=4), None, 0, 1"],
    "nll_loss2d_forward": ["x(1, 3, 2, 2), ints(1, 2, 2, high=3), const(3), 2, 1"],
    "cross_entropy_loss": [
        *_CLASSES,
        "x(5, 4), ints(5, high=4), const(4), 1, 1, 0.1",
        "x(2, 3, 7), ints(2, 7, high=3), const(3), 0, -100, 0.2",
        "x(5, 4), pos(5, 4)",
        "x(5, 4), pos(5, 4), pos(4), 2, -100, 0.1",
    ],
    "binary_cross_entropy": ["x(3, 4, low=0.1, high=0.9), x(3, 4, low=0.1, high=0.9)", "x(3, 4, low=0.1, high=0.9), x(3, 4, low=0.1, high=0.9), pos(4), 0"],
    "binary_cross_entropy_with_logits": [
        "x(3, 4), x(3, 4, low=0.1, high=0.9)",
        "x(3, 4), x(3, 4, low=0.1, high=0.9), pos(4), pos(4), 2",
        "x(3, 4), x(3, 4, low=0.1, high=0.9), None, pos(4), 0",
    ],
    "kl_div": ["x(3, 4), pos(3, 4)", "x(3, 4), x(3, 4), 0, log_target=True"],
    "poisson_nll_loss": ["x(3, 4), pos(3, 4), True, True, 1e-8, 1", "pos(3, 4), pos(3, 4), False, False, 1e-8, 2"],
    "gaussian_nll_loss": [
        *("x(3, 4), x(3, 4), pos(3, 4)", "x(3, 4), x(3, 4), pos(3), True, 1e-3, 0", "x(3, 4), x(3, 4), pos(3, 1), reduction=2"),
        *("x(3, 4), x(3, 4), 2.5, True", "x(3, 4), x(3, 4), m.zeros(3, 4, dtype=dtype), False, 0.5"),
    ],
    "_weighted_loss": [f"pos(3, 4), const(4), {reduction}" for reduction in (0, 1, 2)],
    "multilabel_soft_margin_loss": [
        *("x(3, 4), x(3, 4, low=0.1, high=0.9)", "x(3, 4), mask(3, 4).to(dtype), const(4), 0", "x(4), mask(4).to(dtype), None, 2"),
    ],
    "hinge_embedding_loss": ["x(4), same(1, -1, 1, -1)"],
    "cosine_embedding_loss": ["x(2, 3), x(2, 3), m.tensor([1, -1])"],
    "margin_ranking_loss": ["x(4), x(4), m.tensor([1, -1, 1, -1])"],
    "triplet_margin_loss": ["x(3, 4), x(3, 4), x(3, 4)", "x(3, 4), x(3, 4), x(3, 4), 2.0, 1.0, 1e-6, True, 0"],
    "soft_margin_loss": ["x(4), m.tensor([1, -1, 1, -1])"],
    "multi_margin_loss": ["x(3, 4), ints(3, high=4)", "x(3, 4), ints(3, high=4), 2, 0.5, const(4), 0", "x(4), ints(high=4)"],
    "multilabel_margin_loss": ["x(2, 4), m.tensor([[3, 0, -1, 1], [2, -1, 0, 0]])"],
    "embedding": ["x(5, 3), ints(2, 4, high=5)", "x(5, 3), ints(high=5)"],
    "embedding_dense_backward": ["x(7, 3), ints(7, high=4), 4, -1, False", "x(7, 3), ints(7, high=4), 5, 1, True"],
}
DTYPES = dict.fromkeys(("nll_loss_nd", "cross_entropy_loss", "embedding"), "floating")
_PLUS = "np.log1p(np.exp(-np.abs(self)))"
_LOGITS = f"np.maximum(self, 0) - self * target + {_PLUS}"
_COSINE = "np.sum(input1 * input2, -1) / (vector_norm(input1, 2, -1) * vector_norm(input2, 2, -1))"
_CTC = "ctc(log_probs, targets, input_lengths, target_lengths, blank)"
REFERENCES = {
    # formulas and their means
    "_squared_error": "(self - target) ** 2",
    "_smooth_l1": "huber(self - target, beta) / beta",
    "_smooth_l1_slope": "np.clip((self - target) / beta, -1, 1)",
    "_huber": "huber(self - target, delta)",
    "_huber_slope": "np.clip(self - target, -delta, delta)",
    "mse_loss": "reduced(np.abs(self - target) ** 2, reduction)",
    "l1_loss": "reduced(np.abs(self - target), reduction)",
    "smooth_l1_loss": "reduced(huber(self - target, beta) / beta, reduction)",
    "huber_loss": "reduced(huber(self - target, delta), reduction)",
    # others
    "nll_loss_nd": "nll(self, target, weight, reduction, ignore_index)",
    "_nll_loss": "(nll(self, target, weight, reduction, ignore_index), None)",
    "_nll_loss_backward": "adjoint_of(lambda i: np.take_along_axis(i, target[:, None], 1)[:, 0], -grad_output / total_weight * np.ones(len(target)), sizes)",
    "cross_entropy_loss": "cross_entropy(self, target, weight, reduction, ignore_index, label_smoothing)",
    "_cross_entropy": "(cross_entropy(self, target, weight, reduction, ignore_index, label_smoothing), np.stack([self.max(1), scipy.special.logsumexp(self - self.max(1, keepdims=True), 1)]), None)",
    "_bce": "-(target * np.maximum(np.log(self), -100) + (1 - target) * np.maximum(np.log(1 - self), -100))",
    "_bce_backward": "grad_output * (self - target) / np.maximum((1 - self) * self, 1e-12)",
    "_bce_with_logits": _LOGITS,
    "_bce_with_logits_backward": "grad_output * (scipy.special.expit(self) - target)",
    "binary_cross_entropy": "reduced((1 if weight is None else weight) * -(scipy.special.xlogy(target, self) + scipy.special.xlogy(1 - target, 1 - self)), reduction)",
    "binary_cross_entropy_with_logits": "reduced((1 if weight is None else weight) * ((1 - target) * self + (1 + ((1 if pos_weight is None else pos_weight) - 1) * target)"
    f" * ({_PLUS} + np.maximum(-self, 0))), reduction)",
    "kl_div": "reduced(np.exp(target) * (target - self) if log_target else scipy.special.xlogy(target, target) - target * self, reduction)",
    "poisson_nll_loss": "reduced(poisson_nll(input, target, log_input, full, eps), reduction)",
    "hinge_embedding_loss": "reduced(np.where(target == 1, self, np.maximum(0, margin - self)), reduction)",
    "cosine_embedding_loss": f"reduced(np.where(target == 1, 1 - {_COSINE}, np.maximum(0, {_COSINE} - margin)), reduction)",
    "margin_ranking_loss": "reduced(np.maximum(0, -target * (input1 - input2) + margin), reduction)",
    "triplet_margin_loss": "reduced(triplet(anchor, positive, negative, margin, p, eps, swap), reduction)",
    "soft_margin_loss": "reduced(np.log1p(np.exp(-target * self)), reduction)",
    "multi_margin_loss": "reduced(multi_margin(self, target, p, margin, weight), reduction)",
    "multilabel_margin_loss": "reduced(multilabel_margin(self, target), reduction)",
    "embedding": "weight[indices]",
    "embedding_dense_backward": "adjoint_of(lambda i: i[indices], grad_output * ((indices != padding_idx) / (np.bincount(indices)[indices] if scale_grad_by_freq else 1))[:, None],"
    " (num_weights, grad_output.shape[-1]))",
    "embedding_bag": "(bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset, None), None, None, None)",
    "embedding_bag.padding_idx": "(bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx), None, None, None)",
    **dict.fromkeys(
        ("_embedding_bag", "_embedding_bag_forward_only"),
        "(bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset, None if padding_idx < 0 else padding_idx), None, None, None)",
    ),
    "_ctc_loss": f"({_CTC}, None)",
    **dict.fromkeys(("ctc_loss.IntList", "ctc_loss.Tensor"), f"ctc_reduced({_CTC}, target_lengths, reduction, zero_infinity)"),
}
_BAD_CLASS = [
    ("x(2, 3), m.tensor([0, 5])", IndexError, "Target 5 is out of bounds"),
    ("x(2, 3), m.tensor([0, -1])", IndexError, "Target -1 is out of bounds"),
    ("x(2, 3), x(2)", RuntimeError, "target dtype to be Long or Byte, but got"),
    ("x(2, 3), m.tensor([0, 1, 2])", ValueError, "to match target batch_size"),
    ("x(2, 3), ints(2, 1, high=3)", RuntimeError, "multi-target not supported"),
    ("x(2, 3), ints(2, high=3), x(2)", RuntimeError, "weight tensor should be defined for all 3 classes"),
    ("x(2, 3, 4), ints(2, 5, high=3)", RuntimeError, "Expected target size \\[2, 4\\], got \\[2, 5\\]"),
]
ERRORS = {
    "nll_loss_nd": _BAD_CLASS,
    "cross_entropy_loss": [*_BAD_CLASS, ("x(2, 3), ints(2, high=3), None, 1, -100, 2.0", RuntimeError, "label_smoothing must be")],
    "mse_loss": [("x(2), x(2), 3", ValueError, "3 is not a valid value for reduction")],
    "gaussian_nll_loss": [
        ("x(3, 4), x(3, 4), -1.0", ValueError, "var has negative entry/entries"),
        ("x(3, 4), x(3, 4), pos(4)", ValueError, "var is of incorrect size"),
        ("x(3, 4), x(3, 4), pos(3, 2)", ValueError, "var is of incorrect size"),
        ("x(3, 4), x(3, 4), pos(3, 4), reduction=7", ValueError, "7 is not a valid value"),
    ],
    "multi_margin_loss": [
        ("x(3, 4), ints(3, high=4), 3", ValueError, "only p == 1 and p == 2 supported"),
        ("x(3, 4), ints(3, high=4), 1, 1.0, x(4, 1)", ValueError, "weight must be one-dimensional"),
    ],
    "binary_cross_entropy": [("same(2.0), same(1.0)", RuntimeError, "should be between 0 and 1")],
    "binary_cross_entropy_with_logits": [("x(1), x(2)", ValueError, "must be the same as")],
    "embedding": [
        ("x(3, 2), m.tensor([3])", IndexError, "index out of range in self"),
        ("x(3, 2), m.tensor([-1])", IndexError, "index out of range in self"),
        ("x(3), m.tensor([0])", RuntimeError, "'weight' must be 2-D"),
        ("x(3, 2), x(2)", RuntimeError, "scalar types: Long, Int"),
    ],
}
SKIPS = {("_cross_entropy_backward", mode): "log_sum belongs to self: second gradients of cross_entropy_loss try it" for mode in ("grad", "second")}
SKIPS |= {("binary_cross_entropy", "meta"): "looks at the values", ("gaussian_nll_loss", "meta"): "looks at the values"}
SKIPS |= {(op, "parity"): "only nn.functional's form exists there: tests/parity/test_layers.py compares it"
          for op in ("gaussian_nll_loss", "multilabel_soft_margin_loss")}
SKIPS |= {(op, "complex grad"): "PyTorch has no complex derivative either" for op in (
    "embedding", "embedding_bag", "embedding_bag.padding_idx", "_embedding_bag", "_embedding_bag_forward_only", "_bags_of_embeddings",
    "_rows_of_embedding")}

# ---- bags of embeddings, alignments ----

_BAGS = "m.tensor([1, 2, 2, 0, 1, 3]), m.tensor([0, 2, 2, 5])"
SAMPLES |= {
    "embedding_bag": [
        *(f"x(4, 3), {_BAGS}, False, {mode}" for mode in (0, 1, 2)),
        f"x(4, 3), {_BAGS}, False, 0, False, x(6)",
        "x(4, 3), m.tensor([1, 2, 2, 0]), m.tensor([0, 2, 4]), False, 1, False, None, True",
        "x(40, 2), m.tensor([1, 1, 2]).int(), m.tensor([0, 1]).int(), True, 1",
        "x(4, 3), m.tensor([]).long(), m.tensor([0, 0]), False, 1",
    ],
    "_ctc_loss": [
        *("x(5, 2, 4).log_softmax(-1), m.tensor([[1, 2], [3, 3]]), [5, 4], [2, 2]", "x(4, 1, 3).log_softmax(-1), m.tensor([1, 1]), [4], [2]"),
        *("x(6, 2, 5).log_softmax(-1), m.tensor([1, 2, 3]), [6, 3], [3, 0]", "x(3, 1, 3).log_softmax(-1), m.tensor([[0, 1, 1]]), [2], [3], 2"),
        "x(3, 1, 3).log_softmax(-1), m.tensor([[0, 1, 1]]), [2], [3], 2, True",
    ],
    "ctc_loss.IntList": [
        "x(5, 2, 4).log_softmax(-1), m.tensor([[1, 2], [3, 3]]), [5, 4], [2, 2]",
        *(f"x(5, 2, 4).log_softmax(-1), m.tensor([[1, 2], [3, 3]]), [5, 4], [2, 1], 0, {r}" for r in (0, 1, 2)),
        "x(2, 1, 3).log_softmax(-1), m.tensor([[1, 1]]), [2], [2], 0, 1, True",
    ],
    "ctc_loss.Tensor": ["x(5, 2, 4).log_softmax(-1), m.tensor([[1, 2], [3, 3]]), m.tensor([5, 4]), m.tensor([2, 2])"],
}
SAMPLES |= {f"_embedding_bag{kind}": [f"x(4, 3), {_BAGS}", f"x(4, 3), {_BAGS}, False, 1, False, None, False, 2"] for kind in ("", "_forward_only")}
DTYPES |= dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), "floating")
SAMPLES["embedding_bag.padding_idx"] = [
    *(f"x(4, 3), {_BAGS}, False, {mode}, False, None, False, 2" for mode in (0, 1, 2)),
    f"x(4, 3), {_BAGS}, False, 0, False, x(6), False, None",
]
SAMPLES["_rows_of_embedding"] = [
    *("m.tensor([1, 2, 2, 0]), x(4, 3)", "m.tensor([[1, 3], [0, 3]]), const(4, 3), padding_idx=-1", "m.tensor([1, 2]), const(4, 3), max_norm=1.0, norm_type=1.0"),
    *("m.tensor([1, 2]), x(4, 3), padding_idx=0", "m.tensor([]).long(), x(4, 3)"),
]
SAMPLES["_bags_of_embeddings"] = [
    *(f"m.tensor([1, 2, 2, 0, 1, 3]), x(4, 3), m.tensor([0, 2, 2, 5]), mode='{mode}'" for mode in ("sum", "mean", "max")),
    *("m.tensor([[1, 2], [0, 3]]), x(4, 3), None", "m.tensor([[1, 2], [0, 3]]), x(4, 3), mode='sum', per_sample_weights=x(2, 2)"),
    *("m.zeros(2, 0).long(), x(4, 3)", "m.tensor([[1, 2], [0, 3]]), const(4, 3), None, 1.5, padding_idx=-2"),
]
DTYPES |= {"_rows_of_embedding": "floating", "embedding_bag.padding_idx": "floating", "_bags_of_embeddings": "floating"}
DTYPES |= {"embedding_bag": "floating", "_ctc_loss": "floats", "ctc_loss.IntList": "floats", "ctc_loss.Tensor": "floats"}
ERRORS |= {
    "_rows_of_embedding": [("m.tensor([1]), x(4, 3), 4", AssertionError, "Padding_idx must be within num_embeddings"),
                           ("m.tensor([1]), x(4, 3), -5", AssertionError, "Padding_idx must be within num_embeddings")],
    "_bags_of_embeddings": [
        ("m.tensor([[1]]), x(4, 3), m.tensor([0])", ValueError, "offsets has to be None where the input is 2D"),
        ("m.tensor([1]), x(4, 3)", ValueError, "offsets has to be a 1D Tensor of where bags begin, not None"),
        ("m.tensor([1]), x(4, 3), m.tensor([[0]])", ValueError, "offsets has to be a 1D Tensor"),
        ("m.tensor(1), x(4, 3)", ValueError, "input has to be 1D or 2D Tensor"),
        ("m.tensor([[1]]), x(4, 3), mode='most'", ValueError, "mode has to be 'sum', 'mean' or 'max', not 'most'"),
        ("m.tensor([[1]]), x(4, 3), per_sample_weights=x(2, 1)", ValueError, "per_sample_weights and input must have the same shape"),
        ("m.tensor([[1]]), x(4, 3), per_sample_weights=x(1, 1)", NotImplementedError, "only supported for mode='sum'"),
    ],
    "embedding_bag": [
        ("x(4, 3), m.tensor([1, 2]), m.tensor([1])", RuntimeError, r"offsets\[0\] has to be 0"),
        ("x(4, 3), m.tensor([1, 2]), m.tensor([0, 3])", RuntimeError, r"can not be greater than input's length"),
        ("x(4, 3), m.tensor([1, 9]), m.tensor([0])", IndexError, "index out of range"),
        ("x(4, 3), x(2), m.tensor([0])", RuntimeError, "integer dtype"),
        ("x(4, 3), m.tensor([1]), m.tensor([0]), False, 1, False, x(1)", RuntimeError, "only supported for mode='sum'"),
    ],
    "_ctc_loss": [
        ("x(5, 1, 3), m.tensor([[3]]), [5], [1]", RuntimeError, "out of bounds for 3 classes"),
        ("x(5, 1, 3), m.tensor([[1]]), [6], [1]", RuntimeError, "input_lengths have value at most 5, the steps of log_probs, but one is 6"),
        ("x(5, 1, 3), m.tensor([[1]]), [5], [2]", RuntimeError, "a target of 2 classes does not fit"),
        ("x(5, 1, 3), m.tensor([[1]]), [5], [1], 3", RuntimeError, "blank must be in label range"),
        ("x(5, 2, 3), m.tensor([[1], [1]]), [5], [1, 1]", RuntimeError, "input_lengths must be of size batch_size"),
        ("x(5, 1, 3), x(1, 1), [5], [1]", RuntimeError, "targets must be int32 or int64"),
    ],
}
_CTC_GRAD = "the gradient is that of logits behind log_softmax, as in PyTorch: it is compared there"
SKIPS |= {(op, "grad"): _CTC_GRAD for op in ("_ctc_loss", "ctc_loss.IntList", "ctc_loss.Tensor")}
SKIPS |= {(op, "meta"): "labels and lengths are read" for op in ("_ctc_loss", "ctc_loss.IntList", "ctc_loss.Tensor", "embedding_bag", "embedding_bag.padding_idx", "_embedding_bag", "_embedding_bag_forward_only", "_bags_of_embeddings")}
SKIPS |= {(op, "parity"): "PyTorch gives the maxima's indices, too" for op in ("embedding_bag", "embedding_bag.padding_idx", "_embedding_bag")}
SKIPS |= {("_embedding_bag_forward_only", "parity"): "without a gradient in PyTorch: _embedding_bag compares it"}
SKIPS |= {("_ctc_loss", "parity"): "what PyTorch leaves of log_alpha where no path goes is its own"}
SKIPS |= {("_cross_entropy_backward", "jvp"): "log_sum belongs to self", ("_ctc_loss", "jvp"): _CTC_GRAD}
