"""Stateless modules as data, which ops/modules.py declares, and the classes that they become in Python and in C++.

Python's files become the package's `nn/modules/_stateless/`, from where nn/modules re-exports the classes. Calls in C++
go to nn::functional::detail (src/nn/detail.h), whose parameters are a call's inputs and what `passes` lists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from string import Formatter
from textwrap import wrap
from typing import Any

from gen.schema import Arg, default, owning_type, parse_signature, parts
from gen.table import load_examples
from gen.text import block, commas, each, flat, header, lines, only, source
from ops.arguments import describe

FOLDER = "package/nn/modules/_stateless"  # below the generated files; "package" is laid over the Python package


@dataclass
class Module:
    """An entry of ops/modules.py, which says what the keys mean."""

    name: str
    args: list[Arg]
    family: str
    function: str
    passes: str
    doc: str
    base: Module | None = None  # None: Module
    inputs: str = "input"
    sets: dict[str, Any] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)
    show: str | None = None  # not said
    prints: str | None = "as Python"
    method: bool = False
    python: dict[str, Any] = field(default_factory=dict)
    trains: str = ""
    functional_only: str = ""


MODULES: dict[str, Module] = {}


def module(signature: str, family: str, function: str = "", passes: str = "", base: str = "", **keys) -> None:
    """Declares a module."""
    name, _, args, _ = parse_signature(f"{signature} -> ()")
    MODULES[name] = Module(name, args, family, function, passes, base=MODULES.get(base), **keys)


SHAPES: dict[str, str] = {}
FORMULAS: dict[str, str] = {}


def shapes(**names: str) -> None:
    """Says what modules are given and return, by their names or by those of their families."""
    SHAPES.update(names)


def formulas(**names: str) -> None:
    """Says what modules compute, where `doc` does not."""
    FORMULAS.update(names)


def load() -> list[Module]:
    import ops.modules  # noqa: F401

    return list(MODULES.values())


def passed_by(passes: str) -> tuple[list[str], list[str]]:
    """What a call passes besides inputs: by place and by name."""
    by_place, _, by_name = passes.partition("*")
    return parts(by_place), parts(by_name)


# ---- Python ----


def expression(value: Any) -> str:
    """What `sets` says: a name, a number, or a rule with what it is given."""
    return f"_{value[0]}({commas(map(expression, value[1:]))})" if isinstance(value, tuple) else str(value)


def rules_in(value: Any) -> set[str]:
    """The rules that `sets` names."""
    inside = value[1:] if isinstance(value, tuple) else ()
    return {f"_{value[0]}"}.union(*map(rules_in, inside)) if inside else set()


def shown(text: str) -> list[tuple[str, str, bool, str]]:
    """What stands between the parentheses of `repr`: text, then an attribute; if it is shown where true; its form."""
    found = [(before, field or "", f"!{how}" if how else "") for before, field, _, how in Formatter().parse(text)]
    return [(before, name.removeprefix("?"), name.startswith("?"), how) for before, name, how in found]


def parameters(m: Module) -> str:
    star, said = next((a.name for a in m.args if a.keyword_only), ""), []
    for a in m.args:
        item = f"{a.type.base} | None" if a.type.element_optional else a.type.base
        kind = f"{item} | tuple[{item}, ...]" if a.type.is_list else a.type.base
        none, given = " | None" if a.type.optional else "", f" = {a.default}" if a.default else ""
        said.append(f"{'*, ' * (a.name == star)}{a.name}: {kind}{none}{given}")
    return commas(said)


def owner_of_constructor(m: Module) -> Module:
    """The module whose arguments a class takes: itself, or a base."""
    while m.base and not m.args:
        m = m.base
    return m


def constructor_text(m: Module) -> str:
    """`ReLU(inplace: bool = False)`, for the documentation."""
    return f"{m.name}({parameters(owner_of_constructor(m))})"


def made_of(m: Module) -> Module:
    """The module whose call a class has: itself, or a base."""
    while m.base and not m.function:
        m = m.base
    return m


def docstring(m: Module) -> list[str]:
    """What `help` shows of a class."""
    args = [f"    {a.name}: {describe(m.name, m.family, a.name)}." for a in owner_of_constructor(m).args]
    example = load_examples().get(m.name, "").splitlines()
    said = ["", "Args:", *args] if args else []
    formula, shape = FORMULAS.get(m.name), SHAPES.get(m.name, SHAPES.get(m.family))
    said = ["", *wrap(f"Formula: {formula}.", 95, subsequent_indent="    "), *said] if formula else said
    said += ["", *wrap(f"Shape: {shape}.", 95, subsequent_indent="    ")] if made_of(m).function and shape else []
    said += ["", "Example:", *(f"    {line}" for line in example)] if example else []
    return [f'"""{m.doc}', *said, '"""'] if said else [f'"""{m.doc}"""']


def constructor(m: Module) -> list[str]:
    base, names = [a.name for a in m.base.args] if m.base else [], [a.name for a in m.args]
    # Without arguments other than its base's, a class has its base's constructor.
    if not names or (m.base and names == base):
        return []
    passed = {name: name for name in base if name in names} | m.fixed
    attributes = {name: name for name in names if name not in passed} | m.sets
    buffers = [a.name for a in m.args if a.type.base == "Tensor"]
    sets = []
    for name, value in attributes.items():
        plain = [] if value is None else [f"self.{name} = {expression(value)}"]
        buffer = [f'self.register_buffer("{name}", {value})', f"self.{name}: Tensor | None"]
        sets += buffer if name in buffers else plain
    given = commas(f"{name}={value}" for name, value in passed.items())
    head = f"def __init__({commas('self', parameters(m))}) -> None:"
    return ["", head, *(f"    {line}" for line in [f"super().__init__({given})", *sets])]


def python_class(m: Module) -> list[str]:
    # A call gives the inputs to the function, or calls it on the first of them, and then what is passed besides.
    inputs, (by_place, by_name) = parts(m.inputs), passed_by(m.passes)
    given = [item if item.startswith("'") else f"self.{item}" for item in by_place]
    given += [f"{name}=self.{name}" for name in by_name] + [f"{name}={value}" for name, value in m.python.items()]
    takes, owner = commas(f"{name}: Tensor" for name in inputs), inputs.pop(0) if m.method else "F"
    call = f"{owner}.{m.function}({commas(inputs, given)})"
    forward = ["", f"def forward(self, {takes}) -> Tensor:", f"    return {call}"] if m.function else []
    text = ""
    for before, name, flagged, how in shown(m.show or ""):
        comma = ", " if text else ""
        flag = f"{{'{comma}{name}=True' if self.{name} else ''}}"
        text += before + (flag if flagged else f"{{self.{name}{how}}}" if name else "")
    printed = [] if m.show is None else ["", "def extra_repr(self) -> str:", f'    return f"{text}"']
    return lines(f"""
        class {m.name}({m.base.name if m.base else "Module"}):
            {each(docstring(m))}

            __module__ = "rushlight.nn.modules.{m.family}"
            {each([*constructor(m), *forward, *printed])}
    """)


def family_source(family: str, members: list[Module]) -> str:
    body = flat(["", "", *python_class(m)] for m in members)
    used = sorted(set().union(*(rules_in(value) for m in members for value in m.sets.values())))
    head = lines(f'''
        """Stateless modules of the family "{family}". Generated from ops/modules.py; do not edit."""

        # A size that stays is None in classes of several dimensions, which the function of one refuses.
        # pyright: reportArgumentType=false
        from __future__ import annotations

        from rushlight import Tensor

        from ... import functional as F
        {only(used)}from ..._arguments import {commas(used)}
        from ..module import Module

        __all__ = [
            {each(f'"{m.name}",' for m in members)}
        ]
    ''')
    return "\n".join([*head, *body, ""])


def python_files() -> dict[str, str]:
    """Path below the output folder → contents."""
    families: dict[str, list[Module]] = {}
    for m in load():
        families.setdefault(m.family, []).append(m)
    files = {f"{FOLDER}/{family}.py": family_source(family, members) for family, members in families.items()}
    head = '"""Generated from ops/modules.py; see nn/modules for what is public."""\n'
    return files | {f"{FOLDER}/__init__.py": head}


# ---- C++ ----


NOT_IN_CPP = ("size_average", "reduce", "return_indices")
SPELT = {"lambd": "lambda"}  # a word of Python

Option = tuple[str, str, str | None]  # type, name, default


def held_option(kind: str, name: str) -> str:
    """The macro that makes an option; one that is a word also names its type."""
    return f"RL_KEYWORD_ARG({name})" if kind == "Keyword" else f"TORCH_ARG({kind}, {name})"


def _number(kind: str) -> str | None:
    """What an optional holds."""
    return kind[len("std::optional<") : -1] if kind.startswith("std::optional<") else None


class CppModule:
    """A module with what it takes from its bases."""

    def __init__(self, m: Module) -> None:
        self.m, self.name, self.doc, self.made = m, m.name, m.doc, constructor_text(m)
        base = self.base = CppModule(m.base) if m.base else None
        own, said = [a for a in m.args if a.name not in NOT_IN_CPP], {a.name for a in m.args} | set(m.fixed)
        inherited = [a for a in base.settings if a.name not in said] if base and (not own or m.fixed) else []
        self.settings: list[Arg] = own + inherited
        self.rows = [self.option(a) for a in self.settings]
        self.held = [a.name for a in self.settings if a.type.base == "Tensor"]
        # What constructors of options take: what has no default, or else the first option.
        required = [row for row in self.rows if row[2] is None]
        self.given = required or [row for row in self.rows if row[0] != "Tensor"][:1]
        # A module is made of options, of what their constructor takes, or of a number for an optional number.
        self.start = "" if required else " = {}"
        self.values = commas(f"{_number(kind) or kind} {name}" for kind, name, _ in self.given)
        self.takes_values = bool(required) or any(set(":<") & set(kind) for kind, _, _ in self.given[:1])
        self.inputs = parts(self.lookup("inputs"))
        takes = commas(f"const Tensor& {name}" for name in self.inputs)
        indices = any(a.name == "return_indices" for a in m.args) or (base and len(base.forms) > 1)
        # Each form of a call, one that gives places too: the end of its name, and its head but for the name.
        self.forms = [("", f"Tensor {{}}({takes})"), ("_with_indices", f"std::tuple<Tensor, Tensor> {{}}({takes})")]
        self.forms = self.forms[: 2 if indices else 1]
        # There is no functional form where a word says what a function does, and none of methods.
        self.functional = "'" not in self.lookup("passes") and not self.lookup("method")
        self.extra = [self.option(a) for a in parse_signature(f"f({m.functional_only}) -> ()")[2]]

    def lookup(self, key: str) -> Any:
        """What the entry says, or else its bases say."""
        own = getattr(self.m, key)
        return self.base.lookup(key) if self.base and own in ("", {}, False, "input") else own

    def option(self, arg: Arg) -> Option:
        name, dims = SPELT.get(arg.name, arg.name), self.name[-2:-1]
        if not arg.type.is_list:
            kind = owning_type(arg.type).replace("std::string", "Keyword")
            return kind, name, default(arg) if arg.default is not None else None
        size = arg.type.size or (int(dims) if dims.isdigit() else 2)
        array = "ExpandingArrayWithOptionalElem" if arg.type.element_optional else "ExpandingArray"
        # A stride that is not given is the size of the kernel.
        return f"{array}<{size}>", name, "kernel_size" if arg.type.optional else arg.default

    def options(self, name: str, extra: list[Option]) -> list[str]:
        rows, given = self.rows + extra, self.given
        starts = {n: n for _, n, _ in given} | {n: d for _, n, d in rows if d in [g[1] for g in given]}
        taken = commas(f"{kind} {n}" + (f" = {d}" if d is not None else "") for kind, n, d in given)
        one = given[0] if len(given) == 1 and _number(given[0][0]) else None  # so that a number becomes options
        word = all(d is not None for _, _, d in given) and any(n == "reduction" for _, n, _ in rows)
        held = {n: f" = {d}" if d is not None and n not in starts else "" for _, n, d in rows}
        return lines(f"""
            struct RL_API {name} {{
              {only(rows)}{name}({taken}) : {commas(f"{n}_({value})" for n, value in starts.items())} {{}}
              {only(one)}{name}({self.values}) : {name}(std::optional({one and one[1]})) {{}}
              {only(word)}{name}(enumtype::Word reduction) : {name}() {{ reduction_ = reduction; }}
              {each(f"{held_option(kind, n)}{held[n]};" for kind, n, _ in rows)}
            }};
        """)

    def function_options(self) -> list[str]:
        """Those of the functional form: it may be told whether to train, or have some of its own."""
        trains = self.lookup("trains").lower()
        training = [("bool", "training", trains)] if trains else []
        if training or self.extra:
            return self.options(f"{self.name}FuncOptions", training or self.extra)
        return [f"using {self.name}FuncOptions = {self.name}Options;"] if self.rows else []

    def functions(self, options: str, space: str = "") -> list[str]:
        """The heads of the functional forms."""
        name, more = f"{space}{self.lookup('function')}", f", {options})" if self.rows else ")"
        heads = [head.format(name + suffix) for suffix, head in self.forms if self.functional]
        return [head[:-1] + more for head in heads]

    def call(self, suffix: str, tensors: str, training: str, extra: list[str]) -> str:
        """The call of a form: tensors of options are the module's, or else come from the options."""
        kinds, sets = {a.name: a.type.base for a in self.settings}, self.lookup("sets")
        fixed, passed = self.lookup("fixed") | {"training": training}, []
        for item in [name for names in passed_by(self.lookup("passes")) for name in names]:
            name = sets[item] if isinstance(sets.get(item), str) else item
            if name in fixed or name.startswith("'"):
                passed.append(str(fixed.get(name, name.replace("'", '"'))))
            elif name not in NOT_IN_CPP:
                held = kinds[name] == "Tensor" and tensors
                passed.append(f"{tensors}{name}" if held else f"options.{SPELT.get(name, name)}()")
        function = f"{self.lookup('function')}{suffix}"
        if self.lookup("method"):
            return f"return {self.inputs[0]}.{function}({commas(passed, extra)});"
        return f"return functional::detail::{function}({commas(self.inputs, passed, extra)});"

    def print_statement(self) -> str:
        """The statement that prints a module, with what stands between the parentheses; None is no parentheses."""
        owner = self
        while owner.base and owner.m.prints == "as Python" and owner.m.show is None:
            owner = owner.base
        said = (owner.m.show or "") if owner.m.prints == "as Python" else owner.m.prints
        out, first = f'stream << "torch::nn::{self.name}("', True
        known = [a.name for a in self.settings]
        for text, name, flagged, _ in shown(said or ""):
            value = f"options.{SPELT.get(name, name)}()"
            if flagged and name in known:
                out += f' << ({value} ? "{"" if first else ", "}{name}=true" : "")'
            elif name in known:
                out, first = f'{out} << "{text}" << functional::detail::to_printable({value})', False
        return f"{out} << ')';" if said is not None else f'stream << "torch::nn::{self.name}";'

    def header(self) -> list[str]:
        name, functional = self.name, self.functional
        heads = self.functions(f"const {name}FuncOptions& options{self.start}")
        made = lines(f"""
            // {self.doc}
            class RL_API {name}Impl : public Cloneable<{name}Impl> {{
             public:
              {only(self.rows)}explicit {name}Impl({name}Options options_{self.start});
              {only(self.takes_values)}{name}Impl({self.values});
              {each(f"{head.format(f'forward{suffix}')};" for suffix, head in self.forms)}
              void reset() override;
              void pretty_print(std::ostream& stream) const override;
              {only(self.rows)}{name}Options options;
              {each(f"Tensor {tensor};" for tensor in self.held)}
            }};
            RL_MODULE({name});
            {only(functional)}namespace functional {{
            {each(self.function_options() if functional else [])}
            {each(f"RL_API {head};" for head in heads)}
            {only(functional)}}}
        """)
        return ["", *(self.options(f"{name}Options", []) if self.rows else []), *[""] * bool(self.rows), *made]

    def calls(self) -> list[str]:
        """What programs of C++ write, for the documentation: the module, its call, the functional form."""
        made = f"nn::{self.name}({f'{self.name}Options' if self.rows else ''})"
        forward = [head.format(f"forward{suffix}") for suffix, head in self.forms]
        functions = self.functions(f"const {self.name}FuncOptions&", "nn::functional::")
        return [f"{line};" for line in [made, *forward, *functions]]

    def definitions(self) -> list[str]:
        name, options = f"{self.name}Impl", f"{self.name}Options"
        extra = [f"options.{n}()" for _, n, _ in self.extra]
        heads = self.functions(f"const {self.name}FuncOptions& options", "functional::")
        forward, functions = [], []
        for i, (suffix, head) in enumerate(self.forms):
            forward += block(
                head.format(f"{name}::forward{suffix}"), [self.call(suffix, "this->", "is_training()", [])]
            )
            if self.functional:
                functions += block(heads[i], [self.call(suffix, "", "options.training()", extra)])
        body = " ".join(f'{n} = register_buffer("{n}", options.{n}());' for n in self.held)
        init, names = f"options(std::move(options_)) {{ {name}::reset(); }}", commas(n for _, n, _ in self.given)
        made = lines(f"""
            template class Cloneable<{name}>;
            {only(self.rows)}{name}::{name}({options} options_) : {init}
            {only(self.takes_values)}{name}::{name}({self.values}) : {name}({options}({names})) {{}}
            void {name}::reset() {{ {body} }}
            {each(forward)}
            void {name}::pretty_print(std::ostream& stream) const {{ {self.print_statement()} }}
            {each(functions)}
        """)
        return ["", *made]


def classes() -> list[CppModule]:
    """The modules that programs see."""
    return [CppModule(m) for m in load() if not m.name.startswith("_")]


def generate() -> dict[str, str]:
    """Path below the output folder → contents."""
    public = classes()
    headers, definitions = (flat(f(c) for c in public) for f in (CppModule.header, CppModule.definitions))
    declared = ["<rushlight/nn/module.h>", "<rushlight/nn/options.h>"]
    used = ["<ostream>", "", "<rushlight/nn/stateless.h>", "", "nn/detail.h"]
    return python_files() | {
        "include/rushlight/nn/stateless.h": header(declared, "torch::nn", headers),
        "src/nn_stateless.cpp": source(used, "torch::nn", definitions),
    }
