"""What is done with graphs: patterns, pieces, shapes, passes, fusing, graphs of ops."""

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import fx, nn
from rushlight.fx import subgraph_rewriter
from rushlight.fx.experimental import optimization, symbolic_shapes
from rushlight.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from rushlight.fx.passes.infra.pass_base import PassBase, PassResult
from rushlight.fx.passes.infra.pass_manager import PassManager
from rushlight.fx.passes.shape_prop import ShapeProp
from rushlight.fx.passes.split_module import split_module
from tests.python.fx_modules import make

CASES = make(torch)


def traced(function):
    return fx.symbolic_trace(function)


def test_patterns_are_replaced():
    def f(x, w):
        a = torch.cat([x, w]).sum()
        b = torch.cat([w, x]).sum()
        return a + b + torch.max(x)

    gm = traced(f)
    x, w = torch.randn(3), torch.randn(3)
    expected = f(x, w)
    found = fx.replace_pattern(
        gm, lambda a, b: torch.cat([a, b]).sum(), lambda a, b: a.sum() + b.sum()
    )
    assert len(found) == 2 and "cat" not in gm.code
    torch.testing.assert_close(gm(x, w), expected)
    names = {pattern.name: node.name for pattern, node in found[0].nodes_map.items()}
    assert names["a"] == "x" and found[0].anchor.name == "sum_1"
    gm.graph.lint()


def test_matches_do_not_overlap_and_follow_each_other():
    gm = traced(lambda x: torch.neg(torch.neg(torch.neg(torch.neg(x)))))
    assert len(fx.replace_pattern(gm, lambda x: torch.neg(torch.neg(x)), lambda x: x * 1)) == 2
    assert gm.code.count("* 1") == 2 and gm(torch.ones(1)).item() == 1


def test_values_that_others_use_stay():
    def f(x):
        y = torch.relu(x)
        return torch.neg(y) + y

    gm = traced(f)
    assert not fx.replace_pattern(gm, lambda x: torch.neg(torch.relu(x)), lambda x: x)
    assert len(fx.replace_pattern(gm, torch_relu, lambda x: x.clamp(min=0))) == 1
    assert gm(torch.tensor([-1.0, 2.0])).tolist() == [0, 0]


def torch_relu(x):
    return torch.relu(x)


def test_several_outputs():
    def f(x):
        a, b = torch.sin(x), torch.cos(x)
        return a * b

    gm = traced(f)
    found = fx.replace_pattern(
        gm, lambda x: (torch.sin(x), torch.cos(x)), lambda x: (torch.cos(x), torch.sin(x))
    )
    x = torch.randn(3)
    assert len(found) == 1 and torch.equal(gm(x), f(x))
    with pytest.raises(AssertionError, match="as many outputs"):
        fx.replace_pattern(gm, lambda x: torch.sin(x), lambda x: (x, x))
    with pytest.raises(AssertionError, match="inputs"):
        fx.replace_pattern(gm, lambda x: torch.sin(x), lambda x, y: x)
    with pytest.raises(ValueError, match="computes something"):
        fx.replace_pattern(gm, lambda x: x, lambda x: x)


def test_modules_come_with_a_replacement():
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.new = nn.Linear(2, 2)

        def forward(self, x):
            return self.new(x)

    other = Other()
    gm = traced(lambda x: torch.relu(x) + 1)
    fx.replace_pattern(gm, torch_relu, traced(other))
    x = torch.ones(2)
    assert torch.equal(gm(x), other.new(x) + 1) and gm.new is other.new


def test_filters_and_literals():
    gm = traced(lambda x: F.dropout(x, 0.3) + F.dropout(x, 0.5))
    assert not fx.replace_pattern(gm, lambda x: F.dropout(x, 0.1), lambda x: x)
    done = subgraph_rewriter.replace_pattern_with_filters(
        gm,
        lambda x: F.dropout(x, 0.1),
        lambda x: x * 2,
        [lambda match, graph, pattern: match.returning_nodes[0].kwargs["p"] == 0.5],
        ignore_literals=True,
    )
    assert len(done) == 1 and [n.name for n in done[0].replacements] == ["mul"]
    made = []

    def make_one(match, graph, pattern):
        made.append(match)
        return traced(lambda x: x - 1).graph

    subgraph_rewriter.replace_pattern_with_filters(
        gm, lambda x: F.dropout(x, 0.3), replacement_callback=make_one
    )
    assert len(made) == 1 and gm(torch.ones(1)).item() == 2
    with pytest.raises(AssertionError, match="replacement or a callback"):
        subgraph_rewriter.replace_pattern_with_filters(gm, lambda x: x * 2)


@pytest.mark.parametrize("name", ["convolutional", "attention", "shared"])
def test_pieces_compute_the_same(name):
    model, inputs = CASES[name]
    gm, numbers, names = traced(model), iter(range(100)), {}
    pieces = split_module(gm, model, lambda node: next(numbers) // 3, names)
    torch.testing.assert_close(pieces(*inputs), model(*inputs), rtol=0, atol=0)
    assert all(child.graph.lint() is None for child in pieces.children())
    assert len(list(pieces.children())) > 2
    if name == "convolutional":
        assert names["submod_0.stem"] == "stem" and "blocks.0.conv" in names.values()


def test_pieces_cannot_need_each_other():
    gm = traced(lambda x: torch.sin(torch.cos(torch.sin(x))))
    with pytest.raises(RuntimeError, match="cycle exists between partitions"):
        split_module(gm, gm, lambda node: int(node.target is torch.cos))
    with pytest.raises(RuntimeError, match="cycle exists"):
        split_module(gm, gm, lambda n: int(n.target is torch.cos), keep_original_order=True)
    kept = split_module(gm, gm, lambda n: 0, keep_original_order=True, keep_original_node_name=True)
    assert "sin_1" in kept.submod_0.code


def test_shapes_are_noted():
    model, inputs = CASES["convolutional"]
    gm = traced(model)
    out = ShapeProp(gm).propagate(*inputs)
    meta = {node.name: node.meta for node in gm.graph.nodes}
    assert out.shape == meta["output"]["tensor_meta"].shape == (2, 5)
    stem = meta["stem"]["tensor_meta"]
    assert stem.shape == (2, 4, 6, 6) and stem.dtype == torch.float32 and stem.requires_grad
    assert stem.memory_format is torch.contiguous_format and meta["stem"]["type"] is torch.Tensor
    several = traced(lambda x: x.split(1))
    ShapeProp(several).propagate(torch.ones(2))
    node = several.graph.find_nodes(op="call_method", target="split")[0]
    assert [known.shape for known in node.meta["tensor_meta"]] == [(1,), (1,)]
    line = gm.graph.output_node().prev.format_node(include_tensor_metadata=True)
    assert "torch.float32[2, 5]" in line


class Halve(PassBase):
    """Replaces one addition by a subtraction."""

    def requires(self, graph_module):
        graph_module.graph.lint()

    def call(self, graph_module):
        import operator

        nodes = graph_module.graph.find_nodes(op="call_function", target=operator.add)
        if nodes:
            nodes[0].target = operator.sub
            graph_module.recompile()
        return PassResult(graph_module, bool(nodes))


def test_passes_follow_each_other():
    gm = traced(lambda x: x + 1 + 2)
    manager = PassManager([Halve()], steps=5, run_checks_after_each_pass=True)
    result = manager(gm)
    assert result.modified and result.graph_module(torch.zeros(1)).item() == -3
    manager.add_pass(lambda module: None)
    assert not manager(gm).modified

    def fail(module):
        raise RuntimeError("checked")

    manager.add_checks(fail)
    with pytest.raises(RuntimeError, match="checked"):
        manager(gm)
    manager.suppress_check_failures = True
    manager(gm)


def test_batch_norms_join_convolutions():
    model, inputs = CASES["convolutional"]
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    fused = optimization.fuse(model)
    assert not any(isinstance(m, nn.BatchNorm2d) for m in fused.modules())
    torch.testing.assert_close(fused(*inputs), model(*inputs), rtol=1e-4, atol=1e-5)
    encoder, inputs = CASES["encoder"]
    plain = optimization.remove_dropout(encoder)
    assert "2" not in dict(plain.named_children())
    torch.testing.assert_close(plain(*inputs), encoder(*inputs), rtol=0, atol=0)


def test_graphs_of_ops():
    def loss(x, w):
        y = (x @ w["w"]).relu().sum()
        return torch.autograd.grad(y, w["w"])[0]

    x, w = torch.randn(4, 3), torch.randn(3, 2, requires_grad=True)
    gm = make_fx(loss)(x, {"w": w})
    targets = [str(node.target) for node in gm.graph.nodes if node.op == "call_function"]
    assert "aten.mm.default" in targets and "aten.threshold_backward.default" in targets
    x, w = torch.randn(4, 3), torch.randn(3, 2, requires_grad=True)
    assert torch.equal(gm(x, w), loss(x, {"w": w}))
    assert get_proxy_mode() is None
    factor = torch.full((2,), 3.0)

    def inplace(x):
        assert get_proxy_mode() is not None
        a, b = x.add_(1).split(2)
        return a * factor, b

    gm = make_fx(inplace)(torch.ones(4, 2))
    a, b = gm(torch.zeros(4, 2))
    assert a.tolist() == [[3, 3]] * 2 and b.tolist() == [[1, 1]] * 2
    table = {torch.ops.aten.relu.default: lambda x: x.clamp(min=0)}
    gm = make_fx(torch.relu, decomposition_table=table)(torch.ones(2))
    assert "relu.default" not in gm.code and gm(torch.tensor([-1.0, 1.0])).tolist() == [0, 1]
    with pytest.raises(NotImplementedError, match="symbolic"):
        make_fx(torch.relu, tracing_mode="symbolic")


def test_sizes_are_numbers():
    s = symbolic_shapes
    assert s.guard_or_false(True) and not s.guard_or_true(False) and s.statically_known_true(2 > 1)
    assert s.free_symbols([1, (2, 3)]) == set() and not s.has_free_symbols(torch.ones(1))
    assert not s.is_symbolic(3) and s.is_concrete_int(3) and s.is_concrete_bool(True)
    assert s.hint_int(3) == 3 and s.hint_int(None, fallback=4) == 4
    assert s.sym_eq([1, (2,)], [1, (2,)]) and not s.sym_eq([1], [1, 2])
    assert issubclass(s.GuardOnDataDependentSymNode, RuntimeError)
