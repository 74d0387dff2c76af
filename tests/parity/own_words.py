"""What in a tree of sources stands in another one as well: functions, messages and prose.

- A body is a function without its docstring, annotations and the names of its locals. Of those with
  60 tokens or more, its share is how much of it stands, in runs of six tokens or more, in one
  function of the same name there.
- A message is a string of the code, in Python or in C++: the words of it that stand there in a row.
- Prose is a docstring or a block of comments, and counted likewise.

`Theirs` reads the other sources once, for the names and words that ours hold.
"""

from __future__ import annotations

import ast
import builtins
import functools
import io
import re
import tokenize
from collections import defaultdict
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

MOST_SHARED = 0.7  # of a body
FEWEST_TOKENS = 60
RUN = 6  # tokens
FEW = 12  # functions of a name
WORDS_IN_A_ROW = {"message": 12, "prose": 9}
WINDOW = min(WORDS_IN_A_ROW.values())

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SILENT = (tokenize.NEWLINE, tokenize.NL, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT)
_WORD = re.compile(r"[a-z_][a-z_0-9']*|\d+")
_CPP = (".cpp", ".h", ".cu", ".cuh", ".inc")
_CPP_LITERAL = r'"(?:[^"\\\n]|\\.)*"'
_CPP_LITERALS = re.compile(rf"{_CPP_LITERAL}(?:\s*{_CPP_LITERAL})*")  # which the compiler joins
_CPP_COMMENTS = re.compile(r"(?:[ \t]*//[^\n]*\n)+")


@dataclass(frozen=True)
class Found:
    """Something of ours that stands there."""

    kind: str
    path: str
    line: int
    name: str  # of the function, or the beginning of the text
    measure: float  # the share of tokens, or the number of words

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.path, self.name

    def __str__(self) -> str:
        return f"{self.kind} {self.path}:{self.line} {self.name} [{self.measure:.4g}]"


def sources(root: Path):
    """The Python files of a tree, with their text and their syntax."""
    for path in sorted(root.rglob("*.py*")):
        if path.suffix in (".py", ".pyi"):
            text = path.read_text(encoding="utf-8", errors="replace")
            try:
                yield path, text, ast.parse(text)
            except (SyntaxError, ValueError):
                continue  # templates and files for other versions of Python


# ---- functions ----


def _functions(body, above=""):
    """The functions of a body and of its classes, with their dotted names."""
    for node in body:
        if isinstance(node, _DEFINITIONS):
            yield above + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{above}{node.name}.")
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            yield from _functions(node.body + getattr(node, "orelse", []), above)


def _arguments(function) -> list[ast.arg]:
    every = function.args
    lists = every.posonlyargs + every.args + every.kwonlyargs
    return lists + [one for one in (every.vararg, every.kwarg) if one is not None]


class _WithoutHints(ast.NodeTransformer):
    """Takes docstrings and annotations off."""

    def visit(self, node):
        self.generic_visit(node)
        if isinstance(node, ast.AnnAssign):
            return ast.Pass() if node.value is None else ast.Assign([node.target], node.value)
        if isinstance(node, _DEFINITIONS):
            node.returns = None
            for argument in _arguments(node):
                argument.annotation = None
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        return node


def _tokens(function) -> list[str]:
    """The tokens of a function's body, `v` for every local name."""
    bare = _WithoutHints().visit(function)
    stored = {
        node.id
        for node in ast.walk(bare)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    local = stored | {argument.arg for argument in _arguments(bare)}
    local -= {"self", "cls", *dir(builtins)}
    code = ast.unparse(ast.fix_missing_locations(ast.Module(bare.body, [])))
    said = {**dict.fromkeys(local, "v"), "rushlight": "torch"}
    return [
        ">" if token.type == tokenize.INDENT else said.get(token.string, token.string)
        for token in tokenize.generate_tokens(io.StringIO(code).readline)
        if token.type not in _SILENT
    ]


def _share(ours: list[str], theirs: list[str]) -> float:
    """The part of our tokens that stands there in runs, in the same order."""
    runs = {tuple(theirs[i : i + RUN]) for i in range(len(theirs) - RUN + 1)}
    covered = set()
    for i in range(len(ours) - RUN + 1):
        if tuple(ours[i : i + RUN]) in runs:
            covered.update(range(i, i + RUN))
    if len(covered) < MOST_SHARED * len(ours):  # in any order: at least as much
        return 0.0
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks if block.size >= RUN) / len(ours)


# ---- texts ----


def _comments(source: str):
    """Blocks of lines that are comments, with the number of the first."""
    block, start = [], 0
    for number, line in enumerate([*source.splitlines(), ""], 1):
        if line.lstrip().startswith("#"):
            start = start if block else number
            block.append(line.lstrip(" #"))
        elif block:
            yield start, " ".join(block)
            block = []


def _texts(source: str, tree: ast.Module):
    """Every text of a file: its kind, its line and itself."""
    seen = set()  # parts of longer texts, and docstrings
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, (*_DEFINITIONS, ast.ClassDef, ast.Module)):
            if ast.get_docstring(node, clean=False) is not None:
                text = node.body[0].value
                seen.add(text)
                yield "prose", text.lineno, text.value
        elif isinstance(node, ast.JoinedStr):
            seen.update(node.values)
            parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
            yield "message", node.lineno, " ".join(parts)
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in seen:
            yield "message", node.lineno, node.value
    for line, text in _comments(source):
        yield "prose", line, text


def _texts_of_cpp(source: str):
    """Every text of a file in C++, likewise."""
    for match in _CPP_LITERALS.finditer(source):
        literals = re.findall(_CPP_LITERAL, match.group())
        yield "message", _line(source, match), " ".join(literal[1:-1] for literal in literals)
    for match in _CPP_COMMENTS.finditer(source):
        yield "prose", _line(source, match), match.group().replace("//", " ")


def _line(source: str, match) -> int:
    return source.count("\n", 0, match.start()) + 1


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _windows(text: str) -> list[int]:
    """A number for each place of a text: which words stand there."""
    words = _words(text)
    return [hash(tuple(words[i : i + WINDOW])) for i in range(len(words) - WINDOW + 1)]


def _longest(windows: list[int], there: set[int]) -> int:
    """The most words in a row of which every window stands there."""
    longest = run = 0
    for window in windows:
        run = run + 1 if window in there else 0
        longest = max(longest, run)
    return longest + WINDOW - 1 if longest else 0


def _strings_of_library(path: Path):
    """What is printable in a compiled library and looks like a sentence."""
    for match in re.finditer(rb"[\t\n\x20-\x7e]{40,}", path.read_bytes()):
        text = match.group()
        if b" " in text and not text.startswith(b"_Z"):
            yield text.decode()


# ---- both ----


class Ours:
    """The functions and texts of files and folders of ours below `root`."""

    def __init__(self, root: Path, places) -> None:
        self.functions = []  # path, line, name, tokens
        self.texts = []  # path, line, kind, text, windows
        for place in places:
            at = root / place
            for path, source, tree in sources(at) if at.is_dir() else _single(at):
                name = path.relative_to(root).as_posix()
                self._add_texts(name, _texts(source, tree))
                for full, node in _functions(tree.body):
                    line, tokens = node.lineno, _tokens(node)
                    if len(tokens) >= FEWEST_TOKENS:
                        self.functions.append((name, line, full, tokens))
            for path in sorted(at.rglob("*")):
                if path.suffix in _CPP:
                    name = path.relative_to(root).as_posix()
                    self._add_texts(name, _texts_of_cpp(path.read_text()))

    def _add_texts(self, name: str, texts) -> None:
        for kind, line, text in texts:
            if "->" not in text[:200] and (windows := _windows(text)):  # schemas are facts
                self.texts.append((name, line, kind, text, windows))


def _single(path: Path):
    source = path.read_text()
    return [(path, source, ast.parse(source))]


class _Function:
    """One of theirs; its tokens are made where it is looked at."""

    def __init__(self, name: str, node) -> None:
        self.name, self.node = name, node

    @functools.cached_property
    def tokens(self) -> list[str]:
        return _tokens(self.node)


class Theirs:
    """What the other sources hold of what ours do."""

    def __init__(self, roots, ours: Ours) -> None:
        wanted = {name for _, _, name, _ in ours.functions}
        ends = {_last(name) for name in wanted}
        asked = {window for *_, windows in ours.texts for window in windows}
        self.functions: dict[str, list[_Function]] = defaultdict(list)  # by the last part of names
        self.windows: set[int] = set()
        for root in roots:
            for _, source, tree in sources(root):
                for _, _, text in _texts(source, tree):
                    self.windows |= asked.intersection(_windows(text))
                for name, node in _functions(tree.body):
                    if _last(name) in ends:
                        known = self.functions[_last(name)]
                        needed = name in wanted or len(known) < FEW
                        known.append(_Function(name, node if needed else None))
            for path in root.rglob("*.so*"):
                for text in _strings_of_library(path):
                    self.windows |= asked.intersection(_windows(text))

    def candidates(self, name: str, tokens: list[str]):
        """What a function may follow: its namesakes, of any class where they are few."""
        every = self.functions[_last(name)]
        same = [one for one in every if one.name == name]
        for one in (same or (every if len(every) < FEW else []))[:40]:
            if 30 <= len(one.tokens) <= 6 * len(tokens):
                yield one.tokens


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def alike(ours: Ours, theirs: Theirs) -> list[Found]:
    """Everything of ours that stands there, too."""
    found = []
    for path, line, name, tokens in ours.functions:
        shares = (_share(tokens, other) for other in theirs.candidates(name, tokens))
        if (share := max(shares, default=0.0)) >= MOST_SHARED:
            found.append(Found("body", path, line, name, share))
    for path, line, kind, text, windows in ours.texts:
        if (count := _longest(windows, theirs.windows)) >= WORDS_IN_A_ROW[kind]:
            found.append(Found(kind, path, line, " ".join(text.split())[:90], count))
    return found
