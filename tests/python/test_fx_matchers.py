"""Patterns found in graphs, nodes by their source, and what is merged or written in place."""

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import fx, nn
from rushlight.fx.experimental.merge_matmul import may_depend_on, merge_matmul
from rushlight.fx.passes.utils.matcher_utils import SubgraphMatcher
from rushlight.fx.passes.utils.matcher_with_name_node_map_utils import (
    SubgraphMatcherWithNameNodeMap,
)
from rushlight.fx.passes.utils.source_matcher_utils import (
    check_subgraphs_connected,
    get_source_partitions,
)


def graph_of(function):
    return fx.symbolic_trace(function).graph


def names(nodes):
    return [str(node) for node in nodes]


# ---- patterns ----


def test_places_of_a_pattern():
    matcher = SubgraphMatcher(graph_of(lambda a, b: torch.add(a, b).relu()))
    graph = graph_of(lambda x, y: torch.add(torch.add(x, y).relu(), y).relu())
    first, second = matcher.match(graph)
    assert first.anchors == matcher.pattern_anchors and names(first.anchors) == ["relu"]
    assert names(first.placeholder_nodes) == ["x", "y"] and names(first.returning_nodes) == ["relu"]
    assert names(second.placeholder_nodes) == ["relu", "y"]
    assert first.nodes_map[matcher.pattern_anchors[0]] is first.returning_nodes[0]


def test_what_is_used_elsewhere_is_no_match():
    matcher = SubgraphMatcher(graph_of(lambda a: a.relu().tanh()))
    assert len(matcher.match(graph_of(lambda x: x.relu().tanh()))) == 1

    def leaks(x):
        y = x.relu()
        return y.tanh() + y

    assert matcher.match(graph_of(leaks)) == []


def test_inputs_of_a_pattern_are_different_values():
    matcher = SubgraphMatcher(graph_of(lambda a, b: torch.add(a, b)))
    assert matcher.match(graph_of(lambda x: torch.add(x, x))) == []
    (match,) = matcher.match(graph_of(lambda x: torch.add(x, 2)))
    assert match.placeholder_nodes[1] == 2


def test_no_way_leads_out_of_a_match_and_back():
    matcher = SubgraphMatcher(graph_of(lambda a, b: (a.relu(), torch.add(b, 1))))
    assert len(matcher.match(graph_of(lambda x, y: (x.relu(), torch.add(y, 1))))) == 1
    assert matcher.match(graph_of(lambda x: torch.add(x.relu().tanh(), 1))) == []


def test_literals_and_overlaps():
    graph = graph_of(lambda x: torch.add(torch.add(x, 1), 2))
    pattern = graph_of(lambda a: torch.add(a, 1))
    assert len(SubgraphMatcher(pattern).match(graph)) == 1
    assert len(SubgraphMatcher(pattern, ignore_literals=True).match(graph)) == 2
    chain = graph_of(lambda x: x.relu().relu().relu())
    twice = graph_of(lambda a: a.relu().relu())
    assert len(SubgraphMatcher(twice).match(chain)) == 1
    assert len(SubgraphMatcher(twice, remove_overlapping_matches=False).match(chain)) == 2


def test_inputs_and_outputs_of_the_graph():
    graph = graph_of(lambda x: x.relu().relu())
    pattern = graph_of(lambda a: a.relu())
    assert len(SubgraphMatcher(pattern, match_placeholder=True).match(graph)) == 1
    (match,) = SubgraphMatcher(pattern, match_output=True).match(graph)
    assert names(match.returning_nodes) == ["relu_1"]


def test_defaults_of_overloads_count():
    op = torch.ops.aten.add.Tensor

    def short(x, y):
        return op(x, y)

    (match,) = SubgraphMatcher(graph_of(short)).match(graph_of(lambda x, y: op(x, y, alpha=1)))
    assert names(match.placeholder_nodes) == ["x", "y"]
    assert SubgraphMatcher(graph_of(short)).match(graph_of(lambda x, y: op(x, y, alpha=2))) == []


def test_parameters_are_any_of_their_class():
    class Scaled(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.w = nn.Parameter(torch.rand(n))

        def forward(self, x):
            return x * self.w

    assert len(SubgraphMatcher(graph_of(Scaled(2))).match(graph_of(Scaled(3)))) == 1


def test_what_is_no_pattern():
    with pytest.raises(ValueError, match="no nodes"):
        SubgraphMatcher(fx.Graph())

    def unused(x):
        x.tanh()
        return x.relu()

    graph = graph_of(unused)
    with pytest.raises(AssertionError, match="tanh"):
        SubgraphMatcher(graph)


def test_nodes_of_a_pattern_by_name():
    def pattern(x, w):
        product = F.linear(x, w)
        return product.relu(), {"product": product}

    matcher = SubgraphMatcherWithNameNodeMap(fx.symbolic_trace(pattern))
    graph = graph_of(lambda x, w: F.linear(x, w).relu() * 2)
    (match,) = matcher.match(graph)
    assert names(match.name_node_map.values()) == ["linear"]
    assert match.name_node_map["product"] in graph.nodes
    with pytest.raises(AssertionError, match="dict"):
        SubgraphMatcherWithNameNodeMap(fx.symbolic_trace(lambda x: x.relu()))


# ---- sources ----


class Inside(fx.Tracer):
    """Traces into all modules."""

    def is_leaf_module(self, m, module_qualified_name):
        return False


def test_nodes_by_their_module():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    graph = Inside().trace(model)
    found = get_source_partitions(graph, [nn.Linear, nn.ReLU, nn.Conv2d])
    assert set(found) == {nn.Linear, nn.ReLU}
    first, second = found[nn.Linear]
    (relu,) = found[nn.ReLU]
    assert names(first.nodes) == names(first.output_nodes) == ["linear"]
    assert names(relu.input_nodes) == ["linear"] and relu.source is nn.ReLU
    assert check_subgraphs_connected(first, relu) and check_subgraphs_connected(relu, second)
    assert not check_subgraphs_connected(relu, first)
    kept = get_source_partitions(graph, [nn.Linear], lambda node: str(node) != "linear")
    assert len(kept[nn.Linear]) == 1


def test_nodes_of_exported_programs_by_their_module():
    """Their graphs name PyTorch's classes."""
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    graph = torch.export.export(model, (torch.ones(2, 3),)).graph
    found = get_source_partitions(graph, [nn.Linear, nn.ReLU])
    (linear,), (relu,) = found[nn.Linear], found[nn.ReLU]
    assert names(linear.nodes) == ["linear"] and check_subgraphs_connected(linear, relu)


def test_nodes_by_what_they_say():
    graph = graph_of(lambda x, w: (x * w + 1).relu())
    product, total = list(graph.nodes)[2:4]
    for node in (product, total):
        node.meta["source_fn_stack"] = [("scaled", "scale")]
    (one,) = get_source_partitions(graph, ["scale"])["scale"]
    assert names(one.nodes) == ["mul", "add"] and names(one.output_nodes) == ["add"]
    assert names(one.input_nodes) == ["x", "w"] and one.params == []


# ---- products ----


def test_products_with_one_factor_become_one():
    class Products(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.v = (nn.Parameter(torch.rand(4, n)) for n in (3, 4))

        def forward(self, a, b):
            first = torch.matmul(a, self.w) + 1
            other = torch.matmul(a, self.v)
            return first, torch.matmul(b, self.w), other, torch.matmul(other, self.v)

    module = Products()
    args = torch.rand(2, 4), torch.rand(5, 4)
    merged = merge_matmul(module)
    for got, wanted in zip(merged(*args), module(*args), strict=True):
        torch.testing.assert_close(got, wanted)
    targets = [node.target for node in merged.graph.nodes]
    assert targets.count(torch.matmul) == 3  # those of `v` need each other


def test_what_a_node_needs():
    graph = graph_of(lambda x, y: (x.relu().tanh().sin(), y))
    x, y, relu, tanh, sin, _ = graph.nodes
    assert may_depend_on(sin, x) and not may_depend_on(sin, y) and not may_depend_on(relu, tanh)
    assert may_depend_on(sin, y, search_depth=1)  # too far to know
