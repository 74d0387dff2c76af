"""Steps that are recorded once and replayed without Python.

A step is a function that does the same ops each time: forward, backward, an optimiser's step. Two
calls of it are recorded, op by op below autograd (rushlight/capture.h); where both do the same, all
later calls replay the ops. What the step depends on beside its arguments is looked at before: what
its program can reach (_surroundings.py), and the gradients that it begins with.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C, Tensor, nn
from rushlight.utils import _pytree as pytree

from ._graphs import described_leaves, tensors_of, with_tensors, without_tensors
from ._surroundings import Place, Surroundings, value_at

_MORE_TRIES = 3  # recordings beyond those that have to be alike
_PACKAGE = rushlight.__path__[0]


def _place() -> str:
    """Where the program is, outside of this package: "file:line"."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


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


def _is_plain(t: Tensor) -> bool:
    return (
        type(t) in (Tensor, nn.Parameter) and t.layout is rushlight.strided and not t.is_quantized
    )


def _is_one_of(t: Tensor, others: list[Tensor]) -> bool:
    """Whether a tensor shows the same memory as another; no address gets known by asking."""
    return _is_plain(t) and any(t.is_set_to(other) for other in others)


def _is_among(place: Place, places: list[Place]) -> bool:
    return any(place[0] is owner and place[1:] == (name, index) for owner, name, index in places)


class Recorded:
    """A step for one kind of arguments, which can be replayed."""

    def __init__(self, step: Callable[..., Any], args: Any, kwargs: Any, strict: bool) -> None:
        self.surroundings = Surroundings()
        self.flat: list[Any] = []  # what it returned, until it is finished
        self.results: list[Any] = []
        self.out_spec: Any = None
        self.gradients: list[_Gradient] = []
        self.refusal = ""  # why a replay could not do what it does, in words
        self.sources: dict[int, list[Place]] = {}  # of numbers that change from step to step
        leaves = pytree.tree_leaves((args, kwargs))
        self.given = tensors_of(leaves)
        self.named = [step, *(leaf for leaf in leaves if not isinstance(leaf, Tensor))]

        def run() -> None:
            self.flat, self.out_spec = pytree.tree_flatten(step(*args, **kwargs))

        self.begin = Surroundings().keep([*self.named, *self.given])
        watched = functools.partial(self.surroundings.watch, run)
        self.recording = _C._record(self.given, watched, strict, _place)
        # Only who insists on replays gives up what a step leaves behind in Python.
        self.leaves_behind = "" if strict else self.begin.change()

    def finish(self, before: dict[int, Tensor | None]) -> Any:
        """What the step returned; from now on the recording can be compared and replayed.

        Args:
            before: gradients before the step, by the `id` of the leaf, as far as they are known.
        """
        self.surroundings.keep(self.named)
        leaves = _C._recorded_leaves(self.recording)
        self.gradients = [_Gradient(self.recording, x, before.get(id(x), x.grad)) for x in leaves]
        result = pytree.tree_unflatten(self.flat, self.out_spec)
        returned = tensors_of(self.flat)
        made = [g.after for g in self.gradients if g.is_new]
        self.refusal = _C._recorded_refusal(self.recording)
        differentiates = any(g.is_new or g.is_read for g in self.gradients)
        if before and not differentiates and any(t.grad_fn is not None for t in returned):
            self.refusal = "what it returns is to be differentiated, which is no part of it"
        if self.leaves_behind:
            self.refusal = f"it leaves more behind than tensors: {self.leaves_behind}"
        if not self.refusal:
            _C._set_recorded_outputs(self.recording, [*returned, *made])
        self.results, self.returned = without_tensors(self.flat), len(returned)
        self.gives_tensor = isinstance(result, Tensor)
        self.flat = []
        return result

    def difference(self, other: Recorded) -> str:
        """Where it does not do what the recording before did, in words; empty where it does.

        A number that an op is given may be another one, as a learning rate that follows a schedule,
        where the program has it: replays look there.
        """
        if any(g.is_read and g.is_new for g in self.gradients):
            return "it adds gradients to those of the step before, into new tensors"
        if (self.out_spec, self.results) != (other.out_spec, other.results):
            return f"it returned {other.results} and then {self.results}"
        found = _C._recorded_difference(self.recording, other.recording, True)
        if found:
            return found
        known = self._known(other)
        if any(_is_one_of(t, self.given) and _is_one_of(t, other.given) for t in known):
            return "one of its arguments is a tensor that it also finds by itself"
        now, then = (_C._recorded_numbers(r.recording) for r in (self, other))
        for node, number in now.items():
            if number != then[node]:
                places = self.surroundings.places_of(then[node], number, other.surroundings)
                # There when the step began, too: it has not put it there itself.
                found_first = self.begin.places_of(then[node], number, other.begin)
                known = other.sources.get(node, places)
                self.sources[node] = [
                    p for p in places if _is_among(p, known) and _is_among(p, found_first)
                ]
            elif node in other.sources:
                self.sources[node] = [p for p in other.sources[node] if value_at(p) == number]
        if all(self.sources.values()):
            return ""
        self.sources = {}
        return _C._recorded_difference(self.recording, other.recording, False)

    def _known(self, other: Recorded) -> list[Tensor]:
        """Tensors that this and another recording could reach."""
        before = {id(t) for t in other.surroundings.tensors}
        return [t for t in self.surroundings.tensors if id(t) in before]

    def gradients_now(self) -> dict[int, Tensor | None]:
        """Those of its leaves, by their `id`."""
        return {id(g.leaf): g.leaf.grad for g in self.gradients}

    @property
    def graph(self) -> Any:
        return _C._recorded_graph(self.recording)

    def prepare(self) -> None:
        """Behind the last comparison, before the first replay: what that needed is let go."""
        self.begin, self.surroundings.tensors, self.given = Surroundings(), [], []
        if self.sources:
            _C._take_numbers(self.recording, list(self.sources))

    def fits(self) -> bool:
        """Whether all that it depends on is as it was."""
        return self.surroundings.is_as_kept() and all(g.fits() for g in self.gradients)

    def numbers(self) -> list[float] | None:
        """Those that change from step to step; None where their places no longer agree."""
        out = []
        for places in self.sources.values():
            try:
                first, *others = [value_at(place) for place in places]
            except (LookupError, TypeError, ValueError):  # nothing is there any more
                return None
            if type(first) not in (int, float) or any(other != first for other in others):
                return None
            out.append(first)
        return out

    def replay(self, tensors: list[Tensor], numbers: list[float]) -> Any:
        """What the step returns, and what it does to tensors."""
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
        self.change = ""  # what ended the replays, in words

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
            found = self._kind_of_leaves(*pytree.tree_flatten((args, kwargs)))
        if found is False:
            return self._as_written(args, kwargs)
        key, tensors = found
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _Kind()
            if rushlight.is_grad_enabled() and any(t.requires_grad for t in tensors):
                self._give_up(kind, "its arguments want gradients")
        if kind.as_written:
            return self._as_written(args, kwargs)
        if kind.replayed is not None:
            numbers = kind.replayed.numbers() if kind.replayed.fits() else None
            if numbers is not None:
                self.replays += 1
                kind.recordings = 0
                return kind.replayed.replay(tensors, numbers)
            kind.change = kind.replayed.surroundings.change()
            kind.forget()
        if kind.recordings == 0 and self.replays == 0:  # optimisers make their state in it
            kind.recordings = 1
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

    def _kind_of_leaves(self, leaves: list[Any], spec: Any) -> Any:
        """The kind of a call and its tensors; False where it runs as it is written."""
        described = described_leaves(leaves)
        tensors = tensors_of(leaves)
        if described is not None and all(map(_is_plain, tensors)):
            return (str(spec), described, _C._kind_of_call((), {})[0]), tensors
        if self.otherwise is not None:
            return False
        raise TypeError(
            "capture: expected dense tensors and hashable values as arguments of the step, but got "
            f"{', '.join(type(leaf).__name__ for leaf in leaves)}"
        )

    def _as_written(self, args: Any, kwargs: Any) -> Any:
        call = self.otherwise
        return self.step(*args, **kwargs) if call is None else call(self.step, *args, **kwargs)

    def _record(self, kind: _Kind, args: Any, kwargs: Any) -> Any:
        before = kind.latest.gradients_now() if kind.latest is not None else {}
        recorded = Recorded(self.step, args, kwargs, strict=self.otherwise is None)
        result = recorded.finish(before)
        kind.recordings += 1
        if recorded.refusal:
            self._give_up(kind, recorded.refusal)
            return result
        found = "" if kind.latest is None else recorded.difference(kind.latest)
        if found or kind.latest is None:
            kind.alike = 1
        else:
            kind.alike += 1
            recorded.surroundings.free_what_differs(kind.latest.surroundings)
        kind.latest = recorded
        # Where numbers change, one more tells that their places were guessed right.
        if kind.alike >= self.check + bool(recorded.sources):
            recorded.prepare()
            kind.replayed, kind.latest = recorded, None
        elif kind.recordings > self.check + _MORE_TRIES:
            self._give_up(kind, found)
        return result

    def _give_up(self, kind: _Kind, found: str) -> None:
        if not found:
            found = f"what it finds changes each time: {kind.change or 'a gradient'}"
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


class CapturedCall:
    """A call of a function that is replayed where it can be, else made by `otherwise`."""

    def __init__(self, otherwise: Callable[..., Any]) -> None:
        self.otherwise = otherwise
        self.captured: Captured | None = None

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.captured is None or self.captured.step is not function:
            self.captured = Captured(function, 2, self.otherwise)
        return self.captured(*args, **kwargs)

    def __reduce__(self) -> Any:  # a copy records for itself
        return CapturedCall, (self.otherwise,)
