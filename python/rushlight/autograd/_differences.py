"""Central differences of functions of tensors, as `gradcheck` takes them.

A complex number is taken as two real ones, its parts.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import rushlight
from rushlight import _C
from rushlight.autograd.grad_mode import no_grad


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck` where a gradient is wrong.

    For an example see `autograd.gradcheck`.
    """


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, _C.TensorBase) else tuple(value)


def _differentiable(value):
    return isinstance(value, _C.TensorBase) and (value.is_floating_point() or value.is_complex())


def _outputs(func: Any, inputs: Any) -> tuple[Any, ...]:
    """The outputs that may have gradients."""
    return tuple(o for o in _as_tuple(func(*inputs)) if _differentiable(o) and o.requires_grad)


def _values(
    func: Callable[..., Any],
    inputs: tuple[rushlight.Tensor, ...],
    number: int,
    like: rushlight.Tensor,
) -> rushlight.Tensor:
    """Output `number` as a flat real tensor of its parts, apart from the graph.

    AssertionError if it has not the shape and the dtype of `like`, what it was before.
    """
    with rushlight.enable_grad():
        output = _outputs(func, inputs)[number]
    for what in ("shape", "dtype"):
        now, before = getattr(output, what), getattr(like, what)
        if now != before:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are perturbed "
                f"on index {number} by eps, but got {before} and {now}"
            )
    return _parts(output.detach().clone())


def _parts(tensor: rushlight.Tensor) -> rushlight.Tensor:
    """The real and imaginary parts of all elements, in one row."""
    flat = tensor.reshape(-1)
    return rushlight.cat((flat.real, flat.imag)) if tensor.is_complex() else flat


def _steps(tensor, eps):
    """Moves each part of each element by eps, up and down: calls made between are made there."""
    data = tensor.data
    directions = (eps, eps * 1j) if tensor.is_complex() else (eps,)
    for direction in directions:
        for place in itertools.product(*map(range, tensor.shape)):
            before = data[place].item()
            yield from _two_steps(data, place, before, direction)


def _two_steps(data, place, before, direction):
    try:
        data[place] = before + direction
        yield
        data[place] = before - direction
        yield
    finally:
        data[place] = before


@contextlib.contextmanager
def _perturb(data: rushlight.Tensor, step: rushlight.Tensor) -> Iterator[None]:
    before = data.clone()
    try:
        data.add_(step)
        yield
    finally:
        data.copy_(before)


def _difference(
    func: Callable[..., Any],
    inputs: tuple[rushlight.Tensor, ...],
    i: int,
    number: int,
    like: rushlight.Tensor,
    step: rushlight.Tensor,
) -> rushlight.Tensor:
    """The central difference of output `number` for a step of the whole input i, up and down."""
    data = inputs[i].data
    with no_grad():
        with _perturb(data, step):
            up = _values(func, inputs, number, like)
        with _perturb(data, -step):
            return up - _values(func, inputs, number, like)


def _numerical_jacobian(
    func: Callable[..., Any], inputs: tuple[rushlight.Tensor, ...], i: int, number: int, eps: float
) -> rushlight.Tensor:
    """Rows: parts of the elements of input i. Columns: those of the output."""
    rows = []
    up = None
    like = _outputs(func, inputs)[number].detach()
    with no_grad():
        for _ in _steps(inputs[i], eps):
            value = _values(func, inputs, number, like)
            if up is None:
                up = value
            else:
                rows.append((up - value) / (2 * eps))
                up = None
    if not rows:
        return rushlight.zeros(0, _parts(like).numel())
    return rushlight.stack(rows)


def _random_like(tensor: rushlight.Tensor) -> rushlight.Tensor:
    if not tensor.is_complex():
        return rushlight.randn(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    parts = rushlight.randn(*tensor.shape, 2, dtype=tensor.real.dtype, device=tensor.device)
    return rushlight.view_as_complex(parts)


def _direction_like(tensor: rushlight.Tensor) -> tuple[rushlight.Tensor, float]:
    """A random direction of length one with positive parts, and the sum of its parts.

    A tolerance of single elements, times the sums of the directions on both sides, is that of their
    product with a Jacobian.
    """
    parts = rushlight.rand_like(_parts(tensor.detach()))
    parts /= parts.norm().clamp_min(1e-300 if parts.dtype is rushlight.float64 else 1e-30)
    total = parts.sum().item()
    if tensor.is_complex():
        return rushlight.view_as_complex(parts.view(*tensor.shape, 2)), total
    return parts.view(tensor.shape), total
