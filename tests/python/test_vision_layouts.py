"""Data sets from small files in their official layouts: items, what damaged files raise, and what is asked for."""

import io
import tarfile
import types

import numpy as np
import pytest
from PIL import Image

import rushlight as torch
from rushlight.vision import datasets
from rushlight.vision.datasets import _maps, utils
from tests.python.vision_layouts import LAYOUTS, Tree, png16, savemat

# How many items the settings of a layout find.
COUNTS = {
    "Sintel": [4, 8, 4],
    "KittiFlow": [2, 2],
    "FlyingChairs": [2, 1],
    "FlyingThings3D": [8, 32, 8],
    "HD1K": [4, 2],
    "Middlebury2014Stereo": [10, 20, 15],
    "CREStereo": [8],
    "FallingThingsStereo": [1, 2],
    "SceneFlowStereo": [2, 4, 2],
    "CelebA": [2, 3],
    "LFWPeople": [5, 3],
    "LFWPairs": [8, 4],
    "Caltech101": [4, 4],
    "INaturalist": [6, 3, 3],
    "PhotoTour": [256, 2],
    "SUN397": [3],
    "FER2013": [2, 2],
}


@pytest.fixture
def any_sums(monkeypatch):
    """Files count as what they should be whatever their sums are."""
    monkeypatch.setattr(utils, "check_md5", lambda *a, **k: True)


def read(name, root, setting):
    how = {k: v(root) if callable(v) else v for k, v in setting.items()}
    return getattr(datasets, name)(root, **how)


@pytest.mark.parametrize("name", LAYOUTS)
def test_items(name, tmp_path, any_sums):
    write, settings = LAYOUTS[name]
    write(Tree(tmp_path))
    counts = []
    for setting in settings:
        found = read(name, tmp_path, setting)
        items = [found[i] for i in range(len(found))]
        assert items and name in repr(found)
        first = items[0][0] if isinstance(items[0], tuple) else items[0]
        assert isinstance(first, Image.Image | torch.Tensor)
        counts.append(len(items))
    assert counts == COUNTS.get(name, counts)


@pytest.mark.parametrize("name", LAYOUTS)
def test_missing_files(name, tmp_path, any_sums):
    _, settings = LAYOUTS[name]
    for setting in settings:
        with pytest.raises((RuntimeError, FileNotFoundError)) as error:
            read(name, tmp_path, setting)
        said = str(error.value)
        assert any(
            w in said for w in ("not found", "not find", "No such file", "has none", "missing")
        )


@pytest.mark.parametrize("name", LAYOUTS)
def test_damaged_files_are_named(name, tmp_path, any_sums):
    write, settings = LAYOUTS[name]
    write(Tree(tmp_path))
    kinds = {}
    for path in sorted(p for p in tmp_path.rglob("*") if p.is_file()):
        kinds.setdefault((path.parts[len(tmp_path.parts)], path.suffix), path)
    raised = 0
    for path in kinds.values():
        content = path.read_bytes()
        for damaged in (b"\x00\xffno such thing", content[: len(content) // 2]):
            path.write_bytes(damaged)
            for setting in settings:
                try:
                    found = read(name, tmp_path, setting)
                    for i in range(len(found)):
                        item = found[i]
                        for part in item if isinstance(item, tuple) else ():
                            if isinstance(part, Image.Image):
                                part.load()
                except (RuntimeError, OSError) as error:
                    if "truncated" not in str(error) and "cannot identify" not in str(error):
                        # A list that ends within a name names a picture that is not there.
                        assert path.stem in str(error) or str(tmp_path) in str(error), path
                    raised += 1
        path.write_bytes(content)
    assert raised


@pytest.mark.parametrize("kind", range(5))
def test_colours_of_16_bits(kind, tmp_path):
    values = np.random.default_rng(kind).integers(0, 65536, (7, 9, 3))
    (tmp_path / "a.png").write_bytes(png16(values, [kind]))
    np.testing.assert_array_equal(_maps.read_png16(tmp_path / "a.png"), values)
    Image.new("RGB", (3, 3)).save(tmp_path / "b.png")
    with pytest.raises(RuntimeError, match="b.png is damaged.*of 16 bits"):
        _maps.read_png16(tmp_path / "b.png")


def test_maps_of_floats(tmp_path):
    path = tmp_path / "a.pfm"
    for order, scale in (("<f4", b"-1"), (">f4", b"1")):
        values = np.arange(12.0).reshape(2, 2, 3)
        path.write_bytes(b"PF\n2 2\n" + scale + b"\n" + values.astype(order).tobytes())
        found = _maps.read_pfm(path, 2)
        np.testing.assert_array_equal(found, values[::-1].transpose(2, 0, 1)[:2])
    for bad in (b"PX\n2 2\n-1\n", b"PF\n99999999 9\n-1\n", b"PF\n2 2\n-1\nshort", b"PF"):
        path.write_bytes(bad)
        with pytest.raises(RuntimeError, match="a.pfm is damaged"):
            _maps.read_pfm(path, 1)


def test_transforms_of_flow_and_stereo(tmp_path):
    for name in ("Sintel", "InStereo2k"):
        LAYOUTS[name][0](Tree(tmp_path))
    flow = datasets.Sintel(tmp_path, transforms=lambda a, b, f, m: (a, b, -f, np.ones(3)))
    plain = datasets.Sintel(tmp_path)
    assert len(flow[0]) == 4 and (flow[0][2] == -plain[0][2]).all() and flow[0][3].all()
    assert len(3 * plain) == 12
    stereo = datasets.InStereo2k(tmp_path, transforms=lambda i, d, m: (i, (None, None), m))
    assert stereo[0][2] is None and len(stereo[0]) == 3


def test_ambient_views(tmp_path):
    LAYOUTS["Middlebury2014Stereo"][0](Tree(tmp_path))
    base = tmp_path / "Middlebury2014" / "train" / "Adirondack-perfect"
    for name, colour in (("im1", 0), ("im1E", 100), ("im1L", 200)):
        Image.new("RGB", (5, 4), (colour, 0, 0)).save(base / f"{name}.png")
    found = datasets.Middlebury2014Stereo(tmp_path, use_ambient_views=True)
    assert {found[0][1].getpixel((0, 0))[0] for _ in range(60)} == {0, 100, 200}
    with pytest.raises(ValueError, match="has only no calibration settings"):
        datasets.Middlebury2014Stereo(tmp_path, "test")
    with pytest.raises(ValueError, match="however None was provided"):
        datasets.Middlebury2014Stereo(tmp_path, calibration=None)


def packed(path, files):
    """A tar of files {name: bytes}."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def jpeg(colour):
    out = io.BytesIO()
    Image.new("RGB", (5, 4), (colour, 0, 0)).save(out, "jpeg")
    return out.getvalue()


def test_imagenet_unpacks_what_is_there(tmp_path, any_sums):
    with pytest.raises(RuntimeError, match="devkit_t12.tar.gz is not present.*externally"):
        datasets.ImageNet(tmp_path)
    dtype = [(n, "O") for n in ("ILSVRC2012_ID", "WNID", "words", "gloss", "num_children")]
    rows = np.array(
        [(1, "n01", "tench, Tinca", "", 0), (2, "n02", "cat", "", 0), (3, "n03", "all", "", 2)],
        dtype,
    )
    savemat(tmp_path / "meta.mat", {"synsets": rows})
    data = "ILSVRC2012_devkit_t12/data"
    packed(
        tmp_path / "ILSVRC2012_devkit_t12.tar.gz",
        {
            f"{data}/meta.mat": (tmp_path / "meta.mat").read_bytes(),
            f"{data}/ILSVRC2012_validation_ground_truth.txt": b"2\n1\n2\n",
        },
    )
    for wnid in ("n01", "n02"):
        packed(tmp_path / f"{wnid}.tar", {f"{wnid}_{i}.JPEG": jpeg(i) for i in range(2)})
    parts = {f"{w}.tar": (tmp_path / f"{w}.tar").read_bytes() for w in ("n01", "n02")}
    packed(tmp_path / "ILSVRC2012_img_train.tar", parts)
    pictures = {f"ILSVRC2012_val_0000000{i}.JPEG": jpeg(80 * i) for i in range(3)}
    packed(tmp_path / "ILSVRC2012_img_val.tar", pictures)
    train = datasets.ImageNet(tmp_path)
    assert train.wnids == ["n01", "n02"] and train.classes == [("tench", "Tinca"), ("cat",)]
    assert train.class_to_idx == {"tench": 0, "Tinca": 0, "cat": 1} and len(train) == 4
    val = datasets.ImageNet(tmp_path, "val")
    assert val.targets == [0, 1, 1]
    assert "Split: val" in repr(val) and (tmp_path / "meta.bin").is_file()
    (tmp_path / "meta.bin").write_bytes(b"no pickle")
    with pytest.raises(RuntimeError, match="meta.bin is damaged"):
        datasets.ImageNet(tmp_path)


def test_names_of_living_things(tmp_path):
    LAYOUTS["INaturalist"][0](Tree(tmp_path))
    found = datasets.INaturalist(tmp_path, "2021_valid", ["full", "kingdom"])
    assert found[4][1] == (2, 1) and found.category_name("kingdom", 1) == "Plantae"
    assert found.category_name("full", 1).endswith("corax")
    for kind, number, said in (("rank", 0, "Invalid category type"), ("genus", 9, "category id 9")):
        with pytest.raises(ValueError, match=said):
            found.category_name(kind, number)
    (tmp_path / "2018" / "Aves" / "pica").mkdir()
    with pytest.raises(RuntimeError, match="Unexpected non-numeric dir name: pica"):
        datasets.INaturalist(tmp_path, "2018")
    (tmp_path / "2018" / "Aves" / "pica").rename(tmp_path / "2018" / "Aves" / "7")
    with pytest.raises(RuntimeError, match="Missing category 3"):
        datasets.INaturalist(tmp_path, "2018")


class Database(dict):
    """What LSUN asks of a database."""

    def begin(self, write):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def cursor(self):
        return self

    def iternext(self, keys, values):
        return sorted(self)


def test_databases(tmp_path, monkeypatch):
    with pytest.raises(RuntimeError, match="lmdb is not found"):
        datasets.LSUN(tmp_path)
    contents = {
        "bedroom_train_lmdb": {b"b": jpeg(0), b"a": jpeg(200)},
        "tower_train_lmdb": {b"c": jpeg(100), b"d": b"no picture"},
    }
    fake = types.ModuleType("lmdb")
    fake.Error = OSError
    fake.open = lambda path, **how: Database(contents[path.rsplit("/", 1)[-1]])
    monkeypatch.setitem(__import__("sys").modules, "lmdb", fake)
    found = datasets.LSUN(tmp_path, ["bedroom_train", "tower_train"], target_transform=lambda t: -t)
    assert len(found) == 4 and [found[i][1] for i in range(3)] == [0, 0, -1]
    assert found[0][0].getpixel((0, 0))[0] > 190
    with pytest.raises(RuntimeError, match="b'd' is damaged"):
        found[3]
    for classes, said in ((3, "Expected type str or Seq"), (["moon_train"], "for LSUN class")):
        with pytest.raises(ValueError, match=said):
            datasets.LSUN(tmp_path, classes)


def test_hdf5(tmp_path, monkeypatch):
    with pytest.raises(RuntimeError, match="h5py is not found"):
        datasets.PCAM(tmp_path)
    arrays = {"x": np.full((2, 4, 4, 3), 7, np.uint8), "y": np.array([0, 1]).reshape(2, 1, 1, 1)}

    class File(dict):
        def __init__(self, path):
            super().__init__(arrays if path.stat().st_size == 0 else {})

        __enter__ = lambda self: self
        __exit__ = lambda self, *error: None

    fake = types.ModuleType("h5py")
    fake.File = File
    monkeypatch.setitem(__import__("sys").modules, "h5py", fake)
    with pytest.raises(RuntimeError, match="Dataset not found"):
        datasets.PCAM(tmp_path, "val")
    names = [f"camelyonpatch_level_2_split_valid_{what}.h5" for what in "xy"]
    for name in names:
        Tree(tmp_path).place(f"pcam/{name}").write_bytes(b"")
    found = datasets.PCAM(tmp_path, "val")
    assert [t for _, t in found] == [0, 1] and found[1][0].getpixel((0, 0)) == (7, 7, 7)
    (tmp_path / "pcam" / names[1]).write_bytes(b"damaged")
    with pytest.raises(RuntimeError, match="valid_y.h5 is damaged"):
        found[0]


def test_settings_that_do_not_fit(tmp_path):
    with pytest.raises(ValueError, match="LFW dataset is no longer available"):
        datasets.LFWPeople(tmp_path, download=True)
    with pytest.raises(ValueError, match="not available for automatic"):
        datasets.StanfordCars(tmp_path, download=True)
    with pytest.raises(RuntimeError, match="target_type is empty"):
        datasets.CelebA(tmp_path, target_type=[], target_transform=int)
    with pytest.raises(ValueError, match="if mode is 'fine'"):
        datasets.Cityscapes(tmp_path, "train_extra")
    for ratio, kind in ((0.5, TypeError), (20, ValueError)):
        with pytest.raises(kind, match="split_ratio"):
            datasets.MovingMNIST(tmp_path, "train", ratio)


@pytest.mark.parametrize(
    "make",
    [
        lambda root: datasets.CLEVRClassification(root, download=True),
        lambda root: datasets.SUN397(root, download=True),
        lambda root: datasets.Imagenette(root, download=True),
        lambda root: datasets.Omniglot(root, download=True),
        lambda root: datasets.SEMEION(root),
        lambda root: datasets.SBU(root),
        lambda root: datasets.Places365(root, download=True),
        lambda root: datasets.INaturalist(root, download=True),
        lambda root: datasets.CelebA(root, download=True),
        lambda root: datasets.WIDERFace(root, download=True),
        lambda root: datasets.Kitti(root, download=True),
        lambda root: datasets.SBDataset(root, download=True),
        lambda root: datasets.MovingMNIST(root, download=True),
        lambda root: datasets.PhotoTour(root, "liberty", download=True),
        lambda root: datasets.Caltech101(root, download=True),
        lambda root: datasets.Middlebury2014Stereo(root, download=True),
    ],
)
def test_no_network(make, tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError("no network")

    monkeypatch.setattr(utils, "urlopen", refuse)
    with pytest.raises(RuntimeError, match="Without a network, put the file at"):
        make(tmp_path)
