"""What distributions share that are given by probabilities or by logits."""

from __future__ import annotations

from typing import Any

from rushlight import Size, Tensor

from ._digits import Chances
from .utils import lazy_property, logits_to_probs, probs_to_logits

# Of `_fields`: what these distributions share.
PROBS_FIELDS: dict[str, int | None] = {
    "probs": 0,
    "logits": 0,
    "_param": 0,
    "_by_logits": None,
}


class ProbsOrLogits:
    """The attributes `probs` and `logits`: one is given, the other is computed when it is read.

    A base beside `Distribution`; `_binary` says whether a probability stands for itself or the last
    dimension holds those of all choices.
    """

    _binary = True
    _param: Tensor
    _by_logits: bool

    @staticmethod
    def _check_given(probs: Any, logits: Any) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified: give one of the two")

    def _set_parameter(self, probs: Any, logits: Any) -> None:
        """Takes what is given, made tensors already."""
        self._by_logits = probs is None
        if probs is not None:
            self.probs = self._param = probs
        else:
            self.logits = self._param = logits

    @property
    def _chances(self) -> Chances:
        """By what was given: `logits` that come from probabilities are kept away from infinity."""
        return Chances(None, self.logits) if self._by_logits else Chances(self.probs, None)

    @property
    def _failure_probs(self) -> Tensor:
        """1 - probs"""
        return (-self.logits).sigmoid() if self._by_logits else 1 - self.probs

    @property
    def _odds(self) -> Tensor:
        """probs / (1 - probs)"""
        return self.logits.exp() if self._by_logits else self.probs / (1 - self.probs)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithm of the odds, or of the probabilities of choices."""
        return probs_to_logits(self.probs, is_binary=self._binary)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=self._binary)

    @property
    def param_shape(self) -> Size:
        """The shape of what was given."""
        return self._param.size()

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)
