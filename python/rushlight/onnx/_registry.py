"""Which overloads can be lowered to ONNX, and by what function.

    @lowers("aten.silu.default")
    def silu(g, self):
        return g.Mul(self, g.Sigmoid(self))

A lowering gets the `Builder` and those arguments of the overload's schema that it has parameters
for: by name if all of its parameters are names of the schema, otherwise the first ones in order.
Tensors are Values, everything else is what the schema says. `g.result` is what the node returns, on
meta. A call without a form in ONNX raises `Unsupported`. Overloads that write in place (`silu_`)
need no lowering: they go by the function of the same name.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["FAMILIES", "call", "functional", "lowering_of", "lowerings", "lowers"]

FAMILIES = (
    "activations",
    "attention",
    "conv",
    "creation",
    "index",
    "linalg",
    "logic",
    "loss",
    "norm",
    "pad",
    "pointwise",
    "pool",
    "recurrent",
    "reduce",
    "resample",
    "shape",
    "softmax",
    "sort",
    "symbolic",
    "vision",
)

_F = TypeVar("_F", bound=Callable[..., Any])
_lowerings: dict[str, Callable[..., Any]] = {}


def lowers(*overloads: str) -> Callable[[_F], _F]:
    """Registers a function as the lowering of overloads."""

    def register(function: _F) -> _F:
        for overload in overloads:
            if overload in _lowerings:
                raise ValueError(f"{overload} has a lowering already")
            _lowerings[overload] = function
        return function

    return register


def lowerings() -> dict[str, Callable[..., Any]]:
    """All lowerings by overload."""
    for family in FAMILIES:
        importlib.import_module(f"rushlight.onnx.{family}")
    return _lowerings


@functools.cache
def _parameters(function: Callable[..., Any]) -> tuple[list[str], list[str], bool]:
    """What a lowering takes after the builder, what of that it needs, whether it takes all."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    names = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
    needed = [p.name for p in parameters if p.default is p.empty and p.name in names]
    return names, needed, len(names) < len(parameters)


def call(function: Callable[..., Any], g: Any, named: dict[str, Any]) -> Any:
    """Calls a lowering with the arguments of a schema, by name and in order."""
    names, needed, all_of_them = _parameters(function)
    if all_of_them:
        return function(g, *named.values())
    if all(name in named for name in needed):
        return function(g, **{name: named[name] for name in names if name in named})
    return function(g, *list(named.values())[: len(names)])


def functional(overload: str) -> str:
    """The overload that computes what an overload that writes in place writes."""
    namespace, name, kind = overload.split(".")
    in_place = name.endswith("_") and not name.endswith("__")
    return f"{namespace}.{name[:-1]}.{kind}" if in_place else overload


def lowering_of(overload: str) -> Callable[..., Any] | None:
    """The lowering of an overload, or of the one behind it if it writes in place; or None."""
    found = lowerings()
    return found.get(overload) or found.get(functional(overload))


def page() -> str:
    """The list of overloads by family, for docs/onnx.md."""
    families: dict[str, list[str]] = {}
    for overload, function in sorted(lowerings().items()):
        family = function.__module__.rpartition(".")[2]
        families.setdefault(family, []).append(f"`{overload.removeprefix('aten.')}`")
    lines = ["| family | overloads |", "|---|---|"]
    lines += [f"| {family} | {', '.join(found)} |" for family, found in sorted(families.items())]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    from rushlight.onnx import _registry

    print(_registry.page(), end="")
