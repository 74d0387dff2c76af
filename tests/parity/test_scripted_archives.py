"""Programs of `jit.script`: PyTorch runs what is saved here, with the results of its own modules."""

# ruff: noqa: UP006, UP035, UP045  # the forms that programs for TorchScript are written in

import enum
import io
from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")


class Mode(enum.Enum):
    PLAIN = 0
    DOUBLED = 1


def networks(p):
    """The modules of a package, with the shapes of the arguments of each."""
    nn, f, jit = p.nn, p.nn.functional, p.jit

    class Parts(NamedTuple):
        first: p.Tensor
        count: int = 1

    class Counter:
        def __init__(self, start: int):
            self.n = start

        def step(self, by: int) -> int:
            self.n += by
            return self.n

    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
            self.norm = nn.LayerNorm(4)
            self.register_buffer("limit", p.tensor(0.0))
            self.names = ["a", "b"]
            self.table: Dict[str, int] = {"a": 1, "b": 2}
            self.mode = Mode.DOUBLED

        def forward(self, x, more: Optional[p.Tensor] = None):
            for i, layer in enumerate(self.layers):
                y = layer(x)
                if bool(y.sum() > self.limit):
                    x = f.gelu(y) + i
                else:
                    x = self.norm(y) - i
            total = 0
            while total < 5:
                total += self.table[self.names[total % 2]]
            if more is not None:
                x = x + more
            counter = Counter(total)
            steps = [counter.step(i) for i in range(3)]
            parts = Parts(x * 2)
            if self.mode == Mode.DOUBLED:
                x = parts.first
            return x * float(steps[-1]), steps, parts.count

    class Block(nn.Module):
        def __init__(self, width: int, stride: int):
            super().__init__()
            self.conv = nn.Conv2d(width, 8, 3, stride=stride, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(8)
            self.relu = nn.ReLU(inplace=True)
            self.down = None
            if stride != 1 or width != 8:
                self.down = nn.Conv2d(width, 8, 1, stride)

        def forward(self, x):
            out = self.norm(self.conv(x))
            if self.down is not None:
                x = self.down(x)
            return self.relu(out + x)

    class Images(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Hardswish())
            self.blocks = nn.Sequential(Block(8, 1), Block(8, 2))
            self.pool, self.head = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(8, 5)

        def forward(self, x) -> Dict[str, p.Tensor]:
            features = self.blocks(self.stem(x))
            large = f.interpolate(features, size=[6, 6], mode="bilinear", align_corners=False)
            out = self.head(self.pool(features).flatten(1))
            return {"out": f.log_softmax(out, dim=1), "large": f.max_pool2d(large, 2)}

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True)
            self.gru = nn.GRU(10, 3)
            self.out = nn.Linear(3, 3)

        def forward(self, x) -> Tuple[p.Tensor, p.Tensor]:
            y, (h, _) = self.lstm(x)
            z, _ = self.gru(y)
            return self.out(z).log_softmax(-1), h

    class Attends(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2)
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

        def forward(self, x, lengths: List[int]):
            mask = p.zeros(x.size(0), x.size(1), dtype=p.bool)
            for i, n in enumerate(lengths):
                mask[i, n:] = True
            y = self.encoder(x, src_key_padding_mask=mask)
            return self.attention(y, y, y, key_padding_mask=mask)

    class Losses(nn.Module):
        def __init__(self):
            super().__init__()
            self.cross, self.smooth = nn.CrossEntropyLoss(label_smoothing=0.1), nn.SmoothL1Loss()

        def forward(self, x):
            target = p.arange(x.size(0)) % x.size(1)
            if jit.is_scripting():
                return self.cross(x, target), self.smooth(x, x * 0), x.std(0)
            return self.cross(x, target), self.smooth(x, x * 0), x.std(0)

    return [
        (Branches, [(3, 4)], ()),
        (Branches, [(3, 4), (3, 4)], ()),
        (Images, [(2, 3, 10, 10)], ()),
        (Tagger, [(2, 6, 4)], ()),
        (Attends, [(2, 5, 4)], ([3, 5],)),
        (Losses, [(4, 6)], ()),
    ]


def leaves(out):
    """The tensors and numbers of a result, as arrays, in one order."""
    if isinstance(out, dict):
        return [x for key in sorted(out) for x in leaves(out[key])]
    if isinstance(out, (tuple, list)):
        return [x for part in out for x in leaves(part)]
    return [out.detach().numpy() if hasattr(out, "detach") else np.asarray(out)]


CASES = range(len(networks(rushlight)))


@pytest.mark.parametrize("case", CASES)
def test_pytorch_runs_scripts_of_rushlight(case):
    ours, shapes, more = networks(rushlight)[case]
    theirs, _, _ = networks(torch)[case]
    net, reference = ours().eval(), theirs().eval()
    state = {k: torch.from_numpy(v.numpy().copy()) for k, v in net.state_dict().items()}
    reference.load_state_dict(state)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]
    program = rushlight.jit.script(net)
    given = leaves(program(*map(rushlight.from_numpy, arrays), *more))
    eager = leaves(net(*map(rushlight.from_numpy, arrays), *more))
    for x, y in zip(given, eager, strict=True):
        np.testing.assert_array_equal(x, y)
    loaded = torch.jit.load(io.BytesIO(program.save_to_buffer()))
    for other in (loaded, reference):
        wanted = leaves(other(*map(torch.from_numpy, arrays), *more))
        for x, y in zip(given, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)


def test_pytorch_runs_functions_hooks_and_frozen_modules():
    def loop(x, n: int):
        while n > 0:
            x = x * 2 if n % 2 == 0 else x - 1
            n -= 1
        return x

    x = torch.ones(2)
    saved = io.BytesIO(rushlight.jit.script(loop).save_to_buffer())
    assert torch.jit.load(saved)(x, 5).tolist() == loop(x, 5).tolist()
    net = rushlight.nn.Sequential(rushlight.nn.Conv2d(1, 2, 3), rushlight.nn.BatchNorm2d(2)).eval()
    net[1].running_mean.add_(1.0)
    frozen = rushlight.jit.freeze(rushlight.jit.script(net))
    image = rushlight.randn(1, 1, 5, 5)
    loaded = torch.jit.load(io.BytesIO(frozen.save_to_buffer()))
    np.testing.assert_allclose(
        loaded(torch.from_numpy(image.numpy())).numpy(), frozen(image).numpy(), rtol=1e-5, atol=1e-5
    )
