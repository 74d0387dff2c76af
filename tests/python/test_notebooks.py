"""What notebooks show of tensors, modules, data sets and trainings: escaped, bounded, without effect on anything."""

import base64
import io
import math
import re
from html.parser import HTMLParser

import pytest
from PIL import Image

import rushlight as torch
from rushlight import nn, vision
from rushlight.utils.data import ConcatDataset, Dataset, IterableDataset, TensorDataset

VOID = {"br", "img", "path", "polyline"}
LIMIT = 200_000  # bytes of a piece


class Piece(HTMLParser):
    """A piece of HTML, whose tags have to fit, and which may hold no script."""

    def __init__(self, thing):
        super().__init__()
        self.source = thing._repr_html_()
        self.open, self.said, self.pictures = [], [], []
        self.feed(self.source)
        assert not self.open, self.open
        assert len(self.source) < LIMIT
        self.text = " ".join(self.said)

    def handle_starttag(self, tag, attrs):
        assert tag != "script" and not any(name.startswith("on") for name, _ in attrs)
        if tag == "img":
            data = dict(attrs)["src"].partition(",")[2]
            self.pictures.append(Image.open(io.BytesIO(base64.b64decode(data))))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.said.append(data)


DTYPES = [
    "bool",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
    "float8_e5m2",
    "float8_e4m3fn",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex32",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_every_dtype(dtype):
    kind = getattr(torch, dtype)
    piece = Piece(torch.zeros(3, 4).to(kind))
    assert "(3, 4)" in piece.text and f"), {dtype}" in piece.text
    assert len(piece.pictures) == 1


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (5,), (1, 1), (4, 3), (2, 3, 4), (2, 1, 3, 5)])
def test_tensors_of_every_shape(shape):
    piece = Piece(torch.ones(shape))
    assert str(tuple(shape)) in piece.text
    assert len(piece.pictures) == (bool(shape) and 0 not in shape)


def test_the_picture_has_the_values():
    (picture,) = Piece(torch.tensor([[-4.0, 0.0, 4.0]])).pictures
    low, middle, high = (picture.convert("RGB").getpixel((x, 0)) for x in range(3))
    assert low[2] > 150 > low[0] and high[0] > 150 > high[2] and min(middle) > 200
    (picture,) = Piece(torch.arange(10_000).view(100, 100)).pictures
    assert picture.size == (50, 50)


def test_what_is_no_number_is_counted():
    piece = Piece(torch.tensor([1.0, math.nan, math.inf, -math.inf, 3.0]))
    assert "1 NaN" in piece.text and "2 inf" in piece.text and "1 … 3, mean 2" in piece.text
    assert "no finite value" in Piece(torch.full((2,), math.nan)).text


def test_print_options_are_honoured():
    with torch._tensor_str.printoptions(precision=2):
        assert "3.14159" not in Piece(torch.tensor([3.14159])).source
        assert "3.1 … 3.1" in Piece(torch.tensor([3.14159])).text
    with torch._tensor_str.printoptions(threshold=math.inf):
        assert "…" in Piece(torch.arange(100_000)).text


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2, 3, device="meta"),
        lambda: torch.eye(3).to_sparse(),
        lambda: torch.eye(4).to_sparse_csr(),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
        lambda: nn.Parameter(torch.ones(2, 2)),
        lambda: torch.ones(3, requires_grad=True) * 2,
        lambda: torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False])),
        lambda: torch.ones(2, 2, dtype=torch.complex64),
        lambda: torch.ones(3, 4).t()[::2],
        lambda: torch.ones(3, 1).expand(3, 5),
    ],
)
def test_tensors_of_every_kind(make):
    assert type(make()).__name__.rstrip("_") in Piece(make()).text


def test_tensors_within_transforms():
    seen = []

    def look(x):
        seen.append(Piece(x))
        return x

    torch.vmap(look)(torch.ones(3, 2))
    torch.func.grad(lambda x: look(x).sum())(torch.ones(2))
    torch.func.jvp(look, (torch.ones(2),), (torch.ones(2),))
    with torch.no_grad(), torch.autocast("cpu"):
        look(torch.ones(2))
    assert len(seen) == 4


def test_showing_changes_nothing():
    x = torch.rand(4, 4, requires_grad=True)
    state, version = torch.get_rng_state(), x._version
    x._repr_html_()
    vision.datasets.FakeData(3)._repr_html_()
    nn.Linear(2, 2)  # draws
    torch.set_rng_state(state)
    assert x._version == version and x.grad is None and x.is_leaf
    with torch.overrides.BaseTorchFunctionMode():
        Piece(x)


class Odd(nn.Module):
    """Names and texts that would be HTML."""

    def __init__(self):
        super().__init__()
        self.add_module("<b>&", nn.Linear(2, 3))

    def extra_repr(self):
        return "<script>alert(1)</script>"


def test_modules_show_a_tree():
    net = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.ReLU(), nn.BatchNorm1d(8)))
    piece = Piece(net)
    for said in (
        "Linear",
        "(8, 4) float32",
        "56 parameters",
        "running_mean",
        "int64 buffer",
        "ReLU",
    ):
        assert said in piece.text, said
    assert piece.source.count("<details") == 4
    net[0].weight.requires_grad_(False)
    assert "32 of them frozen" in Piece(net).text


def test_modules_are_escaped_and_bounded():
    piece = Piece(Odd())
    assert "<script>alert(1)</script>" in piece.text and "&lt;b&gt;&amp;" in piece.source
    many = nn.Sequential(*(nn.Linear(1, 1) for _ in range(2000)))
    assert "and 1701 more" in Piece(many).text
    deep = nn.Identity()
    for _ in range(200):
        deep = nn.Sequential(deep)
    Piece(deep)
    Piece(nn.LazyLinear(3))
    Piece(nn.ModuleDict({"a": nn.Module(), "b": nn.ReLU()}))


def test_data_sets():
    tensors = TensorDataset(torch.ones(3, 4), torch.ones(3, dtype=torch.int64))
    assert "3 items" in Piece(tensors).text and "(3, 4)" in Piece(tensors).text
    assert "TensorDataset" in Piece(ConcatDataset([tensors, tensors])).text
    assert "Number of datapoints: 5" in Piece(vision.datasets.FakeData(5)).text

    class Own(Dataset):
        def __getitem__(self, index):
            raise AssertionError("no item is to be made")

        def __len__(self):
            return 7

    class Stream(IterableDataset):
        def __iter__(self):
            raise AssertionError("no item is to be made")

    assert Piece(Own()).text.split() == ["Own", "7", "items"]
    assert Piece(Stream()).text.split() == ["Stream"]


def test_histories():
    history = torch.utils.History()
    for step in range(1000):
        history.add(**{"<loss>": 1 / (step + 1)})
        if step % 2:
            history.add(accuracy=torch.tensor(step / 1000))
    piece = Piece(history)
    assert "&lt;loss&gt;" in piece.source and "1,500 steps" in piece.text
    assert history["accuracy"][2] == pytest.approx(0.001) and math.isnan(history["accuracy"][0])
    assert piece.source.count("<svg") == piece.source.count("<polyline") == 2
    assert history.points("accuracy")[0] == (3, pytest.approx(0.001))
    with pytest.raises(KeyError):
        history["other"]
    assert "step" in repr(torch.utils.History()) and Piece(torch.utils.History()).text


def test_summaries():
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2)).train()
    net[0].eval()
    made = torch.utils.summary(net, torch.zeros(3, 4))
    assert made.total == made.trained == 58
    assert [row.shape for row in made.rows] == ["(3, 2)", "(3, 8)", "(3, 8)", "(3, 2)"]
    assert re.search(r"^2 +Linear +\(3, 2\) +18$", repr(made), re.MULTILINE)
    assert "58 parameters, 58 of them trained" in Piece(made).text
    assert [m.training for m in net.modules()] == [True, False, True, True]
    assert not net[0]._forward_hooks
    with pytest.raises(RuntimeError):
        torch.utils.summary(net, torch.zeros(3, 5))
    assert net[1].training and not net[0]._forward_hooks
