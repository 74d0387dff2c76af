"""Errors on their way from the process or thread that met them to the one that waits."""

from __future__ import annotations

import pickle
import sys
import traceback
from typing import Any, NoReturn

__all__ = ["ExceptionWrapper", "KeyErrorMessage", "add_note", "is_of_another"]


def add_note(error: BaseException, text: str) -> None:
    """What Python 3.11 has as `error.add_note(text)`."""
    error.__dict__.setdefault("__notes__", []).append(text)


class KeyErrorMessage(str):
    """Text that a KeyError shows as it is, with its line breaks."""

    def __repr__(self) -> str:
        return self


class ExceptionWrapper:
    """The type and the traceback of an error, which can be sent; `reraise` raises it again.

    Args:
        exc_info: as `sys.exc_info()` gives it; that of the error being handled if None.
        where: what the message says about the place, "in DataLoader worker process 0".
    """

    def __init__(self, exc_info=None, where: str = "in background") -> None:
        kind, error, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        if sys.version_info < (3, 11):  # which does not show notes
            self.exc_msg += "".join(f"{note}\n" for note in getattr(error, "__notes__", ()))
        self.where = where

    def __getstate__(self):
        state = dict(self.__dict__)
        try:
            pickle.dumps(self.exc_type)
        except Exception:  # a class of a function: the other side cannot know it
            state["exc_type"] = RuntimeError
        return state

    def reraise(self) -> NoReturn:
        """Raise the error: its type, and a message that holds the traceback.

        An error whose type cannot be made of a message is raised as RuntimeError.
        """
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        try:
            if issubclass(self.exc_type, KeyError):
                error = self.exc_type(KeyErrorMessage(message))
            elif getattr(self.exc_type, "message", None):
                error = self.exc_type(message=message)
            else:
                error = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise error


def is_of_another(error) -> bool:
    """Whether an error is only that another process was lost, or did not come.

    What was raised first counts: where an error came up while one of another kind was handled, it
    is a consequence of that one.
    """
    world = sys.modules.get("rushlight.distributed.distributed_c10d")
    while error.__cause__ or (error.__context__ and not error.__suppress_context__):
        error = error.__cause__ or error.__context__
    return world is not None and isinstance(error, world.DistError)


class SourceChangeWarning(Warning):
    """An old file holds a whole module, whose class has other source code here.

    For an example see `serialization.load`.
    """


SourceChangeWarning.__module__ = "rushlight.serialization"


class MissingNameError(AttributeError):
    """An AttributeError of a module that says, when it is shown, which name may have been meant.

    Most are never shown: programs ask modules for names that may be there. It shows itself as the
    plain error, and leaves Python nothing to guess.
    """

    def __init__(self, text: str, module: str, name: str) -> None:
        super().__init__(text, name=name)
        self._module = module

    def __str__(self) -> str:
        import difflib

        text, name = str(self.args[0]), str(self.name)
        names = dir(sys.modules[self._module])
        letters = name.replace("_", "").lower()
        same = [n for n in names if n.replace("_", "").lower() == letters]
        near = same or difflib.get_close_matches(name, names, n=1, cutoff=0.8)
        return f"{text}: did you mean {near[0]!r}?" if near else text

    def __reduce__(self) -> Any:
        return AttributeError, (str(self),)


MissingNameError.__module__ = "builtins"
MissingNameError.__name__ = MissingNameError.__qualname__ = "AttributeError"
