"""What a file is that `load` could not read, told by its first bytes, and what to do about it.

Only errors look at this: a file that loads is not asked what it is.
"""

from __future__ import annotations

import os
import zipfile
from typing import Any

__all__ = ["message_with_file", "name_of"]

# What `pickle.dumps(MAGIC_NUMBER, protocol=2)` has after the protocol: the old format begins so.
_OLD_FORMAT = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."

_PICKLE = (
    "it is a pickle that torch.save has not written: pickle.load reads it, and runs any code that "
    "it names"
)
_STARTS = {
    b"version https://git-lfs": "it is a pointer of Git LFS, not the file that it stands for: "
    "`git lfs pull` in its repository fetches that",
    b"\x93NUMPY": "it is an array of numpy: numpy.load reads it, torch.from_numpy makes a tensor",
    b"\x89HDF\r\n": "it is an HDF5 file, as Keras writes them: h5py reads it",
    b"GGUF": "it is a GGUF file of llama.cpp, which torch.load does not read",
    b"\x1f\x8b": "it is compressed by gzip: unpack it, or pass gzip.open(path)",
    b"BZh": "it is compressed by bzip2: unpack it, or pass bz2.open(path)",
    b"\xfd7zXZ\x00": "it is compressed by xz: unpack it, or pass lzma.open(path)",
    b"7z\xbc\xaf": "it is a 7z archive: unpack it first",
    b"Rar!": "it is a rar archive: unpack it first",
    b"\x89PNG": "it is a picture, which torchvision.io.read_image reads",
    b"\xff\xd8\xff": "it is a picture, which torchvision.io.read_image reads",
}


def message_with_file(message: str, f: Any, source: Any) -> str:
    """The message of an error, with the name of the file `f` and what its bytes look like.

    Args:
        source: the path, or the bytes of an open file.
    """
    name, what = name_of(f), _kind(source)
    place = f"torch.load({name!r})" if name else "torch.load"
    if not what:
        return f"{place}: {message}" if name else message
    first, _, last = message.rpartition("\n")
    if first:  # between them stands advice, which is for checkpoints
        message = f"Weights only load failed. {last.strip()}"
    return f"{place}: {what}. {message}"


def name_of(f: Any) -> str:
    """What an error calls a file: its path, or the name that an open one has; empty without one."""
    if isinstance(f, str | bytes | os.PathLike):
        return os.fsdecode(os.fspath(f))
    name = getattr(f, "name", None)
    return os.fsdecode(name) if isinstance(name, str | bytes) else ""


def _kind(source):
    """What the file looks like; empty for a checkpoint, and where nothing is known."""
    if isinstance(source, str):
        size = os.path.getsize(source)
        with open(source, "rb") as stream:
            head = stream.read(512)
    else:
        size, head = len(source), bytes(source[:512])
    if size == 0:
        return "it is empty: what wrote, copied or downloaded it was cut off"
    if head.startswith(b"PK"):
        return _zip(source, size)
    return _describe_unknown_start(head, size)


def _zip(source, size):
    import io

    try:
        with zipfile.ZipFile(source if isinstance(source, str) else io.BytesIO(source)) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        return f"it ends too early, after {size} bytes: copy or download it once more"
    except (OSError, ValueError, NotImplementedError):  # damaged
        return ""
    if any(name.endswith("/data.pkl") for name in names):
        return ""
    if names and all(name.endswith(".npy") for name in names):
        return "it holds arrays of numpy (.npz): numpy.load reads it"
    if any(name.endswith("constants.pkl") for name in names):
        return ""
    some = ", ".join(repr(name) for name in names[:3]) + (" …" if len(names) > 3 else "")
    return (
        f"it is a zip file that torch.save has not written, with {some or 'nothing'} in it: unpack "
        "it, and load the file of weights"
    )


def _describe_unknown_start(head: bytes, size: int) -> str:
    for start, what in _STARTS.items():
        if head.startswith(start):
            return what
    length = int.from_bytes(head[:8], "little")
    if head[8:9] == b"{" and 2 <= length <= max(size - 8, 0):
        return "it is a safetensors file: rushlight.safetensors.load_file reads it"
    if head[4:8] == b"TFL3":
        return "it is a model of TensorFlow Lite, which torch.load does not read"
    if head[:1] == b"\x08" and head[2:3] == b"\x12":  # protocol buffers
        if head[1] == 1:
            return "it looks like a SavedModel of TensorFlow, which torch.load does not read"
        return "it looks like an ONNX model: the packages onnx and onnxruntime read it"
    if head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5"):
        return "" if _OLD_FORMAT in head[:32] else _PICKLE
    return _PICKLE if head.startswith((b"(dp0", b"(lp0")) else _text(head)


def _text(head: bytes) -> str:
    try:
        text = head.decode().lstrip("\ufeff \t\r\n")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:  # no character that the end of `head` cuts
            return ""
        text = head[: error.start].decode()
    if any(c < " " and c not in "\t\r\n\f" for c in text):
        return ""
    if text[:1] == "<":
        return (
            "it is a page of HTML or XML: the address that it was downloaded from shows a page, "
            "perhaps a login, instead of giving the file"
        )
    if text[:1] in ("{", "["):
        return "it is JSON text: json.load reads it"
    shown = text.splitlines()[0][:60] if text else ""
    return f"it is text, which begins with {shown!r}"
