"""Regularisers that drop whole branches, or blocks of pixels."""

import rushlight as torch
import rushlight.fx
import rushlight.nn.functional as F
from rushlight import Tensor, nn


def stochastic_depth(input: Tensor, p: float, mode: str, training: bool = True) -> Tensor:
    """Replace `input` by zeros with probability p: as a whole (mode "batch") or each sample
    ("row").

    What survives is divided by 1 - p. ValueError for other probabilities and modes.
    """
    if p < 0.0 or p > 1.0:
        raise ValueError(f"drop probability has to be between 0 and 1, but got {p}")
    if mode not in ("batch", "row"):
        raise ValueError(f"mode has to be either 'batch' or 'row', but got {mode}")
    if not training or p == 0.0:
        return input
    kept = 1.0 - p
    first = input.shape[0] if mode == "row" else 1
    drawn = input.new_empty([first] + [1] * (input.dim() - 1)).bernoulli_(kept)
    return input * (drawn.div_(kept) if kept > 0 else drawn)


class StochasticDepth(nn.Module):
    """`stochastic_depth` as a layer."""

    def __init__(self, p: float, mode: str) -> None:
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, input: Tensor) -> Tensor:
        return stochastic_depth(input, self.p, self.mode, self.training)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p}, mode={self.mode})"


def _drop_blocks(
    input: Tensor, p: float, block_size: int, inplace: bool, eps: float, training: bool, dims: int
) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"drop probability has to be between 0 and 1, but got {p}.")
    if input.dim() != dims + 2:
        raise ValueError(f"input should be {dims + 2} dimensional. Got {input.dim()} dimensions.")
    if not training or p == 0.0:
        return input
    sizes = input.shape[2:]
    block = min(block_size, *sizes)
    if block % 2 == 0:
        raise ValueError(f"block size should be odd. Got {block} which is even.")
    # Blocks lie inside of the image; as many begin as make a share p of it zero.
    rooms = [size - block + 1 for size in sizes]
    gamma = p / block**dims
    for size, room in zip(sizes, rooms, strict=True):
        gamma *= size / room
    seeds = F.pad(
        input.new_empty([*input.shape[:2], *rooms]).bernoulli_(gamma), [block // 2] * (2 * dims)
    )
    pool = F.max_pool2d if dims == 2 else F.max_pool3d
    kept = 1 - pool(seeds, block, stride=1, padding=block // 2)
    scale = kept.numel() / (eps + kept.sum())
    return input.mul_(kept).mul_(scale) if inplace else input * kept * scale


def drop_block2d(
    input: Tensor,
    p: float,
    block_size: int,
    inplace: bool = False,
    eps: float = 1e-06,
    training: bool = True,
) -> Tensor:
    """Set square blocks of images (N, C, H, W) to zero, a share p on average, and scale up the
    rest.

    ValueError for other probabilities and shapes, and for blocks of an even side.
    """
    return _drop_blocks(input, p, block_size, inplace, eps, training, 2)


def drop_block3d(
    input: Tensor,
    p: float,
    block_size: int,
    inplace: bool = False,
    eps: float = 1e-06,
    training: bool = True,
) -> Tensor:
    """`drop_block2d` for volumes (N, C, D, H, W)."""
    return _drop_blocks(input, p, block_size, inplace, eps, training, 3)


class DropBlock2d(nn.Module):
    """`drop_block2d` as a layer."""

    _drop = staticmethod(drop_block2d)

    def __init__(
        self, p: float, block_size: int, inplace: bool = False, eps: float = 1e-06
    ) -> None:
        super().__init__()
        self.p, self.block_size, self.inplace, self.eps = p, block_size, inplace, eps

    def forward(self, input: Tensor) -> Tensor:
        return self._drop(input, self.p, self.block_size, self.inplace, self.eps, self.training)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(p={self.p}, block_size={self.block_size}, "
            f"inplace={self.inplace})"
        )


class DropBlock3d(DropBlock2d):
    """`drop_block3d` as a layer."""

    _drop = staticmethod(drop_block3d)


for _name in ("stochastic_depth", "drop_block2d", "drop_block3d"):
    torch.fx.wrap(_name)
