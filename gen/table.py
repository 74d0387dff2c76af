"""The op table's language: the schema parser, and the functions that the modules of ops/ call.

`op`, `view` and `composite` each declare one op; `pointwise`, `custom`, `update` and `dynamic` say what kind of kernel
it has. `load()` imports every family and returns the ops in order. What each key means stands in docs/adding-an-op.md.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from string import Template

# C++'s sets of dtypes and what documentation calls them; the names below are those that entries use.
DTYPES = {
    "set_Bool": "bool",
    "set_Half": "float16",
    "set_BFloat16": "bfloat16",
    "set_integers": "integers",
    "set_floats": "float32, float64",
    "set_reduced": "float16, bfloat16",
    "set_floating": "floating point",
    "set_complexes": "complex",
    "set_real": "integers, floating point",
    "set_numbers": "integers, floating point, complex",
    "set_all": "all",
    # Those that kernels are not instantiated for.
    "set_ComplexHalf": "complex32",
    "set_wide_unsigned": "uint16, uint32, uint64",
    "set_float8": "8-bit floats",
    "set_Float8_e5m2": "float8_e5m2",
    "set_stored": "all, 8-bit floats and wide unsigned integers, too",
}
boolean, half, bfloat16, integers, floats, reduced, floating, complex_, real, numbers, everything, *_stored = DTYPES
complex_half, wide_unsigned, float8, float8_e5m2, stored = _stored


class TableError(Exception):
    """An entry of the op table that says something impossible."""


# ---- what an entry becomes ----


@dataclass(frozen=True)
class Type:
    """A schema type: `int[2]?` is base int, is_list, size 2, optional."""

    base: str  # Tensor Scalar int float bool str ScalarType Device Layout MemoryFormat Generator options
    is_list: bool = False
    size: int | None = None  # of int[N]: a single int is repeated
    optional: bool = False
    element_optional: bool = False  # Tensor?[]
    number: bool = False  # Tensor|Scalar: a Python number is welcome
    alias: str = ""  # "a" for views, "a!" when written

    @property
    def written(self) -> bool:
        return self.alias.endswith("!")

    @property
    def is_tensor(self) -> bool:
        return self.base == "Tensor" and not self.is_list


@dataclass(frozen=True)
class Arg:
    """An argument, or a result: its name may be empty."""

    name: str
    type: Type
    default: str | None = None  # as written in the schema; None: required
    keyword_only: bool = False


@dataclass(frozen=True)
class Formula:
    """One way to compute a pointwise op: RL_FORMULA(name, inputs…, attributes…)."""

    name: str
    attributes: tuple[str, ...] = ()  # C++ expressions of what it is given beside tensors
    when: str = ""  # a C++ condition; otherwise the next formula of the op is tried
    dtypes: tuple[str, ...] = ()  # the common dtypes it is for, where they are fewer than the op's
    inputs: int | None = None  # how many tensors it takes, the first ones: default all
    rounds_once: bool = False  # its bits cannot depend on what a compiler takes out of a loop
    by_hand: str = ""  # "isa": the processors' kernel is no loop over the formula; "all": nobody's is


@dataclass(frozen=True)
class Kernel:
    kind: str  # pointwise custom update dynamic, or none
    dtypes: tuple[str, ...] = ()
    promote: str = "same"
    formulas: tuple[Formula, ...] = ()  # in order of preference; none: that of the op's name
    check: tuple[str, ...] = ()  # calls that refuse arguments
    let: tuple[tuple[str, str], ...] = ()  # what conditions and attributes call by a name
    casts_out: bool = False  # of one tensor, not promoted: `out=` may have another dtype all the same
    isa: bool = False  # compiled for each instruction set
    in_step: bool = False  # update: reads elements where and just before it writes them
    expanded: str = "refused"  # update: tensors in which several elements share a place; "warned", "welcome"
    anywhere: bool = False  # written over copies, fills and views: one kernel for all devices and dtypes
    stored: tuple[str, ...] = ()  # the dtypes that it takes though kernels are not instantiated for them

    @property
    def place(self) -> str:
        return "ANYWHERE" if self.anywhere else "ISA" if self.isa else "ONCE"


@dataclass
class Op:
    text: str
    name: str
    overload: str
    args: list[Arg]
    results: list[Arg]
    kind: str  # kernel view composite
    family: str
    kernel: Kernel = Kernel("none")
    grad: dict[str, str] | str | None = None
    ref: str | None = None
    doc: str = ""
    variants: frozenset[str] = frozenset()
    manual: frozenset[str] = frozenset()
    nn: bool = False
    functional: bool | str = False  # nn.functional has it, too; a name: only there, and under that
    listed: bool = False  # rushlight.functional has it, too
    wrapped: bool = False  # reached through the package's function of the same name only
    inplace_function: bool = False  # NAME_(x) is a function, too
    number_first: bool = False  # Python's function takes a number for the first tensor, too
    varargs: bool = False  # the last positional list of tensors takes f(a, b), too
    overloads: tuple[str, ...] = ()  # where they are not what gen/schemas.py derives
    own: bool = False  # an op that aten does not have
    body: str = ""  # a composite's statement, where it is short; else C++ has composite::name
    seen_whole: bool = False  # a composite that modes below autograd see itself, not what it calls
    cpp_out: bool | None = None  # an out= form in C++ alone: default where there is a kernel of aten's
    in_out_dtype: bool = False  # out= without dtype: in the dtype of out, whatever that of the result is
    any_shape: bool = False  # a factory whose out= keeps its shape where it has as many elements
    nondiff: tuple[str, ...] = ()
    undefined_grads: bool = False
    autocast: str | dict[str, str] | None = None  # rules.py says what these three are without a word
    jvp: str | dict[str, str] | None = None
    batch: str | dict[str, str] | None = None
    sparse: str | None = None  # what it does with sparse tensors: "values", or a function of src/ops/sparse
    parts: bool = False  # a kernel whose op is a composite to Python below autograd: parts::symbol
    traced: str = ""  # what a trace above autograd is shown in its place: an expression, or "body" of a composite
    tags: tuple[str, ...] = ()  # words of gen/tags.py that its kind does not say
    view_kind: str = "Normal"
    node: str | int | dict[str, int | str] | None = None
    node_index: int = 0  # how many ops of its name stand before it

    @property
    def symbol(self) -> str:
        """The name of its kernel, shape or view function: unique among overloads."""
        return f"{self.name}_{self.overload}" if self.overload else self.name

    @property
    def functional_name(self) -> str:
        """Where it stands in nn.functional only: its name there."""
        return self.functional if isinstance(self.functional, str) else ""

    @property
    def receiver(self) -> int:
        """The place of the tensor that a method is called on: `self`, else the first; -1 for none."""
        tensors = [i for i, a in enumerate(self.args) if a.type.is_tensor]
        first = 0 if 0 in tensors else -1
        return next((i for i in tensors if self.args[i].name == "self"), first)

    @property
    def on_self(self) -> bool:
        return bool(self.args) and self.args[0].name == "self" and self.args[0].type.is_tensor

    @property
    def on_list(self) -> bool:
        """Whether it changes the tensors of a list `self`, which Python is given back."""
        first = self.args[0] if self.args else None
        return first is not None and first.name == "self" and first.type.is_list and "!" in first.type.alias

    @property
    def inplace_only(self) -> bool:
        return self.name.endswith("_") and not self.name.endswith("__") and self.on_self

    @property
    def inplace_name(self) -> str:
        return self.name if self.inplace_only else self.name + "_"

    @property
    def forms(self) -> list[str]:
        """Those that C++ has: functional, inplace, out."""
        has = {
            "functional": not self.inplace_only,
            "inplace": self.inplace_only or "inplace" in self.variants,
            "out": bool(self.results) and not self.gives_list and self.has_out,
        }
        return [form for form, exists in has.items() if exists]

    @property
    def has_out(self) -> bool:
        """Whether C++ and the registry have an out= form; Python has it where `variants` says so."""
        if "out" in self.variants or self.cpp_out is not None:
            return self.cpp_out is not False
        return self.kind == "kernel" and not self.own and not self.inplace_only

    @property
    def python_out(self) -> bool:
        return "out" in self.forms and "out" in self.variants

    @property
    def has_options(self) -> bool:
        """Whether it is a factory: dtype, layout, device and requires_grad can be asked for."""
        return any(a.type.base == "options" for a in self.args)

    @property
    def stays_whole(self) -> bool:
        """Whether levels below autograd see a composite itself: factories, and what says so."""
        return self.seen_whole or self.has_options

    @property
    def gives_list(self) -> bool:
        return any(r.type.is_list for r in self.results)

    @property
    def tensors(self) -> list[Arg]:
        """Arguments that are tensors or lists of them."""
        return [a for a in self.args if a.type.base == "Tensor"]

    @property
    def attributes(self) -> list[Arg]:
        """The other arguments."""
        return [a for a in self.args if a.type.base != "Tensor"]

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """Of a pointwise op."""
        return self.kernel.formulas or (Formula(self.symbol, tuple(a.name for a in self.attributes)),)

    @property
    def node_names(self) -> dict[str, str]:
        """C++ condition on the arguments → PyTorch's name of the graph node; "" otherwise.

        As a rule MulBackward0, MaxBackward1 for the second overload; `node=` says what differs.
        """
        words = re.sub(r"(?<![a-z])[a-z]", lambda m: m[0].upper(), self.name.strip("_"))
        camel = words.replace("_", "") + "Backward"
        said = self.node if isinstance(self.node, dict) else {"": self.node_index if self.node is None else self.node}
        names = {"": 0, **said}
        return {c: n if isinstance(n, str) else f"{camel}{n}" for c, n in names.items()}


# ---- the schema language ----

_TYPE = re.compile(
    r"(?P<base>Tensor|Scalar|int|float|bool|str|ScalarType|Device|Layout|MemoryFormat|Generator)"
    r"(?:\((?P<alias>[a-z]!?)\))?(?P<number>\|Scalar)?(?P<eopt>\?(?=\[))?(?P<list>\[(?P<size>\d*)\])?(?P<opt>\?)?$"
)


def parse_type(text: str) -> Type:
    m = _TYPE.match(text)
    if m is None:
        raise TableError(f"unknown type {text!r}")
    return Type(
        m["base"],
        is_list=m["list"] is not None,
        size=int(m["size"]) if m["size"] else None,
        optional=m["opt"] is not None,
        element_optional=m["eopt"] is not None,
        number=m["number"] is not None,
        alias=m["alias"] or "",
    )


def parts(text: str) -> list[str]:
    """What stands between commas outside brackets."""
    return [part.strip() for part in re.split(r",(?![^(\[]*[)\]])", text) if part.strip()]


def declarations(text: str) -> Iterator[tuple[str, str, str | None, bool]]:
    """(type, name, default, whether keyword-only) of arguments; what is not written is "", and no default None."""
    keyword_only = False
    for part in parts(text):
        if part == "*":
            keyword_only = True
            continue
        declaration, equals, default = part.partition("=")
        kind, _, name = declaration.strip().rpartition(" ")
        yield kind, name, default.strip() if equals else None, keyword_only


def parse_signature(text: str) -> tuple[str, str, list[Arg], list[Arg]]:
    """`name.overload(args) -> results`, in the schema language."""
    m = re.match(r"(\w+)(?:\.(\w+))?\((.*)\)\s*->\s*(.*)$", text, re.S)
    if m is None:
        raise TableError(f"not a signature: {text!r}")
    options = Arg("options", Type("options"), "{}", True)
    args = [
        Arg(name, parse_type(kind), default, keyword_only) if kind else options
        for kind, name, default, keyword_only in declarations(m[3])
    ]
    result = m[4].strip()
    pairs = [part.partition(" ") for part in (parts(result[1:-1]) if result.startswith("(") else [result])]
    return m[1], m[2] or "", args, [Arg(name.strip(), parse_type(kind)) for kind, _, name in pairs]


# ---- what entries call ----

_ops: list[Op] = []
_family = ""


def formula(name: str, *attributes: str, **keys) -> Formula:
    return Formula(name, attributes, **keys)


def pointwise(*dtypes: str, promote: str = "same", formulas=(), check=(), let=None, casts_out: bool = False) -> Kernel:
    """A formula per element, of src/kernels/pointwise.h: the first of a list that fits."""
    names = tuple((let or {}).items())
    return Kernel(
        "pointwise", dtypes or (everything,), promote, tuple(formulas), tuple(check), names, casts_out=casts_out
    )


# shape::name says what comes out, name writes it.
custom = partial(Kernel, "custom", isa=True)
# The result starts as a copy of self (in place: is self) and the kernel changes it.
update = partial(Kernel, "update", isa=True)
# The result's size depends on values: the kernel returns it.
dynamic = partial(Kernel, "dynamic")

_VARIANTS = {
    "pointwise": {"function", "method", "inplace", "out"},
    "custom": {"function", "method", "out"},
    "update": {"function", "method", "inplace", "out"},
    "dynamic": {"function", "method"},
    "none": {"function", "method"},
}


def op(text: str, *, kind: str = "kernel", variants: str | None = None, manual: tuple[str, ...] = (), **keys) -> None:
    """Declares an op, usually one with a kernel."""
    name, overload, args, results = parse_signature(text)
    entry = Op(text, name, overload, args, results, kind, _family, manual=frozenset(manual), **keys)
    if variants is not None:
        entry.variants = frozenset(variants.split())
    elif entry.inplace_only:
        entry.variants = frozenset({"method", "inplace"})
    else:
        needs_self = set() if entry.on_self else {"method", "inplace"}
        entry.variants = frozenset(_VARIANTS[entry.kernel.kind] - needs_self)
    if entry.grad == "missing":
        entry.grad = dict.fromkeys([a.name for a in entry.tensors if not a.type.is_list], f'no_derivative("{name}")')
    before = [o.overload for o in _ops if o.name == name]
    entry.node_index = len(before)
    if overload in before:
        raise TableError(f"{name}.{overload} is declared twice")
    if kind == "kernel" and (entry.kernel.kind == "none" or entry.grad is None):
        raise TableError(f"{text}: say kernel=…, and grad=… or grad='none'")
    _ops.append(entry)


view = partial(op, kind="view")  # an op that only changes metadata: views::name gives the geometry
composite = partial(op, kind="composite")  # an op written over other ops: composite::name


def view_composite(symbol: str, name: str, more: str, result: str, body: str, **keys) -> None:
    """A composite `name` with the arguments of a view behind `more`; its statement calls the view: $view(self$rest)."""
    entry = next(o for o in _ops if o.symbol == symbol)
    inside = entry.text[entry.text.index("(") + 1 : entry.text.rindex(") ->")]
    said = ", ".join([f"Tensor self{more}", *parts(inside)[1:]])
    rest = "".join(f", {a.name}" for a in entry.args[1:])
    text = Template(body).substitute(view=f"rushlight::{entry.name}", rest=rest)
    composite(f"{name}({said}) -> {result}", body=text, **keys)


def load() -> list[Op]:
    """Every op of every family, in the order of the families' names."""
    global _family
    if not _ops:
        package = importlib.import_module("ops")
        for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda i: i.name):
            if info.name != "modules":  # stateless nn modules: another table
                _family = info.name
                importlib.import_module(f"ops.{info.name}")
    return _ops
