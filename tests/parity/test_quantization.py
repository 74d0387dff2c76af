"""Quantisation beside PyTorch's: codes, scales, observers, and a network from end to end."""

import copy
import importlib
import warnings

import pytest

import rushlight

torch = pytest.importorskip("torch")

warnings.filterwarnings("ignore", category=DeprecationWarning, module="torch")
pytestmark = pytest.mark.filterwarnings("ignore")


def both(values):
    return [framework.tensor(values) for framework in (rushlight, torch)]


def numbers(count, size=3.0, seed=0):
    return (
        rushlight.randn(count, generator=rushlight.Generator().manual_seed(seed)) * size
    ).tolist()


@pytest.mark.parametrize("kind", ["quint8", "qint8", "qint32"])
def test_codes_are_pytorchs(kind):
    values = [0.25, 0.75, 1.25, -0.25, -0.75, float("inf"), -float("inf"), *numbers(5000)]
    if kind == "qint32":
        values = [v for v in values if abs(v) < 1e9]
    ours, theirs = (
        f.quantize_per_tensor(x, 0.037, 3, getattr(f, kind))
        for f, x in zip((rushlight, torch), both(values), strict=True)
    )
    assert ours.int_repr().tolist() == theirs.int_repr().tolist()
    assert ours.dequantize().tolist() == theirs.dequantize().tolist()


def test_channels_are_pytorchs():
    values = [numbers(50, seed=i) for i in range(4)]
    got = []
    for f, x in zip((rushlight, torch), both(values), strict=True):
        for zeros in ([0, 1, 2, -3], [0.5, 1.5, 2.0, -3.0]):
            scales = f.tensor([0.1, 0.02, 0.3, 0.05])
            t = f.quantize_per_channel(x, scales, f.tensor(zeros), 0, f.qint8)
            got.append((t.int_repr().tolist(), t.dequantize().tolist(), str(t.qscheme())))
    assert got[:2] == got[2:]


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("last", [127, 255])
def test_moving_averages_and_rounding_are_pytorchs(rows, symmetric, last):
    first = last - 255 if last == 127 else 0
    got = []
    for f in (rushlight, torch):
        ends = [[], []] if rows else [float("inf"), -float("inf")]
        low, high = (f.tensor(e) for e in ends)
        scale, zero = f.tensor([1.0]), f.tensor([0], dtype=f.int32)
        one = f.tensor([1])
        for step in range(5):
            x = f.tensor([numbers(6, 10.0 ** (step - 3), 3 * step + i) for i in range(3)])
            x.requires_grad_()
            arguments = (low, high, scale, zero, 0.1, first, last, 0, rows, symmetric)
            y = f.fused_moving_avg_obs_fake_quant(x, one, one, *arguments)
            y.sum().backward()
            got.append([t.tolist() for t in (y.detach(), x.grad, low, high, scale, zero)])
    assert got[:5] == got[5:]


@pytest.mark.parametrize("ends", [(-1, 1), (0, 0), (1e-9, 1e-8), (-1e-6, 1e-5), (-3, -1), (2, 5)])
def test_scales_for_a_range_are_pytorchs(ends):
    got = []
    for f in (rushlight, torch):
        t = f.quantize_per_tensor_dynamic(f.tensor(ends, dtype=f.float32), f.quint8, False)
        got.append((t.q_scale(), t.q_zero_point()))
    assert got[0] == got[1]


@pytest.mark.parametrize(
    "make",
    [
        lambda f, q: q.MinMaxObserver(),
        lambda f, q: q.MinMaxObserver(dtype=f.qint8, qscheme=f.per_tensor_symmetric),
        lambda f, q: q.MinMaxObserver(reduce_range=True),
        lambda f, q: q.MovingAverageMinMaxObserver(quant_min=0, quant_max=127),
        lambda f, q: q.PerChannelMinMaxObserver(dtype=f.qint8, qscheme=f.per_channel_symmetric),
        lambda f, q: q.MovingAveragePerChannelMinMaxObserver(ch_axis=1),
        lambda f, q: q.default_float_qparams_observer(),
        lambda f, q: q.HistogramObserver(bins=128),
        lambda f, q: q.HistogramObserver(reduce_range=True),
        lambda f, q: (
            q.weight_observer_range_neg_127_to_127()
            if hasattr(q, "weight_observer_range_neg_127_to_127")
            else q.observer.weight_observer_range_neg_127_to_127()
        ),
    ],
)
def test_observers_choose_pytorchs_scales(make):
    got = []
    for f in (rushlight, torch):
        observer = make(f, f.ao.quantization)
        for step in range(4):
            observer(f.tensor([numbers(200, step + 1.0, 2 * step + i) for i in range(2)]))
        scale, zero = observer.calculate_qparams()
        got.append((scale.tolist(), zero.tolist(), str(zero.dtype)))
    assert got[0][0] == pytest.approx(got[1][0], rel=1e-6)
    assert got[0][1:] == got[1][1:] or got[0][1] == pytest.approx(got[1][1], rel=1e-6)


def network(f):
    q = f.ao.quantization

    class Net(f.nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = q.QuantStub(), q.DeQuantStub()
            self.conv, self.bn = f.nn.Conv2d(3, 8, 3, padding=1), f.nn.BatchNorm2d(8)
            self.relu = f.nn.ReLU()
            self.conv2 = f.nn.Conv2d(8, 8, 3, stride=2, groups=2)
            self.add = f.ao.nn.quantized.FloatFunctional()
            self.pool, self.fc = f.nn.AdaptiveAvgPool2d(2), f.nn.Linear(32, 5)

        def forward(self, x):
            x = self.conv2(self.relu(self.bn(self.conv(self.quant(x)))))
            x = self.pool(self.add.add(x, x))
            return self.dequant(self.fc(f.flatten(x, 1)))

    f.manual_seed(0)
    return Net(), f.randn(4, 3, 9, 9)


def codes_apart(ours, theirs, scale):
    """By how many steps of the codes results differ at most."""
    a, b = ours.detach().numpy(), theirs.detach().numpy()
    return abs(a - b).max() / scale


def test_converted_networks_give_pytorchs_codes():
    outs = []
    for f in (rushlight, torch):
        q = f.ao.quantization
        net, x = network(f)
        net(x * 1.5 + 0.3)
        fused = q.fuse_modules(net.eval(), ["conv", "bn", "relu"])
        fused.qconfig = q.get_default_qconfig("fbgemm")
        prepared = q.prepare(fused)
        for i in range(3):
            prepared(x * (i + 1))
        converted = q.convert(prepared)
        outs.append((converted(x), converted.fc.scale, list(converted.state_dict())))
    assert codes_apart(outs[0][0], outs[1][0], outs[1][1]) <= 1.01
    assert outs[0][2] == outs[1][2]


@pytest.mark.parametrize("version", [0, 1])
def test_training_with_rounded_weights_is_pytorchs(version):
    losses = []
    for f in (rushlight, torch):
        q = f.ao.quantization
        net, x = network(f)
        net = q.fuse_modules_qat(net.train(), ["conv", "bn", "relu"])
        net.qconfig = q.get_default_qat_qconfig("fbgemm", version)
        prepared = q.prepare_qat(net)
        keys = list(prepared.state_dict())
        optimizer = f.optim.SGD(prepared.parameters(), lr=0.1)
        losses.append([])
        for _ in range(4):
            loss = prepared(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
        losses[-1].append(keys)
    assert losses[0][:-1] == pytest.approx(losses[1][:-1], rel=2e-2)
    assert losses[0][-1] == losses[1][-1]


@pytest.mark.parametrize("name", ["Linear", "LSTM", "GRU", "LSTMCell", "GRUCell"])
def test_layers_with_weights_of_codes_give_pytorchs_numbers(name):
    outs = []
    for f in (rushlight, torch):
        f.manual_seed(3)
        x = f.randn(5, 6) if name.endswith(("Linear", "Cell")) else f.randn(4, 5, 6)
        layer = getattr(f.nn, name)(6, 4)
        out = f.ao.quantization.quantize_dynamic(f.nn.Sequential(copy.deepcopy(layer)))(x)
        outs.append((out if name in ("Linear", "GRUCell") else out[0]).detach().numpy())
    assert abs(outs[0] - outs[1]).max() < 1e-5


def graph_network(f):
    nn = f.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
            self.relu, self.pool = nn.ReLU(), nn.MaxPool2d(2)
            self.point = nn.Conv2d(8, 8, 1)
            self.head = nn.Sequential(nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 4))

        def forward(self, x):
            x = self.relu(self.norm(self.conv(x)))
            x = nn.functional.relu(x + self.point(x))
            x = f.cat([self.pool(x), self.pool(x * x)], 1).mean([2, 3])
            return f.softmax(self.head(x.reshape(x.size(0), -1)), -1)

    return Net()


@pytest.mark.parametrize("train", [False, True])
def test_graphs_are_quantised_to_pytorchs_numbers(train):
    state = {k: v.tolist() for k, v in graph_network(rushlight).state_dict().items()}
    values = [
        [[numbers(8, seed=64 * n + 8 * c + i) for i in range(8)] for c in range(3)]
        for n in range(4)
    ]
    got, layers = [], []
    for f in (rushlight, torch):
        q = f.ao.quantization
        graphs = importlib.import_module(f"{f.__name__}.ao.quantization.quantize_fx")
        net = graph_network(f).train(train)
        net.load_state_dict({k: f.tensor(v) for k, v in state.items()})
        x = f.tensor(values)
        if train:
            mapping = q.get_default_qat_qconfig_mapping("x86")
            prepared = graphs.prepare_qat_fx(net, mapping, (x,))
        else:
            mapping = q.get_default_qconfig_mapping("x86")
            prepared = graphs.prepare_fx(net, mapping, (x,))
        with f.no_grad():
            prepared(x)
        graph = graphs.convert_fx(prepared.eval())
        got.append(graph(x))
        names = ("conv", "point", "head.0", "head.2")
        layers.append([type(graph.get_submodule(n)).__name__ for n in names])
        weights = [graph.get_submodule(n).weight().int_repr().tolist() for n in ("conv", "point")]
        got.append(weights)
    assert layers[0] == layers[1]
    assert got[1] == got[3]
    # An observer of PyTorch may see a batch twice, when values share it, and moves on twice.
    most = 0.1 if train else 0.01
    assert (torch.tensor(got[0].tolist()) - got[2]).abs().max() < most
