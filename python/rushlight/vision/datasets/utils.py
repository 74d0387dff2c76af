"""Files of data sets: resumable downloads, checksums, archives, arguments."""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import hashlib
import lzma
import os
import shutil
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qs, urlparse
from urllib.request import Request, urlopen

__all__ = [
    "calculate_md5",
    "check_integrity",
    "check_md5",
    "download_and_extract_archive",
    "download_file_from_google_drive",
    "download_url",
    "extract_archive",
    "iterable_to_str",
    "list_dir",
    "list_files",
    "verify_str_arg",
]

StrPath = str | Path
USER_AGENT = "rushlight.vision"
_ADVICE = "You can use download=True to download it"
MISSING = f"Dataset not found. {_ADVICE}"
MISSING_OR_DAMAGED = f"Dataset not found or corrupted. {_ADVICE}"
_CHUNK = 1 << 20
# What an archive may unpack to: as many files, and as many bytes for each of its own and some more.
_MOST_FILES = 20_000_000
_MOST_BYTES_EACH, _MOST_BYTES = 1100, 1 << 30


@contextlib.contextmanager
def parsing(path: StrPath) -> Iterator[None]:
    """Errors of what is done with a file's content become RuntimeErrors that name the file."""
    try:
        yield
    except (ValueError, KeyError, IndexError, TypeError, EOFError, struct.error) as error:
        raise RuntimeError(f"{path} is damaged: {error!r}") from error


def lines_of(path: StrPath) -> list[str]:
    """The lines of a text file that are not empty."""
    with parsing(path):
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip()]


def verify_kinds(types: Sequence[str] | str, arg: str, valid: Sequence[str]) -> list[str]:
    """The kinds of targets that are asked for, one or several; ValueError for unknown ones."""
    listed = [types] if isinstance(types, str) else list(types)
    return [verify_str_arg(kind, arg, valid) for kind in listed]


def one_or_tuple(made: list[Any]) -> Any:
    """The only thing of a list, or all as a tuple; None without any."""
    return None if not made else made[0] if len(made) == 1 else tuple(made)


# ---- sums ----


def calculate_md5(fpath: StrPath, chunk_size: int = _CHUNK) -> str:
    """The MD5 sum of a file, in hexadecimal digits.

    Args:
        fpath: the file.
        chunk_size: bytes that are read at once.

    Example:
        >>> import tempfile
        >>> from rushlight.vision.datasets.utils import calculate_md5
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     calculate_md5(file.name)  # of an empty file
        'd41d8cd98f00b204e9800998ecf8427e'
    """
    digest = hashlib.md5(usedforsecurity=False)
    with open(fpath, "rb") as file:
        while chunk := file.read(chunk_size):
            digest.update(chunk)
    return digest.hexdigest()


def check_md5(fpath: StrPath, md5: str, **kwargs: Any) -> bool:
    """Whether a file has this MD5 sum.

    Args:
        fpath: the file.
        md5: its sum.
        kwargs: those of `calculate_md5`.

    For an example see `vision.datasets.utils.calculate_md5`.
    """
    return md5 == calculate_md5(fpath, **kwargs)


def check_integrity(fpath: StrPath, md5: str | None = None) -> bool:
    """Whether a file exists and has the MD5 sum, if one is given.

    Args:
        fpath: the file.
        md5: its sum, or None.

    Example:
        >>> from rushlight.vision.datasets.utils import check_integrity
        >>> check_integrity("nothing-of-this-name")
        False
    """
    return os.path.isfile(fpath) and (md5 is None or check_md5(fpath, md5))


# ---- downloads ----


def _fetch(url: str, path: Path) -> None:
    """Writes what an address has; bytes of a download that was broken off are not asked for
    again.
    """
    part = path.with_name(f"{path.name}.partial")
    done = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": USER_AGENT}
    if done:
        headers["Range"] = f"bytes={done}-"
    try:
        with urlopen(Request(url, headers=headers), timeout=60) as response:
            goes_on = done > 0 and getattr(response, "status", None) == 206
            total = response.headers.get("Content-Length")
            expected = None if total is None else int(total) + (done if goes_on else 0)
            with open(part, "ab" if goes_on else "wb") as file:
                shutil.copyfileobj(response, file, _CHUNK)
    except HTTPError as error:
        if error.code != 416 or not done:  # 416: nothing is left to ask for
            raise
        expected = None
    if expected is not None and part.stat().st_size < expected:
        raise URLError(f"the connection ended after {part.stat().st_size} of {expected} bytes")
    os.replace(part, path)


def download_url(
    url: str,
    root: StrPath,
    filename: StrPath | None = None,
    md5: str | None = None,
    max_redirect_hops: int = 3,
) -> None:
    """Downloads a file into a folder, unless it is there and has the sum.

    A download that was broken off goes on. RuntimeError for a sum that differs, which removes the
    file, and where there is no network, saying what to put where.

    Args:
        url: where the file is.
        root: the folder that it goes to.
        filename: its name there; that of the address if None.
        md5: its sum, or None.
        max_redirect_hops: how often the server may name another address.

    Example:
        >>> from rushlight.vision.datasets.utils import download_url
        >>> download_url("https://example.org/data.zip", "data", md5=None)  # doctest: +SKIP
    """
    folder = Path(root).expanduser()
    path = folder / (filename or os.path.basename(urlparse(url).path))
    folder.mkdir(parents=True, exist_ok=True)
    if check_integrity(path, md5):
        return None
    google = _google_drive_id(url)
    if google is not None:
        return download_file_from_google_drive(google, root, path.name, md5)
    try:
        sys.stderr.write(f"Downloading {url} to {path}\n")
        _fetch(url, path)
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise RuntimeError(
            f"{url} cannot be downloaded: {reason}. Without a network, put the file at {path} by "
            f"hand; "
            "what is there with the right sum is not downloaded again."
        ) from error
    if not check_integrity(path, md5):
        path.unlink(missing_ok=True)
        raise RuntimeError(
            f"File not found or corrupted: {path} from {url} does not have the MD5 sum {md5}"
        )
    return None


def _google_drive_id(url: str) -> str | None:
    parts = urlparse(url)
    if parts.netloc not in ("drive.google.com", "docs.google.com"):
        return None
    pieces = parts.path.split("/")
    if len(pieces) > 3 and pieces[1:3] == ["file", "d"]:
        return pieces[3]
    return parse_qs(parts.query).get("id", [None])[0]


def download_file_from_google_drive(
    file_id: str, root: StrPath, filename: StrPath | None = None, md5: str | None = None
) -> None:
    """`download_url` of a file of Google Drive, without the page that asks to confirm large
    ones.

    Args:
        file_id: the file's name there.
        root: the folder that it goes to.
        filename: its name there; `file_id` if None.
        md5: its sum, or None.

    For an example see `vision.datasets.utils.download_url`.
    """
    url = f"https://drive.usercontent.google.com/download?id={file_id}&export=download&confirm=t"
    download_url(url, root, filename or file_id, md5)


# ---- archives ----


class _Limits:
    """What an archive has unpacked so far; RuntimeError beyond what one of its size may."""

    def __init__(self, archive: Path) -> None:
        self.archive, self.files, self.bytes = archive, 0, 0
        self.most = archive.stat().st_size * _MOST_BYTES_EACH + _MOST_BYTES

    def place(self, name: str, folder: Path) -> Path:
        """Where a member goes; RuntimeError for names that lead out of the folder."""
        parts = PurePosixPath(name.replace("\\", "/")).parts
        if (
            not name
            or name.startswith(("/", "\\"))
            or ".." in parts
            or ":" in (parts[0] if parts else "")
        ):
            raise RuntimeError(
                f"{self.archive}: the member {name!r} would be written outside of {folder}"
            )
        path = folder.joinpath(*parts)
        for parent in (path, *path.parents):
            if parent == folder:
                break
            if parent.is_symlink():
                raise RuntimeError(
                    f"{self.archive}: the member {name!r} would be written through the link "
                    f"{parent}"
                )
        self.files += 1
        if self.files > _MOST_FILES:
            raise RuntimeError(f"{self.archive}: more than {_MOST_FILES} members")
        return path

    def copy(self, source: Any, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as file:
            while chunk := source.read(_CHUNK):
                self.bytes += len(chunk)
                if self.bytes > self.most:
                    raise RuntimeError(f"{self.archive}: unpacks to more than {self.most} bytes")
                file.write(chunk)


def _extract_tar(path: Path, folder: Path) -> None:
    limits = _Limits(path)
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            to = limits.place(member.name, folder)
            if member.isdir():
                to.mkdir(parents=True, exist_ok=True)
            elif member.isreg():
                source = archive.extractfile(member)
                assert source is not None
                limits.copy(source, to)
            else:
                raise RuntimeError(
                    f"{path}: the member {member.name!r} is neither a file nor a folder"
                )


def _extract_zip(path: Path, folder: Path) -> None:
    limits = _Limits(path)
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            to = limits.place(member.filename, folder)
            if (member.external_attr >> 16) & 0o170000 == 0o120000:
                raise RuntimeError(f"{path}: the member {member.filename!r} is a link")
            if member.is_dir():
                to.mkdir(parents=True, exist_ok=True)
            else:
                with archive.open(member) as source:
                    limits.copy(source, to)


# What the standard library says of damaged archives, and the system of names in them.
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, gzip.BadGzipFile, zlib.error)
_DAMAGED += (EOFError, NotImplementedError, ValueError, struct.error)
_BAD_NAMES = (errno.ENAMETOOLONG, errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.EINVAL)
_COMPRESSED = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_TARS = (".tar", ".tgz", ".tbz", ".tbz2", ".txz")


def extract_archive(
    from_path: StrPath, to_path: StrPath | None = None, remove_finished: bool = False
) -> StrPath:
    """Unpacks a tar or zip archive into a folder (its own), or a compressed file beside itself.

    Members that are no files or folders, whose names lead out of the folder, and archives that
    unpack to a thousand times their size are refused (RuntimeError), and so are damaged ones.

    Args:
        from_path: the archive, or the compressed file.
        to_path: where it is unpacked.
        remove_finished: remove the archive then.

    Example:
        >>> import os, tempfile, zipfile
        >>> from rushlight.vision.datasets.utils import extract_archive
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with zipfile.ZipFile(f"{folder}/a.zip", "w") as archive:
        ...         archive.writestr("hello.txt", "hello")
        ...     _ = extract_archive(f"{folder}/a.zip")
        ...     sorted(os.listdir(folder))
        ['a.zip', 'hello.txt']
    """
    path = Path(from_path)
    folder = path.parent if to_path is None else Path(to_path)
    suffixes = [s.lower() for s in path.suffixes[-2:]]
    try:
        if suffixes[-1:] == [".zip"]:
            _extract_zip(path, folder)
        elif suffixes and (
            suffixes[-1] in _TARS
            or (len(suffixes) > 1 and suffixes[0] == ".tar" and suffixes[1] in _COMPRESSED)
        ):
            _extract_tar(path, folder)
        elif suffixes and suffixes[-1] in _COMPRESSED:
            folder = path.with_suffix("") if to_path is None else Path(to_path)
            with _COMPRESSED[suffixes[-1]](path, "rb") as source:
                _Limits(path).copy(source, folder)
        else:
            raise RuntimeError(
                f"Unknown compression or archive type of {path}: "
                f"{iterable_to_str([*_TARS, '.zip', *_COMPRESSED])} are known"
            )
    except _DAMAGED as error:
        raise RuntimeError(f"{path} is damaged: {error}") from error
    except OSError as error:
        if error.errno is not None and error.errno not in _BAD_NAMES:  # no room, no file …
            raise
        raise RuntimeError(f"{path} is damaged: {error}") from error
    if remove_finished:
        path.unlink()
    return folder if isinstance(from_path, Path) else str(folder)


def download_and_extract_archive(
    url: str,
    download_root: StrPath,
    extract_root: StrPath | None = None,
    filename: StrPath | None = None,
    md5: str | None = None,
    remove_finished: bool = False,
) -> None:
    """`download_url`, then `extract_archive`.

    Args:
        url: where the archive is.
        download_root: the folder that it goes to.
        extract_root: the folder where it is unpacked; the same if None.
        filename: its name there; that of the address if None.
        md5: its sum, or None.
        remove_finished: remove the archive then.

    For an example see `vision.datasets.utils.download_url`.
    """
    folder = Path(download_root).expanduser()
    filename = filename or os.path.basename(urlparse(url).path)
    download_url(url, folder, filename, md5)
    extract_archive(folder / filename, extract_root or folder, remove_finished)


# ---- folders and arguments ----


def list_dir(root: StrPath, prefix: bool = False) -> list[str]:
    """The names or paths of the folders in a folder.

    Args:
        root: the folder.
        prefix: give paths, not names.

    For an example see `vision.datasets.utils.list_files`.
    """
    found = [e.name for e in os.scandir(os.path.expanduser(root)) if e.is_dir()]
    return [os.path.join(root, name) for name in found] if prefix else found


def list_files(root: StrPath, suffix: str, prefix: bool = False) -> list[str]:
    """The names or paths of the files in a folder with this suffix.

    Args:
        root: the folder.
        suffix: what names end in, or a tuple of endings.
        prefix: give paths, not names.

    Example:
        >>> import tempfile
        >>> from rushlight.vision.datasets.utils import list_files
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     open(f"{folder}/a.txt", "w").close()
        ...     list_files(folder, ".txt")
        ['a.txt']
    """
    found = [
        e.name
        for e in os.scandir(os.path.expanduser(root))
        if e.is_file() and e.name.endswith(suffix)
    ]
    return [os.path.join(root, name) for name in found] if prefix else found


def iterable_to_str(iterable: Iterable) -> str:
    """Items in quotation marks, with commas between them.

    Args:
        iterable: the items.

    Example:
        >>> from rushlight.vision.datasets.utils import iterable_to_str
        >>> print(iterable_to_str(["train", "test"]))
        'train', 'test'
    """
    return "'" + "', '".join(str(item) for item in iterable) + "'"


def verify_str_arg(
    value: Any,
    arg: str | None = None,
    valid_values: Iterable[Any] | None = None,
    custom_msg: str | None = None,
) -> str:
    """`value`, a string, one of valid_values where they are given; ValueError otherwise.

    Args:
        value: the string.
        arg: the argument's name, for the message.
        valid_values: what it may be.
        custom_msg: another message.

    Example:
        >>> from rushlight.vision.datasets.utils import verify_str_arg
        >>> verify_str_arg("train", "split", ("train", "test"))
        'train'
    """
    if not isinstance(value, str):
        where = "" if arg is None else f" for argument {arg}"
        raise ValueError(f"Expected type str{where}, but got type {type(value)}.")
    if valid_values is None or value in (choices := list(valid_values)):
        return value
    raise ValueError(
        custom_msg
        or f"Unknown value '{value}' for argument {arg}. Valid values are "
        f"{{{iterable_to_str(choices)}}}."
    )
