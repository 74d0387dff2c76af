"""Damages the files of `archive_files.py`: their bytes, their entries, or what stands in entries, whose sums stay valid."""

import contextlib
import json
import pickletools
import re
import struct

from tests.fuzz import archive_files as files
from tests.fuzz.archive_files import DEFLATED, STORED

# fmt: off
NUMBERS = [0, 1, 2, 3, 7, 8, 63, 64, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
           1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, -1, -2, -(1 << 31), -(1 << 63), 1 << 70]
TOKENS = [
    "9223372036854775807", "-1", "0", "1e308", "99999999999999999999", "inf", "nan", "1j", '"text"', '""', "''", "None",
    "True", "self", "x", "_", "CONSTANTS.c0", "CONSTANTS.c9", "__torch__", "__torch__.Net", "__torch__.parts.Layer",
    "__torch__.shapes.Box", "ops", "ops.aten.add", "ops.prim.device", "torch", "torch.add", "torch.zeros", "torch.ones",
    "torch.mul", "torch.append", "torch.list", "torch.jit", "aten::add", "uninitialized(Tensor)", "annotate(List[int], [])",
    "unchecked_cast(int, x)", "fork(x)", "range(9223372036854775807)", "torch.rand", "isinstance(x, int)", "[0]", "[1:]",
    "[-1:2:3]", "[...]", "[None]", ".x", ".forward", ".__class__", ".training", "(x)", "()", "[]", "{}", "(x,)",
    "Tensor", "int", "float", "bool", "str", "Any", "List[int]", "List[Tensor]", "Optional[int]", "Dict[str, Tensor]",
    "Dict[Tensor, Any]", "Tuple[int, Tensor]", "Tuple[()]", "Future[int]", "Union[int, str]", "NoneType", "number",
    "Device", "List[List[List[int]]]", "Optional[Tensor]", "class", "def", "return", "if", "else:", "elif", "for", "in",
    "while", "pass", "break", "continue", "raise", "assert", "lambda", "with", "as", "not", "and", "or", "is", "del",
    "import", "global", "try:", "yield", "+", "-", "*", "/", "//", "%", "**", "@", "|", "&", "~", "<<", "<", "==", "!=",
    "=", "+=", ":", ",", ".", "->", "(", ")", "[", "]", "{", "}", "#", "\\", "\n", "\n  ", "\n        ", "\t", "\0", "é",
]
LINES = [
    "while True:\n{i}  pass", "x = (x, x)", "y = [x, x]", "return x", "return", "break", "continue", "pass", "del x",
    "x = self", "self.training = 3", "x = torch.rand([1000000, 1000000])", "for i in (1, 2, 3):\n{i}  x = (x, i)",
    "for i in range(3):\n{i}  pass", "with torch.no_grad():\n{i}  pass", "x : int = 3", "assert False", "x.y = 2",
    "(x).__init__()", "_9 = __torch__.Net.__new__(__torch__.Net)", "x, y = x, x", "x, = [x]", "x[0] = x", "x += 1",
    "{p}.forward(x)", "if x is None:\n{i}  return x\n{i}else:\n{i}  x = 1", "x = [y for y in x]", "x = {{y: y for y in x}}",
    "x = fork(self.forward, x)", "x = torch.join(x, x)", 'x = torch.mul("a", 9223372036854775807)', "x = 1 if x else 2",
]
SNIPPETS = [
    b"N", b"]", b"}", b")", b"0", b"1", b"2", b"(", b"K\x01", b"a", b"e", b"s", b"u", b"b", b"R", b"\x81", b"Q", b"t", b"\x85",
    b"\x86", b"\x87", b"d", b"l", b"\x88", b"\x89", b"\x8f", b"\x90", b"\x94", b"h\x00", b"h\x05", b"q\x00", b"j\x00\x00\x00\x00",
    b".", b"\x93", b"\x80\x02", b"\x80\x04", b"\x95" + bytes(8), b"G" + bytes(8), b"\x8a\x09" + b"\xff" * 9, b"C\x01a",
    b"\x96\x01" + bytes(7) + b"a", b"\x91", b"\x92", b"o", b"I1\n", b"ccollections\nOrderedDict\n)R", b"c__torch__\nNet\n)\x81",
    b"ctorch\ndevice\n", b"ctorch._utils\n_rebuild_tensor_v2\n", b"cos\nsystem\n", b"cbuiltins\ncomplex\n", b"X\x01\x00\x00\x00a",
    b"c__torch__.shapes\nColour\nK\x02R", b"c__torch__.shapes\nPoint\n)R", b"](" + b"K\x07" * 20 + b"e", b"ctorch\nFloatStorage\n",
]
OTHERS = [None, True, 0, 1, -1, 3, 1 << 31, 1 << 62, 1 << 70, 1.5, 1e300, "", "x", "s0", "__class__", "a.b", [], {}, [[]],
          {"as_int": 3}, {"as_none": ()}, {"name": "x"}, {"as_tensor": {"name": "x"}}, "x" * 3000, float("nan"),
          "Symbol('s0', positive=True, integer=True)", "torch.ops.aten.add.Tensor", "torch.ops.aten.zeros.default",
          "torch.ops.higher_order.cond", "_operator.pow", "Pow(Integer(9), Integer(16))", "Mul(s0, s0, s0)",
          {"as_ints": [1 << 40]}, {"as_expr": {"expr_str": "FloorDiv(Integer(1), Integer(0))"}}, "CleanDiv(1, 0)"]
# fmt: on
_TOKEN = re.compile(r"\"[^\"\n]*\"|\w+|\s+|[^\w\s]")


def bytes_damaged(rng, data, other):
    """Some bytes changed, cut out, doubled, or taken from another file."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if len(data) < 2:
            break
        at, what = rng.randrange(len(data)), rng.randrange(9)
        if what <= 2:
            data[at] ^= 1 << rng.randrange(8)
        elif what == 3:
            data[at] = rng.randrange(256)
        elif what == 4:
            kind = rng.choice("HIQ")
            n = struct.calcsize(kind)
            data[at : at + n] = struct.pack("<" + kind, rng.choice(NUMBERS) & ((1 << (8 * n)) - 1))
        elif what == 5:
            del data[at : at + rng.choice((1, 2, 4, 16, 999999))]
        elif what == 6:
            part = data[at : at + rng.choice((1, 4, 16, 64))]
            data[at:at] = part * rng.choice((1, 2, 9))
        elif what == 7:
            data[at:at] = rng.randbytes(rng.choice((1, 2, 4, 16)))
        elif other:
            start = rng.randrange(len(other))
            n = rng.choice((4, 16, 64, 999))
            data[at : at + n] = other[start : start + n]
    return bytes(data)


def text_damaged(rng, text):
    """A program with other tokens or lines."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if rng.random() < 0.35:
            text = _lines_damaged(rng, text)
            continue
        tokens = _TOKEN.findall(text)
        if not tokens:
            return text
        at, what = rng.randrange(len(tokens)), rng.random()
        if tokens[at].isspace() and rng.random() < 0.8:
            at = (at + 1) % len(tokens)
        if what < 0.3:
            tokens[at] = rng.choice(TOKENS)
        elif what < 0.55:
            tokens[at] = rng.choice(tokens)
        elif what < 0.65:
            del tokens[at]
        elif what < 0.8:
            tokens.insert(at, rng.choice(TOKENS))
        elif what < 0.9:
            there = rng.randrange(len(tokens))
            tokens[at], tokens[there] = tokens[there], tokens[at]
        elif what < 0.95:
            tokens[at] *= rng.choice((2, 3, 200, 3000))
        else:
            n = rng.choice((3, 100, 3000))
            around = rng.choice(
                ("()", "[]", ("-", ""), ("not ", ""), ("List[", "]"), ("(x, ", ")"))
            )
            tokens[at] = around[0] * n + tokens[at] + around[1] * n
        text = "".join(tokens)
    return text


def _lines_damaged(rng, text):
    lines = text.split("\n")
    at, what = rng.randrange(len(lines)), rng.randrange(7)
    indent = re.match(" *", lines[at])[0]
    if what == 0:
        lines[at:at] = [lines[at]] * rng.choice((1, 2, 30, 300))
    elif what == 1:
        del lines[at : at + rng.choice((1, 1, 2, 5))]
    elif what == 2:
        there = rng.randrange(len(lines))
        lines[at], lines[there] = lines[there], lines[at]
    elif what == 3:
        lines[at] = rng.choice(("", " ", "  ", "    ", "\t")) + lines[at].lstrip(" ")
    elif what == 4:
        lines.insert(at, indent + rng.choice(lines).lstrip(" "))
    else:
        line = rng.choice(LINES).format(i=indent, p="__torch__.Net")
        lines[at:at] = [indent + line] * rng.choice((1, 1, 1, 3, 40))
    return "\n".join(lines)


_places: dict[bytes, list[int]] = {}


def _opcodes_of(data):
    """Where the opcodes of a pickle begin; nothing of what is none."""
    if data not in _places:
        found = []
        with contextlib.suppress(Exception):  # what is damaged already ends somewhere
            found += [at for _, _, at in pickletools.genops(data)]
        if len(_places) > 256:
            _places.clear()
        _places[data] = [*found, len(data)]
    return _places[data]


def pickle_damaged(rng, data, other):
    """A pickle with other opcodes or arguments."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = _opcodes_of(data)
        if len(places) < 3:
            return bytes_damaged(rng, data, other)
        i = rng.randrange(len(places) - 1)
        begin, end = places[i], places[i + 1]
        code, argument, what = data[begin : begin + 1], data[begin + 1 : end], rng.random()
        if what < 0.2:
            made = rng.choice(SNIPPETS)
        elif what < 0.4:
            made = rng.choice(SNIPPETS) * rng.choice((1, 1, 1, 2, 2000)) + data[begin:end]
        elif what < 0.5:
            made = b""
        elif what < 0.6:
            made = data[begin:end] * rng.choice((2, 2, 3, 1000))
        elif what < 0.7:
            j = rng.randrange(len(places) - 1)
            made = data[places[j] : places[j + 1]]
        elif what < 0.8:
            made = b"\x8a\x09" + (rng.choice(NUMBERS) & ((1 << 72) - 1)).to_bytes(9, "little")
        elif what < 0.85:
            n = rng.choice((1100, 20000))
            made = rng.choice((b"]", b"N\x85", b"}", b"(")) + data[begin:end]
            made = made * n if len(made) < 4 else b"]" * n + b"a" * (n - 1)
        elif code in b"Xc" and argument:
            made = code + bytes_damaged(rng, argument, other)
        else:
            made = rng.choice((code, argument, code + argument[:1]))
        data = data[:begin] + made + data[end:]
    return data


def _walk(value, path=()):
    if path:
        yield path
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(part, dict | list):
            yield from _walk(part, (*path, key))
        else:
            yield (*path, key)


def json_damaged(rng, data, other):
    """A record with other values, without some, or with some twice."""
    try:
        text = _record_damaged(rng, json.loads(data))
    except (ValueError, RecursionError):  # it was damaged before, or is nested too deep
        return bytes_damaged(rng, data, other)
    if rng.random() < 0.02:
        n = rng.choice((500, 3000))
        text = text.replace(b"[", b"[" * n, 1).replace(b"]", b"]" * n, 1)
    return text


def _record_damaged(rng, record):
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        places = list(_walk(record)) if isinstance(record, dict | list) else []
        if not places:
            break
        path = rng.choice(places)
        holder = _at(record, path[:-1])
        key, what = path[-1], rng.random()
        if what < 0.35:
            holder[key] = rng.choice(OTHERS)
        elif what < 0.45:
            del holder[key]
        elif what < 0.6:
            holder[key] = json.loads(json.dumps(_at(record, rng.choice(places))))
        elif what < 0.7 and isinstance(holder, list):
            holder[key:key] = [holder[key]] * rng.choice((1, 2, 300))
        elif what < 0.8 and isinstance(holder, dict):
            holder[rng.choice((str(key) + "_", "name", "as_int", "as_name"))] = holder.pop(key)
        elif isinstance(holder[key], int):
            holder[key] = rng.choice(NUMBERS)
        elif isinstance(holder[key], str):
            holder[key] = text_damaged(rng, holder[key])
        else:
            holder[key] = [holder[key]] if rng.random() < 0.5 else {"as_tensor": holder[key]}
    return json.dumps(record).encode()


def _at(record, path):
    for key in path:
        record = record[key]
    return record


def entry_damaged(rng, name, content, other):
    """What stands in an entry, changed in the way of its kind."""
    if name.endswith(".py"):
        return text_damaged(rng, content.decode(errors="replace")).encode(errors="replace")
    if name.endswith((".pkl", ".pt")):
        return pickle_damaged(rng, content, other)
    if name.endswith(".json"):
        return json_damaged(rng, content, other)
    return bytes_damaged(rng, content or b"\0\0", other)


def _entries_damaged(rng, entries):
    """A list of entries with some cut, doubled, missing, renamed, swapped, compressed, or with false claims."""
    rows = [(name, content, STORED, {}) for name, content in entries.items()]
    for _ in range(rng.choice((1, 1, 2, 3))):
        if not rows:
            break
        i, j, what = rng.randrange(len(rows)), rng.randrange(len(rows)), rng.randrange(11)
        name, content, method, claims = rows[i]
        if what == 0:
            rows[i] = (name, content[: rng.randrange(len(content) + 1)], method, claims)
        elif what == 1:
            rows.insert(j, rows[i])
        elif what == 2:
            del rows[i]
        elif what == 3:
            rows[i], rows[j] = (
                (name, rows[j][1], method, claims),
                (rows[j][0], content, method, claims),
            )
        elif what == 4:
            rows[i] = (
                rng.choice((rows[j][0], name + "x", "/" + name, "../" + name, "", "net/", "é")),
                *rows[i][1:],
            )
        elif what == 5:
            rows[i] = (name, content, DEFLATED, claims)
        elif what == 6:
            filler = rng.choice(
                (b"\0", b" ", b"N", b"x=1\n", b"(", b"]", b"[", b'{"a":', content or b"a")
            )
            n = rng.choice((1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 22))
            rows[i] = (name, (content + filler * (n // len(filler)))[:n], DEFLATED, claims)
        elif what == 7:
            fields = {
                rng.choice(("size", "packed", "crc", "offset")): rng.choice(NUMBERS) & 0xFFFFFFFF
            }
            rows[i] = (name, content, rng.choice((STORED, DEFLATED)), fields)
        elif what == 8:
            rows.insert(j, (f"{name}_{rng.randrange(9)}", content, method, claims))
        elif what == 9:
            rng.shuffle(rows)
        else:
            rows[i] = (name, content, rng.choice((1, 9, 12, 99)), claims)
    return rows


def damaged(rng, entries, others):
    """One file, damaged: its bytes, and on which layer."""
    other = rng.choice(list(rng.choice(others).values()))
    if "" in entries:  # no zip file
        whole = entries[""]
        if rng.random() < 0.5:
            return bytes_damaged(rng, whole, other), "bytes"
        n = struct.unpack("<Q", whole[:8])[0]
        header = json_damaged(rng, whole[8 : 8 + n], other)
        return struct.pack("<Q", len(header)) + header + whole[8 + n :], "inside"
    layer = rng.choices(("bytes", "entries", "inside"), (1, 2, 6))[0]
    if layer == "bytes":
        rows = [(name, content, STORED) for name, content in entries.items()]
        return bytes_damaged(rng, files.zipped(rows), other), layer
    if layer == "entries":
        return files.zipped(_entries_damaged(rng, entries)), layer
    names = [name for name in entries if name.endswith((".py", ".pkl", ".json"))]
    name = rng.choice(names if rng.random() < 0.9 else list(entries))
    changed = entry_damaged(rng, name, entries[name], other)
    rows = [(n, changed if n == name else c, STORED) for n, c in entries.items()]
    return files.zipped(rows), layer
