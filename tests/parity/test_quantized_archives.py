"""Archives of PyTorch's quantised networks run here, and give what PyTorch gives."""

import io
import warnings

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore")


class Block(nn.Module):
    """Layers of the quantised networks of torchvision."""

    def __init__(self):
        super().__init__()
        quantization = torch.ao.quantization
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.depthwise = nn.Conv2d(8, 8, 3, stride=2, groups=8, bias=False)
        self.act, self.gate = nn.Hardswish(), nn.Hardsigmoid()
        self.squeeze = nn.Conv2d(8, 8, 1)
        self.add, self.mul, self.cat = (nn.quantized.FloatFunctional() for _ in range(3))
        self.pool, self.out = nn.AdaptiveAvgPool2d(1), nn.Linear(16, 5)

    def forward(self, x):
        x = self.first(self.quant(x))
        x = self.act(self.depthwise(x))
        x = nn.functional.max_pool2d(x, 2)
        y = self.mul.mul(x, self.gate(self.squeeze(self.pool(x))))
        y = self.add.add_relu(x, y)
        a, b = y.chunk(2, 1)
        y = self.cat.cat([b, a, x], 1)
        return self.dequant(self.out(torch.flatten(self.pool(y), 1)))


def block():
    torch.manual_seed(0)
    net = Block().eval()
    torch.ao.quantization.fuse_modules(net, [[f"first.{i}" for i in range(3)]], inplace=True)
    net.qconfig = torch.ao.quantization.get_default_qconfig("fbgemm")
    torch.ao.quantization.prepare(net, inplace=True)
    net(torch.randn(4, 3, 16, 16))
    return torch.ao.quantization.convert(net, inplace=True)


def dynamic():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
    return torch.ao.quantization.quantize_dynamic(net)


def loaded(program):
    stream = io.BytesIO()
    torch.jit.save(program, stream)
    stream.seek(0)
    return rushlight.jit.load(stream)


CASES = {"block": (block, (2, 3, 16, 16)), "dynamic": (dynamic, (3, 8))}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("form", ["scripted", "traced"])
def test_quantised_networks(name, form):
    make, shape = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = make()
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    program = torch.jit.script(net) if form == "scripted" else torch.jit.trace(net, x)
    found = loaded(program)(rushlight.from_numpy(x.numpy()))
    np.testing.assert_allclose(found.numpy(), program(x).numpy(), rtol=1e-5, atol=1e-5)


RECURRENT = {
    "lstm": (nn.LSTM, {"num_layers": 2, "bidirectional": True}, (6, 2, 4)),
    "batch_first": (nn.LSTM, {"batch_first": True}, (2, 6, 4)),
    "gru": (nn.GRU, {"num_layers": 2, "bidirectional": True}, (6, 2, 4)),
    "lstm_cell": (nn.LSTMCell, {}, (2, 4)),
    "gru_cell": (nn.GRUCell, {}, (2, 4)),
    "rnn_cell": (nn.RNNCell, {"nonlinearity": "relu"}, (2, 4)),
}


class Recurrent(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)


class Sequences(Recurrent):
    def forward(self, x):
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([4, 6, 1]), False, False)
        out, state = self.layer(packed)
        return out.data, state


def compare(mine, theirs):
    """Both have the same tensors, to 1e-5."""
    if isinstance(theirs, torch.Tensor):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-5)
        return
    for a, b in zip(mine, theirs, strict=True):
        compare(a, b)


def quantised(kind, settings, holder=Recurrent):
    """A recurrent layer with weights of codes."""
    torch.manual_seed(0)
    net = holder(kind(4, 5, **settings)).eval()
    return torch.ao.quantization.quantize_dynamic(net, {kind}, dtype=torch.qint8)


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers(name):
    kind, settings, shape = RECURRENT[name]
    program = torch.jit.script(quantised(kind, settings))
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    compare(loaded(program)(rushlight.from_numpy(x.numpy())), program(x))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_layers_of_packed_sequences(kind):
    program = torch.jit.script(quantised(kind, {"bidirectional": True}, Sequences))
    x = torch.randn((6, 3, 4), generator=torch.Generator().manual_seed(1))
    compare(loaded(program)(rushlight.from_numpy(x.numpy())), program(x))


@pytest.mark.parametrize("zero_point", [0, 60])
def test_averages_round_to_the_nearest_code(zero_point):
    codes = torch.randint(0, 256, (4, 16, 2, 2), dtype=torch.uint8)
    theirs = torch._make_per_tensor_quantized_tensor(codes, 0.0614, zero_point)
    mine = rushlight._make_per_tensor_quantized_tensor(
        rushlight.from_numpy(codes.numpy()), 0.0614, zero_point
    )
    for average, size in (("adaptive_avg_pool2d", 1), ("avg_pool2d", 2)):
        found = getattr(rushlight.nn.functional, average)(mine, size)
        expected = getattr(nn.functional, average)(theirs, size)
        assert found.int_repr().tolist() == expected.int_repr().tolist()
    means = mine.mean([2, 3]).int_repr(), theirs.mean([2, 3]).int_repr()
    assert means[0].tolist() == means[1].tolist()


def test_tensors_are_quantised_in_programs():
    class Calls(nn.Module):
        def forward(self, x):
            y = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
            return y.dequantize(), torch.int_repr(y), y.q_scale()

    program = torch.jit.script(Calls())
    x = torch.linspace(-1, 3, 9)
    mine, theirs = loaded(program)(rushlight.from_numpy(x.numpy())), program(x)
    assert mine[0].tolist() == theirs[0].tolist() and mine[1].tolist() == theirs[1].tolist()
    assert mine[2] == theirs[2]
