"""A breakpoint in the code of a graph."""

from __future__ import annotations

from rushlight.fx.graph_module import GraphModule

__all__ = ["set_trace"]


def set_trace(gm: GraphModule) -> GraphModule:
    """Let the module's `forward` begin with `pdb.set_trace()`.

    Args:
        gm: the module.

    Example:
        >>> from rushlight.fx.experimental.debug import set_trace
        >>> module = torch.fx.symbolic_trace(torch.nn.ReLU())
        >>> "pdb.set_trace()" in set_trace(module).code
        True
    """

    def stop(body: list[str]) -> list[str]:
        return ["import pdb; pdb.set_trace()\n", *body]

    gm.graph.on_generate_code(
        lambda before: stop if before is None else (lambda body: stop(before(body)))
    )
    gm.recompile()
    return gm
