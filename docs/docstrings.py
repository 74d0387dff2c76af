"""What docstrings say: sections, arguments, examples; and the public names that are to have them.

A docstring is a sentence, paragraphs, and sections: `Args:` with a line for each argument (or for
several, `a, b:`), `Raises:`, and `Example:` with lines as one types them. Those of ops begin with
their calls.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import inspect
import pkgutil
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.untouched import public_modules

# A name has its page under the first of the modules that have it: these, then all others, those
# with the shortest paths first.
KNOWN = [
    "rushlight",
    "rushlight.nn",
    "rushlight.nn.functional",
    "rushlight.nn.init",
    "rushlight.nn.utils",
    "rushlight.nn.utils.rnn",
    "rushlight.nn.utils.parametrizations",
    "rushlight.nn.utils.parametrize",
    "rushlight.nn.utils.prune",
    "rushlight.nn.parallel",
    "rushlight.nn.attention",
    "rushlight.optim",
    "rushlight.optim.lr_scheduler",
    "rushlight.optim.swa_utils",
    "rushlight.utils",
    "rushlight.utils.data",
    "rushlight.utils.data.distributed",
    "rushlight.utils.checkpoint",
    "rushlight.utils.hooks",
    "rushlight.utils.dlpack",
    "rushlight.utils.tensorboard",
    "rushlight.utils.benchmark",
    "rushlight.autograd",
    "rushlight.autograd.functional",
    "rushlight.autograd.graph",
    "rushlight.autograd.forward_ad",
    "rushlight.func",
    "rushlight.linalg",
    "rushlight.fft",
    "rushlight.special",
    "rushlight.random",
    "rushlight.sparse",
    "rushlight.nested",
    "rushlight.masked",
    "rushlight.signal.windows",
    "rushlight.distributions",
    "rushlight.distributions.constraints",
    "rushlight.distributions.transforms",
    "rushlight.amp",
    "rushlight.cuda",
    "rushlight.accelerator",
    "rushlight.distributed",
    "rushlight.distributed.checkpoint",
    "rushlight.distributed.fsdp",
    "rushlight.distributed.tensor",
    "rushlight.vision.transforms",
    "rushlight.vision.transforms.functional",
    "rushlight.vision.transforms.v2",
    "rushlight.vision.tv_tensors",
    "rushlight.vision.models",
    "rushlight.vision.datasets",
    "rushlight.vision.ops",
    "rushlight.vision.io",
    "rushlight.vision.utils",
    "rushlight.jit",
    "rushlight.fx",
    "rushlight.export",
    "rushlight.onnx",
    "rushlight.hub",
    "rushlight.library",
    "rushlight.compiler",
    "rushlight.profiler",
    "rushlight.serialization",
    "rushlight.safetensors",
    "rushlight.gguf",
    "rushlight.testing",
    "rushlight.futures",
    "rushlight.multiprocessing",
    "rushlight.overrides",
]
# Modules that have no page, by the beginnings of their names, and why.
WITHOUT_PAGE = {
    "rushlight.foreign": "names that other packages ask for lead to those of the reference",
}
SECTIONS = ("Args", "Returns", "Raises", "Example")
_ENTRY = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: \([^)]*\))?:\s?(.*)")


@dataclass
class Docstring:
    calls: list[str] = field(default_factory=list)  # of ops: `cumsum(input: Tensor, …) -> Tensor`
    text: list[str] = field(default_factory=list)  # paragraphs
    args: dict[str, str] = field(default_factory=dict)
    raises: list[str] = field(default_factory=list)
    returns: str = ""
    example: str = ""


def parse(text: str) -> Docstring:
    """The parts of a docstring."""
    said, section = Docstring(), ""
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        lines = block.split("\n")
        if not said.text and re.match(r"[\w.]+\(.*\) -> ", lines[0]):
            said.calls = lines
            continue
        while lines:
            head = re.fullmatch(rf"({'|'.join(SECTIONS)}):", lines[0])
            if head:
                section, lines = head[1], lines[1:]
            inside = [line for line in lines if line.startswith("    ")] if section else []
            rest = lines[len(inside) :] if lines[: len(inside)] == inside else lines
            if rest is not lines:
                _take(said, section, [line[4:] for line in inside])
                lines = rest
            if lines and not re.fullmatch(rf"({'|'.join(SECTIONS)}):", lines[0]):
                following = [
                    k for k, line in enumerate(lines) if line.rstrip(":") in SECTIONS and k
                ]
                stop = following[0] if following else len(lines)
                section = ""
                said.text.append("\n".join(lines[:stop]))
                lines = lines[stop:]
    return said


def _take(said: Docstring, section: str, lines: list[str]) -> None:
    """Adds the lines of a section."""
    if section == "Example":
        said.example += ("\n" if said.example else "") + "\n".join(lines)
    elif section == "Args":
        names: list[str] = []
        for line in lines:
            entry = _ENTRY.match(line)
            if entry:
                names = [name.lstrip("*") for name in entry[1].split(", ")]
                said.args.update(dict.fromkeys(names, entry[2]))
            else:
                for name in names:
                    said.args[name] += " " + line.strip()
    elif section == "Returns":
        said.returns += " ".join(line.strip() for line in lines)
    else:
        said.raises += lines


def signature(thing: Any) -> inspect.Signature | None:
    """What `inspect` knows of a call, or None."""
    with contextlib.suppress(ValueError, TypeError):
        return inspect.signature(thing)
    return None


def parameters(thing: Any) -> list[str]:
    """The names of the arguments that a call takes; private ones begin with a line.

    A class without a constructor of its own, whose base takes anything, takes nothing; nor does an
    enumeration, which is not called to be made.
    """
    if hasattr(thing, "__members__"):
        return []
    found = signature(thing)
    named = [] if found is None else list(found.parameters.values())
    inherits = isinstance(thing, type) and "__init__" not in vars(thing)
    spread = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    taken = [p.name for p in named if not (inherits and p.kind in spread)]
    return [name for name in taken if not name.startswith("_") and name not in ("self", "cls")]


def types_of(said: Docstring) -> dict[str, tuple[str, str]]:
    """The type and the default of each argument of an op, by the calls at its docstring's head."""
    found: dict[str, tuple[str, str]] = {}
    for call in said.calls:
        with contextlib.suppress(SyntaxError):
            (function,) = ast.parse(f"def {call}: ...").body
            assert isinstance(function, ast.FunctionDef)
            a = function.args
            places = [*a.posonlyargs, *a.args]
            defaults = [None] * (len(places) - len(a.defaults)) + list(a.defaults)
            spread = [] if a.vararg is None else [(a.vararg, None)]
            for arg, value in [
                *zip(places, defaults, strict=True),
                *spread,
                *zip(a.kwonlyargs, a.kw_defaults, strict=True),
            ]:
                kind = ast.unparse(arg.annotation) if arg.annotation else ""
                found.setdefault(arg.arg, (kind, "" if value is None else ast.unparse(value)))
    return found


def is_documented(thing: Any) -> bool:
    """Whether this is a function or a class of the package."""
    if isinstance(thing, (types.FunctionType, types.BuiltinFunctionType)):
        return (thing.__module__ or "rushlight").startswith("rushlight")
    return isinstance(thing, type) and thing.__module__.startswith("rushlight")


def members(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    """The public functions and classes of a module."""
    names = getattr(module, "__all__", None) or dir(module)
    for name in names:
        thing = getattr(module, name, None)
        if not name.startswith("_") and is_documented(thing):
            yield name, thing


@functools.cache
def modules() -> list[str]:
    """The public modules whose members have pages."""
    others = sorted(public_modules().keys() - set(KNOWN), key=lambda path: (path.count("."), path))
    return KNOWN + [path for path in others if not path.startswith(tuple(WITHOUT_PAGE))]


def public_names() -> dict[str, Any]:
    """Every public function and class under the first of its names, such as `nn.Linear`."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for path in modules():
        module = importlib.import_module(path)
        for name, thing in members(module):
            if id(thing) not in seen:
                seen.add(id(thing))
                found[f"{path}.{name}".removeprefix("rushlight.")] = thing
    return found


def example(thing: Any) -> str:
    """The lines of a docstring that one types, and what they print."""
    return "\n".join(
        re.findall(
            r"^[ ]*>>> .*(?:\n[ ]*\S.*)*", inspect.cleandoc(thing.__doc__ or ""), re.MULTILINE
        )
    )


@functools.cache  # a base is asked by all that derive from it
def described(thing: Any) -> dict[str, str]:
    """What is said of a call's arguments.

    By the docstring; by that of another thing, where this one says "the arguments of `nn.Conv2d`",
    a name within the package or beside it; and by those of the bases of a class.
    """
    doc = inspect.cleandoc(thing.__doc__ or "")
    said = parse(doc).args
    taken = set(parameters(thing))
    home = getattr(thing, "__module__", None) or "rushlight"
    named = re.findall(r"\barguments\s+of\s+`([\w.]+)`", doc)
    others = [_find(home, path) for path in named]
    others += getattr(thing, "__mro__", ())[1:]
    for other in filter(is_documented, others):
        for name, text in described(other).items():
            if name in taken:
                said.setdefault(name, text)
    return said


def _find(home: str, path: str) -> Any:
    """What a docstring of the module `home` means by a path, if it is one."""
    for start in (home, "rushlight", home.rpartition(".")[0]):
        holder, _, name = f"{start}.{path}".rpartition(".")
        with contextlib.suppress(AttributeError, ImportError, ValueError):
            return getattr(pkgutil.resolve_name(holder), name)  # before a module of that name
    return None


def missing(thing: Any) -> list[str]:
    """What the docstring of something lacks: arguments without a word, an example.

    What is refused takes whatever it is given, and has none.
    """
    if (thing.__doc__ or "").startswith("Refused: "):
        return []
    known = described(thing)
    lacks = [name for name in parameters(thing) if name not in known]
    text = inspect.cleandoc(thing.__doc__ or "")
    shown = re.search(r">>> |^For an example see\s", text, re.MULTILINE)
    return lacks + ([] if shown else ["an example"])
