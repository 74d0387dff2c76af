"""`jit.script` of functions: what is compiled does what Python does, and what is not says so."""

# ruff: noqa: F811, UP006, UP007, UP035, UP045  # the forms that programs for TorchScript are written in

import enum
import math
from dataclasses import dataclass, field
from typing import Dict, List, NamedTuple, Optional, Tuple, Union

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, jit, nn

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")


class Point:
    def __init__(self, x: int, y: int = 2):
        self.x = x
        self.y = y

    def norm(self) -> float:
        return float(self.x * self.x + self.y * self.y) ** 0.5

    def __add__(self, other: "Point") -> "Point":
        return Point(self.x + other.x, self.y + other.y)

    def __neg__(self) -> int:
        return -self.x

    def __getitem__(self, i: int) -> int:
        return self.x if i == 0 else self.y

    def __len__(self) -> int:
        return 2

    @staticmethod
    def zero() -> int:
        return 0

    @property
    def total(self) -> int:
        return self.x + self.y


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Pair(NamedTuple):
    a: Tensor
    b: int = 3


@dataclass
class Size:
    width: int
    height: float = 2.0


@dataclass(order=True)
class Ranked:
    rank: int
    name: str
    weight: float = field(default=1.0, compare=False)


@dataclass
class Labels:
    names: List[Tuple[str, int]]  # PyTorch compares no such lists


@jit.interface
class Adds:
    def add(self, x: Tensor) -> Tensor:
        pass


K = 3.5


def helper(x, n: int = 3):
    return x + n - 1


# ---- statements and expressions ------------------------------------------------------------------


def numbers(n: int, x: float):
    a, (b, c) = 1, (2, 3)
    odd = [i for i in range(10) if i % 2 == 1]
    table = {i: str(i) for i in odd}
    words: List[str] = []
    i = 0
    while True:
        i += 1
        if i == 2:
            continue
        if i > n:
            break
        words.append(f"w{i}")
    total = 0
    for k, (p, q) in enumerate(zip(odd, reversed(odd))):  # noqa: B905
        total += k * p - q
    return (
        *(a, b + c),
        odd[1:-1],
        table,
        words,
        total,
        -n // 2,
        max(odd),
        not n,
        n if n > 2 else -n,
        f"{n}-{x}",
        "%d-%s" % (n, "s"),  # noqa: UP031
        "a b".upper().split(" "),
        5 in table,
        math.floor(x),
        (1, 2) + (3,),
        len((1, "a")),
        odd[slice(1, 3)],
    )


def tensors(x):
    x = x.clone()
    x[0] = 5.0
    x[:, 1] += 2
    y = x[..., None, 1:]
    z = x.view(-1)[torch.tensor([0, 1])]
    w = torch.where(x > 0, x, -x).sum(dim=0)
    return y, z, w, x.shape, x.size(0), x.dtype == torch.float32, x.where(x > 1, w)


def branches(x, n: Optional[int] = None, other: Optional[Tensor] = None):
    if n is not None and n > 1:
        x = x * n
    if other is None:
        return x
    for i in range(3):
        if i == 2:
            return x + other
        x = x + 1
    return x


def uses_names(x):
    return helper(x) * 1 + K + helper(x, n=1)


def equal(a, b):
    if isinstance(a, Tensor):
        return torch.equal(a, b)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b


@pytest.mark.parametrize(
    "function, inputs",
    [
        (numbers, [(4, 1.5), (0, -2.5)]),
        (tensors, [(torch.tensor([[1.0, -2.0], [3.0, 4.0]]),)]),
        (branches, [(torch.ones(2),), (torch.ones(2), 3), (torch.ones(2), 1, torch.ones(2))]),
        (uses_names, [(torch.ones(2),)]),
    ],
)
def test_programs_do_what_python_does(function, inputs):
    program = jit.script(function)
    assert isinstance(program, jit.ScriptFunction) and jit.script(program) is program
    for given in inputs:
        assert equal(program(*given), function(*given))


def test_what_a_script_function_has(tmp_path):
    program = jit.script(helper)
    assert program.name == "helper" and "n: int=3" in program.code
    assert str(program.schema) == "helper(Tensor x, int n=3) -> Tensor"
    assert "aten::add" in str(program.graph) and isinstance(program.graph, torch._C.Graph)
    assert "prim::CallFunction" in str(jit.script(uses_names).graph)
    assert "prim::CallFunction" not in str(jit.script(uses_names).inlined_graph)
    text, constants = jit.script(lambda_free).code_with_constants
    assert "CONSTANTS" not in text and constants.const_mapping == {}
    path = tmp_path / "helper.pt"
    program.save(path)
    assert jit.load(path)(torch.ones(1), 5).item() == 5
    with pytest.raises(Exception, match="pickled"):
        __import__("pickle").dumps(program)
    with pytest.raises(RuntimeError, match="expected a value of type 'int'"):
        program(torch.ones(1), "a")
    with pytest.raises(RuntimeError, match="at most 2 arguments"):
        program(torch.ones(1), 1, 2)


def lambda_free(x):
    return x + 1


def test_gradients_and_modes():
    x = torch.randn(3, requires_grad=True)
    program = jit.script(uses_names)
    (program(x) * torch.arange(3)).sum().backward()
    assert x.grad.tolist() == [0, 2, 4]

    def quiet(x):
        with torch.no_grad():
            y = x * 2
        return y, x * 2

    first, second = jit.script(quiet)(x)
    assert not first.requires_grad and second.requires_grad


def test_a_failing_with_leaves_its_context():
    def fails(x):
        with torch.no_grad():
            if bool(x.sum() > 0):
                raise ValueError("too much")
        return x

    with pytest.raises(jit.Error, match="too much"):
        jit.script(fails)(torch.ones(1))
    assert torch.is_grad_enabled()


# ---- classes -------------------------------------------------------------------------------------


def test_classes():
    def f(x: int):
        p = Point(x) + Point(1, 5)
        return p.norm(), p[0], len(p), Point.zero(), p.zero(), p.total, -p

    assert jit.script(f)(3) == f(3)
    assert jit.script(Point) is Point

    def moved(p: Point) -> Point:
        p.x = p.x + 1
        return p

    point = jit.script(moved)(Point(3))
    assert type(point) is Point and (point.x, point.y) == (4, 2)
    with pytest.raises(RuntimeError, match="expected a value of type"):
        jit.script(moved)(Color.RED)


def test_classes_that_cannot_be():
    class Child(list):
        pass

    with pytest.raises(RuntimeError, match="does not support inheritance"):
        jit.script(Child)
    with pytest.raises(RuntimeError, match="inherits from nn.Module"):
        jit.script(nn.Linear)


def test_shared_lists_and_dicts():
    def change(items: List[int], d: Dict[str, int]) -> int:
        items.append(len(d))
        d["new"] = items[0]
        return len(items)

    numbers, table = jit.script([1, 2]), jit.script({"a": 1})
    assert jit.script(change)(numbers, table) == 3
    assert list(numbers) == [1, 2, 1] and dict(table.items()) == {"a": 1, "new": 1}
    numbers.insert(0, 9)
    numbers.extend([4])
    assert numbers.pop() == 4 and numbers[0] == 9 and len(numbers) == 4 and 2 in numbers
    assert (
        repr(numbers[1:3]) == "[1, 2]" and numbers.count(1) == 2 and repr(table) == "{a: 1, new: 1}"
    )
    del table["a"]
    with pytest.raises(KeyError):
        table["a"]
    with pytest.raises(IndexError):
        numbers.pop(9)
    numbers[1:3] = [5]
    numbers[-1] = 6
    assert list(numbers) == [9, 5, 6]
    del numbers[:1], numbers[-1]
    assert list(numbers) == [5] and not jit.script([1])[1:]
    with pytest.raises(TypeError, match="int"):
        numbers.append("x")
    with pytest.raises(jit.Error, match="Unable to infer type"):
        jit.script([1, "a"])
    assert jit.script(numbers) is numbers


def test_dataclasses():
    def f(n: int):
        size = Size(n)
        return size.width * size.height, size == Size(3), size == Size(3, 1.0)

    assert jit.script(f)(3) == f(3) == (6.0, True, False)


def test_what_has_no_hash_says_so():
    def f(x: Tuple[int, List[int]]) -> int:
        return hash(x)

    with pytest.raises(RuntimeError, match="unhashable type: 'list'"):
        jit.script(f)((1, [1]))


def test_comparisons_of_dataclasses():
    def f(n: int):
        one, other = Ranked(n, "a"), Ranked(2, "a", 3.0)
        return one == other, one < other, one <= other, one > other, one >= other

    program = jit.script(f)
    for n in (1, 2, 3):
        assert program(n) == f(n)


def test_comparisons_that_no_program_makes_are_not_compiled():
    def f(n: int):
        return len(Labels([("a", n)]).names)

    assert jit.script(f)(2) == 1


def test_enums_and_named_tuples():
    def names(c: Color) -> Tuple[str, int, bool]:
        return c.name, c.value, c == Color.RED

    def chosen(i: int) -> Color:
        return Color.RED if i == 0 else Color.GREEN

    def pairs(x):
        p = Pair(x, 4)
        return Pair(p.a * 2), p.b

    assert jit.script(names)(Color.GREEN) == ("GREEN", 2, False)
    assert jit.script(chosen)(1) is Color.GREEN
    pair, b = jit.script(pairs)(torch.ones(1))
    assert type(pair) is Pair and pair.a.item() == 2 and pair.b == 3 and b == 4
    mixed = enum.Enum("mixed", {"A": 1, "B": "b"})
    with pytest.raises(RuntimeError, match="not all of one type"):
        jit.script(mixed)


def test_interfaces():
    class Two:
        def __init__(self):
            self.n = 2

        def add(self, x: Tensor) -> Tensor:
            return x + self.n

    jit.script(Two)

    def f(x, one: Adds):
        return one.add(x)

    assert jit.script(f)(torch.ones(1), Two()).item() == 3


def test_unions_and_refinement():
    def f(x: Union[int, Tensor, List[int]]) -> int:
        if isinstance(x, int):
            return x
        if jit.isinstance(x, List[int]):
            return x[0]
        return int(x.sum())

    program = jit.script(f)
    assert program(3) == 3 and program([4, 5]) == 4 and program(torch.ones(2)) == 2
    with pytest.raises(RuntimeError, match="Union"):
        program("a")


# ---- other functions -----------------------------------------------------------------------------


@jit._overload
def doubled(x: Tensor) -> Tensor: ...
@jit._overload
def doubled(x: int) -> int: ...
def doubled(x):
    return x + x


def test_overloads():
    def f(x, n: int):
        return doubled(x), doubled(n)

    out = jit.script(f)(torch.ones(1), 4)
    assert out[0].item() == 2 and out[1] == 8
    with pytest.raises(RuntimeError, match="overloads"):
        jit.script(doubled)


def test_functions_that_stay_python():
    seen = []

    @jit.ignore
    def python(x: Tensor, n: int) -> List[int]:
        seen.append(n)
        return [int(x.sum()), n]

    @jit.unused
    def never(x: Tensor, *rest) -> Tensor:
        return yield_from(rest)  # noqa: F821

    def f(x, n: int):
        if n > 5:
            x = never(x)
        return python(x, n)

    program = jit.script(f)
    assert program(torch.ones(2), 3) == [2, 3] and seen == [3]
    with pytest.raises(jit.Error, match="unused"):
        program(torch.ones(2), 6)
    with pytest.raises(RuntimeError, match="Could not export Python function"):
        program.save_to_buffer()

    @jit.ignore
    def wrong(x) -> int:
        return "text"

    def g(x):
        return wrong(x)

    with pytest.raises(RuntimeError, match="expected a value of type 'int'"):
        jit.script(g)(torch.ones(1))


def test_errors_of_python_come_out_of_programs():
    @jit.ignore
    def fails(x) -> int:
        raise ZeroDivisionError("mine")

    def f(x):
        return fails(x)

    with pytest.raises(ZeroDivisionError, match="mine"):
        jit.script(f)(torch.ones(1))


def test_tasks():
    def f(x):
        a = jit.fork(helper, x, 2)
        b = jit.fork(helper, x, n=3)
        return jit.wait(a) + jit.wait(b)

    assert jit.script(f)(torch.ones(1)).item() == f(torch.ones(1)).item() == 5


def test_questions():
    def f():
        if jit.is_scripting():
            return 1
        return undefined_here + 1  # noqa: F821  # never compiled

    assert jit.script(f)() == 1
    wrapped = jit.script_if_tracing(branches)
    assert wrapped(torch.ones(1)).item() == 1
    assert jit.script(wrapped)(torch.ones(1), 4).item() == 4


def test_functions_of_the_library():
    def f(x, w):
        y = F.max_pool2d(F.relu(F.conv2d(x, w)), 2)
        y = F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)
        y = F.dropout(F.pad(y, [1, 1]), 0.0)
        return F.softmax(y.flatten(1), dim=1), torch.einsum("ij,kj->ik", y[0, 0], y[0, 1])

    x, w = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
    assert equal(jit.script(f)(x, w), f(x, w))


# ---- what is refused -----------------------------------------------------------------------------


def has_lambda(x):
    f = lambda y: y
    return f(x)


def has_try(x):
    try:
        return x
    except ValueError:
        return -x


def has_generator(x):
    yield x


def takes_any(*args):
    return args[0]


async def waits(x):
    return x


@pytest.mark.parametrize(
    "function, word",
    [
        (has_lambda, "lambda"),
        (has_try, "try"),
        (has_generator, "yield"),
        (takes_any, "any number of arguments"),
        (waits, "async"),
        (lambda x: x, "lambda"),
    ],
)
def test_constructs_that_programs_lack(function, word):
    from rushlight.jit.frontend import FrontendError, NotSupportedError

    with pytest.raises(NotSupportedError, match=word) as error:
        jit.script(function)
    assert isinstance(error.value, FrontendError)
    if word in ("try", "yield"):
        assert __file__ in str(error.value) and "HERE" in str(error.value)


def recursive(n: int):
    return 1 if n == 0 else recursive(n - 1)


def endless(n: int) -> int:
    return endless(n + 1)


def is_even(n: int) -> bool:
    return True if n == 0 else is_odd(n - 1)


def is_odd(n: int) -> bool:
    return False if n == 0 else is_even(n - 1)


def test_functions_call_each_other():
    program = jit.script(is_even)
    assert program(10) and not program(7)
    with pytest.raises(RuntimeError, match="deep"):
        jit.script(endless)(0)


outer = torch.ones(1)


def takes_tensor_from_outside(x):
    return x + outer


@pytest.mark.parametrize(
    "thing, message",
    [
        (recursive, "called recursively"),
        (takes_tensor_from_outside, "tensor outside of the program"),
        (3, "takes a function"),
        (Point(1).norm, "method of an object"),
    ],
)
def test_what_cannot_be_compiled(thing, message):
    with pytest.raises(RuntimeError, match=message):
        jit.script(thing)


def test_script_is_deprecated():
    with pytest.warns(DeprecationWarning, match=r"`torch\.jit\.script` is deprecated"):
        jit.script(helper)
    with pytest.raises(NotImplementedError, match="example_inputs"):
        jit.script(helper, example_inputs=[(1,)])
