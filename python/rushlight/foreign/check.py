"""Which names of torch a program uses that rushlight lacks, found without running the program."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import inspect
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rushlight.foreign import refusals

_ROOTS = {
    "torch": "rushlight",
    "torchvision": "rushlight.vision",
    "functorch": "rushlight._functorch.package",
}
# Ops that PyTorch brings; those of other namespaces are a library's, which registers them.
_OPS = {"aten", "c10d", "higher_order", "prim", "prims", "profiler", "quantized"}
_GUARDS = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException"}


class Use(NamedTuple):
    """A name of torch in a program.

    Attributes:
        optional: whether a `try` catches that it is missing.
        called: whether the program calls it here.
        why: of a name that is there and refuses whoever uses it.
    """

    name: str
    path: Path
    line: int
    optional: bool
    called: bool = False
    why: str | None = None


def files_of(target: str, failed: list[OSError] | None = None) -> list[Path]:
    """The Python files of a script, a folder, or a package that is installed.

    Args:
        target: its path or name.
        failed: takes what folders raise that cannot be read.

    Raises:
        FileNotFoundError: there is nothing of that name.
        OSError: nobody can tell what it is, as of links that lead to each other.
    """
    path = Path(target)
    with contextlib.suppress(FileNotFoundError):  # or it is the name of a package
        path.stat()
    if path.is_file():
        return [path]
    if not path.is_dir():
        spec = _spec_of(target) if path.name == target else None
        if spec is None:
            raise FileNotFoundError(f"no script, folder or package is called {target!r}")
        if not spec.submodule_search_locations:
            return [Path(str(spec.origin))]
        path = Path(next(iter(spec.submodule_search_locations)))
    failed = [] if failed is None else failed
    found = os.walk(path, onerror=failed.append)
    return sorted(Path(folder, n) for folder, _, names in found for n in names if n.endswith(".py"))


def _spec_of(name: str) -> Any:
    try:
        return importlib.util.find_spec(name.partition(".")[0]) and importlib.util.find_spec(name)
    except (ImportError, ValueError):  # what is before a dot is no package
        return None


def _guards(node: ast.Try) -> bool:
    """Whether a `try` catches that a name is missing."""
    return any(
        handler.type is None
        or any(isinstance(n, ast.Name) and n.id in _GUARDS for n in ast.walk(handler.type))
        for handler in node.handlers
    )


class _Reader(ast.NodeVisitor):
    """Collects the names of torch that a file uses."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.uses: list[Use] = []
        self.bound: dict[str, str] = {}
        self.optional = 0
        self.called: set[ast.expr] = set()

    def _use(self, name: str, node: Any) -> None:
        called = node in self.called
        self.uses.append(Use(name, self.path, node.lineno, self.optional > 0, called))

    def visit_Call(self, node):
        self.called.add(node.func)
        if isinstance(node.func, ast.Name) and node.func.id in self.bound:
            self._use(self.bound[node.func.id], node.func)
        self.generic_visit(node)

    def visit_Import(self, node):
        for alias in node.names:
            if alias.name.partition(".")[0] in _ROOTS:
                self._use(alias.name, node)
                root = alias.name.partition(".")[0]
                self.bound[alias.asname or root] = alias.name if alias.asname else root

    def visit_ImportFrom(self, node):
        module = node.module or ""
        if not node.level and module.partition(".")[0] in _ROOTS:
            self._use(module, node)
            for alias in node.names:
                if alias.name != "*":
                    self.bound[alias.asname or alias.name] = f"{module}.{alias.name}"
                    self._use(f"{module}.{alias.name}", node)

    def visit_Attribute(self, node):
        parts, inner = [], node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in self.bound:
            self._use(".".join([self.bound[inner.id], *reversed(parts)]), node)
        else:
            self.visit(inner)

    def visit_Try(self, node):
        guarded = _guards(node)
        self.optional += guarded
        for statement in node.body:
            self.visit(statement)
        self.optional -= guarded
        for statement in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(statement)

    def visit_If(self, node):
        asked = any(
            isinstance(n, ast.Call) and getattr(n.func, "id", "") in ("hasattr", "getattr")
            for n in ast.walk(node.test)
        )
        self.optional += asked
        self.generic_visit(node)
        self.optional -= asked


def uses_of(path: Path) -> list[Use]:
    """The names of torch in a file, each attribute chain once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of strings with strange escapes
        tree = ast.parse(path.read_text(errors="replace"), str(path))
    reader = _Reader(path)
    reader.visit(tree)
    return reader.uses


class Missing(NamedTuple):
    """The shortest part of a name that is not there, or that refuses and `why`."""

    name: str
    why: str | None = None


def missing_part(name: str, called: bool = False) -> Missing | None:
    """What of a dotted name of torch rushlight lacks; None if it has all.

    Args:
        name: from `torch` on.
        called: whether the program calls it.
    """
    root, *rest = name.split(".")
    if root == "torch" and rest[:1] == ["ops"] and not _OPS.issuperset(rest[1:2]):
        return None
    try:
        value: Any = importlib.import_module(_ROOTS[root])
    except ModuleNotFoundError:
        return Missing(root)
    for i, attribute in enumerate(rest):
        # Of what is neither a module nor a class nobody knows what it will hold.
        if not inspect.ismodule(value) and not inspect.isclass(value):
            return None
        try:
            value = getattr(value, attribute)
        except RuntimeError:  # of `torch.classes`, which libraries fill
            return None
        except AttributeError:
            where = ".".join([_ROOTS[root], *rest[: i + 1]])
            try:
                value = importlib.import_module(where)
            except ImportError:
                return Missing(".".join([root, *rest[: i + 1]]))
    why = refusals.why_refused(value, called)
    return Missing(name, why) if why else None


def missing_in(paths: list[Path], failed: list[Exception] | None = None) -> Iterator[Use]:
    """What files use and rushlight lacks, by the shortest missing name.

    `failed` takes what is raised by files that cannot be read.
    """
    known: dict[tuple[str, bool], Missing | None] = {}
    for path in paths:
        try:
            uses = uses_of(path)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            why = str(error) or "its expressions are nested too deeply"  # which takes memory
            print(f"{path}: not read: {why}", file=sys.stderr)
            if failed is not None:
                failed.append(error)
            continue
        for use in uses:
            if (use.name, use.called) not in known:
                known[use.name, use.called] = missing_part(use.name, use.called)
            part = known[use.name, use.called]
            if part is not None:
                yield use._replace(name=part.name, why=part.why)


def check(target: str) -> int:
    """Prints what a script, folder or package uses that is missing.

    The exit status: 1 where something is missing or a file was not read, 2 for what is not there.
    """
    folders: list[OSError] = []
    try:
        paths = files_of(target, folders)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        folders, paths = [error], []
    for error in folders:
        print(f"{error.filename}: not read: {error.strerror}", file=sys.stderr)
    failed: list[Exception] = [*folders]
    found: dict[str, list[Use]] = {}
    for use in missing_in(paths, failed):
        found.setdefault(use.name, []).append(use)
    for name, uses in sorted(found.items(), key=lambda item: -len(item[1])):
        first = next((use for use in uses if not use.optional), uses[0])
        kind = ", where it is there" if all(use.optional for use in uses) else ""
        why = f"; refused: {first.why}" if first.why else ""
        places = sorted({(str(use.path), use.line) for use in uses})
        print(f"{name}: {len(places)} place(s), {first.path}:{first.line}{kind}{why}")
    needed = any(not use.optional for uses in found.values() for use in uses)
    if not found and not failed:
        print(f"{len(paths)} file(s): rushlight has every name of torch in them")
    return int(needed or bool(failed))
