"""The registry: the overloads under which an op's forms are registered, with arguments and rules, as constant data.

An entry is one C++ function a form; aten has several overloads for some of them (`add.Tensor` and `add.Scalar`,
`sum` and `sum.dim_IntList`). What an entry does not say follows from its signature: an argument `Tensor|Scalar` gives
two overloads, `options` four arguments, the in-place form is named `add_`, the `out=` form `out` or `OVERLOAD_out`.
`overloads=` of the entry lists what differs, in the schema language, where an argument without a type is the
entry's own of that name (one that is Tensor|Scalar is a Tensor that takes numbers, too) and `name!` one that is
written:

    overloads=["sum(self, dtype)", "sum.dim_IntList(self, Dim[1]? dim, keepdim, dtype)",
               "sum.IntList_out(self, Dim[1]? dim, keepdim, dtype, out!)"]

The data are those of include/rushlight/schema.h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from gen import derivatives, rules, tangents
from gen.declarations import Form, forms
from gen.expressions import TableError, read
from gen.schema import (
    OPTIONS,
    Arg,
    Type,
    declarations,
    default,
    owning_type,
    parse_call,
    parse_type,
    parts,
)
from gen.table import Op, load
from gen.text import Pool, array, block, braced, commas, each, filled, flag, lines, source

# ---- overloads ----


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


def mark_written(args: list[Arg]) -> list[Arg]:
    """The arguments of an in-place form."""
    return [replace(args[0], type=replace(args[0].type, alias="a!")), *args[1:]]


def derive_overloads(op: Op, form: str) -> Iterator[str]:
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


def read_overload(op: Op, text: str, form: str = "") -> Overload:
    """An item of `overloads=`; the form is told by what it writes where it is not known."""
    name, overload, inside, _ = parse_call(text)
    known = {a.name: a for a in [*EXPANDED, *op.args]}
    # Beside arguments that are written PyTorch's letters of results go on at d.
    letters = iter("defgh" if any(a.type.written for a in op.args[1:]) else "abcdefgh")
    args, given = [], []
    for kind, place, value, keyword_only in declarations(inside):
        if place == "options":
            args += EXPANDED
        elif place.endswith("!"):
            given.append(Arg(place[:-1], Type("Tensor", alias=next(letters) + "!"), None, True))
            args.append(given[-1])
        elif kind:
            args.append(Arg(place, parse_type(kind), value or None, keyword_only))
        else:
            arg = known[place] if value is None else replace(known[place], default=value or None)
            args.append(replace(arg, keyword_only=arg.keyword_only or keyword_only))
    results, named = op.results, form == "out" and len(given) > 1
    given = given or [a for a in args if a.type.written]
    form = form or ("inplace" if name == op.inplace_name else "out" if given else "functional")
    if form == "inplace":
        args = mark_written(args)
        results = [replace(args[0], name="")]
    elif form == "out":
        results = given if named else [replace(a, name="", keyword_only=False) for a in given]
    return Overload(name, overload, form, tuple(args), tuple(results))


def overloads_of_form(op: Op, form: str) -> list[Overload]:
    """The overloads of a form: those that the entry lists, or else those that follow from its signature."""
    listed = [o for o in (read_overload(op, text) for text in op.overloads) if o.form == form]
    derived = derive_overloads(op, form) if form in op.forms and not listed else []
    return listed or [read_overload(op, text, form) for text in derived]


# ---- tags ----

# What is true of an overload, in the words of `torch.Tag`. Most of it follows from the entry: its kind, its arguments,
# its form. `tags=` adds the rest: a word, as "pointwise" for a composite, or "core.Tensor" for one overload of the
# functional form alone ("core.default" for the one without a name).


@cache
def _views() -> frozenset[str]:
    return frozenset(op.name for op in load() if any(r.type.alias and not r.type.written for r in op.results))


def _writes(op: Op, o: Overload) -> bool:
    return o.form != "out" and op.name.endswith("_") and any(a.type.written for a in o.args)


def _draws(op: Op, _: Overload) -> bool:
    given = any(a.type == Type("Generator", optional=True) for a in op.args)
    return given or (isinstance(op.batch, str) and op.batch.startswith("random"))


# Every word, in the order of C++'s `Tag`.
_WORDS = """core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace
    inplace_view maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order
    nondeterministic_bitwise nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction
    view_copy"""
TAGS = _WORDS.split()
# Those that hold though an entry does not say them, and when.
_HOLDS: dict[str, Callable[[Op, Overload], bool]] = {
    "dynamic_output_shape": lambda op, o: op.kernel.kind == "dynamic",
    "inplace": lambda op, o: o.form == "inplace" or _writes(op, o),
    "inplace_view": lambda op, o: op.inplace_only and op.name[:-1] in _views(),
    "nondeterministic_seeded": _draws,
    "out": lambda op, o: o.form == "out",
    "pointwise": lambda op, o: op.kernel.kind == "pointwise",
    "pt2_compliant_tag": lambda op, o: True,
    "reduction": lambda op, o: op.kernel.kind == "reduction" and not op.own,
    "view_copy": lambda op, o: op.name.endswith("_copy") and op.name.removesuffix("_copy") in _views(),
}


def _says(op: Op, o: Overload, said: str) -> str:
    """The word of an item of `tags=` if it is meant for an overload."""
    word, _, name = said.partition(".")
    if word not in TAGS:
        raise TableError(f"{op.text}: no tag is named {word!r}")
    own = o.form == "functional" or op.inplace_only
    return word if (name == (o.overload or "default") if name else own or word != "core") else ""


def tag_bits(op: Op, o: Overload) -> str:
    """The words that hold for an overload, as the bits of C++'s `Tag`."""
    limited = {said.partition(".")[0] for said in op.tags if "." in said}  # to overloads that the entry names
    found = {word for word, holds in _HOLDS.items() if word not in limited and holds(op, o)}
    found |= {_says(op, o, said) for said in op.tags}
    return f"{sum(1 << i for i, word in enumerate(TAGS) if word in found):#x}u"


# ---- arguments and overloads ----

# Defaults that PyTorch prints as numbers.
ENUMERATORS = {"Contiguous": "0", "Int64": "4"}


def capital(word: str) -> str:
    return word[:1].upper() + word[1:]


def type_info(t: Type) -> str:
    base = {"Tensor": "", "str": "String"}.get(t.base, capital(t.base))
    said = {
        "base": base,
        **{key: flag(getattr(t, key)) for key in ("is_list", "optional", "element_optional", "number", "written")},
        "alias": f"'{t.alias[0]}'" if t.alias else "",
        "size": str(t.size or ""),
        "meaning": f"Meaning::{t.meaning}" if t.meaning else "",
    }
    return f"{{{commas(f'.{key} = {value}' for key, value in said.items() if value not in ('', 'false'))}}}"


def default_info(arg: Arg) -> str:
    base, text = arg.type.base, ENUMERATORS.get(arg.default or "", arg.default)
    if text is None:
        return "{}"
    if text in ("None", "{}"):
        return "none"
    if base == "str":
        return f'string("{text[1:-1]}")'
    if text.startswith("["):
        return f"list({text[1:-1]})"
    if text in ("True", "False"):
        return f"boolean({text.lower()})"
    is_float = base == "float" or not text.lstrip("-").isdigit()
    return f"real({default(arg)})" if is_float else f"integer({text})"


def arg_infos(args: Iterable[Arg]) -> tuple[str, ...]:
    return tuple(
        braced([f'"{a.name}"', type_info(a.type), default_info(a), "true" if a.keyword_only else "{}"]) for a in args
    )


def result_infos(results: Iterable[Arg]) -> tuple[str, ...]:
    return tuple(braced([f'"{r.name}"', type_info(r.type)]) for r in results)


def places(overload: Overload, args: list[Arg]) -> tuple[str, ...]:
    """Which of the function's arguments each of an overload's is; empty where they are the same."""
    own = {a.name: i for i, a in enumerate(args)}
    own = {a.name: own["options"] for a in EXPANDED if "options" in own} | own
    outs = [a for a in overload.args if a.type.written] if overload.form == "out" else []
    found = [str(outs.index(a) if a in outs else own.get(a.name, -1)) for a in overload.args]
    return () if list(overload.args) == args else tuple(found)


# ---- rules ----


def batch_rules(form: Form) -> tuple[list[str], str]:
    """The rules of vmap: what is defined before, and the list; those of the functional form hold for the others."""
    op, found, rows = form.op, [], []
    said = rules.batch(op) if form.kind == "functional" or op.inplace_only else {}
    for i, (names, rule) in enumerate(said.items()):
        covered = parts(names) or [a.name for a in op.tensors]
        mask = sum(1 << n for n, a in enumerate(op.args) if a.name in covered)
        kind, more = "".join(map(capital, rule.kind.split("_"))), ""
        if rule.kind == "expression":
            kind, more = "Formula", f"batch_{form.function}_{i}"
            used = [(k, a) for k, a in enumerate(op.args) if a.name in rule.formulas[""].names]
            unused = "[[maybe_unused]]"
            found += lines(f"""
                std::vector<Value> {more}({unused} const std::vector<Value>& a, {unused} int64_t batch) {{
                  {each(f"const auto {a.name} = a[{k}].get<{owning_type(a.type)}>();" for k, a in used)}
                  return box_results({rule.formulas[""].cpp});
                }}
            """)
        elif rule.kind == "refused":
            more = f'nullptr, "{rule.reason}"'
        rows += [commas(f"batching::Kind::{kind}, {mask}u", more)] if rule.kind != "composite" else []
    if rows and (len(rows) > 1 or "refused" in (r.kind for r in said.values()) or found):
        found += array(f"constexpr batching::Rule rules_{form.function}[]", (f"{{{row}}}" for row in rows))
        return found, f"rules_{form.function}"
    return found, f"only_rule<{rows[0]}>" if rows else ""


def sparse_rule(form: Form) -> str:
    """What the entry says of sparse tensors; factories refuse them in the place of what would read their memory."""
    op, where = form.op, "SparseRule::Where::"
    if not op.sparse:
        return f"{{nullptr, {where}Above}}" if op.has_options and form.kind == "functional" else ""
    recorded = "Recorded" if derivatives.plan(op) is not None else "Below"
    where += "Below" if form.kind == "out" else "Above" if op.kind == "composite" else recorded
    if op.sparse == "values":
        return f"{{boxed<static_cast<{op.result} (*)({op.parameters})>({op.name})>, {where}, true}}"
    return f"{{boxed<sparse::{op.sparse}>, {where}}}"


# ---- what Python that looks at ops is shown ----


def shown_parts(form: Form) -> tuple[list[str], str, str]:
    """A function, where the entry writes one; what is called in the place of the op below autograd, and above it."""
    op = form.op
    if form.kind != "functional":
        return [], "", ""
    parts = f"boxed<parts::{op.symbol}>" if "parts" in op.shown else ""
    if written := [text for text in op.shown if text not in ("whole", "parts", "body")]:
        head = f"static {op.result} traced_{op.symbol}({op.parameters})"
        return block(head, [f"return {read(written[0]).cpp};"]), parts, f"boxed<traced_{op.symbol}>"
    # A trace shows what composites are made of that aten lacks: they are the package's own business.
    own = op.kind == "composite" and op.own and not op.has_options
    return [], parts, f"boxed<composite::{op.symbol}>" if own or "body" in op.shown else ""


# ---- functions ----


def function(form: Form) -> list[str]:
    """The function behind the overloads of a form: what it runs, its rules."""
    op, key = form.op, form.function
    (before, batch), (written, parts, traced) = batch_rules(form), shown_parts(form)
    autocast = rules.autocast(op) if form.kind == "functional" else {}
    casts = commas(f"autocast::Rule::{autocast.get(device, 'none').capitalize()}" for device in rules.DEVICES)
    writes = form.kind != "functional" and not op.inplace_only
    said = {
        "run": f"run_boxed<{form.type}, {form.name}>",
        "overloads": f"overloads_{key}",
        "autocast": autocast and f"{{{casts}}}",
        "batch": batch,
        "functional": f"&function_{Form(op, 'functional').function}" if writes else "",
        "sparse": sparse_rule(form),
        "tangent": tangents.rule(form),
        "parts": parts,
        "traced": traced,
        "composed": "true" if op.kind == "composite" and not op.whole and form.kind != "out" else "",
    }
    head = f"RL_OP_FUNCTION({key}, {len(overloads_of_form(op, form.kind))}) ="
    shown = filled(f".{name} = {value}," for name, value in said.items() if value)
    return [*before, *written, *block(head, shown, end=";")]


# ---- the registry ----


def own_args(form: Form) -> list[Arg]:
    """The arguments of the function of a form."""
    args = form.op.args
    return mark_written(args) if form.kind == "inplace" else [*(Arg(o, Type("Tensor")) for o in form.outs), *args]


def all_rows(ops: list[Op]) -> list[tuple[Overload, Form, int]]:
    """The registry: all overloads by name, each with its form and its place among that form's."""
    found = [form for op in ops for form in forms(op)]
    numbered = [(o, form, i) for form in found for i, o in enumerate(overloads_of_form(form.op, form.kind))]
    return sorted(numbered, key=lambda row: row[0].name)


def registry(ops: list[Op]) -> list[str]:
    """The overloads of all functions, and the list of them."""
    found = [(form, own_args(form), overloads_of_form(op, form.kind)) for op in ops for form in forms(op)]
    overloads = [(o, args) for _, args, several in found for o in several]
    taken = [arg_infos(args) for _, args, _ in found] + [arg_infos(o.args) for o, _ in overloads]
    arguments = Pool("ArgInfo", "arguments", taken)
    results = Pool("ResultInfo", "results", (result_infos(o.results) for o, _ in overloads))
    orders = Pool("int8_t", "places", (places(*row) for row in overloads))
    defined = []
    for form, args, several in found:
        defined.append(f"RL_OVERLOADS({form.function}) = {{")
        for o in several:
            name = f'"{"rushlight" if form.op.own else "aten"}", "{o.name}", "{o.overload}"'
            taken = arguments.part(arg_infos(o.args)), results.part(result_infos(o.results))
            own = f"&function_{form.function}", arguments.part(arg_infos(args)), orders.start(places(o, args))
            defined.append(f"    {{{commas(name, taken, own, tag_bits(form.op, o))}}},")
        defined[-1] = f"{defined[-1][:-1]}}};"
    return lines(f"""
        namespace rows {{
        {each(line for pool in (arguments, results, orders) for line in pool.definition())}
        }}  // namespace rows
        using namespace rows;

        {each(defined)}

        ArrayRef<const OpInfo*> all_ops() {{
          static constexpr const OpInfo* all[] = {{
              {each(filled(f"overloads_{form.function} + {i}," for _, form, i in all_rows(ops)))}
          }};
          return all;
        }}
    """)


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    return {"src/registry.cpp": source(["core/registry_rows.h"], "rushlight", registry(ops))}
