"""Checkpoints of spread tensors as safetensors: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

HuggingFaceStorageReader = _refused.kind("HuggingFaceStorageReader", __name__)
HuggingFaceStorageWriter = _refused.kind("HuggingFaceStorageWriter", __name__)
