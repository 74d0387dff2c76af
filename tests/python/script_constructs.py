"""The constructs of TorchScript's language reference as programs, each with arguments.

`ROWS` compile in PyTorch and here, and give what Python gives; `BEYOND` compile here alone; `REFUSED` name the words of
the error. tests/parity reads this file with PyTorch in the place of `torch`.
"""

# The forms that programs for TorchScript are written in.
# ruff: noqa: UP006, UP007, UP031, UP032, UP035, UP045, E741, F401, B905, PIE790, SIM201, SIM905

import enum
import math
from collections import namedtuple
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union

import rushlight as torch

ROWS = []
BEYOND = []
REFUSED = []


def row(*arguments, to=ROWS):
    """Adds a function or a class of modules to a table, with the arguments that it is called with."""

    def add(function):
        to.append((function, arguments))
        return function

    return add


def beyond(*arguments):
    return row(*arguments, to=BEYOND)


def refused(words):
    return row(words, to=REFUSED)


# ---- types ----


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Pair(NamedTuple):
    first: int
    second: float = 0.5


Bare = namedtuple("Bare", ["a", "b"])


@row((1, (2.0, "x")))
def any_type(x: Tuple[int, Any]):
    return x[0] + 1, x[1]


@row(3)
def any_is_asked(x: Any) -> str:
    if isinstance(x, int):
        return "int"
    if isinstance(x, torch.Tensor):
        return "tensor"
    return "other"


@row(3)
def complex_numbers(n: int) -> float:
    return abs(complex(n, 4.0) * 2)


@row(Color.RED, Color.GREEN)
def enums(x: Color, y: Color) -> Tuple[bool, bool, str, int]:
    return x == Color.RED, x == y, y.name, y.value


@row(2)
def named_tuples(n: int) -> Tuple[int, float, int]:
    pair = Pair(n)
    other = Pair(first=1, second=2.0)
    first, second = other
    return pair.first, pair.second + second, first


@row(torch.ones(2))
def unannotated_named_tuples(x) -> torch.Tensor:
    made = Bare(x, x + 1)
    return made.a + made[1]


@row(True)
def optionals(known: bool) -> int:
    x: Optional[int] = None
    if known:
        x = 3
    if x is None:
        return -1
    return x + 1


@row(5)
def optional_is_asserted(n: Optional[int]) -> int:
    assert n is not None
    return n + 1


@row(None)
def optional_is_refined_by_and(n: Optional[int]) -> bool:
    return n is not None and n > 2


@row((1, [2]), [1, 2], 3)
def containers_are_asked(x: Any, y: Any, z: Any) -> Tuple[bool, bool, bool, bool]:
    both = isinstance(x, tuple), isinstance(y, tuple)
    return both[0], both[1], isinstance(y, list), isinstance(z, (list, tuple))


@row(2.5)
def unions(x: Union[int, float, str]) -> float:
    if isinstance(x, int):
        return float(x)
    if isinstance(x, float):
        return x * 2
    return 0.0


@row([1, 2])
def unions_are_narrowed_by_returns(x: Union[int, str, List[int]]) -> int:
    if isinstance(x, int):
        return x
    elif isinstance(x, str):  # noqa: RET505
        return 1
    return len(x)


@row([1, 2])
def union_of_lists(x: Union[List[int], Dict[str, int]]) -> int:
    return len(x) if isinstance(x, list) else -1


@row(torch.arange(4))
def devices_and_dtypes(x):
    return x.to(torch.float64).dtype == torch.float64, x.device == torch.device("cpu")


@row(3)
def broadcast_annotations(n: int):
    def_list = torch.jit.annotate(List[int], [])
    def_list.append(n)
    empty: Dict[str, List[int]] = {}
    empty["a"] = def_list
    return empty


@row(torch.ones(2), 3)
def types_of_comments(a, b):
    # type: (Tensor, int) -> Tensor
    return a + b


@row([[1, 2], [3]])
def new_style_generics(x: list[list[int]]) -> dict[str, tuple[int, int]]:
    return {"a": (x[0][0], len(x))}


@row(4)
def unions_with_bars(x: int | None) -> int:
    return 0 if x is None else x


# ---- classes ----


class Base:
    def __init__(self, n: int):
        self.n = n

    def twice(self) -> int:
        return self.n * 2

    def label(self) -> str:
        return "base"


class Child(Base):
    def __init__(self, n: int, scale: float):
        super().__init__(n + 1)
        self.scale = scale

    def label(self) -> str:
        return "child of " + super().label()

    def scaled(self) -> float:
        return self.twice() * self.scale


class Account:
    def __init__(self, amount: int):
        self.amount = amount
        self.history: List[int] = []

    def add(self, by: int) -> "Account":
        self.amount += by
        self.history.append(by)
        return self

    @property
    def doubled(self) -> int:
        return self.amount * 2

    @doubled.setter
    def doubled(self, value: int):
        self.amount = value // 2

    @staticmethod
    def fee(n: int) -> int:
        return n // 10

    def __len__(self) -> int:
        return len(self.history)

    def __lt__(self, other: "Account") -> bool:
        return self.amount < other.amount

    def __add__(self, other: "Account") -> "Account":
        return Account(self.amount + other.amount)

    def __contains__(self, n: int) -> bool:
        return n in self.history

    def __getitem__(self, i: int) -> int:
        return self.history[i]

    def __call__(self, n: int) -> int:
        return self.amount + n


@row(5)
def classes(n: int):
    a = Account(n)
    b = a.add(2).add(3)
    b.doubled = 40
    return b.amount, a.doubled, len(a), a < Account(100), (a + b).amount


@row(5)
def magic_methods(n: int):
    a = Account(n).add(7)
    return 7 in a, a[0], a(1), Account.fee(a.amount)


@beyond(3)
def inheritance(n: int):
    child = Child(n, 0.5)
    return child.twice(), child.label(), child.scaled(), child.n


@row(3)
def lists_of_objects(n: int) -> int:
    all = [Account(i) for i in range(n)]
    total = 0
    for one in all:
        total += one.add(1).amount
    return total


# ---- expressions ----


@row(7, 2)
def arithmetic(a: int, b: int):
    return a + b, a - b, a * b, a / b, a // b, a % b, -a, a**b == 49


@row(-7, 2.5)
def mixed_arithmetic(a: int, b: float):
    return a // b, a % b, a * b, a - b, a / b, b**2, abs(a), -7 // 2, -7 % 3


@row(6, 3)
def bitwise(a: int, b: int):
    return a & b, a | b, a ^ b, a << b, a >> 1


@row(torch.tensor([5, 6]), 2)
def bitwise_of_tensors(a, n: int):
    return a & 3, a | 8, a ^ a, ~a, a << n, a >> 1


@row(torch.arange(4.0).view(2, 2))
def matrix_products(x):
    return x @ x


@row(1, 2, 3)
def chains(a: int, b: int, c: int):
    return a < b < c, a == b == c, a < b > c, not a == b


@row("b", [1, 2], {"a": 1})
def membership(s: str, l: List[int], d: Dict[str, int]):
    return 1 in l, 3 not in l, "a" in d, s in d, s in "abc", 2 in (1, 2)


@row(None)
def identity(x: Optional[int]):
    return x is None, x is not None


@row(True, False)
def booleans(a: bool, b: bool):
    return a and b, a or b, not a, (a and not b) or b


@row(3)
def conditional_expressions(n: int):
    return "big" if n > 2 else "small", (1 if n else 2) + 1


@row([1, 2, 3])
def comprehensions(l: List[int]):
    return [i * 2 for i in l], {i: i * i for i in l}, [[j + i for j in l] for i in range(2)]


@beyond([1, 2, 3])
def conditions_of_comprehensions(l: List[int]):
    return [i for i in l if i > 1 if i < 3], {str(i): i for i in l if i != 2}


@beyond([[1, 2], [3]])
def comprehensions_of_several_loops(l: List[List[int]]):
    return [i + 1 for inner in l for i in inner if i != 2], [
        a * b for a in range(3) for b in (1, 2)
    ]


@row([1, 2, 3])
def generators(l: List[int]):
    return sum(i * 2 for i in l), any(i > 2 for i in l), all(i > 2 for i in l), max(i for i in l)


@beyond([1, 2], [3])
def stars_of_lists(a: List[int], b: List[int]):
    return [*a, *b, 7], [0, *range(len(a)), *a]


@row(torch.arange(24))
def stars_of_arguments(x):
    sizes = (2, 3, 4)
    return x.view(*sizes)


@beyond(torch.arange(24.0), [2, 3])
def stars_of_lists_as_arguments(x, sizes: List[int]):
    return x.reshape(*sizes, 4).permute(*[2, 0, 1]), torch.ones(1, *sizes, 1)


@row([1, 2, 3, 4, 5])
def slices_of_lists(l: List[int]):
    return l[1:], l[:-1], l[::2], l[::-1], l[-2], l[1:4:2]


@row("hello")
def slices_of_strings(s: str):
    return s[0], s[1:3], s[-1], s[::-1]


@row((1, 2.0, "x", True))
def slices_of_tuples(t: Tuple[int, float, str, bool]):
    return t[0], t[-1], t[1:3]


@row(torch.arange(24).view(2, 3, 4), 1)
def indices_of_tensors(x, n: int):
    return (
        *(x[0], x[0, 1], x[:, 1], x[..., 0], x[None].dim(), x[:, :, ::2], x[-1, n:, :2]),
        *(x[x > 20], x[torch.tensor([0, 1]), n], x[[0, 1], [1, 2]]),
    )


@row("x", 3, 2.5)
def strings(s: str, n: int, f: float):
    return (
        *(f"{s}-{n}", "{} {}".format(n, s), "%s is %d" % (s, n), s + "y"),
        *(
            s.upper(),
            "a,b".split(","),
            "-".join(["a", "b"]),
            " a ".strip(),
            "abc".replace("b", "x"),
        ),
        *("abc".find("c"), "abc".startswith("ab"), "abc".endswith("bc"), s == "x", "a" < "b"),
        *(
            "1".isdigit(),
            "a".isalpha(),
            "Ab".lower(),
            "ab".capitalize(),
            "a\tb",
            'q"q',
            ord("a"),
            chr(98),
        ),
        *(
            "abc".count("b"),
            "x".rjust(3),
            "x".zfill(3),
            "a b".title(),
            "abc".index("b"),
            "a-b".partition("-"),
        ),
    )


@row([3, 1, 2])
def methods_of_lists(l: List[int]):
    l.append(4)
    l.extend([5, 6])
    l.insert(0, 9)
    last = l.pop()
    first = l.pop(0)
    l.remove(1)
    l.reverse()
    l.sort()
    copied = l.copy()
    copied.clear()
    return l, last, first, l.index(5), l.count(2), len(copied), sorted(l), min(l), max(l), sum(l)


@row({"a": 1, "b": 2})
def methods_of_dicts(d: Dict[str, int]):
    d["c"] = 3
    d.update({"a": 5})
    popped = d.pop("b")
    default = d.setdefault("z", 9)
    keys, values, items = list(d.keys()), list(d.values()), list(d.items())
    return (
        keys,
        values,
        items,
        popped,
        default,
        d.get("q"),
        d.get("q", 7),
        len(d),
        "a" in d,
        d.copy(),
    )


@row(2.5, -3)
def builtin_functions(f: float, n: int):
    return (
        *(
            abs(n),
            int(f),
            float(n),
            bool(n),
            str(n),
            min(n, 4),
            max(f, 3.0),
            divmod(7, 2),
            pow(f, 2.0),
        ),
        *(
            math.floor(f),
            math.ceil(f),
            math.sqrt(4.0),
            math.pi,
            math.inf > f,
            hex(255),
            oct(8),
            bin(5),
        ),
        *(len("abc"), sum([1, 2]), all([True, False]), any([True, False]), list("ab")),
    )


@row(3)
def isinstance_of_known_types(n: int):
    return (
        isinstance(n, int),
        isinstance(n, (float, int)),
        isinstance("a", str),
        isinstance([n], list),
    )


def named(x: int, *, by: int = 2) -> int:
    return x * by


@beyond(4, "x", [3, 1, 2])
def more_than_torchscript(n: int, s: str, l: List[int]):
    n //= 3
    n %= 5
    n <<= 3
    n >>= 1
    ...
    for i in reversed(l):
        n += i
    return +n, s + "y", named(n, by=3)


@beyond([2, 3, 4])
def products_of_lists(l: List[int]):
    return math.prod(l)


@beyond("ab", 3, [2, 3, 1], {"b": 1, "a": 2})
def more_operators(s: str, n: int, l: List[int], d: Dict[str, int]):
    return (
        *(s * n, 2 * s, s * -1, ~n, ~(n > 2), ~~n),
        *(sorted(l, reverse=True), sorted(l, reverse=n < 2), l, sorted(d), sorted("cab")),
        *(sorted((3, 1, 2)), sorted([(1, "b"), (1, "a"), (0, "c")], reverse=True)),
    )


@beyond(([1, 2], [3, 4]))
def stars_of_zips(pair: Tuple[List[int], List[int]]):
    return [a * b + c for a, b, c in zip(*pair, [5, 6])]


# ---- statements ----


@row((1, (2.0, [3, 4])))
def assignments(t: Tuple[int, Tuple[float, List[int]]]):
    a, (b, c) = t
    d = e = a + 1
    f, *g = (1, 2, 3)
    first, second = c
    c[0] = 7
    c[-1] += 1
    a, b2 = second, first
    return a, b, c, d, e, f, g[1], b2


@row(10, 2.0)
def augmented_assignments(n: int, f: float):
    n += 3
    n -= 1
    n *= 2
    f /= 4
    n |= 1
    n &= 7
    n ^= 2
    s = "a"
    s += "b"
    return n, f, s


@row(torch.arange(4), torch.tensor([3, 1, 2, 7]), torch.tensor([True, False]))
def bits_of_tensors_in_place(a, b, c):
    a |= 8
    a &= b
    a ^= b
    a <<= 2
    a >>= 1
    c &= a[:2] > 2
    return a, c


@row(torch.zeros(2, 3), 2)
def assignments_to_tensors(x, n: int):
    x[0] = 1
    x[:, 1] = n
    x[1, 2] += 5
    x[x > 4] = -1
    x += 1
    x[torch.tensor([0]), torch.tensor([0])] = 9.0
    return x


@row([1, 2, 3], {"a": 1})
def deletions(l: List[int], d: Dict[str, int]):
    del l[1]
    del d["a"]
    return l, len(d)


@row(4)
def while_loops(n: int) -> int:
    total = 0
    while n > 0 and total < 100:
        n -= 1
        if n == 2:
            continue
        total += n
        if total > 50:
            break
    return total


@row(5)
def for_loops(n: int):
    seen: List[int] = []
    for i in range(n):
        if i == 1:
            continue
        if i == 4:
            break
        seen.append(i)
    for i in range(1, 10, 4):
        seen.append(i)
    for i in range(3, 0, -1):
        seen.append(i)
    return seen


@row([1, 2], ["a", "b"], {"x": 1})
def loops_over_containers(l: List[int], s: List[str], d: Dict[str, int]):
    out = ""
    for i, (n, t) in enumerate(zip(l, s)):
        out += str(i) + str(n) + t
    for key in d:
        out += key
    for key, value in d.items():
        out += key + str(value)
    for i, n in enumerate(l, 5):
        out += str(i * n)
    for t in "xy":
        out += t
    for n in (1, 2):
        out += str(n)
    return out


@row(torch.arange(6).view(3, 2))
def loops_over_tensors(x):
    total = torch.zeros(2)
    for each in x:
        total = total + each
    return total


@row([1, 2], [3, 4])
def strict_zips(a: List[int], b: List[int]):
    return [x * y for x, y in zip(a, b, strict=True)]


@beyond(4)
def exits_of_loops_over_tuples(n: int):
    total = 0
    for i in (1, 2, 3, 4):
        if i == n - 2:
            continue
        if i > n:
            return -1
        total += i
        if total > 3:
            break
    for word in ("a", "bb"):
        if len(word) == n:
            return -2
        for _ in range(2):
            if word == "bb":
                break
            total += 10
    return total


@row(3)
def early_returns(n: int) -> int:
    if n > 5:
        return 1
    for i in range(n):
        if i == 2:
            return i * 10
    while n < 100:
        n += 1
        if n > 7:
            return n
    return 0


@row(2)
def assertions(n: int):
    assert n > 1
    assert n == 2, "n is two"
    return n


@row(1)
def raises_value_error(n: int) -> int:
    if n == 1:
        raise ValueError("it is one")
    return n


@row(2)
def fails_by_assertion(n: int) -> int:
    assert n > 5, f"{n} is small"
    return n


@row(3)
def passes(n: int):
    if n > 2:
        pass
    else:
        n += 1
    return n


def scaled(x: int, by: int = 2, plus: int = 0) -> int:
    return x * by + plus


@row(3)
def calls(n: int):
    return scaled(n), scaled(n, 3), scaled(n, by=4, plus=1), scaled(x=n, plus=2)


@beyond(5)
def recursion(n: int) -> int:
    return 1 if n < 2 else n * recursion(n - 1)


@row(torch.ones(2))
def grad_modes(x):
    with torch.no_grad():
        y = x * 2
    return y, torch.is_grad_enabled()


@row(torch.ones(2))
def scripting_is_asked(x):
    if torch.jit.is_scripting():
        return x + 0
    return x


@row(2)
def forks(n: int) -> int:
    future = torch.jit.fork(scaled, n, 5)
    return torch.jit.wait(future)


# ---- modules ----


class Layered(torch.nn.Module):
    limit: Final[int] = 3
    names: List[str]

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Identity() for _ in range(3)])
        self.table = torch.nn.ModuleDict({"a": torch.nn.ReLU(), "b": torch.nn.Identity()})
        self.names = []
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("seen", torch.zeros(2))
        self.count = 0

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x) + i
        for key, layer in self.table.items():
            x = layer(x) if key == "a" else x
        self.names.append("x")
        self.count += 1
        self.seen += 1
        return self.helper(x), self.layers[0](x), self.table["b"](x), self.names, self.count

    def helper(self, x):
        return x * self.weight + self.limit + self.seen


class Derived(Layered):
    def forward(self, x):
        return self.helper(x)


class CallsSuper(Layered):
    def helper(self, x):
        return super().helper(x) * 2

    def forward(self, x):
        return self.helper(x), super().forward(x)[0]


class ByName(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for i in range(3):
            self.add_module(f"part{i}", torch.nn.Identity())

    def forward(self, x):
        for i in (0, 1, 2):
            if i == 1:
                continue
            x = getattr(self, f"part{i}")(x) + i
        return x


class Chosen(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Identity(), torch.nn.ReLU(), torch.nn.Tanh()])
        self.table = torch.nn.ModuleDict({"a": torch.nn.ReLU(), "b": torch.nn.Identity()})

    def forward(self, x, order: List[int]):
        for i in order:
            x = self.layers[i](x - 1)
        for name in ["b", "a"]:
            x = self.table[name](x) * 2
        for i in range(-3, 3):
            x = x + self.layers[i](x)
        return x


class OutOfRange(Chosen):
    def forward(self, x, i: int):
        return self.layers[i](x)


class TogetherWithLists(Chosen):
    def forward(self, xs: List[torch.Tensor]):
        return [layer(x) for layer, x in zip(self.layers, xs, strict=True)]


beyond(torch.ones(2), [0, 1, 2, -1])(Chosen)
beyond(torch.ones(2), 3)(OutOfRange)
beyond([torch.ones(2) * -1] * 3)(TogetherWithLists)


class Exported(torch.nn.Module):
    def forward(self, x):
        return x

    @torch.jit.export
    def other(self, n: int) -> int:
        return n + 1

    @torch.jit.unused
    def never(self, x):
        return eval("x")


class Hooked(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.n = torch.jit.Attribute({"a": 1}, Dict[str, int])

    def forward(self, x):
        return x + self.n["a"] if torch.jit.is_scripting() else x + 1


for kind in (Layered, Derived, Exported, Hooked):
    row(torch.ones(2))(kind)
for kind in (CallsSuper, ByName):
    beyond(torch.ones(2))(kind)


# ---- what is refused ----


@refused("try")
def exceptions_are_not_caught(n: int):
    try:
        return n
    except ValueError:
        return 0


@refused("lambda")
def lambdas(n: int):
    f = lambda x: x
    return f(n)


@refused("any number of arguments|variable number|variadic|Compiled functions can't take")
def variable_arguments(*n: int):
    return n


@refused("global|nonlocal")
def globals_are_not_assigned(n: int):
    global Color
    return n


@refused("previously had type")
def names_keep_their_types(n: int):
    x = 1
    if n > 2:
        x = "a"
    return x


@refused("is not defined in the|has no value")
def names_of_one_branch(n: int):
    if n > 2:
        y = 1
    return y


@refused("set")
def sets(n: int):
    return {n, 2}


@refused("yield|generator")
def yields(n: int):
    yield n


@refused("import|from")
def imports(n: int):
    import os

    return n


@refused("annotated as having type|Return value")
def wrong_results(n: int) -> str:
    return n


@refused("undefined value")
def unknown_names(n: int):
    return nothing_of_that_name + n  # noqa: F821


@refused("else")
def else_of_loops(n: int):
    for _ in range(n):
        pass
    else:
        n += 1
    return n
