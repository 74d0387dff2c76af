"""Modules and optimisers of the C++ API give the bits, names and state that Python's give from a seed."""

import os
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
        name, _, rest = key.partition(":")
        found.setdefault(name, {})[rest] = value
    return found


def assert_equal(ours, theirs):
    assert list(ours) == list(theirs)
    for key, value in theirs.items():
        assert value.dtype == ours[key].dtype and torch.equal(value, ours[key]), key


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", MODULES)
def test_modules(results, name):
    make, sizes = MODULES[name]
    torch.manual_seed(0)
    module = make()
    x = torch.randn(sizes, requires_grad=True)
    out = module(x)
    out = out[0] if isinstance(out, tuple) else out
    (out * out).sum().backward()
    expected = {"out": out.detach(), "grad": x.grad}
    expected |= {f"state:{key}": value for key, value in module.state_dict().items()}
    expected |= {f"grad:{key}": p.grad for key, p in module.named_parameters()}
    assert_equal(results[name], expected)


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
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss()(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1)
        optimizer.step()
        curve.append(loss.detach())
    assert_equal(results[name], {"curve": torch.stack(curve)})
