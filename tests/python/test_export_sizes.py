"""Exports with open sizes: expressions, ranges, relations, and what is violated."""

import io
import math
import operator

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight._dynamo.exc import UserError
from rushlight.export import AdditionalInputs, Dim, ShapesCollection, dims, export, load, save
from rushlight.export._expressions import Expression, parse, sympy_text
from rushlight.export._sizes import Range, SizeInt
from rushlight.vision import models


def module(function):
    class Net(nn.Module):
        def forward(self, *args):
            return function(*args)

    return Net()


def call(function, *args, shapes):
    """The program of a function; `shapes` as a tuple for `*args`."""
    return export(module(function), args, dynamic_shapes={"args": shapes})


def ranges(program):
    return {str(k): v for k, v in program.range_constraints.items()}


BATCH = Dim("batch", min=3, max=100)


def test_sizes_become_steps_and_expressions():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 4)

        def forward(self, x, y):
            b = x.shape[0]
            z = self.l(x).view(b * 2, -1)
            w = torch.zeros(b + 1, y.size(0) // 2)
            return z, w, torch.cat([x, x]), y[2:], b, len(y.shape)

    net = Net()
    shapes = {"x": {0: BATCH}, "y": {0: Dim("q", min=4)}}
    program = export(net, (torch.randn(6, 4), torch.randn(20)), dynamic_shapes=shapes)
    assert ranges(program) == {"s0": Range(3, 100), "s1": Range(4, math.inf)}
    assert str(program.range_constraints) == "{s0: VR[3, 100], s1: VR[4, int_oo]}"
    by_name = {n.name: n for n in program.graph.nodes}
    assert by_name["sym_size_int"].args == (by_name["x"], 0)
    assert by_name["view"].args[1] == [by_name["mul"], -1]
    assert by_name["mul"].target is operator.mul
    assert str(tuple(by_name["view"].meta["val"].shape)) == "(2*s0, 2)"
    assert str(by_name["zeros"].meta["val"].shape) == "torch.Size([s0 + 1, (s1//2)])"
    assert isinstance(by_name["mul"].meta["val"], torch.SymInt)
    assert by_name["mul"].meta["val"].node.hint == 12
    assert 'x: "f32[s0, 4]"' in str(program) and 'mul: "Sym(2*s0)"' in str(program)
    net_of = program.module()
    for rows, length in ((3, 4), (9, 41), (100, 5)):
        x, y = torch.randn(rows, 4), torch.randn(length)
        for got, expected in zip(net_of(x, y), net(x, y), strict=True):
            if isinstance(expected, torch.Tensor):
                assert torch.equal(got, expected)
            else:
                assert got == expected
    for rows, message in ((2, r">= 3"), (101, r"<= 100")):
        with pytest.raises(AssertionError, match=rf"x.size\(\)\[0\] {message}"):
            net_of(torch.randn(rows, 4), torch.randn(8))
    with pytest.raises(AssertionError, match=r"x.size\(\)\[1\] == 4"):
        net_of(torch.randn(4, 5), torch.randn(8))


EXPRESSIONS = [
    lambda n, h: n // 2 + 1,
    lambda n, h: n % 3 + 2,
    lambda n, h: torch.sym_max(n, h),
    lambda n, h: torch.sym_min(n, 2 * h),
    lambda n, h: (n + h) // 2,
    lambda n, h: n * h + n - 3,
    lambda n, h: n**2,
    lambda n, h: -(-n // 4),
    lambda n, h: 3 * n + 2 * h + 1,
    lambda n, h: (n - 1) * (h + 1),
]


@pytest.mark.parametrize("which", range(len(EXPRESSIONS)))
def test_arithmetic_of_sizes(which):
    def f(x):
        return torch.zeros(EXPRESSIONS[which](x.shape[0], x.shape[1]))

    two = ({0: Dim("n", min=8, max=1000), 1: Dim("h", min=8, max=40)},)
    net = call(f, torch.randn(10, 12), shapes=two).module()
    for n, h in ((8, 8), (10, 12), (33, 21), (1000, 40), (9, 39)):
        assert net(torch.zeros(n, h)).shape == f(torch.zeros(n, h)).shape


def test_floats_of_sizes():
    def f(x):
        n = x.shape[0]
        return x * n**-0.5, x / n, x * torch.sym_sqrt(n), x * math.sqrt(n), x * (1 / n), x + n

    net = call(f, torch.ones(10), shapes=({0: Dim("n", min=2)},)).module()
    for n in (2, 7, 100):
        for got, expected in zip(net(torch.ones(n)), f(torch.ones(n)), strict=True):
            torch.testing.assert_close(got, expected)


LAYERS = [
    lambda x: F.avg_pool2d(x, 3, 2),
    lambda x: F.max_pool2d(x, 2, ceil_mode=True),
    lambda x: F.interpolate(x, scale_factor=2.0),
    lambda x: F.pad(x, (1, 2, 3, 4)),
    lambda x: x.flatten(1),
    lambda x: x.reshape(x.shape[0], -1).t(),
    lambda x: F.conv2d(x, torch.ones(2, 3, 3, 3), stride=2, padding=1),
    lambda x: x.permute(0, 2, 3, 1).reshape(-1, 3),
    lambda x: x.mean((2, 3)) @ torch.ones(3, 2),
    lambda x: torch.cat([x, x[:, :1]], 1).transpose(1, 2).contiguous(),
    lambda x: x.unfold(2, 2, 2),
    lambda x: torch.stack([x, x]).expand(2, -1, -1, -1, -1),
    lambda x: x.softmax(-1).sum(1, keepdim=True) * torch.arange(x.shape[-1]),
    lambda x: F.adaptive_avg_pool2d(x, 4),
]


@pytest.mark.parametrize("which", range(len(LAYERS)))
def test_layers(which):
    f = LAYERS[which]
    height, width = dims("height", "width", min=8, max=64)
    shapes = ({0: Dim("n"), 2: height, 3: width},)
    program = call(f, torch.randn(2, 3, 16, 12), shapes=shapes)
    net = program.module()
    again = io.BytesIO()
    save(program, again)
    again.seek(0)
    read = load(again)
    assert str(read) == str(program)
    for n, h, w in ((2, 16, 12), (3, 8, 64), (5, 33, 21)):
        x = torch.randn(n, 3, h, w)
        assert torch.equal(net(x), f(x)) and torch.equal(read.module()(x), f(x))


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small"])
def test_networks(name):
    torch.manual_seed(0)
    net = getattr(models, name)(weights=None).eval()
    size = Dim("size", min=33, max=256)
    program = export(net, (torch.randn(2, 3, 64, 64),), dynamic_shapes=({0: Dim("n"), 2: size},))
    x = torch.randn(3, 3, 96, 64)
    assert torch.equal(program.module()(x), net(x))


# ---- relations ----


def test_names_that_are_one_size():
    x = torch.randn(6, 4)
    n, m = Dim("n"), Dim("m")
    program = call(operator.add, x, x.clone(), shapes=({0: n}, {0: n}))
    assert len(program.range_constraints) == 1
    with pytest.raises(AssertionError, match=r"\[0\] == .*size\(\)\[0\]"):
        program.module()(torch.ones(6, 4), torch.ones(5, 4))
    with pytest.raises(UserError, match=r"(?s)Constraints violated \(m\).*always be equal.*m = n"):
        call(operator.add, x, x.clone(), shapes=({0: n}, {0: m}))


def test_sizes_that_follow_from_others():
    def f(x, y):
        return x + y[1:]

    n, m = Dim("n", min=2, max=50), Dim("m")
    x, y = torch.randn(6, 4), torch.randn(7, 4)
    net = call(f, x, y, shapes=({0: n}, {0: n + 1})).module()
    assert net(torch.ones(9, 4), torch.ones(10, 4)).shape == (9, 4)
    with pytest.raises(AssertionError, match="Guard failed"):
        net(torch.ones(9, 4), torch.ones(9, 4))
    with pytest.raises(UserError, match="(?s)must always be n [+] 1.*Suggested fixes.*m = n [+] 1"):
        call(f, x, y, shapes=({0: n}, {0: m}))
    program = call(lambda x: x.view(-1, 2), x, shapes=({0: 2 * n},))
    assert str(program.graph.find_nodes(op="placeholder")[0].meta["val"].shape[0]) == "2*s0"
    assert program.module()(torch.ones(8, 4)).shape == (16, 2)
    halves = call(lambda x: torch.zeros(x.shape[0] // 2), x, shapes=({0: 2 * n},)).module()
    assert halves(torch.ones(8, 4)).shape == (4,)


def test_automatic_sizes():
    x = torch.randn(6, 4)
    auto = ({0: Dim.AUTO, 1: Dim.AUTO}, {0: Dim.AUTO, 1: Dim.STATIC})
    program = call(operator.add, x, x.clone(), shapes=auto)
    assert ranges(program) == {"s0": Range(2, math.inf)}
    shapes = [
        tuple(map(str, n.meta["val"].shape)) for n in program.graph.find_nodes(op="placeholder")
    ]
    assert shapes == [("s0", "4"), ("s0", "4")]
    program = call(lambda x: x * 2 if x.shape[0] > 5 else x, x, shapes=({0: Dim.AUTO},))
    assert ranges(program) == {"s0": Range(6, math.inf)}
    program = call(lambda x: x + 1, x[:1], shapes=({0: Dim.AUTO},))
    assert ranges(program) == {}
    program = call(lambda x: x + 1, x, shapes=({0: Dim.DYNAMIC(min=4, max=9)},))
    assert ranges(program) == {"s0": Range(4, 9)}
    with pytest.raises(UserError, match=r"L\['args_0'\].*specialized it"):
        call(operator.add, x, x.clone(), shapes=({0: Dim.DYNAMIC}, None))


# ---- conditions ----


def test_branches_narrow_ranges():
    def f(x):
        return x * 2 if x.shape[0] > 5 else x

    x = torch.randn(6, 4)
    with pytest.raises(UserError) as error:
        call(f, x, shapes=({0: BATCH},))
    text = str(error.value)
    assert "batch = Dim('batch', min=6, max=100)" in text and "test_export_sizes.py" in text
    program = call(f, x, shapes=({0: Dim("b", min=6)},))
    assert ranges(program) == {"s0": Range(6, math.inf)}
    with pytest.raises(UserError, match=r"max=11\)"):
        call(lambda x: x if 2 * x.shape[0] <= 22 else x + 1, x, shapes=({0: BATCH},))


def test_loops_and_equalities_fix_sizes():
    def loop(x):
        for _ in range(x.shape[0]):
            x = x + 1
        return x

    x = torch.randn(6, 4)
    for f in (loop, lambda x: x if x.shape[0] == 6 else x + 1, lambda x: x + torch.ones(6, 4)):
        with pytest.raises(
            UserError, match=r"(?s)specialized it to be a constant \(6\).*batch = 6"
        ):
            call(f, x, shapes=({0: BATCH},))
        assert ranges(call(f, x, shapes=({0: Dim.AUTO},))) == {}


def test_conditions_of_several_sizes_are_checked():
    def f(x, y):
        return (x.sum() + y.sum()) if x.shape[0] < 2 * y.shape[0] else x.sum()

    n, m = Dim("n"), Dim("m")
    program = call(f, torch.ones(6), torch.ones(5), shapes=({0: n}, {0: m}))
    net = program.module()
    assert net(torch.ones(3), torch.ones(2)) == 5
    with pytest.raises(AssertionError, match="Guard failed"):
        net(torch.ones(5), torch.ones(2))


def test_numbers_may_stay_open():
    program = export(
        module(lambda x, n: x[: n + 1] * n),
        (torch.arange(30.0), 4),
        dynamic_shapes={"args": (None, Dim.DYNAMIC(max=20))},
    )
    net = program.module()
    for n in (2, 4, 9):
        assert torch.equal(net(torch.arange(30.0), n), torch.arange(30.0)[: n + 1] * n)


# ---- what is said of sizes ----


def test_dims():
    n = Dim("n", min=3, max=9)
    assert repr(n) == "Dim('n', min=3, max=9)" and n.__name__ == "n" and n.max == 9
    assert repr(2 * n + 1) == "2*n + 1" and (2 * n + 1).max == 19 and (n - 1).min == 2
    assert repr(dims("u", "v")) == "(Dim('u', min=0), Dim('v', min=0))"
    assert repr(Dim.AUTO(min=2, max=4)) == "DimHint(AUTO, min=2, max=4)"
    with pytest.raises(AssertionError, match="valid identifier"):
        Dim("1x")
    with pytest.raises(AssertionError, match="inconsistent min=5, max=3"):
        Dim("x", min=5, max=3)
    with pytest.raises(NotImplementedError, match="positive"):
        -1 * n


def test_shapes_that_do_not_fit():
    x = torch.randn(6, 4)
    violated = torch.fx.experimental.symbolic_shapes.ConstraintViolationError

    class Adds(nn.Module):
        def forward(self, x, y):
            return x + y

    def bad(shapes, message, kind=UserError):
        with pytest.raises(kind, match=message):
            export(Adds(), (x, x.clone()), dynamic_shapes=shapes)

    bad({"x": {0: BATCH}}, r"top-level keys must be the arg names \['x', 'y'\]")
    bad(({0: BATCH},), "has 1 parts, but there are 2")
    bad(({2: BATCH}, None), "dimension 2 of a tensor")
    bad(({0: "a"}, None), "Unexpected dimension mapped to index 0")
    bad(((5, None), None), "Static shape constraint of 5 does not match input size of 6", violated)
    bad(((None,), None), "Expected 2 dimensions")
    bad(({0: Dim("s", min=7)}, None), r"not in range \[7, int_oo\]", violated)
    bad(({0: 4 * Dim("s")}, None), "not in range", violated)
    bad(({0: Dim("s", max=7)}, {0: Dim("s", max=8)}), "Found different definitions")
    bad(({0: Dim("s"), 1: Dim("s")}, None), "6 and 4 in the example")
    program = export(Adds(), (x, x.clone()), dynamic_shapes=((BATCH, 4), (BATCH, None)))
    assert ranges(program) == {"s0": Range(3, 100)}


def test_collections():
    class Nested(nn.Module):
        def forward(self, pair, more):
            return pair["a"] + more[0], pair["b"]

    pair, more = {"a": torch.ones(4), "b": torch.ones(5)}, [torch.ones(4)]
    shapes = ShapesCollection()
    shapes[pair["a"]] = {0: Dim("n")}
    shapes[more[0]] = {0: Dim("n")}
    assert len(shapes) == 2 and shapes[pair["b"]] == {}
    program = export(Nested(), (pair, more), dynamic_shapes=shapes)
    big = torch.ones(9)
    assert program.module()({"a": big, "b": torch.ones(5)}, [big])[0].shape == (9,)

    inputs = AdditionalInputs()
    inputs.add(({"a": torch.ones(6), "b": torch.ones(5)}, [torch.ones(6)]))
    with pytest.raises(UserError, match="specialized"):
        export(
            Nested(),
            ({"a": torch.ones(4), "b": torch.ones(5)}, [torch.ones(1)]),
            dynamic_shapes=({"a": {0: Dim.DYNAMIC}, "b": None}, [{0: Dim.DYNAMIC}]),
        )
    program = export(Nested(), (pair, more), dynamic_shapes=inputs)
    inputs.verify(program)


# ---- expressions ----


def test_expressions_and_their_texts():
    s, t = Expression.symbol("s0"), Expression.symbol("s1")
    cases = {
        "2*s0": s * 2,
        "s0 + 1": s + 1,
        "s1 - 2": t - 2,
        "s0*s1": s * t,
        "(s0//2) + 1": s // 2 + 1,
        "s1**2 + s0": t * t + s,
        "Mod(s0, 3)": s % 3,
        "Max(s0, s1)": Expression.call("Max", t, s),
        "2*s0 + s1 ": None,
        "s0": (s * 4) // 4,
        "3": s * 0 + 3,
        "0": s - s,
    }
    for text, expression in cases.items():
        if expression is not None:
            assert str(expression) == text
            assert parse(sympy_text(expression)) == expression
    assert (t // s + 1).value({"s0": 2, "s1": 9}) == 5
    for bad in ("", "Add(", "Symbol('a b')", "os.system('x')", "Add('x')", "f" * 30000, "(" * 99):
        with pytest.raises(ValueError, match="expression of a size"):
            parse(bad)
    many = ", ".join(f"Symbol('s{i}')" for i in range(40))
    many = f"Add({many})"
    for huge in (f"Pow({many}, Integer(16))", f"Mul({many}, {many}, {many})"):
        with pytest.raises(ValueError, match="more than"):
            parse(huge)
    assert str(parse("PowByNatural(Integer(9), Integer(999999999))")).startswith("PowByNatural")
    deep = "Add(" * 100 + "Integer(1)" + ")" * 100
    with pytest.raises(ValueError, match="too deep"):
        parse(deep)


def test_sizes_are_numbers():
    n = SizeInt(10, Expression.symbol("s0"))
    assert torch.zeros(n).shape == (10,) and list(range(n)) == list(range(10))
    assert n == 10 and hash(n) == hash(10) and f"{n}" == "s0" and f"{n:3d}" == " 10"
    assert str(n // 2 + 1) == "(s0//2) + 1" and str(3 - n) == "-s0 + 3"
    assert type(int(n)) is int and not isinstance(max(n, 3), bool)


@pytest.mark.parametrize(("factor", "rest"), [(2, 0), (3, 1), (1, 5)])
def test_sizes_that_stand_alone_for_an_expression(factor, rest):
    """`2*n` of a module: the numbers of n's range, doubled, and no others; also where another size follows it."""

    class Two(nn.Module):
        def forward(self, x, y):
            return x * 2, y + 1

    n = Dim("n", min=2, max=10)
    example = (torch.ones(factor * 4 + rest, 3), torch.ones(4))
    sizes = ({0: factor * n + rest if rest else factor * n}, {0: n})
    module = export(Two(), example, dynamic_shapes=sizes).module()
    alone = export(nn.Identity(), example[:1], dynamic_shapes=sizes[:1]).module()
    allowed = {factor * k + rest for k in range(2, 11)}
    for size in range(1, factor * 11 + rest + 3):
        x, y = torch.ones(size, 3), torch.ones(max((size - rest) // factor, 0))
        for call, given in ((alone, (x,)), (module, (x, y))):
            if size in allowed:
                call(*given)
            else:
                with pytest.raises(AssertionError, match="Guard failed"):
                    call(*given)
