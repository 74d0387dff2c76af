"""Tensors without elements, or without memory, may have sizes of any magnitude: sizes that are made of them are right
or refused, never wrapped around 2**64.
"""

import math

import pytest

import rushlight as torch
from rushlight.nn import functional as F

BIG = 2**40
HUGE = 2**61
MOST = 2**63


def none(*sizes, device="cpu", dtype=torch.float32):
    """No elements, whatever the other sizes are."""
    return torch.empty_strided((0, *sizes), (0,) * (len(sizes) + 1), device=device, dtype=dtype)


# Calls of ops over `t`, a function that makes tensors, and the sizes that mathematics gives, where they can be.
CALLS = {
    "view_dtype": (lambda t: t(HUGE).view(torch.uint8), (0, 4 * HUGE)),
    "view_dtype_wraps": (lambda t: t(2 * HUGE).view(torch.uint8), (0, 8 * HUGE)),
    "view_dtype_strides": (
        lambda t: t(1).as_strided((0, 2, 1), (1, 2 * HUGE, 1)).view(torch.uint8),
        None,
    ),
    "view_dtype_fits": (
        lambda t: torch.empty((0, 2**40), device=t().device).view(torch.uint8),
        (0, 2**42),
    ),
    "flatten": (lambda t: t(BIG, BIG).flatten(1), (0, BIG * BIG)),
    "flatten_fits": (lambda t: t(BIG, 2**20).flatten(1), (0, 2**60)),
    "flatten_to_nothing": (lambda t: t(BIG, BIG).flatten(), None),
    "ravel": (lambda t: t(BIG, 4).ravel(), (0,)),
    "reshape": (lambda t: t(BIG).reshape(BIG, BIG, 0), None),
    "reshape_inferred": (lambda t: t(BIG).reshape(-1, BIG, BIG), None),
    "unflatten": (lambda t: t(4).unflatten(1, (BIG, BIG)), None),
    "repeat": (lambda t: t(BIG).repeat(1, BIG), (0, BIG * BIG)),
    "repeat_fits": (lambda t: t(2**20).repeat(1, 2**20), (0, BIG)),
    "tile": (lambda t: t(BIG).tile(BIG), (0, BIG * BIG)),
    "repeat_interleave": (lambda t: t(BIG).repeat_interleave(BIG, 1), (0, BIG * BIG)),
    "expand": (lambda t: t(1).expand(BIG, 0, BIG), (BIG, 0, BIG)),
    "expand_leading": (lambda t: t(1)[:, 0].expand(BIG, BIG, 0), None),
    "unfold": (lambda t: t(BIG).unfold(1, BIG, 1), (0, 1, BIG)),
    "unsqueeze": (lambda t: t(HUGE, 2).unsqueeze(1), (0, 1, HUGE, 2)),
    "cat": (lambda t: torch.cat([t(HUGE)] * 3, 1), (0, 3 * HUGE)),
    "cat_over": (lambda t: torch.cat([t(HUGE)] * 4, 1), (0, 4 * HUGE)),
    "hstack": (lambda t: torch.hstack([t(HUGE)] * 4), (0, 4 * HUGE)),
    "vstack": (lambda t: torch.vstack([t(3)] * 4), (0, 3)),
    "stack": (lambda t: torch.stack([t(HUGE)] * 4), (4, 0, HUGE)),
    "kron": (lambda t: torch.kron(t(BIG), t(BIG)), (0, BIG * BIG)),
    "pixel_shuffle": (lambda t: F.pixel_shuffle(t(4, HUGE, 2), 2), (0, 1, 2 * HUGE, 4)),
    "pixel_shuffle_over": (lambda t: F.pixel_shuffle(t(16, HUGE, 1), 4), (0, 1, 4 * HUGE, 4)),
    "pixel_unshuffle": (lambda t: F.pixel_unshuffle(t(HUGE, 2, 2), 2), (0, 4 * HUGE, 1, 1)),
    "channel_shuffle": (lambda t: F.channel_shuffle(t(4, HUGE, 1), 2), (0, 4, HUGE, 1)),
    "pad": (lambda t: F.pad(t(HUGE), (HUGE, 2 * HUGE)), (0, 4 * HUGE)),
    "pad_fits": (lambda t: F.pad(t(HUGE), (HUGE, 0)), (0, 2 * HUGE)),
    "diag_embed": (lambda t: torch.diag_embed(t(BIG)), (0, BIG, BIG)),
    "block_diag": (lambda t: torch.block_diag(*[t(HUGE)] * 4), (0, 4 * HUGE)),
    "interpolate": (lambda t: F.interpolate(t(1, HUGE), scale_factor=4), None),
    "im2col": (lambda t: F.unfold(t(2**30, 2**20, 2**20), 2**15), None),
    "matmul": (lambda t: t(BIG) @ t(BIG).mT, (0, 0)),
    "tensordot": (lambda t: torch.tensordot(t(BIG, BIG), t(BIG, BIG), 0), None),
    "einsum": (lambda t: torch.einsum("abc,ade->abcde", t(BIG, BIG), t(BIG, BIG)), None),
    "outer": (lambda t: torch.outer(t(), t()), (0, 0)),
    "cartesian_prod": (lambda t: torch.cartesian_prod(t(), t()), (0, 2)),
    "meshgrid": (lambda t: torch.meshgrid(t(), t(), indexing="ij")[0], (0, 0)),
    "embedding": (
        lambda t: F.embedding(
            t(BIG).long(), torch.empty(3, BIG, device="meta" if t().is_meta else "cpu")
        ),
        None,
    ),
    "one_hot": (lambda t: F.one_hot(t(BIG).long(), BIG), (0, BIG, BIG)),
    "glu": (lambda t: F.glu(t(HUGE), 1), (0, HUGE // 2)),
    "movedim": (lambda t: t(BIG, 2).movedim(0, 2), (BIG, 2, 0)),
    "roll": (lambda t: t(HUGE).roll(5, 1), (0, HUGE)),
    "column_stack": (lambda t: torch.column_stack([t(HUGE)] * 4), (0, 4 * HUGE)),
    "dstack": (lambda t: torch.dstack([t(2, HUGE)] * 4), (0, 2, 4 * HUGE)),
    "swapaxes": (lambda t: t(BIG, 3).swapaxes(0, 1), (BIG, 0, 3)),
    "view_as_real": (lambda t: torch.view_as_real(t(HUGE, dtype=torch.complex64)), (0, HUGE, 2)),
    "combinations": (lambda t: torch.combinations(torch.empty(BIG, device="meta"), 3), None),
    "diagonal": (lambda t: t(BIG).diagonal(BIG - 1), (0,)),
    "cdist": (lambda t: torch.cdist(t(BIG, 3), t(BIG, 3)), (0, BIG, BIG)),
    "fold": (
        lambda t: F.fold(t(BIG * BIG, 1) if BIG * BIG < MOST else t(2**62, 1), (2, 2), (2, 2)),
        (0, 2**60, 2, 2),
    ),
    "conv": (
        lambda t: F.conv1d(t(1, HUGE), torch.ones(1, 1, 1, device=t().device), padding=HUGE),
        None,
    ),
    "avg_pool": (lambda t: F.avg_pool1d(t(1, HUGE), 1), (0, 1, HUGE)),
    "vander": (lambda t: torch.vander(t(), BIG), (0, BIG)),
    "sum_to_size": (lambda t: t(BIG).sum_to_size(0, 1), (0, 1)),
    "as_strided": (lambda t: t(3).as_strided((0, BIG, BIG), (BIG, BIG, BIG)), (0, BIG, BIG)),
    "new_zeros": (lambda t: t(3).new_zeros(BIG, BIG, 0), None),
    "take_along": (lambda t: torch.take_along_dim(t(3), t(3).long(), 1), (0, 3)),
    "index": (lambda t: t(BIG)[t(BIG).long()[:, 0]], (0, BIG)),
    "index_pairs": (lambda t: t(BIG, BIG)[:, t().long()], (0, 0, BIG)),
    "gather": (lambda t: t(BIG).gather(1, t(3).long()), (0, 3)),
}


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("name", CALLS)
def test_sizes_are_right_or_refused(name, device):
    call, sizes = CALLS[name]

    def make(*given, dtype=torch.float32):
        return none(*given, device=device, dtype=dtype)

    can_be = sizes is not None and all(size < MOST for size in sizes)
    try:
        result = call(make)
    except (RuntimeError, ValueError, NotImplementedError) as error:
        # What can be may still be refused: strides have no room.
        is_said = "overflow" in str(error) or "too large" in str(error)
        assert sizes is None or not can_be or is_said, error
        if sizes is not None and not can_be:
            assert isinstance(error, RuntimeError) and str(error)
        return
    assert sizes is None or can_be, (name, tuple(result.shape))
    assert all(0 <= size < MOST for size in result.shape)
    assert sizes is None or tuple(result.shape) == sizes
    assert result.numel() == math.prod(result.shape)


def test_repeats_that_overflow():
    repeats = torch.tensor([HUGE, HUGE, HUGE, HUGE, HUGE])
    with pytest.raises(RuntimeError, match="overflow"):
        torch.repeat_interleave(repeats)
    with pytest.raises(RuntimeError, match="overflow"):
        torch.empty(5, 0).repeat_interleave(repeats, 0)
