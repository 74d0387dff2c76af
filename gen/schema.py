"""The language of schemas: types, arguments and signatures, and how C++, Python's parser and stubs spell them.

A new type is a row of the table here, and an accessor of class Arguments (src/python/parser.h). A new meaning is a
word of MEANINGS.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gen.expressions import TableError
from gen.text import commas


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
    meaning: str = field(default="", compare=False)  # a word of MEANINGS

    @property
    def written(self) -> bool:
        return self.alias.endswith("!")

    @property
    def is_tensor(self) -> bool:
        return self.base == "Tensor" and not self.is_list

    @property
    def undefined_is_none(self) -> bool:
        """Whether a value of the C++ type itself means None."""
        return self.base in ("Tensor", "Generator", "options")


@dataclass(frozen=True)
class Arg:
    """An argument, or a result: its name may be empty."""

    name: str
    type: Type
    default: str | None = None  # as written in the schema; None: required
    keyword_only: bool = False


# What `options` of a factory stands for, as Python has them.
OPTIONS = [
    Arg("dtype", Type("ScalarType", optional=True), "None", True),
    Arg("layout", Type("Layout", optional=True), "torch.strided", True),
    Arg("device", Type("Device", optional=True), "None", True),
    Arg("pin_memory", Type("bool", optional=True), "False", True),
    Arg("requires_grad", Type("bool", optional=True), "False", True),
]
# Types that say what a value is for → what PyTorch, C++ and stubs call them: integers that count or measure dimensions,
# tensors of one element that count steps.
MEANINGS = {"Dim": "int", "Size": "int", "Count": "Tensor"}


# ---- spelling ----


class Spelling(NamedTuple):
    owned: str  # the C++ type that owns such a value: locals of wrappers, what values are unboxed to
    parameter: str  # of the public function and of the kernel
    kind: str  # of a row of the parser's tables
    accessor: str  # of class Arguments
    annotation: str  # in stubs


_TENSORS = "std::vector<std::optional<Tensor>>"
_SPELT = {
    "Tensor": Spelling("Tensor", "const Tensor&", "Tensor", "tensor", "Tensor"),
    "Tensor|Scalar": Spelling("Tensor", "const Tensor&", "TensorOrNumber", "tensor_or_number", "Tensor | Number"),
    "Tensor[]": Spelling("std::vector<Tensor>", "TensorList", "TensorList", "tensors", "Sequence[Tensor]"),
    "Tensor?[]": Spelling(
        _TENSORS, f"const {_TENSORS}&", "OptionalTensorList", "optional_tensors", "Sequence[Tensor | None]"
    ),
    "Generator": Spelling("Generator", "const Generator&", "Generator", "generator", "Generator"),
    "options": Spelling("TensorOptions", "const TensorOptions&", "", "options", ""),
    "Scalar": Spelling("Scalar", "const Scalar&", "Scalar", "scalar", "Number | Tensor"),
    "Scalar[]": Spelling("std::vector<Scalar>", "ArrayRef<Scalar>", "ScalarList", "scalars", "Sequence[Number]"),
    "int": Spelling("int64_t", "int64_t", "Int", "integer", "builtins.int"),
    "int[]": Spelling("DimVector", "IntArrayRef", "IntList", "ints", "builtins.int | Sequence[builtins.int]"),
    "float": Spelling("double", "double", "Float", "number", "builtins.float"),
    "float[]": Spelling(
        "std::vector<double>", "ArrayRef<double>", "FloatList", "numbers", "builtins.float | Sequence[builtins.float]"
    ),
    "bool": Spelling("bool", "bool", "Bool", "boolean", "builtins.bool"),
    "str": Spelling("std::string", "std::string_view", "String", "string", "builtins.str"),
    "ScalarType": Spelling("ScalarType", "ScalarType", "Dtype", "dtype", "dtype | type"),
    "Device": Spelling("Device", "Device", "Device", "device", "device | builtins.str | builtins.int"),
    "Layout": Spelling("Layout", "Layout", "Layout", "layout", "layout"),
    "MemoryFormat": Spelling("MemoryFormat", "MemoryFormat", "MemoryFormat", "memory_format", "memory_format"),
}
# Parameters that may be None where they are no std::optional<parameter>.
_OPTIONAL = {"const Scalar&": "const std::optional<Scalar>&", "IntArrayRef": "OptionalIntArrayRef"}


def spelling(t: Type) -> Spelling:
    """Sizes of lists, aliases and whether None is taken do not matter."""
    name = t.base + "|Scalar" * t.number + "?" * t.element_optional
    return _SPELT[name + "[]" * t.is_list]


def parameter(t: Type) -> str:
    name = spelling(t).parameter
    return _OPTIONAL.get(name, f"std::optional<{name}>") if t.optional and not t.undefined_is_none else name


def owning_type(t: Type) -> str:
    name = spelling(t).owned
    return f"std::optional<{name}>" if t.optional and not t.undefined_is_none else name


_CONSTANTS = {"None": "{}", "True": "true", "False": "false"}
_NUMBERS = {
    "float": {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"},
    "Scalar": {"inf": "HUGE_VAL", "-inf": "-HUGE_VAL", "nan": "double(NAN)"},
}


def default(arg: Arg) -> str:
    """The default in C++; empty where there is none."""
    text, base = arg.default or "", arg.type.base
    if text.startswith("["):
        return "{" + text[1:-1] + "}"
    if text in _CONSTANTS or not text:
        return _CONSTANTS.get(text, "")
    if base in ("MemoryFormat", "ScalarType"):
        return f"{base}::{text}"
    return '"' + text.strip("'\"") + '"' if base == "str" else _NUMBERS.get(base, {}).get(text, text)


def python_default(arg: Arg) -> str | None:
    """The default as Python writes it."""
    text = arg.default
    if text not in (None, "None") and arg.type.base == "MemoryFormat":
        return "torch." + {"Contiguous": "contiguous_format", "Preserve": "preserve_format"}.get(text, text)
    return "(" + text[1:-1] + ")" if text is not None and text.startswith("[") and arg.type.is_list else text


def parameters(args: list[Arg], *, defaults: bool = False, suffix: str = "") -> str:
    """A parameter list in C++."""
    given = {a.name: f" = {default(a)}" if defaults and default(a) else "" for a in args}
    return commas([f"{parameter(a.type)} {a.name}{suffix}{given[a.name]}" for a in args])


# ---- reading ----

_BASES = [name for name in _SPELT if name.isalnum() and name != "options"]
_TYPE = re.compile(
    rf"(?P<base>{'|'.join([*_BASES, *MEANINGS])})"
    r"(?:\((?P<alias>[a-z]!?)\))?(?P<number>\|Scalar)?(?P<eopt>\?(?=\[))?(?P<list>\[(?P<size>\d*)\])?(?P<opt>\?)?$"
)


def parse_type(text: str) -> Type:
    m = _TYPE.match(text)
    if m is None:
        raise TableError(f"unknown type {text!r}")
    return Type(
        MEANINGS.get(m["base"], m["base"]),
        is_list=m["list"] is not None,
        size=int(m["size"]) if m["size"] else None,
        optional=m["opt"] is not None,
        element_optional=m["eopt"] is not None,
        number=m["number"] is not None,
        alias=m["alias"] or "",
        meaning=m["base"] if m["base"] in MEANINGS else "",
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


def parse_call(text: str) -> tuple[str, str, str, str]:
    """`name.overload(arguments)rest`."""
    m = re.fullmatch(r"(\w+)(?:\.(\w+))?\((.*?)\)(?:\s*->\s*(.*))?", text, re.S)
    if m is None:
        raise TableError(f"not a signature: {text!r}")
    return m[1], m[2] or "", m[3], (m[4] or "").strip()


def parse_signature(text: str) -> tuple[str, str, list[Arg], list[Arg]]:
    """`name.overload(args) -> results`, in the schema language."""
    name, overload, inside, result = parse_call(text)
    options = Arg("options", Type("options"), "{}", True)
    args = [
        Arg(name, parse_type(kind), default, keyword_only) if kind else options
        for kind, name, default, keyword_only in declarations(inside)
    ]
    pairs = [part.partition(" ") for part in (parts(result[1:-1]) if result.startswith("(") else [result])]
    return name, overload, args, [Arg(name.strip(), parse_type(kind)) for kind, _, name in pairs]
