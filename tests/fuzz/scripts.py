"""Makes programs of TorchScript's language at random: `python -m tests.fuzz programs`.

A program is a text of Python with helpers, a class and a function or a module, all of them typed so that it compiles;
what it computes is exact or bounded, and its loops end. `scripts_names.py` runs it as Python, compiled, and loaded
from an archive, and compares. The templates below say what there is of each type: <int> stands for an expression.
"""

import random
import re

NAMES = "tests.fuzz.scripts_names"
ALSO_ALLOWED = ()
SETUP = 0

EXPRESSIONS = {
    "int": (
        ["(<int> + <int>)", "(<int> - <int>)", "(<int> * <int>) % 1009", "-<int>", "abs(<int>)"]
        + ["<int> // (abs(<int>) % 5 + 1)", "<int> % (abs(<int>) % 7 + 1)", "len(<List[int]>)"]
        + ["min(<int>, <int>)", "max(<int>, <int>)", "int(<bool>)", "(<int> if <bool> else <int>)"]
        + ["<Tensor>.size(1)", "<Tensor>.dim()", "len(<str>)", "<str>.find('a')", "(<int> & <int>)"]
        + ["(<int> | 5)", "(<int> ^ 3)", "<Tuple[int, float]>[0]", "len(<Dict[str, int]>)"]
        + ["<Dict[str, int]>.get('a', <int>)", "sum(<List[int]>)", "<Tensor>.shape[0]"]
        + ["sum([len(k) for k in <List[List[int]]>])", "<Pair>.first", "<Mode>.value", "<str>.count('a')"]
        + ["(<int> << 2)", "(<int> >> 1)", "int(<Tensor>.argmax())"]
        + ["math.floor(<float>)", "int(<float>)", "<Tensor>.numel()", "ord('b')"]
    ),
    "float": (
        ["(<float> + <float>)", "(<float> - <float>)", "(<float> * 0.5)", "float(<int>)", "-<float>"]
        + ["min(<float>, <float>)", "max(<float>, <float>)", "abs(<float>)", "(<int> * 0.25)"]
        + ["float(<Tensor>.sum())", "(<float> / 2)", "(<int> / (abs(<int>) + 1))", "(<float> + <int>)"]
        + ["(<float> if <bool> else <float>)", "<Tuple[int, float]>[1]", "float(<bool>)"]
        + ["<Dict[int, float]>.get(<int>, <float>)", "(<float> ** 2)", "float(<Tensor>[1].mean())"]
        + ["math.sqrt(abs(<float>))", "float(<Tensor>[0, 1])", "(<float> // 0.5)", "(<float> % 1.5)"]
    ),
    "bool": (
        ["<int> < <int>", "<int> == <int>", "<int> != <int>", "<float> >= <float>", "(not <bool>)"]
        + ["(<bool> and <bool>)", "(<bool> or <bool>)", "<str> == <str>", "<int> in <List[int]>"]
        + ["'a' in <str>", "'a' in <Dict[str, int]>", "bool(<Tensor>.sum() > <float>)", "0 < <int> < 6"]
        + ["<Optional[int]> is None", "<str> in <List[str]>", "bool(<int>)", "<List[int]> == <List[int]>"]
        + ["<Mode> == Mode.A", "<Mode> != <Mode>", "<int> in <Dict[int, float]>"]
        + ["isinstance(<Optional[int]>, int)", "<Optional[Tensor]> is not None", "bool((<Tensor> > 0).all())"]
        + ["len(<List[Tensor]>) > 1", "<str>.startswith('a')", "<int> not in [1, 2, 3]", "<str> < <str>"]
    ),
    "str": (
        ["(<str> + <str>)", "str(<int>)", "<str>.upper()", "<str>[1:]", "<str>.replace('a', 'bb')"]
        + ["'{}-{}'.format(<int>, <str>)", "f'{<int>}_{<int>}'", "'.'.join(<List[str]>)", "<str>[:2]"]
        + ["<Pair>.second", "<Mode>.name", "<str>.lower()", "<str>.rjust(4, '.')"]
        + ["(<str> if <bool> else <str>)", "<str>.strip('b')", "('%d:%s' % (<int>, <str>))", "<str>[::-1]"]
    ),
    "Tensor": (
        ["(<Tensor> + <Tensor>)", "(<Tensor> - <Tensor>)", "(<Tensor> * <Tensor>)", "<Tensor>.flip(0)"]
        + ["(<Tensor> + <int>)", "(<int> - <Tensor>)", "(<Tensor> * 0.5)", "torch.relu(<Tensor>)"]
        + ["-<Tensor>", "<Tensor>.abs()", "torch.clamp(<Tensor>, -4.0, 4.0)", "<Tensor>.clone()"]
        + ["torch.where(<Tensor> > <Tensor>, <Tensor>, <Tensor>)", "torch.stack([<Tensor>, <Tensor>])[1]"]
        + ["torch.cat([<Tensor>, <Tensor>], 1)[:, 1:4]", "<Tensor>.t().reshape(2, 3)", "(<Tensor> + <Tensor>[0])"]
        + ["torch.max(<Tensor>, <Tensor>)", "(<Tensor> + <Tensor>.sum(1, keepdim=True))", "torch.ones(2, 3)"]
        + ["torch.full([2, 3], <float>)", "torch.zeros_like(<Tensor>)", "<Tuple[Tensor, int]>[0]"]
        + ["torch.arange(6).view(2, 3).float()", "(<Tensor> if <bool> else <Tensor>)", "<Tensor>[[1, 0]]"]
        + ["<Tensor>.long().float()", "<Tensor>.masked_fill(<Tensor> > 1, <float>)", "<Tensor>.double().float()"]
        + ["<Tensor>.new_zeros([2, 3])", "(<Tensor> > <float>).float()", "F.relu(<Tensor>)"]
    ),
    "List[int]": (
        ["[<int>, <int>]", "[<int>]", "[(k * 2 + <int>) % 97 for k in range(abs(<int>) % 5)]"]
        + ["[k + <int> for k in <List[int]>]", "(<List[int]> + <List[int]>)", "<List[int]>[1:]"]
        + ["sorted(<List[int]>)", "list(range(abs(<int>) % 4))"]
        + ["<List[int]>[::-1]", "(<List[int]> * 2)", "<List[int]>.copy()", "list(<Dict[str, int]>.values())"]
        + ["[len(k) for k in <List[str]>]", "[k if k > 0 else <int> for k in <List[int]>]"]
    ),
    "List[float]": ["[<float>, <float>]", "[k * 0.5 for k in <List[float]>]", "<List[float]>[:1]"],
    "List[str]": (
        ["[<str>, <str>]", "[k + 'x' for k in <List[str]>]", "<str>.split('b')", "sorted(<List[str]>)"]
        + ["list(<Dict[str, int]>.keys())"]
    ),
    "List[Tensor]": (
        ["[<Tensor>, <Tensor>]", "[k + <int> for k in <List[Tensor]>]", "[<Tensor>]"]
        + ["list(torch.stack([<Tensor>, <Tensor>]).unbind(0))", "<List[Tensor]>[:2]"]
    ),
    "List[List[int]]": ["[<List[int]>, [<int>]]", "[[k, <int>] for k in <List[int]>]", "<List[List[int]]>[:2]"],
    "Dict[int, float]": ["{<int>: <float>}", "{k: k * 0.5 for k in <List[int]>}"],
    "Pair": ["Pair(<int>, <str>)", "Pair(second=<str>, first=<int>)", "(<Pair> if <bool> else <Pair>)"],
    "Mode": ["(Mode.A if <bool> else Mode.B)"],
    "Dict[str, int]": (
        ["{'a': <int>, <str>: <int>}", "{k: <int> for k in <List[str]>}", "{'b': <int>}"]
        + ["<Dict[str, int]>.copy()"]
    ),
    "Optional[int]": ["(<int> if <bool> else None)"],
    "Optional[Tensor]": ["(<Tensor> if <bool> else None)"],
    "Tuple[int, float]": ["(<int>, <float>)"],
    "Tuple[Tensor, int]": ["(<Tensor>, <int>)"],
}
LITERALS = {
    "int": ["0", "1", "2", "3", "7", "-2"],
    "float": ["0.0", "0.5", "1.25", "-2.0", "3.0"],
    "bool": ["True", "False"],
    "str": ["'a'", "'bc'", "''", "'xab'"],
    "Tensor": ["torch.ones(2, 3)", "torch.zeros(2, 3)"],
    "List[int]": ["[1, 2, 3]", "[5]"],
    "List[float]": ["[0.5, 1.5]"],
    "List[str]": ["['a', 'b']"],
    "List[Tensor]": ["[torch.ones(2, 3)]"],
    "Dict[str, int]": ["{'a': 1, 'c': 2}"],
    "List[List[int]]": ["[[1], [2, 3]]"],
    "Dict[int, float]": ["{1: 0.5}"],
    "Pair": ["Pair(1, 'p')"],
    "Mode": ["Mode.A", "Mode.B"],
    "Optional[int]": ["None"],
    "Optional[Tensor]": ["None"],
    "Tuple[int, float]": ["(1, 0.5)"],
    "Tuple[Tensor, int]": ["(torch.ones(2, 3), 2)"],
}
# Changes of a name of the type, in place.
CHANGES = {
    "int": ["<n> += <int>", "<n> -= <int>"],
    "float": ["<n> += <float>", "<n> *= 0.5"],
    "str": ["<n> += <str>"],
    "Tensor": ["<n> += <Tensor>", "<n>.add_(<int>)", "<n>[0] = <float>", "<n>[:, 1] += <int>", "<n>.mul_(0.5)"],
    "List[int]": (
        ["<n>.append(<int>)", "<n>.extend(<List[int]>)", "<n>.insert(0, <int>)", "<n>.reverse()", "<n>.sort()"]
        + ["<n> += [<int>]", "if len(<n>) > 0: <n>[0] = <int>", "if len(<n>) > 1: <n>.pop()"]
        + ["if len(<n>) > 0: <n>[-1] += <int>", "if len(<n>) > 2: del <n>[1]"]
    ),
    "List[float]": ["<n>.append(<float>)", "if len(<n>) > 0: <n>[0] = <float>"],
    "List[str]": ["<n>.append(<str>)", "<n>.extend(<List[str]>)"],
    "List[Tensor]": ["<n>.append(<Tensor>)", "if len(<n>) > 0: <n>[0] = <Tensor>", "if len(<n>) > 0: <n>[0] += 1"],
    "List[List[int]]": ["<n>.append(<List[int]>)", "if len(<n>) > 0: <n>[0].append(<int>)"],
    "Dict[int, float]": ["<n>[<int>] = <float>", "if 1 in <n>: <n>[1] *= 0.5"],
    "Dict[str, int]": (
        ["<n>['a'] = <int>", "<n>[<str>] = <int>", "if 'a' in <n>: <n>['a'] += <int>", "<n>.update({'z': <int>})"]
        + ["if 'a' in <n>: del <n>['a']", "<n>.setdefault('q', <int>)", "if 'z' in <n>: <n>.pop('z')"]
    ),
}
# What bounds a value that a loop computes from itself.
BOUNDS = {
    "int": "(<e>) % 1009",
    "float": "max(min(<e>, 64.0), -64.0)",
    "str": "(<e>)[:12]",
    "Tensor": "torch.clamp(<e>, -64.0, 64.0)",
    "List[int]": "(<e>)[:6]",
    "List[float]": "(<e>)[:6]",
    "List[str]": "[k[:6] for k in (<e>)[:4]]",
    "List[Tensor]": "(<e>)[:4]",
    "List[List[int]]": "[k[:3] for k in (<e>)[:3]]",
}
TYPES = list(LITERALS)
RESULTS = [kind for kind in TYPES if kind != "Mode"]  # members of enums have a class of their own there
# What every program begins with.
HEAD = """
import enum
import math
from typing import Dict, List, NamedTuple, Optional, Tuple

class Pair(NamedTuple):
    first: int
    second: str

class Mode(enum.Enum):
    A = 1
    B = 2
"""
# Attributes of modules, and what expressions may do with them.
SLOTS = (
    ["self.weight = torch.nn.Parameter(torch.ones(2, 3) * 0.5, requires_grad=False)", "self.n = 3"]
    + ["self.register_buffer('state', torch.ones(2, 3))", "self.items: List[int] = [1, 2]"]
    + ["self.table: Dict[str, int] = {'a': 1}", "self.scale = 0.5", "self.word = 'ab'"]
)
FIELDS = [
    ("self.weight", ("Tensor", False)),
    ("self.n", ("int", True)),
    ("self.state", ("Tensor", True)),
    ("self.items", ("List[int]", True)),
    ("self.table", ("Dict[str, int]", True)),
    ("self.scale", ("float", True)),
    ("self.word", ("str", True)),
]
HOLE = re.compile("<(" + "|".join(map(re.escape, TYPES)) + ")>")
LOCAL = re.compile(r"\bk\b")  # the name of a comprehension
LOOPS = ["for_range", "for_list", "for_pairs", "for_tuple", "while_loop"]
STATEMENTS = ["declare"] * 5 + ["assign"] * 4 + ["change"] * 4 + ["branch"] * 4 + ["refine"] * 2
STATEMENTS += ["leave", "unpack", "check", "object_step", "without_grad", *LOOPS]


class Maker:
    """Writes one program."""

    def __init__(self, rng):
        self.rng, self.lines, self.depth = rng, [], 0
        self.scopes = []  # of blocks: names with their types and whether they may be assigned
        self.functions = []  # (how it is called, types of arguments, type of the result)
        self.classes = []
        self.loops, self.count, self.results, self.room = 0, 0, ["int"], 0

    # ---- texts ----

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def new_name(self):
        self.count += 1
        return f"v{self.count}"

    def names(self, kind, assignable=False):
        seen = {}
        for scope in self.scopes:
            seen.update(scope)
        return [n for n, (of, free) in seen.items() if of == kind and (free or not assignable)]

    def filled(self, template, depth):
        depth = 0 if template.startswith("f'") else depth  # quotes do not nest
        if LOCAL.search(template):
            template = LOCAL.sub(self.new_name(), template)
        return HOLE.sub(lambda m: self.expression(m.group(1), depth), template)

    def expression(self, kind, depth=3):
        """An expression of a type; deeper ones are made of several."""
        names, draw = self.names(kind), self.rng.random()
        if names and draw < (0.35 if depth > 0 else 0.75):
            return self.rng.choice(names)
        if depth <= 0:
            return self.rng.choice(LITERALS[kind])
        calls = [f for f in self.functions if f[2] == kind]
        if calls and draw > 0.85:
            how, kinds, _ = self.rng.choice(calls)
            return how.format(*(self.expression(k, depth - 1) for k in kinds))
        if draw < 0.45:
            return self.rng.choice(LITERALS[kind])
        return self.filled(self.rng.choice(EXPRESSIONS[kind]), depth - 1)

    def bounded(self, kind, text):
        return BOUNDS.get(kind, "<e>").replace("<e>", text)

    # ---- blocks and statements ----

    def block(self, size, names=None):
        """Indented statements, with names of their own; whether what follows them runs."""
        self.depth += 1
        self.scopes.append(dict(names or {}))
        goes_on = True
        for _ in range(self.rng.randint(1, size)):
            self.room -= 1
            kind = self.rng.choice(STATEMENTS if self.room > 0 and self.depth < 5 else STATEMENTS[:13])
            if getattr(self, kind)() is False:
                goes_on = False
                break
        self.scopes.pop()
        self.depth -= 1
        return goes_on

    def declare(self):
        kind, name = self.rng.choice(TYPES), self.new_name()
        says = f": {kind}" if kind.startswith("Optional") or self.rng.random() < 0.3 else ""
        self.line(f"{name}{says} = {self.bounded(kind, self.expression(kind))}")
        self.scopes[-1][name] = (kind, True)

    def assign(self):
        kind = self.rng.choice(TYPES)
        names = self.names(kind, assignable=True)
        if names and not kind.startswith("Optional"):  # which would narrow it
            self.line(f"{self.rng.choice(names)} = {self.bounded(kind, self.expression(kind))}")
        else:
            self.declare()

    def change(self):
        kind = self.rng.choice(list(CHANGES))
        names = self.names(kind, assignable=True)
        if not names:
            self.declare()
            return
        name = self.rng.choice(names)
        self.line(self.filled(self.rng.choice(CHANGES[kind]).replace("<n>", name), 2))
        if kind in BOUNDS:
            self.line(f"{name} = {self.bounded(kind, name)}")

    def branch(self):
        self.line(f"if {self.expression('bool')}:")
        self.block(3)
        if self.rng.random() < 0.3:
            self.line(f"elif {self.expression('bool')}:")
            self.block(2)
        if self.rng.random() < 0.5:
            self.line("else:")
            self.block(3)

    def refine(self):
        kind = self.rng.choice(["int", "Tensor"])
        names = self.names(f"Optional[{kind}]")
        if not names:
            self.declare()
            return
        name = self.rng.choice(names)
        known = {name: (kind, False)}
        if self.rng.random() < 0.5:
            self.line(f"if {name} is not None:")
            self.block(3, known)
        else:
            self.line(f"if {name} is None:")
            self.block(2, {name: ("None", False)})
            self.line("else:")
            self.block(3, known)

    def for_range(self):
        name = self.new_name()
        over = self.rng.choice(["abs(<int>) % 4", "1, 5, 2", "3, 0, -1", "len(<List[int]>)"])
        self.loop(f"for {name} in range({self.filled(over, 1)}):", {name: ("int", False)})

    def for_list(self):
        kind, name = self.rng.choice(["int", "str", "Tensor", "float"]), self.new_name()
        over = f"({self.expression(f'List[{kind}]', 1)})[:3]"
        self.loop(f"for {name} in {over}:", {name: (kind, False)})

    def for_pairs(self):
        a, b = self.new_name(), self.new_name()
        heads = ["enumerate((<List[int]>)[:3])", "zip((<List[int]>)[:3], (<List[int]>)[:2])"]
        head = self.filled(self.rng.choice(heads), 1)
        if self.rng.random() < 0.3:
            head = self.filled("(<Dict[str, int]>).copy().items()", 1)
            self.loop(f"for {a}, {b} in {head}:", {a: ("str", False), b: ("int", False)})
        else:
            self.loop(f"for {a}, {b} in {head}:", {a: ("int", False), b: ("int", False)})

    def for_tuple(self):
        """A loop that is unrolled, which nothing leaves."""
        name = self.new_name()
        loops, self.loops = self.loops, 0
        self.line(f"for {name} in ({self.expression('int', 1)}, {self.expression('int', 1)}):")
        self.block(2, {name: ("int", False)})
        self.loops = loops

    def without_grad(self):
        if self.depth > 1:
            self.declare()
            return
        self.line("with torch.no_grad():")
        self.depth += 1
        for _ in range(2):
            self.change()
        self.depth -= 1

    def while_loop(self):
        name = self.new_name()
        self.line(f"{name} = 0")
        self.line(f"while {name} < {self.rng.randint(1, 4)} and {self.expression('bool', 1)}:")
        self.depth += 1
        self.line(f"{name} += 1")
        self.depth -= 1
        self.loops += 1
        self.block(3, {name: ("int", False)})
        self.loops -= 1

    def loop(self, head, names):
        self.line(head)
        self.loops += 1
        self.block(3, names)
        self.loops -= 1

    def leave(self):
        """Leaves a loop or the function; what follows in the block would never run."""
        if self.depth < 2:
            return None
        if self.loops and self.rng.random() < 0.7:
            self.line(self.rng.choice(["break", "continue"]))
        elif self.rng.random() < 0.2:
            self.line(f"raise ValueError({self.expression('str', 1)})")
        else:
            self.line(f"return {self.returned()}")
        return False

    def unpack(self):
        a, b = self.new_name(), self.new_name()
        kind = self.rng.choice(["Tuple[int, float]", "Tuple[Tensor, int]"])
        self.line(f"{a}, {b} = {self.expression(kind, 2)}")
        first, second = ("int", "float") if kind == "Tuple[int, float]" else ("Tensor", "int")
        self.scopes[-1].update({a: (first, True), b: (second, True)})

    def check(self):
        self.line(f"assert {self.expression('bool', 1)} or {self.expression('int', 1)} < 999, 'checked'")

    def object_step(self):
        if not self.classes:
            self.declare()
            return
        name, kinds, methods = self.rng.choice(self.classes)
        made = self.new_name()
        self.line(f"{made} = {name}({', '.join(self.expression(k, 1) for k in kinds)})")
        for _ in range(self.rng.randint(1, 3)):
            method, takes, gives = self.rng.choice(methods)
            called = f"{made}.{method}({', '.join(self.expression(k, 1) for k in takes)})"
            given = self.new_name()
            self.line(f"{given} = {called}")
            self.scopes[-1][given] = (gives, True)
        self.line(f"{made}.a0 = {self.bounded(kinds[0], self.expression(kinds[0], 1))}")

    # ---- functions, classes, the program ----

    def header(self, name, kinds):
        """The first line of a function."""
        given = "".join(f", p{i}: {kind}" for i, kind in enumerate(kinds))
        results = self.results[0] if len(self.results) == 1 else f"Tuple[{', '.join(self.results)}]"
        self.line(f"def {name}({given[2:] if self.depth == 0 else 'self' + given}) -> {results}:")

    def function(self, name, size, fields=()):
        """A function with arguments of random types, or a method of an object with `fields`."""
        kinds = [self.rng.choice(TYPES) for _ in range(self.rng.randint(1, 3))]
        self.results = [self.rng.choice(TYPES)]
        self.header(name, kinds)
        self.body(size, [*fields, *((f"p{i}", (kind, True)) for i, kind in enumerate(kinds))])
        return kinds, self.results[0]

    def body(self, size, names):
        """Statements, and at the end what is returned."""
        self.scopes, self.loops, self.room = [dict(names)], 0, size * 3
        self.depth += 1
        for _ in range(self.rng.randint(size // 2 + 1, size)):
            getattr(self, self.rng.choice(STATEMENTS))()
        self.line(f"return {self.returned()}")
        self.depth -= 1
        self.scopes = []
        self.lines.append("")

    def returned(self):
        given = ", ".join(self.expression(kind, 2) for kind in self.results)
        return given if len(self.results) == 1 else f"({given})"

    def call_of(self, name, kinds):
        """How a function is called: the last arguments sometimes by their names."""
        named = self.rng.randint(1, len(kinds) + 2)
        return f"{name}({', '.join(f'p{i}={{}}' if i >= named else '{}' for i in range(len(kinds)))})"

    def class_of_values(self, name):
        kinds = [self.rng.choice(["int", "float", "List[int]", "Tensor"]) for _ in range(2)]
        self.line(f"class {name}:")
        self.depth += 1
        self.line(f"def __init__(self, a0: {kinds[0]}, a1: {kinds[1]}):")
        self.lines += ["        self.a0 = a0", "        self.a1 = a1", ""]
        fields = [(f"self.a{i}", (kind, True)) for i, kind in enumerate(kinds)]
        methods = [(f"m{i}", *self.function(f"m{i}", 3, fields)) for i in range(2)]
        self.depth -= 1
        self.classes.append((name, kinds, methods))

    def module(self, kinds, results):
        """A module with attributes of several types, a method and `forward`."""
        self.lines += ["class Net(torch.nn.Module):", "    def __init__(self):", "        super().__init__()"]
        self.lines += [f"        {line}" for line in SLOTS] + [""]
        self.depth += 1
        taken, result = self.function("step", 4, FIELDS)
        self.functions.append((self.call_of("self.step", taken), taken, result))
        self.results = results
        self.header("forward", kinds)
        self.body(7, [*FIELDS, *((f"p{i}", (kind, True)) for i, kind in enumerate(kinds))])
        self.depth -= 1
        self.lines += ["def made():", "    return Net()", ""]

    def arguments(self, kinds):
        """The function that makes the arguments of the program anew."""
        values = []
        for kind in kinds:
            inner = kind.removeprefix("Optional[").removesuffix("]") if "Optional" in kind else kind
            if kind != inner and self.rng.random() < 0.4:
                values.append("None")
            elif inner == "Tensor":
                rows = [[self.rng.randint(-8, 8) / 4 for _ in range(3)] for _ in range(2)]
                values.append(f"torch.tensor({rows})")
            else:
                values.append(self.rng.choice(LITERALS[inner]))
        self.lines += ["def arguments():", f"    return ({', '.join(values)},)"]

    def program(self):
        """The lines of a text that defines `made()`, the function or module, and `arguments()`."""
        self.lines = [*HEAD.strip().splitlines(), ""]
        for i in range(self.rng.randint(0, 2)):
            kinds, result = self.function(f"helper{i}", 4)
            self.functions.append((self.call_of(f"helper{i}", kinds), kinds, result))
        if self.rng.random() < 0.4:
            self.class_of_values("Values")
        kinds = [self.rng.choice(TYPES) for _ in range(self.rng.randint(2, 5))] + ["Tensor"]
        results = [self.rng.choice(RESULTS) for _ in range(self.rng.randint(1, 4))]
        if self.rng.random() < 0.4:
            self.module(kinds, results)
        else:
            self.results = results
            self.header("program", kinds)
            self.body(8, [(f"p{i}", (kind, True)) for i, kind in enumerate(kinds)])
            self.lines += ["def made():", "    return program", ""]
        self.arguments(kinds)
        return self.lines


def entries():
    """Nothing of the op table is needed."""


def text_of(seed, index):
    """The text of program `index` of a seed, without the import of the library."""
    return Maker(random.Random(f"{seed}:{index}")).program()


def program(seed, index, _):
    """The lines of program `index` of a seed."""
    return ["begin()", *(f"line({text!r})" for text in text_of(seed, index) if text), "compare()"]
