"""Every layer of `nn` as a program gives the bits that it gives as Python."""

import copy

import pytest

import rushlight as torch
from rushlight import jit, nn

pytestmark = pytest.mark.filterwarnings("ignore")

t = torch.randn
CASES = []


def a(module, *inputs):
    CASES.append(pytest.param(module, inputs, id=f"{len(CASES)}-{type(module).__name__}"))


img = t(2, 4, 8, 8)
seq = t(2, 4, 9)
vol = t(2, 4, 6, 6, 6)
mat = t(3, 4)
for n in [
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Mish",
    "Hardswish",
    "Hardsigmoid",
    "Sigmoid",
    "Tanh",
    "LogSigmoid",
    "Softsign",
    "Tanhshrink",
    "Softplus",
    "Softshrink",
    "Hardshrink",
    "GELU",
    "ELU",
    "CELU",
    "LeakyReLU",
    "Hardtanh",
    "RReLU",
    "Identity",
    "PReLU",
    "Softmax2d",
]:
    a(getattr(nn, n)().eval(), img)
a(nn.Threshold(0.1, 2.0), img)
a(nn.GLU(1), img)
a(nn.Softmax(1), img)
a(nn.Softmin(1), img)
a(nn.LogSoftmax(1), img)
a(nn.ReLU(True), img.clone())
a(nn.Dropout(0.5).eval(), img)
a(nn.Dropout2d().eval(), img)
a(nn.AlphaDropout().eval(), img)
a(nn.Dropout1d().eval(), seq)
a(nn.Dropout3d().eval(), vol)
a(nn.FeatureAlphaDropout().eval(), img)
a(nn.Linear(4, 3), mat)
a(nn.Linear(4, 3, bias=False), mat)
a(nn.Bilinear(4, 4, 3), mat, mat)
for d, x in ((1, seq), (2, img), (3, vol)):
    C = getattr(nn, f"Conv{d}d")
    a(C(4, 6, 3), x)
    a(C(4, 6, 3, padding="same"), x)
    a(C(4, 6, 3, padding=1, padding_mode="circular", bias=False), x)
    a(C(4, 6, 3, stride=2, groups=2), x)
    T = getattr(nn, f"ConvTranspose{d}d")
    a(T(4, 6, 3, stride=2), x)
    B = getattr(nn, f"BatchNorm{d}d")
    a(B(4), x)
    a(B(4).eval(), x)
    a(B(4, affine=False, track_running_stats=False), x)
    a(B(4, momentum=None), x)
    N = getattr(nn, f"InstanceNorm{d}d")
    a(N(4), x)
    a(N(4, affine=True, track_running_stats=True).eval(), x)
    a(getattr(nn, f"MaxPool{d}d")(2), x)
    a(getattr(nn, f"MaxPool{d}d")(2, return_indices=True), x)
    a(getattr(nn, f"AvgPool{d}d")(2), x)
    a(getattr(nn, f"AdaptiveAvgPool{d}d")(2), x)
    a(getattr(nn, f"AdaptiveMaxPool{d}d")(2), x)
    a(getattr(nn, f"AdaptiveMaxPool{d}d")(2, return_indices=True), x)
    a(getattr(nn, f"LPPool{d}d")(2.0, 2), x.abs())
    for p in ("ReflectionPad", "ReplicationPad", "ZeroPad", "CircularPad"):
        a(getattr(nn, f"{p}{d}d")(1), x)
    a(getattr(nn, f"ConstantPad{d}d")(1, 2.0), x)
a(nn.LayerNorm(8), img)
a(nn.GroupNorm(2, 4), img)
a(nn.RMSNorm(8), img)
a(nn.LocalResponseNorm(2), img)
a(nn.Embedding(10, 3), torch.tensor([[1, 2], [3, 4]]))
a(nn.Embedding(10, 3, padding_idx=0), torch.tensor([[1, 2], [3, 0]]))
a(nn.EmbeddingBag(10, 3), torch.tensor([[1, 2], [3, 4]]))
a(nn.EmbeddingBag(10, 3, mode="sum"), torch.tensor([1, 2, 3]), torch.tensor([0, 2]))
a(nn.Flatten(), img)
a(nn.Unflatten(1, (2, 2)), mat)
a(nn.PixelShuffle(2), img)
a(nn.PixelUnshuffle(2), img)
a(nn.ChannelShuffle(2), img)
a(nn.Fold((4, 4), 2), t(2, 8, 9))
a(nn.Unfold(2), img)
a(nn.Upsample(scale_factor=2), img)
a(nn.Upsample(size=(5, 5), mode="bilinear", align_corners=True), img)
a(nn.UpsamplingNearest2d(scale_factor=2), img)
a(nn.UpsamplingBilinear2d(size=(4, 4)), img)
a(nn.CosineSimilarity(), mat, mat)
a(nn.PairwiseDistance(), mat, mat + 1)
y = torch.tensor([0, 1, 2])
for n in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss"):
    a(getattr(nn, n)(), mat, mat + 1.5)
    a(getattr(nn, n)(reduction="none"), mat, mat + 1)
a(nn.CrossEntropyLoss(), mat, y)
a(nn.CrossEntropyLoss(weight=t(4).abs(), label_smoothing=0.1), mat, y)
a(nn.NLLLoss(), mat, y)
a(nn.BCELoss(), mat.sigmoid(), mat.sigmoid())
a(nn.BCEWithLogitsLoss(), mat, mat.sigmoid())
a(nn.KLDivLoss(reduction="batchmean"), mat, mat.softmax(1))
a(nn.PoissonNLLLoss(), mat, mat.abs())
a(nn.GaussianNLLLoss(), mat, mat, mat.abs())
a(nn.HingeEmbeddingLoss(), mat, mat.sign())
a(nn.SoftMarginLoss(), mat, mat.sign())
a(nn.MarginRankingLoss(), mat[:, 0], mat[:, 1], mat[:, 0].sign())
a(nn.CosineEmbeddingLoss(), mat, mat + 1, torch.ones(3))
a(nn.TripletMarginLoss(), mat, mat + 1, mat - 1)
a(nn.MultiMarginLoss(), mat, y)
a(nn.MultiLabelSoftMarginLoss(), mat, mat.sigmoid())
a(nn.MultiLabelMarginLoss(), mat, torch.tensor([[0, 1, -1, -1]] * 3))
a(nn.TripletMarginWithDistanceLoss(), mat, mat + 1, mat - 1)
a(
    nn.CTCLoss(),
    t(10, 2, 5).log_softmax(2),
    torch.tensor([[1, 2], [3, 4]]),
    torch.tensor([10, 10]),
    torch.tensor([2, 2]),
)
r = t(5, 2, 4)
for n in ("RNN", "GRU", "LSTM"):
    a(getattr(nn, n)(4, 3, 2, bidirectional=True), r)
    a(getattr(nn, n)(4, 3, batch_first=True), r)
a(nn.LSTM(4, 3, proj_size=2), r)
a(nn.LSTM(4, 3), r, (t(1, 2, 3), t(1, 2, 3)))
a(nn.GRU(4, 3), r, t(1, 2, 3))
a(nn.LSTM(4, 3), r[:, 0])
for n in ("RNNCell", "GRUCell", "LSTMCell"):
    a(getattr(nn, n)(4, 3), mat)
a(nn.MultiheadAttention(4, 2), r, r, r)
a(nn.MultiheadAttention(4, 2, batch_first=True).eval(), r, r, r)
a(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), r)
a(nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), 2), r)
a(nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0), r, r)
a(nn.Transformer(4, 2, 1, 1, 8, dropout=0.0), r, r)
a(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True).eval(), r)
a(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), mat)
a(nn.LSTM(4, 3, 2, bidirectional=True), nn.utils.rnn.pack_sequence([t(4, 4), t(2, 4)]))
a(nn.GRU(4, 3), nn.utils.rnn.pack_sequence([t(2, 4), t(4, 4)], enforce_sorted=False))
a(nn.MaxUnpool2d(2), *nn.MaxPool2d(2, return_indices=True)(img))


def tensors_of(out):
    if isinstance(out, torch.Tensor):
        return [out]
    return [] if out is None else [x for part in out for x in tensors_of(part)]


@pytest.mark.parametrize("module, inputs", CASES)
def test_layers_are_the_same_as_programs(module, inputs):
    eager, program = copy.deepcopy(module), jit.script(module)
    torch.manual_seed(0)
    wanted = tensors_of(eager(*copy.deepcopy(inputs)))
    torch.manual_seed(0)
    given = tensors_of(program(*copy.deepcopy(inputs)))
    assert len(wanted) == len(given) > 0
    assert all(torch.equal(x, y) for x, y in zip(wanted, given, strict=True))
    state = zip(eager.state_dict().values(), program.state_dict().values(), strict=True)
    assert all(torch.equal(x, y) for x, y in state)
