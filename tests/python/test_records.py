"""Files opened by the program itself: `torch.serialization._load` and its like, the unpickler of
data, and pickles shown.
"""

import gzip
import io
import pickle

import pytest

import rushlight as torch
from rushlight import serialization
from rushlight._files import weights_only as data_alone
from rushlight.storage import UntypedStorage
from rushlight.utils import show_pickle


class Runs:
    """What a file of data must not hold."""

    def __reduce__(self):
        return print, ("run",)


def archive(obj):
    stream = io.BytesIO()
    with serialization._open_zipfile_writer(stream) as writer:
        serialization._save(obj, writer, pickle, 2, False)
    return io.BytesIO(stream.getvalue())


OBJECT = {"w": torch.arange(6.0).view(2, 3), "n": [1, "two"]}


def same(found):
    return torch.equal(found["w"], OBJECT["w"]) and found["n"] == OBJECT["n"]


@pytest.mark.parametrize("module", [pickle, data_alone])
def test_archives(module):
    stream = archive(OBJECT)
    assert same(torch.load(stream))
    with serialization._open_zipfile_reader(stream) as reader:
        assert not serialization._is_torchscript_zip(reader)
        assert same(serialization._load(reader, None, module))
        assert serialization._load(reader, "meta", module)["w"].is_meta
    saved = io.BytesIO()
    torch.save(OBJECT, saved)
    with serialization._open_zipfile_reader(saved) as reader:
        assert same(serialization._load(reader, None, module))


def test_tensors_lie_in_the_storage_of_the_file(tmp_path):
    path = str(tmp_path / "file.pt")
    torch.save(OBJECT, path)
    whole = UntypedStorage.from_file(path, False, 0)
    with serialization._open_zipfile_reader(path) as reader:
        found = serialization._load(reader, None, pickle, overall_storage=whole)
    assert same(found)
    begin = whole.data_ptr()
    assert begin < found["w"].data_ptr() < begin + whole.nbytes()


def test_the_other_order_of_bytes():
    stream = io.BytesIO()
    with serialization._open_zipfile_writer(stream) as writer:
        swapped = torch.arange(3, dtype=torch.int32)
        swapped.untyped_storage().byteswap(torch.int32)
        serialization._save(swapped, _Big(writer), pickle, 2, False)
    with serialization._open_zipfile_reader(stream) as reader:
        assert serialization._load(reader, None, pickle).tolist() == [0, 1, 2]


class _Big:
    """A writer that says the other order."""

    def __init__(self, writer):
        self.writer = writer

    def write_record(self, name, data, size):
        if name == "byteorder":
            data, size = "big", 3
        self.writer.write_record(name, data, size)


@pytest.mark.parametrize("module", [pickle, data_alone])
def test_the_format_before_archives(module):
    stream = io.BytesIO()
    serialization._legacy_save(OBJECT, stream, pickle, 2)
    serialization._legacy_save([2], stream, pickle, 2)
    stream.seek(0)
    assert same(serialization._legacy_load(stream, None, module))
    assert serialization._legacy_load(stream, None, module) == [2]  # the next one


def test_files_of_data_run_nothing(capsys):
    stream = archive([Runs()])
    with serialization._open_zipfile_reader(stream) as reader:
        with pytest.raises(pickle.UnpicklingError, match="print"):
            serialization._load(reader, None, data_alone)
        assert capsys.readouterr().out == ""
        serialization._load(reader, None, pickle)
    assert capsys.readouterr().out == "run\n"


def test_the_unpickler_of_data():
    stream = io.BytesIO(pickle.dumps({"a": 1}, 2) + pickle.dumps([2.5], 2))
    assert data_alone.load(stream) == {"a": 1}
    assert data_alone.Unpickler(stream).load() == [2.5]
    with pytest.raises(pickle.UnpicklingError, match="print"):
        data_alone.load(io.BytesIO(pickle.dumps(Runs(), 2)))
    assert data_alone.get_globals_in_pkl(io.BytesIO(pickle.dumps(Runs(), 2))) == {
        "__builtin__.print"
    }

    class Named(pickle.Pickler):
        def persistent_id(self, obj):
            return "seven" if obj == 7 else None

    named = io.BytesIO()
    Named(named, 2).dump([7])
    with pytest.raises(pickle.UnpicklingError, match="seven"):
        data_alone.load(io.BytesIO(named.getvalue()))


def test_what_files_of_data_may_name():
    with data_alone._safe_globals([Runs, (print, "builtins.print")]):
        names = data_alone._get_user_allowed_globals()
        assert names["builtins.print"] is print and Runs in names.values()
        data_alone._remove_safe_globals([(print, "builtins.print")])
        assert data_alone._get_safe_globals() == [Runs]
    assert data_alone._get_user_allowed_globals() == {}
    assert data_alone._get_allowed_globals()["torch.float32"] is torch.float32


def test_what_is_asked_of_files(tmp_path):
    path = tmp_path / "x.gz"
    with gzip.open(path, "wb") as packed:
        packed.write(b"x")
        assert not serialization._should_read_directly(packed)
    with open(path, "rb") as plain:
        assert serialization._should_read_directly(plain)
        assert serialization._check_seekable(plain)
    assert not serialization._should_read_directly(io.BytesIO())
    assert serialization._is_path(path) and not serialization._is_path(io.BytesIO())
    assert serialization._maybe_decode_ascii(b"ab") == serialization._maybe_decode_ascii("ab")
    with pytest.raises(AttributeError, match="BytesIO"):
        serialization._check_seekable(object())


# ---- pickles shown ----


def test_pickles_are_shown_and_not_run(tmp_path, capsys):
    path = tmp_path / "file.pt"
    torch.save({"w": torch.ones(2), "r": Runs()}, path)
    out = io.StringIO()
    assert show_pickle.main(["show_pickle", f"{path}@*/data.pkl"], out) is None
    text = out.getvalue()
    assert "torch._utils._rebuild_tensor_v2(" in text and "__builtin__.print('run',)" in text
    assert "pers.obj(('storage', torch.FloatStorage, '0', 'cpu', 2),)" in text
    assert capsys.readouterr().out == ""
    plain = tmp_path / "plain.pkl"
    plain.write_bytes(pickle.dumps([1, "x"]))
    show_pickle.main(["show_pickle", str(plain)])
    assert capsys.readouterr().out == "[1, 'x']\n"
    assert show_pickle.main([]) == 2
    with pytest.raises(FileNotFoundError, match="no member other"):
        show_pickle.main(["show_pickle", f"{path}@other"])


def test_states_and_texts_of_pickles():
    stated = io.BytesIO(b"\x80\x02c__main__\nThing\n)\x81}X\x01\x00\x00\x00aK\x01sb.")
    assert repr(show_pickle.DumpUnpickler(stated).load()) == "__main__.Thing()(state={'a': 1})"
    broken = b"\x80\x02X\x01\x00\x00\x00\xff."
    with pytest.raises(UnicodeDecodeError):
        show_pickle.DumpUnpickler(io.BytesIO(broken)).load()
    shown = show_pickle.DumpUnpickler(io.BytesIO(broken), catch_invalid_utf8=True).load()
    assert shown.name == "UnicodeDecodeError"
