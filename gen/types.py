"""How the schema's types and defaults are spelt: in C++, by the parser of Python's arguments, in stubs.

A new type of the schema is a row of the table here, its name in the pattern of gen/table.py, and an accessor of class
Arguments (src/python/parser.h).
"""

from __future__ import annotations

from typing import NamedTuple

from gen.table import Arg, Op, Type
from gen.text import commas


class Spelling(NamedTuple):
    owned: str  # the C++ type that owns such a value: locals of wrappers, what values are unboxed to
    parameter: str  # of the public function and of the kernel
    kind: str  # of a row of the parser's tables
    accessor: str  # of class Arguments
    annotation: str  # in stubs


_SPELT = {
    "Tensor": Spelling("Tensor", "const Tensor&", "Tensor", "tensor", "Tensor"),
    "Tensor|Scalar": Spelling("Tensor", "const Tensor&", "TensorOrNumber", "tensor_or_number", "Tensor | Number"),
    "Tensor[]": Spelling("std::vector<Tensor>", "TensorList", "TensorList", "tensors", "Sequence[Tensor]"),
    "Tensor?[]": Spelling(
        "std::vector<std::optional<Tensor>>",
        "const std::vector<std::optional<Tensor>>&",
        "OptionalTensorList",
        "optional_tensors",
        "Sequence[Tensor | None]",
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
# Types with a value that means None; parameters that may be None where they are no std::optional<parameter>.
UNDEFINED_IS_NONE = ("Tensor", "Generator", "options")
_OPTIONAL = {"const Scalar&": "const std::optional<Scalar>&", "IntArrayRef": "OptionalIntArrayRef"}


def spelling(t: Type) -> Spelling:
    """Sizes of lists, aliases and whether None is taken do not matter."""
    name = t.base + ("|Scalar" if t.number else "") + ("?" if t.element_optional else "")
    return _SPELT[name + ("[]" if t.is_list else "")]


def parameter(t: Type) -> str:
    name = spelling(t).parameter
    if not t.optional or t.base in UNDEFINED_IS_NONE:
        return name
    return _OPTIONAL.get(name, f"std::optional<{name}>")


def owning_type(t: Type) -> str:
    name = spelling(t).owned
    return f"std::optional<{name}>" if t.optional and t.base not in UNDEFINED_IS_NONE else name


def local(arg: Arg) -> str:
    """Declares the owned copy of a parameter `name_` as `name`."""
    if arg.type.base == "int" and (arg.type.size or 1) > 1 and not arg.type.optional:  # int[1]: one int will do
        return f'DimVector {arg.name} = repeat_to({arg.type.size}, "{arg.name}", {arg.name}_);'
    return f"auto {arg.name} = owning_copy({arg.name}_);"


_CONSTANTS = {"None": "{}", "True": "true", "False": "false"}
_NUMBERS = {
    "float": {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"},
    "Scalar": {"inf": "HUGE_VAL", "-inf": "-HUGE_VAL", "nan": "double(NAN)"},
}


def default(arg: Arg) -> str:
    """The default in C++; empty where there is none."""
    text, base = arg.default or "", arg.type.base
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text.startswith("["):
        return "{" + text[1:-1] + "}"
    if text and base == "str":
        return '"' + text.strip("'\"") + '"'
    if text and base in ("MemoryFormat", "ScalarType"):
        return f"{base}::{text}"
    return _NUMBERS.get(base, {}).get(text, text)


def python_default(arg: Arg) -> str | None:
    """The default as Python writes it."""
    text = arg.default
    if text not in (None, "None") and arg.type.base == "MemoryFormat":
        return "torch." + {"Contiguous": "contiguous_format", "Preserve": "preserve_format"}.get(text, text)
    if text is not None and arg.type.is_list and text.startswith("["):
        return "(" + text[1:-1] + ")"
    return text


def result_type(results: list[Arg]) -> str:
    """The C++ type that the functional form returns."""
    kinds = [owning_type(r.type) for r in results]
    if len(kinds) > 1:
        return f"std::tuple<{commas(kinds)}>"
    return kinds[0] if kinds else "void"


def parameters(args: list[Arg], *, defaults: bool = False, suffix: str = "") -> str:
    """A parameter list."""
    given = {a.name: f" = {default(a)}" if defaults and default(a) else "" for a in args}
    return commas([f"{parameter(a.type)} {a.name}{suffix}{given[a.name]}" for a in args])


def method_parameters(op: Op, *, defaults: bool = False) -> str:
    return parameters([a for i, a in enumerate(op.args) if i != op.receiver], defaults=defaults)
