"""Logarithms of probabilities to all digits, however large or small the parameters are.

Logarithms of gamma functions of large numbers are far larger than what their differences leave;
what is left is written by itself (Stirling's series; Loader 2000 for the binomial distribution). No
gradient passes through a formula where it is not used, nor is not-a-number where it exists.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._C import _functorch
from rushlight.nn.functional import logsigmoid


def _many(x: Tensor) -> float:
    """From where on differences lose digits that matter; the series below have all from 16 on."""
    return 4096.0 if x.dtype.itemsize == 8 else 64.0


def times(x: Tensor, log: Tensor) -> Tensor:
    """x times a logarithm: 0 times that of 0 is 0."""
    return x * log.masked_fill((x == 0) & (log == -math.inf), 0)


def times_log(x: Tensor, p: Tensor) -> Tensor:
    """x log p, 0 where both are 0."""
    return x * p.masked_fill((x == 0) & (p == 0), 1).log()


def times_log1p(x: Tensor, p: Tensor) -> Tensor:
    """x log(1 + p), 0 where x and 1 + p are 0."""
    return x * p.masked_fill((x == 0) & (p == -1), 0).log1p()


def may_be_any(mask: Tensor) -> bool:
    """Whether any is true; yes, too, where that cannot be asked: of a batch, or in a trace."""
    plain = type(mask) is Tensor and not mask.is_meta and not _functorch.is_batchedtensor(mask)
    return bool(mask.any()) if plain else True


def _of_many(x: Tensor, series: Callable[..., Any], exact: Callable[..., Any]) -> Tensor:
    """series(x) for large x, else exact(x)."""
    least = _many(x)
    many = x >= least
    if not may_be_any(many):
        return exact(x)
    return rushlight.where(
        many, series(x.masked_fill(~many, least)), exact(x.masked_fill(many, least))
    )


def _lgamma_rest(x: Tensor) -> Tensor:
    """log gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2) of large x."""
    y = 1 / (x * x)
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x


def _digamma_rest(x: Tensor) -> Tensor:
    """log x - digamma(x)"""

    def series(x: Tensor) -> Tensor:
        y = 1 / (x * x)
        return 1 / (2 * x) + y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))

    return _of_many(x, series, lambda x: x.log() - x.digamma())


def lgamma_step(x: Tensor, d: Tensor | float) -> Tensor:
    """log(gamma(x + d) / gamma(x)), of d >= 0."""

    def series(x: Tensor) -> Tensor:
        y = x + d
        grown = (x - 0.5) * (d / x).log1p() - d + d * y.log()
        return grown + _lgamma_rest(y) - _lgamma_rest(x)

    return _of_many(x, series, lambda x: (x + d).lgamma() - x.lgamma())


def digamma_step(x: Tensor, d: Tensor | float) -> Tensor:
    """digamma(x + d) - digamma(x), of d >= 0."""
    return (d / x).log1p() + _digamma_rest(x) - _digamma_rest(x + d)


def gamma_entropy(a: Tensor) -> Tensor:
    """a + log gamma(a) + (1 - a) digamma(a)"""

    def series(a: Tensor) -> Tensor:
        return (2 * math.pi * a).log() / 2 + _lgamma_rest(a) + (a - 1) * _digamma_rest(a)

    return _of_many(a, series, lambda a: a + a.lgamma() + (1 - a) * a.digamma())


def log_poisson(count: Tensor, mean: Tensor, log_mean: Tensor, after: Tensor) -> Tensor:
    """log(mean^count exp(-mean) / gamma(after)), where `after` is count + 1."""
    least = _many(count)
    many = count >= least
    if not may_be_any(many):
        return times(count, log_mean) - mean - after.lgamma()
    k = count.masked_fill(~many, least)
    away = (mean - k) / k
    near = away.abs() < 0.5
    close = away.masked_fill(~near, 0)
    wide = log_mean.masked_fill(near, 0) - k.log() - away
    gap = rushlight.where(near, close.log1p() - close, wide)
    of_many = k * gap - (2 * math.pi * k).log() / 2 - _lgamma_rest(k)
    of_few = times(count.masked_fill(many, 0), log_mean) - mean
    return rushlight.where(many, of_many, of_few - after.masked_fill(many, 1).lgamma())


def log_dirichlet(a: Tensor, x: Tensor, log_x: Tensor) -> Tensor:
    """sum (a_i - 1) log x_i - log B(a) along the last dimension."""
    total = a.sum(-1)
    if not may_be_any(total >= _many(total)):
        return times(a - 1, log_x).sum(-1) - (a.lgamma().sum(-1) - total.lgamma())
    scale = total.clamp(min=1)  # any number would do: this one leaves differences small
    wide = scale.unsqueeze(-1)
    parts = log_poisson(a - 1, wide * x, wide.log() + log_x, a).sum(-1)
    whole = log_poisson(total - 1, scale, scale.log(), total)
    return parts - whole + (a.size(-1) - 1) * scale.log() + scale * (x.sum(-1) - 1)


class Chances:
    """A probability and its complement, with their logarithms, from one or from logits."""

    def __init__(self, probs: Tensor | None, logits: Tensor | None) -> None:
        self._probs = probs
        self._logits: Any = logits  # one of them is given

    def weigh(self, hits: Tensor, misses: Tensor) -> Tensor:
        """hits log p + misses log(1 - p)"""
        if self._probs is not None:
            return times_log(hits, self._probs) + times_log1p(misses, -self._probs)
        return times(hits, logsigmoid(self._logits)) + times(misses, logsigmoid(-self._logits))

    def log_binomial(self, hits: Tensor, misses: Tensor) -> Tensor:
        """The logarithm of the probability of so many hits among hits + misses."""
        total = hits + misses
        if not may_be_any(total >= _many(total)):
            choices = (total + 1).lgamma() - (hits + 1).lgamma() - (misses + 1).lgamma()
            return choices + self.weigh(hits, misses)
        log_total = total.masked_fill(total == 0, 1).log()
        if self._probs is not None:
            p, q = self._probs, 1 - self._probs
            log_p = p.masked_fill((p == 0) & (hits == 0), 1).log()
            log_q = q.masked_fill((q == 0) & (misses == 0), 1).log()
        else:
            p, q = self._logits.sigmoid(), (-self._logits).sigmoid()
            log_p, log_q = logsigmoid(self._logits), logsigmoid(-self._logits)
        parts = ((hits, total * p, log_total + log_p), (misses, total * q, log_total + log_q))
        whole = log_poisson(total, total, log_total, total + 1)
        return sum(log_poisson(k, mean, log, k + 1) for k, mean, log in parts) - whole
