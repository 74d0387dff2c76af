"""torch.onnx.export with open sizes: dynamic_shapes, dynamic_axes."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.export import Dim
from rushlight.vision import models
from tests.python.onnx_judges import Calls, agreed, kinds
from tests.python.test_onnx_models import BOTH, Decoder, UNet, awake, image

r = torch.randn


def sizes(program):
    """The shapes of inputs and results as the model tells them."""
    graph = program.model_proto.graph
    return {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in (*graph.input, *graph.output)
    }


class Shapes(nn.Module):
    def forward(self, x, y):
        n = x.shape[0]
        twice = torch.cat([x, x]).view(n, -1)
        return (twice + torch.arange(n)[:, None], x.reshape(-1), twice[: n // 2], y.sum(0))


def test_names_of_sizes():
    shapes = {"x": {0: Dim("batch")}, "y": {0: "other size"}}
    program = agreed(
        Shapes(),
        r(4, 3),
        r(4, 2),
        others=[(r(7, 3), r(2, 2))],
        dynamic_shapes=shapes,
        output_names=list("abcd"),
    )
    assert sizes(program) == {
        "x": ["batch", 3],
        "y": ["other size", 2],
        "a": ["batch", 6],
        "b": ["3*batch"],
        "c": ["(batch//2)", 6],
        "d": [2],
    }
    program.rename_axes({"batch": "n"})
    assert sizes(program)["a"] == ["n", 6]


def test_sizes_without_names():
    program = torch.onnx.export(
        nn.ReLU(), (r(2, 3),), dynamic_shapes=({0: Dim.DYNAMIC, 1: Dim.AUTO},)
    )
    (a, b), (c, d) = sizes(program).values()
    assert (a, b) == (c, d) and a != b
    assert program(r(5, 7))[0].shape == (5, 7)


def test_axes():
    axes = {"x": {0: "batch"}, "y": [1], "out": {0: "rows", 1: "columns"}}
    names = {"input_names": ["x", "y"], "output_names": ["out"]}
    program = agreed(
        Calls(lambda x, y: x @ y),
        r(2, 3),
        r(3, 4),
        others=[(r(5, 3), r(3, 1))],
        dynamic_axes=axes,
        **names,
    )
    assert sizes(program) == {
        "x": ["batch", 3],
        "y": [3, "y_dynamic_axes_1"],
        "out": ["rows", "columns"],
    }
    with pytest.raises(ValueError, match=r"dynamic_axes names \['z'\]"):
        torch.onnx.export(nn.ReLU(), (r(2),), dynamic_axes={"z": {0: "n"}})
    with pytest.raises(ValueError, match="'input' has 1 dimensions"):
        torch.onnx.export(nn.ReLU(), (r(2),), dynamic_axes={"input": {3: "n"}})


def test_axes_of_containers(tmp_path):
    class Net(nn.Module):
        def forward(self, pair, *, scale):
            a, b = pair["first"], pair["rest"][0]
            return a * scale + b.sum()

    pair = {"first": r(2, 3), "rest": [r(4)]}
    axes = {"pair_first": {0: "n"}, "pair_rest_0": {0: "m"}}
    program = torch.onnx.export(Net(), (pair,), kwargs={"scale": r(1)}, dynamic_axes=axes)
    assert list(sizes(program).items())[:3] == [
        ("pair_first", ["n", 3]),
        ("pair_rest_0", ["m"]),
        ("scale", [1]),
    ]
    other = {"first": r(5, 3), "rest": [r(9)]}
    assert torch.allclose(
        program(other, scale=torch.ones(1))[0], Net()(other, scale=torch.ones(1)), atol=1e-5
    )
    torch.onnx.export(
        nn.ReLU(), r(2, 3), str(tmp_path / "m.onnx"), dynamo=False, dynamic_axes={"input": [0]}
    )


def test_what_is_refused():
    x = (r(2),)
    with pytest.raises(ValueError, match="not both"):
        torch.onnx.export(nn.ReLU(), x, dynamic_axes={"input": [0]}, dynamic_shapes=({0: "n"},))
    exported = torch.export.export(nn.ReLU(), x)
    with pytest.raises(ValueError, match="knows its open sizes"):
        torch.onnx.export(exported, dynamic_shapes=({0: "n"},))

    class Fixed(nn.Module):
        def forward(self, x):
            return x + torch.ones(2)

    with pytest.raises(torch._dynamo.exc.UserError):
        torch.onnx.export(Fixed(), x, dynamic_shapes=({0: Dim("n")},))


def test_exported_programs_with_open_sizes():
    exported = torch.export.export(nn.Linear(3, 2), (r(4, 3),), dynamic_shapes=({0: Dim("n")},))
    program = torch.onnx.export(exported)
    assert program(r(9, 3))[0].shape == (9, 2)


def test_numbers():
    class Net(nn.Module):
        def forward(self, x, n, fixed):
            return torch.arange(n) * fixed + x.sum(), x.shape[0] * 2, n + 1

    shapes = {"x": {0: Dim.DYNAMIC}, "n": Dim.DYNAMIC, "fixed": None}
    program = torch.onnx.export(Net(), (r(8), 5, 3), dynamic_shapes=shapes)
    found, size, number = program(torch.ones(9), 4, 3)
    assert (found.tolist(), size.item(), number.item()) == ([9, 12, 15, 18], 18, 5)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5"])
def test_classifiers(name):
    model = awake(getattr(models, name)())
    axes = {"x": {0: "batch"}}
    agreed(
        model,
        image(n=2),
        others=[(image(n=3),)],
        dynamic_axes=axes,
        input_names=["x"],
        runtimes=BOTH,
    )


def test_images_of_any_size():
    shapes = ({0: "n", 2: Dim("h", min=32), 3: Dim("w", min=32)},)
    agreed(
        awake(models.squeezenet1_1()),
        image(64, 2),
        others=[(r(1, 3, 80, 96),)],
        dynamic_shapes=shapes,
        runtimes=BOTH,
    )


def test_transformers_of_images():
    vit = models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10)
    swin = models.SwinTransformer([2, 2], 16, [2, 2], [2, 4], [3, 3], num_classes=5)
    for model, size in ((vit, 32), (swin, 24)):
        agreed(
            awake(model),
            image(size, 2),
            others=[(image(size, 3),)],
            dynamic_axes={"x": [0]},
            runtimes=BOTH,
        )


def test_unet():
    agreed(
        UNet().eval(),
        image(32, 2),
        others=[(image(32, 3),)],
        dynamic_shapes=({0: "n"},),
        runtimes=BOTH,
    )


SEQUENCE = ({0: "batch", 1: "length"},)


def test_sequences():
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    agreed(encoder, r(2, 5, 16), others=[(r(3, 9, 16),)], dynamic_shapes=SEQUENCE, runtimes=BOTH)
    for kind in (nn.LSTM, nn.GRU):
        model = kind(5, 7, 2, bidirectional=True, batch_first=True)
        agreed(model, r(3, 4, 5), others=[(r(2, 9, 5),)], dynamic_shapes=SEQUENCE)
        if kind is nn.GRU:
            program = torch.onnx.export(model, (r(3, 4, 5),), dynamic_shapes=SEQUENCE)
            assert kinds(program).count("GRU") == 2


def test_decoder():
    def given(n, length):
        return torch.randint(0, 50, (n, length)), torch.ones(n, length, dtype=torch.bool)

    shapes = {"ids": {0: "b", 1: "t"}, "mask": {0: "b", 1: "t"}}
    program = agreed(
        Decoder(), *given(2, 6), others=[given(3, 9)], dynamic_shapes=shapes, runtimes=BOTH
    )
    assert sizes(program)["ids"] == ["b", "t"]


def test_decoder_with_a_cache():
    attention = nn.MultiheadAttention(16, 4, batch_first=True).eval()

    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = attention

        def forward(self, x, past):
            seen = torch.cat([past, x], 1)
            return self.attention(x, seen, seen, need_weights=False)[0], seen

    shapes = {"x": {0: "batch"}, "past": {0: "batch", 1: "past"}}
    program = agreed(
        Step(),
        r(2, 1, 16),
        r(2, 4, 16),
        others=[(r(3, 1, 16), r(3, 8, 16))],
        dynamic_shapes=shapes,
        runtimes=BOTH,
    )
    assert list(sizes(program).values())[-1] == ["batch", "past + 1", 16]


def test_bags():
    bag = nn.EmbeddingBag(20, 8, mode="mean")
    shapes = ({0: "words"}, {0: "bags"})
    given = [
        (torch.randint(0, 20, (n,)), torch.tensor(o)) for n, o in ((9, [0, 2, 5]), (6, [0, 3]))
    ]
    agreed(bag, *given[0], others=given[1:], dynamic_shapes=shapes)


def test_writes():
    def program(x):
        x = x.clone()
        x[:, -1] = 7.0
        x[1:] += 1
        x[:-2] *= 2
        x[0] = x[-1]
        n = x.shape[0] // 2
        x[:n].neg_()
        x.narrow(0, -2, 1).add_(5)
        return x, x.narrow(0, -3, 2)

    agreed(
        program, r(4, 3), others=[(r(7, 3),), (r(9, 3),)], dynamic_shapes=(({0: Dim("n", min=4)},),)
    )


def test_examples_of_one():
    """The usual example has a batch of one, which a program could treat apart."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 2))
    others = [(r(5, 3, 8, 8),)]
    for how in (
        {"dynamic_axes": {"x": {0: "n"}}, "input_names": ["x"]},
        {"dynamic_shapes": ({0: Dim("n")},)},
    ):
        program = agreed(model, r(1, 3, 8, 8), others=others, verify=True, **how)
        assert [s[0] for s in sizes(program).values()] == ["n", "n"]
