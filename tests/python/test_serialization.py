"""save and load: what comes back, what is refused, what a failure leaves behind."""

import enum
import io
import operator
import os
import pathlib
import pickle
import random
import struct
import threading
import warnings
import zipfile
from collections import Counter, OrderedDict, defaultdict

import pytest

import rushlight as torch
from rushlight import nn


def saved(obj, **options):
    """The bytes of a file."""
    stream = io.BytesIO()
    torch.save(obj, stream, **options)
    return stream.getvalue()


def round_trip(obj, **options):
    """What comes back from memory."""
    return torch.load(io.BytesIO(saved(obj)), **options)


def with_pickle(data):
    """A .pt file around a pickle."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as file:
        file.writestr("archive/data.pkl", data)
        file.writestr("archive/version", "3\n")
        file.writestr("archive/data/0", bytes(range(24)))
    return io.BytesIO(stream.getvalue())


def tensor_pickle(
    kind=b"FloatStorage", numel=6, offset=0, size=(6,), stride=(1,), key=b"0", grad=False
):
    """The pickle of a tensor, with any numbers in it."""

    def number(n):
        return b"\x8a\x09" + n.to_bytes(9, "little", signed=True)

    def text(s):
        return b"X" + len(s).to_bytes(4, "little") + s

    def numbers(values):
        return b"(" + b"".join(map(number, values)) + b"t"

    place = b"(" + text(b"storage") + b"ctorch\n" + kind + b"\n" + text(key) + text(b"cpu")
    place += number(numel) + b"tQ"
    place += number(offset) + numbers(size) + numbers(stride) + (b"\x88" if grad else b"\x89")
    place += b"ccollections\nOrderedDict\n)R"
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + place + b"tR."


class Subclass(torch.Tensor):
    """A kind of tensor that a file may name only by permission."""


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(2**200),
        2**62,
        -1,
        1.5,
        float("inf"),
        "text \U0001f600",
        b"\x00\xff",
        [1, [2, (3, "x")], {}],
        {"a": 1, 2: "b", (1, 2): None},
        (1 + 2j, {1, 2}, bytearray(b"ab"), set()),
        OrderedDict(a=1),
        Counter("aab"),
        [torch.Size([1, 2]), torch.float32, torch.bool, torch.device("cpu"), torch.strided],
    ],
    ids=lambda value: type(value).__name__,
)
def test_values(value):
    back = round_trip(value)
    assert back == value and type(back) is type(value)


def test_shared_and_cyclic_containers():
    inner = [1]
    outer = [inner, inner, {"self": inner}]
    inner.append(outer)
    back = round_trip(outer)
    assert back[0] is back[1] is back[2]["self"]
    assert back[0][1] is back


def test_ordered_dict_keeps_its_attributes():
    state = nn.BatchNorm1d(3).state_dict()
    back = round_trip(state)
    assert isinstance(back, OrderedDict) and back._metadata == state._metadata


def test_storages():
    t = torch.arange(6.0)
    typed = torch.TypedStorage._from_untyped(t.untyped_storage(), t.dtype)
    whole, part, storage, again = round_trip(
        [t, t[2:4], torch.ones(2, dtype=torch.uint8).untyped_storage(), typed]
    )
    assert whole.untyped_storage() == part.untyped_storage() == again.untyped()
    assert storage.tolist() == [1, 1] and again.tolist() == whole.tolist()
    with pytest.raises(RuntimeError, match="as different types"):
        saved([t, t.view(torch.int32)])


def test_requires_grad_parameters_and_meta():
    p = nn.Parameter(torch.ones(2), requires_grad=False)
    back = round_trip([p, torch.ones(1, requires_grad=True), torch.empty(2, 3, device="meta")])
    assert type(back[0]) is nn.Parameter and not back[0].requires_grad
    assert back[1].requires_grad and back[1].is_leaf
    assert back[2].is_meta and back[2].shape == (2, 3)


def test_subclasses_need_permission():
    data = saved(torch.ones(2).as_subclass(Subclass))
    with pytest.raises(pickle.UnpicklingError, match="Subclass"):
        torch.load(io.BytesIO(data))
    with torch.serialization.safe_globals([Subclass]):
        assert type(torch.load(io.BytesIO(data))) is Subclass
    with pytest.raises(pickle.UnpicklingError):
        torch.load(io.BytesIO(data))
    assert type(torch.load(io.BytesIO(data), weights_only=False)) is Subclass


def test_safe_globals():
    data = saved(defaultdict(list, a=[1]))
    torch.serialization.add_safe_globals([defaultdict, list])
    try:
        assert torch.serialization.get_safe_globals() == [defaultdict, list]
        assert torch.load(io.BytesIO(data)) == {"a": [1]}
    finally:
        torch.serialization.clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError, match="defaultdict"):
        torch.load(io.BytesIO(data))


class Plain(enum.Enum):
    A = "a"


class Bits(enum.IntFlag):
    X = 1
    Y = 2


class Reduced:
    """Is pickled as a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("legacy", [False, True])
def test_members_of_enums(legacy, monkeypatch):
    """They are written by value on every Python, and read as 3.11.2 writes them, too."""
    value = [Plain.A, Bits.X | Bits.Y, pathlib.PurePosixPath("a/b")]
    data = saved(value, _use_new_zipfile_serialization=not legacy)
    assert b"getattr" not in data and b"or_" not in data and b"_local" not in data
    assert torch.load(io.BytesIO(data), weights_only=False) == value
    path = pickle.dumps(value[2], 2).replace(b"cpathlib\n", b"cpathlib._local\n")  # by Python 3.13
    assert torch.load(with_pickle(path), weights_only=False) == value[2]
    others = [
        Reduced(getattr, Plain, "A"),
        Reduced(operator.or_, Reduced(getattr, Bits, "X"), Reduced(getattr, Bits, "Y")),
    ]
    data = saved(others, _use_new_zipfile_serialization=not legacy)
    with pytest.raises(pickle.UnpicklingError, match="getattr was not an allowed global"):
        torch.load(io.BytesIO(data))
    with torch.serialization.safe_globals([Plain, Bits]):
        assert torch.load(io.BytesIO(saved(value[:2]))) == value[:2]
        assert torch.load(io.BytesIO(data)) == value[:2]
        for bad in (
            Reduced(getattr, Plain, "__class__"),
            Reduced(getattr, Plain, "mro"),
            Reduced(getattr, torch.Size, "count"),
            Reduced(operator.or_, {"a": 1}, {"b": 2}),
            Reduced(operator.or_, Reduced(getattr, Bits, "X"), 2.5),
        ):
            with pytest.raises(pickle.UnpicklingError, match="that are allowed alone"):
                torch.load(io.BytesIO(saved(bad)))


def test_names_in_files_are_pytorchs():
    data = zipfile.ZipFile(io.BytesIO(saved([nn.Linear(1, 1), torch.ones(1)]))).read(
        "archive/data.pkl"
    )
    assert b"rushlight" not in data and b"ctorch.nn.modules.linear\nLinear" in data


def test_whole_modules():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        round_trip(model)
    back = round_trip(model, weights_only=False)
    assert torch.equal(back[0].weight, model[0].weight)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_protocols(protocol):
    data = saved({"t": torch.ones(2), "b": b"x"}, pickle_protocol=protocol)
    assert torch.load(io.BytesIO(data))["b"] == b"x"


# ---- where things go ----


def test_map_location():
    t = torch.ones(2)
    seen = []
    for place in ("cpu", torch.device("cpu"), {"cpu": "cpu"}, lambda s, where: seen.append(where)):
        assert torch.equal(round_trip([t, t], map_location=place)[1], t)
    assert seen == ["cpu"]
    assert round_trip(t, map_location="meta").is_meta
    with pytest.raises(RuntimeError, match=r"CUDA device .* map_location"):
        round_trip(t, map_location="cuda:0")
    with pytest.raises(TypeError, match="map_location"):
        round_trip(t, map_location=3)


def test_cuda_storages_are_refused_for_what_is_missing(monkeypatch):
    """Where there are GPUs, but not the one that was saved, that is what the error says."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    t = torch.ones(2)
    for legacy in (False, True):
        with pytest.raises(
            RuntimeError, match=r"CUDA device 3 but torch.cuda.device_count\(\) is 1"
        ):
            source = io.BytesIO(saved(t, _use_new_zipfile_serialization=not legacy))
            torch.load(source, map_location="cuda:3")


def test_a_map_location_that_copies():
    t = torch.arange(3.0)
    for legacy in (False, True):
        source = io.BytesIO(saved(t, _use_new_zipfile_serialization=not legacy))
        assert torch.equal(torch.load(source, map_location=lambda s, place: s.clone()), t)


@pytest.mark.parametrize("mmap", [None, False, True])
def test_paths(tmp_path, mmap):
    t = torch.arange(100000.0)
    for path in (tmp_path / "a.pt", str(tmp_path / "b"), tmp_path / "ünï.pt"):
        torch.save({"t": t, "b": torch.tensor([True])}, path)
        back = torch.load(path, mmap=mmap)
        assert torch.equal(back["t"], t)
        back["t"][0] = 7  # changes the tensor, not the file
        assert torch.load(path)["t"][0] == 0
    assert zipfile.ZipFile(tmp_path / "a.pt").testzip() is None
    assert sorted(os.listdir(tmp_path)) == sorted(["a.pt", "b", "ünï.pt"])


def test_bad_arguments(tmp_path):
    with pytest.raises(RuntimeError, match=r"Parent directory .* does not exist"):
        torch.save(1, tmp_path / "none" / "a.pt")
    with pytest.raises(AttributeError, match="write"):
        torch.save(1, 3)
    with pytest.raises(AttributeError, match="read"):
        torch.load(3)
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "missing.pt")
    with pytest.raises(IsADirectoryError):
        torch.load(tmp_path)
    with pytest.raises(ValueError, match="mmap"):
        torch.load(io.BytesIO(saved(1)), mmap=True)
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        torch.load(io.BytesIO(saved(1)), pickle_module=pickle, weights_only=True)
    assert torch.load(io.BytesIO(saved(1)), pickle_module=pickle) == 1
    with pytest.raises(TypeError, match="binary"):
        torch.load(io.StringIO("text"))
    with pytest.raises(EOFError):
        torch.load(io.BytesIO())


# ---- failures ----


class Refuses:
    """Cannot be pickled."""

    def __reduce__(self):
        raise RuntimeError("not me")


def test_a_failed_save_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.pt"
    torch.save([1], path)
    with pytest.raises(RuntimeError, match="not me"):
        torch.save([torch.ones(1000), Refuses()], path)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        torch.save([torch.ones(1000), lambda: 0], path)
    assert torch.load(path) == [1] and os.listdir(tmp_path) == ["a.pt"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk():
    with pytest.raises(OSError, match="No space"):
        torch.save(torch.ones(1000), "/dev/full")


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="needs /proc/self/io")
def test_small_tensors_are_written_together(tmp_path):
    def calls():
        with open("/proc/self/io") as f:
            return int(f.read().partition("syscw: ")[2].split()[0])

    tensors = [torch.full((4,), float(i)) for i in range(1000)]
    before = calls()
    torch.save(tensors, tmp_path / "many.pt")
    assert calls() - before < 100
    assert all(map(torch.equal, torch.load(tmp_path / "many.pt"), tensors))
    torch.save(tensors[:3], tmp_path / "many.pt")  # replaces it
    assert len(torch.load(tmp_path / "many.pt")) == 3 and os.listdir(tmp_path) == ["many.pt"]


def test_errors_of_the_stream_come_through():
    class Full(io.RawIOBase):
        def write(self, data):
            raise OSError(28, "full")

    with pytest.raises(OSError, match="full"):
        torch.save(torch.ones(3), Full())


# ---- hostile files ----


def test_nothing_is_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path}/evil",)

    for make in (Evil, lambda: [torch.ones(1), Evil()], lambda: {"a": OrderedDict(b=Evil())}):
        with pytest.raises(pickle.UnpicklingError, match="system"):
            torch.load(io.BytesIO(saved(make())))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x80\x02cbuiltins\neval\nX\x03\x00\x00\x001+1\x85R.", "builtins.eval"),
        (b"\x80\x02(ios\nsystem\n.", "INST"),
        (b"\x80\x02c__builtin__\ngetattr\n.", "builtins.getattr"),
        (b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x04\x00\x00\x00zlib\x86R.", "zlib"),
        (b"\x80\x02c__builtin__\nbytearray\nJ\xff\xff\xff\x7f\x85R.", "int"),
        (b"\x80\x02c__builtin__\nset\n]]a\x85R.", "unhashable"),
        (b"\x80\x02}]]s.", "unhashable"),
        (b"\x80\x02ctorch\nfloat32\n)R.", "not allowed"),
        (b"\x80\x02ctorch\nTensor\n)\x81.", "not allowed"),
        (b"\x80\x02K\x01)R.", "not allowed"),
        (b"\x80\x02])R.", "not allowed"),
        (b"\x80\x02K\x01K\x02a.", "appended"),
        (b"\x80\x02]}b.", "Can only build"),
        (b"\x80\x02K\x01Q.", "storage"),
        (b"\x80\x02X\x02\x00\x00\x00\xff\xfe.", "decode"),
        (b"\x80\x02N" + b"\x85" * 5000 + b".", "deep"),
        (b"\x80\x02.", "instead of one"),
        (b"", "truncated"),
    ],
)
def test_hostile_pickles(data, words):
    with pytest.raises(pickle.UnpicklingError, match=words):
        torch.load(with_pickle(data))


def test_tensors_stay_inside_their_storage():
    t = torch.load(with_pickle(tensor_pickle(size=(2, 3), stride=(3, 1), grad=True)))
    assert t.shape == (2, 3) and t.requires_grad
    huge = 2**62
    for bad in (
        {"size": (7,)},
        {"offset": 1},
        {"offset": -1},
        {"offset": huge},
        {"size": (2, 2), "stride": (huge, huge)},
        {"size": (huge, huge), "stride": (0, 0)},
        {"size": (2,), "stride": (huge * 2 - 1,), "offset": 5},
        {"size": (-1,)},
        {"stride": (-1,)},
        {"stride": (1, 1)},
        {"size": (2**70,)},
        {"numel": 7},
        {"numel": -1},
        {"numel": huge},
        {"key": b"1"},
        {"key": b"../version"},
        {"kind": b"DoubleStorage"},
        {"kind": b"LongStorage", "grad": True, "numel": 3, "size": (3,)},
    ):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            t = torch.load(with_pickle(tensor_pickle(**bad)))
            print(bad, t.shape, t.stride())


def test_bools_are_zero_or_one():
    t = torch.load(with_pickle(tensor_pickle(kind=b"BoolStorage", numel=24, size=(24,))))
    assert t.to(torch.uint8).tolist() == [0] + [1] * 23


def test_torchscript_is_named():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as file:
        file.writestr("a/constants.pkl", b"\x80\x02).")
        file.writestr("a/data.pkl", b"\x80\x02).")
    stream.seek(0)
    with pytest.raises(RuntimeError, match="TorchScript"):
        torch.load(stream)


def compressed(method, stored=()):
    """A file like a saved list of one tensor, whose entries are compressed but for some."""
    plain, packed = io.BytesIO(), io.BytesIO()
    torch.save([torch.arange(4.0)], plain)
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(packed, "w") as file:
        for name in source.namelist():
            as_it_is = name.endswith(tuple(stored))
            file.writestr(name, source.read(name), zipfile.ZIP_STORED if as_it_is else method)
    packed.seek(0)
    return packed


def test_compressed_entries():
    """Texts may be compressed, as programs in archives are; data of tensors may not."""
    loaded = torch.load(compressed(zipfile.ZIP_DEFLATED, ["data/0"]))
    assert loaded[0].tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="compressed"):
        torch.load(compressed(zipfile.ZIP_DEFLATED))
    with pytest.raises(RuntimeError, match="unknown method"):
        torch.load(compressed(zipfile.ZIP_BZIP2))
    damaged = compressed(zipfile.ZIP_DEFLATED, ["data/0"]).getvalue()
    at = damaged.index(b"data.pkl") + 8
    for place in range(at, at + 40):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            torch.load(io.BytesIO(damaged[:place] + b"\xff\xee" + damaged[place + 2 :]))


# What a damaged file may raise.
ERRORS = (RuntimeError, pickle.UnpicklingError, EOFError)


def _sample():
    return {
        "w": torch.arange(12.0).view(3, 4)[:, 1:],
        "b": torch.tensor([True, False]),
        "p": nn.Parameter(torch.ones(2)),
        "o": OrderedDict(x=[1, 2.5, None, (1, "two")], y={3}),
        "c": torch.ones(2, dtype=torch.complex64),
    }


@pytest.mark.parametrize("legacy", [False, True])
def test_cut_files(legacy):
    data = saved(_sample(), _use_new_zipfile_serialization=not legacy)
    for size in range(0, len(data), 7):
        with pytest.raises(ERRORS):
            torch.load(io.BytesIO(data[:size]))


@pytest.mark.parametrize("legacy", [False, True])
def test_mutated_files(legacy):
    """Thousands of changed files: each loads or raises one of a few exceptions; none crashes."""
    data = saved(_sample(), _use_new_zipfile_serialization=not legacy)
    numbers = random.Random(0)
    outcomes = Counter()
    for _ in range(3000):
        bad = bytearray(data)
        for _ in range(numbers.choice((1, 1, 2, 8))):
            at = numbers.randrange(len(bad))
            action = numbers.randrange(4)
            if action == 0:
                bad[at] ^= 1 << numbers.randrange(8)
            elif action == 1:
                bad[at] = numbers.choice((0, 1, 0x7F, 0x80, 0xFF, *b"(.)0RbtQ]}u"))
            elif action == 2:
                del bad[at : at + numbers.randrange(1, 9)]
            else:
                bad[at:at] = bad[numbers.randrange(len(bad)) :][: numbers.randrange(1, 30)]
        outcomes[_outcome(bytes(bad))] += 1
    assert outcomes["error"] > 1500


def test_mutated_pickles():
    """The same for the pickle inside, whose checksum is right."""
    data = zipfile.ZipFile(io.BytesIO(saved(_sample()))).read("archive/data.pkl")
    numbers = random.Random(1)
    outcomes = Counter()
    for _ in range(3000):
        bad = bytearray(data)
        for _ in range(numbers.choice((1, 2, 4))):
            at = numbers.randrange(len(bad))
            if numbers.random() < 0.5:
                bad[at] = numbers.randrange(256)
            else:
                bad[at:at] = bad[numbers.randrange(len(bad)) :][: numbers.randrange(1, 40)]
        outcomes[_outcome(with_pickle(bytes(bad)).getvalue())] += 1
    assert outcomes["error"] > 1000


def _outcome(data):
    try:
        back = torch.load(io.BytesIO(data))
    except ERRORS:
        return "error"
    for t in back.values() if isinstance(back, dict) else ():
        if isinstance(t, torch.Tensor):
            t.clone()  # touches all of it
    return "loaded"


def test_tensors_on_files(tmp_path):
    new = torch.from_file(str(tmp_path / "new"), shared=True, size=3, dtype=torch.int16)
    new.copy_(torch.tensor([1, 2, 3]))
    assert (tmp_path / "new").read_bytes() == b"\1\0\2\0\3\0"
    assert torch.from_file(str(tmp_path / "new"), size=3, dtype=torch.int16).tolist() == [1, 2, 3]
    assert len(torch.ShortStorage.from_file(str(tmp_path / "new"), size=2)) == 2
    with pytest.raises(RuntimeError, match="on the CPU only"):
        torch.from_file(str(tmp_path / "new"), size=2, device="meta")


def test_skipped_data(tmp_path):
    path = tmp_path / "file.pt"
    with torch.serialization.skip_data():
        torch.save({"a": torch.ones(1000), "n": 3}, path)
    loaded = torch.load(path)
    assert loaded["n"] == 3 and torch.equal(loaded["a"], torch.zeros(1000))
    offset = torch._C.PyTorchFileReader(str(path)).get_record_offset("data/0")
    data = bytearray(path.read_bytes())
    data[offset : offset + 4] = struct.pack("<f", 5.0)
    path.write_bytes(data)  # filled in by other means
    assert torch.load(path)["a"][:2].tolist() == [5, 0]
    whole = tmp_path / "whole.pt"
    torch.save({"a": torch.ones(1000), "n": 3}, whole)
    assert abs(whole.stat().st_size - path.stat().st_size) < 64  # the name is in it
    with torch.serialization.skip_data():
        assert torch.load(whole)["a"].shape == (1000,)
    assert torch.load(whole)["a"].sum() == 1000
    with pytest.raises(NotImplementedError):
        torch.serialization.skip_data(materialize_fake_tensors=True)


class Custom:
    pass


@pytest.mark.parametrize("asked", [None, True, False])
@pytest.mark.parametrize("value", ["1", "y", "yes", "true", "0", "nonsense"])
def test_the_environment_says_how_files_are_read(monkeypatch, asked, value):
    """TORCH_FORCE_... as PyTorch documents them: one overrides everything, one what is left open."""
    file = saved(Custom())

    def loads():
        try:
            return isinstance(torch.load(io.BytesIO(file), weights_only=asked), Custom)
        except pickle.UnpicklingError:
            return False

    is_set = value not in ("0", "nonsense")
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", value)
    assert loads() == (asked is False and not is_set)
    if is_set:
        with pytest.raises(RuntimeError, match="explicit pickle_module"):
            torch.load(io.BytesIO(file), pickle_module=pickle, weights_only=asked)
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD")
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", value)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert loads() == (asked is False or (asked is None and is_set))
    told = [w for w in seen if "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD" in str(w.message)]
    assert [w.filename for w in told] == ([__file__] if asked is None and is_set else [])
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", value)
    if is_set:
        with pytest.raises(RuntimeError, match="Only one of"):
            loads()


def test_messages_do_not_show_what_is_nested_deep():
    """An id of a storage whose type is a list within lists, deeper than a text of it could be made."""
    out = io.BytesIO()
    torch.save(torch.ones(2), out)
    with zipfile.ZipFile(out) as before:
        entries = {name: before.read(name) for name in before.namelist()}
    deep = b"]" * 5000 + b"a" * 4999
    bad = io.BytesIO()
    with zipfile.ZipFile(bad, "w") as after:
        for name, content in entries.items():
            after.writestr(name, content.replace(b"ctorch\nFloatStorage\n", deep))
    bad.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="a list is no type of storage"):
        torch.load(bad)


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("exists", [False, True])
def test_links_stay_links(tmp_path, exists, legacy):
    target, link = tmp_path / "there" / "target.pt", tmp_path / "link.pt"
    target.parent.mkdir()
    link.symlink_to(target.relative_to(tmp_path))
    if exists:
        target.write_bytes(b"before")
    torch.save(torch.ones(2), link, _use_new_zipfile_serialization=not legacy)
    assert link.is_symlink() and torch.load(target).tolist() == [1, 1]
    assert [path.name for path in target.parent.iterdir()] == ["target.pt"]


@pytest.mark.parametrize("legacy", [False, True])
def test_a_pipe_is_read_once(tmp_path, legacy):
    """A named pipe, or /dev/stdin behind one."""
    pipe, data = tmp_path / "pipe", io.BytesIO()
    torch.save({"a": torch.ones(2)}, data, _use_new_zipfile_serialization=not legacy)
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(data.getvalue(),))
    writer.start()
    assert torch.load(pipe)["a"].tolist() == [1, 1]
    writer.join()
    with pytest.raises(ValueError, match="a pipe, which cannot be mapped"):
        torch.load(pipe, mmap=True)


class Slotted:
    __slots__ = ("a", "b")


class SlottedAndMore(Slotted):
    pass


@pytest.mark.parametrize("kind", [Slotted, SlottedAndMore])
def test_slots_are_read_as_data(kind):
    saved = kind()
    saved.a = torch.ones(2)
    if kind is SlottedAndMore:
        saved.more = 3
    file = io.BytesIO()
    torch.save(saved, file)
    file.seek(0)
    with torch.serialization.safe_globals([kind]):
        loaded = torch.load(file)
    assert loaded.a.tolist() == [1, 1] and not hasattr(loaded, "b")
    assert getattr(loaded, "more", 3) == 3
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="not an allowed global"):
        torch.load(file)


def test_what_no_unpickler_takes():
    file = io.BytesIO()
    torch.save(1, file)
    for options in ({}, {"weights_only": False}, {"pickle_module": pickle}):
        file.seek(0)
        with pytest.raises(TypeError, match="pickle_protocol"):
            torch.load(file, pickle_protocol=2, **options)
