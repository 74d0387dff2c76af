"""Lowerings of resampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight.onnx._builder import Builder, Unsupported, Value
from rushlight.onnx._registry import lowers

__all__: list[str] = []  # lowerings are found by the names of their ops


def resized(
    g: Builder,
    x: Value,
    mode: str,
    sizes: Sequence[Any] | None,
    scales: Sequence[float] | None,
    align_corners: bool = False,
    antialias: bool = False,
) -> Value:
    """An image, line or volume in another size.

    Args:
        mode: "nearest", "nearest-exact", "linear" or "cubic".
        sizes: the new sizes of the last dimensions.
        scales: the factors; they go before sizes, for what lies where.
    """
    how: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": "half_pixel"}
    if mode == "nearest":
        how.update(coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    elif mode == "nearest-exact":
        how.update(mode="nearest", nearest_mode="round_prefer_ceil")
    elif align_corners:
        how["coordinate_transformation_mode"] = "align_corners"
    if mode == "cubic":
        how["cubic_coeff_a"] = -0.5 if antialias else -0.75
    if antialias:
        how.update(antialias=1, exclude_outside=1)
    if antialias and align_corners:
        raise Unsupported("antialias with align_corners: runtimes do not agree with it")
    n = len(scales if scales is not None else sizes or ())
    if scales is not None and sizes is not None and not _agree(x, sizes, scales):
        raise Unsupported("sizes that do not follow from the factors")
    keep = x.rank - n
    if scales is not None:
        factors = g.constant([1.0] * keep + [float(s) for s in scales], rushlight.float32)
        return g.Resize(x, None, factors, **how)
    assert sizes is not None
    target = g.vector([*x.sizes[:keep], *sizes])
    return g.Resize(x, None, None, target, **how)


def _agree(x: Value, sizes: Sequence[Any], scales: Sequence[float]) -> bool:
    """Whether ONNX finds these sizes by the factors."""
    before = x.sizes[-len(sizes) :]
    known = zip(before, sizes, scales, strict=True)
    return all(int(n * f) == m for n, m, f in known if isinstance(n, int) and isinstance(m, int))


_MODES = {
    "nearest": "nearest",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "bicubic": "cubic",
    "nearest-exact": "nearest-exact",
}


def _by_sizes(kind: str, dims: int) -> None:
    """`upsample_KIND{dims}d` by sizes, with the factors where these are known."""
    name = (
        f"_upsample_nearest_exact{dims}d" if kind == "nearest-exact" else f"upsample_{kind}{dims}d"
    )
    corners = not kind.startswith("nearest")

    @lowers(f"aten.{name}.default")
    def lower(g: Builder, self: Value, output_size: Sequence[Any], *rest: Any) -> Value:
        aligned, factors = (rest[0], rest[1:]) if corners else (False, rest)
        known = None if any(f is None for f in factors) else list(factors)
        return resized(g, self, _MODES[kind], output_size, known, aligned)

    @lowers(f"aten.{name}.vec")
    def lower_vec(g: Builder, input: Value, output_size: Sequence[Any] | None, *rest: Any) -> Value:
        aligned = rest[0] if corners else False
        return resized(g, input, _MODES[kind], output_size, rest[-1], aligned)


for _kind, _dims in (
    *(("nearest", n) for n in (1, 2, 3)),
    *(("nearest-exact", n) for n in (1, 2, 3)),
    ("linear", 1),
    ("bilinear", 2),
    ("bicubic", 2),
    ("trilinear", 3),
):
    _by_sizes(_kind, _dims)


@lowers("aten._upsample_bilinear2d_aa.default", "aten._upsample_bicubic2d_aa.default")
@lowers("aten._upsample_bilinear2d_aa.vec", "aten._upsample_bicubic2d_aa.vec")
def antialiased(
    g: Builder, self: Value, output_size: Sequence[Any], align_corners: bool, *factors: Any
) -> Value:
    mode = "linear" if "bilinear" in g.overload else "cubic"
    known = factors[0] if g.overload.endswith(".vec") else factors
    scales = None if known is None or any(f is None for f in known) else list(known)
    return resized(g, self, mode, output_size, scales, align_corners, antialias=True)


@lowers("aten.grid_sampler.default", "aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default")
def grid_sampler(
    g: Builder,
    input: Value,
    grid: Value,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Value:
    if input.rank != 4 and not g.since(20):
        raise Unsupported("grid_sample of volumes needs opset_version=20 or later")
    names = ("linear", "nearest", "cubic") if g.since(20) else ("bilinear", "nearest", "bicubic")
    return g.GridSample(
        input,
        grid,
        mode=names[interpolation_mode],
        padding_mode=("zeros", "border", "reflection")[padding_mode],
        align_corners=int(align_corners),
    )


@lowers("aten.affine_grid_generator.default")
def affine_grid(g: Builder, theta: Value, size: Sequence[Any], align_corners: bool) -> Value:
    if not all(isinstance(s, int) for s in size[2:]):
        raise Unsupported("affine_grid of a size that is not constant")
    lines = []
    for n in size[2:]:
        edge = 1.0 if align_corners else 1 - 1 / n
        lines.append(
            rushlight.linspace(-edge, edge, n, dtype=theta.dtype) if n > 1 else rushlight.zeros(1)
        )
    grids = rushlight.meshgrid(*lines, indexing="ij")[::-1]
    base = rushlight.stack([*grids, rushlight.ones_like(grids[0])], -1).reshape(-1, len(lines) + 1)
    out = g.MatMul(g.constant(base), g.swap(theta, -1, -2))
    return g.reshape(out, [size[0], *size[2:], len(lines)])
