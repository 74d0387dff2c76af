"""Graphs of the same modules: nodes, names, targets and code are PyTorch's."""

from importlib import import_module

import pytest

import rushlight as ours
from tests.python.fx_modules import make

torch = pytest.importorskip("torch")
pytest.importorskip("torch.fx.passes.split_module")

THEIRS, OURS = make(torch), make(ours)
# PyTorch passes defaults of functions of nn.functional on; the rest of the line is the same.
DEFAULTS = (", mode = 'constant', value = None",)


def traced(library, cases, name, **options):
    function, _ = cases[name]
    return library.fx.symbolic_trace(function, **options)


def plain(text):
    for default in DEFAULTS:
        text = text.replace(default, "")
    return text


@pytest.mark.parametrize("name", OURS)
def test_nodes_and_code(name):
    theirs, mine = (traced(lib, cases, name) for lib, cases in ((torch, THEIRS), (ours, OURS)))
    rows = [
        [(n.op, n.name, n._pretty_print_target(n.target), len(n.args)) for n in g.graph.nodes]
        for g in (theirs, mine)
    ]
    assert rows[0] == rows[1]
    assert plain(theirs.code) == mine.code
    lines = [plain(str(g.graph)) for g in (theirs, mine)]
    if "pad" not in lines[0]:
        assert lines[0] == lines[1]


def specialized(library):
    def branch(x, flag, n=3, other=None):
        return x + n if flag and other is None else x - 1

    return library.fx.symbolic_trace(branch, concrete_args={"flag": True, "other": None})


def containers(library):
    def f(x, y):
        return {"sum": x["a"] + x["b"][0] * y[1]}

    ph = library.fx.PH
    return library.fx.symbolic_trace(f, concrete_args={"x": {"a": ph, "b": [ph, 3]}, "y": (ph, ph)})


@pytest.mark.parametrize("make_one", [specialized, containers])
def test_given_arguments(make_one):
    theirs, mine = make_one(torch), make_one(ours)
    assert theirs.code == mine.code and str(theirs.graph) == str(mine.graph)


NAMES = [
    "add",
    "add",
    "add_1",
    "add_1",
    "add_5",
    "add",
    "1x",
    "a.b",
    "pow",
    "class",
    "torch",
    "inf",
    "relu_0",
    "relu",
    "relu",
    "x_2",
    "x",
    "x",
    "x_2",
    "getattr",
    "getattr",
    "Conv2d",
    "a-b-c",
    "__x__",
    "add_01",
    "add_0",
]


def test_names_in_a_graph():
    spaces = [library.fx.graph._Namespace() for library in (torch, ours)]
    for candidate in NAMES:
        theirs, mine = (space.create_name(candidate, None) for space in spaces)
        assert theirs == mine, candidate


def test_names_of_targets():
    for name in ("relu", "nn.functional.relu", "nn.Linear", "Tensor.add", "sigmoid", "nn.GELU"):
        values = []
        for library in (torch, ours):
            value = library
            for part in name.split("."):
                value = getattr(value, part)
            values.append(library.fx.Graph._target_to_str(library.fx.Graph(), value))
        assert values[0] == values[1], name


def by_hand(library):
    fx = library.fx
    graph = fx.Graph()
    x = graph.placeholder("x", type_expr=int, default_value=3)
    y = graph.call_function(library.add, (x, x), {"alpha": 2}, type_expr=library.Tensor)
    with graph.inserting_before(y):
        z = graph.call_method("neg", (x,))
        graph.call_function(library.mul, (z, [1.5, None, slice(1, None)]))
    with graph.inserting_after(x):
        graph.get_attr("w")
    graph.output((y, {"k": z}), type_expr=tuple[library.Tensor, int])
    w = library.ones(2)
    return fx.GraphModule({"w": w}, graph, class_name="Made")


@pytest.mark.filterwarnings("ignore:Attempted to insert")
def test_graphs_made_by_hand():
    theirs, mine = by_hand(torch), by_hand(ours)
    assert theirs.code == mine.code
    assert str(theirs.graph) == str(mine.graph)


def test_patterns_are_replaced_alike():
    def rewritten(library):
        def f(x, w):
            y = library.relu(x + w) * 2
            return library.relu(y + x) - w

        gm = library.fx.symbolic_trace(f)
        found = library.fx.replace_pattern(
            gm, lambda a, b: library.relu(a + b), lambda a, b: library.sigmoid(a) * b
        )
        return len(found), gm.code

    assert rewritten(torch) == rewritten(ours)


def test_split_modules_are_alike():
    def split(library, cases):
        module = import_module(f"{library.__name__}.fx.passes.split_module")
        gm = traced(library, cases, "convolutional")
        number = iter(range(100))
        return module.split_module(gm, gm, lambda node: next(number) // 4)

    theirs, mine = split(torch, THEIRS), split(ours, OURS)
    assert theirs.code == mine.code
    assert [n for n, _ in theirs.named_children()] == [n for n, _ in mine.named_children()]
    for (_, a), (_, b) in zip(theirs.named_children(), mine.named_children(), strict=True):
        assert a.code == b.code


def test_arguments_of_functions_written_in_python():
    """What has no default is positional, the rest keywords, given or not."""

    def recorded(p):
        f = p.nn.functional
        calls = (
            lambda x: f.relu(x, True),
            lambda x: f.dropout(x, 0.3),
            lambda x: f.softmax(x, 1),
            lambda x: f.max_pool2d(x, 2),
            lambda x: f.interpolate(x, scale_factor=2),
            lambda x: f.cross_entropy(x, x, reduction="sum"),
            lambda x: f.leaky_relu(x, 0.1),
            lambda x: f.unfold(input=x, kernel_size=2),
            lambda x: f.gelu(x),
            lambda x: f.linear(x, weight=x),
            lambda x: p.einsum("ij->i", x),
            lambda x: p.cdist(x, x),
        )
        out = []
        for call in calls:
            (node,) = (n for n in p.fx.symbolic_trace(call).graph.nodes if n.op == "call_function")
            out.append((node.target.__name__, str(node.args), dict(node.kwargs)))
        return [(name, args, str(sorted(kwargs.items()))) for name, args, kwargs in out]

    assert recorded(ours) == recorded(torch)
    with pytest.raises(TypeError):
        ours.fx.symbolic_trace(lambda x: ours.nn.functional.relu(x, foo=1))
