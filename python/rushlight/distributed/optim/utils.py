"""Optimisers that take gradients as arguments, for communication hooks."""

from __future__ import annotations

from typing import Any

from rushlight import optim

__all__ = ["as_functional_optim", "functional_optim_map", "register_functional_optim"]


def step_with(optimizer, parameters, gradients) -> None:
    """Step an optimiser of one group for these parameters only, with these gradients."""
    (group,) = optimizer.param_groups
    managed, kept = group["params"], [p.grad for p in parameters]
    group["params"] = list(parameters)
    try:
        for p, gradient in zip(parameters, gradients, strict=True):
            p.grad = gradient
        optimizer.step()
    finally:
        group["params"] = managed
        for p, gradient in zip(parameters, kept, strict=True):
            p.grad = gradient


class _Functional:
    """An optimiser that is given the gradients, of all its parameters or of any one."""

    kind: Any = None

    def __init__(self, params: Any, *args, _allow_empty_param_list: bool = False, **kwargs: Any):
        if not params and not _allow_empty_param_list:
            raise ValueError("optimizer got an empty parameter list")
        self._optimizer = self.kind([{"params": list(params)}], *args, **kwargs)
        (self.param_group,) = self._optimizer.param_groups
        self.defaults = self._optimizer.defaults
        self.state = self._optimizer.state

    def step(self, gradients) -> None:
        """A step; a parameter whose gradient is None stays as it is."""
        params = self.param_group["params"]
        if len(params) != len(gradients):
            raise ValueError(
                "the number of gradients is not equal to the size of the parameters' list: "
                f"{len(gradients)} for {len(params)}"
            )
        step_with(self._optimizer, params, gradients)

    def step_param(self, param, grad) -> None:
        """A step of one parameter, which may be new to the optimiser."""
        step_with(self._optimizer, [param], [grad])


def _functional(kind):
    return type(f"_Functional{kind.__name__}", (_Functional,), {"kind": kind})


functional_optim_map: dict[Any, Any] = {
    kind: _functional(kind)
    for kind in (
        optim.Adagrad,
        optim.Adam,
        optim.AdamW,
        optim.SGD,
        optim.Adadelta,
        optim.RMSprop,
        optim.Rprop,
        optim.Adamax,
    )
}


def register_functional_optim(key: str, optim: type) -> None:
    """Register the class that steps as `key` does, with given gradients.

    Args:
        key: a class of optimisers.
        optim: the class that steps as it does.

    Example:
        >>> from rushlight.distributed.optim import utils
        >>> utils.register_functional_optim("mine", dict)
        >>> utils.functional_optim_map.pop("mine")
        <class 'dict'>
    """
    functional_optim_map.setdefault(key, optim)


def as_functional_optim(optim_cls: type, *args: Any, **kwargs: Any) -> Any:
    """An optimiser with a class's settings and without parameters, which `step_param` gets.

    Args:
        optim_cls: a class of optimisers.
        args, kwargs: its settings.

    For an example see `distributed.optim.utils.register_functional_optim`.
    """
    if optim_cls not in functional_optim_map:
        raise ValueError(f"Optimizer {optim_cls} does not have a functional counterpart!")
    return functional_optim_map[optim_cls]([], *args, **kwargs, _allow_empty_param_list=True)
