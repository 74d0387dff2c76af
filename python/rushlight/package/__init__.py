"""Archives of objects together with the Python code that they need."""

from __future__ import annotations

from rushlight.package.glob_group import GlobGroup
from rushlight.package.package_exporter import (
    EmptyMatchError,
    PackageExporter,
    PackagingError,
    PackagingErrorReason,
)
from rushlight.package.package_importer import PackageImporter, is_from_package

__all__ = [
    "EmptyMatchError",
    "GlobGroup",
    "PackageExporter",
    "PackageImporter",
    "PackagingError",
    "PackagingErrorReason",
    "is_from_package",
]
