"""Layers and functionals with state against PyTorch's: outputs, gradients, texts, states, messages.

Each line is an expression of `nn`, `F`, `m` (the package) and inputs made by `r(shape...)`; its
tensors and the gradients of all leaves and parameters must agree.
"""

import importlib
import itertools

import numpy as np
import pytest

import rushlight
import rushlight.nn.utils.parametrizations
import rushlight.nn.utils.prune
from tests.parity.compare import Failure, assert_alike, outcome, plain

torch = pytest.importorskip("torch")
pytest.importorskip("torch.nn.utils.prune")


class Inputs:
    """Random leaves, equal for both packages."""

    def __init__(self, m, dtype="float64"):
        self.m, self.dtype = m, dtype
        self.rng = np.random.default_rng(0)
        self.leaves = []

    def __call__(self, *shape):
        t = self.m.tensor(
            self.rng.standard_normal(shape).tolist(), dtype=getattr(self.m, self.dtype)
        )
        self.leaves.append(t.reshape(shape).requires_grad_())
        return self.leaves[-1]

    def fixed(self, *shape):
        """A random tensor that no gradient is asked of."""
        self(*shape)
        return self.leaves.pop().detach()

    def mask(self, *shape):
        return self.m.tensor((self.rng.random(shape) < 0.3).tolist())


def tensors(value):
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in tensors(v)]
    return [value] if hasattr(value, "requires_grad") else []


def run(m, line):
    """What a line gives and the gradients of a weighted sum of it."""
    m.manual_seed(0)
    r = Inputs(m)
    attention = importlib.import_module(f"{m.__name__}.nn.attention.flex_attention")
    names = {"m": m, "nn": m.nn, "F": m.nn.functional, "r": r}
    names |= {"rnn": m.nn.utils.rnn, "utils": m.nn.utils}
    names |= {"flex": attention.flex_attention, "blocks": attention.create_block_mask}
    made = eval(line, names)
    layer, result = (
        made if isinstance(made, tuple) and hasattr(made[0], "state_dict") else (None, made)
    )
    outputs = tensors(result)
    loss = sum(
        (t * m.arange(1.0, t.numel() + 1, dtype=t.dtype).reshape(t.shape) / t.numel()).sum()
        for t in outputs
        if t.is_floating_point() and t.numel()
    )
    leaves = [*r.leaves, *(layer.parameters() if layer is not None else [])]
    leaves = [t for t in leaves if t.requires_grad]
    grads = m.autograd.grad(loss, leaves, allow_unused=True) if leaves else []
    state = {} if layer is None else {k: list(v.shape) for k, v in layer.state_dict().items()}
    return plain([repr(layer), state, [t.detach() for t in outputs], list(grads)])


def called(layer, *args):
    return f"(lambda l, *a: (l, l(*a)))({layer}.double(), {', '.join(args)})"


_MHA = "nn.MultiheadAttention"
_X = "(lambda x: (x, x, x))(r(5, 2, 8))"
_SQUARE = "nn.Transformer.generate_square_subsequent_mask(5).double()"

LINES = [
    # attention
    called(f"{_MHA}(8, 2)", f"*{_X}"),
    called(f"{_MHA}(8, 2)", f"*{_X}, None, False"),
    called(f"{_MHA}(8, 2, bias=False)", "r(4, 2, 8), r(5, 2, 8), r(5, 2, 8)"),
    called(f"{_MHA}(8, 4, batch_first=True)", "*(lambda x: (x, x, x))(r(2, 5, 8)), None, False"),
    called(f"{_MHA}(8, 2, kdim=3, vdim=4)", "r(4, 2, 8), r(5, 2, 3), r(5, 2, 4)"),
    called(f"{_MHA}(8, 2, add_bias_kv=True, add_zero_attn=True)", f"*{_X}, r.mask(2, 5)"),
    called(f"{_MHA}(8, 2)", f"*{_X}, r.mask(2, 5), False"),
    called(f"{_MHA}(8, 2)", f"*{_X}, None, True, {_SQUARE}, False"),
    called(f"{_MHA}(8, 2)", f"*{_X}, None, False, {_SQUARE}, True, True"),
    called(f"{_MHA}(8, 2)", f"*{_X}, None, False, r.mask(4, 5, 5)"),
    called(f"{_MHA}(8, 2)", "*(lambda x: (x, x, x))(r(5, 8))"),
    called(f"{_MHA}(8, 2, batch_first=True)", "r(3, 4, 8), *(lambda x: (x, x))(r(3, 5, 8))"),
    called("nn.TransformerEncoderLayer(8, 2, 16, 0.0)", "r(5, 2, 8)"),
    called(
        "nn.TransformerEncoderLayer(8, 2, 16, 0.0, 'gelu', batch_first=True, norm_first=True)",
        f"r(2, 5, 8), {_SQUARE}",
    ),
    called("nn.TransformerDecoderLayer(8, 2, 16, 0.0)", "r(4, 2, 8), r(5, 2, 8)"),
    called(
        "nn.TransformerDecoderLayer(8, 2, 16, 0.0, norm_first=True, bias=False)",
        "r(4, 2, 8), r(5, 2, 8)",
    ),
    called(
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 2, nn.LayerNorm(8))",
        f"r(2, 5, 8), {_SQUARE}",
    ),
    called("nn.Transformer(8, 2, 1, 2, 16, 0.0)", f"r(4, 2, 8), r(5, 2, 8), None, {_SQUARE}"),
    *(
        f"flex(r.fixed(2, 4, 9, 6), r.fixed(2, 4, 7, 6), r.fixed(2, 4, 7, 5), {options})"
        for options in ("", "scale=0.3")
    ),
    "flex(r.fixed(2, 4, 9, 6), r.fixed(2, 4, 7, 6), r.fixed(2, 4, 7, 6), lambda s, b, h, q, k: s + (q - k) * 0.1 * (h + 1))",
    "flex(r.fixed(1, 4, 9, 6), r.fixed(1, 2, 9, 6), r.fixed(1, 2, 9, 6), enable_gqa=True, return_lse=True)",
    "flex(r.fixed(1, 2, 9, 6), r.fixed(1, 2, 9, 6), r.fixed(1, 2, 9, 6), block_mask=blocks(lambda b, h, q, k: q >= k, None, None, 9, 9, device='cpu', BLOCK_SIZE=4))",
    "(lambda b: (b.to_dense(), b.kv_num_blocks, b.full_kv_num_blocks))(blocks(lambda b, h, q, k: q >= k, 1, 1, 9, 9, device='cpu', BLOCK_SIZE=4))",
    # images
    *(
        f"F.interpolate(r(2, 3, 5, 4), size={size}, mode='{mode}')"
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")
        for size in ("(7, 9)", "3")
    ),
    *(
        f"F.interpolate(r(1, 2, 5, 4), scale_factor={s}, mode='bilinear', align_corners=True)"
        for s in (2, 0.6, "(1.3, 2.5)")
    ),
    *(
        f"F.interpolate(r(1, 2, 5, 4), scale_factor={s}, mode='{mode}')"
        for s in (1.7, 0.55)
        for mode in ("nearest", "bicubic", "bilinear")
    ),
    *(
        f"F.interpolate(r(1, 2, 5, 4), scale_factor=1.7, mode='{mode}', recompute_scale_factor=True)"
        for mode in ("nearest", "bilinear")
    ),
    *(
        f"F.interpolate(r(1, 2, 9, 11), size=(4, 5), mode='{mode}', antialias=True)"
        for mode in ("bilinear", "bicubic")
    ),
    *(
        f"F.interpolate(r(1, 2, 3, 4), size=(14, 5), mode='{mode}', antialias=True, align_corners=True)"
        for mode in ("bilinear", "bicubic")
    ),
    "F.interpolate(r(2, 3, 7), size=11, mode='linear')",
    "F.interpolate(r(2, 3, 7), scale_factor=2)",
    "F.interpolate(r(1, 2, 3, 4, 5), size=(5, 3, 7), mode='trilinear', align_corners=True)",
    "F.interpolate(r(1, 2, 3, 4, 5), scale_factor=2, mode='trilinear')",
    "F.interpolate(r(1, 2, 3, 4, 5), scale_factor=(2, 1, 0.5), mode='nearest')",
    "F.interpolate(r(1, 2, 3, 4, 5), size=2, mode='area')",
    "(nn.Upsample(scale_factor=2, mode='bilinear'), nn.Upsample(scale_factor=2, mode='bilinear')(r(1, 2, 3, 4)))",
    "(nn.UpsamplingBilinear2d((5, 6)), nn.UpsamplingBilinear2d((5, 6))(r(1, 2, 3, 4)))",
    "(nn.UpsamplingNearest2d(scale_factor=2), nn.UpsamplingNearest2d(scale_factor=2)(r(1, 2, 3, 4)))",
    *(
        f"F.grid_sample(r(2, 3, 5, 4), r(2, 3, 6, 2), '{mode}', '{padding}', {align})"
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
        for align in (True, False)
    ),
    *(
        f"F.grid_sample(r(1, 2, 3, 4, 5), r(1, 2, 3, 4, 3), '{mode}', align_corners=False)"
        for mode in ("bilinear", "nearest")
    ),
    *(f"F.affine_grid(r(2, 2, 3), (2, 1, 4, 5), {align})" for align in (True, False)),
    *(f"F.affine_grid(r(1, 3, 4), (1, 1, 2, 3, 4), {align})" for align in (True, False)),
    # recurrent layers
    *(
        called(f"nn.{kind}(3, 4{options})", "r(5, 2, 3)")
        for kind in ("RNN", "GRU", "LSTM")
        for options in ("", ", 2, bidirectional=True", ", bias=False")
    ),
    called("nn.RNN(3, 4, nonlinearity='relu')", "r(5, 2, 3), r(1, 2, 4)"),
    called("nn.RNN(3, 4, 2, 'relu', batch_first=True)", "r(2, 5, 3)"),
    called("nn.GRU(3, 4, batch_first=True)", "r(2, 5, 3), r(1, 2, 4)"),
    called("nn.GRU(3, 4)", "r(5, 3), r(1, 4)"),
    called("nn.LSTM(3, 4, proj_size=2, num_layers=2)", "r(5, 2, 3)"),
    called(
        "nn.LSTM(3, 4, batch_first=True, bidirectional=True)",
        "r(2, 5, 3), (r(2, 2, 4), r(2, 2, 4))",
    ),
    called("nn.LSTM(3, 4)", "r(5, 3)"),
    *(
        called(
            f"nn.{kind}(3, 4, bidirectional=True)",
            f"rnn.pack_padded_sequence(r(5, 3, 3), {lengths}, enforce_sorted=False)",
        )
        for kind in ("RNN", "GRU", "LSTM")
        for lengths in ("[5, 3, 2]", "m.tensor([2, 5, 3])")
    ),
    called("nn.LSTMCell(3, 4)", "r(2, 3)"),
    called("nn.LSTMCell(3, 4, bias=False)", "r(2, 3), (r(2, 4), r(2, 4))"),
    called("nn.GRUCell(3, 4)", "r(3)"),
    called("nn.GRUCell(3, 4)", "r(2, 3), r(2, 4)"),
    called("nn.RNNCell(3, 4, nonlinearity='relu')", "r(2, 3), r(2, 4)"),
    # sequences
    "rnn.pad_sequence([r(3, 2), r(1, 2), r(4, 2)])",
    "rnn.pad_sequence([r(3, 2), r(1, 2)], batch_first=True, padding_value=2.0, padding_side='left')",
    "rnn.pack_padded_sequence(r(2, 4, 3), [4, 2], batch_first=True)",
    "rnn.pack_sequence([r(1, 2), r(3, 2)], enforce_sorted=False)",
    "rnn.pad_packed_sequence(rnn.pack_sequence([r(1, 2), r(3, 2)], enforce_sorted=False), True, -1.0, 5)",
    "rnn.pad_packed_sequence(rnn.pack_sequence([r(3, 2), r(3, 2)]))",
    "rnn.unpad_sequence(r(4, 2, 3) * 1, m.tensor([4, 2]))",
    "rnn.unpack_sequence(rnn.pack_sequence([r(3), r(1)]))",
    # losses, bags, pooling and the rest
    *(
        f"F.ctc_loss(F.log_softmax(r(6, 2, 4), -1), m.tensor([[1, 2, 2], [3, 3, 1]]), {lengths}, reduction='{how}')"
        for how in ("mean", "sum", "none")
        for lengths in ("(6, 5), (3, 2)", "m.tensor([6, 4]), m.tensor([2, 0])")
    ),
    *(
        f"F.{call}, reduction='{how}')"
        for how in ("mean", "sum", "none")
        for call in (
            "gaussian_nll_loss(r(3, 4), r(3, 4), r(3, 4).abs(), full=True, eps=0.3",
            "gaussian_nll_loss(r(3, 4), r(3, 4), r(3).abs()",
            "gaussian_nll_loss(r(3, 4), r(3, 4), 0.7",
            "multilabel_soft_margin_loss(r(3, 4), (r(3, 4) > 0).double(), r(4).abs()",
            "mse_loss(r(3, 4), r(3, 4), weight=r(3, 4).abs()",
            "l1_loss(r(3, 4), r(3, 4), weight=r(3, 4).abs()",
            "huber_loss(r(3, 4), r(3, 4), delta=0.3, weight=r(3, 4).abs()",
            "smooth_l1_loss(r(3, 4), r(3, 4), beta=0.0",
        )
    ),
    "F.kl_div(r(3, 4), r(3, 4).abs(), reduction='batchmean')",
    "F.kl_div(r(3, 4), r(3, 4), reduction='batchmean', log_target=True)",
    "F.ctc_loss(F.log_softmax(r(2, 1, 3), -1), m.tensor([1, 1]), [2], [2], zero_infinity=True)",
    "nn.CTCLoss(blank=3)(F.log_softmax(r(5, 4), -1), m.tensor([1, 2]), m.tensor(5), m.tensor(2))",
    *(
        f"F.embedding_bag(m.tensor([[1, 2, 2], [0, 3, 1]]), r(4, 3), mode='{mode}', padding_idx=2)"
        for mode in ("sum", "mean", "max")
    ),
    "F.embedding_bag(m.tensor([1, 2, 2, 0]), r(4, 3), m.tensor([0, 2, 2]), mode='sum', per_sample_weights=r(4))",
    called("nn.EmbeddingBag(5, 3, mode='max')", "m.tensor([1, 4, 4, 0]), m.tensor([0, 3])"),
    "F.cosine_similarity(r(3, 4), r(3, 4))",
    "F.pairwise_distance(r(3, 4), r(3, 4), 3.0, keepdim=True)",
    *(
        f"m.cdist(r(2, 5, 3), r(2, 4, 3), p={p})"
        for p in ("0.0", "1.0", "1.5", "2.0", "3.0", "float('inf')")
    ),
    "m.cdist(r(30, 3), r(4, 3))",
    "F.pdist(r(4, 3), 1.0)",
    "F.triplet_margin_with_distance_loss(r(3, 4), r(3, 4), r(3, 4), swap=True, margin=2.0)",
    "F.local_response_norm(r(2, 5, 3), 3)",
    called("nn.LocalResponseNorm(2, 0.1)", "r(2, 5, 3, 3)"),
    called("nn.LPPool3d(2, 2)", "r(1, 2, 4, 4, 4).abs()"),
    *(
        f"(lambda v, i: F.max_unpool{n}d(v, i, 2))(*F.max_pool{n}d(r(1, 2{', 4' * n}), 2, return_indices=True))"
        for n in (1, 2, 3)
    ),
    "F.max_unpool2d(*F.max_pool2d(r(2, 5, 5), 2, return_indices=True), 2, output_size=(5, 5))",
    "F.fractional_max_pool2d(r(1, 2, 7, 8), (2, 3), (3, 4), return_indices=True, _random_samples=m.tensor([[[.3, .7], [.9, .1]]]).double())",
    "F.fractional_max_pool3d(r(1, 1, 5, 6, 7), 2, output_ratio=.5, _random_samples=m.tensor([[[.3, .7, .5]]]).double())",
    called(
        "nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6], 2.0)", "r(5, 8), m.tensor([0, 2, 4, 7, 11])"
    ),
    "(lambda l: (l, l.log_prob(r(5, 8))))(nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6], 2.0).double())",
    "F.rrelu(r(3, 4), 0.1, 0.3)",
    "F.rrelu(r(5, 6), training=True)",
    "F.rrelu(r(5, 6) * 1, 0.2, 0.9, True, True)",
    # parameters computed from others
    called("utils.parametrizations.weight_norm(nn.Linear(3, 2).double())", "r(4, 3)"),
    called(
        "utils.parametrizations.weight_norm(nn.Conv1d(3, 2, 2).double(), dim=None)", "r(1, 3, 4)"
    ),
    called("utils.parametrizations.spectral_norm(nn.Linear(3, 2))", "r(4, 3)"),
    *(
        called(
            f"utils.parametrizations.orthogonal({layer}, orthogonal_map={name},"
            f" use_trivialization={trivial})",
            x,
        )
        for name, trivial in itertools.product(
            ["None", "'matrix_exp'", "'cayley'", "'householder'"], [True, False]
        )
        for layer, x in [
            ("nn.Linear(3, 5).double()", "r(2, 3)"),
            ("nn.Linear(5, 3).double()", "r(2, 5)"),
            ("nn.Linear(3, 3).double()", "r(2, 3)"),
            ("nn.Bilinear(2, 3, 4).double()", "r(5, 2), r(5, 3)"),
        ]
    ),
    called("utils.weight_norm(nn.Linear(3, 2).double())", "r(4, 3)"),
    called("utils.remove_weight_norm(utils.weight_norm(nn.Linear(3, 2).double()))", "r(4, 3)"),
    "(lambda c, b: utils.fuse_conv_bn_eval(c.eval(), b.eval())(r(1, 2, 4, 4)))(nn.Conv2d(2, 3, 2).double(), nn.BatchNorm2d(3).double())",
    called("utils.prune.l1_unstructured(nn.Linear(3, 4), 'weight', 5)", "r(2, 3)"),
    called("utils.prune.ln_structured(nn.Linear(3, 4), 'weight', 0.5, 2, 0)", "r(2, 3)"),
    called(
        "utils.prune.remove(utils.prune.l1_unstructured(nn.Linear(3, 4), 'weight', .5), 'weight')",
        "r(2, 3)",
    ),
    called("nn.LazyLinear(3)", "r(2, 4)"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", LINES)
def test_lines(line):
    assert_alike(run(rushlight, line), run(torch, line), 1e-9)


ERRORS = [
    "nn.GRU(3, 4)(m.ones(5))",
    "nn.GRU(3, 4)(m.ones(5, 2, 4))",
    "nn.GRU(3, 4)(m.ones(5, 2, 3), m.ones(2, 2, 4))",
    "nn.GRU(3, 4)(m.ones(5, 2, 3), m.ones(2, 4))",
    "nn.LSTM(3, 4)(m.ones(5, 2, 3), (m.ones(1, 2, 4), m.ones(2, 2, 4)))",
    "nn.GRU(3, 0)",
    "nn.GRU(3, 4, dropout=2)",
    "nn.LSTM(3, 4, proj_size=4)",
    "nn.RNN(3, 4, nonlinearity='x')",
    "nn.GRUCell(3, 4)(m.ones(2, 3), m.ones(3, 4))",
    "nn.LSTMCell(3, 4)(m.ones(2, 5))",
    "nn.utils.rnn.pack_padded_sequence(m.ones(5, 2), [3, 5])",
    "nn.utils.rnn.pack_padded_sequence(m.ones(5, 2), [5, 0])",
    "nn.utils.rnn.pad_sequence([m.ones(2, 3), m.ones(1, 4)])",
    "F.interpolate(m.ones(1, 1, 4, 4))",
    "F.interpolate(m.ones(1, 1, 4, 4), 2, 2)",
    "F.grid_sample(m.ones(1, 1, 4, 4), m.ones(1, 2, 2, 2), 'x')",
    "F.mse_loss(m.ones(2), m.ones(2), reduction='all')",
    "F.gaussian_nll_loss(m.ones(2, 3), m.ones(2, 3), -1.0)",
    "F.multi_margin_loss(m.ones(2, 3), m.tensor([0, 1]), p=3)",
    "F.fractional_max_pool2d(m.ones(1, 2, 7, 8), 2)",
    "F.glu(m.tensor(1.0))",
    "nn.MultiheadAttention(5, 2)",
    "nn.MultiheadAttention(0, 2)",
    "nn.AdaptiveLogSoftmaxWithLoss(4, 8, [5, 3])",
]


@pytest.mark.parametrize("line", ERRORS)
def test_messages(line):
    def run(m):
        return eval(line, {"m": m, "nn": m.nn, "F": m.nn.functional})

    ours, theirs = outcome(run, rushlight), outcome(run, torch)
    assert isinstance(theirs[0], Failure) and isinstance(ours[0], Failure)
    assert ours[0].is_like(theirs[0]), f"{ours} != {theirs}"


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(30, 20), (7, 9), (13, 5)])
def test_images_of_bytes(mode, size, channels_last):
    """Images of bytes are resized bit by bit as PyTorch does, in fixed point."""
    for channels in (1, 3, 8):
        image = np.random.default_rng(channels).integers(
            0, 256, (2, channels, 13, 17), dtype=np.uint8
        )
        for options in ({}, {"antialias": True}, {"align_corners": True}):
            if mode == "nearest" and options:
                continue
            results = []
            for m in (rushlight, torch):
                x = m.from_numpy(image.copy())
                if channels_last:
                    x = x.contiguous(memory_format=m.channels_last)
                results.append(m.nn.functional.interpolate(x, size=size, mode=mode, **options))
            assert results[0].stride() == results[1].stride()
            np.testing.assert_array_equal(results[0].numpy(), results[1].numpy())
