"""The safetensors format: tensors by name, nothing else, read without running anything.

The functions are those of the package `safetensors.torch`.
"""

from __future__ import annotations

import os

from rushlight import _C

__all__ = ["load", "load_file", "metadata", "save", "save_file"]


def _pairs(tensors, notes):
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    return list(tensors.items()), list((notes or {}).items())


def _placed(tensors, device):
    if str(device) == "cpu":
        return dict(tensors)
    return {name: tensor.to(device) for name, tensor in tensors}


def save_file(tensors, filename, metadata=None):
    """Saves tensors under their names; the file is replaced in one step.

    Args:
        tensors: a dict of tensors. Those that share memory are written one by one.
        filename: a path.
        metadata: a dict of strings to go with them.
    """
    _C._save_safetensors(*_pairs(tensors, metadata), os.fsdecode(os.fspath(filename)))


def save(tensors, metadata=None):
    """The bytes of such a file."""
    return _C._save_safetensors(*_pairs(tensors, metadata), None)


def load_file(filename, device="cpu", *, mmap: bool = True):
    """The tensors of a file as a dict.

    Args:
        filename: a path.
        device: where the tensors go.
        mmap: map the file: tensors are read when they are used, and written to memory only.

    Raises:
        RuntimeError: if the file is damaged.
    """
    return _placed(_C._load_safetensors(os.fsdecode(os.fspath(filename)), mmap)[0], device)


def load(data):
    """The tensors in the bytes of a file as a dict."""
    return _placed(_C._load_safetensors(data, False)[0], "cpu")


def metadata(filename):
    """The strings that go with the tensors of a file."""
    return dict(_C._load_safetensors(os.fsdecode(os.fspath(filename)), True)[1])
