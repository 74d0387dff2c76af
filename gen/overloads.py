"""The overloads under which an op's forms are registered: PyTorch's names, arguments and their order.

An entry is one C++ function a form; aten has several overloads for some of them (`add.Tensor` and `add.Scalar`,
`sum` and `sum.dim_IntList`). What an entry does not say follows from its signature: an argument `Tensor|Scalar` gives
two overloads, `options` four arguments, the in-place form is named `add_`, the `out=` form `out` or `OVERLOAD_out`.
`overloads=` of the entry lists what differs, in the schema language, where an argument without a type is the
entry's own of that name (one that is Tensor|Scalar is a Tensor that takes numbers, too) and `name!` one that is
written:

    overloads=["sum(self, dtype)", "sum.dim_IntList(self, Dim[1]? dim, keepdim, dtype)",
               "sum.IntList_out(self, Dim[1]? dim, keepdim, dtype, out!)"]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gen.schema import OPTIONS, Arg, Type, declarations, parse_call, parse_type
from gen.table import Op
from gen.text import commas

# What `options` stands for in schemas.
EXPANDED = [replace(a, default="None") for a in OPTIONS if a.name != "requires_grad"]


@dataclass(frozen=True)
class Overload:
    """One row of the registry."""

    name: str  # with the _ of the in-place form
    overload: str
    form: str  # functional inplace out
    args: tuple[Arg, ...]
    results: tuple[Arg, ...]


def written(args: list[Arg]) -> list[Arg]:
    """The arguments of an in-place form."""
    return [replace(args[0], type=replace(args[0].type, alias="a!")), *args[1:]]


def expanded(args: list[Arg]) -> list[Arg]:
    return [row for a in args for row in (EXPANDED if a.type.base == "options" else [a])]


def derived(op: Op, form: str) -> Iterator[str]:
    """What an item of `overloads=` would say: with a tensor and with a number where the entry takes both."""
    name, outs = op.inplace_name if form == "inplace" else op.name, []
    if form == "out":
        outs = [f"{r.name or f'out{i}'}!" for i, r in enumerate(op.results)] if len(op.results) > 1 else ["out!"]
    for kind in ("Tensor", "Scalar") if any(a.type.number for a in op.args) else ("",):
        typed = {a.name: f"{kind}{'?' * a.type.optional} {a.name}" for a in op.args if a.type.number}
        said = [f"{typed[a.name]}={a.default or ''}" if a.name in typed else a.name for a in op.args]
        said = [text for text in said if text != "options" or form != "out"]
        overload = "_".join(filter(None, [op.overload, kind, "out" if form == "out" else ""]))
        yield f"{name}{'.' * bool(overload)}{overload}({commas(said, outs)})"


def read(op: Op, text: str, form: str = "") -> Overload:
    """An item of `overloads=`; the form is told by what it writes where it is not known."""
    name, overload, inside, _ = parse_call(text)
    known = {a.name: a for a in expanded(op.args)}
    # Beside arguments that are written PyTorch's letters of results go on at d.
    letters = iter("defgh" if any(a.type.written for a in op.args[1:]) else "abcdefgh")
    args, given = [], []
    for kind, place, default, keyword_only in declarations(inside):
        if place == "options":
            args += EXPANDED
        elif place.endswith("!"):
            given.append(Arg(place[:-1], Type("Tensor", alias=next(letters) + "!"), None, True))
            args.append(given[-1])
        elif kind:
            args.append(Arg(place, parse_type(kind), default or None, keyword_only))
        else:
            arg = known[place] if default is None else replace(known[place], default=default or None)
            args.append(replace(arg, keyword_only=arg.keyword_only or keyword_only))
    results, named = op.results, form == "out" and len(given) > 1
    given = given or [a for a in args if a.type.written]
    form = form or ("inplace" if name == op.inplace_name else "out" if given else "functional")
    if form == "inplace":
        args = written(args)
        results = [replace(args[0], name="")]
    elif form == "out":
        results = given if named else [replace(a, name="", keyword_only=False) for a in given]
    return Overload(name, overload, form, tuple(args), tuple(results))


def overloads(op: Op) -> list[Overload]:
    listed = [read(op, text) for text in op.overloads]
    others = [form for form in op.forms if form not in {o.form for o in listed}]
    return listed + [read(op, text, form) for form in others for text in derived(op, form)]


def registered(op: Op, form: str) -> list[Overload]:
    return [o for o in overloads(op) if o.form == form]
