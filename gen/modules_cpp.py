"""The C++ of stateless modules: options, module and functional form of each.

Calls go to nn::functional::detail (src/nn/detail.h), whose parameters are a call's inputs and what `passes` lists.
"""

from __future__ import annotations

import re
from typing import Any

from gen import modules
from gen.modules import Module
from gen.schema import Arg, default, owned, parse_signature, parts
from gen.text import commas, each, header, lines, only, source

NOT_IN_CPP = ("size_average", "reduce", "return_indices")
SPELT = {"lambd": "lambda"}  # a word of Python

Option = tuple[str, str, str | None]  # type, name, default


class CppModule:
    """A module with what it takes from its bases."""

    def __init__(self, m: Module) -> None:
        self.m, self.name, self.doc = m, m.name, m.doc
        self.base = CppModule(m.base) if m.base else None
        self.made = modules.made(m)
        names, bases = {a.name for a in m.args} | set(m.fixed), self.base.settings if self.base else []
        self.own = [a for a in m.args if a.name not in NOT_IN_CPP]
        inherits = not self.own or m.fixed
        self.settings: list[Arg] = self.own + [a for a in bases if inherits and a.name not in names]
        self.rows: list[Option] = [self.option(a) for a in self.settings]
        # What constructors of options take: what has no default, or else the first option.
        required = [row for row in self.rows if row[2] is None]
        self.given = required or [row for row in self.rows if row[0] != "Tensor"][:1]
        self.held = [a.name for a in self.settings if a.type.base == "Tensor"]
        self.inputs = parts(self.inherited("inputs"))
        self.takes = commas(f"const Tensor& {name}" for name in self.inputs)
        self.trains = self.inherited("trains")
        # There is no functional form of its own where a word says what a function does, and none of methods.
        self.functional = "'" not in self.inherited("passes") and not self.inherited("method")
        indices = any(a.name == "return_indices" for a in m.args) or (
            self.base is not None and len(self.base.forms) > 1
        )
        # Result and end of the name of each form of a call: of one that gives places, too.
        self.forms = [("Tensor", ""), ("std::tuple<Tensor, Tensor>", "_with_indices")][: 1 + indices]
        self.extra = [self.option(a) for a in parse_signature(f"f({m.functional_only}) -> ()")[2]]

    def inherited(self, key: str) -> Any:
        """What the entry says, or else its bases say."""
        own = getattr(self.m, key)
        return self.base.inherited(key) if self.base and own in ("", {}, False, "input") else own

    def option(self, arg: Arg) -> Option:
        name = SPELT.get(arg.name, arg.name)
        if not arg.type.is_list:
            kind = owned(arg.type).replace("std::string", "Keyword")
            return kind, name, default(arg) if arg.default is not None else None
        digits = re.search(r"(\d)d$", self.name)
        size = arg.type.size or (int(digits[1]) if digits else 2)
        array = "ExpandingArrayWithOptionalElem" if arg.type.element_optional else "ExpandingArray"
        return (
            f"{array}<{size}>",
            name,
            "kernel_size" if arg.type.optional else arg.default,
        )  # a stride that is not given

    def values(self) -> str:
        """What a constructor takes in the place of options: numbers for optional numbers."""
        plain = [(re.sub(r"^std::optional<(.*)>$", r"\1", kind), name) for kind, name, _ in self.given]
        return commas(f"{kind} {name}" for kind, name in plain)

    def is_made_of_values(self) -> bool:
        kind = self.given[0][0]
        return ":" in kind or "<" in kind or any(row[2] is None for row in self.rows)

    def options(self, name: str, extra: list[Option]) -> list[str]:
        rows, given = self.rows + extra, self.given
        starts = {n: n for _, n, _ in given} | {n: d for _, n, d in rows if d in [g[1] for g in given]}
        taken = commas(f"{kind} {n}" + (f" = {d}" if d is not None else "") for kind, n, d in given)
        one = len(given) == 1 and given[0][0].startswith("std::optional")  # so that a number becomes options
        word = all(d is not None for _, _, d in given) and any(n == "reduction" for _, n, _ in rows)
        held = {n: f" = {d}" if d is not None and n not in starts else "" for _, n, d in rows}
        return lines(f"""
            struct RL_API {name} {{
              {only(rows)}{name}({taken}) : {commas(f"{n}_({value})" for n, value in starts.items())} {{}}
              {only(one)}{name}({self.values()}) : {name}(std::optional({given[0][1] if given else ""})) {{}}
              {only(word)}{name}(enumtype::Word reduction) : {name}() {{ reduction_ = reduction; }}
              {each(f"TORCH_ARG({kind}, {n}){held[n]};" for kind, n, _ in rows)}
            }};
        """)

    def function_options(self) -> list[str]:
        """Those of the functional form: it may be told whether to train, or have some of its own."""
        training = [("bool", "training", self.trains.lower())] if self.trains else []
        if training or self.extra:
            return self.options(f"{self.name}FuncOptions", training or self.extra)
        return [f"using {self.name}FuncOptions = {self.name}Options;"] if self.rows else []

    def call(self, suffix: str, tensors: str, training: str, extra: list[str]) -> str:
        """The call of a form: tensors of options are the module's, or else come from the options."""
        by_place, by_name = modules.passed(self.inherited("passes"))
        bases, sets, fixed = (
            {a.name: a.type.base for a in self.settings},
            self.inherited("sets"),
            self.inherited("fixed"),
        )
        passed = []
        for item in by_place + by_name:
            name = sets[item] if isinstance(sets.get(item), str) else item
            if name.startswith("'"):
                passed.append(name.replace("'", '"'))
            elif name in fixed or name == "training":
                passed.append(training if name == "training" else str(fixed[name]))
            elif name not in NOT_IN_CPP:
                held = bases[name] == "Tensor" and tensors
                passed.append(f"{tensors}{name}" if held else f"options.{SPELT.get(name, name)}()")
        function = self.inherited("function") + suffix
        if self.inherited("method"):
            return f"{self.inputs[0]}.{function}({commas(passed, extra)})"
        return f"functional::detail::{function}({commas(self.inputs, passed, extra)})"

    def printed(self) -> str | None:
        """What stands between the parentheses; None is no parentheses either."""
        if self.m.prints != "as Python" or self.m.show is not None:
            return self.m.show if self.m.prints == "as Python" else self.m.prints
        return self.base.printed() if self.base else ""

    def shown(self) -> str:
        out, first, said = f'stream << "torch::nn::{self.name}("', True, self.printed()
        if said is None:
            return f'stream << "torch::nn::{self.name}";'
        for text, flagged, name in re.findall(r"([^{]*)\{(\??)(\w+)(?:!r)?\}", said):
            value = f"options.{SPELT.get(name, name)}()"
            if name in NOT_IN_CPP or name not in [a.name for a in self.settings]:
                continue
            if flagged:
                out += f' << ({value} ? "{"" if first else ", "}{name}=true" : "")'
                continue
            out += f' << "{text}" << functional::detail::shown({value})'
            first = False
        return out + " << ')';"

    def header(self) -> list[str]:
        name, functional, required = self.name, self.functional, any(row[2] is None for row in self.rows)
        start = "" if required else " = {}"
        tail = f"const {name}FuncOptions& options{start}" if self.rows else ""
        function = self.inherited("function")
        return (
            ["", *self.options(f"{name}Options", []), ""] * bool(self.rows)
            + [""] * (not self.rows)
            + lines(f"""
            // {self.doc}
            class RL_API {name}Impl : public Cloneable<{name}Impl> {{
             public:
              {only(self.rows)}explicit {name}Impl({name}Options options_{start});
              {only(self.rows and self.is_made_of_values())}{name}Impl({self.values()});
              {each(f"{result} forward{suffix}({self.takes});" for result, suffix in self.forms)}
              void reset() override;
              void pretty_print(std::ostream& stream) const override;
              {only(self.rows)}{name}Options options;
              {each(f"Tensor {held};" for held in self.held)}
            }};
            RL_MODULE({name});
            {only(functional)}namespace functional {{
            {each(self.function_options() if functional else [])}
            {each(f"RL_API {r} {function}{end}({commas(self.takes, tail)});" for r, end in self.forms if functional)}
            {only(functional)}}}
        """)
        )

    def calls(self) -> list[str]:
        """What programs of C++ write, for the documentation: the module, its call, the functional form."""
        tail = f"const {self.name}FuncOptions&" if self.rows else ""
        found = [f"nn::{self.name}({f'{self.name}Options' if self.rows else ''});"]
        found += [f"{result} forward{suffix}({self.takes});" for result, suffix in self.forms]
        function = f"nn::functional::{self.inherited('function')}"
        forms = self.forms if self.functional else []
        return [*found, *(f"{r} {function}{suffix}({commas(self.takes, tail)});" for r, suffix in forms)]

    def definitions(self) -> list[str]:
        name, found = f"{self.name}Impl", []
        tail = f"const {self.name}FuncOptions& options" if self.rows else ""
        extra = [f"options.{n}()" for _, n, _ in self.extra]
        for result, suffix in self.forms:
            head = f"{result} {name}::forward{suffix}({self.takes}) {{"
            found += [head, f"  return {self.call(suffix, 'this->', 'is_training()', [])};", "}"]
        found.append(f"void {name}::pretty_print(std::ostream& stream) const {{ {self.shown()} }}")
        for result, suffix in self.forms if self.functional else []:
            head = f"{result} functional::{self.inherited('function')}{suffix}({commas(self.takes, tail)}) {{"
            found += [head, f"  return {self.call(suffix, '', 'options.training()', extra)};", "}"]
        made = f"{name}({self.name}Options({commas(n for _, n, _ in self.given)}))"
        body = " ".join(f'{n} = register_buffer("{n}", options.{n}());' for n in self.held)
        init = f"options(std::move(options_)) {{ {name}::reset(); }}"
        return [
            "",
            *lines(f"""
            template class Cloneable<{name}>;
            {only(self.rows)}{name}::{name}({self.name}Options options_) : {init}
            {only(self.rows and self.is_made_of_values())}{name}::{name}({self.values()}) : {made} {{}}
            void {name}::reset() {{ {body} }}
            {each(found)}
        """),
        ]


def classes() -> list[CppModule]:
    """The modules that programs see."""
    return [CppModule(m) for m in modules.load() if not m.name.startswith("_")]


def generate() -> dict[str, str]:
    """Path below the output folder → contents."""
    public = classes()
    return {
        "include/rushlight/nn/stateless.h": header(
            ["<rushlight/nn/module.h>", "<rushlight/nn/options.h>"],
            "rushlight::nn",
            [line for c in public for line in c.header()],
        ),
        "src/nn_stateless.cpp": source(
            ["<ostream>", "", "<rushlight/nn/stateless.h>", "", "nn/detail.h"],
            "rushlight::nn",
            [line for c in public for line in c.definitions()],
        ),
    }
