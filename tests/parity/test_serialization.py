"""Files between PyTorch and rushlight, both ways."""

import io
from collections import OrderedDict

import pytest

import rushlight

torch = pytest.importorskip("torch")
DTYPES = "float16 bfloat16 float32 float64 uint8 int8 int16 int32 int64 bool complex64 complex128"


def sample(lib):
    """The same state in either library."""
    t = lib.arange(24, dtype=lib.float32).reshape(2, 3, 4)
    return {
        "tensors": {
            name: lib.tensor([[0, 1, 2]]).to(getattr(lib, name)) for name in DTYPES.split()
        },
        "views": [t, t[1], t.transpose(0, 2), t[:, ::2], lib.ones(2, 1).expand(2, 3)],
        "empty": [lib.empty(0, 3), lib.tensor(1.5)],
        "state": lib.nn.BatchNorm2d(3).state_dict(),
        "parameter": lib.nn.Parameter(lib.ones(2)),
        "grad": lib.ones(2, requires_grad=True),
        "meta": lib.empty(2, 3, device="meta"),
        "plain": [1, -(2**70), 2.5, None, True, "text", b"bytes", (1, 2), {1, 2}, 1 + 2j],
        "ordered": OrderedDict(a=1, b=[OrderedDict()]),
        "types": [lib.Size([1, 2]), lib.float32, lib.device("cpu")],
    }


def moved(source, target, **options):
    """The sample of `source`, loaded by `target`."""
    stream = io.BytesIO()
    source.save(sample(source), stream, **options)
    stream.seek(0)
    return target.load(stream)


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("to_torch", [False, True])
def test_files_move(to_torch, legacy):
    source, target = (rushlight, torch) if to_torch else (torch, rushlight)
    back = moved(source, target, _use_new_zipfile_serialization=not legacy)
    here = sample(target)
    assert list(back) == list(here)
    for group in ("tensors", "state"):
        assert type(back[group]) is type(here[group])
        for name, t in here[group].items():
            assert back[group][name].dtype is t.dtype
            assert target.equal(back[group][name], t)
    for got, t in zip(back["views"] + back["empty"], here["views"] + here["empty"], strict=True):
        assert target.equal(got, t) and got.stride() == t.stride()
    assert back["views"][1].data_ptr() == back["views"][0][1].data_ptr()
    assert back["state"]._metadata == here["state"]._metadata
    assert type(back["parameter"]) is target.nn.Parameter and back["parameter"].requires_grad
    assert back["grad"].requires_grad and back["meta"].shape == (2, 3) and back["meta"].is_meta
    assert back["plain"] == here["plain"] and back["ordered"] == here["ordered"]
    assert back["types"] == here["types"]


def test_conjugates_arrive_carried_out():
    stream = io.BytesIO()
    torch.save(torch.tensor([1 + 2j]).conj(), stream)
    stream.seek(0)
    assert rushlight.load(stream).tolist() == [1 - 2j]


def test_modules_move_to_pytorch():
    stream = io.BytesIO()
    model = rushlight.nn.Linear(2, 3)
    rushlight.save(model, stream)
    stream.seek(0)
    there = torch.load(stream, weights_only=False)
    assert type(there) is torch.nn.Linear
    assert there.weight.tolist() == model.weight.tolist()


@pytest.mark.filterwarnings("ignore")  # PyTorch's, of functions that it will remove
@pytest.mark.parametrize("to_torch", [False, True])
def test_quantised_tensors_move(to_torch):
    source, target = (rushlight, torch) if to_torch else (torch, rushlight)
    x = source.arange(-6.0, 6.0).reshape(3, 4)
    scales, zeros = source.tensor([0.1, 0.2, 0.3]), source.tensor([0, 1, 2])
    whole = source.quantize_per_tensor(x, 0.1, 100, source.quint8)
    each = source.quantize_per_channel(x, scales, zeros, 0, source.qint8)
    stream = io.BytesIO()
    source.save([whole, each, whole.t()[1:]], stream)
    stream.seek(0)
    for got, sent in zip(target.load(stream), [whole, each, whole.t()[1:]], strict=True):
        assert str(got.dtype) == str(sent.dtype) and str(got.qscheme()) == str(sent.qscheme())
        assert got.int_repr().tolist() == sent.int_repr().tolist()
        assert got.dequantize().tolist() == sent.dequantize().tolist()
