"""Attention with a function of scores and a function that gives the mask.

The functions are called once with tensors of places that broadcast against each other, in the shape
(batch, heads, queries, keys); what they compute of them element by element, or by indexing, is what
PyTorch's calls for single places give. Scores are held as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import rushlight
from rushlight import Tensor

if TYPE_CHECKING:
    from rushlight.types import Device

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What `flex_attention` is asked for beside its result.

    Args:
        lse: log(sum(exp(scores))) of each query.
        max_scores: the largest score of each query.

    For an example see `nn.attention.flex_attention.flex_attention`.
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What `flex_attention` gives beside its result.

    Args:
        lse: log(sum(exp(scores))) of each query, or None.
        max_scores: the largest score of each query, or None.

    For an example see `nn.attention.flex_attention.flex_attention`.
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask function by which every query sees every key.

    Args:
        batch, head, token_q, token_kv: indices, tensors.

    For an example see `nn.attention.flex_attention.and_masks`.
    """
    return batch.new_ones((), dtype=rushlight.bool)


def and_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Tensor]:
    """The conjunction of mask functions.

    Args:
        mask_mods: functions of (b, h, q_idx, kv_idx).

    Example:
        >>> from rushlight.nn.attention.flex_attention import and_masks, create_mask
        >>> before = lambda batch, head, query, key: query >= key
        >>> near = lambda batch, head, query, key: query - key < 2
        >>> create_mask(and_masks(before, near), None, None, 5, 5).sum(-1)
        tensor([[[1, 2, 2, 2, 2]]])
    """
    return _join_masks(mask_mods, lambda a, b: a & b)


def or_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Tensor]:
    """The disjunction of mask functions.

    Args:
        mask_mods: functions of (b, h, q_idx, kv_idx).

    For an example see `nn.attention.flex_attention.and_masks`.
    """
    return _join_masks(mask_mods, lambda a, b: a | b)


def _join_masks(mask_mods, join) -> Callable[..., Any]:
    if not all(callable(mod) for mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask(b, h, q_idx, kv_idx):
        result = None
        for mod in mask_mods:
            shown = mod(b, h, q_idx, kv_idx)
            result = shown if result is None else join(result, shown)
        return result

    return mask


def _places(sizes, device):
    """Batch, head, query and key numbers, broadcast against each other."""
    made = []
    for dim, size in enumerate(sizes):
        shape = [1, 1, 1, 1]
        shape[dim] = size
        made.append(rushlight.arange(size, dtype=rushlight.int32, device=device).reshape(shape))
    return made


def create_mask(
    mod_fn: Callable[..., Tensor],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Device = None,
):
    """The mask (B, H, Q_LEN, KV_LEN) of a mask function, or the scores of a score function.

    Args:
        mod_fn: of (b, h, q_idx, kv_idx) -> bool, or of (score, b, h, q_idx, kv_idx) -> score.
        B, H: None counts as 1.
        Q_LEN: the number of queries.
        KV_LEN: the number of keys.
        device: where the mask is computed.

    For an example see `nn.attention.flex_attention.and_masks`.
    """
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    places = _places(sizes, device or "cpu")
    count = getattr(getattr(mod_fn, "__code__", None), "co_argcount", 4)
    if count == 5:
        changed = mod_fn(rushlight.zeros(sizes, device=places[0].device), *places)
        return rushlight.where(changed == -math.inf, False, True)
    return rushlight.as_tensor(mod_fn(*places)).expand(sizes).contiguous()


class BlockMask:
    """The blocks of keys that each block of queries sees, and the exact mask function.

    Fields: `kv_num_blocks` (B, H, query blocks) and `kv_indices` (B, H, query blocks, key blocks)
    tell the partly seen blocks, `full_kv_num_blocks` and `full_kv_indices` those seen whole;
    `mask_mod`, `seq_lengths`, `BLOCK_SIZE`.

    Args:
        seq_lengths: (queries, keys).
        kv_num_blocks: how many blocks of keys each block of queries sees in part.
        kv_indices: which ones.
        full_kv_num_blocks, full_kv_indices: those that it sees whole, or None.
        BLOCK_SIZE: rows and columns of a block.
        mask_mod: of (b, h, q_idx, kv_idx): whether a query sees a key.

    For an example see `nn.attention.flex_attention.create_block_mask`.
    """

    def __init__(
        self,
        seq_lengths: tuple[int, ...],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, ...],
        mask_mod: Callable[..., Tensor] | None,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        self.seq_lengths = tuple(seq_lengths)
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks,
        kv_indices,
        full_kv_num_blocks=None,
        full_kv_indices=None,
        BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod=None,
        seq_lengths=None,
        **_,
    ):
        """Make a mask from the numbers and lists of key blocks for each block of queries."""
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
            )
        block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * block[0], kv_indices.shape[-1] * block[1])
        return cls(
            seq_lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            block,
            noop_mask if mask_mod is None else mask_mod,
        )

    @property
    def shape(self):
        """(B, H, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self):
        """The number of elements of the mask."""
        return math.prod(self.shape)

    def to_dense(self):
        """A tensor (B, H, query blocks, key blocks): 1 for blocks in which anything is seen."""
        dense = _dense_blocks(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None:
            dense = dense | _dense_blocks(self.full_kv_num_blocks, self.full_kv_indices)
        return dense.int()

    def sparsity(self):
        """The percentage of blocks in which nothing is seen."""
        dense = self.to_dense()
        return 100 * (1 - float(dense.sum()) / max(dense.numel(), 1))

    def _map_tensors(self, change):
        """The mask with all its tensors changed."""

        def change_optional(t):
            return t if t is None else change(t)

        return type(self)(
            self.seq_lengths,
            change_optional(self.kv_num_blocks),
            change_optional(self.kv_indices),
            change_optional(self.full_kv_num_blocks),
            change_optional(self.full_kv_indices),
            self.BLOCK_SIZE,
            self.mask_mod,
        )

    def to(self, device):
        """A copy on another device."""
        return self._map_tensors(lambda t: t.to(device))

    def __getitem__(self, index):
        return self._map_tensors(lambda t: t[index])

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def _dense_blocks(counts, indices):
    """The blocks that lists name, as booleans."""
    places = rushlight.arange(indices.shape[-1], device=indices.device)
    named = places < counts.unsqueeze(-1)
    seen = rushlight.zeros(indices.shape, dtype=rushlight.int32, device=indices.device)
    return seen.scatter_add(-1, indices.long(), named.int()) > 0


def _lists(dense):
    """The numbers of the blocks that are seen, and all blocks with those first."""
    counts = dense.sum(-1).int()
    indices = rushlight.argsort(dense.int(), dim=-1, descending=True, stable=True).int()
    return counts, indices


def create_block_mask(
    mask_mod: Callable[..., Tensor],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Device = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
):
    """The `BlockMask` of a function of (b, h, q_idx, kv_idx) -> bool.

    Args:
        B, H: None if the mask is the same for all.
        BLOCK_SIZE: rows and columns of a block.
        mask_mod: of (b, h, q_idx, kv_idx), tensors of indices: whether a query sees a key.
        Q_LEN: the number of queries.
        KV_LEN: the number of keys.
        device: where the mask is computed.
        separate_full_blocks: whether blocks that are seen whole need no mask.
        compute_dq_write_order, dq_kv_order: means nothing here.

    Example:
        >>> from rushlight.nn.attention.flex_attention import create_block_mask
        >>> def causal(b, h, q_idx, kv_idx):
        ...     return q_idx >= kv_idx
        >>> mask = create_block_mask(causal, None, None, 256, 256)
        >>> mask.kv_num_blocks  # the blocks on the diagonal
        tensor([[[1, 1]]], dtype=torch.int32)
    """
    block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, columns = -(-Q_LEN // block[0]), -(-KV_LEN // block[1])
    padding = (0, columns * block[1] - KV_LEN, 0, rows * block[0] - Q_LEN)
    padded = rushlight.nn.functional.pad(mask.int(), padding)
    seen = padded.reshape(*mask.shape[:2], rows, block[0], columns, block[1]).sum((3, 5))
    full = (seen == block[0] * block[1]) & separate_full_blocks
    partly = _lists((seen > 0) & ~full)
    whole = _lists(full) if separate_full_blocks else (None, None)
    lengths = (Q_LEN, KV_LEN)
    return BlockMask(lengths, partly[0], partly[1], whole[0], whole[1], block, mask_mod)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor] | None = None,
    block_mask: Any = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: Any = None,
):
    """softmax(score_mod(query @ key.T * scale) where block_mask shows) @ value.

    Args:
        query, key, value: (batch, heads, length, width).
        score_mod: of (score, b, h, q_idx, kv_idx), tensors that broadcast; gives scores.
        block_mask: from `create_block_mask`.
        scale: 1 / √width by default.
        enable_gqa: whether equal groups of heads of query share a head of key.
        return_lse: give log(sum(exp(scores))), too.
        kernel_options: means nothing here.
        return_aux: an `AuxRequest`: what else is returned, as an `AuxOutput`.

    Example:
        >>> from rushlight.nn.attention.flex_attention import flex_attention
        >>> def nearer(score, b, h, q_idx, kv_idx):
        ...     return score - (q_idx - kv_idx).abs()
        >>> q = k = v = torch.randn(1, 2, 8, 4)
        >>> flex_attention(q, k, v, score_mod=nearer).shape
        torch.Size([1, 2, 8, 4])
    """
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise ValueError("Expected query, key, and value to be 4D tensors")
    if query.size(-1) != key.size(-1):
        raise ValueError("Expected query and key to have the same width")
    heads = query.size(1)
    if not enable_gqa and heads != key.size(1):
        raise ValueError(
            f"query, key and value should have the same number of heads, not {heads} and "
            f"{key.size(1)}; with enable_gqa=True groups of query's heads share one"
        )
    if heads % key.size(1) != 0:
        raise ValueError(
            "Expect number of query heads to be a multiple of those of key and value, but "
            f"{heads} is not one of {key.size(1)}"
        )
    if block_mask is not None and block_mask.shape[-2:] != (query.size(-2), key.size(-2)):
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got "
            f"q_len={query.size(-2)} and kv_len={key.size(-2)}."
        )
    scale = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    if heads != key.size(1):
        key = key.repeat_interleave(heads // key.size(1), 1)
        value = value.repeat_interleave(heads // value.size(1), 1)
    wide = rushlight.float64 if query.dtype == rushlight.float64 else rushlight.float32
    scores = (query.to(wide) * scale) @ key.to(wide).transpose(-2, -1)
    places = _places(scores.shape, query.device)
    if score_mod is not None:
        scores = score_mod(scores, *places).to(wide).expand(scores.shape)
    if block_mask is not None:
        shown = rushlight.as_tensor(block_mask.mask_mod(*places))
        block = block_mask.BLOCK_SIZE
        blocks = block_mask.to_dense().bool()
        blocks = blocks.repeat_interleave(block[0], -2).repeat_interleave(block[1], -1)
        shown = shown & blocks[..., : scores.shape[-2], : scores.shape[-1]]
        scores = scores.masked_fill(~shown, -math.inf)
    hidden = (scores.detach() == -math.inf).all(-1, keepdim=True)
    weights = scores.masked_fill(hidden, 0).softmax(-1).masked_fill(hidden, 0)
    output = (weights @ value.to(wide)).to(query.dtype)
    if not return_lse and return_aux is None:
        return output
    lse = scores.logsumexp(-1)
    if return_aux is not None:
        largest = scores.amax(-1) if return_aux.max_scores else None
        return output, AuxOutput(lse if return_aux.lse else None, largest)
    return output, lse
