"""The launcher: starts a program in several processes: python -m rushlight.distributed.run."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import uuid
from collections.abc import Sequence
from typing import Any

from rushlight.distributed._agent import Agent, Settings
from rushlight.distributed.elastic.multiprocessing.api import DefaultLogsSpecs, Std
from rushlight.distributed.elastic.multiprocessing.errors import record

__all__ = ["config_from_args", "get_args_parser", "main", "parse_args", "run"]


class _Env(argparse.Action):
    """An option whose default PET_NAME in the environment gives."""

    def __init__(self, dest, default=None, required: bool = False, **kwargs: Any):
        default = os.environ.get(f"PET_{dest.upper()}", default)
        super().__init__(dest=dest, default=default, required=required, **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, values)


def get_args_parser() -> argparse.ArgumentParser:
    """The parser of the options, each with dashes or underscores.

    For an example see `distributed.run.parse_args`.
    """
    parser = argparse.ArgumentParser(
        prog="rushrun", description="Starts a program in several processes.", allow_abbrev=False
    )

    def option(name, *short, **kwargs):
        names = [f"--{name}", f"--{name.replace('-', '_')}"]
        kwargs.setdefault("dest", name.replace("-", "_"))
        if "action" not in kwargs:
            kwargs["action"] = _Env
        parser.add_argument(*short, *dict.fromkeys(names), **kwargs)

    option("nnodes", default="1:1", type=str, help="machines: N, or MIN:MAX")
    option("nproc-per-node", default="1", type=str, help="processes: N, auto, cpu, or gpu")
    option("rdzv-backend", default="static", type=str, help="static or c10d")
    option("rdzv-endpoint", default="", type=str, help="host:port of the launchers' store")
    option("rdzv-id", default="none", type=str, help="the name of this launch")
    option("rdzv-conf", default="", type=str, help="KEY=VALUE,...: join_timeout, last_call_timeout")
    option("standalone", action="store_true", help="one machine, a port that is free")
    option("max-restarts", default=0, type=int, help="how often to start again after a failure")
    option("monitor-interval", default=0.1, type=float, help="seconds between looks at processes")
    option("start-method", default="spawn", choices=["spawn", "fork", "forkserver"], help="unused")
    option("event-log-handler", default="null", type=str, help="unused")
    option("role", default="default", type=str, help="what the processes are called")
    option("module", "-m", action="store_true", help="the program is the name of a module")
    option("no-python", action="store_true", help="the program is no Python program")
    option("run-path", action="store_true", help="run it as runpy.run_path does")
    option("log-dir", default=None, type=str, help="where output is kept")
    option(
        "redirects", "-r", default="0", type=str, help="what goes to files (1: stdout, 2: stderr)"
    )
    option("tee", "-t", default="0", type=str, help="what goes to files and is shown")
    option("local-ranks-filter", default="", type=str, help="whose output is shown: 0,1,...")
    option("node-rank", default=None, type=int, help="this machine's number")
    option("master-addr", default="127.0.0.1", type=str, help="machine 0")
    option("master-port", default=29500, type=int, help="a port of machine 0")
    option("local-addr", default=None, type=str, help="unused")
    option("logs-specs", default=None, type=str, help="unused")
    option(
        "signals-to-handle",
        default="SIGTERM,SIGINT,SIGHUP,SIGQUIT",
        type=str,
        help="signals that end the processes: they get them first",
    )
    option(
        "shutdown-timeout",
        default=os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"),
        type=float,
        help="seconds between asking a process to end and making it",
    )
    option(
        "virtual-local-rank",
        action="store_true",
        help="each process sees its GPU alone, as number 0, and has the local rank 0",
    )
    parser.add_argument("training_script", type=str, help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: Sequence[str] | None = None):
    """Parse the options of a command line.

    Args:
        args: the words of the command line; those of this program by default.

    Example:
        >>> from rushlight.distributed.run import parse_args
        >>> args = parse_args(["--nproc-per-node=2", "train.py", "--lr", "0.1"])
        >>> args.nproc_per_node, args.training_script, args.training_script_args
        ('2', 'train.py', ['--lr', '0.1'])
    """
    return get_args_parser().parse_args(args)


def _processes(text: str) -> int:
    if text.isdigit():
        return int(text)
    if text in ("auto", "cpu", "gpu"):
        import rushlight

        if text != "cpu" and rushlight.cuda.is_available():
            return rushlight.cuda.device_count()
        if text == "gpu":
            raise ValueError("Cuda is not available.")
        return os.cpu_count() or 1
    raise ValueError(f"Unsupported nproc_per_node value: {text}")


def config_from_args(args: argparse.Namespace) -> tuple[Settings, list[str]]:
    """Convert options to a `LaunchConfig`, a program and its arguments.

    Args:
        args: options, as `parse_args` gives them.

    For an example see `distributed.run.parse_args`.
    """
    low, _, high = str(args.nnodes).partition(":")
    minimum, maximum = int(low), int(high or low)
    if not 0 < minimum <= maximum:
        raise ValueError(f"nnodes must be N or MIN:MAX, not {args.nnodes}")
    processes = _processes(str(args.nproc_per_node))
    command = [*_program(args), *args.training_script_args]
    conf: dict[str, str] = dict(
        part.split("=", 1) for part in str(args.rdzv_conf or "").split(",") if part
    )
    settings = Settings(
        command,
        processes,
        minimum,
        maximum,
        run_id=args.rdzv_id,
        role=args.role,
        max_restarts=int(args.max_restarts),
        interval=float(args.monitor_interval),
        log_dir=args.log_dir,
        redirects=DefaultLogsSpecs.streams(Std.from_str(str(args.redirects)), processes),
        tee=DefaultLogsSpecs.streams(Std.from_str(str(args.tee)), processes),
        signals=tuple(signal.Signals[name] for name in args.signals_to_handle.split(",")),
        end_seconds=float(args.shutdown_timeout),
        virtual_local_rank=args.virtual_local_rank,
        name=args.training_script,
    )
    if (any(settings.redirects.values()) or any(settings.tee.values())) and not args.log_dir:
        settings.log_dir = os.path.join(os.environ.get("TMPDIR", "/tmp"), "torchelastic_logs")
    if args.local_ranks_filter:
        settings.shown = {int(rank) for rank in args.local_ranks_filter.split(",")}
    settings.wait_as(conf)
    _find_host(settings, args)
    return settings, command


def _program(args) -> list[str]:
    """What is run in each process, without the arguments of the script."""
    if args.no_python:
        if args.module:
            raise ValueError(
                "'--no-python' and '--module' say what the script is: both flags cannot be given "
                "at the same time"
            )
        return [args.training_script]
    if args.run_path:
        code = (
            "import runpy, sys; sys.argv = sys.argv[1:]; "
            "runpy.run_path(sys.argv[0], run_name='__main__')"
        )
        return [sys.executable, "-u", "-c", code, args.training_script]
    return [sys.executable, "-u", *(["-m"] if args.module else []), args.training_script]


def _find_host(settings: Settings, args) -> None:
    """Where the machines meet, and which of them holds the store."""
    # Whoever makes `args` without the parser may have texts for numbers.
    master_port, node_rank = int(args.master_port), int(args.node_rank or 0)
    if args.standalone or (
        settings.max_nodes == 1 and not args.rdzv_endpoint and args.node_rank is None
    ):
        settings.host, settings.hosts_store = "localhost", True
        settings.run_id = uuid.uuid4().hex if args.rdzv_id == "none" else args.rdzv_id
        if not args.standalone and master_port != 29500:
            settings.host, settings.port = args.master_addr, master_port
    else:
        known = args.master_addr, master_port
        settings.meet_at(args.rdzv_backend, args.rdzv_endpoint, node_rank, *known)


def run(args: argparse.Namespace) -> None:
    """Start the processes that the options describe, and wait for them.

    Args:
        args: options, as `parse_args` gives them.

    For an example see `distributed.run.parse_args`.
    """
    settings, _ = config_from_args(args)
    Agent(settings).run()


@record
def main(args=None) -> None:
    """The program `rushrun`.

    Args:
        args: the words of the command line; those of this program by default.

    For an example see `distributed.run.parse_args`.
    """
    run(parse_args(args))


if __name__ == "__main__":
    main()
