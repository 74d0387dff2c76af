"""`python -m rushlight run script.py`, `python -m rushlight check script.py`, `python -m rushlight
vision show FOLDER`.

    python -m rushlight run script.py ARGUMENTS  runs a program whose `import torch` is rushlight,
    python -m rushlight run -m module ARGUMENTS  the same for a module,
    python -m rushlight run -c code ARGUMENTS    for a string,
    python -m rushlight run command ARGUMENTS    and for a console script in PATH
    python -m rushlight --version                says which version this is
    python -m rushlight check TARGET...          lists which names of torch scripts, folders or
                                                 packages use that rushlight lacks
    python -m rushlight vision show TARGET...    writes a sheet of the images in files and folders:
                                                 sheet.png, or where --out FILE says; --width and
                                                 --columns set its size

Processes that the program starts with Python begin like it.
"""

from __future__ import annotations

import builtins
import importlib.util
import io
import os
import runpy
import shutil
import sys
import types
import zipfile
from collections.abc import Callable
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from typing import Any

from rushlight import _C

_HELP = {"-h", "--help"}
_VERSION = {"-V", "--version"}


def _run(arguments: list[str]) -> int:
    """Runs a program as Python would, with the alias in place."""
    if not arguments:
        print("nothing to run: a script, -m module or -c code is missing", file=sys.stderr)
        return 2
    from rushlight import as_torch

    as_torch.for_children()
    first, *rest = arguments
    if first in ("-m", "-c"):
        if not rest:
            print(f"argument expected for the {first} option", file=sys.stderr)
            return 2
        target, *rest = rest
        sys.argv = [first, *rest]
        sys.path[0] = os.getcwd() if first == "-m" else ""
        main = _fresh_main()
        if first == "-m":
            return _run_program(lambda: _run_module(target, True))
        return _run_program(lambda: exec(compile(target, "<string>", "exec", 0, True), vars(main)))
    script = first if os.path.exists(first) else shutil.which(first)
    path = os.path.join(os.getcwd(), script or first)  # of scripts Python makes no more of it
    if script is None:
        print(
            f"{sys.executable}: can't open file {path!r}: [Errno 2] No such file or directory",
            file=sys.stderr,
        )
        return 2
    sys.argv = [script, *rest]
    if os.path.isdir(path) or zipfile.is_zipfile(path):
        sys.path[0] = path
        _fresh_main()
        return _run_program(lambda: _run_module("__main__", False))
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    return _run_program(lambda: _run_file(path, _fresh_main()))


def _fresh_main() -> types.ModuleType:
    """The module that the program is."""
    main: Any = types.ModuleType("__main__")
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    return main


def _run_module(name: str, names_itself: bool) -> None:
    """A module, or what a folder or an archive in sys.path[0] has to be run."""
    run: Any = vars(runpy)["_run_module_as_main"]  # what the interpreter calls
    run(name, names_itself)


def _run_file(path: str, main: Any) -> None:
    """A script."""
    with io.open_code(path) as file:
        content = file.read()
    if content[:4] == importlib.util.MAGIC_NUMBER:
        loader: Any = SourcelessFileLoader("__main__", path)
        code = loader.get_code("__main__")
    else:
        loader = SourceFileLoader("__main__", path)
        code = compile(content, path, "exec", 0, True)
    main.__file__, main.__loader__, main.__cached__ = path, loader, None
    exec(code, vars(main))


def _run_program(run: Callable[[], Any]) -> int:
    """Runs the program; a traceback of what ends it begins with its own frames."""
    try:
        run()
    except SystemExit:
        raise
    except BaseException:
        show = sys.excepthook  # the program may have put its own there

        def show_program(kind: Any, error: Any, trace: Any) -> None:
            while trace is not None and trace.tb_frame.f_code.co_filename in _RUNNER:
                trace = trace.tb_next
            show(kind, error.with_traceback(trace), trace)

        sys.excepthook = show_program
        raise
    return 0


_RUNNER = (__file__, runpy.__file__, "<frozen runpy>")


def main(arguments: list[str]) -> int:
    """Does what the command line says; the exit status."""
    command, *rest = arguments or ["help"]
    first = rest[0] if rest else ""
    if command in _VERSION or (command == "run" and first in _VERSION):
        print(f"rushlight {_C._version}")
        return 0
    if command == "run" and first not in _HELP:
        return _run(rest)
    if command == "check" and rest and all(rest) and not _HELP & set(rest):
        from rushlight.foreign import check

        return max(check.check(target) for target in rest)
    if command == "vision":
        from rushlight.vision import _show

        return _show.main(rest)
    asked = command in ("help", *_HELP) or bool(_HELP & set(rest))
    print(__doc__, file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
