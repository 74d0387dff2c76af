"""Graphs of the same modules: names, ops and arguments of exported programs are PyTorch's."""

import io
import json
import zipfile

import pytest

import rushlight as ours
from rushlight import _C

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")


def cpp(file):
    """The program of a file, as C++ runs it."""
    handle = _C._load_exported(file.getvalue(), None, "model")
    return lambda *args, **kwargs: _C._run_exported(handle, args, kwargs)


def cases(library):
    """Modules that are made of nothing but the library, and their arguments."""
    nn, F = library.nn, library.nn.functional

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
            self.out = nn.Linear(4, 5)
            self.register_buffer("count", library.zeros(()))
            self.register_buffer("scale", library.ones(5), persistent=False)
            self.shift = library.arange(5.0)
            self.table = [library.ones(5)]

        def forward(self, x, more, flag=True, *, bias=None):
            self.count.add_(1)
            h = F.relu(self.norm(self.conv(x)), inplace=True).mean((2, 3))
            h = self.out(h) * self.scale + self.shift + self.table[0]
            a, b = h.split([2, 3], 1)
            more["a"].mul_(2)
            h = h + library.tensor([1.0, 2.0, 3.0, 4.0, 5.0]) + more["b"][0]
            self.count = self.count + 1
            return {"h": h, "parts": [a, b[0:1]], "more": more["a"], "n": 3, "none": None}

    class Shapes(nn.Module):
        def forward(self, x, *rest, name="a"):
            y = x.view(x.shape[0], -1).transpose(0, 1).contiguous()
            top, at = y.max(1)
            z = library.einsum("ij,ij->i", y, y) + top
            picked = library.cat([z, y[..., 0], rest[0]]).unsqueeze(0)[None]
            return picked.permute(2, 0, 1), at, y.reshape(-1).clone().detach(), F.pad(x, (1, 1))

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.seq = nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.LayerNorm(6), nn.Dropout(0.1))
            self.emb, self.pool = nn.Embedding(10, 6), nn.AdaptiveAvgPool1d(2)

        def forward(self, x):
            h = self.seq(self.seq(self.emb(x)))
            h = F.softmax(h, -1) * F.silu(h) + F.hardswish(h).clamp(0, 1)
            return self.pool(h), F.log_softmax(h, 1), h.masked_fill(h > 0, 0.0)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.lstm = nn.Linear(8, 8), nn.LSTM(8, 4, batch_first=True)

        def forward(self, x):
            q = self.query(x).unflatten(-1, (2, 4)).transpose(1, 2)
            h = F.scaled_dot_product_attention(q, q, q).transpose(1, 2).flatten(2)
            return self.lstm(h)

    class Images(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.pool = nn.ConvTranspose2d(3, 2, 3, 2), nn.MaxPool2d(2)
            self.one = nn.Conv1d(2, 2, 3, bias=False)

        def forward(self, x):
            y = self.pool(F.avg_pool2d(self.up(x), 2))
            return self.one(y.flatten(2)), F.adaptive_max_pool2d(x, 2)

    x = library.ones(2, 3, 8, 8)
    return {
        "mixed": (
            Mixed(),
            (x, {"a": library.ones(5), "b": [library.ones(5)]}),
            {"bias": library.ones(3)},
        ),
        "shapes": (Shapes(), (library.ones(2, 3, 4), library.ones(3), 1.5), {"name": "b"}),
        "layers": (Layers().eval(), (library.zeros(2, 3, dtype=library.int64),), {}),
        "attention": (Attention(), (library.ones(2, 3, 8),), {}),
        "images": (Images(), (x,), {}),
    }


THEIRS, OURS = cases(torch), cases(ours)


def plain(value):
    """An argument that can be compared; nodes are names."""
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value if isinstance(value, int | float | bool) or value is None else str(value)


def rows(program):
    """Kind, name and target of each node, and its arguments without flags of cudnn."""
    result = []
    for n in program.graph.nodes:
        args = plain(n.args)
        if n.name.startswith(("batch_norm", "layer_norm")):
            args = args[:3]
        result.append((n.op, n.name, plain(n.target).removeprefix("<built-in "), args))
    return result


@pytest.mark.parametrize("name", OURS)
def test_graphs(name):
    theirs = torch.export.export(*THEIRS[name])
    mine = ours.export.export(*OURS[name])
    assert rows(mine) == rows(theirs)
    assert str(mine.graph_signature) == str(theirs.graph_signature)
    assert list(mine.constants) == list(theirs.constants)
    assert set(mine.state_dict) == set(theirs.state_dict)
    assert [e.fqn for e in mine.module_call_graph] == [e.fqn for e in theirs.module_call_graph]
    for a, b in zip(mine.graph.nodes, theirs.graph.nodes, strict=True):
        known = [n.meta.get("val") for n in (a, b)]
        if isinstance(known[1], torch.Tensor):
            assert tuple(known[0].shape) == tuple(known[1].shape), a
            if "attention" not in a.name:  # results of that are laid out as suits the kernel
                assert known[0].stride() == known[1].stride() or name == "attention", a
            assert str(known[0].dtype) == str(known[1].dtype), a
        stacks = [list((n.meta.get("nn_module_stack") or {}).values()) for n in (a, b)]
        assert [v[0] for v in stacks[0]] == [v[0] for v in stacks[1]]
    code = [p.module().code.rpartition("return")[2] for p in (mine, theirs)]
    assert code[0] == code[1]


def traced(library, mode, above):
    fx, nn = library.fx.experimental.proxy_tensor, library.nn

    def f(x, pair):
        y = net(x)
        y.add_(1)
        return {"a": y.relu() + pair["k"], "b": [x.sum() + library.tensor(3.0), y.split([2, 2], 1)]}

    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh()).eval()
    x, pair = library.ones(2, 3), {"k": library.ones(4)}
    with library.no_grad():
        return fx.make_fx(f, None, mode, True, pre_dispatch=above)(x, pair)


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_make_fx_above_autograd(mode):
    import torch.fx.experimental.proxy_tensor

    theirs, mine = traced(torch, mode, True), traced(ours, mode, True)
    # PyTorch detaches the constant; nothing else differs.
    lines = [line for line in theirs.code.splitlines() if "detach_" not in line.split("=")[0]]
    wanted = "\n".join(lines).replace("detach_", "lift_fresh_copy")
    assert mine.code.replace("  ", " ").split("=")[:5] == wanted.replace("  ", " ").split("=")[:5]
    assert list(mine.state_dict()) == list(theirs.state_dict())


# ---- files ----


def arguments(name):
    """The arguments of a case, for both."""
    args, kwargs = OURS[name][1:]
    return ours.utils._pytree.tree_map_only(
        ours.Tensor, lambda t: t.clone() if not t.is_floating_point() else t * 0.7, (args, kwargs)
    )


def to_torch(tree):
    return ours.utils._pytree.tree_map_only(
        ours.Tensor, lambda t: torch.from_numpy(t.numpy().copy()), tree
    )


def leaves(tree):
    kind = (ours.Tensor, torch.Tensor)
    flat = ours.utils._pytree.tree_leaves(tree)
    return [v.detach().numpy() if isinstance(v, kind) else v for v in flat]


def files(name):
    """The file of ours and the file of PyTorch's, of modules with equal states."""
    mine, theirs = io.BytesIO(), io.BytesIO()
    state = OURS[name][0].state_dict()
    THEIRS[name][0].load_state_dict({k: to_torch(v) for k, v in state.items()})
    ours.export.save(ours.export.export(*OURS[name]), mine)
    torch.export.save(torch.export.export(*THEIRS[name]), theirs)
    return mine, theirs


def check(a, b):
    for x, y in zip(leaves(a), leaves(b), strict=True):
        if isinstance(x, numpy.ndarray):
            numpy.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)
        else:
            assert x == y


@pytest.mark.parametrize("name", OURS)
def test_files_go_both_ways(name):
    mine, theirs = files(name)
    mine.seek(0)
    theirs.seek(0)
    here = ours.export.load(theirs)
    there = torch.export.load(mine)
    assert rows(here) == rows(torch.export.load(io.BytesIO(theirs.getvalue())))
    assert rows(there) == rows(ours.export.load(io.BytesIO(mine.getvalue())))
    assert str(there.graph_signature) == str(here.graph_signature)
    args, kwargs = arguments(name)
    theirs_args, theirs_kwargs = to_torch((args, kwargs))
    expected = there.module()(*theirs_args, **theirs_kwargs)
    args, kwargs = arguments(name)
    check(here.module()(*args, **kwargs), expected)
    args, kwargs = arguments(name)
    check(cpp(theirs)(*args, **kwargs), expected)
    there.run_decompositions()


def shape_of(record):
    """The keys of a record, those of the first item of its lists, and the kinds of its values."""
    if isinstance(record, dict):
        return {k: shape_of(v) for k, v in record.items()}
    if isinstance(record, list):
        return [shape_of(v) for v in record]
    return record


def test_records_are_those_of_pytorch():
    mine, theirs = files("mixed")
    records = []
    for file in (mine, theirs):
        with zipfile.ZipFile(file) as archive:
            model = json.loads(archive.read("archive/models/model.json"))
            names = archive.namelist()
        graph = model["graph_module"]["graph"]
        for node in graph["nodes"]:
            node.pop("metadata")
            if node["name"].startswith("batch_norm"):
                node["inputs"].pop()  # a flag of cudnn
        model.pop("torch_version")
        records.append((model, sorted(names)))
    assert records[0][1] == records[1][1]
    assert shape_of(records[0][0]) == shape_of(records[1][0])


# ---- open sizes ----


def sized(library, name):
    """A program with open sizes, and arguments of other sizes."""
    nn, export = library.nn, library.export

    class Batch(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.norm = nn.Embedding(20, 8), nn.LayerNorm(8)
            layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.body, self.out = nn.TransformerEncoder(layer, 1), nn.Linear(8, 3)

        def forward(self, x):
            h = self.norm(self.emb(x))
            return self.out(self.body(h).mean(1)), h.view(h.size(0), -1)

    class Arithmetic(nn.Module):
        def forward(self, x):
            n, h = x.shape
            a = library.zeros(n // 2 + 1, h * h + n), library.zeros(n % 3 + 2)
            b = library.zeros(library.sym_max(n, h)), library.zeros((n + h) // 2)
            c = x * (n**-0.5), x / n, x.reshape(-1), library.zeros(n**2), library.cat([x, x], 1)
            return a, b, c, library.nn.functional.avg_pool1d(x[None], 3, 2), n

    if name == "batch":
        shapes = ({0: export.Dim("n", min=2, max=50)},)
        args = (library.zeros(3, 5, dtype=library.int64),)
        return Batch().eval(), args, shapes, (library.ones(7, 5, dtype=library.int64),)
    n, h = export.Dim("n", min=8, max=1000), export.Dim("h", min=8, max=40)
    return Arithmetic(), (library.ones(10, 12),), ({0: n, 1: h},), (library.ones(31, 17),)


@pytest.mark.parametrize("name", ["batch", "arithmetic"])
def test_open_sizes_go_both_ways(name):
    nets = [sized(library, name) for library in (ours, torch)]
    state = nets[0][0].state_dict()
    nets[1][0].load_state_dict({k: to_torch(v) for k, v in state.items()})
    files, programs = [], []
    for library, (net, args, shapes, _) in zip((ours, torch), nets, strict=True):
        program = library.export.export(net, args, dynamic_shapes=shapes)
        files.append(io.BytesIO())
        library.export.save(program, files[-1])
        files[-1].seek(0)
        programs.append(program)
    found = [[str(r) for r in p.range_constraints.values()] for p in programs]
    assert found[0] == found[1]
    here, there = ours.export.load(files[1]), torch.export.load(files[0])
    mine = here.module()(*nets[0][3])
    check(mine, there.module()(*nets[1][3]))
    check(mine, nets[1][0](*nets[1][3]))
    check(cpp(files[1])(*nets[0][3]), mine)
    assert [str(r) for r in here.range_constraints.values()] == found[1]
    assert [str(r) for r in there.range_constraints.values()] == found[0]
    with pytest.raises(AssertionError, match="Guard failed"):
        here.module()(nets[0][1][0][:1])


def refusals(library):
    """Programs and sizes that contradict each other."""
    Dim, nn = library.export.Dim, library.nn

    class Adds(nn.Module):
        def forward(self, x, y):
            return x + y

    class Branches(nn.Module):
        def forward(self, x, y):
            return x * 2 if x.shape[0] > 5 else y

    class Slices(nn.Module):
        def forward(self, x, y):
            return x + y[1:]

    x, y, b = library.ones(6, 4), library.ones(7, 4), Dim("b", min=3, max=100)
    return {
        "specialised": (Adds(), (x, x.clone()), ({0: b}, None)),
        "equal": (Adds(), (x, x.clone()), ({0: b}, {0: Dim("q", min=3, max=100)})),
        "related": (Slices(), (x, y), ({0: b}, {0: Dim("q")})),
        "branch": (Branches(), (x, x.clone()), ({0: b}, {0: b})),
    }


@pytest.mark.parametrize("name", refusals(ours))
def test_suggested_fixes(name):
    fixes = []
    for library in (ours, torch):
        net, args, shapes = refusals(library)[name]
        with pytest.raises(library._dynamo.exc.UserError, match="Constraints violated") as error:
            library.export.export(net, args, dynamic_shapes=shapes)
        text = str(error.value).partition("Suggested fixes:\n")[2]
        fixes.append(text.partition("\n\n")[0].strip())
    assert fixes[0] == fixes[1] and fixes[0]


# ---- branches and loops ----


def controls(library):
    """Programs with branches and loops, and their arguments."""
    nn = library.nn
    ops = __import__(f"{library.__name__}._higher_order_ops", fromlist=["scan"])

    class Cond(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = library.full((3,), 2.0)

        def forward(self, x):
            return library.cond(x.sum() > 0, lambda x: x * self.scale, lambda x: x.cos(), (x,)) + 1

    class While(nn.Module):
        def forward(self, i, x):
            return ops.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (i, x))

    class Map(nn.Module):
        def forward(self, xs, y):
            return ops.map(lambda x, y: x + y, xs, y)

    class Scan(nn.Module):
        def forward(self, init, xs):
            return ops.scan(lambda c, x: (c + x, c * x), init, xs)

    rows = library.arange(12.0).view(4, 3)
    return {
        "cond": (Cond(), (rows,)),
        "while": (While(), (library.tensor(0), library.ones(2))),
        "map": (Map(), (rows, library.ones(3))),
        "scan": (Scan(), (library.zeros(3), rows)),
    }


@pytest.mark.parametrize("name", ["cond", "while", "map", "scan"])
def test_branches_and_loops_go_both_ways(name):
    files, results = [], []
    for library in (ours, torch):
        net, args = controls(library)[name]
        files.append(io.BytesIO())
        library.export.save(library.export.export(net, args), files[-1])
        files[-1].seek(0)
        results.append(net(*args))
    args = controls(ours)[name][1]
    here, there = ours.export.load(files[1]), torch.export.load(files[0])
    check(here.module()(*args), results[1])
    check(there.module()(*to_torch(args)), results[0])
    check(cpp(files[1])(*args), results[1])
    names = [[n.name for n in p.graph.nodes if n.op == "call_function"] for p in (here, there)]
    assert names[0] == names[1]


def by_values(library):
    """Functions whose sizes depend on values, with arguments."""

    def rows(x, n):
        n = n.item()
        library._check_is_size(n)
        library._check(n <= x.shape[0])
        return library.zeros(n, 3) + 1, x.narrow(0, 0, n).sum(0), n * 2

    def select(x, mask):
        return x.nonzero() * 2, x.masked_select(mask > 0), x[mask > 0]

    def repeat(x, n):
        return (library.repeat_interleave(x, n, dim=0),)

    table = library.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]])
    return {
        "rows": (rows, (table, library.tensor(2))),
        "select": (select, (table, library.tensor([1, 0, 1]).unsqueeze(1).expand(3, 2))),
        "repeat": (repeat, (table, library.tensor([2, 0, 3]))),
    }


@pytest.mark.parametrize("name", by_values(ours))
def test_sizes_that_depend_on_values_go_both_ways(name):
    programs, files = [], []
    for library in (ours, torch):
        function, args = by_values(library)[name]
        net = type("Net", (library.nn.Module,), {"forward": lambda self, *a, f=function: f(*a)})()
        programs.append(library.export.export(net, args))
        files.append(io.BytesIO())
        library.export.save(programs[-1], files[-1])
        files[-1].seek(0)
    targets = [[str(n.target) for n in p.graph.nodes if n.op != "placeholder"] for p in programs]
    assert targets[0] == targets[1]
    assert str(programs[0].range_constraints) == str(programs[1].range_constraints)
    here, there = ours.export.load(files[1]), torch.export.load(files[0])
    assert str(here.range_constraints) == str(there.range_constraints)
    function, args = by_values(ours)[name]
    expected = function(*args)
    check(here.module()(*args), expected)
    check(there.module()(*to_torch(args)), expected)
    for file in files:
        check(cpp(file)(*args), expected)
