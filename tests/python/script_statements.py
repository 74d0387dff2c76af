"""Constructs of TorchScript's language reference as programs: statements, modules, and what is refused.

tests/parity reads this file with PyTorch in the place of `torch`.
"""

# The forms that programs for TorchScript are written in.
# ruff: noqa: UP006, UP035, E741, F401, B905

import enum
import math
from collections import namedtuple
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union

import rushlight as torch
from tests.python.script_table import Table

TABLE = Table()
row, beyond, refused = TABLE.row, TABLE.beyond, TABLE.refused


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
    a, c = a.clone(), c.clone()
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


@refused("has no attribute or method")
def methods_of_numbers(n: int):
    return n.add(1)


@refused("undefined value")
def names_that_are_not_there_are_not_deleted(n: int):
    del m  # noqa: F821
    return n


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
