"""One network and the requests that wait for it: they are answered in order, a token at a time."""

from __future__ import annotations

import codecs
import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rushlight import gguf
from rushlight.language import Llama, Sampler, Tokenizer

__all__ = ["Busy", "Engine", "Job"]


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


class Engine:
    """A network in a thread of its own.

    Args:
        path: a file of GGUF.
        context: positions that there is room for; None: as `Llama` has it.
        waiting: requests that may wait.

    Example:
        >>> from rushlight.serve.engine import Engine
        >>> engine = Engine("model.gguf")  # doctest: +SKIP
        >>> engine.start()  # doctest: +SKIP
    """

    def __init__(self, path: str, context: int | None = None, waiting: int = 16) -> None:
        self.path = path
        self.context = context
        self.done, self.of = 0, 0  # blocks that are loaded
        self.error: BaseException | None = None
        self.ready = threading.Event()
        self._stopped = threading.Event()
        self._jobs: queue.Queue[Job] = queue.Queue(waiting)
        self._held: list[int] = []  # tokens that the caches hold
        self._current: Job | None = None
        self._thread = threading.Thread(target=self._run, name="rushlight.serve", daemon=True)

    def start(self) -> None:
        """Begin to load the file, and then to answer."""
        self._thread.start()

    def stop(self) -> None:
        """End the answer that is being made and refuse those that wait."""
        self._stopped.set()
        if (current := self._current) is not None:
            current.cancelled.set()
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
            try:
                self._current = job = self._jobs.get(timeout=0.1)
            except queue.Empty:
                continue
            try:
                self._answer(job)
                job.pieces.put(None)
            except Exception as error:  # of this request alone
                self._held = []
                job.pieces.put(error)
            self._current = None

    def _load(self) -> None:
        def progress(done: int, of: int) -> None:
            self.done, self.of = done, of
            if self._stopped.is_set():
                raise Busy("the server is shutting down")

        self.metadata, tensors = gguf.load(self.path)
        self.tokenizer = Tokenizer(self.metadata)
        self.net = Llama(self.metadata, tensors, self.context, progress=progress)

    def _answer(self, job: Job) -> None:
        both = zip(job.prompt, self._held, strict=False)
        same = next((i for i, (a, b) in enumerate(both) if a != b), len(self._held))
        seen = min(same, len(job.prompt) - 1)
        text = _Text(job.stop)
        tokens = self.net.generate(
            job.prompt, job.max_tokens, job.sampler, tuple(self.tokenizer.ends), seen
        )
        history = list(job.prompt)
        for token in tokens:
            history.append(token)
            job.made += 1
            if piece := text.add(self.tokenizer.piece(token)):
                job.pieces.put(piece)
            if text.ended or job.cancelled.is_set() or self._stopped.is_set():
                job.reason = "stop"
                break
        else:
            full = len(history) > self.net.max_len
            job.reason = "length" if job.made == job.max_tokens or full else "stop"
            if piece := text.add(b"", last=True):
                job.pieces.put(piece)
        self._held = history[: self.net.seen]
