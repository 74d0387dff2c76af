"""What stands for the names of `distributed` until there is distributed training.

Programs import them, ask with `isinstance` and `is_available()`, and go on alone; whoever calls one
is told by its name that it is not there.
"""

from __future__ import annotations

from typing import Any


def _message(name: str) -> str:
    return (
        f"rushlight has no {name} yet: programs run in one process "
        "(torch.distributed.is_available() is False)"
    )


def function(name: str) -> Any:
    """A function that raises RuntimeError."""

    def refused(*args, **kwargs):
        raise RuntimeError(_message(name))

    refused.__name__ = refused.__qualname__ = name.rpartition(".")[2]
    refused.__doc__ = "Refused: there is no distributed training yet."
    return refused


def in_group(name: str) -> Any:
    """A function that raises ValueError as long as no process group has been made."""

    def refused(*args, **kwargs):
        raise ValueError(
            f"Default process group has not been initialized, and {_message(name)}; {name} needs it"
        )

    refused.__name__ = refused.__qualname__ = name.rpartition(".")[2]
    refused.__doc__ = "Refused: there is no process group."
    return refused


class _Refused(type):
    """The class of classes without instances."""

    def __call__(cls, *args, **kwargs):
        raise RuntimeError(_message(f"{cls.__module__}.{cls.__qualname__}"))


def kind(name: str, module: str, **attributes: Any) -> Any:
    """A class that has no instances: to make one raises RuntimeError.

    Args:
        name: its name.
        module: the module that it stands in.
        attributes: what else the class has.
    """
    space = {"__module__": module, "__doc__": "Refused: there is no distributed training yet."}
    return _Refused(name, (), {**space, **attributes})
