"""Writes archives of objects and code."""

from __future__ import annotations

import ast
import enum
import importlib
import importlib.util
import io
import linecache
import os
import pickle
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rushlight._files.archive import PyTorchFileWriter
from rushlight._files.pickled import StorageKeys, pickle_bytes
from rushlight.package import _mock
from rushlight.package.glob_group import GlobGroup, Patterns

__all__ = ["EmptyMatchError", "PackageExporter", "PackagingError", "PackagingErrorReason"]

# Modules that every Python with PyTorch has, and those that cannot be Python in an archive.
_STANDARD = {*sys.stdlib_module_names, *sys.builtin_module_names}
_FRAMEWORK = {"torch", "rushlight"}


class EmptyMatchError(Exception):
    """A pattern that had to match a module has matched none.

    For an example see `package.PackageExporter`.
    """


class PackagingErrorReason(enum.Enum):
    """Why a module cannot be put into an archive.

    Example:
        >>> torch.package.PackagingErrorReason.DENIED.name
        'DENIED'
    """

    DENIED = "it was denied by a pattern"
    NO_ACTION = "no pattern says what becomes of it: intern, extern or mock it"
    NO_SOURCE = "it has no source in Python, so it cannot be interned"
    NOT_FOUND = "it was not found"


class PackagingError(Exception):
    """Modules that an archive needs and cannot contain, by reason.

    Args:
        broken: modules, why, and by which module they are needed.

    For an example see `package.PackagingErrorReason`.
    """

    def __init__(self, broken: dict[str, tuple[PackagingErrorReason, str]]) -> None:
        self.broken = broken
        lines = [
            f"    {name}: {reason.value}" + (f" (needed by {user})" if user else "")
            for name, (reason, user) in broken.items()
        ]
        super().__init__("\n".join(["PackageExporter: modules are missing", *lines]))


class _Rule(NamedTuple):
    names: GlobGroup
    action: str
    allow_empty: bool


def _find_imports(source: str, module: str, is_package: bool) -> Iterator[tuple[str, bool]]:
    """The modules that a source imports, and (False) names in them that may be such."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, True) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                above = parts[: len(parts) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            yield base, True
            yield from ((f"{base}.{a.name}", False) for a in node.names if a.name != "*")


class PackageExporter:
    """Writes an archive; `close`, or the end of the `with` block, writes the code that it needs.

    Patterns say of each module that objects and code need whether its source goes into the archive
    (`intern`), the reader must have it (`extern`), a stand-in comes in its place (`mock`), or it
    is an error (`deny`). Python's own modules and the framework are extern.

    Args:
        f: a path, or a file that is open for writing.

    Example:
        >>> import io
        >>> from rushlight.package import PackageExporter, PackageImporter
        >>> file = io.BytesIO()
        >>> with PackageExporter(file) as exporter:
        ...     exporter.save_source_string("hello", "def greet(): return 'hi'")
        ...     exporter.save_pickle("data", "weights.pkl", [1, 2])
        >>> _ = file.seek(0)
        >>> importer = PackageImporter(file)
        >>> importer.import_module("hello").greet(), importer.load_pickle("data", "weights.pkl")
        ('hi', [1, 2])
    """

    def __init__(self, f: Any) -> None:
        if isinstance(f, str | os.PathLike):
            f = os.fspath(f)
        self._file = PyTorchFileWriter(f)
        self._saved = StorageKeys()
        self._rules: list[_Rule] = []
        self._needed: dict[str, str] = {}  # by module, who needs it
        self._perhaps: dict[str, str] = {}  # by name that may be one
        self._sources: dict[str, tuple[str, bool]] = {}
        self._used: set[_Rule] = set()
        self._actions: dict[str, str] = {}
        self._unique = 0

    def __enter__(self) -> PackageExporter:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.close()

    # ---- what becomes of modules ----

    def _rule(self, action: str, include: Patterns, exclude: Patterns, allow_empty: bool) -> None:
        self._rules.append(_Rule(GlobGroup(include, exclude=exclude), action, allow_empty))

    def intern(
        self, include: Patterns, *, exclude: Patterns = (), allow_empty: bool = True
    ) -> None:
        """Put the sources of modules of these names into the archive."""
        self._rule("intern", include, exclude, allow_empty)

    def extern(
        self, include: Patterns, *, exclude: Patterns = (), allow_empty: bool = True
    ) -> None:
        """Leave modules of these names to the program that reads the archive."""
        self._rule("extern", include, exclude, allow_empty)

    def mock(self, include: Patterns, *, exclude: Patterns = (), allow_empty: bool = True) -> None:
        """Replace modules of these names by stand-ins that cannot be used."""
        self._rule("mock", include, exclude, allow_empty)

    def deny(self, include: Patterns, *, exclude: Patterns = ()) -> None:
        """Forbid dependencies on modules of these names."""
        self._rule("deny", include, exclude, True)

    # ---- what is saved ----

    def save_source_string(
        self, module_name: str, src: str, is_package: bool = False, dependencies: bool = True
    ) -> None:
        """Save the source of a module; with `dependencies` also the modules that it imports."""
        self._sources[module_name] = (src, is_package)
        if dependencies:
            for name, is_module in _find_imports(src, module_name, is_package):
                (self._needed if is_module else self._perhaps).setdefault(name, module_name)

    def save_source_file(
        self, module_name: str, file_or_directory: str, dependencies: bool = True
    ) -> None:
        """Save a file as a module, or a folder as a package."""
        path = Path(file_or_directory)
        if path.is_dir():
            for file in sorted(path.rglob("*.py")):
                parts = [module_name, *file.relative_to(path).with_suffix("").parts]
                is_package = parts[-1] == "__init__"
                name = ".".join(parts[:-1] if is_package else parts)
                self.save_source_string(name, file.read_text(), is_package, dependencies)
        else:
            self.save_source_string(module_name, path.read_text(), False, dependencies)

    def save_module(self, module_name: str, dependencies: bool = True) -> None:
        """Save the source of an importable module."""
        if not isinstance(module_name, str):
            raise TypeError("save_module() expects a module's name")
        source = self._source_of(module_name)
        if isinstance(source, PackagingErrorReason):
            raise PackagingError({module_name: (source, "")})
        self.save_source_string(module_name, *source, dependencies)

    def save_pickle(
        self,
        package: str,
        resource: str,
        obj: Any,
        dependencies: bool = True,
        pickle_protocol: int = 3,
    ) -> None:
        """Save an object; with `dependencies` also the modules of its classes."""
        data = pickle_bytes(obj, self._saved, pickle, pickle_protocol)
        if dependencies:
            for module in _pickled_modules(data):
                self._needed.setdefault(module, f"{package}.{resource}")
        self.save_binary(package, resource, data)

    def save_text(self, package: str, resource: str, text: str) -> None:
        """Save a string."""
        self.save_binary(package, resource, text.encode("utf-8"))

    def save_binary(self, package: str, resource: str, binary: bytes) -> None:
        """Save bytes."""
        self._write("/".join([*package.split("."), resource]), binary)

    def get_unique_id(self) -> str:
        """A number, as a string, that is unique in this archive."""
        self._unique += 1
        return str(self._unique - 1)

    def _write(self, name: str, data: bytes) -> None:
        self._file.write_record(name, data, len(data))

    # ---- the end ----

    def _source_of(self, name: str) -> tuple[str, bool] | PackagingErrorReason:
        try:
            module = importlib.import_module(name)
        except ImportError:
            return PackagingErrorReason.NOT_FOUND
        path = getattr(module, "__file__", None)
        if path is None or not path.endswith(".py"):
            return PackagingErrorReason.NO_SOURCE
        return "".join(linecache.getlines(path, vars(module))), hasattr(module, "__path__")

    def _action(self, name: str) -> str | None:
        for rule in self._rules:
            if rule.names.matches(name):
                self._used.add(rule)
                return rule.action
        if name.partition(".")[0] in _STANDARD | _FRAMEWORK:
            return "extern"
        return None

    def _is_module(self, name: str) -> bool:
        """Whether what is imported from a module is one itself."""
        if name in self._sources or name.partition(".")[0] in _STANDARD | _FRAMEWORK:
            return name in self._sources
        try:
            return importlib.util.find_spec(name) is not None
        except (ImportError, AttributeError, ValueError):
            return False

    def _waiting(self) -> list[str]:
        """Modules of which nobody has said yet what becomes of them."""
        for name, user in self._perhaps.items():
            if name not in self._needed and self._is_module(name):
                self._needed[name] = user
        self._perhaps.clear()
        return [name for name in self._needed if name not in self._actions]

    def _resolve(self) -> None:
        """Says of all modules that are needed what becomes of them."""
        broken: dict[str, tuple[PackagingErrorReason, str]] = {}
        while waiting := self._waiting():
            for name in waiting:
                self._actions[name] = ""
                user = self._needed[name]
                if name in self._sources:
                    continue
                action = self._action(name)
                if action is None:
                    broken[name] = (PackagingErrorReason.NO_ACTION, user)
                elif action == "deny":
                    broken[name] = (PackagingErrorReason.DENIED, user)
                elif action == "intern":
                    source = self._source_of(name)
                    if isinstance(source, PackagingErrorReason):
                        broken[name] = (source, user)
                    else:
                        self.save_source_string(name, *source)
                else:
                    self._actions[name] = action
        if broken:
            raise PackagingError(broken)
        for rule in self._rules:
            if not rule.allow_empty and rule not in self._used:
                raise EmptyMatchError(
                    f"PackageExporter: {rule.action} of {rule.names} matched no module"
                )

    def _names_of_action(self, action: str) -> list[str]:
        self._resolve()
        return sorted(name for name, done in self._actions.items() if done == action)

    def interned_modules(self) -> list[str]:
        """The modules whose sources are in the archive."""
        self._resolve()
        return sorted(self._sources)

    def externed_modules(self) -> list[str]:
        """The modules that the reading program must have."""
        return self._names_of_action("extern")

    def mocked_modules(self) -> list[str]:
        """The modules that are replaced by stand-ins."""
        return self._names_of_action("mock")

    def close(self) -> None:
        """Write the code and the storages, and close the archive.

        Raises:
            PackagingError: a module is needed and cannot be there.
            EmptyMatchError: a pattern with `allow_empty=False` matched none.
        """
        self._resolve()
        for key, item in enumerate(self._saved.items):
            self._file.write_record(f".data/{key}.storage", item, item.nbytes())
        for name, (source, is_package) in self._sources.items():
            self._write_source(name, source, is_package)
        mocked = self.mocked_modules()
        if mocked:
            self._write_source("_mock", Path(_mock.__file__).read_text(), False)
        for name in mocked:
            self._write_source(name, _MOCKED, is_package=self._has_parts(name))
        self._write(".data/extern_modules", "\n".join(self.externed_modules()).encode())
        self._write(".data/python_version", platform.python_version().encode())
        self._file.write_end_of_file()

    def _has_parts(self, name: str) -> bool:
        known = [*self._sources, *self._actions]
        return any(other.startswith(name + ".") for other in known)

    def _write_source(self, name: str, source: str, is_package: bool) -> None:
        end = "/__init__.py" if is_package else ".py"
        self._write(name.replace(".", "/") + end, source.encode("utf-8"))


_NAMES_OF_PYTHON_2 = {"__builtin__": "builtins", "copy_reg": "copyreg"}  # as protocol 2 has them

_MOCKED = """\
from _mock import make_mock


def __getattr__(attr):
    return make_mock(__name__ + "." + attr)
"""


def _pickled_modules(data: bytes) -> list[str]:
    """The modules of the functions and classes that a pickle names."""
    import pickletools

    found: dict[str, None] = {}
    strings: list[str] = []
    for operation, argument, _ in pickletools.genops(io.BytesIO(data)):
        if operation.name == "GLOBAL":
            module = str(argument).partition(" ")[0]
            found[_NAMES_OF_PYTHON_2.get(module, module)] = None
        elif operation.name == "STACK_GLOBAL":
            found[strings[-2]] = None
        elif isinstance(argument, str):
            strings.append(argument)
    return list(found)
