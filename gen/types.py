"""How schema types are spelt in C++: as parameters, as locals that a shape function may change, and unboxed."""

from __future__ import annotations

from gen.table import Arg, Op, Result, Type

# (base, is it a list) → what owns such a value; a parameter; a parameter that may be None.
_SPELT = {
    ("Tensor", False): ("Tensor", "const Tensor&", "const Tensor&"),  # undefined is None
    ("Tensor", True): ("std::vector<Tensor>", "TensorList", "TensorList"),
    ("Generator", False): ("Generator", "const Generator&", "const Generator&"),
    ("options", False): ("TensorOptions", "const TensorOptions&", "const TensorOptions&"),
    ("Scalar", False): ("Scalar", "const Scalar&", "const std::optional<Scalar>&"),
    ("Scalar", True): ("std::vector<Scalar>", "ArrayRef<Scalar>", "std::optional<ArrayRef<Scalar>>"),
    ("int", True): ("DimVector", "IntArrayRef", "OptionalIntArrayRef"),
    ("float", True): ("std::vector<double>", "ArrayRef<double>", "std::optional<ArrayRef<double>>"),
    ("int", False): ("int64_t", "int64_t", "std::optional<int64_t>"),
    ("float", False): ("double", "double", "std::optional<double>"),
    ("str", False): ("std::string", "std::string_view", "std::optional<std::string_view>"),
}
_NEVER_OPTIONAL = ("Tensor", "Generator", "options")


def _spelt(t: Type) -> tuple[str, str, str]:
    if t.element_optional:
        return ("std::vector<std::optional<Tensor>>", *["const std::vector<std::optional<Tensor>>&"] * 2)
    return _SPELT.get((t.base, t.is_list), (t.base, t.base, f"std::optional<{t.base}>"))


def parameter(t: Type) -> str:
    """The type of a parameter of the public function and of the kernel."""
    return _spelt(t)[2 if t.optional else 1]


def owned(t: Type) -> str:
    """The type that owns such a value: locals of wrappers, what values are unboxed to."""
    spelt = _spelt(t)[0]
    return f"std::optional<{spelt}>" if t.optional and t.base not in _NEVER_OPTIONAL else spelt


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
