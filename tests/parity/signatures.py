"""What modules hold that is their own: names, arguments, methods. As plain data, so that two processes
can compare what the same names mean to them.
"""

import importlib
import inspect
import json
import re
import sys
import warnings


def _default(value):
    if inspect.isfunction(value) or inspect.isclass(value):
        return value.__name__
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value)).replace("1.0", "1")


def _arguments(thing):
    try:
        listed = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return None
    empty = inspect.Parameter.empty
    return [
        [p.name, p.kind.name, None if p.default is empty else _default(p.default)] for p in listed
    ]


def _members(cls):
    """Public methods and attributes of a class and of those of its bases that are torchvision's."""
    found = {}
    for base in cls.__mro__:
        if (base.__module__ or "").startswith("torchvision"):
            for name in vars(base):
                if not name.startswith("_") and name not in found:
                    value = getattr(cls, name, None)
                    found[name] = _arguments(value) if callable(value) else "attribute"
    return found


def described(wanted):
    """Of {module: names}, by "module.name", the arguments and the members; None for what is missing."""
    warnings.simplefilter("ignore")
    found = {}
    for module, names in wanted.items():
        try:
            held = importlib.import_module(module)
        except ImportError:
            held = None
        for name in names:
            value = getattr(held, name, None)
            one = None
            if value is not None:
                one = {"arguments": _arguments(value)}
                if inspect.isclass(value):
                    one["members"] = _members(value)
            found[f"{module}.{name}"] = one
    return found


if __name__ == "__main__":
    print(json.dumps(described(json.load(sys.stdin))))
