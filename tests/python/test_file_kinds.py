"""Errors of `load` name the file, and say what it is and what to do where it is no checkpoint."""

import gzip
import io
import os
import pickle
import zipfile

import numpy as np
import pytest

import rushlight as torch


def saved(write):
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def zipped(**entries):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return stream.getvalue()


GOOD = saved(lambda f: torch.save({"a": torch.ones(100)}, f))
OLD = saved(lambda f: torch.save([torch.ones(9)], f, _use_new_zipfile_serialization=False))

# The content of a file, what its error says, and its type.
NOT_CHECKPOINTS = {
    "empty": (b"", "is empty", EOFError),
    "page": (b"\n<!DOCTYPE html><html><body>Sign in</body></html>", "page of HTML", None),
    "pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n",
        "git lfs pull",
        None,
    ),
    "json": (b'{"hidden_size": 12}', "json.load", None),
    "text": ("naïve notes\n".encode(), "text, which begins with 'naïve notes'", None),
    "cut": (GOOD[:-100], "ends too early, after", RuntimeError),
    "cut at once": (GOOD[:300], "ends too early, after 300 bytes", RuntimeError),
    "pickle": (pickle.dumps({"a": [1]}), "pickle.load reads it", RuntimeError),
    "pickle of old": (pickle.dumps({"a": [1]}, 0), "pickle.load reads it", None),
    "safetensors": (torch.safetensors.save({"a": torch.ones(2)}), "safetensors.load_file", None),
    "npy": (saved(lambda f: np.save(f, np.ones(3))), "numpy.load", None),
    "npz": (saved(lambda f: np.savez(f, a=np.ones(3))), "numpy.load", RuntimeError),
    "zip": (zipped(**{"model/config.json": "{}"}), "'model/config.json'.*unpack it", RuntimeError),
    "onnx": (b"\x08\x08\x12\x07pytorch\x1a\x052.1.0", "ONNX", None),
    "tensorflow": (b"\x08\x01\x12\xff\x01graph", "TensorFlow", None),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(50), "h5py", None),
    "gzip": (gzip.compress(GOOD), "gzip.open", None),
}


@pytest.mark.parametrize("kind", NOT_CHECKPOINTS)
def test_what_a_file_is(kind, tmp_path):
    content, what, error = NOT_CHECKPOINTS[kind]
    path = tmp_path / "weights file.pt"
    path.write_bytes(content)
    error = error or pickle.UnpicklingError
    named = f"(?s)torch.load\\('{path}'\\): it .*{what}"
    with pytest.raises(error, match=named):
        torch.load(path)
    with open(path, "rb") as stream, pytest.raises(error, match=named):
        torch.load(stream)
    with pytest.raises(error, match=f"(?s)^torch.load: it .*{what}"):
        torch.load(io.BytesIO(content))


def test_advice_for_checkpoints_alone(tmp_path):
    """Only what is a checkpoint is worth being trusted."""
    path = tmp_path / "page.pt"
    path.write_bytes(b"<html>")
    with pytest.raises(pickle.UnpicklingError) as page:
        torch.load(path)
    assert "weights_only=False" not in str(page.value)
    torch.save({"a": pickle.Pickler}, path)
    with pytest.raises(pickle.UnpicklingError, match="weights_only=False") as holds_code:
        torch.load(path)
    assert str(holds_code.value).startswith(f"torch.load('{path}'): Weights only load failed")


@pytest.mark.parametrize("content", [GOOD, OLD], ids=["zip", "old"])
def test_damaged_checkpoints_are_named_and_no_other_kind(content, tmp_path):
    path = tmp_path / "x.pt"
    at = content.index(b"_rebuild_tensor_v2")
    path.write_bytes(content[:at] + b"!" + content[at + 1 :])
    with pytest.raises((RuntimeError, pickle.UnpicklingError)) as error:
        torch.load(path)
    assert str(error.value).startswith(f"torch.load('{path}'): ")
    assert "): it " not in str(error.value)


class Fails:
    def __reduce__(self):
        return divmod, (1, 0)


def test_errors_of_a_program_have_a_note(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(Fails(), path)
    with pytest.raises(ZeroDivisionError) as error:
        torch.load(path, weights_only=False)
    assert error.value.__notes__ == [f"while torch.load read '{path}'"]
    with pytest.raises(FileNotFoundError, match="missing.pt"):
        torch.load(tmp_path / "missing.pt")


def test_mapped_bools_stay_as_they_are_in_the_file(tmp_path):
    """Whatever is read from a file, or written to its tensors, the file keeps its bytes."""
    path = tmp_path / "x.pt"
    odd = torch.arange(256, dtype=torch.uint8).view(torch.bool)
    torch.save({"odd": odd, "bytes": torch.arange(64, dtype=torch.uint8), "n": torch.ones(9)}, path)
    before = path.read_bytes()
    assert bytes(range(256)) in before
    for flags in (torch.serialization.MAP_PRIVATE, torch.serialization.MAP_SHARED):
        with torch.serialization.set_default_mmap_options(flags):
            state = torch.load(path, mmap=True)
        t = state["odd"]
        true = [False] + [True] * 255
        assert t.tolist() == true and t.to(torch.uint8).tolist() == true
        assert int(t.sum()) == 255 and int((~t).sum()) == 1 and not t.all() and t.any()
        assert t.nonzero().shape == (255, 1) and torch.arange(256)[t].tolist() == list(
            range(1, 256)
        )
        assert (
            torch.equal(t, t.clone())
            and torch.equal(t.cpu() & t, t)
            and bool(t[200])
            and t[3].item() is True
        )
        assert state["bytes"].view(torch.bool)[1:].all()
        assert path.read_bytes() == before
    state = torch.load(path, mmap=True)
    for tensor in state.values():
        tensor.zero_()
    state["odd"].fill_(True)
    del state, tensor
    assert path.read_bytes() == before
    assert os.stat(path).st_size == len(before)


def test_safetensors_bools_stay_as_they_are(tmp_path):
    path = tmp_path / "x.safetensors"
    torch.safetensors.save_file(
        {"odd": torch.arange(256, dtype=torch.uint8).view(torch.bool)}, path
    )
    before = path.read_bytes()
    t = torch.safetensors.load_file(path)["odd"]
    assert int(t.sum()) == 255 and t.tolist() == [False] + [True] * 255
    t.fill_(True)
    assert path.read_bytes() == before and bytes(range(256)) in before


class Faulty(torch.utils.data.Dataset):
    def __init__(self, bad=5):
        self.bad = bad

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == self.bad:
            raise LookupError(f"no picture in {index}.jpg")
        return torch.ones(index if self.bad is None else 2)


@pytest.mark.parametrize("options", [{}, {"num_workers": 1}, {"batch_size": None}], ids=str)
def test_errors_of_loaders_name_the_sample(options):
    """The type stays; the index stands in a note, or in the message that a worker sends."""
    loader = torch.utils.data.DataLoader(Faulty(), **{"batch_size": 2} | options)
    with pytest.raises(LookupError, match="no picture in 5.jpg") as error:
        list(loader)
    told = str(error.value) + "".join(getattr(error.value, "__notes__", ()))
    assert "at sample 5 of Faulty" in told
    subset = torch.utils.data.Subset(Faulty(), [7, 5])
    with pytest.raises(LookupError) as error:
        list(torch.utils.data.DataLoader(subset, batch_size=2))
    assert error.value.__notes__[0] == "at sample 5 of Faulty"


def test_errors_of_collation_name_the_samples():
    with pytest.raises(RuntimeError, match="equal size") as error:
        list(torch.utils.data.DataLoader(Faulty(None), batch_size=3))
    assert error.value.__notes__ == ["while samples [0, 1, 2] of Faulty were collated"]


def test_a_download_without_a_network_says_where_the_file_may_be_put(tmp_path, monkeypatch):
    from urllib.error import URLError

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(torch.hub, "_hub_dir", None)
    url = "http://127.0.0.1:9/resnet18-f37072fd.pth"
    path = tmp_path / "hub" / "checkpoints" / "resnet18-f37072fd.pth"
    with pytest.raises(URLError) as error:
        torch.hub.load_state_dict_from_url(url, progress=False)
    assert url in str(error.value) and f"put it here: {path}" in str(error.value)
    assert not list(path.parent.iterdir())
    torch.save({"a": torch.ones(2)}, path)
    assert torch.hub.load_state_dict_from_url(url)["a"].tolist() == [1, 1]


FORBIDDEN = (
    "not compiled with",
    "not linked with",
    "please report",
    "bug in PyTorch",
)
# The beginning of one message, which programs look for; what follows it says how things are here.
LOOKED_FOR = "Torch not compiled with "


def test_no_message_speaks_of_how_pytorch_was_built():
    import re
    from pathlib import Path

    root = Path(__file__).resolve().parents[2]
    files = [
        p
        for part in ("src", "include", "python/rushlight")
        for p in (root / part).rglob("*")
        if p.suffix in (".cpp", ".h", ".py", ".cu")
    ]
    texts = [
        (p, literal)
        for p in files
        for literal in re.findall(r'"((?:[^"\\\n]|\\.)*)"', p.read_text())
    ]
    assert len(texts) > 20000
    wrong = [
        (str(p), text)
        for p, text in texts
        for phrase in FORBIDDEN
        if phrase.lower() in text.lower() and text != LOOKED_FOR
    ]
    assert not wrong, wrong
