"""Data sets from small files in their official layouts, what damaged ones raise, downloads and archives."""

# ruff: noqa: RUF012

import bz2
import gzip
import hashlib
import http.server
import io
import json
import pickle
import tarfile
import threading
import zipfile

import numpy as np
import pytest
from PIL import Image

import rushlight as torch
from rushlight.vision import datasets
from rushlight.vision.datasets import cifar, utils
from rushlight.vision.datasets import folder as folders

RNG = np.random.default_rng(0)


def pixels(*shape):
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def save(path, height=4, width=5):
    path.parent.mkdir(parents=True, exist_ok=True)
    array = pixels(height, width, 3)
    Image.fromarray(array).save(path)
    return array


# ---- folders ----


def test_image_folder(tmp_path):
    first = save(tmp_path / "cat" / "deep" / "1.png")
    save(tmp_path / "dog" / "2.PNG")
    (tmp_path / "dog" / "notes.txt").write_text("no picture")
    found = datasets.ImageFolder(tmp_path, target_transform=lambda t: t + 10)
    assert found.classes == ["cat", "dog"] and found.targets == [0, 1] and len(found.imgs) == 2
    image, target = found[0]
    np.testing.assert_array_equal(np.asarray(image), first)
    assert target == 10
    assert repr(found).splitlines()[:3] == [
        "Dataset ImageFolder",
        "    Number of datapoints: 2",
        f"    Root location: {tmp_path}",
    ]
    only = datasets.ImageFolder(
        tmp_path, is_valid_file=lambda p: p.endswith("1.png"), allow_empty=True
    )
    assert len(only) == 1
    with pytest.raises(FileNotFoundError, match="Found no valid file for the classes dog"):
        folders.make_dataset(tmp_path, {"dog": 0}, extensions=(".gif",))
    with pytest.raises(ValueError, match="cannot be None or not None at the same time"):
        folders.make_dataset(tmp_path)
    (tmp_path / "cat" / "bad.jpg").write_bytes(b"no picture")
    with pytest.raises(OSError, match="bad.jpg cannot be read as a picture"):
        datasets.ImageFolder(tmp_path)[0]


def test_transforms_of_both(tmp_path):
    with pytest.raises(ValueError, match="Only transforms or transform/target_transform"):
        datasets.VisionDataset(tmp_path, transforms=str, transform=str)
    both = datasets.StandardTransform(None, abs)
    assert both(3, -4) == (3, 4)
    assert repr(both) == "StandardTransform\nTarget transform: <built-in function abs>"


def test_fake_data():
    found = datasets.FakeData(3, (3, 4, 5), 7, transform=np.asarray)
    torch.manual_seed(5)
    (first, target), again = found[1], found[1]
    assert first.shape == (4, 5, 3) and 0 <= target < 7 and np.array_equal(first, again[0])
    assert not np.array_equal(first, found[2][0]) and torch.initial_seed() == 5
    assert datasets.FakeData(1, (1, 4, 5))[0][0].mode == "L"
    with pytest.raises(IndexError, match="index out of range"):
        found[3]


# ---- idx files ----


def idx(values, kind=8):
    header = bytes([0, 0, kind, values.ndim])
    return header + b"".join(n.to_bytes(4, "big") for n in values.shape) + values.tobytes()


@pytest.mark.parametrize("name", ["MNIST", "FashionMNIST", "KMNIST"])
def test_mnist(tmp_path, name):
    raw = tmp_path / name / "raw"
    raw.mkdir(parents=True)
    images, labels = pixels(3, 28, 28), np.arange(3, dtype=np.uint8)
    for part in ("train", "t10k"):
        (raw / f"{part}-images-idx3-ubyte").write_bytes(idx(images))
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels))
    found = getattr(datasets, name)(tmp_path, train=False)
    image, target = found[1]
    assert image.mode == "L" and target == 1 and len(found) == 3 and len(found.classes) == 10
    assert found.data.dtype is torch.uint8 and found.targets.dtype is torch.int64
    np.testing.assert_array_equal(np.asarray(image), images[1])
    path = raw / "t10k-images-idx3-ubyte"
    for damaged in (idx(images)[:-1], b"", b"\1\2\3\4\5", idx(images)[:6], idx(images[0])):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="t10k-images-idx3-ubyte"):
            getattr(datasets, name)(tmp_path, train=False)


def test_emnist_and_qmnist(tmp_path):
    raw = tmp_path / "EMNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / "emnist-letters-train-images-idx3-ubyte").write_bytes(idx(pixels(2, 28, 28)))
    (raw / "emnist-letters-train-labels-idx1-ubyte").write_bytes(idx(np.array([1, 26], np.uint8)))
    found = datasets.EMNIST(tmp_path, "letters")
    assert found.classes[found[1][1]] == "z"
    with pytest.raises(
        ValueError, match="Unknown value 'all' for argument split. Valid values are"
    ):
        datasets.EMNIST(tmp_path, "all")
    raw = tmp_path / "QMNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / "qmnist-test-images-idx3-ubyte").write_bytes(idx(pixels(3, 28, 28)))
    labels = np.arange(24).reshape(3, 8).astype(">i4")
    (raw / "qmnist-test-labels-idx2-int").write_bytes(idx(labels, 12))
    assert [t for _, t in datasets.QMNIST(tmp_path, "test10k")] == [0, 8, 16]
    assert datasets.QMNIST(tmp_path, train=False, compat=False)[1][1].tolist() == list(range(8, 16))


# ---- other arrays ----


def small_cifar(base, folder, evil=None):
    (folder / base.base_folder).mkdir()

    def write(name, content):
        payload = content if isinstance(content, bytes) else pickle.dumps(content)
        (folder / base.base_folder / name).write_bytes(payload)
        return hashlib.md5(payload).hexdigest()

    key = "labels" if base is datasets.CIFAR10 else "fine_labels"
    rows = pixels(3, 3072)

    class Small(base):
        train_list = [["train", write("train", evil or {"data": rows, key: [1, 0, 1]})]]
        test_list = [["test", write("test", {"data": rows[:1], key: [0]})]]
        meta = {**base.meta, "md5": write(base.meta["filename"], {base.meta["key"]: ["a", "b"]})}

    return Small, rows


@pytest.mark.parametrize("base", [datasets.CIFAR10, datasets.CIFAR100])
def test_cifar(tmp_path, base):
    small, rows = small_cifar(base, tmp_path)
    found = small(tmp_path)
    image, target = found[2]
    assert target == 1 and found.classes == ["a", "b"] and found.data.shape == (3, 32, 32, 3)
    np.testing.assert_array_equal(np.asarray(image), rows[2].reshape(3, 32, 32).transpose(1, 2, 0))
    (tmp_path / base.base_folder / "train").write_bytes(b"other")
    with pytest.raises(RuntimeError, match="not found or corrupted.*download=True"):
        small(tmp_path)


def test_files_of_cifar_run_nothing(tmp_path):
    class Evil:
        def __reduce__(self):
            return print, ("run",)

    small, _ = small_cifar(datasets.CIFAR10, tmp_path, pickle.dumps(Evil()))
    with pytest.raises(
        RuntimeError, match="train is damaged: builtins.print is nothing that such a file holds"
    ):
        small(tmp_path)


def test_arrays_of_cifar_say_nothing_false(tmp_path):
    """numpy believes what a pickle says of its dtypes and arrays, and writes beside its memory."""
    path = tmp_path / "rows"
    for array in (
        pixels(3, 12),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(3, dtype=">i4"),
    ):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            path.write_bytes(pickle.dumps({"data": array, "one": np.int64(-5)}, protocol))
            found = cifar._unpickle(path)
            np.testing.assert_array_equal(found["data"], array)
            assert found["one"] == -5
    for wrong in (np.array([None]), np.array([(1, 2.0)], "i4,f8"), np.array(["text"])):
        path.write_bytes(pickle.dumps({"data": wrong}))
        with pytest.raises(RuntimeError, match="rows is damaged"):
            cifar._unpickle(path)
    plain = pickle.dumps({"data": np.zeros((2, 12), np.uint8)}, 2)
    longer = plain.replace(b"K\x02K\x0c\x86", b"K\x02K\xff\x86")
    assert longer != plain
    path.write_bytes(longer)
    with pytest.raises(RuntimeError, match="rows is damaged"):
        cifar._unpickle(path)


def test_svhn(tmp_path):
    io_module = pytest.importorskip("scipy.io")
    data = pixels(32, 32, 3, 4)
    io_module.savemat(
        tmp_path / "train_32x32.mat", {"X": data, "y": np.array([[1], [10], [3], [9]], np.uint8)}
    )

    class Small(datasets.SVHN):
        split_list = {"train": ["", "train_32x32.mat", None]}

    found = Small(tmp_path)
    assert [t for _, t in found] == [1, 0, 3, 9]
    np.testing.assert_array_equal(np.asarray(found[3][0]), data[..., 3])
    (tmp_path / "train_32x32.mat").write_bytes(b"other")
    with pytest.raises(RuntimeError, match=r"train_32x32.mat is damaged"):
        Small(tmp_path)


def test_stl10(tmp_path):
    base = tmp_path / "stl10_binary"
    base.mkdir()
    data = {part: pixels(2, 3, 96, 96) for part in ("train", "unlabeled", "test")}
    for part, values in data.items():
        (base / f"{part}_X.bin").write_bytes(values.tobytes())
        (base / f"{part}_y.bin").write_bytes(bytes([3, 10]))
    (base / "class_names.txt").write_text("airplane\nbird\n")
    (base / "fold_indices.txt").write_text("1\n" + "0 \n" * 9)

    class Small(datasets.STL10):
        train_list = [["train_X.bin", None], ["train_y.bin", None], ["unlabeled_X.bin", None]]
        test_list = [["test_X.bin", None], ["test_y.bin", None]]

    found = Small(tmp_path, "train+unlabeled")
    assert [t for _, t in found] == [2, 9, -1, -1] and found.classes == ["airplane", "bird"]
    np.testing.assert_array_equal(np.asarray(found[0][0]), data["train"][0].transpose(2, 1, 0))
    assert [t for _, t in Small(tmp_path, folds=0)] == [9]
    with pytest.raises(ValueError, match=r"folds should be in the range \[0, 10\), but got 10"):
        Small(tmp_path, folds=10)
    (base / "test_X.bin").write_bytes(b"123")
    with pytest.raises(RuntimeError, match="test_X.bin is damaged"):
        Small(tmp_path, "test")


def test_usps(tmp_path):
    line = "3 " + " ".join(f"{i + 1}:{v}" for i, v in enumerate(np.linspace(-1, 1, 256)))
    (tmp_path / "usps.bz2").write_bytes(bz2.compress(f"{line}\n{line}\n".encode()))
    found = datasets.USPS(tmp_path)
    image, target = found[0]
    assert len(found) == 2 and target == 2 and image.size == (16, 16)
    assert np.asarray(image).flat[0] == 0 and np.asarray(image).flat[-1] == 255
    (tmp_path / "usps.bz2").write_bytes(bz2.compress(b"3 1:0.5\n"))
    with pytest.raises(RuntimeError, match=r"usps.bz2 is damaged"):
        datasets.USPS(tmp_path)
    with pytest.raises(RuntimeError, match="not found or corrupted"):
        datasets.USPS(tmp_path, train=False)


# ---- listed sets ----


def test_food(tmp_path):
    base = tmp_path / "food-101"
    save(base / "images" / "pie" / "1.jpg")
    save(base / "images" / "apple" / "2.jpg")
    (base / "meta").mkdir()
    (base / "meta" / "train.json").write_text(json.dumps({"pie": ["pie/1"], "apple": ["apple/2"]}))
    found = datasets.Food101(tmp_path)
    assert found.classes == ["apple", "pie"] and [t for _, t in found] == [1, 0]
    with pytest.raises(RuntimeError, match="Dataset not found.*download=True"):
        datasets.Food101(tmp_path / "nowhere")


def test_textures(tmp_path):
    base = tmp_path / "dtd" / "dtd"
    save(base / "images" / "banded" / "b.jpg")
    (base / "labels").mkdir()
    (base / "labels" / "val3.txt").write_text("banded/b.jpg\n")
    found = datasets.DTD(tmp_path, "val", partition=3)
    assert (
        found.classes == ["banded"]
        and found[0][1] == 0
        and found.extra_repr() == "split=val, partition=3"
    )
    with pytest.raises(ValueError, match="but got 11 instead"):
        datasets.DTD(tmp_path, partition=11)


def test_traffic_signs(tmp_path):
    base = tmp_path / "gtsrb"
    save(base / "GTSRB" / "Training" / "00001" / "a.ppm")
    save(base / "GTSRB" / "Final_Test" / "Images" / "0.ppm")
    (base / "GT-final_test.csv").write_text("Filename;Width;ClassId\n0.ppm;5;16\n")
    assert datasets.GTSRB(tmp_path)[0][1] == 0
    assert datasets.GTSRB(tmp_path, "test")[0][1] == 16


def test_pets(tmp_path):
    base = tmp_path / "oxford-iiit-pet"
    save(base / "images" / "Abyssinian_1.jpg")
    save(base / "images" / "great_pyrenees_12.jpg")
    (base / "annotations").mkdir()
    (base / "annotations" / "trainval.txt").write_text(
        "Abyssinian_1 1 1 1\ngreat_pyrenees_12 2 2 1\n"
    )
    save(base / "annotations" / "trimaps" / "great_pyrenees_12.png")
    found = datasets.OxfordIIITPet(
        tmp_path, target_types=["category", "binary-category", "segmentation"]
    )
    assert found.classes == ["Abyssinian", "Great Pyrenees"] and found.bin_classes == ["Cat", "Dog"]
    breed, kind, trimap = found[1][1]
    assert (breed, kind, trimap.size) == (1, 1, (5, 4))
    assert datasets.OxfordIIITPet(tmp_path)[0][1] == 0


def test_flowers(tmp_path):
    io_module = pytest.importorskip("scipy.io")
    base = tmp_path / "flowers-102"
    for i in (1, 2, 3):
        save(base / "jpg" / f"image_{i:05d}.jpg")
    io_module.savemat(base / "imagelabels.mat", {"labels": np.array([5, 7, 102])})
    io_module.savemat(base / "setid.mat", {"trnid": [1, 3], "valid": [2, 2], "tstid": [3, 3]})
    found = datasets.Flowers102(tmp_path)
    assert [t for _, t in found] == [4, 101] and len(found.classes) == 102


def test_folders_of_archives(tmp_path):
    save(tmp_path / "country211" / "valid" / "AT" / "a.jpg")
    save(tmp_path / "eurosat" / "2750" / "Forest" / "a.jpg")
    save(tmp_path / "caltech256" / "256_ObjectCategories" / "001.ak47" / "001_0001.jpg")
    assert datasets.Country211(tmp_path, "valid").classes == ["AT"]
    assert datasets.EuroSAT(tmp_path).classes == ["Forest"]
    assert datasets.Caltech256(tmp_path).categories == ["001.ak47"]


# ---- scenes ----


def test_voc(tmp_path):
    base = tmp_path / "VOCdevkit" / "VOC2012"
    save(base / "JPEGImages" / "a.jpg")
    save(base / "SegmentationClass" / "a.png")
    for kind in ("Segmentation", "Main"):
        (base / "ImageSets" / kind).mkdir(parents=True)
        (base / "ImageSets" / kind / "train.txt").write_text("a\n")
    (base / "Annotations").mkdir()
    (base / "Annotations" / "a.xml").write_text(
        "<annotation><filename>a.jpg</filename><object><name>cat</name><part>x</part><part>y</part></object></annotation>"
    )
    assert datasets.VOCSegmentation(tmp_path)[0][1].size == (5, 4)
    target = datasets.VOCDetection(tmp_path)[0][1]
    assert target == {
        "annotation": {"filename": "a.jpg", "object": [{"name": "cat", "part": ["x", "y"]}]}
    }
    with pytest.raises(ValueError, match="Unknown value 'test' for argument image_set"):
        datasets.VOCDetection(tmp_path, image_set="test")
    (base / "Annotations" / "a.xml").write_text("<annotation>")
    with pytest.raises(RuntimeError, match="a.xml is damaged"):
        datasets.VOCDetection(tmp_path)[0]


def test_coco(tmp_path):
    save(tmp_path / "1.png")
    save(tmp_path / "2.png")
    annotations = [{"id": 7, "image_id": 2, "bbox": [0, 0, 1, 1], "caption": "two"}]
    images = [{"id": i, "file_name": f"{i}.png"} for i in (2, 1)]
    path = tmp_path / "annotations.json"
    path.write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": [{"id": 3}]})
    )
    found = datasets.CocoDetection(tmp_path, str(path))
    assert (
        found.ids == [1, 2]
        and found[0][1] == []
        and found[1][1] == annotations
        and list(found.coco.cats) == [3]
    )
    assert datasets.CocoCaptions(tmp_path, str(path))[1][1] == ["two"]
    with pytest.raises(ValueError, match="Index must be of type integer"):
        found["a"]
    path.write_text("{}")
    with pytest.raises(RuntimeError, match="annotations.json is damaged"):
        datasets.CocoDetection(tmp_path, str(path))


# ---- downloads and archives ----


class Server(http.server.BaseHTTPRequestHandler):
    content = bytes(range(256)) * 1000
    asked: list = []
    breaks = False

    def do_GET(self):
        wanted = self.headers.get("Range")
        Server.asked.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(self.content) - start))
        self.end_headers()
        body = self.content[start:]
        self.wfile.write(body[: len(body) // 2] if Server.breaks else body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    Server.asked, Server.breaks = [], False
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}/file.bin"
    running.shutdown()
    running.server_close()


def test_downloads_go_on(tmp_path, server):
    md5 = hashlib.md5(Server.content).hexdigest()
    Server.breaks = True
    with pytest.raises(
        RuntimeError,
        match="cannot be downloaded.*Without a network, put the file at .*file.bin by hand",
    ):
        utils.download_url(server, tmp_path, md5=md5)
    Server.breaks = False
    utils.download_url(server, tmp_path, md5=md5)
    assert Server.asked == [None, f"bytes={len(Server.content) // 2}-"]
    assert (tmp_path / "file.bin").read_bytes() == Server.content
    utils.download_url(server, tmp_path, md5=md5)
    assert len(Server.asked) == 2 and not list(tmp_path.glob("*.partial"))


def test_sums_that_differ(tmp_path, server):
    with pytest.raises(RuntimeError, match="File not found or corrupted"):
        utils.download_url(server, tmp_path, md5="0" * 32)
    assert not (tmp_path / "file.bin").exists()


def test_no_network(tmp_path):
    with pytest.raises(RuntimeError, match="put the file at .*train-images-idx3-ubyte.gz by hand"):

        class Nowhere(datasets.MNIST):
            mirrors = ["http://127.0.0.1:9/"]

        Nowhere(tmp_path, download=True)


def make_tar(path, *members):
    with tarfile.open(path, "w:gz") as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))


def member(name, size=0, kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, link
    return info


def test_archives(tmp_path):
    make_tar(
        tmp_path / "a.tar.gz", (member("d", kind=tarfile.DIRTYPE), b""), (member("d/x", 3), b"abc")
    )
    assert utils.extract_archive(str(tmp_path / "a.tar.gz"), str(tmp_path / "out")) == str(
        tmp_path / "out"
    )
    assert (tmp_path / "out" / "d" / "x").read_bytes() == b"abc"
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("e/y", b"de")
    utils.extract_archive(tmp_path / "b.zip", remove_finished=True)
    assert (tmp_path / "e" / "y").read_bytes() == b"de" and not (tmp_path / "b.zip").exists()
    (tmp_path / "f.txt.gz").write_bytes(gzip.compress(b"text"))
    utils.extract_archive(tmp_path / "f.txt.gz")
    assert (tmp_path / "f.txt").read_bytes() == b"text"
    with pytest.raises(RuntimeError, match="Unknown compression or archive type"):
        utils.extract_archive(tmp_path / "f.txt")
    for name in ("g.zip", "g.tar.gz", "g.txt.gz"):
        (tmp_path / name).write_bytes(b"damaged")
        with pytest.raises(RuntimeError, match="is damaged"):
            utils.extract_archive(tmp_path / name)


@pytest.mark.parametrize(
    "bad",
    [
        (member("../x", 1), b"a"),
        (member("/tmp/x", 1), b"a"),
        (member("a/../../x", 1), b"a"),
        (member("link", kind=tarfile.SYMTYPE, link="/etc"), b""),
        (member("hard", kind=tarfile.LNKTYPE, link="/etc/passwd"), b""),
        (member("pipe", kind=tarfile.FIFOTYPE), b""),
    ],
)
def test_archives_write_nowhere_else(tmp_path, bad):
    inside = tmp_path / "deep" / "er"
    inside.mkdir(parents=True)
    make_tar(inside / "a.tgz", bad)
    with pytest.raises(RuntimeError, match=r"outside of|neither a file nor a folder"):
        utils.extract_archive(inside / "a.tgz")
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["a.tgz"]


def test_zips_write_nowhere_else(tmp_path):
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    for name in ("../x", "C:/x", "a\\..\\..\\x", link):
        path = tmp_path / "a.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, b"/etc")
        with pytest.raises(RuntimeError, match=r"outside of|is a link"):
            utils.extract_archive(path, tmp_path / "out")
        path.unlink()


def test_archives_have_limits(tmp_path, monkeypatch):
    monkeypatch.setattr(utils, "_MOST_BYTES", 1000)
    monkeypatch.setattr(utils, "_MOST_BYTES_EACH", 1)
    (tmp_path / "zeros.gz").write_bytes(gzip.compress(bytes(10**6)))
    with pytest.raises(RuntimeError, match="unpacks to more than"):
        utils.extract_archive(tmp_path / "zeros.gz")


def test_arguments():
    assert utils.verify_str_arg("a", "split", ("a", "b")) == "a"
    with pytest.raises(
        ValueError, match="Unknown value 'c' for argument split. Valid values are {'a', 'b'}."
    ):
        utils.verify_str_arg("c", "split", ("a", "b"))
    with pytest.raises(
        ValueError, match="Expected type str for argument split, but got type <class 'int'>."
    ):
        utils.verify_str_arg(1, "split")
    assert utils.iterable_to_str([1, "b"]) == "'1', 'b'"


def test_google_drive(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(
        utils, "_fetch", lambda url, path: (asked.append(url), path.write_bytes(b"x"))
    )
    utils.download_url("https://drive.google.com/file/d/ID/view", tmp_path, "name")
    utils.download_url("https://drive.google.com/uc?export=download&id=OTHER", tmp_path, "other")
    assert ["id=ID&" in asked[0], "id=OTHER&" in asked[1]] == [True, True]


def test_lists_of_folders(tmp_path):
    save(tmp_path / "d" / "a.png")
    save(tmp_path / "b.png")
    assert utils.list_dir(tmp_path) == ["d"] and utils.list_files(tmp_path, ".png", True) == [
        str(tmp_path / "b.png")
    ]
    assert folders.is_image_file("a.PNG") and not folders.is_image_file("a.txt")
