"""Archives that ask for far more than they hold: they are refused while they are read, at once and with little memory.

Each would take hours or all memory if its reader followed it. What a program does when it is called is its own affair;
Ctrl-C ends it.
"""

import io
import json

import pytest

import rushlight as torch
from rushlight import _C
from rushlight._higher_order_ops import while_loop
from tests.fuzz.archive_files import DEFLATED, STORED, Object, pickled, script, unzipped, zipped

from .signals import ends_by_ctrl_c

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated")

HEAD = "class Net(Module):\n  training : bool\n"


def load(entries, method=STORED):
    packed = lambda name: DEFLATED if name.endswith(".py") else method
    return torch.jit.load(io.BytesIO(zipped([(n, c, packed(n)) for n, c in entries.items()])))


def module(*lines, arguments="x: Tensor", before="", after=""):
    """The text of a module whose forward has these lines."""
    text = HEAD + before + f"  def forward(self: __torch__.Net,\n    {arguments}) -> Tensor:\n"
    return text + "".join(f"    {line}\n" for line in lines) + "    return x\n" + after


def archive(text, state=None):
    return script({"__torch__": text}, state or {"training": True})


def restored(*lines):
    """An archive with an object whose __setstate__ has these lines."""
    kept = "class Kept:\n  data : List[int]\n  def __setstate__(self: __torch__.Kept,\n"
    kept += "    state: Tuple[int, int]) -> NoneType:\n" + "".join(
        f"    {line}\n" for line in lines
    )
    kept += "    return None\n"
    state = {"training": True, "kept": Object("__torch__.Kept", (1, 2))}
    return archive(module(before="  kept : __torch__.Kept\n", after=kept), state)


COUNT = range(60)
TUPLES = "".join(
    f"class N{i}(NamedTuple):\n  a : __torch__.N{i + 1}\n  b : __torch__.N{i + 1}\n" for i in COUNT
)
ONES = f"({'1, ' * 100})"
GROWING = {
    "tuples of tuples": module("y = (x, x)", *["y = (y, y)" for _ in COUNT]),
    "types of tuples": module(
        before="  a : __torch__.N0\n", after=TUPLES + "class N60(NamedTuple):\n  a : int\n"
    ),
    "nested unrolled loops": module(
        *[f"{'  ' * i}for i{i} in {ONES}:" for i in range(6)], "  " * 6 + "y = 1"
    ),
}


@pytest.mark.parametrize("name", GROWING)
def test_programs_that_grow(name):
    state = {"training": True} | ({"a": None} if "a :" in GROWING[name] else {})
    with pytest.raises(RuntimeError, match="far beyond what its text says|without end"):
        load(archive(GROWING[name], state))


def test_programs_of_a_usual_size_load():
    """Large tuples, long loops over them and thousands of attributes are no reason to refuse a program."""
    wide = module(f"t = {ONES}", "y = x", "for i in t:", "  y = torch.add(y, i)", "x = y")
    assert load(archive(wide))(torch.zeros(1)).item() == 100
    names = [f"a{i}" for i in range(5000)]
    text = module("x = torch.add(x, self.a4999)", before="".join(f"  {n} : int\n" for n in names))
    assert (
        load(archive(text, {"training": True, **dict.fromkeys(names, 2)}))(torch.zeros(1)).item()
        == 2
    )


NUMEL, LENGTH = "self.data = [torch.numel(y)]", "self.data = [torch.len(s)]"
RESTORED = {
    "a loop without end": (["while True:", "  pass"], "more time"),
    "a long loop": (
        ["i = 0", "for j in range(9223372036854775807):", "  i = torch.add(i, 1)"],
        "more time",
    ),
    "calls without end": (["self.__setstate__(state)"], "call"),
    "a large tensor": (["y = torch.zeros([100000, 100000])", NUMEL], "more memory"),
    "many tensors": (
        ["y = torch.ones([1])", *["y = torch.add(torch.rand([2000, 2000]), y)"] * 40, NUMEL],
        "more memory",
    ),
    "a view of a number": (
        ["y = torch.sum(torch.expand(torch.ones([1]), [1000000, 1000000]))", NUMEL],
        "more memory",
    ),
    "a text that doubles": (
        ['s = "aaaaaaaa"', *["s = torch.add(s, s)"] * 60, LENGTH],
        "more memory",
    ),
    "a wide text": (['s = torch.ljust("a", 1000000000)', LENGTH], "more memory"),
    "a list, repeated": (["s = torch.mul([1, 2], 100000000000)", LENGTH], "more memory"),
    "a long range": (["s = [i for i in range(10000000000)]", LENGTH], "more time|more memory"),
}


@pytest.mark.parametrize("name", RESTORED)
def test_what_restores_an_object_is_limited(name):
    lines, message = RESTORED[name]
    with pytest.raises(RuntimeError, match=message):
        load(restored(*lines))


def test_an_object_is_restored():
    net = load(
        restored(
            "a, b = state",
            "y = torch.zeros([1000])",
            "for i in range(1000):",
            "  a = torch.add(a, i)",
            "self.data = [a, b]",
        )
    )
    assert net.kept.data == [1 + 999 * 500, 2]


def test_texts_and_pickles_that_unpack_to_more():
    with pytest.raises(RuntimeError, match="more than any text has"):
        load(archive(module() + " \n" * 2_000_000))
    entries = archive(module())
    entries["net/data.pkl"] = b"\x80\x02" + b"N0" * 100_000 + entries["net/data.pkl"][2:]
    with pytest.raises(RuntimeError, match="more than objects have"):
        load(entries, DEFLATED)


def test_objects_without_states():
    big = "class Big:\n" + "".join(f"  a{i} : int\n" for i in range(2000))
    entries = archive(module(after=big))
    made = b"c__torch__\nBig\nq\x000" + b"h\x00)\x810" * 20_000
    entries["net/data.pkl"] = b"\x80\x02" + made + entries["net/data.pkl"][2:]
    with pytest.raises(RuntimeError, match="more objects than it has values for"):
        load(entries)


@pytest.mark.parametrize("of_itself", [False, True])
def test_values_that_are_nested_deep(of_itself):
    """They are read and freed; what would go through them by recursion refuses them."""
    entries = archive(module(before="  a : Any\n"), {"training": True, "a": None})
    deep = b"]q\x00h\x00a" if of_itself else b"]" * 50_000 + b"a" * 49_999
    none = pickled("a")[2:-1] + b"N"
    assert none in entries["net/data.pkl"]
    entries["net/data.pkl"] = entries["net/data.pkl"].replace(none, none[:-1] + deep)
    net = load(entries)
    for use in (lambda: net.a, lambda: torch.jit.save(net, io.BytesIO()), net.__deepcopy__):
        with pytest.raises(RuntimeError, match="nested"):
            use() if use.__name__ != "__deepcopy__" else use({})
    given: list = []
    given.append(given)
    with pytest.raises(RuntimeError, match="nested"):
        net.a = given


def test_members_of_enums_are_assigned_without_types():
    after = "class E(Enum):\n  red : Final[int] = 1\n  blue = 2\n"
    entries = archive(
        module(before="  e : Any\n", after=after),
        {"training": True, "e": Object("__torch__.E", called=1)},
    )
    with pytest.raises(RuntimeError, match="members of an enum"):
        load(entries)


def test_what_is_wrong_with_an_archive_is_a_runtime_error():
    entries = archive(module())
    for wrong in (
        b"\x80\x02}]N}s.",
        b"\x80\x02\x8f.",
        b"\x80\x02(",
        b"\x80\x02\x8a\x09" + b"\xff" * 9 + b".",
    ):
        with pytest.raises(RuntimeError):
            load(entries | {"net/data.pkl": wrong})


def test_ctrl_c_ends_a_program():
    net = load(archive(module("while True:", "  x = torch.neg(x)")))
    with ends_by_ctrl_c():
        net(torch.ones(2))
    assert load(archive(module()))(torch.ones(1)).item() == 1


def nested(node, depth):
    """A loop of an exported program whose condition has another loop, and so on."""
    condition = node["inputs"][0]["arg"]["as_graph"]["graph"]
    if depth == 0:
        return node
    names = [{"name": record["as_tensor"]["name"]} for record in condition["inputs"]]
    inner = json.loads(json.dumps(node))
    inner["inputs"][2]["arg"] = {"as_tensors": names}
    inner["outputs"] = [{"as_tensors": [{"name": f"w{depth}_{i}"} for i in range(len(names))]}]
    condition["nodes"].insert(0, nested(inner, depth - 1))
    return node


@pytest.mark.parametrize(("depth", "loads"), [(1, True), (18, False)])
def test_loops_within_conditions_of_loops(depth, loads):
    """Conditions are read twice, those in conditions four times: the reader ends where that grows."""

    class Counts(torch.nn.Module):
        def forward(self, i, y):
            return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (i, y))

    file = io.BytesIO()
    torch.export.save(torch.export.export(Counts(), (torch.tensor(0), torch.ones(2))), file)
    entries = unzipped(file.getvalue())
    (name,) = (n for n in entries if n.endswith("models/model.json"))
    model = json.loads(entries[name])
    nodes = model["graph_module"]["graph"]["nodes"]
    (loop,) = (n for n in nodes if n["target"].endswith("while_loop"))
    nested(loop, depth)
    rows = [(n, json.dumps(model).encode() if n == name else c, STORED) for n, c in entries.items()]
    read = lambda: _C._load_exported(zipped(rows), None, "model")
    if loads:
        result = _C._run_exported(read(), (torch.tensor(0), torch.ones(2)), {})
        assert result[1].tolist() == [8, 8]
    else:
        with pytest.raises(RuntimeError, match="far more nodes than it holds"):
            read()


def test_what_an_exported_program_knows_beforehand_is_limited():
    class Large(torch.nn.Module):
        def forward(self, x):
            return torch.ones(1 << 20).sum() + x

    file = io.BytesIO()
    torch.export.save(torch.export.export(Large(), (torch.ones(1),)), file)
    entries = unzipped(file.getvalue())
    large = {n: c.replace(b"1048576", b"100000000000000") for n, c in entries.items()}
    program = _C._load_exported(zipped([(n, c, STORED) for n, c in large.items()]), None, "model")
    with pytest.raises(RuntimeError, match="allocate"):
        _C._run_exported(program, (torch.ones(1),), {})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("y = torch.relu[()](x)", "index is missing|cannot be used"),
        ("y = [x][()]", "index is missing"),
        ("y = torch.wait()", "takes|wait"),
    ],
)
def test_calls_and_indices_without_arguments(line, message):
    with pytest.raises(RuntimeError, match=message) as caught:
        load(archive(module(line)))
    assert "vector" not in str(caught.value)


def test_texts_far_larger_than_the_file():
    """Each of them may be; all of them together may not."""
    names = range(40)
    uses = "".join(f"  a{i} : __torch__.m{i}.A\n" for i in names)
    text = "class A:\n  x : int\n" + "".join(f"# {i * 7919 % 10007}\n" * 40 for i in range(500))
    state = {"training": True} | {f"a{i}": None for i in names}
    entries = script(
        {"__torch__": module(before=uses)} | {f"__torch__/m{i}": text for i in names}, state
    )
    with pytest.raises(RuntimeError, match="texts of this archive are far larger"):
        load(entries)
