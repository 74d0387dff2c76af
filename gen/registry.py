"""The registry: overloads, arguments and rules of every form, as constant data in C++ (include/rushlight/schema.h)."""

from __future__ import annotations

from gen import derivatives, expressions, rules, tags, tangents
from gen.declarations import Form, forms
from gen.overloads import EXPANDED, Overload, registered, written
from gen.schema import Arg, Type, default, owned, parts
from gen.table import Op
from gen.text import block, commas, each, flag, header, lines, source

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
    return f"{{{commas(f'.{key} = {value}' for key, value in said.items() if value != 'false')}}}"


def default_info(arg: Arg) -> str:
    base, text = arg.type.base, ENUMERATORS.get(arg.default or "", arg.default)
    if text is None:
        return "{}"
    if text in ("None", "{}"):
        said = "None"
    elif base == "str":
        said = f'String, .text = "{text[1:-1]}"'
    elif text.startswith("["):
        said = f"List, .count = {len(parts(text[1:-1]))}, .ints = {{{commas(parts(text[1:-1]))}}}"
    elif text in ("True", "False"):
        said = f"Bool, .ints = {{{int(text == 'True')}}}"
    elif base == "float" or not text.lstrip("-").isdigit():
        said = f"Float, .number = {default(arg)}"
    else:
        said = f"Int, .ints = {{{text}}}"
    return f"{{.kind = DefaultInfo::{said}}}"


def arg_infos(args: list[Arg]) -> list[str]:
    return [f'{{"{a.name}", {type_info(a.type)}, {default_info(a)}, {flag(a.keyword_only)}}},' for a in args]


def places(overload: Overload, names: list[str]) -> list[str]:
    """Which of the function's arguments each of an overload's is."""
    own = {name: i for i, name in enumerate(names)}
    own = {a.name: own["options"] for a in EXPANDED if "options" in own} | own
    outs = [a for a in overload.args if a.type.written] if overload.form == "out" else []
    return [f"{outs.index(a) if a in outs else own.get(a.name, -1)}," for a in overload.args]


class Arrays:
    """Constant arrays of one source: those with the same items are one."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, ...], str] = {}
        self._new: list[str] = []

    def name(self, element: str, items: list[str]) -> str:
        """What an array of these items is called; `{}` where there are none."""
        key = (element, *items)
        if items and key not in self._names:
            self._names[key] = f"list_{len(self._names)}"
            self._new += block(f"constexpr {element} {self._names[key]}[] =", items, end=";")
        return self._names[key] if items else "{}"

    def definitions(self) -> list[str]:
        """Of the arrays that were named since this was last asked."""
        new, self._new = self._new, []
        return new


# ---- rules ----


def batch_rules(form: Form) -> list[str]:
    """The rules of vmap; a form that writes to given tensors has those of its functional form."""
    op, found, rows = form.op, [], []
    said = rules.batch(op) if form.kind == "functional" or op.inplace_only else {}
    for i, (names, rule) in enumerate(said.items()):
        covered = parts(names) or [a.name for a in op.tensors]
        mask = sum(1 << n for n, a in enumerate(op.args) if a.name in covered)
        kind, more = "".join(map(capital, rule.kind.split("_"))), ""
        if rule.kind == "expression":
            kind, more = "Formula", f"batch_{form.function}_{i}"
            used = [(k, a) for k, a in enumerate(op.args) if a.name in expressions.names(rule.text)]
            unused = "[[maybe_unused]]"
            found += lines(f"""
                std::vector<Value> {more}({unused} const std::vector<Value>& a, {unused} int64_t batch) {{
                  {each(f"const auto {a.name} = a[{k}].get<{owned(a.type)}>();" for k, a in used)}
                  return box_results({expressions.cpp(rule.text)});
                }}
            """)
        elif rule.kind == "refused":
            more = f'nullptr, "{rule.reason}"'
        rows += [f"{{{commas(f'batching::Kind::{kind}, {mask}u', more)}}},"] if rule.kind != "composite" else []
    return found + (block(f"constexpr batching::Rule rules_{form.function}[] =", rows, end=";") if rows else [])


def sparse_rule(form: Form) -> str:
    """What the entry says of sparse tensors; factories refuse them in the place of what would read their memory."""
    op, where = form.op, "SparseRule::Where::"
    if not op.sparse:
        return f"{{nullptr, {where}Above}}" if op.has_options and form.kind == "functional" else "{}"
    recorded = "Recorded" if derivatives.plan(op) is not None else "Below"
    where += "Below" if form.kind == "out" else "Above" if op.kind == "composite" else recorded
    if op.sparse == "values":
        return f"{{boxed<static_cast<{op.result} (*)({op.parameters})>({op.name})>, {where}, true}}"
    return f"{{boxed<sparse::{op.sparse}>, {where}}}"


# ---- a form's data ----


def tables(form: Form, arrays: Arrays) -> list[str]:
    """The overloads of a form, the function that they call, its rules."""
    op, key, rows = form.op, form.function, []
    args = written(op.args) if form.kind == "inplace" else [Arg(o, Type("Tensor")) for o in form.outs] + op.args
    shown = arrays.name("ArgInfo", arg_infos(args))
    for overload in registered(op, form.kind):
        own = places(overload, [a.name for a in args])
        name = f'"{"rushlight" if op.own else "aten"}", "{overload.name}", "{overload.overload}"'
        taken = arrays.name("ArgInfo", arg_infos(list(overload.args)))
        given = arrays.name("ResultInfo", [f'{{"{r.name}", {type_info(r.type)}}},' for r in overload.results])
        ordered = "nullptr" if list(overload.args) == args or not own else arrays.name("int8_t", own)
        rows.append(f"{{{commas(name, taken, given, f'&function_{key}', ordered, tags.bits(op, overload))}}},")
    batch, autocast = batch_rules(form), rules.autocast(op) if form.kind == "functional" else {}
    casts = commas(f"autocast::Rule::{autocast.get(device, 'none').capitalize()}" for device in rules.DEVICES)
    writes = form.kind != "functional" and not op.inplace_only
    said = [
        f"run_boxed<static_cast<{form.signature(name='(*)')}>({form.name})>",
        shown,
        f"overloads_{key}",
        f"{{{casts}}}" if autocast else "{}",
        f"rules_{key}" if batch else "{}",
        f"&function_{Form(op, 'functional').function}" if writes else "nullptr",
        sparse_rule(form),
        tangents.rule(form),
        flag(op.kind == "composite" and not op.whole and form.kind != "out"),
    ]
    return lines(f"""
        {each(arrays.definitions())}
        extern const OpFunction function_{key};
        extern const OpInfo overloads_{key}[];
        constexpr OpInfo overloads_{key}[] = {{
            {each(rows)}
        }};
        {each(batch)}
        const OpFunction function_{key} = {{
            {commas(said)}
        }};
    """)


# ---- whole files ----


def registry(ops: list[Op]) -> str:
    """All overloads by name."""
    found = [form for op in ops for form in forms(op)]
    rows = [
        (overload.name, f"overloads_{form.function} + {i},")
        for form in found
        for i, overload in enumerate(registered(form.op, form.kind))
    ]
    inside = lines(f"""
        {each(f"extern const OpInfo overloads_{form.function}[];" for form in found)}

        ArrayRef<const OpInfo*> all_ops() {{
          static constexpr const OpInfo* rows[] = {{
              {each(row for _, row in sorted(rows, key=lambda row: row[0]))}
          }};
          return rows;
        }}
    """)
    return source(["<rushlight/mode.h>"], "rushlight", inside)


def parts_source(ops: list[Op]) -> str:
    """What ops are composed of to Python code that looks at them below autograd, and above it."""
    composed = [op for op in ops if "parts" in op.shown]
    traced = [(op, text) for op in ops for text in op.shown if text not in ("whole", "parts", "body")]
    written = [block(f"{op.result} traced_{op.symbol}({op.parameters})", [f"return {text};"]) for op, text in traced]
    # A trace shows what composites are made of that aten lacks: they are the package's own business.
    own = [op for op in ops if op.kind == "composite" and op.own and not op.has_options and not op.inplace_only]
    bodies = [op for op in ops if "body" in op.shown or op in own]

    def rows(found: list[Op], function: str) -> list[str]:
        names = [f'"{op.name}", "{registered(op, "functional")[0].overload}"' for op in found]
        boxed = [f"boxed<{function}{op.symbol}>" for op in found]
        return [f"{{find_op({name})->function, {call}}}," for name, call in zip(names, boxed, strict=True)]

    inside = lines(f"""
        namespace parts {{

        {each(f"{op.result} {op.symbol}({op.parameters});" for op in composed)}

        }}  // namespace parts

        namespace {{

        {each(line for function in written for line in function)}

        using Table = std::unordered_map<const OpFunction*, PartsFunction>;
        PartsFunction found_in(const Table& table, const OpFunction& function) {{
          const auto found = table.find(&function);
          return found == table.end() ? nullptr : found->second;
        }}

        }}  // namespace

        PartsFunction parts_of(const OpFunction& function) {{
          static const Table known = {{
              {each(rows(composed, "parts::"))}
          }};
          return found_in(known, function);
        }}

        PartsFunction traced_as(const OpFunction& function) {{
          static const Table known = {{
              {each(rows([op for op, _ in traced], "traced_") + rows(bodies, "composite::"))}
          }};
          return found_in(known, function);
        }}
    """)
    includes = ["<unordered_map>", "", "<rushlight/ops.h>", "", "core/parts.h", "ops/wrappers.h"]
    return source(includes, "rushlight", inside)


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the output folder → contents."""
    # What entries name for sparse tensors; in place the result is what `self` becomes.
    sparse = [f"{op.result} {op.sparse}({op.parameters});" for op in ops if op.sparse not in (None, "values")]
    return {
        "src/registry.cpp": registry(ops),
        "src/parts.cpp": parts_source(ops),
        "include/generated/sparse.h": header(["core/sparse.h"], "rushlight::sparse", list(dict.fromkeys(sparse))),
    }
