"""Loss scaling, so that 16-bit gradients neither underflow nor overflow."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import rushlight
from rushlight import _C
from rushlight._warnings import warn

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """The state of an optimiser in an iteration: ready, unscaled or stepped.

    Example:
        >>> torch.amp.grad_scaler.OptState.READY.name
        'READY'
    """

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class _PerDevice:
    """A number on the device of whatever it is multiplied with, copied there once."""

    def __init__(self, number: _C.TensorBase) -> None:
        self._master = number
        self._copies: dict[_C.device, _C.TensorBase] = {}

    def on(self, device: _C.device) -> Any:
        if device not in self._copies:
            self._copies[device] = self._master.to(device=device, non_blocking=True)
        return self._copies[device]


class GradScaler:
    """Multiplies losses by a scale, and divides gradients by it before the optimiser's step.

    A step whose gradients hold an infinite number or NaN is left out, and the scale shrinks; after
    `growth_interval` steps without one it grows. An iteration is

        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)  # only where gradients are looked at or clipped
        scaler.step(optimizer)
        scaler.update()

    Args:
        device: the kind of device where the scale is kept, "cuda" or "cpu".
        init_scale: the first scale.
        growth_factor: what the scale is multiplied by when it grows, above 1.
        backoff_factor: the factor of the scale after infinite gradients, below 1.
        growth_interval: how many steps in a row without infinite gradients it takes to grow.
        enabled: False makes `scale` and `unscale_` do nothing and `step` a plain step.

    Raises:
        AssertionError: for factors on the wrong side of 1.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0]))
        >>> optimizer = torch.optim.SGD([w], lr=0.5)
        >>> scaler = torch.amp.GradScaler("cpu")
        >>> scaler.scale(w.sum()).backward()
        >>> scaler.step(optimizer)
        >>> scaler.update()
        >>> w.detach()
        tensor([0.5000])
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not rushlight.cuda.is_available():
            warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available: it leaves losses "
                "and gradients as they are"
            )
            self._enabled = False
        if self._enabled:
            assert growth_factor > 1.0, "The growth factor must be > 1.0."
            assert backoff_factor < 1.0, "The backoff factor must be < 1.0."
            self._init_scale = init_scale
            self._scale: Any = None  # a tensor once something was scaled
            self._growth_factor = growth_factor
            self._backoff_factor = backoff_factor
            self._growth_interval = growth_interval
            self._init_growth_tracker = 0
            self._growth_tracker: Any = None
            self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_fresh_state)

    # ---- scaling ----

    def _lazy_init_scale_growth_tracker(self, device: Any) -> None:
        assert self._growth_tracker is None, "_growth_tracker initialized before _scale"
        self._scale = rushlight.full((), self._init_scale, dtype=_C.float32, device=device)
        self._growth_tracker = rushlight.full(
            (), self._init_growth_tracker, dtype=_C.int32, device=device
        )

    def _check_scale_growth_tracker(self, what: str) -> tuple[Any, Any]:
        both = self._scale, self._growth_tracker
        for name, value in zip(("_scale", "_growth_tracker"), both, strict=True):
            assert value is not None, (
                f"Attempted {what} but {name} is None: nothing was scaled yet, call scale() on the "
                "loss first"
            )
        return both

    def scale(self, outputs: Any) -> Any:
        """A tensor, or all tensors of nested lists, tuples and iterators, times the scale."""
        if not self._enabled:
            return outputs
        copies: _PerDevice | None = None

        def scale_value(value: Any) -> Any:
            nonlocal copies
            if isinstance(value, _C.TensorBase):
                if self._scale is None:
                    self._lazy_init_scale_growth_tracker(value.device)
                scale: Any = self._scale
                copies = copies or _PerDevice(scale)
                return value * copies.on(value.device)
            if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
                raise ValueError("outputs must be a Tensor or several in an iterable")
            items = map(scale_value, value)
            return type(value)(items) if isinstance(value, (list, tuple)) else items

        return scale_value(outputs)

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Any, found_inf: Any, allow_fp16: bool
    ) -> dict[Any, Any]:
        """Divides gradients; a number for each device, 1 where one of them is not finite."""
        factors, founds = _PerDevice(inv_scale), _PerDevice(found_inf)
        grads: dict[Any, list[Any]] = defaultdict(list)
        with rushlight.no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    grad = param.grad
                    if grad is None:
                        continue
                    if grad.dtype is _C.float16 and not allow_fp16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    if grad.is_sparse:
                        if grad.dtype is _C.float16:  # whose sums may be infinite
                            grad = param.grad = grad.coalesce()
                        grad = grad._values()
                    grads[grad.device, grad.dtype].append(grad)
            for (device, _), list_ in grads.items():
                _C.ops._amp_foreach_non_finite_check_and_unscale_(
                    list_, founds.on(device), factors.on(device)
                )
        return founds._copies

    def unscale_(self, optimizer: Any) -> None:
        """Divides an optimiser's gradients by the scale in place, at most once between updates.

        Raises:
            RuntimeError: if that was done since the last `update()`, or after `step()`.
            ValueError: for gradients of dtype float16.
        """
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        refused = {
            OptState.UNSCALED: "has already been called on this optimizer; call update() first",
            OptState.STEPPED: "is being called after step(); call it before, or not at all",
        }.get(state["stage"])
        if refused:
            raise RuntimeError(f"unscale_() {refused}")
        # In double precision, for the reciprocal of a small scale may overflow.
        self._multiply_grads(optimizer, scale.double().reciprocal().float(), allow_fp16=False)
        state["stage"] = OptState.UNSCALED

    def _multiply_grads(self, optimizer: Any, factor: Any, allow_fp16: bool) -> dict[Any, Any]:
        """Multiplies an optimiser's gradients; keeps and returns whether some are not finite."""
        none_found = rushlight.zeros((), dtype=_C.float32, device=factor.device)
        found = self._unscale_grads_(optimizer, factor, none_found, allow_fp16)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    # ---- steps ----

    def _maybe_opt_step(
        self, optimizer: Any, state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        if sum(found.item() for found in state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Call `optimizer.step(*args, **kwargs)`, unless a gradient is not finite, and return its
        result.

        Gradients are divided by the scale first unless `unscale_` has done so.

        Raises:
            RuntimeError: for a second call since the last `update()`, and for a closure.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError(
                "step() has already been called since the last update(): call GradScaler.update() "
                f"after the step of {type(optimizer).__name__}, once an iteration"
            )
        divides_itself = getattr(optimizer, "_step_supports_amp_scaling", False)
        scale = self._scale if state["stage"] is OptState.READY else None
        if scale is not None:
            look = self._check_inf_per_device if divides_itself else self.unscale_
            look(optimizer)
        assert state["found_inf_per_device"], "No inf checks were recorded for this optimizer."
        if divides_itself:
            result = self._step_of_scaling(optimizer, scale, state, *args, **kwargs)
        else:
            result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_of_scaling(
        self, optimizer: Any, scale: Any, state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """The step of an optimiser that divides gradients itself, as two attributes say."""
        founds = state["found_inf_per_device"].values()
        optimizer.grad_scale = scale
        optimizer.found_inf = sum(found.to(self._scale.device) for found in founds)
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def update(self, new_scale: Any = None) -> None:
        """Set the scale of the next iteration: `new_scale`, or a value that depends on the
        gradients.

        Raises:
            AssertionError: if nothing was scaled and no gradient looked at since the last update.
        """
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if new_scale is not None:
            if isinstance(new_scale, _C.TensorBase):
                assert (
                    new_scale.dtype is _C.float32
                    and new_scale.numel() == 1
                    and not new_scale.requires_grad
                ), (
                    "update(): new_scale should be a float or a tensor of one float32 that does "
                    f"not require grad, not {new_scale}"
                )
                scale.copy_(new_scale.reshape(()))
            else:
                scale.fill_(new_scale)
        else:
            founds = [
                found.to(device=scale.device, non_blocking=True)
                for state in self._per_optimizer_states.values()
                for found in state["found_inf_per_device"].values()
            ]
            assert founds, "No inf checks were recorded prior to update."
            _C.ops._amp_update_scale_(
                scale,
                tracker,
                sum(founds[1:], founds[0]),
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._per_optimizer_states = defaultdict(_fresh_state)

    # ---- settings ----

    def _get_scale_async(self) -> Any:
        return self._scale

    def get_scale(self) -> float:
        """The scale; 1 if scaling is disabled. This waits for the device."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """The factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The factor for the scale after gradients that are not finite."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor for the scale after gradients that are not finite."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The number of steps after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of steps after which the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else tracker.item()

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    # ---- state ----

    def state_dict(self) -> dict[str, Any]:
        """The scale, its factors and the steps since it changed; {} if scaling is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state from `state_dict`.

        Raises:
            RuntimeError: if it is empty, as that of a disabled one is.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, as that of a GradScaler with enabled=False is: "
                "load that of an enabled one"
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        state = vars(self).copy()
        if self._enabled:
            assert not self._per_optimizer_states, (
                "A GradScaler instance may only be pickled between iterations: call update() first"
            )
            # Numbers instead of tensors, which may lie on a device that is absent later.
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        return self._multiply_grads(optimizer, rushlight.ones_like(scale), allow_fp16=True)

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
