"""`python -m rushlight run script.py`, `python -m rushlight check script.py`, `python -m rushlight
vision show FOLDER`.

    python -m rushlight run script.py ARGUMENTS  runs a program whose `import torch` is rushlight,
    python -m rushlight run -m module ARGUMENTS  the same for a module,
    python -m rushlight run -c code ARGUMENTS    for a string,
    python -m rushlight run command ARGUMENTS    and for a console script in PATH
    python -m rushlight check TARGET...          lists which names of torch scripts, folders or
                                                 packages use that rushlight lacks
    python -m rushlight vision show TARGET...    writes a sheet of the images in files and folders:
                                                 sheet.png, or where --out FILE says; --width and
                                                 --columns set its size

Processes that the program starts with Python begin like it.
"""

from __future__ import annotations

import os
import runpy
import shutil
import sys


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
        sys.path[0] = os.getcwd() if first == "-m" else ""
        sys.argv = [first, *rest]
        if first == "-m":
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            main = type(sys)("__main__")
            main.__builtins__ = __builtins__
            sys.modules["__main__"] = main
            exec(compile(target, "<string>", "exec"), vars(main))
        return 0
    script = first if os.path.exists(first) else shutil.which(first)
    if script is None:
        print(f"can't open file {first!r}: No such file", file=sys.stderr)
        return 2
    sys.argv = [script, *rest]
    if os.path.isfile(script):  # of a folder or an archive runpy sets the path
        sys.path[0] = os.path.dirname(os.path.abspath(script))
    else:
        del sys.path[0]
    runpy.run_path(script, run_name="__main__")
    return 0


def main(arguments: list[str]) -> int:
    """Does what the command line says; the exit status."""
    command, *rest = arguments or ["help"]
    if command == "run":
        return _run(rest)
    if command == "check" and rest and not {"-h", "--help"} & set(rest):
        from rushlight import _names_used

        return max(_names_used.check(target) for target in rest)
    if command == "vision":
        from rushlight.vision import _show

        return _show.main(rest)
    asked = command in ("help", "-h", "--help") or bool({"-h", "--help"} & set(rest))
    print(__doc__, file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
