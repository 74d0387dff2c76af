"""Small files in the official layouts of data sets of pictures.

LAYOUTS has, by the name of a class, what writes the files below a folder, and the settings with which the class reads
them: tests read them with ours, parity tests with torchvision's as well.
"""

import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

savemat = pytest.importorskip("scipy.io").savemat
csc_matrix = pytest.importorskip("scipy.sparse").csc_matrix

LAYOUTS = {}


class Tree:
    """Writes files below a folder, with numbers that differ from file to file."""

    def __init__(self, root):
        self.root = Path(root)
        self.random = np.random.default_rng(0)

    def place(self, name):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def text(self, name, content):
        self.place(name).write_text(content, encoding="utf-8")

    def array(self, *shape, most=256, dtype=np.uint8):
        return self.random.integers(0, most, shape).astype(dtype)

    def image(self, *names, channels=3, values=None, size=(4, 5)):
        for name in names:
            found = self.array(*size, channels) if values is None else values
            Image.fromarray(found.squeeze()).save(self.place(name))

    def grey16(self, *names):
        for name in names:
            self.image(name, values=self.array(4, 5, most=65000, dtype=np.uint16))

    def flo(self, *names):
        for name in names:
            values = self.random.standard_normal((4, 5, 2)).astype("<f4")
            self.place(name).write_bytes(b"PIEH" + struct.pack("<ii", 5, 4) + values.tobytes())

    def pfm(self, *names, channels=1, infinite=False):
        for name in names:
            values = self.random.standard_normal((4, 5, channels)).astype("<f4")
            if infinite:
                values[1, 2] = np.inf
            head = b"Pf" if channels == 1 else b"PF"
            self.place(name).write_bytes(head + b"\n5 4\n-1.0\n" + values.tobytes())

    def png16(self, *names):
        """Colours of 16 bits, each row with another filter."""
        for name in names:
            values = self.array(6, 5, 3, most=65536, dtype=">u2")
            values[..., 2] = self.array(6, 5, most=2)
            self.place(name).write_bytes(png16(values))


def png16(values, kinds=(0, 1, 2, 3, 4)):
    """A PNG of colours (H, W, 3) of 16 bits."""
    height, width, _ = values.shape
    rows = np.frombuffer(values.astype(">u2").tobytes(), np.uint8).reshape(height, width, 6)
    rows = rows.astype(int)
    packed, above = b"", np.zeros((width + 1, 6), int)
    for i, row in enumerate(rows):
        kind = kinds[i % len(kinds)]
        now = np.concatenate([np.zeros((1, 6), int), row])
        left, up, corner = now[:-1], above[1:], above[:-1]
        to_left, to_up, to_corner = (
            abs(up - corner),
            abs(left - corner),
            abs(left + up - 2 * corner),
        )
        paeth = np.where(
            (to_left <= to_up) & (to_left <= to_corner),
            left,
            np.where(to_up <= to_corner, up, corner),
        )
        guess = (0 * left, left, up, (left + up) // 2, paeth)[kind]
        packed += bytes([kind]) + ((row - guess) % 256).astype(np.uint8).tobytes()
        above = now

    def chunk(name, body):
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    header = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(packed))
        + chunk(b"IEND", b"")
    )


def layout(name, *settings):
    """Registers a function of a Tree as what writes the files of a class."""

    def register(write):
        LAYOUTS[name] = (write, settings or ({},))
        return write

    return register


# ---- flow ----


@layout("Sintel", {}, {"pass_name": "both"}, {"split": "test", "pass_name": "final"})
def sintel(tree):
    for scene in ("alley", "bamboo"):
        for part in ("training", "test"):
            for kind in ("clean", "final"):
                tree.image(*(f"Sintel/{part}/{kind}/{scene}/{i}.png" for i in range(3)))
        tree.flo(*(f"Sintel/training/flow/{scene}/{i}.flo" for i in range(2)))


@layout("KittiFlow", {}, {"split": "test"})
def kitti_flow(tree):
    for part in ("training", "testing"):
        for i in range(2):
            tree.image(*(f"KittiFlow/{part}/image_2/{i}_{n}.png" for n in (10, 11)))
    tree.png16(*(f"KittiFlow/training/flow_occ/{i}_10.png" for i in range(2)))


@layout("FlyingChairs", {}, {"split": "val"})
def flying_chairs(tree):
    for i in range(1, 4):
        tree.flo(f"FlyingChairs/data/0000{i}_flow.flo")
        tree.image(*(f"FlyingChairs/data/0000{i}_img{n}.ppm" for n in (1, 2)))
    tree.text("FlyingChairs/FlyingChairs_train_val.txt", "1\n2\n1\n")


@layout("FlyingThings3D", {}, {"pass_name": "both", "camera": "both"}, {"split": "test"})
def flying_things(tree):
    for part in ("TRAIN", "TEST"):
        for scene in ("A/0000", "B/0001"):
            for side in ("left", "right"):
                for kind in ("clean", "final"):
                    base = f"FlyingThings3D/frames_{kind}pass/{part}/{scene}/{side}"
                    tree.image(*(f"{base}/{i}.png" for i in range(3)))
                for where in ("into_future", "into_past"):
                    base = f"FlyingThings3D/optical_flow/{part}/{scene}/{where}/{side}"
                    tree.pfm(*(f"{base}/{i}.pfm" for i in range(3)), channels=3)


@layout("HD1K", {}, {"split": "test"})
def hd1k(tree):
    for sequence in ("000000", "000003"):
        for i in range(3):
            tree.image(f"hd1k/hd1k_input/image_2/{sequence}_{i:04d}.png")
            tree.png16(f"hd1k/hd1k_flow_gt/flow_occ/{sequence}_{i:04d}.png")
    tree.image(
        *(f"hd1k/hd1k_challenge/image_2/00000{i}_{n}.png" for i in range(2) for n in (10, 11))
    )


# ---- stereo ----


@layout("CarlaStereo")
def carla(tree):
    for scene in ("a", "b"):
        base = f"carla-highres/trainingF/{scene}"
        tree.image(*(f"{base}/im{i}.png" for i in range(2)))
        tree.pfm(*(f"{base}/disp{i}GT.pfm" for i in range(2)))


@layout("Kitti2012Stereo", {}, {"split": "test"})
def kitti_2012(tree):
    for part in ("training", "testing"):
        for side in range(2):
            tree.image(*(f"Kitti2012/{part}/colored_{side}/{i}_10.png" for i in range(2)))
    tree.grey16(*(f"Kitti2012/training/disp_noc/{i}_10.png" for i in range(2)))


@layout("Kitti2015Stereo", {}, {"split": "test"})
def kitti_2015(tree):
    for part in ("training", "testing"):
        for side in (2, 3):
            tree.image(*(f"Kitti2015/{part}/image_{side}/{i}.png" for i in range(2)))
    for side in range(2):
        tree.grey16(*(f"Kitti2015/training/disp_occ_{side}/{i}.png" for i in range(2)))


@layout("Middlebury2014Stereo", {}, {"calibration": "both"}, {"split": "test", "calibration": None})
def middlebury(tree):
    for split, scenes in {
        "train": (
            "Adirondack Jadeplant Motorcycle Piano Pipes Playroom Playtable Recycle Shelves Vintage"
        ),
        "test": (
            "Plants Classroom2E Classroom2 Australia DjembeL CrusadeP Crusade Hoops Bicycle2 "
            "Staircase Newkuba AustraliaP Djembe Livingroom Computer"
        ),
    }.items():
        for scene in scenes.split():
            for suffix in ("-perfect", "-imperfect") if split == "train" else ("",):
                base = f"Middlebury2014/{split}/{scene}{suffix}"
                tree.image(*(f"{base}/im{i}.png" for i in range(2)))
                if suffix:
                    tree.pfm(*(f"{base}/disp{i}.pfm" for i in range(2)), infinite=True)


@layout("CREStereo")
def crestereo(tree):
    for kind in ("tree", "shapenet", "reflective", "hole"):
        tree.image(*(f"CREStereo/{kind}/{i}_{s}.jpg" for i in range(2) for s in ("left", "right")))
        sides = (f"{i}_{side}.disp.png" for i in range(2) for side in ("left", "right"))
        tree.grey16(*(f"CREStereo/{kind}/{name}" for name in sides))


@layout("FallingThingsStereo", {}, {"variant": "both"})
def falling_things(tree):
    for scene in ("single/thing/kitchen", "mixed/kitchen"):
        base = f"FallingThings/{scene}"
        for side in ("left", "right"):
            tree.image(f"{base}/0.{side}.jpg")
            tree.image(f"{base}/0.{side}.depth.png", values=tree.array(4, 5, most=99) + 1)
        tree.text(
            f"{base}/_camera_settings.json",
            '{"camera_settings": [{"intrinsic_settings": {"fx": 768.2, "fy": 1}}]}',
        )


@layout("SceneFlowStereo", {}, {"variant": "Monkaa", "pass_name": "both"}, {"variant": "Driving"})
def scene_flow(tree):
    for variant, scene in (
        ("FlyingThings3D", "TRAIN/A/0000"),
        ("Monkaa", "family"),
        ("Driving", "15mm/forwards/fast"),
    ):
        for side in ("left", "right"):
            base = f"SceneFlow/{variant}"
            for kind in ("clean", "final"):
                tree.image(*(f"{base}/frames_{kind}pass/{scene}/{side}/{i}.png" for i in range(2)))
            tree.pfm(*(f"{base}/disparity/{scene}/{side}/{i}.pfm" for i in range(2)))


@layout("SintelStereo", {}, {"pass_name": "both"})
def sintel_stereo(tree):
    for scene in ("alley", "bamboo"):
        base = "Sintel/training"
        for kind in ("final_left", "final_right", "clean_left", "clean_right", "disparities"):
            tree.image(*(f"{base}/{kind}/{scene}/{i}.png" for i in range(2)))
        for kind in ("occlusions", "outofframe"):
            for i in range(2):
                tree.image(f"{base}/{kind}/{scene}/{i}.png", values=tree.array(4, 5, most=2) * 255)


@layout("InStereo2k", {}, {"split": "test"})
def in_stereo(tree):
    for part in ("train", "test"):
        for scene in ("a", "b"):
            tree.image(*(f"InStereo2k/{part}/{scene}/{side}.png" for side in ("left", "right")))
            tree.grey16(*(f"InStereo2k/{part}/{scene}/{s}_disp.png" for s in ("left", "right")))


@layout("ETH3DStereo", {}, {"split": "test"})
def eth3d(tree):
    for part in ("training", "test"):
        for scene in ("a", "b"):
            tree.image(*(f"ETH3D/two_view_{part}/{scene}/im{i}.png" for i in range(2)))
    for scene in ("a", "b"):
        base = f"ETH3D/two_view_training_gt/{scene}"
        tree.pfm(f"{base}/disp0GT.pfm")
        tree.image(f"{base}/mask0nocc.png", values=tree.array(4, 5, most=2) * 255)


# ---- classes ----


@layout("CLEVRClassification", {}, {"split": "val"}, {"split": "test"})
def clevr(tree):
    for part in ("train", "val", "test"):
        names = [f"CLEVR_{part}_00000{i}.png" for i in range(3)]
        tree.image(*(f"clevr/CLEVR_v1.0/images/{part}/{name}" for name in names))
        scenes = [{"image_filename": n, "objects": [{}] * (2 + i)} for i, n in enumerate(names)]
        if part != "test":
            path = f"clevr/CLEVR_v1.0/scenes/CLEVR_{part}_scenes.json"
            tree.text(path, json.dumps({"scenes": scenes}))


@layout("RenderedSST2", {}, {"split": "val"}, {"split": "test"})
def rendered(tree):
    for part in ("train", "valid", "test"):
        for kind in ("negative", "positive"):
            tree.image(*(f"rendered-sst2/{part}/{kind}/{i}.png" for i in range(2)))


def cars_rows(tree, name, count):
    rows = np.zeros(count, [("bbox_x1", "O"), ("class", "O"), ("fname", "O")])
    for i in range(count):
        rows[i] = (1, i % 2 + 1, f"0000{i}.jpg")
    savemat(tree.place(name), {"annotations": rows})


@layout("StanfordCars", {}, {"split": "test"})
def cars(tree):
    for part in ("train", "test"):
        tree.image(*(f"stanford_cars/cars_{part}/0000{i}.jpg" for i in range(3)))
    cars_rows(tree, "stanford_cars/devkit/cars_train_annos.mat", 3)
    cars_rows(tree, "stanford_cars/cars_test_annos_withlabels.mat", 2)
    names = np.array(["AM General Hummer", "Acura RL"], object)
    savemat(tree.place("stanford_cars/devkit/cars_meta.mat"), {"class_names": names})


@layout("FGVCAircraft", {}, {"split": "test", "annotation_level": "manufacturer"})
def aircraft(tree):
    base = "fgvc-aircraft-2013b/data"
    for level, listed, names in (
        ("variant", "variants", ["707-320", "727 200"]),
        ("family", "families", ["Boeing 707", "Boeing 727"]),
        ("manufacturer", "manufacturers", ["Boeing", "Airbus"]),
    ):
        tree.text(f"{base}/{listed}.txt", "\n".join(names) + "\n")
        for part in ("train", "val", "trainval", "test"):
            rows = [f"10{i} {names[i % 2]}" for i in range(3)]
            tree.text(f"{base}/images_{level}_{part}.txt", "\n".join(rows) + "\n")
    tree.image(*(f"{base}/images/10{i}.jpg" for i in range(3)))


@layout("SUN397")
def sun(tree):
    tree.text("SUN397/ClassName.txt", "/a/abbey\n/a/apartment_building/outdoor\n")
    tree.image(*(f"SUN397/a/abbey/sun_{i}.jpg" for i in range(2)))
    tree.image("SUN397/a/apartment_building/outdoor/sun_b.jpg")


def moods(tree, name, columns, rows):
    lines = [",".join(columns)]
    for row in rows:
        pixels = " ".join(str(n) for n in tree.array(48 * 48).tolist())
        lines.append(",".join(row.get(c.strip(), pixels) for c in columns))
    tree.text(f"fer2013/{name}", "\n".join(lines) + "\n")


@layout("FER2013", {}, {"split": "test"})
def fer(tree):
    usages = ("Training", "PublicTest", "PrivateTest", "Training")
    rows = [{"emotion": str(i), "Usage": usage} for i, usage in enumerate(usages)]
    moods(tree, "icml_face_data.csv", ("emotion", " Usage", " pixels"), rows)


@layout("Imagenette", {}, {"split": "val", "size": "160px"})
def imagenette(tree):
    for name in ("imagenette2/train", "imagenette2-160/val"):
        for wnid in (
            *("n01440764", "n02102040", "n02979186", "n03000684", "n03028079"),
            *("n03394916", "n03417042", "n03425413", "n03445777", "n03888257"),
        ):
            path = tree.place(f"{name}/{wnid}/{wnid}_1.JPEG")
            Image.fromarray(tree.array(4, 5, 3)).save(path, "jpeg")


@layout("Omniglot", {}, {"background": False})
def omniglot(tree):
    for name in ("images_background", "images_evaluation"):
        tree.place(f"omniglot-py/{name}.zip").write_bytes(b"")
        for character in ("Greek/character01", "Greek/character02", "Latin/character01"):
            tree.image(*(f"omniglot-py/{name}/{character}/{i}.png" for i in range(2)), channels=1)


@layout("SEMEION", {"download": False})
def semeion(tree):
    rows = [
        " ".join(
            [*(f"{b}.0000" for b in tree.array(256, most=2)), *("0" * i + "1" + "0" * (9 - i))]
        )
        for i in (3, 0, 9)
    ]
    tree.text("semeion.data", " \n".join(rows) + " \n")


@layout("Caltech101", {}, {"target_type": ["category", "annotation"]})
def caltech(tree):
    for name, told in (("BACKGROUND_Google", None), ("Faces", "Faces_2"), ("ant", "ant")):
        for i in (1, 2):
            tree.image(f"caltech101/101_ObjectCategories/{name}/image_000{i}.jpg")
            if told:
                path = tree.place(f"caltech101/Annotations/{told}/annotation_000{i}.mat")
                savemat(path, {"obj_contour": tree.random.standard_normal((2, 5))})


@layout(
    "INaturalist",
    {"version": "2021_valid", "target_type": ["full", "kingdom", "genus"]},
    {"version": "2018", "target_type": ["super", "full"]},
    {"version": "2017", "target_type": "super"},
)
def inaturalist(tree):
    for name in (
        "00000_Animalia_Annelida_Clitellata_Haplotaxida_Lumbricidae_Lumbricus_terrestris",
        "00001_Animalia_Chordata_Aves_Passeriformes_Corvidae_Corvus_corax",
        "00002_Plantae_Tracheophyta_Pinopsida_Pinales_Pinaceae_Pinus_mugo",
    ):
        tree.image(*(f"2021_valid/{name}/{i}.jpg" for i in range(2)))
    for name in ("Aves/2", "Aves/0", "Fungi/1"):
        tree.image(f"2018/{name}/a.jpg")
    for name in ("Aves/Corvus corax", "Aves/Pica pica", "Fungi/Amanita"):
        tree.image(f"2017/{name}/a.jpg")


@layout("Places365", {"small": True}, {"split": "val"}, {"split": "test"})
def places(tree):
    tree.text("categories_places365.txt", "/a/airfield 0\n/b/beach 1\n")
    train = ["/a/airfield/00000001.jpg", "/b/beach/00000002.jpg"]
    tree.text("places365_train_standard.txt", "".join(f"{n} {i}\n" for i, n in enumerate(train)))
    tree.image(*(f"data_256_standard{name}" for name in train))
    tree.text("places365_val.txt", "Places365_val_1.jpg 1\nPlaces365_val_2.jpg 0\n")
    tree.image(*(f"val_large/Places365_val_{i}.jpg" for i in (1, 2)))
    tree.text("places365_test.txt", "Places365_test_1.jpg\n")
    tree.image("test_large/Places365_test_1.jpg")


# ---- faces ----


@layout("CelebA", {}, {"split": "all", "target_type": ["identity", "bbox", "landmarks", "attr"]})
def celeba(tree):
    names = [f"00000{i}.jpg" for i in range(1, 4)]
    tree.image(*(f"celeba/img_align_celeba/{name}" for name in names))

    def table(name, columns, most, heads=True):
        rows = [" ".join([n, *map(str, tree.array(len(columns), most=most))]) for n in names]
        heads = [str(len(names)), " ".join(columns) + " "] if heads else []
        tree.text(f"celeba/{name}.txt", "\n".join([*heads, *rows]) + "\n")

    tree.text(
        "celeba/list_eval_partition.txt", "".join(f"{n} {i // 2}\n" for i, n in enumerate(names))
    )
    table("identity_CelebA", ["one"], 99, heads=False)
    table("list_bbox_celeba", ["image_id", "x_1", "y_1", "width", "height"][1:], 200)
    table("list_landmarks_align_celeba", [f"p{i}" for i in range(10)], 200)
    rows = [
        f"{n} " + "  ".join(str(2 * b - 1) for b in tree.array(3, most=2).tolist()) for n in names
    ]
    tree.text("celeba/list_attr_celeba.txt", "\n".join(["3", "Bald Hat Young ", *rows]) + "\n")


def people(tree):
    for name, count in (("Ada_L", 3), ("Bob", 2)):
        tree.image(*(f"lfw-py/lfw_funneled/{name}/{name}_{i:04d}.jpg" for i in range(1, count + 1)))
    tree.text("lfw-py/lfw-names.txt", "Ada_L\t3\nBob\t2\n")
    tree.text("lfw-py/people.txt", "2\n1\nAda_L\t3\n1\nBob\t2\n")
    tree.text("lfw-py/peopleDevTrain.txt", "2\nBob\t2\nAda_L\t1\n")
    fold = "Ada_L\t1\t2\nAda_L\t1\t3\nAda_L\t2\tBob\t1\nBob\t2\tAda_L\t3\n"
    tree.text("lfw-py/pairs.txt", f"2\t2\n{fold}{fold}")
    tree.text("lfw-py/pairsDevTest.txt", f"2\n{fold}")
    tree.place("lfw-py/lfw-funneled.tgz").write_bytes(b"")


layout("LFWPeople", {}, {"split": "train"})(people)
layout("LFWPairs", {}, {"split": "test"})(people)


@layout("WIDERFace", {}, {"split": "val"}, {"split": "test"})
def wider(tree):
    for part in ("train", "val", "test"):
        names = [f"0--Parade/{part}_{i}.jpg" for i in range(3)]
        tree.image(*(f"widerface/WIDER_{part}/images/{name}" for name in names))
        if part == "test":
            tree.text("widerface/wider_face_split/wider_face_test_filelist.txt", "\n".join(names))
            continue
        lines = []
        for name, count in zip(names, (2, 0, 1), strict=True):
            rows = tree.array(max(count, 1), 10, most=50 if count else 1).tolist()
            lines += [name, str(count), *(" ".join(map(str, row)) + " " for row in rows)]
        tree.text(
            f"widerface/wider_face_split/wider_face_{part}_bbx_gt.txt", "\n".join(lines) + "\n"
        )


# ---- streets and boundaries ----


@layout(
    "Cityscapes",
    {"target_type": ["instance", "semantic", "color", "polygon"]},
    {"split": "val", "mode": "coarse", "target_type": "semantic"},
)
def cityscapes(tree):
    for mode, part in (("gtFine", "train"), ("gtCoarse", "val")):
        for city in ("aachen", "bonn"):
            for i in range(2):
                start = f"{city}_00000{i}_000019"
                tree.image(f"leftImg8bit/{part}/{city}/{start}_leftImg8bit.png")
                base = f"{mode}/{part}/{city}/{start}_{mode}"
                tree.grey16(f"{base}_instanceIds.png")
                tree.image(f"{base}_labelIds.png", channels=1)
                tree.image(f"{base}_color.png")
                tree.text(f"{base}_polygons.json", f'{{"imgHeight": {i}, "objects": []}}')


@layout("Kitti", {}, {"train": False})
def kitti(tree):
    for part in ("training", "testing"):
        tree.image(*(f"Kitti/raw/{part}/image_2/00000{i}.png" for i in range(2)))
    row = "Car 0.50 1 -1.57 1 2 3 4.5 1.1 2.2 3.3 4 5 6 0.25\n"
    for i in range(2):
        tree.text(f"Kitti/raw/training/label_2/00000{i}.txt", row * (i + 1))


@layout("SBDataset", {}, {"mode": "segmentation", "image_set": "val"})
def boundaries(tree):
    for name in ("2008_1", "2008_2"):
        tree.image(f"img/{name}.jpg")
        parts = np.empty((20, 1), object)
        for i in range(20):
            parts[i, 0] = csc_matrix(tree.array(4, 5, most=2))
        found = {"Boundaries": parts, "Segmentation": tree.array(4, 5, most=21)}
        savemat(tree.place(f"cls/{name}.mat"), {"GTcls": found})
        tree.text(f"inst/{name}.txt", "")
    for name in ("train", "val", "train_noval"):
        tree.text(f"{name}.txt", "2008_1\n2008_2\n")


# ---- captions, patches ----


@layout("Flickr30k", {"ann_file": lambda root: str(root / "results.token")})
def flickr30k(tree):
    tree.image("10.jpg", "20.jpg")
    rows = [f"{n}.jpg#{i}\tA caption {i} of {n} ." for n in (20, 10) for i in range(2)]
    tree.text("results.token", "\n".join(rows) + "\n")


@layout("Flickr8k", {"ann_file": lambda root: str(root / "Flickr8k.html")})
def flickr8k(tree):
    tree.image("101_ab.jpg", "102_cd.jpg")
    rows = "".join(
        f"<tr><td><a href='http://www.flickr.com/photos/x/{n}/'>http://www.flickr.com/photos/x/{n}/"
        f"</a></td><td><ul><li>First of {n} .</li><li>Second of {n} .</li></ul></td></tr>\n"
        for n in (102, 101)
    )
    tree.text("Flickr8k.html", f"<html><body><table border=1>{rows}</table></body></html>")


@layout("SBU", {"download": False})
def sbu(tree):
    tree.place("SBUCaptionedPhotoDataset.tar.gz").write_bytes(b"")
    tree.image("dataset/1_a.jpg", "dataset/3_c.jpg")
    urls = [f"http://static.flickr.com/1/{name}\n" for name in ("1_a.jpg", "2_b.jpg", "3_c.jpg")]
    tree.text("dataset/SBU_captioned_photo_dataset_urls.txt", "".join(urls))
    tree.text("dataset/SBU_captioned_photo_dataset_captions.txt", "A bed .\nGone .\nA cat .\n")


@layout("MovingMNIST", {}, {"split": "train", "split_ratio": 4}, {"split": "test"})
def moving(tree):
    np.save(tree.place("MovingMNIST/mnist_test_seq.npy"), tree.array(20, 3, 64, 64))


@layout("PhotoTour", {"name": "liberty"}, {"name": "liberty", "train": False})
def photo_tour(tree):
    tree.image("liberty/patches0000.bmp", channels=1, size=(1024, 1024))
    tree.text("liberty/info.txt", "".join(f"{i // 2} 0\n" for i in range(256)))
    tree.text("liberty/m50_100000_100000_0.txt", "0 0 0 1 0 0 1\n4 2 0 9 4 0 0\n")
