"""Paths of files of the package."""

from __future__ import annotations

import os
import tempfile

torch_parent = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def get_file_path(*path_components: str) -> str:
    """A path below the folder that the package is in."""
    return os.path.join(torch_parent, *path_components)


def get_file_path_2(*path_components: str) -> str:
    """A path of its parts."""
    return os.path.join(*path_components)


def get_writable_path(path: str) -> str:
    """The path where it may be written to, else a new temporary folder."""
    return path if os.access(path, os.W_OK) else tempfile.mkdtemp(suffix=os.path.basename(path))


def resolve_library_path(path: str) -> str:
    """The path without links."""
    return os.path.realpath(path)
