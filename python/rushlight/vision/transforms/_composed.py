"""Transforms that are made of others."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import rushlight
from rushlight import Tensor, nn

from . import functional as F
from ._basic import Normalize, ToTensor
from ._conversions import byte_values, is_picture
from ._parts import Part, takes


def _list_text(name: str, first: Sequence[str], transforms: Any) -> str:
    return "\n    ".join([f"{name}(", *first, *(str(t) for t in transforms)]) + "\n)"


class Compose:
    """Applies transforms one after the other.

    Args:
        transforms: functions of one image.

    Example:
        >>> from rushlight.vision import transforms
        >>> steps = transforms.Compose([transforms.Resize(4), transforms.RandomHorizontalFlip()])
        >>> steps(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 4, 4])
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        if is_picture(img) or isinstance(img, Part):
            return _through(self.transforms, img)
        for t in self.transforms:
            img = t(img)
        return img

    def __repr__(self) -> str:
        return _list_text(type(self).__name__, (), self.transforms)


def _through(transforms: Any, img: Any) -> Any:
    """A picture through transforms one after the other; its pixels are moved as late as can be."""
    left = deque(transforms)
    while left:
        t = left.popleft()
        if not takes(t):
            img = img.picture() if isinstance(img, Part) else img
        elif is_picture(img):
            img = Part.of(img)
        if left and isinstance(img, Part) and type(t) is ToTensor and type(left[0]) is Normalize:
            normalized = _as_normalized(img, left[0])
            if normalized is not None:
                left.popleft()
                img = normalized
                continue
        img = t(img)
    return img.picture() if isinstance(img, Part) else img


def _as_normalized(img: Part, normalize: Normalize) -> Tensor | None:
    """A part as a tensor, normalized: what that makes of each byte is computed once. None if it
    makes more of it than numbers.
    """
    if not takes(normalize):
        return None
    values = byte_values(F.get_dimensions(img)[0])
    table = normalize(values.unsqueeze(-1)).squeeze(-1)
    return None if table.requires_grad or table.shape != values.shape else img.planes(table)


class RandomTransforms:
    """What uses some of its transforms, or in another order; TypeError unless they are a
    sequence.

    Args:
        transforms: the transforms.

    Example:
        >>> from rushlight.vision import transforms
        >>> issubclass(transforms.RandomApply, transforms.RandomTransforms)
        False
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        if not isinstance(transforms, Sequence):
            raise TypeError("Argument transforms should be a sequence")
        self.transforms = transforms

    def __call__(self, *args: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say which transforms it uses")

    def __repr__(self) -> str:
        return _list_text(type(self).__name__, (), self.transforms)


class RandomApply(nn.Module):
    """Applies all transforms with probability p, else none.

    Args:
        transforms: a sequence or a ModuleList.
        p: a probability.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomApply([transforms.Grayscale(3)], p=0.5)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms
        self.p = p

    def forward(self, img: Any) -> Any:
        if self.p < rushlight.rand(1):
            return img
        for t in self.transforms:
            img = t(img)
        return img

    def __repr__(self) -> str:
        return _list_text(type(self).__name__, (f"p={self.p}",), self.transforms)


class RandomOrder(RandomTransforms):
    """Applies all transforms in a random order, which Python's `random` draws.

    Args:
        transforms: the transforms.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomOrder([transforms.RandomInvert(), transforms.Grayscale(3)])(
        ...     torch.zeros(3, 8, 8)
        ... ).shape
        torch.Size([3, 8, 8])
    """

    def __call__(self, img: Any) -> Any:
        order = list(range(len(self.transforms)))
        random.shuffle(order)
        for i in order:
            img = self.transforms[i](img)
        return img


class RandomChoice(RandomTransforms):
    """Applies one of the transforms, which Python's `random` draws.

    Args:
        transforms: a sequence.
        p: their weights; equal ones if None.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomChoice([transforms.Grayscale(3), transforms.RandomInvert()])(
        ...     torch.zeros(3, 8, 8)
        ... ).shape
        torch.Size([3, 8, 8])
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]], p: Any = None) -> None:
        super().__init__(transforms)
        if p is not None and not isinstance(p, Sequence):
            raise TypeError("Argument p should be a sequence")
        self.p = p

    def __call__(self, *args: Any) -> Any:
        (chosen,) = random.choices(self.transforms, weights=self.p)
        return chosen(*args)

    def __repr__(self) -> str:
        return f"{super().__repr__()}(p={self.p})"


class Lambda:
    """Applies a function as a transform; TypeError if it cannot be called.

    Args:
        lambd: the function.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.Lambda(lambda x: x + 1)(torch.tensor([1, 2]))
        tensor([2, 3])
    """

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
