"""Pictures of two cameras beside each other, and how far pixels lie apart in them."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ._maps import picture, read_grey, read_pfm
from .folder import default_loader
from .utils import download_and_extract_archive, parsing, verify_str_arg
from .vision import VisionDataset

__all__ = [
    "CREStereo",
    "CarlaStereo",
    "ETH3DStereo",
    "FallingThingsStereo",
    "InStereo2k",
    "Kitti2012Stereo",
    "Kitti2015Stereo",
    "Middlebury2014Stereo",
    "SceneFlowStereo",
    "SintelStereo",
    "StereoMatchingDataset",
]

_Transforms = Callable[..., Any] | None
_Read = tuple[np.ndarray, np.ndarray | None]


class StereoMatchingDataset(VisionDataset):
    """Items are (left, right, disparity (1, H, W)); with a mask (H, W) of the pixels whose
    disparity is known where the files or `transforms` have one.

    Args:
        transforms: a function of two pictures, two disparities and two masks, each a pair of left
            and right.
    """

    _has_built_in_disparity_mask = False

    def __init__(self, root: str | Path, transforms: _Transforms = None) -> None:
        super().__init__(root)
        self.transforms = transforms
        self._images: list[tuple[Path, Path]] = []
        self._disparities: list[tuple[Path | None, Path | None]] = []

    def _folder(self, *names: str) -> Path:
        return Path(self.root or "").joinpath(*names)

    def _add(
        self,
        base: Path,
        left: str,
        right: str,
        told_in: Path | None = None,
        told_left: str | None = None,
        told_right: str | None = None,
    ) -> None:
        """Pairs of a folder by patterns of names, and their disparities."""
        lefts, rights = sorted(base.glob(left)), sorted(base.glob(right))
        if not lefts or len(lefts) != len(rights):
            raise FileNotFoundError(
                f"Could not find any files matching the patterns: {base} has {len(lefts)} pictures "
                f"{left} and {len(rights)} pictures {right}"
            )
        self._images += list(zip(lefts, rights, strict=True))
        both: list[list[Path] | list[None]] = []
        for pattern in (told_left, told_right):
            if pattern is None:
                both.append([None] * len(lefts))
                continue
            found = sorted((told_in or base).glob(pattern))
            if len(found) != len(lefts):
                raise FileNotFoundError(
                    f"{told_in or base} has {len(found)} files {pattern} for {len(lefts)} pictures"
                )
            both.append(found)
        self._disparities += list(zip(*both, strict=True))

    def _read_disparity(self, path: Path) -> _Read:
        return np.abs(read_pfm(path, 1)), None

    def _right_path(self, path: Path) -> Path:
        return path

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        left, right = self._images[index]
        images = default_loader(left), default_loader(self._right_path(right))
        told = [
            (None, None) if path is None else self._read_disparity(path)
            for path in self._disparities[index]
        ]
        disparities, masks = tuple(d for d, _ in told), tuple(m for _, m in told)
        if self.transforms is not None:
            images, disparities, masks = self.transforms(images, disparities, masks)
        known = self._has_built_in_disparity_mask or masks[0] is not None
        return (*images, disparities[0], masks[0]) if known else (*images, disparities[0])

    def __len__(self) -> int:
        return len(self._images)


def _of_split(split: str) -> str:
    return f"{verify_str_arg(split, 'split', ('train', 'test'))}ing"


class CarlaStereo(StereoMatchingDataset):
    """Drawn streets: root/carla-highres/trainingF/SCENE."""

    def __init__(self, root: str | Path, transforms: _Transforms = None) -> None:
        super().__init__(root, transforms)
        names = "*/im0.png", "*/im1.png", None, "*/disp0GT.pfm", "*/disp1GT.pfm"
        self._add(self._folder("carla-highres", "trainingF"), *names)


class Kitti2012Stereo(StereoMatchingDataset):
    """Streets: root/Kitti2012/{training,testing}/colored_{0,1} and training/disp_noc."""

    _has_built_in_disparity_mask = True

    def __init__(
        self, root: str | Path, split: str = "train", transforms: _Transforms = None
    ) -> None:
        super().__init__(root, transforms)
        base = self._folder("Kitti2012", _of_split(split))
        told = "disp_noc/*.png" if split == "train" else None
        self._add(base, "colored_0/*_10.png", "colored_1/*_10.png", None, told)

    def _read_disparity(self, path: Path) -> _Read:
        return picture(path)[None] / 256.0, None


class Kitti2015Stereo(StereoMatchingDataset):
    """Streets: root/Kitti2015/{training,testing}/image_{2,3} and training/disp_occ_{0,1}."""

    _has_built_in_disparity_mask = True

    def __init__(
        self, root: str | Path, split: str = "train", transforms: _Transforms = None
    ) -> None:
        super().__init__(root, transforms)
        base = self._folder("Kitti2015", _of_split(split))
        told = ("disp_occ_0/*.png", "disp_occ_1/*.png") if split == "train" else ()
        self._add(base, "image_2/*.png", "image_3/*.png", None, *told)

    def _read_disparity(self, path: Path) -> _Read:
        return picture(path)[None] / 256.0, None


class Middlebury2014Stereo(StereoMatchingDataset):
    """Rooms: root/Middlebury2014/{train,additional,test}/SCENE.

    Args:
        split: "train", "additional" or "test".
        calibration: "perfect", "imperfect" or "both", None for the test scenes, which have no
            disparities.
        use_ambient_views: whether the right picture is drawn from those of several lights.
    """

    _has_built_in_disparity_mask = True
    _site = "https://vision.middlebury.edu/stereo/"
    splits: ClassVar[dict[str, list[str]]] = {
        "train": [
            "Adirondack",
            "Jadeplant",
            "Motorcycle",
            "Piano",
            "Pipes",
            "Playroom",
            "Playtable",
            "Recycle",
            "Shelves",
            "Vintage",
        ],
        "additional": [
            "Backpack",
            "Bicycle1",
            "Cable",
            "Classroom1",
            "Couch",
            "Flowers",
            "Mask",
            "Shopvac",
            "Sticks",
            "Storage",
            "Sword1",
            "Sword2",
            "Umbrella",
        ],
        "test": [
            "Plants",
            "Classroom2E",
            "Classroom2",
            "Australia",
            "DjembeL",
            "CrusadeP",
            "Crusade",
            "Hoops",
            "Bicycle2",
            "Staircase",
            "Newkuba",
            "AustraliaP",
            "Djembe",
            "Livingroom",
            "Computer",
        ],
    }

    def __init__(
        self,
        root: str | Path,
        split: str = "train",
        calibration: str | None = "perfect",
        use_ambient_views: bool = False,
        transforms: _Transforms = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transforms)
        verify_str_arg(split, "split", ("train", "test", "additional"))
        self.split, self.use_ambient_views = split, use_ambient_views
        if split == "test" and calibration is not None:
            raise ValueError("Split 'test' has only no calibration settings, set calibration=None")
        if split != "test":
            if calibration is None:
                raise ValueError(
                    f"Split '{split}' has calibration settings, however None was provided"
                )
            verify_str_arg(calibration, "calibration", ("perfect", "imperfect", "both"))
        self._suffixes = [
            *([""] if calibration is None else []),
            *(["-perfect"] if calibration in ("perfect", "both") else []),
            *(["-imperfect"] if calibration in ("imperfect", "both") else []),
        ]
        base = self._folder("Middlebury2014", split)
        if download:
            self._download(base)
        for suffix in self._suffixes:
            names = [scene + suffix for scene in self.splits[split]]
            present = [name for name in names if (base / name).is_dir()]
            if not present:
                raise FileNotFoundError(f"The {split} directory {base} has none of {names[0]}, …")
            for name in present:
                told = ("disp0.pfm", "disp1.pfm") if split != "test" else (None, None)
                self._add(base / name, "im0.png", "im1.png", None, *told)

    def _download(self, base: Path) -> None:
        if self.split == "test":
            if not base.is_dir():
                url = f"{self._site}submit3/zip/MiddEval3-data-F.zip"
                download_and_extract_archive(url, base.parent, remove_finished=True)
                for kind in ("trainingF", "testF"):
                    for scene in (base.parent / "MiddEval3" / kind).glob("*"):
                        if scene.name in self.splits["test"]:
                            base.mkdir(parents=True, exist_ok=True)
                            scene.rename(base / scene.name)
            return
        for suffix in self._suffixes:
            for scene in self.splits[self.split]:
                if not (base / f"{scene}{suffix}").is_dir():
                    url = f"{self._site}data/scenes2014/zip/{scene}{suffix}.zip"
                    download_and_extract_archive(url, base, remove_finished=True)

    def _right_path(self, path: Path) -> Path:
        if not self.use_ambient_views:
            return path
        lights = [path.with_name(name) for name in ("im1E.png", "im1L.png")]
        return random.choice([path, *(p for p in lights if p.is_file())])

    def _read_disparity(self, path: Path) -> _Read:
        disparity = np.abs(read_pfm(path, 1))
        disparity[np.isinf(disparity)] = 0  # not known
        return disparity, disparity[0] > 0


class CREStereo(StereoMatchingDataset):
    """Drawn things: root/CREStereo/{tree,shapenet,reflective,hole}."""

    _has_built_in_disparity_mask = True

    def __init__(self, root: str | Path, transforms: _Transforms = None) -> None:
        super().__init__(root, transforms)
        for kind in ("shapenet", "reflective", "tree", "hole"):
            names = "*_left.jpg", "*_right.jpg", None, "*_left.disp.png", "*_right.disp.png"
            self._add(self._folder("CREStereo", kind), *names)

    def _read_disparity(self, path: Path) -> _Read:
        return read_grey(path) / 32, None


class FallingThingsStereo(StereoMatchingDataset):
    """Things that fall: root/FallingThings/{single/THING/SCENE,mixed/SCENE}, with depths and the
    cameras' settings.

    Args:
        variant: one thing or many: "single", "mixed" or "both".
    """

    def __init__(
        self, root: str | Path, variant: str = "single", transforms: _Transforms = None
    ) -> None:
        super().__init__(root, transforms)
        verify_str_arg(variant, "variant", ("single", "mixed", "both"))
        for kind, inside in (("single", "*/*"), ("mixed", "*")):
            if variant in (kind, "both"):
                names = "left.jpg", "right.jpg", None, "left.depth.png", "right.depth.png"
                patterns = (name and f"{inside}/*.{name}" for name in names)
                left, right, _, *told = patterns
                self._add(self._folder("FallingThings", kind), str(left), str(right), None, *told)

    def _read_disparity(self, path: Path) -> _Read:
        settings = path.parent / "_camera_settings.json"
        with parsing(settings):
            cameras = json.loads(settings.read_text(encoding="utf-8"))["camera_settings"]
            focal = cameras[0]["intrinsic_settings"]["fx"]
        # The cameras are 6 cm apart; depths count tenths of millimetres.
        return (6 * focal * 100) / read_grey(path), None


class SceneFlowStereo(StereoMatchingDataset):
    """Drawn scenes: root/SceneFlow/{FlyingThings3D,Driving,Monkaa}/{frames_cleanpass,
    frames_finalpass,disparity}.

    Args:
        variant: "FlyingThings3D", "Driving" or "Monkaa".
        pass_name: how much is drawn: "clean", "final" or "both".
    """

    def __init__(
        self,
        root: str | Path,
        variant: str = "FlyingThings3D",
        pass_name: str = "clean",
        transforms: _Transforms = None,
    ) -> None:
        super().__init__(root, transforms)
        inside = {"FlyingThings3D": "*/*/*", "Driving": "*/*/*", "Monkaa": "*"}
        verify_str_arg(variant, "variant", tuple(inside))
        verify_str_arg(pass_name, "pass_name", ("clean", "final", "both"))
        base, scenes = self._folder("SceneFlow", variant), inside[variant]
        for kind in ("clean", "final") if pass_name == "both" else (pass_name,):
            self._add(
                base / f"frames_{kind}pass",
                *(f"{scenes}/left/*.png", f"{scenes}/right/*.png"),
                base / "disparity",
                *(f"{scenes}/left/*.pfm", f"{scenes}/right/*.pfm"),
            )


class SintelStereo(StereoMatchingDataset):
    """Films: root/Sintel/training/{PASS_left,PASS_right,disparities,occlusions,outofframe}/SCENE.

    Args:
        pass_name: how much is drawn: "clean", "final" or "both".
    """

    _has_built_in_disparity_mask = True

    def __init__(
        self, root: str | Path, pass_name: str = "final", transforms: _Transforms = None
    ) -> None:
        super().__init__(root, transforms)
        verify_str_arg(pass_name, "pass_name", ("final", "clean", "both"))
        base = self._folder("Sintel", "training")
        for kind in ("final", "clean") if pass_name == "both" else (pass_name,):
            names = f"{kind}_left/*/*.png", f"{kind}_right/*/*.png", None, "disparities/*/*.png"
            self._add(base, *names)

    def _read_disparity(self, path: Path) -> _Read:
        parts = picture(path).astype(np.float32)
        with parsing(path):
            disparity = parts[..., 0] * 4 + parts[..., 1] / 2**6 + parts[..., 2] / 2**14
        scene = path.parent.name
        base = path.parents[2]
        occluded, outside = (
            picture(base / kind / scene / path.name) for kind in ("occlusions", "outofframe")
        )
        return disparity[None], (occluded == 0) & (outside == 0)


class InStereo2k(StereoMatchingDataset):
    """Rooms: root/InStereo2k/{train,test}/SCENE."""

    def __init__(
        self, root: str | Path, split: str = "train", transforms: _Transforms = None
    ) -> None:
        super().__init__(root, transforms)
        verify_str_arg(split, "split", ("train", "test"))
        names = "*/left.png", "*/right.png", None, "*/left_disp.png", "*/right_disp.png"
        self._add(self._folder("InStereo2k", split), *names)

    def _read_disparity(self, path: Path) -> _Read:
        return read_grey(path) / 1024, None


class ETH3DStereo(StereoMatchingDataset):
    """Buildings: root/ETH3D/two_view_{training,test}/SCENE and two_view_training_gt."""

    _has_built_in_disparity_mask = True

    def __init__(
        self, root: str | Path, split: str = "train", transforms: _Transforms = None
    ) -> None:
        super().__init__(root, transforms)
        part = "two_view_training" if _of_split(split) == "training" else "two_view_test"
        truth = self._folder("ETH3D", "two_view_training_gt")
        told = "*/disp0GT.pfm" if split == "train" else None
        self._add(self._folder("ETH3D", part), "*/im0.png", "*/im1.png", truth, told)

    def _read_disparity(self, path: Path) -> _Read:
        mask = picture(path.with_name("mask0nocc.png"))
        return np.abs(read_pfm(path, 1)), mask.astype(bool)
