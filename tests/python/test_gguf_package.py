"""Beside the package `gguf`: its numbers of blocks bit for bit, its files read here, files of here read by it."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.ao import _gguf_weights, _integer_weights
from tests.python.test_gguf import KINDS, METADATA, blocks, tensors

gguf = pytest.importorskip("gguf")


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_have_the_bits_of_the_reference(kind):
    made = blocks(kind, 200, 7)
    expected = gguf.quants.dequantize(made, getattr(gguf.GGMLQuantizationType, kind))
    stored = _gguf_weights.Stored(torch.from_numpy(made), kind)
    for layout in (stored, stored.packed()):
        found = layout.numbers().numpy()
        assert np.array_equal(found.view(np.int32), expected.view(np.int32))


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0"])
def test_layers_are_near_those_of_numbers_that_were_rounded(kind):
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((60, 512)).astype(np.float32)
    made = gguf.quants.quantize(numbers, getattr(gguf.GGMLQuantizationType, kind))
    held = _gguf_weights.Stored(torch.from_numpy(made), kind)
    torch.manual_seed(0)
    x = torch.randn(5, 512)
    expected = x @ torch.from_numpy(numbers).t()
    apart = (held.linear(x, None) - expected).norm() / expected.norm()
    assert apart < {"Q8_0": 0.01, "Q4_0": 0.12}[kind]


def test_its_files_are_read(tmp_path):
    path = tmp_path / "net.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint8("u8", 200)
    writer.add_int16("i16", -5)
    writer.add_uint64("u64", 1 << 63)
    writer.add_float64("f64", 0.1)
    writer.add_bool("yes", True)
    writer.add_token_list(["a", "▁b", "naïve"])
    writer.add_token_scores([0.5, -1.0, 2.0])
    writer.add_array("counts", [1, 2, 3])
    rng = np.random.default_rng(0)
    plain = rng.standard_normal((3, 2, 5)).astype(np.float32)
    writer.add_tensor("plain", plain)
    writer.add_tensor("half", plain.astype(np.float16))
    codes = {kind: blocks(kind, 9, 2) for kind in KINDS}
    for kind, made in codes.items():
        writer.add_tensor(kind, made, raw_dtype=getattr(gguf.GGMLQuantizationType, kind))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    metadata, found = torch.gguf.load(path)
    assert metadata["general.architecture"] == "llama"
    expected = {"u8": 200, "i16": -5, "u64": 1 << 63, "f64": 0.1, "yes": True}
    assert {key: metadata[key] for key in expected} == expected
    assert metadata["tokenizer.ggml.tokens"] == ["a", "▁b", "naïve"]
    assert metadata["tokenizer.ggml.scores"].tolist() == [0.5, -1.0, 2.0]
    assert metadata["counts"].tolist() == [1, 2, 3]
    assert np.array_equal(found["plain"].numpy(), plain)
    assert np.array_equal(found["half"].numpy(), plain.astype(np.float16))
    for kind, made in codes.items():
        numbers = gguf.quants.dequantize(made, getattr(gguf.GGMLQuantizationType, kind))
        assert np.array_equal(found[kind].dequantize().numpy(), numbers)


def test_it_reads_files(tmp_path):
    path = tmp_path / "net.gguf"
    made = tensors()
    torch.gguf.save(path, METADATA, made)
    reader = gguf.GGUFReader(path)
    for key, value in METADATA.items():
        expected = value.tolist() if isinstance(value, torch.Tensor) else value
        if expected != []:  # its reader has nothing for an empty array
            assert reader.fields[key].contents() == expected, key
    assert [t.name for t in reader.tensors] == list(made)
    for t in reader.tensors:
        mine = made[t.name]
        assert list(reversed(t.shape)) == list(mine.shape) or mine.dim() == 0
        if isinstance(mine, _integer_weights.IntegerWeight):
            numbers = gguf.quants.dequantize(t.data, t.tensor_type)
            assert np.array_equal(numbers, mine.dequantize().numpy())
        elif mine.dtype == torch.bfloat16:
            assert t.tensor_type.name == "BF16"
            assert t.data.tobytes() == mine.view(torch.uint8).numpy().tobytes()
        else:
            assert np.array_equal(t.data.reshape(tuple(mine.shape)), mine.numpy()), t.name
