"""How schema types are spelt in C++: as parameters, as locals that a shape function may change, and unboxed."""

from __future__ import annotations

from gen.table import Arg, Op, Result, Type

_BY_VALUE = {
    "int": "int64_t",
    "float": "double",
    "bool": "bool",
    "str": "std::string_view",
    "ScalarType": "ScalarType",
    "Device": "Device",
    "Layout": "Layout",
    "MemoryFormat": "MemoryFormat",
}
_LISTS = {"int": "IntArrayRef", "float": "ArrayRef<double>", "bool": "ArrayRef<bool>"}
_OWNED_LISTS = {"int": "DimVector", "float": "std::vector<double>"}


def parameter(t: Type) -> str:
    """The type of a parameter of the public function and of the kernel."""
    if t.base == "options":
        return "const TensorOptions&"
    if t.base == "Tensor":
        if t.element_optional:
            return "const std::vector<std::optional<Tensor>>&"
        return "TensorList" if t.is_list else "const Tensor&"
    if t.base == "Generator":
        return "const Generator&"
    if t.base == "Scalar":
        if t.is_list:
            return "ArrayRef<Scalar>"
        return "const std::optional<Scalar>&" if t.optional else "const Scalar&"
    if t.is_list:
        if t.optional:
            return "OptionalIntArrayRef" if t.base == "int" else f"std::optional<{_LISTS[t.base]}>"
        return _LISTS[t.base]
    spelt = _BY_VALUE[t.base]
    return f"std::optional<{spelt}>" if t.optional else spelt


def owned(t: Type) -> str:
    """The type that owns such a value: locals of wrappers, what values are unboxed to."""
    if t.base == "options":
        return "TensorOptions"
    if t.base == "Tensor":
        if t.element_optional:
            return "std::vector<std::optional<Tensor>>"
        return "std::vector<Tensor>" if t.is_list else "Tensor"
    if t.base == "Generator":
        return "Generator"
    if t.base == "str":
        spelt = "std::string"
    elif t.is_list:
        spelt = _OWNED_LISTS[t.base]
    elif t.base == "Scalar":
        spelt = "Scalar"
    else:
        spelt = _BY_VALUE[t.base]
    return f"std::optional<{spelt}>" if t.optional else spelt


def local(arg: Arg) -> str:
    """Declares the owned copy of a parameter `name_` as `name`."""
    t, name = arg.type, arg.name
    if t.is_list and t.base == "Tensor" and not t.element_optional:
        return f"std::vector<Tensor> {name} = {name}_.vec();"
    if t.is_list and t.base == "int":
        if t.optional:
            return f"std::optional<DimVector> {name} = {name}_.vec();"
        if t.size is not None and t.size > 1:  # int[1] only says that one int will do
            return f'DimVector {name} = repeat_to({t.size}, "{name}", {name}_);'
    if t.is_list and t.base == "float":
        return f"std::vector<double> {name} = {name}_.vec();"
    return f"{owned(t)} {name}({name}_);"


def default(arg: Arg) -> str:
    """The C++ default argument, or an empty string."""
    text = arg.default
    if text is None:
        return ""
    t = arg.type
    if text == "None":
        return " = {}"
    if text in ("True", "False"):
        return f" = {text.lower()}"
    if text.startswith("["):
        return " = {" + text[1:-1] + "}"
    if t.base == "str":
        return ' = "' + text.strip("'\"") + '"'
    if t.base == "float":
        special = {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}
        return f" = {special.get(text, text)}"
    if t.base == "Scalar" and text in ("inf", "-inf", "nan"):
        return " = " + {"inf": "HUGE_VAL", "-inf": "-HUGE_VAL", "nan": "double(NAN)"}[text]
    if t.base == "MemoryFormat":
        return f" = MemoryFormat::{text}"
    if t.base == "ScalarType":
        return f" = ScalarType::{text}"
    return f" = {text}"


def result_type(results: list[Result]) -> str:
    """The C++ type that the functional form returns."""
    one = [("std::vector<Tensor>" if r.type.is_list else owned(r.type)) for r in results]
    if not one:
        return "void"
    return one[0] if len(one) == 1 else f"std::tuple<{', '.join(one)}>"


def parameters(op: Op, *, defaults: bool = False, suffix: str = "", skip_self: bool = False) -> str:
    """The parameter list; required arguments that follow defaults cannot occur in a schema."""
    args = [a for i, a in enumerate(op.args) if not (skip_self and i == op.receiver)]
    return ", ".join(f"{parameter(a.type)} {a.name}{suffix}{default(a) if defaults else ''}" for a in args)
