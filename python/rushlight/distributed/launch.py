"""`python -m rushlight.distributed.launch`: the launcher under its deprecated name."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rushlight.distributed.run import get_args_parser, run

__all__ = ["launch", "main"]


def launch(args: argparse.Namespace) -> None:
    """Start the processes that the options describe.

    Args:
        args: options, as `run.parse_args` gives them.

    For an example see `distributed.run.parse_args`.
    """
    run(args)


def main(args: Sequence[str] | None = None) -> None:
    """The launcher with the deprecated option --use-env, which has no effect.

    Args:
        args: the words of the command line; those of this program by default.

    For an example see `distributed.run.parse_args`.
    """
    parser = get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true", help="always so")
    launch(parser.parse_args(args))


if __name__ == "__main__":
    main()
