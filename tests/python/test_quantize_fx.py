"""Quantisation of graphs: what is found, fused, observed and converted, and how near it comes."""

import copy
import io
import operator

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight.ao import quantization as q
from rushlight.ao.nn import intrinsic, quantized
from rushlight.ao.nn.intrinsic import quantized as fused
from rushlight.ao.nn.quantized import _arithmetic, dynamic
from rushlight.ao.quantization import (
    QConfigMapping,
    get_default_qat_qconfig_mapping,
    get_default_qconfig_mapping,
)
from rushlight.ao.quantization.fx.custom_config import (
    ConvertCustomConfig,
    FuseCustomConfig,
    PrepareCustomConfig,
)
from rushlight.ao.quantization.quantize_fx import (
    convert_fx,
    fuse_fx,
    prepare_fx,
    prepare_qat_fx,
)

F = nn.functional


class Net(nn.Module):
    """Every kind of part: fused, shared, arithmetic, on codes as they are, and floats between."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.point = nn.Conv2d(8, 8, 1)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Sequential(nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 4))

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        x = F.relu(x + self.point(x))
        x = self.pool(x)
        x = torch.cat([x, x * 2], 1).mean([2, 3])
        x = self.head(x.reshape(x.size(0), -1))
        return torch.softmax(x, -1)


def made(kind=Net):
    torch.manual_seed(0)
    net = kind()
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean.normal_(0, 0.1)
            m.running_var.uniform_(0.5, 1.5)
    return net


X = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def quantised(net, mapping=None, x=X, custom=None):
    prepared = prepare_fx(net, mapping or get_default_qconfig_mapping(), (x,), custom)
    with torch.no_grad():
        prepared(x)
    return convert_fx(prepared)


def called(graph):
    """The classes of modules and the functions that a graph calls."""
    parts = dict(graph.named_modules())
    return [
        type(parts[n.target]) if n.op == "call_module" else n.target
        for n in graph.graph.nodes
        if n.op.startswith("call")
    ]


def test_a_network_computes_with_codes_near_its_numbers():
    net = made().eval()
    before = copy.deepcopy(net.state_dict())
    graph = quantised(net)
    assert (graph(X) - net(X)).abs().max() < 0.02
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    kinds = called(graph)
    for kind in (
        *(fused.ConvReLU2d, quantized.Conv2d, fused.LinearReLU, quantized.Linear, nn.MaxPool2d),
        *(_arithmetic.add_relu, _arithmetic.cat, torch.quantize_per_tensor, "dequantize"),
    ):
        assert kind in kinds
    assert nn.BatchNorm2d not in kinds and nn.ReLU not in kinds and torch.relu not in kinds
    assert kinds.index(torch.softmax) > kinds.index("reshape")  # a reshape works on codes
    assert not any("post_process" in name for name, _ in graph.named_modules())


def test_results_are_those_of_the_same_network_with_stubs():
    class Stubs(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = q.QuantStub(), q.DeQuantStub()
            self.conv, self.relu = nn.Conv2d(3, 8, 3), nn.ReLU()
            self.sum = quantized.FloatFunctional()
            self.last = nn.Conv2d(8, 8, 1)

        def forward(self, x):
            x = self.relu(self.conv(self.quant(x)))
            return self.dequant(self.sum.add(x, self.last(x)))

    class Plain(Stubs):
        def forward(self, x):
            x = self.relu(self.conv(x))
            return x + self.last(x)

    net = made(Stubs).eval()
    net.qconfig = q.get_default_qconfig("x86")
    prepared = q.prepare(q.fuse_modules(net, ["conv", "relu"]))
    prepared(X)
    plain = made(Plain).eval()
    assert torch.equal(q.convert(prepared)(X), quantised(plain)(X))


def test_the_state_is_saved_and_loaded():
    graph = quantised(made().eval())
    other = quantised(made().eval(), x=X * 3)
    assert not torch.equal(graph(X), other(X))
    file = io.BytesIO()
    torch.save(graph.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=False))
    assert torch.equal(graph(X), other(X))
    assert torch.equal(copy.deepcopy(graph)(X), graph(X))


def test_the_most_specific_qconfig_holds():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
            self.b = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))

        def forward(self, x):
            x = self.b(self.a(x))
            return x + x, x * x

    x, every = torch.randn(5, 8), q.get_default_qconfig("x86")

    def which(mapping):
        graph = quantised(Two().eval(), mapping, x)
        layers = [n for n, m in graph.named_modules() if type(m) is quantized.Linear]
        return layers, [
            f.__name__ for f in (_arithmetic.add, _arithmetic.mul) if f in called(graph)
        ]

    whole = QConfigMapping().set_global(every)
    assert which(whole) == (["a.0", "a.1", "b.0", "b.2"], ["add", "mul"])
    none = QConfigMapping()
    assert which(none) == ([], [])
    assert which(none.set_module_name("a", every)) == (["a.0", "a.1"], [])
    some = QConfigMapping().set_global(every).set_object_type(nn.Linear, None)
    assert which(some) == ([], ["add", "mul"])
    assert which(some.set_module_name_regex(r"b\.\d", every))[0] == ["b.0", "b.2"]
    assert which(some.set_module_name("b.0", None))[0] == ["b.2"]
    first = QConfigMapping().set_global(every)
    first.set_module_name_object_type_order("a", nn.Linear, 1, None)
    assert which(first)[0] == ["a.0", "b.0", "b.2"]
    assert which(QConfigMapping().set_object_type(operator.mul, every)) == ([], ["mul"])
    for mapping in (some, first):
        again = QConfigMapping.from_dict(mapping.to_dict())
        assert again.to_dict() == mapping.to_dict() and which(again) == which(mapping)
    with pytest.raises(ValueError, match="unknown key 'modules'"):
        QConfigMapping.from_dict({"modules": []})


def test_layers_round_at_each_call_where_the_qconfig_is_dynamic():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.last = nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 3)

        def forward(self, x):
            return self.last(self.rnn(x)[0][:, -1])

    net, x = Mixed().eval(), torch.randn(2, 5, 8)
    graph = quantised(net, QConfigMapping().set_global(q.default_dynamic_qconfig), x)
    assert {dynamic.LSTM, dynamic.Linear} <= set(called(graph))
    assert torch.equal(graph(x), q.quantize_dynamic(net)(x))


def test_training_rounds_weights_and_results():
    net = made().train()
    prepared = prepare_qat_fx(net, get_default_qat_qconfig_mapping(), (X,))
    assert intrinsic.qat.ConvBnReLU2d in called(prepared)
    optimizer = torch.optim.SGD(prepared.parameters(), 0.05)
    target = torch.tensor([0, 1, 2, 3])
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = F.nll_loss(prepared(X).log(), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    prepared.eval()
    graph = convert_fx(prepared)
    assert {fused.ConvReLU2d, fused.LinearReLU} <= set(called(graph))
    assert (graph(X) - prepared(X)).abs().max() < 0.02


def test_inputs_and_outputs_may_be_codes():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(8, 8)

        def forward(self, x, y):
            z = self.a(x)
            return z, self.a(y).sigmoid()

    custom = (
        PrepareCustomConfig().set_input_quantized_indexes([0]).set_output_quantized_indexes([0])
    )
    net, x = Two().eval(), torch.randn(4, 8)
    prepared = prepare_fx(net, get_default_qconfig_mapping(), (x, x), custom)
    prepared(x, x)
    graph = convert_fx(prepared)
    codes = torch.quantize_per_tensor(x, 0.05, 64, torch.quint8)
    first, second = graph(codes, x)
    assert first.is_quantized and not second.is_quantized
    assert (first.dequantize() - net(x, x)[0]).abs().max() < 0.1
    assert (second - net(x, x)[1]).abs().max() < 0.1


def test_what_cannot_be_traced_is_left_alone():
    class Branch(nn.Module):
        def forward(self, x):
            return x * 2 if x.sum() > 0 else x

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.branch, self.last = nn.Linear(8, 8), Branch(), nn.Linear(8, 8)
            self.note = "kept"

        def forward(self, x):
            return self.last(self.branch(self.first(x)))

    net, x = Outer().eval(), torch.randn(4, 8)
    with pytest.raises(fx.proxy.TraceError):
        quantised(net, x=x)
    by_name = PrepareCustomConfig().set_non_traceable_module_names(["branch"])
    by_class = {"non_traceable_module_classes": [Branch], "preserved_attributes": ["note"]}
    for custom in (by_name, by_class):
        graph = quantised(net, x=x, custom=custom)
        assert Branch in called(graph)
        assert (graph(x) - net(x)).abs().max() < 0.2
    prepared = prepare_fx(net, get_default_qconfig_mapping(), (x,), by_class)
    prepared(x)
    assert prepared.note == "kept"
    keep = ConvertCustomConfig().set_preserved_attributes(["note"])
    assert convert_fx(prepared, keep).note == "kept"


def test_fusing_gives_the_same_numbers():
    net = made().eval()
    graph = fuse_fx(net, FuseCustomConfig())
    assert {intrinsic.ConvReLU2d, intrinsic.LinearReLU} <= set(called(graph))
    assert torch.allclose(graph(X), net(X), atol=1e-6)

    class Twice(nn.Module):
        """A convolution that is called twice, and a relu that is."""

        def __init__(self):
            super().__init__()
            self.conv, self.norm, self.relu = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), nn.ReLU()
            self.other = nn.Conv2d(3, 3, 1)

        def forward(self, x):
            x = self.norm(self.conv(self.conv(x)))
            y = self.other(x)
            return self.relu(y) + self.relu(x) + y

    net = made(Twice).eval()
    graph = fuse_fx(net)
    assert nn.BatchNorm2d in called(graph) and called(graph).count(nn.ReLU) == 2
    assert torch.allclose(graph(X), net(X), atol=1e-6)
    assert (quantised(net)(X) - net(X)).abs().max() < 0.2


def test_what_is_no_tensor_has_no_codes():
    """Tuples, sizes and what is computed of them, and attributes that are tensors."""

    class Tuples(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.last = nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 3)

        def forward(self, x):
            return self.last(self.rnn(x)[0].flatten(0, 1))

    class Sizes(nn.Module):
        def __init__(self):
            super().__init__()
            self.point, self.last = nn.Conv2d(3, 4, 1), nn.Linear(4, 3)

        def forward(self, x):
            x = self.point(x)
            places = x.size(2) * x.shape[3]
            return self.last(x.view(x.size(0), 4, places).transpose(1, 2))

    class Attributes(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(3, 3), nn.Linear(2, 3)

        def forward(self, x):
            return self.last(self.first(x).T)

    for kind, size in ((Tuples, (2, 5, 8)), (Sizes, (2, 3, 4, 5)), (Attributes, (2, 3))):
        net, x = kind().eval(), torch.randn(size)
        graph = quantised(net, x=x)
        assert quantized.Linear in called(graph)
        assert (graph(x) - net(x)).abs().max() < 0.1


def test_calls_of_one_layer_have_one_scale():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x):
            return self.layer(self.layer(x) * 4)

    net, x = Shared().eval(), torch.randn(20, 8)
    graph = quantised(net, x=x)
    assert called(graph).count(quantized.Linear) == 2
    assert (graph(x) - net(x)).abs().max() < 0.3


def test_what_is_not_implemented_says_so():
    net = made().eval()
    mapping = get_default_qconfig_mapping()
    with pytest.raises(NotImplementedError, match="prepare_fx: backend_config"):
        prepare_fx(net, mapping, (X,), backend_config={})
    with pytest.raises(ValueError, match="expected what prepare_fx or prepare_qat_fx gives"):
        convert_fx(fx.symbolic_trace(net))
    prepared = prepare_fx(net, mapping, (X,))
    with pytest.raises(NotImplementedError, match="convert_fx: keep_original_weights"):
        convert_fx(prepared, keep_original_weights=True)
    with pytest.raises(ValueError, match="PrepareCustomConfig.from_dict: unknown key"):
        prepare_fx(net, mapping, (X,), {"standalone_module_name": []})
