"""AdaptiveLogSoftmaxWithLoss."""

from __future__ import annotations

from collections import namedtuple
from itertools import pairwise
from typing import TYPE_CHECKING

import rushlight
from rushlight import _C

from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rushlight.types import Device

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


def _bounds(cutoffs, n_classes):
    """Where clusters begin, and the end of the last; ValueError unless they are rising integers."""
    bounds = [0, *cutoffs, n_classes]
    if len(bounds) < 3:
        raise ValueError("cutoffs should be a sequence of length 1 or more, but it is empty")
    if any(low >= high or int(low) != low for low, high in pairwise(bounds)):
        raise ValueError(
            "cutoffs should be a sequence of unique, rising integers from 1 to n_classes - 1 = "
            f"{n_classes - 1}, not {bounds[1:-1]}"
        )
    return bounds[1:]


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax over many classes of unequal frequency, in clusters.

    Args:
        in_features: width of the input.
        n_classes: number of classes, the frequent ones first.
        cutoffs: first classes of the clusters, rising; those before belong to the head.
        div_value: each further cluster's width is divided by this once more.
        head_bias: whether the head has a bias.
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    Shape: input (N, in_features) or (in_features), class indices (N) or (); output (N) or (), loss
        a number.

    Example:
        >>> layer = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 100, cutoffs=[10, 50])
        >>> result = layer(torch.zeros(8, 16), torch.arange(8))
        >>> result.output.shape, result.loss.shape
        (torch.Size([8]), torch.Size([]))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__()
        self.cutoffs = _bounds(cutoffs, n_classes)
        self.in_features, self.n_classes = in_features, n_classes
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = self.cutoffs[0], len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        made = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, head_bias, **made)
        clusters = []
        for i, (low, high) in enumerate(pairwise(self.cutoffs), 1):
            width = int(in_features // div_value**i)
            narrow = Linear(in_features, width, False, **made)
            clusters.append(Sequential(narrow, Linear(width, high - low, False, **made)))
        self.tail = ModuleList(clusters)

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
        dim = target_.dim()
        if dim not in (0, 1):
            raise RuntimeError(
                f"a 0D or 1D target is expected, not {dim}D: multi-target not supported"
            )
        if input_.dim() != dim + 1:
            raise RuntimeError(
                f"{dim}D target tensor expects {dim + 1}D input tensors, not one of shape "
                f"{input_.shape}"
            )
        if dim == 1 and input_.size(0) != target_.size(0):
            raise RuntimeError(
                "Input and target should have the same size in dimension 0, that of the batch, but "
                f"have {input_.size(0)} and {target_.size(0)}"
            )
        batched = target_.dim() == 1
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if target.numel() and not 0 <= int(target.min()) <= int(target.max()) < self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but they go from "
                f"{int(target.min())} to {int(target.max())}"
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
