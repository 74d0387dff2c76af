"""How graphs spell calls of ops that are one op here and another one in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight

__all__ = ["exported_form", "lift_fresh_copy"]

_Form = tuple[Any, tuple[Any, ...], dict[str, Any]]


def exported_form(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Form:
    """The overload, arguments and keywords by which a graph holds a call.

    Most calls stay as they are.
    """
    form = _FORMS.get(str(func))
    return (func, args, kwargs) if form is None else form(func, args, kwargs)


def _trim(target: Any, args: list[Any]) -> _Form:
    """A call without those last arguments that have their default."""
    defaults = [a.default_value for a in target._schema.arguments]
    while args and len(args) <= len(defaults) and _same(args[-1], defaults[len(args) - 1]):
        if not target._schema.arguments[len(args) - 1].has_default_value():
            break
        args = args[:-1]
    return target, tuple(args), {}


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, list | tuple) and not isinstance(default, list | tuple):
        return all(type(v) is type(default) and v == default for v in value)
    return type(value) is type(default) and value == default


def _convolution(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Form:
    names = (a.name for a in func._schema.arguments)
    given = dict(zip(names, args, strict=False)) | kwargs
    # The stride may be one number for all dimensions.
    dims, aten = given["weight"].dim() - 2, rushlight.ops.aten
    if dims not in (1, 2, 3):
        return func, args, kwargs
    if given["transposed"]:
        target = getattr(aten, f"conv_transpose{dims}d")
        target = target.default if dims == 1 else target.input
        order = "input weight bias stride padding output_padding groups dilation"
    elif any(given["output_padding"]):
        return func, args, kwargs
    else:
        target = getattr(aten, f"conv{dims}d").default
        order = "input weight bias stride padding dilation groups"
    return _trim(target, [given[name] for name in order.split()])


_KINDS = {"nearest": "upsample_nearest", "nearest-exact": "_upsample_nearest_exact"}


def _interpolate(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Form:
    schema = func._schema.arguments
    given = {a.name: a.default_value for a in schema}
    given.update(zip((a.name for a in schema), args, strict=False), **kwargs)
    mode, size = given["mode"], list(given["output_size"])
    scales = [given[f"scale_{axis}"] for axis in "dhw"][-len(size) :]
    antialias = "_aa" if given["antialias"] else ""
    if mode in _KINDS:
        packet, more = f"{_KINDS[mode]}{len(size)}d", ()
    else:
        dims = {"linear": "1d", "bilinear": "2d", "bicubic": "2d", "trilinear": "3d"}[mode]
        packet = f"{'_' if antialias else ''}upsample_{mode}{dims}{antialias}"
        more = (given["align_corners"],)
    overloads, image = getattr(rushlight.ops.aten, packet), given["self"]
    if all(s is None for s in scales):
        return overloads.vec, (image, size, *more, None), {}
    sizes = zip(image.shape[-len(size) :], scales, size, strict=True)
    if all(s is not None and math.floor(int(n) * s) == int(to) for n, s, to in sizes):
        return overloads.vec, (image, None, *more, scales), {}
    return overloads.default, (image, size, *more, *scales), {}


def _to(packet: str, overload: str) -> Callable[..., _Form]:
    def form(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Form:
        return getattr(getattr(rushlight.ops.aten, packet), overload), args, kwargs

    return form


_FORMS: dict[str, Callable[..., _Form]] = {
    "aten._convolution.default": _convolution,
    "rushlight._interpolate.default": _interpolate,
    "aten.split.sizes": _to("split_with_sizes", "default"),
}


def lift_fresh_copy() -> Any:
    """The op by which graphs copy a constant that the program wrote down."""
    return rushlight.ops.aten.lift_fresh_copy.default
