"""Strided nested tensors of padded ones."""

from __future__ import annotations

import rushlight
from rushlight.nested._strided import of_components

__all__: list[str] = []


def _nested_tensor_from_mask_left_aligned(t, mask):
    """Whether the mask keeps the first places of each row and no others."""
    lengths = mask.sum(1, keepdim=True)
    return bool((mask == (rushlight.arange(mask.shape[1], device=mask.device) < lengths)).all())


def _nested_tensor_from_mask(t, mask, mask_check=True):
    """The strided nested tensor of what a mask (B, L), true for elements, keeps of (B, L, D)."""
    if mask.dtype != rushlight.bool:
        raise RuntimeError(f"Expected mask to be of ScalarType Bool, but got {mask.dtype} instead.")
    if mask.dim() != 2:
        raise RuntimeError("Padding mask should be 2D")
    if t.dim() != 3:
        raise RuntimeError("Input should be a 3D tensor, N * L * D")
    if t.shape[:2] != mask.shape:
        raise RuntimeError("Padding mask size should match the input's first two dimensions")
    if mask_check and not _nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError("Mask must be left-aligned without gaps")
    return of_components(row[:n] for row, n in zip(t, mask.sum(1).tolist(), strict=True))


def _nested_from_padded(padded, cpu_nested_shape_example, fuse_transform_0213=False):
    """The strided nested tensor of the first elements of the slices of a padded tensor.

    With `fuse_transform_0213` the slices are (heads, L, width) and come out as (L, heads * width).
    """
    sizes = cpu_nested_shape_example.tolist()
    if fuse_transform_0213:
        padded = padded.transpose(1, 2).flatten(2)
    if len(sizes) != padded.shape[0] or any(len(s) != padded.dim() - 1 for s in sizes):
        raise RuntimeError("_nested_from_padded(): the sizes do not go with the padded tensor")
    return of_components(
        row[tuple(slice(0, n) for n in s)] for row, s in zip(padded, sizes, strict=True)
    )
