"""What stands for the names of `distributed` that are not written yet.

Programs import them, ask with `isinstance`, and go on; whoever calls one is told by its name that
it is not there.
"""

from __future__ import annotations

from typing import Any

from rushlight import _refused

_WHY = "docs/distributed.md says which parts of distributed training are there"


def function(name: str) -> Any:
    """A function that raises RuntimeError."""
    return _refused.function(name, _WHY)


def in_group(name: str) -> Any:
    """A function that raises ValueError as long as no process group has been made."""

    @_refused.refuses(_WHY)
    def refuse(*args, **kwargs):
        raise ValueError(
            f"Default process group has not been initialized, and rushlight has no {name} yet: "
            f"{_WHY}; {name} needs it"
        )

    refuse.__name__ = refuse.__qualname__ = name.rpartition(".")[2]
    refuse.__doc__ = "Refused: there is no process group."
    return refuse


def kind(name: str, module: str, **attributes: Any) -> Any:
    """A class that has no instances: to make one raises RuntimeError."""
    return _refused.kind(name, module, _WHY, **attributes)
