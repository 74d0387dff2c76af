"""Modules and optimisers of the C++ API give the bits, names and state that Python's give from a seed."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import rushlight as torch
from rushlight import nn

PROGRAM = Path(__file__).resolve().parent.parent / "cpp_programs" / "modules.cpp"
PACKAGE = Path(torch.__file__).parent

MODULES = {
    "Linear": (lambda: nn.Linear(5, 3), (2, 5)),
    "Conv1d": (lambda: nn.Conv1d(2, 4, 3, padding="same"), (2, 2, 9)),
    "Conv2d": (
        lambda: nn.Conv2d(4, 6, (3, 2), stride=2, padding=1, groups=2, padding_mode="reflect"),
        (2, 4, 8, 8),
    ),
    "Conv3d": (lambda: nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4)),
    "ConvTranspose2d": (
        lambda: nn.ConvTranspose2d(4, 2, 3, stride=2, output_padding=1, bias=False),
        (2, 4, 5, 5),
    ),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3), (8, 3)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3, momentum=None), (4, 3, 5, 5)),
    "InstanceNorm2d": (
        lambda: nn.InstanceNorm2d(3, affine=True, track_running_stats=True),
        (4, 3, 5, 5),
    ),
    "LayerNorm": (lambda: nn.LayerNorm((4, 5)), (3, 4, 5)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (3, 4, 5)),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(2), (3, 4, 5, 5)),
    "PReLU": (lambda: nn.PReLU(3), (2, 3)),
    "RNN": (lambda: nn.RNN(3, 4, 2, "relu"), (5, 2, 3)),
    "LSTM": (lambda: nn.LSTM(3, 4, bidirectional=True, proj_size=2), (5, 2, 3)),
    "GRU": (lambda: nn.GRU(3, 4, 2, batch_first=True), (2, 5, 3)),
    "LSTMCell": (lambda: nn.LSTMCell(3, 4), (2, 3)),
    "GRUCell": (lambda: nn.GRUCell(3, 4), (2, 3)),
    "RNNCell": (lambda: nn.RNNCell(3, 4), (2, 3)),
    "Dropout": (lambda: nn.Dropout(0.3), (40,)),
    "AlphaDropout": (lambda: nn.AlphaDropout(0.3), (40,)),
    "ELU": (lambda: nn.ELU(0.5), (9,)),
    "GELU": (lambda: nn.GELU("tanh"), (9,)),
    "RReLU": (lambda: nn.RReLU(), (9,)),
    "Softmax": (lambda: nn.Softmax(1), (3, 4)),
    "Softplus": (lambda: nn.Softplus(2), (9,)),
    "Hardtanh": (lambda: nn.Hardtanh(-0.5), (9,)),
    "Softshrink": (lambda: nn.Softshrink(0.2), (9,)),
    "GLU": (lambda: nn.GLU(0), (4, 3)),
    "MaxPool2d": (lambda: nn.MaxPool2d((3, 2), 2, 1), (2, 3, 8, 8)),
    "AvgPool1d": (lambda: nn.AvgPool1d(2), (2, 3, 8)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((3, None)), (2, 3, 8, 7)),
    "LPPool2d": (lambda: nn.LPPool2d(2, 2), (2, 3, 8, 8)),
    "ReflectionPad2d": (lambda: nn.ReflectionPad2d(1), (2, 3, 4, 4)),
    "ZeroPad1d": (lambda: nn.ZeroPad1d((1, 2)), (2, 3, 4)),
    "Unfold": (lambda: nn.Unfold(2, padding=1), (2, 3, 4, 4)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), (2, 4, 3, 3)),
    "Upsample": (
        lambda: nn.Upsample(scale_factor=(2.0, 2.0), mode="bilinear", align_corners=True),
        (2, 3, 4, 4),
    ),
}
CAUSAL = nn.Transformer.generate_square_subsequent_mask(5)
HIDDEN = torch.zeros(2, 5).masked_fill(torch.arange(10).reshape(2, 5) == 3, -torch.inf)


def flat(both):
    return torch.cat([both[0].flatten(), both[1].flatten()])


# Modules with a call of their own: how they are made, the call, the sizes of x.
CALLED = {
    "LPPool3d": (lambda: nn.LPPool3d(2, 2), lambda m, x: m(x), (1, 2, 4, 4, 4)),
    "CrossMapLRN2d": (lambda: nn.CrossMapLRN2d(3), lambda m, x: m(x), (2, 4, 3, 3)),
    "FractionalMaxPool2d": (
        lambda: nn.FractionalMaxPool2d(2, output_size=(3, 4)),
        lambda m, x: m(x),
        (2, 3, 8, 9),
    ),
    "FractionalMaxPool3d": (
        lambda: nn.FractionalMaxPool3d(2, output_ratio=0.5),
        lambda m, x: m(x),
        (1, 2, 6, 6, 6),
    ),
    "MaxUnpool1d": (
        lambda: nn.MaxUnpool1d(2),
        lambda m, x: m(*nn.functional.max_pool1d(x, 2, return_indices=True)),
        (2, 3, 8),
    ),
    "MaxUnpool2d": (
        lambda: nn.MaxUnpool2d(3, 2, 1),
        lambda m, x: m(*nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True)),
        (2, 3, 9, 9),
    ),
    "MaxUnpool3d": (
        lambda: nn.MaxUnpool3d(2),
        lambda m, x: m(*nn.functional.adaptive_max_pool3d(x, 2, return_indices=True)),
        (2, 3, 4, 4, 4),
    ),
    "MultiheadAttention": (
        lambda: nn.MultiheadAttention(8, 2),
        lambda m, x: flat(m(x, x, x)),
        (5, 2, 8),
    ),
    "MultiheadAttention:all": (
        lambda: nn.MultiheadAttention(
            8, 2, 0.2, add_bias_kv=True, add_zero_attn=True, kdim=6, vdim=4
        ),
        lambda m, x: flat(m(x, x[..., :6], x[..., 4:], HIDDEN, True, CAUSAL, False)),
        (5, 2, 8),
    ),
    "MultiheadAttention:fast": (
        lambda: nn.MultiheadAttention(8, 4, bias=False),
        lambda m, x: m(x, x, x, None, False, CAUSAL.isinf())[0],
        (5, 2, 8),
    ),
    "MultiheadAttention:one": (
        lambda: nn.MultiheadAttention(8, 4),
        lambda m, x: m(x, x * 2, x * 2, need_weights=False)[0],
        (5, 8),
    ),
    "TransformerEncoderLayer": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, activation="gelu"),
        lambda m, x: m(x, CAUSAL, HIDDEN),
        (5, 2, 8),
    ),
    "TransformerDecoderLayer": (
        lambda: nn.TransformerDecoderLayer(8, 2, 16, batch_first=True, norm_first=True),
        lambda m, x: m(x, x * 2, CAUSAL),
        (2, 5, 8),
    ),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16, activation=torch.tanh), 2, nn.LayerNorm(8)
        ),
        lambda m, x: m(x, CAUSAL),
        (5, 2, 8),
    ),
    "Transformer": (
        lambda: nn.Transformer(8, 2, 2, 1, 16),
        lambda m, x: m(x, x[:3], tgt_mask=CAUSAL[:3, :3]),
        (5, 2, 8),
    ),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(16, 20, [4, 10], head_bias=True),
        lambda m, x: torch.cat(
            [
                m(x, torch.tensor([0, 5, 15, 19, 4, 3])).output,
                m.log_prob(x).flatten(),
                m.predict(x).float(),
            ]
        ),
        (6, 16),
    ),
    "TripletMarginWithDistanceLoss": (
        lambda: nn.TripletMarginWithDistanceLoss(
            distance_function=lambda a, b: (a - b).abs().sum(1),
            margin=2,
            swap=True,
            reduction="none",
        ),
        lambda m, x: m(x, x.flip(0), x.roll(1)),
        (4, 3),
    ),
    "EmbeddingBag": (
        lambda: nn.EmbeddingBag(7, 3, mode="sum"),
        lambda m, x: m(torch.tensor([1, 2, 6, 0, 2]), torch.tensor([0, 3]), x),
        (5,),
    ),
}
CLASSES = torch.tensor([0, 2, 1, 2])
VALUES = torch.arange(12).reshape(4, 3) / 12
LOSSES = {
    "MSELoss": (lambda: nn.MSELoss(), VALUES),
    "L1Loss": (lambda: nn.L1Loss(reduction="sum"), VALUES),
    "SmoothL1Loss": (lambda: nn.SmoothL1Loss(beta=0.5), VALUES),
    "BCELoss": (lambda: nn.BCELoss(), VALUES),
    "KLDivLoss": (lambda: nn.KLDivLoss(reduction="batchmean"), VALUES),
    "CrossEntropyLoss": (
        lambda: nn.CrossEntropyLoss(torch.tensor([1.0, 2.0, 3.0]), label_smoothing=0.1),
        CLASSES,
    ),
    "MultiMarginLoss": (lambda: nn.MultiMarginLoss(), CLASSES),
}
OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, 0.01, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.01),
    "RMSprop": lambda p: torch.optim.RMSprop(p, 0.01, centered=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, 0.1, lr_decay=0.1),
    "Adadelta": lambda p: torch.optim.Adadelta(p, 0.5),
    "Adamax": lambda p: torch.optim.Adamax(p, 0.01),
    "NAdam": lambda p: torch.optim.NAdam(p, 0.01),
    "RAdam": lambda p: torch.optim.RAdam(p, 0.01, weight_decay=0.1),
    "Rprop": lambda p: torch.optim.Rprop(p, 0.01),
    "ASGD": lambda p: torch.optim.ASGD(p, 0.01, t0=3),
    "LBFGS": lambda p: torch.optim.LBFGS(p, 0.1, max_iter=4),
    "LBFGS:searched": lambda p: torch.optim.LBFGS(
        p, 1, max_iter=5, history_size=3, line_search_fn="strong_wolfe"
    ),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What the C++ program computed, by module and then by what it is."""
    compiler = shutil.which("g++")
    if compiler is None or "LD_PRELOAD" in os.environ:
        pytest.skip("needs g++, and no sanitizer that watches it")
    folder = tmp_path_factory.mktemp("twin")
    flags = ["-std=c++17", "-O1", f"-I{PACKAGE / 'include'}", f"-L{PACKAGE / 'lib'}"]
    libraries = ["-lrushlight", f"-Wl,-rpath,{PACKAGE / 'lib'}"]
    subprocess.run([compiler, *flags, PROGRAM, "-o", folder / "modules", *libraries], check=True)
    subprocess.run([folder / "modules", folder / "results.pt"], check=True)
    found = {}
    for key, value in torch.load(folder / "results.pt").items():
        name, rest = re.fullmatch(r"(.*?):((?:out|grad|curve)|(?:grad|state):.*)", key).groups()
        found.setdefault(name, {})[rest] = value
    return found


def assert_equal(ours, theirs):
    assert list(ours) == list(theirs)
    for key, value in theirs.items():
        assert value.dtype == ours[key].dtype and torch.equal(value, ours[key]), key


def check(found, make, call, sizes):
    torch.manual_seed(0)
    module = make()
    x = torch.randn(sizes, requires_grad=True)
    out = call(module, x)
    out = out[0] if isinstance(out, tuple) else out
    (out * out).sum().backward()
    expected = {"out": out.detach(), "grad": x.grad}
    expected |= {f"state:{key}": value for key, value in module.state_dict().items()}
    expected |= {f"grad:{key}": p.grad for key, p in module.named_parameters()}
    assert_equal(found, expected)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", MODULES)
def test_modules(results, name):
    make, sizes = MODULES[name]
    check(results[name], make, lambda m, x: m(x), sizes)


@pytest.mark.parametrize("name", CALLED)
def test_modules_with_calls_of_their_own(results, name):
    check(results[name], *CALLED[name])


@pytest.mark.parametrize("name", LOSSES)
def test_losses(results, name):
    make, target = LOSSES[name]
    torch.manual_seed(0)
    loss = make()
    x = torch.randn(4, 3, requires_grad=True)
    out = loss(x.sigmoid(), target)
    out.sum().backward()
    assert_equal(results[name], {"out": out.detach(), "grad": x.grad})


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_curves(results, name):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = OPTIMIZERS[name](net.parameters())
    curve = []
    for _ in range(10):
        x, y = torch.randn(6, 4), torch.randint(2, (6,))

        def closure(x=x, y=y):
            optimizer.zero_grad()
            loss = nn.CrossEntropyLoss()(net(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1)
            return loss

        curve.append(optimizer.step(closure).detach())
    assert_equal(results[name], {"curve": torch.stack(curve)})
