"""Expands ops/modules.py into C++: options, module and functional form of each stateless module.

Calls go to nn::functional::detail (src/nn/detail.h), whose parameters are a call's inputs and what `passes` lists.
"""

from __future__ import annotations

import re
from typing import Any

from gen import table
from gen.modules import Class
from gen.table import Arg
from gen.text import commas, header, source

NOT_IN_CPP = ("size_average", "reduce", "return_indices")
SPELT = {"lambd": "lambda"}  # a word of Python
BOTH = "std::tuple<Tensor, Tensor>"
SCALARS = {
    "float": "double",
    "bool": "bool",
    "int": "int64_t",
    "str": "Keyword",
    "Tensor": "Tensor",
    "ScalarType": "ScalarType",
}


class CppClass(Class):
    """An entry with what it takes from its bases."""

    base: CppClass | None

    def settings(self) -> list[Arg]:
        fixed = self.entry.get("fixed", {})
        own = [a for a in self.args if a.name not in NOT_IN_CPP]
        names = [a.name for a in own]
        base = self.base.settings() if self.base else []
        return own if own and not fixed else own + [a for a in base if a.name not in (*names, *fixed)]

    def lookup(self, key: str, default: Any = None) -> Any:
        if self.entry.get(key):
            return self.entry[key]
        return self.base.lookup(key, default) if self.base else default

    def kind(self, arg: Arg) -> str:
        t = arg.type
        if not t.is_list:
            wrapped = t.optional and t.base != "Tensor"
            return f"std::optional<{SCALARS[t.base]}>" if wrapped else SCALARS[t.base]
        digits = re.search(r"(\d)d$", self.name)
        size = t.size or (int(digits[1]) if digits else 2)
        return f"ExpandingArrayWithOptionalElem<{size}>" if t.element_optional else f"ExpandingArray<{size}>"

    def default(self, arg: Arg) -> str | None:
        if arg.type.is_list and arg.type.optional:  # a stride that is not given
            return "kernel_size"
        text = arg.default
        if text is None:
            return None
        return {"None": "{}", "True": "true", "False": "false"}.get(text, text.replace("'", '"'))

    def rows(self) -> list[tuple[str, str, str | None]]:
        return [(self.kind(a), SPELT.get(a.name, a.name), self.default(a)) for a in self.settings()]

    def constructor_rows(self) -> list[tuple[str, str, str | None]]:
        """What constructors of options take: what has no default, or else the first option."""
        rows = self.rows()
        return [r for r in rows if r[2] is None] or [r for r in rows if r[0] != "Tensor"][:1]

    def options(self, name: str, extra: list[tuple[str, str, str]]) -> list[str]:
        rows, given = self.rows() + extra, self.constructor_rows()
        arguments = commas([f"{kind} {n}" + (f" = {d}" if d is not None else "") for kind, n, d in given])
        starts = [f"{n}_({n})" for _, n, _ in given]
        starts += [f"{n}_({d})" for _, n, d in rows if d in [g[1] for g in given]]
        lines = ["", f"struct RL_API {name} {{"]
        if rows:
            lines.append(f"  {name}({arguments}) : {commas(starts)} {{}}")
            if len(given) == 1 and self.number_in(given[0][0]):  # so that a number becomes options
                lines.append(f"  {name}({self.value_parameters()}) : {name}(std::optional({given[0][1]})) {{}}")
            if all(d is not None for _, _, d in given) and any(n == "reduction" for _, n, _ in rows):
                lines.append(f"  {name}(enumtype::Word reduction) : {name}() {{ reduction_ = reduction; }}")
        for kind, n, d in rows:
            held = d is not None and not any(s.startswith(n + "_(") for s in starts)
            lines.append(f"  TORCH_ARG({kind}, {n}){f' = {d}' if held else ''};")
        return [*lines, "};"]

    def forward_arguments(self, tensors: str, options: str, training: str) -> list[str]:
        by_place, _, by_name = self.lookup("passes", "").partition("*")
        types = {a.name: a.type.base for a in self.settings()}
        sets = self.lookup("sets", {})
        out = []
        for item in re.split(r",\s*", f"{by_place.strip(' ,')}, {by_name.strip(' ,')}".strip(" ,")):
            name = sets[item] if isinstance(sets.get(item), str) else item
            if name.startswith("'"):
                out.append(name.replace("'", '"'))
            elif name == "training":
                out.append(training)
            elif name in self.lookup("fixed", {}):
                out.append(str(self.lookup("fixed")[name]))
            elif name and name not in NOT_IN_CPP:
                held = types[name] == "Tensor" and tensors
                out.append(tensors + name if held else f"{options}.{SPELT.get(name, name)}()")
        return out

    def call(self, inputs: list[str], passed: list[str], suffix: str = "") -> str:
        function = self.lookup("function") + suffix
        if self.lookup("method"):
            return f"{inputs[0]}.{function}({commas(passed)})"
        return f"functional::detail::{function}({commas(inputs, passed)})"

    def gives_indices(self) -> bool:
        """Whether there is a form that gives places, too."""
        own = "return_indices" in [a.name for a in self.args]
        return own or (self.base is not None and self.base.gives_indices())

    def forms(self) -> list[tuple[str, str]]:
        """Result and end of the name of each form of a call."""
        return [("Tensor", "")] + [(BOTH, "_with_indices")] * self.gives_indices()

    def has_words(self) -> bool:
        return "'" in self.lookup("passes", "") or bool(self.lookup("method"))

    def repr_text(self) -> str | None:
        """What stands between the parentheses."""
        for key in ("prints", "show"):
            if key in self.entry:
                return self.entry[key]
        return self.base.repr_text() if self.base else ""

    def print_statement(self) -> str:
        out = f'stream << "torch::nn::{self.name}("'
        first = True
        said = self.repr_text()
        if said is None:
            return f'stream << "torch::nn::{self.name}";'
        for text, flag, name in re.findall(r"([^{]*)\{(\??)(\w+)(?:!r)?\}", said):
            value = f"options.{SPELT.get(name, name)}()"
            if name in NOT_IN_CPP or name not in [a.name for a in self.settings()]:
                continue
            if flag:
                out += f' << ({value} ? "{"" if first else ", "}{name}=true" : "")'
                continue
            out += f' << "{text}" << functional::detail::to_printable({value})'
            first = False
        return out + " << ')';"

    def is_made_of_values(self) -> bool:
        """Whether there is a constructor from what the options' constructor takes."""
        kind = self.constructor_rows()[0][0]
        return ":" in kind or "<" in kind or any(self.default(a) is None for a in self.settings())

    def number_in(self, kind: str) -> str | None:
        """What an optional holds."""
        found = re.fullmatch(r"std::optional<(.*)>", kind)
        return found[1] if found else None

    def value_parameters(self) -> str:
        return commas([f"{self.number_in(kind) or kind} {n}" for kind, n, _ in self.constructor_rows()])

    def func_extra(self) -> list[tuple[str, str, str]]:
        """Options that the functional form alone has."""
        said = self.entry.get("functional_only", "")
        args = table.parse_signature(f"f({said}) -> ()")[2] if said else []
        return [(self.kind(a), a.name, self.default(a) or "{}") for a in args]

    def module(self) -> list[str]:
        takes = [f"const Tensor& {n}" for n in self.lookup("inputs", "input").split(", ")]
        options = f"{self.name}Options"
        lines = self.options(options, []) if self.settings() else []
        start = "" if any(self.default(a) is None for a in self.settings()) else " = {}"
        lines += ["", f"// {self.entry['doc']}", f"class RL_API {self.name}Impl : public Cloneable<{self.name}Impl> {{"]
        lines += [" public:"]
        if self.settings():
            lines += [f"  explicit {self.name}Impl({options} options_{start});"]
            if self.is_made_of_values():
                lines += [f"  {self.name}Impl({self.value_parameters()});"]
        lines += [f"  {result} forward{suffix}({commas(takes)});" for result, suffix in self.forms()]
        lines += ["  void reset() override;"]
        lines += ["  void pretty_print(std::ostream& stream) const override;"]
        lines += [f"  {options} options;"] if self.settings() else []
        lines += [f"  Tensor {a.name};" for a in self.settings() if a.type.base == "Tensor"]
        lines += ["};", f"RL_MODULE({self.name});"]
        if not self.has_words():
            lines += ["namespace functional {"]
            func = f"{self.name}FuncOptions"
            if self.lookup("trains") is not None:
                trains = "true" if self.lookup("trains") == "True" else "false"
                lines += self.options(func, [("bool", "training", trains)])[1:]
            elif self.func_extra():
                lines += self.options(func, self.func_extra())[1:]
            elif self.settings():
                lines += [f"using {func} = {options};"]
            tail = [f"const {func}& options{start}"] if self.settings() else []
            for result, suffix in self.forms():
                name = self.lookup("function") + suffix
                lines += [f"RL_API {result} {name}({commas(takes, tail)});"]
            lines += ["}"]
        return lines

    def calls(self) -> list[str]:
        """What programs of C++ write, for the documentation: the module, its call, the functional form."""
        takes = [f"const Tensor& {n}" for n in self.lookup("inputs", "input").split(", ")]
        options = f"{self.name}Options" if self.settings() else ""
        lines = [f"nn::{self.name}({options})"]
        lines += [f"{result} forward{suffix}({commas(takes)})" for result, suffix in self.forms()]
        if not self.has_words():
            tail = [f"const {self.name}FuncOptions&"] if options else []
            for result, suffix in self.forms():
                name = self.lookup("function") + suffix
                lines.append(f"{result} nn::functional::{name}({commas(takes, tail)})")
        return [line + ";" for line in lines]

    def definitions(self) -> list[str]:
        inputs = self.lookup("inputs", "input").split(", ")
        takes = [f"const Tensor& {n}" for n in inputs]
        name = f"{self.name}Impl"
        lines = ["", f"template class Cloneable<{name}>;"]
        if self.settings():
            init = "options(std::move(options_))"
            lines += [f"{name}::{name}({self.name}Options options_) : {init} {{ {name}::reset(); }}"]
            if self.is_made_of_values():
                values = commas([n for _, n, _ in self.constructor_rows()])
                lines += [f"{name}::{name}({self.value_parameters()}) : {name}({self.name}Options({values})) {{}}"]
        held = [a.name for a in self.settings() if a.type.base == "Tensor"]
        body = " ".join(f'{n} = register_buffer("{n}", options.{n}());' for n in held)
        lines += [f"void {name}::reset() {{ {body} }}"]
        for result, suffix in self.forms():
            passed = self.forward_arguments("this->", "options", "is_training()")
            lines += [f"{result} {name}::forward{suffix}({commas(takes)}) {{"]
            lines += [f"  return {self.call(inputs, passed, suffix)};", "}"]
        lines += [f"void {name}::pretty_print(std::ostream& stream) const {{ {self.print_statement()} }}"]
        if not self.has_words():
            tail = [f"const {self.name}FuncOptions& options"] if self.settings() else []
            for result, suffix in self.forms():
                function = self.lookup("function") + suffix
                passed = self.forward_arguments("", "options", "options.training()")
                passed += [f"options.{name}()" for _, name, _ in self.func_extra()]
                lines += [f"{result} functional::{function}({commas(takes, tail)}) {{"]
                lines += [f"  return {self.call(inputs, passed, suffix)};", "}"]
        return lines


def classes() -> list[CppClass]:
    """The modules that programs see."""
    from ops.modules import MODULES

    known: dict[str, Class] = {}
    every = [CppClass(entry, known) for entry in MODULES]
    return [c for c in every if not c.name.startswith("_")]


def generate() -> dict[str, str]:
    """Path below the output folder → contents."""
    public = classes()
    return {
        "include/rushlight/nn/stateless.h": header(
            ["<rushlight/nn/module.h>", "<rushlight/nn/options.h>"],
            "rushlight::nn",
            [line for c in public for line in c.module()],
        ),
        "src/nn_stateless.cpp": source(
            ["<ostream>", "", "<rushlight/nn/stateless.h>", "", "nn/detail.h"],
            "rushlight::nn",
            [line for c in public for line in c.definitions()],
        ),
    }
