"""What C++ programs see of the ops: ops.h and the methods of class Tensor.

What their kernels look like stands in kernels.py, what the functions do in wrappers.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from gen.schema import Type, default, parameter, parameters
from gen.table import NAMESPACES, Op
from gen.text import HEADER, block, commas, flat, header, source


@dataclass(frozen=True)
class Form:
    """One way to call an op in C++."""

    op: Op
    kind: str  # functional inplace out

    @property
    def name(self) -> str:
        return {"functional": self.op.name, "inplace": self.op.inplace_name, "out": f"{self.op.name}_out"}[self.kind]

    @property
    def short(self) -> str:
        """The name in the namespace that the op is named after."""
        return self.name.removeprefix(f"{self.op.space}_")

    @property
    def function(self) -> str:
        """What its boxed function is called: unique among all forms."""
        return f"{self.op.name}_{self.kind}_{self.op.node_index}"

    @property
    def outs(self) -> list[str]:
        """The names of the tensors that an out= form is given."""
        return self.op.outs if self.kind == "out" else []

    @property
    def result(self) -> str:
        many = self.kind == "out" and len(self.outs) > 1
        written = f"std::tuple<{commas(['Tensor&'] * len(self.outs))}>" if many else "Tensor&"
        return self.op.result if self.kind == "functional" else written

    @property
    def type(self) -> str:
        """`Tensor(const Tensor&, …)`: the type of the function."""
        return f"{self.result}({commas(['const Tensor&'] * len(self.outs), [parameter(a.type) for a in self.op.args])})"

    def signature(self, *, defaults: bool = False, name: str = "") -> str:
        """`Tensor add(const Tensor& self, …)`: the form as a free function."""
        outs = [f"const Tensor& {o}" for o in self.outs]
        return f"{self.result} {name or self.name}({commas(outs, parameters(self.op.args, defaults=defaults))})"

    def call(self, /, **instead: str) -> str:
        """The call of the function with its own parameters, some of them as something else."""
        return f"{self.name}({commas(self.outs, self.op.call(**instead))})"

    def with_numbers(self, *tensors: str) -> Iterator[tuple[Form, dict[str, str]]]:
        """The form, and with numbers where it says Tensor|Scalar, but for `tensors`; how those are passed on."""
        names = [a.name for a in self.op.args if a.type.number and a.name not in tensors]
        for bits in range(1 << len(names)):
            passed = {name: f"make_number({name})" for i, name in enumerate(names) if bits >> i & 1}
            if not passed or not all(a.name in passed for a in self.op.tensors):
                args = [replace(a, type=Type("Scalar")) if a.name in passed else a for a in self.op.args]
                yield replace(self, op=replace(self.op, args=args)), passed

    def heads(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Its functions, one for each choice of tensors and numbers; how numbers are passed on."""
        for form, passed in self.with_numbers("self" if self.kind == "inplace" else ""):
            yield form.signature(defaults=True), passed


def forms(op: Op) -> list[Form]:
    return [Form(op, kind) for kind in op.forms]


def options_sooner(op: Op) -> Iterator[str]:
    """`randn(size, options)`: options stand right behind the last argument that is given, as libtorch has them."""
    names = [a.name for a in op.args]
    last = names.index("options") if "options" in names else 0
    first = next((i for i in reversed(range(last)) if not default(op.args[i])), -1) + 1
    for kept in range(first, last):
        left_out = {a.name: default(a) for a in op.args[kept:last]}
        shown = [(i, a) for i, a in enumerate(op.args) if a.name not in left_out]
        args = [replace(a, default=None) if i < kept or a.name == "options" else a for i, a in shown]
        head = Form(replace(op, args=args), "functional").signature(defaults=True)
        yield f"inline {head} {{ return {op.name}({op.call(**left_out)}); }}"


def taking_optionals(names: Iterable[str], qualifier: str = "") -> list[str]:
    """A macro call for each name: it takes std::optional<Tensor> where it takes a tensor that may be undefined."""
    return [f"RL_TAKE_OPTIONALS({name}, {qualifier})" for name in dict.fromkeys(names)]


def has_optional(op: Op) -> bool:
    return any(a.type.base == "Tensor" and a.type.optional and not a.type.is_list for a in op.args)


def told_apart(ops: list[Op]) -> Iterator[tuple[Op, Op]]:
    """Each op, and as it is declared: a call that fits an earlier overload of its name too, since what would tell
    them apart is left out, means that one. Arguments of other names are other things, which the call must say.
    """
    earlier: dict[str, list[Op]] = {}
    for op in ops:
        args = op.args
        for other in earlier.setdefault(op.name, []):
            same = [parameter(a.type) == parameter(b.type) for a, b in zip(op.args, other.args, strict=False)]
            shared = [*same, False].index(False)
            named = all(a.name == b.name for a, b in zip(op.args[1:shared], other.args[1:shared], strict=True))
            optional = all(a.default is not None for a in op.args[shared:] + other.args[shared:])
            if named and optional and shared < len(op.args):
                args = [replace(a, default=None) if i <= shared else a for i, a in enumerate(args)]
        earlier[op.name].append(op)
        yield op, replace(op, args=args)


def namespaces(ops: list[Op], *, defined: bool) -> list[str]:
    """The ops named after a namespace, under their short names there."""
    found = []
    for space in NAMESPACES:
        inside = []
        own = [op for _, op in told_apart(ops) if op.space == space]
        for form in [form for op in own for form in forms(op)]:
            head = form.signature(defaults=not defined, name=form.short)
            inside += block(head, [f"return rushlight::{form.call()};"]) if defined else [f"{head};"]
        if not defined:
            sooner = [line for op in own for line in options_sooner(op)]
            inside += [line.replace(f" {space}_", " ", 1) for line in sooner]
            inside += taking_optionals(f.short for op in own if has_optional(op) for f in forms(op))
        found += ["", f"namespace {space} {{", *inside, f"}}  // namespace {space}"] if inside else []
    return found


def ops_header(ops: list[Op]) -> str:
    inside = ["// Said once rather than for each (RL_API), which costs every program memory to compile."]
    inside.append("#pragma GCC visibility push(default)")
    for op, declared in told_apart(ops):
        inside.append(f"// {op.schema}")
        for form in forms(declared):
            for head, passed in form.heads():
                inside.append(f"inline {head} {{ return {form.call(**passed)}; }}" if passed else f"{head};")
        inside += options_sooner(op)
    inside += taking_optionals(f.name for op in ops if has_optional(op) for f in forms(op))
    inside += [*namespaces(ops, defined=False), "#pragma GCC visibility pop"]
    text = header(["<cmath>", "", "<rushlight/tensor.h>"], "rushlight", inside)
    return text + "\n#include <rushlight/operators.h>\n"


def methods(ops: list[Op], owner: str = "", *, defaults: bool = True) -> Iterator[tuple[str, str]]:
    """Every method, and the call that it is."""
    for form in [f for op in ops if "method" in op.variants for f in forms(op) if f.kind != "out"]:
        receiver = form.op.args[form.op.receiver].name
        for taking, passed in form.with_numbers(receiver):
            said = parameters([a for a in taking.op.args if a.name != receiver], defaults=defaults)
            yield f"{form.result} {owner}{form.name}({said}) const", form.call(**{receiver: "*this"}, **passed)


def methods_taking_optionals(ops: list[Op]) -> list[str]:
    own = [op for op in ops if "method" in op.variants and has_optional(op)]
    return taking_optionals((f.name for op in own for f in forms(op) if f.kind != "out"), "const")


def calls(overloads: list[Op]) -> list[str]:
    """All that a name is in C++, for documentation: functions, in which namespace, and methods."""
    found = []
    for _, op in told_apart(overloads):
        short = [form.signature(defaults=True, name=f"{op.space}::{form.short}") for form in forms(op)]
        found += short if op.space else [head for form in forms(op) for head, _ in form.heads()]
    return [f"{line};" for line in [*found, *(head for head, _ in methods(overloads, "Tensor::"))]]


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    bodies = [block(head, [f"return rushlight::{call};"]) for head, call in methods(ops, "Tensor::", defaults=False)]
    inside = [*flat(bodies), *namespaces(ops, defined=True)]
    return {
        "include/rushlight/ops.h": ops_header(ops),
        "include/rushlight/tensor_methods.inc": HEADER
        + "".join(f"{line};\n" for line in [*(head for head, _ in methods(ops)), *methods_taking_optionals(ops)]),
        "src/methods.cpp": source(["<rushlight/ops.h>"], "rushlight", inside),
    }
