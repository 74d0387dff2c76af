"""Samples of losses and embeddings."""

_PAIR = ["x(3, 4), x(3, 4)", "x(3, 4), x(3, 4), reduction='sum'", "x(3, 4), x(3, 4), reduction='none'"]
_CLASSES = [
    "x(5, 4), ints(5, high=4)",
    "x(4), ints(high=4)",
    "x(2, 3, 4, 5), ints(2, 4, 5, high=3)",
    "x(5, 4), ints(5, high=4), const(4)",
    "x(5, 4), ints(5, high=4), const(4), 'sum'",
    "x(5, 4), ints(5, high=4), const(4), 'none', 1",
    "x(2, 3, 200), ints(2, 200, high=3), None, 'mean', 2",
    "x(3, 1500), ints(3, high=1500)",
]
SAMPLES = {
    "_bce": ["x(3, 4, low=0.1, high=0.9), x(3, 4, low=0.1, high=0.9)"],
    "_bce_backward": ["x(3, 4), x(3, 4, low=0.1, high=0.9), x(3, 4, low=0.1, high=0.9)"],
    "nll_loss_nd": _CLASSES,
    "cross_entropy_loss": [
        *_CLASSES,
        "x(5, 4), ints(5, high=4), const(4), 'mean', 1, 0.1",
        "x(2, 3, 7), ints(2, 7, high=3), const(3), 'none', -100, 0.2",
        "x(5, 4), pos(5, 4)",
        "x(5, 4), pos(5, 4), pos(4), 'sum', -100, 0.1",
    ],
    "binary_cross_entropy": ["x(3, 4, low=0.1, high=0.9), x(3, 4, low=0.1, high=0.9)", "x(3, 4, low=0.1, high=0.9), x(3, 4, low=0.1, high=0.9), pos(4), 'none'"],
    "binary_cross_entropy_with_logits": [
        "x(3, 4), x(3, 4, low=0.1, high=0.9)",
        "x(3, 4), x(3, 4, low=0.1, high=0.9), pos(4), pos(4), 'sum'",
        "x(3, 4), x(3, 4, low=0.1, high=0.9), None, pos(4), 'none'",
    ],
    "kl_div": ["x(3, 4), pos(3, 4)", "x(3, 4), x(3, 4), 'none', log_target=True"],
    "poisson_nll_loss": ["x(3, 4), pos(3, 4), True, True, 1e-8, 'mean'", "pos(3, 4), pos(3, 4), False, False, 1e-8, 'sum'"],
    "hinge_embedding_loss": ["x(4), same(1, -1, 1, -1)"],
    "cosine_embedding_loss": ["x(2, 3), x(2, 3), m.tensor([1, -1])"],
    "margin_ranking_loss": ["x(4), x(4), m.tensor([1, -1, 1, -1])"],
    "triplet_margin_loss": ["x(3, 4), x(3, 4), x(3, 4)", "x(3, 4), x(3, 4), x(3, 4), 2.0, 1.0, 1e-6, True, 'none'"],
    "soft_margin_loss": ["x(4), m.tensor([1, -1, 1, -1])"],
    "multi_margin_loss": ["x(3, 4), ints(3, high=4)", "x(3, 4), ints(3, high=4), 2, 0.5, const(4), 'none'", "x(4), ints(high=4)"],
    "multilabel_margin_loss": ["x(2, 4), m.tensor([[3, 0, -1, 1], [2, -1, 0, 0]])"],
    "embedding": ["x(5, 3), ints(2, 4, high=5)", "x(5, 3), ints(high=5)"],
    "embedding_dense_backward": ["x(7, 3), ints(7, high=4), 4, -1, False", "x(7, 3), ints(7, high=4), 5, 1, True"],
}
DTYPES = dict.fromkeys(("nll_loss_nd", "cross_entropy_loss", "embedding"), "floating")
_BAD_CLASS = [
    ("x(2, 3), m.tensor([0, 5])", IndexError, "Target 5 is out of bounds"),
    ("x(2, 3), m.tensor([0, -1])", IndexError, "Target -1 is out of bounds"),
    ("x(2, 3), x(2)", RuntimeError, "target dtype to be Long or Byte, but got"),
    ("x(2, 3), m.tensor([0, 1, 2])", ValueError, "to match target batch_size"),
    ("x(2, 3), ints(2, 1, high=3)", RuntimeError, "multi-target not supported"),
    ("x(2, 3), ints(2, high=3), x(2)", RuntimeError, "weight tensor should be defined either for all 3 classes"),
    ("x(2, 3, 4), ints(2, 5, high=3)", RuntimeError, "Expected target size \\[2, 4\\], got \\[2, 5\\]"),
]
ERRORS = {
    "nll_loss_nd": _BAD_CLASS,
    "cross_entropy_loss": [*_BAD_CLASS, ("x(2, 3), ints(2, high=3), None, 'mean', -100, 2.0", RuntimeError, "label_smoothing must be")],
    "binary_cross_entropy": [("same(2.0), same(1.0)", RuntimeError, "should be between 0 and 1")],
    "binary_cross_entropy_with_logits": [("x(1), x(2)", ValueError, "must be the same as input size")],
    "embedding": [
        ("x(3, 2), m.tensor([3])", IndexError, "index out of range in self"),
        ("x(3, 2), m.tensor([-1])", IndexError, "index out of range in self"),
        ("x(3), m.tensor([0])", RuntimeError, "'weight' must be 2-D"),
        ("x(3, 2), x(2)", RuntimeError, "scalar types: Long, Int"),
    ],
}
SKIPS = {("_cross_entropy_backward", "grad"): "log_sum belongs to self: second gradients of cross_entropy_loss try it"}
SKIPS |= {("nll_loss_nd", "parity"): "PyTorch's nll_loss has another signature"}
SKIPS |= {(op, "parity"): "PyTorch's reduction is a number" for op in (
    "cross_entropy_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "poisson_nll_loss", "hinge_embedding_loss",
    "cosine_embedding_loss", "margin_ranking_loss", "triplet_margin_loss", "soft_margin_loss", "multi_margin_loss", "multilabel_margin_loss")}
SKIPS |= {("embedding", "parity"): "arguments stand in another order", ("binary_cross_entropy", "meta"): "looks at the values"}

# ---- bags of embeddings, alignments ----

_BAGS = "m.tensor([1, 2, 2, 0, 1, 3]), m.tensor([0, 2, 2, 5])"
SAMPLES |= {
    "embedding_bag": [
        *(f"x(4, 3), {_BAGS}, False, {mode}" for mode in (0, 1, 2)),
        *(f"x(4, 3), {_BAGS}, False, {mode}, False, None, False, 2" for mode in (0, 1, 2)),
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
DTYPES |= {"embedding_bag": "floating", "_ctc_loss": "floats", "ctc_loss.IntList": "floats", "ctc_loss.Tensor": "floats"}
ERRORS |= {
    "embedding_bag": [
        ("x(4, 3), m.tensor([1, 2]), m.tensor([1])", RuntimeError, r"offsets\[0\] has to be 0"),
        ("x(4, 3), m.tensor([1, 2]), m.tensor([0, 3])", RuntimeError, r"offsets\[-1\] can not be greater than input's length"),
        ("x(4, 3), m.tensor([1, 9]), m.tensor([0])", IndexError, "index out of range"),
        ("x(4, 3), x(2), m.tensor([0])", RuntimeError, "integer dtype"),
        ("x(4, 3), m.tensor([1]), m.tensor([0]), False, 1, False, x(1)", RuntimeError, "only supported for mode='sum'"),
    ],
    "_ctc_loss": [
        ("x(5, 1, 3), m.tensor([[3]]), [5], [1]", RuntimeError, "out of bounds for 3 classes"),
        ("x(5, 1, 3), m.tensor([[1]]), [6], [1]", RuntimeError, "Expected input_lengths to have value at most 5, but got value 6"),
        ("x(5, 1, 3), m.tensor([[1]]), [5], [2]", RuntimeError, "Expected tensor to have size at least 2 at dimension 1"),
        ("x(5, 1, 3), m.tensor([[1]]), [5], [1], 3", RuntimeError, "blank must be in label range"),
        ("x(5, 2, 3), m.tensor([[1], [1]]), [5], [1, 1]", RuntimeError, "input_lengths must be of size batch_size"),
        ("x(5, 1, 3), x(1, 1), [5], [1]", RuntimeError, "targets must be int32 or int64"),
    ],
}
_CTC_GRAD = "the gradient is that of logits behind log_softmax, as in PyTorch: it is compared there"
SKIPS |= {(op, "grad"): _CTC_GRAD for op in ("_ctc_loss", "ctc_loss.IntList", "ctc_loss.Tensor")}
SKIPS |= {(op, "meta"): "labels and lengths are read" for op in ("_ctc_loss", "ctc_loss.IntList", "ctc_loss.Tensor", "embedding_bag")}
SKIPS |= {("embedding_bag", "parity"): "PyTorch gives the maxima's indices, too"}
SKIPS |= {("_ctc_loss", "parity"): "what PyTorch leaves of log_alpha where no path goes is its own"}
SKIPS |= {(f"ctc_loss.{kind}", "parity"): "torch.ctc_loss does not reduce by default, against its schema" for kind in ("IntList", "Tensor")}
