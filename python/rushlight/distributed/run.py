"""Starts several processes of a program: `torchrun`. It refuses."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = ["get_args_parser", "main", "parse_args", "run"]

get_args_parser = _refused.function("torch.distributed.run.get_args_parser")
main = _refused.function("torch.distributed.run.main")
parse_args = _refused.function("torch.distributed.run.parse_args")
run = _refused.function("torch.distributed.run.run")
