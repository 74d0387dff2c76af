"""Embedding and EmbeddingBag."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rushlight
from rushlight import _C, Tensor

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module
from .utils import _settings_text

if TYPE_CHECKING:
    from rushlight.types import Device

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """Vectors as the rows of `weight`, one of which may be padding."""

    _padding = "padding_idx"  # its name in messages

    def _make_table(self, size, padding_idx, weight, *, freeze=False, device=None, dtype=None):
        self.num_embeddings, self.embedding_dim = rows, _ = size
        if padding_idx is not None:
            if not -rows <= padding_idx < rows:
                raise AssertionError(
                    f"{self._padding} must be within num_embeddings: it is {padding_idx}, and the "
                    f"table of {type(self).__name__} has the rows 0 to {rows - 1}"
                )
            padding_idx %= rows
        self.padding_idx = padding_idx
        if weight is not None and tuple(weight.shape) != size:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        table = rushlight.empty(size, device=device, dtype=dtype) if weight is None else weight
        self.weight = Parameter(table, requires_grad=not freeze)
        if weight is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new starting values; the row of `padding_idx` becomes zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with rushlight.no_grad():
                self.weight[self.padding_idx].fill_(0)


def _size_of(embeddings):
    """Rows and width of a given table."""
    if embeddings.dim() != 2:
        raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
    return tuple(embeddings.shape)


class Embedding(_Table):
    """A table of vectors that are looked up by index.

    Args:
        num_embeddings: number of rows.
        embedding_dim: the length of each row.
        padding_idx: a row that starts as zeros and gets no gradient.
        max_norm: rows that are longer are shortened to this `norm_type`-norm when looked up.
        scale_grad_by_freq: divide gradients by the number of times that the row occurs in the
            batch.
        sparse: the gradient of the weight is sparse.
        norm_type: the order of that norm.
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    `weight` has shape (num_embeddings, embedding_dim) and starts from N(0, 1).

    Shape: integers of any shape (*) to (*, embedding_dim).

    Example:
        >>> table = torch.nn.Embedding.from_pretrained(torch.tensor([[0.5, 2.0], [3.0, 4.5]]))
        >>> table(torch.tensor([1, 0, 1]))
        tensor([[3.0000, 4.5000],
                [0.5000, 2.0000],
                [3.0000, 4.5000]])
    """

    _padding = "Padding_idx"

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__()
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        size = (num_embeddings, embedding_dim)
        self._make_table(size, padding_idx, _weight, freeze=_freeze, device=device, dtype=dtype)
        self.sparse = sparse

    def forward(self, input: Tensor):
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}" + _settings_text(
            self,
            padding_idx=None,
            max_norm=None,
            norm_type=2,
            scale_grad_by_freq=False,
            sparse=False,
        )

    @classmethod
    def from_pretrained(
        cls,
        embeddings,
        freeze: bool = True,
        padding_idx=None,
        max_norm=None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ):
        """Make an Embedding from a table of shape (rows, dim), which is frozen by default."""
        rows, columns = _size_of(embeddings)
        return cls(
            num_embeddings=rows,
            embedding_dim=columns,
            _weight=embeddings,
            _freeze=freeze,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )


class EmbeddingBag(_Table):
    """Sums, means or maxima of the rows of a table, for bags of indices.

    Args:
        num_embeddings, embedding_dim: size of the table `weight`, which starts from N(0, 1).
        mode: "sum", "mean" or "max".
        include_last_offset: the last offset is the end of the last bag.
        max_norm, norm_type, scale_grad_by_freq, padding_idx: as `Embedding` has them.
        sparse: whether the gradient of the weight is sparse.
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    Shape: indices (B, L) for B bags of L indices, or (n) and offsets (B); to (B, embedding_dim).

    Example:
        >>> bags = torch.nn.EmbeddingBag.from_pretrained(
        ...     torch.tensor([[1.0, 2.0], [3.0, 7.0]]), mode="sum"
        ... )
        >>> bags(torch.tensor([0, 1, 1]), torch.tensor([0, 2]))
        tensor([[4., 9.],
                [3., 7.]])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        super().__init__()
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        size = (num_embeddings, embedding_dim)
        self._make_table(size, padding_idx, _weight, device=device, dtype=dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(self, input: Tensor, offsets=None, per_sample_weights=None):
        """(bags, embedding_dim); see `nn.functional.embedding_bag`."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        text += _settings_text(self, max_norm=None, norm_type=2, scale_grad_by_freq=False)
        return f"{text}, mode={self.mode!r}" + _settings_text(self, padding_idx=None)

    @classmethod
    def from_pretrained(
        cls,
        embeddings,
        freeze: bool = True,
        max_norm=None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx=None,
    ):
        """Make an EmbeddingBag from a table (rows, width), which is not trained if it is frozen."""
        rows, width = _size_of(embeddings)
        made = cls(
            rows,
            width,
            _weight=embeddings,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        made.weight.requires_grad = not freeze
        return made
