"""The types that programs write in annotations for TorchScript."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035

from rushlight.futures import Future

__all__ = ["Any", "Dict", "Future", "List", "Optional", "Tuple", "Union"]
