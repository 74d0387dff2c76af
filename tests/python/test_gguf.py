"""Files of GGUF and weights in blocks: numbers bit for bit, layers, what files may hold, and files that lie."""

import copy
import io
import struct

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.ao import _gguf_weights, _integer_weights
from tests.ops.reference_decoding import gguf_numbers
from tests.python import choices

SIZES = {"Q8_0": (32, 34), "Q4_0": (32, 18), "Q4_K": (256, 144), "Q6_K": (256, 210)}
KINDS = list(SIZES)
RNG = np.random.default_rng(0)
# Where numbers of 16 bits stand in a block.
SCALES = {"Q8_0": (0,), "Q4_0": (0,), "Q4_K": (0, 2), "Q6_K": (208,)}


def blocks(kind, rows, count, scale=None):
    """Any codes; scales are any finite numbers, or of the size of `scale`."""
    made = RNG.integers(0, 256, (rows, count, SIZES[kind][1]), np.uint8)
    for at in SCALES[kind]:
        halves = np.frombuffer(RNG.bytes(2 * rows * count), np.float16).reshape(rows, count, 1)
        if scale is not None:
            halves = RNG.uniform(-scale, scale, (rows, count, 1)).astype(np.float16)
        halves = np.where(np.isfinite(halves), halves, np.float16(1))
        made[..., at : at + 2] = halves.view(np.uint8)
    return made.reshape(rows, -1)


# Scales with which the numbers of blocks are of the size that weights of networks have.
USUAL = {"Q8_0": 0.0014, "Q4_0": 0.02, "Q4_K": 3e-4, "Q6_K": 8e-5}


def weight(kind, rows=50, inputs=512, dtype=torch.float32):
    made = blocks(kind, rows, inputs // SIZES[kind][0], USUAL[kind])
    return _integer_weights.wrap(_gguf_weights.Stored(torch.from_numpy(made), kind), dtype)


def layer(kind, rows=50, inputs=512):
    made = nn.Linear(inputs, rows)
    made.weight = nn.Parameter(weight(kind, rows, inputs), requires_grad=False)
    return made


# ---- weights ----


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_those_of_the_format(kind):
    made = blocks(kind, 70, 3)
    stored = _gguf_weights.Stored(torch.from_numpy(made), kind)
    expected = gguf_numbers(made, kind)
    for layout in (stored, stored.packed(), stored.packed().stored()):
        assert layout.size == expected.shape
        assert np.array_equal(layout.numbers().numpy().view(np.int32), expected.view(np.int32))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 2, 8, 33])
def test_layers_multiply_by_the_numbers(kind, rows):
    net = layer(kind)
    x = torch.randn(2, rows, 512)
    found = net(x)
    numbers = net.weight.dequantize()
    # Beside what the input is rounded to, sums are exact but for float32.
    parts = x.unflatten(-1, (-1, SIZES[kind][0]))
    steps = parts.abs().amax(-1, keepdim=True) / 127
    rounded = ((parts * steps.reciprocal()).round() * steps.double()).flatten(-2)
    expected = nn.functional.linear(rounded, numbers.double(), net.bias.double())
    assert torch.allclose(
        found.double(), expected, rtol=1e-5, atol=1e-5 * expected.abs().max().item()
    )
    exact = nn.functional.linear(x, numbers, net.bias)
    assert (found - exact).abs().max() < 0.02 * exact.abs().max()


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_has_the_same_bits_beside_any_others(kind):
    net, x = layer(kind), torch.randn(40, 512)
    whole = net(x)
    for n in (1, 3, 16, 17):
        assert torch.equal(torch.cat([net(part) for part in x.split(n)]), whole)


@pytest.mark.parametrize("kind", KINDS)
def test_sums_at_the_ends_of_the_codes_are_exact(kind):
    numbers, size = SIZES[kind]
    for byte in (0x00, 0x7F, 0x80, 0xFF):
        made = np.full((20, 4 * size), byte, np.uint8).reshape(20, 4, size)
        for at in SCALES[kind]:
            made[..., at : at + 2] = np.array([1], np.float16).view(np.uint8)
        held = _gguf_weights.Stored(torch.from_numpy(made.reshape(20, -1)), kind)
        for sign in (1.0, -1.0):
            x = torch.full((35, 4 * numbers), 127 * sign)
            expected = x.double() @ held.numbers().t().double()
            assert torch.allclose(held.linear(x, None).double(), expected, rtol=2e-7, atol=0)


_BITS = """
import hashlib
import numpy as np
from tests.python.test_gguf import KINDS, layer
torch.manual_seed(0)
torch.set_num_threads({threads})
outs = []
for kind in KINDS:
    net = layer(kind, 300, 768)
    net.bias.data = torch.rand(300)
    outs += [net(torch.rand(rows, 768) * 3 - 1) for rows in (1, 2, 8, 9, 70)]
print(hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in outs)).hexdigest())
"""


def test_bits_depend_on_neither_threads_nor_processor():
    found = {
        (level, threads): choices.run(_BITS.format(threads=threads), RUSHLIGHT_CPU=level)[0]
        for level in choices.instruction_sets()
        for threads in (1, 2, 3, 5)
    }
    assert len(set(found.values())) == 1, found


@pytest.mark.parametrize("kind", KINDS)
def test_embeddings_take_rows(kind):
    net = nn.Embedding(50, 512)
    net.weight = nn.Parameter(weight(kind), requires_grad=False)
    indices = torch.tensor([[3, 49, 0], [3, 16, 31]])
    expected = net.weight.dequantize()[indices]
    assert torch.equal(net(indices), expected)
    nn.functional.linear(torch.zeros(1, 512), net.weight)  # packs it
    assert isinstance(net.weight._layout, _gguf_weights.Panels)
    assert torch.equal(net(indices), expected)
    assert net(torch.zeros(0, dtype=torch.int64)).shape == (0, 512)
    for bad in (50, -1):
        with pytest.raises(IndexError, match="out of range"):
            net(torch.tensor([bad]))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_copied_moved_saved_and_loaded(kind):
    net = layer(kind)
    x = torch.randn(3, 512)
    before = net.weight.dequantize()
    twin = copy.deepcopy(net)
    expected = net(x)  # from here on packed, beside a twin that is not
    assert torch.equal(twin(x), expected) and torch.equal(net.weight.dequantize(), before)
    half = copy.deepcopy(net).to(torch.bfloat16)
    assert half.weight.dtype == torch.bfloat16 and half(x.bfloat16()).dtype == torch.bfloat16
    for weights_only in (True, False):
        for source in (net, layer(kind)):
            stream = io.BytesIO()
            torch.save(source.state_dict(), stream)
            assert len(stream.getvalue()) < 50 * 512 * 4 / 2
            stream.seek(0)
            read = torch.load(stream, weights_only=weights_only)
            other = layer(kind)
            other.load_state_dict(read)
            assert torch.equal(other(x), source(x))
    with pytest.raises(RuntimeError, match="same sizes and layout"):
        layer("Q8_0" if kind != "Q8_0" else "Q4_0").load_state_dict(net.state_dict())
    with pytest.raises(NotImplementedError, match="dequantize"):
        net.weight + 1
    assert f"IntegerWeight({kind}, size=(50, 512)" in repr(net.weight)


def test_gradients_of_inputs_are_those_of_the_numbers():
    net = layer("Q4_K")
    x = torch.randn(3, 512, requires_grad=True)
    net(x).sum().backward()
    assert torch.allclose(x.grad, net.weight.dequantize().sum(0).expand(3, -1), atol=1e-4)


def test_what_a_pickle_tells_is_not_trusted():
    stored = weight("Q4_0")._layout
    panels = stored.packed()
    for name, parts in (
        ("stored", (stored.blocks, "Q9_9")),
        ("stored", (stored.blocks[:, :-1], "Q4_0")),
        ("stored", (stored.blocks.float(), "Q4_0")),
        ("stored", ("Q4_0", stored.blocks)),
        ("panels", (panels.panels, "Q4_0", 5000)),
        ("panels", (panels.panels, "Q4_0", -1)),
        ("panels", (panels.panels[:, :100], "Q4_0", 50)),
        ("panels", (panels.panels, "Q4_0", "50")),
    ):
        with pytest.raises((TypeError, RuntimeError)):
            _integer_weights.rebuilt(name, parts, torch.float32)


# ---- files ----

METADATA = {
    "general.architecture": "llama",
    "a.bool": True,
    "a.count": 7,
    "a.negative": -3,
    "a.large": 1 << 40,
    "a.float": 0.5,
    "a.text": "naïve ▁",
    "tokens": ["<s>", "", "▁the"],
    "scores": torch.tensor([0.5, -1.0]),
    "types": torch.tensor([1, 2, 3], dtype=torch.int32),
    "byte": torch.tensor(200, dtype=torch.uint8),
    "flags": [True, False],
    "numbers": [1, 2, 70000],
    "empty": [],
}
DTYPES = [
    *(torch.float32, torch.float16, torch.bfloat16, torch.float64),
    *(torch.int8, torch.int16, torch.int32, torch.int64),
]


def tensors():
    made = {str(dtype): torch.randn(3, 5).mul(9).to(dtype) for dtype in DTYPES}
    made |= {kind: weight(kind, 7, 512) for kind in KINDS}
    return made | {
        "four": torch.randn(2, 3, 1, 4),
        "none": torch.zeros(0, 3),
        "number": torch.tensor(2.0),
    }


def same(a, b):
    if (isinstance(a, torch.Tensor) and a.dim() > 0) or isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    return a == b and type(a) is type(b)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    made = tmp_path_factory.mktemp("gguf") / "net.gguf"
    torch.manual_seed(0)
    torch.gguf.save(made, METADATA, tensors())
    return made


@pytest.mark.parametrize("mapped", [True, False])
def test_files_hold_what_is_saved(path, mapped, tmp_path):
    metadata, found = torch.gguf.load(path, mmap=mapped)
    assert list(metadata) == list(METADATA) and list(found) == list(tensors())
    for key, value in METADATA.items():
        if key in ("flags", "numbers", "empty"):
            assert list(metadata[key]) == value
        else:
            assert same(value.item() if key == "byte" else value, metadata[key]), key
    again = tmp_path / "again.gguf"
    torch.gguf.save(again, metadata | {"byte": METADATA["byte"]}, found)
    assert again.read_bytes() == path.read_bytes()
    from_bytes = torch.gguf.load(path.read_bytes())[1]
    for name, tensor in found.items():
        other = from_bytes[name]
        assert tensor.shape == other.shape and tensor.dtype == other.dtype
        if name in KINDS:
            tensor, other = tensor.dequantize(), other.dequantize()
        assert torch.equal(tensor, other)


def test_what_files_cannot_hold_is_refused(tmp_path):
    path = tmp_path / "net.gguf"
    for metadata, made, error, text in (
        ({"a": None}, {}, TypeError, "the value 'a' must be a number"),
        ({"a": [1, "b"]}, {}, TypeError, "the value 'a'"),
        ({"a": torch.ones(2, 2)}, {}, TypeError, "the value 'a'"),
        ({"general.alignment": 12}, {}, ValueError, "power of two"),
        ({}, {"x": torch.ones(2).cfloat()}, TypeError, "cannot hold 'x'"),
        ({}, {"x": torch.ones(1, 1, 1, 1, 1)}, ValueError, "five|more than four"),
        ({}, {"x": 3}, TypeError, "cannot hold 'x'"),
    ):
        with pytest.raises(error, match=text):
            torch.gguf.save(path, metadata, made)
    assert not path.exists()


def text(s):
    data = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(data)) + data


def file(values=(), entries=(), data=b"", version=3, counts=None, align=32):
    tensors_, values_ = counts or (len(entries), len(values))
    head = (
        b"GGUF"
        + struct.pack("<IQQ", version, tensors_, values_)
        + b"".join(values)
        + b"".join(entries)
    )
    return head + bytes(-len(head) % align) + data


def value(key, kind, data):
    return text(key) + struct.pack("<I", kind) + data


def entry(name, shape, kind, at):
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, at)


LIES = {
    "does not begin with GGUF": b"GGML" + bytes(40),
    "needs 4 bytes": b"GG",
    "versions 2 and 3": file(version=1),
    "big-endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "number of tensors is": file(counts=(1 << 40, 0)),
    "number of values is": file(counts=(0, 1 << 60)),
    "two values are called 'a'": file([value("a", 0, b"1")] * 2),
    "unknown type 13": file([value("a", 13, b"1")]),
    "a string at byte": file([value("a", 8, struct.pack("<Q", 1 << 50))]),
    "numbers, more than the file": file([value("a", 9, struct.pack("<IQ", 6, 1 << 62))]),
    "strings, more than the file": file([value("a", 9, struct.pack("<IQ", 8, 1 << 62))]),
    "array of arrays": file([value("a", 9, struct.pack("<IQ", 9, 1))]),
    "general.alignment must": file([value("general.alignment", 4, struct.pack("<I", 0))]),
    "must be a power of two": file([value("general.alignment", 4, struct.pack("<I", 24))]),
    "of type uint32": file([value("general.alignment", 10, struct.pack("<Q", 32))]),
    "two tensors are called 'x'": file(
        entries=[entry("x", (1,), 0, 0), entry("x", (1,), 0, 32)], data=bytes(64)
    ),
    "not all in the file": file(entries=[entry("x", (9,), 0, 0)], data=bytes(32)),
    "of the tensor 'y' are not all": file(entries=[entry("y", (1,), 0, 1 << 40)], data=bytes(32)),
    "two tensors overlap": file(
        entries=[entry("x", (9,), 0, 0), entry("y", (1,), 0, 32)], data=bytes(64)
    ),
    "not aligned to 32": file(entries=[entry("x", (1,), 0, 4)], data=bytes(32)),
    "has 5 dimensions": file(entries=[entry("x", (1,) * 5, 0, 0)], data=bytes(32)),
    "'x' is too large": file(entries=[entry("x", (1 << 32, 1 << 32), 0, 0)], data=bytes(32)),
    "'z' is too large": file(entries=[entry("z", (1 << 63,), 0, 0)], data=bytes(32)),
    "type 6, which is not supported": file(entries=[entry("x", (32,), 6, 0)], data=bytes(32)),
    "no whole blocks of Q4_0": file(entries=[entry("x", (33,), 2, 0)], data=bytes(64)),
    "'scalar' are no whole blocks": file(entries=[entry("scalar", (), 8, 0)], data=bytes(64)),
}


@pytest.mark.parametrize("message", LIES)
def test_files_that_lie_are_refused(message, tmp_path):
    path = tmp_path / "lie.gguf"
    path.write_bytes(LIES[message])
    for given in (path, LIES[message]):
        with pytest.raises(RuntimeError, match=message):
            torch.gguf.load(given)
    with pytest.raises(RuntimeError, match=message):
        torch.gguf.load(path, mmap=False)


def test_files_that_are_cut_short_are_refused(path):
    data = path.read_bytes()
    for n in [*range(900), len(data) // 2, len(data) - 64]:
        with pytest.raises(RuntimeError, match="gguf"):
            torch.gguf.load(data[:n])


def test_texts_may_be_any_bytes(tmp_path):
    data = file([value("a", 8, text(b"\xff\x00z"))])
    metadata, _ = torch.gguf.load(data)
    torch.gguf.save(tmp_path / "net.gguf", metadata, {})
    assert (tmp_path / "net.gguf").read_bytes() == data


def test_missing_files_are_errors_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        torch.gguf.load(tmp_path / "none.gguf")


def resident():
    """Bytes of memory that the process has."""
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * 4096


def test_large_files_are_not_read_when_they_are_opened(tmp_path):
    path = tmp_path / "large.gguf"
    head = file(entries=[entry("x", (1 << 30,), 0, 0)])
    with path.open("wb") as stream:
        stream.write(head)
        stream.truncate(len(head) + (4 << 30))  # 4 GiB that are nowhere
    before = resident()
    _, found = torch.gguf.load(path)
    assert found["x"].shape == (1 << 30,) and found["x"][-1] == 0
    assert resident() - before < 100 << 20
