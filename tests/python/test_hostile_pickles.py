"""Pickles that ask for far more than they hold: `torch.load` refuses them, at once and with little memory.

Objects of Python take a hundred bytes and more, so that no reader of them keeps to the size of a file; but a byte that
makes one and nothing else, or that has a large one copied again, is no writer's.
"""

import io
import pickle
import subprocess
import sys
import zipfile
from collections import Counter, OrderedDict

import pytest

import rushlight as torch
from rushlight._files import safe_load

MB = 1 << 20
# Loads a file; prints what that took at most, in bytes, and how it ended.
LOADS = """
import sys
import rushlight as torch

def status(name):
    return next(int(l.split()[1]) << 10 for l in open("/proc/self/status") if l.startswith(name))

torch.load(sys.argv[1] + ".small")
before = status("VmRSS:")
try:
    torch.load(sys.argv[1])
    ended = "loaded"
except Exception as error:
    ended = f"{type(error).__name__}: {error}".replace("\\n", " ")
print(status("VmHWM:") - before, ended[-300:])
"""


def file_of(data):
    """A checkpoint whose pickle is `data`."""
    stream, out = io.BytesIO(), io.BytesIO()
    torch.save(0, stream)
    with zipfile.ZipFile(stream) as plain, zipfile.ZipFile(out, "w") as file:
        for name in plain.namelist():
            is_pickle = name.endswith("data.pkl")
            file.writestr(name, data if is_pickle else plain.read(name))
    return out.getvalue()


def load_elsewhere(data, tmp_path, seconds=60):
    """(Bytes taken at most, how it ended) of loading a pickle in a process of its own."""
    path = tmp_path / "x.pt"
    path.write_bytes(file_of(data))
    (tmp_path / "x.pt.small").write_bytes(file_of(b"\x80\x02K\x01."))
    done = subprocess.run(
        [sys.executable, "-c", LOADS, path], capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, done.stderr[-2000:]
    taken, _, ended = done.stdout.strip().partition(" ")
    return int(taken), ended


def text(s):
    return b"X" + len(s).to_bytes(4, "little") + s


def shared(value, n, use):
    """`value`, which is remembered, and n uses of it."""
    return b"\x80\x02(" + value + b"r\x00\x00\x00\x000" + use * n + b"t."


CALL = b"c__builtin__\nset\n"
LARGE = b"](" + b"".join(b"J" + i.to_bytes(4, "little") for i in range(100_000)) + b"e"
# Of one to six million bytes each: what would take a gigabyte and more.
GROWING = {
    "lists": b"\x80\x02(" + b"]" * (6 * MB) + b"t.",
    "dicts": b"\x80\x02(" + b"}" * (6 * MB) + b"t.",
    "sets": b"\x80\x04(" + b"\x8f" * (6 * MB) + b"t.",
    "lists, forgotten": b"\x80\x02" + b"]0" * (6 * MB) + b"N.",
    "calls": shared(b"ccollections\nOrderedDict\n", 2 * MB, b"h\x00)R"),
    "copies of a text": shared(
        b"c_codecs\nencode\n(" + text(b"a" * MB) + text(b"latin1") + b"tq\x010", MB // 4, b"h\x00h\x01R"
    ),
    "copies of a list": shared(CALL + LARGE + b"\x85q\x010", MB // 4, b"h\x00h\x01R"),
    "copies of copies": shared(
        b"ccollections\nCounter\n" + LARGE + b"\x85Rq\x010"
        b"ccollections\nCounter\nq\x02", MB // 4, b"h\x02h\x01\x85R"
    ),
    "attributes": shared(
        b"}(" + b"".join(text(b"%06d" % i) + b"N" for i in range(50_000)) + b"uq\x010"
        b"ccollections\nOrderedDict\n", MB // 4, b"h\x00)Rh\x01b"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GROWING)
def test_pickles_that_grow(name, tmp_path):
    taken, ended = load_elsewhere(GROWING[name], tmp_path)
    assert "far more objects than its" in ended
    assert taken < 260 * MB, (taken / MB, ended)


# What the largest part of a pickle may be, and how much of it is there: objects that many bytes stand for.
USUAL = {
    "numbers": [1, -1, 300, 10**9, 0.5, None, True] * 200_000,
    "lists": [[] for _ in range(300_000)],
    "lists of lists": [[i % 5, []] for i in range(100_000)],
    "dicts": [{"a": i} for i in range(100_000)],
    "texts": [str(i) for i in range(200_000)],
    "keys": {(i, -i): i for i in range(100_000)},
    "sets": [{i, i + 1} for i in range(60_000)],
    "a set": set(range(700_000)),
    "counters": [Counter("ab") for _ in range(20_000)],
    "dicts in order": [OrderedDict() for _ in range(60_000)],
    "bytes": b"abc" * MB,
    "one list, often": [[0] * 100] * 100_000,
    "sizes": [torch.Size([i, 3]) for i in range(60_000)],
}


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("name", USUAL)
def test_usual_objects_load(name, protocol):
    stream = io.BytesIO()
    torch.save(USUAL[name], stream, pickle_protocol=protocol)
    stream.seek(0)
    assert torch.load(stream) == USUAL[name]


def test_many_parameters_load():
    """A hundred thousand: the objects of each have far more bytes than they need."""
    one = torch.nn.Parameter(torch.ones(1, 1, 1, 1))
    state = OrderedDict((f"p{i}", torch.nn.Parameter(one.detach())) for i in range(100_000))
    stream = io.BytesIO()
    torch.save(state, stream)
    stream.seek(0)
    assert len(torch.load(stream)) == 100_000


@pytest.mark.parametrize(
    ("data", "most"),
    [
        (b"\x80\x02(" + b"N" * (4 * MB) + b"t.", 26),
        (b"\x80\x02(" + b"K\x01" * (2 * MB) + b"t.", 14),
        (b"\x80\x02(" + b")" * (4 * MB) + b"t.", 26),
        (pickle.dumps([0.5 + i for i in range(500_000)], 2), 16),
        (pickle.dumps([str(i) for i in range(500_000)], 2), 16),
    ],
    ids=["None", "numbers", "tuples", "floats", "texts"],
)
def test_what_objects_take(data, most, tmp_path):
    """By the byte of a pickle: what Python's objects and lists take, and as much again to read them."""
    taken, ended = load_elsewhere(data, tmp_path)
    assert ended == "loaded" and taken < most * len(data) + 8 * MB, taken / len(data)


# ---- what is shared is small to hold, and endless to walk through ----


def doubled(depth, make):
    """Two of the last, sixty times: 2**60 elements to whoever goes through all."""
    return b"\x80\x02" + b")" + make * depth


TUPLES = doubled(60, b"2\x86")  # DUP, TUPLE2
LISTS = b"\x80\x02]" + b"".join(b"q%c0](h%ch%ce" % (i, i, i) for i in range(60))


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02}" + TUPLES[2:] + b"K\x01s.",
        b"\x80\x04\x8f(" + TUPLES[2:] + b"\x90.",
        b"\x80\x02" + CALL + b"](" + TUPLES[2:] + b"e\x85R.",
        b"\x80\x02ccollections\nCounter\n](" + TUPLES[2:] + b"e\x85R.",
        b"\x80\x02ccollections\nOrderedDict\n]" + TUPLES[2:] + b"K\x01\x86a\x85R.",
    ],
    ids=["key", "element", "set", "Counter", "OrderedDict"],
)
def test_keys_that_never_end(data, tmp_path):
    _, ended = load_elsewhere(data, tmp_path, seconds=20)
    assert "far more objects than its" in ended


CALLED = {
    name: function
    for name, function in safe_load._NAMES.items()
    if id(function) in safe_load._CALLS and not isinstance(function, torch.dtype)
}
PLACES = """
import rushlight as torch, sys, io, time
sys.path.insert(0, {root!r})
from tests.python.test_hostile_pickles import CALLED, LISTS, TUPLES, file_of

module, _, name = sys.argv[1].rpartition(".")
for value in (LISTS[2:], TUPLES[2:]):
    for n in range(1, 8):
        for place in range(n):
            parts = b"".join(value if i == place else b"N" for i in range(n))
            data = b"\\x80\\x02c%s\\n%s\\n(" % (module.encode(), name.encode()) + parts + b"tR."
            try:
                torch.load(io.BytesIO(file_of(data)))
            except Exception as error:
                assert len(str(error)) < 5000, len(str(error))
print("done")
"""


@pytest.mark.parametrize("name", CALLED)
def test_arguments_that_never_end(name):
    """Whatever is called by a file gets values that nobody can print or compare, in every place."""
    from pathlib import Path

    program = PLACES.format(root=str(Path(__file__).resolve().parents[2]))
    done = subprocess.run(
        [sys.executable, "-c", program, name], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "done\n", done.stderr[-1500:]
