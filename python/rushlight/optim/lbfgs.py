"""LBFGS."""

import math
from typing import NamedTuple

import rushlight
from rushlight import Tensor

from .optimizer import Optimizer, _check_settings

__all__ = ["LBFGS"]


class _Point(NamedTuple):
    """A place on a line of search: how far, the loss, its gradient and its slope there."""

    t: float
    loss: float
    grad: Tensor
    slope: float


def _minimum_between(a, b, bounds=None):
    """Where the cubic through two points with their slopes is least, within bounds."""
    low, high = bounds or sorted((a.t, b.t))
    if b.t == a.t:
        return (low + high) / 2.0
    bend = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = bend**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    root = math.sqrt(square)
    if a.t <= b.t:
        at = b.t - (b.t - a.t) * ((b.slope + root - bend) / (b.slope - a.slope + 2 * root))
    else:
        at = a.t - (a.t - b.t) * ((a.slope + root - bend) / (a.slope - b.slope + 2 * root))
    return min(max(at, low), high)


def _strong_wolfe(
    evaluate, start, t, largest, c1=1e-4, c2=0.9, tolerance_change=1e-9, most_steps=25
):
    """A point of the line that meets the strong Wolfe conditions, and the evaluations it took.

    `evaluate(t)` gives a point, `start` is the one at 0, `largest` the direction's largest element.
    """
    now = evaluate(t)
    evaluations = 1
    before = start
    steps = 0
    bracket = []
    done = False

    def too_high(point):
        return point.loss > start.loss + c1 * point.t * start.slope

    def flat(point):
        return abs(point.slope) <= -c2 * start.slope

    while steps < most_steps:
        if too_high(now) or (steps > 1 and now.loss >= before.loss):
            bracket = [before, now]
            break
        if flat(now):
            bracket = [now]
            done = True
            break
        if now.slope >= 0:
            bracket = [before, now]
            break
        bounds = (now.t + 0.01 * (now.t - before.t), now.t * 10)
        t = _minimum_between(before, now, bounds)
        before = now
        now = evaluate(t)
        evaluations += 1
        steps += 1
    else:
        bracket = [start, now]

    stuck = False
    low, high = (0, 1) if bracket[0].loss <= bracket[-1].loss else (1, 0)
    while not done and steps < most_steps:
        ends = (bracket[0].t, bracket[1].t)
        if abs(ends[1] - ends[0]) * largest < tolerance_change:
            break
        t = _minimum_between(bracket[0], bracket[1])
        margin = 0.1 * (max(ends) - min(ends))
        if min(max(ends) - t, t - min(ends)) < margin:
            if stuck or t >= max(ends) or t <= min(ends):
                nearer_high = abs(t - max(ends)) < abs(t - min(ends))
                t = max(ends) - margin if nearer_high else min(ends) + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        now = evaluate(t)
        evaluations += 1
        steps += 1
        if too_high(now) or now.loss >= bracket[low].loss:
            bracket[high] = now
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
        else:
            if flat(now):
                done = True
            elif now.slope * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = now
    return bracket[low if len(bracket) > 1 else 0], evaluations


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last changes of gradient and parameters.

    Args:
        params: real parameters, in one group; see `Optimizer`.
        lr: length of the steps that are not searched for.
        max_iter, max_eval: iterations and evaluations of the closure in a step.
        tolerance_grad, tolerance_change: where a step ends early.
        history_size: how many changes are kept.
        line_search_fn: "strong_wolfe" or None.

    `step` needs a closure that computes the loss and its gradients again.
    """

    def __init__(
        self,
        params,
        lr=1,
        max_iter=20,
        max_eval=None,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        history_size=100,
        line_search_fn=None,
    ):
        _check_settings(lr)
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _gather_grads(self):
        flat = [
            p.new_zeros(p.numel()) if p.grad is None else p.grad.reshape(-1) for p in self._params
        ]
        flat = [rushlight.view_as_real(t).reshape(-1) if t.is_complex() else t for t in flat]
        return rushlight.cat(flat)

    def _move(self, t, direction):
        offset = 0
        for p in self._params:
            own = rushlight.view_as_real(p) if p.is_complex() else p
            own.add_(direction[offset : offset + own.numel()].view_as(own), alpha=t)
            offset += own.numel()

    def _put(self, values):
        for p, value in zip(self._params, values, strict=True):
            p.copy_(value)

    def _direction(self, state, grad, history_size):
        """The next direction, after the history has taken in the last step."""
        if state["n_iter"] == 1:
            state["old_dirs"], state["old_stps"], state["ro"] = [], [], []
            state["H_diag"] = 1
            return grad.neg()
        dirs, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        y = grad.sub(state["prev_flat_grad"])
        s = state["d"].mul(state["t"])
        ys = y.dot(s)
        if ys > 1e-10:
            if len(dirs) == history_size:
                del dirs[0], steps[0], ro[0]
            dirs.append(y)
            steps.append(s)
            ro.append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y)
        al = state.setdefault("al", [None] * history_size)
        q = grad.neg()
        for i in reversed(range(len(dirs))):
            al[i] = steps[i].dot(q) * ro[i]
            q.add_(dirs[i], alpha=-float(al[i]))
        d = q.mul(state["H_diag"])
        for i in range(len(dirs)):
            d.add_(steps[i], alpha=float(al[i] - dirs[i].dot(d) * ro[i]))
        return d

    def step(self, closure):  # type: ignore[override]  # it needs one
        """One step of at most `max_iter` iterations.

        Returns:
            the loss before it.
        """
        with rushlight.no_grad():
            return self._step(closure)

    def _step(self, closure):
        group = self.param_groups[0]
        lr = float(group["lr"])
        search = group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        tolerance_grad, tolerance_change = group["tolerance_grad"], group["tolerance_change"]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def loss_now():
            with rushlight.enable_grad():
                return closure()

        first_loss = loss_now()
        loss = float(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        grad = self._gather_grads()
        solved = grad.abs().max() <= tolerance_grad
        if solved:
            return first_loss
        n_iter = 0
        while n_iter < group["max_iter"]:
            n_iter += 1
            state["n_iter"] += 1
            d = state["d"] = self._direction(state, grad, group["history_size"])
            state["prev_flat_grad"] = grad.clone()
            prev_loss = state["prev_loss"] = loss
            is_first = state["n_iter"] == 1
            t = min(1.0, float(1.0 / grad.abs().sum())) * lr if is_first else lr
            state["t"] = t
            slope = float(grad.dot(d))
            if slope > -tolerance_change:
                break
            calls = 0
            if search is not None:
                before = [p.clone() for p in self._params]

                def at(t, d=d, before=before):
                    self._move(t, d)
                    value = float(loss_now())
                    there = self._gather_grads()
                    self._put(before)
                    return _Point(t, value, there, float(there.dot(d)))

                start = _Point(0.0, loss, grad, slope)
                found, calls = _strong_wolfe(at, start, t, float(d.abs().max()))
                loss, grad, t = found.loss, found.grad, found.t
                state["t"] = t
                self._move(t, d)
                solved = grad.abs().max() <= tolerance_grad
            else:
                self._move(t, d)
                if n_iter != group["max_iter"]:
                    loss = float(loss_now())
                    grad = self._gather_grads()
                    solved = grad.abs().max() <= tolerance_grad
                    calls = 1
            evaluations += calls
            state["func_evals"] += calls
            if (
                evaluations >= group["max_eval"]
                or solved
                or d.mul(t).abs().max() <= tolerance_change
                or abs(loss - prev_loss) < tolerance_change
            ):
                break
        return first_loss
