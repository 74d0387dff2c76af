"""Reads archives of objects and code."""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import io
import itertools
import linecache
import os
import pickle
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight._files.archive import PyTorchFileReader
from rushlight._files.pickled import Storages, unsafe_unpickler

if TYPE_CHECKING:
    from rushlight.storage import TypedStorage, UntypedStorage

__all__ = ["PackageImporter", "is_from_package"]

_BEGIN = "<torch_package_"
_numbers = itertools.count()


def is_from_package(obj: object) -> bool:
    """Whether a module, or the class or module of an object, comes from an archive.

    Args:
        obj: any object.

    Example:
        >>> torch.package.is_from_package(torch.nn.Linear(1, 1))
        False
    """
    if isinstance(obj, types.ModuleType):
        name = obj.__name__
    else:
        name = getattr(obj if isinstance(obj, type) else type(obj), "__module__", "")
    return name.startswith(_BEGIN)


class PackageImporter:
    """Imports modules from an archive, separately from those of the program, and loads objects.

    Args:
        file_or_buffer: a path, a file that is open for reading, or a `PyTorchFileReader`.
        module_allowed: must be true of all modules that the archive takes from the program.

    Raises:
        ImportError: one is not allowed.

    For an example see `package.PackageExporter`.
    """

    def __init__(
        self, file_or_buffer: Any, module_allowed: Callable[[str], bool] = lambda name: True
    ) -> None:
        if isinstance(file_or_buffer, PyTorchFileReader):
            self.filename, self.zip_reader = "<pytorch_file_reader>", file_or_buffer
        else:
            is_path = isinstance(file_or_buffer, str | os.PathLike)
            self.filename = os.fspath(file_or_buffer) if is_path else "<binary>"
            self.zip_reader = PyTorchFileReader(file_or_buffer)
        self._id = f"{_BEGIN}{next(_numbers)}>"
        self._records = set(self.zip_reader.get_all_records())
        self._folders = {
            "/".join(parts[:n])
            for parts in (record.split("/") for record in self._records)
            for n in range(1, len(parts))
        }
        text = self.zip_reader.get_record(".data/extern_modules").decode("utf-8")
        self.extern_modules = text.split()
        for name in self.extern_modules:
            if not module_allowed(name):
                raise ImportError(f"the archive needs the module {name}, which is not allowed")
        self.modules: dict[str, types.ModuleType] = {}
        self._builtins = {**vars(builtins), "__import__": self.__import__}

    def id(self) -> str:
        """The prefix of the names of its modules."""
        return self._id

    def python_version(self) -> str | None:
        """The version of Python that wrote the archive."""
        name = ".data/python_version"
        return self.zip_reader.get_record(name).decode() if name in self._records else None

    # ---- modules ----

    def import_module(self, name: str, package: str | None = None) -> types.ModuleType:
        """Import a module of the archive, or one that the archive takes from the program.

        Raises:
            ModuleNotFoundError: it is neither.
        """
        if name.startswith("."):
            name = importlib.util.resolve_name(name, self._without_prefix(package or ""))
        return self._load(name)

    def get_source(self, module_name: str) -> str:
        """The source of a module."""
        record = self._record_of(module_name)
        if record is None:
            raise ModuleNotFoundError(f"the archive has no source of {module_name}")
        return self.zip_reader.get_record(record).decode("utf-8")

    def _without_prefix(self, name: str) -> str:
        return name.removeprefix(f"{self._id}.")

    def _record_of(self, name: str) -> str | None:
        path = name.replace(".", "/")
        found = (r for r in (f"{path}/__init__.py", f"{path}.py") if r in self._records)
        return next(found, None)

    def _is_extern(self, name: str) -> bool:
        """Whether a module is one of the program's, or one of their parts or packages."""
        return any(
            name == extern or name.startswith(extern + ".") or extern.startswith(name + ".")
            for extern in self.extern_modules
        )

    def _is_own(self, name: str) -> bool:
        """Whether the archive has a module."""
        return self._record_of(name) is not None or name.replace(".", "/") in self._folders

    def _load(self, name: str) -> types.ModuleType:
        if name in self.modules:
            return self.modules[name]
        parent, _, last = name.rpartition(".")
        if self._record_of(name) is None and self._is_extern(name):
            module = self.modules[name] = _of_program(name)
            return module
        if not self._is_own(name):
            raise ModuleNotFoundError(
                f"the archive {self.filename} has no module {name}, and takes none of that name "
                f"from the program; it takes {self.extern_modules}",
                name=name,
            )
        if parent:
            self._load(parent)
            if name in self.modules:  # the parent has imported it
                return self.modules[name]
        module = self._make_module(name)
        if parent:
            setattr(self.modules[parent], last, module)
        return module

    def _make_module(self, name: str) -> types.ModuleType:
        record = self._record_of(name)
        module = types.ModuleType(f"{self._id}.{name}")
        is_package = record is None or record.endswith("/__init__.py")
        space = vars(module)
        space.update(
            __builtins__=self._builtins,
            __loader__=self,
            __package__=module.__name__ if is_package else module.__name__.rpartition(".")[0],
            __torch_package__=True,
        )
        if is_package:
            module.__path__ = [f"{self._id}.{name.replace('.', '/')}"]
        self.modules[name] = module
        if record is None:
            return module
        module.__file__ = f"{self._id}.{record}"
        source = self.zip_reader.get_record(record).decode("utf-8")
        lines = source.splitlines(keepends=True)
        linecache.cache[module.__file__] = (len(source), None, lines, module.__file__)
        try:
            exec(compile(source, module.__file__, "exec", dont_inherit=True), space)
        except BaseException:
            del self.modules[name]
            raise
        return module

    def __import__(
        self,
        name: str,
        globals: dict[str, Any] | None = None,
        locals: Any = None,
        fromlist: Any = (),
        level: int = 0,
    ) -> types.ModuleType:
        """What `import` means in the archive's modules."""
        full = name
        if level:
            package = self._without_prefix((globals or {})["__package__"])
            full = importlib.util.resolve_name("." * level + name, package)
        module = self._load(full)
        if not fromlist:
            return module if level else self._load(full.partition(".")[0])
        wanted = getattr(module, "__all__", ()) if "*" in fromlist else fromlist
        for part in wanted:
            if not hasattr(module, part) and self._is_own(f"{full}.{part}"):
                self._load(f"{full}.{part}")
        return module

    # ---- what else is in it ----

    def load_binary(self, package: str, resource: str) -> bytes:
        """Load bytes that `save_binary` saved."""
        return self.zip_reader.get_record("/".join([*package.split("."), resource]))

    def load_text(
        self, package: str, resource: str, encoding: str = "utf-8", errors: str = "strict"
    ) -> str:
        """Load a string that `save_text` saved."""
        return self.load_binary(package, resource).decode(encoding, errors)

    def load_pickle(self, package: str, resource: str, map_location: Any = None) -> Any:
        """Load an object that `save_pickle` saved. This may run code of the archive.

        Args:
            package: its package.
            resource: its name there.
            map_location: see `rushlight.load`.
        """

        def read(key: str, dtype: rushlight.dtype, numel: int) -> UntypedStorage:
            name, nbytes = f".data/{key}.storage", numel * dtype.itemsize
            found = self.zip_reader.get_storage_from_record(name, nbytes, rushlight.uint8)
            return found.untyped_storage()

        storages = Storages(read, map_location)

        def load_storage(pid: tuple[str, type, str, str, int]) -> TypedStorage:
            # PyTorch's keys are numbers here.
            return storages.load((*pid[:2], str(pid[2]), *pid[3:]))

        archive, plain = self, unsafe_unpickler(pickle, load_storage)

        class Unpickler(plain):
            def find_class(self, module: str, name: str) -> Any:
                if archive._record_of(module) is None and archive._is_extern(module):
                    return super().find_class(module, name)
                found: Any = archive._load(module)
                for part in name.split("."):
                    found = getattr(found, part)
                return found

        return Unpickler(io.BytesIO(self.load_binary(package, resource))).load()


def _of_program(name: str) -> types.ModuleType:
    """A module of the program; the framework also by PyTorch's name."""
    root, _, rest = name.partition(".")
    if root == "torch":
        return importlib.import_module(f"rushlight.{rest}" if rest else "rushlight")
    return importlib.import_module(name)
