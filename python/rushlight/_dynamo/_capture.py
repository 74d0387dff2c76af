"""Steps that are recorded once and replayed without Python.

A step is a function that does the same ops each time: forward, backward, an optimiser's step. Two
calls of it are recorded, op by op below autograd (rushlight/capture.h); where both do the same, all
later calls replay the ops. What the step depends on beside its arguments is looked at before: the
parameters, buffers, modes and settings of the modules that it calls, settings and states of its
optimisers, and the gradients that it begins with.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C, Tensor, nn
from rushlight.optim.optimizer import register_optimizer_step_pre_hook
from rushlight.utils import _pytree as pytree

from ._graphs import described_leaves, tensors_of, with_tensors, without_tensors

_MISSING = object()
_MORE_TRIES = 3  # recordings beyond those that have to be alike
_PACKAGE = rushlight.__path__[0]


def _place() -> str:
    """Where the program is, outside of this package: "file:line"."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _numbers_of(optimizers: list[Any]) -> list[float]:
    """Settings of optimisers that are numbers, those in tuples one by one, in a fixed order.

    Only of optimisers of this package, which call ops with their settings as they are.
    """
    found = []
    for optimizer in optimizers:
        if not type(optimizer).__module__.startswith("rushlight.optim"):
            continue
        for group in optimizer.param_groups:
            for name, value in group.items():
                values = value if type(value) is tuple and name != "params" else (value,)
                found.extend(float(v) for v in values if type(v) in (float, int))
    return found


def _without_numbers(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Settings without those that are numbers; a tuple has None in their places."""

    def plain(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(plain(v) for v in value)
        return None if type(value) in (float, int) else value

    return [{name: plain(value) for name, value in group.items()} for group in groups]


def _is_setting(name: str, value: Any) -> bool:
    """Whether an attribute of a module is one that decides what its forward does."""
    return not name.startswith("_") and isinstance(value, (bool, int, float, str, tuple))


class _Surroundings:
    """What a step met beside its arguments, and whether it still is as it was."""

    def __init__(self) -> None:
        self.modules: dict[int, nn.Module] = {}
        self.optimizers: dict[int, Any] = {}
        self.kept: list[tuple[dict[str, Any], str, Any]] = []
        self.settings: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]] = []
        self.numbers: list[float] = []  # among them
        self.varying: list[list[int]] = []  # which of these replays take as they are then
        self.changes_numbers = False  # the step itself does

    def watch(self, step: Callable[[], Any]) -> None:
        """Run the step and note the modules and optimisers that it calls."""

        def on_module(module: nn.Module, args: Any) -> None:
            self.modules[id(module)] = module

        used = {}

        def on_optimizer(optimizer: Any, args: Any, kwargs: Any) -> None:
            self.optimizers[id(optimizer)] = optimizer
            numbers = _numbers_of([optimizer])
            self.changes_numbers |= used.setdefault(id(optimizer), numbers) != numbers

        handles = [
            nn.modules.module.register_module_forward_pre_hook(on_module),
            register_optimizer_step_pre_hook(on_optimizer),
        ]
        try:
            step()
        finally:
            for handle in handles:
                handle.remove()
        for key, optimizer in self.optimizers.items():
            self.changes_numbers |= used[key] != _numbers_of([optimizer])

    def numbers_now(self) -> list[float]:
        """Those that optimisers have among their settings."""
        return _numbers_of(list(self.optimizers.values()))

    def keep(self) -> None:
        """Note how all is now."""
        for module in self.modules.values():
            own = vars(module)
            self._keep(own, *(name for name, value in own.items() if _is_setting(name, value)))
            self._keep(own["_parameters"])
            self._keep(own["_buffers"])
        for optimizer in self.optimizers.values():
            self._keep(vars(optimizer), "state", "param_groups")
            for state in optimizer.state.values():
                self._keep(state)
            groups = optimizer.param_groups
            self.settings.append((groups, [dict(group) for group in groups]))
        self.numbers = self.numbers_now()

    def _keep(self, table: dict[str, Any], *names: str) -> None:
        """Note which objects a dict has under some names, or under all."""
        self.kept.extend((table, name, table[name]) for name in names or table)

    def is_as_kept(self, numbers: list[float] | None) -> bool:
        """Whether all is as it was noted, but for numbers where they are given as they are now."""
        for table, name, value in self.kept:
            if table.get(name, _MISSING) is not value:
                return False
        if numbers is None:
            return all(groups == kept for groups, kept in self.settings)
        return len(numbers) == len(self.numbers) and all(
            _without_numbers(groups) == _without_numbers(kept) for groups, kept in self.settings
        )

    def may_have(self, numbers: list[float]) -> bool:
        """Whether only numbers are others that replays take as they are."""
        free = {i for which in self.varying for i in which}
        changed = (
            i for i, pair in enumerate(zip(numbers, self.numbers, strict=True)) if len({*pair}) > 1
        )
        return all(i in free for i in changed) and all(
            len({numbers[i] for i in which}) == 1 for which in self.varying
        )


class _Gradient:
    """What a step does to the gradient of a leaf."""

    def __init__(self, recording: Any, leaf: Tensor, before: Tensor | None) -> None:
        self.leaf, self.before, self.after = leaf, before, leaf.grad
        self.is_read = before is not None and _C._recorded_finds(recording, before)
        self.is_new = self.after is not None and self.after is not before

    def fits(self) -> bool:
        """Whether the gradient before the step is one that the recording goes on from."""
        if self.is_read:
            return self.leaf.grad is self.before
        return self.before is not None or not self.is_new or self.leaf.grad is None


class Recorded:
    """A step for one kind of arguments, which can be replayed."""

    def __init__(self, step: Callable[..., Any], args: Any, kwargs: Any, strict: bool) -> None:
        self.surroundings = _Surroundings()
        self.flat: list[Any] = []  # what it returned, until it is finished
        self.results: list[Any] = []
        self.out_spec: Any = None
        self.gradients: list[_Gradient] = []
        self.refusal = ""  # why a replay could not do what it does, in words

        def run() -> None:
            self.flat, self.out_spec = pytree.tree_flatten(step(*args, **kwargs))

        tensors = tensors_of(pytree.tree_leaves((args, kwargs)))
        self.recording = _C._record(tensors, lambda: self.surroundings.watch(run), strict, _place)

    def finish(self, before: dict[int, Tensor | None]) -> Any:
        """What the step returned; from now on the recording can be compared and replayed.

        Args:
            before: gradients before the step, by the `id` of the leaf, as far as they are known.
        """
        self.surroundings.keep()
        leaves = _C._recorded_leaves(self.recording)
        self.gradients = [_Gradient(self.recording, x, before.get(id(x), x.grad)) for x in leaves]
        result = pytree.tree_unflatten(self.flat, self.out_spec)
        returned = tensors_of(self.flat)
        made = [g.after for g in self.gradients if g.is_new]
        self.refusal = _C._recorded_refusal(self.recording)
        differentiates = any(g.is_new or g.is_read for g in self.gradients)
        if before and not differentiates and any(t.grad_fn is not None for t in returned):
            self.refusal = "what it returns is to be differentiated, which is no part of it"
        if not self.refusal:
            _C._set_recorded_outputs(self.recording, [*returned, *made])
        self.results, self.returned = without_tensors(self.flat), len(returned)
        self.gives_tensor = isinstance(result, Tensor)
        self.flat = []
        return result

    def difference(self, other: Recorded) -> str:
        """Where it does not do what another recording does, in words; empty where it does."""
        if any(g.is_read and g.is_new for g in self.gradients):
            return "it adds gradients to those of the step before, into new tensors"
        if (self.out_spec, self.results) != (other.out_spec, other.results):
            return f"it returned {other.results} and then {self.results}"
        mine, theirs = self.surroundings, other.surroundings
        if mine.changes_numbers or len(mine.numbers) != len(theirs.numbers):
            return _C._recorded_difference(self.recording, other.recording, [], [])
        found = _C._recorded_difference(
            self.recording, other.recording, mine.numbers, theirs.numbers
        )
        mine.varying = _C._recorded_varying(self.recording)
        return found

    def gradients_now(self) -> dict[int, Tensor | None]:
        """Those of its leaves, by their `id`."""
        return {id(g.leaf): g.leaf.grad for g in self.gradients}

    @property
    def graph(self) -> Any:
        return _C._recorded_graph(self.recording)

    def fits(self) -> bool:
        """Whether all that it depends on is as it was, or a number that replays take as it is."""
        around = self.surroundings
        if around.varying:
            now = around.numbers_now()
            as_kept = around.is_as_kept(now) and around.may_have(now)
        else:
            as_kept = around.is_as_kept(None)
        return as_kept and all(g.fits() for g in self.gradients)

    def fits_but_for_numbers(self) -> bool:
        """Whether another recording may show that replays can take numbers as they are."""
        around = self.surroundings
        return around.is_as_kept(around.numbers_now()) and all(g.fits() for g in self.gradients)

    def replay(self, tensors: list[Tensor]) -> Any:
        """What the step returns, and what it does to tensors."""
        around = self.surroundings
        numbers = around.numbers_now() if around.varying else []
        made = _C._replay(self.recording, tensors, numbers)
        at = self.returned
        for gradient in self.gradients:
            if gradient.is_new:
                gradient.leaf.grad = made[at]
                at += 1
            elif gradient.after is None:
                gradient.leaf.grad = None
        if self.gives_tensor:
            return made[0]
        return pytree.tree_unflatten(with_tensors(self.results, made), self.out_spec)


class _Kind:
    """What is known of one kind of arguments."""

    def __init__(self) -> None:
        self.replayed: Recorded | None = None
        self.latest: Recorded | None = None  # recording, which the next is compared with
        self.alike = 0  # recordings, the latest among them, that do the same
        self.recordings = 0  # since the last replay
        self.as_written = False

    def forget(self) -> None:
        self.replayed = self.latest = None
        self.alike = 0


class Captured:
    """A step whose calls are replays, once it has been recorded; see `compiler.capture`."""

    def __init__(
        self, step: Callable[..., Any], check: int, otherwise: Callable[..., Any] | None = None
    ) -> None:
        """
        Args:
            step: the function.
            check: how many recordings have to be alike.
            otherwise: what calls a step that cannot be replayed; without it, that raises.
        """
        self.step, self.check, self.otherwise = step, check, otherwise
        self.replays = 0
        self._kinds: dict[Any, _Kind] = {}
        functools.update_wrapper(self, step, updated=())
        _all.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = _C._kind_of_call(args, kwargs)
        if found is None:
            leaves, spec = pytree.tree_flatten((args, kwargs))
            key, tensors = self._key_of(leaves, spec), tensors_of(leaves)
        else:
            key, tensors = found
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _Kind()
        if kind.as_written:
            return self._as_written(args, kwargs)
        if kind.replayed is not None:
            if kind.replayed.fits():
                self.replays += 1
                kind.recordings = 0
                return kind.replayed.replay(tensors)
            if kind.replayed.fits_but_for_numbers():
                kind.latest, kind.replayed = kind.replayed, None
            else:
                kind.forget()
        if kind.recordings == 0 and self.replays == 0:  # optimisers make their state in it
            kind.recordings = 1
            if rushlight.is_grad_enabled() and any(t.requires_grad for t in tensors):
                self._give_up(kind, "its arguments want gradients")
            return self._as_written(args, kwargs)
        return self._record(kind, args, kwargs)

    def reset(self) -> None:
        """Forget all recordings."""
        self._kinds.clear()
        self.replays = 0

    @property
    def graphs(self) -> list[Any]:
        """The graphs that are replayed, one for each kind of arguments."""
        return [kind.replayed.graph for kind in self._kinds.values() if kind.replayed is not None]

    def _key_of(self, leaves: list[Any], spec: Any) -> Any:
        described = described_leaves(leaves)
        if described is None:
            raise TypeError(
                "capture: expected tensors and hashable values as arguments of the step, but got "
                f"{', '.join(type(leaf).__name__ for leaf in leaves)}"
            )
        return str(spec), described, _C._kind_of_call((), {})[0]

    def _as_written(self, args: Any, kwargs: Any) -> Any:
        call = self.otherwise
        return self.step(*args, **kwargs) if call is None else call(self.step, *args, **kwargs)

    def _record(self, kind: _Kind, args: Any, kwargs: Any) -> Any:
        before = kind.latest.gradients_now() if kind.latest is not None else {}
        numbers = kind.latest.surroundings.numbers_now() if kind.latest is not None else None
        recorded = Recorded(self.step, args, kwargs, strict=self.otherwise is None)
        result = recorded.finish(before)
        if numbers is not None and numbers != recorded.surroundings.numbers:
            recorded.surroundings.changes_numbers = True
        kind.recordings += 1
        if recorded.refusal:
            self._give_up(kind, recorded.refusal)
            return result
        found = "" if kind.latest is None else recorded.difference(kind.latest)
        kind.alike = 1 if found or kind.latest is None else kind.alike + 1
        kind.latest = recorded
        if kind.alike >= self.check:
            kind.replayed, kind.latest = recorded, None
        elif kind.recordings > self.check + _MORE_TRIES:
            self._give_up(kind, found)
        return result

    def _give_up(self, kind: _Kind, found: str) -> None:
        if not found:
            found = "what it finds (settings of optimisers, parameters, modes) changes each time"
        text = f"capture: the step cannot be replayed: {found}"
        kind.forget()
        kind.as_written = True
        if self.otherwise is None:
            raise RuntimeError(text)


_all: weakref.WeakSet[Captured] = weakref.WeakSet()


def forget_recordings() -> None:
    """Of all steps."""
    for captured in list(_all):
        captured.reset()


def captured_call(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """A call of a function that is replayed where it can be, else made by `otherwise`."""
    captured: Captured | None = None

    def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        nonlocal captured
        if captured is None or captured.step is not function:
            captured = Captured(function, 2, otherwise)
        return captured(*args, **kwargs)

    return call
