"""What C++ programs see of the ops: ops.h and the methods of class Tensor.

What their kernels look like stands in kernels.py, what the functions do in wrappers.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gen.schema import Type, default, parameter, parameters, result_type
from gen.table import Op
from gen.text import HEADER, block, commas, header, source

VISIBLE = "#pragma GCC visibility push(default)"
NAMESPACES = ("fft", "linalg", "special")  # what Python has as modules of functions


@dataclass(frozen=True)
class Form:
    """One way to call an op in C++."""

    op: Op
    kind: str  # functional inplace out

    @property
    def name(self) -> str:
        names = {"functional": self.op.name, "inplace": self.op.inplace_name, "out": f"{self.op.name}_out"}
        return names[self.kind]

    @property
    def function(self) -> str:
        """What its boxed function is called: unique among all forms."""
        return f"{self.op.name}_{self.kind}_{self.op.node_index}"

    @property
    def outs(self) -> list[str]:
        """The names of the tensors that an out= form is given."""
        if self.kind != "out":
            return []
        return (
            ["out"]
            if len(self.op.results) == 1
            else ["out_" + (r.name or f"out{i}") for i, r in enumerate(self.op.results)]
        )

    @property
    def result(self) -> str:
        if self.kind == "functional":
            return result_type(self.op.results)
        single = self.kind == "inplace" or len(self.op.results) == 1
        return "Tensor&" if single else f"std::tuple<{commas(['Tensor&'] * len(self.op.results))}>"

    def signature(self, *, defaults: bool = False, name: str = "") -> str:
        """`Tensor add(const Tensor& self, …)`: the form as a free function."""
        outs = [f"const Tensor& {o}" for o in self.outs]
        return f"{self.result} {name or self.name}({commas(outs, parameters(self.op.args, defaults=defaults))})"

    def call(self, name: str = "", /, **instead: str) -> str:
        """The call of the function with its own parameters, some of them as something else."""
        return f"{name or self.name}({commas(self.outs, self.op.call(**instead))})"


def out_names(op: Op) -> list[str]:
    return Form(op, "out").outs


def forms(op: Op) -> list[Form]:
    return [Form(op, kind) for kind in op.forms]


def with_numbers(op: Op, tensors: set[str]) -> Iterator[tuple[Op, dict[str, str]]]:
    """The op, and the op with numbers where it says Tensor|Scalar, but for `tensors`; how those are passed on."""
    names = [a.name for a in op.args if a.type.number and a.name not in tensors]
    for bits in range(1 << len(names)):
        passed = {name: f"make_number({name})" for i, name in enumerate(names) if bits >> i & 1}
        if not passed or not all(a.name in passed for a in op.tensors):
            yield (
                replace(op, args=[replace(a, type=Type("Scalar")) if a.name in passed else a for a in op.args]),
                passed,
            )


# ---- ops.h ----


def heads(form: Form) -> Iterator[tuple[str, dict[str, str]]]:
    """The functions of a form, one for each choice of tensors and numbers; how numbers are passed on."""
    for taking, passed in with_numbers(form.op, {"self"} if form.kind == "inplace" else set()):
        yield Form(taking, form.kind).signature(defaults=True), passed


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


def told_apart(ops: list[Op]) -> Iterator[tuple[Op, Op]]:
    """Each op, and as it is declared: a call that fits an earlier overload of its name too, since what would tell
    them apart is left out, means that one. Arguments of other names are other things, which the call must say.
    """
    earlier: dict[str, list[Op]] = {}
    for op in ops:
        args = op.args
        for other in earlier.setdefault(op.name, []):
            pairs = zip(op.args, other.args, strict=False)
            same = [parameter(a.type) == parameter(b.type) for a, b in pairs]
            shared = same.index(False) if False in same else len(same)
            named = all(a.name == b.name for a, b in zip(op.args[1:shared], other.args[1:shared], strict=True))
            optional = all(a.default is not None for a in op.args[shared:] + other.args[shared:])
            if named and optional and shared < len(op.args):
                args = [replace(a, default=None) if i <= shared else a for i, a in enumerate(args)]
        earlier[op.name].append(op)
        yield op, replace(op, args=args)


def space_of(op: Op) -> str:
    """The namespace that an op is named after: linalg_svd is linalg::svd, too."""
    return next((space for space in NAMESPACES if op.name.startswith(space + "_")), "")


def short(op: Op) -> Iterator[tuple[Form, str]]:
    """The forms of an op that is named after a namespace, and their names there."""
    for form in forms(op) if space_of(op) else []:
        yield form, form.name.removeprefix(space_of(op) + "_")


def namespace(space: str, ops: list[Op], *, defined: bool) -> list[str]:
    """The ops named after a namespace, under their short names there."""
    lines = []
    for op, declared in told_apart([op for op in ops if space_of(op) == space]):
        for form, name in short(op):
            head = Form(declared, form.kind).signature(defaults=not defined, name=name)
            lines += block(head, [f"return rushlight::{form.call()};"]) if defined else [head + ";"]
    return ["", f"namespace {space} {{", *lines, f"}}  // namespace {space}"] if lines else []


def ops_header(ops: list[Op]) -> str:
    lines = ["// Said once rather than for each (RL_API), which costs every program memory to compile.", VISIBLE]
    for op, declared in told_apart(ops):
        lines.append(f"// {op.schema}")
        for form in forms(declared):
            for head, passed in heads(form):
                lines.append(f"inline {head} {{ return {form.call(**passed)}; }}" if passed else f"{head};")
        lines += options_sooner(op)
    for space in NAMESPACES:
        lines += namespace(space, ops, defined=False)
    lines.append("#pragma GCC visibility pop")
    text = header(["<cmath>", "", "<rushlight/tensor.h>"], "rushlight", lines)
    return text + "\n#include <rushlight/operators.h>\n"


# ---- methods ----


def methods(ops: list[Op], owner: str = "", *, defaults: bool = True) -> Iterator[tuple[str, str]]:
    """Every method, and the call that it is."""
    for op in ops:
        for form in forms(op) if "method" in op.variants else []:
            receiver = op.args[op.receiver].name
            for taking, passed in with_numbers(op, {receiver}) if form.kind != "out" else []:
                said = parameters([a for i, a in enumerate(taking.args) if i != op.receiver], defaults=defaults)
                yield f"{form.result} {owner}{form.name}({said}) const", form.call(**{receiver: "*this"}, **passed)


def methods_header(ops: list[Op]) -> str:
    return HEADER + "".join(f"{head};\n" for head, _ in methods(ops))


def methods_source(ops: list[Op]) -> str:
    lines = []
    for head, call in methods(ops, "Tensor::", defaults=False):
        lines += block(head, [f"return rushlight::{call};"])
    for space in NAMESPACES:
        lines += namespace(space, ops, defined=True)
    return source(["<rushlight/ops.h>"], "rushlight", lines)


# ---- documentation ----


def calls(overloads: list[Op]) -> list[str]:
    """All that a name is in C++: functions, in which namespace, and methods."""
    lines = []
    for op, declared in told_apart(overloads):
        for form in forms(declared):
            lines += [head for head, _ in heads(form)] if not space_of(op) else []
        for form, name in short(declared):
            lines.append(form.signature(defaults=True, name=f"{space_of(op)}::{name}"))
    return [f"{line};" for line in [*lines, *(head for head, _ in methods(overloads, "Tensor::"))]]


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    return {
        "include/rushlight/ops.h": ops_header(ops),
        "include/rushlight/tensor_methods.inc": methods_header(ops),
        "src/methods.cpp": methods_source(ops),
    }
