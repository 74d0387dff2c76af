"""LBFGS."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import rushlight
from rushlight import Tensor

from ._stepping import _check_settings, _settings
from .optimizer import Optimizer

__all__ = ["LBFGS"]


class _Point(NamedTuple):
    """A place on a line of search: how far, the loss, its gradient and its slope there."""

    t: float
    loss: float
    grad: Tensor
    slope: float


def _lowest_between(p: Any, q: Any, bounds: tuple[float, float]) -> float:
    """Where the cubic with the losses and slopes of two points is least, kept within bounds.

    Its slope at p.t + u (q.t - p.t) is a parabola in u. With e = p.slope + q.slope - 3 m, where m
    is the slope of the chord, the root at which it rises is u = p.slope / (p.slope + e - r), where
    r = sqrt(e^2 - p.slope q.slope). Without such a root the middle of the bounds serves.
    """
    p, q = sorted((p, q), key=lambda point: point.t)
    width = q.t - p.t
    if width > 0:
        e = p.slope + q.slope - 3 * (q.loss - p.loss) / width
        square = e * e - p.slope * q.slope
        divisor = p.slope + e - math.sqrt(square) if square >= 0 else 0
        if divisor != 0:
            return min(max(p.t + width * p.slope / divisor, bounds[0]), bounds[1])
    return (bounds[0] + bounds[1]) / 2


class _LineSearch:
    """Finds a point of a line that meets the strong Wolfe conditions.

    These ask that the loss has become lower by a part of what the slope at the start promises, and
    that the slope has become a part of that at the start, up or down.

    Args:
        evaluate: gives the point at a distance.
        start: the point at 0.
        largest: the largest element of the direction.
        most: how many points may be looked at, after the first.
    """

    LOWER, FLATTER = 1e-4, 0.9
    CLOSE = 1e-9  # no element of the parameters differs by more: not worth another point

    def __init__(self, evaluate: Callable[..., Any], start: Any, largest: float, most: int) -> None:
        self._evaluate = evaluate
        self._start = start
        self._largest = largest
        self._left = most

    def _too_high(self, point: Any) -> bool:
        return point.loss > self._start.loss + self.LOWER * point.t * self._start.slope

    def _is_flat(self, point: Any) -> bool:
        return abs(point.slope) <= -self.FLATTER * self._start.slope

    def find(self, t: float) -> Any:
        """The point, from a first guess on; the best one seen where time is up."""
        interval = self._bracket(t)
        return interval[0] if len(interval) == 1 else self._narrow(*interval)

    def _bracket(self, t: float) -> Any:
        """Goes on until a point is found, or two with one that meets the conditions between."""
        before, point = self._start, self._evaluate(t)
        for i in range(self._left):
            if self._too_high(point) or (i > 1 and point.loss >= before.loss):
                return before, point
            if self._is_flat(point):
                return (point,)
            if point.slope >= 0:
                return before, point
            bounds = (point.t + 0.01 * (point.t - before.t), 10 * point.t)
            before, point = point, self._evaluate(_lowest_between(before, point, bounds))
            self._left -= 1
        return self._start, point

    def _narrow(self, low: Any, high: Any) -> Any:
        """Narrows an interval that holds such a point; `low` is the end with the lower loss."""
        if high.loss < low.loss:
            low, high = high, low
        was_near = False
        while self._left > 0 and abs(high.t - low.t) * self._largest >= self.CLOSE:
            left, right = sorted((low.t, high.t))
            t = _lowest_between(low, high, (left, right))
            # The second time in a row that the cubic leads to an end, or at once where it is the
            # end itself: a tenth of the interval away from it.
            margin = (right - left) / 10
            is_near = min(t - left, right - t) < margin
            if is_near and (was_near or not left < t < right):
                t = right - margin if right - t < t - left else left + margin
                is_near = False
            was_near = is_near
            point = self._evaluate(t)
            self._left -= 1
            if self._too_high(point) or point.loss >= low.loss:
                low, high = (point, low) if point.loss < low.loss else (low, point)
            elif self._is_flat(point):
                return point
            else:
                # Downhill from the new lower end lies the other end, or the old lower one.
                low, high = point, low if point.slope * (high.t - low.t) >= 0 else high
        return low


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last changes of gradient and parameters.

    Step (Nocedal, 1980): p ← p - lr * H * g, where H, about the inverse of the second derivatives,
    is made of the last changes of g and p; with a line search its length is the one found in the
    place of lr.

    Args:
        params: real parameters, in one group; see `Optimizer`.
        lr: length of the steps that are not searched for.
        max_iter, max_eval: iterations and evaluations of the closure in a step.
        tolerance_grad, tolerance_change: a step ends early below these values.
        history_size: the number of changes that are kept.
        line_search_fn: "strong_wolfe" or None.

    `step` needs a closure that computes the loss and its gradients again.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.LBFGS([w])
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = w.square().sum()
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure)
        tensor(5., grad_fn=<SumBackward0>)
        >>> bool((w.abs() < 1e-3).all())
        True
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        _check_settings(lr)
        names = "lr max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn"
        settings = _settings(names, locals())
        if max_eval is None:
            settings["max_eval"] = max_iter * 5 // 4
        super().__init__(params, settings)
        group, *others = self.param_groups
        if others:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = group["params"]

    def _gather_grads(self) -> Tensor:
        flat = [
            p.new_zeros(p.numel()) if p.grad is None else p.grad.to_dense().reshape(-1)
            for p in self._params
        ]
        flat = [rushlight.view_as_real(t).reshape(-1) if t.is_complex() else t for t in flat]
        return rushlight.cat(flat)

    def _move(self, t: float, direction: Tensor) -> None:
        offset = 0
        for p in self._params:
            own = rushlight.view_as_real(p) if p.is_complex() else p
            own.add_(direction[offset : offset + own.numel()].view_as(own), alpha=t)
            offset += own.numel()

    def _put(self, values: Any) -> None:
        for p, value in zip(self._params, values, strict=True):
            p.copy_(value)

    def _remember(self, state: dict[str, Any], grad: Tensor, history_size: int) -> None:
        """Takes the last step and the change of the gradient into the history."""
        y = grad - state["prev_flat_grad"]
        s = state["d"] * state["t"]
        curvature = y.dot(s)
        if curvature <= 1e-10:
            return
        for name, value in (("old_dirs", y), ("old_stps", s), ("ro", 1.0 / curvature)):
            state[name].append(value)
            del state[name][: max(len(state[name]) - history_size, 0)]
        state["H_diag"] = curvature / y.dot(y)

    def _direction(self, state: dict[str, Any], grad: Tensor, history_size: int) -> Tensor:
        """-H grad, where H is the inverse Hessian that the history tells of.

        Each step s with its change y of the gradient makes H from the one before it:
        (1 - s y' / y's) H (1 - y s' / y's) + s s' / y's. The first is a multiple of the identity.
        """
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return grad.neg()
        self._remember(state, grad, history_size)
        history = list(zip(state["old_stps"], state["old_dirs"], state["ro"], strict=True))
        d = grad.neg()
        along = []
        for s, y, inverse in reversed(history):
            along.append(s.dot(d) * inverse)
            d.sub_(y * along[-1])
        d.mul_(state["H_diag"])
        for s, y, inverse in history:
            d.add_(s * (along.pop() - y.dot(d) * inverse))
        return d

    def step(self, closure: Callable[[], Any]) -> Any:  # it needs one
        """Run one step of at most `max_iter` iterations.

        Returns:
            the loss before it.
        """
        with rushlight.no_grad():
            return self._step(closure)

    def _step(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        lr, tolerance = float(group["lr"]), group["tolerance_change"]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        limit = state["func_evals"] + group["max_eval"]

        def evaluate() -> Any:
            state["func_evals"] += 1
            with rushlight.enable_grad():
                value = closure()
            return value, self._gather_grads()

        first_loss, grad = evaluate()
        loss = float(first_loss)
        for left in reversed(range(group["max_iter"])):
            if grad.abs().max() <= group["tolerance_grad"]:
                break
            state["n_iter"] += 1
            d = state["d"] = self._direction(state, grad, group["history_size"])
            state["prev_flat_grad"] = grad.clone()
            before = state["prev_loss"] = loss
            # Nothing is known of the curvature at first: a step of length one at most.
            scale = min(1.0, float(1.0 / grad.abs().sum())) if state["n_iter"] == 1 else 1.0
            t = state["t"] = scale * lr
            slope = float(grad.dot(d))
            if slope > -tolerance:
                break
            if group["line_search_fn"] is not None:
                start = _Point(0.0, loss, grad, slope)
                found = self._search(evaluate, start, d, t, limit - state["func_evals"])
                loss, grad, t = found.loss, found.grad, found.t
                state["t"] = t
            self._move(t, d)
            if group["line_search_fn"] is None and left > 0:
                value, grad = evaluate()
                loss = float(value)
            small = d.mul(t).abs().max() <= tolerance or abs(loss - before) < tolerance
            if small or state["func_evals"] >= limit:
                break
        return first_loss

    def _search(self, evaluate: Callable[..., Any], start: Any, d: Any, t: float, most: int) -> Any:
        """The point of the line along d that is stepped to; the parameters stay."""
        here = [p.clone() for p in self._params]

        def look(t: float) -> Any:
            self._move(t, d)
            value, grad = evaluate()
            self._put(here)
            return _Point(t, float(value), grad, float(grad.dot(d)))

        return _LineSearch(look, start, float(d.abs().max()), most).find(t)
