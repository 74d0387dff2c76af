"""The public API as text, `tests/api.txt`: a line for each name, with its parameters.

    python -m tests.api           writes the file
    python -m tests.api --print   prints what would stand there

Types are left out (tests/typed holds them). A name that another, shorter one has, too, is an
alias: `rushlight.nn.functional.relu_ = …`. docs/releasing.md says what a change means.
"""

import inspect
import re
import sys
from pathlib import Path

from tests.untouched import public_modules

FILE = Path(__file__).with_name("api.txt")
HEAD = "# The public API, written by `python -m tests.api`: docs/releasing.md.\n"


def parameters(value):
    """`(a, b=1, *, c)`, or `(...)` where Python knows no parameters."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    return re.sub(r"<module '([\w.]+)'.*?>", r"<\1>", text)


def is_ours(value, module):
    home = getattr(value, "__module__", None) or module
    return home.partition(".")[0] == "rushlight"


def members(kind):
    """The public functions and properties that a class defines, or has from private bases of ours, or
    from one in C that it alone extends."""
    kinds = [k for k in kind.__mro__ if k is kind or k.__module__.partition(".")[0] == "rushlight"]
    if any(k.__module__ != "rushlight._C" for k in kinds[1:]):
        kinds = [k for k in kinds if k is kind or k.__name__.startswith("_")]
    found = {name: member for k in reversed(kinds) for name, member in vars(k).items()}
    for name, member in sorted(found.items()):
        if name.startswith("_") or (inspect.isclass(member) and member.__module__ == "builtins"):
            continue
        if isinstance(member, property) or inspect.isgetsetdescriptor(member):
            yield name
        elif callable(getattr(member, "__func__", member)):
            yield f"{name}{parameters(getattr(member, '__func__', member))}"


def names():
    """Public names with their values and modules; not of `foreign`, which other packages' names lead to."""
    for module_name, module in sorted(public_modules().items()):
        if module_name.startswith("rushlight.foreign"):
            continue
        for name in sorted(set(getattr(module, "__all__", None) or dir(module))):
            value = getattr(module, name, None)
            if not name.startswith("_") and not inspect.ismodule(value):
                yield f"{module_name}.{name}", value, module_name


def lines():
    found = [(name, value, module) for name, value, module in names() if is_ours(value, module)]
    shortest = {}
    for name, value, _ in found:
        if callable(value):
            known = shortest.get(id(value))
            shortest[id(value)] = (
                name if known is None else min(known, name, key=lambda n: (len(n), n))
            )
    for name, value, _ in found:
        if not callable(value):
            yield name
        elif shortest[id(value)] != name:
            yield f"{name} = {shortest[id(value)]}"
        else:
            yield f"{name}{parameters(value)}"
            if inspect.isclass(value):
                yield from (f"{name}.{member}" for member in members(value))


def text():
    return HEAD + "".join(f"{line}\n" for line in lines())


if __name__ == "__main__":
    if "--print" in sys.argv:
        sys.stdout.write(text())
    else:
        FILE.write_text(text())
