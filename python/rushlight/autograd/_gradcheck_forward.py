"""What `gradcheck` does beyond backward: forward mode, and several vectors at once by `vmap`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight.autograd import forward_ad
from rushlight.autograd._differences import (
    GradcheckError,
    _as_tuple,
    _difference,
    _differentiable,
    _direction_like,
    _numerical_jacobian,
    _outputs,
    _parts,
    _random_like,
)

_BATCH = 2


class Forward:
    """Tangents of a function's outputs, for directions of its inputs."""

    def __init__(
        self, func: Callable[..., Any], inputs: tuple[rushlight.Tensor, ...], wanted: list[int]
    ) -> None:
        self.func = func
        self.inputs = inputs
        self.wanted = wanted
        # Inputs of forward mode have no graph, so which outputs count is found out here.
        outputs = _as_tuple(func(*inputs))
        self.places = [n for n, o in enumerate(outputs) if _differentiable(o) and o.requires_grad]

    def tangents(self, directions: dict[int, rushlight.Tensor]) -> list[rushlight.Tensor]:
        """Of the outputs; `directions` maps places of inputs to tangents, others have none."""
        given = list(self.inputs)
        for i in self.wanted:
            given[i] = given[i].detach()
            if i in directions:
                given[i] = forward_ad.make_dual(given[i], directions[i])
        outputs = _as_tuple(self.func(*given))
        found = []
        for n in self.places:
            tangent = forward_ad.unpack_dual(outputs[n]).tangent
            found.append(rushlight.zeros_like(outputs[n]) if tangent is None else tangent)
        return found

    def columns(self, i):
        """Parts of the outputs' tangents, by output, for each part of each element of input i."""
        value = self.inputs[i].detach()
        columns = [[] for _ in self.places]
        for step in (1, 1j) if value.is_complex() else (1,):
            for j in range(value.numel()):
                direction = rushlight.zeros_like(value, memory_format=rushlight.contiguous_format)
                direction.view(-1)[j] = step
                with forward_ad.dual_level():
                    for column, t in zip(columns, self.tangents({i: direction}), strict=True):
                        column.append(_parts(t).detach().clone())
        return columns

    def compare(self, eps: float, atol: float, rtol: float, fast_mode: bool) -> None:
        for i in self.wanted:
            if fast_mode:
                self._compare_direction(i, eps, atol, rtol)
                continue
            for number, column in enumerate(self.columns(i)):
                numerical = _numerical_jacobian(self.func, self.inputs, i, number, eps)
                if not column:
                    continue
                analytical = rushlight.stack(column)
                self._require(analytical, numerical, atol, rtol, number, i)

    def _compare_direction(self, i: int, eps: float, atol: float, rtol: float) -> None:
        value = self.inputs[i].detach()
        direction, total = _direction_like(value)
        with forward_ad.dual_level():
            found = [_parts(t).detach().clone() for t in self.tangents({i: direction})]
        likes = _outputs(self.func, self.inputs)
        for number, tangent in enumerate(found):
            difference = _difference(
                self.func, self.inputs, i, number, likes[number], direction * eps
            )
            self._require(tangent, difference / (2 * eps), atol * total, rtol, number, i)

    def _require(
        self,
        analytical: rushlight.Tensor,
        numerical: rushlight.Tensor,
        atol: float,
        rtol: float,
        number: int,
        i: int,
    ) -> None:
        fits = analytical.shape == numerical.shape
        if fits and analytical.numel() == 0:
            return
        if not fits or not rushlight.allclose(
            analytical.to(numerical.dtype), numerical, rtol=rtol, atol=atol
        ):
            raise GradcheckError(
                f"Jacobian computed with forward mode mismatch for output {number} with respect to "
                f"input {i},\nnumerical:{numerical}\nanalytical:{analytical}\n"
            )

    def check_undefined(self) -> None:
        """An input without a tangent counts as one whose tangent is zero."""
        directions = {i: _random_like(self.inputs[i].detach()) for i in self.wanted}
        for i in self.wanted:
            others = {k: t for k, t in directions.items() if k != i}
            zeros = {i: rushlight.zeros_like(directions[i])}
            with forward_ad.dual_level():
                pairs = zip(self.tangents(others | zeros), self.tangents(others), strict=True)
                for number, (expected, found) in enumerate(pairs):
                    if not rushlight.allclose(expected, found, equal_nan=True):
                        raise GradcheckError(
                            f"Mismatch in tangent values for output with index: {number} when "
                            f"input: {i} has an undefined tangent value. Got: {found} but "
                            f"expected: {expected}"
                        )

    def check_batched(self):
        for i in self.wanted:
            value = self.inputs[i].detach()

            def product(direction, i=i):
                with forward_ad.dual_level():
                    return tuple(self.tangents({i: direction}))

            _compare_batched(product, [_random_like(value) for _ in range(_BATCH)], "tangents")


def check_batched_gradients(
    func: Callable[..., Any], inputs: tuple[rushlight.Tensor, ...], wanted: list[int]
) -> None:
    """Gradients for several vectors at once are those for each."""
    for number, output in enumerate(_outputs(func, inputs)):
        values = [inputs[i] for i in wanted]

        def product(
            vector: rushlight.Tensor,
            output: rushlight.Tensor = output,
            values: list[rushlight.Tensor] = values,
        ) -> tuple[rushlight.Tensor, ...]:
            found = rushlight.autograd.grad(
                output, values, vector, retain_graph=True, allow_unused=True
            )
            return tuple(
                rushlight.zeros_like(v) if g is None else g
                for g, v in zip(found, values, strict=True)
            )

        vectors = [_random_like(output.detach()) for _ in range(_BATCH)]
        _compare_batched(product, vectors, f"gradients of output {number}")


def _compare_batched(
    product: Callable[..., Any], vectors: list[rushlight.Tensor], what: str
) -> None:
    expected = [rushlight.stack(column) for column in zip(*map(product, vectors), strict=True)]
    try:
        found = rushlight.vmap(product)(rushlight.stack(vectors))
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched {what}, got: {error}") from error
    for e, f in zip(expected, found, strict=True):
        if not rushlight.allclose(e, f, equal_nan=True):
            raise GradcheckError(
                f"For batched {what}, the results of vmap and of a loop differ:\nvmap:{f}\n"
                f"loop:{e}\n"
            )
