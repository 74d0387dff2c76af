"""`fx`: graphs of modules give the modules' numbers, can be changed, copied, checked and written."""

import builtins
import copy
import importlib
import math
import operator
import pickle
import sys
from collections import namedtuple

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import fx, nn
from rushlight.fx.immutable_collections import immutable_dict, immutable_list
from tests.python.fx_modules import make

CASES = make(torch)
Pair = namedtuple("Pair", "a b")


def same(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=0)


def run(function, inputs):
    torch.manual_seed(0)
    inputs = copy.deepcopy(inputs)
    if getattr(function, "__name__", "") == "stars":
        x, flag, rest, named = inputs
        return function(x, *rest, flag=flag, **named)
    return function(*inputs)


def run_graph(gm, inputs):
    torch.manual_seed(0)
    return (
        gm(*copy.deepcopy(inputs))
        if gm._get_name() != "stars"
        else gm(inputs[0], inputs[1], *inputs[2], **inputs[3])
    )


@pytest.mark.parametrize("name", CASES)
def test_a_graph_gives_the_numbers_of_its_module(name):
    function, inputs = CASES[name]
    expected = run(function, inputs)
    gm = fx.symbolic_trace(function)
    gm.graph.lint()
    same(run_graph(gm, inputs), expected)
    for other in (copy.deepcopy(gm), copy.copy(gm), pickle.loads(pickle.dumps(gm))):
        assert other.code == gm.code and type(other).__name__ == type(gm).__name__
        same(run_graph(other, inputs), expected)
    if name != "stars":
        same(fx.Interpreter(gm).run(*copy.deepcopy(inputs)), expected)
        same(fx.Transformer(gm).transform()(*copy.deepcopy(inputs)), expected)
    # Code traced again is the same code.
    if name not in ("stars", "augmented"):
        assert fx.symbolic_trace(gm).code.count("\n") >= gm.code.count("\n")


def test_gradients_pass_through():
    function, (x,) = CASES["attention"]
    gm = fx.symbolic_trace(function)
    gm(x).sum().backward()
    got = [p.grad.clone() for p in gm.parameters()]
    gm.zero_grad()
    function(x).sum().backward()
    for name, p in gm.named_parameters():
        assert p is dict(function.named_parameters())[name]
    assert all(torch.equal(a, p.grad) for a, p in zip(got, gm.parameters(), strict=True))


def test_modules_are_as_before_a_trace():
    layer = nn.Linear(2, 2)
    before = {name: vars(nn.Module).get(name) for name in ("__call__", "__getattribute__")}
    with pytest.raises(ZeroDivisionError):
        fx.symbolic_trace(lambda x: 1 / 0)
    fx.symbolic_trace(layer)
    assert before == {name: vars(nn.Module).get(name) for name in before}
    assert not fx.is_fx_tracing() and math.sqrt(4) == 2
    assert isinstance(layer.weight, nn.Parameter) and layer(torch.ones(2)).shape == (2,)


def test_modules_look_up_as_fast_as_before_a_trace():
    class Own(nn.Module):
        def __getattr__(self, name):
            return super().__getattr__(name)

    class Below(nn.Linear):
        pass

    def changed():
        classes, seen = [nn.Module], set()
        while classes:
            seen.add(classes.pop())
            classes = [c for cls in seen for c in cls.__subclasses__() if c not in seen]
        assert {Own, Below} < seen
        return {cls for cls in seen if torch._C._look_up_directly(cls)}

    assert changed() == set()
    fx.symbolic_trace(nn.Sequential(Below(2, 2), nn.ReLU()))
    assert changed() == set()
    nn.Module.__getattr__ = Own.__getattr__
    del nn.Module.__getattr__
    assert Below in changed() and changed() == set()
    with pytest.raises(TypeError, match="a class of modules"):
        torch._C._look_up_directly(int)


def test_tracing_is_known():
    seen = []
    fx.symbolic_trace(lambda x: seen.append(fx._symbolic_trace.is_fx_tracing()) or x)
    assert seen == [True]


ERRORS = {
    "control flow": (
        lambda x: x if x else -x,
        fx.TraceError,
        "cannot be used as inputs to control",
    ),
    "loop": (lambda x: [i + 1 for i in x], fx.TraceError, "Proxy object cannot be iterated"),
    "stars": (lambda x: torch.add(*x), fx.TraceError, "Proxy object cannot be iterated"),
    "len": (lambda x: builtins.len(x), RuntimeError, "'len' is not supported in symbolic tracing"),
    "item": (lambda x: operator.setitem(x, 0, 1), TypeError, "does not support item assignment"),
    "int": (lambda x: int(x), TypeError, "int"),
    "key": (lambda x: {x: 1}, RuntimeError, "Keys for dictionaries used as an argument"),
    "value": (lambda x: torch.add(x, object()), NotImplementedError, "argument of type"),
    "module": (lambda x: nn.ReLU()(x), NameError, "module is not installed as a submodule"),
    "parameter": (
        lambda x: x + nn.Parameter(torch.ones(1)),
        NameError,
        "parameter is not a member of this module",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_traced_says_why(name):
    function, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        fx.symbolic_trace(function)


def test_unpacking_and_asserts():
    # As text: pytest writes the assertions of its files anew.
    space = {}
    code = "a, (b, c) = x, x.split(2)\n assert (a > 0).all()\n return a + b.sum() + c.sum()"
    exec(f"def f(x):\n {code}", space)
    f = space["f"]
    tracer = fx.Tracer()
    tracer.trace_asserts = True
    graph = tracer.trace(f)
    gm = fx.GraphModule(tracer.root, graph)
    assert "assert_fn" in gm.code
    same(gm(torch.ones(4)), f(torch.ones(4)))
    with pytest.raises(AssertionError):
        gm(-torch.ones(4))


def length(x):
    return len(x)


fx.wrap("len")
fx.wrap(length)


def test_wrapped_functions_are_calls():
    def f(x):
        return len(x) + length(x) + math.floor(x[0])

    gm = fx.symbolic_trace(f)
    called = [n.target for n in gm.graph.find_nodes(op="call_function", target=len)]
    assert called == [len] and 'torch.fx._symbolic_trace.wrap("len")' in gm.code
    assert gm(torch.ones(3)) == f(torch.ones(3)) == 7
    assert len([1, 2]) == 2 and length([1]) == 1
    with pytest.raises(NotImplementedError, match="top level of a module"):
        fx.wrap("len")
    with pytest.raises(RuntimeError, match="callable or string"):
        fx.wrap(3)


def test_given_arguments():
    def f(x, y, n=2):
        return {"sum": x["a"] + x["b"][0] * y[1] + n}

    given = {"x": {"a": fx.PH, "b": [fx.PH, 3]}, "y": (fx.PH, fx.PH), "n": 5}
    gm = fx.symbolic_trace(f, concrete_args=given)
    one = torch.ones(2)
    inputs = ({"a": one, "b": [one, 3]}, (one, one * 2), 5)
    for other in (gm, copy.deepcopy(gm), pickle.loads(pickle.dumps(gm))):
        same(other(*inputs), f(*inputs))
        same(fx.Interpreter(other).run(*inputs), f(*inputs))
    with pytest.raises(AssertionError, match="specialized to have value 5"):
        gm(*inputs[:2], 6)
    only = fx.symbolic_trace(
        lambda x, flag: x if flag is None else -x, concrete_args={"flag": None}
    )
    assert torch.equal(only(one, None), one)
    with pytest.raises(AssertionError, match="specialized to have value None"):
        only(one, 3)
    with pytest.warns(UserWarning, match="Was not able to add assertion"):
        fx.symbolic_trace(lambda x, o: x, concrete_args={"o": object()})
    with pytest.raises(RuntimeError, match="concrete arguments"):
        fx.Tracer().trace(lambda x, y: x, concrete_args=(1,))


def test_leaves_and_scopes():
    class Whole(fx.Tracer):
        def is_leaf_module(self, m, name):
            return type(m).__name__ == "Block" or super().is_leaf_module(m, name)

    model = CASES["convolutional"][0]
    targets = [n.target for n in Whole().trace(model).find_nodes(op="call_module")]
    assert targets == ["stem", "blocks.0", "blocks.1.0", "blocks.1.1", "head"]
    node = next(n for n in fx.symbolic_trace(model).graph.nodes if n.name == "blocks_1_0_conv")
    assert list(node.meta["nn_module_stack"]) == [
        "blocks",
        "blocks.1",
        "blocks.1.0",
        "blocks.1.0.conv",
    ]


def test_shapes_of_parameters_may_be_numbers():
    layer = CASES["attention"][0]

    def sizes(self, x):
        return x.reshape(self.scale.shape[0], self.scale.size(0), self.scale.numel())

    module = type("Sized", (nn.Module,), {"forward": sizes})()
    module.scale = layer.scale
    constant = fx.Tracer(param_shapes_constant=True).trace(module)
    (call,) = constant.find_nodes(op="call_method", target="reshape")
    assert call.args[1:] == (8, 8, 8)
    assert "getattr" in str(fx.Tracer().trace(module))
    buffers = fx.Tracer()
    buffers.proxy_buffer_attributes = True
    read = type("Read", (nn.Module,), {"forward": lambda self, x: self.b.view(-1) + x})()
    read.register_buffer("b", torch.ones(1, 2))
    assert "view" in str(buffers.trace(read)) and "view" not in str(fx.Tracer().trace(read))


def test_classes_made_of_proxies():
    class Made(metaclass=fx.ProxyableClassMeta):
        def __init__(self, left, right):
            self.left, self.right = left, right

    def f(x):
        return Made(x, 2)

    gm = fx.symbolic_trace(f)
    made = gm(torch.ones(1))
    assert isinstance(made, Made) and made.right == 2
    assert Made(1, 2).left == 1


def test_stack_traces_and_meta():
    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    gm = fx.GraphModule(nn.Module(), tracer.trace(CASES["augmented"][0]))
    node = next(n for n in gm.graph.nodes if n.op == "call_method")
    assert "x.add_(3)" in node.stack_trace
    text = gm.print_readable(print_output=False)
    assert "# File: " in text and "class GraphModule(torch.nn.Module):" in text
    from rushlight.fx import traceback

    with traceback.preserve_node_meta():
        assert traceback.has_preserved_node_meta()
        with traceback.set_current_meta(node, "mine"):
            assert traceback.get_current_meta()["from_node"][0][0] is node
            assert traceback.format_stack() == [node.stack_trace]
        traceback.set_stack_trace(["a", "b"])
        assert traceback.format_stack() == ["ab"]
    assert not traceback.has_preserved_node_meta() and len(traceback.format_stack()) > 1


# ---- graphs ----


def by_hand():
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.add, (x, 1))
    z = graph.call_method("mul", (y,), {"other": x})
    graph.output(z)
    return graph, x, y, z


def test_nodes_know_their_users_and_places():
    graph, x, y, z = by_hand()
    assert list(x.users) == [y, z] and z.all_input_nodes == [y, x] and len(graph.nodes) == 4
    assert x.next is y and z.prev is y and x < z and z > y and x <= x and z >= y
    z.update_arg(0, x)
    assert not y.users and z.args == (x,)
    z.update_kwarg("other", y)
    z.insert_arg(1, y)
    assert z.args == (x, y) and z.kwargs["other"] is y
    z.args = (y,)
    assert y.replace_all_uses_with(x, lambda user: user is not z) == []
    assert y.replace_all_uses_with(x) == [z] and z.args == (x,) and z.kwargs == {"other": x}
    graph.erase_node(y)
    assert [n.name for n in graph.nodes] == ["x", "mul", "output"]
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(z)
    with pytest.raises(RuntimeError, match="wrong graph"):
        by_hand()[0].erase_node(graph.output_node())
    with pytest.raises(AssertionError, match="different Graph"):
        x.append(by_hand()[1])
    with pytest.raises(AssertionError, match="insert_args"):
        z.insert_arg(5, x)
    assert [n.name for n in reversed(graph.nodes)] == ["output", "mul", "x"]
    assert graph.output_node().op == "output" and graph.find_nodes(op="placeholder") == [x]
    with pytest.raises(AssertionError, match="no output"):
        fx.Graph().output_node()
    with pytest.raises(ValueError, match="Callable is expected"):
        graph.create_node("call_function", "name")
    with pytest.raises(ValueError, match="str is expected"):
        graph.create_node("call_method", torch.add)


def test_places_for_new_nodes():
    graph, x, y, z = by_hand()
    with graph.inserting_before(z):
        a = graph.call_function(torch.neg, (y,))
    with graph.inserting_after(x):
        b = graph.call_function(torch.abs, (x,))
    end = graph.call_function(torch.sin, (a,))
    assert [n.name for n in graph.nodes] == ["x", "abs_1", "add", "neg", "mul", "output", "sin"]
    z.append(end)
    with graph.inserting_before():
        graph.placeholder("first")
    assert next(iter(graph.nodes)).name == "first"
    assert graph.eliminate_dead_code() and end._erased and b._erased
    assert not graph.eliminate_dead_code()


def test_dead_code_that_does_something_stays():
    def f(x):
        x.add_(1)
        torch.sigmoid_(x)
        torch._assert(x.sum() > 0, "positive")
        F.relu(x, inplace=True)
        x.exp()
        return x * 2

    gm = fx.symbolic_trace(f)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    assert "exp" not in gm.code
    same(gm(torch.ones(2)), f(torch.ones(2)))
    graph = fx.symbolic_trace(lambda x: (length(x), x)[1]).graph
    assert graph.eliminate_dead_code(lambda node: node.op == "placeholder" or node.op == "output")
    assert fx.has_side_effect(length) is length
    graph = fx.symbolic_trace(lambda x: (length(x), x)[1]).graph
    assert not graph.eliminate_dead_code()
    fx.node._side_effectful_functions.remove(length)


def test_lint_finds_what_is_wrong():
    graph, x, y, z = by_hand()
    graph.lint()
    z.append(y)
    with pytest.raises(RuntimeError, match="used before it has been defined"):
        graph.lint()
    other = fx.Graph()
    other.call_function(torch.add, (x, 1))
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        other.lint()
    gm = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
    next(iter(gm.graph.find_nodes(op="call_module"))).target = "nowhere"
    with pytest.raises(RuntimeError, match="nonexistent attribute nowhere"):
        gm.graph.lint()
    with pytest.raises(AttributeError, match="no attribute"):
        gm.graph.call_module("nothing.here")


def test_arguments_cannot_be_changed_in_place():
    graph, x, _, _ = by_hand()
    node = graph.call_function(torch.cat, ([x, x],), {"dim": {"a": 1}})
    with pytest.raises(TypeError, match="does not support mutation"):
        node.args[0].append(x)
    with pytest.raises(TypeError, match="does not support mutation"):
        node.kwargs["dim"] = 1
    one, two = immutable_list([1, 2]), immutable_dict(a=1)
    assert hash(one) == hash((1, 2)) and hash(two) == hash(immutable_dict(a=1))
    assert pickle.loads(pickle.dumps((one, two))) == (one, two)
    assert type(copy.deepcopy(one)) is immutable_list
    mapped = torch.utils._pytree.tree_map(lambda v: v + 1, {"x": one, "y": two})
    assert mapped == {"x": [2, 3], "y": {"a": 2}} and type(mapped["x"]) is immutable_list


def test_maps_over_arguments():
    _, x, y, _ = by_hand()
    nested = (x, [1, {"k": y}], slice(x, None, 2), Pair(x, 3))
    names = fx.map_arg(nested, lambda n: n.name)
    assert names == ("x", [1, {"k": "add"}], slice("x", None, 2), Pair("x", 3))
    assert type(names[3]) is Pair
    numbers = fx.map_aggregate((1, [2]), lambda v: v if isinstance(v, fx.Node) else v * 10)
    assert numbers == (10, [20])
    with pytest.raises(AssertionError, match="must be a callable"):
        fx.map_arg(nested, 3)


def test_graphs_are_copied_into_each_other():
    graph, *_ = by_hand()
    twice = fx.Graph()
    x = twice.placeholder("x")
    values = {next(iter(graph.nodes)): x}
    once = twice.graph_copy(graph, values)
    again = twice.graph_copy(graph, {next(iter(graph.nodes)): once})
    twice.output(again)
    gm = fx.GraphModule({}, twice)
    assert gm(torch.tensor(2.0)).item() == 42
    same(fx.GraphModule({}, copy.deepcopy(twice))(torch.tensor(2.0)), torch.tensor(42.0))


def test_proxies_append_to_a_graph():
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    graph.output((torch.relu(x) + x.shape[0]).node)
    gm = fx.GraphModule(nn.Module(), graph)
    assert gm(torch.tensor([-1.0, 2.0])).tolist() == [2, 4]
    assert repr(x) == "Proxy(x)" and hash(x) is not None


def test_operators_on_the_right_and_in_place():
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    graph.call_function(operator.iadd, (x, y))
    graph.call_function(operator.setitem, (x, 0, y))
    item = graph.call_function(operator.getitem, (x, slice(0, 1)))
    graph.output(item)
    gm = fx.GraphModule({}, graph)
    assert "x += y" in gm.code and "x[0] = y" in gm.code
    assert gm(torch.ones(2), 3.0).tolist() == [3.0]


def test_code_can_be_changed_as_it_is_written():
    gm = fx.symbolic_trace(lambda x: x + 1)

    def put_first(lines):
        return ["seen.append(x)\n", *lines]

    with gm.graph.on_generate_code(lambda current: put_first):
        gm.recompile()
        assert "seen.append(x)" in gm.code
    gm.recompile()
    assert "seen" not in gm.code

    class Named(fx.CodeGen):
        def gen_fn_def(self, free_vars, returns):
            return super().gen_fn_def(free_vars, returns) + "\n    passed = True"

    gm.graph.set_codegen(Named())
    gm.recompile()
    assert "passed = True" in gm.code and gm(torch.ones(1)).item() == 2


def test_values_in_code():
    def f(x):
        y = torch.full((2,), float("inf"), dtype=torch.float64, device=torch.device("cpu"))
        return Pair(x.to(torch.int32), y), {"k": slice(None, 2), "nan": float("nan")}, ..., 1j

    gm = fx.symbolic_trace(f)
    (a, y), rest, dots, unit = gm(torch.ones(1))
    assert a.dtype == torch.int32 and y.tolist() == [math.inf] * 2 and y.dtype == torch.float64
    assert rest["k"] == slice(None, 2) and rest["nan"] != rest["nan"] and dots is ... and unit == 1j
    assert type(gm(torch.ones(1))[0]) is Pair


# ---- graph modules ----


def test_what_a_graph_uses_is_taken_over():
    gm = fx.symbolic_trace(CASES["shared"][0])
    assert list(gm.state_dict()) == ["plain", "one.weight", "one.bias", "emb.weight"]
    graph, *_ = by_hand()
    with pytest.raises(RuntimeError, match="was not provided"):
        bad = fx.Graph()
        bad.output(bad.get_attr("w"))
        fx.GraphModule({}, bad)
    with pytest.raises(RuntimeError, match="Unsupported type"):
        fx.GraphModule(3, graph)
    with pytest.raises(AssertionError, match="Expected a Graph"):
        gm.graph = 3
    gm.graph = graph
    assert gm(torch.ones(1)).item() == 2


def test_submodules_come_and_go():
    gm = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert (
        gm.add_submodule("a.b.c", nn.Linear(2, 3)) and gm.get_submodule("a.b.c").out_features == 3
    )
    assert not gm.add_submodule("0.weight.x", nn.ReLU())
    assert gm.delete_submodule("a.b.c") and not gm.delete_submodule("a.b.c")
    assert not gm.delete_submodule("x.y")
    gm.add_submodule("unused", nn.ReLU())
    gm.delete_all_unused_submodules()
    assert [name for name, _ in gm.named_children()] == ["0", "1"]


def test_errors_show_the_generated_line(capsys):
    gm = fx.symbolic_trace(lambda x: torch.relu(x).view(3))
    with pytest.raises(RuntimeError):
        gm(torch.ones(2))
    shown = capsys.readouterr().err
    assert "Call using an FX-traced Module, line 6" in shown and "<--- HERE" in shown
    with pytest.raises(RuntimeError, match=r"While executing %view .*call_method\[target=view\]"):
        fx.Interpreter(gm).run(torch.ones(2))
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        fx.Interpreter(gm).run()


def test_folders(tmp_path, monkeypatch):
    model, inputs = CASES["convolutional"]
    gm = fx.symbolic_trace(model)
    gm.to_folder(tmp_path / "written_by_fx", "Net")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("written_by_fx")
    same(module.Net()(*inputs), model(*inputs))
    del sys.modules["written_by_fx"]


def test_printed(capsys):
    gm = fx.symbolic_trace(lambda x: x + 1)
    gm.graph.print_tabular()
    assert capsys.readouterr().out.split()[:5] == ["opcode", "name", "target", "args", "kwargs"]
    assert gm.code in str(gm)
    outer = nn.Module()
    outer.inner = gm
    traced = fx.symbolic_trace(type("Outer", (nn.Module,), {"forward": lambda s, x: x})())
    traced.inner = gm
    traced.print_readable()
    assert "class <lambda>(torch.nn.Module)" in capsys.readouterr().out


def test_hooks_see_changes():
    gm = fx.symbolic_trace(lambda x: x + 1)
    seen = []
    gm._register_create_node_hook(lambda n: seen.append(("made", n.name)))
    gm._register_erase_node_hook(lambda n: seen.append(("gone", n.name)))
    gm._register_replace_node_hook(lambda old, new, user: seen.append((old.name, new, user.name)))
    (add,) = gm.graph.find_nodes(op="call_function", target=operator.add)
    with gm.graph.inserting_before(add):
        new = gm.graph.call_function(torch.sub, add.args)
    add.replace_all_uses_with(new)
    gm.graph.erase_node(add)
    assert seen == [("made", "sub"), ("add", "sub", "output"), ("gone", "add")]


def test_arguments_by_signature():
    gm = fx.symbolic_trace(lambda x: F.relu(torch.add(x, 1, alpha=2), True))
    add, relu = gm.graph.find_nodes(op="call_function", target=torch.add), None
    relu = gm.graph.find_nodes(op="call_function", target=F.relu)
    named = add[0].normalized_arguments(gm, normalize_to_only_use_kwargs=True)
    assert set(named.kwargs) == {"input", "other", "alpha"} and named.args == ()
    named = relu[0].normalized_arguments(gm, normalize_to_only_use_kwargs=True)
    assert named.kwargs["inplace"] is True
    layer = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
    call = layer.graph.find_nodes(op="call_module")[0]
    assert list(call.normalized_arguments(layer, normalize_to_only_use_kwargs=True).kwargs) == [
        "input"
    ]
    assert call.next.normalized_arguments(layer) is None


def test_a_tracer_that_patches_by_itself():
    from rushlight.fx import _symbolic_trace as st

    class Own(fx.Tracer):
        def trace(self, root):
            self.root, self.graph = root, fx.Graph()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
            self.tensor_attrs = {root.table: "table"}
            fn, args = self.create_args_for_root(type(root).forward, True)
            cache = {}

            def read(module, name):
                return self.getattr(name, st._orig_module_getattr(module, name), cache)

            def call(module, *args, **kwargs):
                def forward(*args, **kwargs):
                    return st._orig_module_call(module, *args, **kwargs)

                return self.call_module(module, forward, args, kwargs)

            with st._Patcher() as patcher:
                patcher.patch_method(nn.Module, "__getattr__", read, deduplicate=False)
                patcher.patch_method(nn.Module, "__call__", call, deduplicate=False)
                st._patch_wrapped_functions(patcher)
                st._autowrap_check(patcher, fn.__globals__, self._autowrap_function_ids)
                self.create_node("output", "output", (self.create_arg(fn(*args)),), {})
            return self.graph

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.table = nn.Linear(2, 2), torch.ones(2)

        def forward(self, x):
            return self.layer(x) + self.table

    net = Net()
    made = fx.GraphModule(net, Own().trace(net))
    assert [node.target for node in made.graph.nodes][1:3] == ["layer", "table"]
    x = torch.randn(3, 2)
    assert torch.equal(made(x), net(x)) and nn.Module.__call__ is st._orig_module_call
