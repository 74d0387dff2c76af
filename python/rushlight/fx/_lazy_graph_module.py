"""Graph modules whose `forward` is written when it is first wanted, and how to ask for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from rushlight.fx import graph_module
from rushlight.fx.graph_module import GraphModule, _make_graph_module

__all__ = ["_LazyGraphModule", "_make_graph_module", "_use_lazy_graph_module"]


@contextlib.contextmanager
def _use_lazy_graph_module(should_use: bool) -> Iterator[None]:
    """Within it graph modules are lazy, or not."""
    before = graph_module._kind
    graph_module._kind = _LazyGraphModule if should_use else GraphModule
    try:
        yield
    finally:
        graph_module._kind = before


class _LazyGraphModule(GraphModule):
    """A graph module that writes its `forward` when it is called or its code is read."""

    @classmethod
    def from_graphmodule(cls, gm: GraphModule) -> _LazyGraphModule:
        """A lazy module of the same graph; the module itself if it is lazy."""
        return gm if isinstance(gm, _LazyGraphModule) else cls(gm, gm.graph)

    @staticmethod
    def force_recompile(gm: Any) -> None:
        """Writes what a lazy module has put off; leaves others alone."""
        if isinstance(gm, _LazyGraphModule):
            gm.real_recompile()

    def real_recompile(self) -> None:
        """Writes `forward`, if that has been put off."""
        if self._needs_recompile():
            super().recompile()

    def _needs_recompile(self) -> bool:
        return type(self).forward is _LazyGraphModule._lazy_forward

    def _lazy_forward(self, *args: Any, **kwargs: Any) -> Any:
        # Whoever kept this method comes here again and again.
        self.real_recompile()
        return self(*args, **kwargs)

    def recompile(self) -> Any:
        """Puts it off."""
        type(self).forward = _LazyGraphModule._lazy_forward

    @property
    def code(self) -> str:
        """The Python of `forward`."""
        self.real_recompile()
        return super().code

    def __reduce__(self):
        self.real_recompile()
        return super().__reduce__()
