"""Regularisers that drop whole branches, or blocks of pixels."""

import rushlight as torch
import rushlight.fx
import rushlight.nn.functional as F
from rushlight import Tensor, nn

__all__ = [
    "DropBlock2d",
    "DropBlock3d",
    "StochasticDepth",
    "drop_block2d",
    "drop_block3d",
    "stochastic_depth",
]


def stochastic_depth(input: Tensor, p: float, mode: str, training: bool = True) -> Tensor:
    """Replace `input` by zeros with probability p: as a whole (mode "batch") or each sample
    ("row").

    What survives is divided by 1 - p. ValueError for other probabilities and modes.

    Args:
        input: the samples, (N, ...).
        p: the probability of zeros, from 0 to 1.
        mode: "batch" for all samples alike, "row" for each by itself.
        training: otherwise `input` is returned as it is.

    Example:
        >>> torch.vision.ops.stochastic_depth(torch.ones(2, 3), p=0.5, mode="row", training=False)
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
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
    """`stochastic_depth` as a layer.

    Input and output have one shape, (N, ...).

    Args:
        p: the probability of zeros, from 0 to 1.
        mode: "batch" for all samples alike, "row" for each by itself.

    Example:
        >>> layer = torch.vision.ops.StochasticDepth(p=1.0, mode="row")
        >>> layer(torch.ones(2, 2))
        tensor([[0., 0.],
                [0., 0.]])
        >>> layer.eval()(torch.ones(1, 2))
        tensor([[1., 1.]])
    """

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

    Args:
        input: images (N, C, H, W).
        p: the share of pixels that become zero, from 0 to 1.
        block_size: the side of a block, odd.
        inplace: whether `input` itself is changed.
        eps: is added to the number of pixels that remain, by which the rest is scaled.
        training: otherwise `input` is returned as it is.

    Example:
        >>> dropped = torch.vision.ops.drop_block2d(torch.ones(1, 1, 16, 16), p=0.3, block_size=3)
        >>> dropped.shape
        torch.Size([1, 1, 16, 16])
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
    """`drop_block2d` for volumes (N, C, D, H, W).

    Args:
        input: volumes (N, C, D, H, W).
        p: the share of elements that become zero, from 0 to 1.
        block_size: the side of a block, odd.
        inplace: whether `input` itself is changed.
        eps: is added to the number of elements that remain, by which the rest is scaled.
        training: otherwise `input` is returned as it is.

    Example:
        >>> torch.vision.ops.drop_block3d(torch.ones(1, 1, 8, 8, 8), p=0.3, block_size=3).shape
        torch.Size([1, 1, 8, 8, 8])
    """
    return _drop_blocks(input, p, block_size, inplace, eps, training, 3)


class DropBlock2d(nn.Module):
    """`drop_block2d` as a layer.

    Input and output are (N, C, H, W).

    Args:
        p: the share of pixels that become zero, from 0 to 1.
        block_size: the side of a block, odd.
        inplace: whether the input itself is changed.
        eps: is added to the number of pixels that remain, by which the rest is scaled.

    Example:
        >>> layer = torch.vision.ops.DropBlock2d(p=0.1, block_size=3)
        >>> layer(torch.ones(1, 2, 8, 8)).shape
        torch.Size([1, 2, 8, 8])
    """

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
    """`drop_block3d` as a layer.

    Input and output are (N, C, D, H, W).

    Args:
        p: the share of elements that become zero, from 0 to 1.
        block_size: the side of a block, odd.
        inplace: whether the input itself is changed.
        eps: is added to the number of elements that remain, by which the rest is scaled.

    Example:
        >>> layer = torch.vision.ops.DropBlock3d(p=0.1, block_size=3)
        >>> layer(torch.ones(1, 2, 8, 8, 8)).shape
        torch.Size([1, 2, 8, 8, 8])
    """

    _drop = staticmethod(drop_block3d)


for _name in ("stochastic_depth", "drop_block2d", "drop_block3d"):
    torch.fx.wrap(_name)
