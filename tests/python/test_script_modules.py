"""`jit.script` of modules: what a program shares with the module it comes from, and what it has."""

# ruff: noqa: F811, UP006, UP035, UP045  # the forms that programs for TorchScript are written in

import copy
import io
import pickle
from typing import Dict, Final, List, Optional, Tuple

import pytest

import rushlight as torch
from rushlight import Tensor, jit, nn

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")


class Gate(nn.Module):
    limit: Tensor

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.register_buffer("limit", torch.tensor(0.0))
        self.register_buffer("seen", torch.zeros(2))
        self.count = 0

    def forward(self, x):
        y = self.linear(x)
        if bool(y.sum() > self.limit):
            y = torch.tanh(y)
        self.count += 1
        self.seen = self.seen + y.detach().sum(0)
        return y


def test_tensors_are_shared():
    net = Gate()
    program = jit.script(net)
    assert program.linear.weight is net.linear.weight and program.limit is net.limit
    assert list(program.state_dict()) == list(net.state_dict())
    assert [n for n, _ in program.named_parameters()] == ["linear.weight", "linear.bias"]
    x = torch.randn(3, 2)
    assert torch.equal(program(x), net(x))
    program(x).sum().backward()
    assert net.linear.weight.grad is not None
    with torch.no_grad():
        net.linear.weight.zero_()
    assert torch.equal(program(x), torch.tanh(net.linear.bias.expand(3, 2))) or bool(
        net.linear.bias.sum() * 3 <= 0
    )
    assert program.count == 3 and program.seen.abs().sum() > 0
    program.load_state_dict(Gate().state_dict())
    assert not torch.equal(program.linear.weight, torch.zeros(2, 2))


def test_modes_and_copies():
    program = jit.script(nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 4)))
    x = torch.ones(8, 4)
    program.eval()
    assert torch.equal(program(x), program(x)) and not program[0].training
    program.train()
    assert program[0].training and program.training
    for other in (copy.copy(program), copy.deepcopy(program)):
        assert isinstance(other, jit.ScriptModule) and other is not program
    other = copy.deepcopy(program).eval().double()
    assert other[1].weight.dtype == torch.float64 and program[1].weight.dtype == torch.float32
    assert torch.equal(other(x.double()), other(x.double()))
    with pytest.raises(pickle.PickleError, match="torch.save"):
        pickle.dumps(program)
    assert len(program) == 2 and [type(m) for m in program] == [type(program[0])] * 2


def test_modules_of_one_shape_share_a_class():
    first, second, other = (jit.script(nn.Linear(2, n)) for n in (2, 2, 3))
    assert first._c._type() == second._c._type() != other._c._type()
    assert first.weight is not second.weight
    assert jit.script(first) is first
    assert first.original_name == "Linear" and "original_name=Linear" in repr(first)


class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
        self.named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        self.factors = nn.ParameterList([nn.Parameter(torch.ones(2) * i) for i in range(2)])
        self.values, self.table = [1, 2, 3], {"q": 1.5}
        self.maybe: Optional[int] = None
        self.absent = None

    def forward(self, x, more: Optional[Tensor] = None):
        for i, layer in enumerate(self.layers):
            x = layer(x) + i
        for name, module in self.named.items():
            if name == "b":
                x = module(x)
        for layer, key in zip(self.layers, self.named.keys()):  # noqa: B905
            x = layer(x) * len(key)
        x = self.layers[0](x) + self.layers[-1](x) + self.named["a"](x)
        for layer in self.layers[1:]:
            x = layer(x)
        if more is not None:
            x = x + more
        if self.maybe is not None:
            x = x + self.maybe
        if self.absent is not None:
            x = self.absent(x)
        if "a" in self.named and "z" not in self.named:
            x = x * len(self.layers)
        for factor in self.factors:
            x = x + factor
        total = sum([v * 2 for v in self.values])
        for _, p in self.named_parameters():
            total += p.numel()
        return x * total + self.table["q"]


def test_containers_are_unrolled():
    net, x = Containers(), torch.randn(3, 2)
    program = jit.script(net)
    assert torch.equal(program(x), net(x)) and torch.equal(program(x, x), net(x, x))


@jit.interface
class Step(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Plus(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.n = n

    def forward(self, x: Tensor) -> Tensor:
        return x + self.n


class Times(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 10


class Chosen(nn.Module):
    one: Step

    def __init__(self):
        super().__init__()
        self.one = Plus(1)
        self.steps = nn.ModuleList([Plus(2), Times()])

    def forward(self, x, i: int):
        step: Step = self.steps[i]
        return step.forward(self.one.forward(x))


def test_interfaces_of_modules():
    program, x = jit.script(Chosen()), torch.ones(1)
    assert program(x, 0).item() == 4 and program(x, 1).item() == 20
    with pytest.raises(jit.Error, match="out of range"):
        program(x, 2)
    program.one = jit.script(Times())
    assert program(x, 0).item() == 12
    loaded = jit.load(io.BytesIO(program.save_to_buffer()))
    assert loaded(x, 1).item() == 100


class Marked(nn.Module):
    scale: Final[int]
    offset: jit.Final[float] = 0.5
    calls: List[int]

    def __init__(self):
        super().__init__()
        self.scale = 2
        self.value = 1
        self.calls = []
        self.opaque = object()

    @jit.ignore
    def python(self, x: Tensor, n: int) -> List[int]:
        self.opaque_calls = getattr(self, "opaque_calls", 0) + 1
        return [int(x.sum()), n]

    @jit.unused
    def unused(self, x):
        return self.opaque(x)

    @jit.export
    def more(self, x: Tensor) -> Tensor:
        return x * self.scale

    @property
    def next(self) -> int:
        return self.value + 1

    @next.setter
    def next(self, x: int):
        self.value = x

    def forward(self, x, fail: bool = False) -> Tuple[Tensor, List[int], int]:
        if not jit.is_scripting():
            x = x * 0
        if fail:
            x = self.unused(x)
        self.next = 5
        for _ in range(self.scale):
            x = x + self.offset
        self.calls.append(3)
        return x, self.python(x, 3), self.next


def test_marks():
    net = Marked()
    program = jit.script(net)
    x, listed, following = program(torch.ones(2))
    assert x.tolist() == [2, 2] and listed == [4, 3] and following == 6
    assert program.next == 6 and program.value == 5 and program.calls == [3]
    assert program.more(torch.ones(1)).item() == 2
    assert program.opaque is net.opaque and program.python(torch.ones(1), 2) == [1, 2]
    with pytest.raises(jit.Error, match="unused"):
        program(torch.ones(2), True)
    with pytest.raises(RuntimeError, match="constant 'scale'"):
        program.scale = 3
    with pytest.raises(RuntimeError, match="Could not export Python function"):
        program.save_to_buffer()


class Overloaded(nn.Module):
    @jit._overload_method
    def half(self, x: int) -> int: ...
    @jit._overload_method
    def half(self, x: Tensor) -> Tensor: ...
    def half(self, x):
        return x - 1

    def forward(self, x):
        return self.half(x), self.half(4)


def test_overloads_of_methods():
    first, second = jit.script(Overloaded())(torch.ones(1))
    assert first.item() == 0 and second == 3


def before(self, given: Tuple[Tensor]) -> Tuple[Tensor]:
    return (given[0] * 10,)


def behind(self, given: Tuple[Tensor], out: Tensor):
    return out - 1


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Plus(1)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) * 2


def test_hooks():
    net, x = Outer(), torch.ones(1)
    net.inner.register_forward_pre_hook(before)
    net.inner.register_forward_hook(behind)
    net.register_forward_hook(behind)
    program = jit.script(net)
    loaded = jit.load(io.BytesIO(program.save_to_buffer()))
    for one in (program, loaded):
        assert one(x).item() == net(x).item() == 19
        assert one.inner(x).item() == net.inner(x).item() == 10
        assert one.forward(x).item() == 20
    other = Outer()
    other.register_forward_hook(lambda module, given, out: out)
    with pytest.raises(Exception, match="lambda"):
        jit.script(other)


class Written(jit.ScriptModule):
    __constants__ = ["n"]  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.n = 3
        self.linear = nn.Linear(2, 2)
        self.at = jit.Attribute(5, int)

    @jit.script_method
    def forward(self, x):
        """What it does."""
        return self.helper(self.linear(x) * self.weight * self.n) + self.at

    @jit.script_method
    def other(self, x):
        return x - 1

    def helper(self, x):
        return x + 1

    def python(self):
        return 7


class FromText(jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.k = 3
        self.define("""
            def forward(self, x, n: int = 2):
                for i in range(n):
                    x = x + self.k
                return x
        """)


def test_script_modules():
    net, x = Written(), torch.ones(1, 2)
    assert isinstance(net, Written) and isinstance(net.linear, jit.ScriptModule)
    assert torch.equal(net(x), net.linear(x) * 3 + 6)
    assert net.python() == 7 and net.other(x).sum() == 0 and "helper" in net.code
    net.define("def extra(self, x):\n    return x * self.n\n")
    assert net.extra(x).tolist() == [[3, 3]]
    assert FromText()(torch.ones(1)).item() == 7
    assert torch.equal(jit.load(io.BytesIO(net.save_to_buffer()))(x), net(x))


class Unclear(nn.Module):
    def __init__(self):
        super().__init__()
        self.things: Dict[str, int] = {}
        self.empty = []

    def forward(self, x):
        return x + len(self.empty)


def test_what_modules_cannot_be():
    with pytest.raises(RuntimeError, match="whose type is not clear"):
        jit.script(Unclear())

    class Unready(nn.Module):
        def __init__(self):
            pass

    with pytest.raises(RuntimeError, match=r"super\(\).__init__"):
        jit.script(Unready())


class Branch(nn.Module):
    def forward(self, x):
        return x * 2 if bool(x.sum() > 0) else -x


def test_traces_and_scripts_mix():
    traced = jit.trace(nn.Linear(2, 2), torch.ones(1, 2))

    class Around(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = traced

        def forward(self, x, n: int):
            for _ in range(n):
                x = self.inner(x)
            return x

    program, x = jit.script(Around()), torch.randn(3, 2)
    assert torch.equal(program(x, 2), traced(traced(x)))
    outer = jit.trace(nn.Sequential(jit.script(Branch()), nn.ReLU()), x)
    for value in (x + 50, x - 50):
        assert torch.equal(outer(value), Branch()(value).relu())


def test_freezing():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()).eval()
    net[1].running_mean.add_(1.0)
    x = torch.randn(1, 1, 5, 5)
    program = jit.script(net)
    exact = jit.freeze(program, optimize_numerics=False)
    assert torch.equal(exact(x), net(x)) and not list(exact.parameters())
    frozen = jit.freeze(program)
    assert "batch_norm" not in str(frozen.graph) and "batch_norm" in str(exact.graph)
    torch.testing.assert_close(frozen(x), net(x))
    loaded = jit.load(io.BytesIO(frozen.save_to_buffer()))
    assert torch.equal(loaded(x), frozen(x))
    ready = jit.optimize_for_inference(jit.script(net.train()))
    torch.testing.assert_close(ready(x), net.eval()(x))
    with pytest.raises(RuntimeError, match="eval mode"):
        jit.freeze(jit.script(nn.Sequential(nn.ReLU())))
    with pytest.raises(RuntimeError, match="ScriptModule"):
        jit.freeze(net)


class Preserved(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = 3
        self.state = torch.zeros(1)

    @jit.export
    def more(self, x):
        return x * self.kept

    def forward(self, x):
        self.state = self.state + 1
        return x + self.state


def test_what_freezing_preserves():
    frozen = jit.freeze(jit.script(Preserved().eval()), preserved_attrs=["kept", "more"])
    x = torch.ones(1)
    assert [frozen(x).item() for _ in range(2)] == [2, 3]
    frozen.kept = 5
    assert frozen.more(x).item() == 5 and frozen.state.item() == 2
    with pytest.raises(RuntimeError, match="neither a method nor an attribute"):
        jit.freeze(jit.script(Preserved().eval()), preserved_attrs=["nothing"])


def test_graph_modules():
    net, x = nn.Sequential(nn.Linear(2, 3), nn.ReLU()), torch.randn(1, 2)
    assert torch.equal(jit.script(torch.fx.symbolic_trace(net))(x), net(x))


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm", "orthogonal"])
def test_parametrised_modules_are_refused_with_what_helps(name):
    layer = getattr(nn.utils.parametrizations, name)(nn.Linear(2, 2)).eval()
    for module in (layer, nn.Sequential(layer)):
        with pytest.raises(RuntimeError, match=r"not working with scripting.*'weight'"):
            jit.script(module)
    x = torch.randn(1, 2)
    assert torch.equal(jit.trace(layer, x)(x), layer(x))
    nn.utils.parametrize.remove_parametrizations(layer, "weight")
    assert torch.equal(jit.script(layer)(x), layer(x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kept_weights(dtype):
    """Layouts of weights that are kept change no bit: of many images, by any number of threads, in many runs."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 7, 2, 3),
        torch.nn.BatchNorm2d(32),
        torch.nn.Conv2d(32, 32, 3, 1, 1, groups=32),
        torch.nn.Conv2d(32, 48, 3, 2, 1, groups=2),
        torch.nn.Conv2d(48, 64, 3, 2),
        torch.nn.Conv2d(64, 64, (1, 5), padding="same"),
    )
    program = jit.script(net.to(dtype).eval())
    frozen, ready = jit.freeze(program), jit.optimize_for_inference(program)
    with torch.no_grad():
        for size in (64, 96, 64, *range(100, 140, 2), 64):
            x = torch.randn(2, 3, size, size).to(dtype)
            wanted = frozen(x)
            for threads in (1, 2, 3):
                torch.set_num_threads(threads)
                assert torch.equal(ready(x), wanted)
    assert torch.equal(program.state_dict()["0.weight"], net[0].weight)


def test_kept_weights_of_one_layer_in_two_places():
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Conv2d(32, 32, 3, padding=1, groups=32)

        def forward(self, x):
            return self.layer(self.layer(x))

    program = jit.script(Twice().eval())
    x = torch.randn(1, 32, 40, 40)
    ready = jit.optimize_for_inference(program)
    first, second = [n for n in ready.graph.nodes() if n.kind() == "aten::conv2d"]
    assert str(list(first.inputs())[1]) == str(list(second.inputs())[1])
    assert torch.equal(ready(x), program(x))
