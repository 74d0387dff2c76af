"""`assert_onnx_program`: a model computes what the program computes."""

from __future__ import annotations

from typing import Any, Literal

import rushlight
from rushlight.onnx._program import ONNXProgram
from rushlight.testing import assert_close
from rushlight.utils import _pytree as pytree

__all__ = ["assert_onnx_program"]


def assert_onnx_program(
    program: ONNXProgram,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    strategy: str | None = "TorchExportNonStrictStrategy",
    backend: Literal["onnxruntime", "reference"] = "onnxruntime",
) -> None:
    """Raises where a model differs from the program that it was exported from.

    Args:
        rtol, atol: as of `torch.testing.assert_close`.
        args, kwargs: arguments; by default those of the export.
        strategy: one of the names that PyTorch has for ways to export; here there is one way.
        backend: what runs the model: onnxruntime, or the evaluator of the `onnx` package.
        program: what `onnx.export` gave.

    Raises:
        AssertionError: results differ.
        ValueError: the model does not know its program, or `backend` is another.

    Example:
        >>> program = torch.onnx.export(torch.nn.Linear(2, 1), (torch.ones(1, 2),), dynamo=True)
        >>> torch.onnx.testing.assert_onnx_program(program, backend="reference")
    """
    if backend not in ("onnxruntime", "reference"):
        raise ValueError(f"backend must be 'onnxruntime' or 'reference', got {backend!r}")
    if strategy not in (None, "TorchExportNonStrictStrategy", "TorchExportStrictStrategy"):
        raise ValueError(f"strategy: there is no {strategy!r}")
    exported = program.exported_program
    if exported is None:
        raise ValueError("the ONNXProgram has no exported_program to compare it with")
    if args is None and kwargs is None and exported.example_inputs is not None:
        args, kwargs = exported.example_inputs
    args, kwargs = args or (), kwargs or {}
    run = program if backend == "onnxruntime" else program.call_reference
    with rushlight.no_grad():
        leaves = pytree.tree_leaves(exported.module()(*args, **kwargs))
    expected = [rushlight.as_tensor(x) for x in leaves if x is not None]
    for ours, wanted in zip(run(*args, **kwargs), expected, strict=True):
        assert_close(ours, wanted, rtol=rtol, atol=atol, equal_nan=True, check_device=False)
