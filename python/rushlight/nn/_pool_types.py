"""Types of pooling: what a call gives with `return_indices`, and without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, overload

from rushlight import Tensor

Sizes = int | Sequence[int]
Both = tuple[Tensor, Tensor]


class MaxPool(Protocol):
    """Of `max_poolNd`."""

    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: Literal[False] = False,
    ) -> Tensor: ...
    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        *,
        return_indices: Literal[True],
    ) -> Both: ...
    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any: ...


class MaxPoolWithIndices(Protocol):
    """Of `max_poolNd_with_indices`."""

    def __call__(
        self,
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Both: ...


class AdaptiveMaxPool(Protocol):
    """Of `adaptive_max_poolNd`."""

    @overload
    def __call__(
        self, input: Tensor, output_size: Any, return_indices: Literal[False] = False
    ) -> Tensor: ...
    @overload
    def __call__(self, input: Tensor, output_size: Any, return_indices: Literal[True]) -> Both: ...
    @overload
    def __call__(self, input: Tensor, output_size: Any, return_indices: bool) -> Any: ...


class AdaptiveMaxPoolWithIndices(Protocol):
    """Of `adaptive_max_poolNd_with_indices`."""

    def __call__(self, input: Tensor, output_size: Any, return_indices: bool = False) -> Both: ...


class FractionalMaxPool(Protocol):
    """Of `fractional_max_poolNd`."""

    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: Literal[False] = False,
    ) -> Tensor: ...
    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | Sequence[float] | None = None,
        *,
        return_indices: Literal[True],
    ) -> Both: ...
    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any: ...


class FractionalMaxPoolWithIndices(Protocol):
    """Of `fractional_max_poolNd_with_indices`."""

    def __call__(
        self,
        input: Tensor,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
    ) -> Both: ...


class MaxUnpool(Protocol):
    """Of `max_unpoolNd`."""

    def __call__(
        self,
        input: Tensor,
        indices: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor: ...
