"""Archives of objects with their code: what goes into them, what must be there, what is left out."""

import importlib
import io
import sys
import zipfile

import pytest

import rushlight as torch
from rushlight.package import (
    EmptyMatchError,
    GlobGroup,
    PackageExporter,
    PackageImporter,
    PackagingError,
    is_from_package,
)

SOURCES = {
    "__init__.py": "from .parts import scaled\n",
    "parts.py": "import math\n\n\ndef scaled(x):\n    return x * math.pi\n",
    "nets.py": (
        "import rushlight as torch\n"
        "from rushlight import nn\n"
        "from . import parts\n"
        "import {name}.absent as absent\n\n\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.layer = nn.Linear(2, 2)\n"
        "        self.tied = self.layer.weight\n\n"
        "    def forward(self, x):\n"
        "        return parts.scaled(self.layer(x))\n\n"
        "    def made(self):\n"
        "        return absent.Kind(1)\n\n"
        "    def inherited(self):\n"
        "        class Own(absent.Kind):\n"
        "            pass\n\n"
        "        return Own()\n\n"
        "    def lacking(self):\n"
        "        return absent.function()\n"
    ),
    "absent.py": "def function():\n    return 1\n",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package on disk, imported under a name of its own; its name."""
    name = "packed_" + tmp_path.name.replace("-", "_")
    (tmp_path / name).mkdir()
    for file, text in SOURCES.items():
        (tmp_path / name / file).write_text(text.replace("{name}", name))
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield name
    for module in [m for m in sys.modules if m.partition(".")[0] == name]:
        del sys.modules[module]


def archive(save, **file):
    stream = io.BytesIO()
    with PackageExporter(stream) as exporter:
        save(exporter)
    stream.seek(0)
    return stream


def packed(name):
    """An archive with a network, and the network."""
    net = importlib.import_module(f"{name}.nets").Net()

    def save(exporter):
        exporter.mock(f"{name}.absent")
        exporter.intern(f"{name}.**")
        exporter.save_pickle("model", "net.pkl", net)

    return archive(save), net


def test_objects_come_back_with_their_code(package):
    stream, net = packed(package)
    importer = PackageImporter(stream)
    x = torch.randn(3, 2)
    wanted = net(x)
    for module in [m for m in sys.modules if m.partition(".")[0] == package]:
        del sys.modules[module]
    loaded = importer.load_pickle("model", "net.pkl")
    assert torch.equal(loaded(x), wanted)
    assert loaded.tied is loaded.layer.weight
    assert type(loaded) is not type(net) and is_from_package(loaded) and not is_from_package(net)
    assert type(loaded).__module__ == f"{importer.id()}.{package}.nets"
    assert not any(m.startswith(package) for m in sys.modules)  # apart from the program's
    assert importer.import_module(f"{package}.nets").torch is torch
    assert importer.import_module(".nets", package).Net is type(loaded)
    assert "math.pi" in importer.get_source(f"{package}.parts")
    moved = PackageImporter(stream).load_pickle("model", "net.pkl", map_location="meta")
    assert moved.layer.weight.is_meta and type(moved) is not type(loaded)


def test_what_is_left_out_says_so_when_it_is_used(package):
    stream, net = packed(package)
    assert net.lacking() == 1
    loaded = PackageImporter(stream).load_pickle("model", "net.pkl")
    with pytest.raises(NotImplementedError, match=r"absent\.function' was left out"):
        loaded.lacking()
    with pytest.raises(NotImplementedError, match=r"absent\.Kind' was left out"):
        loaded.made()
    with pytest.raises(NotImplementedError, match="Own was left out"):
        loaded.inherited()


def test_what_becomes_of_modules(package):
    net = importlib.import_module(f"{package}.nets").Net()
    exporter = PackageExporter(io.BytesIO())
    exporter.mock(f"{package}.absent")
    exporter.intern(f"{package}.**")
    exporter.save_pickle("model", "net.pkl", net)
    # `from . import parts` needs the package itself.
    assert exporter.interned_modules() == [package, f"{package}.nets", f"{package}.parts"]
    assert exporter.mocked_modules() == [f"{package}.absent"]
    assert "math" in exporter.externed_modules()
    assert package not in exporter.externed_modules()


@pytest.mark.parametrize(
    "rules, words",
    [
        (lambda e, name: None, "no pattern says"),
        (lambda e, name: e.deny(f"{name}.**"), "denied"),
        (
            lambda e, name: (e.deny(f"{name}.parts"), e.intern(f"{name}.**")),
            r"parts: it was denied",
        ),
    ],
)
def test_modules_that_cannot_be_there(package, rules, words):
    net = importlib.import_module(f"{package}.nets").Net()

    def save(exporter):
        rules(exporter, package)
        exporter.save_pickle("model", "net.pkl", net)

    with pytest.raises(PackagingError, match=words):
        archive(save)


def test_modules_without_sources_are_not_interned():
    def save(exporter):
        exporter.intern("zlib")
        exporter.save_source_string("user", "import zlib")

    with pytest.raises(PackagingError, match=r"zlib: it .*no source|zlib: it has no source"):
        archive(save)

    def unknown(exporter):
        exporter.intern("no_such_module")
        exporter.save_source_string("user", "import no_such_module")

    with pytest.raises(PackagingError, match="not found"):
        archive(unknown)


def test_a_pattern_that_has_to_match():
    def save(exporter):
        exporter.intern("nothing.**", allow_empty=False)

    with pytest.raises(EmptyMatchError, match="nothing"):
        archive(save)


def test_texts_bytes_and_sources(tmp_path):
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text("X = 1\n")
    (folder / "inner" / "__init__.py").write_text("from .. import X\nfrom .deep import *\n")
    (folder / "inner" / "deep.py").write_text("__all__ = ['Y']\nY, _Z = 2, 3\n")

    def save(exporter):
        exporter.save_text("a.b", "t.txt", "\u00e4")
        exporter.save_binary("a", "b.bin", b"\x00\x01")
        exporter.save_source_file("whole", str(folder))
        exporter.save_source_string(
            "late", "def f():\n    import whole.inner as w\n    return w.Y\n"
        )
        assert [exporter.get_unique_id() for _ in range(2)] == ["0", "1"]

    path = tmp_path / "file.pt"
    path.write_bytes(archive(save).getvalue())
    importer = PackageImporter(path)
    assert importer.load_text("a.b", "t.txt") == "\u00e4"
    assert importer.load_binary("a", "b.bin") == b"\x00\x01"
    inner = importer.import_module("whole.inner")
    assert (inner.X, inner.Y) == (1, 2) and not hasattr(inner, "_Z")
    assert importer.import_module("late").f() == 2
    assert importer.import_module("whole").inner is inner
    assert importer.python_version() == ".".join(map(str, sys.version_info[:3]))
    with pytest.raises(ModuleNotFoundError, match="has no module missing"):
        importer.import_module("missing")
    assert any(name.endswith("/whole/inner/deep.py") for name in zipfile.ZipFile(path).namelist())


def test_modules_that_the_reader_does_not_allow():
    def save(exporter):
        exporter.save_source_string("user", "import os")

    stream = archive(save)
    with pytest.raises(ImportError, match="os, which is not allowed"):
        PackageImporter(stream, lambda name: name != "os")
    assert PackageImporter(stream).import_module("user").os is importlib.import_module("os")
    with pytest.raises(ModuleNotFoundError):  # nobody said that it needs it
        PackageImporter(stream).import_module("json")


def test_a_module_that_fails_is_not_there():
    stream = archive(lambda exporter: exporter.save_source_string("bad", "1 / 0"))
    importer = PackageImporter(stream)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            importer.import_module("bad")


@pytest.mark.parametrize(
    "pattern, fits, others",
    [
        ("a.*", ["a.b"], ["a", "a.b.c", "b.a"]),
        ("a.**", ["a", "a.b", "a.b.c"], ["ab", "b.a"]),
        ("**.c", ["c", "a.c", "a.b.c"], ["a.cc"]),
        ("a*.b", ["a.b", "ax.b"], ["b.b"]),
        (["a", "b"], ["a", "b"], ["c"]),
    ],
)
def test_patterns(pattern, fits, others):
    group = GlobGroup(pattern)
    assert all(map(group.matches, fits)) and not any(map(group.matches, others))
    assert not GlobGroup("**", exclude=pattern).matches(fits[0])


def test_what_is_no_pattern():
    with pytest.raises(ValueError, match="whole part"):
        GlobGroup("a.b**")
