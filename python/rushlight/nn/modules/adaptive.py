"""AdaptiveLogSoftmaxWithLoss."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING

import rushlight
from rushlight import _C

from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

if TYPE_CHECKING:
    from rushlight.types import Device

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax over many classes of unequal frequency, in clusters.

    Args:
        in_features: width of the input.
        n_classes: number of classes, the frequent ones first.
        cutoffs: first classes of the clusters, rising; those before belong to the head.
        div_value: each further cluster's width is divided by this once more.
        head_bias: whether the head has a bias.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs,
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__()
        made = {"device": device, "dtype": dtype}
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(cutoffs)
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or len(set(cutoffs)) != len(cutoffs)
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                "order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // div_value ** (i + 1))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, **made),
                    Linear(width, classes, bias=False, **made),
                )
            )

    def reset_parameters(self) -> None:
        """Initialise the parameters again."""
        self.head.reset_parameters()
        for narrow, wide in self.tail:
            narrow.reset_parameters()
            wide.reset_parameters()

    def forward(self, input_, target_):
        """The log-probability of each target, and minus their mean.

        Args:
            input_: (N, in_features) or (in_features).
            target_: (N) or a single class.
        """
        if target_.dim() not in (0, 1):
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input_.dim() != target_.dim() + 1:
            raise RuntimeError(
                "1D target tensor expects 2D input tensors, but found inputs with size"
                if target_.dim() == 1
                else "0D target tensor expects 1D input tensors, but found inputs with size",
                input_.size(),
            )
        if target_.dim() == 1 and input_.size(0) != target_.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        batched = target_.dim() == 1
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if target.numel() and not 0 <= int(target.min()) <= int(target.max()) < self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{int(target.min())}, {int(target.max())}] were found. "
            )
        gathered = target.masked_fill(target >= self.shortlist_size, 0)
        output = input.new_zeros(target.size(0))
        for i in range(self.n_clusters):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            probabilities = F.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
            relative = (target.index_select(0, rows) - low).unsqueeze(1)
            output = output.index_copy(0, rows, probabilities.gather(1, relative).squeeze(1))
            gathered = gathered.index_fill(0, rows, self.shortlist_size + i)
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, gathered.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input, head_output):
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            within = F.log_softmax(cluster(input), dim=1)
            parts.append(within + head[:, self.shortlist_size + i].unsqueeze(1))
        return rushlight.cat(parts, 1)

    def log_prob(self, input):
        """The log-probabilities of all classes: (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input):
        """The most probable classes: (N)."""
        return self.log_prob(input).argmax(1)
