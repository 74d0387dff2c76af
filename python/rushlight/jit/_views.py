"""What Python sees of programs: graphs whose calls are what they call, constants of texts."""

from __future__ import annotations

from typing import Any

from rushlight import _C


def inlined(graph: Any) -> Any:
    """A copy of a graph whose calls are what they call."""
    copy = graph.copy()
    _C._jit_pass_inline(copy)
    return copy


def optimised(graph: Any) -> Any:
    """A copy of a graph as it is run: calls are what they call, constants are computed."""
    copy = inlined(graph)
    for simplifies in (
        _C._jit_pass_constant_propagation,
        _C._jit_pass_peephole,
        _C._jit_pass_cse,
        _C._jit_pass_dce,
    ):
        simplifies(copy)
    return copy


def with_constants(code: tuple[str, list]) -> tuple[str, Constants]:
    """A text, and the constants that it names, by their names."""
    text, constants = code
    return text, Constants({f"c{i}": value for i, value in enumerate(constants)})


class Constants:
    """The constants that a text names: an attribute each, and a dict of them."""

    def __init__(self, const_mapping: dict[str, Any]) -> None:
        self.const_mapping = const_mapping

    def __getattr__(self, name):
        try:
            return self.__dict__["const_mapping"][name]
        except KeyError:
            raise AttributeError(f"the text names no constant '{name}'") from None
