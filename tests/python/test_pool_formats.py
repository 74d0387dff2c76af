"""Pooling of single images, and of tensors whose strides look like channels last but are not batches of images."""

import pytest

import rushlight as torch
import rushlight.nn.functional as F


def strided(*sizes):
    t = torch.arange(float(torch.Size(sizes).numel())).reshape(*sizes)
    return t, t.to(memory_format=torch.channels_last if t.dim() == 4 else torch.channels_last_3d)


@pytest.mark.parametrize(
    "pool",
    [
        lambda x: F.max_pool3d(x, 2),
        lambda x: F.avg_pool3d(x, 2),
        lambda x: F.adaptive_max_pool3d(x, (2, 3, 1)),
        lambda x: F.adaptive_avg_pool3d(x, (2, 3, 1)),
    ],
)
def test_one_volume(pool):
    dense, other = strided(6, 7, 5, 4)
    assert other.stride() != dense.stride()
    other.requires_grad_()
    dense.requires_grad_()
    assert torch.equal(pool(dense), pool(other))
    pool(dense).square().sum().backward()
    pool(other).square().sum().backward()
    assert torch.equal(dense.grad, other.grad)


@pytest.mark.parametrize("sizes", [(3, 4, 6, 8), (2, 3, 4, 6, 8)])
def test_batches(sizes):
    dense, other = strided(*sizes)
    pool = F.max_pool2d if len(sizes) == 4 else F.max_pool3d
    assert torch.equal(pool(dense, 2), pool(other, 2))
    assert pool(other, 2).stride() != pool(dense, 2).stride()
