"""Files that other versions and machines wrote, settings of files, places of storages."""

import io
import mmap
import pickle
import struct
import tarfile
import zipfile

import pytest

import rushlight as torch
from rushlight import serialization


class Stream(io.BytesIO):
    """Counts how it is read."""

    reads = fills = 0

    def read(self, n=-1):
        self.reads += 1
        return super().read(n)

    def readinto(self, buffer):
        self.fills += 1
        return super().readinto(buffer)


def saved(obj, **options):
    stream = Stream()
    torch.save(obj, stream, **options)
    stream.seek(0)
    return stream


def without(stream, name, big_endian=False):
    """An archive without a record, with bytes of storages turned around."""
    out = io.BytesIO()
    with zipfile.ZipFile(stream) as old, zipfile.ZipFile(out, "w") as new:
        for entry in old.namelist():
            data = old.read(entry)
            if "/data/" in entry and big_endian:
                data = b"".join(data[i : i + 4][::-1] for i in range(0, len(data), 4))
            if not entry.endswith("/" + name):
                new.writestr(entry, data)
    out.seek(0)
    return out


@pytest.fixture
def settings():
    """Puts settings back."""
    config = serialization.config
    before = dict(vars(config.load)), dict(vars(config.save))
    yield config
    vars(config.load).update(before[0])
    vars(config.save).update(before[1])


def test_files_that_do_not_say_the_order_of_bytes(settings):
    x = torch.tensor([1.0, -2.5])
    assert torch.load(without(saved(x), "byteorder")).equal(x)
    turned = without(saved(x), "byteorder", big_endian=True)
    assert not torch.load(turned).equal(x)
    serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
    turned.seek(0)
    assert torch.load(turned).equal(x)
    assert torch.load(saved(x)).equal(x)  # this one says it
    with pytest.raises(TypeError, match="Invalid argument type"):
        serialization.set_default_load_endianness("big")


def test_mapped_files(tmp_path, settings):
    path = tmp_path / "x.pt"
    torch.save(torch.zeros(100), path)
    torch.load(path, mmap=True)[0] = 1
    assert torch.load(path)[0] == 0
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        assert serialization.get_default_mmap_options() == mmap.MAP_SHARED
        torch.load(path, mmap=True)[0] = 2
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    assert torch.load(path, mmap=True)[0] == 2
    with pytest.raises(RuntimeError, match="checksum|CRC"):
        torch.load(path)
    with pytest.raises(ValueError, match="expected mmap.MAP_PRIVATE or mmap.MAP_SHARED"):
        serialization.set_default_mmap_options(mmap.MAP_ANONYMOUS)
    with settings.load.patch(mmap=True):
        assert torch.load(path)[0] == 2
        with pytest.raises(ValueError, match="must be a string filename"):
            torch.load(saved(1))
    with pytest.raises(AttributeError, match="nothing"):
        settings.load.nothing = 1


def test_places_of_storages(monkeypatch):
    monkeypatch.setattr("rushlight._files.locations._package_registry", [])
    with pytest.raises(RuntimeError, match="don't know how to determine data location"):
        serialization.location_tag(torch.ones(1).untyped_storage())
    monkeypatch.undo()
    assert serialization.location_tag(torch.ones(1).untyped_storage()) == "cpu"
    before = list(serialization._package_registry)
    serialization.register_package(
        5,
        lambda storage: "shelf" if storage.nbytes() == 12 else None,
        lambda storage, place: storage if place == "shelf" else None,
    )
    try:
        x, y = torch.load(saved((torch.ones(3), torch.ones(2))))
        assert x.equal(torch.ones(3)) and y.equal(torch.ones(2))
        file = saved(torch.ones(3))
    finally:
        serialization._package_registry[:] = before
    with pytest.raises(RuntimeError, match=r"don't know how to restore data location 'shelf'"):
        torch.load(file)
    file.seek(0)
    assert torch.load(file, map_location={"shelf": "cpu"}).shape == (3,)
    file.seek(0)
    assert torch.load(file, map_location="meta").is_meta


def test_names_that_would_be_refused():
    assert serialization.get_unsafe_globals_in_checkpoint(saved({"a": torch.ones(1)})) == []
    found = serialization.get_unsafe_globals_in_checkpoint(saved([print, torch.ones(1)]))
    assert [name.rpartition(".")[2] for name in found] == ["print"]
    with pytest.raises(ValueError, match="returned by torch.save"):
        serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"nothing"))


def test_files_fill_memory_of_ours():
    for new in (True, False):
        file = saved(torch.ones(5), _use_new_zipfile_serialization=new)
        file.reads = file.fills = 0
        assert torch.load(file).sum() == 5
        assert file.fills and not file.reads


@pytest.mark.parametrize("safe", [True, False])
def test_sparse_tensors_in_old_files(safe):
    """Their indices are looked at when the bytes of the storages are there, which come last."""
    dense = torch.tensor([[0.0, 2], [3, 0]])
    saved = {"coo": dense.to_sparse(), "csr": dense.to_sparse_csr(), "a": dense, "b": dense}
    file = io.BytesIO()
    torch.save(saved, file, _use_new_zipfile_serialization=False)
    file.write(b"rest")
    file.seek(0)
    found = torch.load(file, weights_only=safe)
    assert found["coo"].layout == torch.sparse_coo and found["csr"].layout == torch.sparse_csr
    assert all(found[name].to_dense().equal(dense) for name in ("coo", "csr"))
    assert found["a"] is found["b"] and file.read() == b"rest"
    wild = torch.tensor([0, 1, 2])
    wrong = torch.sparse_csr_tensor(wild, torch.tensor([0, 1]), torch.ones(2), (2, 2))
    wild.fill_(1 << 40)
    file = io.BytesIO()
    torch.save(wrong, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    with pytest.raises(RuntimeError, match="crow_indices"):
        torch.load(file, weights_only=safe)


def test_old_files_follow_each_other():
    stream = io.BytesIO(b"head")
    stream.seek(4)
    for i in range(3):
        torch.save(torch.full((i + 1,), float(i)), stream, _use_new_zipfile_serialization=False)
    stream.seek(4)
    for i in range(3):
        assert torch.load(stream).tolist() == [i] * (i + 1)


class Whole(torch.nn.Module):
    """One that old files hold with its source code."""


def old_file(pid, extra=(), keys=("0",)):
    """A file of the old format around what one persistent id stands for."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            return pid if isinstance(obj, Ellipsis.__class__) else None

    stream = io.BytesIO()
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
    for value in (serialization_magic(), 1001, system):
        pickle.dump(value, stream, protocol=2)
    Pickler(stream, protocol=2).dump(...)
    pickle.dump(list(keys), stream, protocol=2)
    for part in extra:
        stream.write(part)
    stream.seek(0)
    return stream


def serialization_magic():
    from rushlight._files import legacy as _legacy_files

    return _legacy_files.MAGIC_NUMBER


def test_whole_modules_of_old_files():
    same = old_file(("module", Whole, "a.py", inspect_source(Whole)), keys=())
    assert torch.load(same, weights_only=False) is Whole
    changed = old_file(("module", Whole, "a.py", "class Whole: pass"), keys=())
    with pytest.warns(serialization.SourceChangeWarning, match="source code of class 'Whole'"):
        assert torch.load(changed, weights_only=False) is Whole
    changed.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
        torch.load(changed)


def inspect_source(cls):
    import inspect

    return inspect.getsource(cls)


def test_parts_of_storages_in_old_files():
    numbers = struct.pack("<q4f", 4, *range(4))
    part = ("storage", torch.FloatStorage, "0", "cpu", 4, ("v", 1, 2))
    assert torch.load(old_file(part, [numbers])).tolist() == [1.0, 2.0]
    for wrong in (("v", 3, 2), ("v", -1, 2)):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            torch.load(old_file((*part[:5], wrong), [numbers]))


def tar_file():
    """An archive as the first versions wrote it: a matrix, and a row of it."""
    texts = {}
    tensors = struct.pack("<i4x2q2qq", 2, 2, 3, 3, 1, 0), struct.pack("<i4xqqq", 1, 3, 1, 0)
    texts["storages"] = b"".join(
        [
            *(pickle.dumps(v, protocol=2) for v in (1, (10, "cpu", torch.FloatStorage))),
            struct.pack("<q6f", 6, *range(6)),
            pickle.dumps([(11, 10, 3, 3)], protocol=2),
        ]
    )
    texts["tensors"] = b"".join(
        [
            *(pickle.dumps(v, protocol=2) for v in (2, (20, 10, torch.FloatTensor))),
            tensors[0],
            pickle.dumps((21, 11, torch.FloatTensor), protocol=2),
            tensors[1],
        ]
    )

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            return {"matrix": "20", "row": "21"}.get(obj) if isinstance(obj, str) else None

    stream = io.BytesIO()
    Pickler(stream, protocol=2).dump([("matrix", "row"), 7])
    texts["pickle"] = stream.getvalue()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for name, text in texts.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    out.seek(0)
    return out


def test_tar_files():
    with pytest.raises(RuntimeError, match="Cannot use `weights_only=True`"):
        torch.load(tar_file())
    (matrix, row), number = torch.load(tar_file(), weights_only=False)
    assert matrix.tolist() == [[0, 1, 2], [3, 4, 5]] and row.tolist() == [3, 4, 5] and number == 7
    row[0] = 9
    assert matrix[1, 0] == 9  # in the same memory


def test_records(tmp_path):
    path = tmp_path / "records.pt"
    writer = torch._C.PyTorchFileWriter(str(path))
    x = torch.arange(5)
    writer.write_record("a", b"abc", 3)
    writer.write_record("b", x.untyped_storage(), 40)
    writer.write_record("c", x.data_ptr(), 16)
    writer.write_record_metadata("d", 8)
    writer.write_end_of_file()
    reader = torch._C.PyTorchFileReader(str(path))
    assert reader.get_record("a") == b"abc" and reader.get_record("d") == bytes(8)
    assert reader.get_storage_from_record("b", 5, torch.int64).equal(x)
    assert reader.get_record("c") == reader.get_record("b")[:16]
    assert all(reader.get_record_offset(name) % 64 == 0 for name in "abcd")
    assert path.read_bytes()[reader.get_record_offset("a") :].startswith(b"abc")
    assert reader.get_record("byteorder") == b"little" and reader.serialization_id()
    with pytest.raises(RuntimeError, match="fewer than 9"):
        torch._C.PyTorchFileWriter(io.BytesIO()).write_record("a", b"abc", 9)


class Labelled(torch.Tensor):
    """A tensor that says itself what is kept of it."""

    def __getstate__(self):
        return {"kept": self.label}

    def __setstate__(self, state):
        self.label = state["kept"] + "!"


def test_tensors_that_say_what_is_kept():
    x = torch.ones(2).as_subclass(Labelled)
    x.label = "a"
    with serialization.safe_globals([Labelled]):
        for options in ({}, {"weights_only": False}):
            y = torch.load(saved(x), **options)
            assert type(y) is Labelled and y.label == "a!" and y.sum() == 2


def test_versions_of_modules():
    class Module:
        __name__ = "some"
        __version__ = "0.3.1"

    check = serialization.check_module_version_greater_or_equal
    assert check(Module, (0, 3)) and check(Module, (0, 3, 1)) and not check(Module, (0, 4))
    Module.__version__ = "new"
    with pytest.raises(RuntimeError, match="malformed"):
        check(Module, (0, 3))
    assert check(Module, (0, 3), error_if_malformed=False)


def test_tensors_without_memory_may_share_a_place():
    shared = torch.ones(4).untyped_storage()
    same = [torch.tensor([], dtype=t).set_(shared) for t in (torch.float32, torch.int32)]
    with pytest.raises(RuntimeError, match="different types"):
        saved(same)
    nothing = torch.empty(0).untyped_storage()
    both = [torch.tensor([], dtype=t).set_(nothing) for t in (torch.float32, torch.int32)]
    assert [x.dtype for x in torch.load(saved(both))] == [torch.float32, torch.int32]
