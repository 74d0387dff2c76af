"""The bases of transforms: what they do to samples of any structure."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from PIL.Image import Image as Picture

import rushlight
from rushlight import Tensor, nn
from rushlight.utils._pytree import tree_flatten, tree_unflatten
from rushlight.vision.tv_tensors import Image, Video

from ._utils import check_type, has_any, sample_of
from .functional._registry import find_kernel, is_pure_tensor


class Transform(nn.Module):
    """The base of transforms: one set of random parameters for all inputs of a sample.

    A sample is an input, several ones, or any structure of lists, tuples and dicts. Plain tensors
    pass as they are if there is an image or a video in the sample; else the first one is an image.
    What derives from this says what to do in `transform`, and what is drawn in `make_params`.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> class Half(v2.Transform):
        ...     def transform(self, inpt, params):
        ...         return inpt / 2
        >>> Half()(torch.ones(2))
        tensor([0.5000, 0.5000])
    """

    _transformed_types: tuple = (Tensor, Picture)  # types, or functions that say yes or no
    _v1_transform_cls: Any = None

    def __init__(self) -> None:
        super().__init__()

    def __init_subclass__(cls) -> None:
        draw = getattr(cls._v1_transform_cls, "get_params", None)
        if draw is not None:
            cls.get_params = staticmethod(draw)

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """Raise for samples that are not supported."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the parameters for a sample, from those of its inputs that are transformed."""
        return {}

    def _call_kernel(self, functional: Callable, inpt: Any, *args: Any, **kwargs: Any) -> Any:
        """The function on an input; kinds that it has no kernel for pass as they are."""
        kernel = find_kernel(functional, type(inpt))
        return inpt if kernel is None else kernel(inpt, *args, **kwargs)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Transform one input."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it changes")

    def forward(self, *inputs: Any) -> Any:
        """Transform a sample; subclasses define `transform` instead."""
        flat, spec = tree_flatten(sample_of(inputs))
        self.check_inputs(flat)
        return self._transform_flat(flat, spec)

    def _transform_flat(self, flat: list[Any], spec: Any) -> Any:
        wanted = self._needs_transform_list(flat)
        params = self.make_params([inpt for inpt, w in zip(flat, wanted, strict=True) if w])
        made = [
            self.transform(inpt, params) if w else inpt
            for inpt, w in zip(flat, wanted, strict=True)
        ]
        return tree_unflatten(made, spec)

    def _needs_transform_list(self, flat_inputs: list[Any]) -> list[bool]:
        """Which inputs are transformed."""
        wanted = []
        first = True
        for inpt in flat_inputs:
            wants = check_type(inpt, self._transformed_types)
            if wants and is_pure_tensor(inpt):
                wants = first and not has_any(flat_inputs, Image, Video, Picture)
                first = False
            wanted.append(wants)
        return wanted

    def extra_repr(self) -> str:
        shown = (bool, int, float, str, tuple, list, enum.Enum)
        return ", ".join(
            f"{name}={value}"
            for name, value in self.__dict__.items()
            if not name.startswith("_") and name != "training" and isinstance(value, shown)
        )


class Sometimes(Transform):
    """Transforms with probability p, from 0 to 1 (else ValueError)."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"`p` should be a floating point value from 0 to 1, not {p}")
        super().__init__()
        self.p = p

    def forward(self, *inputs: Any) -> Any:
        """The sample, changed with the probability `p`."""
        sample = sample_of(inputs)
        flat, spec = tree_flatten(sample)
        self.check_inputs(flat)
        return sample if rushlight.rand(1) >= self.p else self._transform_flat(flat, spec)
