"""How far a model's results are from those of the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.fx.interpreter import Interpreter
from rushlight.onnx._program import ONNXProgram
from rushlight.utils import _pytree as pytree

__all__ = ["VerificationInfo", "verify_onnx_program"]


@dataclass
class VerificationInfo:
    """Differences of one value of a model from that of the program.

    Args:
        name: the value.
        max_abs_diff, max_rel_diff: the largest differences, absolute and by the larger magnitude.
        abs_diff_hist, rel_diff_hist: how many elements differ by less than each edge: the counts,
            and the edges from 1e-7 to 10.
        expected_dtype, actual_dtype: of the program, and of the model.

    Attributes:
        name: the value.
        max_abs_diff, max_rel_diff: the largest differences, absolute and by the larger magnitude.
        abs_diff_hist, rel_diff_hist: how many elements differ by less than each edge: the counts,
            and the edges from 1e-7 to 10.
        expected_dtype, actual_dtype: of the program, and of the model.

    For an example see `onnx.verification.verify_onnx_program`.
    """

    name: str
    max_abs_diff: float
    max_rel_diff: float
    abs_diff_hist: tuple[Tensor, Tensor]
    rel_diff_hist: tuple[Tensor, Tensor]
    expected_dtype: rushlight.dtype
    actual_dtype: rushlight.dtype

    @classmethod
    def from_tensors(cls, name: str, expected: Tensor, actual: Tensor) -> VerificationInfo:
        """The differences of two tensors of one shape.

        Raises:
            ValueError: their shapes differ.
        """
        if expected.shape != actual.shape:
            raise ValueError(f"{name}: expected the shape {expected.shape}, got {actual.shape}")
        a, b = (t.detach().cpu().double().reshape(-1) for t in (expected, actual))
        same = (a == b) | (a.isnan() & b.isnan())
        apart = (a - b).abs().where(~same, 0.0)
        share = (apart / rushlight.maximum(a.abs(), b.abs())).where(~same, 0.0)
        edges = rushlight.tensor([0.0, *(10.0**n for n in range(-7, 2))])

        def histogram(x: Tensor) -> tuple[Tensor, Tensor]:
            below = rushlight.bucketize(x, edges.double(), right=True) - 1
            return rushlight.bincount(below, minlength=len(edges)), edges

        def largest(x: Tensor) -> float:
            return x.max().item() if x.numel() else 0.0

        return cls(
            name,
            largest(apart),
            largest(share),
            histogram(apart),
            histogram(share),
            expected.dtype,
            actual.dtype,
        )


class _Recording(Interpreter):
    """Runs a graph and keeps the value of each node."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.values: dict[str, Any] = {}

    def run_node(self, n: Any) -> Any:
        """Runs a node."""
        value = self.values[n.name] = super().run_node(n)
        if isinstance(value, Tensor):
            # A later node may write into it.
            self.values[n.name] = value.clone()
        return value


def verify_onnx_program(
    onnx_program: ONNXProgram,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    compare_intermediates: bool = False,
) -> list[VerificationInfo]:
    """Compares a model, run in onnxruntime, with the program that it was exported from.

    Args:
        args, kwargs: arguments; by default those of the export.
        compare_intermediates: whether values inside are compared, too: those of which the model
            has the node's name.
        onnx_program: what `onnx.export` gave.

    Raises:
        ValueError: the model does not know its program, or there are no arguments.

    Example:
        >>> program = torch.onnx.export(torch.nn.ReLU(), (torch.ones(2),), dynamo=True)
        >>> (info,) = torch.onnx.verification.verify_onnx_program(program)  # doctest: +SKIP
    """
    exported = onnx_program.exported_program
    if exported is None:
        raise ValueError("the ONNXProgram has no exported_program to compare it with")
    if args is None and kwargs is None and exported.example_inputs is not None:
        args, kwargs = exported.example_inputs
    if args is None and kwargs is None:
        raise ValueError("the exported program has no example_inputs: give args or kwargs")
    args, kwargs = args or (), kwargs or {}
    module = exported.module()
    recorded = _Recording(module)
    with rushlight.no_grad():
        flat = pytree.tree_leaves((args, kwargs))
        result = recorded.run(*flat, enable_io_processing=False)
    wanted = [rushlight.as_tensor(x) for x in pytree.tree_leaves(result) if x is not None]
    expected = dict(zip(onnx_program.model.outputs, wanted, strict=True))
    if compare_intermediates:
        produced = {name for node in onnx_program.model.nodes for name in node.output}
        inside = {n: v for n, v in recorded.values.items() if n in produced}
        expected = {**{n: v for n, v in inside.items() if isinstance(v, Tensor)}, **expected}
    found = onnx_program.compute_values(list(expected), args, kwargs)
    return [
        VerificationInfo.from_tensors(name, value, actual)
        for (name, value), actual in zip(expected.items(), found, strict=True)
    ]
