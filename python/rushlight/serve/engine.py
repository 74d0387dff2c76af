"""One network and the requests that wait for it, of which some at a time are answered.

Their tokens are multiplied together, so that weights are read once for all of them.
"""

from __future__ import annotations

import codecs
import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import rushlight
from rushlight import Tensor, gguf
from rushlight.language import Llama, Sampler
from rushlight.serve.tokens import tokenizer_of

__all__ = ["Busy", "Engine", "Job"]

_AT_ONCE = 512  # tokens of a prompt


class Busy(Exception):
    """So many requests wait that another one is refused, or the network is not there.

    For an example see `serve.engine.Engine`.
    """


@dataclass
class Job:
    """A request: its prompt, how the answer is made, and where pieces of it come out.

    Args:
        prompt: its tokens.
        sampler: chooses the next token.
        max_tokens: how many are made at most.
        stop: texts at which the answer ends.
        pieces: where pieces of the answer come out.
        cancelled: set to end it.
        made: how many tokens have been made.
        reason: why it ended.

    For an example see `serve.engine.Engine`.
    """

    prompt: list[int]
    sampler: Sampler
    max_tokens: int
    stop: Sequence[str] = ()
    pieces: queue.Queue[Any] = field(default_factory=queue.Queue)
    cancelled: threading.Event = field(default_factory=threading.Event)
    made: int = 0  # tokens
    reason: str = "length"  # why it ended

    def answer(self) -> Iterator[str]:
        """Pieces of the answer as they are made; errors of the network are raised here."""
        while True:
            piece = self.pieces.get()
            if piece is None:
                return
            if isinstance(piece, BaseException):
                raise piece
            yield piece


class _Text:
    """The text of tokens, held back where it may be the beginning of what ends an answer."""

    def __init__(self, stop: Sequence[str]) -> None:
        self.stop = [s for s in stop if s]
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.held = ""
        self.ended = False

    def add(self, data: bytes, last: bool = False) -> str:
        """What can be said now."""
        self.held += self.decoder.decode(data, last)
        ends = [at for at in map(self.held.find, self.stop) if at >= 0]
        if ends:
            self.ended = True
            said, self.held = self.held[: min(ends)], ""
            return said
        keep = 0 if last else max((self._begun(s) for s in self.stop), default=0)
        said = self.held[: len(self.held) - keep]
        self.held = self.held[len(said) :]
        return said

    def _begun(self, stop: str) -> int:
        """How many characters at the end of the text may be the beginning of `stop`."""
        most = min(len(stop) - 1, len(self.held))
        return next((n for n in range(most, 0, -1) if self.held.endswith(stop[:n])), 0)


class _Seat:
    """A text of the network: what its caches hold, and the request that it is made for."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.history: list[int] = []
        self.read = 0  # tokens of it that the caches hold
        self.job: Job | None = None
        self.text = _Text(())

    def in_common(self, prompt: Sequence[int]) -> int:
        """How many tokens of a prompt need not be read again; the last one always is."""
        both = zip(prompt[:-1], self.history[: self.read], strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))

    @property
    def left(self) -> list[int]:
        """Tokens that are to be read."""
        return self.history[self.read :]


class Engine:
    """A network in a thread of its own.

    Args:
        path: a file of GGUF.
        context: positions that there is room for in each text; None: as `Llama` has it.
        waiting: requests that may wait.
        together: requests that are answered side by side.
        cache_dtype: of keys and values.

    Example:
        >>> from rushlight.serve.engine import Engine
        >>> engine = Engine("model.gguf")  # doctest: +SKIP
        >>> engine.start()  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str,
        context: int | None = None,
        waiting: int = 16,
        together: int = 4,
        cache_dtype: Any = rushlight.float32,
    ) -> None:
        self.path = path
        self.context = context
        self.cache_dtype = cache_dtype
        self.done, self.of = 0, 0  # blocks that are loaded
        self.error: BaseException | None = None
        self.ready = threading.Event()
        self._stopped = threading.Event()
        self._jobs: queue.Queue[Job] = queue.Queue(waiting)
        self._seats = [_Seat(i) for i in range(together)]
        self._thread = threading.Thread(target=self._run, name="rushlight.serve", daemon=True)

    def start(self) -> None:
        """Begin to load the file, and then to answer."""
        self._thread.start()

    def stop(self) -> None:
        """End the answers that are being made and refuse those that wait."""
        self._stopped.set()
        self._thread.join()
        while not self._jobs.empty():
            self._jobs.get().pieces.put(Busy("the server is shutting down"))

    def submit(self, job: Job) -> None:
        """Put a request at the end of the queue.

        Raises:
            Busy: the queue is full, or there is no network yet.
        """
        if not self.ready.is_set() or self.error is not None or self._stopped.is_set():
            raise Busy(self.state)
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            raise Busy("too many requests are waiting") from None

    @property
    def state(self) -> str:
        """What the engine does, in words."""
        if self._stopped.is_set():
            return "the server is shutting down"
        if self.error is not None:
            return f"the file could not be loaded: {self.error}"
        return "ok" if self.ready.is_set() else f"loading, {self.done} of {self.of or '?'} blocks"

    def _run(self) -> None:
        try:
            self._load()
        except Exception as error:  # said to whoever asks
            self.error = error
            self.ready.set()
            return
        self.ready.set()
        while not self._stopped.is_set():
            self._admit()
            for seat in self._taken():
                if seat.job is not None and seat.job.cancelled.is_set():
                    self._end(seat, "stop")
            reading = [seat for seat in self._taken() if len(seat.left) > 1]
            if reading:
                self._read(reading[0])
            self._step([seat for seat in self._taken() if len(seat.left) == 1])
        for seat in self._taken():
            self._end(seat, "stop")

    def _load(self) -> None:
        def progress(done: int, of: int) -> None:
            self.done, self.of = done, of
            if self._stopped.is_set():
                raise Busy("the server is shutting down")

        self.metadata, tensors = gguf.load(self.path)
        self.tokenizer = tokenizer_of(self.path, self.metadata)
        self.net = Llama(
            self.metadata,
            tensors,
            self.context,
            self.cache_dtype,
            sequences=len(self._seats),
            progress=progress,
        )

    def _taken(self) -> list[_Seat]:
        return [seat for seat in self._seats if seat.job is not None]

    def _admit(self) -> None:
        """Seats for those who wait; where all are free, it waits itself for a while."""
        while free := [seat for seat in self._seats if seat.job is None]:
            try:
                idle = len(free) == len(self._seats)
                job = self._jobs.get(timeout=0.1) if idle else self._jobs.get_nowait()
            except queue.Empty:
                return
            seat = max(free, key=lambda s: s.in_common(job.prompt))
            seat.read = seat.in_common(job.prompt)
            seat.job, seat.history, seat.text = job, list(job.prompt), _Text(job.stop)
            self.net.truncate(seat.read, seat.number)

    def _read(self, seat: _Seat) -> None:
        """A part of a prompt, for the others do not wait for the whole; its last token is left."""
        part = seat.left[:-1][:_AT_ONCE]
        try:
            self.net.read(part, seat.number)
            seat.read += len(part)
        except Exception as error:  # of this request alone
            self._fail([seat], error)

    def _step(self, seats: list[_Seat]) -> None:
        """One token more for each, all at once."""
        if not seats:
            return
        try:
            logits = self.net.step([s.left[0] for s in seats], [s.number for s in seats])
        except Exception as error:
            self._fail(seats, error)
            return
        for seat, row in zip(seats, logits, strict=True):
            seat.read += 1
            try:
                self._say(seat, row)
            except Exception as error:  # of its sampler
                self._fail([seat], error)

    def _say(self, seat: _Seat, logits: Tensor) -> None:
        job = seat.job
        assert job is not None
        token = job.sampler(logits, seat.history)
        if token in self.tokenizer.ends:
            self._end(seat, "stop")
            return
        seat.history.append(token)
        job.made += 1
        if piece := seat.text.add(self.tokenizer.piece(token)):
            job.pieces.put(piece)
        if seat.text.ended:
            self._end(seat, "stop")
        elif job.made == job.max_tokens or len(seat.history) > self.net.max_len:
            self._end(seat, "length")

    def _end(self, seat: _Seat, reason: str) -> None:
        job = seat.job
        assert job is not None
        job.reason = reason
        if not seat.text.ended and (rest := seat.text.add(b"", last=True)):
            job.pieces.put(rest)
        job.pieces.put(None)
        seat.job = None

    def _fail(self, seats: list[_Seat], error: Exception) -> None:
        for seat in seats:
            assert seat.job is not None
            seat.job.pieces.put(error)
            seat.job, seat.history, seat.read = None, [], 0
