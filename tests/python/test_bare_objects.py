"""Objects of the extension's classes that no constructor has made: whatever is asked of them raises, or is answered."""

import subprocess
import sys

import pytest

PROGRAM = r"""
import random
import sys
import types

import rushlight as torch
import rushlight.distributed

RANDOM = random.Random(sys.argv[2])


def spaces():
    seen, waiting = {}, [torch._C]
    while waiting:
        space = waiting.pop()
        if id(space) not in seen:
            seen[id(space)] = space
            waiting += [v for v in vars(space).values() if isinstance(v, types.ModuleType) and "_C" in repr(v)]
    return list(seen.values())


def classes():
    found = {}
    def add(cls):
        if cls not in found:
            found[cls] = True
            for sub in type.__subclasses__(cls):
                if sub.__module__.startswith("rushlight._C"):
                    add(sub)
    for space in spaces():
        for value in list(vars(space).values()):
            if isinstance(value, type):
                if value.__module__.startswith("rushlight"):
                    add(value)
            elif type(value).__module__.startswith("rushlight._C"):
                add(type(value))
    t = torch.ones(2, requires_grad=True).sin()
    for value in (t, t.grad_fn, t.grad_fn._raw_saved_self, t.untyped_storage(), t.shape, t.dtype, t.device):
        add(type(value))
    return [c for c in found if not issubclass(c, BaseException)]


def bare(cls):
    made = []
    for make in (lambda: cls.__new__(cls), lambda: object.__new__(cls), lambda: type("Derived", (cls,), {}),
                 lambda: torch._C.TensorBase.__new__(cls), lambda: torch._C._FunctionBase.__new__(cls)):
        try:
            o = make()
            if isinstance(o, type):
                o = o.__new__(o)
        except (TypeError, RuntimeError, ValueError, NotImplementedError, AttributeError):
            continue
        made.append(o)
    return made


def values(o):
    t = torch.ones(2, requires_grad=True)
    return [None, 1, -1, 2**70, 1.5, "a", b"a", (), [], {}, (1, 2), [t], t, t.sin(), t.sin().grad_fn, o, type(o), object(),
            lambda *a: None, torch.device("cpu"), torch.float32, torch.ones(0), slice(None), Ellipsis, 1j]


SKIPPED = {"__class__", "__init_subclass__", "__subclasshook__", "__new__"}


def tell(text):
    sys.stderr.write(text + "\n")


def attempt(f, *args):
    try:
        f(*args)
    except Exception as e:
        if isinstance(e, (SystemError, MemoryError)):
            tell(f"{type(e).__name__}: {e}")
            sys.exit(3)


def torment(cls, o):
    for name in dir(type(o)):
        if name in SKIPPED:
            continue
        tell(f"{cls.__module__}.{cls.__qualname__}.{name}")
        attempt(getattr, o, name)
        try:
            method = getattr(o, name)
        except Exception:
            method = None
        if callable(method) and not isinstance(method, type):
            attempt(method)
            for _ in range(6):
                attempt(method, *[RANDOM.choice(values(o)) for _ in range(RANDOM.choice([1, 1, 2, 3, 4]))])
        if name.startswith("__") or not hasattr(type(o), name):
            continue
        for _ in range(4):
            attempt(setattr, o, name, RANDOM.choice(values(o)))
        attempt(delattr, o, name)
    for f in (repr, str, hash, len, iter, bool, int, float, list, dir, abs):
        attempt(f, o)
    for v in values(o):
        for f in (lambda: o == v, lambda: o < v, lambda: o + v, lambda: v @ o, lambda: o[v], lambda: v in o, lambda: o(v)):
            attempt(f)


def functions():
    # No ops; each in a process of its own, as they change what is set.
    import os

    count = 0
    for name, f in sorted(vars(torch._C).items()):
        if not isinstance(f, types.BuiltinFunctionType):
            continue
        count += 1
        pid = os.fork()
        if pid == 0:
            given = values(None)
            attempt(f)
            try:
                for _ in range(60):
                    n = int(RANDOM.random() * 5) + int(RANDOM.random() < 0.1) * 2
                    attempt(f, *[given[int(RANDOM.random() * len(given))] for _ in range(n)])
            except Exception:
                pass  # a mode that is no mode is on
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        if status != 0:
            tell(f"{name} ended with {status}")
            sys.exit(4)
    return count


names = sorted(classes(), key=lambda c: (c.__module__, c.__qualname__))
if sys.argv[1] == "count":
    print(len(names))
elif sys.argv[1] == "functions":
    print(functions())
else:
    part, parts = map(int, sys.argv[1].split("/"))
    count = 0
    for cls in names[part::parts]:
        for o in bare(cls):
            torment(cls, o)
            count += 1
    import gc
    gc.collect()
    print(count)
"""


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=300
    )


def test_there_are_classes():
    done = run("count", "0")
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 30


@pytest.mark.timeout(320)
def test_no_function_dies():
    done = run("functions", "0")
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) > 100


@pytest.mark.timeout(320)
@pytest.mark.parametrize("part", range(4))
def test_nothing_dies(part):
    done = run(f"{part}/4", str(part))
    assert done.returncode == 0, (
        f"ended with {done.returncode} at {done.stderr.splitlines()[-6:]}\n{done.stdout[-500:]}"
    )
    assert int(done.stdout.split()[-1]) > 2
