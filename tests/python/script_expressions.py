"""Constructs of TorchScript's language reference as programs: types, classes and expressions.

tests/parity reads this file with PyTorch in the place of `torch`.
"""

# The forms that programs for TorchScript are written in.
# ruff: noqa: UP006, UP007, UP031, UP032, UP035, UP045, E741, F401, PIE790, SIM201, SIM905

import enum
import math
from collections import namedtuple
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union

import rushlight as torch
from tests.python.script_table import Table

TABLE = Table()
row, beyond, refused = TABLE.row, TABLE.beyond, TABLE.refused


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


@row(torch.tensor([2.5]), 3.0)
def complex_numbers_of_tensors(x, y: float) -> List[complex]:
    return [complex(x, y), complex(y, x), complex(x, 1)]


@row([1j, 2 + 1j], {1j: 2j, 3 + 0j: 1j})
def complex_numbers_in_containers(x: List[complex], d: Dict[complex, complex]):
    return sum(x), d[1j], 3 + 0j in d, len(d)


@row(torch.tensor(1))
def hashes(x) -> List[bool]:
    y = x.clone()
    return [hash(x) == hash(x), hash(x) == hash(y), hash((1, "a")) == hash((1, "a"))]


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
    return [a * b + c for a, b, c in zip(*pair, [5, 6], strict=True)]
