"""`jit`: marks, questions, units of text, and graphs of what a program did."""

# ruff: noqa: UP006, UP007, UP035, UP045  # the forms that programs for TorchScript are written in

import typing
from typing import Dict, List, Optional, Tuple, Union

import pytest

import rushlight as torch
from rushlight import _C, jit, nn


class Net(nn.Module):
    scale: jit.Final[int] = 2

    @jit.ignore
    def python(self, x):
        return x + 1

    @jit.ignore(drop=True)
    def dropped(self, x):
        return x

    @jit.unused
    def unused(self, x):
        return x - 1

    @jit.unused
    @property
    def odd(self):
        return 1

    @jit.export
    def more(self, x):
        return x * 3

    def forward(self, x):
        if jit.is_scripting() or jit.is_tracing():
            raise AssertionError
        return self.more(self.unused(self.python(x))) * self.scale


def test_marks_leave_functions_as_they_are():
    net = Net()
    assert net(torch.ones(1)).item() == 6 and net.odd == 1
    kinds = {name: vars(Net)[name]._torchscript_modifier for name in ("python", "dropped", "more")}
    assert kinds == {"python": "ignore", "dropped": "unused", "more": "export"}
    assert Net.unused._torchscript_modifier == "unused"
    with pytest.raises(RuntimeError, match="must be a bool or a function"):
        jit.ignore(3)

    @jit.interface
    class Face:
        def one(self):
            pass

    assert Face.__torch_script_interface__
    with pytest.raises(RuntimeError, match="applied to a class"):
        jit.interface(3)
    assert jit.script_if_tracing(len)([1, 2]) == 2
    assert jit.annotate(List[int], [1]) == [1]
    assert jit.Attribute(3, int) == (3, int)
    assert typing.get_origin(jit.Final[int]) is typing.Final


def test_modules_written_for_scripts_run(tmp_path):
    class Old(jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        @jit.script_method
        def forward(self, x):
            return x * self.weight

    assert Old()(torch.full((2,), 3.0)).tolist() == [3, 3]
    assert not isinstance(Net(), jit.ScriptModule | jit.ScriptFunction)
    for kind in (jit.ScriptFunction, jit.RecursiveScriptModule, jit.TopLevelTracedModule):
        with pytest.raises(RuntimeError, match="script"):
            kind()
    from rushlight.jit._script import RecursiveScriptModule
    from rushlight.jit.annotations import List as Listed

    assert RecursiveScriptModule is jit.RecursiveScriptModule and Listed is List
    path = tmp_path / "net.pt"
    with pytest.raises(RuntimeError, match="writes programs"):
        jit.save(Net(), path)
    with pytest.raises(ValueError, match="does not exist"):
        jit.load(path)
    assert not path.exists()


CASES = [
    ([1, 2], List[int], True),
    ([1, "a"], List[int], False),
    ({"a": 1}, Dict[str, int], True),
    ({"a": "b"}, Dict[str, int], False),
    ((1, "a"), Tuple[int, str], True),
    ((1, 2, 3), Tuple[int, str], False),
    ((1, 2, 3), Tuple[int, ...], True),
    (None, Optional[int], True),
    ("a", Optional[int], False),
    (1.5, Union[int, float], True),
    ([[1]], List[List[int]], True),
    ([None], List[Optional[int]], True),
    (3, (str, int), True),
    ([1], (List[str], Dict[str, int]), False),
    (3, int | None, True),
]


@pytest.mark.parametrize(("value", "kind", "expected"), CASES, ids=str)
def test_isinstance_looks_into_containers(value, kind, expected):
    assert jit.isinstance(value, kind) is expected


def test_isinstance_wants_to_know_what_is_inside():
    with pytest.raises(RuntimeError, match="contained type"):
        jit.isinstance([1], List)


def test_tasks_and_settings():
    def add(x, y=1):
        return x + y

    future = jit.fork(add, 2, y=3)
    assert jit.wait(future) == 5 and future.done()
    with pytest.raises(ZeroDivisionError):
        jit.wait(jit.fork(lambda: 1 / 0))
    with jit.optimized_execution(False), jit.strict_fusion():
        assert jit.set_fusion_strategy([("STATIC", 2)]) == []
    jit.enable_onednn_fusion(True)
    assert not jit.onednn_fusion_enabled()
    assert torch._C._get_tracing_state() is None and torch._C._is_tracing() is False


# ---- graphs of what a program did ----


class Traced(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.linear = nn.Linear(4, 2)

    def forward(self, image, more):
        x = torch.relu(self.norm(self.conv(image)))
        x = nn.functional.max_pool2d(x, 2).flatten(2).mean(-1)
        first, second = self.linear(x).split(1, 1)
        return {"sum": first + more["y"], "rest": [second]}


def trace_of(*args, **kwargs):
    return jit._get_trace_graph(Traced(), (torch.randn(2, 3, 6, 6), {"y": torch.ones(1)}), **kwargs)


def test_a_trace_shows_ops_as_the_program_called_them():
    graph, out = trace_of()
    assert isinstance(graph, _C.Graph) and list(out) == ["sum", "rest"]
    kinds = [n.kind() for n in graph.nodes() if n.kind() != "prim::Constant"]
    assert [k for k in kinds if k != "prim::ListConstruct"] == [
        "aten::_convolution",
        "aten::add_",
        "aten::batch_norm",
        "aten::relu",
        "aten::max_pool2d",
        "aten::flatten",
        "aten::mean",
        "aten::linear",
        "aten::split",
        "prim::ListUnpack",
        "aten::add",
        "prim::TupleConstruct",
    ]
    names = [v.debugName() for v in graph.inputs()]
    assert names[0] == "image" and len(names) == 2 + len(Traced().state_dict())
    linear = graph.findNode("aten::linear")
    assert [v.type().sizes() for v in linear.inputs()] == [[2, 4], [2, 4], [2]]
    kind = linear.output().type()
    assert kind.kind() == "TensorType" and kind.scalarType() == "Float" and kind.dim() == 2
    assert kind.strides() == [2, 1] and linear.output().requires_grad()
    assert linear.output().isCompleteTensor() and linear.output().node() == linear
    assert [n.kind() for n, _ in linear.output().uses()] == ["aten::split"]
    assert "test_jit" in graph.findNode("aten::relu").sourceRange()
    pool = graph.findNode("aten::max_pool2d")
    window = pool.inputsAt(1).node()
    assert [v.toIValue() for v in window.inputs()] == [2, 2]  # one number stands for both
    assert pool.inputsAt(1).type().str() == "int[]" and str(pool.inputsAt(5).type()) == "bool"
    assert graph.outputs()[0].type().kind() == "TupleType"
    assert "aten::_convolution(%image, %" in str(graph)


def test_values_follow_tensors_through_ops_in_place():
    def f(x):
        y = x * 2
        y.add_(1)
        return y.t() + torch.ones(2, 2).t()

    graph, _ = jit._get_trace_graph(f, torch.zeros(2, 2))
    added = graph.findNode("aten::add_")
    assert added.inputsAt(0).node().kind() == "aten::mul"
    first, second = graph.findAllNodes("aten::t")
    assert first.input().node() == added and second.input().node().kind() == "aten::ones"
    written = torch.ones(3)
    graph, _ = jit._get_trace_graph(lambda x: x + written, torch.zeros(3))
    constant = graph.findNode("aten::add").inputsAt(1)
    assert constant.toIValue() is written and constant.node().t("value") is written


def test_a_trace_runs():
    net = Traced().eval()
    image, more = torch.randn(2, 3, 6, 6), {"y": torch.ones(1)}
    graph, out = jit._get_trace_graph(net, (image, more))
    graph.lint()
    again = graph._run(image, more["y"], *net.state_dict().values())
    torch.testing.assert_close(again, (out["sum"], out["rest"][0]), rtol=0, atol=0)


def test_scopes_are_what_hooks_push():
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
    for name, module in net.named_modules():
        module.register_forward_pre_hook(
            lambda m, x, name=name: _C._get_tracing_state().push_scope(name)
        )
        module.register_forward_hook(lambda m, x, y: _C._get_tracing_state().pop_scope())
    graph, _ = jit._get_trace_graph(net, torch.zeros(1, 2))
    scopes = {n.kind(): n.scopeName() for n in graph.nodes()}
    assert scopes == {"aten::linear": "/0", "aten::relu": "/1/1.0"}
    assert _C._get_tracing_state() is None


def test_a_trace_ends_and_says_that_it_runs():
    said = []
    jit._get_trace_graph(lambda x: (said.append(jit.is_tracing()), x)[1], torch.zeros(1))
    assert said == [True] and not jit.is_tracing()
    with pytest.raises(ZeroDivisionError):
        jit._get_trace_graph(lambda x: x / (1 // 0), torch.zeros(1))
    assert not jit.is_tracing() and _C._get_tracing_state() is None
    with pytest.raises(RuntimeError, match="Only tuples, lists"):
        jit._get_trace_graph(lambda x, n: x, (torch.zeros(1), object()))
    kinds = {n.kind() for n in trace_of(_force_outplace=True)[0].nodes()}
    assert "aten::add" in kinds and "aten::add_" not in kinds
    x = torch.zeros(2)
    _, out, before = jit._get_trace_graph(lambda x: x.add_(1), x, return_inputs=True)
    assert out is x and before[0].tolist() == [0, 0]


def test_what_is_recorded_keeps_its_gradients():
    net, x = nn.Linear(3, 1), torch.randn(4, 3)
    _, out = jit._get_trace_graph(net, x)
    out.sum().backward()
    torch.testing.assert_close(net.weight.grad, x.sum(0, keepdim=True))


def test_what_programs_take_from_the_inside():
    from rushlight import _jit_internal

    assert _jit_internal.ignore is jit.ignore and not _jit_internal.is_scripting()

    class List(nn.ModuleList):
        @_jit_internal._copy_to_script_wrapper
        def __len__(self):
            return 7

    with pytest.warns(DeprecationWarning, match="jit.script"):
        assert len(jit.script(List())) == 7


def test_units_of_text():
    unit = jit.CompilationUnit("""
def scaled(x, by: float = 2.0):
    return x * by

def f(x: Tensor, n: int) -> Tuple[Tensor, List[str]]:
    words: List[str] = []
    for i in range(n):
        if i == 3:
            return x, words
        if i % 2 == 1:
            continue
        words.append(f"{i} of {n}")
        x = scaled(x, float(i))
    while True:
        n += 1
        if n > 5:
            break
    return scaled(x) + n, words
""")
    assert isinstance(unit.f, jit.ScriptFunction) and unit.f.name == "f"
    x = torch.ones(2)
    assert torch.equal(unit.f(x, n=0)[0], x * 2 + 6) and unit.f(x, 2)[1] == ["0 of 2"]
    assert torch.equal(unit.f(x, 9)[0], x * 0)
    assert torch.equal(unit.scaled(x, by=3), x * 3)
    assert "def f(" in unit.f.code and "while" in unit.f.code and "prim::Loop" in str(unit.f.graph)
    again = jit.CompilationUnit(unit.scaled.code)
    assert torch.equal(again.scaled(x), x * 2)
    unit.define("def g(x):\n    return scaled(x)\n")
    assert torch.equal(unit.g(x), x * 2)
    with pytest.raises(AttributeError):
        unit.h  # noqa: B018


@pytest.mark.parametrize(
    "text, message",
    [
        ("def f(x):\n    return lambda: x\n", "lambda"),
        ("def f(x):\n    try:\n        pass\n", "try"),
        ("def f(x):\n    return y\n", "undefined value y"),
        ("def f(x, n: int):\n    if n > 1:\n        y = x\n    return y\n", "not defined in the"),
        ("def f(n: int):\n    if n > 1:\n        n = 'a'\n    return n\n", "previously had type"),
        ("def f(x):\n    return torch.relu(x, x, x)\n", "not valid"),
        ("def f(x) -> int:\n    return x.shape\n", "annotated as having type int"),
        ("def f(x: Net):\n    return x\n", "Unknown type"),
        ("def f(x, n: int) -> int:\n    if n > 1:\n        return n\n", "without a return"),
        ("def f(x):\n    break\n", "inside of a loop"),
        ("def f(x):\n    a, b = 1, 2, 3\n", "unpack"),
        ("def f(x):\n    return f(x)\n", "undefined value f"),
    ],
)
def test_what_units_refuse(text, message):
    with pytest.raises(RuntimeError, match=message):
        jit.CompilationUnit(text)


def test_values_that_are_not_what_a_program_asks_for():
    unit = jit.CompilationUnit("def f(x: Tensor):\n  return x.size()\ndef g(x: Any):\n  return x\n")

    class Place:
        def __index__(self):
            return 3

    for wrong in (3, 2.5, True, 1j, None, "a", [torch.ones(1)]):
        with pytest.raises((TypeError, RuntimeError), match="'Tensor'"):
            unit.f(wrong)
    for wrong in (Place(), torch.ones(()).numpy()):
        with pytest.raises((TypeError, RuntimeError)):
            unit.g(wrong)
    for right in (3, True, 2.5, "a", None, [1], (1, "a")):
        assert unit.g(right) == right
