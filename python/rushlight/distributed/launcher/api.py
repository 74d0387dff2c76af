"""Starts a function or a program in several processes, as `torchrun` does."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rushlight.distributed._agent import PR_SET_PDEATHSIG, Agent, Settings
from rushlight.distributed.elastic.multiprocessing.api import DefaultLogsSpecs
from rushlight.distributed.elastic.multiprocessing.errors import record

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclass
class LaunchConfig:
    """How many processes are started, where, and how often they are restarted.

    Args:
        min_nodes: how many machines at least,
        max_nodes: and at most.
        nproc_per_node: processes of this machine.
        logs_specs: where their output is written (`DefaultLogsSpecs`).
        run_id: the name of the launch; a unique name by default.
        role: what the processes are called.
        rdzv_endpoint: host:port, where the launchers meet; a free port of this machine by default.
        rdzv_backend: "static" (machine 0 keeps the store, `rdzv_configs["rank"]` is this one's
            number) or "c10d" (whoever can keeps it).
        rdzv_configs: `rank`, `timeout` or `join_timeout`, `last_call_timeout`, in seconds.
        max_restarts: the number of times that processes are restarted after a failure.
        monitor_interval: seconds between looks at them.
        rdzv_timeout: the same as `rdzv_configs["timeout"]`.
        start_method: of the processes of a function: "spawn", "fork" or "forkserver".
        log_line_prefix_template: what stands before each line of output that is shown and kept,
            with `${role_name}`, `${local_rank}` and `${rank}`.

    Example:
        >>> from rushlight.distributed.launcher import LaunchConfig
        >>> LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2).nproc_per_node
        2
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: DefaultLogsSpecs | None = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "c10d"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None

    def __post_init__(self):
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        elif "timeout" not in self.rdzv_configs:
            self.rdzv_configs["timeout"] = 900
        if self.logs_specs is None:
            self.logs_specs = DefaultLogsSpecs()


def _settings(config: LaunchConfig, name: str, command: list[str]) -> Settings:
    logs: Any = config.logs_specs
    count = config.nproc_per_node
    settings = Settings(
        command,
        count,
        config.min_nodes,
        config.max_nodes,
        run_id=config.run_id or uuid.uuid4().hex,
        role=config.role,
        max_restarts=config.max_restarts,
        interval=config.monitor_interval,
        log_dir=logs.root_log_dir,
        redirects=logs.streams(logs.redirects, count),
        tee=logs.streams(logs.tee, count),
        shown=logs.local_ranks_filter,
        name=name,
    )
    if config.log_line_prefix_template is not None:
        settings.label = config.log_line_prefix_template
    settings.wait_as(config.rdzv_configs)
    if not config.rdzv_endpoint and config.max_nodes == 1:
        settings.host, settings.hosts_store = "localhost", True
    else:
        rank = int(config.rdzv_configs.get("rank", 0))
        settings.meet_at(config.rdzv_backend, config.rdzv_endpoint, rank)
    return settings


def _call(function, args, environment, outputs, result):
    """In a process: the function, with its output where that is wanted."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, path in outputs.items():
        name = "stdout" if descriptor == 1 else "stderr"
        getattr(sys, name).flush()
        with open(path, "ab") as file:
            os.dup2(file.fileno(), descriptor)
        # In a notebook print goes somewhere else.
        setattr(sys, name, os.fdopen(descriptor, "w", buffering=1, closefd=False))
    returned = record(function)(*args)
    with open(result, "wb") as file:
        pickle.dump(returned, file)


class _FunctionProcess:
    """A process of multiprocessing with the methods of `subprocess.Popen`."""

    def __init__(self, process):
        self._process = process
        process.start()
        self.pid = process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self._process.exitcode

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self._process.kill()

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0)
        return self._process.exitcode


class _FunctionAgent(Agent):
    """One machine's part of the launch of a function."""

    def __init__(self, settings, function: Callable[..., Any], args, start_method):
        super().__init__(settings)
        self._function, self._args = function, args
        self._context = multiprocessing.get_context(start_method)

    def _launch(self, local, environment, streams):
        folder = Path(environment["TORCHELASTIC_ERROR_FILE"]).parent
        outputs = {}
        for descriptor, name in ((1, "stdout"), (2, "stderr")):
            if streams[name] == subprocess.DEVNULL:
                outputs[descriptor] = os.devnull
            elif streams[name] is not None:
                outputs[descriptor] = str(folder / f"{name}.log")
        arguments = (self._function, self._args, environment, outputs, str(folder / "result"))
        return _FunctionProcess(self._context.Process(target=_call, args=arguments))

    def _copy(self, process, local, name, path):
        shown, label = getattr(sys, name), self._label(local)
        path.touch()

        def copy():
            with open(path, "rb") as log:
                ended = False
                while True:
                    lines = log.readlines()
                    for line in lines if self._is_shown(local) else ():
                        shown.write(label + line.decode(errors="replace"))
                    shown.flush()
                    if ended and not lines:
                        return
                    ended = process.poll() is not None
                    time.sleep(0 if lines else 0.05)

        thread = threading.Thread(target=copy, daemon=True)
        thread.start()
        self.threads.append(thread)

    def _results(self):
        found = {}
        for local in range(self.settings.processes):
            path = Path(self._error_file(self.attempt, local)).parent / "result"
            found[self.first_rank + local] = pickle.loads(path.read_bytes())
        return found


def launch_agent(
    config: LaunchConfig, entrypoint: Callable[..., Any] | str, args: list[Any]
) -> Any:
    """Start a function or a program in several processes, and wait for them.

    Args:
        config: how many processes, where.
        entrypoint: the function, or the path of the program.
        args: its arguments.

    Returns:
        What the function returned, by rank, of this machine's processes; nothing of a program.

    Raises:
        ChildFailedError: processes failed, and were started again as often as they may be.

    For an example see `distributed.launcher.LaunchConfig`.
    """
    if isinstance(entrypoint, str):
        return Agent(_settings(config, entrypoint, [entrypoint, *map(str, args)])).run()
    name = getattr(entrypoint, "__qualname__", str(entrypoint))
    agent = _FunctionAgent(
        _settings(config, name, []), entrypoint, tuple(args), config.start_method
    )
    return agent.run()


class elastic_launch:
    """A callable that starts a function, or a program by its path, with its arguments.

        results = elastic_launch(LaunchConfig(1, 1, nproc_per_node=2), train)(0.1)

    Args:
        config: how many processes, where.
        entrypoint: the function, or the path of the program.

    Returns:
        What the function returned, by rank.

    For an example see `distributed.launcher.LaunchConfig`.
    """

    def __init__(self, config: LaunchConfig, entrypoint: Callable[..., Any] | str):
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> Any:
        return launch_agent(self._config, self._entrypoint, list(args))
