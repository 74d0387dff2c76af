"""Programs of `jit.trace`: what each package saves the other one runs, and both give the same."""

# ruff: noqa: UP035  # the forms that programs for TorchScript are written in

import io
import warnings
from typing import Tuple  # noqa: F401  # in comments that are types

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")


def networks(p):
    """The modules of a package, with the sizes of two arguments for each."""
    nn, f = p.nn, p.nn.functional

    class Residual(nn.Module):
        def __init__(self, width, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(width, width * stride, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(width * stride)
            self.conv2 = nn.Conv2d(width * stride, width * stride, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(width * stride)
            self.relu = nn.ReLU(inplace=True)
            self.down = None
            if stride != 1:
                conv = nn.Conv2d(width, width * stride, 1, stride, bias=False)
                self.down = nn.Sequential(conv, nn.BatchNorm2d(width * stride))

        def forward(self, x):
            out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            return self.relu(out + (x if self.down is None else self.down(x)))

    class Residuals(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
            self.layers = nn.Sequential(Residual(4, 1), Residual(4, 2))
            self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(8, 5)

        def forward(self, x):
            return self.fc(self.pool(self.layers(self.stem(x))).flatten(1))

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True)
            self.out = nn.Linear(10, 3)

        def forward(self, x):
            y, (h, c) = self.lstm(x)
            return self.out(y).log_softmax(-1), h, c

    class Attention(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads, self.qkv = heads, nn.Linear(width, 3 * width)
            self.out, self.norm = nn.Linear(width, width), nn.LayerNorm(width)

        def forward(self, x, mask):
            n, length, width = x.shape
            qkv = self.qkv(self.norm(x)).view(n, length, 3, self.heads, width // self.heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
            scores = scores.masked_fill(mask[:length, :length], float("-inf"))
            y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, length, width)
            return x + self.out(y)

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Attention(8, 2), Attention(8, 4)])
            self.register_buffer("mask", p.ones(16, 16).triu(1).bool())
            self.register_buffer("places", p.linspace(0, 1, 128).view(16, 8))

        def forward(self, x):
            x = x + self.places[: x.size(1)]
            for block in self.blocks:
                x = block(x, self.mask)
            return x.mean(1)

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Conv2d(3, 6, 3, padding=1)
            self.classes, self.boxes = nn.Conv2d(6, 4, 1), nn.Conv2d(6, 8, 1)

        def forward(self, x):
            y = f.relu(self.body(x))
            y = y + f.interpolate(f.max_pool2d(y, 2), size=y.shape[-2:], mode="nearest")
            n, _, h, w = y.shape
            rows = p.arange(h, dtype=p.float32) + 0.5
            columns = p.arange(w, dtype=p.float32) + 0.5
            centres = p.stack(p.meshgrid(rows, columns, indexing="ij"), -1).reshape(-1, 2)
            shifts = self.boxes(y).permute(0, 2, 3, 1).reshape(n, -1, 4)
            anchors = centres.repeat_interleave(2, 0).repeat(1, 2)
            scores = self.classes(y).permute(0, 2, 3, 1).reshape(n, -1, 2).sigmoid()
            best, places = scores.max(-1)[0].topk(5, 1)
            boxes = (shifts + anchors).clamp(min=0)
            return {"boxes": boxes.gather(1, places[..., None].expand(-1, -1, 4)), "scores": best}

    return {
        "residuals": (Residuals(), (2, 3, 12, 12), (3, 3, 15, 13)),
        "lstm": (Tagger(), (2, 3, 4), (4, 6, 4)),
        "encoder": (Encoder(), (2, 5, 8), (3, 9, 8)),
        "detection": (Head(), (1, 3, 6, 8), (2, 3, 8, 12)),
        "transformer": (
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
            (2, 3, 8),
            (4, 5, 8),
        ),
        "unit": (nn.Sequential(nn.GRU(4, 3, batch_first=True)), (2, 3, 4), (3, 5, 4)),
    }


NAMES = list(networks(rushlight))


def numbers(size, at):
    """The same arguments for both packages."""
    count = 1
    for n in size:
        count *= n
    return [((i * 7919 + at) % 1000) / 500 - 1 for i in range(count)]


def argument(p, size, at=0):
    return p.tensor(numbers(size, at)).view(size)


def filled(p, name):
    """A network with the same weights in both packages."""
    net, size, other = networks(p)[name]
    with p.no_grad():
        for place, parameter in enumerate(net.parameters()):
            parameter.copy_(argument(p, tuple(parameter.shape), place) * 0.5)
    return net.eval(), size, other


def flat(thing):
    if isinstance(thing, dict):
        thing = [thing[key] for key in sorted(thing)]
    return [t for item in thing for t in flat(item)] if isinstance(thing, list | tuple) else [thing]


def close(ours, theirs):
    """Whether tensors of both packages agree to 1e-5."""
    ours, theirs = flat(ours), flat(theirs)
    assert len(ours) == len(theirs) > 0
    for mine, other in zip(ours, theirs, strict=True):
        assert tuple(mine.shape) == tuple(other.shape)
        found = mine.detach().double().flatten().tolist()
        assert found == pytest.approx(other.detach().double().flatten().tolist(), abs=1e-5)


def traced(p, name):
    net, size, other = filled(p, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # PyTorch's own check fails where its layers choose another way without gradients.
        program = p.jit.trace(net, argument(p, size), strict=False, check_trace=p is rushlight)
        return net, program, size, other


@pytest.mark.parametrize("name", NAMES)
def test_a_program_gives_the_bits_of_its_module(name):
    net, program, size, other = traced(rushlight, name)
    for at, shape in enumerate((size, other)):
        x = argument(rushlight, shape, at)
        pairs = zip(flat(program(x)), flat(net(x)), strict=True)
        assert all(rushlight.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("name", NAMES)
def test_ours_runs_there(name):
    net, program, size, other = traced(rushlight, name)
    stream = io.BytesIO()
    rushlight.jit.save(program, stream)
    stream.seek(0)
    loaded = torch.jit.load(stream)
    assert list(loaded.state_dict()) == list(net.state_dict())
    assert [n for n, _ in loaded.named_modules()] == [n for n, _ in net.named_modules()]
    for shape in (size, other):
        close(net(argument(rushlight, shape)), loaded(argument(torch, shape)))


@pytest.mark.parametrize("name", NAMES)
def test_theirs_runs_here(name):
    _, program, size, other = traced(torch, name)
    stream = io.BytesIO()
    torch.jit.save(program, stream)
    stream.seek(0)
    loaded = rushlight.jit.load(stream)
    for shape in (size, other):
        close(loaded(argument(rushlight, shape)), program(argument(torch, shape)))


FUNCTIONS = {
    "sizes": lambda p, x: x.view(x.shape[0], -1)[:, : x.size(1) // 2] * x.numel(),
    "bounds": lambda p, x: (x[:-1], x[-1], x[..., 1:], x[x.shape[0] - 1]),
    "factories": lambda p, x: (
        p.zeros(x.shape) + p.arange(x.size(-1)) + p.full(x.shape[:1], 2.0)[:, None]
    ),
    "parts": lambda p, x: x.max(1)[0] + x.topk(1)[0][:, 0] + sum(x.split(1, 1))[:, 0],
    "writes": lambda p, x: x.clone().mul_(2).index_fill_(0, p.tensor([0]), 1.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    f, small, large = FUNCTIONS[name], (2, 4), (3, 6)
    ours = rushlight.jit.trace(lambda x: f(rushlight, x), argument(rushlight, small))
    theirs = torch.jit.trace(lambda x: f(torch, x), argument(torch, small))
    mine, other = io.BytesIO(ours.save_to_buffer()), io.BytesIO(theirs.save_to_buffer())
    there, here = torch.jit.load(mine), rushlight.jit.load(other)
    for size in (small, large) if name != "parts" else (small,):
        x, y = argument(rushlight, size), argument(torch, size)
        close(f(rushlight, x), there(y))
        close(here(x), theirs(y))


# ---- hooks ----


def hooked(p):
    """A scripted module with hooks around it and around its submodule."""
    nn = p.nn

    def before(self, given):
        # type: (Tuple[Tensor]) -> Tuple[Tensor]
        return (given[0] * 2,)

    def behind(self, given, out):
        # type: (Tuple[Tensor], Tensor) -> Tensor
        return out * 10 + given[0]

    class Inner(nn.Module):
        def forward(self, x):
            return x + 1

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()
            self.inner.register_forward_pre_hook(before)
            self.inner.register_forward_hook(behind)
            self.register_forward_hook(behind)

        def forward(self, x):
            if bool(x.sum() > 0):
                x = self.inner(x)
            return x

    return p.jit.script(Outer())


@pytest.mark.parametrize(("here", "there"), [(rushlight, torch), (torch, rushlight)])
def test_hooks_go_with_a_module(here, there):
    program = hooked(here)
    stream = io.BytesIO()
    here.jit.save(program, stream)
    stream.seek(0)
    loaded = there.jit.load(stream)
    for numbers in ([1.0, 2.0], [-3.0, 1.0]):
        x, y = here.tensor(numbers), there.tensor(numbers)
        close(program(x), loaded(y))
        close(program.forward(x), loaded.forward(y))
