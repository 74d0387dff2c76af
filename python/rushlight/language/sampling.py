"""`Sampler`: the next token, drawn from what a network says of all tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor

__all__ = ["Sampler"]


class Sampler:
    """Draws tokens.

    What was seen before becomes less likely first; then the most likely tokens are kept, as the
    limits say, and one of them is drawn.

    Args:
        temperature: what logits are divided by; 0 takes the most likely token.
        top_k: tokens that are kept; 0 keeps all.
        top_p: the fewest likely tokens are kept whose probabilities come to so much.
        repetition_penalty: what positive logits of tokens seen before are divided by, and negative
            ones multiplied by.
        generator: where random numbers come from; None: the default one.

    Example:
        >>> logits = torch.tensor([0.0, 3.0, 2.0])
        >>> torch.language.Sampler(temperature=0)(logits)
        1
        >>> torch.language.Sampler(temperature=0, repetition_penalty=2)(logits, [1])
        2
    """

    def __init__(
        self,
        temperature: float = 0.8,
        top_k: int = 40,
        top_p: float = 0.95,
        repetition_penalty: float = 1.0,
        generator: Any = None,
    ) -> None:
        for name, value, good in (
            ("temperature", temperature, 0 <= temperature < float("inf")),
            ("top_k", top_k, top_k >= 0),
            ("top_p", top_p, 0 <= top_p <= 1),
            ("repetition_penalty", repetition_penalty, 0 < repetition_penalty < float("inf")),
        ):
            if not good:
                raise ValueError(f"Sampler: {name} cannot be {value}")
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p
        self.repetition_penalty = repetition_penalty
        self.generator = generator

    def __call__(self, logits: Tensor, seen: Sequence[int] = ()) -> int:
        """The next token.

        Args:
            logits: what the network says of each token.
            seen: tokens that the penalty is for.
        """
        with rushlight.no_grad():
            logits = self._penalised(logits.detach().float(), seen)
            if self.temperature == 0:
                return int(logits.argmax())
            kept, tokens = self._likeliest(logits)
            drawn = rushlight.multinomial(kept, 1, generator=self.generator)
            return int(tokens[drawn])

    def _penalised(self, logits: Tensor, seen: Sequence[int]) -> Tensor:
        if self.repetition_penalty == 1 or not seen:
            return logits
        tokens = rushlight.tensor(sorted(set(seen)))
        found = logits[tokens]
        less = self.repetition_penalty
        return logits.index_put((tokens,), rushlight.where(found > 0, found / less, found * less))

    def _likeliest(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Probabilities that need not add up to one, and whose they are."""
        count = len(logits)
        if self.top_k:
            logits, tokens = logits.topk(min(self.top_k, count))
        elif self.top_p < 1:
            logits, tokens = logits.sort(descending=True)
        else:
            tokens = rushlight.arange(count)
        likely = (logits / self.temperature).softmax(0)
        if self.top_p < 1:
            before = likely.cumsum(0) - likely
            # The likeliest is kept whatever the limit.
            keep = before < self.top_p
            keep[0] = True
            likely = likely * keep
        return likely, tokens
