"""The interface of objects with a state."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """An object with `state_dict` and `load_state_dict`.

    Args:
        args, kwargs: those of the class that has the two methods.

    For an example see `distributed.checkpoint.save`.
    """

    def state_dict(self) -> dict[str, Any]:
        """The state of the object."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)
