"""Runs the fuzzer: `python -m tests.fuzz [beside | archives | programs] [--seconds S | --calls N] [--seed K]`.

A worker process runs programs line by line: calls of ops (tests/fuzz/programs.py), with `beside` what else is done to a
graph (tests/fuzz/beside.py), with `archives` readers of damaged files (tests/fuzz/archives.py), with `programs` texts of
TorchScript (tests/fuzz/scripts.py); before a line it writes the program and the line's number into a shared file. The parent sees that the worker died or hangs, prints the program
as Python, and starts another worker behind it. A finding is a crash, a report of a sanitizer, a hang, or an exception of a type that no
refusal has. Equal seeds make equal programs.
"""

from __future__ import annotations

import argparse
import importlib
import json
import mmap
import os
import pickle
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import warnings

from tests.fuzz import archives, beside, programs, scripts

KINDS = {"ops": programs, "beside": beside, "archives": archives, "programs": scripts}

# The last two are Python's own: of what cannot be pickled, and of numbers that meet where a tensor was replaced.
ALLOWED = (RuntimeError, TypeError, ValueError, IndexError, pickle.PicklingError, ZeroDivisionError)
# What a library says when it is used wrongly: somebody forgot a check and an explanation.
RAW_MESSAGE = re.compile(
    r"^(vector::|basic_string|std::|bad_|bad optional|map::|array::|could not (create|execute|reset)|stoi|stod|"
    r"an unknown C\+\+ exception|cannot create std::)|internal error|assert",
)
# Python's own words for numbers that do not fit, as PyTorch has them.
# As PyTorch raises them.
ASSERTIONS = (
    "Torch not compiled with CUDA enabled",
    "Padding_idx must be within num_embeddings",
)
OVERFLOWS = (
    "int too big to convert",
    "can't convert negative int to unsigned",
    "cannot convert float infinity to integer",
)
HEAD = struct.Struct("<qqqq")  # programs done, calls done, line that runs, bytes of text
SHARED_BYTES = 1 << 20
MEMORY_LIMIT = 2 << 30  # of a worker's address space; sanitizers have limits of their own


class Shared:
    """What the parent sees of its worker."""

    def __init__(self, path):
        with open(path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), SHARED_BYTES)

    def begin(self, done, calls, lines):
        text = "\n".join(lines).encode()[: SHARED_BYTES - HEAD.size]
        self.map[HEAD.size : HEAD.size + len(text)] = text
        HEAD.pack_into(self.map, 0, done, calls, 0, len(text))

    def line(self, number, calls):
        struct.pack_into("<qq", self.map, 8, calls, number)

    def read(self):
        done, calls, line, n = HEAD.unpack_from(self.map, 0)
        return (
            done,
            calls,
            line,
            self.map[HEAD.size : HEAD.size + n].decode(errors="replace").split("\n"),
        )


# ---- worker ----


def fault_of(error, also_allowed):
    """Why an exception is no proper refusal, or None."""
    message = str(error)
    if isinstance(error, NotImplementedError) or not isinstance(error, RuntimeError):
        if isinstance(error, AttributeError) and re.search(
            "has no attribute|no op is named", message
        ):
            return None
        if isinstance(error, AssertionError) and message.startswith(ASSERTIONS):
            return None
        if isinstance(error, OverflowError) and message in OVERFLOWS:
            return None
        if isinstance(error, MemoryError) and not message:
            return None  # Python's own, of 1 << 2**64; one of the library would say std::bad_alloc
        if not isinstance(error, ALLOWED + also_allowed):
            return f"{type(error).__name__}: {message[:200]}"
    if isinstance(error, RecursionError):
        return f"RecursionError: {message[:200]}"
    if RAW_MESSAGE.search(message):
        return f"the message of a library: {message[:200]}"
    return None


def signature_of(line):
    """What a line calls: the op's name, without its arguments."""
    found = re.findall(r"ops\.(?:aten\.)?(\w+)|\)\.(\w+)\(|^[a-d]\.(\w+)", line)
    return next((n for g in found for n in g if n), line[:30])


def limit_memory():
    import resource

    with open("/proc/self/maps") as f:
        if "libasan" in (text := f.read()) or "libtsan" in text:
            return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))


def work(options):
    shared = Shared(options.worker)
    warnings.simplefilter("ignore")
    maker = KINDS[options.kind]
    names = importlib.import_module(maker.NAMES)
    table_entries = maker.entries()
    limit_memory()
    messages, faults = {}, set()
    index, calls = options.start, options.done
    deadline = time.monotonic() + options.seconds
    while calls < options.calls and time.monotonic() < deadline:
        lines = maker.program(options.seed, index, table_entries)
        shared.begin(index, calls, lines)
        space = {n: getattr(names, n) for n in names.__all__}
        for number, line in enumerate(lines):
            shared.line(number, calls)
            calls += number > maker.SETUP
            try:
                exec(compile(line, "<program>", "exec"), space)
            except BaseException as error:
                fault = fault_of(error, maker.ALSO_ALLOWED)
                if fault is not None and (signature_of(line), fault[:40]) not in faults:
                    faults.add((signature_of(line), fault[:40]))
                    report({"kind": fault, "index": index, "line": number, "program": lines})
                elif options.messages:
                    text = str(error)
                    pattern = re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "N", text)[:100]
                    messages.setdefault(
                        f"{signature_of(line)}|{type(error).__name__}|{pattern}", [text[:400], line]
                    )
        index += 1
    shared.begin(index, calls, [])
    if options.messages:
        with open(options.messages, "w") as f:
            json.dump(messages, f, indent=1, sort_keys=True)


def report(finding):
    print(json.dumps(finding), flush=True)


# ---- parent ----


def start_worker(options, shared_path, index, calls, seconds, log):
    command = [sys.executable, "-m", "tests.fuzz", options.kind, "--worker", shared_path]
    command += ["--seed", options.seed]
    command += [
        "--start",
        str(index),
        "--done",
        str(calls),
        "--calls",
        str(options.calls),
        "--seconds",
        str(seconds),
    ]
    if options.messages:
        command += ["--messages", options.messages]
    return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)


def watch(process, shared, hang):
    """Waits for the worker's end; True if it had to be killed because one line took too long."""
    seen, since = None, time.monotonic()
    while True:
        try:
            process.wait(timeout=0.2)
            return False
        except subprocess.TimeoutExpired:
            pass
        done, _, line, lines = shared.read()
        if (done, line, len(lines)) != seen or not lines[0]:
            seen, since = (done, line, len(lines)), time.monotonic()
        elif time.monotonic() - since > hang:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True


def show(kind, names, seed, index, number, lines, tail=""):
    print(f"\n---- {kind}: seed {seed}, program {index}, line {number + 1}", flush=True)
    print(f"from {names} import *\n")
    for i, line in enumerate(lines[: number + 1]):
        print(line if i == number else f"with program: {line}")
    if tail:
        print(tail, flush=True)


def parts_of(text):
    """(findings that the worker reported, what else it printed)."""
    findings, rest = [], []
    for line in text.splitlines():
        if line.startswith('{"kind"'):
            findings.append(json.loads(line))
        elif "AddressSanitizer failed to allocate" not in line:  # it says so of every refused size
            rest.append(line)
    return findings, rest


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__.split("\n")[0]
    )
    parser.add_argument("kind", nargs="?", choices=KINDS, default="ops", help="what programs do")
    parser.add_argument("--seconds", type=float, default=1e9, help="end after so long")
    parser.add_argument("--calls", type=int, default=1 << 60, help="end after so many calls")
    parser.add_argument("--seed", default="0", help="chooses the programs")
    parser.add_argument("--start", type=int, default=0, help="number of the first program")
    parser.add_argument("--hang", type=float, default=60, help="seconds after which a line hangs")
    parser.add_argument("--findings", type=int, default=20, help="end after so many")
    parser.add_argument(
        "--messages", help="write one example of each error message of each op into this file"
    )
    parser.add_argument("--show", type=int, metavar="N", help="print program N and end")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--done", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    maker = KINDS[options.kind]
    if options.worker:
        work(options)
        return 0
    if options.show is not None:
        print("\n".join(maker.program(options.seed, options.show, maker.entries())))
        return 0
    if options.seconds == 1e9 and options.calls == 1 << 60:
        options.seconds = 60.0

    begin = time.monotonic()
    index, calls, found = options.start, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        shared_path = os.path.join(folder, "shared")
        with open(shared_path, "wb") as f:
            f.truncate(SHARED_BYTES)
        shared = Shared(shared_path)
        while found < options.findings:
            seconds = options.seconds - (time.monotonic() - begin)
            if seconds <= 0 or calls >= options.calls:
                break
            with open(os.path.join(folder, "log"), "w+", errors="replace") as log:
                shared.begin(index, calls, [])
                process = start_worker(options, shared_path, index, calls, seconds, log)
                hangs = watch(process, shared, options.hang)
                log.seek(0)
                findings, rest = parts_of(log.read())
            for f in findings:
                found += 1
                show(f["kind"], maker.NAMES, options.seed, f["index"], f["line"], f["program"])
            done, calls, line, lines = shared.read()
            if process.returncode == 0:
                index = done
                break
            found += 1
            kind = "hang" if hangs else f"the worker ended with {process.returncode}"
            show(kind, maker.NAMES, options.seed, done, line, lines, "\n".join(rest[:60]))
            if lines == [""]:
                print("the worker did not get to its first program")
                return 1
            index = done + 1
    seconds = time.monotonic() - begin
    print(
        f"\n{calls} calls in {seconds:.0f} s ({index - options.start} programs of seed {options.seed}), {found} findings"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
