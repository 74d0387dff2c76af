"""The op table: what an entry becomes, and the functions that the modules of ops/ call.

`op`, `view` and `composite` each declare one op; `pointwise`, `reduction`, `rows`, `step`, `custom`, `update` and
`dynamic` say what kind of kernel it has. `load()` imports every family and returns the ops in order. What each key
means stands in docs/adding-an-op.md.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from gen.expressions import Expression, TableError, read
from gen.schema import MEANINGS, Arg, owning_type, parameters, parse_signature, parts
from gen.text import commas

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

NAMESPACES = ("fft", "linalg", "special")  # what Python has as modules of functions
# Words of the keys `variants=`, `python=` and `out=`.
VARIANTS = ("function", "method", "inplace", "out")
PYTHON = ("nn", "functional", "listed", "wrapped", "inplace", "number_first", "varargs")
OUT = ("cpp", "none", "dtype", "any_shape", "any_dtype")
# What a reduction goes over: all dimensions where the list of them is empty; there must be elements; those listed.
REDUCES = ("all", "some", "listed")


@dataclass(frozen=True)
class Formula:
    """One way to compute a pointwise op, RL_FORMULA(name, inputs…, attributes…), a reduction or a step."""

    name: str
    attributes: tuple[str, ...] = ()  # C++ expressions of what it is given beside tensors
    when: str = ""  # a C++ condition; otherwise the next formula of the op is tried
    dtypes: tuple[str, ...] = ()  # the common dtypes it is for, where they are fewer than the op's
    inputs: int | None = None  # how many tensors it takes, the first ones: default all
    loop: str = ""  # "rounds_once", or by hand: "isa" on processors, "all" on every device

    @property
    def values(self) -> list[str]:
        """The attributes in C++."""
        return [read(text).cpp for text in self.attributes]

    @property
    def condition(self) -> str:
        """When it fits, in C++; empty where it always does."""
        return self.when and read(self.when).cpp


@dataclass(frozen=True)
class Kernel:
    kind: str  # pointwise reduction rows step custom update dynamic, or none
    dtypes: tuple[str, ...] = ()
    promote: str = "same"
    formulas: tuple[Formula, ...] = ()  # in order of preference; none: that of the op's name, or a kernel by hand
    check: tuple[str, ...] = ()  # calls that refuse arguments; `name = …` is for conditions and attributes
    place: str = "once"  # "isa": compiled for each instruction set; "anywhere": for all devices and dtypes
    shares: str = "nothing"  # update: what may share memory with the result: "input", "elements", "warned"
    packed: bool = False  # update: a new result is contiguous, whatever the strides of self
    stored: tuple[str, ...] = ()  # the dtypes that it takes though kernels are not instantiated for them
    gives: tuple[str, ...] = ()  # reduction, rows: C++ expressions of the dtypes of its results
    reduces: str = "all"  # reduction, rows: what it goes over, a word of REDUCES

    @property
    def checks(self) -> list[Expression]:
        """Calls, and what conditions and attributes of formulas call by a name."""
        return [read(text) for text in self.check]

    @property
    def promotion(self) -> str:
        return f"Promote::{self.promote.capitalize()}"


@dataclass
class Op:
    """An entry, and below what follows from it."""

    text: str
    name: str
    overload: str
    args: list[Arg]
    results: list[Arg]
    kind: str  # kernel view composite
    family: str
    kernel: Kernel = Kernel("none")
    grad: dict[str, str] | str | None = None
    nondiff: tuple[str, ...] = ()
    ref: str | None = None
    doc: str = ""
    variants: frozenset[str] = frozenset()
    python: frozenset[str] = frozenset()
    out: frozenset[str] = frozenset()
    overloads: tuple[str, ...] = ()  # where they are not what gen/registry.py derives
    own: bool = False  # an op that aten does not have
    body: str = ""  # a composite's statement, where it is short; else C++ has composite::name
    shown: tuple[str, ...] = ()  # what Python that looks at ops sees of it: "whole", "parts", "body", an expression
    autocast: str | dict[str, str] | None = None  # rules.py says what these three are without a word
    jvp: str | dict[str, str] | None = None
    batch: str | dict[str, str] | None = None
    sparse: str | None = None  # what it does with sparse tensors: "values", or a function of src/ops/sparse
    tags: tuple[str, ...] = ()  # words of gen/registry.py that its kind does not say
    node: str | int | dict[str, int | str] | None = None
    node_index: int = 0  # how many ops of its name stand before it

    def __post_init__(self) -> None:
        args, results, first = self.args, self.results, self.args[0] if self.args else None
        # The signature as PyTorch prints it; the name of its kernel, shape or view function, unique among overloads.
        self.schema = re.sub(rf"\b({'|'.join(MEANINGS)})\b", lambda m: MEANINGS[m[0]], self.text)
        self.symbol = f"{self.name}_{self.overload}" if self.overload else self.name
        # Arguments that are tensors or lists of them, and those that are one tensor.
        self.tensors = [a for a in args if a.type.base == "Tensor"]
        self.single = [a for a in args if a.type.is_tensor]
        # Whether `self` is written, or a list of it that Python is given back; the place of what methods are called on.
        self.on_self = first is not None and first.name == "self" and first.type.is_tensor
        self.on_list = first is not None and first.name == "self" and first.type.is_list and first.type.written
        others = 0 if first in self.single else -1
        self.receiver = next((i for i, a in enumerate(args) if a.name == "self" and a.type.is_tensor), others)
        self.inplace_only = self.name.endswith("_") and not self.name.endswith("__") and self.on_self
        # The namespace that it is named after: linalg_svd is linalg::svd in C++ and linalg.svd in Python, too.
        self.space = next((space for space in NAMESPACES if self.name.startswith(f"{space}_")), "")
        self.inplace_name = self.name if self.inplace_only else f"{self.name}_"
        # Whether it is a factory: dtype, layout, device and requires_grad can be asked for.
        self.has_options = any(a.type.base == "options" for a in args)
        # Whether levels below autograd see a composite itself: factories, and what says so.
        self.whole = "whole" in self.shown or self.has_options
        self.gives_list = any(r.type.is_list for r in results)
        # Its name in nn.functional, where it stands there only.
        self.functional_name = next((word.partition(".")[2] for word in self.python if "." in word), "")
        # In C++: the parameters of all forms, and the type that the functional form returns.
        self.parameters, kinds = parameters(args), [owning_type(r.type) for r in results]
        self.result = f"std::tuple<{commas(kinds)}>" if len(kinds) > 1 else [*kinds, "void"][0]
        # What derivatives call the results; the names of the tensors that an out= form or a kernel is given.
        self.result_names = [r.name or f"result{i}" for i, r in enumerate(results)]
        self.outs = [f"out_{r.name or f'out{i}'}" for i, r in enumerate(results)]
        if len(results) == 1:
            self.result_names, self.outs = [results[0].name or "result"], ["out"]

    @property
    def python_out(self) -> bool:
        """Whether Python has out=, where C++ and the registry have it."""
        return "out" in self.variants and "out" in self.forms

    @property
    def forms(self) -> list[str]:
        """Those that C++ and the registry have."""
        kernel = self.kind == "kernel" and not self.own and not self.inplace_only
        out = "none" not in self.out and ("out" in self.variants or "cpp" in self.out or kernel)
        has = {
            "functional": not self.inplace_only,
            "inplace": self.inplace_only or "inplace" in self.variants,
            "out": out and bool(self.results) and not self.gives_list,
        }
        return [form for form, exists in has.items() if exists]

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """Of a pointwise op."""
        return self.kernel.formulas or (
            Formula(self.symbol, tuple(a.name for a in self.args if a not in self.tensors)),
        )

    @property
    def node_names(self) -> dict[str, str]:
        """C++ condition on the arguments → PyTorch's name of the graph node; "" otherwise.

        As a rule MulBackward0, MaxBackward1 for the second overload; `node=` says what differs.
        """
        camel = self.name.title().replace("_", "") + "Backward"
        said = self.node if isinstance(self.node, dict) else {"": self.node_index if self.node is None else self.node}
        return {c: n if isinstance(n, str) else f"{camel}{n}" for c, n in {"": 0, **said}.items()}

    def call(self, /, **instead: str) -> str:
        """The arguments as they are passed on; some of them as something else."""
        return commas(instead.get(a.name, a.name) for a in self.args)


# ---- what entries call ----

_ops: list[Op] = []
_family = ""


def formula(name: str, *attributes: str, **keys) -> Formula:
    return Formula(name, attributes, **keys)


def pointwise(*dtypes: str, formulas=(), check=(), promote: str = "same") -> Kernel:
    """A formula per element, of src/kernels/pointwise.h: the first of a list that fits."""
    return Kernel("pointwise", dtypes or (everything,), promote, tuple(formulas), tuple(check))


def _along_dims(
    kind: str, *formulas: Formula | str, dtypes=(everything,), gives="self.dtype()", reduces="all", check=(), stored=()
) -> Kernel:
    """Computed along dimensions: by a formula of src/kernels/reduce.h, or else by a kernel that is written by hand."""
    if reduces not in REDUCES:
        raise TableError(f"reduces= has no word {reduces!r}")
    chosen = tuple(formula(f) if isinstance(f, str) else f for f in formulas)
    if chosen and (chosen[-1].when or any(f.dtypes or f.loop or f.inputs for f in chosen)):
        raise TableError(f"{chosen[-1].name}: formulas along dimensions say when= alone, and the last one always fits")
    gives = (gives,) if isinstance(gives, str) else gives
    said = {"formulas": chosen, "check": tuple(check), "gives": gives, "reduces": reduces, "stored": stored}
    return Kernel(kind, dtypes, place="isa", **said)


# Elements along dimensions become one.
reduction = partial(_along_dims, "reduction")
# A function of each row along a dimension; its formula, if there is one, is that of a running reduction.
rows = partial(_along_dims, "rows")
# shape::name says what comes out, name writes it.
custom = partial(Kernel, "custom", place="isa")
# The step of an optimiser: a rule of src/kernels/optim.h.
step = partial(Kernel, "step", place="isa")
# The result starts as a copy of self (in place: is self) and the kernel changes it.
update = partial(Kernel, "update", place="isa")
# The result's size depends on values: the kernel returns it.
dynamic = partial(Kernel, "dynamic")

_VARIANTS = {
    "pointwise": {"function", "method", "inplace", "out"},
    "reduction": {"function", "method", "out"},
    "rows": {"function", "method", "out"},
    "custom": {"function", "method", "out"},
    "step": {"function"},
    "update": {"function", "method", "inplace", "out"},
    "dynamic": {"function", "method"},
    "none": {"function", "method"},
}


def op(text: str, *, kind="kernel", variants: str | None = None, python="", out="", shown=(), **keys) -> None:
    """Declares an op, usually one with a kernel."""
    name, overload, args, results = parse_signature(text)
    before, grad = [o.overload for o in _ops if o.name == name], keys.pop("grad", None)
    if overload in before:
        raise TableError(f"{name}.{overload} is declared twice")
    entry = Op(text, name, overload, args, results, kind, _family, node_index=len(before), **keys)
    if kind == "kernel" and (entry.kernel.kind == "none" or grad is None):
        raise TableError(f"{text}: say kernel=…, and grad=… or grad='none'")
    usual = _VARIANTS[entry.kernel.kind] - (set() if entry.on_self else {"method", "inplace"})
    usual = {"method", "inplace"} if entry.inplace_only else usual
    if grad == "missing":
        grad = dict.fromkeys([a.name for a in entry.tensors if not a.type.is_list], f'no_derivative("{name}")')
    words = {"variants": VARIANTS, "python": PYTHON, "out": OUT}
    given = {"variants": " ".join(usual) if variants is None else variants, "python": python, "out": out}
    for key, known in words.items():
        if wrong := [word for word in given[key].split() if word.partition(".")[0] not in known]:
            raise TableError(f"{text}: {key}= has no word {wrong[0]!r}")
    said = {key: frozenset(value.split()) for key, value in given.items()}
    _ops.append(replace(entry, grad=grad, shown=(shown,) if isinstance(shown, str) else shown, **said))


view = partial(op, kind="view")  # an op that only changes metadata: views::name gives the geometry
composite = partial(op, kind="composite")  # an op written over other ops: composite::name


def optimizer(text: str, rule: str, doc: str) -> None:
    """The step of an optimiser over lists of tensors, and the same as recorded ops, from one rule."""
    op(text, kernel=step(formulas=(formula(rule),)), grad="none", own=True, doc=doc)
    composite(f"_recorded_{text}", variants="function", own=True, doc=f"{doc} Autograd records it.")


def of_view(symbol: str) -> tuple[list[str], Callable[[str], str]]:
    """The arguments of a view behind `self`, and its call with them on something else."""
    entry = next(o for o in _ops if o.symbol == symbol)
    declared = parts(entry.text[entry.text.index("(") + 1 : entry.text.rindex(") ->")])
    return declared[1:], lambda whole: f"{entry.name}({entry.call(self=whole)})"


@cache
def load_examples() -> dict[str, str]:
    """The lines of Python under each name of ops/examples: programs as one types them, with what they print."""
    examples: dict[str, str] = {}
    for path in sorted((Path(__file__).parent.parent / "ops" / "examples").glob("*.txt")):
        for section in f"\n{path.read_text()}".split("\n# ")[1:]:
            name, _, text = section.partition("\n")
            if name in examples:
                raise TableError(f"{name} has two examples")
            examples[name] = text.strip("\n")
    return examples


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
