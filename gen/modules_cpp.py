"""The C++ of stateless modules: options, module and functional form of each.

Calls go to nn::functional::detail (src/nn/detail.h), whose parameters are a call's inputs and what `passes` lists.
"""

from __future__ import annotations

import re
from typing import Any

from gen import modules
from gen.modules import Module
from gen.schema import Arg, default, owned, parse_signature, parts
from gen.text import block, commas, each, flat, header, lines, only, source

NOT_IN_CPP = ("size_average", "reduce", "return_indices")
SPELT = {"lambd": "lambda"}  # a word of Python

Option = tuple[str, str, str | None]  # type, name, default


def _number(kind: str) -> str | None:
    """What an optional holds."""
    return kind[len("std::optional<") : -1] if kind.startswith("std::optional<") else None


class CppModule:
    """A module with what it takes from its bases."""

    def __init__(self, m: Module) -> None:
        self.m, self.name, self.doc, self.made = m, m.name, m.doc, modules.made(m)
        base = self.base = CppModule(m.base) if m.base else None
        own, said = [a for a in m.args if a.name not in NOT_IN_CPP], {a.name for a in m.args} | set(m.fixed)
        inherited = [a for a in base.settings if a.name not in said] if base and (not own or m.fixed) else []
        self.settings: list[Arg] = own + inherited
        self.rows = [self.option(a) for a in self.settings]
        # What constructors of options take: what has no default, or else the first option.
        required = [row for row in self.rows if row[2] is None]
        self.given = required or [row for row in self.rows if row[0] != "Tensor"][:1]
        # A module is made of options, of what their constructor takes, or of a number for an optional number.
        self.start = "" if required else " = {}"
        self.values = commas(f"{_number(kind) or kind} {name}" for kind, name, _ in self.given)
        self.takes_values = bool(required) or any(set(":<") & set(kind) for kind, _, _ in self.given[:1])
        self.inputs = parts(self.inherited("inputs"))
        takes = commas(f"const Tensor& {name}" for name in self.inputs)
        indices = any(a.name == "return_indices" for a in m.args) or (base and len(base.forms) > 1)
        # Each form of a call, one that gives places too: the end of its name, and its head but for the name.
        self.forms = [("", f"Tensor {{}}({takes})"), ("_with_indices", f"std::tuple<Tensor, Tensor> {{}}({takes})")]
        self.forms = self.forms[: 2 if indices else 1]
        # There is no functional form where a word says what a function does, and none of methods.
        self.functional = "'" not in self.inherited("passes") and not self.inherited("method")
        self.extra = [self.option(a) for a in parse_signature(f"f({m.functional_only}) -> ()")[2]]

    def inherited(self, key: str) -> Any:
        """What the entry says, or else its bases say."""
        own = getattr(self.m, key)
        return self.base.inherited(key) if self.base and own in ("", {}, False, "input") else own

    def option(self, arg: Arg) -> Option:
        name, digits = SPELT.get(arg.name, arg.name), re.search(r"(\d)d$", self.name)
        if not arg.type.is_list:
            kind = owned(arg.type).replace("std::string", "Keyword")
            return kind, name, default(arg) if arg.default is not None else None
        size = arg.type.size or (int(digits[1]) if digits else 2)
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
              {each(f"TORCH_ARG({kind}, {n}){held[n]};" for kind, n, _ in rows)}
            }};
        """)

    def function_options(self) -> list[str]:
        """Those of the functional form: it may be told whether to train, or have some of its own."""
        trains = self.inherited("trains").lower()
        training = [("bool", "training", trains)] if trains else []
        if training or self.extra:
            return self.options(f"{self.name}FuncOptions", training or self.extra)
        return [f"using {self.name}FuncOptions = {self.name}Options;"] if self.rows else []

    def functions(self, options: str, space: str = "") -> list[str]:
        """The heads of the functional forms."""
        name, more = f"{space}{self.inherited('function')}", f", {options})" if self.rows else ")"
        heads = [head.format(name + suffix) for suffix, head in self.forms if self.functional]
        return [head[:-1] + more for head in heads]

    def call(self, suffix: str, tensors: str, training: str, extra: list[str]) -> str:
        """The call of a form: tensors of options are the module's, or else come from the options."""
        kinds, sets = {a.name: a.type.base for a in self.settings}, self.inherited("sets")
        fixed, passed = self.inherited("fixed") | {"training": training}, []
        for item in [name for names in modules.passed(self.inherited("passes")) for name in names]:
            name = sets[item] if isinstance(sets.get(item), str) else item
            if name in fixed or name.startswith("'"):
                passed.append(str(fixed.get(name, name.replace("'", '"'))))
            elif name not in NOT_IN_CPP:
                held = kinds[name] == "Tensor" and tensors
                passed.append(f"{tensors}{name}" if held else f"options.{SPELT.get(name, name)}()")
        function = f"{self.inherited('function')}{suffix}"
        if self.inherited("method"):
            return f"return {self.inputs[0]}.{function}({commas(passed, extra)});"
        return f"return functional::detail::{function}({commas(self.inputs, passed, extra)});"

    def printed(self) -> str | None:
        """What stands between the parentheses; None is no parentheses either."""
        if self.m.prints != "as Python" or self.m.show is not None:
            return self.m.show if self.m.prints == "as Python" else self.m.prints
        return self.base.printed() if self.base else ""

    def shown(self) -> str:
        out, first, said = f'stream << "torch::nn::{self.name}("', True, self.printed()
        known = [a.name for a in self.settings]
        for text, flagged, name in re.findall(r"([^{]*)\{(\??)(\w+)(?:!r)?\}", said or ""):
            value = f"options.{SPELT.get(name, name)}()"
            if flagged and name in known:
                out += f' << ({value} ? "{"" if first else ", "}{name}=true" : "")'
            elif name in known:
                out, first = f'{out} << "{text}" << functional::detail::shown({value})', False
        return f"{out} << ')';" if said is not None else f'stream << "torch::nn::{self.name}";'

    def header(self) -> list[str]:
        name, functional = self.name, self.functional
        held = [a.name for a in self.settings if a.type.base == "Tensor"]
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
              {each(f"Tensor {tensor};" for tensor in held)}
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
        functions = [
            block(head, [self.call(self.forms[i][0], "", "options.training()", extra)]) for i, head in enumerate(heads)
        ]
        forward = [
            block(head.format(f"{name}::forward{suffix}"), [self.call(suffix, "this->", "is_training()", [])])
            for suffix, head in self.forms
        ]
        held = [a.name for a in self.settings if a.type.base == "Tensor"]
        body = " ".join(f'{n} = register_buffer("{n}", options.{n}());' for n in held)
        init, names = f"options(std::move(options_)) {{ {name}::reset(); }}", commas(n for _, n, _ in self.given)
        made = lines(f"""
            template class Cloneable<{name}>;
            {only(self.rows)}{name}::{name}({options} options_) : {init}
            {only(self.takes_values)}{name}::{name}({self.values}) : {name}({options}({names})) {{}}
            void {name}::reset() {{ {body} }}
            {each(flat(forward))}
            void {name}::pretty_print(std::ostream& stream) const {{ {self.shown()} }}
            {each(flat(functions))}
        """)
        return ["", *made]


def classes() -> list[CppModule]:
    """The modules that programs see."""
    return [CppModule(m) for m in modules.load() if not m.name.startswith("_")]


def generate() -> dict[str, str]:
    """Path below the output folder → contents."""
    public = classes()
    headers, definitions = (flat(f(c) for c in public) for f in (CppModule.header, CppModule.definitions))
    declared = ["<rushlight/nn/module.h>", "<rushlight/nn/options.h>"]
    used = ["<ostream>", "", "<rushlight/nn/stateless.h>", "", "nn/detail.h"]
    return {
        "include/rushlight/nn/stateless.h": header(declared, "torch::nn", headers),
        "src/nn_stateless.cpp": source(used, "torch::nn", definitions),
    }
