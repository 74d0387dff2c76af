"""Pairs of pictures and where each pixel goes from the first to the second."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.utils.data import ConcatDataset

from ._maps import read_flo, read_pfm, read_png16
from .folder import default_loader
from .utils import lines_of, verify_str_arg
from .vision import VisionDataset

__all__ = ["HD1K", "FlowDataset", "FlyingChairs", "FlyingThings3D", "KittiFlow", "Sintel"]

_Loader = Callable[[Any], Any]
_Transforms = Callable[..., Any] | None


class FlowDataset(VisionDataset):
    """Items are (picture, picture, flow (2, H, W)); with a mask (H, W) of the pixels whose flow is
    known where the files or `transforms` have one. There is no flow (None) to test on.

    Args:
        transforms: a function of both pictures, the flow and the mask, which may be None.
    """

    _has_builtin_flow_mask = False

    def __init__(
        self, root: str | Path, transforms: _Transforms = None, loader: _Loader = default_loader
    ) -> None:
        super().__init__(root)
        self.transforms, self._loader = transforms, loader
        self._image_list: list[tuple[Path, Path]] = []
        self._flow_list: list[Path] = []

    def _folder(self, name: str) -> Path:
        return Path(self.root or "") / name

    def _pairs(self, folder: Path, firsts: str, seconds: str) -> None:
        """Pairs by two patterns of names."""
        both = sorted(folder.glob(firsts)), sorted(folder.glob(seconds))
        self._image_list += list(zip(*both, strict=False))

    def _expect_images(self) -> None:
        if not self._image_list:
            raise FileNotFoundError(
                f"Could not find the pictures of {type(self).__name__} in {self.root}. "
                "Please make sure the dataset is properly downloaded and in its official folders"
            )

    def _read_flow(self, path: Path) -> tuple[np.ndarray, np.ndarray | None]:
        return read_flo(path), None

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        parts: list[Any] = [self._loader(path) for path in self._image_list[index]]
        parts += self._read_flow(self._flow_list[index]) if self._flow_list else (None, None)
        if self.transforms is not None:
            parts = self.transforms(*parts)
        *most, mask = parts
        return (*most, mask) if self._has_builtin_flow_mask or mask is not None else tuple(most)

    def __len__(self) -> int:
        return len(self._image_list)

    def __rmul__(self, v: int) -> ConcatDataset:
        """The set v times over, as sets of several sizes are mixed."""
        return ConcatDataset([self] * v)


def _read_sparse(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Flow and mask of a PNG of 16 bits, in 64ths of pixels around 2^15."""
    values = read_png16(path).astype(np.float32)
    return (values[..., :2].transpose(2, 0, 1) - 2**15) / 64, values[..., 2].astype(bool)


class Sintel(FlowDataset):
    """Films: root/Sintel/{training,test}/PASS/SCENE.

    Args:
        split: "train" or "test".
        pass_name: how much is drawn: "clean", "final" or "both".
    """

    def __init__(
        self,
        root: str | Path,
        split: str = "train",
        pass_name: str = "clean",
        transforms: _Transforms = None,
        loader: _Loader = default_loader,
    ) -> None:
        super().__init__(root, transforms, loader)
        verify_str_arg(split, "split", ("train", "test"))
        verify_str_arg(pass_name, "pass_name", ("clean", "final", "both"))
        base = self._folder("Sintel")
        part = base / ("training" if split == "train" else "test")
        for kind in ("clean", "final") if pass_name == "both" else (pass_name,):
            for scene in sorted(p for p in (part / kind).glob("*") if p.is_dir()):
                self._image_list += pairwise(sorted(scene.glob("*.png")))
                if split == "train":
                    self._flow_list += sorted((base / "training/flow" / scene.name).glob("*.flo"))
        self._expect_images()


class KittiFlow(FlowDataset):
    """Streets: root/KittiFlow/{training,testing}/image_2 and training/flow_occ."""

    _has_builtin_flow_mask = True

    def __init__(
        self,
        root: str | Path,
        split: str = "train",
        transforms: _Transforms = None,
        loader: _Loader = default_loader,
    ) -> None:
        super().__init__(root, transforms, loader)
        verify_str_arg(split, "split", ("train", "test"))
        base = self._folder("KittiFlow") / f"{split}ing"
        self._pairs(base / "image_2", "*_10.png", "*_11.png")
        if split == "train":
            self._flow_list = sorted((base / "flow_occ").glob("*_10.png"))
        self._expect_images()

    def _read_flow(self, path: Path) -> tuple[np.ndarray, np.ndarray | None]:
        return _read_sparse(path)


class FlyingChairs(FlowDataset):
    """Chairs before pictures: root/FlyingChairs/data and FlyingChairs_train_val.txt, 1 for training
    and 2 for validation.

    Args:
        split: "train" or "val".
    """

    def __init__(
        self, root: str | Path, split: str = "train", transforms: _Transforms = None
    ) -> None:
        super().__init__(root, transforms)
        verify_str_arg(split, "split", ("train", "val"))
        base = self._folder("FlyingChairs")
        listed = base / "FlyingChairs_train_val.txt"
        if not listed.is_file():
            raise FileNotFoundError(
                f"The FlyingChairs_train_val.txt file was not found: {listed}; the data set's page "
                "has it"
            )
        wanted = "1" if split == "train" else "2"
        flows = sorted((base / "data").glob("*.flo"))
        self._pairs(base / "data", "*_img1.ppm", "*_img2.ppm")
        chosen = [i for i, line in enumerate(lines_of(listed)) if line.strip() == wanted]
        if chosen and chosen[-1] >= min(len(flows), len(self._image_list)):
            raise RuntimeError(
                f"{listed} lists more than the {len(flows)} flows of {base / 'data'}"
            )
        self._image_list = [self._image_list[i] for i in chosen]
        self._flow_list = [flows[i] for i in chosen]
        self._expect_images()


class FlyingThings3D(FlowDataset):
    """Things in space: root/FlyingThings3D/frames_{clean,final}pass and optical_flow, each with
    {TRAIN,TEST}/LETTER/NUMBER.

    Args:
        pass_name: how much is drawn: "clean", "final" or "both".
        camera: "left", "right" or "both".
    """

    def __init__(
        self,
        root: str | Path,
        split: str = "train",
        pass_name: str = "clean",
        camera: str = "left",
        transforms: _Transforms = None,
        loader: _Loader = default_loader,
    ) -> None:
        super().__init__(root, transforms, loader)
        verify_str_arg(split, "split", ("train", "test"))
        verify_str_arg(pass_name, "pass_name", ("clean", "final", "both"))
        verify_str_arg(camera, "camera", ("left", "right", "both"))
        base, part = self._folder("FlyingThings3D"), split.upper()
        for kind in ("clean", "final") if pass_name == "both" else (pass_name,):
            for side in ("left", "right") if camera == "both" else (camera,):
                for where in ("into_future", "into_past"):
                    frames = sorted((base / f"frames_{kind}pass" / part).glob(f"*/*/{side}"))
                    flows = sorted((base / "optical_flow" / part).glob(f"*/*/{where}/{side}"))
                    for pictures, told in zip(frames, flows, strict=False):
                        self._add(pictures, told, where == "into_future")
        self._expect_images()

    def _add(self, pictures: Path, told: Path, forwards: bool) -> None:
        """The steps of a scene: flow i goes from picture i to the next, or to the one before."""
        flows = sorted(told.glob("*.pfm"))
        for i, (one, next_one) in enumerate(pairwise(sorted(pictures.glob("*.png")))):
            self._image_list.append((one, next_one) if forwards else (next_one, one))
            self._flow_list.append(flows[i if forwards else i + 1])

    def _read_flow(self, path: Path) -> tuple[np.ndarray, np.ndarray | None]:
        return read_pfm(path, 2), None


class HD1K(FlowDataset):
    """Streets: root/hd1k with hd1k_input/image_2, hd1k_flow_gt/flow_occ and hd1k_challenge/image_2,
    pictures named by sequence and number."""

    _has_builtin_flow_mask = True

    def __init__(
        self,
        root: str | Path,
        split: str = "train",
        transforms: _Transforms = None,
        loader: _Loader = default_loader,
    ) -> None:
        super().__init__(root, transforms, loader)
        verify_str_arg(split, "split", ("train", "test"))
        base = self._folder("hd1k")
        if split == "test":
            self._pairs(base / "hd1k_challenge/image_2", "*10.png", "*11.png")
        else:
            flows = base / "hd1k_flow_gt/flow_occ"
            for sequence in sorted({path.name.split("_")[0] for path in flows.glob("*_*.png")}):
                images = sorted((base / "hd1k_input/image_2").glob(f"{sequence}_*.png"))
                told = sorted(flows.glob(f"{sequence}_*.png"))
                # The last flow leads to a picture that is not there.
                for pair, flow in zip(pairwise(images), told[:-1], strict=False):
                    self._image_list.append(pair)
                    self._flow_list.append(flow)
        self._expect_images()

    def _read_flow(self, path: Path) -> tuple[np.ndarray, np.ndarray | None]:
        return _read_sparse(path)
