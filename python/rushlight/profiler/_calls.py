"""Events of calls: of Python functions, of C functions by them and of modules."""

from __future__ import annotations

import os
import sys
import types
from collections import defaultdict

from rushlight.profiler._events import FunctionEvent

__all__ = ["call_events"]

# Files whose calls are the profiler's own.
_PACKAGE = os.path.dirname(os.path.dirname(__file__))
_OWN = {
    os.path.join(_PACKAGE, "profiler", "profiler.py"),
    os.path.join(_PACKAGE, "autograd", "profiler.py"),
}


def call_events(calls, thread):
    """Events of calls as `_profile_stop` tells them, without those of the profiler itself."""
    names = {}
    numbers = defaultdict(dict)  # {class of modules: {module: number}}
    hidden = []
    hierarchies = []  # for each call the modules around it and itself
    events = []
    for number, (what, begin, end, parent) in enumerate(calls):
        inside = parent >= 0 and hidden[parent]
        hierarchy = hierarchies[parent] if parent >= 0 else []
        module_number = -1
        if isinstance(what, str):
            hidden.append(inside)
            name = what
        elif isinstance(what, types.CodeType):
            # A function under `record_function` as a decorator is the program's.
            hidden.append(what.co_name != "wrapped" and (inside or what.co_filename in _OWN))
            if what not in names:
                place = f"{_short_path(what.co_filename)}({what.co_firstlineno})"
                names[what] = f"{place}: {what.co_name}"
            name = names[what]
        else:
            hidden.append(inside)
            known = numbers[type(what)]
            module_number = known.setdefault(id(what), len(known))
            name = f"nn.Module: {type(what).__name__}_{module_number}"
            hierarchy = [*hierarchy, _step(what, calls, parent)]
        hierarchies.append(hierarchy)
        if not hidden[-1]:
            events.append(
                FunctionEvent(
                    0,
                    name,
                    thread,
                    begin / 1e3,
                    end / 1e3,
                    is_python_function=True,
                    python_id=number,
                    python_parent_id=parent,
                    python_module_id=module_number,
                    module_hierarchy=hierarchy,
                )
            )
    return events


def _step(module, calls, parent):
    """What a hierarchy calls a module: the name that the module around it has for it, its class."""
    own = "TOP"
    kind = type(module).__name__
    while parent >= 0:
        around, _, _, parent = calls[parent]
        if not isinstance(around, (str, types.CodeType)):
            own = next((n for n, m in around._modules.items() if m is module), kind)
            break
    return f"{own}({kind})::forward"


def _short_path(filename: str) -> str:
    """A file's path from the longest folder of sys.path that it is in."""
    roots = [root.rstrip("/") + "/" for root in sys.path if root]
    return filename[max((len(r) for r in roots if filename.startswith(r)), default=0) :]
