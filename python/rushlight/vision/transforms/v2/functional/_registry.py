"""Which kernel a function takes for which kind of input.

A kernel works on plain tensors, or on pictures of Pillow. Those for kinds of tensors are wrapped
here: they get the fields of the kind that they have parameters for (`format`, `canvas_size`,
`clamping_mode`) and the settings they have parameters for, and what they give becomes that kind
again. One that gives a pair for boxes or points gives their new canvas, too.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from PIL.Image import Image as Picture

from rushlight import Tensor
from rushlight._texts.docstrings import arguments, with_arguments
from rushlight.vision import tv_tensors
from rushlight.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, TVTensor, Video

Input = TypeVar("Input")  # of any kind; the result is of the same
Still = TypeVar("Still", Tensor, Picture)  # what kernels of images take, and give
_Kernel = TypeVar("_Kernel", bound=Callable)
_Rest = ParamSpec("_Rest")
_Result = TypeVar("_Result")

_KERNELS: dict[Callable, dict[type, Callable]] = {}

IMAGES = (Tensor, Picture, Image, Video)  # a plain tensor is an image
PLACES = (BoundingBoxes, KeyPoints)

_OURS = {BoundingBoxes, Image, KeyPoints, Mask, TVTensor, Video}


def is_pure_tensor(inpt: Any) -> bool:
    """Whether it is a tensor that does not know what it is.

    Args:
        inpt: any object.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> image = torch.ones(3, 2, 2)
        >>> F.is_pure_tensor(image), F.is_pure_tensor(tv_tensors.Image(image))
        (True, False)
    """
    return isinstance(inpt, Tensor) and not isinstance(inpt, TVTensor)


def _wrap_output(output: Any, like: Any) -> Any:
    if isinstance(output, Tensor):
        return tv_tensors.wrap(output, like=like)
    if isinstance(output, tuple) and isinstance(like, PLACES):
        return tv_tensors.wrap(output[0], like=like, canvas_size=tuple(output[1]))
    if isinstance(output, tuple):  # several crops
        return tuple(_wrap_output(part, like) for part in output)
    return output


def _of_kind(functional: Callable, kernel: Callable, kind: Any) -> Callable:
    """A kernel of plain tensors as one of a kind of tensors."""
    order = list(inspect.signature(functional).parameters)[1:]
    parameters = list(inspect.signature(kernel).parameters)[1:]
    fields = [name for name in kind._fields if name in parameters]
    taken = {name for name in parameters if name not in fields}

    @functools.wraps(kernel)
    def run(inpt: Any, *args: Any, **kwargs: Any) -> Any:
        if args:
            kwargs.update(zip(order, args, strict=False))
        given = {name: value for name, value in kwargs.items() if name in taken}
        for name in fields:
            given[name] = getattr(inpt, name)
        return _wrap_output(kernel(inpt.as_subclass(Tensor), **given), inpt)

    return run


# What kernels of boxes and points take beside the function's arguments.
_FIELD_TEXTS = {
    "format": "what the numbers of a box say: a `BoundingBoxFormat`.",
    "canvas_size": "(height, width) of the image.",
    "clamping_mode": '"soft", "hard" or None: how boxes stay within the image.',
}


def _describe(found: Callable, functional: Callable) -> None:
    """A kernel's docstring goes on with the function's arguments, and says where its example is."""
    lines = arguments(inspect.cleandoc(functional.__doc__ or ""))
    said = {name: line.partition(": ")[2] for name, line in lines.items()}
    first = next(iter(inspect.signature(found).parameters))
    kind = "a plain tensor, or a picture of Pillow." if first == "image" else "a plain tensor."
    with_arguments(found, {**_FIELD_TEXTS, **said, first: kind})
    found.__doc__ = f"{found.__doc__}\n\nFor an example see `{functional.__name__}`."


def rename_input(
    found: Callable[Concatenate[Tensor, _Rest], _Result], kind: str
) -> Callable[Concatenate[Tensor, _Rest], _Result]:
    """A kernel of images under the names, its own and that of its input, of another kind's."""
    first, *rest = inspect.signature(found).parameters.values()

    image: Any = found

    @functools.wraps(found)
    def run(*args: Any, **kwargs: Any) -> Any:
        return image(kwargs.pop(kind), **kwargs) if kind in kwargs else image(*args, **kwargs)

    run.__name__ = run.__qualname__ = found.__name__.replace("image", kind)
    run.__signature__ = inspect.Signature([first.replace(name=kind), *rest])  # type: ignore
    run.__doc__ = re.sub(r"(?m)^    image: .*", f"    {kind}: a plain tensor.", found.__doc__ or "")
    run.__doc__ = run.__doc__.replace(" of an image", f" of a {kind}", 1)
    return run


def kernel(functional: Callable, *kinds: type) -> Callable[[_Kernel], _Kernel]:
    """Registers what it decorates as the function's kernel for some kinds of input."""

    def decorate(found: _Kernel) -> _Kernel:
        place = _KERNELS.setdefault(functional, {})
        if not found.__name__.startswith("_") and "For an example" not in (found.__doc__ or ""):
            _describe(found, functional)
        for kind in kinds:
            ours = issubclass(kind, TVTensor)
            place[kind] = _of_kind(functional, found, kind) if ours else found
        return found

    return decorate


def register_kernel(functional: Any, tv_tensor_cls: Any) -> Callable[[_Kernel], _Kernel]:
    """Registers what it decorates as a function's kernel for an own kind of tensors.

    Args:
        functional: of `transforms.v2.functional`, or its name.
        tv_tensor_cls: a class that derives from TVTensor. The kernel gets and gives tensors of it.

    Raises:
        ValueError: there is no such function, or the kind is none of one's own.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> class Depth(tv_tensors.TVTensor):
        ...     pass
        >>> @F.register_kernel(F.horizontal_flip, Depth)
        ... def flip_depth(inpt, *args, **kwargs):
        ...     return inpt.flip(-1)
    """
    if isinstance(functional, str):
        functions = sys.modules[__name__.rpartition(".")[0]]
        if not hasattr(functions, functional):
            raise ValueError(
                f"Could not find functional with name '{functional}' in "
                "torchvision.transforms.v2.functional."
            )
        functional = getattr(functions, functional)
    elif functional not in _KERNELS:
        raise ValueError(
            "Kernels can only be registered on functionals of `transforms.v2.functional`, but got "
            f"{functional}"
        )
    if not (isinstance(tv_tensor_cls, type) and issubclass(tv_tensor_cls, TVTensor)):
        raise ValueError(
            f"Kernels can only be registered for subclasses of TVTensor, but got {tv_tensor_cls}"
        )
    if tv_tensor_cls in _OURS:
        raise ValueError(
            "Kernels cannot be registered for the builtin tv_tensor classes, but got "
            f"{tv_tensor_cls}"
        )
    place = _KERNELS.setdefault(functional, {})
    if tv_tensor_cls in place:
        raise ValueError(
            f"Functional {functional} already has a kernel registered for type {tv_tensor_cls}."
        )

    def decorate(found: _Kernel) -> _Kernel:
        place[tv_tensor_cls] = found
        return found

    return decorate


def find_kernel(functional: Callable, kind: type) -> Callable | None:
    """The function's kernel for a kind of input; plain tensors' is not taken for own kinds."""
    place = _KERNELS.get(functional)
    if not place:
        raise ValueError(f"No kernel registered for functional {functional.__name__}.")
    for cls in kind.__mro__:
        if cls in place:
            return place[cls]
        if cls is TVTensor:
            break
    return None


def call(functional: Callable, inpt: Any, *args: Any, **kwargs: Any) -> Any:
    """The function's kernel for the kind of the input, called; TypeError if there is none."""
    found = find_kernel(functional, type(inpt))
    if found is None:
        known = ", ".join(kind.__name__ for kind in _KERNELS[functional])
        raise TypeError(
            f"F.{functional.__name__} supports inputs of type {known}, not {type(inpt).__name__}"
        )
    return found(inpt, *args, **kwargs)
