"""The reference: a page of Markdown for each public function, class and module, from docstrings."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

from docs import docstrings

HEAD = """# Reference

Every public function and class, by the module in which one finds it.

In examples `torch` is this package: `import rushlight as torch`.
"""
TITLES = {
    "What programs use": lambda path: path in docstrings.KNOWN,
    "More": lambda path: path not in docstrings.KNOWN,
}


def escaped(text: str, link: Callable[[str], str] | None = None) -> str:
    """Prose of a docstring as Markdown: what stands in backticks is code, all else is as it is.

    A name in backticks that `link` knows leads to its page.
    """
    parts = re.split(r"(`[^`]+`)", text)
    for k, part in enumerate(parts):
        if k % 2 == 0:
            parts[k] = re.sub(r"([*_<\\$|\[\]])", r"\\\1", part)
        elif link and (target := link(part.strip("`"))):
            parts[k] = f"[{part}]({target})"
    return "".join(parts)


def first_sentence(thing: Any) -> str:
    said = docstrings.parse(thing.__doc__ or "")
    text = " ".join(said.text[0].split()) if said.text else ""
    return escaped(re.split(r"(?<=[.])\s", text)[0].rstrip(":"))


# Modules that have the same things in other forms: as layers, as functions, as transforms.
ALIKE = {"", "nn", "nn.functional", "linalg", "special", "vision.ops"}
ALIKE |= {f"vision.transforms{end}" for end in ("", ".functional", ".v2", ".v2.functional")}


class Names:
    """The public names, and what leads from one to others."""

    def __init__(self) -> None:
        self.found = docstrings.public_names()
        self.space: dict[str, str] = {}  # the module that a name is listed in first
        for path in docstrings.modules():
            for name, _ in docstrings.members(importlib.import_module(path)):
                self.space.setdefault(f"{path}.{name}".removeprefix("rushlight."), path)
        homes = {self.space[name] for name in self.found}
        self.modules = [path for path in docstrings.modules() if path in homes]
        self.known = {id(thing): name for name, thing in self.found.items()}
        self.by_stem: dict[str, list[str]] = {}
        for name in self.found:
            self.by_stem.setdefault(_stem(name), []).append(name)

    def page_of(self, thing: Any) -> str:
        """The file of a function or class, or nothing."""
        name = self.known.get(id(thing))
        return f"{name}.md" if name else ""

    def linker(self, name: str) -> Callable[[str], str]:
        """What finds the page of a name that the page `name` mentions, first one beside it."""
        space = name.rpartition(".")[0]

        def link(text: str) -> str:
            path = re.sub(r"^(torch|rushlight)\.|\(\)$", "", text)
            beside = f"{space}.{path}".lstrip(".")
            found = next((p for p in (beside, path) if p in self.found and p != name), "")
            return f"{found}.md" if found else ""

        return link

    def related(self, name: str) -> list[str]:
        """Names that say the same elsewhere: a layer's function, for other dimensions, lazily."""
        space, _, short = name.rpartition(".")
        if space not in ALIKE:
            return []
        others = [
            n for n in self.by_stem[_stem(name)] if n != name and n.rpartition(".")[0] in ALIKE
        ]
        method = short if short == short.lower() else ""
        is_method = bool(method) and callable(getattr(self.found["Tensor"], method, None))
        return others + [f"Tensor.{method}"] * is_method

    def target(self, name: str) -> str:
        """The file of a name; methods of tensors are on one page."""
        return "Tensor.md#methods" if name.startswith("Tensor.") else f"{name}.md"


def _stem(name: str) -> str:
    """What names of one thing have in common: `nn.LazyConv2d` and `nn.functional.conv1d`."""
    short = name.rpartition(".")[2]
    plain = re.sub(r"(?<=[a-z])[123]d(?=_|$)|^Lazy(?=[A-Z])", "", short)
    return plain.replace("_", "").lower()


def call_of(thing: Any) -> str:
    """The arguments of a call as one writes them."""
    found = docstrings.signature(thing)
    if found is None:
        return "()"
    plain = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    return re.sub(r"<[\w.]*\.?(\w+)(?:\s[^>]*)?>", r"\1", str(inspect.Signature(plain)))


def type_and_default(parameter: inspect.Parameter) -> tuple[str, str]:
    """Both as texts; empty where a signature does not say."""
    note, given = parameter.annotation, parameter.default
    plain = isinstance(note, type) and not hasattr(note, "__args__")
    kind = note.__name__ if plain else str(note)
    kind = re.sub(r"\b(?:rushlight|torch|_C|typing|collections|abc|nn|types)\.", "", kind).strip(
        "'"
    )
    default = "" if given is parameter.empty else repr(given)
    return "" if note is parameter.empty else kind, default


def argument_lines(thing: Any, said: docstrings.Docstring, link: Any = None) -> list[str]:
    """A line for each argument, in the order of the call: its type, its default, what it means."""
    found = docstrings.signature(thing)
    known = {p.name: type_and_default(p) for p in found.parameters.values()} if found else {}
    known |= docstrings.types_of(said)
    lines = []
    places = {name: place for place, name in enumerate(known)}
    args = docstrings.described(thing)
    for name, text in sorted(args.items(), key=lambda pair: places.get(pair[0], len(places))):
        kind, default = known.get(name, ("", ""))
        facts = [f"`{kind}`"] * bool(kind) + [f"`{default}` by default"] * bool(default)
        shown = f" ({', '.join(facts)})" if facts else ""
        lines.append(f"- **{escaped(name)}**{shown}: {escaped(text, link)}")
    return lines


def body(thing: Any, link: Callable[[str], str] | None = None) -> list[str]:
    """What a docstring says, as Markdown."""
    said = docstrings.parse(thing.__doc__ or "")
    lines = []
    if said.calls:
        lines += ["```python", *said.calls, "```", ""]
    for paragraph in said.text:
        if ">>> " in paragraph:
            lines += ["```pycon", inspect.cleandoc(paragraph), "```", ""]
        else:  # facts of ops stand a line each
            ends = re.sub(r"\.\n(?=[A-Z][\w ]*: )", ".\n\n", paragraph)
            lines += [escaped(re.sub(r"(?m)^ +", "", ends), link), ""]
    if docstrings.described(thing):
        lines += ["**Arguments**", "", *argument_lines(thing, said, link), ""]
    if said.returns:
        lines += [f"**Returns** {escaped(said.returns, link)}", ""]
    if said.raises:
        lines += [
            "**Errors**",
            "",
            *(
                f"- {escaped(line, link)}" if line[:1] != " " else escaped(line.strip(), link)
                for line in said.raises
            ),
            "",
        ]
    if said.example:
        lines += ["**Example**", "", "```pycon", said.example, "```", ""]
    return lines


def own(cls: type, names: Names) -> Iterator[tuple[str, Any]]:
    """The public names that a class adds to those of its bases that have pages."""
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        if base.__module__ == "builtins" or (base is not cls and names.page_of(base)):
            break
        for name, value in vars(base).items():
            if not name.startswith("_"):
                found.setdefault(name, value)
    yield from sorted(found.items())


def methods(cls: type, names: Names) -> list[tuple[str, Any]]:
    """The methods that a class adds, those with a docstring."""
    found = ((name, getattr(cls, name, None)) for name, _ in own(cls, names))
    return [(n, m) for n, m in found if callable(m) and getattr(m, "__doc__", None)]


def attributes(cls: type, names: Names) -> list[tuple[str, str]]:
    """The properties that a class adds, and what their docstrings say."""
    kinds = (property, functools.cached_property, types.GetSetDescriptorType)
    return [
        (n, first_sentence(v)) for n, v in own(cls, names) if isinstance(v, kinds) and v.__doc__
    ]


def method_lines(name: str, method: str, value: Any, link: Any) -> list[str]:
    """All that is said of a method."""
    given = re.sub(r"^\((self|cls)(, )?", "(", call_of(value))
    head = f"``````{{py:method}} {method}{given}"
    inner = "\n".join(body(value, link)).rstrip("\n")
    return [head, ":no-index:", "", inner, "``````", ""]


def page(name: str, thing: Any, names: Names, picture: tuple[str, str] | None = None) -> str:
    """The page of a function or a class; `picture` is a file and what it shows."""
    kind, link = "class" if isinstance(thing, type) else "function", names.linker(name)
    space = names.space[name]
    short = space.removeprefix("rushlight.")
    lines = [
        f"# {escaped(name)}",
        "",
        f"In [{escaped(space)}](module-{short}.md)",
        "",
        f"````{{py:{kind}}} rushlight.{name}{call_of(thing)}",
        "````",
        "",
        *body(thing, link),
    ]
    if picture:
        lines += [f"![{picture[1].replace('`', '')}]({picture[0]})", "", f"*{picture[1]}*", ""]
    lines += see_also(name, thing, names)
    if isinstance(thing, type):
        lines += members_of(name, thing, names)
    return "\n".join(lines)


def see_also(name: str, thing: Any, names: Names) -> list[str]:
    """Links to what is near."""
    said = [f"[{escaped(n)}]({names.target(n)})" for n in names.related(name)]
    for base in getattr(thing, "__mro__", ())[1:]:
        if names.page_of(base):  # the nearest: what it has is not said again
            said.append(f"its base [{escaped(names.known[id(base)])}]({names.page_of(base)})")
            break
    return [f"**See also** {', '.join(said)}", ""] if said else []


def members_of(name: str, cls: type, names: Names) -> list[str]:
    """The attributes and methods that a class adds to its bases."""
    lines, link = [], names.linker(name)
    if known := attributes(cls, names):
        lines += ["## Attributes", "", *(f"- **{escaped(n)}**: {said}" for n, said in known), ""]
    if added := methods(cls, names):
        lines += ["## Methods", ""]
        for method, value in added:
            lines += method_lines(name, method, value, link)
    return lines


def tensor_page(tensor: type, names: Names) -> str:
    """The page of Tensor: what is a function as well leads there, all else is said in place."""
    rows, whole, link = [], [], names.linker("Tensor")
    for name in sorted(dir(tensor)):
        method = getattr(tensor, name)
        if name.startswith("_") or not callable(method) or not method.__doc__:
            continue
        spaces = ("", "nn.functional.", "linalg.", "special.")
        function = next((s + name for s in spaces if s + name in names.found), "")
        target = f"{function}.md" if function else f"#rushlight.Tensor.{name}"
        rows.append(f"| [{escaped(name)}]({target}) | {first_sentence(method)} |")
        if not function:
            given = re.sub(r"^\(self(, )?", "(", call_of(method))
            whole += [f"``````{{py:method}} rushlight.Tensor.{name}{given}", ""]
            whole += ["\n".join(body(method, link)).rstrip("\n"), "``````", ""]
    head = ["# Tensor", "", "````{py:class} rushlight.Tensor(data)", "````", "", *body(tensor)]
    known = [f"- **{escaped(n)}**: {said}" for n, said in attributes(tensor, names)]
    lines = [*head, "## Attributes", "", *known, "", "## Methods", ""]
    lines += [
        "| method | |",
        "|---|---|",
        *rows,
        "",
        "## Methods that are no functions",
        "",
        *whole,
    ]
    return "\n".join(lines)


def module_page(path: str, names: Names) -> str:
    """What a module is for, and its functions and classes."""
    module = importlib.import_module(path)
    intro = docstrings.parse(module.__doc__ or "").text
    lines = [f"# {escaped(path)}", "", escaped(intro[0]) if intro else "", ""]
    lines += ["| name | |", "|---|---|"]
    for name, thing in docstrings.members(module):
        file = names.page_of(thing)
        link = f"[{escaped(name)}]({file})" if file else escaped(name)
        lines.append(f"| {link} | {first_sentence(thing)} |")
    if known := [f"`{name}` (`{kind}`)" for name, kind in values(module)]:
        lines += ["", f"**Values** {', '.join(known)}"]
    return "\n".join([*lines, ""])


def values(module: types.ModuleType) -> Iterator[tuple[str, str]]:
    """What a module has in its list beside functions, classes and modules, and of which types."""
    for name in getattr(module, "__all__", None) or dir(module):
        value = getattr(module, name)
        if not name.startswith("_") and not callable(value) and not inspect.ismodule(value):
            yield name, type(value).__name__


def generate(pictures: dict[str, tuple[str, str]] | None = None) -> dict[str, str]:
    """File name → page; `pictures` has the files of those that pages show, and what they show."""
    names, pages = Names(), {}
    modules = [(path, f"module-{path.removeprefix('rushlight.')}") for path in names.modules]
    for path, file in modules:
        pages[f"{file}.md"] = module_page(path, names)
    for name, thing in names.found.items():
        made = tensor_page(thing, names) if name == "Tensor" else None
        pages[f"{name}.md"] = made or page(name, thing, names, (pictures or {}).get(name))
    lines = [HEAD]
    for title, is_listed in TITLES.items():
        lines += ["", f"## {title}", "", "| module | |", "|---|---|"]
        lines += [
            f"| [{escaped(path)}]({file}.md) | {first_sentence(importlib.import_module(path))} |"
            for path, file in modules
            if is_listed(path)
        ]
    shown = (file for path, file in modules if path in docstrings.KNOWN)  # on the left
    lines += ["", "```{toctree}", ":hidden:", "", *shown, "```", ""]
    return {"index.md": "\n".join(lines), **pages}
