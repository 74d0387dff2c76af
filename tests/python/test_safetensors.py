"""safetensors: round trips, and files that are refused."""

import json
import random
import struct

import pytest

import rushlight as torch
from rushlight import safetensors

FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64")
DTYPES = (*FLOATS, "uint8", "int8", "int16", "int32", "int64", "bool")


def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8), **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


def sample():
    state = {name: torch.tensor([[0, 1, 2]]).to(getattr(torch, name)) for name in DTYPES}
    state['odd "name"\n\\ ü'] = torch.arange(6.0).view(2, 3).t()
    state["empty"] = torch.empty(0, 3)
    state["scalar"] = torch.tensor(1.5)
    return state


@pytest.mark.parametrize("how", ["bytes", "mapped", "read"])
def test_round_trip(tmp_path, how):
    state, path = sample(), tmp_path / "a.safetensors"
    safetensors.save_file(state, path, {"format": "pt"})
    if how == "bytes":
        back = safetensors.load(safetensors.save(state, {"format": "pt"}))
    else:
        back = safetensors.load_file(path, mmap=how == "mapped")
    assert set(back) == set(state)
    for name, t in state.items():
        assert back[name].dtype is t.dtype and torch.equal(back[name], t)
        assert back[name].is_contiguous()
    back["float32"].fill_(7)
    assert safetensors.metadata(path) == {"format": "pt"}
    assert torch.equal(safetensors.load_file(path)["float32"], state["float32"])


def test_against_the_package():
    package = pytest.importorskip("safetensors")
    numpy = pytest.importorskip("safetensors.numpy")
    data = safetensors.save({"a": torch.arange(6.0), "b": torch.ones(1, dtype=torch.int8)})
    there = numpy.load(data)
    assert there["a"].tolist() == list(range(6)) and package.__version__
    back = safetensors.load(numpy.save(there))
    assert back["a"].tolist() == list(range(6)) and back["b"].tolist() == [1]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 7,
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 3) + b"{}",
        file_of(b"[]"),
        file_of(b"{} x"),
        file_of(b'{"a":1}'),
        file_of(b'{"a'),
        file_of(b'{"\\ud800":{}}'),
        file_of(b'{"__metadata__":{"a":1}}'),
        file_of({}, b"x"),
        file_of({"a": entry()}),
        file_of({"a": entry()}, bytes(9)),
        file_of({"a": entry(offsets=(1, 9))}, bytes(9)),
        file_of({"a": entry(offsets=(8, 0))}, bytes(8)),
        file_of({"a": entry(shape=(3,))}, bytes(8)),
        file_of({"a": entry(shape=(-2,))}, bytes(8)),
        file_of({"a": entry(shape=(2**62, 2**62))}, bytes(8)),
        file_of({"a": entry(shape=(0, 2**62, 2**62), offsets=(0, 0))}),
        file_of({"a": entry(dtype="F8_E4M3")}, bytes(8)),
        file_of({"a": entry(more=1)}, bytes(8)),
        file_of({"a": {"dtype": "F32", "shape": [2]}}, bytes(8)),
        file_of({"a": entry(), "b": entry()}, bytes(8)),
        file_of({"a": entry(), "b": entry(offsets=(16, 24))}, bytes(24)),
        file_of(b'{"a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}}', bytes(4)),
    ],
)
def test_damaged_files(data):
    with pytest.raises(RuntimeError, match="deserializing header"):
        safetensors.load(data)


def test_repeated_names():
    one = b'"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    with pytest.raises(RuntimeError, match="twice"):
        safetensors.load(file_of(b"{" + one + b"," + one + b"}"))


def test_bools_are_zero_or_one():
    back = safetensors.load(file_of({"a": entry("BOOL", (3,), (0, 3))}, b"\x00\x01\x42"))
    assert back["a"].to(torch.uint8).tolist() == [0, 1, 1]


def test_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match="dict"):
        safetensors.save([torch.ones(1)])
    with pytest.raises(TypeError):
        safetensors.save({"a": 1})
    with pytest.raises(TypeError, match="complex128"):
        safetensors.save({"a": torch.ones(1, dtype=torch.complex128)})
    with pytest.raises(FileNotFoundError):
        safetensors.load_file(tmp_path / "missing")


def test_mutated_files():
    data = safetensors.save(sample(), {"format": "pt"})
    numbers = random.Random(0)
    refused = 0
    for _ in range(3000):
        bad = bytearray(data)
        for _ in range(numbers.choice((1, 2, 5))):
            at = numbers.randrange(min(len(bad), 1200))
            bad[at] = numbers.choice((bad[at] ^ 1, bad[at] ^ 0x80, *b'0129{}[],:"\\u '))
        try:
            for t in safetensors.load(bytes(bad)).values():
                t.clone()
        except (RuntimeError, UnicodeDecodeError):
            refused += 1
    assert refused > 1000


def test_several_files(tmp_path):
    state = {f"layer{i}": torch.full((10 * i + 1,), float(i)) for i in range(6)}
    safetensors.save_sharded(state, tmp_path, max_shard_size=200)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index["metadata"] == {"total_size": 4 * sum(t.numel() for t in state.values())}
    assert index["weight_map"]["layer0"] == "model-00001-of-00004.safetensors"
    assert len(set(index["weight_map"].values())) == 4 and list(index["weight_map"]) == list(state)
    for path in (tmp_path, tmp_path / "model.safetensors.index.json"):
        loaded = safetensors.load_sharded(path)
        assert all(torch.equal(loaded[name], state[name]) for name in state)


@pytest.mark.parametrize(
    "places", [{"a": "../x.safetensors"}, {"a": ""}, {"a": 3}, {"b": "f.safetensors"}, [1], None]
)
def test_damaged_indices(tmp_path, places):
    safetensors.save_file({"a": torch.ones(2)}, tmp_path / "f.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    with pytest.raises(RuntimeError, match="index|no file of its folder|has no tensor 'b'"):
        safetensors.load_sharded(tmp_path)
