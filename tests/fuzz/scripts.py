"""Makes programs of TorchScript's language at random: `python -m tests.fuzz programs`.

A program is a text of Python with helpers, a class and a function or a module, all of them typed so that it compiles;
what it computes is exact or bounded, and its loops end. `scripts_names.py` runs it as Python, compiled, and loaded
from an archive, and compares. `script_templates.py` says what there is of each type.
"""

import random
import re

from tests.fuzz.script_templates import (
    BOUNDS,
    CHANGES,
    EXPRESSIONS,
    FIELDS,
    HEAD,
    KNOWN,
    LITERALS,
    PARTS,
    RESULTS,
    SLOTS,
    TYPES,
)

NAMES = "tests.fuzz.scripts_names"
ALSO_ALLOWED = ()
SETUP = 0

HOLE = re.compile("<(" + "|".join(map(re.escape, TYPES)) + ")>")
LOCAL = re.compile(r"\bk\b")  # the name of a comprehension
LOOPS = ["for_range", "for_list", "for_pairs", "for_tuple", "while_loop"]
STATEMENTS = ["declare"] * 5 + ["assign"] * 4 + ["change"] * 4 + ["branch"] * 4 + ["refine"] * 2
STATEMENTS += ["through_parts", "leave", "unpack", "check", "object_step", "without_grad", *LOOPS]


class Maker:
    """Writes one program."""

    def __init__(self, rng):
        self.rng, self.lines, self.depth = rng, [], 0
        self.scopes = []  # of blocks: names with their types and whether they may be assigned
        self.functions = []  # (how it is called, types of arguments, type of the result)
        self.classes = []
        self.unrolled = 0  # loops around that are unrolled
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
            kind = self.rng.choice(
                STATEMENTS if self.room > 0 and self.depth < 5 else STATEMENTS[:13]
            )
            if getattr(self, kind)() is False:
                goes_on = False
                break
        self.scopes.pop()
        self.depth -= 1
        return goes_on

    def declare(self):
        kinds = [one for one in TYPES if not (self.unrolled and one.startswith("Optional"))]
        kind, name = self.rng.choice(kinds), self.new_name()
        typed = not self.unrolled and self.rng.random() < 0.3  # a name is declared once
        says = f": {kind}" if kind.startswith("Optional") or typed else ""
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
        self.unrolled += 1
        self.line(f"for {name} in ({self.expression('int', 1)}, {self.expression('int', 1)}):")
        self.block(2, {name: ("int", False)})
        self.loops = loops
        self.unrolled -= 1

    def through_parts(self):
        """A loop over modules, where there are any."""
        names = self.names("Tensor", assignable=True)
        if not names or PARTS[0] not in self.functions:
            self.declare()
            return
        name, part = self.rng.choice(names), self.new_name()
        head = self.rng.choice(
            [f"for {part} in self.parts:", f"for _, {part} in self.table_of_parts.items():"]
        )
        self.line(head)
        self.line(f"    {name} = {part}({name})")

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
        self.line(
            f"assert {self.expression('bool', 1)} or {self.expression('int', 1)} < 999, 'checked'"
        )

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
        return (
            f"{name}({', '.join(f'p{i}={{}}' if i >= named else '{}' for i in range(len(kinds)))})"
        )

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
        self.lines += [
            "class Net(torch.nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
        ]
        self.lines += [f"        {line}" for line in SLOTS] + [""]
        self.depth += 1
        self.functions += PARTS
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
        self.lines, self.functions = [*HEAD.strip().splitlines(), ""], list(KNOWN)
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
