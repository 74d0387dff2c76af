"""Graphs of what a program did: the ops, their shapes and their order are PyTorch's."""

import warnings

import pytest

import rushlight

torch = pytest.importorskip("torch")


def of(p):
    nn, f = p.nn, p.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)

        def forward(self, x):
            q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
            return x + self.out(f.scaled_dot_product_attention(q, k, v))

    def image(*layers):
        return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *layers), p.ones(2, 3, 8, 8)

    return {
        "block": (Block(), p.ones(2, 5, 8)),
        "batch norm": image(nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2)),
        "group norm": image(nn.GroupNorm(2, 8), nn.GELU(), nn.AvgPool2d(2)),
        "classes": image(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Softmax(-1)),
        "transposed": (nn.ConvTranspose1d(3, 4, 3), p.ones(2, 3, 5)),
        "perceptron": (nn.Sequential(nn.Linear(4, 4), nn.SiLU(), nn.Linear(4, 2)), p.ones(1, 4)),
        "embedding": (nn.Embedding(5, 3), p.zeros(2, 2, dtype=p.int64)),
        "losses": (lambda x: f.cross_entropy(x, x.argmax(-1)), p.ones(3, 4)),
        "views": (lambda x: x[1:].transpose(0, 1).reshape(-1).unsqueeze(0), p.ones(3, 4)),
        "products": (lambda x: p.einsum("ij,kj->ik", x, x) @ p.cat([x, x]).t()[:3], p.ones(3, 4)),
    }


def nodes(p, name):
    f, x = of(p)[name]
    if not isinstance(f, p.nn.Module):  # PyTorch traces modules
        function, f = f, p.nn.Module()
        f.forward = function
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph, _ = p.jit._get_trace_graph(f, (x,))

    def shapes(values):
        return [v.type().sizes() if v.isCompleteTensor() else str(v.type()) for v in values]

    # How many constants there are, and where a number became a tensor, is each package's own.
    return [
        (n.kind(), shapes(n.inputs()), shapes(n.outputs()))
        for n in graph.nodes()
        if not n.kind().startswith("prim::")
    ]


@pytest.mark.parametrize("name", list(of(rushlight)))
def test_nodes(name):
    ours, theirs = nodes(rushlight, name), nodes(torch, name)
    assert [n[0] for n in ours] == [n[0] for n in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine[2] == other[2], mine[0]
        taken = zip(mine[1], other[1], strict=True)  # a number may be a tensor there
        assert all(a == b for a, b in taken if isinstance(a, list)), mine[0]
