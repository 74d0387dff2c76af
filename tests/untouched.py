"""`./dev test --untouched`: names the public functions and classes that no test has called.

A pytest plugin. Python's hook for profilers tells of every call in this process: of functions in
Python by their code, of those in C by the object. A class counts once it is made or one of the
methods that it defines has run; of types that C defines nothing shows, they are left out. What
tests run in other processes does not count.
"""

import importlib
import inspect
import pkgutil
import sys
import threading

import rushlight

_codes = set()  # by identity: hashes of code objects are slow
_builtins = set()
_made = set()


def _note(frame, event, argument):
    if event == "call":
        code = frame.f_code
        _codes.add(id(code))
        if code.co_name == "__init__" and code.co_varnames:
            _made.add(type(frame.f_locals.get(code.co_varnames[0])))
    elif event == "c_call":
        _builtins.add(id(argument))


def pytest_configure(config):
    threading.setprofile(_note)
    sys.setprofile(_note)


def public_modules():
    """Name → module, of all whose names have no underscore; as_torch changes what is imported."""
    found = {"rushlight": rushlight}
    for info in pkgutil.walk_packages(rushlight.__path__, "rushlight."):
        is_private = any(part.startswith("_") for part in info.name.split("."))
        if not is_private and info.name != "rushlight.as_torch":
            found[info.name] = importlib.import_module(info.name)
    return found


def public_callables():
    """Function or class → the shortest name that it has in a public module."""
    names = {}
    for module_name, module in public_modules().items():
        for name in getattr(module, "__all__", None) or dir(module):
            value = getattr(module, name, None)
            if name.startswith("_") or not callable(value):
                continue
            value = inspect.unwrap(value)
            home = getattr(value, "__module__", None) or module_name
            is_ours = home.partition(".")[0] == "rushlight" and hasattr(value, "__name__")
            if is_ours and (not inspect.isclass(value) or any(methods_of(value))):
                full = f"{module_name}.{name}"
                known = names.get(value)
                names[value] = full if known is None else min(known, full, key=len)
    return names


def methods_of(kind):
    """The functions in Python that a class itself defines; types of C have none."""
    for member in vars(kind).values():
        member = member.fget if isinstance(member, property) else member
        member = getattr(member, "__func__", member)
        if inspect.isfunction(member):
            yield member


def is_touched(value):
    """Whether a test has called this function, or made or used this class."""
    if inspect.isclass(value):
        return value in _made or any(map(is_touched, methods_of(value)))
    if inspect.isfunction(value):
        return id(value.__code__) in _codes
    return id(value) in _builtins


def pytest_terminal_summary(terminalreporter):
    sys.setprofile(None)
    threading.setprofile(None)
    names = public_callables()
    untouched = sorted(name for value, name in names.items() if not is_touched(value))
    terminalreporter.section(f"{len(untouched)} of {len(names)} public names were not called")
    for name in untouched:
        terminalreporter.line(name)
