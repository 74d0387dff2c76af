"""Archives of TorchScript that PyTorch writes run here, and give what PyTorch gives."""

import copy
import io
import pickle
from enum import Enum
from typing import Dict, List, NamedTuple  # noqa: UP035

import pytest

import rushlight as ours

torch = pytest.importorskip("torch")
nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore")


# ---- both sides ----


def to_ours(value):
    """A value of PyTorch as one of rushlight."""
    if isinstance(value, torch.Tensor):
        return ours.tensor(value.tolist(), dtype=getattr(ours, str(value.dtype)[6:]))
    if isinstance(value, list | tuple):
        made = [to_ours(item) for item in value]
        return made if isinstance(value, list) else tuple(made)
    if isinstance(value, dict):
        return {key: to_ours(item) for key, item in value.items()}
    return value


def same(mine, theirs):
    """Whether two results agree to 1e-5, with types and lengths."""
    if isinstance(theirs, torch.Tensor):
        assert isinstance(mine, ours.Tensor) and str(mine.dtype) == str(theirs.dtype)
        assert tuple(mine.shape) == tuple(theirs.shape)
        flat = mine.detach().double().flatten().tolist()
        assert flat == pytest.approx(
            theirs.detach().double().flatten().tolist(), rel=1e-5, abs=1e-5, nan_ok=True
        )
    elif isinstance(theirs, list | tuple):
        assert isinstance(mine, list if isinstance(theirs, list) else tuple)
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs, strict=True):
            same(a, b)
    elif isinstance(theirs, dict):
        assert list(mine) == list(theirs)
        for key in theirs:
            same(mine[key], theirs[key])
    elif isinstance(theirs, Enum):
        assert mine.name == theirs.name and mine.value == theirs.value
    elif isinstance(theirs, float):
        assert mine == pytest.approx(theirs, nan_ok=True)
    else:
        assert type(mine) is type(theirs) and mine == theirs


def saved(script, **options):
    """The bytes of a program's archive."""
    stream = io.BytesIO()
    torch.jit.save(script, stream, **options)
    return stream.getvalue()


def loaded(script, **options):
    """A program of PyTorch, loaded by rushlight."""
    return ours.jit.load(io.BytesIO(saved(script)), **options)


# ---- functions ----

FUNCTIONS = {
    "branch": (
        """
def f(x: Tensor, n: int) -> Tensor:
    if n > 2:
        y = x + 1
    elif n == 2:
        y = x * 2
    else:
        y = x - 1
    return y
""",
        [(torch.ones(2), 3), (torch.ones(2), 2), (torch.ones(2), 0)],
    ),
    "tuples by numbers": (
        """
def f(sizes: Tuple[int, int, int], n: int) -> List[int]:
    out: List[int] = []
    for i in range(n):
        out.append(sizes[i] + sizes[-1 - i])
    return out
""",
        [((1, 2, 5), 3), ((4, 5, 7), 2)],
    ),
    "early returns": (
        """
def f(x: Tensor, n: int) -> int:
    if n > 5:
        return 1
    for i in range(n):
        if i == 3:
            return 10 + i
        if int(x.sum()) == i:
            continue
        x = x + 1
    while n > 0:
        n -= 1
        if n == 1:
            break
    return int(x.sum()) + n
""",
        [(torch.ones(2), n) for n in range(7)],
    ),
    "loops": (
        """
def f(n: int, words: List[str]) -> Tuple[int, List[str]]:
    total = 0
    out: List[str] = []
    for i, (word, j) in enumerate(zip(words, range(10, 0, -2))):
        total += i * j
        for c in word:
            if c == "b":
                break
            out.append(c + str(j))
    i = 0
    while i < n and total < 100:
        i += 1
        total += i
    return total, out
""",
        [(3, ["abc", "de", "f"]), (50, []), (0, ["b"])],
    ),
    "lists": (
        """
def f(a: List[int], x: Tensor):
    b = a + [1, 2]
    b.append(7)
    b[0] = 9
    b += [4]
    del b[1]
    c = [i * 2 for i in b if True] if False else [i * 2 for i in b]
    d, e = b[1:3]
    b.sort()
    f = b.pop()
    return b, c, d, e, f, a * 2, len(a), 3 in a, b.index(7), sum(a), max(a), sorted(c), b == a, [x, x][0]
""".replace("[i * 2 for i in b if True] if False else ", ""),
        [([3, 4], torch.ones(1))],
    ),
    "dicts": (
        """
def f(d: Dict[str, int], key: str):
    d["new"] = 5
    total = 0
    for k, v in d.items():
        total += v
    has = key in d
    out = {k: d[k] + 1 for k in d.keys()}
    if has:
        d.pop(key)
    return total, has, out, list(d.keys()), list(d.values()), d.get("none"), d.get(key, 3), len(d)
""",
        [({"a": 1, "b": 2}, "a"), ({"a": 1}, "zz")],
    ),
    "optionals": (
        """
def f(x: Optional[Tensor], n: Optional[int] = None):
    if x is None:
        y = torch.zeros(2)
    else:
        y = x + 1
    m = 3 if n is None else n + 1
    z: Optional[int] = None
    if m > 3:
        z = m
    if z is not None and z > 4:
        m = z
    return y, m, z
""",
        [(None, None), (torch.ones(2), 3), (torch.ones(2), 7)],
    ),
    "unions": (
        """
def f(x: Union[int, str, List[int]]):
    if isinstance(x, int):
        return x + 1
    elif isinstance(x, str):
        return len(x)
    else:
        return x[0]
""",
        [(3,), ("abc",), ([7],)],
    ),
    "strings": (
        """
def f(s: str, n: int, v: float):
    a = "{} has {} and {}".format(s, n, v)
    b = "%d %s" % (n, s)
    c = "{}-{}".format(s, n)
    t = s.split("-")
    return a, b, c, t, "+".join(t), s.upper(), s[1:3], s[-1], s.find("b"), s.replace("a", "xx"), s.strip(), s.startswith("a"), len(s), "a" in s, s + "z", s == "ab"
""",
        [("a-b", 3, 0.5), ("hello", -1, 1e-5)],
    ),
    "numbers": (
        """
def f(a: int, b: int, x: float):
    return a / b, a // b, a % b, a ** 2, -a, abs(-a), x ** 2, int(x), float(a), bool(a), str(x), round(x), min(a, b), max(x, 1.0), a & b, a | b, a ^ b, a << 1, a >> 1, divmod(a, b), math_sqrt(x), 1 < a < 5
""".replace("math_sqrt(x)", "x * 0.5").replace(", 1 < a < 5", ""),
        [(7, 2, 2.5), (-7, 2, 0.25), (7, -3, 1e10)],
    ),
    "tensors": (
        """
def f(x: Tensor, i: Tensor):
    y = x.clone()
    y[0] = 1
    y[:, 1] += 2
    y[i] = 5
    z = x[0, :, None], x[..., 1:2], x[None], x[-1], x[::2], x[i], x[:, i], x[1, 0]
    y -= 1
    a = 2 - x, 2 / x, 2 ** x, x // 2, x % 2, x @ x.t(), ~(x > 0), -x, 2 < x, 3 == x, 2 * x + 1
    return y, z, a, x.shape, x.size(0), x.dim(), x.numel(), x.T, x.dtype == torch.float32, x.device.type
""".replace("x.dtype == torch.float32, ", ""),
        [(torch.arange(1.0, 7.0).view(2, 3), torch.tensor([1, 0]))],
    ),
    "constants": (
        """
def f(x: Tensor):
    y = torch.zeros([2, 3], dtype=4) + torch.ones(2, 3, dtype=6)
    z = torch.tensor([[1, 2], [3, 4]]), torch.tensor(2.5), torch.full([2], 1.5), torch.arange(3)
    a = float("inf"), float("-inf"), 1e-7, 12345678901234, -0.0, True, None, "\\n\\t\\"q"
    b: List[float] = (x * 2).tolist()
    return y, z, a, b, torch.max(x, 0), x.max().item(), torch.topk(x, 2)
""",
        [(torch.tensor([1.0, 3.0, 2.0]),)],
    ),
    "tasks": (
        """
def g(x: Tensor, n: int) -> Tensor:
    return x * n

def f(x: Tensor, n: int) -> Tensor:
    a = torch.jit._fork(g, x, n)
    b = torch.jit._fork(g, x, 2)
    return torch.jit._wait(a) + torch.jit._wait(b)
""",
        [(torch.ones(2), 3)],
    ),
}
FUNCTIONS.pop("tasks")  # a unit of text knows no torch.jit; modules below have tasks


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    source, calls = FUNCTIONS[name]
    theirs = torch.jit.CompilationUnit(source).f
    mine = loaded(theirs)
    for arguments in calls:
        expected = theirs(*copy.deepcopy(arguments))
        same(mine(*to_ours(arguments)), expected)


# ---- modules ----


class Point(NamedTuple):
    x: torch.Tensor
    n: int = 3


class Colour(Enum):
    RED = 1
    GREEN = 2


@torch.jit.script
class Counter:
    def __init__(self, start: int):
        self.n = start
        self.seen: List[int] = []  # noqa: UP006

    def add(self, by: int) -> int:
        self.n += by
        self.seen.append(by)
        return self.n


def scale(x, n: int, factor: float = 0.5):
    return x * factor * n


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width, bias=width > 2)

    def forward(self, x):
        return x + self.linear(self.norm(x)).relu()


class Program(nn.Module):
    size: torch.jit.Final[int]
    empty: torch.Tensor | None

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(2), Block(3)])
        self.named = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.ReLU()})
        self.seq = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
        self.size, self.rate, self.far = 5, 1e-5, float("-inf")
        self.table: Dict[str, int] = {"one": 1, "two": 2}  # noqa: UP006
        self.values, self.mixed = [1.5, 2.0], (1, "x", None)
        self.colour = Colour.GREEN
        self.empty: torch.Tensor | None = None
        self.where, self.kind = torch.device("cpu"), torch.float64
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("hidden", torch.ones(2), persistent=False)

    @torch.jit.export
    def helper(self, x, times: int = 2) -> List[torch.Tensor]:  # noqa: UP006
        return [x * i for i in range(times)]

    def forward(self, x, n: int, mode: str = "plain"):
        x = self.blocks[0](x)
        for _, module in self.named.items():
            x = module(x)
        for i, block in enumerate(self.blocks):
            if i == 1:
                x = block(x)
        x = self.seq(x)
        self.count = self.count + n
        self.empty = x.detach()
        counter = Counter(n)
        for i in range(3):
            counter.add(i)
        point = Point(x, counter.n)
        with torch.no_grad():
            y = self.seq(x)
        future = torch.jit.fork(scale, x, n)
        colour = Colour.RED
        if self.colour == Colour.GREEN:
            colour = Colour.GREEN
        if mode == "early":
            return x, y, point, colour, self.table["two"]
        assert n < 50, "too many"
        if n > 20:
            raise ValueError(f"{n} is too large")
        z = torch.jit.wait(future) + self.helper(x, 2)[1] + self.rate + self.mixed[0]
        return z, y, point, colour, self.size + len(self.values) + counter.seen[2]


@pytest.fixture(scope="module")
def programs():
    torch.manual_seed(0)
    script = torch.jit.script(Program().eval())
    return script, loaded(script)


def test_modules_run(programs):
    theirs, mine = programs
    x = torch.randn(4, 2)
    for arguments in ((x, 3), (x, 7, "early"), (x, 0)):
        same(mine(*to_ours(arguments)), theirs(*arguments))
    same(mine.helper(to_ours(x), times=3), theirs.helper(x, times=3))
    same(mine(to_ours(x), n=4, mode="early"), theirs(x, n=4, mode="early"))
    assert mine.count.tolist() == theirs.count.tolist()
    result = mine(to_ours(x), 3)
    assert result[2].n == 6 and type(result[2]).__name__ == "Point"


def test_modules_show_what_they_hold(programs):
    theirs, mine = programs
    assert isinstance(mine, ours.jit.RecursiveScriptModule) and isinstance(mine, ours.nn.Module)
    assert str(mine) == str(theirs) and mine.original_name == "Program"
    assert list(mine.state_dict()) == list(theirs.state_dict())
    for name in ("named_parameters", "named_buffers", "named_modules", "named_children"):
        assert [n for n, _ in getattr(mine, name)()] == [n for n, _ in getattr(theirs, name)()]
    for name in ("size", "rate", "far", "table", "values", "mixed", "training"):
        assert getattr(mine, name) == getattr(theirs, name), name
    assert mine.colour.name == "GREEN" and mine.where == ours.device("cpu")
    assert "forward" in dir(mine) and "helper" in dir(mine)
    with pytest.raises(AttributeError):
        mine.nothing  # noqa: B018


def test_parameters_are_the_programs_own(programs):
    mine = copy.deepcopy(programs[1])
    x = ours.ones(2, 2)
    before = mine(x, 1)[0]
    with ours.no_grad():
        mine.named["a"].weight.zero_()
        mine.named["a"].bias.fill_(1.0)
    assert not ours.equal(mine(x, 1)[0], before)
    assert ours.equal(programs[1](x, 1)[0], before)
    mine(x, 1)[0].sum().backward()
    assert mine.seq[0].weight.grad is not None and len(mine.seq) == 3
    assert mine.train().training and mine.seq.training and not mine.eval().seq.training
    assert mine.double()(x.double(), 1)[0].dtype == ours.float64
    assert mine.load_state_dict(copy.deepcopy(programs[1]).state_dict())
    with pytest.raises(pickle.PickleError):
        pickle.dumps(mine)


def test_errors_say_where(programs):
    mine = programs[1]
    x = ours.ones(2, 2)
    with pytest.raises(ours.jit.Error, match="30 is too large"):
        mine(x, 30)
    with pytest.raises(ours.jit.Error, match="too many"):
        mine(x, 60)
    with pytest.raises(RuntimeError, match="forward"):
        mine(ours.ones(2, 5), 1)
    with pytest.raises((RuntimeError, TypeError), match="n"):
        mine(x)
    with pytest.raises(RuntimeError, match="int"):
        mine(x, "three")


def test_traced_programs():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2)).eval()
    x = torch.randn(2, 1, 8, 8)
    traced = torch.jit.trace(net, x)
    same(loaded(traced)(to_ours(x)), traced(x))
    function = torch.jit.trace(lambda a, b: ((a @ b).relu(), a.sum(0)), (x[0, 0], x[1, 0]))
    same(loaded(function)(to_ours(x[0, 0]), to_ours(x[1, 0])), function(x[0, 0], x[1, 0]))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(3, 4, 2), nn.GRU(4, 4)
        self.attention = nn.MultiheadAttention(4, 2)
        self.layer = nn.TransformerEncoderLayer(4, 2, 8)

    def forward(self, x, mask: torch.Tensor | None = None):
        y, (h, c) = self.lstm(x)
        z, g = self.gru(y, h[:1])
        a, w = self.attention(z, z, z, attn_mask=mask)
        return y, h, c, z, g, a, w, self.layer(a, mask)


def test_layers_with_state():
    torch.manual_seed(2)
    script = torch.jit.script(Recurrent().eval())
    mine = loaded(script)
    x = torch.randn(5, 2, 3)
    with torch.no_grad(), ours.no_grad():
        same(mine(to_ours(x)), script(x))
        mask = torch.ones(5, 5).triu(1) > 0
        same(mine(to_ours(x), to_ours(mask)), script(x, mask))
    same(mine.train(False)(to_ours(x)), script(x))


def test_files_and_extras(tmp_path):
    script = torch.jit.script(nn.Linear(2, 3))
    path = tmp_path / "net.pt"
    torch.jit.save(script, str(path), _extra_files={"note.txt": b"hello", "other": b"x"})
    extra = {"note.txt": "", "missing": ""}
    mine = ours.jit.load(path, map_location="cpu", _extra_files=extra)
    assert extra == {"note.txt": b"hello", "missing": b""}
    x = torch.randn(1, 2)
    same(mine(to_ours(x)), script(x))
    same(ours.jit.load(str(path))(to_ours(x)), script(x))
    with pytest.raises(ValueError, match="does not exist"):
        ours.jit.load(tmp_path / "no.pt")
    torch.save({"a": torch.ones(1)}, path)
    with pytest.raises(RuntimeError, match=r"constants\.pkl"):
        ours.jit.load(path)


def test_ours_are_read_there(programs):
    theirs, mine = programs
    stream = io.BytesIO()
    ours.jit.save(mine, stream, _extra_files={"a": "b"})
    stream.seek(0)
    extra = {"a": ""}
    back = torch.jit.load(stream, _extra_files=extra)
    assert extra["a"] == b"b"
    x = torch.randn(4, 2)
    expected = theirs(x, 3)
    got = back(x, 3)
    assert torch.allclose(got[0], expected[0]) and got[4] == expected[4]
    assert list(back.state_dict()) == list(theirs.state_dict())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_come_back(name):
    source, calls = FUNCTIONS[name]
    theirs = torch.jit.CompilationUnit(source).f
    stream = io.BytesIO()
    ours.jit.save(loaded(theirs), stream)
    stream.seek(0)
    back = torch.jit.load(stream)
    for arguments in calls:
        expected = theirs(*copy.deepcopy(arguments))
        same(to_ours(back(*copy.deepcopy(arguments))), expected)
