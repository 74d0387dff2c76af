"""Whether a trace gives what the program gives, and is the same when it is taken again."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from typing import Any

import rushlight
from rushlight import _C, Tensor, nn
from rushlight._C import Graph, Node
from rushlight._warnings import warn
from rushlight.jit._script import TracerWarning
from rushlight.utils import _pytree
from rushlight.utils._python_dispatch import is_traceable_wrapper_subclass

__all__ = ["TracingCheckError", "check"]


_MANGLED = re.compile(r"___torch_mangle_\d+\.")


class TracingCheckError(Exception):
    """A trace that differs from what the program does.

    Args:
        graph_diff_error: how the graphs of two traces differ, or None.
        tensor_compare_error: which constants of two traces differ, or None.
        extra_msg: what else went wrong.

    Example:
        >>> error = torch.jit.TracingCheckError(None, None, "outputs differ")
        >>> print(error)
        Tracing failed sanity checks!
        outputs differ
    """

    def __init__(
        self,
        graph_diff_error: str | None,
        tensor_compare_error: str | None,
        extra_msg: str | None = None,
    ) -> None:
        lines = ["Tracing failed sanity checks!"]
        if extra_msg is not None:
            lines.append(extra_msg)
        if graph_diff_error is not None:
            lines += ["ERROR: Graphs differed across invocations!", graph_diff_error]
        if tensor_compare_error is not None:
            lines += [
                "ERROR: Tensor-valued Constant nodes differed in value: the program computes "
                "something that the trace does not see",
                tensor_compare_error,
            ]
        self.message = "\n".join(lines)
        super().__init__(self.message)


class _Kept:
    """The tensors of modules, to be put back."""

    def __init__(self, modules: tuple[nn.Module, ...]) -> None:
        tensors = {id(t): t for m in modules for t in (*m.parameters(), *m.buffers())}
        # Weights of codes are not written to.
        plain = (t for t in tensors.values() if not is_traceable_wrapper_subclass(t))
        self._contents = [(t, t.detach().clone()) for t in plain]
        parts = {part for m in modules for part in m.modules()}
        self._buffers = [(part, dict(part._buffers)) for part in parts]

    def restore(self) -> None:
        """Every buffer is the tensor that it was, and every tensor has its elements again."""
        for part, before in self._buffers:
            for name, tensor in before.items():
                if part._buffers.get(name) is not tensor:
                    setattr(part, name, tensor)
        with rushlight.no_grad():
            for tensor, before in self._contents:
                if not rushlight.equal(tensor, before):
                    tensor.copy_(before)


def _copied(thing: Any) -> Any:
    """Arguments whose tensors are copies."""

    def copy(t: Tensor) -> Tensor:
        return t.detach().clone().requires_grad_(t.requires_grad)

    return _pytree.tree_map_only(Tensor, copy, thing)


def _nodes(block: Any) -> Iterator[Node]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)


def _plain(graph: Graph) -> Graph:
    """A copy of a graph as a whole, without what is of one run: shapes and names."""
    copy = graph.copy()
    _C._jit_pass_inline(copy)
    values = [*copy.inputs(), *(v for node in _nodes(copy) for v in node.outputs())]
    for value in values:
        value.setType(value.type())
    return copy


def _difference(first: Graph, second: Graph) -> str | None:
    # Each program has classes of its own, whose names differ.
    texts = [_MANGLED.sub("", g.str(False)).splitlines(keepends=True) for g in (first, second)]
    if texts[0] == texts[1]:
        return None
    return "Graph diff:\n" + "".join(difflib.ndiff(texts[0], texts[1]))


def _constant_difference(first: Graph, second: Graph) -> str | None:
    """How the first constant tensors that differ do so."""
    pairs = zip(*(g.findAllNodes("prim::Constant") for g in (first, second)), strict=False)
    for a, b in pairs:
        one, other = a.output().toIValue(), b.output().toIValue()
        if not isinstance(one, Tensor) or not isinstance(other, Tensor):
            continue
        try:
            rushlight.testing.assert_close(one, other, equal_nan=True)
        except AssertionError as error:
            return f"Node:\n{a}{a.sourceRange()}\nCompared tensor values: {error}"
    return None


def _draws(node: Node) -> bool:
    """Whether a node draws random numbers."""
    space, _, name = node.kind().partition("::")
    packet = getattr(rushlight.ops.aten, name, None) if space == "aten" else None
    if packet is None or (
        name.endswith("dropout") and node.namedInput("train").toIValue() is False
    ):
        return False
    seeded = rushlight.Tag.nondeterministic_seeded
    return any(seeded in getattr(packet, overload).tags for overload in packet.overloads())


class _Checker:
    """Compares one program with the function that it was traced from, for some arguments.

    Args:
        program: the program.
        function: what was traced.
        retrace: takes the trace again: of arguments to a program.
        modules: whose tensors both may write.
        tolerance: the relative error that is allowed.
    """

    def __init__(self, program, function, retrace, modules, tolerance) -> None:
        self.program, self.function, self.retrace = program, function, retrace
        self.kept = _Kept(modules)
        self.tolerance = tolerance

    def run(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Warns where results differ; raises where the traces do."""
        again = self.retrace(*_copied((args, kwargs)))
        self.kept.restore()
        graphs = _plain(self.program.graph), _plain(again.graph)
        found = _difference(*graphs), _constant_difference(*graphs)

        def outputs(call: Callable[..., Any], what: str) -> list[Tensor]:
            given, by_name = _copied((args, kwargs))
            try:
                result = call(*given, **by_name)
            except Exception as error:
                told = f"encountered an exception while running the {what}: {error}"
                raise TracingCheckError(*found, told) from error
            finally:
                self.kept.restore()
            return [t for t in _pytree.tree_leaves(result) if isinstance(t, Tensor)]

        traced = outputs(self.program, "trace")
        if self._agree(traced, outputs(self.function, "Python function"), "Python function"):
            self._agree(traced, outputs(again, "repeated trace"), "repeated trace")
        if any(one is not None for one in found):
            raise TracingCheckError(*found)

    def _agree(self, traced: list[Tensor], other: list[Tensor], what: str) -> bool:
        for place, (one, two) in enumerate(zip(traced, other, strict=False)):
            try:
                rushlight.testing.assert_close(
                    one.detach().double() if not one.is_complex() else one.detach(),
                    two.detach().double() if not two.is_complex() else two.detach(),
                    rtol=self.tolerance,
                    atol=self.tolerance,
                    equal_nan=True,
                )
            except AssertionError as error:
                self._tell(place, what, error)
                return False
        return True

    def _tell(self, place: int, what: str, error: AssertionError) -> None:
        random = [node for node in _nodes(_plain(self.program.graph)) if _draws(node)]
        if random:
            shown = "\n".join(str(node).strip() for node in random[:20])
            warn(
                "Trace had nondeterministic nodes: eval() turns dropout off, and check_trace=False "
                f"this check; the nodes are\n{shown}",
                TracerWarning,
            )
        warn(
            f"Output nr {place + 1}. of the traced function does not match: the {what} gives "
            f"another: {error}",
            TracerWarning,
        )


def check(
    program: Callable[..., Any],
    function: Callable[..., Any],
    retrace: Callable[[tuple, dict[str, Any]], Any],
    calls: list[tuple[tuple, dict[str, Any]]],
    tolerance: float,
    modules: tuple[nn.Module, ...] = (),
) -> None:
    """Compare a program with what it was traced from; both see copies of the arguments.

    Args:
        program: the program, which has a graph.
        function: what was traced.
        retrace: takes the trace again, for arguments by position and by name.
        calls: the arguments, by position and by name.
        tolerance: the relative and absolute error that is allowed.
        modules: whose tensors are put back after each run.
    """
    checker = _Checker(program, function, retrace, modules, tolerance)
    with rushlight.random.fork_rng(devices=[]):
        for args, kwargs in calls:
            checker.run(args, kwargs)
