"""The names that programs of `archives` use: `load(format)` makes the next damaged file, and reads it.

A reader may refuse a file, by an error that says so; it may not crash, take more than a second, take memory beyond
three times the file and a constant, or let an error of its own inside out. What has been loaded is run: it may fail
as any program may, and it is ended where it runs on.
"""

import functools
import io
import itertools
import os
import pickle
import random
import signal
import time
import zipfile

import rushlight as torch
from rushlight import gguf, safetensors
from rushlight.ao._integer_weights import IntegerWeight
from rushlight.export import load as load_exported
from tests.fuzz import archive_damage, archive_files
from tests.fuzz.names import program

__all__ = ["begin", "load", "program"]

REFUSALS = (RuntimeError, ValueError, EOFError, zipfile.BadZipFile, pickle.UnpicklingError)
# Of a program with damaged ops and values.
FAILURES = (
    *REFUSALS,
    torch.jit.Error,
    TypeError,
    IndexError,
    KeyError,
    AttributeError,
    AssertionError,
    OverflowError,
    ZeroDivisionError,
)
SECONDS = 1.0  # of the processor, for a reader
CONSTANT = 96 << 20  # bytes that a reader may take beyond three times the file
RUN_SECONDS = 0.5


class Fault(BaseException):
    """A reader did what it may not."""


class Enough(BaseException):
    """A program ran for long enough."""


@functools.cache
def valid(name):
    """The valid files of a format; they are read once, so that what readers import is there."""
    torch.set_num_threads(1)
    made = list(archive_files.FORMATS[name]())
    for file in made:
        data = file.entries.get("") or archive_files.zipped(
            [(n, c, 0) for n, c in file.entries.items()]
        )
        run(name, READERS[name](data), file.inputs)
    return made


def _sanitized():
    with open("/proc/self/maps") as f:
        text = f.read()
    return "libasan" in text or "libtsan" in text


SLOWER = 20 if _sanitized() else 1


def _load_script(data):
    return torch.jit.load(io.BytesIO(data))


def _load_checkpoint(data):
    return torch.load(io.BytesIO(data))


def _load_export(data):
    return load_exported(io.BytesIO(data))


def _load_program(data):
    return torch._C._load_exported(data, None, "model")


READERS = {
    "script": _load_script,
    "export": _load_export,
    "program": _load_program,
    "checkpoint": _load_checkpoint,
    "safetensors": safetensors.load,
    "gguf": gguf.load,
}


def _touch(value, depth=0):
    """Reads the tensors of a value."""
    if isinstance(value, IntegerWeight):
        if value.numel() < 1 << 16:
            value.dequantize()
    elif isinstance(value, torch.Tensor):
        if (
            value.numel() < 1 << 16
            and not value.is_meta
            and value.layout == torch.strided
            and not value.is_quantized
        ):
            value.detach().clone()
    elif isinstance(value, dict) and depth < 20:
        for item in value.values():
            _touch(item, depth + 1)
    elif isinstance(value, list | tuple) and depth < 20:
        for item in value:
            _touch(item, depth + 1)


def run(name, loaded, inputs):
    """What is in a file, used: programs are called, tensors are read."""
    if name == "script":
        for method in ("forward", "helper", "area"):
            if hasattr(loaded, method):
                for given in inputs if method == "forward" else [()]:
                    _touch(getattr(loaded, method)(*given))
        str(loaded.code), repr(loaded)
        _touch(dict(loaded.state_dict()))
        out = io.BytesIO()
        torch.jit.save(loaded, out)
    elif name == "program":
        torch._C._describe_exported(loaded)
        for given in inputs:
            _touch(torch._C._run_exported(loaded, given, {}))
    elif name == "export":
        module = loaded.module()
        for given in inputs:
            _touch(module(*given))
        str(loaded)
    else:
        _touch(loaded)


class _Memory:
    """How much memory the process had at most since `begin`."""

    def __init__(self):
        self.status = os.open("/proc/self/status", os.O_RDONLY)
        self.clear = os.open("/proc/self/clear_refs", os.O_WRONLY)

    def kilobytes(self, word):
        text = os.pread(self.status, 1 << 13, 0)
        at = text.index(word)
        return int(text[at + len(word) :].split(None, 1)[0])

    def begin(self):
        os.pwrite(self.clear, b"5", 0)
        self.before = self.kilobytes(b"VmRSS:")

    def taken(self):
        return (self.kilobytes(b"VmHWM:") - self.before) << 10


_memory = _Memory()


def _with_own_words(error):
    """An error with the first and the last line of its text, without the program that it quotes."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    text = lines[0] if len(lines) == 1 else f"{lines[0]} ... {lines[-1]}"
    text = text.replace("assert", "")  # a word of programs as well as of libraries that fail
    kind = ValueError if isinstance(error, ValueError | pickle.UnpicklingError) else RuntimeError
    return kind(text)


def _enough(*_):
    raise Enough


signal.signal(signal.SIGPROF, _enough)


_files = iter(())


def begin(key):
    """What the next files are made from."""
    global _files
    _files = (random.Random(f"{key}:{i}") for i in itertools.count())


def load(name):
    """Makes and reads a damaged file, and runs it."""
    rng = next(_files)
    every = valid(name)
    file = rng.choice(every)
    data, _ = archive_damage.damaged(rng, file.entries, [f.entries for f in every])
    _memory.begin()
    start = time.process_time()
    loaded = refusal = None
    try:
        loaded = READERS[name](data)
    except (*REFUSALS, torch.jit.Error) as error:  # which a program raises that restores an object
        refusal = error
    except MemoryError:
        raise Fault("the reader ran out of memory") from None
    except Exception as error:
        raise Fault(f"the reader let out {type(error).__name__}: {str(error)[:150]}") from error
    seconds, taken = time.process_time() - start, _memory.taken()
    if seconds > SECONDS * SLOWER:
        raise Fault(f"the reader took {seconds:.1f} s")
    if taken > 3 * len(data) + CONSTANT * SLOWER:
        raise Fault(f"the reader took {taken >> 20} MB for {len(data)} bytes")
    if refusal is not None:
        raise _with_own_words(refusal)
    signal.setitimer(signal.ITIMER_PROF, RUN_SECONDS * SLOWER)
    try:
        run(name, loaded, file.inputs)
    except (Enough, MemoryError):
        pass
    except FAILURES as error:
        raise _with_own_words(error) from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
