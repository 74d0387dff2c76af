"""Context managers and decorators that turn recording of ops on and off.

Each restores what was set before, also after an exception. As decorators they hold for every call
of the function; of a generator, whenever its own code runs, not that of its caller.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from rushlight import _C
from rushlight._warnings import warn

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "enable_grad",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


_Function = TypeVar("_Function", bound=Callable[..., Any])


class ContextDecorator:
    """A context manager that is also a decorator for functions and generators; each call gets a new
    one.
    """

    def clone(self) -> Self:
        """A context manager with the same settings, for a further use."""
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        raise NotImplementedError

    def __call__(self, function: _Function) -> _Function:
        if inspect.isclass(function):
            warn(
                f"Decorating classes is deprecated: {function.__name__} is then a function that "
                "makes instances within the mode, and their methods run outside of it. Decorate "
                "the methods.",
                FutureWarning,
            )
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return wrapper  # type: ignore

    def _wrap_generator(self, function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            go_on, given = generator.send, None
            while True:
                try:
                    with self.clone():
                        value = go_on(given)
                except StopIteration as end:
                    return end.value
                finally:
                    given = None  # an error's trace holds this frame
                try:
                    go_on, given = generator.send, (yield value)
                except GeneratorExit:
                    with self.clone():
                        generator.close()
                    raise
                except BaseException as error:
                    go_on, given = generator.throw, error

        return wrapper


class _BareDecorator(ContextDecorator):
    """One that may decorate without being called: `@no_grad`."""

    @overload
    def __new__(cls) -> Self: ...
    @overload
    def __new__(cls, function: _Function) -> _Function: ...
    def __new__(cls, function: Any = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)


class no_grad(_BareDecorator):
    """A context manager in which nothing is recorded; results do not require gradients.

    Args:
        function: a function to decorate, with `@torch.no_grad`; None makes a context manager.

    Example:
        >>> weight = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad():
        ...     size = weight.norm()
        >>> size.requires_grad
        False
    """

    def __enter__(self) -> None:
        self.before = _C.is_grad_enabled()
        _C._set_grad_enabled(False)

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        _C._set_grad_enabled(self.before)


class enable_grad(_BareDecorator):
    """A context manager in which ops are recorded, also inside `no_grad`.

    Args:
        function: a function to decorate, with `@torch.enable_grad`; None makes a context
            manager.

    Example:
        >>> x = torch.tensor(1.0, requires_grad=True)
        >>> with torch.no_grad(), torch.enable_grad():
        ...     y = x * 2
        >>> y.requires_grad
        True
    """

    def __enter__(self) -> None:
        self.before = _C.is_grad_enabled()
        _C._set_grad_enabled(True)

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        _C._set_grad_enabled(self.before)


class set_grad_enabled(ContextDecorator):
    """Set recording to `mode` at once; as a context manager, until the block ends.

    Args:
        mode: whether ops are recorded.

    Example:
        >>> with torch.set_grad_enabled(False):
        ...     torch.is_grad_enabled()
        False
    """

    def __init__(self, mode: bool) -> None:
        self.before = _C.is_grad_enabled()
        self.mode = mode
        _C._set_grad_enabled(mode)

    def __call__(self, function: _Function) -> _Function:
        _C._set_grad_enabled(self.before)
        return super().__call__(function)

    def __enter__(self) -> None:
        _C._set_grad_enabled(self.mode)

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        _C._set_grad_enabled(self.before)

    def clone(self) -> Self:
        """A context manager with the same settings, for a further use."""
        return type(self)(self.mode)


class inference_mode(ContextDecorator):
    """Like `no_grad`; its results have no versions and cannot be used in a recorded op.

    Args:
        mode: whether the mode is on, or a function to decorate.

    Example:
        >>> with torch.inference_mode():
        ...     y = torch.ones(2)
        >>> y.is_inference()
        True
    """

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
    @overload
    def __new__(cls, mode: _Function) -> _Function: ...
    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        self.before = _C._enter_inference_mode(self.mode)

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        _C._leave_inference_mode(self.before)

    def clone(self) -> Self:
        """A context manager with the same settings, for a further use."""
        return type(self)(self.mode)


class set_multithreading_enabled(ContextDecorator):
    """A no-op: backward always runs on the calling thread.

    Args:
        mode: without effect.

    Example:
        >>> with torch.autograd.set_multithreading_enabled(False):
        ...     pass
    """

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        pass

    def clone(self) -> Self:
        """A context manager with the same settings, for a further use."""
        return type(self)(self.mode)
