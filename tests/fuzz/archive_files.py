"""Valid small files of the formats that programs are kept in, taken apart: `tests/fuzz/archives.py` damages them.

A file is its entries, by name and in order; `zipped` puts them together. Archives of TorchScript are written by hand,
since their text is what is to be damaged; the others are made by `torch.save`, `export`, `safetensors.save` and `gguf.save`.
"""

import io
import os
import struct
import tempfile
import zipfile
import zlib
from dataclasses import dataclass, field
from typing import Any

import rushlight as torch
from rushlight import gguf, nn, safetensors
from rushlight._higher_order_ops import while_loop
from rushlight.ao import _gguf_weights, _integer_weights
from rushlight.export import Dim, export, save

STORED, DEFLATED = 0, 8


@dataclass
class File:
    """A valid file, and what its program is run with."""

    entries: dict[str, bytes]
    inputs: list[tuple[Any, ...]] = field(default_factory=list)


def zipped(entries):
    """A zip file of (name, content, method) or (name, content, method, claims), with valid sums and directory.

    `claims` are fields that the directory and the header of an entry have instead: size, packed, crc, offset.
    """
    out, directory = bytearray(), bytearray()
    for name, content, method, *claimed in entries:
        claims = claimed[0] if claimed else {}
        path = name.encode()
        packed = content
        if method == DEFLATED:
            how = zlib.compressobj(1 if len(content) > 1 << 16 else 6, zlib.DEFLATED, -15)
            packed = how.compress(content) + how.flush()
        facts = {"size": len(content), "packed": len(packed), "crc": zlib.crc32(content)} | claims
        numbers = (facts["crc"], facts["packed"] & 0xFFFFFFFF, facts["size"] & 0xFFFFFFFF)
        offset = facts.get("offset", len(out)) & 0xFFFFFFFF
        common = struct.pack("<HHHIIIIHH", 20, 0x800, method, 0x210000, *numbers, len(path), 0)
        out += b"PK\x03\x04" + common + path + packed
        directory += b"PK\x01\x02" + struct.pack("<H", 20) + common
        directory += struct.pack("<HHHII", 0, 0, 0, 0, offset) + path
    n = min(len(entries), 0xFFFF)
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, n, n, len(directory), len(out), 0)
    return bytes(out + directory + end)


def unzipped(data):
    """The entries of a zip file."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


# ---- pickles of archives ----


class Object:
    """An object of a class of the archive: its attributes, or what its class is called with."""

    def __init__(self, name, state=None, called=None):
        self.name, self.state, self.called = name, state, called


class Stored:
    """A tensor on a storage of the archive."""

    def __init__(self, key, dtype, numel, sizes, strides, offset=0, grad=False):
        self.key, self.dtype, self.numel = key, dtype, numel
        self.sizes, self.strides, self.offset, self.grad = sizes, strides, offset, grad


def _text(value):
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def _global(name):
    module, _, base = name.rpartition(".")
    return b"c" + module.encode() + b"\n" + base.encode() + b"\n"


def _opcodes(value):
    if value is None:
        return b"N"
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        if 0 <= value < 256:
            return b"K" + bytes([value])
        return b"\x8a\x08" + struct.pack("<q", value)
    if isinstance(value, float):
        return b"G" + struct.pack(">d", value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return b"](" + b"".join(map(_opcodes, value)) + b"e"
    if isinstance(value, tuple):
        return b"(" + b"".join(map(_opcodes, value)) + b"t"
    if isinstance(value, dict):
        return b"}(" + b"".join(_opcodes(k) + _opcodes(v) for k, v in value.items()) + b"u"
    if isinstance(value, Stored):
        storage = ("storage", value.key, "cpu", value.numel)
        kind = _global(f"torch.{value.dtype}Storage")
        parts = [b"(", _text("storage"), kind, *map(_opcodes, storage[1:]), b"tQ"]
        parts += map(_opcodes, (value.offset, value.sizes, value.strides, value.grad))
        parts += [_global("collections.OrderedDict"), b")R"]
        return _global("torch._utils._rebuild_tensor_v2") + b"(" + b"".join(parts) + b"tR"
    if value.called is not None:
        return _global(value.name) + _opcodes(value.called) + b"R"
    return _global(value.name) + b")\x81" + _opcodes(value.state) + b"b"


def pickled(value):
    """A pickle of protocol 2."""
    return b"\x80\x02" + _opcodes(value) + b"."


def script(code, state, constants=(), root="__torch__.Net", storages=None):
    """The entries of an archive of TorchScript: `code` has texts by path, `state` the attributes of the module."""
    return {
        "net/data.pkl": pickled(Object(root, state)),
        **{f"net/code/{path}.py": text.encode() for path, text in code.items()},
        **{f"net/{key}": content for key, content in (storages or {}).items()},
        "net/constants.pkl": pickled(tuple(constants)),
        "net/version": b"10\n",
        "net/byteorder": b"little",
    }


# ---- archives of TorchScript ----

FLOATS = struct.pack("<6f", 1, 2, 3, 4, 5, 6)

LAYER = """class Layer(Module):
  __parameters__ = ["weight", ]
  __buffers__ = ["seen", ]
  weight : Tensor
  seen : Tensor
  training : bool
  scale : Final[float] = 0.5
  def forward(self: __torch__.parts.Layer,
    x: Tensor,
    n: int=2) -> Tensor:
    _0 = torch.add_(self.seen, CONSTANTS.c0)
    y = torch.linear(x, self.weight)
    for i in range(n):
      if torch.gt(i, 0):
        y0 = torch.mul(torch.add(y, i), 0.5)
      else:
        y0 = y
      y = y0
    if bool(torch.gt(torch.sum(y), 100)):
      ops.prim.RaiseException("too large", "builtins.ValueError")
    else:
      pass
    return torch.relu(y)
"""
NET = """class Net(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  first : __torch__.parts.Layer
  names : Dict[str, int]
  table : List[Tuple[int, Optional[Tensor]]]
  def forward(self: __torch__.Net,
    x: Tensor,
    words: List[str]) -> Tuple[Tensor, Dict[str, int], str]:
    first = self.first
    y = (first).forward(x, 3, )
    counts = annotate(Dict[str, int], {})
    total = 0
    for _1 in range(torch.len(words)):
      word = words[_1]
      if torch.__contains__(self.names, word):
        total = torch.add(total, (self.names)[word])
      else:
        torch._set_item(counts, word, torch.len(word))
    text = torch.format("{}:{}", total, torch.join("-", words))
    _2 = uninitialized(Tensor)
    i = 0
    more = True
    while more:
      i = torch.add(i, 1)
      more = torch.lt(i, 4)
    k, t = (self.table)[0]
    if torch.__isnot__(t, None):
      z = torch.add(y, unchecked_cast(Tensor, t))
    else:
      z = torch.sub(y, k)
    parts = torch.split(z, 1, 0)
    return (torch.cat([parts[0], torch.slice(z, 0, 0, 1)], 1), counts, text)
  def helper(self: __torch__.Net) -> int:
    return __torch__.twice(torch.len(self.names), )
def twice(n: int) -> int:
  return torch.mul(n, 2)
"""
SHAPES = """class Point(NamedTuple):
  x : float
  y : float
class Colour(Enum):
  red = 1
  blue = 2
class Face(Interface):
  def area(self, k: int) -> float:
    pass
class Box:
  sides : List[float]
  colour : __torch__.shapes.Colour
  inner : Optional[__torch__.shapes.Box]
  def __init__(self: __torch__.shapes.Box,
    n: int) -> NoneType:
    self.sides = [float(n), 2.5]
    self.colour = __torch__.shapes.Colour.red
    self.inner = None
    return None
  def area(self: __torch__.shapes.Box,
    k: int) -> float:
    a = torch.mul((self.sides)[0], (self.sides)[-1])
    return torch.mul(a, k)
class Kept:
  data : List[int]
  def __getstate__(self: __torch__.shapes.Kept) -> Tuple[int, int]:
    return ((self.data)[0], torch.len(self.data))
  def __setstate__(self: __torch__.shapes.Kept,
    state: Tuple[int, int]) -> NoneType:
    a, b = state
    self.data = torch.mul([a], b)
    return None
"""
USES = """class Net(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  box : __torch__.shapes.Box
  kept : __torch__.shapes.Kept
  start : Tuple[int, str, float]
  def forward(self: __torch__.Net,
    n: int) -> Tuple[float, __torch__.shapes.Point, List[int], bool]:
    made = __torch__.shapes.Box.__new__(__torch__.shapes.Box)
    _0 = (made).__init__(n, )
    _1, _2, _3, = self.start
    point = __torch__.shapes.Point(torch.add(_3, 1.), (made).area(_1, ))
    same = torch.eq(self.box.colour, __torch__.shapes.Colour.blue)
    inner = self.box.inner
    if torch.__is__(inner, None):
      total = 0.
    else:
      inner0 = unchecked_cast(__torch__.shapes.Box, inner)
      total = (inner0).area(2, )
    items = annotate(List[int], [])
    for i in range(n):
      if torch.eq(torch.remainder(i, 2), 0):
        _4 = torch.append(items, torch.mul(i, i))
      else:
        pass
    return (torch.add(total, point.y), point, torch.add(items, self.kept.data), same)
"""
SHORT = """class Net(Module):
  __parameters__ = []
  training : bool
  def forward(self: __torch__.Net,
    a: Tensor) -> Tensor:
    b = torch.softmax(torch.view(a, [2, -1]), 1)
    c, d = torch.max(b, 1)
    e = ops.aten.add(c, torch.to(d, 6), alpha=2)
    return torch.div(e, torch.full([2], 3, dtype=6))
"""


def scripts():
    """Archives of TorchScript."""
    weight = Stored("0", "Float", 6, (2, 3), (3, 1), grad=True)
    seen = Stored("1", "Float", 1, (1,), (1,))
    layer = Object("__torch__.parts.Layer", {"weight": weight, "seen": seen, "training": True})
    state = {
        "training": True,
        "first": layer,
        "names": {"a": 1, "b": 2},
        "table": [(3, None), (4, seen)],
    }
    one = Stored("2", "Float", 1, (), ())
    storages = {"data/0": FLOATS, "data/1": FLOATS[:4], "constants/2": FLOATS[:4]}
    texts = {"__torch__": NET, "__torch__/parts": LAYER}
    entries = script(texts, state, (one,), storages=storages)
    yield File(entries, [(torch.ones(1, 3), ["a", "c"]), (torch.full((1, 3), 9.0), ["x"])])
    blue = Object("__torch__.shapes.Colour", called=2)
    inner = Object("__torch__.shapes.Box", {"sides": [1.0], "colour": blue, "inner": None})
    box = Object("__torch__.shapes.Box", {"sides": [2.0, 3.5], "colour": blue, "inner": inner})
    kept = Object("__torch__.shapes.Kept", (7, 3))
    state = {"training": False, "box": box, "kept": kept, "start": (1, "s", 2.5)}
    yield File(script({"__torch__": USES, "__torch__/shapes": SHAPES}, state), [(4,), (0,)])
    yield File(script({"__torch__": SHORT}, {"training": True}), [(torch.arange(6.0),)])


# ---- exported programs ----


class Stack(nn.Module):
    """Parameters, buffers that are written, a constant, nested inputs and outputs."""

    def __init__(self):
        super().__init__()
        self.lin, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)
        self.lin.bias = None
        self.register_buffer("count", torch.zeros(()))
        self.shift = torch.arange(3.0)

    def forward(self, x, more, flag=True):
        self.count.add_(1)
        h = self.norm(self.lin(x)).relu() + self.shift
        a, b = h.split([1, 2], 1)
        return {"h": h.clamp(max=float("inf")), "more": [more["a"] + a, b.max(1)[0]], "n": 3}


class Branch(nn.Module):
    """Control flow with blocks."""

    def forward(self, x, i):
        y = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x * 2, (x,))
        return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + i), (i, y))


class Sized(nn.Module):
    """Sizes that differ from call to call."""

    def forward(self, x):
        return x.view(x.size(0) * 2, -1)[: x.size(0) + 1].sum(0), torch.arange(x.size(0) // 2)


def exported():
    """`.pt2` files."""
    torch.manual_seed(0)
    rows = Dim("rows", min=2, max=64)
    made = [
        (Stack().eval(), (torch.ones(2, 3), {"a": torch.ones(1)}), None),
        (Branch(), (torch.ones(2), torch.tensor(0)), None),
        (Sized(), (torch.ones(4, 6),), ({0: rows},)),
    ]
    for module, inputs, sizes in made:
        out = io.BytesIO()
        save(export(module, inputs, dynamic_shapes=sizes), out)
        yield File(unzipped(out.getvalue()), [inputs])


# ---- checkpoints, safetensors, GGUF ----


def checkpoints():
    """`.pt` files."""
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    states = [
        net.state_dict(),
        {
            "list": [1, 2.5, "text", None, True, 1 << 70, b"bytes", 1j],
            "tensors": [torch.arange(6).view(2, 3).t(), torch.ones(2, dtype=torch.bfloat16)],
            "sparse": torch.eye(3).to_sparse(),
            "csr": torch.eye(3).to_sparse_csr(),
            "parameter": nn.Parameter(torch.ones(2)),
            "size": torch.Size([1, 2]),
            "dtype": torch.float16,
            "device": torch.device("cpu"),
            "set": {1, 2},
            "quantized": torch.quantize_per_tensor(torch.ones(3), 0.5, 1, torch.quint8),
            "nested": ((), ((),), {"a": {"b": {}}}),
            "meta": torch.empty(3, device="meta"),
            "conj": torch.ones(2, dtype=torch.complex64).conj(),
        },
        torch.optim.Adam(net.parameters()).state_dict(),
        torch.ones(2).untyped_storage(),
    ]
    for state in states:
        out = io.BytesIO()
        torch.save(state, out)
        yield File(unzipped(out.getvalue()))


def safe():
    """safetensors: one entry, the whole file."""
    state = {
        "a": torch.arange(6.0).view(2, 3),
        "b": torch.ones(2, dtype=torch.bool),
        "empty": torch.empty(0, 3),
    }
    state["tiny"] = torch.ones(3, dtype=torch.bfloat16)
    yield File({"": safetensors.save(state, {"format": "pt", "more": "text"})})


def blocks():
    """GGUF: one entry, the whole file."""
    state = {"a": torch.arange(6.0).view(2, 3), "half": torch.ones(3, dtype=torch.bfloat16)}
    for i, size in {"Q8_0": 34, "Q4_0": 18, "Q4_K": 144, "Q6_K": 210}.items():
        stored = _gguf_weights.Stored(torch.ones(3, 2 * size, dtype=torch.uint8), i)
        state[i] = _integer_weights.wrap(stored, torch.float32)
    metadata = {
        "general.architecture": "llama",
        "general.alignment": 32,
        "words": ["a", "", "bc"],
        "scores": torch.ones(3),
        "flag": True,
        "large": 1 << 40,
        "small": -2,
        "share": 0.5,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.gguf")
        for given in (metadata, {"general.alignment": 8}, {}):
            gguf.save(path, given, state)
            with open(path, "rb") as stream:
                yield File({"": stream.read()})


# "program" is the reader in C++ of what "export" reads in Python.
FORMATS = {
    "script": scripts,
    "export": exported,
    "program": exported,
    "checkpoint": checkpoints,
    "safetensors": safe,
    "gguf": blocks,
}
