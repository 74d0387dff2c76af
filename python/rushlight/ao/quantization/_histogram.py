"""The observer that keeps a histogram.

Public in `observer`.
"""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight.ao.quantization._observer_bases import (
    _EPS,
    _PER_CHANNEL,
    _RANGES,
    _BoundsObserver,
    _factory,
)


class HistogramObserver(_BoundsObserver):
    """Observes a histogram, and clips it at both ends so that the quantisation error is least.

    Args:
        bins: the bins of the histogram.
        dtype: the dtype of the codes; the rest as in the base.

    Example:
        >>> observer = torch.ao.quantization.HistogramObserver(bins=64)
        >>> _ = observer(torch.linspace(0, 1, 1000))
        >>> observer.calculate_qparams()[0].item() > 0
        True
    """

    __module__ = "rushlight.ao.quantization.observer"

    histogram: Any

    def __init__(
        self,
        bins: int = 2048,
        dtype: rushlight.dtype = rushlight.quint8,
        qscheme: Any = rushlight.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float | None = _EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if qscheme in _PER_CHANNEL:
            raise NotImplementedError(
                "HistogramObserver's qscheme only support torch.per_tensor_symmetric and "
                "torch.per_tensor_affine."
            )
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(
            dtype,
            qscheme,
            reduce_range,
            quant_min,
            quant_max,
            factory_kwargs,
            eps,
            is_dynamic,
            **kwargs,
        )
        self.bins = bins
        made = _factory(factory_kwargs)
        self.register_buffer("histogram", rushlight.zeros(bins, **made))
        self._begin_with(rushlight.inf, -rushlight.inf, factory_kwargs)
        low, high = _RANGES[dtype]
        self.dst_nbins = high - low + 1
        self.upsample_rate = 16

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach().to(self.min_val.dtype)
        x = x[rushlight.isfinite(x)]
        if x.numel() == 0:
            return x_orig
        low, high = x.aminmax()
        first = bool(rushlight.isinf(self.min_val))
        if not first:
            low = rushlight.minimum(low, self.min_val)
            high = rushlight.maximum(high, self.max_val)
        counts = rushlight.histc(x, self.bins, min=float(low), max=float(high))
        if not first and self.min_val != self.max_val:
            counts = counts + self._rebin(low, high)
        self.histogram.detach_().resize_(counts.shape).copy_(counts)
        self.min_val.detach_().resize_(low.shape).copy_(low)
        self.max_val.detach_().resize_(high.shape).copy_(high)
        return x_orig

    def _rebin(self, low, high):
        """The histogram in bins between other ends: each bin in small parts, by their middles."""
        if low == self.min_val and high == self.max_val:
            return self.histogram
        parts = self.bins * self.upsample_rate
        counts = self.histogram.repeat_interleave(self.upsample_rate) / self.upsample_rate
        width = (self.max_val - self.min_val) / parts
        middles = rushlight.linspace(float(self.min_val), float(self.max_val), parts + 1)[:-1]
        middles = middles.to(width.device) + 0.5 * width
        ends = rushlight.linspace(float(low), float(high), self.bins + 1).to(width.device)
        places = rushlight.bucketize(middles, ends, right=True) - 1
        return rushlight.bincount(places.clamp(0, self.bins - 1), counts, self.bins).to(
            counts.dtype
        )

    def _loss(self, first: int, last: int) -> float:
        """The sum of squares that codes lose that cover the bins first … last.

        Numbers are taken to lie evenly in a bin, which may reach over several codes.
        """
        bin_width = (float(self.max_val) - float(self.min_val)) / self.bins
        width = bin_width * (last - first + 1) / self.dst_nbins
        if width == 0:
            return 0.0
        density = self.histogram / bin_width
        begin = (rushlight.arange(self.bins, device=density.device) - first) * bin_width
        end = begin + bin_width
        code = (begin / width).floor().clamp(0, self.dst_nbins - 1)
        last_code = (end / width).floor().clamp(0, self.dst_nbins - 1)
        half = width / 2

        def cube(a, b):
            return density * (b**3 - a**3) / 3

        left = cube(begin - (code + 0.5) * width, rushlight.full_like(begin, half))
        whole = (last_code - code - 1) * cube(
            rushlight.full_like(begin, -half), rushlight.full_like(begin, half)
        )
        right = cube(rushlight.full_like(begin, -half), end - (last_code * width + half))
        return float((left + whole + right).sum())

    def _non_linear_param_search(self):
        """The range of bins that loses the least: ends move inwards while it gets less."""
        if self.histogram.shape[0] != self.bins:
            raise AssertionError("bins mismatch")
        bin_width = (self.max_val - self.min_val) / self.bins
        sums = self.histogram.cumsum(0).tolist()
        total = float(self.histogram.sum())
        step, below, above = 1e-5, 0.0, 1.0
        first, last, least = 0, self.bins - 1, float("inf")
        while below < above:
            next_below, next_above = below + step, above - step
            left, right = first, last
            while left < last and sums[left] < next_below * total:
                left += 1
            while right > first and sums[right] > next_above * total:
                right -= 1
            if left - first > last - right:
                chosen, below = (left, last), next_below
            else:
                chosen, above = (first, right), next_above
            if chosen == (first, last):
                continue
            loss = self._loss(*chosen)
            if loss > least:
                break
            least = loss
            first, last = chosen
        return self.min_val + bin_width * first, self.min_val + bin_width * (last + 1)

    def calculate_qparams(self):
        if rushlight.isinf(self.min_val):
            return self._calculate_qparams(self.min_val, self.max_val)
        return self._calculate_qparams(*self._non_linear_param_search())
