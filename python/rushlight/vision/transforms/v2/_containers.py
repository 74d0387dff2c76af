"""Transforms that are made of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight
from rushlight import nn
from rushlight.vision import transforms as v1

from ._transform import Transform
from ._utils import sample_of


def _check_transforms(transforms: Any, kinds: Any = Sequence) -> Any:
    if not isinstance(transforms, kinds):
        raise TypeError("Argument transforms should be a sequence of functions or transforms")
    if not transforms:
        raise ValueError("Pass at least one transform")
    return transforms


def _in_turn(transforms: Any, inputs: tuple) -> Any:
    outputs = sample_of(inputs)
    for transform in transforms:
        outputs = transform(*inputs)
        inputs = outputs if len(inputs) > 1 else (outputs,)
    return outputs


class _Container(Transform):
    transforms: Any

    def extra_repr(self) -> str:
        return "\n".join(f"    {t}" for t in self.transforms)


class Compose(_Container):
    """Applies transforms one after the other.

    Args:
        transforms: functions of samples, at least one (else ValueError).

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> steps = v2.Compose([v2.Resize(4), v2.RandomHorizontalFlip()])
        >>> steps(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 4, 4])
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        super().__init__()
        self.transforms = _check_transforms(transforms)

    def forward(self, *inputs: Any) -> Any:
        """The sample after all transforms, in order."""
        return _in_turn(self.transforms, inputs)


class RandomApply(_Container):
    """Applies all transforms with probability p, else none.

    Args:
        transforms: a sequence or a ModuleList.
        p: a probability.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomApply([v2.Grayscale(3)], p=0.5)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.RandomApply

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__()
        self.transforms = _check_transforms(transforms, Sequence | nn.ModuleList)
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"`p` should be a floating point value from 0 to 1, not {p}")
        self.p = p

    def forward(self, *inputs: Any) -> Any:
        """The sample after all transforms, or as it is."""
        if rushlight.rand(1) >= self.p:
            return sample_of(inputs)
        return _in_turn(self.transforms, inputs)


class RandomChoice(Transform):
    """Applies one random transform.

    Args:
        transforms: a sequence.
        p: their weights; equal ones if None.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomChoice([v2.Grayscale(3), v2.RandomInvert()])(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    def __init__(
        self, transforms: Sequence[Callable[..., Any]], p: Sequence[float] | None = None
    ) -> None:
        _check_transforms(transforms)
        p = [1] * len(transforms) if p is None else p
        if len(p) != len(transforms):
            raise ValueError(
                f"Length of p doesn't match: {len(p)} for {len(transforms)} transforms"
            )
        super().__init__()
        self.transforms = transforms
        self.p = [weight / sum(p) for weight in p]

    def forward(self, *inputs: Any) -> Any:
        """The sample after one of the transforms."""
        chosen = int(rushlight.multinomial(rushlight.tensor(self.p), 1))
        return self.transforms[chosen](*inputs)


class RandomOrder(Transform):
    """Applies all transforms in a random order.

    Args:
        transforms: the transforms.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomOrder([v2.RandomInvert(), v2.Grayscale(3)])(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        _check_transforms(transforms)
        super().__init__()
        self.transforms = transforms

    def forward(self, *inputs: Any) -> Any:
        """The sample after all transforms, in a random order."""
        order = rushlight.randperm(len(self.transforms)).tolist()
        return _in_turn([self.transforms[i] for i in order], inputs)
