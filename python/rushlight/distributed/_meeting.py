"""How the launchers of several machines meet, for each round of processes, and miss who is gone.

What all of them know is one state in the store, which each changes by compare and set. A machine
that comes while a round runs waits for the next one, which begins at once if there is room for it.
Each machine beats in the store, and watches the one behind it: whoever dies without a word, as a
machine does that loses its power, is noticed by its silence.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from rushlight import _C

__all__ = ["Meeting"]

_types: Any = _C._load_distributed()

# How long the machine with the store waits for the others to read what it has written last.
READING_SECONDS = 10


@dataclass
class _State:
    """What the machines know of each other; machines have names, by which they have come."""

    round: int = 0
    # Their processes, and their numbers if they have some, in the order of arrival.
    members: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    closed: bool = False  # nobody comes in any more: the round runs
    waiting: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)  # whose processes have all ended well
    end: str = ""  # why there is no other round


_FIRST = json.dumps(asdict(_State()))


class Meeting:
    """One machine's view of the others.

    Args:
        store: of this launch alone.
        serves: whether the store is in this process.
        settings: of the agent.
    """

    def __init__(self, store: Any, serves: bool, settings: Any) -> None:
        self._store, self._serves, self._settings = store, serves, settings
        self.name = f"{socket.gethostname()} {uuid.uuid4().hex[:8]}"
        self._seen: tuple[str, int, float] = ("", 0, 0.0)  # who was watched, its beats, since when
        self._stop = threading.Event()
        self._heart: threading.Thread | None = None
        if settings.max_nodes > 1:
            self._heart = threading.Thread(target=self._beat, args=(store.clone(),), daemon=True)
            self._heart.start()

    # ---- what the agent asks and says ----

    def join(self) -> tuple[int, list[int], int]:
        """(The number of the round, how many processes each machine has, this machine's number)."""
        s = self._settings
        end = time.monotonic() + s.join_timeout
        last_call = None
        while True:
            state = self._change(self._enter)
            self._raise_end(state)
            here, now = len(state.members), time.monotonic()
            if self.name in state.members:
                if state.closed:
                    return state.round, *self._places(state)
                if here >= s.min_nodes:
                    last_call = last_call or now + s.last_call
                    if now >= last_call:
                        self._change(_close)
                        continue
                else:
                    last_call = None
            if now >= end:
                if state.closed or self.name not in state.members:
                    what = (
                        f"the launch {s.run_id} has {here} machines and had no place for this one"
                    )
                else:
                    what = f"{here} of {s.min_nodes} machines came"
                within = f"within {s.join_timeout:g} s (--rdzv-conf=join_timeout=SECONDS)"
                raise TimeoutError(f"{what} {within}")
            time.sleep(0.05)

    def is_over(self, number: int) -> bool:
        """Whether round `number` must end: another has begun, or does now for who came or went."""
        state = self._change(lambda _: False)
        self._raise_end(state)
        if state.round != number:
            return True
        room = len(state.members) < self._settings.max_nodes and not state.done
        if (state.waiting and room) or self._silent(state):
            self.begin_another(number)
            return True
        return False

    def begin_another(self, number: int) -> None:
        """End round `number`; the machines come together again."""

        def change(state: _State) -> bool:
            if state.round != number:
                return False
            vars(state).update(vars(_State(round=number + 1, end=state.end)))
            return True

        self._change(change)

    def ends_well(self, number: int) -> bool:
        """Wait until the processes of all machines have; False if another round begins instead."""

        def finish(state: _State) -> bool:
            if state.round != number or self.name in state.done:
                return False
            state.done.append(self.name)
            return True

        state = self._change(finish)
        while state.round != number or len(state.done) < len(state.members):
            if self.is_over(number):
                return False
            time.sleep(0.1)
            state = self._change(lambda _: False)
        self._part(state)
        return True

    def give_up(self, why: str) -> None:
        """Let all machines end, and say why."""

        def change(state: _State) -> bool:
            state.end = state.end or f"{why} on {socket.gethostname()}"
            return True

        self._part(self._change(change))

    def close(self) -> None:
        """Beat no more."""
        self._stop.set()
        if self._heart is not None:
            self._heart.join()

    # ---- the state ----

    def _change(self, change: Callable[[_State], bool]) -> _State:
        """The state after `change`, which says whether it did something."""
        while True:
            before = self._store.compare_set("state", "", _FIRST).decode()
            state = _State(**json.loads(before))
            if not change(state):
                return state
            after = json.dumps(asdict(state))
            if self._store.compare_set("state", before, after).decode() == after:
                return state

    def _enter(self, state: _State) -> bool:
        """Come in if there is room, or wait outside; who died inside makes room."""
        own = self._settings.node_rank
        if self.name in state.members:
            gone = None if state.closed else self._silent(state)
            if gone:
                del state.members[gone]
            return bool(gone)
        taken = own is not None and own in (place for _, place in state.members.values())
        if state.closed or taken:
            if self.name in state.waiting:
                return False
            state.waiting.append(self.name)
            return True
        if self.name in state.waiting:
            state.waiting.remove(self.name)
        state.members[self.name] = (self._settings.processes, own)
        state.closed = len(state.members) >= self._settings.max_nodes
        return True

    def _places(self, state: _State) -> tuple[list[int], int]:
        """In the order of the machines' own numbers where they have some, else as they came."""
        order = sorted(state.members, key=lambda name: state.members[name][1] or 0)
        return [state.members[name][0] for name in order], order.index(self.name)

    def _raise_end(self, state: _State) -> None:
        if state.end:
            self._say_parted()
            raise RuntimeError(f"the launch {self._settings.run_id} has ended: {state.end}")

    def _part(self, state: _State) -> None:
        """Leave; the machine with the store not before all members have read `state`."""
        self._say_parted()
        end = time.monotonic() + READING_SECONDS
        while self._serves and time.monotonic() < end:
            if all(self._store.add(f"parted/{name}", 0) for name in state.members):
                return
            time.sleep(0.02)

    def _say_parted(self) -> None:
        """The machine with the store may hear this and be gone before it has answered."""
        with contextlib.suppress(_types.DistNetworkError):
            self._store.add(f"parted/{self.name}", 1)

    # ---- who is gone ----

    def _beat(self, store: Any) -> None:
        with contextlib.suppress(RuntimeError):  # without a store the agent itself ends
            while True:
                store.add(f"beat/{self.name}", 1)
                if self._stop.wait(self._settings.beat):
                    return

    def _silent(self, state: _State) -> str | None:
        """The machine behind this one in the circle of members, if it has not beaten for long."""
        names = list(state.members)
        if len(names) < 2 or self.name not in state.members:
            return None
        behind = names[(names.index(self.name) + 1) % len(names)]
        beats, now = self._store.add(f"beat/{behind}", 0), time.monotonic()
        if self._seen[:2] != (behind, beats):
            self._seen = (behind, beats, now)
        return behind if now - self._seen[2] > self._settings.silence else None


def _close(state: _State) -> bool:
    state.closed, changed = True, not state.closed
    return changed
