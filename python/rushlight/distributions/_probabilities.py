"""What distributions share that are given by probabilities or by logits."""

from __future__ import annotations

from typing import Any

from rushlight import Size, Tensor

from .utils import lazy_property, logits_to_probs, probs_to_logits


class ProbsOrLogits:
    """The attributes `probs` and `logits`: one is given, the other is computed when it is read.

    A base beside `Distribution`; `_binary` says whether a probability stands for itself or the last
    dimension holds those of all choices.
    """

    _binary = True
    _param: Tensor

    @staticmethod
    def _check_given(probs: Any, logits: Any) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")

    def _given(self, probs: Any, logits: Any) -> None:
        """Takes what is given, made tensors already."""
        if probs is not None:
            self.probs = self._param = probs
        else:
            self.logits = self._param = logits

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
