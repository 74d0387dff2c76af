"""The overloads under which an op's forms are registered: PyTorch's names, arguments and their order.

An entry is one C++ function a form; aten has several overloads for some of them (`add.Tensor` and `add.Scalar`,
`sum` and `sum.dim_IntList`). What an entry does not say follows from its signature: an argument `Tensor|Scalar` gives
two overloads, `options` four arguments, the in-place form is named `add_`, the `out=` form `out` or `OVERLOAD_out`.
`overloads=` of the entry lists what differs, in the schema language, where an argument without a type is the
entry's own of that name (one that is Tensor|Scalar is a Tensor that takes numbers, too) and `name!` one that is
written:

    overloads=["sum(self, dtype)", "sum.dim_IntList(self, int[1]? dim, keepdim, dtype)",
               "sum.IntList_out(self, int[1]? dim, keepdim, dtype, out!)"]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gen import rules, tags, types
from gen.table import Arg, Op, TableError, Type, declarations, parse_type
from gen.text import block, commas, fill, flag

OPTIONS = [
    Arg("dtype", Type("ScalarType", optional=True), "None", True),
    Arg("layout", Type("Layout", optional=True), "None", True),
    Arg("device", Type("Device", optional=True), "None", True),
    Arg("pin_memory", Type("bool", optional=True), "None", True),
]
# Defaults that PyTorch prints as numbers.
ENUMERATORS = {"Contiguous": "0", "Int64": "4"}


@dataclass(frozen=True)
class Overload:
    """One row of the registry."""

    name: str  # with the _ of the in-place form
    overload: str
    form: str  # functional inplace out
    args: tuple[Arg, ...]
    results: tuple[Arg, ...]


def mark_written(arg: Arg, letter: str = "a") -> Arg:
    return replace(arg, type=replace(arg.type, alias=letter + "!"))


def outs(op: Op) -> list[Arg]:
    """The keyword arguments of the out= form."""
    names = [r.name or f"out{i}" for i, r in enumerate(op.results)] if len(op.results) > 1 else ["out"]
    return [
        Arg(name, Type("Tensor", is_list=r.type.is_list, alias="abcdefgh"[i] + "!"), None, True)
        for i, (name, r) in enumerate(zip(names, op.results, strict=True))
    ]


def expand_options(args: list[Arg]) -> list[Arg]:
    return [row for a in args for row in (OPTIONS if a.type.base == "options" else [a])]


def variants(op: Op) -> Iterator[tuple[str, list[Arg]]]:
    """(overload, arguments) with a tensor and with a number where the entry takes both."""
    if not any(a.type.number for a in op.args):
        yield op.overload, op.args
        return
    for kind in ("Tensor", "Scalar"):
        args = [replace(a, type=Type(kind, optional=a.type.optional)) if a.type.number else a for a in op.args]
        yield f"{op.overload}_{kind}".strip("_"), args


def derive_overloads(op: Op, form: str) -> Iterator[Overload]:
    for overload, args in variants(op):
        args = expand_options(args)
        if form == "functional":
            yield Overload(op.name, overload, form, tuple(args), tuple(op.results))
        elif form == "inplace":
            args = [mark_written(args[0]), *args[1:]]
            yield Overload(op.inplace_name, overload, form, tuple(args), (mark_written(Arg("", Type("Tensor"))),))
        else:
            results = outs(op) if len(op.results) > 1 else [replace(o, name="") for o in outs(op)]
            args = [a for a in args if a.name not in ("dtype", "layout", "device", "pin_memory") or a in op.args]
            name = f"{overload}_out".removeprefix("_")
            yield Overload(op.name, name, form, (*args, *outs(op)), tuple(results))


def parse_overload(op: Op, text: str) -> Overload:
    """An item of `overloads=`."""
    m = re.match(r"(\w+)(?:\.(\w+))?\((.*)\)$", text, re.S)
    if m is None:
        raise TableError(f"{op.text}: not an overload: {text!r}")
    known = {a.name: a for a in expand_options(op.args)} | {o.name: o for o in outs(op)}
    # Beside arguments that are written PyTorch's letters of results go on at d.
    beside = any(a.type.written for a in op.args[1:])
    args, given, letters = [], [], iter("defgh" if beside else "abcdefgh")
    for kind, name, default, keyword_only in declarations(m[3]):
        if name == "options":
            args += OPTIONS
        elif name.endswith("!"):
            given.append(Arg(name[:-1], Type("Tensor", alias=next(letters) + "!"), None, True))
            args.append(given[-1])
        elif kind:
            args.append(Arg(name, parse_type(kind), default or None, keyword_only))
        else:
            arg = known[name] if default is None else replace(known[name], default=default or None)
            args.append(replace(arg, keyword_only=arg.keyword_only or keyword_only))
    written_args = [a for a in args if a.type.written]
    if m[1] == op.inplace_name:
        args = [mark_written(args[0]), *args[1:]]
        form, results = "inplace", [replace(args[0], name="")]
    elif written_args:
        form, results = "out", [replace(a, name="", keyword_only=False) for a in given or written_args]
    else:
        form, results = "functional", op.results
    return Overload(m[1], m[2] or "", form, tuple(args), tuple(results))


def overloads(op: Op) -> list[Overload]:
    listed = [parse_overload(op, text) for text in op.overloads]
    forms = {o.form for o in listed}
    return listed + [o for form in op.forms if form not in forms for o in derive_overloads(op, form)]


# ---- the constant data in C++ ----

BASES = {"int": "Int", "float": "Float", "bool": "Bool", "str": "String", "options": "Options"}


def type_info(t: Type) -> str:
    said = {
        "base": f"BaseType::{BASES.get(t.base, t.base)}",
        "is_list": flag(t.is_list),
        "optional": flag(t.optional),
        "element_optional": flag(t.element_optional),
        "number": flag(t.number),
        "written": flag(t.written),
        "alias": f"'{t.alias[0]}'" if t.alias else "false",
        "size": str(t.size or "false"),
    }
    return "{" + commas([f".{key} = {value}" for key, value in said.items() if value != "false"]) + "}"


def default_info(arg: Arg) -> str:
    text = arg.default
    if text is None:
        return "{}"
    kind = "DefaultInfo::"
    if arg.type.base == "str" and text != "None":
        return f'{{.kind = {kind}String, .text = "{text[1:-1]}"}}'
    if text.startswith("["):
        ints = [item.strip() for item in text[1:-1].split(",") if item.strip()]
        return f"{{.kind = {kind}List, .count = {len(ints)}, .ints = {{{commas(ints)}}}}}"
    if text in ("None", "{}"):
        return f"{{.kind = {kind}None}}"
    if text in ("True", "False"):
        return f"{{.kind = {kind}Bool, .ints = {{{int(text == 'True')}}}}}"
    text = ENUMERATORS.get(text, text)
    if arg.type.base == "float" or not text.lstrip("-").isdigit():
        return f"{{.kind = {kind}Float, .number = {types.default(replace(arg, default=text))}}}"
    return f"{{.kind = {kind}Int, .ints = {{{text}}}}}"


def arg_info(arg: Arg) -> str:
    return f'{{"{arg.name}", {type_info(arg.type)}, {default_info(arg)}, {flag(arg.keyword_only)}}},'


def places(op: Op, overload: Overload, names: list[str]) -> list[int]:
    """Which of the function's arguments each of an overload's is."""
    positions = {name: i for i, name in enumerate(names)}
    if "options" in positions:
        positions = {a.name: positions["options"] for a in OPTIONS} | positions
    written = [a for a in overload.args if a.type.written] if overload.form == "out" else []
    return [written.index(a) if a in written else positions.get(a.name, -1) for a in overload.args]


class Arrays:
    """Constant arrays of one source: those with the same items are one."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, ...], str] = {}
        self._new: list[str] = []

    def name(self, element: str, items: list[str]) -> str:
        """What an array of these items is called; `{}` where there are none."""
        if not items:
            return "{}"
        key = (element, *items)
        if key not in self._names:
            self._names[key] = f"list_{len(self._names)}"
            self._new += block(f"constexpr {element} {self._names[key]}[] =", items, end=";")
        return self._names[key]

    def definitions(self) -> list[str]:
        """Of the arrays that were named since this was last asked."""
        new, self._new = self._new, []
        return new


TABLES = """
$tables
extern const OpFunction function_$key;
extern const OpInfo overloads_$key[];
constexpr OpInfo overloads_$key[] = {
    $rows
};
$rules
const OpFunction function_$key = {
    run_boxed<$function>, $shown, overloads_$key, $autocast, $batch, $functional, $sparse, $tangent, $composed
};
"""


def casts(op: Op, form: str) -> dict[str, str]:
    """What autocast does with a form: it leaves what writes to given tensors alone."""
    return rules.autocast(op) if form == "functional" else {}


def autocast_rules(op: Op, form: str) -> str:
    said = casts(op, form)
    named = [f"autocast::Rule::{said.get(device, 'none').capitalize()}" for device in rules.DEVICES]
    return f"{{{commas(named)}}}" if said else "{}"


FORMULA = """
std::vector<Value> batch_$key([[maybe_unused]] const std::vector<Value>& a, [[maybe_unused]] int64_t batch) {
  $locals
  return box_results($text);
}
"""


def batch_rules(op: Op, form: str, key: str) -> list[str]:
    """The rules of vmap; a form that writes to given tensors has those of its functional form."""
    lines, rows = [], []
    own = form == "functional" or op.inplace_only
    for i, (names, rule) in enumerate(rules.batch(op).items() if own else ()):
        if rule.kind == "composite":
            continue
        covered = [a.name for a in op.tensors] if not names else [name.strip() for name in names.split(",")]
        mask = sum(1 << n for n, a in enumerate(op.args) if a.name in covered)
        kind = "".join(map(str.capitalize, rule.kind.split("_")))
        more = []
        if rule.kind == "expression":
            kind, formula = "Formula", f"{key}_{i}"
            used = [(n, a) for n, a in enumerate(op.args) if re.search(rf"\b{a.name}\b", rule.text)]
            lines += fill(
                FORMULA,
                key=formula,
                locals=[f"const auto {a.name} = a[{n}].get<{types.owning_type(a.type)}>();" for n, a in used],
                text=re.sub(r"\bnone\b", "std::nullopt", rule.text),
            )
            more = [f"batch_{formula}"]
        elif rule.kind == "refused":
            more = ["nullptr", f'"{rule.reason}"']
        rows.append(f"{{{commas(f'batching::Kind::{kind}', f'{mask}u', more)}}},")
    return lines + (block(f"constexpr batching::Rule rules_{key}[] =", rows, end=";") if rows else [])


def tables(
    op: Op, form: str, key: str, function: str, args: list[Arg], more: dict[str, str], arrays: Arrays
) -> list[str]:
    """The C++ data of a form: its arguments, its overloads, the function that they call, its rules.

    `more` is what the function holds for sparse tensors and tangents, and `functional`, the form that makes what this
    one writes, if there is one.
    """
    if form == "inplace":
        args = [mark_written(args[0]), *args[1:]]
    shown = arrays.name("ArgInfo", [arg_info(a) for a in args])
    rows = []
    for overload in overloads_of_form(op, form):
        own = places(op, overload, [a.name for a in args])
        info = commas(
            f'"{"rushlight" if op.own else "aten"}", "{overload.name}", "{overload.overload}"',
            arrays.name("ArgInfo", [arg_info(a) for a in overload.args]),
            arrays.name("ResultInfo", [f'{{"{r.name}", {type_info(r.type)}}},' for r in overload.results]),
            f"&function_{key}",
            "nullptr" if list(overload.args) == args or not own else arrays.name("int8_t", [f"{i}," for i in own]),
            tags.bits(op, overload),
        )
        rows.append(f"{{{info}}},")
    batched = batch_rules(op, form, key)
    return fill(
        TABLES,
        key=key,
        tables=arrays.definitions(),
        rows=rows,
        rules=batched,
        function=function,
        shown=shown,
        autocast=autocast_rules(op, form),
        batch=f"rules_{key}" if batched else "{}",
        **more,
        composed=flag(op.kind == "composite" and not op.stays_whole and form != "out"),
    )


def overloads_of_form(op: Op, form: str) -> list[Overload]:
    return [o for o in overloads(op) if o.form == form]
