"""What `importlib.metadata` tells of torch and torchvision where rushlight is in their place."""

import importlib.metadata
from pathlib import Path

import rushlight


class NameAndVersion(importlib.metadata.Distribution):
    """A distribution that has a name and a version.

    Args:
        name: the name of the project.
        version: of it.
    """

    def __init__(self, name: str, version: str) -> None:
        self._is, self._version = name, version

    def read_text(self, filename):
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: {self._is}\nVersion: {self._version}\n"

    def locate_file(self, path):
        return Path(rushlight.__path__[0]).parent / path
