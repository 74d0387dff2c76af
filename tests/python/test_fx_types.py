"""Types of tensors by their sizes in graphs, and the checker of them."""

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.annotate import annotate
from rushlight.fx.experimental.graph_gradual_typechecker import GraphTypeChecker, broadcast_types
from rushlight.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise


def test_types():
    assert TensorType((1, Dyn)) == TensorType([1, Dyn]) == TensorType[1, Dyn] != TensorType((1, 2))
    assert repr(TensorType((2, Dyn))) == "TensorType[(2, Dyn)]" and Dyn != "Dyn"
    known, half = TensorType((1, 2)), TensorType((1, Dyn))
    assert is_consistent(known, half) and is_consistent(int, Dyn) and not is_consistent(known, int)
    assert is_more_precise(known, half) and not is_more_precise(half, known)
    assert not is_consistent(known, TensorType((1, 2, 3)))


def test_types_stand_in_code():
    def forward(x: TensorType((2, Dyn)), y: Dyn):
        return x + y

    module = fx.symbolic_trace(forward)
    again = fx.symbolic_trace(module)
    for graph in (module.graph, again.graph):
        types = [n.type for n in graph.nodes if n.op == "placeholder"]
        assert types == [TensorType((2, Dyn)), Dyn]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((1, 2, 3, 4), (1, 2, 1, 4), ((1, 2, 3, 4), (1, 2, 3, 4))),
        ((), (4, 1), ((4, 1), (4, 1))),
        ((1, 2, 3, Dyn), (2, 3, 4), ((1, 2, 3, Dyn), (1, 2, 3, 4))),
        ((2, 3), (4, 3), None),
    ],
)
def test_broadcasting(a, b, expected):
    if expected is None:
        with pytest.raises(TypeError, match="broadcast"):
            broadcast_types(TensorType(a), TensorType(b))
    else:
        assert broadcast_types(TensorType(a), TensorType(b)) == tuple(map(TensorType, expected))


def function_of(function, count):
    return (lambda x: function(x)) if count == 1 else (lambda x, y: function(x, y))


def checked(function, *types):
    graph = fx.symbolic_trace(function)
    for node, kind in zip(graph.graph.nodes, types, strict=False):
        node.type = kind
    GraphTypeChecker({}, graph).type_check()
    return [n.type for n in graph.graph.nodes]


LAYERS = nn.Sequential(
    nn.Conv2d(3, 6, 5, stride=2, padding=1),
    nn.BatchNorm2d(6),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.AdaptiveAvgPool2d((3, None)),
    nn.Linear(5, 5),
    nn.Flatten(1, 2),
)


def test_layers_have_the_sizes_that_they_give():
    x = torch.randn(4, 3, 19, 21)
    sizes = [x.shape]
    for layer in LAYERS:
        sizes.append(layer(torch.zeros(sizes[-1])).shape)
    found = checked(LAYERS, TensorType(tuple(x.shape)))
    assert found[:-1] == [TensorType(tuple(s)) for s in sizes] and found[-1] == found[-2]
    unknown = checked(LAYERS, TensorType((Dyn, 3, Dyn, 21)))
    assert unknown[-1] == TensorType((Dyn, 18, 5))


@pytest.mark.parametrize(
    ("function", "types", "expected"),
    [
        (torch.add, ((1, 2, Dyn), (1, 2, 3)), (1, 2, Dyn)),
        (torch.add, ((1, 2, 3), (2, 3)), (1, 2, 3)),
        (torch.add, ((1, 2, 3, Dyn), (1, 2, 3)), TypeError),
        (lambda x: torch.transpose(x, 0, -1), ((2, 3, Dyn),), (Dyn, 3, 2)),
        (lambda x: torch.transpose(x, 0, 3), ((2, 3, Dyn),), TypeError),
        (lambda x: torch.reshape(x, [1, 2, 3]), ((1, 6),), (1, 2, 3)),
        (lambda x: torch.reshape(x, [1, 2, 3]), ((1, 5),), TypeError),
        (lambda x: torch.reshape(x, [1, 2, -1]), ((Dyn, 5),), TypeError),
        (lambda x: torch.reshape(x, [1, 5, -1]), ((1, 15),), (1, 5, Dyn)),
        (lambda x: torch.flatten(x, 1, 2), ((1, 2, 3, 5, Dyn),), (1, 6, 5, Dyn)),
        (lambda x: torch.flatten(x, 1), ((1, Dyn, 3),), (1, Dyn)),
    ],
)
def test_functions(function, types, expected):
    if expected is TypeError:
        with pytest.raises(TypeError):
            checked(function_of(function, len(types)), *map(TensorType, types))
    else:
        found = checked(function_of(function, len(types)), *map(TensorType, types))
        assert found[-1] == TensorType(expected)


def test_annotations_are_joined_or_contradicted():
    class Net(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.norm = nn.BatchNorm2d(channels)

        def forward(self, x):
            return self.norm(annotate(x, TensorType((Dyn, 2, Dyn, 4))))

    assert checked(Net(2))[-1] == TensorType((Dyn, 2, Dyn, 4))
    with pytest.raises(TypeError):
        checked(Net(1))
    with pytest.raises(RuntimeError, match="rule"):
        checked(lambda x: torch.sin(x))
