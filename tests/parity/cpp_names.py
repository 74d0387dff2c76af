"""Public names that C++ headers declare: functions, classes, their members, by namespace.

`names_of(text)` reads declarations alone, no bodies, and knows what headers of libraries look like, not all of C++.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

TOKEN = re.compile(r"[A-Za-z_]\w*|::|->|[{}()\[\]<>;:,=~&*]|[^\s\w]|\d[\w.]*")
HIDDEN = {"detail", "impl", "internal", "native", "", "details", "_detail"}
# Macros whose second argument is a member, and whose first is a class.
MEMBERS = {"TORCH_ARG", "TORCH_OPTIM_ARG"}
CLASSES = {"TORCH_MODULE", "TORCH_MODULE_IMPL"}
NO_NAMES = {"static_assert", "friend", "requires", "if"}


@dataclass
class Scope:
    """What a brace has opened."""

    kind: str  # namespace class
    name: str
    public: bool = True
    template: bool = False
    declaration: list[str] = field(default_factory=list)


def plain(text: str) -> str:
    """Without comments, literals and lines of the preprocessor."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r'"(\\.|[^"\\])*"', " ", text)
    text = re.sub(r"'(\\.|[^'\\])+'", " 0 ", text)
    return re.sub(r"^[ \t]*#(.*\\\n)*.*$", "", text, flags=re.M)


def without_angles(tokens: list[str]) -> list[str]:
    """Without template parameters and arguments."""
    out, depth = [], 0
    for i, token in enumerate(tokens):
        if token == "<" and i and (re.match(r"\w", tokens[i - 1]) or depth):
            depth += 1
        elif token == ">" and depth:
            depth -= 1
        elif not depth:
            out.append(token)
    return out


def declared(tokens: list[str], owner: str) -> str:
    """The name that a declaration without a body, or a function, declares; empty where it is none."""
    tokens = without_angles(tokens)
    if (
        not tokens
        or tokens[0] in ("typedef", "friend")
        or NO_NAMES & set(tokens[:1])
        or "operator" in tokens
    ):
        return tokens[-1] if tokens[:1] == ["typedef"] else ""
    if tokens[0] == "using":
        if "=" in tokens:
            return tokens[1]
        constructor = len(tokens) > 3 and tokens[-1] == tokens[-3]  # of a base
        return "" if tokens[1] == "namespace" or constructor else tokens[-1]
    if tokens[0] in MEMBERS and len(tokens) > 3:
        return tokens[-2] if tokens[-1] == ")" and "=" not in tokens else ""
    if tokens[0] in CLASSES:
        return tokens[2]
    if {"class", "struct", "enum", "union"} & set(tokens) and "(" not in tokens:
        return ""
    end = min((tokens.index(t) for t in ("(", "=", "[", ":") if t in tokens), default=len(tokens))
    name = tokens[end - 1] if end else ""
    known = (
        re.fullmatch(r"(?!__dispatch_)[A-Za-z_]\w*", name)
        and name != owner
        and name.upper() != name
    )
    is_type = end == 1 or (end >= 2 and tokens[end - 2] in ("~", "::"))
    return name if known and not is_type and name not in ("decltype", "const", "noexcept") else ""


def opened(tokens: list[str]) -> tuple[str, str]:
    """What the brace behind these tokens opens, and its name."""
    plain_tokens = without_angles(tokens)
    if "namespace" in plain_tokens:
        return "namespace", "".join(plain_tokens[plain_tokens.index("namespace") + 1 :])
    for word in ("enum", "class", "struct", "union"):
        if word in plain_tokens and "(" not in plain_tokens[: plain_tokens.index(word)]:
            rest = plain_tokens[plain_tokens.index(word) + 1 :]
            head = rest[: rest.index(":")] if ":" in rest else rest
            names = [
                t
                for t in head
                if re.match(r"[A-Za-z_]", t) and t not in ("final", "class", "struct")
            ]
            if "(" in head and names:  # a macro with arguments before the name
                names = names[-1:]
            return ("enum" if word == "enum" else "class"), names[-1] if names else ""
    return "body", ""


def skip(tokens: list[str], at: int) -> int:
    """The place behind the brace that closes the one at a place."""
    depth = 0
    while at < len(tokens):
        depth += {"{": 1, "}": -1}.get(tokens[at], 0)
        at += 1
        if depth == 0:
            break
    return at


def names_of(text: str) -> Iterator[str]:
    """`torch::nn::Linear`, `torch::nn::LinearOptions::bias`: in order, some of them several times.

    Members of class templates are left out: whoever asks for them has to say the arguments.
    """
    tokens = TOKEN.findall(plain(text))
    scopes: list[Scope] = [Scope("namespace", "")]
    at, parens = 0, 0

    def path(name: str) -> str:
        return "::".join([s.name for s in scopes[1:] if s.name] + [name])

    def visible() -> bool:
        hidden = any(
            part in HIDDEN
            for s in scopes[1:]
            if s.kind == "namespace"
            for part in s.name.split("::")
        )
        return not hidden and all(s.public and not s.template for s in scopes if s.kind == "class")

    def told(name: str) -> Iterator[str]:
        if name and visible() and len(scopes) > 1:
            yield path(name)

    while at < len(tokens):
        token, here = tokens[at], scopes[-1]
        at += 1
        parens += {"(": 1, ")": -1}.get(token, 0)
        if parens > 0 or token in "()" or token not in ("{", "}", ";", ":"):
            here.declaration.append(token)
        elif token == ":" and here.declaration in (["public"], ["private"], ["protected"]):
            here.public, here.declaration = here.declaration == ["public"], []
        elif token == ":":
            here.declaration.append(token)
        elif token == ";":
            yield from told(declared(here.declaration, here.name))
            here.declaration = []
        elif token == "}":
            if len(scopes) > 1:
                scopes.pop()
        else:
            kind, name = opened(here.declaration)
            if kind in ("namespace", "class"):
                if kind == "class":
                    yield from told(name)
                is_struct = kind == "namespace" or "struct" in without_angles(here.declaration)
                is_template = "template" in here.declaration
                here.declaration = []
                scopes.append(Scope(kind, name, is_struct, is_template))
                continue
            at = skip(tokens, at - 1)
            if at < len(tokens) and tokens[at] in (",", "{"):  # initialisers of a constructor
                continue
            yield from told(name if kind == "enum" else declared(here.declaration, here.name))
            here.declaration = []
