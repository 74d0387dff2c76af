"""The names that programs of `programs` use: `line(text)` adds a line to a module of Python, `compare()` runs it.

The program runs as Python, compiled by `jit.script`, and loaded from an archive of that; results, and what becomes of
the arguments, are equal, and what raises raises in each. `compared` is also what tests/parity asks, of PyTorch.
"""

import importlib.util
import io
import itertools
import sys
import tempfile
from pathlib import Path

import rushlight

__all__ = ["begin", "compare", "line"]

_lines = []
_numbers = itertools.count()


def module_of(lines, package, folder):
    """The lines as a module of Python over a package, which has `jit.script`."""
    library = package.__name__
    name = f"fuzz_program_{library}_{next(_numbers)}"
    path = Path(folder, f"{name}.py")
    head = [
        f"import {library} as torch",
        f"import {library}.nn.functional as F",
        f"from {library} import Tensor",
    ]
    path.write_text("\n".join([*head, *lines, ""]))
    spec = importlib.util.spec_from_file_location(name, path)
    made = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def plain(value):
    """A value of a program as one that compares: tensors by their types, sizes and numbers."""
    if hasattr(value, "dtype"):
        return (str(value.dtype).split(".")[-1], list(value.shape), value.tolist())
    if hasattr(value, "_asdict"):
        return (type(value).__name__, plain(value._asdict()))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [plain(item) for item in value])
    if isinstance(value, dict):
        return ("dict", [(key, plain(item)) for key, item in value.items()])
    return (type(value).__name__, value)


def outcome(function, arguments):
    """What a call gives, and what becomes of tensors among its arguments; or that it raises."""
    try:
        result = function(*arguments)
    except Exception:
        return "raises"
    return plain(result), plain([one for one in arguments if hasattr(one, "dtype")])


def runs(module, package):
    """The outcome as Python, what compiles it, and the archive."""
    eager = outcome(module.made(), module.arguments())
    scripted = package.jit.script(module.made())
    saved = io.BytesIO()
    package.jit.save(scripted, saved)
    return eager, outcome(scripted, module.arguments()), saved.getvalue()


def begin():
    """Begins a program."""
    _lines.clear()


def line(text):
    """Adds a line to the program."""
    _lines.append(text)


def compare():
    """Runs the program in three ways, which agree."""
    with tempfile.TemporaryDirectory() as folder:
        module = module_of(_lines, rushlight, folder)
        try:
            eager, scripted, archive = runs(module, rushlight)
            loaded = rushlight.jit.load(io.BytesIO(archive))
        except Exception as error:
            raise AssertionError(f"does not compile: {type(error).__name__}: {error}") from error
        finally:
            del sys.modules[module.__name__]
        again = outcome(loaded, module.arguments())
    if not eager == scripted == again:
        raise AssertionError(f"differs: {eager}\n{scripted}\n{again}")
