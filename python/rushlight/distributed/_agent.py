"""What the launcher does on one machine: finds the others, starts processes, watches them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import string
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from rushlight import _C
from rushlight.distributed._meeting import Meeting
from rushlight.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

__all__ = ["Agent", "Settings"]

_types: Any = _C._load_distributed()
PR_SET_PDEATHSIG = 1
# How long a process that others have lost may take to end.
CAUSE_SECONDS = 5


@dataclass
class Settings:
    """What is to be started, and how often again."""

    command: list[str]
    processes: int = 1
    min_nodes: int = 1
    max_nodes: int = 1
    node_rank: int | None = None  # None: in the order of arrival
    run_id: str = "none"
    role: str = "default"
    host: str = "127.0.0.1"
    port: int = 0
    hosts_store: bool | None = None  # None: the first on the machine that `host` names
    max_restarts: int = 0
    interval: float = 0.1
    last_call: float = 30.0
    join_timeout: float = 600.0
    beat: float = 5.0  # seconds between two signs of life
    silence: float = 15.0  # without one, a machine is gone
    log_dir: str | None = None
    redirects: dict[int, int] = field(default_factory=dict)  # by local rank: 1 stdout, 2 stderr
    tee: dict[int, int] = field(default_factory=dict)
    shown: set[int] | None = None  # local ranks whose output is shown
    signals: tuple[int, ...] = (
        signal.SIGTERM,
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGQUIT,
    )  # handed on
    end_seconds: float = 30.0  # between asking a process to end and making it
    virtual_local_rank: bool = False  # each process sees one GPU, and is local rank 0 of it
    name: str = "program"
    label: str = "[${role_name}${local_rank}]:"

    def wait_as(self, conf: dict[str, Any]) -> None:
        """Set how long machines are waited for, and who holds the store, by options."""
        self.beat = float(conf.get("keep_alive_interval", 5))
        self.silence = self.beat * float(conf.get("keep_alive_max_attempt", 3))
        self.join_timeout = float(conf.get("join_timeout", conf.get("timeout", 600)))
        self.last_call = float(conf.get("last_call_timeout", 30))
        if "is_host" in conf:  # for a host whose address a router translates
            self.hosts_store = str(conf["is_host"]).lower() in ("1", "true", "t", "yes", "y")

    def meet_at(
        self, backend: str, endpoint: str, rank: int, address: str = "127.0.0.1", port: int = 29500
    ) -> None:
        """Where the machines meet, and which of them holds the store, as a rendezvous says.

        Args:
            backend: "static", where machines have their ranks, or "c10d", where they come.
            endpoint: HOST:PORT.
            rank: of this machine, where they have ranks.
            address, port: what the endpoint leaves out, where they have ranks.
        """
        host, _, number = endpoint.rpartition(":")
        if backend == "static":
            self.node_rank = rank
            self.host, self.port = host or address, int(number or port)
            self.hosts_store = rank == 0
        elif backend == "c10d":
            self.host = host or endpoint or "localhost"
            self.port = int(number) if host else 29400
        else:
            raise ValueError(f"rdzv_backend {backend} is not one of: static, c10d")


def _is_own_address(host: str) -> bool:
    """Whether a host's name stands for an address of this machine."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except socket.gaierror:
        return False
    for family, kind, protocol, _, address in found:
        with contextlib.suppress(OSError), socket.socket(family, kind, protocol) as trial:
            trial.bind(address)
            return True
    return False


class _Signal(SystemExit):
    """A signal that ends the processes ends their launcher."""


class Agent:
    """One machine's part of a launch."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self.processes: list[Any] = []
        self.threads: list[threading.Thread] = []
        self.folder = Path(tempfile.mkdtemp(prefix="torchelastic_"))
        self.logs: Path | None = None
        if settings.log_dir is not None:
            os.makedirs(settings.log_dir, exist_ok=True)
            self.logs = Path(tempfile.mkdtemp(prefix=f"{settings.run_id}_", dir=settings.log_dir))
        self.attempt = 0
        self._libc = ctypes.CDLL(None)

    def run(self) -> Any:
        """Until all processes have ended well; ChildFailedError if they have not."""
        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in self.settings.signals:
                before[number] = signal.signal(number, self._on_signal)
        meeting = None
        try:
            meeting = self._meeting()
            restarts = 0
            while True:
                attempt, nodes, own = meeting.join()
                self._start(attempt, nodes, own)
                failures = self._watch(meeting)
                if failures == {} and meeting.ends_well(attempt):
                    return self._results()
                self._end_all()
                if failures:
                    if restarts >= self.settings.max_restarts:
                        error = ChildFailedError(self.settings.name, failures)
                        rank, failure = error.get_first_failure()
                        meeting.give_up(f"rank {rank} failed with exitcode {failure.exitcode}")
                        raise error
                    restarts += 1
                    meeting.begin_another(attempt)
        except _types.DistNetworkError as error:
            where = f"{self.settings.host}:{self.settings.port}"
            if meeting is None:
                raise
            raise RuntimeError(f"the launcher that kept the store at {where} is gone") from error
        except _Signal:
            # The others go on without this machine, if they are enough.
            if meeting is not None and self.settings.max_nodes > 1:
                with contextlib.suppress(RuntimeError):
                    meeting.begin_another(self.attempt)
            raise
        finally:
            self._end_all()
            if meeting is not None:
                meeting.close()
            shutil.rmtree(self.folder, ignore_errors=True)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _results(self) -> Any:
        """What the processes return: programs return nothing."""

    def _on_signal(self, number, _frame):
        self._end_all(number)
        raise _Signal(128 + number)

    def _meeting(self):
        """With the other machines, at the store that one of them keeps."""
        s = self.settings
        timeout = timedelta(seconds=s.join_timeout)
        store = None
        hosts = _is_own_address(s.host) if s.hosts_store is None else s.hosts_store
        if hosts:
            try:
                store = _types.TCPStore(s.host, s.port, None, True, timeout)
                s.port = store.port
            except _types.DistNetworkError:
                if s.hosts_store:
                    raise
        serves = store is not None
        store = store or _types.TCPStore(s.host, s.port, None, False, timeout)
        return Meeting(_types.PrefixStore(f"launch/{s.run_id}", store), serves, s)

    # ---- processes ----

    def _environment(self, attempt, nodes, own, local):
        s = self.settings
        rank = sum(nodes[:own]) + local
        values = {
            "LOCAL_RANK": local,
            "RANK": rank,
            "GROUP_RANK": own,
            "ROLE_RANK": rank,
            "ROLE_NAME": s.role,
            "LOCAL_WORLD_SIZE": s.processes,
            "WORLD_SIZE": sum(nodes),
            "GROUP_WORLD_SIZE": len(nodes),
            "ROLE_WORLD_SIZE": sum(nodes),
            "MASTER_ADDR": s.host,
            "MASTER_PORT": s.port,
            "TORCHELASTIC_RESTART_COUNT": attempt,
            "TORCHELASTIC_MAX_RESTARTS": s.max_restarts,
            "TORCHELASTIC_RUN_ID": s.run_id,
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_ERROR_FILE": self._error_file(attempt, local),
        }
        if s.virtual_local_rank:
            visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
            values["CUDA_VISIBLE_DEVICES"] = visible[local] if visible != [""] else local
            values["LOCAL_RANK"] = 0
        if s.processes > 1:
            values["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")
        return {**os.environ, **{name: str(value) for name, value in values.items()}}

    def _error_file(self, attempt, local):
        folder = self.logs or self.folder
        return str(folder / f"attempt_{attempt}" / str(local) / "error.json")

    def _with_this_process(self):
        """Let this process not outlive its launcher."""
        self._libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    def _start(self, attempt, nodes, own):
        s = self.settings
        self.attempt = attempt
        self.first_rank = sum(nodes[:own])
        self.processes = []
        for local in range(s.processes):
            path = Path(self._error_file(attempt, local))
            path.parent.mkdir(parents=True, exist_ok=True)
            streams = {
                name: self._stream(path.parent, local, number, name)
                for number, name in ((1, "stdout"), (2, "stderr"))
            }
            process = self._launch(local, self._environment(attempt, nodes, own, local), streams)
            self.processes.append(process)
            for name, stream in streams.items():
                if stream == subprocess.PIPE:
                    self._copy(process, local, name, path.parent / f"{name}.log")
                elif stream is not None and not isinstance(stream, int):
                    stream.close()

    def _launch(self, local, environment, streams) -> Any:
        """A process; with the methods of `subprocess.Popen`."""
        command = [part.replace("${local_rank}", str(local)) for part in self.settings.command]
        return subprocess.Popen(
            command, env=environment, **streams, preexec_fn=self._with_this_process
        )

    def _stream(self, folder, local, number, name):
        s = self.settings
        if s.tee.get(local, 0) & number:
            return subprocess.PIPE
        if s.redirects.get(local, 0) & number:
            return open(folder / f"{name}.log", "wb")  # closed once it is passed on
        return None if self._is_shown(local) else subprocess.DEVNULL

    def _is_shown(self, local):
        return self.settings.shown is None or local in self.settings.shown

    def _label(self, local):
        """What stands before each line that a process writes, where that is shown and kept."""
        values = {
            "role_name": self.settings.role,
            "local_rank": local,
            "rank": self.first_rank + local,
        }
        return string.Template(self.settings.label).safe_substitute(values)

    def _copy(self, process, local, name, path):
        """Keep a process's output, and show it with its name."""
        source = getattr(process, name)
        shown = getattr(sys, name)
        label = self._label(local)

        def copy():
            with open(path, "wb") as log:
                for line in source:
                    log.write(line)
                    log.flush()
                    if self._is_shown(local):
                        shown.write(label + line.decode(errors="replace"))
                        shown.flush()

        thread = threading.Thread(target=copy, daemon=True)
        thread.start()
        self.threads.append(thread)

    def _watch(self, meeting):
        """The failures of this machine's processes, once one has failed or all have ended.

        None if the round is over for another reason.
        """
        alone = self.settings.max_nodes == 1
        looked = time.monotonic()
        while True:
            codes = [p.poll() for p in self.processes]
            if any(code not in (None, 0) for code in codes):
                return self._failures(self.attempt)
            if all(code == 0 for code in codes):
                self._finish_copies()
                return {}
            if not alone and time.monotonic() - looked > 1:
                looked = time.monotonic()
                if meeting.is_over(self.attempt):
                    return None
            time.sleep(self.settings.interval)

    def _finish_copies(self):
        """Show what processes that have ended wrote last."""
        for thread in self.threads:
            thread.join(5)
        self.threads = [thread for thread in self.threads if thread.is_alive()]

    def _failures(self, attempt):
        """Those of this machine, by rank; the one that others failed by may still be ending."""
        time.sleep(0.05)  # others that failed by it may have written why
        failures = {}
        end = time.monotonic() + CAUSE_SECONDS
        while True:
            for local, p in enumerate(self.processes):
                rank = self.first_rank + local
                if rank not in failures and p.poll() not in (None, 0):
                    file = self._error_file(attempt, local)
                    failures[rank] = ProcessFailure(local, p.pid, p.returncode, file)
            all_end = all(p.poll() is not None for p in self.processes)
            if (
                all_end
                or time.monotonic() > end
                or not all(f.of_another for f in failures.values())
            ):
                return failures
            time.sleep(0.02)

    def _end_all(self, number=signal.SIGTERM):
        alive = [p for p in self.processes if p.poll() is None]
        for p in alive:
            p.send_signal(number)
        end = time.monotonic() + self.settings.end_seconds
        for p in alive:
            try:
                p.wait(max(end - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        self._finish_copies()
