"""Decorators for classes of datapipes."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from .datapipe import IterDataPipe, MapDataPipe

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "argument_validation",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "runtime_validation",
    "runtime_validation_disabled",
]

_Pipe = TypeVar("_Pipe")
_determinism = False
_validates = True


class functional_datapipe:
    """Makes a class of pipes a method of all pipes of its kind.

    Args:
        name: the name of the method.
        enable_df_api_tracing: has no effect, because there are no pipes of data frames.

    Example:
        >>> @torch.utils.data.functional_datapipe("every_second")
        ... class EverySecond(torch.utils.data.IterDataPipe):
        ...     def __init__(self, source):
        ...         self.source = source
        ...
        ...     def __iter__(self):
        ...         return (x for i, x in enumerate(self.source) if i % 2 == 0)
        >>> pipe = torch.utils.data.datapipes.iter.IterableWrapper(range(5))
        >>> list(pipe.every_second())
        [0, 2, 4]
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls: type[_Pipe]) -> type[_Pipe]:
        for kind in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, kind):
                kind.register_datapipe_as_function(self.name, cls)
                return cls
        raise TypeError("functional_datapipe is for subclasses of IterDataPipe or MapDataPipe")


class guaranteed_datapipes_determinism:
    """Within it pipes that are marked as not deterministic cannot be made.

    Example:
        >>> with torch.utils.data.guaranteed_datapipes_determinism():
        ...     pipe = torch.utils.data.datapipes.iter.IterableWrapper(range(3))
    """

    def __init__(self) -> None:
        global _determinism
        self._before = _determinism
        _determinism = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, error, trace) -> None:
        global _determinism
        _determinism = self._before


class non_deterministic:
    """Marks a class of pipes as not deterministic, always or by a function of its arguments.

    Args:
        arg: the class, or a function that says of its arguments whether pipes are so.

    Example:
        >>> import random
        >>> @torch.utils.data.non_deterministic
        ... class Noise(torch.utils.data.IterDataPipe):
        ...     def __iter__(self):
        ...         yield random.random()
        >>> len(list(Noise()))
        1
    """

    def __init__(self, arg: Any) -> None:
        self._test = None if isinstance(arg, type) else arg
        self._class: Any = arg if isinstance(arg, type) else None

    def __call__(self, *args, **kwargs):
        if self._class is None:
            self._class = args[0]
            return self._make
        return self._make(*args, **kwargs)

    def _make(self, *args, **kwargs):
        if _determinism and (self._test is None or self._test(*args, **kwargs)):
            raise TypeError(
                f"{self._class.__name__} is non-deterministic with these arguments, and "
                "guaranteed_datapipes_determinism is on"
            )
        return self._class(*args, **kwargs)


def argument_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """Checks that arguments whose type is said to be a datapipe are one.

    Args:
        f: the constructor.

    Example:
        >>> class Twice(torch.utils.data.IterDataPipe):
        ...     @torch.utils.data.argument_validation
        ...     def __init__(self, source: torch.utils.data.IterDataPipe[int]):
        ...         self.source = source
        >>> Twice([4, 5])
        Traceback (most recent call last):
            ...
        TypeError: Expected argument 'source' as a ...
    """
    signature, hints = inspect.signature(f), get_type_hints(f)

    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            hint = hints.get(name)
            kind: Any = getattr(hint, "__origin__", hint)
            pipes = isinstance(kind, type) and issubclass(kind, (IterDataPipe, MapDataPipe))
            if pipes and not isinstance(value, kind):
                raise TypeError(f"Expected argument '{name}' as a {hint}, but found {value!r}")
        return f(*args, **kwargs)

    return wrapper


@contextlib.contextmanager
def runtime_validation_disabled():
    """Within it `runtime_validation` checks nothing.

    Example:
        >>> with torch.utils.data.runtime_validation_disabled():
        ...     pass
    """
    global _validates
    before, _validates = _validates, False
    try:
        yield
    finally:
        _validates = before


def runtime_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """Checks that what a pipe's `__iter__` gives has the type of the elements it was declared for.

    Only plain classes can be checked: `Iterator[int]`.

    For an example see `utils.data.argument_validation`, which checks before.

    Args:
        f: `__iter__`.
    """
    hint = get_type_hints(f).get("return")
    expected: tuple[Any, ...] = getattr(hint, "__args__", ())

    @functools.wraps(f)
    def wrapper(self) -> Any:
        for item in f(self):
            checked = _validates and expected and isinstance(expected[0], type)
            if checked and not isinstance(item, expected[0]):
                raise RuntimeError(
                    f"Expected an instance as subtype of {expected[0]}, but found {item!r}"
                )
            yield item

    return wrapper
