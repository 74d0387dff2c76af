"""How processes find each other: env://, tcp:// and file:// as stores."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlparse

from rushlight import _C
from rushlight.distributed._kinds import default_pg_timeout

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["register_rendezvous_handler", "rendezvous"]

_types: Any = _C._load_distributed()
_handlers: dict[str, Any] = {}

# Where launchers say the rank and the size, in pairs.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


def register_rendezvous_handler(scheme: str, handler: Callable[..., Any]) -> None:
    """Register `handler(url, timeout=…)` for `init_method="scheme://…"`.

    For an example see `distributed.init_process_group`, whose addresses these are.

    Args:
        scheme: the beginning of addresses, as "tcp".
        handler: a generator function of the address, which gives stores, ranks and numbers of
            processes.

    Raises:
        RuntimeError: the scheme has a handler.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Any:
    """Yield (store, rank, world_size) for a URL.

    Args:
        url: the address, as "tcp://HOST:PORT".
        rank: the number of this process; -1: as the address says.
        world_size: how many processes there are; -1: as the address says.
        **kwargs: settings of the handler, as `timeout`.

    Example:
        >>> meeting = torch.distributed.rendezvous("tcp://127.0.0.1:0", rank=0, world_size=1)
        >>> store, rank, size = next(iter(meeting))
        >>> rank, size
        (0, 1)
    """
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, int):
        raise RuntimeError(f"`rank` must be an integer. {rank}")
    if not isinstance(world_size, int):
        raise RuntimeError(f"`world_size` must be an integer. {world_size}")
    parts = urlparse(url)
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    query = dict(parse_qsl(parts.query))
    if rank != -1:
        query["rank"] = str(rank)
    if world_size != -1:
        query["world_size"] = str(world_size)
    return _handlers[parts.scheme](parts, query, **kwargs)


def _error(scheme, message):
    return ValueError(f"Error initializing torch.distributed using {scheme}://: {message}")


def _number(query, name, scheme):
    if name not in query:
        raise _error(scheme, f"{name.replace('_', ' ')} parameter missing")
    return int(query[name])


def _file(parts, query, timeout: timedelta = default_pg_timeout, **_):
    path = parts.netloc + parts.path
    if not path:
        raise _error("file", "path missing")
    rank = _number(query, "rank", "file")
    world_size = _number(query, "world_size", "file")
    store = _types.FileStore(path, world_size)
    store.set_timeout(timeout)
    yield store, rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _tcp_store(host, port, rank, world_size, timeout):
    """The store of all: of the launcher's process where that keeps one, else of rank 0."""
    agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if agent:
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = _types.TCPStore(host, port, world_size, False, timeout, wait_for_workers=False)
        return _types.PrefixStore(f"/worker/attempt_{attempt}", store)
    return _types.TCPStore(
        host, port, world_size, rank == 0, timeout, wait_for_workers=True, multi_tenant=True
    )


def _tcp(parts, query, timeout: timedelta = default_pg_timeout, **_):
    if parts.port is None:
        raise _error("tcp", "port number missing")
    rank = _number(query, "rank", "tcp")
    world_size = _number(query, "world_size", "tcp")
    if rank < 0 or world_size < 1:
        raise _error("tcp", "rank and world size must be given")
    yield _tcp_store(parts.hostname, parts.port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _env(_parts, query, timeout: timedelta = default_pg_timeout, **_):
    def variable(*names):
        for name in names:
            if os.environ.get(name):
                return os.environ[name]
        raise _error("env", f"there is no {names[0]} (environment variable {names[0]} expected)")

    rank = int(query["rank"] if "rank" in query else variable(*(p[0] for p in _LAUNCHERS)))
    if "world_size" in query:
        world_size = int(query["world_size"])
    else:
        world_size = int(variable(*(pair[1] for pair in _LAUNCHERS)))
    host = variable("MASTER_ADDR")
    port = int(variable("MASTER_PORT"))
    yield _tcp_store(host, port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


register_rendezvous_handler("file", _file)
register_rendezvous_handler("tcp", _tcp)
register_rendezvous_handler("env", _env)
