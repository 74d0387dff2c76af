"""`Tag`: what the maker of an op says of it."""

from __future__ import annotations

import enum


class Tag(enum.Enum):
    """What is true of an op: the table says it, and `define` of those of one's own.

    The numbers are those of C++'s `at::Tag`.

    Example:
        >>> torch.Tag.pointwise in torch.ops.aten.relu.default.tags
        True
    """

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19


def from_bits(bits: int) -> list[Tag]:
    """A set that C++ holds, a bit for each."""
    return [tag for tag in Tag if bits >> tag.value & 1]


def listed(tags) -> list[Tag]:
    """One tag or several as a list."""
    return [tags] if isinstance(tags, Tag) else list(tags or ())
