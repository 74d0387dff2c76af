"""Pictures and what people wrote of them: Flickr, SBU."""

from collections import defaultdict
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from .folder import default_loader
from .utils import (
    MISSING_OR_DAMAGED,
    check_integrity,
    download_and_extract_archive,
    download_url,
    lines_of,
    parsing,
)
from .vision import SamplesDataset, Transform

__all__ = ["SBU", "Flickr8k", "Flickr8kParser", "Flickr30k"]

_Loader = Callable[[Any], Any]


class Flickr8kParser(HTMLParser):
    """Reads the table of Flickr8k: links to pictures, and lists of captions.

    Args:
        root: the folder that links are relative to.

    For an example see `vision.datasets.Flickr8k`.
    """

    def __init__(self, root: str | Path) -> None:
        super().__init__()
        self.root = Path(root)
        self.annotations: dict[str, list[str]] = {}
        self._inside = False
        self._path: str | None = None
        self._caption: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._inside = True
        elif self._inside and tag == "tr":
            self._path = None
        elif self._inside and tag == "li":
            self._caption = []
        elif self._inside and tag == "a":
            number = (dict(attrs).get("href") or "").rstrip("/").split("/")[-1]
            found = sorted(self.root.glob(f"{number}_*.jpg")) if number.isalnum() else []
            if found:
                self._path = str(found[0])
                self.annotations[self._path] = []

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._inside = False
        elif tag == "li" and self._caption is not None:
            if self._path is not None:
                self.annotations[self._path].append("".join(self._caption).strip())
            self._caption = None

    def handle_data(self, data: str) -> None:
        if self._caption is not None:
            self._caption.append(data)


class _Flickr(SamplesDataset):
    def __init__(
        self,
        root: str | Path,
        ann_file: str,
        transform: Transform = None,
        target_transform: Transform = None,
        loader: _Loader = default_loader,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.ann_file, self.loader = str(Path(ann_file).expanduser()), loader
        self.annotations = self._read()
        self.ids = sorted(self.annotations)
        base = Path(self.root or "")
        self._samples = [(base / name, self.annotations[name]) for name in self.ids]

    def _read(self) -> dict[str, list[str]]:
        raise NotImplementedError


class Flickr8k(_Flickr):
    """Pictures of root and their captions, in a page of HTML.

    Args:
        ann_file: the page of captions.
    """

    def _read(self) -> dict[str, list[str]]:
        parser = Flickr8kParser(self.root or "")
        with parsing(self.ann_file):
            parser.feed(Path(self.ann_file).read_text(encoding="utf-8"))
        return parser.annotations


class Flickr30k(_Flickr):
    """Pictures of root and their captions, lines of PICTURE#NUMBER, a tab and a caption.

    Args:
        ann_file: the file of captions.
    """

    def _read(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        with parsing(self.ann_file):
            for line in lines_of(self.ann_file):
                name, caption = line.strip().split("\t")
                found[name[:-2]].append(caption)
        return dict(found)


class SBU(SamplesDataset):
    """Pictures and a caption each: root/dataset, of those that the lists' addresses still have."""

    url = "https://www.cs.rice.edu/~vo9/sbucaptions/SBUCaptionedPhotoDataset.tar.gz"
    filename = "SBUCaptionedPhotoDataset.tar.gz"
    md5_checksum = "9aec147b3488753cf758b4d493422285"

    def __init__(
        self,
        root: str | Path,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = True,
        loader: _Loader = default_loader,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.loader = loader
        if download:
            self.download()
        if not self._check_integrity():
            raise RuntimeError(MISSING_OR_DAMAGED)
        base = Path(self.root or "") / "dataset"
        names = "urls", "captions"
        lists = [lines_of(base / f"SBU_captioned_photo_dataset_{name}.txt") for name in names]
        self.photos: list[str] = []
        self.captions: list[str] = []
        for url, caption in zip(*lists, strict=False):
            photo = url.strip().rsplit("/", 1)[-1]
            if (base / photo).is_file():
                self.photos.append(photo)
                self.captions.append(caption.rstrip())
        paths = [base / photo for photo in self.photos]
        self._samples = list(zip(paths, self.captions, strict=True))

    def _check_integrity(self) -> bool:
        return check_integrity(Path(self.root or "") / self.filename, self.md5_checksum)

    def download(self) -> None:
        """Downloads the lists, and each picture whose address still has it."""
        base = Path(self.root or "")
        if self._check_integrity():
            return
        download_and_extract_archive(self.url, base, md5=self.md5_checksum)
        for url in lines_of(base / "dataset" / "SBU_captioned_photo_dataset_urls.txt"):
            try:
                download_url(url.strip(), base / "dataset")
            except RuntimeError:  # many are gone
                continue
