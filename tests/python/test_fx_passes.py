"""Passes over graphs: what is found, cut, folded, renamed, and still computes the same."""

import operator
import pdb

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight.fx.experimental import const_fold, debug
from rushlight.fx.experimental.normalize import NormalizeArgs, NormalizeOperators
from rushlight.fx.experimental.optimization import fuse
from rushlight.fx.experimental.schema_type_annotation import AnnotateTypesWithSchema
from rushlight.fx.operator_schemas import (
    check_for_mutable_operation,
    create_type_hint,
    type_matches,
)
from rushlight.fx.passes import graph_manipulation, operator_support, pass_manager, tools_common
from rushlight.fx.passes.annotate_getitem_nodes import annotate_getitem_nodes
from rushlight.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from rushlight.fx.passes.fake_tensor_prop import FakeTensorProp
from rushlight.fx.passes.infra import pass_manager as infra
from rushlight.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from rushlight.fx.passes.infra.pass_base import PassResult
from rushlight.fx.passes.shape_prop import ShapeProp
from rushlight.fx.passes.split_utils import split_by_tags
from rushlight.fx.passes.utils import compare_graphs
from rushlight.fx.passes.utils.fuser_utils import (
    fuse_as_graphmodule,
    fuse_by_partitions,
    validate_partition,
)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.randn(4))

    def forward(self, x):
        y = torch.relu(self.first(x)) * (self.scale + 1)
        z = self.second(y).tanh()
        return z + y, z


def traced():
    return fx.symbolic_trace(Network())


def same(module, other, *args):
    expected, got = module(*args), other(*args)
    if isinstance(expected, torch.Tensor):
        return torch.equal(expected, got)
    return all(torch.equal(a, b) for a, b in zip(expected, got, strict=True))


x = torch.randn(3, 4)


def test_constants_are_computed_once():
    folded = const_fold.split_const_subgraphs(traced())
    assert same(traced(), folded, x) and folded.has_folding_been_run
    targets = [n.target for n in folded.graph.nodes if n.op == "get_attr"]
    assert targets == ["_FX_CONST_FOLDED_ATTRS"] and folded.const_subgraph_module is not None
    assert torch.equal(folded._FX_CONST_FOLDED_ATTRS, Network().scale + 1)
    by_name = const_fold.split_const_subgraphs(traced())(x=x)
    assert all(torch.equal(a, b) for a, b in zip(by_name, folded(x), strict=True))
    with pytest.raises(AssertionError):
        folded.run_folding()
    kept = const_fold.split_const_subgraphs(
        traced(), skip_folding_node_fn=lambda node: node.target is operator.add
    )
    assert kept.const_subgraph_module is None and same(traced(), kept, x)

    class Several(nn.Module):
        def __init__(self):
            super().__init__()
            self._FX_CONST_FOLDED_ATTRS = nn.Parameter(torch.ones(2))

        def forward(self, x):
            a = self._FX_CONST_FOLDED_ATTRS + 1
            return x * a - (a * 3)

    several = const_fold.split_const_subgraphs(Several())
    assert several(torch.ones(2)).tolist() == [-4, -4]
    names = {n.target for n in several.graph.nodes if n.op == "get_attr"}
    assert len(names) == 2 and "_FX_CONST_FOLDED_ATTRS" not in names


def test_repetitions_become_one():
    def f(x):
        a, b = torch.sin(x), torch.sin(x)
        return a + b + torch.rand_like(x) * 0 + torch.rand_like(x) * 0

    module = fx.symbolic_trace(f)
    result = CSEPass()(module)
    assert result.modified and torch.equal(result.graph_module(x), 2 * torch.sin(x))
    targets = [n.target for n in result.graph_module.graph.nodes]
    assert targets.count(torch.sin) == 1 and targets.count(torch.rand_like) == 2
    assert not CSEPass()(result.graph_module).modified
    banned = get_CSE_banned_ops()
    assert torch.ops.aten.add_ in banned and torch.ops.aten.rand_like in banned
    assert torch.ops.aten.sum not in banned and torch.ops.aten.sum.default not in banned
    assert not CSEPass(banned_ops={torch.ops.aten.sin})(module).modified


def test_parts_become_modules():
    module = traced()
    inner = [n for n in module.graph.nodes if n.name in ("relu", "mul", "add")]
    order = {n.name: n for n in inner}
    made, inputs, outputs = fuse_as_graphmodule(
        module, [order["relu"], order["add"], order["mul"]], "Part"
    )
    assert [n.name for n in inputs] == ["first", "scale"] and [n.name for n in outputs] == ["mul"]
    assert torch.equal(made(x, Network().scale), torch.relu(x) * (Network().scale + 1))
    fused = fuse_by_partitions(module, [dict.fromkeys(inner)])
    assert same(Network(), fused, x) and type(fused.fused_0).__name__ == "fused_0"
    # A way out of the nodes and back in.
    whole = traced()
    ends = [n for n in whole.graph.nodes if n.name in ("first", "mul")]
    assert not validate_partition(ends)
    with pytest.raises(AssertionError, match="cycles"):
        fuse_as_graphmodule(whole, ends, "Part")


def test_what_a_backend_supports():
    support = operator_support.OperatorSupport(
        {"torch.relu": None, "_operator.mul": None, "_operator.add": None}
    )
    module = traced()
    ShapeProp(module).propagate(x)
    parts = CapabilityBasedPartitioner(module, support).propose_partitions()
    assert (
        sorted(n.name for n in parts[0].nodes) == ["add", "add_1", "mul", "relu"] or len(parts) == 1
    )
    fused = CapabilityBasedPartitioner(module, support).partition_and_fuse()
    assert same(Network(), fused, x) and hasattr(fused, "fused_0")
    names = {
        tools_common.get_node_target(dict(traced().named_modules()), n)
        for n in traced().graph.nodes
        if n.op.startswith("call")
    }
    assert {"torch.relu", "_operator.mul", "tanh"} <= names
    assert any(name.endswith("linear.Linear") for name in names)
    none = operator_support.OpSupports.decline_if_input_dtype(torch.float32)
    both = operator_support.chain(support, none)
    either = operator_support.any_chain(support, none)
    node = next(n for n in module.graph.nodes if n.op == "call_module")
    modules = dict(module.named_modules())
    assert not both.is_node_supported(modules, node)
    named = operator_support.OpSupports.decline_if_node_in_names({node.name})
    assert not named.is_node_supported({}, node)
    assert not either.is_node_supported(modules, node)  # a layer, of floats
    typed = operator_support.OperatorSupport({"torch.relu": ([[torch.float64]], {})})
    again = fx.symbolic_trace(Network())
    ShapeProp(again).propagate(x)
    relu = next(n for n in again.graph.nodes if n.target is torch.relu)
    assert not typed.is_node_supported({}, relu)
    with pytest.raises(AssertionError, match="Expect op types"):
        tools_common.get_node_target({}, next(iter(again.graph.nodes)))


def test_a_module_is_cut_by_tags():
    module = traced()
    for node in module.graph.nodes:
        node.tag = "late" if node.name in ("second", "tanh", "add_1") else "early"
    cut, names = split_by_tags(module, ["early", "late"], return_fqn_mapping=True)
    assert same(Network(), cut, x)
    assert [name for name, _ in cut.named_children()] == ["early", "late"]
    assert names["early.first"] == "first" and names["late.second"] == "second"
    with pytest.raises(RuntimeError, match="is before"):
        split_by_tags(module, ["late", "early"])


def test_orders_and_comparisons():
    module, other = traced(), traced()
    assert compare_graphs(module.graph, other.graph)
    nodes = list(module.graph.nodes)
    # Behind what uses it: the graph is put in order again.
    module.graph.output_node().append(nodes[1])
    for sort in (tools_common.legalize_graph, tools_common.stable_topological_sort):
        sort(module)
        module.graph.lint()
        assert same(Network(), module, x)
    assert not compare_graphs(module.graph, fx.symbolic_trace(nn.ReLU()).graph)


def test_sizes_and_targets():
    module = traced()
    with pytest.raises(RuntimeError, match="no tensor metadata"):
        graph_manipulation.get_tensor_meta(next(iter(module.graph.nodes)))
    graph_manipulation.get_size_of_all_nodes(module, [x])
    sizes = {n.name: n.size_bytes for n in module.graph.nodes if n.op != "output"}
    assert sizes["x"] == (48, 48) and sizes["first"] == (48, 48 + 80)
    graph_manipulation.replace_target_nodes_with(
        module, "call_function", torch.relu, "call_function", torch.abs
    )
    assert [n.target for n in module.graph.nodes].count(torch.abs) == 1


def test_arguments_by_name_and_operators():
    def f(x, y):
        return torch.add(torch.sub(x, y), y).clamp(0) + torch.add(x, y, alpha=2)

    module = fx.symbolic_trace(f)
    named = NormalizeArgs(module).transform()
    y = torch.randn(3, 4)
    assert same(module, named, x, y)
    calls = [n for n in named.graph.nodes if n.target in (torch.add, torch.sub)]
    assert calls and all(not n.args and n.kwargs["input"] is not None for n in calls)
    operators = NormalizeOperators(module).transform()
    targets = [n.target for n in operators.graph.nodes if n.op == "call_function"]
    assert targets.count(operator.sub) == 1 and targets.count(torch.add) == 1
    assert same(module, operators, x, y)
    layers = NormalizeArgs(traced()).transform()
    assert same(Network(), layers, x)
    assert next(n for n in layers.graph.nodes if n.op == "call_module").kwargs.keys() == {"input"}


def test_types_of_nodes():
    annotated = AnnotateTypesWithSchema(traced()).transform()
    kinds = {n.name: n.type for n in annotated.graph.nodes}
    assert kinds["relu"] is torch.Tensor and kinds["scale"] is nn.Parameter

    graph = fx.Graph()
    pair = graph.placeholder("pair", type_expr=tuple[int, torch.Tensor])
    first = graph.call_function(operator.getitem, (pair, 0))
    second = graph.call_function(operator.getitem, (pair, 1))
    many = graph.placeholder("many", type_expr=list[float])
    third = graph.call_function(operator.getitem, (many, 5))
    annotate_getitem_nodes(graph)
    assert (first.type, second.type, third.type) == (int, torch.Tensor, float)

    assert create_type_hint([int, int]) == list[int] and create_type_hint(3) == 3
    assert type_matches(list[int], int) and type_matches(int | float, float)
    assert not type_matches(int, float) and not type_matches(list[torch.Tensor], list[int])
    with pytest.raises(RuntimeError, match="mutable operation"):
        check_for_mutable_operation(torch.relu_, (x,), {})
    check_for_mutable_operation(torch.relu, (x,), {})
    check_for_mutable_operation(len, ((),), {})


def test_values_without_memory():
    module = fx.symbolic_trace(lambda a, n: (a @ a.mT).relu() * n)
    result = FakeTensorProp(module).propagate(x, 3)
    assert result.shape == (3, 3)
    values = {n.name: n.meta["val"] for n in module.graph.nodes if "val" in n.meta}
    assert values["relu"].shape == (3, 3) and values["n"] == 3
    assert all(isinstance(v, FakeTensor | int) for v in values.values())
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(x)
    given = FakeTensorProp(module, mode).propagate_dont_convert_inputs(fake, 2)
    assert given.fake_mode is mode


def test_passes_in_order():
    def add_to_mul(gm):
        for node in gm.graph.nodes:
            if node.target is operator.add:
                node.target = operator.mul
        gm.recompile()

    wrapped = infra.pass_result_wrapper(add_to_mul)
    module = fx.symbolic_trace(lambda a: a + a)
    result = infra.PassManager([wrapped])(module)
    assert isinstance(result, PassResult) and result.graph_module(torch.tensor(3.0)) == 9

    def one(gm):
        return PassResult(gm, False)

    def two(gm):
        return PassResult(gm, False)

    constraint = infra.this_before_that_pass_constraint(two, one)
    manager = infra.PassManager([one, two], [constraint])
    with pytest.raises(RuntimeError, match="constraint violated"):
        manager.validate_constraints()
    manager.solve_constraints()
    assert manager.passes == [two, one]
    back = infra.this_before_that_pass_constraint(one, two)
    with pytest.raises(RuntimeError, match="Circular dependency"):
        infra.PassManager([one, two], [constraint, back]).solve_constraints()
    with pytest.raises(TypeError, match="one variable"):
        manager.add_checks(lambda a, b: None)
    with pytest.raises(RuntimeError, match="add_to_mul.*one"):
        infra.PassManager([one, add_to_mul])(module)

    def fail(gm):
        raise ValueError("checked")

    manager.add_checks(fail)
    with pytest.raises(ValueError, match="checked"):
        manager(module)

    simple = pass_manager.PassManager([pass_manager.loop_pass(lambda v: v + 1, n_iter=3)])
    simple.add_pass(pass_manager.log_hook(lambda v: v * 2))
    assert simple(1) == 8
    simple.add_constraint(pass_manager.these_before_those_pass_constraint(len, abs))
    assert simple(0) == 6
    assert pass_manager.loop_pass(lambda v: v + 1, predicate=lambda v: v < 9)(0) == 9
    assert pass_manager.inplace_wrapper(lambda v: v.append(1))([]) == [1]


def test_a_debugger_is_set(monkeypatch):
    stops = []
    monkeypatch.setattr(pdb, "set_trace", lambda: stops.append(1))
    module = debug.set_trace(traced())
    assert same(Network(), module, x) and stops == [1]


def test_pictures():
    drawer = pytest.importorskip("rushlight.fx.passes.graph_drawer")
    if not drawer.HAS_PYDOT:
        with pytest.raises(RuntimeError, match="pydot"):
            drawer.FxGraphDrawer(traced(), "network")
        return
    module = traced()
    ShapeProp(module).propagate(x)
    text = drawer.FxGraphDrawer(module, "network").get_dot_graph().to_string()
    assert "op_code=call_module" in text and "first.weight" in text and "torch.float32" in text


class TwoNorms(nn.Module):
    """A convolution before two batch norms, under two names, and one before one."""

    def __init__(self):
        super().__init__()
        self.conv = self.same = nn.Conv2d(3, 3, 1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(3) for _ in range(3))
        self.last = nn.Conv2d(3, 3, 1)
        for norm in self.norms:
            nn.init.uniform_(norm.weight)
            nn.init.uniform_(norm.running_mean)

    def forward(self, x):
        y = self.norms[1](self.same(self.norms[0](self.conv(x))))
        return self.norms[2](self.last(y))


def test_convolutions_that_are_shared_are_not_folded():
    net, x = TwoNorms().eval(), torch.randn(2, 3, 4, 4)
    fused = fuse(net)
    assert torch.allclose(fused(x), net(x), atol=1e-6)
    assert sum(isinstance(m, nn.BatchNorm2d) for m in fused.modules()) == 2
