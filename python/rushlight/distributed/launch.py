"""`python -m rushlight.distributed.launch`: the launcher by its old name."""

from __future__ import annotations

from rushlight.distributed.run import get_args_parser, run

__all__ = ["launch", "main"]


def launch(args) -> None:
    """Start what options say."""
    run(args)


def main(args=None) -> None:
    """The same program with the old option --use-env, which is how it is anyway."""
    parser = get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true", help="always so")
    launch(parser.parse_args(args))


if __name__ == "__main__":
    main()
