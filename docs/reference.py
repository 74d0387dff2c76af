"""The reference: a page of Markdown for each public function, class and module, from docstrings."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

from docs import docstrings

HEAD = """# Reference

Every public function and class, by the module in which one finds it.

In examples `torch` is this package: `import rushlight as torch`.
"""


def escaped(text: str) -> str:
    """Prose of a docstring as Markdown: what stands in backticks is code, all else is as it is."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(
        p if k % 2 else re.sub(r"([*_<\\$|\[\]])", r"\\\1", p) for k, p in enumerate(parts)
    )


def first_sentence(thing: Any) -> str:
    said = docstrings.parse(thing.__doc__ or "")
    text = " ".join(said.text[0].split()) if said.text else ""
    return escaped(re.split(r"(?<=[.])\s", text)[0].rstrip(":"))


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
    kind = note if isinstance(note, str) else getattr(note, "__name__", str(note))
    default = "" if given is parameter.empty else repr(given)
    return "" if note is parameter.empty else kind, default


def argument_lines(thing: Any, said: docstrings.Docstring) -> list[str]:
    """A line for each argument: its type, its default, what it means."""
    found = docstrings.signature(thing)
    known = {p.name: type_and_default(p) for p in found.parameters.values()} if found else {}
    known |= docstrings.types_of(said)
    lines = []
    for name, text in said.args.items():
        kind, default = known.get(name, ("", ""))
        facts = [f"`{kind}`"] * bool(kind) + [f"`{default}` by default"] * bool(default)
        shown = f" ({', '.join(facts)})" if facts else ""
        lines.append(f"- **{escaped(name)}**{shown}: {escaped(text)}")
    return lines


def body(thing: Any) -> list[str]:
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
            lines += [escaped(re.sub(r"(?m)^ +", "", ends)), ""]
    if said.args:
        lines += ["**Arguments**", "", *argument_lines(thing, said), ""]
    if said.returns:
        lines += [f"**Returns** {escaped(said.returns)}", ""]
    if said.raises:
        lines += [
            "**Errors**",
            "",
            *(
                f"- {escaped(line)}" if not line.startswith(" ") else escaped(line.strip())
                for line in said.raises
            ),
            "",
        ]
    if said.example:
        lines += ["**Example**", "", "```pycon", said.example, "```", ""]
    return lines


def methods(cls: type) -> list[tuple[str, Any]]:
    """The public methods that a class itself has, with a docstring."""
    found = ((name, getattr(cls, name, None)) for name in sorted(vars(cls)))
    return [
        (n, m)
        for n, m in found
        if not n.startswith("_") and callable(m) and getattr(m, "__doc__", None)
    ]


def page(name: str, thing: Any) -> str:
    """The page of a function or a class."""
    kind = "class" if isinstance(thing, type) else "function"
    lines = [
        f"# {escaped(name)}",
        "",
        f"````{{py:{kind}}} rushlight.{name}{call_of(thing)}",
        "````",
        "",
        *body(thing),
    ]
    own = methods(thing) if isinstance(thing, type) else []
    if own:
        lines += ["## Methods", ""]
        for method, value in own:
            lines += [f"**{escaped(method)}**`{call_of(value)}`", "", first_sentence(value), ""]
    return "\n".join(lines)


def tensor_page(tensor: type) -> str:
    """The page of Tensor, whose methods are ops above all."""
    rows = []
    for name in sorted(dir(tensor)):
        method = getattr(tensor, name)
        if not name.startswith("_") and callable(method) and method.__doc__:
            rows.append(f"| **{escaped(name)}** | {first_sentence(method)} |")
    head = ["# Tensor", "", "````{py:class} rushlight.Tensor(data)", "````", "", *body(tensor)]
    return "\n".join(
        [
            *head,
            "## Methods",
            "",
            "`help(torch.Tensor.NAME)` shows all of a method.",
            "",
            "| method | |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def generate() -> dict[str, str]:
    """File name → page."""
    pages: dict[str, str] = {}
    found = docstrings.public_names()
    canonical = {id(thing): name for name, thing in found.items()}
    index = [HEAD]
    for path in docstrings.MODULES:
        module = importlib.import_module(path)
        short = path.removeprefix("rushlight.")
        intro = docstrings.parse(module.__doc__ or "").text
        lines = [
            f"# {escaped(path)}",
            "",
            escaped(intro[0]) if intro else "",
            "",
            "| name | |",
            "|---|---|",
        ]
        for name, thing in docstrings.members(module):
            known = canonical.get(id(thing), f"{path}.{name}".removeprefix("rushlight."))
            link = f"[{escaped(name)}]({known}.md)" if known in found else escaped(name)
            lines.append(f"| {link} | {first_sentence(thing)} |")
        pages[f"module-{short}.md"] = "\n".join([*lines, ""])
        index.append(f"- [{escaped(path)}](module-{short}.md)")
    for name, thing in found.items():
        pages[f"{name}.md"] = tensor_page(thing) if name == "Tensor" else page(name, thing)
    toc = [
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *(f"module-{p.removeprefix('rushlight.')}" for p in docstrings.MODULES),
        "```",
        "",
    ]
    return {"index.md": "\n".join([*index, *toc]), **pages}
