"""Exported programs that run in C++, without Python: the same bits as the module's, and what is refused."""

import io
import random
import threading

import pytest

import rushlight as torch
from rushlight import _C, nn
from rushlight.export import Dim, export, save
from rushlight.vision import models
from tests.cpp_programs.installed import make_lenet
from tests.python.test_export import Branchy, branchy_inputs
from tests.python.test_export_control import CASES as CONTROL
from tests.python.test_export_files import changed, with_model
from tests.python.test_export_sizes import EXPRESSIONS, LAYERS, call
from tests.python.test_export_values import CASES as VALUES
from tests.python.test_export_values import module


def leaves(tree):
    return torch.utils._pytree.tree_leaves(tree)


def file_of(program):
    file = io.BytesIO()
    save(program, file)
    return file


def cpp(program, device=None):
    """The program of a file, as a function that C++ runs."""
    handle = _C._load_exported(file_of(program).getvalue(), device, "model")
    return lambda *args, **kwargs: _C._run_exported(handle, args, kwargs)


def assert_same(got, expected):
    got, expected = leaves(got), leaves(expected)
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        same = torch.equal(a, b) if isinstance(b, torch.Tensor) else a == b
        assert same and type(a) is type(b)


@pytest.mark.parametrize("name", VALUES)
def test_values_of_tensors(name):
    function, example, others, _ = VALUES[name]
    run = cpp(export(module(function), tuple(example)))
    for args in (example, others):
        assert_same(run(*args), function(*args))


@pytest.mark.parametrize(
    "name", ["resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5", "vit_b_16"]
)
def test_networks(name):
    torch.manual_seed(0)
    net = getattr(models, name)(weights=None).eval()
    size = 224 if name.startswith("vit") else 64
    x = torch.randn(2, 3, size, size)
    with torch.no_grad():
        expected = net(x)
    result = cpp(export(net, (x,)))(x)
    assert torch.equal(result, expected) and not result.requires_grad


def test_the_file_that_an_installed_program_serves():
    run = torch.export.load(make_lenet.FILE).module()
    x = torch.linspace(0, 1, 28 * 28).view(1, 1, 28, 28)
    assert torch.equal(run(x), make_lenet.lenet()(x))


def test_training_writes_buffers():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    x = torch.randn(4, 1, 6, 6)
    program = export(net, (x,))
    run = cpp(program)
    for _ in range(3):
        with torch.no_grad():
            assert torch.equal(run(x), net(x))


def test_decomposed_programs_write_behind_their_results():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x):
            before = self.count * 1
            self.count += x
            x.mul_(2)
            return before, self.count * 2

    net = Counts()
    program = export(net, (torch.ones(2),)).run_decompositions()
    run = cpp(program)
    for _ in range(3):
        given, same = torch.arange(2.0), torch.arange(2.0)
        assert_same(run(given), net(same))
        assert torch.equal(given, same)


def test_containers_and_constants():
    net = Branchy().eval()
    args, kwargs = branchy_inputs()
    with torch.no_grad():
        assert_same(cpp(export(net, args, kwargs))(*args, **kwargs), net(*args, **kwargs))

    class Net(nn.Module):
        def forward(self, x, pair, *, table, flag=True, name="a", scale=0.5, none=None):
            return {"sum": x + pair[0] * scale, 3: [pair[1], (table["b"],)], "n": 7, "no": None}

    x, y = torch.ones(2), torch.arange(2)
    table = {"a": y, "b": x}
    program = export(Net(), (x, (x, y)), {"table": table, "flag": False})
    run = cpp(program)
    result = run(x, (x, y), table=table, flag=False)
    assert list(result) == ["sum", 3, "n", "no"] and isinstance(result[3][1], tuple)
    assert_same(result, Net()(x, (x, y), table=table))
    for wanted, args, kwargs in (
        (
            "'flag' is True, and the program was exported for False",
            (x, (x, y)),
            {"table": table, "flag": True},
        ),
        ("argument 1 is a list, expected a tuple", (x, [x, y]), {"table": table, "flag": False}),
        ("lacks the key 'b'", (x, (x, y)), {"table": {"a": y}, "flag": False}),
        ("takes an argument 'flag' by name", (x, (x, y)), {"table": table}),
        ("2 arguments by position, got 1", (x,), {"table": table, "flag": False}),
        ("is of float64, and", (x.double(), (x, y)), {"table": table, "flag": False}),
        (
            "is 3, and the program was exported for 2",
            (torch.ones(3), (x, y)),
            {"table": table, "flag": False},
        ),
        ("has 2 dimensions", (torch.ones(2, 1), (x, y)), {"table": table, "flag": False}),
    ):
        with pytest.raises(RuntimeError, match=wanted):
            run(*args, **kwargs)


@pytest.mark.parametrize("name", CONTROL)
def test_branches_and_loops(name):
    torch.manual_seed(0)
    kind, inputs = CONTROL[name]
    net = kind()
    run = cpp(export(net, inputs[0]))
    for args in inputs:
        with torch.no_grad():
            assert_same(run(*args), net(*args))


@pytest.mark.parametrize("which", range(len(EXPRESSIONS)))
def test_arithmetic_of_sizes(which):
    def f(x):
        return torch.zeros(EXPRESSIONS[which](x.shape[0], x.shape[1]))

    two = ({0: Dim("n", min=8, max=1000), 1: Dim("h", min=8, max=40)},)
    run = cpp(call(f, torch.randn(10, 12), shapes=two))
    for n, h in ((8, 8), (10, 12), (33, 21), (1000, 40), (9, 39)):
        assert run(torch.zeros(n, h)).shape == f(torch.zeros(n, h)).shape
    for n, h, wanted in ((7, 8, "at least 8"), (8, 41, "at most 40")):
        with pytest.raises(RuntimeError, match=wanted):
            run(torch.zeros(n, h))


@pytest.mark.parametrize("which", range(len(LAYERS)))
def test_open_sizes(which):
    f = LAYERS[which]
    shapes = ({0: Dim("n"), 2: Dim("height", min=8, max=64), 3: Dim("width", min=8, max=64)},)
    run = cpp(call(f, torch.randn(2, 3, 16, 12), shapes=shapes))
    for n, h, w in ((2, 16, 12), (3, 8, 64), (5, 33, 21)):
        x = torch.randn(n, 3, h, w)
        assert torch.equal(run(x), f(x))


def test_sizes_that_follow_from_others():
    n = Dim("n", min=2, max=20)
    program = call(
        lambda x, y: x[0] + y.sum(), torch.ones(4), torch.ones(9), shapes=({0: n}, {0: 2 * n + 1})
    )
    run = cpp(program)
    assert run(torch.ones(3), torch.ones(7)).item() == 8
    with pytest.raises(RuntimeError, match=r"dimension 0 of .* is 8, .* for 7"):
        run(torch.ones(3), torch.ones(8))


def test_threads():
    net = models.resnet18(weights=None).eval()
    x = torch.randn(1, 3, 64, 64)
    run = cpp(export(net, (x,)))
    expected, wrong = run(x), []

    def work():
        for _ in range(5):
            if not torch.equal(run(x), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_failures_show_the_line():
    class Net(nn.Module):
        def forward(self, x):
            return torch.linalg.cholesky(x)

    run = cpp(export(Net(), (torch.eye(2),)))
    with pytest.raises(RuntimeError, match=r"return torch.linalg.cholesky\(x\)"):
        run(-torch.eye(2))


# ---- files that are not what they seem ----


def load_bytes(file):
    return _C._load_exported(file.getvalue(), None, "model")


def test_what_is_refused(tmp_path):
    program = export(nn.Linear(2, 3), (torch.ones(1, 2),))
    file = file_of(program)

    def call_other(model):
        model["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.mine.op.default"

    with pytest.raises(NotImplementedError, match="torch.ops.mine.op.default"):
        load_bytes(with_model(file, call_other))

    def newer(model):
        model["schema_version"]["major"] = 9

    with pytest.raises(RuntimeError, match="schema 9"):
        load_bytes(with_model(file, newer))
    with pytest.raises(RuntimeError, match="no model 'other'"):
        _C._load_exported(file.getvalue(), None, "other")
    weights = tmp_path / "weights.pt"
    torch.save({"a": torch.ones(2)}, weights)
    with pytest.raises(RuntimeError, match="no .pt2 file"):
        _C._load_exported(str(weights), None, "model")
    with pytest.raises(RuntimeError, match="zip"):
        _C._load_exported(b"no archive" * 10, None, "model")
    with pytest.raises(FileNotFoundError):
        _C._load_exported(str(tmp_path / "none.pt2"), None, "model")
    deep = "[" * 100_000
    with pytest.raises(RuntimeError, match="too deep"):
        load_bytes(changed(file, lambda n, c: deep if n == "models/model.json" else c))


def paths(value, path=()):
    """Where values are in a record, for all of them."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from paths(value[key], (*path, key))


@pytest.mark.parametrize("seed", range(4))
def test_damaged_records_raise(seed):
    """A record that has been changed anywhere raises, or is a program that runs or raises."""
    random_ = random.Random(seed)
    kind, inputs = CONTROL["cond"]
    net = nn.Sequential(kind(), nn.Linear(3, 2))
    file = file_of(export(net, inputs[0]))
    strange = [
        None,
        True,
        -1,
        1 << 62,
        0.5,
        "x",
        "",
        [],
        {},
        {"as_int": -5},
        {"as_tensor": {"name": "x"}},
    ]
    refused = 0
    for _ in range(300):

        def damage(model):
            everything = list(paths(model["graph_module"]))[1:]
            path = random_.choice(everything)
            owner = model["graph_module"]
            for key in path[:-1]:
                owner = owner[key]
            if random_.random() < 0.3:
                del owner[path[-1]]
            else:
                owner[path[-1]] = random_.choice(strange)

        try:
            handle = load_bytes(with_model(io.BytesIO(file.getvalue()), damage))
            _C._run_exported(handle, (inputs[0][0],), {})
        except (RuntimeError, IndexError, ValueError, TypeError) as error:
            assert "internal error" not in str(error)
            refused += 1
    assert refused > 50


def test_dtypes_have_pytorchs_numbers():
    numbers = _C._exported_dtypes()
    assert numbers[torch.float32] == 7 and numbers[torch.int64] == 5 and numbers[torch.bool] == 12
    assert len(set(numbers.values())) == len(numbers) > 18


def test_json_of_records():
    text = file_of(export(nn.Identity(), (torch.ones(1),)))
    for bad in ("{", '{"a": 1,}', '{"a" 1}', "[1 2]", '{"a": 01x}', '"\\ud800"', "nul", "", "{}}"):
        with pytest.raises(RuntimeError):
            load_bytes(changed(text, lambda n, c, bad=bad: bad if n == "models/model.json" else c))
