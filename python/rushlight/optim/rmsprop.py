"""RMSprop."""

from rushlight._table import ops

from .adam import _counters_to_tensors
from .optimizer import Optimizer, _check_settings, _check_ways, _counter, _zeros_like

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """Divides the gradient by the root of its running mean square.

    Args:
        params: see `Optimizer`.
        lr: learning rate.
        alpha: weight of the old value in the running mean.
        eps: added to the root.
        weight_decay: this times the parameter is added to the gradient.
        momentum: weight of the running step.
        centered: divide by the running deviation instead.
        maximize: climb instead.
    """

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        _check_settings(lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        _check_ways(foreach, None, differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("momentum", 0)
            group.setdefault("centered", False)
            group.setdefault("foreach", None)
            group.setdefault("maximize", False)
            group.setdefault("differentiable", False)
            group.setdefault("capturable", False)
        _counters_to_tensors(self.state)

    def step(self, closure=None):
        loss = self._loss_of(closure)
        for group in self.param_groups:
            self._step_group(group)
        return loss

    def _step_group(self, group):
        params, grads, squares, buffers, means, steps = [], [], [], [], [], []
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            state = self.state[p]
            if not state:
                state["step"] = _counter()
                state["square_avg"] = _zeros_like(p)
                if group["momentum"] > 0:
                    state["momentum_buffer"] = _zeros_like(p)
                if group["centered"]:
                    state["grad_avg"] = _zeros_like(p)
            params.append(p)
            grads.append(grad)
            squares.append(state["square_avg"])
            steps.append(state["step"])
            if group["momentum"] > 0:
                buffers.append(state["momentum_buffer"])
            if group["centered"]:
                means.append(state["grad_avg"])
        if params:
            ops.rmsprop_step_(
                params,
                grads,
                squares,
                buffers,
                means,
                steps,
                lr=float(group["lr"]),
                alpha=group["alpha"],
                eps=group["eps"],
                weight_decay=group["weight_decay"],
                momentum=group["momentum"],
                centered=group["centered"],
                maximize=group["maximize"],
            )
