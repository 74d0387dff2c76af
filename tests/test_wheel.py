"""cmake/finish_wheel.py: tags, materials and bits of a wheel, on a small one."""

import hashlib
import importlib.util
import json
import zipfile
from pathlib import Path

import pytest

import rushlight

ROOT = Path(__file__).resolve().parent.parent
EPOCH = 1_700_000_000
INFO = "rushlight-0.1.0.dist-info"


@pytest.fixture(scope="module")
def finish_wheel():
    spec = importlib.util.spec_from_file_location("finish_wheel", ROOT / "cmake/finish_wheel.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def wheel(tmp_path):
    """Writes a wheel with extensions for these Pythons, in this order, and returns its path."""
    library = (Path(rushlight.__file__).parent / "lib/librushlight_distributed_mpi.so").read_bytes()

    def write(*pythons, order=1, folder="first"):
        files = {
            "rushlight/__init__.py": b"",
            "rushlight/licenses/pocketfft.txt": b"a licence",
            f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: rushlight\nVersion: 0.1.0\n",
            f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nTag: cp311-cp311-linux_x86_64\n",
            f"{INFO}/RECORD": b"",
        }
        files["rushlight/lib/librushlight.so"] = library
        for python in pythons:
            files[f"rushlight/_C.cpython-{python}-x86_64-linux-gnu.so"] = library
        path = tmp_path / folder / "rushlight-0.1.0-cp311-cp311-linux_x86_64.whl"
        path.parent.mkdir()
        with zipfile.ZipFile(path, "w") as archive:
            for name in list(files)[::order]:
                archive.writestr(name, files[name])
        return path

    return write


def test_tags_are_those_of_the_extensions(finish_wheel, wheel):
    path = finish_wheel.finish(wheel("310", "39", "313t", "313"), EPOCH)
    pythons, abis, platform = path.stem.split("-")[2:]
    assert pythons == "cp39.cp310.cp313" and abis == "cp39.cp310.cp313.cp313t"
    assert platform.startswith("manylinux_2_") and platform.endswith("_x86_64")
    with zipfile.ZipFile(path) as archive:
        lines = archive.read(f"{INFO}/WHEEL").decode().splitlines()
    tags = [line.split(": ")[1] for line in lines if line.startswith("Tag")]
    assert tags == [
        f"{python}-{abi}-{platform}"
        for python, abi in zip(("cp39", "cp310", "cp313", "cp313"), abis.split("."), strict=True)
    ]


def test_a_wheel_without_an_extension_is_refused(finish_wheel, wheel):
    with pytest.raises(SystemExit, match="has no rushlight/_C"):
        finish_wheel.finish(wheel(), EPOCH)


def test_the_order_and_age_of_files_change_no_bit(finish_wheel, wheel):
    first = finish_wheel.finish(wheel("311", "312"), EPOCH)
    second = finish_wheel.finish(wheel("311", "312", order=-1, folder="second"), EPOCH)
    assert first != second and first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(2023, 11, 14, 22, 13, 20)}


def test_the_record_names_every_file_with_its_hash(finish_wheel, wheel):
    path = finish_wheel.finish(wheel("311"), EPOCH)
    with zipfile.ZipFile(path) as archive:
        rows = dict(
            line.split(",", 1) for line in archive.read(f"{INFO}/RECORD").decode().splitlines()
        )
        assert rows.keys() == set(archive.namelist())
        for name in archive.namelist():
            data = archive.read(name)
            if name != f"{INFO}/RECORD":
                digest = finish_wheel.record_of({name: data}, "").decode().split(",")[1]
                assert rows[name] == f"{digest},{len(data)}"
    assert (
        finish_wheel.record_of({"a": b""}, "")
        .decode()
        .startswith("a,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n")
    )


def test_materials_are_what_the_wheel_contains(finish_wheel, wheel):
    path = finish_wheel.finish(wheel("311"), EPOCH)
    with zipfile.ZipFile(path) as archive:
        made = json.loads(archive.read(f"{INFO}/sboms/rushlight.cdx.json"))
        library = archive.read("rushlight/lib/librushlight.so")
    assert made["bomFormat"] == "CycloneDX" and made["metadata"]["component"]["version"] == "0.1.0"
    assert made["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    (part,) = made["components"]  # the one whose licence travels
    assert part["name"] == "pocketfft"
    assert part["licenses"] == [{"expression": "BSD-3-Clause"}]
    digest = hashlib.sha256(library).hexdigest()
    assert part["hashes"] == [{"alg": "SHA-256", "content": digest}]


def test_all_of_third_party_is_understood(finish_wheel):
    rows = finish_wheel.third_party()
    parts = {part["name"]: part for part in (finish_wheel.component(row, {}) for row in rows)}
    assert parts["oneDNN"]["version"] == "3.2" and parts["OpenBLAS"]["version"] == "0.3.34"
    assert {"xbyak", "nanobind", "robin_map", "Gloo"} <= parts.keys()
    known = {"Apache-2.0", "BSD-3-Clause", "MIT", *finish_wheel.LICENCES.values()}
    assert {part["licenses"][0]["expression"] for part in parts.values()} <= known
