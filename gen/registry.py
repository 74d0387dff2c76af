"""The registry: overloads, arguments and rules of every form, as constant data in C++ (include/rushlight/schema.h)."""

from __future__ import annotations

from dataclasses import replace

from gen import derivatives, expressions, rules, tags, tangents
from gen.declarations import Form, forms
from gen.overloads import EXPANDED, Overload, registered, written
from gen.schema import Arg, Type, default, owned, parameters, parts, result_type
from gen.table import Op
from gen.text import HEADER, block, commas, fill, flag, quoted, source

# ---- arguments and overloads ----

# Defaults that PyTorch prints as numbers.
ENUMERATORS = {"Contiguous": "0", "Int64": "4"}


def capital(word: str) -> str:
    return word[:1].upper() + word[1:]


def type_info(t: Type) -> str:
    said = {
        "base": f"BaseType::{'String' if t.base == 'str' else capital(t.base)}",
        **{key: flag(getattr(t, key)) for key in ("is_list", "optional", "element_optional", "number", "written")},
        "alias": f"'{t.alias[0]}'" if t.alias else "false",
        "size": str(t.size or "false"),
    }
    return "{" + commas([f".{key} = {value}" for key, value in said.items() if value != "false"]) + "}"


def default_info(arg: Arg) -> str:
    text, base = arg.default, arg.type.base
    if text is None:
        return "{}"
    text = ENUMERATORS.get(text, text)
    if text in ("None", "{}"):
        kind, value = "None", ""
    elif base == "str":
        kind, value = "String", f', .text = "{text[1:-1]}"'
    elif text.startswith("["):
        ints = parts(text[1:-1])
        kind, value = "List", f", .count = {len(ints)}, .ints = {{{commas(ints)}}}"
    elif text in ("True", "False"):
        kind, value = "Bool", f", .ints = {{{int(text == 'True')}}}"
    elif base == "float" or not text.lstrip("-").isdigit():
        kind, value = "Float", f", .number = {default(replace(arg, default=text))}"
    else:
        kind, value = "Int", f", .ints = {{{text}}}"
    return f"{{.kind = DefaultInfo::{kind}{value}}}"


def arg_info(arg: Arg) -> str:
    return f'{{"{arg.name}", {type_info(arg.type)}, {default_info(arg)}, {flag(arg.keyword_only)}}},'


def places(overload: Overload, names: list[str]) -> list[str]:
    """Which of the function's arguments each of an overload's is."""
    own = {name: i for i, name in enumerate(names)}
    if "options" in own:
        own = {a.name: own["options"] for a in EXPANDED} | own
    outs = [a for a in overload.args if a.type.written] if overload.form == "out" else []
    return [f"{outs.index(a) if a in outs else own.get(a.name, -1)}," for a in overload.args]


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


# ---- rules ----


def autocast_rules(form: Form) -> str:
    """Autocast leaves what writes to given tensors alone."""
    said = rules.autocast(form.op) if form.kind == "functional" else {}
    named = [f"autocast::Rule::{said.get(device, 'none').capitalize()}" for device in rules.DEVICES]
    return f"{{{commas(named)}}}" if said else "{}"


FORMULA = """
std::vector<Value> batch_$key([[maybe_unused]] const std::vector<Value>& a, [[maybe_unused]] int64_t batch) {
  $locals
  return box_results($text);
}
"""


def batch_rules(form: Form) -> list[str]:
    """The rules of vmap; a form that writes to given tensors has those of its functional form."""
    op, lines, rows = form.op, [], []
    own = form.kind == "functional" or op.inplace_only
    for i, (names, rule) in enumerate(rules.batch(op).items() if own else ()):
        if rule.kind == "composite":
            continue
        covered = parts(names) or [a.name for a in op.tensors]
        mask = sum(1 << n for n, a in enumerate(op.args) if a.name in covered)
        kind, more = "".join(map(capital, rule.kind.split("_"))), []
        if rule.kind == "expression":
            kind, more = "Formula", [f"batch_{form.function}_{i}"]
            used = [(n, a) for n, a in enumerate(op.args) if a.name in expressions.names(rule.text)]
            found = [f"const auto {a.name} = a[{n}].get<{owned(a.type)}>();" for n, a in used]
            lines += fill(FORMULA, key=f"{form.function}_{i}", locals=found, text=expressions.cpp(rule.text))
        elif rule.kind == "refused":
            more = ["nullptr", f'"{rule.reason}"']
        rows.append(f"{{{commas(f'batching::Kind::{kind}', f'{mask}u', more)}}},")
    return lines + (block(f"constexpr batching::Rule rules_{form.function}[] =", rows, end=";") if rows else [])


def sparse_rule(form: Form) -> str:
    """What the entry says of sparse tensors; factories refuse them in the place of what would read their memory."""
    op, where = form.op, "SparseRule::Where::"
    if not op.sparse:
        return f"{{nullptr, {where}Above}}" if op.has_options and form.kind == "functional" else "{}"
    recorded = "Recorded" if derivatives.plan(op) is not None else "Below"
    where += "Below" if form.kind == "out" else "Above" if op.kind == "composite" else recorded
    if op.sparse == "values":
        pointer = f"{result_type(op.results)} (*)({parameters(op.args)})"
        return f"{{boxed<static_cast<{pointer}>({op.name})>, {where}, true}}"
    return f"{{boxed<sparse::{op.sparse}>, {where}}}"


# ---- a form's data ----

TABLES = """
$tables
extern const OpFunction function_$key;
extern const OpInfo overloads_$key[];
constexpr OpInfo overloads_$key[] = {
    $rows
};
$batch
const OpFunction function_$key = {
    run_boxed<static_cast<$pointer>($name)>, $said
};
"""


def tables(form: Form, arrays: Arrays) -> list[str]:
    """The overloads of a form, the function that they call, its rules."""
    op, key = form.op, form.function
    args = written(op.args) if form.kind == "inplace" else [Arg(o, Type("Tensor")) for o in form.outs] + op.args
    shown = arrays.name("ArgInfo", [arg_info(a) for a in args])
    rows = []
    for overload in registered(op, form.kind):
        own = places(overload, [a.name for a in args])
        taken = arrays.name("ArgInfo", [arg_info(a) for a in overload.args])
        given = arrays.name("ResultInfo", [f'{{"{r.name}", {type_info(r.type)}}},' for r in overload.results])
        said = commas(quoted("rushlight" if op.own else "aten", overload.name, overload.overload), taken, given)
        ordered = "nullptr" if list(overload.args) == args or not own else arrays.name("int8_t", own)
        rows.append(f"{{{commas(said, f'&function_{key}', ordered, tags.bits(op, overload))}}},")
    batch = batch_rules(form)
    writes = form.kind != "functional" and not op.inplace_only
    said = [
        shown,
        f"overloads_{key}",
        autocast_rules(form),
        f"rules_{key}" if batch else "{}",
        f"&function_{Form(op, 'functional').function}" if writes else "nullptr",
        sparse_rule(form),
        tangents.rule(form),
        flag(op.kind == "composite" and not op.whole and form.kind != "out"),
    ]
    return fill(
        TABLES,
        key=key,
        tables=arrays.definitions(),
        rows=rows,
        batch=batch,
        pointer=form.signature(name="(*)"),
        name=form.name,
        said=commas(said),
    )


# ---- whole files ----

REGISTRY = """
$declarations

ArrayRef<const OpInfo*> all_ops() {
  static constexpr const OpInfo* rows[] = {
      $rows
  };
  return rows;
}
"""


def registry(ops: list[Op]) -> str:
    """All overloads by name."""
    found = [form for op in ops for form in forms(op)]
    rows = [
        (overload.name, f"overloads_{form.function} + {i},")
        for form in found
        for i, overload in enumerate(registered(form.op, form.kind))
    ]
    rows.sort(key=lambda row: row[0])
    declarations = [f"extern const OpInfo overloads_{form.function}[];" for form in found]
    lines = fill(REGISTRY, declarations=declarations, rows=[row for _, row in rows])
    return source(["<rushlight/mode.h>"], "rushlight", lines)


SPARSE_H = """
#pragma once

#include "core/sparse.h"

namespace rushlight::sparse {

$functions

}  // namespace rushlight::sparse
"""


def sparse_header(ops: list[Op]) -> str:
    """The functions that entries name: in place the result is what `self` becomes."""
    named = [op for op in ops if op.sparse not in (None, "values")]
    functions = [f"{result_type(op.results)} {op.sparse}({parameters(op.args)});" for op in named]
    return "\n".join([HEADER, *fill(SPARSE_H, functions=list(dict.fromkeys(functions))), ""])


PARTS = """
namespace parts {

$declared

}  // namespace parts

namespace {

$functions

using Table = std::unordered_map<const OpFunction*, PartsFunction>;
PartsFunction found_in(const Table& table, const OpFunction& function) {
  const auto found = table.find(&function);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace

PartsFunction parts_of(const OpFunction& function) {
  static const Table known = {
      $below
  };
  return found_in(known, function);
}

PartsFunction traced_as(const OpFunction& function) {
  static const Table known = {
      $above
  };
  return found_in(known, function);
}
"""


def is_looked_through(op: Op) -> bool:
    """Whether a trace shows what a composite is made of: those that aten lacks are the package's own business."""
    functional = not op.has_options and not op.inplace_only
    return "body" in op.shown or (op.kind == "composite" and op.own and functional)


def parts_source(ops: list[Op]) -> str:
    """What ops are composed of to Python code that looks at them below autograd, and above it."""
    composed = [op for op in ops if "parts" in op.shown]
    written = [(op, text) for op in ops for text in op.shown if text not in ("whole", "parts", "body")]
    head = "{} {}({})".format
    functions = []
    for op, text in written:
        name = f"traced_{op.symbol}"
        functions += block(head(result_type(op.results), name, parameters(op.args)), [f"return {text};"])

    def row(op: Op, function: str) -> str:
        overload = registered(op, "functional")[0].overload
        return f'{{find_op("{op.name}", "{overload}")->function, boxed<{function}>}},'

    looked_through = [row(op, f"composite::{op.symbol}") for op in ops if is_looked_through(op)]
    text = fill(
        PARTS,
        declared=[head(result_type(op.results), op.symbol, parameters(op.args)) + ";" for op in composed],
        functions=functions,
        below=[row(op, f"parts::{op.symbol}") for op in composed],
        above=[row(op, f"traced_{op.symbol}") for op, _ in written] + looked_through,
    )
    includes = ["<unordered_map>", "", "<rushlight/ops.h>", "", "core/parts.h", "ops/wrappers.h"]
    return source(includes, "rushlight", text)


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    return {
        "src/registry.cpp": registry(ops),
        "src/parts.cpp": parts_source(ops),
        "include/generated/sparse.h": sparse_header(ops),
    }
