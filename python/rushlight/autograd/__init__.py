"""Gradients: `backward`, `grad`, custom functions, gradient checks, and modes of recording."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

import rushlight
from rushlight import _C
from rushlight._lazy import lazy
from rushlight._warnings import warn
from rushlight.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from rushlight.autograd.function import Function, NestedIOFunction
from rushlight.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from rushlight.autograd.gradcheck import gradcheck, gradgradcheck
from rushlight.autograd.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rushlight import Tensor

__all__ = [
    "Function",
    "NestedIOFunction",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def is_multithreading_enabled():
    """Whether backward may use other threads than the caller's: always False."""
    return False


def _profiler_enabled():
    """Whether this thread's ops are being recorded by a profiler."""
    from rushlight.profiler import profiler

    return bool(profiler._recording())


def _disable_profiler():
    """Ends the recording that began last, and gives its events."""
    from rushlight.profiler import profiler

    running = profiler._recording()
    if not running:
        warn("disableProfiler called but no active profiling session found")
        return profiler.EventList([])
    return running[-1]._end()


def _is_checkpoint_valid():
    """Whether the running backward goes to all leaves, as a reentrant checkpoint needs."""
    return _C._reaches_all_leaves()


def _as_tuple(value: Any) -> tuple[Any, ...]:
    # A GradientEdge is a tuple too, but one thing.
    from rushlight.autograd.graph import GradientEdge

    if isinstance(value, (_C.TensorBase, GradientEdge)) or hasattr(value, "__torch_function__"):
        return (value,)
    return tuple(value)


def _gradients(given, n):
    """One gradient or None for each of n outputs."""
    if given is None:
        return (None,) * n
    gradients = (given,) if isinstance(given, _C.TensorBase) else tuple(given)
    if len(gradients) != n:
        raise RuntimeError(f"got {n} tensors and {len(gradients)} gradients")
    return gradients


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of the leaves, or only to that of `inputs`.

    Args:
        tensors: one or several tensors (or GradientEdges) that were computed from leaves.
        grad_tensors: the gradients of these tensors; None means 1 for a tensor of one element.
        retain_graph: keep what the graph saved for another backward. Defaults to `create_graph`.
        create_graph: record backward itself, for derivatives of derivatives.
        grad_variables: `grad_tensors` under its old name.
        inputs: the only tensors whose gradient is accumulated, also inner ones.

    Raises:
        RuntimeError: for a tensor that needs no gradient, a gradient of another shape, a graph
            whose saved tensors are freed or were written since.

    Example:
        >>> x = torch.tensor([0.5, 2.0], requires_grad=True)
        >>> torch.autograd.backward(x.square().sum())
        >>> x.grad
        tensor([1., 4.])
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError(
                "backward(): `grad_variables` is the old name of `grad_tensors`, and both were "
                "passed: leave it out"
            )
        grad_tensors = grad_variables
    if isinstance(inputs, Mapping):
        inputs = tuple(inputs.values())
    if inputs is not None:
        inputs = _as_tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    tensors = _as_tuple(tensors)
    _C._run_backward(
        tensors,
        _gradients(grad_tensors, len(tensors)),
        create_graph if retain_graph is None else retain_graph,
        create_graph,
        inputs or (),
        True,
        True,
    )


@overload
def grad(
    outputs: Any,
    inputs: Mapping[Any, Any],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> dict[Any, Tensor]: ...
@overload
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]: ...
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """Return the sums of gradients of `outputs` with respect to each of `inputs`.

    Args:
        outputs, inputs: one or several tensors (or GradientEdges); inputs may be a dict, then the
            result is one.
        grad_outputs, retain_graph, create_graph: as in `backward`.
        allow_unused: return None for an input that the outputs do not depend on, else raise.
        is_grads_batched: each gradient has a further first dimension, and so do the results.
        materialize_grads: zeros instead of None for unused inputs.
        only_inputs: must be True.

    Example:
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> (slope,) = torch.autograd.grad(x**2, x, create_graph=True)
        >>> slope.item(), torch.autograd.grad(slope, x)[0].item()
        (6.0, 2.0)
    """
    if not only_inputs:
        warn("only_inputs=False is ignored; use backward to accumulate gradients", FutureWarning)
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True where materialize_grads=True: inputs that are not "
            "used get zeros, but got allow_unused=False"
        )
    names = None
    if isinstance(inputs, Mapping):
        names = tuple(inputs)
        inputs = tuple(inputs.values())
    inputs = _as_tuple(inputs)
    outputs = _as_tuple(outputs)
    if _C._has_torch_function(*outputs, *inputs):
        return _C._offer_torch_function(
            grad,
            (*outputs, *inputs),
            (outputs, inputs),
            {
                "grad_outputs": grad_outputs,
                "retain_graph": retain_graph,
                "create_graph": create_graph,
                "only_inputs": only_inputs,
                "allow_unused": allow_unused,
                "is_grads_batched": is_grads_batched,
                "materialize_grads": materialize_grads,
            },
        )
    gradients = _gradients(grad_outputs, len(outputs))
    retain = create_graph if retain_graph is None else retain_graph
    unused = materialize_grads or bool(allow_unused)

    def run(gradients, retain):
        return _C._run_backward(outputs, gradients, retain, create_graph, inputs, False, unused)

    if is_grads_batched:
        results = _batched_backward(run, gradients, retain)
    else:
        results = run(gradients, retain)
    if materialize_grads:
        if any(
            r is None and not isinstance(i, _C.TensorBase)
            for r, i in zip(results, inputs, strict=True)
        ):
            raise RuntimeError(
                "materialize_grads cannot be used when the given input is a GradientEdge"
            )
        results = tuple(
            rushlight.zeros_like(i, requires_grad=create_graph) if r is None else r
            for r, i in zip(results, inputs, strict=True)
        )
    return results if names is None else dict(zip(names, results, strict=True))


def _batched_backward(run, gradients, retain):
    """Backward of a batch of gradients at once."""
    from rushlight._transforms.vmap import vmap

    defined = []

    def one(*rows: Tensor) -> tuple[Tensor]:
        given = iter(rows)
        results = run(tuple(None if g is None else next(given) for g in gradients), retain)
        defined.extend(r is not None for r in results)
        return tuple(r for r in results if r is not None)

    found = iter(vmap(one, randomness="different")(*(g for g in gradients if g is not None)))
    return tuple(next(found) if d else None for d in defined)


with lazy(__name__):
    from rushlight.autograd import (  # noqa: F401
        forward_ad,
        functional,
        graph,
        profiler,
    )
